"""Posterior predictive checks: a record beside simulations of a rule, in a few statistics.

All statistics together are judged by the one furthest from the simulated ones, in their standard deviations. How far
out the furthest one of a record lies is itself simulated, so looking at many statistics raises no more false alarms.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from unbandit.fit import Statistic

MOST_ARMS = 5  # of more arms than this, only the most-pulled ones are compared one by one
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the record, at which pulls are compared


Values = Mapping[str, NDArray[np.float64]]  # each statistic's values, one per run


def statistics_of(actions: NDArray[np.integer], arms: tuple[str, ...], chosen: NDArray[np.intp]) -> Values:
    """Return the statistics of simulated or observed actions (runs x rounds); `chosen` are the arms to look at."""
    runs, length = actions.shape
    changes = actions[:, 1:] != actions[:, :-1]
    switches = changes.sum(axis=1).astype(np.float64)
    starts = np.ones(actions.shape, np.bool_)
    starts[:, 1:] = changes
    row, at = np.nonzero(starts)
    lengths = np.diff(at, append=length)
    ends = np.flatnonzero(np.append(row[1:] != row[:-1], True))
    lengths[ends] = length - at[ends]
    values = {
        "switches between arms": switches,
        "switches in the later half": changes[:, length // 2 :].sum(axis=1).astype(np.float64),
        "longest run on one arm": np.maximum.reduceat(lengths, np.append(0, ends[:-1] + 1)).astype(np.float64),
        "runs of a single pull": np.bincount(row, weights=lengths == 1, minlength=runs),
        "mean log length of a run": np.bincount(row, weights=np.log(lengths), minlength=runs) / (switches + 1),
    }
    marks = [max(1, round(share * length)) for share in SHARES]
    for arm in chosen.tolist():
        own = actions == arm
        for share, mark in zip(SHARES, marks, strict=True):
            part = "" if share == 1 else f" in the first {mark:,} rounds"
            values[f'pulls of "{arms[arm]}"{part}'] = own[:, :mark].sum(axis=1).astype(np.float64)
        values[f'runs on "{arms[arm]}"'] = (own & starts).sum(axis=1).astype(np.float64)
    return values


def arms_to_compare(actions: NDArray[np.integer], arms: int) -> NDArray[np.intp]:
    """Return the arms whose pulls are compared: all, or of many the most-pulled ones."""
    pulls = np.bincount(actions, minlength=arms)
    return np.sort(np.argsort(-pulls, kind="stable")[:MOST_ARMS])


def compare(observed: Values, simulated: Values) -> tuple[tuple[Statistic, ...], float]:
    """Return each statistic, the furthest first, and the probability that a simulated record lies as far out."""
    names, number = list(simulated), len(next(iter(simulated.values())))
    own = np.array([float(observed[name][0]) for name in names])
    others = np.column_stack([simulated[name] for name in names])
    # counts are skewed: they are compared as logarithms
    far, simulated_far = _distances(np.log1p(own), np.log1p(others))
    probability = (1 + int((simulated_far >= far.max() * (1 - 1e-9)).sum())) / (number + 1)
    tails = (1 + np.minimum((others <= own).sum(axis=0), (others >= own).sum(axis=0))) / (number + 1)
    low, median, high = np.quantile(others, (0.025, 0.5, 0.975), axis=0)
    columns = np.column_stack([own, low, median, high, np.minimum(1.0, 2 * tails), far]).tolist()
    statistics = [Statistic(name, *values) for name, values in zip(names, columns, strict=True)]
    return tuple(sorted(statistics, key=lambda each: -each.distance)), probability


def _distances(
    own: NDArray[np.float64], others: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return each statistic's distance from the simulated ones, and the largest distance of each simulation."""
    centre, spread = others.mean(axis=0), others.std(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.nan_to_num(np.abs(own - centre) / spread, nan=0.0, posinf=np.inf)
        simulated = np.nan_to_num(np.abs(others - centre) / spread, nan=0.0).max(axis=1)
    return far, simulated
