"""A demonstration of an elimination rule as its filter reads it: tests, and what became of each arm there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import EliminationRule
from unbandit.errors import InferenceError
from unbandit.inference.steps import check_opening
from unbandit.kernels.epochs import read_epochs
from unbandit.kernels.filter_elimination import GOES, OPEN, OUT, STAYS, Tests

__all__ = ["tests_of"]


def tests_of(
    actions: NDArray[np.int64], rewards: NDArray[np.float64], labels: tuple[str, ...], rule: EliminationRule,
    horizon: int,
) -> Tests:  # fmt: skip
    """Read every test that a demonstration shows.

    Raises
    ------
    InferenceError
        If no such rule makes this record; it names the round.
    """
    arms = len(labels)
    check_opening(actions, labels, 1)
    pulls = np.bincount(actions, minlength=arms)
    order = actions[:arms].astype(np.int64)
    passed, broken = read_epochs(actions, order, arms)
    if broken:
        raise InferenceError(
            f'round {broken}: arm "{labels[actions[broken - 1]]}" is pulled again after its turn had passed, which no '
            "elimination rule does. Another rule made this record, or rows are missing."
        )
    gone = passed > 0
    whole = int(pulls[~gone].min())
    epochs = np.arange(1, whole + 1)
    epochs = epochs[rule.tests(epochs) & (epochs <= np.sort(pulls)[-2])]  # a single arm is not tested
    early = np.flatnonzero(gone & ~np.isin(pulls, epochs))
    if early.size:
        arm = int(early[np.argmin(passed[early])])
        raise InferenceError(
            f'round {passed[arm]}: arm "{labels[arm]}" was dropped after {pulls[arm]} pulls, where {rule} makes no '
            "test. Check the rule and its parameters."
        )
    here = pulls[None, :] - epochs[:, None]
    fate = np.where(here < 0, OUT, np.where(here > 0, STAYS, np.where(gone, GOES, OPEN))).astype(np.int8)
    widths = rule.width(np.maximum(epochs, 1).astype(np.float64), horizon)
    last = np.where(gone, pulls, 0)
    at_last = np.searchsorted(epochs, last)
    below = 2 * np.append(widths, 0.0)[at_last]
    above = np.where(at_last > 0, 2 * np.append(widths, 0.0)[at_last - 1], 2 * below)
    drop, play = (below + above) / 2, (above - below) ** 2 / 6
    known, known_sum = _known(actions, rewards, epochs, arms)
    return Tests(epochs, np.asarray(widths), fate, last, drop, play, known, known_sum)


def _known(
    actions: NDArray[np.int64], rewards: NDArray[np.float64], epochs: NDArray[np.int64], arms: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Count and sum up, test by test, the rewards that are known."""
    known, known_sum = np.zeros((epochs.size, arms), np.int64), np.zeros((epochs.size, arms))
    for arm in range(arms) if not np.isnan(rewards).all() else ():
        own = rewards[actions == arm]
        seen = np.flatnonzero(~np.isnan(own))
        test = np.searchsorted(epochs, seen + 1)
        inside = test < epochs.size
        np.add.at(known[:, arm], test[inside], 1)
        np.add.at(known_sum[:, arm], test[inside], own[seen[inside]])
    return known, known_sum
