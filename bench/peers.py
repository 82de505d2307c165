"""The same Gaussian bandit under UCB in other packages, each the fastest way that its documentation shows.

Their widths grow with ln t where the paper's is fixed by the horizon; `level` makes the two equal at the horizon, so
that arms are pulled about as often: it is `C(1)^2 / (2 ln T)`, 1 being UCB1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Means = NDArray[np.float64]


def river(means: Means, sigma: float, level: float, rounds: int, runs: int) -> NDArray[Any]:
    from river import bandit

    values, arms = means.tolist(), range(means.size)
    actions = np.empty((runs, rounds), np.int32)
    for run in range(runs):
        policy, draw = bandit.UCB(delta=level**0.5, seed=run), random.Random(run).gauss
        for t in range(rounds):
            arm = policy.pull(arms)
            policy.update(arm, draw(values[arm], sigma))
            actions[run, t] = arm
    return actions


def mabwiser(means: Means, sigma: float, level: float, rounds: int, runs: int) -> NDArray[Any]:
    from mabwiser.mab import MAB, LearningPolicy

    values, arms = means.tolist(), list(range(means.size))
    actions = np.empty((runs, rounds), np.int32)
    for run in range(runs):
        policy, draw = MAB(arms, LearningPolicy.UCB1(alpha=level**0.5), seed=run), random.Random(run).gauss
        for t in range(rounds):
            arm = arms[t] if t < means.size else policy.predict()  # it does not try untried arms by itself
            learn = policy.partial_fit if t else policy.fit
            learn([arm], [draw(values[arm], sigma)])
            actions[run, t] = arm
    return actions


def pymab(means: Means, sigma: float, level: float, rounds: int, runs: int) -> NDArray[Any]:
    from pymab import BanditEnvironment, Experiment, ExperimentConfig, GaussianReward
    from pymab.policies import UCBPolicy

    experiment = Experiment(
        environment=BanditEnvironment(means=means, reward_model=GaussianReward(sigma)),
        policies={"ucb": UCBPolicy(n_arms=means.size, c=2 * level)},
        config=ExperimentConfig(horizon=rounds, n_replicates=runs, seed=0),
    )
    return np.asarray(experiment.run().actions)


PEERS: Mapping[str, Callable[..., NDArray[Any]]] = {"river": river, "mabwiser": mabwiser, "pymab": pymab}


def ready_peers() -> tuple[list[str], dict[str, str]]:
    """Return the peers that run here, and for the others why they do not."""
    ready, failed = [], {}
    for name, simulate in PEERS.items():
        try:
            import_module(name)
            simulate(np.array([1.0, 0.0]), 1.0, 1.0, rounds=5, runs=1)
        except ImportError as error:
            failed[name] = f"not installed ({error})"
        except Exception as error:  # whatever is wrong with a peer belongs in the table
            failed[name] = f"does not run here ({type(error).__name__}: {error})"
        else:
            ready.append(name)
    return ready, failed
