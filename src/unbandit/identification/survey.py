"""`check(log)`: every rule with a closed form, its estimate and whether it fits, in one table.

For a log with contexts, every rule that chooses by features.
"""

from __future__ import annotations

import math
import os
import warnings as python_warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np

from unbandit import checks
from unbandit.contexts import ContextLog, LinearRule, known_linear_rules
from unbandit.contexts.check import OTHER_CAUSES
from unbandit.contexts.clouds import particles_for
from unbandit.contexts.posterior import chosen_notice, most_probable
from unbandit.contexts.result import SCHEMA as CONTEXTS
from unbandit.contexts.result import ContextEstimate, angle_between, degrees, estimate_contexts
from unbandit.contexts.rule import linear_rule_or_family, parse_rule
from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule
from unbandit.demonstrators.family import RuleFamily
from unbandit.demonstrators.rule import Rule
from unbandit.errors import (
    AssumptionWarning,
    Audience,
    InferenceError,
    Notice,
    NotIdentifiable,
    ParameterError,
    UnbanditError,
    option,
    python_option,
)
from unbandit.estimators.api import estimate
from unbandit.estimators.arguments import as_log, check_numbers, horizons, one_demonstration, told_availability
from unbandit.estimators.diagnostics import misread, sorted_rows
from unbandit.fit import Check, not_checked, with_sigma
from unbandit.formatting import counted, json_number, short_numbers
from unbandit.identification.candidates import (
    Candidate,
    CandidateSpec,
    assumed_noise,
    candidates_for,
    split_candidates,
)
from unbandit.identification.signs import appeared_late, signs
from unbandit.inference import decisions
from unbandit.inference.check import DOES_NOT_FIT, check_log
from unbandit.inference.prior import usual_prior
from unbandit.inference.rivals import NEARLY_AS_PROBABLE, RANDOM, predicts, usual_parameters
from unbandit.instance import Bernoulli, Noise
from unbandit.kernels.simulate_linear import GREEDY
from unbandit.log import ActionLog
from unbandit.log.availability import Availability, AvailabilityTable
from unbandit.log.columns import noun_of
from unbandit.log.rewards import are_binary
from unbandit.progress import interruptible
from unbandit.result import Estimate
from unbandit.tables import Finding, as_written_by, check_fields, read_notices, read_number, read_whole, with_draws

if TYPE_CHECKING:
    import polars

SCHEMA = "unbandit.check/1"

LOOKS_RANDOM = (
    "Arms follow each other as if they were chosen at random. Rules that do so, such as epsilon-greedy and Thompson "
    "sampling, are not tried here."
)

NONE_FITS = (
    "Rules that choose at random, such as epsilon-greedy, Thompson sampling and learners with a softmax, are not tried "
    "here."
)

ONLY_SIMULATED = (
    "Rules were compared by simulations alone here. These seldom distinguish one index rule from another, "
    "so several may fit; each has its usual parameters."
)

BINARY = "Every reward in the log is 0 or 1, yet rewards were taken as normal with sigma = 1, as nothing was given."
PEOPLE = (
    "If every demonstration is a person who learns by trial and error, ask for the numbers of each person and of the "
    "population they come from."
)

NO_PROOF = "This does not prove that there are none."

PARTICLES = 16  # per set of parameters, to choose one
ROUNDS, MOST_ARMS = 1_000, 50  # that are read for it, and up to how many arms
MOST_LEARNERS, MOST_ROUNDS = 20, 2_000  # demonstrations with contexts that are checked, and rounds of each
FEWER = 4  # times fewer particles of a greedy rule than for an estimate
MOST_BEST = 5  # arms that are listed as the best ones


@dataclass(frozen=True)
class CheckedRule:
    """A rule, with the parameters that fit best, what it makes of the log, and whether it fits."""

    name: str  # as given
    rule: Demonstrator | LinearRule | None
    estimate: Estimate | ContextEstimate | None  # None where there is none
    check: Check  # whether it fits
    refusal: UnbanditError | None = None  # why there is no estimate
    log_evidence: float = -math.inf  # of the log's beginning, by a few particles

    @property
    def too_thin(self) -> bool:
        """Return whether too few particles explain a log with features for its coefficients to be trusted."""
        return self._warned("few-particles")

    @property
    def chosen_number(self) -> bool:
        """Return whether the rule's number was chosen from a few values, which no interval allows for."""
        return self._warned("chosen-number")

    def _warned(self, code: str) -> bool:
        notices = self.estimate.notices if isinstance(self.estimate, ContextEstimate) else ()
        return any(each.code == code for each in notices)

    @property
    def shown(self) -> str:
        """Return the best arm under it; with features, how well the direction of the coefficients is known."""
        if self.estimate is None or self.too_thin:
            return ""
        if isinstance(self.estimate, Estimate):
            best = self.estimate.best
            return ", ".join(best) if len(best) <= MOST_BEST else f"{len(best):,} arms alike"
        return degrees(self.estimate.posterior.angle)


@dataclass(frozen=True, eq=False, repr=False)
class Survey(Finding):
    """Every rule that was tried on a log, those that fit first.

    Attributes
    ----------
    rows
        One `CheckedRule` for each: those that fit, by how probable they make the log, then the others by p-value.
    sigma
        Standard deviation of a reward that was assumed; None for rewards of 0 and 1.
    warnings
        What may be wrong.
    not_tried
        The names of rules that were left out, since they choose at random or reveal no values.
    """

    rows: tuple[CheckedRule, ...]
    sigma: float | None
    warnings: tuple[Notice, ...] = ()
    not_tried: tuple[str, ...] = ()

    threshold: ClassVar[float] = DOES_NOT_FIT
    """The p-value at or below which a rule does not fit."""

    @property
    def fitting(self) -> tuple[CheckedRule, ...]:
        """Return the rules that fit."""
        return tuple(row for row in self.rows if row.check.verdict == "fits")

    @property
    def with_features(self) -> bool:
        """Return whether the rules choose by features."""
        return any(isinstance(row.rule, LinearRule) for row in self.rows)

    def answer(self) -> str:
        """Return the answer in one sentence."""
        names, number = [str(row.rule) for row in self.fitting], len(self.rows)
        unchecked = sum(row.check.verdict == "not checked" for row in self.rows)
        open_ones = f"; {unchecked} could not be checked" if unchecked else ""
        if number == 1:
            row = self.rows[0]
            does = row.check.verdict if row.check.verdict != "not checked" else "is not known to fit"
            return f"the rule {row.name if row.rule is None else row.rule} {does} this log"
        if not names:
            fits = "is known to fit" if unchecked else "fits"
            return f"none of the {number} rules that were tried {fits} this log{open_ones}"
        estimates = [row.estimate for row in self.fitting if isinstance(row.estimate, Estimate)]
        best, agree = {arm for each in estimates for arm in each.best}, ""
        if len(best) == 1 and len(names) > 1:
            some = "one" if len(estimates) == 1 else f"{len(estimates)}"
            which = "each of them" if len(estimates) == len(names) else f"the {some} with an estimate"
            agree = f'; under {which} "{next(iter(best))}" is the best arm'
        agree = self._apart() or agree
        return f"{len(names)} of {number} rules fit{'s' if len(names) == 1 else ''} this log{agree}{open_ones}"

    def _apart(self) -> str:
        """Say how far the directions of coefficients are apart under rules that fit, and which were not compared."""
        rows = [row for row in self.fitting if isinstance(row.estimate, ContextEstimate)]
        found = [cast(ContextEstimate, row.estimate) for row in rows if not row.too_thin]
        if len(rows) < 2:
            return ""
        pairs = [[angle_between(one, other) for other in found] for one in found]
        alike = max((sum(angle is not None for angle in row) for row in pairs), default=0)
        angles = [angle for at, row in enumerate(pairs) for angle in row[:at] if angle is not None]
        left_out = ((len(found) - alike, "with other coefficients"), (len(rows) - len(found), "with too few particles"))
        reasons = ", ".join(f"{many} {why}" for many, why in left_out if many)
        if not angles:
            return f"; the directions of their coefficients cannot be compared ({reasons})"
        apart = f"; the directions of their coefficients differ by up to {degrees(max(angles))}"
        return apart + (f" (not compared: {reasons})" if reasons else "")

    def __repr__(self) -> str:
        return f"<Survey: {self.answer()}>"

    def to_frame(self) -> polars.DataFrame:
        """Return one row per rule."""
        import polars as pl

        return pl.DataFrame([self._row(row) for row in self.rows], orient="row")

    def _row(self, row: CheckedRule, audience: Audience = python_option) -> dict[str, Any]:
        best = ", ".join(row.estimate.best) if isinstance(row.estimate, Estimate) else None
        return {
            "rule": row.name if row.rule is None else str(row.rule),
            "verdict": row.check.verdict,
            "p_value": row.check.p_value,
            "best": best,
            "reason": row.check.reason,
            "no_estimate": None if row.refusal is None else row.refusal.said(audience),
        }

    def to_dict(self, audience: Audience = python_option) -> dict[str, Any]:
        """Return the answer in the form that `--json` prints."""
        rows = [
            self._row(row, audience) | {"estimate": None if row.estimate is None else row.estimate.to_dict(audience)}
            for row in self.rows
        ]
        warnings = [notice.to_dict(audience) for notice in self.warnings]
        about = {"threshold": self.threshold, "not_tried": list(self.not_tried)}
        return {
            "schema": SCHEMA, "answer": self.answer(), "sigma": self.sigma, **about, "rules": rows,
            "warnings": warnings,
        }  # fmt: skip

    def to_json(self) -> str:
        """Return the answer as JSON text, with every check, from which `from_json` makes it again."""
        checks = [row.check.to_dict() for row in self.rows]
        evidence = [json_number(row.log_evidence) for row in self.rows]
        return with_draws(self.to_dict(), checks=checks, names=[row.name for row in self.rows], log_evidence=evidence)

    @classmethod
    @as_written_by("Survey")
    def from_json(cls, text: str | bytes) -> Survey:
        """Return the answer that `to_json` wrote; refuses JSON of the command line, which has no checks.

        Estimates of logs with contexts are not among it.
        """
        said = read_whole(text, SCHEMA, "checks", "Survey")
        check_fields(said, ("sigma",) if said["sigma"] is not None else ())
        rows = []
        for name, row, check, value in zip(
            said["names"], said["rules"], said["checks"], said["log_evidence"], strict=True
        ):
            found, refusal = row["estimate"], row["no_estimate"]
            found = None if found is None or found["schema"] == CONTEXTS else found
            rows.append(
                CheckedRule(
                    name, parse_rule(row["rule"]), None if found is None else Estimate.from_dict(found),
                    Check.from_dict(check), None if refusal is None else NotIdentifiable(refusal),
                    read_number(value, -math.inf),
                )
            )  # fmt: skip
        return cls(tuple(rows), said["sigma"], read_notices(said["warnings"]), tuple(said["not_tried"]))

    def __str__(self) -> str:
        lines = [f"{self.answer()}."]
        for row in self.rows:
            said = self._row(row)
            chance = "" if said["p_value"] is None else f", {row.check.chance}"
            lines.append(
                f"  {said['rule']}: {said['verdict']}{chance}" + (f" ({said['reason']})" if said["reason"] else "")
            )
        return "\n".join(lines)


def check(
    log: ActionLog | ContextLog | str | os.PathLike[str] | Any,
    candidates: CandidateSpec | Iterable[CandidateSpec] | LinearRule | Iterable[LinearRule] | None = None,
    *,
    sigma: float | None = None,
    bernoulli: bool = False,
    horizon: int | None = None,
    best_mean: float | None = None,
    level: float = 0.95,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
    demonstration: object = None,
    availability: Availability | AvailabilityTable | None = None,
    prior: float | None = None,
) -> Survey:
    """Estimate a log under every rule that has a closed form, and say which of them fit it.

    The first thing to do with a log whose origin is uncertain. It takes a few seconds; `identify` compares all rules,
    those that choose at random too, and takes longer.

    Parameters
    ----------
    log, sigma, bernoulli, horizon, best_mean, level, demonstration, availability
        As for `estimate`.
    candidates
        Rules to try, as for `identify`; by default every `proposed` rule with a closed form. Of a rule without
        parameters those values of its `grid` are taken that make the log most probable.
    progress
        Called with the name of each rule.
    prior
        Of a log with contexts: the deviation of every coefficient beforehand, as for `context_posterior`. Of such a
        log every rule that chooses by features is tried, on the first 2,000 rounds of up to 20 demonstrations. Its
        number and `disjoint`, where they are not given, are those that make the first 1,000 rounds of the first
        demonstration most probable; intervals do not allow for other numbers, and a notice says so. Sigma must be
        known; what is for means and arms is refused.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.UCB1().demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), horizon=500, seed=1)
    >>> found = ub.check(log, "ucb1,sae", sigma=0.5)
    >>> [(row.name, row.check.verdict) for row in found.rows]
    [('ucb1', 'fits'), ('sae', 'does not fit')]
    """
    if isinstance(log, ContextLog):
        others: dict[str, Any] = {"bernoulli": bernoulli or None, "horizon": horizon, "best_mean": best_mean}
        others |= {"demonstration": demonstration, "availability": availability}
        return _check_contexts(log, candidates, sigma, prior, level, seed, progress, others)
    if prior is not None:
        text = "expected only with a log that has features."
        raise ParameterError(text, parameter="prior", value=prior, remedy="Leave it out.")
    record = as_log(one_demonstration(log, demonstration, "check"), "check")
    if not record.ordered:
        raise NotIdentifiable(
            "The log holds pull counts without their order, and only the order shows the rule.",
            remedy="Bring a log with one row per round.",
        )
    check_numbers(best_mean, None, level, sigma, bernoulli)
    seed = checks.seed(seed)
    checks.function("progress", progress)
    noise, warnings = assumed_noise(sigma, bernoulli)
    if warnings and are_binary(record.rewards):
        warnings = [Notice("sigma-assumed", f"{BINARY} Give {option('bernoulli')}.")]
    considered, notes = candidates_for(cast(Any, candidates), noise, record)
    every = considered
    if candidates is None:
        considered, notes = tuple(filter(_has_closed_form, every)), []
    not_tried = tuple(each.name for each in every if each not in considered)
    rounds = horizons(horizon, record)
    known = {"bernoulli": True} if isinstance(noise, Bernoulli) else {"sigma": noise.sigma} if sigma is not None else {}
    there = None if availability is None else told_availability(record, availability)
    options: dict[str, Any] = {**known, "horizon": horizon, "best_mean": best_mean, "level": level}
    options["availability"] = there
    rows = []
    for candidate in considered:
        if progress is not None:
            progress(f"Checking {candidate.name}")
        chosen, evidence = interruptible(
            _most_probable, record, [guess for guess, _ in candidate.guesses], noise, int(rounds[0]), seed, there
        )
        try:
            with python_warnings.catch_warnings():
                python_warnings.simplefilter("ignore", AssumptionWarning)
                answer = estimate(record, chosen, check=True, **options)
            rows.append(CheckedRule(candidate.name, chosen, answer, answer.check, None, evidence))
        except UnbanditError as refusal:
            # without an estimate the rule may still be checked, at means that its posterior gives
            found = interruptible(
                check_log, record, chosen, noise, rounds.tolist(), None, noise_known=sigma is not None, seed=seed,
                availability=there,
            )  # fmt: skip
            refusal.at(notices=())  # said once, of all rules
            rows.append(CheckedRule(candidate.name, chosen, None, found, refusal, evidence))
    order = sorted(rows, key=_place)
    fitting = [row for row in rows if row.check.verdict == "fits"]
    unweighed = [row for row in fitting if isinstance(row.rule, IndexRule) and not row.check.weighed]
    if isinstance(noise, Bernoulli) and candidates is None and unweighed:
        notes = [*notes, Notice("only-simulated", ONLY_SIMULATED)]
    if not fitting:
        shown = [*(appeared_late(record) if there is None else ()), *signs(record, there)]
        habit = any(each.code == "shows-habit" for each in shown)
        random = not habit and any(row.check.instead[:1] == (RANDOM,) for row in rows)
        warnings = [*warnings, Notice("looks-random", LOOKS_RANDOM) if random else Notice("none-fits", NONE_FITS)]
        notes = [*shown, *notes, *([Notice("perhaps-people", PEOPLE)] if len(record) > 1 else [])]
    elif there is None:
        warnings = [*sorted_rows(record), *warnings]
    warnings = with_sigma(warnings, ((short_numbers(str(row.rule)), row.check) for row in order))
    said = (*misread(record), *warnings, *notes)
    return Survey(tuple(order), None if sigma is None else float(sigma), said, not_tried)


def _check_contexts(
    log: ContextLog, candidates: Any, sigma: float | None, prior: float | None, level: float, seed: int,
    progress: Callable[[str], None] | None, others: Mapping[str, Any],
) -> Survey:  # fmt: skip
    """Read the first part of a log with contexts under every rule, and say which of them fit it."""
    for name, value in others.items():
        if value is not None:
            text = "cannot be used with a log that has features."
            raise ParameterError(text, parameter=name, value=value, remedy="Leave it out.")
    if sigma is None:
        text = "expected the standard deviation of a reward, without which coefficients have no scale."
        raise ParameterError(text, parameter="sigma", remedy=f"Give it as in {option('sigma', 0.5)}.")
    checks.function("progress", progress)
    prior = 1.0 if prior is None else prior
    given: dict[str, Any] = {"sigma": checks.positive("sigma", sigma), "prior": checks.positive("prior", prior)}
    specs = sorted(known_linear_rules) if candidates is None else candidates
    specs = split_candidates(specs) if isinstance(specs, str) else [specs] if isinstance(specs, Rule) else specs
    specs = list(specs) if checks.is_list(specs) else [specs]
    rules = [linear_rule_or_family(spec, "candidates") for spec in specs]
    if not rules:
        raise ParameterError("expected one rule or more, as in linucb,lints; got none.", parameter="candidates")
    rows, wider = [], list[Notice]()
    part = f", on the first {min(ROUNDS, int(log.lengths[0])):,} rounds of the first demonstration"
    part = part if len(log) > 1 or log.rounds > ROUNDS else ""
    for spec, rule in zip(specs, rules, strict=True):
        if progress is not None:
            progress(f"Checking {spec}")
        chosen: LinearRule = rule.example if isinstance(rule, RuleFamily) else rule
        found, evidence = None, -math.inf
        refusal: UnbanditError | None = None
        try:
            chosen = interruptible(lambda rule=rule: most_probable(log.select(0, ROUNDS), rule, **given))
            many = particles_for(chosen.kind, min(int(log.lengths[0]), MOST_ROUNDS))
            particles = many // FEWER if chosen.kind == GREEDY else many
            found = estimate_contexts(
                log, chosen, **given, level=level, seed=seed, particles=particles, check=True,
                first=(MOST_LEARNERS, MOST_ROUNDS),
            )  # fmt: skip
            evidence, fit = math.fsum(each.log_evidence for each in found.posteriors.values()), found.check
            fit = replace(fit, reason=None) if fit.verdict == "fits" else fit  # what it was compared with says no more
            wider = [each for each in found.notices if each.code == "narrow-prior"][-1:] or wider
            if not isinstance(rule, LinearRule) or rule.tuning not in rule.model_fields_set:
                said_first = chosen_notice([chosen], part)
                posteriors = {
                    name: replace(each, notices=(said_first, *each.notices)) for name, each in found.posteriors.items()
                }
                found = replace(found, posteriors=posteriors, notices=(said_first, *found.notices))
        except NotIdentifiable as error:
            fit, refusal = not_checked(error.text), error
        except InferenceError as error:
            said = error.text if error.round is None else f"Round {error.round:,}: {error.text}"
            wrong = Check("does not fit", 0.0, reason=said, checked=1)
            fit, refusal = wrong if error.impossible else not_checked(f"{said} {NO_PROOF}"), error
        rows.append(CheckedRule(str(spec), chosen, found, fit, refusal, evidence))
    rows.sort(key=_place)
    warnings = [*wider, *(_thin_notice(row) for row in rows if row.too_thin)]
    if numbers := [cast(LinearRule, row.rule) for row in rows if row.chosen_number]:
        warnings.append(chosen_notice(numbers, part))
    if not any(row.check.verdict == "fits" for row in rows):
        warnings.append(Notice("none-fits", OTHER_CAUSES))
    noun = noun_of(log.demonstrations)
    learners = f"the first {MOST_LEARNERS} of {counted(len(log), noun)}" if len(log) > MOST_LEARNERS else ""
    longest, every = int(log.lengths[:MOST_LEARNERS].max()), f" of each {noun}" if len(log) > 1 else ""
    rounds = f"the first {MOST_ROUNDS:,} rounds{every}, of up to {longest:,}" if longest > MOST_ROUNDS else ""
    if read := " and ".join(filter(None, (learners, rounds))):
        warnings.append(Notice("checked-in-part", f"Checked in part: {read}."))
    return Survey(tuple(rows), given["sigma"], tuple(warnings))


def _thin_notice(row: CheckedRule) -> Notice:
    """Say that too few particles explain a log under a rule; an estimate takes more of them."""
    text = (
        f"{row.rule}: at one round hardly any particle explains the log, so that neither coefficients nor their "
        f"direction should be trusted. Estimate it with {option('rule', str(row.rule))} and more {option('particles')}."
    )
    return Notice("few-particles", text)


def _most_probable(
    log: ActionLog, guesses: Sequence[Demonstrator], noise: Noise, horizon: int, seed: int, there: Availability | None
) -> tuple[Demonstrator, float]:
    """Return the guess at a rule's parameters that makes the log's beginning most probable, and by how much.

    The usual parameters are preferred where they are nearly as probable. Where decisions cannot be predicted one by
    one, they are taken.
    """
    prior = usual_prior(noise, None)
    start = log.select(0, min(int(log.lengths[0]), ROUNDS))

    def evidence(guess: Demonstrator) -> float:
        if not isinstance(guess, IndexRule) or not predicts(guess, noise, there) or len(log.arms) > MOST_ARMS:
            return -math.inf
        try:
            given = start, guess, noise, prior, horizon, PARTICLES
            return decisions.predict(*given, seed=seed, evidence_only=True, there=there).log_evidence
        except InferenceError:
            return -math.inf

    found = checks.in_threads(evidence, [(guess,) for guess in guesses], checks.threads(None))
    best, usual = int(np.argmax(found)), usual_parameters(type(guesses[0]), noise, log)
    if len(guesses) == 1 or usual is None:
        return guesses[best], found[best]
    if usual in guesses and found[guesses.index(usual)] >= found[best] - NEARLY_AS_PROBABLE:
        best = guesses.index(usual)  # a few particles do not tell it from a slightly better one
    return (guesses[best] if found[best] > -math.inf else usual), found[best]


def _place(row: CheckedRule) -> tuple[float, ...]:
    """Return what rules are ordered by."""
    chance = -(row.check.p_value or 0.0)
    return (0.0, -row.log_evidence, chance) if row.check.verdict == "fits" else (1.0, chance, -row.log_evidence)


def _has_closed_form(candidate: Candidate) -> bool:
    """Return whether an equation inverts the rule."""
    rule = candidate.guesses[0][0]
    return not isinstance(rule, RandomisedRule) and rule.reveals == "values"
