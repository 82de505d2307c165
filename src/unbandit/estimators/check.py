"""The check behind every answer: does the assumed rule fit the log? And what to say about it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator, IndexRule, RandomisedRule, RecentIndexRule
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import MISREAD, Notice, option
from unbandit.estimators.arguments import shows_part
from unbandit.estimators.diagnostics import BEGINNING, left_early, table_with
from unbandit.estimators.procedures import Request
from unbandit.fit import ONE_BY_ONE, Check, FittedNumber, not_checked, short_name
from unbandit.formatting import capitalise, counted, joined, plural, quoted, short_numbers, simulated
from unbandit.log import ActionLog
from unbandit.log.columns import noun_of
from unbandit.log.partial import ThinnedLog
from unbandit.progress import current_work, interruptible

if TYPE_CHECKING:
    from unbandit.inference import Posterior
    from unbandit.inference.predictive import ArmDrift


SWITCH = "UNBANDIT_CHECK"  # the environment variable that turns checks off where none was asked for

NOT_WANTED = "No check was asked for."
NEXT = "Next: `check` tries every rule with a closed form on this log, `identify` also rules that choose at random."
SELDOM_TOLD_APART = (
    "But simulations seldom distinguish one index rule from another: `check` shows which others fit too, and what they "
    "make of the log."
)
DOUBTS = frozenset(
    {
        "does-not-fit", "late-arm", "late-start", "not-reconsidered", "opening", "order-broken", "perhaps-withdrawn",
        "shows-sorted", "strained",
    }
)  # fmt: skip
"""Notices that put in doubt that the rule made the record at all."""
DRIFTED = ("drift", "perhaps-drift")  # notices that an arm drifted, or may have
UNRELIABLE = DOUBTS | MISREAD | {"drift"}
"""Notices with which answers are not to be relied on."""
STANDS = "This does not cancel the warning above: it is about something that the simulations do not test."


def wanted(check: bool | None) -> bool:
    """Return whether answers are checked: as asked for, by default unless the environment says no."""
    return os.environ.get(SWITCH, "on").lower() not in ("off", "0", "no", "false") if check is None else check


def checked(
    request: Request, check: bool | None, numbers: Mapping[str, NDArray[np.float64]], posteriors: Sequence[Posterior],
    seed: int = 0, threads: int | None = None,
) -> tuple[Check, list[ArmDrift]]:  # fmt: skip
    """Check a request's rule against its log, as far as that is possible, at the means that were answered.

    Beside the check comes what each demonstration shows of drift.
    """
    drifts: list[ArmDrift] = []
    return _checked(request, check, numbers, posteriors, seed, threads, drifts), drifts


def _checked(
    request: Request, check: bool | None, numbers: Mapping[str, NDArray[np.float64]], posteriors: Sequence[Posterior],
    seed: int, threads: int | None, drifts: list[ArmDrift],
) -> Check:  # fmt: skip
    if not wanted(check):
        return not_checked(NOT_WANTED)
    if reason := _obstacle(request):
        return not_checked(reason)
    from unbandit.inference.check import MOST_CHECKED, AnsweredMeans, check_log
    from unbandit.inference.rivals import predicts

    without = None if request.availability is None or posteriors else _no_means(request, numbers)
    if without is not None and not predicts(request.rule, request.noise, request.availability):
        return not_checked(without)

    part = request.log if shows_part(request.log) else None
    log = request.log if part is None else part.rows
    assert isinstance(log, ActionLog)

    def answered(which: int) -> AnsweredMeans | None:
        if which > 0:
            current_work().finish_part()
        if without is not None:  # decisions are predicted at means of their own
            return None
        row = min(which, len(numbers["gap"]) - 1)  # demonstrations that were pooled have one answer
        gap, low, high = (numbers[name][row] for name in ("gap", "gap_low", "gap_high"))
        draws = posteriors[min(which, len(posteriors) - 1)].draws if posteriors else None
        return AnsweredMeans(gap, low, high, request.z, numbers["mean"][row] if "mean" in numbers else None, draws)

    def check_by_demonstration() -> Check:
        number = min(len(log), MOST_CHECKED)
        with current_work().stage("Checking the rule", number if number > 1 else None, in_parts=True):
            return check_log(
                log, request.rule, request.noise, request.horizons.tolist(), answered,
                noise_known=request.noise_known, seed=seed, threads=threads, part=part,
                availability=request.availability, drifts=drifts,
            )  # fmt: skip

    return interruptible(check_by_demonstration)


def _no_means(request: Request, numbers: Mapping[str, NDArray[np.float64]]) -> str | None:
    """Return why there are no means to simulate at, where arms arrive late or are withdrawn; None where there are."""
    from unbandit.estimators.availability import obstacle_to_simulations

    reading, there = request.available, request.availability
    if reading is None or there is None or "gap_low" not in numbers:
        return "There are no gaps to simulate at."
    rows = enumerate(zip(numbers["gap_low"], numbers["gap_high"], strict=True))
    found = (obstacle_to_simulations(reading, at, request.log, there, low, high) for at, (low, high) in rows)
    why = next(filter(None, found), None)
    return why and capitalise(why)


def _obstacle(request: Request) -> str | None:
    """Return why a log cannot be checked, if it cannot."""
    if not request.log.ordered:
        return "Pull counts without their order do not show how the rule chose."
    if not isinstance(request.log.rows if shows_part(request.log) else request.log, ActionLog):
        return "The rounds of a log that is scanned or followed are not kept."
    if request.scale == "unknown":
        return "A rule whose scale is unknown cannot be simulated."
    if request.rule.reveals != "values":
        return f"The choices of {request.rule.name} do not depend on rewards round by round."
    return None


def beside_doubts(said: Sequence[Notice], warnings: Sequence[Notice]) -> list[Notice]:
    """Say of a check that found nothing that it lifts no warning which puts the rule in doubt."""
    if not any(each.code in DOUBTS for each in warnings):
        return list(said)
    return [replace(each, text=f"{each.text} {STANDS}") if each.code == "fits" else each for each in said]


def said_of(
    check: Check, rule: Demonstrator, drifts: Sequence[ArmDrift] = (), record: object = None, *, can_fit: bool = True
) -> tuple[list[Notice], list[Notice]]:  # fmt: skip
    """Return the warnings and notes that a check, and what it saw of drift, give rise to.

    `can_fit` says whether numbers of the rule can be fitted to the log, as those of any whole one can.
    """
    if check.verdict == "does not fit":
        advice = rule.advice(record) if isinstance(record, ActionLog) else None
        misfit = Notice("does-not-fit", _misfit(check, rule, advice, record), count=len(check.failed))
        return [misfit, *_perhaps_drifted(check, drifts, record)], []
    if check.verdict == "not checked":
        said = Notice("not-checked", f"Not checked whether the rule fits. {check.reason}")
        return [], [] if check.reason == NOT_WANTED else [said]
    from unbandit.inference.predictive import ALARM, DRIFT  # loaded by the check

    warnings = _drifted(drifts, check.simulations, record)
    seen = check.checked == 1 and any(each.name == DRIFT and each.tail <= ALARM for each in check.statistics)
    apart = "Apart from the drift, it" if warnings or seen else "It"
    people = plural(noun_of(getattr(record, "demonstrations", ())))
    looks = f"{short_numbers(str(rule))} fits {f'the {people} taken together' if check.failed else 'this log'}"
    stands = "" if check.failed else f". {apart} does not differ noticeably from {check.simulations} simulations"
    one_by_one = any(each.name == ONE_BY_ONE for each in check.statistics)
    only_simulated = isinstance(rule, IndexRule | RecentIndexRule) and not (one_by_one or check.weighed)
    parts = [f"Checked: {looks}{stands}.", check.reason or "", SELDOM_TOLD_APART if only_simulated else ""]
    return warnings, [Notice("fits", " ".join(filter(None, parts))), *_in_proportion(rule, can_fit=can_fit)]


def _in_proportion(rule: Demonstrator, *, can_fit: bool) -> list[Notice]:
    """Say of a number that was given that all gaps hang on it, where a log hardly shows that it is wrong."""
    name = rule.unit if isinstance(rule, RandomisedRule) else None
    if name is None or name not in rule.model_fields_set or rule.in_force(name) is None:
        return []
    remedy = "do not rely on them."
    if can_fit and name in rule.fits and rule.random_delay is None:
        known = {
            each: getattr(rule, each) for each in type(rule).model_fields if each in rule.model_fields_set - {name}
        }
        remedy = f"use {option('rule', str(RuleFamily(type(rule), known, (name,))))}."
    text = f"Gaps are roughly proportional to {name}, and a log seldom shows that it is wrong, even by a factor of 3. "
    return [Notice("in-proportion", f"{text}If it is not known, {remedy}")]


def unless_fitted(notes: Iterable[Notice], rule: type[Demonstrator], fitted: Sequence[FittedNumber]) -> list[Notice]:
    """Leave out what is said of a number that was given, where it was fitted."""
    given = getattr(rule, "unit", None) not in {each.parameter for each in fitted}
    return [each for each in notes if given or each.code != "in-proportion"]


def late_start(request: Request, check: Check, posteriors: Sequence[Posterior], seed: int = 0) -> list[Notice]:
    """Warn of logs whose first rounds look like those after them, where a run begins by trying all arms."""
    log, rule = request.log, request.rule
    if not isinstance(rule, RandomisedRule) or not rule.tries_first:
        return []
    asked = rule.initial == 0 and rule.batch == 1 and not rule.is_late
    if check.verdict == "not checked" or not asked or request.availability is not None:
        return []
    if not isinstance(log, ActionLog) or log.rewards is not None or not posteriors:
        return []
    from unbandit.inference.check import MOST_CHECKED
    from unbandit.inference.predictive import is_alarm
    from unbandit.inference.rivals import SETTLED, settled_from_the_start

    which = np.unique(np.linspace(0, len(log) - 1, min(len(log), MOST_CHECKED)).astype(int)).tolist()
    nats = [
        settled_from_the_start(
            log.select(at), rule, request.noise, posteriors[min(at, len(posteriors) - 1)].prior,
            int(request.horizons[at]), seed, None,
        )
        for at in which
    ]  # fmt: skip
    late = [at for at, each in zip(which, nats, strict=True) if each > SETTLED]
    if not is_alarm(len(late), len(which)):
        return []
    several = f"{len(late):,} of {counted(len(which), log.noun)} look" if len(which) > 1 else "The log looks"
    text = f"{several} as if the beginning were missing: first rounds are like later ones. In a run's first rounds, "
    text += f"the rule would have tried all arms first. Do not rely on these numbers. {BEGINNING} Or number its rounds "
    text += f"from the run's first one. If the log is whole, check the rule's numbers, and {option('prior')}."
    return [Notice("late-start", text, count=len(late) if len(which) > 1 else None)]


def withdrawn_arms(request: Request, check: Check, posteriors: Sequence[Posterior], seed: int = 0) -> list[Notice]:
    """Warn of arms that a rule of chance is not likely to have left for good: were they withdrawn?"""
    log, rule = request.log, request.rule
    if not isinstance(rule, RandomisedRule) or not isinstance(log, ActionLog) or not posteriors:
        return []
    if check.reason == NOT_WANTED or request.availability is not None or log.rewards is not None:
        return []
    from unbandit.estimators.posterior import placed_anchor
    from unbandit.inference.check import MOST_CHECKED
    from unbandit.inference.rivals import withdrawals

    which = np.unique(np.linspace(0, len(log) - 1, min(len(log), MOST_CHECKED)).astype(int)).tolist()
    found = []
    for at in which:
        record, posterior = log.select(at), posteriors[min(at, len(posteriors) - 1)]
        own = posterior.log_evidence if len(posteriors) == len(log) else None  # one of all says nothing of one
        silences = withdrawals(
            record, rule, request.noise, posterior.prior, int(request.horizons[at]), seed, None, own=own,
            anchor=placed_anchor(request, record),
        )  # fmt: skip
        odd = [each for each in silences if each.is_odd(len(log.arms), len(which))]
        found += [(at, odd)] if odd else []
    if not found:
        return []
    at, odd = max(found, key=lambda each: each[1][0].nats)
    first, several, arms = odd[0], len(log) > 1, [log.arms[each.arm] for each in odd]
    count = f"In {len(found):,} of {counted(len(which), log.noun)} an arm is left too soon. " if several else ""
    where = f" of {log.noun} {quoted(log.demonstrations[at])}" if several else ""
    more = f" (and {joined(map(quoted, arms[1:]))} after other rounds)" if arms[1:] else ""
    alone = log.demonstrations[at] if several else None
    table = table_with([(log.arms[each.arm], None, each.round) for each in odd], alone)
    text = (
        f"{count}Arm {quoted(arms[0])} is never pulled after round {first.round:,}{where}{more}. Under the rule "
        f"assumed, the log is about 10^{first.nats / math.log(10):.0f} times as probable if the arm was withdrawn "
        f"then. Do not rely on these numbers. If it was, {table} If not, another rule, or other parameters, may have "
        "made it."
    )
    name, number = (log.demonstrations[at], len(found)) if several else (None, None)
    return [Notice("perhaps-withdrawn", text, first.round, arms[0], name, number)]


def _drifted(drifts: Sequence[ArmDrift], simulations: int, record: object) -> list[Notice]:
    """Warn of drift: of several demonstrations, if more show it than would by chance."""
    from unbandit.inference.predictive import is_alarm

    found = sorted((each for each in drifts if each.drifted), key=lambda each: -each.distance)
    if not is_alarm(len(found), len(drifts)):
        return []
    first, number = found[0], len(drifts)
    noun = noun_of(getattr(record, "demonstrations", ()))
    several = f"{len(found):,} of {counted(number, noun)} show drift. " if number > 1 else ""
    where = f" in {noun} {quoted(first.demonstration)}" if number > 1 else ""
    text = (
        f"{several}{first.who}{where}: {first.said}. Without drift a gap moves so much in "
        f"{simulated(first.p_value, simulations)}. The estimates average over it: do not rely on them. "
        f"{_by_stretch(first, number)}{_left(first, record)}"
    )
    which, count = (first.demonstration, len(found)) if number > 1 else (None, None)
    return [Notice("drift", text, first.round + 1, first.arm if first.decided else None, which, count)]


def _left(drift: ArmDrift, record: object) -> str:
    """Say which of the arms that a drift is shown by are not pulled any more at the end."""
    if not isinstance(record, ActionLog):
        return ""
    return left_early(record, drift.demonstration, (drift.arm, drift.shown_by, drift.best))


def _by_stretch(drift: ArmDrift, demonstrations: int) -> str:
    """Say how to see the estimates by stretch, which are of one demonstration."""
    chosen = f" and {option('demonstration', drift.demonstration)}" if demonstrations > 1 else ""
    return f"Add {option('windows', 4)}{chosen} to see the estimates stretch by stretch."


def _perhaps_drifted(check: Check, drifts: Sequence[ArmDrift], record: object) -> list[Notice]:
    """Say of a log that does not fit which arm drift may explain it by."""
    from unbandit.inference.predictive import POSSIBLE  # loaded by the check

    moved = [each for each in drifts if each.demonstration in check.failed and each.p_value <= POSSIBLE]
    if not moved:
        return []
    first = max(moved, key=lambda each: each.distance)
    noun = noun_of(getattr(record, "demonstrations", ()))
    where = f" in {noun} {quoted(first.demonstration)}" if len(drifts) > 1 else ""
    who, then = first.who.removeprefix("Arm"), _by_stretch(first, len(drifts))
    text = f"Perhaps arm{who}{where}: {first.said}. {then}{_left(first, record)}"
    name = first.demonstration if len(drifts) > 1 else None
    return [Notice("perhaps-drift", text, first.round + 1, first.arm if first.decided else None, name)]


def _misfit(check: Check, rule: Demonstrator, advice: str | None, record: object) -> str:
    """Say that a rule does not fit, what looks different, and what would fit."""
    parts = [
        f"The log does not look like one that {short_numbers(str(rule))} made ({check.chance}).",
        check.reason or "",
    ]
    parts.append("Do not rely on these numbers: they hold only if the rule and its parameters are right.")
    if check.instead:
        parts.append(f"More probable: {'; '.join(map(short_name, check.instead[:3]))}.")
    parts.append(advice or "")
    if isinstance(record, ThinnedLog) and record.kept is not None:
        parts.append(
            f"If the beginning is missing, and not rounds at random, give {option('starting_pulls')} in place of "
            f"{option('kept')}."
        )
    parts.append(NEXT)
    return " ".join(filter(None, parts))
