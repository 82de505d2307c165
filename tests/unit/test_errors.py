"""Errors and notices: data, and one sentence for each audience. Checks of arguments, and files written whole."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time

import pytest

import unbandit as ub
from unbandit import checks
from unbandit.devices import checked_device, choose_device
from unbandit.errors import LogError, Notice, option, phrase, printable, shell_option
from unbandit.files import written_whole


def test_an_option_is_spelled_for_its_audience():
    sentence = f"Give {option('best_mean')} or use {option('method', 'posterior')}."
    assert phrase(sentence) == 'Give best_mean or use method="posterior".'
    assert phrase(sentence, shell_option) == "Give --best-mean or use --method posterior."
    assert Notice("scale", f"Give {option('sigma')}.").message == "Give sigma."


def test_a_parameter_is_spelled_for_its_audience():
    error = ub.ParameterError("expected a positive number; got -1.", parameter="sigma", value=-1)
    assert str(error) == "sigma: expected a positive number; got -1."
    assert error.phrased(shell_option) == "--sigma: expected a positive number; got -1."


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ub.LogError('expected a whole number; got "x".', path="log.csv", row=7, line=8, column="round", value="x"),
            'log.csv row 7 (line 8), column "round": expected a whole number; got "x".',
        ),
        (
            ub.DescriptionError("expected a number; got 'x'.", path="study.toml", table="instance 2", key="beta"),
            "study.toml: instance 2: beta: expected a number; got 'x'.",
        ),
        (ub.InferenceError("no particle explains the log.", round=7), "round 7: no particle explains the log."),
        (
            ub.MissingExtra("the web page", "web"),
            "the web page needs an optional part of unbandit. In its checkout, run: pip install '.[web]'",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_says_where_it_is(error, said):
    assert str(error) == said


@pytest.mark.parametrize(
    ("check", "given", "said"),
    [
        (checks.whole, ("runs", 0), r"runs: expected a whole number from 1 to 2\^32 - 1; got 0\."),
        (checks.seed, (-1,), r"seed: expected a whole number from 0 to 2\^64 - 1; got -1\."),
        (checks.level, (95,), r"level: expected a number between 0 and 1; got 95\."),
        (
            checks.one_of,
            ("method", "swiching", ["switching", "counts"]),
            'method: expected one of switching, counts; got "swiching". Did you mean "switching"?',
        ),
        (checks.position, ("demonstration", "x", ("monday",)), 'demonstration: expected one of monday; got "x"'),
        (checked_device, ("gpu",), 'device: expected one of cpu, cuda; got "gpu"'),
    ],
    ids=["whole", "seed", "level", "one_of", "position", "device"],
)
def test_an_argument_is_refused_in_one_sentence(check, given, said):
    with pytest.raises(ub.ParameterError, match=said.replace("?", r"\?")):
        check(*given)


def test_arguments_that_are_right_are_returned():
    assert checks.whole("runs", 10) == 10
    assert checks.position("demonstration", "tuesday", ("monday", "tuesday")) == 1
    assert checks.position("demonstration", None, ("monday",)) == 0
    assert (checked_device("cpu"), choose_device("auto", 1_000)) == ("cpu", ("cpu", None))


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    with written_whole(tmp_path / "a.txt") as temporary:
        temporary.write_text("whole")
    with pytest.raises(RuntimeError), written_whole(tmp_path / "a.txt") as temporary:  # noqa: PT012
        temporary.write_text("half")
        raise RuntimeError
    assert [path.read_text() for path in tmp_path.iterdir()] == ["whole"]


def test_cells_in_a_message_are_escaped_and_cut():
    error = LogError(
        f'expected a number; got "{"x" * 3_000_000}\x1b[31m\r\n".',
        path="a\x1bb.csv",
        column="c\rd",
        remedy="Correct it.",
    )
    text = str(error)
    assert len(text) < 400
    assert text.isprintable()
    assert text.startswith('a\\x1bb.csv, column "c\\rd": expected a number; got "xxx')
    assert text.endswith('x\\x1b[31m\\r\\n". Correct it.')
    assert len(str(LogError("x" * 3_000_000, remedy="Correct it."))) < 2_100
    assert Notice("reading", 'arm "\x1b]0;title\x07"').message == 'arm "\\x1b]0;title\\x07"'
    assert Notice("reading", "r\u00e9sum\u00e9 \u4e2d \u2068x\u2069").message == "r\u00e9sum\u00e9 \u4e2d \u2068x\u2069"


@pytest.mark.parametrize(
    "cell", ['\ufdd0["method", "naive"]\ufdd1', '["method", "naive"]\ufdd1', "\ufdd0" + "[" * 3_000 + "\ufdd1"]
)
def test_a_quoted_cell_that_looks_like_an_option_is_escaped(cell):
    said = phrase(f'Give {option("sigma")}; got "{cell}", not {option("level")}.', shell_option)
    assert said.startswith('Give --sigma; got "')
    assert said.endswith('\\ufdd1", not --level.')
    assert "--method" not in said
    opened = option("").partition("[")[0]  # even a cell that follows an opening word within a sentence
    assert "--method" not in phrase(f"{opened[:-1]}{cell}", shell_option)


READ_ELSEWHERE = """
import pickle, sys
from unbandit.errors import shell_option
notice, *errors = pickle.load(sys.stdin.buffer)
print(notice.to_dict(shell_option)["message"], *(each.phrased(shell_option) for each in errors), sep="\\n")
"""


def test_errors_and_notices_keep_their_options_in_another_process():
    text = f'got "\ufdd0{json.dumps(["method", "naive"])}\ufdd1"; give {option("best_mean", 1)}.'
    errors = [
        kind(text, parameter="sigma", remedy=f"Use {option('pool', True)}.")
        for kind in (ub.ParameterError, ub.OutputError, ub.LogError)
    ]
    sent = pickle.dumps([Notice("code", text, arm="A"), *errors, ub.MissingExtra("the web page", "web")])
    done = subprocess.run([sys.executable, "-c", READ_ELSEWHERE], input=sent, capture_output=True, check=True)
    first, *others, last = done.stdout.decode().splitlines()
    assert first == 'got "\\ufdd0["method", "naive"]\\ufdd1"; give --best-mean 1.'
    assert [each.removeprefix("--sigma: ") for each in others] == [f"{first} Use --pool."] * 3
    assert "pip install '.[web]'" in last
    back = pickle.loads(pickle.dumps(errors[1]))
    assert (back.args, back.text, back.parameter) == (errors[1].args, text, "sigma")
    assert pickle.loads(sent)[0] == Notice("code", text, arm="A")
    assert repr(Notice("code", f"Give {option('sigma')}.")) == "Notice(code='code', message='Give sigma.')"


def test_what_stands_between_two_quoted_names_is_not_cut():
    prose = "is long, " * 30
    text = f'expected "x"; {prose}got "y".'
    assert printable(text) == text
    assert printable(f'expected "x"; got "{"z" * 500}".').count("z") == 120


@pytest.mark.parametrize("mark", ["\u200b", "\ufeff", "\u00ad", "\u00a0", "\u2066", "\u200d"])
def test_characters_that_nobody_sees_are_escaped(mark):
    assert printable(f'the table has "a{mark}b".') == f'the table has "a{mark.encode("unicode_escape").decode()}b".'
    whole = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \U0001f469\u200d\U0001f52c"  # Persian, and a scientist
    assert printable(whole) == whole


def test_an_error_in_a_thread_leaves_the_rest_undone():
    done = []

    def work(number):
        time.sleep(0.02)
        done.append(number)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        checks.in_threads(work, [(number,) for number in range(100)], 2)
    assert len(done) < 20
    assert checks.in_threads(lambda a, b: a + b, [(1, 2), (3, 4)], 2) == [3, 7]
