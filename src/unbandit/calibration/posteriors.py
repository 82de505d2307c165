"""Trials of the posterior: what it says of every arm, beside the truth and what seeing the rewards would have told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unbandit.calibration.oracle import oracle
from unbandit.calibration.trials import Trial, Trials
from unbandit.errors import InferenceError
from unbandit.estimators.procedures import naive
from unbandit.inference import infer

__all__ = ["LEVEL", "RANKS", "PosteriorTrials"]

LEVEL = 0.95
"""Of the intervals."""

RANKS = 99
"""Draws among which the true mean's rank is taken: ranks run from 0 to this number."""

NUMBERS = (
    *("mean", "gap", "mean_estimate", "mean_low", "mean_high", "gap_estimate", "gap_low", "gap_high"),
    *("oracle_mean", "oracle_gap", "naive_gap", "probability_best"),
    *("effective_size", "log_evidence", "log_evidence_error"),
)


@dataclass(frozen=True, eq=False)
class PosteriorTrials(Trials):
    """Hold trials of the posterior; one row for each run and arm.

    A run without a posterior has its rows too: what it lacks is null, and `failure` says why.

    Parameters
    ----------
    particles, clouds, draws
        Particles of a cloud, clouds, and draws of a cloud.
    """

    particles: int = 250
    clouds: int = 2
    draws: int = 1_000

    kind: ClassVar[str] = "posterior"
    deciding: ClassVar[tuple[str, ...]] = ("calibration/posteriors.py", "calibration/oracle.py")
    columns: ClassVar[dict[str, Any]] = {
        "arm": pl.Int64,
        "pulls": pl.Int64,
        **dict.fromkeys(NUMBERS, pl.Float64),
        "rank": pl.Int64,
        "warnings": pl.String,
        "failure": pl.String,
    }

    @property
    def options(self) -> dict[str, Any]:
        """Return how much work each posterior is, and the intervals' level."""
        return {"particles": self.particles, "clouds": self.clouds, "draws": self.draws, "level": LEVEL}

    def one(self, trial: Trial) -> dict[str, Any]:
        """Return what the posterior says of every arm of one record, and the truth."""
        setting, pulls = trial.setting, trial.log.pulls[0]
        seen = oracle(setting.prior, setting.sigma, pulls, trial.sums)
        known = {
            "arm": np.arange(setting.arms),
            "pulls": pulls,
            "mean": trial.instance.means,
            "gap": trial.instance.gaps,
            "oracle_mean": seen.mean,
            "oracle_gap": seen.gap,
            "naive_gap": naive(pulls, setting.horizon, np.sqrt(2) * trial.instance.sigma).gap,
        }
        nothing = dict.fromkeys(self.columns.keys() - known.keys(), None)
        try:
            return known | nothing | self._answer(trial)
        except InferenceError as error:
            return known | nothing | {"failure": str(error)}

    def _answer(self, trial: Trial) -> dict[str, Any]:
        setting = trial.setting
        found = infer(
            trial.log, setting.rule, setting.prior, setting.sigma, [setting.horizon], particles=self.particles,
            clouds=self.clouds, draws=self.draws, seed=trial.seed, threads=1,
        )  # fmt: skip
        (mean_low, mean_high), (gap_low, gap_high) = found.interval(LEVEL), found.interval(LEVEL, gaps=True)
        few = found.draws[np.linspace(0, len(found.draws) - 1, RANKS).astype(int)]
        return {
            "mean_estimate": found.draws.mean(axis=0),
            "mean_low": mean_low,
            "mean_high": mean_high,
            "gap_estimate": found.gaps.reshape(-1, setting.arms).mean(axis=0),
            "gap_low": gap_low,
            "gap_high": gap_high,
            "probability_best": found.probability_best,
            "effective_size": found.effective_size,
            "log_evidence": found.log_evidence,
            "log_evidence_error": found.log_evidence_error,
            "rank": (few < trial.instance.means).sum(axis=0),
            "warnings": ",".join(sorted({notice.code for notice in found.warnings})) or None,
        }
