"""Each reader is told of options as they write them: `best_mean` in Python, `--best-mean` in the shell, labels on the
page."""

from __future__ import annotations

import json
import re
import warnings

import pytest
import shell
import test_refusals
import typer

import unbandit as ub
from unbandit.cli import output as printer
from unbandit.cli.app import app
from unbandit.errors import LogError, option, phrase

unbandit = shell.unbandit

COMMANDS = typer.main.get_command(app).commands
KEYWORDS = {each.name for command in COMMANDS.values() for each in command.params if "_" in each.name}

ROUNDS = b"round,arm\n" + b"".join(b"%d,%s\n" % (at, b"AB"[at % 2 :][:1]) for at in range(1, 40))
COUNTS = b"arm,pulls\nA,90\nB,1\n"
EVEN = b"arm,pulls\nA,20\nB,21\nC,20\n"
TWICE = b"arm,pulls\nA,90\nB,9\nA,4\n"
TWO = b"demonstration,arm,pulls\n1,A,36\n1,B,4\n2,A,36\n2,B,9\n"
REWARDS = b"arm,Gain\nA,1\nB,0\nA,1\n"

# what is asked in the shell: the log, and the options
ASKED = [
    *((test_refusals.GOOD, given) for given in (
        ["--rule", "ucb", "--sigma", "1", "--bernoulli"],
        ["--rule", "ucb", "--best-mean", "1", "--anchor", "A=1"],
        ["--rule", "ucb", "--best-mean", "inf"],
        ["--rule", "ucb", "--scale", "unknown", "--best-mean", "1"],
        ["--rule", "ucb", "--reference", "A"],
        ["--rule", "ucb", "--constant", "1"],
        ["--rule", "ucb", "--resamples", "10"],
        ["--rule", "ucb", "--prior", "normal:mean=0,deviation=1"],
        ["--rule", "ucb", "--particles", "10"],
        ["--rule", "ucb", "--pool"],
        ["--rule", "ucb", "--horizon", "3"],
        ["--rule", "ucb", "--horizon", "0"],
        ["--rule", "ucb", "--method", "naiv"],
        ["--rule", "ucb", "--every", "1"],
        ["--rule", "ucb", "--until-idle", "1"],
        ["--rule", "ucb", "--follow", "--until-idle", "-1"],
        ["--rule", "klucb", "--sigma", "1"],
        ["--rule", "explore-then-commit"],
        ["--rule", "thompson", "--scale", "unknown"],
        ["--rule", "thompson", "--prior", "beta:successes=1,failures=1", "--sigma", "1"],
        ["--rule", "uniform"],
        ["--rule", "ucb"],
        ["--rule", "sae"],
        ["--rule", "ucb", "--columns", "week=round"],
        ["--rule", "ucb", "--columns", "arm=picked"],
        ["--rule", "ucb", "--arms", "A"],
        ["--rule", "ucb", "-o", "answer.xlsx"],
    )),
    (COUNTS, ["--rule", "ucb", "--anchor", "B=1"]),
    (COUNTS, ["--rule", "ucb", "--method", "switching"]),
    (COUNTS, ["--rule", "ucb", "--method", "posterior"]),
    (COUNTS, ["--rule", "thompson"]),
    (COUNTS, ["--rule", "ucb", "--scale", "unknown"]),
    (COUNTS, ["--rule", "ucb", "--anchor", "A=1", "--anchor", "A=2"]),
    (COUNTS, ["--rule", "sae", "--anchor", "A=1", "--anchor", "B=2"]),
    (EVEN, ["--rule", "ucb"]),
    (TWICE, ["--rule", "ucb"]),
    (TWICE, ["--rule", "ucb", "--duplicates", "ad"]),
    (TWICE, ["--rule", "ucb", "--sigma", "0.01", "--duplicates", "add", "--anchor", "A=1", "--anchor", "B=3"]),
    (ROUNDS, ["--rule", "ucb", "--duplicates", "add"]),
    (TWO, ["--rule", "ucb"]),
    (TWO, ["--rule", "ucb", "--pool"]),
    (REWARDS, ["--rule", "ucb"]),
    (REWARDS, ["--rule", "thompson", "--bernoulli", "--best-mean", "2"]),
    *((data, ["--rule", "ucb", "--sigma", "1", *options]) for data, options, _ in test_refusals.BAD.values()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "options"), ASKED, ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else ""
)
def test_the_shell_reads_options_of_the_shell(unbandit, tmp_path, data, options):
    (tmp_path / "log.csv").write_bytes(data)
    said = unbandit("estimate", "log.csv", *options).err
    assert not [name for name in KEYWORDS if re.search(rf"\b{name}\b", said)], said
    assert not re.search(r"\b\w+=(\"|True|False)", said), said
    assert "\ufdd0" not in said


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "--rule", "ucb", "--horizon", "9"],
        ["simulate", "linear", "--rule", "klucb", "--horizon", "100"],
        ["simulate", "linear", "--rule", "ucb", "--horizon", "9", "--sigma", "1"],
        ["simulate", "linear", "--rule", "ucb", "--horizon", "9", "--draw", "needed"],
        ["simulate", "linear", "--rule", "sae", "--horizon", "9", "--draw", "needed", "--counts"],
        ["simulate", "linear", "--rule", "ucb", "--horizon", "9", "--device", "gpu"],
        ["simulate", "battery-high", "--arms", "1000", "--rule", "ucb", "--horizon", "9"],
        ["plan", "linear", "--rule", "ucb", "--within", "-1"],
        ["plan", "linear", "--rule", "thompson", "--within", "0.1"],
        ["leak", "linear", "--rule", "ucb", "--horizon", "0"],
        ["identify", "log.csv", "--level", "2"],
        ["identify", "log.csv", "--candidates", "ucb,klucb", "--sigma", "1", "--bernoulli"],
        ["identify", "log.csv", "--candidates", "nothing"],
        ["identify", "log.csv", "--candidates", "ucb:alpha"],
        ["demonstrators", "nothing"],
        ["posterior", "log.csv", "--rule", "ucb", "--pair", "A"],
        ["posterior", "log.csv", "--rule", "ucb", "--sigma", "1", "--particles", "20", "--pair", "A,C"],
        ["posterior", "log.csv", "--rule", "ucb", "--by", "0.1"],
        ["posterior", "log.csv", "--rule", "ucb", "--best-mean", "1", "--anchor", "A=1"],
        ["report", "log.csv", "--rule", "ucb", "-o", "report.txt"],
        ["study", "log.csv", "-o", "folder"],
        ["reproduce", "nothing"],
        ["calibrate", "nothing"],
        ["serve", "--max-rows", "0"],
        ["serve", "--port", "-1"],
    ],
    ids=" ".join,
)
def test_other_commands_do_too(unbandit, tmp_path, command):
    (tmp_path / "log.csv").write_bytes(ROUNDS)
    done = unbandit(*command)
    assert done.code != 0
    assert not [name for name in KEYWORDS if re.search(rf"\b{name}\b", done.err)], done.err
    assert "\ufdd0" not in done.err
    blamed = re.search(r"^unbandit: (--[\w-]+):", done.err, re.MULTILINE)
    own = {name for each in COMMANDS[command[0]].params for name in each.opts}
    assert blamed is None or blamed[1] in own, done.err


@pytest.mark.parametrize("data", [ROUNDS, REWARDS, TWO], ids=["rounds", "rewards", "two"])
def test_sentences_in_the_shells_json_do_too(unbandit, tmp_path, data):
    (tmp_path / "log.csv").write_bytes(data)
    done = unbandit("estimate", "log.csv", "--rule", "ucb", "--json")
    answer = json.loads(done.out)
    said = " ".join(notice["message"] for notice in answer["warnings"] + answer["notes"])
    assert "--" in said
    assert not [name for name in KEYWORDS if re.search(rf"\b{name}\b", said)], said
    assert not re.search(r"\b\w+=(\"|True|False)", said), said


CALLS = {
    "both known": {"best_mean": 1.0, "anchor": {"A": 1.0}},
    "both noises": {"sigma": 1.0, "bernoulli": True},
    "no noise": {},
    "ratios": {"scale": "unknown", "best_mean": 1.0},
    "reference": {"reference": "A"},
    "constant": {"constant": 1.0},
    "resamples": {"resamples": 10},
    "prior": {"prior": "normal:mean=0,deviation=1"},
    "particles": {"particles": 10},
    "seed": {"seed": 1},
    "pool": {"pool": True},
    "horizon": {"horizon": 3},
    "method": {"method": "naiv"},
    "level": {"level": 95},
}


@pytest.mark.parametrize("rule", ["ucb", "sae", "uniform", "explore-then-commit", "thompson"])
@pytest.mark.parametrize("given", CALLS)
@pytest.mark.parametrize("data", [test_refusals.GOOD, COUNTS], ids=["rounds", "counts"])
def test_python_reads_keyword_arguments(rule, given, data):
    log = ub.ActionLog.from_bytes(data)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = ub.estimate(log, rule, **CALLS[given])
        sentences = [str(each.message) for each in caught]
        sentences += [notice.message for notice in (*answer.warnings, *answer.notes)]
    except ub.UnbanditError as error:
        sentences = [str(error), error.message]
    for sentence in sentences:
        assert "--" not in sentence
        assert "\ufdd0" not in sentence


@pytest.mark.parametrize("what", test_refusals.BAD)
def test_python_reads_keyword_arguments_of_reading_too(what):
    data, options, _ = test_refusals.BAD[what]
    arms = options[1].split(",") if "--arms" in options else None
    columns = dict([options[1].split("=")]) if "--columns" in options else None
    horizon = int(options[1]) if "--horizon" in options else None
    with pytest.raises(LogError) as caught:
        ub.estimate(ub.ActionLog.from_bytes(data, arms=arms, columns=columns), "ucb", sigma=1.0, horizon=horizon)
    assert "--" not in str(caught.value)
    assert "\ufdd0" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["\ufdd0\ufdd1", "\ufdd0[1]\ufdd1", '\ufdd0["a", 1, 2]\ufdd1', "\ufdd0{}\ufdd1", "\ufdd0"]
)
def test_a_file_cannot_pass_for_a_sentence_of_ours(text):
    said = phrase(f"got {text}; give {option('sigma')}.")
    assert said.endswith("give sigma.")
    with pytest.raises(LogError):
        ub.ActionLog.from_bytes(f"arm,round\n{text},1\n{text},x\n".encode())


@pytest.mark.parametrize("cell", ["\x1b]0;owned\x07", "a\rb", "\u202eabc\u2028", '\ufdd0["method", "naive"]\ufdd1'])
def test_no_sentence_obeys_a_label(cell, capsys):
    for error in (False, True):
        printer.console(error=error).print(f"One line of ours\nand arm {cell}.", style="bold")
    for said in capsys.readouterr():
        assert said.count("\n") == 2
        assert all(line.isprintable() for line in said.splitlines())
    log = ub.ActionLog.from_actions([cell, "B", "B", "B"] * 10)
    made = ub.report(log, "ucb:alpha=0.25", sigma=1.0)
    assert made.sentence.replace("\u2068", "").replace("\u2069", "").isprintable()


def test_a_list_of_names_that_cannot_be_read_is_refused(unbandit, tmp_path):
    (tmp_path / "log.csv").write_text("arm\nA\nB\n")
    done = unbandit("estimate", str(tmp_path / "log.csv"), "--rule", "ucb", "--arms", "A\rB,C")
    assert done.code == 2
    assert "expected names between commas" in done.err
