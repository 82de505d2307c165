"""The switching estimate from a long log in memory, against adding up the same array."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unbandit
from bench.report import Row, seconds
from bench.setting import RULE, Effort, instance_of
from bench.timing import best_seconds

ARMS, ROUNDS = 20, 100_000_000


def compare(effort: Effort) -> list[Row]:
    rounds = effort.of(ROUNDS)
    log = RULE.demonstrate(instance_of(ARMS), rounds, threads=1)
    actions = log.actions.astype(np.int32)
    times = best_seconds({"estimate": lambda: estimate(actions), "sum": actions.sum}, effort.repeats)
    title = f"Switching estimate from {rounds:,} int32 actions, K={ARMS}"
    compared = f"`actions.sum()`, {seconds(times['sum'])}"
    return [Row.at_most(title, seconds(times["estimate"]), compared, times["estimate"] / times["sum"], 4)]


def estimate(actions: NDArray[np.int32]) -> Any:
    """Do what a user does: the array is made a log, checked, counted and inverted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", unbandit.AssumptionWarning)
        return unbandit.estimate(unbandit.ActionLog.from_actions(actions), RULE, check=False)
