"""The arguments of an estimate: the log, the method, and what is known besides, each checked where it enters."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard, get_args

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule, RecentIndexRule
from unbandit.demonstrators.family import RuleFamily
from unbandit.demonstrators.rule import Rule, guess_notice
from unbandit.errors import LogError, Notice, NotIdentifiable, ParameterError, option
from unbandit.estimators.procedures import IN_ORDER, Anchor, Method
from unbandit.formatting import counted
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.log import ActionLog
from unbandit.log.tallies import Record, is_record

if TYPE_CHECKING:
    from unbandit.log.availability import Availability, AvailabilityTable
    from unbandit.log.partial import PartialLog, StartingPulls, ThinnedLog

DRAWING = ("bootstrap", "posterior")  # the methods that draw random numbers
FEWEST_RESAMPLES = 100  # fewer would leave the ends of a 95% interval to two or three of them


# Records


def as_record(log: Any, *, scan: bool = True) -> Record:
    """Take a record as it is, read a path (scanned where it is large, if that will do), a dataframe or labels."""
    if is_record(log):
        return log
    if isinstance(log, Rule):
        remedy = "The log comes first, then the rule: estimate(log, rule)."
        raise ParameterError(f"expected a log; got the rule {log}.", parameter="log", value=log, remedy=remedy)
    if isinstance(log, str | os.PathLike):
        from unbandit.log.partial import read_or_scan

        return read_or_scan(log, scan=scan)
    from unbandit.contexts import ContextLog
    from unbandit.log.frames import is_frame

    if isinstance(log, ContextLog):
        text = "expected a log without contexts; got one with them."
        remedy = (
            "Read it with context_posterior; for a report, write it to a file and use `unbandit report --features`."
        )
        raise ParameterError(text, parameter="log", value=log, remedy=remedy)
    return ActionLog.from_frame(log) if is_frame(log) else ActionLog.from_actions(log)


def as_log(log: Any, what: str) -> ActionLog:
    """Take what `as_record` takes, into memory; refuse a record whose rounds cannot be looked at one by one.

    `what` is what needs to look at them.
    """
    record = ActionLog.read(log) if isinstance(log, str | os.PathLike) else as_record(log)
    if isinstance(record, ActionLog):
        return record
    if is_partial(record):
        raise NotIdentifiable(
            f"{what}: the log begins in mid-run, and the rewards before it, which decided its first rows, are hidden.",
            remedy=f"Use {option('method', 'bracket')} (or switching, counts, naive, bootstrap) with a "
            f"deterministic rule, and {option('method', 'posterior')} with one that chooses at random and whose "
            "numbers are given.",
        )
    if is_thinned(record):
        raise NotIdentifiable(
            f"{what}: the log misses rounds, whose arms and rewards decided later ones.",
            remedy=f"Use {option('method', 'bracket')} (or switching, bootstrap) with a deterministic "
            f"rule, and {option('method', 'posterior')} with one that chooses at random and whose numbers are given.",
        )
    raise ParameterError(
        f"{what}: expected a log in memory, whose rounds can be looked at one by one; got a {type(record).__name__}.",
        remedy="Read the demonstrations that matter with ActionLog.read, or estimate by method bracket, switching, "
        "counts or naive.",
    )


def one_demonstration(log: Any, demonstration: object, what: str) -> Any:
    """Return one demonstration of a log, by its name; the log as it is where none is asked for."""
    if demonstration is None:
        return log
    record = as_record(log, scan=False)
    if not isinstance(record, ActionLog) and not shows_part(record):
        record = as_log(record, what)  # refuses what is not in memory
    chosen = record.select(checks.position("demonstration", demonstration, tuple(record.demonstrations)))
    if isinstance(record, ActionLog) and isinstance(chosen, ActionLog):
        return replace(chosen, reading=record.reading, is_numbered=record.is_numbered)
    return chosen


def is_partial(record: Record) -> TypeGuard[PartialLog]:
    """Return whether a record is part of a run."""
    return hasattr(record, "starting_pulls")


def is_thinned(record: Record) -> TypeGuard[ThinnedLog]:
    """Return whether a record misses rounds."""
    return hasattr(record, "kept")


def shows_part(record: Record) -> TypeGuard[PartialLog | ThinnedLog]:
    """Return whether a record shows part of a run only, of which whole runs are simulated."""
    return is_partial(record) or is_thinned(record)


def asked_record(
    log: Any, starting_pulls: StartingPulls | None, kept: float | None, horizon: int | None, method: Method | None,
    rule: Demonstrator, *, in_memory: bool = False,
) -> Record:  # fmt: skip
    """Return the record of an estimate: whole or, if it shows that or is said to be, part of a run.

    What draws random numbers needs its rounds in memory; simulations of closed forms read parts of a run too.
    """
    from unbandit.log.partial import part_of, without_counts

    is_drawn = draws(method, rule)
    needs_rounds = is_drawn or in_memory or (isinstance(rule, IndexRule) and rule.random_delay is not None)
    record = part_of(as_record(log, scan=not needs_rounds), starting_pulls, kept, horizon)
    is_inferred = is_drawn and method != "bootstrap"
    if shows_part(record) and is_inferred and not isinstance(rule, RandomisedRule):
        _check_inferred(record, rule)
    record = without_counts(record)
    if is_thinned(record):
        _check_thinned(record, rule)
    if is_partial(record) and rule.is_late:
        text = f"{rule.name}: the log begins in mid-run, and which rewards a rule with a delay knew then is not shown."
        raise NotIdentifiable(text, remedy="Give the whole run.")
    is_simulated = shows_part(record) and method == "bootstrap" and not isinstance(rule, RandomisedRule)
    if shows_part(record) and is_inferred:
        _check_inferred(record, rule)
        as_log(record.rows, f"method {method or 'posterior'}")  # refuses rows that are not in memory
        return record
    return as_log(record, f"method {method or 'posterior'}") if is_drawn and not is_simulated else record


def _check_inferred(record: PartialLog | ThinnedLog, rule: Demonstrator) -> None:
    """Refuse a part of a run of which there is no posterior."""
    from unbandit.inference.hidden import check_hidden_posterior

    check_hidden_posterior(record, rule)


def _check_thinned(record: ThinnedLog, rule: Demonstrator) -> None:
    """Refuse a rule whose decisions missing rounds hide, and a log of which too little is there."""
    if rule.is_late or getattr(rule, "batch", 1) > 1:
        counts_do = record.begins_late and not rule.is_late and not isinstance(rule, RandomisedRule)
        wanted = f"the pulls before the log with {option('starting_pulls')}" if counts_do else "the whole run"
        raise NotIdentifiable(
            f"{rule.name}: the log misses rounds, and what a rule that decides in batches or with a delay knew at its "
            "decisions is not shown.",
            remedy=f"Give {wanted}.",
        )
    if isinstance(rule, RecentIndexRule):
        text = f"{rule.name}: the log misses rounds, and a rule that forgets is read round by round."
        raise NotIdentifiable(text, remedy="Give the whole run.")
    seen, total = int(record.rows.lengths.sum()), int(record.lengths.sum())
    if record.kept is None and total > 2 * seen:
        raise LogError(
            f"{total - seen:,} of {total:,} rounds are missing, which leaves every gap open.",
            remedy=f"Add the missing rows, give the share that was kept with {option('kept')} if rounds are missing at "
            f"random, or leave the column out ({option('columns')}) if rows are complete and in order.",
        )


def told_availability(record: Record, given: Availability | AvailabilityTable) -> Availability:
    """Return which arms were there when, as told, held against the log; refuse a log that cannot be read so."""
    from unbandit.log.availability import availability_of

    if shows_part(record):
        what, other, given_too = "misses rounds", "kept", getattr(record, "kept", None)
        if is_partial(record):
            what, other, given_too = "begins in mid-run", "starting_pulls", record.starting_pulls
        both = "" if given_too is None else f"{option('availability')} and {option(other)} cannot be combined. "
        raise ParameterError(
            f"expected a whole log; this one {what}, and which arms were there in rounds that it does not show is not "
            "read.",
            parameter="availability",
            remedy=f"{both}Add the missing rows, or read rounds with the same arms as a log of their own.",
        )
    if any(notice.code == "blank-choices" for notice in record.reading):
        raise ParameterError(
            f"expected a log without blank choices: with {option('blank', 'skip')} its rounds are counted without "
            "them, and the table's are not.",
            parameter="availability",
            remedy="Remove these rows from the log, and count the table's rounds without them.",
        )
    if not isinstance(record, ActionLog) or not record.ordered:
        what = "counts have no rounds" if not record.ordered else "its rounds are needed from the first on, in memory"
        text = f"{option('availability')}: expected a whole log with one row per round; {what}."
        remedy = "Read the log whole: a log that is scanned or followed does not keep its rounds."
        raise NotIdentifiable(text, remedy=remedy)
    found = availability_of(given, record.arms, record.times if len(record) == 1 else None)
    found.check_log(record)
    return found


# Options


def draws(method: str | None, rule: Demonstrator | RuleFamily) -> bool:
    """Return whether a method, or the default method, draws random numbers."""
    kind = rule.kind if isinstance(rule, RuleFamily) else type(rule)
    return method in DRAWING or (method is None and issubclass(kind, RandomisedRule))


def check_hidden(record: Record, method: Method, pool: bool, scale: str) -> None:
    """Refuse what takes the pulls that were seen for all pulls, or hidden rounds of several runs for those of one."""
    if is_partial(record) and pool and method == "posterior":
        text = "the log begins in mid-run, and what came before is drawn for each demonstration by itself."
        raise ParameterError(text, parameter="pool", remedy="Leave it out.")
    if not is_thinned(record):
        return
    if method in ("counts", "naive"):
        text = f"{method} takes pull counts as they are, and the log misses rounds."
        raise ParameterError(text, parameter="method", value=method, remedy=f"Use {option('method', 'bracket')}.")
    if pool:
        text = "the log misses rounds, and what is unknown about its counts does not average out."
        raise ParameterError(text, parameter="pool", remedy="Leave it out.")
    if scale == "unknown":
        text = "the log misses rounds, and without the width's scale a gap has no interval to allow for them."
        raise ParameterError(text, parameter="scale", remedy="Leave it out.")


def usable_method(method: Method | None, log: Record, rule: Demonstrator, pool: bool = False) -> Method:
    """Return the method, or the best one that the record and the rule allow."""
    if method is None and not log.ordered:
        return "counts"
    if method is None:
        return "posterior" if isinstance(rule, RandomisedRule) else "switching" if pool else "bracket"
    checks.one_of("method", method, get_args(Method))
    if method == "bracket" and pool:
        text = "bracket makes the error of each demonstration small by a bias that does not average out."
        remedy = f"Leave it out, or use {option('method', 'switching')}, where demonstrations are pooled."
        raise ParameterError(text, parameter="method", value=method, remedy=remedy)
    if method == "bootstrap" and isinstance(rule, RecentIndexRule):
        text = f"{rule.name}: the bootstrap counts its simulations, and a rule that forgets is read round by round."
        raise NotIdentifiable(text, remedy=f"Use {option('method', 'bracket')}, whose intervals need no simulations.")
    if method in IN_ORDER and not log.ordered:
        text = f"{method} needs the order of the rounds, and this log holds pull counts."
        raise ParameterError(text, parameter="method", value=method, remedy=f"Use {option('method', 'counts')}.")
    return method


def check_types(method: object, pool: object, check: object, seed: object) -> None:
    """Refuse what is no method, no flag or no seed, before anything is compared with it."""
    if method is not None:
        checks.one_of("method", method, get_args(Method))
    checks.flag("pool", pool)
    if check is not None:
        checks.flag("check", check)
    if seed is not None:
        checks.seed(seed)


def check_numbers(
    best_mean: float | None = None, anchor: Mapping[Any, float] | None = None, level: float = 0.95,
    sigma: float | None = None, bernoulli: bool = False, scale: str = "known", constant: float | None = None,
    rule: Demonstrator | None = None, method: Method | None = None,
) -> None:  # fmt: skip
    """Refuse numbers out of range, and choices that exclude each other."""
    checks.level(level)
    checks.flag("bernoulli", bernoulli)
    checks.by_arm("anchor", anchor)
    for name, value in (("sigma", sigma), ("constant", constant)):
        if value is not None:
            checks.positive(name, value)
    if sigma is not None and bernoulli:
        raise ParameterError(
            f"Bernoulli rewards have no sigma; leave {option('sigma')} or {option('bernoulli')} out.", parameter="sigma"
        )
    if best_mean is not None and anchor is not None and method != "counts":
        raise ParameterError(f"expected {option('best_mean')} or {option('anchor')}, not both.", parameter="anchor")
    checks.one_of("scale", scale, ("known", "unknown"))
    if scale == "unknown" and (best_mean is not None or anchor is not None):
        raise ParameterError(
            "where it is unknown, no mean follows from another; leave "
            f"{option('best_mean')} and {option('anchor')} out.",
            parameter="scale",
        )
    bernoulli = bernoulli or (rule is not None and rule.bernoulli_only)
    known = {} if best_mean is None else {"best_mean": best_mean}
    for name, value in (known | {f"anchor {arm}": each for arm, each in (anchor or {}).items()}).items():
        if not 0 <= checks.finite(name, value) <= 1 and bernoulli:
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
    used = (
        ("constant", constant, ("naive",)), ("resamples", resamples, ("bootstrap",)), ("seed", seed, DRAWING),
        ("prior", prior, DRAWING), ("particles", particles, DRAWING),
    )  # fmt: skip
    for name, value, methods in used:
        if value is not None and method not in methods:
            with_methods = " or ".join(option("method", each) for each in methods)
            raise ParameterError(f"expected only with {with_methods}; leave it out.", parameter=name)
    if particles is not None:
        checks.whole("particles", particles)
    if resamples is not None:
        checks.whole("resamples", resamples, FEWEST_RESAMPLES)
    if method in DRAWING and scale == "unknown":
        raise ParameterError(
            f"method {method} plays the rule, so it needs the width's scale; use another.", parameter="scale"
        )
    if method == "bootstrap" and pool:
        text = "the bootstrap reads every demonstration by itself; leave it out, or pool by another method."
        raise ParameterError(text, parameter="pool")


def check_pool(record: Record) -> None:
    """Refuse to pool a single demonstration."""
    if len(record) < 2:
        raise ParameterError(
            f"expected two demonstrations of one instance or more; got {len(record)}. Leave it out.", parameter="pool"
        )


def meant_rule(rule: Demonstrator, bernoulli: bool, sigma: float | None = None) -> tuple[Demonstrator, list[Notice]]:
    """Return the rule that was meant: a sampler of which nothing was said believes what is said of the rewards.

    >>> from unbandit import Thompson
    >>> str(meant_rule(Thompson(), True)[0]), str(meant_rule(Thompson(sigma=0.5), True)[0])
    ('thompson:successes=1.0,failures=1.0,noise=bernoulli', 'thompson:mean=0.0,deviation=1.0,sigma=0.5')
    >>> str(meant_rule(Thompson(), False, 0.2)[0])
    'thompson:mean=0.0,deviation=1.0,sigma=0.2'
    """
    checks.flag("bernoulli", bernoulli)
    is_silent = rule.model_fields_set.isdisjoint(("noise", "mean", "deviation", "sigma"))
    said = {name: getattr(rule, name) for name in rule.model_fields_set}
    if bernoulli and is_silent and getattr(rule, "noise", None) == "gaussian":
        text = f"Rewards are 0 or 1, so {rule.name} is assumed to use Beta priors (noise=bernoulli). "
        text += "If it assumed normal rewards, say so with noise=gaussian."
        return type(rule)(**said | {"noise": "bernoulli"}), [Notice("beta-priors", text)]
    believes = isinstance(rule, RandomisedRule) and "sigma" in type(rule).model_fields and not rule.bernoulli_only
    if believes and "sigma" not in said and sigma is not None and 0 < sigma < math.inf and not bernoulli:
        text = f"{rule.name} is assumed to know the rewards' standard deviation, {sigma:g}. If it assumed another one, "
        text += f"say so with {rule.name}:sigma=..."
        return type(rule)(**said | {"sigma": float(sigma)}), [Notice("sigma-shared", text)]
    return rule, []


def reward_noise(
    rule: Demonstrator, sigma: float | None, bernoulli: bool, scale: str = "known"
) -> tuple[Noise, list[Notice]]:
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
    own = rule.guessed.get("sigma")
    assumed = 1.0 if own is None else float(own)
    text = f"The rewards' standard deviation was not given: intervals assume sigma = {assumed:g}"
    text += f". Give {option('sigma')} (or {option('bernoulli')})." if own is None else (
        f", the default of {rule.name}. Give {option('sigma')} (or {option('bernoulli')}) for the rewards, and the "
        f"rule's own as {option('rule', f'{rule.name}:sigma=VALUE')}."
    )  # fmt: skip
    return Gaussian(assumed), [Notice("sigma-assumed", text)]


def guessed_numbers(rule: Demonstrator, noise: Noise, *, can_fit: bool) -> list[Notice]:
    """Warn of numbers of the rule that nobody gave; of a sigma only if rewards scatter otherwise than it says."""
    guessed = {
        name: value for name, value in rule.guessed.items() if name != "sigma" or not np.isclose(value, noise.deviation)
    }
    if guessed and can_fit:
        from unbandit.inference.parameters import has_evidence  # most rules are given whole

        can_fit = has_evidence(rule, noise)
    return guess_notice(rule, guessed, can_fit=can_fit)


def known_means(
    best_mean: float | None, anchor: Mapping[Any, float] | None, arms: tuple[str, ...]
) -> tuple[Anchor, ...]:
    """Return the means that are known: none, the best arm's, or those of some arms."""
    of_best = () if best_mean is None else (Anchor(None, float(best_mean)),)
    if anchor is None:
        return of_best
    if not anchor:
        raise ParameterError("expected an arm with its mean; got none.", parameter="anchor")
    named = (Anchor(checks.position("anchor", str(arm), arms), float(value)) for arm, value in anchor.items())
    return *of_best, *named


def known_mean(best_mean: float | None, anchor: Mapping[Any, float] | None, arms: tuple[str, ...]) -> Anchor | None:
    """Return the one mean that is known, if any."""
    known = known_means(best_mean, anchor, arms)
    if len(known) > 1:
        raise ParameterError(f"expected one arm with its mean; got {len(known)}.", parameter="anchor")
    return known[0] if known else None


def check_several(known: tuple[Anchor, ...], method: Method, rule: Demonstrator, pool: bool) -> None:
    """Refuse several known means where nothing looks for a level that they have in common."""
    text = f"expected one arm with its mean; got {len(known)}."
    if method != "counts":
        remedy = f"Several are read with {option('method', 'counts')} only."
    elif not isinstance(rule, IndexRule):
        remedy = f"Several are read for index rules only, and {rule.name} is none."
    elif pool:
        remedy = f"Give one, or leave {option('pool')} out."
    else:
        return
    raise ParameterError(text, parameter="anchor", count=len(known), remedy=remedy)


def horizons(horizon: int | None, log: Record) -> NDArray[np.int64]:
    """Return `T` of each demonstration: the one given, or the length of each."""
    lengths = log.lengths
    if horizon is None:
        return lengths
    horizon = checks.whole("horizon", horizon, most=2**63 - 1)
    longest = int(lengths.max())
    if horizon < longest:
        text = f"the log has {counted(longest, 'round')}, more than the horizon {horizon:,}."
        raise LogError(text, remedy=f"Give the demonstrator's own {option('horizon')}, or leave it out.")
    return np.broadcast_to(np.int64(horizon), lengths.shape)
