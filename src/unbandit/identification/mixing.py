"""Draws of the means under a candidate whose parameters are not known: from each guess in proportion to its weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError
from unbandit.identification.weighing import CLOUDS, Question, Weighed
from unbandit.inference import Posterior, infer

__all__ = ["allotted", "drawn_means", "mixed_posterior"]

ENOUGH = 400
"""Particles of a cloud from which a few hundred sets of means are drawn, unless all of them die."""

LEAST = 0.001
"""Guesses that hold less of the probability than this are left out."""


def allotted(shares: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """Part a number in proportion to shares, every share's part being off by less than one.

    Examples
    --------
    >>> allotted(np.array([0.5, 0.1, 0.4]), 4).tolist()
    [2, 0, 2]
    """
    kept = np.where(shares >= LEAST, shares, 0.0)
    ends = np.floor(np.cumsum(kept / kept.sum()) * number + 0.5).astype(np.int64)
    return np.diff(ends, prepend=0)


def mixed_posterior(
    question: Question, which: int, rules: Sequence[Demonstrator], shares: NDArray[np.float64], name: str,
    draws: int = 1_000,
) -> Posterior:  # fmt: skip
    """Return the posterior of one demonstration's means, averaged over guesses at the rule's parameters.

    Its evidence, path and surprise are the heaviest guess's.
    """
    parts = allotted(shares, draws)
    single, horizon = question.log.select(which), [question.horizons[which]]
    found = {
        at: infer(
            single, rules[at], question.prior, question.sigma, horizon, particles=question.particles, clouds=CLOUDS,
            draws=draws, seed=question.seed, threads=question.threads,
        )
        for at in np.flatnonzero(parts).tolist()
    }  # fmt: skip
    heaviest = found[int(parts.argmax())]
    if len(found) == 1:
        return heaviest
    means = np.concatenate([posterior.means[:, : parts[at]] for at, posterior in found.items()], axis=1)
    order = np.random.default_rng([question.seed, 4]).permutation(draws)
    notices = {notice.code: notice for posterior in found.values() for notice in posterior.warnings}
    return replace(heaviest, rule=name, means=means[:, order], warnings=tuple(notices.values()))


def drawn_means(
    question: Question, which: int, rule: Demonstrator, weight: Weighed, number: int
) -> NDArray[np.float64]:
    """Draw sets of means of one demonstration under one rule, (draws, arms); where it tells nothing, from the prior."""
    arms = len(question.log.arms)
    if rule.reveals == "nothing" or question.log.lengths[which] < arms:
        return question.prior.draw(np.random.default_rng([question.seed, 5, which]), (number, arms))

    def drawn(particles: int) -> NDArray[np.float64]:
        found = infer(
            question.log.select(which), rule, question.prior, question.sigma, [question.horizons[which]],
            particles=particles, clouds=CLOUDS, draws=-(-number // CLOUDS), seed=question.seed,
            threads=question.threads,
        )  # fmt: skip
        return found.draws[:number]

    try:
        return drawn(ENOUGH)
    except InferenceError:  # all of these died, and those of the race did not
        return drawn(weight.particles)
