"""How often intervals held the truth in simulations like a given log: the rows of `coverage.csv` that fit it.

`make calibration-page` writes that file from what `unbandit calibrate` measured.
"""

import csv
import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from unbandit._version import __version__
from unbandit.demonstrators import Demonstrator
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.demonstrators.rule import Rule
from unbandit.demonstrators.widths import RegretWidth
from unbandit.formatting import counted, number, short_numbers
from unbandit.instance import Gaussian, Noise

LEVEL = 0.95  # of the intervals that were simulated
SIGMA = 0.5  # of the Gaussian rewards that are simulated, where means have a standard deviation of 1
MOST_ARMS_RATIO, MOST_ROUNDS_RATIO = 2.0, 4.0  # by which a simulation may have more or fewer, and still be like a log
MOST_NUMBERS_RATIO = 2.0  # by which sigma and a rule's numbers may be larger or smaller
ROUNDED = 0.001  # by how much a number may differ and count as the same: 1.414 as the square root of 2
FITTED, CONTEXTS = "fit", "contexts"  # methods: numbers of the rule fitted, and logs with features


@dataclass(frozen=True)
class SimulatedCoverage:
    """How often 95% intervals held the truth in the simulations of one rule, number of arms and number of rounds."""

    method: str
    quantity: str  # mean or gap
    rule: str
    noise: str
    arms: int
    rounds: int
    coverage: float
    error: float  # Monte-Carlo standard error
    runs: int
    version: str  # of the program that measured it
    features: int = 0  # of each offer, in logs with features

    def quoted(self, differences: str = "") -> str:
        """Return the sentence that a report quotes; `differences` are those between the log and the simulations."""
        which = "the nearest simulations" if differences else "simulations like this one"
        sizes = (counted(self.features, "feature"), counted(self.arms, "arm"), counted(self.rounds, "round"))
        where = ", ".join((short_numbers(self.rule), *sizes[0 if self.features else 1 :]))
        where += f"; {differences}" if differences else ""
        held = f"{LEVEL:.0%} intervals of {self.quantity}s held the truth in {100 * self.coverage:.1f}% of cases"
        older = "" if self.version == __version__ else f", measured by unbandit {self.version}"
        whose = "" if self.method in ("posterior", CONTEXTS) else "; arms with the verdict estimated"
        return f"In {which} ({where}) {held} (± {100 * self.error:.1f}%, {counted(self.runs, 'run')}{older}{whose})."


@cache
def shipped_coverages() -> tuple[SimulatedCoverage, ...]:
    """Return every row of the table that comes with the package."""
    text = resources.files("unbandit.estimators").joinpath("coverage.csv").read_text(encoding="utf-8")
    types: dict[str, Any] = {each.name: each.type for each in fields(SimulatedCoverage)}
    rows = csv.DictReader(text.splitlines())
    return tuple(SimulatedCoverage(**{name: types[name](value) for name, value in row.items()}) for row in rows)


def coverages_csv(rows: Iterable[SimulatedCoverage]) -> str:
    """Write the table."""
    names = [each.name for each in fields(SimulatedCoverage)]
    lines = [names, *([_written(value) for value in asdict(row).values()] for row in rows)]
    return "".join(",".join(f'"{cell}"' if "," in cell else cell for cell in line) + "\n" for line in lines)


def _written(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def noise_kind(noise: Noise) -> str:
    """Return the kind of noise as the table has it."""
    return "gaussian" if isinstance(noise, Gaussian) else "bernoulli"


def quote_coverage(
    method: str, quantity: str, rule: Rule, sigma: float | None, arms: int, rounds: int,
    table: Iterable[SimulatedCoverage] | None = None, **how: Any,
) -> str:  # fmt: skip
    """Say how often intervals held in the simulations most like a log, or that there are none; as `coverage_like`."""
    row, difference = coverage_like(method, quantity, rule, sigma, arms, rounds, table, **how)
    return none_like(difference) if row is None else row.quoted(difference)


def none_like(difference: str) -> str:
    """Say that there are no simulations like a log; `difference` begins with none: `none with batch=20`."""
    return f"No simulation like this one was run ({difference}), so how often these intervals hold was not measured."


def _example(text: str) -> Rule:
    """Read a rule; of one with numbers to be fitted, an example."""
    found = rule_or_family(text)
    return found.example if isinstance(found, RuleFamily) else found


def coverage_like(
    method: str, quantity: str, rule: Rule, sigma: float | None, arms: int, rounds: int,
    table: Iterable[SimulatedCoverage] | None = None, *, fitted: Collection[str] = (), features: int = 0,
    read: Callable[[str], Rule] = _example,
) -> tuple[SimulatedCoverage | None, str]:  # fmt: skip
    """Return the simulations most like a log, and how they differ from it: None, and why, if none are like it.

    `sigma` is None of rewards of 0 and 1. `fitted` names numbers of the rule that were fitted, and `read` reads rules.

    They are of the same rule, decide in the same way (`_structure`), have half to twice its numbers and half to twice
    as many arms, and a quarter to four times as many rounds. The same numbers come first, then the nearest.
    """
    kind, structure = "gaussian" if sigma is not None else "bernoulli", _structure(rule, arms, fitted)
    numbers = _numbers(rule, fitted)
    rows = [row for row in (shipped_coverages() if table is None else table) if row.method == method]
    played = {text: read(text) for text in {row.rule for row in rows if _name(row.rule) == rule.name}}
    free = {text for text in played if {part.partition("=")[0] for part in _settings(text, "=fit")} == set(fitted)}
    alike = {text for text, other in played.items() if _structure(other, arms, fitted) == structure}
    apart = {text: _numbers_apart(numbers, _numbers(played[text], fitted)) for text in alike}
    limit = math.log(MOST_NUMBERS_RATIO) + 1e-9
    near = {text for text, distance in apart.items() if distance <= limit}
    for difference, like in (
        (f"none of the method {method}", lambda row: True),
        (f"none of the rule {rule.name}", lambda row: row.rule in played),
        (f"none with {' and '.join(fitted)} fitted", lambda row: row.rule in free),
        (f"none of {quantity}s", lambda row: row.quantity == quantity),
        (f"none with {'rewards of 0 and 1' if sigma is None else 'normal rewards'}", lambda row: row.noise == kind),
        (f"none with {_unusual(rule)}", lambda row: row.rule in alike),
        ("none with parameters near these", lambda row: row.rule in near),
        (f"none with sigma near {number(sigma)}", lambda row: sigma is None or _apart(sigma, SIGMA) <= limit),
        (f"none with about {counted(arms, 'arm')}", lambda row: _apart(row.arms, arms) <= math.log(MOST_ARMS_RATIO)),
        (
            f"none with about {counted(rounds, 'round')}",
            lambda row: _apart(row.rounds, rounds) <= math.log(MOST_ROUNDS_RATIO),
        ),
        (
            f"none with about {counted(features, 'feature')}",
            lambda row: not features or _apart(row.features, features) <= math.log(MOST_ARMS_RATIO),
        ),
    ):
        rows = [row for row in rows if like(row)]
        if not rows:
            return None, difference

    def distance(row: SimulatedCoverage) -> tuple[float, float]:
        by_features = _apart(row.features, features) if features else 0.0
        return apart[row.rule], _apart(row.arms, arms) + _apart(row.rounds, rounds) + by_features

    found = min(rows, key=distance)
    differences = ["your rule has other parameters"] if apart[found.rule] > ROUNDED else []
    if sigma is not None and sigma != SIGMA:
        differences.append(f"sigma {SIGMA:g} where yours is {number(sigma)}")
    return found, ", ".join(differences)


def _name(rule: str) -> str:
    return rule.partition(":")[0]


def _settings(rule: str, ending: str) -> list[str]:
    return [part for part in rule.partition(":")[2].split(",") if part.endswith(ending)]


def _structure(rule: Rule, arms: int, fitted: Collection[str]) -> dict[str, object]:
    """Return what decides how a rule works rather than how far it goes: words, whole numbers, and what is not set."""
    values = (rule.for_arms(arms) if isinstance(rule, Demonstrator) else rule).model_dump()
    named = (*fitted, *(("scale", "sigma") if isinstance(rule, RegretWidth) else ()))  # two ways to give one number
    return {key: type(each) if isinstance(each, float) else each for key, each in values.items() if key not in named}


def _numbers(rule: Rule, fitted: Collection[str]) -> dict[str, float]:
    """Return a rule's numbers that may be any, but for those that were fitted."""
    numbers = {key: value for key, value in rule.model_dump().items() if isinstance(value, float)}
    if isinstance(rule, RegretWidth):
        numbers = {key: value for key, value in numbers.items() if key != "sigma"} | {"scale": rule.factor}
    return {key: value for key, value in numbers.items() if key not in fitted}


def _unusual(rule: Rule) -> str:
    """Name the parameters that set how a rule works, where they are not its defaults."""
    fields_of, values = type(rule).model_fields, rule.model_dump()
    set_otherwise = [
        f"{key}={value}"
        for key, value in values.items()
        if not isinstance(value, float) and value is not None and value != fields_of[key].default
    ]
    return ", ".join(set_otherwise) or "its default settings"


def _numbers_apart(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Return the largest logarithm of a ratio between numbers; infinite between 0 and another number."""
    pairs = [(one[key], other[key]) for key in one]
    return max((_apart(mine, theirs) for mine, theirs in pairs if mine != theirs), default=0.0)


def _apart(one: float, other: float) -> float:
    return abs(math.log(one / other)) if one * other > 0 else math.inf
