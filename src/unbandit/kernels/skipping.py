"""Count pulls and switching counts without drawing every reward.

As in `counts`, each arm is advanced on its own to a common level at which nearly the whole horizon is spent, and the
last few pulls go to the highest level first. Here an arm is advanced over `bridges`: what it takes is the first pull
after which its index is at or below the level, and long stretches before that need no look.

All counts are of one kind: how many pulls of an arm come before another arm's pull that was made at a level. These are
the pulls made at higher levels, so the first at or below the level ends them (at an equal level the lower arm comes
first).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bandit import Bandit, arrange
from unbandit.kernels.bridges import ROOTS, Path, Room, first_below, lowest_up_to, path_of
from unbandit.kernels.compiling import called, compiled
from unbandit.kernels.levels import level_guide, next_level

__all__ = ["count_by_bridges"]

FEW = 8  # pulls left, from which on they are made one by one
HIGHEST = np.finfo(np.float64).max


@called
def _advance(
    bandit: Bandit,
    parameters: Any,
    level: float,
    left: int,
    run: int,
    roots: NDArray[np.float64],
    pulls: NDArray[np.int64],
    lowest: NDArray[np.float64],
    further: NDArray[np.int64],
    lower: NDArray[np.float64],
    room: Room,
) -> int:
    """Find how far each arm goes until its index is at most `level`, into `further` and `lower`.

    Returns the number of pulls left; -1 if there are too few, and then nothing that was found is of use.
    """
    for arm in range(bandit.means.size):
        further[arm], lower[arm] = pulls[arm], lowest[arm]
        if lowest[arm] > level:
            path = _path(bandit, arm, run, roots)
            further[arm], lower[arm] = first_below(
                path, parameters, level, True, pulls[arm] + 1, pulls[arm] + left, room
            )
            left -= further[arm] - pulls[arm]
            if left < 0:
                return -1
    return left


@called
def _path(bandit: Bandit, arm: int, run: int, roots: NDArray[np.float64]) -> Path:
    """Return an arm's walk whose sums at the powers of two are known already."""
    return Path(roots[arm], bandit.means[arm], bandit.sigma, np.uint64(arm), np.uint64(run), bandit.key, bandit.table)


@called
def _made_before(path: Path, parameters: Any, pulls: int, level: float, other: int, room: Room) -> int:
    """Count those of an arm's first `pulls` pulls that came before the arm `other` was pulled at `level`."""
    own = np.int64(path.arm)
    if level == np.inf and own > other:  # every arm's first pull, in turn
        return 0
    return min(first_below(path, parameters, level, own > other, 1, pulls, room)[0], pulls)


@compiled
def count_by_bridges(
    bandit: Bandit,
    parameters: Any,
    first_run: int,
    pulls_out: NDArray[np.int64],
    own_out: NDArray[np.int64],
    of_best_out: NDArray[np.int64],
) -> None:
    """Fill, one row a run: pulls, and the pulls of arm and most-pulled arm at each switching round (0 where none)."""
    arms = bandit.means.size
    roots = np.empty((arms, ROOTS))
    room = (np.empty(ROOTS + 1, np.int64), np.empty(ROOTS + 1), np.empty(ROOTS + 1))
    pulls, further = np.empty(arms, np.int64), np.empty(arms, np.int64)
    lowest, lower = np.empty(arms), np.empty(arms)
    guide = level_guide(parameters, bandit.sample, arms, bandit.horizon)
    for row in range(pulls_out.shape[0]):
        arrange(bandit, row)
        run = first_run + row
        for arm in range(arms):
            path_of(bandit, arm, run, roots[arm])
        pulls[:], lowest[:] = 0, np.inf
        left, high, low, step = bandit.horizon, np.inf, -np.inf, 0
        if left > arms:  # the opening: every arm once, whatever its index
            left = _advance(bandit, parameters, HIGHEST, left, run, roots, pulls, lowest, further, lower, room)
            pulls[:], lowest[:] = further, lower
            high = lowest.max()
        while left > FEW and high < np.inf:
            if low == -np.inf:  # go down as foretold until there is a level that is too low; then halve
                level = next_level(guide, high, bandit.horizon - left, bandit.horizon, arms, step, bandit.sigma)
                step += 1
                if level >= high:
                    continue
            else:
                level = 0.5 * (low + high)
                if not low < level < high:  # many pulls are made at one level
                    break
            rest = _advance(bandit, parameters, level, left, run, roots, pulls, lowest, further, lower, room)
            if rest < 0:
                low = level
            else:
                pulls[:], lowest[:], left, high = further, lower, rest, level
        while left > 0:  # what is left, from one new lowest index to the next
            arm = 0
            for other in range(arms):
                if lowest[other] > lowest[arm]:
                    arm = other
            path = _path(bandit, arm, run, roots)
            at, index = first_below(path, parameters, lowest[arm], False, pulls[arm] + 1, pulls[arm] + left, room)
            if at > pulls[arm] + left:
                at, index = pulls[arm] + left, lowest[arm]
            left, pulls[arm], lowest[arm] = left - (at - pulls[arm]), at, index
        best = 0
        for arm in range(arms):
            pulls_out[row, arm] = pulls[arm]
            if pulls[arm] > pulls[best]:
                best = arm
        path_of_best = _path(bandit, best, run, roots)
        last = lowest_up_to(path_of_best, parameters, pulls[best] - 1, room)  # the level of the best arm's last pull
        for arm in range(arms):
            own = of_best = 0
            if arm != best:
                path = _path(bandit, arm, run, roots)
                own = _made_before(path, parameters, pulls[arm], last, best, room)
                if own > 0:
                    level = lowest_up_to(path, parameters, own - 1, room)
                    of_best = _made_before(path_of_best, parameters, pulls[best], level, arm, room)
            own_out[row, arm], of_best_out[row, arm] = own if of_best > 0 else 0, of_best
