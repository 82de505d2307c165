"""How probable a record is under a rule, the hidden rewards and the means integrated out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError
from unbandit.inference.filtering import EmptiedError, filtered, log_mean, surprises
from unbandit.inference.prior import Prior, belief_of
from unbandit.log import ActionLog

__all__ = ["Evidence", "evidence_of"]


@dataclass(frozen=True)
class Evidence:
    """Hold how probable a record is under a rule.

    Attributes
    ----------
    log_evidence, error
        Natural logarithm and its Monte-Carlo standard error; minus infinity for a record that the rule cannot make.
    per_cloud
        What each cloud found.
    surprise
        The logarithm of each round's probability given those before it.
    round, reason
        Where and why the rule cannot have made the record.
    emptied
        Whether this is so only because no particle explains it; more of them might.
    """

    log_evidence: float
    error: float
    per_cloud: tuple[float, ...] = ()
    surprise: NDArray[np.float64] | None = None
    round: int | None = None
    reason: str | None = None
    emptied: bool = False


def evidence_of(
    log: ActionLog, which: int, rule: Demonstrator, prior: Prior, sigma: float | None, horizon: int,
    particles: int | None = None, clouds: int = 4, seed: int = 0, threads: int | None = None,
) -> Evidence:  # fmt: skip
    """Return how probable demonstration `which` is under a rule; one that it cannot make is no error here.

    Sigma None stands for rewards of 0 and 1.
    """
    single = log.select(which)
    try:
        found = filtered(
            single, rule, belief_of(prior, len(log.arms), sigma, None), [horizon], particles, clouds, seed, threads,
            marks=False, tolerant=True,
        )  # fmt: skip
    except InferenceError as error:
        text, emptied = str(error), isinstance(error, EmptiedError)
        place = text.partition(":")[0].removeprefix("round ")
        where = int(place) if place.isdigit() else None
        return Evidence(-math.inf, 0.0, round=where, reason=text, emptied=emptied)
    value, error_of = log_mean(found.evidences)
    return Evidence(value, error_of, tuple(found.evidences.tolist()), surprises(found))
