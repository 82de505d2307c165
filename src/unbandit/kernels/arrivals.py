"""Rewards that arrive after random delays: drawn from the tape, kept until they are known, and expected by a reader.

Delays are independent of rewards, so the tape's rewards of an arm are handed out in the order in which they arrive: the
`n`-th that becomes known is cell `n` of the arm's tape, whichever pull it belongs to.
"""

from typing import NamedTuple

import numpy as np

from unbandit.kernels.bandit import Bandit
from unbandit.kernels.compile import Integers, Numbers, inlined
from unbandit.kernels.rng import philox, uniform_from_word

ZERO, ONE = np.uint64(0), np.uint64(1)
DELAYS = np.uint64(24)  # the tape's stream 24


class Arrivals(NamedTuple):
    """The rounds whose rewards become known before each round, as lists; all are empty where a delay is fixed."""

    cumulative: Numbers  # the distribution of delays
    first: Integers  # for each round the first of those rounds, counted from 0; -1 for none
    last: Integers
    following: Integers  # for each round the next one whose reward becomes known at the same time; -1 for none


def arrivals_for(cumulative: Numbers, horizon: int) -> Arrivals | None:
    """Return room for the arrivals of a run; None where no delay is random."""
    if cumulative.size == 0:
        return None
    return Arrivals(cumulative, np.full(horizon, -1), np.full(horizon, -1), np.full(horizon, -1))


@inlined
def drawn_delay(bandit: Bandit, name: np.uint64, cumulative: Numbers, t: int) -> int:
    """Return the delay of the reward of round `t`, counted from 0: the shortest whose probability exceeds the draw."""
    words = philox(np.uint64(t) >> ONE, ZERO, name, DELAYS, bandit.key[0], bandit.key[1])
    draw = uniform_from_word(words[1] if t & 1 else words[0])
    low, high = 0, cumulative.size - 1
    while low < high:
        middle = (low + high) // 2
        if draw < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def forget_arrivals(arrivals: Arrivals) -> None:
    """Begin another run."""
    for t in range(arrivals.first.size):
        arrivals.first[t] = -1


@inlined
def send_reward(bandit: Bandit, name: np.uint64, arrivals: Arrivals, t: int) -> None:
    """Let the reward of round `t` become known after a delay, unless that is beyond the last round."""
    at = t + 1 + drawn_delay(bandit, name, arrivals.cumulative, t)
    arrivals.following[t] = -1
    if at < arrivals.first.size:
        if arrivals.first[at] < 0:
            arrivals.first[at] = t
        else:
            arrivals.following[arrivals.last[at]] = t
        arrivals.last[at] = t


@inlined
def all_known(pulls: Integers, initial: int) -> bool:
    """Return whether `initial` rewards of every arm are known."""
    few = 0
    for arm in range(pulls.size):
        few += 1 if pulls[arm] < initial else 0
    return few == 0
