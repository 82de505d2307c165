"""Rewards of 0 and 1 behind an index rule's actions: which numbers of ones fit the comparisons that follow."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.belief import Belief
from unbandit.kernels.compiling import called, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.particles import FAR, NONE, Cloud, Record

__all__ = ["Memo", "draw_ones", "remembered", "room"]

MEMO = 4_000_000
"""How many indices are remembered within a step at most."""


class Memo(NamedTuple):
    """Hold indices within a step: many particles agree on how often an arm gave 1, and an index may take long.

    Attributes
    ----------
    mine, its
        By other arm and reward sum: the index of the arm pulled, and of the other, when the two are next compared.
    mine_at, its_at
        In which step (from 1) each was filled in.
    """

    mine: NDArray[np.float64]
    its: NDArray[np.float64]
    mine_at: NDArray[np.int64]
    its_at: NDArray[np.int64]


@called
def room(arms: int, sums: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Make room for a memo; none where it would be too large."""
    size = sums if arms * sums <= MEMO else 0
    shape = (arms, size)
    return np.empty(shape), np.empty(shape), np.zeros(shape, np.int64), np.zeros(shape, np.int64)


@inlined
def remembered(
    parameters: Any, values: NDArray[np.float64], filled: NDArray[np.int64], other: int, total: float, pulls: int,
    at: int, step: int,
) -> float:  # fmt: skip
    """Return an index of an arm with so many rewards of 1, computed once a step."""
    key = np.int64(total)
    if values.shape[1] == 0:
        return index_value(parameters, total * (1.0 / pulls), pulls, at)
    if filled[other, key] != step + 1:
        values[other, key] = index_value(parameters, total * (1.0 / pulls), pulls, at)
        filled[other, key] = step + 1
    return values[other, key]


@inlined
def _goes_first(mine: float, arm: int, its: float, other: int, random_ties: bool) -> bool:
    """Tell whether an index wins over another, equal ones going to the lower arm or to any."""
    return mine > its or (mine == its and (random_ties or arm < other))


@inlined
def _fits(
    parameters: Any, record: Record, cloud: Cloud, pulls: NDArray[np.int64], following: NDArray[np.int64],
    index: NDArray[np.float64], floor: NDArray[np.float64], floor_arm: NDArray[np.int64], memo: Memo, uses_round: bool,
    random_ties: bool, particle: int, step: int, upper: int, lower: int, total: float,
) -> bool:  # fmt: skip
    """Tell whether a sum agrees with every later comparison until the arm is pulled again."""
    arm, mine = record.arm[step], record.following[step]
    after = pulls[arm] + record.count[step]
    if uses_round:
        for other in range(pulls.size):
            if other == arm or following[other] == NONE or (following[other] == FAR and mine == FAR):
                continue
            at = min(mine, following[other])
            own = arm if at == mine else other  # compared at its own next turn, it has one index for all others
            value = remembered(parameters, memo.mine, memo.mine_at, own, total, after, at, step)
            held = cloud.sums[particle, other]
            its = remembered(parameters, memo.its, memo.its_at, other, held, pulls[other], at, step)
            first = _goes_first(value, arm, its, other, random_ties)
            second = _goes_first(its, other, value, arm, random_ties)
            if not (second if following[other] < mine else first):
                return False
        return True
    value = remembered(parameters, memo.mine, memo.mine_at, arm, total, after, 1, step)
    if upper != NONE and not _goes_first(index[particle, upper], upper, value, arm, random_ties):
        return False
    if lower != NONE:
        return _goes_first(value, arm, index[particle, lower], lower, random_ties)
    if mine != FAR and floor[particle] > -math.inf:
        return _goes_first(value, arm, floor[particle], floor_arm[particle], random_ties)
    return True


@inlined
def draw_ones(
    parameters: Any, record: Record, belief: Belief, cloud: Cloud, pulls: NDArray[np.int64],
    following: NDArray[np.int64], index: NDArray[np.float64], floor: NDArray[np.float64], floor_arm: NDArray[np.int64],
    memo: Memo, uses_round: bool, random_ties: bool, particle: int, step: int, upper: int, lower: int, hidden: int,
    known: float, uniform: float,
) -> tuple[float, float]:  # fmt: skip
    """Draw how many of a step's rewards were 1, among the numbers that fit; return it, and their log probability."""
    arm = record.arm[step]
    total = cloud.past[particle, arm] + cloud.sums[particle, arm]
    ones, zeros = belief.first[arm] + total, belief.second[arm] + known - total
    mass, drawn, chance = 0.0, 0, 1.0
    for at in range(hidden):
        chance *= (zeros + at) / (ones + zeros + at)
    for outcome in range(hidden + 1):  # the beta-binomial probabilities, one from the other
        if outcome > 0:
            last = outcome - 1
            chance *= (hidden - last) / outcome * (ones + last) / (zeros + hidden - last - 1.0)
        fits = not record.binding[step] or _fits(
            parameters, record, cloud, pulls, following, index, floor, floor_arm, memo, uses_round, random_ties,
            particle, step, upper, lower, cloud.sums[particle, arm] + outcome,
        )  # fmt: skip
        if fits and chance > 0.0:
            mass += chance
            if uniform * mass < chance:
                drawn, uniform = outcome, uniform * mass / chance
            else:
                uniform = (uniform * mass - chance) / (mass - chance)
    if mass > 0.0:
        return drawn, math.log(mass)
    return hidden if uniform * (ones + zeros) < ones else 0, -math.inf
