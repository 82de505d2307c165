"""How the time grows with the work: fitted exponents, and the picture `docs/growth.png`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.report import Row
from bench.setting import QUICK, RULE, Effort, instance_of
from unbandit import UCB1

PICTURE = Path(__file__).parents[1] / "docs" / "growth.png"

A_DEMONSTRATION = 100  # pulls an arm, whatever their number
ROUNDS = 1 << 20  # timed at each number of arms


@dataclass(frozen=True)
class Curve:
    """Hold times over sizes, and the law that they are held against.

    Attributes
    ----------
    panel
        What grows: rounds, runs or arms.
    name
        What is done.
    sizes, seconds
        How much of it, and how long it took; against arms, seconds a round.
    limit
        The largest exponent that keeps the promise, with room for the error of measuring; None where nothing is
        promised.
    """

    panel: str
    name: str
    sizes: NDArray[np.float64]
    seconds: NDArray[np.float64]
    limit: float | None = None

    def fitted_part(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sizes and times that a law is fitted to: over arms the larger half, where it shows."""
        first = self.sizes.size // 2 if self.panel == "arms" else 0
        return self.sizes[first:], self.seconds[first:]

    def exponent(self) -> tuple[float, float]:
        """Return the slope of log time over log size, and its standard error."""
        return fitted(*self.fitted_part())

    def exponent_of_logarithm(self) -> tuple[float, float]:
        """Return the slope of log time over log log2 size: at most 1 is at most logarithmic."""
        sizes, seconds = self.fitted_part()
        return fitted(np.log2(sizes), seconds)


def fitted(sizes: NDArray[np.float64], seconds: NDArray[np.float64]) -> tuple[float, float]:
    """Fit `log seconds = a + b log size` by least squares; return `b` and its standard error.

    >>> fitted(np.array([1.0, 2.0, 4.0]), np.array([3.0, 6.0, 12.0]))
    (1.0, 0.0)
    """
    x, y = np.log(sizes), np.log(seconds)
    x = x - x.mean()
    slope = float(x @ y / (x @ x))
    left = y - y.mean() - slope * x
    return round(slope, 12), round(float(np.sqrt(left @ left / (x.size - 2) / (x @ x))), 12)


def powers(first: int, last: int, step: int = 1) -> list[int]:
    return [1 << power for power in range(first, last + 1, step)]


def timed(
    panel: str, name: str, sizes: Sequence[int], call: Callable[[int], Callable[[], Any]], rounds: Callable[[int], int],
    repeats: int, limit: float | None = 1.05,
) -> Curve:  # fmt: skip
    """Time a call at each size, all sizes in turn; each once before, so that its tables are there.

    Processor time, not the clock's: a long call is interrupted more often than a short one, which would bend the curve.
    """
    best = dict.fromkeys(sizes, float("inf"))
    for _ in range(repeats):
        for size in sizes:
            work = call(size)
            work()
            start = time.process_time()
            work()
            best[size] = min(best[size], (time.process_time() - start) / rounds(size))
    seconds = np.array([best[size] for size in sizes])
    return Curve(panel, name, np.array(sizes, np.float64), seconds, limit)


def curves(effort: Effort) -> list[Curve]:
    """Measure all curves; those over arms play 100 pulls an arm, the same number of rounds in all."""
    small = effort is QUICK
    found = []
    for arms in (2, 20, 224):
        play = partial(_log, arms)
        found.append(
            timed("rounds", f"full log, K={arms}", powers(16, 18 if small else 23), play, _once, effort.repeats)
        )
    horizons = powers(17, 20 if small else 31, 1 if small else 2)
    found.append(timed("rounds", "drawing what decides, K=2", horizons, _needed, _several, effort.repeats))
    for arms in (4, 224):
        many = partial(_runs, arms)
        found.append(
            timed("runs", f"counts only, K={arms}", powers(6, 8 if small else 13), many, _once, effort.repeats)
        )
    several = powers(1, 6 if small else 14)
    for name, way in (("full log", "demonstrate"), ("counts only", "evidence")):
        found.append(timed("arms", f"UCB, {name}", several, partial(_arms, way), _played, effort.repeats))
    few = powers(1, 6 if small else 8)
    found.append(
        timed("arms", "UCB1, full log: uses the round", few, _compared, _compared_rounds, effort.repeats, None)
    )
    return found


def _once(_: int) -> int:
    return 1


def _log(arms: int, horizon: int) -> Callable[[], Any]:
    return partial(RULE.demonstrate, instance_of(arms), horizon, threads=1)


SEVERAL = 20  # demonstrations that draw only what decides: how long one takes depends on its path


def _several(_: int) -> int:
    return SEVERAL


def _needed(horizon: int) -> Callable[[], Any]:
    return partial(RULE.evidence, instance_of(2), horizon, runs=SEVERAL, threads=1, draw="needed")


def _runs(arms: int, runs: int) -> Callable[[], Any]:
    return partial(RULE.evidence, instance_of(arms), 2_000, runs=runs, threads=1)


def _share(arms: int) -> tuple[int, int]:
    """Return rounds and runs that give every arm 100 pulls, on average."""
    horizon = A_DEMONSTRATION * arms
    return horizon, max(1, ROUNDS // horizon)


def _played(arms: int) -> int:
    horizon, runs = _share(arms)
    return horizon * runs


def _arms(way: str, arms: int) -> Callable[[], Any]:
    horizon, runs = _share(arms)
    return partial(getattr(RULE, way), instance_of(arms), horizon, runs=runs, threads=1)


def _compared_rounds(arms: int) -> int:
    return A_DEMONSTRATION * arms * max(1, 512 // arms)


def _compared(arms: int) -> Callable[[], Any]:
    horizon = A_DEMONSTRATION * arms
    return partial(UCB1().demonstrate, instance_of(arms), horizon, runs=max(1, 512 // arms), threads=1)


def compare(effort: Effort) -> list[Row]:
    """Measure, draw the picture unless in a hurry, and return one row a curve."""
    found = curves(effort)
    if effort is not QUICK:
        from bench.growth_picture import draw

        draw(found, PICTURE)
    return [row(curve) for curve in found if curve.limit is not None]


LAWS = {"rounds": "time over rounds", "runs": "time over runs", "arms": "time of a round over log K"}


def row(curve: Curve) -> Row:
    """Write a curve's exponent with its error; over arms the exponent of log K: at most logarithmic is at most 1."""
    slope, error = curve.exponent_of_logarithm() if curve.panel == "arms" else curve.exponent()
    against = "logarithmic" if curve.panel == "arms" else "linear"
    reach, reached = ("", None) if curve.limit is None else (f"at most {curve.limit:g}", slope <= curve.limit)
    since = f", from K={curve.fitted_part()[0][0]:.0f} on" if curve.panel == "arms" else ""
    title = f"Exponent of {LAWS[curve.panel]}: {curve.name}{since}"
    return Row(title, f"{slope:.3f} ± {error:.3f}", against, f"{slope:.3f} ± {error:.3f}", reach, reached)
