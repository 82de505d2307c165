"""`unbandit estimate` on good input: every format, every way to ask, every form of answer."""

from __future__ import annotations

import dataclasses
import gzip
import io
import json
import subprocess

import polars as pl
import pytest
import shell
from rich.console import Console

from unbandit import ActionLog
from unbandit import estimate as estimate_function
from unbandit.cli.output import NARROW_WIDTH, estimate_table

script, unbandit = shell.script, shell.unbandit
TOP, ROW = shell.TOP, shell.ROW

RULE = "ucb:alpha=0.25,scale=1"
# A best, B estimated with C(4) - C(9) = 1 at T = 10,000, C bounded
ACTIONS = list("ABC" + "A" * 8 + "BBB" + "A")
ASKED = ["--rule", RULE, "--sigma", "1", "--horizon", "10000"]


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    ActionLog.from_actions(ACTIONS).write(path)
    return path


def as_json(done):
    assert done.code == 0, done.err

    def refuse(name):
        raise AssertionError(name)

    return json.loads(done.out, parse_constant=refuse)


def test_a_table_for_people(unbandit, log):
    done = unbandit("estimate", log, *ASKED, "--best-mean", "3")
    assert done.code == 0
    head, _, names, _, *rows = done.out.splitlines()
    assert head == "ucb:alpha=0.25,scale=1.0, method bracket, 95% intervals"
    assert names.split() == ["rank", "arm", "verdict", "pulls", "gap", "95%", "interval", "mean", "95%", "interval"]
    assert [row.split()[:4] for row in rows if row.strip()] == [
        ["1", "A", "best", "10"],
        ["2", "B", "estimated", "4"],
        ["3", "C", "bounded", "1"],
    ]
    assert "1.224  " in done.out
    assert "at least " in done.out
    assert "at most " in done.out


def test_json_is_the_contract(unbandit, log):
    read = as_json(unbandit("estimate", log, *ASKED, "--best-mean", "3", "--json"))
    assert list(read) == [*TOP, "arms"]
    assert [list(row) for row in read["arms"]] == [ROW] * 3
    assert [row["arm"] for row in read["arms"]] == ["A", "B", "C"]
    kinds = {"arm": str, "pulls": int, "verdict": str}
    for row in read["arms"]:
        assert all(row[key] is None or isinstance(row[key], kinds.get(key, float)) for key in ROW)
    best, estimated, bounded = read["arms"]
    assert (best["gap"], best["gap_low"], best["gap_high"], best["mean"]) == (0.0, None, None, 3.0)
    assert estimated["gap_low"] < estimated["gap"] < estimated["gap_high"]
    assert estimated["mean"] == pytest.approx(3.0 - estimated["gap"])
    assert (bounded["gap"], bounded["gap_high"], bounded["mean"], bounded["mean_low"]) == (None,) * 4
    expected = {"rule": "ucb:alpha=0.25,scale=1.0", "method": "bracket", "horizon": 10_000, "demonstrations": 1}
    expected |= {"level": 0.95, "sigma": 1.0, "seed": None, "best": ["A"], "warnings": []}
    assert {key: read[key] for key in expected} == expected


def test_the_shell_and_python_give_the_same_answer(unbandit, log):
    read = as_json(unbandit("estimate", log, *ASKED, "--anchor", "B=2", "--level", "0.9", "--json"))
    answer = estimate_function(ActionLog.read(log), RULE, sigma=1.0, horizon=10_000, anchor={"B": 2.0}, level=0.9)
    assert read == answer.to_dict()


def test_every_format_gives_the_same_answer(unbandit, log, tmp_path):
    expected = unbandit("estimate", log, *ASKED, "--json").out
    record = ActionLog.read(log)
    for name in ("log.tsv", "log.parquet", "log.csv.gz", "log.tsv.gz"):
        record.write(tmp_path / name)
        assert unbandit("estimate", tmp_path / name, *ASKED, "--json").out == expected
    for data in (log.read_bytes(), gzip.compress(log.read_bytes()), (tmp_path / "log.parquet").read_bytes()):
        assert unbandit("estimate", "-", *ASKED, "--json", stdin=data).out == expected


def test_counts_alone(unbandit, tmp_path):
    (tmp_path / "counts.csv").write_text("arm,pulls\nA,36\nB,9\nC,1\n")
    done = unbandit("estimate", "counts.csv", *ASKED, "--json")
    read = as_json(done)
    assert read["method"] == "counts"
    assert [row["gap"] for row in read["arms"]] == pytest.approx([0.0, 1.0, None])
    assert read["notes"][0]["code"] == "counts-only"
    assert "note: The log has pull counts" in unbandit("estimate", "counts.csv", *ASKED).err


def test_even_counts_end_with_code_4(unbandit):
    data = b"arm,pulls\n" + b"".join(b"a%d,%d\n" % (arm, 20 + arm % 2) for arm in range(30))
    done = unbandit("estimate", "-", "--rule", "lilucb:reward_range=2", "--sigma", "0.5", stdin=data)
    assert (done.code, done.out) == (4, "")
    assert "pulled 20 to 21 times each" in done.err
    assert "Bring a log with one row per round" in done.err


def test_known_means_that_disagree_give_both_answers(unbandit, tmp_path):
    # C(n) = 6 / sqrt(n): at level 5 the means are A 4.9, B 4.8, C 4.7; A is given 0.5 more.
    (tmp_path / "counts.csv").write_text("arm,pulls\nA,3600\nB,900\nC,400\nD,225\n")
    known = [word for mean in ("A=5.4", "B=4.8", "C=4.7") for word in ("--anchor", mean)]
    asked = ["estimate", "counts.csv", "--rule", RULE, "--sigma", "0.1", "--horizon", "10000", *known]
    read = as_json(unbandit(*asked, "--json"))
    ((label, other),) = read["alternatives"].items()
    assert label == 'from the mean of "A" instead'
    assert [row["mean"] for row in (read["arms"][3], other["arms"][3])] == pytest.approx([4.6, 5.1], abs=0.01)
    assert {"anchors-disagree", "above-level"} <= {notice["code"] for notice in read["warnings"]}
    done = unbandit(*asked)
    assert done.out.count("rank") == 2
    assert label in done.out
    assert "warning: Pulled less often than the known mean calls for" in done.err
    page = unbandit("report", *asked[1:], "-o", "report.html")
    assert page.code == 0, page.err
    text = (tmp_path / "report.html").read_text()
    assert "from the mean of &#34;A&#34; instead" in text
    assert "Arms that were held back" in text
    again = unbandit(*asked[:-1], "B=4")
    assert (again.code, "expected each arm once" in again.err) == (2, True)


def test_rows_with_one_name(unbandit):
    data = b"arm,pulls\nA,36\nB,9\nA,4\n"
    refused = unbandit("estimate", "-", *ASKED, stdin=data)
    assert refused.code == 3
    assert "--duplicates separate" in refused.err
    separate = as_json(unbandit("estimate", "-", *ASKED, "--duplicates", "separate", "--json", stdin=data))
    assert [(row["arm"], row["pulls"]) for row in separate["arms"]] == [("A", 36), ("A (2)", 4), ("B", 9)]
    added = as_json(unbandit("estimate", "-", *ASKED, "--duplicates", "add", "--json", stdin=data))
    assert [(row["arm"], row["pulls"]) for row in added["arms"]] == [("A", 40), ("B", 9)]
    assert "added up" in added["notes"][0]["message"]
    rounds = unbandit("estimate", "-", *ASKED, "--duplicates", "add", stdin=b"arm\nA\nB\nA\n")
    assert (rounds.code, "expected only with a table of counts" in rounds.err) == (2, True)
    follow = unbandit("estimate", "log.csv", *ASKED, "--duplicates", "add", "--follow")
    assert (follow.code, "expected only with a table of counts" in follow.err) == (2, True)


def test_impossible_values_are_warned_of(unbandit):
    data = b"arm,pulls\nA,3600\nB,9\n"  # gap C(9) - C(3600) = 1.9
    read = as_json(unbandit("estimate", "-", "--rule", RULE, "--bernoulli", "--horizon", "10000", "--json", stdin=data))
    (notice,) = [notice for notice in read["warnings"] if notice["code"] == "impossible-value"]
    assert notice["arm"] == "B"
    assert 'The gap of arm "B" is 1.9' in notice["message"]


def test_unusual_columns_are_named(unbandit, tmp_path):
    rows = "".join(f"{week},{name},{name}\n" for week, name in enumerate(ACTIONS, 1))
    (tmp_path / "odd.csv").write_text("week,picked,choice\n" + rows)
    read = as_json(unbandit("estimate", "odd.csv", *ASKED, "--columns", "arm=picked,round=week", "--json"))
    assert read["best"] == ["A"]


def test_a_note_says_which_columns_were_taken_for_what(unbandit):
    rows = "".join(f"{week},{name}\n" for week, name in enumerate(ACTIONS, 1)).encode()
    done = unbandit("estimate", "-", *ASKED, stdin=b"trial,choice\n" + rows)
    assert done.code == 0
    assert 'note: Columns were recognised by name: "choice" as arm, "trial" as round. To change this' in done.err
    assert "--columns round=NAME (or --columns round= if there is none)." in done.err
    named = unbandit("estimate", "-", *ASKED, "--columns", "arm=choice,round=trial", stdin=b"trial,choice\n" + rows)
    assert "recognised by name" not in named.err


def test_no_label_reaches_the_console_as_a_command(unbandit):
    rows = "".join(f"d\x1b[1m,{name}\x1b[31m\x07\n" for name in ACTIONS).encode()
    done = unbandit("estimate", "-", *ASKED, stdin=b"demonstration,arm\n" + rows + b"e,A\x1b[31m\x07\ne,Z\n")
    assert done.code == 0
    assert "A\\x1b[31m\\x07" in done.out
    assert "demonstration d\\x1b[1m" in done.out
    assert not {"\x1b", "\x07"} & set(done.out + done.err)
    refused = unbandit("estimate", "-", *ASKED, stdin=b"round,arm\n1,A\n\x1b[31m" + b"x" * 100_000 + b",B\n")
    assert refused.code == 3
    assert "\x1b" not in refused.err
    assert len(refused.err) < 1_000


def test_demonstrations_by_two_columns(unbandit):
    rows = "".join(f"{who},{block},{name}\n" for who in "xy" for block in "12" for name in ACTIONS).encode()
    asked = ["estimate", "-", *ASKED, "--json", "--columns"]
    read = as_json(unbandit(*asked, "demonstration=who+block", stdin=b"who,block,arm\n" + rows))
    assert [row["demonstration"] for row in read["arms"]][::3] == ["x+1", "x+2", "y+1", "y+2"]
    refused = unbandit(*asked, "demonstration=who,demonstration=block", stdin=b"who,block,arm\n" + rows)
    assert refused.code == 2
    assert 'each role once; got "demonstration" twice' in refused.err
    assert "demonstration=subject+block" in refused.err


def test_arms_set_the_order_and_name_those_never_pulled(unbandit, log):
    read = as_json(unbandit("estimate", log, *ASKED, "--arms", 'C, "D, large",B,A', "--json"))
    assert [(row["arm"], row["verdict"]) for row in read["arms"]] == [
        ("C", "bounded"),
        ("D, large", "unseen"),
        ("B", "estimated"),
        ("A", "best"),
    ]
    assert [notice["code"] for notice in read["warnings"]] == ["opening"]
    assert set(read["warnings"][0]) == {"code", "message", "round", "arm", "demonstration"}


def test_arms_are_in_numeric_order_else_as_they_appear(unbandit):
    numbers = b"arm\n" + b"".join(b"%d\n" % arm for arm in (10, 9, 1, 10, 10))
    assert [row["arm"] for row in as_json(unbandit("estimate", "-", *ASKED, "--json", stdin=numbers))["arms"]] == [
        "1",
        "9",
        "10",
    ]
    names = b"arm\nz\n10\na\nz\nz\n"
    assert [row["arm"] for row in as_json(unbandit("estimate", "-", *ASKED, "--json", stdin=names))["arms"]] == [
        "z",
        "10",
        "a",
    ]


def test_an_anchor_may_have_an_equals_sign_in_its_name(unbandit):
    data = b"arm,pulls\nx=1,36\nx=2,4\n"
    read = as_json(unbandit("estimate", "-", *ASKED, "--anchor", "x=2=1.5", "--json", stdin=data))
    assert [row["mean"] for row in read["arms"]] == pytest.approx([3.5, 1.5])


def test_ratios(unbandit):
    data = b"arm,pulls\nA,36\nB,4\nC,9\n"
    asked = ["estimate", "-", "--rule", "ucb", "--scale", "unknown", "--reference", "B"]
    read = as_json(unbandit(*asked, "--json", stdin=data))
    assert [row["ratio"] for row in read["arms"]] == pytest.approx([0.0, 1.0, 0.5])
    assert [row["gap"] for row in read["arms"]] == [0.0, None, None]
    text = unbandit(*asked, stdin=data).out
    assert "ratio" in text
    assert "gap" not in text


def test_other_options(unbandit, log):
    read = as_json(unbandit("estimate", log, "--rule", "ucb", "--bernoulli", "--seed", "5", "--json"))
    assert (read["sigma"], read["seed"], read["warnings"]) == (None, 5, [])
    read = as_json(unbandit("estimate", log, *ASKED, "--method", "naive", "--constant", "0.75", "--json"))
    assert read["method"] == "naive"
    assert as_json(unbandit("estimate", log, *ASKED, "--method", "counts", "--json"))["method"] == "counts"


def test_sigma_assumed_is_said_on_the_error_stream(unbandit, log):
    done = unbandit("estimate", log, "--rule", RULE)
    assert "warning: The rewards' standard deviation was not given" in done.err
    assert "warning" not in done.out
    read = as_json(unbandit("estimate", log, "--rule", RULE, "--json"))
    assert [notice["code"] for notice in read["warnings"]] == ["sigma-assumed"]


def test_several_demonstrations(unbandit, tmp_path):
    ActionLog.from_actions([list("ABABAA"), list("BABBBBBB")]).write(tmp_path / "two.csv")
    read = as_json(unbandit("estimate", "two.csv", "--rule", RULE, "--sigma", "1", "--json"))
    assert (read["demonstrations"], read["horizon"], len(read["arms"])) == (2, [6, 8], 4)
    assert {row["demonstration"] for row in read["arms"]} == {"1", "2"}
    text = unbandit("estimate", "two.csv", "--rule", RULE, "--sigma", "1").out
    assert text.count("\ndemonstration ") == 2


def test_unresolved_elimination(unbandit):
    done = unbandit("estimate", "-", "--rule", "sae", "--sigma", "1", "--json", stdin=b"arm\nA\nB\nA\nB\n")
    read = as_json(done)
    assert read["best"] == ["A", "B"]
    assert [notice["code"] for notice in read["warnings"]] == ["unresolved"]


def test_sensitivity(unbandit, log):
    paper = "--method", "switching"
    read = as_json(unbandit("estimate", log, *ASKED, *paper, "--sensitivity", "--json"))
    assert list(read) == [*TOP, "arms", "sensitivity"]
    changed = read["sensitivity"]
    assert list(changed) == ["alpha=0.2", "alpha=0.3", "scale=0.8", "scale=1.2"]
    assert all(list(answer) == [*TOP, "arms"] for answer in changed.values())
    assert [changed[f"scale={scale}"]["arms"][1]["gap"] for scale in (0.8, 1.2)] == pytest.approx([0.8, 1.2])
    text = unbandit("estimate", log, *ASKED, *paper, "--sensitivity").out
    (heading,) = (line for line in text.splitlines() if "as assumed" in line)
    assert heading.split()[3:] == list(changed)
    assert text.count("estimated") == 1  # one table of arms and variants


@pytest.mark.parametrize("name", ["answer.csv", "answer.tsv", "answer.parquet", "answer.json", "ANSWER.CSV"])
def test_the_answer_can_be_written(unbandit, log, tmp_path, name):
    done = unbandit("estimate", log, *ASKED, "-o", name)
    assert (done.code, done.out) == (0, "")
    path = tmp_path / name
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "log.csv"])
    expected = as_json(unbandit("estimate", log, *ASKED, "--json"))
    if name.endswith(".json"):
        assert json.loads(path.read_text()) == expected
        return
    if name.endswith(".parquet"):
        frame = pl.read_parquet(path)
    else:
        frame = pl.read_csv(path, separator="\t" if "tsv" in name else ",")
    assert frame.columns == ROW
    assert frame["gap"].to_list() == pytest.approx([row["gap"] for row in expected["arms"]])
    assert frame["verdict"].to_list() == ["best", "estimated", "bounded"]


def test_a_written_json_holds_the_sensitivity_and_the_seed_too(unbandit, log, tmp_path):
    done = unbandit("estimate", log, *ASKED, "--sensitivity", "--seed", "3", "--json", "-o", "answer.json")
    assert json.loads((tmp_path / "answer.json").read_text()) == as_json(done)


NAMES = ["[bold]x[/bold]", "<b>", ":smile:", "a\\", "[/]", "[link=http://x]y", "{x}", "é ✓", "%s"]


def test_names_are_printed_as_they_are(unbandit, tmp_path):
    counts = pl.DataFrame({"arm": NAMES, "pulls": [400 - 20 * at for at in range(len(NAMES))]})
    counts.write_csv(tmp_path / "odd.csv")
    done = unbandit("estimate", "odd.csv", *ASKED)
    shown = [line.strip() for line in done.out.splitlines()[4:] if line.strip()]
    assert all(f" {name} " in line for name, line in zip(NAMES, shown, strict=True))
    tied = unbandit("estimate", "-", *ASKED, stdin=b"arm\n[bold]x[/bold]\n<b>\n[bold]x[/bold]\n<b>\n")
    assert '"[bold]x[/bold]", "<b>" have 2 pulls each' in tied.err


def test_a_long_name_is_not_cut_when_piped(unbandit):
    name = b"x" * 120
    assert name.decode() in unbandit("estimate", "-", *ASKED, stdin=b"arm\n" + name + b"\nB\n" + name + b"\n").out


@pytest.mark.processes
def test_the_real_script_reads_standard_input(script):
    data = ("arm\n" + "\n".join(ACTIONS) + "\n").encode()
    done = script("estimate", "-", *ASKED, "--json", stdin=data)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["best"] == ["A"]


@pytest.mark.processes
def test_a_reader_that_goes_away_is_no_accident(script, tmp_path):
    (tmp_path / "log.csv").write_text("arm\n" + "\n".join(map(str, [*range(700), 0])) + "\n")
    for command in (
        f"{script.path} estimate log.csv --rule ucb --sigma 1 | head -1",
        f"{script.path} simulate two-armed --rule ucb --horizon 300000 | head -1",
    ):
        done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=600)
        assert len(done.stdout.splitlines()) == 1
        assert "Traceback" not in done.stderr
        assert "BrokenPipe" not in done.stderr


@pytest.mark.parametrize("columns", [80, 100, 120])
def test_no_arm_is_lost_in_a_narrow_window(columns):
    answer = estimate_function(list("AB" + "AAAB" * 20 + "A" * 118), "ucb", sigma=1.0, best_mean=1.0)
    answer = dataclasses.replace(
        answer, arms=("a rather long", "other name"), best_by_demonstration=(("a rather long",),)
    )
    window = Console(file=io.StringIO(), width=columns)
    window.print(estimate_table(answer, "1", narrow=columns < NARROW_WIDTH))
    shown = window.file.getvalue()
    assert all(part in shown for part in ("a rather long", "other name", "estimated", str(answer["other name"].pulls)))
    assert " to " in shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns


def test_demonstrations_are_pooled_on_request(unbandit, tmp_path):
    path = tmp_path / "two.csv"
    path.write_text("demonstration,arm,pulls\n1,A,36\n1,B,4\n2,A,36\n2,B,9\n")
    found = as_json(unbandit("estimate", path, *ASKED, "--pool", "--json"))
    assert found["demonstrations"] == 1
    assert found["arms"][1]["gap"] == pytest.approx(4 / 3)
    assert "pooled" in [notice["code"] for notice in found["notes"]]
    done = unbandit("estimate", path, *ASKED, "--json")
    assert len(as_json(done)["arms"]) == 4


def test_pooling_one_demonstration_is_refused(unbandit, log):
    done = unbandit("estimate", log, *ASKED, "--pool")
    assert done.code != 0
    assert "pool: expected two demonstrations of one instance or more; got 1" in done.err


def test_the_bootstrap_keeps_its_seed(unbandit, log):
    asked = [*ASKED, "--method", "bootstrap", "--resamples", "100", "--json"]
    found = as_json(unbandit("estimate", log, *asked, "--seed", "5"))
    assert (found["method"], found["seed"]) == ("bootstrap", 5)
    assert as_json(unbandit("estimate", log, *asked))["seed"] == 0


def test_of_many_demonstrations_a_sentence_counts_the_best_arms(unbandit, tmp_path):
    runs = [list("AB" + "AAAB" * 20 + "A" * 118)] * 30 + [list("AB" + "BBBA" * 20 + "B" * 118)] * 4
    ActionLog.from_actions(runs, arms="AB").write(tmp_path / "many.csv")
    asked = ("estimate", "many.csv", "--rule", "ucb:alpha=0.25", "--sigma", "0.5")
    said = 'In 30 of 34 demonstrations "A" is the better of the 2 arms; in 4 it is "B".'
    shown = unbandit(*asked)
    assert said in shown.out
    assert "... and 29 more demonstrations" in shown.out
    written = unbandit(*asked, "-o", "answer.parquet")
    assert written.out == ""
    assert "68 rows" in written.err
    assert said in written.err
    assert "Theorem 2" not in written.err
    assert unbandit(*asked, "--verbose", "-o", "again.parquet").err.count("Theorem 2") == 1
    assert pl.read_parquet(tmp_path / "answer.parquet").height == 68


def test_missing_rounds_and_stretches(unbandit, tmp_path):
    path, asked = tmp_path / "holes.csv", ["--rule", RULE, "--sigma", "1", "--no-check", "--json"]
    actions = list("ABC" + "AAB" * 30 + "AAAC" * 5 + "A" * 60)
    rounds = [(at + 1, arm) for at, arm in enumerate(actions) if at % 5 != 4]
    path.write_text("".join(["round,arm\n", *(f"{at},{arm}\n" for at, arm in rounds)]))
    holes, kept = (as_json(unbandit("estimate", path, *asked, *more)) for more in ([], ["--kept", "0.8"]))
    lows = [{row["arm"]: row["gap_low"] for row in answer["arms"]} for answer in (holes, kept)]
    assert lows[0]["B"] <= lows[1]["B"]
    assert "missing-rounds" in {note["code"] for note in holes["notes"]}
    assert {row["arm"]: row["verdict"] for row in kept["arms"]} == {"A": "best", "B": "estimated", "C": "estimated"}
    ActionLog.from_actions(actions).write(path)
    found = as_json(unbandit("estimate", path, *asked, "--windows", "2"))["stretches"]
    assert {row["first"] for row in found["rows"]} == {1, len(actions) // 2 + 1}
    shown = unbandit("estimate", path, *asked[:-1], "--windows", "2")
    assert "gap by stretch" in shown.out
    assert unbandit("estimate", path, *asked, "--windows", "2", "--follow").code == 2
