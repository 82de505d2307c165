"""Rounds of LinUCB with features: this package, and MABWiser given the same contexts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.report import Row, rate
from bench.setting import Effort
from bench.timing import best_seconds
from unbandit import ContextInstance, LinUCB

ARMS = SIZE = 10
ROUNDS, PEER_ROUNDS = 20_000, 300
TIMES_PEER = 20.0

Contexts = NDArray[np.float64]


def compare(effort: Effort) -> list[Row]:
    generator = np.random.default_rng(0)
    theta = generator.normal(size=(ARMS, SIZE))
    rounds, peer_rounds = effort.of(ROUNDS, at_least=10), effort.of(PEER_ROUNDS, at_least=10)
    contexts = generator.normal(size=(rounds, SIZE))
    title = f"LinUCB, full log, K={ARMS}, d={SIZE}, T={rounds:,}"
    ours = partial(LinUCB(disjoint=True).demonstrate, ContextInstance(theta, 0.5), contexts, threads=1)
    calls: dict[str, Any] = {"unbandit": ours, "mabwiser": partial(mabwiser, theta, 0.5, contexts[:peer_rounds])}
    try:
        calls["mabwiser"]()
    except ImportError:
        del calls["mabwiser"]
    ours()  # compiled
    times = best_seconds(calls, effort.repeats)
    own = rounds / times["unbandit"]
    if "mabwiser" not in times:
        return [Row(title, rate(own), "MABWiser is not installed", "")]
    peer = len(contexts[:peer_rounds]) / times["mabwiser"]
    return [Row.at_least(title, rate(own), f"MABWiser, {rate(peer)}", own / peer, TIMES_PEER)]


def mabwiser(theta: Contexts, sigma: float, contexts: Contexts) -> list[int]:
    """Play MABWiser's LinUCB, one ridge regression per arm, round by round."""
    from mabwiser.mab import MAB, LearningPolicy

    policy = MAB(list(range(len(theta))), LearningPolicy.LinUCB(alpha=1, l2_lambda=1), seed=0)
    noise, actions = np.random.default_rng(1).normal(0, sigma, len(contexts)), list[int]()
    for t, context in enumerate(contexts):
        row = context[None]
        arm = int(policy.predict(row)) if t else 0  # it must be fitted before it predicts
        (policy.partial_fit if t else policy.fit)([arm], [context @ theta[arm] + noise[t]], row)
        actions.append(arm)
    return actions
