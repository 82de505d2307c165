"""`context_posterior`: the coefficients of a linear demonstrator, from features and choices alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbandit import checks
from unbandit.contexts.check import DISJOINT_WORK, check_notice, check_record, first_part
from unbandit.contexts.clouds import PathClouds, particles_for, run_clouds
from unbandit.contexts.design import Design, has_equal_offers
from unbandit.contexts.expectation import (
    Approximation,
    ChoiceRecord,
    approximate,
    impossible_at_first,
    log_rewards,
    path_of,
    readings,
    rough_evidence,
    step_of,
)
from unbandit.contexts.log import ContextLog
from unbandit.contexts.parameters import fit_strength, likeliest, wider_prior
from unbandit.contexts.rule import LinearRule, checked_contexts, linear_rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.demonstrators.rule import guess_notice
from unbandit.errors import Audience, InferenceError, Notice, NotIdentifiable, ParameterError, option, python_option
from unbandit.fit import UNCHECKED, Check, FittedNumber, fitted_notice
from unbandit.formatting import counted, joined, json_number, short_numbers
from unbandit.formatting import number as number_text
from unbandit.inference.draws import UNSETTLED, evidence_differs, movements
from unbandit.kernels.simulate_linear import GREEDY, UCB
from unbandit.log.columns import noun_of
from unbandit.progress import interruptible
from unbandit.tables import Finding, as_written_by, read_json, read_notices, read_number, with_draws

if TYPE_CHECKING:
    import polars

SCHEMA = "unbandit.coefficients/1"
CLOUDS, DRAWS = 4, 1_000  # independent clouds, and draws of each
MORE = 4  # times as many particles for clouds of which one died
THINNEST = 50.0  # effective particles of a greedy rule's cloud below which its answer is not to be trusted
UNSEEN_FROM, BOUNDED_FROM = 0.95, 0.5  # of the prior's deviation: that of a coefficient of which little is known
MISSING = f"Name every feature that the learner used with {option('features')}: one may be missing"
EQUAL = 1e-12  # the share of a value by which two of equal offers may differ as they are computed
MOST_NUMBERS = 12_000_000  # offers times coefficients: below 1 GB with five offers of three features per round
FEWEST_ROUNDS = 100  # of a log that is too large, if its first rounds are read


@dataclass(frozen=True, eq=False, repr=False)
class ContextPosterior(Finding):
    """Draws from the posterior of a linear model's coefficients, given which offers were chosen.

    Attributes
    ----------
    rule, sigma, prior
        As for `context_posterior`.
    level
        Of the intervals.
    names
        The feature and the arm (None in a shared model) of every coefficient.
    arms
        The arms' names.
    rounds
        The length of the record.
    coefficients
        Draws: (clouds, draws, coefficients). Clouds are independent of each other.
    mean
        The expectation of every coefficient.
    covariance
        The covariance of the coefficients.
    log_evidence
        Log probability of the choices under the rule and the prior (and density of the rewards that are known).
    log_evidence_error
        Its Monte-Carlo standard error.
    effective_size
        The smallest effective sample size that any cloud fell to before it was resampled.
    particles
        The size of a cloud.
    notices
        What may be wrong.
    check
        Whether the rule fits the choices, beside rivals: `contexts/check.py`.
    fitted
        The rule's number that was fitted from the log (`FIT`), with an interval. The draws are averaged over it.
    """

    rule: str
    sigma: float
    prior: float
    level: float
    names: tuple[tuple[str, str | None], ...]
    arms: tuple[str, ...]
    rounds: int
    coefficients: NDArray[np.float64]
    mean: NDArray[np.float64]
    covariance: NDArray[np.float64]
    log_evidence: float
    log_evidence_error: float
    effective_size: float
    particles: int
    notices: tuple[Notice, ...] = ()
    check: Check = UNCHECKED
    fitted: tuple[FittedNumber, ...] = ()

    def __repr__(self) -> str:
        many = counted(len(self.names), "coefficient")
        rounds = counted(self.rounds, "round")
        return f"<ContextPosterior: {many}, {self.rule}, {rounds}, log evidence {self.log_evidence:.1f}>"

    def to_frame(self) -> polars.DataFrame:
        """Return one row per coefficient: its expectation, its interval and the verdict."""
        import polars as pl

        low, high = self.interval()
        features, arms = zip(*self.names, strict=True)
        names = {"feature": pl.Series(features, dtype=pl.String), "arm": pl.Series(arms, dtype=pl.String)}
        numbers = {"value": self.mean, "low": low, "high": high}
        return pl.DataFrame(names | numbers | {"verdict": pl.Series(self.verdicts, dtype=pl.String)})

    def to_dict(self, audience: Audience = python_option) -> dict[str, Any]:
        """Return the answer as plain values, without the draws."""
        about = ("rule", "sigma", "prior", "level", "rounds", "log_evidence", "effective_size", "particles")
        answer: dict[str, Any] = {"schema": SCHEMA} | {name: getattr(self, name) for name in about}
        answer["log_evidence_error"] = json_number(self.log_evidence_error)
        answer |= {"arms": list(self.arms), "check": self.check.to_dict()}
        answer["fitted"] = [each.to_dict() for each in self.fitted]
        answer["notices"] = [notice.to_dict(audience) for notice in self.notices]
        answer["coefficients"] = self.to_frame().to_dicts()
        return answer

    def to_json(self) -> str:
        """Return JSON text with the draws of every coefficient, from which `from_json` makes it again."""
        return with_draws(self.to_dict(), draws=self.coefficients.tolist(), covariance=self.covariance.tolist())

    @classmethod
    @as_written_by("ContextPosterior")
    def from_json(cls, text: str | bytes) -> ContextPosterior:
        """Return the posterior that `to_json` wrote."""
        said = read_json(text, SCHEMA)
        rows = said["coefficients"]
        return cls(
            said["rule"], said["sigma"], said["prior"], said["level"],
            tuple((row["feature"], row["arm"]) for row in rows), tuple(said["arms"]), said["rounds"],
            np.array(said["draws"], np.float64), np.array([row["value"] for row in rows], np.float64),
            np.array(said["covariance"], np.float64), said["log_evidence"], read_number(said["log_evidence_error"]),
            said["effective_size"], said["particles"], read_notices(said["notices"]), Check.from_dict(said["check"]),
            tuple(FittedNumber(**each) for each in said["fitted"]),
        )  # fmt: skip

    @property
    def draws(self) -> NDArray[np.float64]:
        """Return all draws, (draws, coefficients)."""
        return self.coefficients.reshape(-1, len(self.names))

    @cached_property
    def has_intercept(self) -> bool:
        """Return whether the rule's model has an intercept; a feature of the log may have that name too."""
        rule = linear_rule_or_family(self.rule)
        return bool((rule.example if isinstance(rule, RuleFamily) else rule).intercept)

    def interval(self, level: float | None = None) -> NDArray[np.float64]:
        """Return the central interval of every coefficient: (2, coefficients)."""
        level = self.level if level is None else checks.level(level)
        return np.asarray(np.quantile(self.draws, [0.5 - level / 2, 0.5 + level / 2], axis=0))

    @cached_property
    def verdicts(self) -> tuple[str, ...]:
        """Return for each coefficient: estimated, bounded (half the prior's deviation or more is left), or unseen."""
        left = np.sqrt(np.diag(self.covariance)) / self.prior
        names = np.where(left >= UNSEEN_FROM, "unseen", np.where(left >= BOUNDED_FROM, "bounded", "estimated"))
        return tuple(names.tolist())

    @cached_property
    def angle(self) -> float:
        """Return the angle between the coefficients and their expectation, in degrees: root mean square."""
        lengths = np.linalg.norm(self.draws, axis=1) * np.linalg.norm(self.mean)
        cosines = np.clip(self.draws @ self.mean / lengths, -1, 1)
        return float(np.degrees(np.sqrt(np.square(np.arccos(cosines)).mean())))

    def length(self, level: float | None = None) -> tuple[float, float]:
        """Return the central interval of the length of the vector of coefficients."""
        level = self.level if level is None else checks.level(level)
        low, high = np.quantile(np.linalg.norm(self.draws, axis=1), [0.5 - level / 2, 0.5 + level / 2])
        return float(low), float(high)

    def predict(self, features: ArrayLike, level: float | None = None) -> NDArray[np.float64]:
        """Return expectation and central interval of the value of each row of features.

        Without its intercept, if the model has one. (3, rows) in a shared model, (3, rows, arms) in a disjoint one.
        """
        level = self.level if level is None else checks.level(level)
        values = self._values(features)
        low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2], axis=0)
        return np.stack([values.mean(axis=0), low, high])

    def best_at(self, context: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each offer to be the best one, or as good as it.

        In a shared model a context has one row of features per offer; in a disjoint one it is one row for all arms.
        """
        values = self._values(context)
        if self._disjoint and values.shape[1] != 1:
            text = f"expected one row of features, which all arms share; got {values.shape[1]}."
            raise ParameterError(text, parameter="context", remedy="Ask for one context at a time.")
        worth = values[:, 0] if self._disjoint else values
        rounding = EQUAL * np.abs(worth).max(axis=1, keepdims=True)
        return np.asarray((worth >= worth.max(axis=1, keepdims=True) - rounding).mean(axis=0))

    @property
    def _disjoint(self) -> bool:
        return self.names[0][1] is not None

    def plot(self, *, truth: ArrayLike | None = None, ax: Any = None) -> Any:
        """Draw every coefficient with its interval, and the true ones where they are known (`plots.coefficients`).

        On `ax`, which is then returned; default a new figure.
        """
        from unbandit.plots import coefficients

        return coefficients(self, truth=truth, ax=ax)

    def _values(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return draws of the value of each row: (draws, rows), or (draws, rows, arms)."""
        rows = np.atleast_2d(checks.numbers("features", features))
        size = len(self.names) // (len(self.arms) if self._disjoint else 1)
        expected = size - self.has_intercept
        if rows.ndim != 2 or rows.shape[1] != expected or not np.isfinite(rows).all():
            text = (
                f"expected rows of {counted(expected, 'finite number')}, one per feature; got the shape {rows.shape}."
            )
            raise ParameterError(text, parameter="features", remedy="Give the features of the log, in its order.")
        if self.has_intercept:
            rows = np.column_stack((rows, np.ones(len(rows))))
        if not self._disjoint:
            return np.asarray(self.draws @ rows.T)
        return np.asarray(np.einsum("das,rs->dra", self.draws.reshape(-1, len(self.arms), size), rows))


def context_posterior(
    log: ContextLog, rule: LinearRule | RuleFamily | str, *, sigma: float, prior: float = 1.0, level: float = 0.95,
    particles: int | None = None, seed: int = 0, threads: int | None = None, check: bool = True,
) -> ContextPosterior:  # fmt: skip
    """Draw from the posterior of a linear demonstrator's coefficients, from features and choices alone.

    Parameters
    ----------
    log
        One demonstration. Rewards that it has are used, also if they were rounded after the learner had them.
    rule
        The rule that made it, with its numbers: `LinUCB`, `LinTS`, `LinEpsilonGreedy` or `LinSoftmax`, or its text. The
        number that says how much it explores may be `FIT`.
    sigma
        Standard deviation of a reward around its expectation `x' theta`.
    prior
        Standard deviation of every coefficient beforehand, around 0. A notice says if a wider one makes the choices
        clearly more probable.
    particles
        Of each of four clouds; by default 1,500 to 4,000, fewer for a longer record; a third as many for `LinTS` and
        `LinSoftmax`, and up to four times as many for `LinEpsilonGreedy`.
    check
        Whether to compare the rule with rivals.

    Raises
    ------
    InferenceError
        If the rule cannot have made the record; with the round in which that shows.

    Examples
    --------
    >>> from unbandit import ContextInstance, LinUCB
    >>> contexts = np.random.default_rng(1).normal(size=(200, 4, 2))
    >>> log = LinUCB(alpha=1).demonstrate(ContextInstance([1.0, -0.5], sigma=0.5), contexts, seed=1)
    >>> found = context_posterior(log, LinUCB(alpha=1), sigma=0.5, particles=500)
    >>> bool((abs(found.mean - [1.0, -0.5]) < 0.2).all())
    True
    """
    sigma, prior, level = checks.positive("sigma", sigma), checks.positive("prior", prior), checks.level(level)
    number = None if particles is None else checks.whole("particles", particles)
    seed = checks.seed(seed)
    checks.flag("check", check)
    log, given = checked_contexts(log), linear_rule_or_family(rule)
    _refuse(log)
    family = given if isinstance(given, RuleFamily) else None
    if family is not None:
        _check_free(family)
    rule_at: LinearRule = given.example if isinstance(given, RuleFamily) else given
    rule_at.refuse_unlearnt(log)
    design = rule_at.design(log)
    in_part: list[Notice] = []
    rounds = int(np.searchsorted(log.offsets, MOST_NUMBERS // design.parameters, side="right")) - 1
    if rounds < log.rounds:
        if rounds < FEWEST_ROUNDS:
            raise NotIdentifiable(
                f"The log has {design.vectors.shape[0] // log.rounds:,} offers per round for a model with "
                f"{design.parameters:,} coefficients: only {rounds:,} rounds of it can be held in memory.",
                remedy="Take fewer features, or the same coefficients for all arms.",
            )
        text = f"Read in part: the first {rounds:,} of {log.rounds:,} rounds, which show what the learner learnt first."
        in_part.append(Notice("read-in-part", text))
        log = log.select(0, rounds)
        design = rule_at.design(log)
    record = _record(design, rule_at, log.rewards)
    number = number or particles_for(record.kind, record.chosen.size)
    fitted: tuple[FittedNumber, ...] = ()
    if family is not None:
        found, approximation, value = interruptible(
            lambda: fit_strength(
                record, family.kind.tuning, sigma=sigma, prior=prior, level=level, particles=number, clouds=CLOUDS,
                seed=seed, threads=threads,
            )
        )  # fmt: skip
        fitted = (value,)
        rule_at = family.at({family.kind.tuning: approximation.record.strength})
    else:
        found, approximation = interruptible(lambda: _run(record, rule_at, sigma, prior, number, seed, threads))
    evidence, record, named = found.log_evidence[0], approximation.record, short_numbers(str(rule_at))
    fit = UNCHECKED
    if check:
        fit = interruptible(
            lambda: check_record(
                record, named, sigma=sigma, prior=prior, log_evidence=evidence, seed=seed, design=design
            )
        )
    answer = _answer(found, approximation, log, str(given), design, sigma, prior, level, seed)
    said = (fitted_notice(fitted, level),) if fitted else ()
    guessed = guess_notice(given, given.guessed, can_fit=True) if isinstance(given, LinearRule) else []
    tuning = "sigma" if rule_at.kind == GREEDY else rule_at.tuning
    in_proportion = None if fitted or log.rewards is not None else tuning
    checked = check_notice(fit, named, in_proportion)
    if check:
        part = first_part(record)
        wider = interruptible(lambda: wider_prior(part, sigma, prior, fitted=family is not None))
        checked = checked if wider is None else [_narrow_prior(prior, wider, rule_at.tuning), *checked]
    notices = (*checked, *guessed, *answer.notices, *in_part, *_rounded(record), *said)
    return replace(answer, check=fit, fitted=fitted, notices=notices)


def most_probable(
    log: ContextLog, rule: LinearRule | RuleFamily, *, sigma: float, prior: float = 1.0
) -> LinearRule:  # fmt: skip
    """Return a rule with the number that makes one demonstration most probable, and with `disjoint` likewise.

    By the Gaussian approximation alone, and only what is not given: a rule with its number stays as it is.
    """
    if isinstance(rule, LinearRule):
        if rule.tuning in rule.model_fields_set:
            return rule
        rule = RuleFamily(type(rule), {name: getattr(rule, name) for name in rule.model_fields_set}, (rule.tuning,))
    _check_free(rule)
    several = "disjoint" not in rule.known
    best: tuple[float, LinearRule] | None = None
    for disjoint in (False, True) if several else (bool(rule.known["disjoint"]),):
        family = replace(rule, known={**rule.known, "disjoint": disjoint})
        if several and not disjoint and has_equal_offers(log):
            continue
        size = (len(log.feature_names) + family.example.intercept) * len(log.arms)
        if disjoint and best is not None and len(log.features) * size**2 > DISJOINT_WORK:
            break
        record = _record(family.example.design(log), family.example, log.rewards)
        value, evidence = likeliest(record, sigma, prior)
        evidence += log_rewards(record, sigma, prior)
        if best is None or evidence > best[0]:
            best = evidence, family.at({family.kind.tuning: value})
    assert best is not None
    return best[1]


def chosen_notice(rules: Sequence[LinearRule], where: str = "") -> Notice:
    """Say that rules have a number that `most_probable` chose; `where` is the part of the log that it read."""
    one, names = len(rules) == 1, joined(sorted({rule.name for rule in rules}))
    numbers = [f"{rule.tuning} = {number_text(rule.strength)}" for rule in rules]
    were = f"{joined(numbers)} of {names} was" if one else f"{joined(numbers)} were"
    them, its = ("it", "its value") if one else ("them", "their values")
    first = rules[0]
    known = {name: getattr(first, name) for name in type(first).model_fields if name != first.tuning}
    known = {name: value for name, value in known.items() if value != type(first).model_fields[name].default}
    family = str(RuleFamily(type(first), known, (first.tuning,))).replace("=True", "=true")
    kinds = {rule.kind for rule in rules}
    proportion = "" if kinds == {GREEDY} else ", about in proportion" + (" but for epsilon" if GREEDY in kinds else "")
    text = (
        f"{were} not given, but chosen from a few values{where}. The length of the coefficients depends on "
        f"{them}{proportion}; their direction hardly does. No interval of coefficients allows for other values. To "
        f"allow for them, estimate with {option('rule', family)}, or give {its}."
    )
    return Notice("chosen-number", text)


def _check_free(family: RuleFamily) -> None:
    """Refuse a family with another number to be fitted than that of how much the rule explores."""
    if family.free != (family.kind.tuning,):
        text = f"expected {family.kind.tuning}=fit and no other number to be fitted; got {family}."
        raise ParameterError(text, parameter="rule", value=str(family), remedy="Give the other numbers a value.")


def _narrow_prior(prior: float, wider: float, tuning: str) -> Notice:
    """Say that coefficients seem to be larger than was assumed beforehand."""
    text = (
        f"The choices are clearly more probable if coefficients may be larger than assumed: deviation "
        f"{number_text(wider)} instead of {number_text(prior)}. As it is, they are drawn towards 0. If they may be so "
        f"large, give {option('prior')} the deviation {number_text(wider)} (normal:deviation={number_text(wider)}) "
        f"before anything else; otherwise {tuning} or another number of the rule may be wrong."
    )
    return Notice("narrow-prior", text)


def _refuse(log: ContextLog) -> None:
    """Refuse several demonstrations."""
    if len(log) > 1:
        text = f"the log has {counted(len(log), noun_of(log.demonstrations))}."
        raise ParameterError(text, parameter="log", count=len(log), remedy="Take one with select.")


def dense(design: Design) -> NDArray[np.float64]:
    """Return the vectors of a design in full length, with zeros outside of the offer's own block."""
    if design.count == 1:
        return design.vectors
    full = np.zeros((design.vectors.shape[0], design.count, design.size))
    full[np.arange(len(full)), design.blocks] = design.vectors
    return full.reshape(len(full), -1)


def _record(design: Design, rule: LinearRule, rewards: NDArray[np.float64] | None = None) -> ChoiceRecord:
    """Return the record of a design, for the sampler."""
    return ChoiceRecord(
        vectors=dense(design), offsets=design.offsets, chosen=design.chosen, known=rule.known(design.chosen.size),
        kind=rule.kind, strength=rule.strength, ridge=rule.ridge,
        first_wins=rule.ties == "lowest", rewards=np.zeros(0) if rewards is None else np.array(rewards, np.float64),
    )  # fmt: skip


def _run(
    record: ChoiceRecord, rule: LinearRule, sigma: float, prior: float, particles: int, seed: int, threads: int | None
) -> tuple[PathClouds, Approximation]:
    """Approximate the path, and send clouds around it."""
    path = path_of(record, sigma=sigma, prior=prior)
    if record.kind == UCB and (first := impossible_at_first(path)) is not None:
        raise InferenceError(
            f"{rule} with these features chooses another offer in this round, before it knows any reward.",
            round=first + 1, remedy=f"{MISSING}; or another rule made the log, or one with other numbers.",
        ).at(impossible=True)  # fmt: skip
    several = readings(record, sigma)
    if len(several) > 1:
        record = max(several, key=lambda each: rough_evidence(each, sigma, prior) - each.reluctance)
        path = path_of(record, sigma=sigma, prior=prior)
    approximation = approximate(record, path)
    if not math.isfinite(approximation.log_start):
        raise InferenceError(
            f"{rule} with these features does not explain the log: no hidden rewards were found that lead to its "
            "choices.",
            remedy=f"{_causes(record, rule, sigma)}; or its features have very different sizes.",
        )
    found = run_clouds(approximation, particles=particles, clouds=CLOUDS, seed=seed, threads=threads)
    if any(found.died):
        found = run_clouds(approximation, particles=MORE * particles, clouds=CLOUDS, seed=seed, threads=threads)
    if any(found.died):
        state = max(found.died)
        raise InferenceError(
            f"{rule} with these features does not explain the log so far: of {MORE * particles:,} series of hidden "
            "rewards that were tried, none leads to this choice.",
            round=int(path.first_choice[state]) + 1,
            remedy=f"{_causes(record, rule, sigma)}; or more particles are needed.",
        )
    return found, approximation


def _causes(record: ChoiceRecord, rule: LinearRule, sigma: float) -> str:
    """Name what makes a record impossible for a rule: a missing feature, another rule, or rewards not as assumed."""
    own = "all arms may have the same coefficients" if rule.disjoint else "every arm may have coefficients of its own"
    text = f"{MISSING}; {own} (disjoint={str(not rule.disjoint).lower()}); another rule or other parameters made it; "
    step = step_of(record.rewards)
    if step > sigma:
        return (
            f"{text}or its rewards, multiples of {number_text(step)}, were rounded more coarsely than sigma allows for"
        )
    if np.isfinite(record.rewards).any():
        return f"{text}or its rewards are not those that the learner had"
    return f"{text}or its rewards are far from normal, with few values or rare large ones"


def _rounded(record: ChoiceRecord) -> list[Notice]:
    """Say that rewards are taken to have been rounded after the learner had them."""
    if not record.rounded_to:
        return []
    text = (
        f"The rewards in the log are multiples of {number_text(record.rounded_to)}. The choices are more probable if "
        "the learner had them before they were rounded: this is assumed."
    )
    return [Notice("rounded-rewards", text)]


def _answer(
    found: PathClouds, approximation: Approximation, log: ContextLog, rule: str, design: Design, sigma: float,
    prior: float, level: float, seed: int,
) -> ContextPosterior:  # fmt: skip
    """Draw coefficients given the states: theta is normal around them, with the covariance of known rewards."""
    covariance = approximation.path.covariance
    states = found.states[..., : design.parameters]
    clouds, particles, size = states.shape
    generator = np.random.default_rng([seed, 8])
    factor = np.linalg.cholesky(covariance)
    chosen = np.resize(np.arange(particles), DRAWS) if particles < DRAWS else np.arange(DRAWS)
    draws = states[:, chosen] + generator.standard_normal((clouds, DRAWS, size)) @ factor.T
    pooled = states.reshape(-1, size)
    evidence, error = found.log_evidence
    evidence += log_rewards(approximation.record, sigma, prior)
    return ContextPosterior(
        rule=rule, sigma=sigma, prior=prior, level=level, names=design.names, arms=log.arms, rounds=log.rounds,
        coefficients=draws, mean=pooled.mean(axis=0), covariance=covariance + np.cov(pooled.T).reshape(size, size),
        log_evidence=evidence, log_evidence_error=error, effective_size=found.effective_size, particles=particles,
        notices=(
            *_clouds_differ(draws, design.names, particles),
            *evidence_differs(found.evidences, found.effective_size, particles, by_chance=True),
            *_thin_clouds(found.effective_size, approximation.record.kind, particles),
        ),
    )  # fmt: skip


def _thin_clouds(smallest: float, kind: int, particles: int) -> list[Notice]:
    """Warn where hardly any particle of a greedy rule explains a part of the log.

    A choice of such a rule may be a random one, so that the hidden path has several explanations; clouds that come down
    to one of them agree with each other and may all be wrong.
    """
    if kind != GREEDY or smallest >= THINNEST:
        return []
    text = (
        f"This posterior should not be trusted: at one round only {max(smallest, 1):.0f} of {particles:,} particles "
        f"explain the log, so that coefficients may be wrong and intervals too short. Give many more "
        f"{option('particles')} and compare two seeds."
    )
    return [Notice("few-particles", text)]


def _clouds_differ(
    draws: NDArray[np.float64], names: tuple[tuple[str, str | None], ...], particles: int
) -> list[Notice]:
    """Warn where another seed would typically move a coefficient by an eighth of its interval's half-length."""
    far = [move for move in movements(list(draws)) if move.quantity == "mean" and move.share > UNSETTLED]
    if not far:
        return []
    worst = max(far, key=lambda move: move.share)
    feature, arm = names[worst.arm]
    of_arm = "" if arm is None else f' of "{arm}"'
    text = (
        f'The computation has not settled: another seed would typically move the coefficient of "{feature}"{of_arm} by '
        f"{worst.size:.2g} ({worst.share:.0%} of its interval's half-length). Give more {option('particles')} than "
        f"{particles:,}."
    )
    return [Notice("clouds-differ", text, arm=arm)]
