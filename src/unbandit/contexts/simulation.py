"""Simulations of learners that choose by features: what rewards follow, and demonstrations on given contexts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbandit import checks
from unbandit.contexts.design import Design
from unbandit.contexts.log import ContextLog
from unbandit.errors import ParameterError
from unbandit.kernels.rng import QUANTILE_TABLE
from unbandit.kernels.simulate_linear import LinearOptions, LinearTape, Offers, choose_by_features
from unbandit.progress import interruptible
from unbandit.tape import Stream, Tape


@dataclass(frozen=True, eq=False)
class ContextInstance:
    """What the rewards of offers follow: `x'theta`, and normal noise with deviation `sigma`.

    Parameters
    ----------
    theta
        The parameters: one number per feature; in a disjoint model one row per arm. An intercept is the last number.

    Examples
    --------
    >>> ContextInstance([[1.0, 0.0], [0.5, 0.5]], sigma=0.5)
    <ContextInstance: 2 arms with 2 parameters each, sigma 0.5>
    """

    theta: NDArray[np.float64]
    sigma: float

    def __init__(self, theta: ArrayLike, sigma: float = 1.0) -> None:
        values = checks.numbers("theta", theta)
        if values.ndim not in (1, 2) or not values.size or not np.isfinite(values).all():
            text = f"expected finite numbers, one per feature, or one row of them per arm; got {checks.brief(theta)}."
            raise ParameterError(text, parameter="theta", value=theta)
        values.setflags(write=False)
        object.__setattr__(self, "theta", values)
        object.__setattr__(self, "sigma", checks.positive("sigma", sigma))

    def __repr__(self) -> str:
        size = f"{self.theta.shape[-1]} parameters"
        who = size if self.theta.ndim == 1 else f"{len(self.theta)} arms with {size} each"
        return f"<ContextInstance: {who}, sigma {self.sigma:g}>"


def demonstrated(
    options: LinearOptions, design: Design, offered: ContextLog, instance: ContextInstance, *, runs: int, seed: int,
    rewards: bool, threads: int | None, first_run: int,
) -> ContextLog:  # fmt: skip
    """Play a rule on the offers of a log; see `LinearRule.demonstrate`."""
    checks.flag("rewards", rewards)
    runs = checks.whole("runs", runs)
    _check_theta(instance, design)
    thetas = np.broadcast_to(instance.theta.reshape(-1), (runs, design.parameters))
    chosen, gained = choices_at(options, design, thetas, instance.sigma, seed, threads, first_run)
    offers = len(offered.features)
    offsets = np.concatenate([offered.offsets[:-1] + run * offers for run in range(runs)] + [[runs * offers]])
    return ContextLog.from_arrays(
        np.tile(offered.features, (runs, 1)), chosen.reshape(-1), offsets=offsets,
        codes=np.tile(offered.codes, runs), arms=offered.arms, feature_names=offered.feature_names,
        starts=np.arange(runs + 1) * offered.rounds, rewards=gained.reshape(-1) if rewards else None,
    )  # fmt: skip


def choices_at(
    options: LinearOptions, design: Design, thetas: NDArray[np.float64], sigma: float, seed: int = 0,
    threads: int | None = None, first_run: int = 0,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # fmt: skip
    """Play a rule once at each row of `thetas`; return what was chosen and gained, one row per run.

    The offers of a design with several demonstrations are played as one.
    """
    runs, rounds = len(thetas), design.chosen.size
    first_run = checks.whole("first_run", first_run, 0, 2**32 - runs)
    offers = Offers(design.vectors, design.blocks, design.codes, design.offsets, design.count, design.arms)
    tape = LinearTape(Tape(seed).key, QUANTILE_TABLE)
    chosen, gained = np.empty((runs, rounds), np.int64), np.empty((runs, rounds))
    parameters = np.ascontiguousarray(thetas, np.float64)

    def fill(first: int, last: int) -> None:
        choose_by_features(
            offers, parameters[first:last], sigma, options, tape, first_run + first, chosen[first:last],
            gained[first:last],
        )  # fmt: skip

    workers = checks.threads(threads, runs)
    ends = np.linspace(0, runs, workers + 1).astype(int).tolist()
    interruptible(checks.in_threads, fill, list(pairwise(ends)), workers)
    return chosen, gained


def offers_of(
    contexts: ArrayLike | ContextLog, instance: ContextInstance, *, disjoint: bool,
    feature_names: Sequence[object] | None = None, arms: Sequence[object] | None = None,
) -> ContextLog:  # fmt: skip
    """Return the offers of given contexts as a log in which the first is always chosen."""
    if not isinstance(instance, ContextInstance):
        text = f"expected a ContextInstance; got {checks.brief(instance)}."
        remedy = "Give one such as ContextInstance([1.0, 0.5], sigma=0.5)."
        raise ParameterError(text, parameter="instance", value=instance, remedy=remedy)
    if isinstance(contexts, ContextLog):
        if feature_names is not None or arms is not None:
            text = "expected only with an array; a log has names."
            raise ParameterError(text, parameter="arms, feature_names", remedy="Leave them out.")
        if len(contexts) > 1:
            text = f"expected contexts of one demonstration; got a log of {len(contexts)}."
            raise ParameterError(text, parameter="contexts", remedy="Take one with select.")
        return contexts
    values = checks.numbers("contexts", contexts)
    if values.ndim == 2 and disjoint and instance.theta.ndim == 2:
        values = np.repeat(values[:, None, :], len(instance.theta), axis=1)
    if values.ndim != 3 or not values.size:
        text = f"expected an array (rounds, arms, features); got shape {values.shape}."
        remedy = "An array (rounds, features) is for a disjoint model, with one row of theta per arm."
        raise ParameterError(text, parameter="contexts", remedy=remedy)
    first = np.zeros(len(values), np.int64)
    return ContextLog.from_arrays(values, first, arms=arms, feature_names=feature_names)


def random_contexts(
    horizon: int, arms: int, size: int, *, alike: bool, seed: int, names: Sequence[object] | None = None
) -> ContextLog:
    """Draw offers with independent normal features of variance `1 / size`.

    They are a log in which the first offer is always chosen. If `alike`, all arms of a round have the same features,
    for disjoint models.
    """
    rows = 1 if alike else arms
    drawn = Tape(seed).normal(np.arange(horizon)[:, None], np.arange(rows * size), 1, Stream.CONTEXTS)
    values = np.broadcast_to(drawn.reshape(horizon, rows, size), (horizon, arms, size)) / np.sqrt(size)
    return ContextLog.from_arrays(values, np.zeros(horizon, np.int64), arms=names)


def _check_theta(instance: ContextInstance, design: Design) -> None:
    """Refuse parameters that are not those of the rule's model."""
    disjoint = any(arm is not None for _, arm in design.names)
    expected = (design.count, design.size) if disjoint else (design.size,)
    if instance.theta.shape != expected:
        names = ", ".join(feature for feature, _ in design.names[: design.size])
        who = f"{design.count} rows, one per arm, of {design.size} numbers" if disjoint else f"{design.size} numbers"
        text = f"expected {who} ({names}); got shape {instance.theta.shape}."
        raise ParameterError(text, parameter="theta", remedy="An intercept is the last number.")
