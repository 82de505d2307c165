"""Values of the wrong type: each is refused by one of our errors, with a remedy, and never by an error of a library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unbandit as ub
from unbandit import checks
from unbandit.errors import UnbanditError
from unbandit.reporting.provenance import read_log

LOG = ub.ActionLog.from_actions([0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0])
RULE = "ucb:alpha=0.25"


def frame(**columns: Any) -> ub.ActionLog:
    return ub.ActionLog.from_frame(pl.DataFrame({"arm": ["A", "B"]} | columns))


HALF = "half of a surrogate pair"


class Alone:
    """An object that fails when it is compared."""

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("alone")

    __hash__ = object.__hash__


class Mute:
    """An object that fails when it is written."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in a folder of its own, in which no file may be left: a wrong value that passes for a path would be one."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    assert list(tmp_path.iterdir()) == []


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "sigma as text": (lambda: ub.estimate(LOG, RULE, sigma="0.5"), "without quotes"),  # type: ignore[arg-type]
    "horizon as text": (lambda: ub.estimate(LOG, RULE, horizon="12"), "without quotes"),  # type: ignore[arg-type]
    "bernoulli as text": (lambda: ub.estimate(LOG, RULE, bernoulli="no"), "True or False"),  # type: ignore[arg-type]
    "pool as text": (lambda: ub.estimate(LOG, RULE, pool="no"), "True or False"),  # type: ignore[arg-type]
    "an anchor as a list": (lambda: ub.estimate(LOG, RULE, anchor=[1]), '{"B": 0.4}'),  # type: ignore[arg-type]
    "a number as a rule": (lambda: ub.estimate(LOG, 3), "UCB(alpha=0.25)"),  # type: ignore[arg-type]
    "no rule": (lambda: ub.posterior(LOG, None, sigma=1), "UCB(alpha=0.25)"),  # type: ignore[arg-type]
    "a class as a rule": (lambda: ub.estimate(LOG, ub.UCB), "the class UCB"),  # type: ignore[arg-type]
    "a parameter without its name": (lambda: ub.UCB(0.25), "the names being"),
    "rule before log": (lambda: ub.estimate(ub.UCB(alpha=0.25), LOG), "The log comes before"),  # type: ignore[arg-type]
    "a rule as a log": (lambda: ub.estimate(ub.UCB(alpha=0.25), RULE), "The log comes first"),
    "candidates as a number": (lambda: ub.identify(LOG, 3), "ucb,thompson"),  # type: ignore[arg-type]
    "no path": (lambda: ub.ActionLog.read(None), "from_frame"),  # type: ignore[arg-type]
    "a path in bytes": (lambda: ub.ActionLog.read(b"log.csv"), "got bytes"),  # type: ignore[arg-type]
    "a list with no path": (lambda: ub.ActionLog.read(["log.csv", None]), "got NoneType"),  # type: ignore[list-item]
    "nothing to scan": (lambda: ub.ActionLog.scan(3), "got int"),  # type: ignore[arg-type]
    "text as bytes": (lambda: ub.ActionLog.from_bytes("arm"), "as bytes; got str"),  # type: ignore[arg-type]
    "no counts": (lambda: ub.ActionLog.from_counts(3), '{"A": 70, "B": 30}'),  # type: ignore[arg-type]
    "counts without arms": (lambda: ub.ActionLog.from_counts([1, 2]), '{"A": 70, "B": 30}'),  # type: ignore[list-item]
    "codes that are no integers": (lambda: ub.ActionLog.from_codes(np.array([0.5]), "AB"), "array of integers"),
    "arms that are no list": (lambda: ub.ActionLog.from_actions("AB", arms=3), "List every arm"),  # type: ignore[arg-type]
    "columns as text": (lambda: frame().from_frame(pl.DataFrame(), columns="arm"), '{"arm": "picked"}'),  # type: ignore[arg-type]
    "pandas' missing value": (lambda: ub.ActionLog.from_actions(["A", pd.NA, "B"]), "Fill it in"),
    "the same in a frame": (lambda: ub.ActionLog.from_frame(pd.DataFrame({"arm": ["A", pd.NA]})), "Fill it in"),
    "durations as arms": (lambda: frame(arm=[timedelta(1), timedelta(2)]), "Convert it to text"),
    "durations as demonstrations": (lambda: frame(demonstration=[timedelta(1)] * 2), "Convert it to text"),
    "objects as demonstrations": (lambda: frame(demonstration=pl.Series([object()] * 2, dtype=pl.Object)), "Convert"),
    "a Decimal that is no number": (lambda: ub.ActionLog.from_actions([Decimal("NaN"), Decimal(1)]), "Fill it in"),
    "an endless Decimal": (lambda: ub.ActionLog.from_actions([Decimal(1), Decimal("Infinity")]), "no name for one"),
    "counts of no number": (lambda: ub.ActionLog.from_counts({"A": Decimal("NaN"), "B": Decimal(1)}), "Fill it in"),
    "the same after an integer": (lambda: ub.ActionLog.from_actions([1, Decimal("NaN"), 2]), "Fill it in"),
    "the same after text": (lambda: ub.ActionLog.from_actions(["A", Decimal("sNaN")]), "Fill it in"),
    "a signal after a float": (lambda: ub.ActionLog.from_actions([1.5, Decimal("sNaN"), 2]), "Fill it in"),
    "a signal first": (lambda: ub.ActionLog.from_actions([Decimal("sNaN"), 1]), "Fill it in"),
    "a signal in a frame": (
        lambda: ub.ActionLog.from_frame(pd.DataFrame({"arm": [1, Decimal("sNaN")]}, dtype=object)),
        "Fill it in",
    ),
    "half of a pair": (lambda: ub.ActionLog.from_actions(["\ud800", "B"]), HALF),
    "the same in a frame of objects": (
        lambda: ub.ActionLog.from_frame(pd.DataFrame({"arm": ["\ud800", "B"]}, dtype=object)),
        HALF,
    ),
    "the same in arms": (
        lambda: ub.ActionLog.from_actions("AB", arms=["A", "B", "\ud800"]),
        HALF,
    ),
    "the same in counts": (lambda: ub.ActionLog.from_counts({"\ud800": 1, "B": 2}), HALF),
    "an object that compares with nothing": (lambda: ub.ActionLog.from_actions([Alone(), "B"]), "Convert it to text"),
    "the same as a reward": (lambda: ub.ActionLog.from_actions("AB", rewards=[Alone(), 1]), "Put None there"),
    "the same as a count": (lambda: ub.ActionLog.from_counts({"A": Alone(), "B": 1}), "Convert it to text"),
    "an object without text": (lambda: ub.ActionLog.from_actions([Mute(), "B"]), "got a value of type Mute (no words)"),
    "the same among arms": (lambda: ub.ActionLog.from_actions("AB", arms=["A", Mute()]), "got a value of type Mute"),
    "a report of a file that cannot be": (lambda: read_log("a\0b"), "no file can have"),
    "a report of a name that is too long": (lambda: read_log("a" * 5_000), "File name too long"),
    "a snapshot of such a name": (lambda: ub.StreamingEstimate(RULE, snapshot="a\0b"), "no file can have"),
    "a file of such a name": (lambda: LOG.write("a\ud800.csv"), "no file can have"),
    "seconds of numpy": (lambda: ub.ActionLog.from_actions(np.array([1, 2], "m8[s]")), "Convert it to text"),
    "years of numpy": (lambda: ub.ActionLog.from_actions(np.array([1, 2], "m8[Y]")), "Convert it to text"),
    "spans of numpy": (lambda: ub.ActionLog.from_actions(np.array([1, 2], "m8[W]")), "Convert it to text"),
    "rounds of 128 bits": (lambda: frame(round=pl.Series([1 << 100, 1], dtype=pl.Int128)), "Correct it"),
    "endless rewards": (lambda: ub.ActionLog.from_actions("AB", rewards=[10**400, 1]), "Put None there"),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_a_value_of_the_wrong_type_is_refused(
    call: Callable[[], object], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnbanditError) as caught:
        call()
    assert words in str(caught.value)
    assert caught.value.remedy
    assert capfd.readouterr() == ("", "")  # a panic of polars would be printed


class Stranger:
    """Something whose own description fails."""

    def __repr__(self) -> str:
        raise RuntimeError("no description")


# What must not pass for a number; each is refused by every parameter that is one.
NO_NUMBERS: dict[str, Any] = {
    "text": "0.5",
    "bytes": b"1",
    "a boolean": True,
    "a boolean of NumPy": np.bool_(True),
    "NaN": float("nan"),
    "infinity": float("inf"),
    "a list": [0.5],
    "an array": np.array([0.5, 0.5]),
    "a table": pd.DataFrame({"a": [0.5]}),
    "pandas' missing value": pd.NA,
    "pandas' missing time": pd.NaT,
    "a duration": timedelta(1),
    "a duration of NumPy": np.timedelta64(1, "s"),
    "a date of NumPy": np.datetime64("2020-01-01"),
    "a Decimal that is no number": Decimal("NaN"),
    "a Decimal that signals": Decimal("sNaN"),
    "a complex number": 0.5 + 0j,
    "a complex number of NumPy": np.complex128(0.5),
    "more digits than Python writes": 10**5_000,
    "a class": float,
    "a stranger": Stranger(),
}
NO_COUNTS = NO_NUMBERS | {"half of one": 0.5}
NO_FLAGS = {name: value for name, value in NO_NUMBERS.items() if "boolean" not in name} | {"a word": "no", "one": 1}
NO_CHOICES = NO_FLAGS | {"a boolean": True}
NO_TEXTS = {name: value for name, value in NO_CHOICES.items() if name != "one" and not isinstance(value, str)}
NO_FUNCTIONS = {name: value for name, value in NO_CHOICES.items() if not callable(value)}
NO_MEANS = NO_NUMBERS | {
    "an array": np.array(0.5),
    "arms with text": {"0": "0.5"},
    "arms with times": {"0": timedelta(1)},
}
REQUIRED = {"nothing": None}

BERNOULLI = ub.Instance([0.6, 0.4], ub.Bernoulli())
KNOWN: dict[str, Any] = {"log": LOG, "rule": RULE}
ANSWER = ub.estimate(**KNOWN, sigma=1, check=False)
DRAWS = ub.posterior(**KNOWN, sigma=1, check=False, particles=50, clouds=1, draws=10)
UCB = ub.UCB(alpha=0.25)

Refused = dict[str, dict[str, Any]]
PUBLIC: dict[str, tuple[Callable[..., object], dict[str, Any], Refused]] = {
    "estimate": (
        ub.estimate,
        KNOWN,
        {
            "log": REQUIRED, "rule": NO_CHOICES | REQUIRED, "method": NO_CHOICES, "best_mean": NO_NUMBERS,
            "anchor": NO_MEANS, "scale": NO_CHOICES | REQUIRED, "horizon": NO_COUNTS, "level": NO_NUMBERS | REQUIRED,
            "sigma": NO_NUMBERS, "bernoulli": NO_FLAGS | REQUIRED, "pool": NO_FLAGS | REQUIRED, "check": NO_FLAGS,
        },
    ),
    "estimate by ratios": (ub.estimate, KNOWN | {"scale": "unknown"}, {"reference": NO_NUMBERS}),
    "estimate by naive": (ub.estimate, KNOWN | {"method": "naive"}, {"constant": NO_NUMBERS}),
    "estimate by draws": (
        ub.estimate,
        KNOWN | {"method": "bootstrap", "sigma": 1.0},
        {"resamples": NO_COUNTS, "seed": NO_COUNTS, "prior": NO_CHOICES, "particles": NO_COUNTS},
    ),
    "posterior": (
        ub.posterior,
        KNOWN | {"sigma": 1.0},
        {
            "log": REQUIRED, "rule": NO_CHOICES, "prior": NO_CHOICES, "sigma": NO_NUMBERS, "bernoulli": NO_FLAGS,
            "best_mean": NO_NUMBERS, "anchor": NO_MEANS, "horizon": NO_COUNTS, "pool": NO_FLAGS, "check": NO_FLAGS,
            "particles": NO_COUNTS, "clouds": NO_COUNTS | REQUIRED, "draws": NO_COUNTS | REQUIRED,
            "seed": NO_COUNTS, "threads": NO_COUNTS,
        },
    ),
    "identify": (
        ub.identify,
        {"log": LOG, "candidates": RULE},
        {
            "log": REQUIRED, "candidates": NO_CHOICES | {"no rules": {"a": 3}}, "prior": NO_CHOICES,
            "sigma": NO_NUMBERS, "bernoulli": NO_FLAGS, "horizon": NO_COUNTS, "particles": NO_COUNTS,
            "seed": NO_COUNTS | REQUIRED, "threads": NO_COUNTS, "progress": NO_FUNCTIONS,
        },
    ),
    "check": (
        ub.check,
        {"log": LOG, "candidates": RULE},
        {
            "log": REQUIRED, "candidates": NO_CHOICES, "sigma": NO_NUMBERS, "bernoulli": NO_FLAGS,
            "horizon": NO_COUNTS, "best_mean": NO_NUMBERS, "level": NO_NUMBERS | REQUIRED,
            "seed": NO_COUNTS | REQUIRED, "progress": NO_FUNCTIONS,
        },
    ),
    "report": (
        ub.report,
        KNOWN,
        {
            "log": REQUIRED, "rule": NO_CHOICES, "name": NO_TEXTS, "command": NO_TEXTS, "truth": NO_MEANS,
            "progress": NO_FUNCTIONS, "sigma": NO_NUMBERS, "check": NO_FLAGS,
        },
    ),
    "plan": (
        ub.plan,
        {"instance": BERNOULLI, "rule": "ucb", "within": 0.1},
        {
            "instance": NO_CHOICES | REQUIRED, "rule": NO_CHOICES, "within": NO_NUMBERS | REQUIRED,
            "level": NO_NUMBERS, "longest": NO_COUNTS, "points": NO_COUNTS, "runs": NO_COUNTS, "seed": NO_COUNTS,
            "progress": NO_FUNCTIONS,
        },
    ),
    "leak": (
        ub.leak,
        {"instance": BERNOULLI, "rule": "ucb", "horizon": 20},
        {"instance": NO_CHOICES | REQUIRED, "rule": NO_CHOICES, "horizon": NO_COUNTS, "runs": NO_COUNTS},
    ),
    "learning_curve": (
        ub.learning_curve,
        KNOWN,
        {"demonstration": NO_NUMBERS, "points": NO_COUNTS | REQUIRED, "sigma": NO_NUMBERS},
    ),
    "switching_moment": (ub.switching_moment, KNOWN | {"sigma": 1}, {"arm": NO_NUMBERS, "estimate": NO_CHOICES}),
    "switching_rounds": (ub.switching_rounds, KNOWN, {"demonstration": NO_NUMBERS}),
    "sensitivity": (ub.sensitivity, KNOWN, {"sigma": NO_NUMBERS}),
    "demonstrate": (
        UCB.demonstrate,
        {"instance": BERNOULLI, "horizon": 20},
        {
            "instance": NO_CHOICES | REQUIRED, "horizon": NO_COUNTS | REQUIRED, "runs": NO_COUNTS, "seed": NO_COUNTS,
            "threads": NO_COUNTS, "first_run": NO_COUNTS, "device": NO_CHOICES,
        },
    ),
    "evidence": (
        UCB.evidence,
        {"instance": BERNOULLI, "horizon": 20},
        {"instance": NO_CHOICES, "length": NO_COUNTS, "draw": NO_CHOICES, "device": NO_CHOICES},
    ),
    "demonstrate_at": (
        UCB.demonstrate_at,
        {"means": np.array([[0.6, 0.4]]), "noise": ub.Bernoulli(), "horizon": 20},
        {
            "means": NO_NUMBERS, "noise": NO_NUMBERS, "horizon": NO_COUNTS, "length": NO_COUNTS, "first_run": NO_COUNTS,
        },
    ),
    "Study": (
        ub.Study,
        {"instances": "two-armed", "rules": "ucb", "horizons": 20, "runs": 4},
        {
            "instances": NO_CHOICES, "rules": NO_CHOICES, "runs": NO_COUNTS, "seed": NO_COUNTS,
            "estimators": NO_CHOICES, "level": NO_NUMBERS,
        },
    ),
    "Study.run": (
        ub.Study("two-armed", "ucb", 20, 4).run,
        {"folder": "never"},
        {"folder": NO_TEXTS, "executor": NO_CHOICES, "address": NO_TEXTS, "wait": NO_NUMBERS, "say": NO_FUNCTIONS},
    ),
    "Study.read": (ub.Study.read, {"path": "never.toml"}, {"path": NO_TEXTS, "runs": NO_COUNTS, "seed": NO_COUNTS}),
    "StreamingEstimate": (
        ub.StreamingEstimate,
        {"rule": RULE},
        {"rule": NO_CHOICES, "snapshot": NO_TEXTS, "sigma": NO_NUMBERS, "method": NO_CHOICES, "pool": NO_FLAGS},
    ),
    "Instance": (
        ub.Instance,
        {"means": [1.0, 0.5]},
        {"means": NO_MEANS | {"texts": ["1", "2"], "flags": [True, False]}, "noise": NO_NUMBERS, "name": NO_TEXTS},
    ),
    "Gaussian": (ub.Gaussian, {}, {"sigma": NO_NUMBERS | REQUIRED}),
    "NormalPrior": (ub.NormalPrior, {}, {"mean": NO_NUMBERS | REQUIRED, "deviation": NO_NUMBERS | REQUIRED}),
    "BetaPrior": (ub.BetaPrior, {}, {"successes": NO_NUMBERS, "failures": NO_NUMBERS}),
    "parse_prior": (ub.parse_prior, {}, {"text": NO_CHOICES | REQUIRED}),
    "parse_rule": (ub.parse_rule, {}, {"text": NO_CHOICES | REQUIRED}),
    "ContextInstance": (
        ub.ContextInstance,
        {"theta": [1.0, 0.5]},
        {"theta": {"texts": ["1", "2"], "flags": [True, False], "a text": "1"}, "sigma": NO_NUMBERS | REQUIRED},
    ),
    "ContextLog.read": (
        ub.ContextLog.read,
        {"table": "never.csv", "features": ["x"]},
        {"table": NO_TEXTS, "features": NO_TEXTS, "columns": NO_TEXTS},
    ),
    "demonstrate by features": (
        ub.LinUCB().demonstrate,
        {"instance": ub.ContextInstance([1.0]), "contexts": [[[1.0], [2.0]]]},
        {
            "instance": NO_CHOICES | REQUIRED, "contexts": NO_MEANS, "runs": NO_COUNTS, "seed": NO_COUNTS,
            "threads": NO_COUNTS, "first_run": NO_COUNTS, "rewards": NO_FLAGS,
        },
    ),
    "Tape": (ub.Tape, {}, {"seed": NO_COUNTS | REQUIRED}),
    "Tape.normal": (ub.Tape(1).normal, {"run": 0, "arm": 0, "pull": 1}, {"run": NO_COUNTS, "pull": NO_COUNTS}),
    "datasets.load": (ub.datasets.load, {"name": "linear"}, {"name": NO_CHOICES, "arms": NO_COUNTS}),
    "datasets.battery": (ub.datasets.battery, {}, {"regime": NO_CHOICES, "arms": NO_COUNTS}),
    "shrinking_gap": (
        ub.datasets.shrinking_gap,
        {"horizon": 9, "beta": 1},
        {"horizon": NO_NUMBERS, "beta": NO_NUMBERS},
    ),
    "theory.slope": (ub.theory.tradeoff_slope, {}, {"power": NO_NUMBERS}),
    "select": (LOG.select, {"which": 0}, {"which": NO_COUNTS | REQUIRED, "rounds": NO_COUNTS}),
    "tallied": (LOG.tallied, {}, {"need": NO_CHOICES}),
    "write": (LOG.write, {}, {"path": NO_TEXTS}),
    "plot of a log": (LOG.plot, {}, {"kind": NO_CHOICES, "demonstration": NO_NUMBERS, "switching": NO_MEANS}),
    "plot": (ANSWER.plot, {}, {"kind": NO_CHOICES, "truth": NO_TEXTS, "unit": NO_NUMBERS, "label": NO_TEXTS}),
    "ranked": (ANSWER.ranked, {}, {"demonstration": NO_NUMBERS}),
    "to_netcdf": (DRAWS.to_netcdf, {}, {"path": NO_TEXTS | REQUIRED}),
}  # fmt: skip


def of_rule(rule: type[ub.Demonstrator] | type[ub.LinearRule]) -> Refused:
    """Return what is refused for each parameter of a rule; one of them must be 1."""
    numbers = (int, float, float | None, int | None)
    kinds = {name: field.annotation for name, field in rule.model_fields.items()}
    others: dict[Any, Any] = {bool: NO_FLAGS, Literal[1]: NO_TEXTS, Any: NO_COUNTS}  # any for a delay
    return {name: NO_NUMBERS if kind in numbers else others.get(kind, NO_CHOICES) for name, kind in kinds.items()}


PUBLIC |= {f"rule {name}": (rule, {}, of_rule(rule)) for name, rule in (ub.rules() | ub.linear_rules()).items()}
CASES = [(name, parameter) for name, (_, _, refused) in PUBLIC.items() for parameter in refused]


@pytest.mark.parametrize(("name", "parameter"), CASES, ids=["-".join(case) for case in CASES])
def test_no_public_parameter_takes_what_it_is_not(name: str, parameter: str) -> None:
    function, given, refused = PUBLIC[name]
    for what, value in refused[parameter].items():
        with pytest.raises(UnbanditError) as caught:
            pytest.fail(f"{name} takes {what} as {parameter}: {function(**given | {parameter: value})}")
        assert 10 < len(str(caught.value)) < 700, what
        assert "\n" not in str(caught.value), what


def test_numbers_of_other_kinds_are_numbers() -> None:
    half: Any = Decimal("0.5")
    three: Any = np.int16(3)
    assert ub.UCB(alpha=half, initial=three) == ub.UCB(alpha=0.5, initial=3)
    plain = ub.estimate(LOG, RULE, sigma=0.5, level=0.5, best_mean=0.5, check=False)
    number: Any
    for number in (half, np.float32(0.5), np.array(0.5)):
        other = ub.estimate(LOG, RULE, sigma=number, level=number, best_mean=number, check=False)
        assert other.to_json() == plain.to_json()
        assert str(ub.UCB(alpha=number)) == "ucb:alpha=0.5,scale=1.4142135623730951"
    assert ub.Instance([half, three], noise=half).means.tolist() == [0.5, 3.0]
    assert checks.numbers("x", pl.Series([1, 2])).tolist() == [1.0, 2.0]


def test_types_that_only_look_odd_are_read() -> None:
    wide = pl.Series([7, 1 << 100], dtype=pl.Int128)
    assert frame(arm=wide).arms == ("7", str(1 << 100))
    assert frame(arm=pl.Series([7, 8], dtype=pl.UInt128)).arms == ("7", "8")
    assert frame(demonstration=wide).demonstrations == ("7", str(1 << 100))
    assert ub.ActionLog.from_actions("AB", rewards=[pd.NA, Decimal("0.5")]).rewards.tolist()[1] == 0.5  # type: ignore[union-attr]
    months = pd.period_range("2026-01", periods=2, freq="M")
    for log in (ub.ActionLog.from_frame(pd.DataFrame({"arm": months})), ub.ActionLog.from_actions(pd.Series(months))):
        assert log.arms == ("2026-01", "2026-02")
    assert ub.ActionLog.from_actions([Decimal("1e400"), 1]).arms == ("1", "1E+400")
    assert ub.ActionLog.from_bytes(bytearray(b"arm\nA\nB\n")).arms == ("A", "B")  # type: ignore[arg-type]
