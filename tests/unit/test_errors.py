"""Errors and notices: data, and one sentence for each audience. Checks of arguments, and files written whole."""

from __future__ import annotations

import pytest

import unbandit as ub
from unbandit import checks
from unbandit.devices import checked_device, choose_device
from unbandit.errors import LogError, Notice, option, phrase, shell_option
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
        (ub.InferenceError("no particle explains the record.", round=7), "round 7: no particle explains the record."),
        (
            ub.MissingExtra("the web page", "web"),
            'the web page needs an optional part of unbandit. Install it with: pip install "unbandit[web]"',
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


def test_a_quoted_cell_that_looks_like_an_option_is_shown_as_it_is():
    cell = "\ufdd0" + "[" * 3_000 + "\ufdd1"
    assert phrase(f'got "{cell}".').startswith('got "[[[[')
