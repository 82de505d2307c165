"""Statistics over runs with their Monte-Carlo errors: of any statistic by the delete-a-group jackknife.

A statistic is computed from all runs and again without each group ("fold") of them; the scatter of these *replicates*,
shape (folds + 1, ...), is its error, with no formula, whatever runs have in common. By hand because
`scipy.stats.bootstrap` needs every run in memory, where the jackknife needs the sums of twenty folds.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

LEVEL = 0.95

FOLDS = 20  # groups of runs: enough to know an error to about a sixth of itself
RANKS = 99  # number of draws among which the true mean's rank is taken: ranks run from 0 to this number
RANK_BINS = 20  # number of bins into which ranks are counted
FEWEST_RANKS = 5  # fewest ranks that a bin must be expected to hold for the test to be worth anything


@dataclass(frozen=True)
class Measured:
    """A statistic with its Monte-Carlo standard error; numbers, or arrays of them."""

    value: Any
    error: Any
    folds: int  # how many groups the error comes from; 0 for a computed value, which has no error

    @property
    def low(self) -> Any:
        """Return the lower end of the 95% interval."""
        return self.interval(LEVEL)[0]

    @property
    def high(self) -> Any:
        """Return the upper end of the 95% interval."""
        return self.interval(LEVEL)[1]

    def interval(self, level: float) -> tuple[Any, Any]:
        """Return both ends of an interval (Student's t with `folds - 1` degrees of freedom)."""
        from scipy.special import stdtrit

        reach = stdtrit(self.folds - 1, 0.5 + level / 2) * self.error if self.folds else 0.0
        return self.value - reach, self.value + reach


@dataclass(frozen=True)
class Share(Measured):
    """A share `held / runs` of runs, whose interval is exact even where the share is 0 or 1."""

    held: int
    runs: int

    def interval(self, level: float) -> tuple[float, float]:
        """Return both ends of an interval (Clopper and Pearson)."""
        low, high = exact_interval(self.held, self.runs, level)
        return float(low), float(high)


def computed(value: float) -> Measured:
    """Return a value that was computed rather than simulated: it has no error."""
    return Measured(float(value), 0.0, 0)


def share(held: float, runs: float) -> Share:
    """Return the share of independent runs in which something holds; NaN of none."""
    if not runs:
        return Share(math.nan, math.nan, 1, 0, 0)
    value = held / runs
    return Share(value, float(np.sqrt(value * (1 - value) / runs)), 1, round(held), round(runs))


def exact_interval(held: ArrayLike, among: ArrayLike, level: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact (Clopper-Pearson) interval of a share; from 0 to 1 where there are no runs.

    >>> low, high = exact_interval([95, 0, 5, 0], [100, 5, 5, 0], 0.95)
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.887, 0.0, 0.478, 0.0], [0.984, 0.522, 1.0, 1.0])
    """
    from scipy.special import betaincinv

    hits, misses = np.asarray(held, np.float64), np.asarray(among, np.float64) - np.asarray(held, np.float64)
    tail = (1 - level) / 2
    low = betaincinv(np.maximum(hits, 1), misses + 1, tail)
    high = betaincinv(hits + 1, np.maximum(misses, 1), 1 - tail)
    return np.where(hits > 0, low, 0.0), np.where(misses > 0, high, 1.0)


def measured(replicates: ArrayLike) -> Measured:
    """Return the statistic and its standard error from its replicates.

    `error^2 = (F - 1)/F sum_f (theta_f - mean of theta_f)^2` with F folds, theta_f the statistic without fold f.

    The jackknife error of a mean of three numbers is its standard error.

    >>> numbers = np.array([1.0, 2.0, 6.0])
    >>> mean = measured([numbers.mean(), *((numbers.sum() - number) / 2 for number in numbers)])
    >>> mean.value, round(mean.error, 6) == round(float(numbers.std(ddof=1) / np.sqrt(3)), 6)
    (3.0, True)
    """
    values = np.asarray(replicates, dtype=np.float64)
    whole, parts = values[0], values[1:]
    folds = len(parts)
    error = np.sqrt((folds - 1) / folds * np.square(parts - parts.mean(axis=0)).sum(axis=0))
    if values.ndim == 1:
        return Measured(float(whole), float(error), folds)
    return Measured(whole, error, folds)


def replicates(statistic: Callable[..., Any], *per_run: NDArray[Any]) -> NDArray[np.float64]:
    """Return the replicates of a statistic, which is a function of arrays with one row per run."""
    runs = np.arange(len(per_run[0]))
    folds = max(1, min(FOLDS, runs.size))
    kept = [runs >= 0, *(runs % folds != fold for fold in range(folds))]
    return np.array([statistic(*(values[keep] for values in per_run)) for keep in kept], dtype=float)


def slope(x: ArrayLike, y: ArrayLike, where: NDArray[np.bool_] | None = None) -> NDArray[np.float64]:
    """Return the slope of the least-squares line through points, along the last axis; NaN for fewer than two.

    >>> slope([1.0, 2.0, 3.0], [[2.0, 4.0, 6.0], [0.0, -1.0, -2.0]]).tolist()
    [2.0, -1.0]
    """
    across, up = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
    if where is not None:
        across, up = across[..., where], up[..., where]
    if across.shape[-1] < 2:
        return np.full(across.shape[:-1], np.nan)
    away = across - across.mean(axis=-1, keepdims=True)
    return np.asarray((away * up).sum(axis=-1) / np.square(away).sum(axis=-1))


NOTHING = Measured(np.nan, np.nan, 0)


def average(held: NDArray[np.float64]) -> Measured:
    """Return a share averaged over arms; its error is that of a mean over runs, whatever arms have in common."""
    if not held.size:
        return NOTHING
    by_run = held.mean(axis=1)
    error = float(by_run.std(ddof=1) / np.sqrt(by_run.size)) if by_run.size > 1 else 0.0
    return Measured(float(by_run.mean()), max(error, least_error(held.sum(), held.size)), by_run.size)


def least_error(held: float, among: float) -> float:
    """Return the error of a share of independent cases, two hits and two misses added: a share of 1 is not certain."""
    added = (held + 2) / (among + 4)
    return float(np.sqrt(added * (1 - added) / (among + 4)))


def rank_test(ranks: NDArray[np.float64]) -> float:
    """Return the p-value of independent ranks being uniform: chi-square in 20 bins."""
    from scipy.special import chdtrc

    expected = ranks.size / RANK_BINS
    if expected < FEWEST_RANKS:
        return float("nan")
    counts = np.bincount((ranks * RANK_BINS // (RANKS + 1)).astype(int), minlength=RANK_BINS)
    return float(chdtrc(RANK_BINS - 1, ((counts - expected) ** 2 / expected).sum()))


def holm(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values adjusted for their number, by Holm's step-down method; NaN values do not count."""
    known = np.flatnonzero(~np.isnan(chances))
    order = known[np.argsort(chances[known])]
    adjusted = np.full(chances.shape, np.nan)
    steps = chances[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def ratio(above: NDArray[np.float64], below: NDArray[np.float64], *, root: bool = False) -> Measured:
    """Return the ratio of two sums over runs (rows), or its root, with its error by leaving out folds of runs.

    Its error comes from no more groups than there are runs with anything in the sum below.
    """
    if not below.sum() > 0:
        return NOTHING
    with np.errstate(invalid="ignore", divide="ignore"):
        quotients = replicates(lambda top, bottom: top.sum() / bottom.sum(), above, below)
    found = measured(np.sqrt(quotients) if root else quotients)
    return replace(found, folds=min(found.folds, int((below != 0).any(axis=1).sum())))


def share_of(held: NDArray[np.bool_], cases: NDArray[np.bool_]) -> Measured:
    """Return the share of some intervals that hold; arms of a run err together. NaN error if one fold has all cases."""
    if not cases.any():
        return NOTHING
    hits, among = (held & cases).sum(axis=1).astype(np.float64), cases.sum(axis=1).astype(np.float64)
    found = ratio(hits[:, None], among[:, None])
    return replace(found, error=float(np.maximum(found.error, least_error(hits.sum(), among.sum()))))
