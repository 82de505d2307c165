"""Whether a rule fits a log: the verdict of a check, and what it compared, in words; and numbers fitted from a log."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from unbandit.errors import Notice, NotIdentifiable
from unbandit.formatting import capitalise, fixed, joined, json_number, number, probability, short_numbers
from unbandit.tables import Finding, as_written_by, html_table, read_number

if TYPE_CHECKING:
    import polars
    from matplotlib.axes import Axes

SMALLEST = 1e-4  # a smaller probability is not written out
COARSE, LEAST_SHARE = 0.01, 1 - 1e-9  # probabilities below which simulations show none, down to this over their number

FitVerdict = Literal["fits", "does not fit", "not checked"]
ONE_BY_ONE = "switches, expected one by one"  # the statistic of rules whose decisions are predicted
STATISTIC_NUMBERS = ("observed", "low", "median", "high", "tail", "distance")
IF = ", if "  # between a rule that would fit and the condition under which it would


class Wording(NamedTuple):
    """How a statistic is said: "The log switches arms" 391 times; "this rule would switch" 160 to 210 times."""

    label: str  # in a table
    subject: str
    would: str
    unit: str = "time"
    where: str = ""  # which part of the log, as " in the first 125 rounds"
    logarithm: bool = False  # the statistic is the logarithm of what is said


def _in_one_row(values: Sequence[float]) -> Iterator[str]:
    """Write numbers with as many decimals each: those that three digits need; very small ones keep three digits."""
    written = [number(value, 3) for value in values]
    if any("e" in text for text in written) or min(map(abs, values)) < max(map(abs, values)) / 100:
        return iter(written)
    return map(partial(fixed, digits=max(len(text.partition(".")[2]) for text in written)), values)


@dataclass(frozen=True)
class Statistic:
    """One statistic of the record beside the simulated ones."""

    name: str
    observed: float
    low: float  # the middle 95% of the simulated ones
    median: float
    high: float
    tail: float  # two-sided probability of a value as far out, or further
    distance: float = 0.0  # from the centre of the simulated ones, in their standard deviations
    wording: Wording | None = None

    @property
    def outside(self) -> bool:
        """Return whether it lies outside of what is usual for the rule."""
        return not self.low <= self.observed <= self.high

    @property
    def said(self) -> tuple[str, str, str]:
        """Return what it is, the log's value and the usual range, for people."""
        label = self.wording.label if self.wording else self.name
        values = [self.observed, self.low, self.high]
        if self.wording and self.wording.logarithm:
            values = [math.exp(each) for each in values]
            observed, low, high = _in_one_row(values)
        elif self.observed == round(self.observed):  # a count: the whole numbers within the range
            ends = math.ceil(self.low), math.floor(self.high)
            whole = ends if ends[0] <= ends[1] else (round(self.low), round(self.high))
            observed, low, high = (f"{each:,.0f}" for each in (self.observed, *whole))
        else:
            observed, low, high = _in_one_row(values)
        return label, observed, low if low == high else f"{low} to {high}"

    @property
    def sentence(self) -> str:
        """Say how the log differs from what the rule would do."""
        label, observed, usual = self.said
        if self.wording is None:
            return f"{capitalise(label)}: {observed}; with this rule it would be {usual}."
        _, subject, would, unit, where, _ = self.wording
        units = [unit if text == "1" else f"{unit}s" for text in (observed, usual)]
        return f"{subject} {observed} {units[0]}{where}; {would} {usual} {units[1]}."


@dataclass(frozen=True, repr=False)
class Check(Finding):
    """Whether the assumed rule fits the record.

    Attributes
    ----------
    verdict
        `fits`, `does not fit` or `not checked`.
    p_value
        The probability that a record of the rule looks as unusual, at most; None where nothing was checked.
    simulations
        How many records were simulated for each demonstration.
    reason
        What looks different, why nothing was checked, or which part was, in whole sentences.
    statistics
        What was compared, the furthest from the simulated ones first; of several demonstrations, the worst one's.
    instead
        Rules that make the record about as probable as any does, where the assumed one does not fit.
    sigma
        The standard deviation of a reward that makes the record most probable, where none was given and the check
        could find one.
    """

    verdict: FitVerdict
    p_value: float | None = None
    simulations: int = 0
    reason: str | None = None
    statistics: tuple[Statistic, ...] = ()
    instead: tuple[str, ...] = ()
    checked: int = 0  # demonstrations
    failed: tuple[str, ...] = ()  # the names of those that do not fit
    weighed: bool = False  # whether the log's probability under the rule was compared with that under others
    sigma: float | None = None

    def __repr__(self) -> str:
        made = f", {self.chance}" if self.p_value is not None else ""
        made += f", {self.simulations:,} simulations" if self.simulations else ""
        return f"<Check: {self.verdict}{made}>"

    @property
    def chance(self) -> str:
        """Return the p-value in words: "p = 0.3", "p < 0.01", "p < 0.0001"; a dash where nothing was checked."""
        if self.p_value is None:
            return "-"
        if self.simulations and LEAST_SHARE / (self.simulations + 1) <= self.p_value < COARSE:
            return f"p < {COARSE:g}"  # so many simulations show no smaller ones
        return f"p = {self.p_value:.2g}" if self.p_value >= SMALLEST else f"p < {SMALLEST:.4f}"

    @property
    def unusual(self) -> tuple[Statistic, ...]:
        """Return what lies outside of what is usual for the rule, the furthest first, where the rule does not fit."""
        found = (each for each in self.statistics if each.outside and self.verdict == "does not fit")
        return tuple(sorted(found, key=lambda each: -each.distance))

    @property
    def brief(self) -> str:
        """Return the reason in a few words, for a table."""
        if self.unusual:
            label, observed, usual = self.unusual[0].said
            return f"{label}: {observed}, not {usual}"
        return (self.reason or "").partition(". ")[0].rstrip(".")

    def to_dict(self) -> dict[str, Any]:
        """Return the check in the form that `--json` prints."""
        listed = [
            {name: json_number(getattr(each, name)) for name in STATISTIC_NUMBERS}
            | {"name": each.name, "wording": None if each.wording is None else each.wording._asdict()}
            for each in self.statistics
        ]
        return {
            "verdict": self.verdict, "p_value": self.p_value, "simulations": self.simulations,
            "reason": self.reason, "statistics": listed, "instead": list(self.instead), "checked": self.checked,
            "failed": list(self.failed), "weighed": self.weighed, "sigma": self.sigma,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Check:
        """Return the check that `to_dict` gave."""
        listed = tuple(
            Statistic(
                each["name"], wording=Wording(**each["wording"]) if each.get("wording") else None,
                **{name: read_number(each.get(name)) for name in STATISTIC_NUMBERS},
            )
            for each in said["statistics"]
        )  # fmt: skip
        if said["verdict"] not in get_args(FitVerdict):
            raise ValueError(said["verdict"])
        return cls(**{**said, "statistics": listed, **{name: tuple(said[name]) for name in ("instead", "failed")}})

    @classmethod
    @as_written_by("Check")
    def from_json(cls, text: str | bytes) -> Check:
        """Return the check that `to_json` wrote; refuse anything else."""
        return cls.from_dict(json.loads(text))

    def to_frame(self) -> polars.DataFrame:
        """Return what was compared, one row per statistic: the log's, and the middle 95% of the simulated ones."""
        import polars as pl

        names = ("name", "observed", "low", "median", "high", "tail", "outside")
        kinds: dict[str, Any] = dict.fromkeys(names, pl.Float64) | {"name": pl.String, "outside": pl.Boolean}
        return pl.DataFrame([[getattr(row, name) for name in names] for row in self.statistics], kinds, orient="row")

    def plot(self, *, ax: Axes | None = None) -> Any:
        """Draw where the log lies among logs that the rule would make, by the statistics that are furthest out.

        Each bar has the middle 95% of the simulated logs; a log outside of it is a diamond. On `ax`, which is then
        returned; default a new figure.

        Raises
        ------
        NotIdentifiable
            If nothing was compared with simulated logs.
        """
        from unbandit.plots.posterior import draw_check

        if not self.statistics:
            because = f" {self.reason}" if self.reason else ""
            raise NotIdentifiable(f"Nothing was compared with simulated logs, so there is nothing to draw.{because}")
        return draw_check(self, ax=ax)

    def _repr_html_(self) -> str:
        """Show what was compared in words."""
        lines = [escape(self.reason)] if self.reason else []
        if self.instead:
            lines.append(escape(f"Rules that would fit: {', '.join(map(short_name, self.instead))}"))
        headings = ("statistic", "this log", "usual for the rule")
        said = [row.said for row in self.statistics]
        return html_table(headings, said, repr(self).strip("<>"), lines, (True, False, False))


@dataclass(frozen=True)
class FittedNumber:
    """A number of a rule, fitted from a log: its median, an interval, and how it was found.

    `parameter` is a combination of several where the log shows nothing else: `scale sqrt((T^alpha - 1) / alpha)`.
    Of a delay, and of how ties are broken, `value` is the most probable one, and `possible` has those that there are.
    """

    parameter: str
    value: Any  # a number, or the name of a way to break ties
    low: Any
    high: Any
    method: str
    note: str = ""  # what is to be said beside it
    possible: tuple[tuple[Any, float], ...] = ()  # values with their probabilities, where these are few

    def __post_init__(self) -> None:
        pairs = [tuple(each.values()) if isinstance(each, dict) else tuple(each) for each in self.possible]
        object.__setattr__(self, "possible", tuple(pairs))  # JSON has each as an object

    def to_dict(self) -> dict[str, Any]:
        """Return the number in the form that JSON has it; `possible` only where the values are few."""
        found = {name: getattr(self, name) for name in ("parameter", "value", "low", "high", "method")}
        pairs = [{"value": value, "probability": chance} for value, chance in self.possible]
        return found | ({"possible": pairs} if pairs else {})

    @property
    def said(self) -> str:
        """Return the number with its interval: `scale = 1.43 (1.21 to 1.69)`; of one that is certain, `batch = 5`."""
        return f"{self.parameter} = {self.shown}" + ("" if self.is_certain else f" ({self.said_interval})")

    @property
    def is_certain(self) -> bool:
        """Return whether no other value is possible."""
        return bool(self.low == self.high and len(self.possible) < 2)

    @property
    def shown(self) -> str:
        """Return the value as text."""
        return _short(self.value)

    @property
    def said_interval(self) -> str:
        """Return the interval as text, or how probable each value is where they are few."""
        if not self.possible:
            return f"{_short(self.low)} to {_short(self.high)}"
        return ", ".join(f"{_short(value)}: {probability(chance)}" for value, chance in self.possible)


def _short(value: Any) -> str:
    return value if isinstance(value, str) else number(value)


def fitted_notice(fitted: Sequence[FittedNumber], level: float, demonstrations: int = 1) -> Notice:
    """Say which numbers of a rule were fitted, and what they are."""
    numbers = "; ".join(each.said for each in fitted)
    how = f"Fitted from the log ({fitted[0].method})"
    ends = "" if all(each.is_certain for each in fitted) else f", with {level * 100:g}% intervals"
    text = f"{how}: {numbers}{ends}." + (" Every interval of the answer allows for it." if ends else "")
    if demonstrations > 1:
        text += " All demonstrations are assumed to share it; `population` lets it differ."
    return Notice("fitted", " ".join(filter(None, (text, *(each.note for each in fitted)))))


def not_checked(reason: str) -> Check:
    """Return a check that was not made."""
    return Check("not checked", reason=reason)


UNCHECKED = Check("not checked")


def short_name(name: str) -> str:
    """Write what would fit with short numbers in the rule, and the condition as it is."""
    rule, condition, rest = name.partition(IF)
    return short_numbers(rule) + condition + rest


def with_sigma(warnings: Sequence[Notice], found: Iterable[tuple[str, Check]]) -> list[Notice]:
    """Say beside a warning that sigma is assumed which one makes the log most probable, by the rules that fit."""
    known: dict[str, list[str]] = {}
    for name, check in found:
        if check.verdict == "fits" and check.sigma is not None:
            known.setdefault(f"{check.sigma:.2g}", []).append(name)
    if not known:
        return list(warnings)
    first, *others = (f"{sigma} under {joined(names)}" for sigma, names in known.items())
    more = f" ({'; '.join(others)})" if others else ""
    text = f"If you do not know it, try what makes the log most probable: {first}{more}."
    return [replace(each, text=f"{each.text} {text}") if each.code == "sigma-assumed" else each for each in warnings]
