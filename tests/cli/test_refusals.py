"""Bad input: the right exit code, one sentence that names place and remedy, nothing printed, nothing written."""

from __future__ import annotations

import io
import os
import resource
from pathlib import Path

import polars as pl
import pytest
import shell
import typer

from unbandit import ActionLog
from unbandit.cli.app import app
from unbandit.cli.command import COMMAND_SYNONYMS, SYNONYMS

refused, script, unbandit = shell.refused, shell.script, shell.unbandit

ASKED = ["--rule", "ucb", "--sigma", "1"]
GOOD = b"round,arm\n1,A\n2,B\n3,A\n4,A\n"


def lines(*rows):
    return ("\n".join(rows) + "\n").encode()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rule", "ucbb"], 'got "ucbb". Did you mean "ucb"?'),
        (["--rule", "ucb:alpha=1"], "alpha"),
        (["--rule", "ucb:alpha=-0.1"], "alpha"),
        (["--rule", "ucb:alpha=x"], "alpha"),
        (["--rule", "ucb:alpha=nan"], "alpha"),
        (["--rule", "sae:scale=0"], "scale"),
        (["--rule", "ucb:sigma=-1"], "sigma"),
        (["--rule", "ucb:scale=1,sigma=1"], "not both"),
        (["--rule", "ucb:alfa=0.2"], 'Did you mean "alpha"?'),
        (["--rule", "ucb", "--sigma", "0"], "sigma: expected a positive number; got 0"),
        (["--rule", "ucb", "--sigma", "-1"], "sigma: expected a positive number"),
        (["--rule", "ucb", "--sigma", "nan"], "sigma: expected a positive number"),
        (["--rule", "ucb", "--sigma", "1", "--bernoulli"], "leave --sigma or --bernoulli out"),
        (["--rule", "ucb", "--level", "95"], "level: expected a number between 0 and 1; got 95"),
        (["--rule", "ucb", "--method", "posterio"], "method: expected"),
        (["--rule", "ucb", "--best-mean", "1", "--anchor", "A=1"], "not both"),
        (["--rule", "ucb", "--best-mean", "inf"], "--best-mean: expected a finite number"),
        (["--rule", "ucb", "--anchor", "A"], "--anchor: expected ARM=VALUE"),
        (["--rule", "ucb", "--anchor", "A=x"], "--anchor: expected ARM=VALUE"),
        (["--rule", "ucb", "--anchor", "=1"], "--anchor: expected ARM=VALUE"),
        (["--rule", "ucb", "--anchor", "X=1"], 'anchor: expected one of A, B; got "X"'),
        (["--rule", "ucb", "--scale", "maybe"], "scale: expected"),
        (["--rule", "ucb", "--scale", "unknown", "--best-mean", "1"], "scale: "),
        (["--rule", "ucb", "--scale", "unknown", "--reference", "X"], "reference: expected one of A, B"),
        (["--rule", "ucb", "--arms", "A,,B"], "--arms: expected names between commas"),
        (["--rule", "ucb", "--arms", "A,A"], "arms: expected different labels"),
        (["--rule", "ucb", "--columns", "arm"], "--columns: expected key=value"),
        (["--rule", "ucb", "--columns", "week=round"], "columns: expected a role among arm"),
        (["--rule", "ucb", "--horizon", "0"], "horizon: expected a whole number"),
        (["--rule", "ucb", "--horizon", "many"], '--horizon: expected a whole number; got "many".'),
        (["--rule", "ucb", "--horizon", "10,000"], 'got "10,000". Write 10000, without separators.'),
        (["--rule", "ucb", "--sigma", "0,5"], '--sigma: expected a number; got "0,5". Write 0.5, with a point.'),
        (["--rule", "ucb", "--sigma", "half"], '--sigma: expected a number; got "half".'),
        (["--rule", "ucb", "--horizon", "1" + "0" * 400], "horizon: expected a whole number"),
        (["--rule", "ucb", "--method", "naive", "--constant", "-1"], "constant: expected a positive number"),
        (["--rule", "ucb", "-o", "answer.xlsx"], 'got "answer.xlsx"'),
        (["--rule", "ucb", "-o", "answer"], "expected a name that ends in .csv"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_parameter_out_of_range_ends_with_2(refused, tmp_path, options, said):
    (tmp_path / "log.csv").write_bytes(GOOD)
    assert said in refused(2, "estimate", "log.csv", *options)


def test_a_missing_rule_is_answered_with_the_options_that_say_how_the_log_is_read(refused):
    message = refused(2, "estimate", "log.xlsx", "--sheet", "Day 2", "--arms", "A,B", "--no-header")
    assert "run: unbandit identify log.xlsx --arms A,B --sheet 'Day 2' --no-header." in message


@pytest.mark.parametrize("command", ["estimate", "posterior", "population", "simulate", "plan", "leak"])
def test_a_missing_rule_is_answered_with_the_way_on(refused, command):
    takes_a_log = command in ("estimate", "posterior", "population")
    message = refused(2, command, "my log.csv" if takes_a_log else "linear")
    assert message.startswith("unbandit: --rule: missing.")
    assert "run: unbandit demonstrators." in message
    assert ("run: unbandit identify 'my log.csv'." in message) == takes_a_log
    example = message.partition("Example: ")[2]
    assert example.startswith(f"unbandit {command} ")
    assert " --rule " in example


def test_another_missing_option_is_answered_with_an_example(refused):
    message = refused(2, "simulate", "linear", "--rule", "ucb1")
    assert message.startswith("unbandit: --horizon: missing. Number of rounds of each demonstration. Example: ")
    assert "linucb, lints" in refused(2, "estimate", "log.csv", "--features", "x1")


def parquet_that_aborted():
    """Return a Parquet file of which one changed byte made polars ask for an exabyte, and abort."""
    file = io.BytesIO()
    pl.DataFrame({"arm": ["A", "B"] * 20}).write_parquet(file, compression="uncompressed")
    return file.getvalue()[:35] + b"\x01" + file.getvalue()[36:]


# what is wrong: the file's bytes, further options, and what the message must name
BAD = {
    "empty": (b"", [], ["empty file", "Check that it was saved"]),
    "blank": (b"\n\n", [], ["empty file"]),
    "header only": (b"round,arm\n", [], ["header only"]),
    "missing column": (lines("a,b", "1,2"), [], ['"a", "b"', "--columns arm=NAME"]),
    "column not there": (GOOD, ["--columns", "arm=picked"], ['There is no column "picked"', '"round", "arm"']),
    "duplicate column": (lines("arm,arm", "A,B", "B,A"), [], ['column "arm"', '"arm" twice', "Rename or remove"]),
    "unknown arm": (
        lines("round,choice", "1,A", "2,D"),
        ["--arms", "A,B,C"],
        ["row 2 (line 3)", 'column "choice"', 'expected an arm among A, B, C; got "D"', "--arms A,B,C,D"],
    ),
    "blank arm": (lines("round,arm", "1,A", "2,", "3,B"), [], ["row 2 (line 3)", 'column "arm"', "blank cell", "Fill"]),
    "nan arm": (lines("arm", "1", "nan", "2"), [], ["row 2 (line 3)", 'column "arm"', '"nan"', "remove the row"]),
    "blank round": (lines("round,arm", "1,A", ",B"), [], ["row 2 (line 3)", 'column "round"', "blank cell"]),
    "infinite round": (lines("round,arm", "1,A", "inf,B"), [], ["row 2 (line 3)", 'column "round"', '"inf"']),
    "duplicate round": (lines("round,arm", "1,A", "2,B", "2,A"), [], ["row 3 (line 4)", 'column "round"', "2 again"]),
    "missing rounds": (lines("round,arm", "1,A", "2,B", "9,A"), [], ["6 of 9 rounds are missing", "--kept"]),
    "wide numbers": (lines("round,arm", "1,A", "2,B", "9000,A"), [], ["row 3 (line 4)", "got 9000", "missing rows"]),
    "holes twice": (lines("round,arm", "1,A", "2,B", "4,A", "4,B"), [], ["row 4 (line 5)", "4 again"]),
    "late start": (lines("round,arm", "5,A", "6,B"), [], ["begin at 5", "opening is missing", "--starting-pulls"]),
    "round not whole": (lines("round,arm", "1,A", "2.5,B"), [], ["row 2 (line 3)", 'column "round"', '"2.5"']),
    "round a word": (lines("round,arm", "1,A", "two,B"), [], ["row 2 (line 3)", '"two"', "whole number"]),
    "one arm": (lines("arm", "A", "A"), [], ['column "arm"', 'only "A"', "--arms A,OTHER"]),
    "short horizon": (GOOD, ["--horizon", "3"], ["the log has 4 rounds, more than the horizon 3"]),
    "binary": (b"\x00\x01\x02arm\n\x00", [], ["binary file", "expected a table (CSV, TSV, JSON lines"]),
    "spreadsheet": (b"PK\x03\x04\x00\x00", [], ["spreadsheet", "save the sheet as CSV"]),
    "no latin-1": (b"arm\ncaf\x81\nB\n", [], ["row 1 (line 2)", "UTF-8", "0x81", "Save the file again"]),
    "utf-16": ("arm\nA\nB\n".encode("utf-16"), [], ["UTF-16", "Save the file again"]),
    "cut gzip": (b"\x1f\x8b\x08\x00\x00", [], ["gzip", "Write or copy it again"]),
    "cut parquet": (b"PAR1" + b"\x00" * 40, [], ["Parquet", "Write or copy it again"]),
    "damaged parquet": (parquet_that_aborted(), [], ["expected a whole Parquet file", "Write or copy it again"]),
    "uneven rows": (lines("round,arm", "1,A", "2,B,x"), [], ["row 2 (line 3)", "expected 2 cells", "got 3 cells"]),
    "negative count": (lines("arm,pulls", "A,5", "B,-1"), [], ["row 2 (line 3)", 'column "pulls"', "-1"]),
    "repeated count": (lines("arm,pulls", "A,5", "B,1", "A,2"), [], ["row 3 (line 4)", '"A" again']),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_contents_end_with_3(refused, tmp_path, what):
    data, options, said = BAD[what]
    (tmp_path / "log.csv").write_bytes(data)
    message = refused(3, "estimate", "log.csv", *ASKED, *options, "-o", "answer.csv")
    assert message.startswith("unbandit: log.csv")
    assert all(part in message for part in said), message
    assert message.rstrip().endswith(".")


def test_standard_input_is_named_too(refused):
    assert refused(3, "estimate", "-", *ASKED, stdin=b"").startswith("unbandit: standard input: ")
    message = refused(3, "estimate", "-", *ASKED, "--horizon", "2", stdin=GOOD)
    assert message.startswith("unbandit: standard input: the log has 4 rounds")


def test_what_is_not_a_file_ends_with_3(refused, tmp_path):
    (tmp_path / "folder").mkdir()
    assert "folder: expected files that end in .parquet" in refused(3, "estimate", "folder", *ASKED)
    message = refused(3, "estimate", "nothing.csv", *ASKED)
    assert "nothing.csv: file not found" in message


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_read_ends_with_3(refused, tmp_path):
    path = tmp_path / "log.csv"
    path.write_bytes(GOOD)
    path.chmod(0)
    assert "permission was denied" in refused(3, "estimate", path, *ASKED)


@pytest.mark.parametrize(
    ("data", "options", "said"),
    [
        (b"arm,pulls\nA,90\nB,1\n", ["--rule", "ucb", "--anchor", "B=1"], 'anchor "B" has no estimated gap'),
        (b"arm\nA\nB\nA\nB\n", ["--rule", "sae", "--anchor", "A=1"], 'anchor "A" has no estimated gap'),
        (b"arm,pulls\nA,90\nB,1\n", ["--rule", "ucb", "--scale", "unknown"], "No arm has an estimated gap"),
        (
            b"arm,pulls\nA,90\nB,4\n",
            ["--rule", "ucb", "--scale", "unknown", "--reference", "A"],
            '"A" has no estimated gap above 0',
        ),
    ],
    ids=["anchor bounded", "anchor active", "no ratio", "reference best"],
)
def test_what_the_record_cannot_tell_ends_with_4(refused, data, options, said):
    assert said in refused(4, "estimate", "-", *options, stdin=data)


@pytest.mark.parametrize("name", ["answer.csv", "answer.parquet", "answer.json"])
def test_a_folder_that_is_not_there_ends_with_3(refused, tmp_path, name):
    (tmp_path / "log.csv").write_bytes(GOOD)
    message = refused(3, "estimate", "log.csv", *ASKED, "-o", f"missing/{name}")
    assert f"missing/{name}: could not be written: its folder does not exist." in message
    message = refused(3, "estimate", "log.csv", *ASKED, "-o", f"log.csv/{name}")
    assert f"log.csv/{name}: could not be written: its folder does not exist." in message


def test_a_target_that_is_a_folder_ends_with_3(refused, tmp_path):
    (tmp_path / "log.csv").write_bytes(GOOD)
    (tmp_path / "answer.csv").mkdir()
    assert "Is a directory" in refused(3, "estimate", "log.csv", *ASKED, "-o", "answer.csv")


@pytest.mark.parametrize("name", ["answer.csv", "answer.parquet", "answer.json"])
def test_a_disk_that_fills_up_leaves_the_old_file_as_it_was(script, tmp_path, name):
    # a limit on the size of a file stands in for a full disk: a write beyond it fails in the same place
    ActionLog.from_counts({f"arm {at}": at + 1 for at in range(3_000)}).write(tmp_path / "log.csv")
    (tmp_path / name).write_text("old")
    done = script(
        "estimate", "log.csv", *ASKED, "-o", name,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096)),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "")
    last = done.stderr.splitlines()[-1]  # with an empty cache, kernels are compiled before
    assert last.startswith(f"unbandit: {name}: could not be written: ")
    assert "File too large" in last
    assert (tmp_path / name).read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "log.csv"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ["estimate", "log.csv", *ASKED],
        ["simulate", "two-armed", "--rule", "ucb", "--horizon", "20000"],
        ["datasets"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_standard_output_that_is_full_ends_with_3(script, tmp_path, command):
    (tmp_path / "log.csv").write_bytes(GOOD)
    with Path("/dev/full").open("wb") as full:
        done = script(*command, capture_output=False, stdout=full, stderr=-1)
    assert done.returncode == 3
    assert "unbandit: standard output: could not be written: No space left on device." in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("name", ["--columns", "--rule", "--sigma"])
def test_an_option_given_twice_is_refused_and_the_last_does_not_win(unbandit, tmp_path, name):
    (tmp_path / "log.csv").write_text("subject,block,arm\n" + "1,2,A\n1,2,B\n" * 20)
    given = {"--columns": "demonstration=subject", "--rule": "ucb", "--sigma": "0.5"}
    options = [each for pair in given.items() for each in pair]
    done = unbandit("estimate", "log.csv", *options, name, given[name])
    assert (done.code, f"{name}: expected only once; got it 2 times" in done.err) == (2, True)


HOLES = lines("round,arm", *(f"{at},{'AB'[at % 3 == 0]}" for at in range(1, 121) if at % 9 != 4))


def test_a_table_beside_the_log_is_named_where_it_is_wrong(refused, tmp_path):
    (tmp_path / "log.csv").write_bytes(GOOD)
    bad_tables = ("--availability", "arm,first\nA,1\n", 2), ("--starting-pulls", "arm,pulls\nA,x\n", 3)
    for name, bad, code in bad_tables:
        message = refused(3, "estimate", "log.csv", *ASKED, name, "missing.csv")
        assert message.startswith("unbandit: missing.csv: file not found")
        (tmp_path / "table.csv").write_text(bad)
        message = refused(code, "estimate", "log.csv", *ASKED, name, "table.csv")
        assert "log.csv" not in message
        assert message.startswith(("unbandit: table.csv row 1", "unbandit: --availability: "))


def test_numbers_without_holes_contradict_a_log_that_misses_rounds(refused, unbandit, tmp_path):
    rows = [("AB"[at % 3 == 0]) for at in range(120)]
    (tmp_path / "log.csv").write_bytes(lines("round,arm", *(f"{at + 1},{arm}" for at, arm in enumerate(rows))))
    message = refused(2, "estimate", "log.csv", *ASKED, "--kept", "0.8")
    assert "--kept: expected rounds with holes where some are missing" in message
    assert "--columns round=" in message
    again = unbandit("estimate", "log.csv", *ASKED, "--no-check", "--kept", "0.8", "--columns", "round=")
    assert again.code == 0
    assert "about 150" in again.err


def test_options_that_cannot_be_combined_are_both_named(refused, tmp_path):
    (tmp_path / "log.csv").write_bytes(HOLES)
    (tmp_path / "arms.csv").write_text("arm,first,last\nB,3,\n")
    message = refused(2, "estimate", "log.csv", *ASKED, "--availability", "arms.csv", "--kept", "0.89")
    assert "--availability and --kept cannot be combined. Add the missing rows" in message
    message = refused(2, "estimate", "log.csv", *ASKED, "--availability", "arms.csv")
    assert "this one misses rounds" in message
    assert message.rstrip().endswith("Add the missing rows, or read rounds with the same arms as a log of their own.")


def test_stretches_are_refused_before_anything_is_estimated(refused, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("the log was estimated first")

    from unbandit import estimators  # all modules first: one that is imported later would keep what is put in its place
    from unbandit.reporting import api

    monkeypatch.setattr(api, "estimate", never)
    monkeypatch.setattr(estimators, "estimate", never)
    (tmp_path / "log.csv").write_bytes(HOLES)
    (tmp_path / "short.csv").write_bytes(GOOD)
    for command in ("estimate", "report"):
        message = refused(4, command, "log.csv", *ASKED, "--windows", "2")
        assert "stretches: the log misses rounds" in message
        assert message.rstrip().endswith("Leave --windows out.")
        message = refused(2, command, "short.csv", *ASKED, "--windows", "2")
        assert "--windows: 4 rounds make no 2 stretches of 20 rounds or more. Leave --windows out" in message


@pytest.mark.parametrize("command", [["check"], ["identify"]], ids=lambda each: each[0])
def test_commands_that_need_a_whole_log_name_those_that_do_not(refused, tmp_path, command):
    (tmp_path / "log.csv").write_bytes(HOLES)
    (tmp_path / "late.csv").write_bytes(lines("round,arm", "5,A", "6,B", "7,A"))
    for name, kind in (("log.csv", "miss rounds"), ("late.csv", "begin in mid-run")):
        message = refused(3, *command, name, "--sigma", "1")
        assert f"`unbandit estimate` and `unbandit report` read logs that {kind}" in message


@pytest.mark.parametrize(
    ("numbers", "why", "remedy"),
    [
        ((1, 2, 4), "the log misses rounds", "`estimate` reads it with --method bracket."),
        ((5, 6, 7), "the log begins in mid-run", "`estimate` reads it with --method bracket."),
    ],
)
def test_posteriors_that_need_a_whole_log_name_what_reads_it(refused, tmp_path, numbers, why, remedy):
    rows = (f"{number},{arm}" for number, arm in zip(numbers, "ABA", strict=True))
    (tmp_path / "log.csv").write_bytes(lines("round,arm", *rows))
    message = refused(4, "posterior", "log.csv", "--rule", "ucb", "--sigma", "1")
    assert why in message
    assert remedy in message


MEANT = {
    "simulate --rounds 100": "--rounds. Did you mean --horizon?",
    "simulate --noise=1": "--noise. Did you mean --sigma?",
    "plan --rounds 100": "--rounds. Did you mean --longest?",
    "estimate log.csv --out x.csv": "--out. Did you mean --output?",
    "estimate log.csv --confidence 0.9": "--confidence. Did you mean --level?",
    "identify log.csv --policy ucb": "--policy. Did you mean --candidates?",
    "estimate log.csv --subject 3": "--subject. Did you mean --columns or --demonstration?",
    "estimate log.csv --alpha 1": "--alpha. Did you mean --rule NAME:alpha=...?",
    "estimate log.csv -rule ucb": "-rule. Did you mean --rule?",
    "report log.csv --Sensitivities": "--Sensitivities. Did you mean --sensitivity?",
    "report log.csv --predict x.csv": "--predict. The command estimate has it.",
    "plan --pool": "--pool. The commands estimate, report and posterior have it.",
    "datasets --sigma 1": "--sigma. The commands estimate, check and others have it.",
    "serve --alpha 1": "--alpha.",
    "estimate log.csv -z": "-z.",
}


@pytest.mark.parametrize(("line", "said"), MEANT.items(), ids=MEANT)
def test_an_unknown_option_is_answered_with_the_one_that_is_meant(unbandit, line, said):
    done = unbandit(*line.split())
    assert (done.code, done.err.splitlines()[-1]) == (2, f"Error: No such option: {said}")


def test_what_is_suggested_exists_and_is_suggested_for_what_does_not():
    commands = typer.main.get_command(app).commands
    known = {name for command in commands.values() for parameter in command.params for name in parameter.opts}
    assert {f"--{name}" for name in SYNONYMS} <= known
    assert COMMAND_SYNONYMS.keys() <= commands.keys()
    assert not commands.keys() & {word for words in COMMAND_SYNONYMS.values() for word in words.split()}


def test_an_unknown_command_is_answered_with_the_one_that_is_meant(unbandit):
    assert unbandit("fit", "log.csv").err.endswith("No such command 'fit'. Did you mean 'estimate'?\n")
    assert unbandit("frobnicate").err.endswith("No such command 'frobnicate'.\n")


def test_means_in_the_place_of_a_data_set_are_answered_with_their_option(refused):
    message = refused(2, "simulate", "1,0.5", "--rule", "ucb1", "--sigma", "1", "--horizon", "10")
    assert 'expected the name of a data set; got "1,0.5". For means write --means 1,0.5.' in message


@pytest.mark.parametrize(
    ("line", "parameter"),
    [
        ("estimate log.csv --rule ucb1 --sigma 1 -o log.csv", "output"),
        ("estimate ./log*.csv --rule ucb1 --sigma 1 -o log.csv", "output"),
        ("estimate . --rule ucb1 --sigma 1 -o log.csv", "output"),
        ("report log.csv --rule ucb1 --sigma 1 --truth truth.html -o truth.html", "output"),
        ("report log.csv --rule ucb1 --sigma 1 --pdf linked.pdf", "pdf"),
    ],
)
def test_a_file_that_is_read_is_not_written_over(refused, tmp_path, line, parameter):
    for name in ("log.csv", "truth.html"):
        (tmp_path / name).write_bytes(GOOD)
    (tmp_path / "linked.pdf").symlink_to("log.csv")
    assert f"--{parameter}: expected another file" in refused(2, *line.split())
    assert (tmp_path / "log.csv").read_bytes() == (tmp_path / "truth.html").read_bytes() == GOOD


@pytest.mark.parametrize("asked", ["posterior --rule ucb:alpha=0.25", "identify --candidates ucb:alpha=0.25,sae"])
def test_refusals_say_that_the_order_of_the_rows_may_be_another(unbandit, tmp_path, asked):
    rows = [f"{at},{'AABABAAAABBCA'[at]},2026-05-01T10:{30 - at}:00Z" for at in range(13)]
    (tmp_path / "log.csv").write_bytes(lines("round,arm,timestamp", *rows))
    command, *rule = asked.split()
    said = unbandit(command, str(tmp_path / "log.csv"), *rule, "--sigma", "1")
    assert said.code != 0
    assert "pulls every arm once first" in said.err
    assert "use --columns round=timestamp." in said.err
