"""An arm's sums of rewards, drawn only where they are needed: Gaussian bridges on a dyadic grid.

Without its mean and scaled to unit variance, the sum of an arm's first `n` rewards is a random walk `W(n)`. Here it is
drawn coarsely first. `W(2n)` at a power of two is `W(n)` plus a normal of variance `n`; half way between two neighbours
`a` and `b` of the grid, given both, it is normal around `(W(a) + W(b)) / 2` with variance `(b - a) / 4`. Every `n`
uses one normal, a pure function of (seed, run, arm, n), so a sum is the same whatever was drawn before it.

After `n` pulls the index is at most `v` exactly if `W(n)` lies on or below `B(n) = n (v - mean - C(n)) / sigma`. For
the width `C(n)` proportional to `1/sqrt(n)` that boundary is convex: between `a` and `b` it lies below its chord. A
Brownian bridge that begins `x` above a straight line and ends `y` above it crosses it with probability
`exp(-2 x y / (b - a))`, and a walk, which has values only at whole numbers, with less. Stretches where this is below
1e-18 are skipped.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from unbandit.kernels.bandit import Bandit
from unbandit.kernels.compile import Integers, Numbers, called, inlined
from unbandit.kernels.formula import index_value
from unbandit.kernels.rng import normal_from_word, philox

ONE = np.uint64(1)
BRIDGES = np.uint64(16)  # the tape's stream 16
ROOTS = 33  # the powers of two up to 2^32, beyond every horizon
SURE = 0.5 * 18 * math.log(10) * 1.01  # x y / (b - a) above which a crossing has a probability below 1e-18
ROUNDING = 4e-15  # relative rounding error of a computed index

Place = tuple[int, float, float]  # an end of a stretch: the number of pulls, the walk there, the index there

Room = tuple[Integers, Numbers, Numbers]
"""A stack of the right ends of stretches that are being searched: places, sums, indices; ROOTS + 1 of each."""


class Path(NamedTuple):
    """One arm's walk: what its numbers are drawn from, and its sums at the powers of two."""

    roots: Numbers
    mean: float
    sigma: float
    arm: np.uint64
    run: np.uint64
    key: tuple[np.uint64, np.uint64]
    table: Numbers


@inlined
def _normal(path: Path, n: int) -> float:
    """Return the normal of place `n`; as on the tape of rewards, one block serves two places."""
    at = np.uint64(n) - ONE
    first, second = philox(at >> ONE, path.arm, path.run, BRIDGES, path.key[0], path.key[1])
    return normal_from_word(second if at & ONE else first, path.table)


@called
def path_of(bandit: Bandit, arm: int, run: int, roots: Numbers) -> Path:
    """Return an arm's walk, given the table of all arms' sums at the powers of two."""
    return Path(roots[arm], bandit.means[arm], bandit.sigma, np.uint64(arm), np.uint64(run), bandit.key, bandit.table)


@called
def fill_roots(path: Path, horizon: int) -> None:
    """Draw a walk's sums at 1, 2, 4, ... up to the horizon."""
    path.roots[0] = _normal(path, 1)
    for power in range(1, ROOTS):
        if 1 << (power - 1) > horizon:
            break
        path.roots[power] = path.roots[power - 1] + math.sqrt(float(1 << (power - 1))) * _normal(path, 1 << power)


@inlined
def index_at(path: Path, parameters: Any, n: int, walk: float) -> float:
    """Return the index after `n` pulls, from the walk there."""
    return index_value(parameters, path.mean + path.sigma * (walk * (1.0 / np.float64(n))), np.uint64(n), ONE)


@inlined
def _above(path: Path, level: float, n: int, walk: float, index: float) -> float:
    """Return how far the walk lies above the boundary, less a bound on rounding errors."""
    sample = path.mean + path.sigma * (walk * (1.0 / np.float64(n)))
    size = abs(path.mean) + abs(sample) + abs(index) + abs(level)
    return (index - level - ROUNDING * size) * np.float64(n) / path.sigma


@inlined
def _stays_above(above_left: float, above_right: float, length: int) -> bool:
    """Return whether a stretch crosses the boundary with a probability below 1e-18."""
    return above_left > 0.0 and above_right > 0.0 and above_left * above_right > SURE * np.float64(length)


@inlined
def _split(path: Path, parameters: Any, level: float, left: Place, right: Place, room: Room, depth: int) -> bool:
    """Return whether a stretch may cross the boundary; then draw the walk at its middle, and put it on the stack."""
    places, walks, indices = room
    length = right[0] - left[0]
    if length == 1 or _stays_above(_above(path, level, *left), _above(path, level, *right), length):
        return False
    middle, half = left[0] + length // 2, length // 2
    walk = 0.5 * (left[1] + right[1]) + math.sqrt(0.5 * np.float64(half)) * _normal(path, middle)
    places[depth], walks[depth], indices[depth] = middle, walk, index_at(path, parameters, middle, walk)
    return True


@called
def first_below(
    path: Path, parameters: Any, level: float, equal: bool, start: int, stop: int, room: Room
) -> tuple[int, float]:
    """Return the first `n` from `start` to `stop` whose index is below `level`, and that index.

    With `equal`, an index at the level counts too. If there is none, `stop + 1` and infinity.
    """
    places, walks, indices = room
    power = 0
    while 1 << (power + 1) <= start:
        power += 1
    left, walk = 1 << power, path.roots[power]
    index = index_at(path, parameters, left, walk)
    if left == start and (index < level or (equal and index == level)):
        return left, index
    while left < stop:
        power += 1
        places[0], walks[0], depth = 1 << power, path.roots[power], 1
        indices[0] = index_at(path, parameters, 1 << power, path.roots[power])
        while depth > 0 and left < stop:
            right, right_walk, right_index = places[depth - 1], walks[depth - 1], indices[depth - 1]
            if right >= start:
                if _split(path, parameters, level, (left, walk, index), (right, right_walk, right_index), room, depth):
                    depth += 1
                    continue
                if right <= stop and (right_index < level or (equal and right_index == level)):
                    return right, right_index
            left, walk, index, depth = right, right_walk, right_index, depth - 1
    return stop + 1, np.inf


@called
def lowest_up_to(path: Path, parameters: Any, stop: int, room: Room) -> float:
    """Return the smallest index after 1, 2, ..., `stop` pulls; infinity after none.

    Searched from the end backwards: indices are lowest there, and the lower the known one, the more can be skipped.
    """
    places, walks, indices = room
    lowest, power = np.inf, 0
    while 1 << power <= stop:
        lowest = min(lowest, index_at(path, parameters, 1 << power, path.roots[power]))
        power += 1
    while power > 0:
        right, walk = 1 << power, path.roots[power]
        index = index_at(path, parameters, right, walk)
        power -= 1
        places[0], walks[0], depth = 1 << power, path.roots[power], 1
        indices[0] = index_at(path, parameters, 1 << power, path.roots[power])
        while depth > 0:
            left, left_walk, left_index = places[depth - 1], walks[depth - 1], indices[depth - 1]
            if left <= stop:
                if _split(path, parameters, lowest, (left, left_walk, left_index), (right, walk, index), room, depth):
                    depth += 1
                    continue
                lowest = min(lowest, left_index)
            right, walk, index, depth = left, left_walk, left_index, depth - 1
    return lowest
