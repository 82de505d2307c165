"""A log in files, scanned: the same as the same rows read into memory, whatever the files and the pieces."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit import ActionLog, LogError
from unbandit.log.formats import sources_of
from unbandit.log.rounds import collect
from unbandit.log.scan import ScannedLog

NAMES = {
    "numbers": ["10", "9", "2", "33"],
    "texts": ["b", "a", "none", "a longer label than twelve bytes"],
    "mixed": ["1", "x", "02", "2"],
}


def assert_same(scanned, log):
    """Hold a scanned log against one in memory, arm for arm and round for round."""
    assert scanned.arms == log.arms
    assert scanned.demonstrations == log.demonstrations
    assert scanned.lengths.tolist() == log.lengths.tolist()
    for need in ("counts", "switching", "epochs"):
        ours, theirs = scanned.tallied(need), log.tallied(need)
        for name in ("pulls", "first", "last", "own", "of_best", "rounds", "passed", "broken", "broken_arm"):
            expected = getattr(theirs, name)
            if expected is not None:
                assert getattr(ours, name).tolist() == expected.tolist(), (need, name)


@st.composite
def logs(draw):
    """Rows of some demonstrations, mixed or not, cut into files."""
    demonstrations = draw(st.integers(1, 4))
    kind = draw(st.sampled_from(sorted(NAMES)))
    names = NAMES[kind][: draw(st.integers(2, 4))]
    row = st.tuples(st.integers(0, demonstrations - 1), st.sampled_from(names))
    rows = draw(st.lists(row, min_size=2, max_size=40))
    if draw(st.booleans()):
        rows.sort(key=lambda row: row[0])
    count, table = [0] * demonstrations, []
    for d, arm in rows:
        count[d] += 1
        table.append((f"d{d}" if kind == "mixed" else 7 - d, count[d], arm))
    frame = pl.DataFrame(table, schema=["demonstration", "round", "arm"], orient="row")
    if kind == "numbers" and draw(st.booleans()):
        frame = frame.with_columns(pl.col("arm").cast(pl.Int32))
    keep = ["arm"] + [name for name in ("demonstration", "round") if draw(st.booleans())]
    if "round" in keep and "demonstration" not in keep:
        keep.remove("round")
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    parts = [frame[a:b] for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    return frame.select(keep), [part.select(keep) for part in parts if part.height], draw(st.integers(1, 7))


def written(parts, folder, ending):
    for number, part in enumerate(parts):
        path = folder / f"part-{number}.{ending}"
        if ending == "parquet":
            part.write_parquet(path, row_group_size=5)
        else:
            data = part.write_csv(separator="\t" if "tsv" in ending else ",").encode()
            path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)


@pytest.mark.parametrize("ending", ["parquet", "csv", "tsv.gz"])
@given(made=logs())
def test_any_partition_gives_the_tallies_of_the_log_in_memory(ending, made):
    whole, parts, rows = made
    if len(set(whole["arm"].cast(pl.String))) < 2:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written(parts, folder, ending)
        expected = ActionLog.from_frame(whole)
        assert_same(ScannedLog(sources_of(folder), rows=rows), expected)
        assert ActionLog.read(folder) == expected
        assert ActionLog(*collect(sources_of(folder), None, None, rows)) == expected
        assert_same(ScannedLog(sources_of(folder), None, [*expected.arms[::-1], "other"], rows=rows),
                    ActionLog.from_frame(whole, arms=[*expected.arms[::-1], "other"]))  # fmt: skip


def test_long_runs_and_many_demonstrations(tmp_path):
    """Runs long enough for the loops that count side by side; a demonstration over several pieces; wide integers."""
    rng = np.random.default_rng(3)
    lengths = [3000, 1, 5000, 40, 700, 64, 65]
    who = np.repeat(np.array([5, -2, 10**12, 7, 8, 9, 4]), lengths)
    arms = rng.integers(0, 5, who.size).astype(np.uint16) * 30_000
    arms[3000:8500] = 60_000
    frame = pl.DataFrame({"run": who, "choice": arms})
    frame.write_parquet(tmp_path / "log.parquet", row_group_size=1000)
    expected = ActionLog.from_frame(frame)
    for rows in (3, 64, 999, 10_000):
        assert_same(ScannedLog(sources_of(tmp_path), rows=rows), expected)
    mixed = frame.with_columns(order=pl.Series(rng.permutation(who.size))).sort("order").drop("order")
    mixed.write_parquet(tmp_path / "log.parquet", row_group_size=1000)
    assert_same(ScannedLog(sources_of(tmp_path), rows=1000), ActionLog.from_frame(mixed))


def test_more_arms_than_pairs_can_be_kept_of(tmp_path):
    arms = np.random.default_rng(1).integers(0, 9, 400)
    arms[:50] %= 3  # more arms turn up while a demonstration is being read
    pl.DataFrame({"arm": arms}).write_parquet(tmp_path / "log.parquet")
    assert_same(ScannedLog(sources_of(tmp_path), rows=40, most_pairs=3), ActionLog.from_actions(arms))


def test_folders_may_name_the_demonstration(tmp_path):
    for number in (10, 2):
        folder = tmp_path / f"demonstration={number}%20a"
        folder.mkdir()
        pl.DataFrame({"arm": ["x", "y", "x"][: number + 1]}).write_parquet(folder / "part-0.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden.parquet").write_text("no table")
    for paths in (tmp_path, f"{tmp_path}/*/*.parquet", sorted(tmp_path.glob("*/*.parquet"))):
        log = ActionLog.scan(paths)
        assert log.demonstrations == ("2 a", "10 a")
        assert log.lengths.tolist() == [3, 3]
    assert ActionLog.read(tmp_path).demonstrations == ("2 a", "10 a")


def test_rewards_are_not_read(tmp_path):
    (tmp_path / "log.csv").write_text("arm,reward,gain\nA,1,2\nB,,3\n")
    said = " ".join(ActionLog.scan(tmp_path / "log.csv").notices)
    assert 'column "reward" is not read' in said
    assert 'Column "gain" is ignored' in said
    assert ActionLog.scan(tmp_path / "log.csv").rewards is None


def test_text_may_have_quotes_blank_ends_and_old_line_breaks(tmp_path):
    path = tmp_path / "log.csv"
    for text in (
        '\ufeff\n"round","arm"\n1,"A, large"\n2,"B\nwith a break"\n3,"A, large"\n\n\n',
        "round,arm\r\n1,x\r\n2,y\r\n3,x",
        "round,arm\r1,x\r2,y\r3,x\r",
    ):
        path.write_bytes(text.encode())
        for rows in (1, 2, 3, 1000):
            assert_same(ScannedLog(sources_of(path), rows=rows), ActionLog.read(path))


FAULTS = {
    "empty folder": ({}, "", ["expected files that end in .parquet", "the folder has none"]),
    "no match": ({"a.csv": b"arm\nA\nB\n"}, "*.tsv", ["none does", "quotes"]),
    "no file": ({}, "log.csv", ["file not found"]),
    "blank arm": ({"a.csv": b"arm,x\nA,1\nB,1\n", "b.csv": b"arm,x\nA,1\nB,1\n,1\n"}, "",
                  ["b.csv row 3 (line 4)", 'column "arm"', "a blank cell", "read the log whole"]),
    "hole": ({"a.csv": b"arm\nA\nB\n", "b.csv": b"arm\nB\nNA\n"}, "", ["b.csv row 2 (line 3)", '"NA"']),
    "word": ({"a.csv": b"arm\n1\nnone\n", "b.csv": b"arm\n2\n3\n"}, "", ["a.csv row 2 (line 3)", '"none"']),
    "uneven": ({"a.csv": b"arm,x\nA,1\nB,1\nA,1\nB\n"}, "", ["a.csv row 4 (line 5)", "expected 2 cells"]),
    "not text": ({"a.csv": b"arm\nA\n", "b.csv": b"arm\nA\n\x81\n"}, "", ["b.csv row 2 (line 3)", "0x81"]),
    "header only": ({"a.csv": b"arm\n"}, "", ["without rows"]),
    "one arm": ({"a.csv": b"arm\nA\n", "b.csv": b"arm\nA\n"}, "", ['got only "A"', "arms=['A', 'OTHER']"]),
    "missing column": ({"a.csv": b"arm,round\nA,1\n", "b.csv": b"arm,when\nB,2\n"}, "",
                       ["b.csv", 'column "round"', "a.csv"]),
    "other type": ({"a.parquet": {"arm": [1, 2]}, "b.parquet": {"arm": ["1", "2"]}}, "",
                   ["b.parquet", 'column "arm"', "expected integers", "got text"]),
    "truncated": ({"a.parquet": {"arm": [1, 2]}, "b.parquet": b"PAR1 and no more"}, "",
                  ["b.parquet", "whole Parquet file"]),
    "null": ({"a.parquet": {"arm": [1, 2]}, "b.parquet": {"arm": [1, None]}}, "", ["b.parquet row 2", "a blank cell"]),
    "lists": ({"a.parquet": {"arm": [[1], [2]]}}, "", ["a.parquet", "List"]),
    "counts": ({"a.csv": b"arm,pulls\nA,1\nB,2\n"}, "", ["table of counts", "Read it whole"]),
    "late": ({"a.csv": b"arm,round\nA,3\nB,4\n"}, "", ["a.csv row 1 (line 2)", "begin at 3"]),
    "order": ({"a.csv": b"arm,round\nA,1\nB,2\n", "b.csv": b"arm,round\nA,3\nB,2\n"}, "",
              ["b.csv row 2 (line 3)", "expected round 4 after round 3; got 2", "sort it", "read it whole"]),
    "broken gzip": ({"a.csv.gz": gzip.compress(b"arm\nA\nB\n")[:-4]}, "", ["a.csv.gz", "whole gzip file"]),
    "packed Parquet": ({"a.csv.gz": gzip.compress(b"PAR1")}, "", ["a.csv.gz", "Unpack it"]),
}  # fmt: skip


@pytest.mark.parametrize(("files", "path", "said"), FAULTS.values(), ids=FAULTS)
def test_faults_name_file_place_and_remedy(tmp_path, files, path, said):
    for name, content in files.items():
        if isinstance(content, dict):
            pl.DataFrame(content).write_parquet(tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content)
    with pytest.raises(LogError) as refused:
        ActionLog.scan(f"{tmp_path}/{path}").tallied("switching")
    for part in said:
        assert part in str(refused.value), str(refused.value)


def test_an_arm_that_was_not_listed_is_refused_where_it_stands(tmp_path):
    (tmp_path / "a.csv").write_text("arm\n1\n2.0\n")
    (tmp_path / "b.csv").write_text("arm\n1\n3\n")
    assert ActionLog.scan(tmp_path / "a.csv", arms=[2, 1]).pulls.tolist() == [[1, 1]]
    with pytest.raises(LogError, match=r'b\.csv row 2 \(line 3\), column "arm": expected an arm among 2, 1; got "3"'):
        ActionLog.scan(tmp_path, arms=[2, 1]).tallied("counts")
    with pytest.raises(LogError, match=r'b\.csv row 2 \(line 3\), column "arm": expected an arm among 2, 1; got "3"'):
        ActionLog.read(tmp_path, arms=[2, 1])


def test_more_arms_can_be_listed_than_numbers_are_there(tmp_path):
    pl.DataFrame({"arm": [0, 1, 0]}).write_parquet(tmp_path / "log.parquet")
    scanned = ActionLog.scan(tmp_path / "log.parquet", arms=[str(arm) for arm in range(10)])
    assert scanned.pulls.tolist() == [[2, 1, *[0] * 8]]


def test_a_file_cut_off_in_the_middle_is_refused(tmp_path):
    path = tmp_path / "log.parquet"
    pl.DataFrame({"arm": np.random.default_rng(1).integers(0, 200, 100_000)}).write_parquet(path, row_group_size=10_000)
    data = path.read_bytes()
    path.write_bytes(data[:1000] + bytes(40_000) + data[41_000:])  # the end, which says where things are, is whole
    with pytest.raises(LogError, match=r"log\.parquet: expected a whole Parquet file"):
        ActionLog.scan(path).tallied("counts")


def test_a_file_that_changes_between_passes_is_refused(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("subject,arm\n" + "1,A\n2,B\n" * 10)
    log = ActionLog.scan(path)
    assert log.pulls.tolist() == [[10, 0], [0, 10]]
    path.write_text("subject,arm\n" + "1,A\n2,B\n3,C\n" * 10)
    with pytest.raises(LogError, match="changed while it was being read"):
        log.tallied("epochs")


@pytest.mark.parametrize(
    ("rounds", "named"), [([1, 2, 4], ["columns", "kept"]), ([5, 6, 7], ["columns", "starting_pulls"]), ([1, 2, 1], [])]
)
def test_what_helps_where_rows_are_missing_is_named(rounds, named, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("round,arm\n" + "".join(f"{each},A\n" for each in rounds))
    with pytest.raises(LogError, match="must be in order") as refused:
        ScannedLog(sources_of(path), rows=10).tallied("counts")
    assert [word for word in ("columns", "kept", "starting_pulls") if word in str(refused.value)] == named


# Times beside a column of rounds, as a log in memory compares them

TIMES = [f"2026-05-01T10:{minute:02}:00Z" for minute in range(20)]


def dated(path, name, times, column="timestamp"):
    rows = zip(range(1, len(times) + 1), times, "ABBAABABBBABABBAAABB", strict=False)
    path.write_text(f"{name},{column},arm\n" + "".join(f"{at},{time},{arm}\n" for at, time, arm in rows))
    return path


@pytest.mark.parametrize("name", ["index", "step"])
def test_a_log_numbered_newest_first_is_refused_and_the_times_named(tmp_path, name):
    path = dated(tmp_path / "log.csv", name, TIMES[::-1])
    with pytest.raises(LogError, match=f'by "timestamp", "{name}" numbers the latest first') as refused:
        ActionLog.scan(path)
    assert refused.value.column == name
    for role in ("timestamp", name):
        assert f'{{"round": "{role}"}}' in refused.value.remedy
    assert "read it whole" in refused.value.remedy
    assert ActionLog.scan(path, columns={"round": name}).lengths.tolist() == [20]


@pytest.mark.parametrize("name", ["index", "round"])
@pytest.mark.parametrize("times", [TIMES, TIMES[::-1], TIMES[10:] + TIMES[:10]])
@pytest.mark.parametrize("columns", [None, "named"])
def test_a_scan_says_of_times_what_a_log_in_memory_says(tmp_path, name, times, columns):
    path = dated(tmp_path / "log.csv", name, times)
    roles = columns and {"round": name}
    if name == "index" and times == TIMES[::-1] and not columns:
        return  # refused, see above
    read, scanned = ActionLog.read(path, columns=roles), ActionLog.scan(path, columns=roles)
    assert read.pulls.tolist() == scanned.pulls.tolist()
    assert read.reading == scanned.reading
    assert any('"timestamp"' in text for text in scanned.notices)


def test_a_scan_names_times_that_nothing_reads(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("seen,arm\n" + "".join(f"{time},{arm}\n" for time, arm in zip(TIMES[::-1], "AB" * 10, strict=True)))
    (text,) = (each for each in ActionLog.scan(path).notices if "looks like times" in each)
    assert "newest first" in text
    assert text in ActionLog.read(path).notices
