"""The answer: every candidate with its evidence, a verdict, a check, and the rounds that surprise."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator
from unbandit.errors import Notice, NotIdentifiable, ParameterError
from unbandit.identification.check import PredictiveCheck, mixed_posterior
from unbandit.identification.evidence import IdentificationRequest, LogEvidence
from unbandit.inference import Posterior

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

SCHEMA = "unbandit.identify/1"

Verdict = Literal["identified", "cannot tell", "none fits"]


@dataclass(frozen=True)
class Guess:
    """Hold a candidate's rule with one set of parameters.

    Attributes
    ----------
    rule
        The rule.
    beforehand, share
        How likely the set is among the candidate's own, before the log is read and after.
    weighed
        How probable the log is under it.
    """

    rule: Demonstrator
    beforehand: float
    share: float
    weighed: LogEvidence


@dataclass(frozen=True)
class Contender:
    """Hold a candidate with what the log says about it.

    Attributes
    ----------
    name
        As it was asked for.
    guesses
        Its sets of parameters, the most probable first.
    weighed
        The log's probability, averaged over them.
    probability
        Of the candidate, all being equally likely beforehand.
    """

    name: str
    guesses: tuple[Guess, ...]
    weighed: LogEvidence
    probability: float

    @property
    def possible(self) -> bool:
        """Return whether it can have made the log."""
        return self.weighed.value > -math.inf

    @property
    def reason(self) -> str | None:
        """Return why it cannot have made the log."""
        return self.weighed.reason


@dataclass(frozen=True)
class Surprise:
    """Hold a round that the leading candidate did not expect, with the logarithm of its probability."""

    round: int
    arm: str
    log_probability: float
    demonstration: str


@dataclass(frozen=True, eq=False, repr=False)
class Identification:
    """Hold which rule made a log, or that it cannot be told.

    Attributes
    ----------
    verdict
        `identified`; `cannot tell`, where two or more candidates are left within the Monte-Carlo error; or `none fits`,
        where even the leading candidate does not reproduce the record.
    candidates
        The most probable first.
    assured
        The probability of the first one if its evidence is taken at the low end of its Monte-Carlo error, and all
        others' at the high end. It is identified where this is 0.95 or more.
    left
        The names of those that cannot be told from the first one, itself included.
    check
        Whether the first one reproduces the record.
    surprises
        The rounds that surprise it most.
    warnings, notes
        What may be wrong, and what is worth knowing.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.SAE(alpha=0).demonstrate(ub.Instance([1.0, 0.0], 0.5), horizon=300, seed=1)
    >>> found = ub.identify(log, "ucb:alpha=0,sae:alpha=0,uniform", sigma=0.5)
    >>> found.verdict, found.winner
    ('identified', 'sae:alpha=0')
    """

    verdict: Verdict
    candidates: tuple[Contender, ...]
    assured: float
    left: tuple[str, ...]
    check: PredictiveCheck
    surprises: tuple[Surprise, ...]
    question: IdentificationRequest
    warnings: tuple[Notice, ...] = field(default=())
    notes: tuple[Notice, ...] = field(default=())

    @property
    def leading(self) -> Contender:
        """Return the most probable candidate, whatever the verdict is."""
        return self.candidates[0]

    @property
    def winner(self) -> str | None:
        """Return the name of the candidate that made the log; None where that cannot be told."""
        return self.leading.name if self.verdict == "identified" else None

    def __repr__(self) -> str:
        return f"<Identification: {len(self.candidates)} candidates, {self.verdict}, {self.answer()}>"

    def __getitem__(self, name: str) -> Contender:
        """Return a candidate by its name."""
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        raise KeyError(f"{name!r}: expected a candidate among {', '.join(each.name for each in self.candidates)}")

    def answer(self) -> str:
        """Return the verdict in words."""
        leading = self.leading
        if self.verdict == "identified":
            return f"it was {leading.name}, with probability {_share(leading.probability)} among the candidates"
        if self.verdict == "none fits":
            return f"none of the candidates made this: even {leading.name}, the most probable, does not reproduce it"
        return f"it cannot be told from this log among {', '.join(self.left)}"

    def posterior(self, name: str | None = None, *, demonstration: int = 0, draws: int = 1_000) -> Posterior:
        """Return the posterior of every mean under a candidate, averaged over what its parameters may be.

        Draws come from each set of parameters in proportion to its probability, so that the intervals hold what is not
        known about them too.

        Parameters
        ----------
        name
            A candidate; by default the leading one.
        demonstration
            Its position in the log.
        draws
            Of each of the clouds.
        """
        candidate = self.leading if name is None else self[name]
        if not candidate.possible:
            raise NotIdentifiable(f"{candidate.name} cannot have made the log: {candidate.reason}")
        if not 0 <= demonstration < len(self.question.log):
            raise ParameterError(
                f"expected a position from 0 to {len(self.question.log) - 1}; got {demonstration}.",
                parameter="demonstration",
            )
        guesses = candidate.guesses
        return mixed_posterior(
            self.question, demonstration, [guess.rule for guess in guesses],
            np.array([guess.share for guess in guesses]), candidate.name, draws,
        )  # fmt: skip

    @cached_property
    def frame(self) -> polars.DataFrame:
        """Return every set of parameters of every candidate as a table, the most probable first."""
        import polars as pl

        kinds = {
            "candidate": pl.String, "rule": pl.String, "log_evidence": pl.Float64, "error": pl.Float64,
            "candidate_probability": pl.Float64, "share": pl.Float64, "reason": pl.String,
        }  # fmt: skip
        rows = [
            (candidate.name, str(guess.rule), _number(guess.weighed.value), _number(guess.weighed.error),
             candidate.probability, guess.share, guess.weighed.reason)
            for candidate in self.candidates
            for guess in candidate.guesses
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def to_dict(self) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints; null where there is no number."""
        asked = self.question
        same = len(set(asked.horizons)) == 1
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "winner": self.winner,
            "leading": self.leading.name,
            "assured": self.assured,
            "left": list(self.left),
            "horizon": asked.horizons[0] if same else list(asked.horizons),
            "demonstrations": len(asked.log),
            "sigma": asked.sigma,
            "prior": str(asked.prior),
            "seed": asked.seed,
            "candidates": [_candidate(each, self.leading) for each in self.candidates],
            "check": asdict(self.check)
            | {"statistics": [asdict(row) for row in self.check.statistics], "fits": self.check.fits},
            "surprises": [asdict(each) for each in self.surprises],
            "warnings": [notice.to_dict() for notice in self.warnings],
            "notes": [notice.to_dict() for notice in self.notes],
        }

    def to_json(self) -> str:
        """Return the answer as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def plot(self) -> Figure:
        """Draw how far each candidate is behind, and the record beside what the leading one makes."""
        from unbandit.plots.identification import draw_identification

        return draw_identification(self)


def shares_of(beforehand: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how likely each set of parameters is after the log; as beforehand where none can have made it."""
    if not np.isfinite(values).any():
        return np.asarray(beforehand / beforehand.sum())
    shares = beforehand * np.exp(values - values[np.isfinite(values)].max())
    return np.asarray(shares / shares.sum())


def _candidate(candidate: Contender, leading: Contender) -> dict[str, Any]:
    """Lay out one candidate."""
    weighed = candidate.weighed
    return {
        "name": candidate.name,
        "log_evidence": _number(weighed.value),
        "error": _number(weighed.error) if candidate.possible else None,
        "low": _number(weighed.low),
        "high": _number(weighed.high),
        "behind": _number(leading.weighed.value - weighed.value),
        "probability": candidate.probability,
        "reason": weighed.reason,
        "round": weighed.round,
        "guesses": [
            {
                "rule": str(guess.rule),
                "beforehand": guess.beforehand,
                "share": guess.share if candidate.possible else None,
                "log_evidence": _number(guess.weighed.value),
                "error": _number(guess.weighed.error) if guess.weighed.reason is None else None,
                "particles": guess.weighed.particles,
                "reason": guess.weighed.reason,
            }
            for guess in candidate.guesses
        ],
    }


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _share(probability: float) -> str:
    """Write a probability without saying that anything is certain.

    Examples
    --------
    >>> _share(0.9871), _share(1.0)
    ('0.987', 'more than 0.999')
    """
    return "more than 0.999" if probability > 0.9995 else f"{probability:.3f}"
