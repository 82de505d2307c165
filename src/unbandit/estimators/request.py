"""What was asked of an estimator, checked and completed; and the answer as it comes about."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, RandomisedRule
from unbandit.errors import LogError, Notice, ParameterError, option
from unbandit.estimators.intervals import quantile
from unbandit.estimators.procedures import Anchor, Method, check_comparable, needed
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.log import ActionLog
from unbandit.log.tallies import Record, Tallies, is_record
from unbandit.result import NUMBERS, UNSEEN, Columns

if TYPE_CHECKING:
    from unbandit.inference import Posterior

DRAWING = ("bootstrap", "posterior")
"""The methods that draw random numbers."""

FEWEST_RESAMPLES = 100
"""Fewer would leave the ends of a 95% interval to two or three of them."""


@dataclass(frozen=True)
class Request:
    """A record, the rule that is taken to have made it, and what is known besides.

    Attributes
    ----------
    log, rule, method
        The record, its rule for this many arms, and how it is read: by a closed form or the naive estimator.
    horizons
        `T` of each demonstration.
    noise, anchor
        The rewards' noise, and the one mean that is known, if any.
    level
        Of the intervals.
    constant
        Of the naive estimator.
    scale, reference
        Whether the width's scale is known, and the arm that ratios are counted in, if one was given.
    """

    log: Record
    rule: Demonstrator
    method: Method
    horizons: NDArray[np.int64]
    noise: Noise
    anchor: Anchor | None
    level: float
    constant: float
    scale: Literal["known", "unknown"]
    reference: int | None

    @property
    def z(self) -> float:
        """Return the normal quantile of the level."""
        return quantile(self.level)

    @property
    def sigma(self) -> float:
        """Return the standard deviation of a reward; 1/2, the largest there can be, for Bernoulli rewards."""
        return usual_sigma(self.noise)

    @property
    def whole(self) -> ActionLog:
        """Return the record as a log whose rounds can be looked at."""
        return with_rounds(self.log, f"method {self.method}")

    @cached_property
    def tallies(self) -> Tallies:
        """Return what the method counts."""
        check_comparable(self.rule, self.method)
        return self.log.tallied(needed(self.rule, self.method))

    def part(
        self, start: int, stop: int
    ) -> tuple[Tallies, Demonstrator, Method, NDArray[np.int64], float, Anchor | None]:
        """Return what `procedures.compare` takes of the demonstrations from `start` up to `stop`."""
        tallies, horizons = self.tallies.part(start, stop), self.horizons[start:stop]
        return tallies, self.rule, self.method, horizons, self.constant, self.anchor


@dataclass
class Answer:
    """Numbers, verdicts and notices as they come about: one row per demonstration, or one row in all.

    Attributes
    ----------
    numbers
        Those that there are, by name; what is left out has no number anywhere.
    best
        Which arms may be best.
    """

    demonstrations: Sequence[str]
    pulls: NDArray[np.int64]
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    verdict: NDArray[np.int8] = field(init=False)
    best: NDArray[np.bool_] = field(init=False)
    warnings: list[Notice] = field(default_factory=list)
    notes: list[Notice] = field(default_factory=list)
    posteriors: list[Posterior] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.verdict = np.full(self.pulls.shape, UNSEEN, np.int8)
        self.best = np.zeros(self.pulls.shape, np.bool_)

    def make_room(self, *names: str) -> None:
        """Make room for numbers, all of which are put in later."""
        self.numbers |= {name: np.empty(self.pulls.shape) for name in names}

    def put(
        self, rows: int | slice, numbers: Mapping[str, NDArray[np.float64]], verdict: NDArray[np.int8],
        best: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """Put one row, or some, in their places."""
        for name, values in numbers.items():
            self.numbers[name][rows] = values
        self.verdict[rows], self.best[rows] = verdict, best

    @property
    def columns(self) -> Columns:
        """Return the numbers of an estimate; one NaN stands for all of a kind that is missing."""
        nothing = np.broadcast_to(np.nan, self.pulls.shape)
        numbers = {name: self.numbers.get(name, nothing) for name in NUMBERS}
        return Columns(pulls=self.pulls, verdict=self.verdict, **numbers)


def draws(method: str | None, rule: Demonstrator) -> bool:
    """Return whether a method, or the default method, draws random numbers."""
    return method in DRAWING or (method is None and isinstance(rule, RandomisedRule))


def usual_sigma(noise: Noise) -> float:
    """Return the standard deviation of a reward; 1/2, the largest there can be, for Bernoulli rewards."""
    return noise.sigma if isinstance(noise, Gaussian) else 0.5


# Records


def as_record(log: Any) -> Record:
    """Take a record as it is, read a path, or take a dataframe or a sequence of labels."""
    if is_record(log):
        return log
    if isinstance(log, str | os.PathLike):
        from unbandit.log.action_log import read_or_scan

        return read_or_scan(log)
    from unbandit.log.sources import is_frame

    return ActionLog.from_frame(log) if is_frame(log) else ActionLog.from_actions(log)


def as_log(log: Any, what: str) -> ActionLog:
    """Take what `as_record` takes, into memory; refuse a record whose rounds cannot be looked at one by one."""
    return ActionLog.read(log) if isinstance(log, str | os.PathLike) else with_rounds(as_record(log), what)


def with_rounds(record: Record, what: str) -> ActionLog:
    """Refuse a record that is only counted as it is read; `what` is what asked for its rounds."""
    if isinstance(record, ActionLog):
        return record
    raise ParameterError(
        f"{what}: expected a log in memory, whose rounds can be looked at one by one; got a {type(record).__name__}.",
        remedy="Read the demonstrations that matter with ActionLog.read, or estimate by method switching, counts or "
        "naive.",
    )


# Options


def usable_method(method: Method | None, log: Record, rule: Demonstrator) -> Method:
    """Return the method, or the best one that the record and the rule allow."""
    if method is None:
        at_random = isinstance(rule, RandomisedRule) and log.ordered
        return "posterior" if at_random else "switching" if log.ordered else "counts"
    checks.one_of("method", method, get_args(Method))
    if method == "switching" and not log.ordered:
        raise ParameterError(
            "switching needs the order of the rounds, and this record holds pull counts.",
            parameter="method",
            value=method,
            remedy=f"Use {option('method', 'counts')}.",
        )
    return method


def closed_form(method: Method, log: Record) -> Method:
    """Return the method by which every demonstration is read: for the bootstrap, the closed form that applies."""
    return ("switching" if log.ordered else "counts") if method == "bootstrap" else method


def check_numbers(
    best_mean: float | None, anchor: Mapping[Any, float] | None, level: float, sigma: float | None, bernoulli: bool,
    scale: str, constant: float | None, rule: Demonstrator | None = None,
) -> None:  # fmt: skip
    """Refuse numbers out of range, and choices that exclude each other."""
    checks.level(level)
    if sigma is not None:
        checks.positive("sigma", sigma)
    if constant is not None:
        checks.positive("constant", constant)
    if sigma is not None and bernoulli:
        raise ParameterError(
            f"Bernoulli rewards have no sigma; leave {option('sigma')} or {option('bernoulli')} out.", parameter="sigma"
        )
    if best_mean is not None and anchor is not None:
        raise ParameterError(f"expected {option('best_mean')} or {option('anchor')}, not both.", parameter="anchor")
    checks.one_of("scale", scale, ("known", "unknown"))
    if scale == "unknown" and (best_mean is not None or anchor is not None):
        raise ParameterError(
            "where it is unknown, no mean follows from another; leave "
            f"{option('best_mean')} and {option('anchor')} out.",
            parameter="scale",
        )
    bernoulli = bernoulli or (rule is not None and rule.bernoulli_only)
    for name, value in (("best_mean", best_mean), *((f"anchor {arm}", each) for arm, each in (anchor or {}).items())):
        if value is not None and not math.isfinite(value):
            raise ParameterError(f"expected a finite number; got {value}.", parameter=name, value=value)
        if value is not None and bernoulli and not 0 <= value <= 1:
            raise ParameterError(
                f"expected a probability for Bernoulli rewards; got {value}.", parameter=name, value=value
            )


def check_choices(
    method: Method, scale: str, reference: object, constant: float | None, resamples: int | None, seed: int | None,
    pool: bool, prior: object, particles: int | None,
) -> None:  # fmt: skip
    """Refuse an option that would not be used."""
    if reference is not None and scale != "unknown":
        raise ParameterError(
            f"expected only with {option('scale', 'unknown')}, for ratios; leave it out.", parameter="reference"
        )
    if constant is not None and method != "naive":
        raise ParameterError(f"expected only with {option('method', 'naive')}; leave it out.", parameter="constant")
    used = {"resamples": ("bootstrap",), "seed": DRAWING, "prior": DRAWING, "particles": DRAWING}
    given = {"resamples": resamples, "seed": seed, "prior": prior, "particles": particles}
    for name, methods in used.items():
        if given[name] is not None and method not in methods:
            with_methods = " or ".join(option("method", each) for each in methods)
            raise ParameterError(f"expected only with {with_methods}; leave it out.", parameter=name)
    if particles is not None:
        checks.whole("particles", particles)
    if resamples is not None and not (isinstance(resamples, int) and resamples >= FEWEST_RESAMPLES):
        raise ParameterError(
            f"expected a whole number, {FEWEST_RESAMPLES} or more; got {resamples!r}.",
            parameter="resamples",
            value=resamples,
        )
    if method in DRAWING and scale == "unknown":
        raise ParameterError(
            f"method {method} plays the rule, so it needs the width's scale; use another.", parameter="scale"
        )
    if method == "bootstrap" and pool:
        raise ParameterError(
            "the bootstrap reads every demonstration by itself; leave it out, or pool by another method.",
            parameter="pool",
        )


def reward_noise(rule: Demonstrator, sigma: float | None, bernoulli: bool, scale: str) -> tuple[Noise, list[Notice]]:
    """Return the rewards' noise, with a warning where it had to be assumed."""
    if sigma is not None and rule.bernoulli_only:
        raise ParameterError(
            f"{rule.name} as given takes rewards of 0 and 1, which have no sigma; leave it out.", parameter="sigma"
        )
    if bernoulli or rule.bernoulli_only:
        return Bernoulli(), []
    given = getattr(rule, "sigma", None) if "sigma" in rule.model_fields_set else None  # not a default of the rule
    known = sigma if sigma is not None else given
    if known is not None:
        return Gaussian(float(known)), []
    if scale == "unknown":
        return Gaussian(1.0), []
    assumed = Notice(
        "sigma-assumed",
        "The rewards' standard deviation was not given: intervals assume sigma = 1. Give "
        f"{option('sigma')} (or {option('bernoulli')}).",
    )
    return Gaussian(1.0), [assumed]


def known_mean(best_mean: float | None, anchor: Mapping[Any, float] | None, arms: tuple[str, ...]) -> Anchor | None:
    """Return the one mean that is known, if any."""
    if best_mean is not None:
        return Anchor(None, float(best_mean))
    if anchor is None:
        return None
    if len(anchor) != 1:
        raise ParameterError(f"expected one arm with its mean; got {len(anchor)}.", parameter="anchor")
    ((arm, value),) = anchor.items()
    return Anchor(arm_position("anchor", arm, arms), float(value))


def arm_position(name: str, arm: object, arms: tuple[str, ...]) -> int:
    """Find an arm by its label."""
    if str(arm) not in arms:
        known = ", ".join(arms[:12]) + (", ..." if len(arms) > 12 else "")
        raise ParameterError(f'expected an arm among {known}; got "{arm}".', parameter=name, value=arm)
    return arms.index(str(arm))


def horizons(horizon: int | None, log: Record) -> NDArray[np.int64]:
    """Return `T` of each demonstration: the one given, or the length of each."""
    if horizon is not None and (not isinstance(horizon, int | np.integer) or not 1 <= horizon < 2**63):
        raise ParameterError(
            f"expected a whole number of rounds, 1 or more; got {horizon!r}.", parameter="horizon", value=horizon
        )
    lengths = log.lengths
    longest = int(lengths.max())
    if horizon is not None and horizon < longest:
        raise LogError(
            f"the log has {longest} rounds, more than the horizon {horizon}.",
            remedy=f"Give the demonstrator's own {option('horizon')}, or leave it out.",
        )
    return lengths if horizon is None else np.broadcast_to(np.int64(horizon), lengths.shape)
