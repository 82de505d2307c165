"""The answer of `identify`: every candidate with its evidence, a verdict, a check, and the surprising rounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from unbandit import checks, formatting
from unbandit.demonstrators import parse_rule
from unbandit.errors import Audience, Notice, NotIdentifiable, ParameterError, python_option
from unbandit.fit import Check
from unbandit.formatting import json_number
from unbandit.identification.evidence import SMALL, Contender, Guess, IdentificationRequest, LogEvidence
from unbandit.identification.values import mixed_values, values_under
from unbandit.inference import Posterior
from unbandit.inference.conventions import Convention
from unbandit.inference.prior import parse_prior
from unbandit.instance import Bernoulli, noise_with
from unbandit.tables import Finding, as_written_by, read_notices, read_number, read_whole, with_draws

if TYPE_CHECKING:
    import polars

    from unbandit.log import ActionLog

SCHEMA = "unbandit.identify/2"

Verdict = Literal["identified", "cannot tell", "fits", "none fits"]


@dataclass(frozen=True)
class Surprise:
    """A round that the leading candidate did not expect, with its log probability."""

    round: int
    arm: str
    log_probability: float
    demonstration: str


@dataclass(frozen=True, eq=False, repr=False)
class Identification(Finding):
    """Which rule made a log, or that the log cannot distinguish some of them.

    Attributes
    ----------
    verdict
        `identified`; `cannot tell`, if two or more candidates are left, or one that could not be checked; `fits`, if a
        single candidate was given, and the log looks like one of its; or `none fits`, if not even the most probable
        candidate makes such logs.
    candidates
        The most probable first. Each has the `check` whether it fits, if it was still possible by its evidence.
    assured
        The probability of the first one with the Monte-Carlo error of each difference in log evidence held against it:
        one standard error, or two where the error itself is large. It is identified if this is at least 0.95.
    left
        The names of those that cannot be distinguished from the first one, itself included.
    averaged
        The names of those that values are averaged over: all that are still probable, also where one is identified.
    values
        The posterior of every mean, averaged over these candidates and over their unknown parameters; None if the log
        says nothing about them, if no candidate fits, or if there are several demonstrations.
    best_by_rule
        The arm that is probably the best under each of the candidates whose values are averaged, if one is.
    surprises
        The rounds that it expected least, of those whose probability is known (see `Posterior.surprise`).
    warnings
        What may be wrong.
    notes
        What is worth knowing.

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
    averaged: tuple[str, ...]
    surprises: tuple[Surprise, ...]
    question: IdentificationRequest
    values: Posterior | None = None
    best_by_rule: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Notice, ...] = field(default=())
    notes: tuple[Notice, ...] = field(default=())

    @property
    def leading(self) -> Contender:
        """Return the most probable candidate, whatever the verdict is."""
        return self.candidates[0]

    @property
    def winner(self) -> str | None:
        """Return the name of the candidate that made the log; None where the verdict is another."""
        return self.leading.name if self.verdict == "identified" else None

    @property
    def check(self) -> Check:
        """Return whether the most probable candidate fits the log."""
        return self.leading.check

    def value_table(self, level: float = 0.95, *, demonstration: int | None = None) -> polars.DataFrame | None:
        """Return the arms, best first: pulls, probability to be the best, gap, and for rewards of 0 and 1 the mean.

        Actions show how normal rewards differ between arms, not their common level. Of several demonstrations, each has
        its own values: give the position of one.
        """
        values = self.values if demonstration is None else self.demonstration_values(demonstration)
        if values is None:
            return None
        table = values.to_frame(level)
        levels = isinstance(self.question.noise, Bernoulli) or self.question.log.rewards is not None
        return table if levels else table.drop("mean", "mean_low", "mean_high")

    @property
    def _convention(self) -> str:
        """Return how the leading candidate explains the log, if only by another convention than the one given."""
        guess = self.leading.guesses[0]
        return "" if guess.convention is None else f" (as {guess.rule})"

    def __repr__(self) -> str:
        return f"<Identification: {len(self.candidates)} candidates, {self.verdict}, {self.answer()}>"

    def __getitem__(self, name: str) -> Contender:
        """Return a candidate by its name."""
        for candidate in self.candidates:
            if candidate.name == name:
                return candidate
        raise KeyError(f"{name!r}: expected a candidate among {', '.join(each.name for each in self.candidates)}")

    def answer(self) -> str:
        """Return the verdict as a sentence without its full stop."""
        leading = self.leading
        if self.verdict == "identified":
            chance = formatting.probability(leading.probability)
            who = f"the most probable rule is {leading.name}{self._convention}"
            return f"{who}: probability {chance} if one of the candidates made this log"
        if self.verdict == "fits":
            return f"this log looks like one that {leading.name}{self._convention} made; no other rule was considered"
        if self.verdict == "none fits" and len(self.candidates) == 1:
            return f"this log does not look like one that {leading.name} made"
        if self.verdict == "none fits":
            return f"none of the candidates made this: even {leading.name}, the most probable, does not make such logs"
        if len(self.left) == 1:
            return f"{leading.name} is the most probable candidate, but it was not checked whether it makes such logs"
        if all(self[name].probability < SMALL for name in self.left[1:]):
            others = formatting.joined(self.left[1:], "or")
            what = (
                f"too few particles explain the log under {others} to exclude {'it' if len(self.left) == 2 else 'them'}"
            )
            return f"{leading.name} is the most probable candidate; {what}"
        return f"this log cannot distinguish between {formatting.joined(self.left)}"

    def posterior(self, name: str | None = None, *, demonstration: int = 0, draws: int = 1_000) -> Posterior:
        """Return the posterior of every mean under a candidate, by default the leading one.

        Draws come from each set of its parameters in proportion to the set's probability, so that the intervals include
        the uncertainty about them.

        Parameters
        ----------
        name
            Of the candidate.
        demonstration
            Position of the demonstration in the log.
        draws
            Per cloud.
        """
        candidate = self.leading if name is None else self[name]
        if not candidate.possible:
            raise NotIdentifiable(f"{candidate.name} cannot have made the log: {candidate.reason}")
        checks.whole("demonstration", demonstration, 0, len(self.question.log) - 1)
        candidate = replace(candidate, probability=1.0)
        values = values_under(self.question, demonstration, candidate, draws)
        mixed = mixed_values(self.question, [(candidate, values)], draws)
        if mixed is None:
            raise NotIdentifiable(values.reason or "The log says nothing about the means.")
        return mixed

    def demonstration_values(self, which: int = 0) -> Posterior | None:
        """Return the posterior of every mean in one demonstration, averaged over the candidates that are probable.

        None where the log says nothing about the means.
        """
        if len(self.question.log) == 1 or self.verdict == "none fits":
            return self.values
        checks.whole("demonstration", which, 0, len(self.question.log) - 1)
        probable = [self[name] for name in self.averaged]
        return mixed_values(self.question, [(each, values_under(self.question, which, each)) for each in probable])

    def to_frame(self) -> polars.DataFrame:
        """Return every set of parameters of every candidate as a table, the most probable first."""
        import polars as pl

        kinds = {
            "candidate": pl.String, "rule": pl.String, "log_evidence": pl.Float64, "error": pl.Float64,
            "candidate_probability": pl.Float64, "share": pl.Float64, "reason": pl.String,
        }  # fmt: skip
        rows = [
            (candidate.name, str(guess.rule), json_number(guess.evidence.value), json_number(guess.evidence.error),
             candidate.probability, guess.share, guess.evidence.reason)
            for candidate in self.candidates
            for guess in candidate.guesses
        ]  # fmt: skip
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def to_dict(self, audience: Audience = python_option, level: float = 0.95) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints; null where there is no number."""
        asked, table = self.question, self.value_table(level)
        same = len(set(asked.horizons)) == 1
        return {
            "schema": SCHEMA,
            "verdict": self.verdict,
            "winner": self.winner,
            "leading": self.leading.name,
            "assured": self.assured,
            "left": list(self.left),
            "averaged": list(self.averaged),
            "horizon": asked.horizons[0] if same else list(asked.horizons),
            "demonstrations": len(asked.log),
            "sigma": asked.sigma,
            "prior": str(asked.prior),
            "seed": asked.seed,
            "candidates": [_candidate(each, self.leading) for each in self.candidates],
            "check": {"candidate": self.leading.name} | self.check.to_dict(),
            "level": level,
            "values": None if table is None else table.to_dicts(),
            "best_by_rule": dict(self.best_by_rule),
            "surprises": [asdict(each) for each in self.surprises],
            "warnings": [notice.to_dict(audience) for notice in self.warnings],
            "notes": [notice.to_dict(audience) for notice in self.notes],
        }

    def to_json(self, level: float = 0.95) -> str:
        """Return the answer as JSON text, with every check and the draws of `values`; `from_json` makes it again."""
        conventions = [
            [None if guess.convention is None else list(map(str, guess.convention)) for guess in each.guesses]
            for each in self.candidates
        ]
        return with_draws(
            self.to_dict(level=level),
            alone=self.question.alone,
            rewards_known=self.question.log.rewards is not None,
            checks=[each.check.to_dict() for each in self.candidates],
            conventions=conventions,
            posterior=None if self.values is None else json.loads(self.values.to_json(level)),
        )

    @classmethod
    @as_written_by("Identification")
    def from_json(cls, text: str | bytes) -> Identification:
        """Return the answer that `to_json` wrote; refuses JSON of the command line, which has no draws.

        The log is not in it: `posterior` and the values of one of several demonstrations need `identify` again.
        """
        said = read_whole(text, SCHEMA, "checks", "Identification")
        many, horizon, values = said["demonstrations"], said["horizon"], said["posterior"]
        question = IdentificationRequest(
            cast("ActionLog", SavedLog(many, rewards_known=said["rewards_known"])),
            tuple(horizon) if isinstance(horizon, list) else (horizon,) * many, parse_prior(said["prior"]),
            noise_with(said["sigma"]), None, said["seed"], None,
            alone=said["alone"],
        )  # fmt: skip
        candidates = zip(said["candidates"], said["checks"], said["conventions"], strict=True)
        return cls(
            said["verdict"], tuple(_read_candidate(*each) for each in candidates), said["assured"], tuple(said["left"]),
            tuple(said["averaged"]), tuple(Surprise(**each) for each in said["surprises"]), question,
            None if values is None else Posterior.from_dict(values), said["best_by_rule"],
            read_notices(said["warnings"]), read_notices(said["notes"]),
        )  # fmt: skip

    def summary(self) -> polars.DataFrame:
        """Return one row per candidate, the most probable first: how far behind, its probability, whether it fits."""
        import polars as pl

        rows = [
            (each.name, json_number(self.leading.evidence.value - each.evidence.value), each.probability,
             each.check.verdict, each.reason or each.check.brief or None)
            for each in self.candidates
        ]  # fmt: skip
        kinds = {"candidate": pl.String, "behind": pl.Float64, "probability": pl.Float64, "fits": pl.String,
                 "reason": pl.String}  # fmt: skip
        return pl.DataFrame(rows, schema=kinds, orient="row")

    def plot(self, *, ax: Any = None) -> Any:
        """Draw how far each candidate is behind, and the record beside simulations of the leading one.

        On `ax`, one axes for the first or two for both, which is then returned; default a new figure.
        """
        from unbandit.plots.posterior import draw_identification

        return draw_identification(self, ax=ax)


class LogNotSaved(ParameterError, AttributeError):
    """What is asked for is in the log, which an answer that was read from JSON does not have."""


class SavedLog:
    """What an answer that was read from JSON knows of its log: how many demonstrations, and whether with rewards."""

    def __init__(self, demonstrations: int, *, rewards_known: bool) -> None:
        self._demonstrations = demonstrations
        self.rewards = () if rewards_known else None

    def __len__(self) -> int:
        return self._demonstrations

    def __getattr__(self, name: str) -> Any:
        """Refuse everything else."""
        if name.startswith("_"):  # what copy and pickle look for
            raise AttributeError(name)
        raise LogNotSaved(
            "this answer was read from JSON, which does not hold the log.",
            parameter="log",
            remedy="Call identify with the log again.",
        )


def _read_candidate(said: Mapping[str, Any], check: Mapping[str, Any], conventions: list[Any]) -> Contender:
    """Return the candidate that `_candidate` wrote."""
    guesses = []
    for each, used in zip(said["guesses"], conventions, strict=True):
        share = each["beforehand"] if each["share"] is None else each["share"]
        convention = None if used is None else Convention(*map(parse_rule, used))
        guesses.append(Guess(parse_rule(each["rule"]), each["beforehand"], share, _read_evidence(each), convention))
    return Contender(said["name"], tuple(guesses), _read_evidence(said), said["probability"], Check.from_dict(check))


def _read_evidence(said: Mapping[str, Any]) -> LogEvidence:
    """Return log evidence: minus infinity where JSON has none."""
    value, error = said["log_evidence"], said["error"]
    if value is None:
        return LogEvidence.impossible(said["reason"], round=said.get("round"), particles=said.get("particles", 0))
    low, high = (value if said.get(end) is None else said[end] for end in ("low", "high"))
    return LogEvidence(value, read_number(error), low, high, particles=said.get("particles", 0), reason=said["reason"])


def _candidate(candidate: Contender, leading: Contender) -> dict[str, Any]:
    evidence = candidate.evidence
    return {
        "name": candidate.name,
        "log_evidence": json_number(evidence.value),
        "error": json_number(evidence.error) if candidate.possible else None,
        "low": json_number(evidence.low),
        "high": json_number(evidence.high),
        "behind": json_number(leading.evidence.value - evidence.value),
        "probability": candidate.probability,
        "fits": candidate.check.verdict,
        "p_value": candidate.check.p_value,
        "reason": candidate.reason,
        "round": evidence.round,
        "guesses": [
            {
                "rule": str(guess.rule),
                "beforehand": guess.beforehand,
                "share": guess.share if candidate.possible else None,
                "log_evidence": json_number(guess.evidence.value),
                "error": json_number(guess.evidence.error) if guess.evidence.reason is None else None,
                "particles": guess.evidence.particles,
                "reason": guess.evidence.reason,
            }
            for guess in candidate.guesses
        ],
    }
