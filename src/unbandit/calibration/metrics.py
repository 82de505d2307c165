"""Statistics over runs that several measures use, each with its Monte-Carlo error."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unbandit.study.monte_carlo import Measured, measured, replicates

RANKS = 99  # number of draws among which the true mean's rank is taken: ranks run from 0 to this number
RANK_BINS = 20  # number of bins into which ranks are counted
FEWEST_RANKS = 5  # fewest ranks that a bin must be expected to hold for the test to be worth anything

Floats = NDArray[np.float64]

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
    """Return the ratio of two sums over runs (rows), or its root, with its error by leaving out folds of runs."""
    if not below.sum() > 0:
        return NOTHING
    with np.errstate(invalid="ignore", divide="ignore"):
        quotients = replicates(lambda top, bottom: top.sum() / bottom.sum(), above, below)
    return measured(np.sqrt(quotients) if root else quotients)


def share_of(held: NDArray[np.bool_], cases: NDArray[np.bool_]) -> Measured:
    """Return the share of some intervals that hold; arms of a run err together."""
    if not cases.any():
        return NOTHING
    hits, among = (held & cases).sum(axis=1).astype(np.float64), cases.sum(axis=1).astype(np.float64)
    found = ratio(hits, among)
    return replace(found, error=float(np.fmax(found.error, least_error(hits.sum(), among.sum()))))
