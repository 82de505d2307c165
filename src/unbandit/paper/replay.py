"""Two-armed demonstrations round by round, with the hidden rewards replayed.

Studies keep no logs and see no rewards. The sketches need both, for a few runs of a small bandit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.instance import Instance
from unbandit.paper.figure import Size
from unbandit.tape import Tape

MOST_RUNS = 1_000
"""Most runs to play: logs are kept here, and rewards replayed one run at a time."""

BLOCK = 200
"""Runs whose actions are held at a time."""


def runs_played(size: Size) -> int:
    """Return how many runs a sketch plays: 100, or as many as were asked for, up to `MOST_RUNS`."""
    return min(size.runs_of(100), MOST_RUNS)


@dataclass(frozen=True)
class PlayedRun:
    """One run of a two-armed bandit: its arms in the order of this run (shuffled in every run), number and actions."""

    instance: Instance
    run: int
    actions: NDArray[Any]

    @property
    def worse(self) -> int:
        """Return the place of the arm with the smaller mean."""
        return int(self.instance.means.argmin())


def play(rule: Demonstrator, instance: Instance, horizon: int, *, runs: int, seed: int) -> Iterator[PlayedRun]:
    """Play a rule on two arms, listed in a different order in every run."""
    tape = Tape(seed)
    listed = (instance, instance.reordered([1, 0]))
    for first in range(0, runs, BLOCK):
        count = min(BLOCK, runs - first)
        logs = [rule.demonstrate(each, horizon, runs=count, seed=seed, first_run=first) for each in listed]
        blocks = [np.asarray(log.actions).reshape(count, horizon) for log in logs]
        for at, order in enumerate(tape.orders(np.arange(first, first + count), 2)):
            which = int(order[0])
            yield PlayedRun(listed[which], first + at, blocks[which][at])


def hidden_means(played: PlayedRun, seed: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return both arms' pulls and sample means after every round, from round 0 on: arrays of (horizon + 1, 2).

    The rewards are those that the demonstrator saw; the observer never does. A mean of no rewards is 0.
    """
    horizon = played.actions.size
    pulls, means = np.zeros((horizon + 1, 2), np.int64), np.zeros((horizon + 1, 2))
    for arm in (0, 1):
        pulls[1:, arm] = np.cumsum(played.actions == arm)
        count = np.arange(1, pulls[-1, arm] + 1)
        rewards = Tape(seed).reward(played.instance, played.run, arm, count) if count.size else np.empty(0)
        running = np.concatenate([[0.0], np.cumsum(rewards) / count])
        means[:, arm] = running[pulls[:, arm]]
    return pulls, means
