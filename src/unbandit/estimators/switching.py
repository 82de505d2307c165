"""The paper's two procedures: read each arm's gap off the round at which the demonstrator switched away from it.

At its switching round the demonstrator hesitated between arm i and the best arm: its two decision values were equal, up
to one reward. Solve that equation for the gap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.comparison import Comparison, Width, most_pulled
from unbandit.result import BOUNDED, ESTIMATED

__all__ = ["procedure_1", "procedure_2"]


def procedure_1(
    actions: NDArray[Any], pulls: NDArray[np.int64], first: NDArray[np.int64], width: Width
) -> tuple[Comparison, int, NDArray[np.int64]]:
    """Invert successive elimination: an arm eliminated after `n_i` pulls has gap `2 C(n_i)` (Procedure 1).

    An arm counts as eliminated only if its turn visibly passed. One that is still active at the end has survived test
    `n_i - 1`: its gap is at most `2 C(n_i - 1)`. While two or more are active, none of them is known to be best.

    Returns
    -------
    comparison, broken, passed
        `broken` is the first round that no elimination rule explains (0 if none), `passed` the round in which each
        arm's elimination showed.
    """
    from unbandit.kernels.epochs import read_epochs

    seen = np.flatnonzero(pulls)
    order = seen[np.argsort(first[seen], kind="stable")]
    passed, broken = read_epochs(actions, order, pulls.size)
    return eliminated_and_active(pulls, (pulls > 0) & (passed > 0), width), broken, passed


def eliminated_and_active(pulls: NDArray[np.int64], gone: NDArray[np.bool_], width: Width) -> Comparison:
    """Apply Procedure 1 to arms known to be eliminated, and bound those still active; of one demonstration or many."""
    result = Comparison.of_nothing(pulls.shape)
    n = pulls.astype(np.float64)
    result.gap[gone] = 2 * width(n[gone])
    result.below[gone] = result.above[gone] = result.gap[gone]
    result.own[gone] = result.other[gone] = n[gone]
    result.verdict[gone] = ESTIMATED

    active = (pulls > 0) & ~gone
    alone = active & (active.sum(axis=-1, keepdims=True) == 1)
    result.settle(alone)
    result.best, open_still = active, active & ~alone
    result.verdict[open_still], result.below[open_still] = BOUNDED, 0.0
    tested = open_still & (pulls > 1)
    result.above[tested] = 2 * width(n[tested] - 1)
    result.own[tested] = result.other[tested] = n[tested] - 1
    return result


def procedure_2(actions: NDArray[Any], pulls: NDArray[np.int64], last: NDArray[np.int64], width: Width) -> Comparison:
    """Invert an additive index rule: `gap_i = C(n_i) - C(n_best)`, both counts at the switching round (Procedure 2).

    An arm that was never reconsidered, pulled once before the best arm's last pull or not at all since its first, is
    bounded from below: `C(1) - C(n_best)`, with all of the best arm's pulls. (After an opening that no index rule
    makes, an arm may have more than one pull then: its width is that of all of them.)
    """
    from unbandit.kernels.switching import switching_rounds

    best = int(pulls.argmax())
    _, own, of_best = switching_rounds(actions, pulls, last, best)
    passed_over = np.where(last < last[best], pulls, 1)
    return index_comparison(pulls, own, of_best, passed_over, width)


def index_comparison(
    pulls: NDArray[np.int64],
    own: NDArray[np.int64],
    of_best: NDArray[np.int64],
    passed_over: NDArray[np.int64],
    width: Width,
) -> Comparison:
    """Equate the indices of each arm and the most-pulled one after `own` and `of_best` pulls.

    Where they were never equal, the arm had `passed_over` pulls when the best one was preferred for the last time. Of
    one demonstration, or of many: one row each.
    """
    best, result = most_pulled(pulls), Comparison.of_nothing(pulls.shape)
    seen = (pulls > 0) & ~best
    reconsidered = seen & (own > 1) & (of_best > 0)
    result.own[reconsidered], result.other[reconsidered] = own[reconsidered], of_best[reconsidered]
    result.gap[reconsidered] = width(result.own[reconsidered]) - width(result.other[reconsidered])
    result.below[reconsidered] = result.above[reconsidered] = result.gap[reconsidered]
    result.verdict[reconsidered] = ESTIMATED

    never = seen & ~reconsidered
    all_of_best = np.broadcast_to(pulls.max(axis=-1, keepdims=True).astype(np.float64), pulls.shape)[never]
    result.own[never], result.other[never] = passed_over[never], all_of_best
    result.below[never] = width(result.own[never]) - width(all_of_best)
    result.verdict[never] = BOUNDED
    result.settle(best)
    return result
