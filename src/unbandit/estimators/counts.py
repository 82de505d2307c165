"""Without the order of the rounds: the same equations at the end of the record, from final pull counts alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import SwitchingCounts
from unbandit.estimators.comparison import Comparison, Tests, Width
from unbandit.estimators.switching import SetUp, eliminated_and_active, index_comparison

__all__ = ["elimination_counts", "gaps_at_the_end", "index_counts"]


def index_counts(pulls: NDArray[np.int64], set_up: SetUp) -> Comparison:
    """Put every index at one common level `V`: of an additive rule, `m_i = V - C(n_i)`, `gap_i = C(n_i) - C(n_best)`.

    The indices are those before the last round, as far as they depend on it.
    """
    return index_comparison(_at_the_end(pulls, pulls.sum(axis=-1)), True, set_up)


def gaps_at_the_end(
    pulls: NDArray[np.int64], lengths: NDArray[np.int64], where: NDArray[np.bool_], set_up: SetUp
) -> NDArray[np.float64]:
    """Return the same gaps alone, of the arms that are marked; 0 where no mean gives one, NaN for the others."""
    read = _at_the_end(pulls, lengths)
    gap, _ = set_up(read).solve(where, pulls, read.of_best, read.rounds)
    return np.where(where & np.isnan(gap), 0.0, gap)


def _at_the_end(pulls: NDArray[np.int64], lengths: NDArray[np.int64]) -> SwitchingCounts:
    """Take the last round for the switching round of every arm."""
    most = np.take_along_axis(pulls, pulls.argmax(axis=-1)[..., None], axis=-1)
    of_best = np.broadcast_to(most, pulls.shape)
    rounds = np.broadcast_to(np.maximum(lengths - 1, 0)[..., None], pulls.shape)
    return SwitchingCounts(pulls, pulls, of_best, rounds)


def elimination_counts(pulls: NDArray[np.int64], width: Width, tests: Tests) -> Comparison:
    """Take an arm as eliminated if it was pulled two times less than the most-pulled one, or fewer."""
    gone = (pulls > 0) & (pulls < pulls.max(axis=-1, keepdims=True) - 1)
    return eliminated_and_active(pulls, gone, width, tests)
