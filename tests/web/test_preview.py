"""A file travels in the form itself, nothing that comes back is trusted, and any file is previewed or refused."""

from __future__ import annotations

import base64
import gzip
import io
import time
import zipfile

import polars as pl
import pytest

from unbandit.errors import LogError
from unbandit.web.examples import EXAMPLES
from unbandit.web.forms import ReadAs
from unbandit.web.jobs import Limits
from unbandit.web.preview import (
    MOST_COLUMNS,
    Upload,
    _gunzip,
    clean_name,
    form_text,
    from_form_text,
    preview,
    read,
)

MOST_BYTES = 10_000


@pytest.mark.parametrize(
    "data",
    [b"arm\nA\nB\n", b"", gzip.compress(b"arm\nA\n", mtime=0), "arm\nαβ\n".encode("utf-16"), bytes(range(256)) * 4],
)
def test_what_was_carried_is_what_was_sent(data):
    assert from_form_text(form_text(data), MOST_BYTES) == data


def test_a_text_is_carried_smaller_than_it_is():
    text = b"arm\n" + b"A\nB\n" * 100_000
    assert len(form_text(text)) < len(text) / 20


def test_parquet_is_carried_as_it_is():
    held = io.BytesIO()
    pl.DataFrame({"arm": ["A", "B"]}).write_parquet(held)
    assert from_form_text(form_text(held.getvalue()), 0) == held.getvalue()


@pytest.mark.parametrize("text", ["", "x", "packed:", "packed:%%%", "as-is:ä", "other:QUJD", "packed:QUJD"])
def test_a_field_that_nobody_wrote_so_is_refused(text):
    with pytest.raises(LogError):
        from_form_text(text, MOST_BYTES)


def test_a_carried_bomb_is_not_unpacked():
    bomb = "packed:" + base64.b64encode(gzip.compress(bytes(50_000_000), 1)).decode()
    with pytest.raises(LogError, match=r"at most 9\.77 kB once it is unpacked"):
        from_form_text(bomb, MOST_BYTES)


def test_a_bomb_of_several_members_is_not_unpacked():
    with pytest.raises(LogError, match="it is larger"):
        read(Upload("log.csv.gz", gzip.compress(bytes(6_000)) * 2), ReadAs(), Limits(unpacked=MOST_BYTES))


@pytest.mark.parametrize("broken", [gzip.compress(b"arm\nA\n", mtime=0)[:-4], b"\x1f\x8bnot gzip at all"])
def test_a_broken_gzip_file_is_named(broken):
    with pytest.raises(LogError, match=r"log\.csv\.gz: expected a whole gzip file"):
        read(Upload("log.csv.gz", broken), ReadAs(), Limits())


def test_text_is_not_unpacked():
    log, sent = read(Upload("log.csv", b"arm\nA\nB\n"), ReadAs(), Limits(unpacked=1))
    assert (log.arms, sent) == (("A", "B"), b"arm\nA\nB\n")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("log.csv", "log.csv"),
        ("../../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\log.csv", "log.csv"),
        ("a\x00b\n\u202ec.csv", "abc.csv"),
        ("x" * 500, "x" * 79 + "…"),
        ("..", ".."),
        ("/", "the log"),
    ],
)
def test_a_name_is_only_shown(name, shown):
    assert clean_name(name) == shown


LIMITS = Limits(unpacked=5_000_000, rows=100_000)


def looked(data: bytes, name: str = "log.csv", columns=None, arms=None):
    return preview(Upload(name, data=data), ReadAs(columns, arms), LIMITS)


def test_a_log_is_understood():
    seen = looked(b"subject,trial,choice,age\n" + b"".join(b"x,%d,%d,30\n" % (row, row % 3) for row in range(1, 100)))
    assert seen.problem is None
    assert dict(seen.roles) == {"demonstration": "subject", "round": "trial", "arm": "choice"}
    assert seen.columns == ("subject", "trial", "choice", "age")
    assert seen.rows[0] == ("x", "1", "1", "30")
    assert seen.rows_more
    assert seen.summary == "99 rounds, 3 arms"
    assert seen.arms[0][1] == 33


@pytest.mark.parametrize(("rewards", "binary"), [("01", True), ("0.0 1.0", True), ("02", False)])
def test_rewards_of_0_and_1_are_seen(rewards, binary):
    cells = rewards.split() if " " in rewards else list(rewards)
    seen = looked(b"choice,reward\n" + b"".join(f"{'AB'[at % 2]},{cells[at % 2]}\n".encode() for at in range(8)))
    assert seen.problem is None
    assert seen.binary is binary
    assert not looked(b"choice\nA\nB\nA\n").binary


def test_what_was_looked_at_can_be_read_again_from_what_the_page_carries():
    data = b"arm\nA\nB\nA\n"
    seen = looked(data)
    log, sent = read(Upload("log.csv", carried=seen.carried), ReadAs(), LIMITS)
    assert sent == data
    assert log.pulls.tolist() == [[2, 1]]


def test_another_column_can_be_chosen():
    data = b"picked,place\nA,x\nB,y\n"
    assert "arm" in looked(data).problem
    assert looked(data).rows == (("A", "x"), ("B", "y"))
    assert looked(data, columns={"arm": "picked"}).summary == "2 rounds, 2 arms"


@pytest.mark.parametrize(("column", "noun"), [("Subject ID", "subjects"), ("id", "demonstrations")])
def test_several_runs_have_the_noun_of_their_column(column, noun):
    runs = "".join(f"{run},{turn},{arm}\n" for run in "xyz" for turn, arm in ((1, "A"), (2, "B")))
    assert looked(f"{column},round,arm\n{runs}".encode()).summary == f"6 rounds in 3 {noun}, 2 arms"
    offers = "".join(f"{run},{turn},{arm},{arm == 'A':d},0.5\n" for run in "xy" for turn in (1, 2) for arm in "AB")
    data = f"{column},round,arm,chosen,price\n{offers}".encode()
    seen = preview(Upload("log.csv", data=data), ReadAs(None, None, contexts=True, features=("price",)), LIMITS)
    assert seen.summary == f"4 rounds in 2 {noun}, 2 arms, 1 feature"


def test_people_are_not_silently_taken_for_one():
    seen = looked(b"person,turn no,choice\nx,1,A\nx,2,B\ny,1,A\ny,2,B\n")
    assert seen.summary == "4 rounds, 2 arms"
    assert any('"person", "turn no"' in notice and 'the field "Round"' in notice for notice in seen.notices)


def test_the_first_row_tells_the_separator_where_the_header_does_not():
    seen = looked(b"person;turn, no;choice, made\nx;1;A\nx;2;B\n")
    assert seen.columns == ("person", "turn, no", "choice, made")


def test_a_date_and_a_time_of_day_are_the_round_together():
    seen = looked(
        b"date,time,arm\n" + b"".join(b"2026-05-01,10:%02d,%s\n" % (at, b"AB"[at % 2 :][:1]) for at in range(9))
    )
    assert seen.problem is None
    assert dict(seen.roles) == {"round": "date+time", "arm": "arm"}
    assert seen.played == {"date": "round", "time": "round", "arm": "arm"}
    offers = b"date,time,arm,chosen,x\n2026-05-01,10:00,A,1,3\n2026-05-01,10:00,B,0,2\n2026-05-01,10:01,B,1,3\n"
    seen = looked(offers + b"2026-05-01,10:01,A,0,3\n")
    assert seen.contexts
    assert seen.played == {"date": "round", "time": "round", "arm": "arm", "chosen": "chosen"}


def test_roles_are_known_also_where_the_log_is_refused():
    seen = looked(b"trial,choice\n1,A\n2,B\n2,A\n")
    assert seen.problem
    assert dict(seen.roles) == {"arm": "choice", "round": "trial"}


def archive(size, stated=None):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("xl/worksheets/sheet1.xml", bytes(size))
        packed.infolist()[0].file_size = size if stated is None else stated
    return held.getvalue()


def arrow(write):
    held = io.BytesIO()
    write(pl.DataFrame({"arm": ["A", "B"] * 100}), held)
    return held.getvalue()


def test_json_lines_latin_1_and_times_are_understood_on_the_page():
    lines = b'{"timestamp": "2026-01-02", "arm": "A"}\n{"timestamp": "2026-01-01", "arm": "B"}\n'
    seen = looked(lines)
    assert seen.problem is None
    assert dict(seen.roles) == {"arm": "arm", "round": "timestamp"}
    assert any("newest first" in notice for notice in seen.notices)
    assert any("Latin-1" in notice for notice in looked("arm\nÄ\nB\n".encode("latin-1")).notices)
    assert "read the file with a line of column names added above it" in looked(b"A\nB\nA\n").problem


def test_a_problem_speaks_of_the_page_not_of_the_shell():
    assert "--" not in looked(b"picked\nA\nB\n").problem


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty file"),
        (b"arm\n", "header only"),
        (b"arm\n\x81\nB\n", "UTF-8"),
        ("arm\nA\n".encode("utf-16"), "text"),
        (b"PAR1 and no more", "Parquet"),
        (gzip.compress(b"arm\nA\nB\n", mtime=0)[:-3], "gzip"),
        (gzip.compress(bytes(50_000_000), mtime=0), "once it is unpacked"),
        (b"arm\n" + b"A\n" * 100_002, "at most 100,000 rows"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "binary"),
        (archive(50_000_000), "once it is unpacked"),
        (archive(50_000_000, stated=10), "once it is unpacked"),
        (archive(100)[:-30], "could not be unpacked"),
        (arrow(pl.DataFrame.write_ipc), "Save it as Parquet or CSV"),
        (arrow(pl.DataFrame.write_ipc_stream), "Save it as Parquet or CSV"),
        (b"a,b\n1,2,3\n", ""),
    ],
)
def test_a_file_that_is_no_log_is_refused_in_words(data, words):
    seen = looked(data)
    assert seen.problem
    assert words in seen.problem


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzip.compress(gzip.compress(b"arm\n" + b"A\nB\n" * 1_000_000)), "compressed with gzip twice"),
        (b"arm\r" + b"A\rB\r" * 60_000, "at most 100,000 rows"),
    ],
    ids=["gzip in gzip", "old line ends"],
)
def test_limits_cannot_be_walked_around(data, words):
    assert words in looked(data).problem


@pytest.mark.parametrize(
    ("kind", "number"),
    [(pl.Date, 17_000_000), (pl.Date, -(2**31)), (pl.Datetime("us"), 2**62), (pl.Datetime("ms"), -(2**62))],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("column", ["arm", "note"])
def test_times_that_python_does_not_have_are_shown_as_numbers(kind, number, column, capfd):
    held, physical = io.BytesIO(), pl.Int32 if kind == pl.Date else pl.Int64
    times = pl.Series("times", [number, 1, number], dtype=physical).cast(kind)
    pl.DataFrame({"arm": ["A", "B", "A"]}).with_columns(times.alias(column)).write_parquet(held)
    seen = looked(held.getvalue(), "log.parquet")
    assert bool(seen.problem) is (column == "arm")
    assert str(number) in str(seen.rows)
    assert capfd.readouterr().err == ""


def test_a_gzip_file_of_very_many_members_takes_time_in_proportion_to_them():
    def seconds(members):
        data = gzip.compress(b"arm\nB\n") + gzip.compress(b"A\n") * members
        before = time.process_time()
        unpacked = _gunzip(data, 10**9, "log.csv")
        assert len(unpacked) == 6 + 2 * members
        return time.process_time() - before

    seconds(100)
    assert seconds(60_000) < 6 * seconds(20_000)  # three times as many, whose square is nine times as many


def test_a_parquet_file_of_very_many_equal_rows_is_not_laid_out():
    held = io.BytesIO()
    pl.DataFrame({"arm": ["A"]}).select(pl.col("arm").repeat_by(200_000).list.explode()).write_parquet(held)
    assert len(held.getvalue()) < 10_000
    assert "it has 200,000" in looked(held.getvalue(), "log.parquet").problem


def test_a_hundred_thousand_columns_are_cut():
    names = ",".join(f"column{number}" for number in range(100_000))
    seen = looked(f"arm,{names}\nA{',1' * 100_000}\nB{',1' * 100_000}\n".encode())
    assert len(seen.columns) == MOST_COLUMNS
    assert seen.columns_left_out == 100_001 - MOST_COLUMNS
    assert len(seen.rows[0]) <= 20
    assert seen.summary == "2 rounds, 2 arms"


def test_an_endless_name_is_cut():
    seen = looked(b"arm\n" + b"x" * 100_000 + b"\nB\n")
    assert len(seen.rows[0][0]) <= 40
    assert all(len(name) <= 40 for name, _ in seen.arms)


def test_an_endless_name_is_cut_in_a_refusal_too():
    seen = looked(b"arm\n" + b"x" * 100_000 + b"\n")
    assert seen.problem
    assert len(seen.problem) < 1_100


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda each: each.name)
def test_every_example_is_understood_and_has_its_truth(example):
    seen = preview(Upload(example.title, example=example.name), ReadAs(), LIMITS)
    assert seen.problem is None
    assert seen.rows
    assert set(example.log().arms) == set(example.truth())
    log, anew = example.log(), example.simulate()
    assert (log == anew) if log.ordered else (log.pulls == anew.pulls).all()
    assert example.form["rule"]
