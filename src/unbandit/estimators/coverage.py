"""How often intervals held the truth in simulations like a given log: the rows of `coverage.csv` that fit it.

`make calibration-page` writes that file from what `unbandit calibrate` measured.
"""

import csv
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

from unbandit._version import __version__
from unbandit.demonstrators import Demonstrator
from unbandit.formatting import counted, short_numbers
from unbandit.instance import Gaussian, Noise
from unbandit.result import Quantity

LEVEL = 0.95  # of the intervals that were simulated
MOST_ARMS_RATIO, MOST_ROUNDS_RATIO = 2.0, 4.0  # by which a simulation may have more or fewer, and still be like a log


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

    def __str__(self) -> str:
        where = f"{short_numbers(self.rule)}, {counted(self.arms, 'arm')}, {counted(self.rounds, 'round')}"
        older = "" if self.version == __version__ else f", measured by unbandit {self.version}"
        held = f"{100 * self.coverage:.1f}% of cases (± {100 * self.error:.1f}%, {counted(self.runs, 'run')}{older})"
        return f"In simulations like this one ({where}) {LEVEL:.0%} intervals of {self.quantity}s held in {held}."


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


def coverage_like(
    method: str, quantity: Quantity, rule: Demonstrator, bernoulli: bool, arms: int, rounds: int,
    table: Iterable[SimulatedCoverage] | None = None,
) -> SimulatedCoverage | None:  # fmt: skip
    """Return the simulations most like a log: of the same rule, if possible with its parameters, and nearest in size.

    None if there are none with half to twice as many arms, and a quarter to four times as many rounds.
    """
    kind = "bernoulli" if bernoulli else "gaussian"

    def distance(row: SimulatedCoverage) -> tuple[bool, float]:
        return row.rule != str(rule), _apart(row.arms, arms) + _apart(row.rounds, rounds)

    near = [
        row
        for row in (shipped_coverages() if table is None else table)
        if (row.method, row.quantity, row.noise, row.rule.partition(":")[0]) == (method, quantity, kind, rule.name)
        and _apart(row.arms, arms) <= math.log(MOST_ARMS_RATIO)
        and _apart(row.rounds, rounds) <= math.log(MOST_ROUNDS_RATIO)
    ]
    return min(near, key=distance, default=None)


def _apart(one: int, other: int) -> float:
    return abs(math.log(one / other))
