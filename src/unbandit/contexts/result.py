"""What a log with contexts says: coefficients, the best arm at the average context, and values of other contexts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.contexts.posterior import ContextPosterior, context_posterior
from unbandit.contexts.table import read_features
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import Audience, Notice, python_option
from unbandit.formatting import counted, json_number
from unbandit.log.formats import sources_of
from unbandit.log.sources import Layout, Paths
from unbandit.tables import Finding

if TYPE_CHECKING:
    from unbandit.contexts.log import ContextLog
    from unbandit.contexts.rule import LinearRule

SCHEMA = "unbandit.contexts/1"


@dataclass(frozen=True, eq=False, repr=False)
class ContextEstimate(Finding):
    """Coefficients of a linear model from a log with contexts, and what follows from them.

    Attributes
    ----------
    posterior
        The draws behind all of it.
    best
        The probability of each arm to be the best one at the average context: in a shared model, every arm at the
        average of its own features.
    predictions
        The value of every row that was asked for, with its interval; None if none was.
    notices
        What may be wrong, and what to know about how the log was read.
    """

    posterior: ContextPosterior
    best: Mapping[str, float]
    predictions: pl.DataFrame | None = None
    notices: tuple[Notice, ...] = ()

    def __repr__(self) -> str:
        arm, chance = max(self.best.items(), key=lambda pair: pair[1])
        many = counted(len(self.posterior.names), "coefficient")
        return f"<ContextEstimate: {many}, {self.posterior.rule}, best {arm} with probability {chance:.3g}>"

    def to_frame(self) -> pl.DataFrame:
        """Return one row per coefficient."""
        return self.posterior.to_frame()

    def to_dict(self, audience: Audience = python_option) -> dict[str, Any]:
        """Return the answer in the form that JSON has it."""
        found, (low, high) = self.posterior, self.posterior.length()
        answer: dict[str, Any] = {
            "schema": SCHEMA,
            "rule": found.rule,
            "method": "posterior",
            "rounds": found.rounds,
            "level": found.level,
            "sigma": found.sigma,
            "prior": found.prior,
            "log_evidence": json_number(found.log_evidence),
            "direction": {"angle": json_number(found.angle)},
            "length": {"low": low, "high": high},
            "check": {"verdict": found.check.verdict, "p_value": found.check.p_value, "instead": found.check.instead},
            "fitted": [each.to_dict() for each in found.fitted],
            "notices": [notice.to_dict(audience) for notice in self.notices],
            "best": [{"arm": arm, "probability": chance} for arm, chance in self.best.items()],
            "coefficients": self.to_frame().to_dicts(),
        }
        if self.predictions is not None:
            answer["predictions"] = self.predictions.to_dicts()
        return answer


def estimate_contexts(
    log: ContextLog, rule: LinearRule | RuleFamily | str, *, sigma: float, prior: float = 1.0, level: float = 0.95,
    particles: int | None = None, seed: int = 0, predict: Paths | None = None, layout: Layout | None = None,
    check: bool = True,
) -> ContextEstimate:  # fmt: skip
    """Estimate the coefficients of a log with contexts; `predict` is a table of contexts whose values to add."""
    rows = None
    if predict is not None:  # read first: what is wrong with it should not wait
        rows = read_features(sources_of(predict, layout or Layout(), unpack=True), log.feature_names)
    found = context_posterior(
        log, rule, sigma=sigma, prior=prior, level=level, particles=particles, seed=seed, check=check
    )
    chances = found.best_at(average_context(log, disjoint=found.names[0][1] is not None))
    ranked = np.argsort(-chances, kind="stable")
    best = {log.arms[at]: float(chances[at]) for at in ranked}
    predictions = None if rows is None else _predicted(found, rows, log.arms)
    return ContextEstimate(found, best, predictions, (*log.reading, *found.notices))


def average_context(log: ContextLog, *, disjoint: bool) -> NDArray[np.float64]:
    """Return the average features: of all offers, one row for a disjoint model; of the offers of each arm for a shared.

    An arm that was never offered has the average of all.
    """
    total = log.features.mean(axis=0)
    if disjoint:
        return np.asarray(total)[None]
    counts = np.bincount(log.codes, minlength=len(log.arms))
    sums = np.zeros((len(log.arms), log.features.shape[1]))
    np.add.at(sums, log.codes, log.features)
    return np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], total)


def _predicted(found: ContextPosterior, rows: NDArray[np.float64], arms: Sequence[str]) -> pl.DataFrame:
    """Return the value of every row with its interval; in a disjoint model, for every arm."""
    mean, low, high = found.predict(rows)
    columns: dict[str, Any] = {"row": np.arange(1, len(rows) + 1)}
    if mean.ndim == 2:
        columns["row"] = np.repeat(columns["row"], len(arms))
        columns["arm"] = pl.Series(list(arms) * len(rows), dtype=pl.String)
    return pl.DataFrame(columns | {"value": mean.ravel(), "low": low.ravel(), "high": high.ravel()})
