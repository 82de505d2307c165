"""A million short logs, estimated in one call on all cores, against adding up the same array."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

import unbandit
from bench.report import Row, cores, seconds
from bench.setting import RULE, SIGMA, Effort, instance_of
from bench.timing import best_seconds

LOGS, ROUNDS = 1_000_000, 1_000
ARMS = (4, 10)
REACH = 4.0


def compare(effort: Effort) -> list[Row]:
    return [_row(arms, effort) for arms in ARMS]


def _row(arms: int, effort: Effort) -> Row:
    logs = effort.of(LOGS, at_least=2_000)
    actions = _actions(arms, logs)
    times = best_seconds({"estimate": lambda: estimate(actions), "sum": actions.sum}, min(effort.repeats, 3))
    title = f"Switching estimates from {logs:,} logs of {ROUNDS:,} rounds in memory, K={arms}, {cores()} cores"
    compared = f"`actions.sum()`, {seconds(times['sum'])}"
    return Row.at_most(title, seconds(times["estimate"]), compared, times["estimate"] / times["sum"], REACH)


def _actions(arms: int, logs: int) -> NDArray[np.uint8]:
    """Simulate one row a log, of one byte a round."""
    log = RULE.demonstrate(instance_of(arms), ROUNDS, runs=logs, seed=1)
    assert log.actions is not None
    return log.actions.astype(np.uint8, copy=False).reshape(logs, ROUNDS)


def estimate(actions: NDArray[np.uint8]) -> Any:
    """Do what a user does: the array is made a log, checked, counted and inverted."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", unbandit.AssumptionWarning)
        return unbandit.estimate(unbandit.ActionLog.from_actions(actions), RULE, sigma=SIGMA, check=False)
