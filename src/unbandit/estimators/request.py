"""What was asked, settled; and the answer as it comes about."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import whole
from unbandit.demonstrators import Demonstrator, RandomisedRule
from unbandit.errors import LogError, ParameterError
from unbandit.estimators.intervals import Noise, quantile
from unbandit.estimators.procedures import Anchor, Method, Reading, check_comparable, compare, needed
from unbandit.inference import Posterior
from unbandit.log import ActionLog
from unbandit.log.scanned import read_or_scan
from unbandit.log.sources import is_frame
from unbandit.log.tallies import Record, Tallies, is_record
from unbandit.result import NUMBERS, UNSEEN, Columns, Notice


@dataclass(frozen=True)
class Request:
    """Hold a record, the rule that is taken to have made it, and what is known beside.

    Attributes
    ----------
    log, rule, method
        The record, its rule for so many arms, and how it is read: by a closed form or the naive estimator.
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
    def whole(self) -> ActionLog:
        """Return the record as a log whose rounds can be looked at."""
        return with_rounds(self.log, f"method {self.method}")

    @cached_property
    def tallies(self) -> Tallies:
        """Return what the method counts."""
        check_comparable(self.rule, self.method)
        return self.log.tallied(needed(self.rule, self.method))

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of rounds of each demonstration."""
        return self.log.lengths

    def read(self, start: int, stop: int) -> Reading:
        """Read the demonstrations from `start` up to `stop`."""
        sigma = self.noise.sigma if self.noise.sigma is not None else 0.5
        return compare(
            self.tallies.part(start, stop), self.lengths[start:stop], self.log.ordered, self.rule, self.method,
            np.asarray(self.horizons[start:stop]), sigma, self.constant, self.anchor,
        )  # fmt: skip


class Found(Protocol):
    """Stand for anything that has verdicts and marks the arms that may be best."""

    @property
    def verdict(self) -> NDArray[np.int8]:
        """Return one of `result.VERDICTS` for each arm, as its number."""

    @property
    def best(self) -> NDArray[np.bool_]:
        """Return which arms may be best."""


class Judged(NamedTuple):
    """Hold verdicts, and which arms may be best."""

    verdict: NDArray[np.int8]
    best: NDArray[np.bool_]


@dataclass
class Answer:
    """Gather numbers, verdicts and notices: one row a demonstration, or one row in all.

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

    def put(self, rows: int | slice, values: Mapping[str, NDArray[np.float64]], found: Found) -> None:
        """Put one row, or some, in their places."""
        for name, numbers in values.items():
            self.numbers[name][rows] = numbers
        self.verdict[rows], self.best[rows] = found.verdict, found.best

    def room(self, *names: str) -> None:
        """Make room for numbers, all of which are put in later."""
        self.numbers |= {name: np.empty(self.pulls.shape) for name in names}

    @property
    def columns(self) -> Columns:
        """Return everything as an answer holds it; of numbers that there are none of, one that stands for all."""
        nothing = np.broadcast_to(np.nan, self.pulls.shape)
        numbers = {name: self.numbers.get(name, nothing) for name in NUMBERS}
        return Columns(pulls=self.pulls, verdict=self.verdict, **numbers)


DRAWING = ("bootstrap", "posterior")
"""The methods that draw random numbers."""

FEWEST = 100
"""Fewer resamples would leave the ends of a 95% interval to two or three of them."""


def draws(method: str | None, rule: Demonstrator) -> bool:
    """Tell whether a method, or that which is taken where none is named, draws random numbers.

    Examples
    --------
    >>> from unbandit import UCB, Thompson
    >>> draws(None, UCB()), draws("bootstrap", UCB()), draws(None, Thompson())
    (False, True, True)
    """
    return method in DRAWING or (method is None and isinstance(rule, RandomisedRule))


def as_record(log: Any) -> Record:
    """Take a record as it is, read a path, or take a dataframe or a sequence of labels."""
    if is_record(log):
        return log
    if is_frame(log):
        return ActionLog.from_frame(log)
    return read_or_scan(log) if isinstance(log, str | os.PathLike) else ActionLog.from_actions(log)


def as_log(log: Any, what: str) -> ActionLog:
    """Take what `as_record` takes, into memory; refuse a record whose rounds cannot be looked at one by one."""
    return ActionLog.read(log) if isinstance(log, str | os.PathLike) else with_rounds(as_record(log), what)


def with_rounds(record: Record, what: str) -> ActionLog:
    """Refuse a record that is only counted as it is read; `what` is what asked for its rounds."""
    if isinstance(record, ActionLog):
        return record
    raise ParameterError(
        f"{what}: expected a log in memory, whose rounds can be looked at one by one; got a {type(record).__name__}. "
        "Read the demonstrations that matter with ActionLog.read, or estimate by method switching, counts or naive."
    )


def usable_method(method: Method | None, log: Record, rule: Demonstrator) -> Method:
    """Return the method, or the best one that the record and the rule allow."""
    if method is None:
        by_chance = isinstance(rule, RandomisedRule) and log.ordered
        return "posterior" if by_chance else "switching" if log.ordered else "counts"
    if method not in get_args(Method):
        raise ParameterError(
            f'expected {", ".join(get_args(Method)[:-1])} or {get_args(Method)[-1]}; got "{method}".',
            parameter="method",
        )
    if method == "switching" and not log.ordered:
        raise ParameterError(
            "switching needs the order of the rounds, and this record holds pull counts. Use method counts.",
            parameter="method",
        )
    return method


def read_by(method: Method, log: Record) -> Method:
    """Return the method by which every demonstration is read: of the bootstrap, the closed form that applies."""
    return ("switching" if log.ordered else "counts") if method == "bootstrap" else method


def check_numbers(
    best_mean: float | None, anchor: Mapping[Any, float] | None, level: float, sigma: float | None, bernoulli: bool,
    scale: str, constant: float | None, rule: Demonstrator | None = None,
) -> None:  # fmt: skip
    """Refuse numbers out of range, and choices that exclude each other."""
    coins = bernoulli or (rule is not None and rule.bernoulli_only)
    if not 0 < level < 1:
        raise ParameterError(f"expected a number between 0 and 1; got {level}.", parameter="level")
    if sigma is not None and not (np.isfinite(sigma) and sigma > 0):
        raise ParameterError(f"expected a positive number; got {sigma}.", parameter="sigma")
    if constant is not None and not (np.isfinite(constant) and constant > 0):
        raise ParameterError(f"expected a positive number; got {constant}.", parameter="constant")
    if sigma is not None and bernoulli:
        raise ParameterError(
            "Bernoulli rewards have no sigma of their own; leave sigma or bernoulli out.", parameter="sigma"
        )
    if best_mean is not None and anchor is not None:
        raise ParameterError("expected best_mean or an anchor, not both.", parameter="anchor")
    if scale not in ("known", "unknown"):
        raise ParameterError(f'expected "known" or "unknown"; got "{scale}".', parameter="scale")
    if scale == "unknown" and (best_mean is not None or anchor is not None):
        raise ParameterError(
            "where it is unknown no mean follows from another; leave best_mean and anchor out.", parameter="scale"
        )
    for name, value in (("best_mean", best_mean), *((f"anchor {arm}", v) for arm, v in (anchor or {}).items())):
        if value is not None and not np.isfinite(value):
            raise ParameterError(f"expected a finite number; got {value}.", parameter=name)
        if value is not None and coins and not 0 <= value <= 1:
            raise ParameterError(f"expected a probability for Bernoulli rewards; got {value}.", parameter=name)


def check_choices(
    method: Method, scale: str, reference: object, constant: float | None, resamples: int | None, seed: int | None,
    pool: bool, prior: object, particles: int | None,
) -> None:  # fmt: skip
    """Refuse an option that would not be used."""
    if reference is not None and scale != "unknown":
        raise ParameterError("expected only where scale is unknown, for ratios; leave it out.", parameter="reference")
    if constant is not None and method != "naive":
        raise ParameterError("expected only with method naive; leave it out.", parameter="constant")
    used = {"resamples": ("bootstrap",), "seed": DRAWING, "prior": DRAWING, "particles": DRAWING}
    given = {"resamples": resamples, "seed": seed, "prior": prior, "particles": particles}
    for name, methods in used.items():
        if given[name] is not None and method not in methods:
            raise ParameterError(f"expected only with method {' or '.join(methods)}; leave it out.", parameter=name)
    if particles is not None:
        whole("particles", particles)
    if resamples is not None and not (isinstance(resamples, int) and resamples >= FEWEST):
        raise ParameterError(f"expected a whole number, {FEWEST} or more; got {resamples!r}.", parameter="resamples")
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
    """Settle the rewards' noise, and warn where it had to be assumed."""
    if sigma is not None and rule.bernoulli_only:
        raise ParameterError(
            f"{rule.name} as given takes rewards of 0 and 1, which have no sigma; leave it out.", parameter="sigma"
        )
    if bernoulli or rule.bernoulli_only:
        return Noise(None), []
    given = getattr(rule, "sigma", None) if "sigma" in rule.model_fields_set else None
    own = sigma if sigma is not None else given  # a rule's usual sigma is nobody's word for the rewards' noise
    if own is not None:
        return Noise(float(own)), []
    if scale == "unknown":
        return Noise(1.0), []
    assumed = Notice(
        "sigma-assumed",
        "The rewards' standard deviation was not given: intervals assume sigma = 1. Give sigma (or bernoulli).",
    )
    return Noise(1.0), [assumed]


def known_mean(best_mean: float | None, anchor: Mapping[Any, float] | None, arms: tuple[str, ...]) -> Anchor | None:
    """Return the one mean that is known, if any."""
    if best_mean is not None:
        return Anchor(None, float(best_mean))
    if anchor is None:
        return None
    if len(anchor) != 1:
        raise ParameterError(f"expected one arm with its mean; got {len(anchor)}.", parameter="anchor")
    ((arm, value),) = anchor.items()
    return Anchor(position("anchor", arm, arms), float(value))


def position(name: str, arm: object, arms: tuple[str, ...]) -> int:
    """Find an arm by its label."""
    if str(arm) not in arms:
        listed = ", ".join(arms[:12]) + (", ..." if len(arms) > 12 else "")
        raise ParameterError(f'expected an arm among {listed}; got "{arm}".', parameter=name)
    return arms.index(str(arm))


def horizons(horizon: int | None, log: Record) -> NDArray[np.int64]:
    """Return `T` of each demonstration: the one given, or the length of each."""
    if horizon is not None and (not isinstance(horizon, int | np.integer) or not 1 <= horizon < 2**63):
        raise ParameterError(f"expected a whole number of rounds, 1 or more; got {horizon!r}.", parameter="horizon")
    lengths = log.lengths
    longest = int(lengths.max())
    if horizon is not None and horizon < longest:
        raise LogError(
            f"the log has {longest} rounds, more than the horizon {horizon}. Give the demonstrator's own horizon, or "
            "leave it out."
        )
    return lengths if horizon is None else np.broadcast_to(np.int64(horizon), lengths.shape)
