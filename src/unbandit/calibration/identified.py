"""Trials of `identify`: which of a few rules made the record, as it says and in truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from unbandit.calibration.trials import Trial, Trials
from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.study.taskgrid import rule_described

__all__ = ["CANNOT_TELL", "RIGHT", "WRONG", "IdentifyTrials"]

RIGHT, WRONG, CANNOT_TELL = "right", "wrong", "cannot tell"


@dataclass(frozen=True, eq=False)
class IdentifyTrials(Trials):
    """Hold trials of `identify`; one row for each record.

    Parameters
    ----------
    candidates
        The rules among which the one that made the record is to be found.
    particles
        Of each cloud; None for as many as `identify` takes by itself.
    """

    candidates: tuple[Demonstrator, ...] = ()
    particles: int | None = None

    kind: ClassVar[str] = "identify"
    deciding: ClassVar[tuple[str, ...]] = ("identification", "estimators/request.py", "calibration/identified.py")
    columns: ClassVar[dict[str, Any]] = {
        "outcome": pl.String,
        "verdict": pl.String,
        "leading": pl.String,
        "assured": pl.Float64,
        "failure": pl.String,
    }

    @property
    def options(self) -> dict[str, Any]:
        """Return the candidates, and how much work each record is."""
        return {"candidates": [rule_described(rule) for rule in self.candidates], "particles": self.particles}

    def one(self, trial: Trial) -> dict[str, Any]:
        """Return whether the rule that made a record was found; that none fits, when one did, is wrong."""
        from unbandit.identification import identify

        setting = trial.setting
        try:
            found = identify(
                trial.log, self.candidates, prior=setting.prior, sigma=setting.sigma, bernoulli=setting.sigma is None,
                particles=self.particles, seed=trial.seed, threads=1,
            )  # fmt: skip
        except (InferenceError, NotIdentifiable) as error:
            return dict.fromkeys(self.columns) | {"outcome": [WRONG], "failure": [str(error)]}
        right = found.winner == str(setting.rule)
        outcome = CANNOT_TELL if found.verdict == CANNOT_TELL else RIGHT if right else WRONG
        return {
            "outcome": [outcome],
            "verdict": [found.verdict],
            "leading": [found.leading.name],
            "assured": [found.assured],
            "failure": [None],
        }
