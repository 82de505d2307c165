"""Closed forms of logs whose arms arrive late or are withdrawn: every arm is read while it was there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule
from unbandit.errors import Notice, NotIdentifiable, ParameterError, option
from unbandit.estimators.procedures import (
    IN_ORDER,
    Anchor,
    AvailableReading,
    Comparison,
    Method,
    assumptions,
    check_comparable,
    without_a_mean,
)
from unbandit.formatting import quoted
from unbandit.instance import Noise
from unbandit.kernels.procedures import NO_ARM
from unbandit.log import ActionLog
from unbandit.log.availability import Availability
from unbandit.log.tallies import Record
from unbandit.result import BEST, BOUNDED

NOBODY = -1

Counts = NDArray[np.int64]
Numbers = NDArray[np.float64]


def check_readable(rule: Demonstrator, method: Method, pool: bool) -> None:
    """Refuse what neither a closed form nor a filter reads where arms arrive late or are withdrawn."""
    rule.check_availability()
    filtered = is_filtered(rule, method)
    if method not in IN_ORDER and not (filtered or method == "bootstrap"):
        other = "posterior" if isinstance(rule, RandomisedRule) else "bracket"
        text = f"{rule.name}: method {method} does not know which arms were there in which rounds."
        raise NotIdentifiable(text, remedy=f"Use {option('method', other)}.")
    if filtered:
        from unbandit.inference.steps import check_filtered

        check_filtered(rule)
    else:
        check_comparable(rule, method)
    if pool:
        text = "not possible here: demonstrations whose arms arrive late or are withdrawn are not combined."
        raise ParameterError(text, parameter="pool")


def is_filtered(rule: Demonstrator, method: Method) -> bool:
    """Return whether a method filters a log, rather than read it by a closed form."""
    return method == "posterior" or (method == "bootstrap" and isinstance(rule, RandomisedRule))


def check_known_mean(anchor: Anchor | None) -> None:
    """Refuse a known best mean for a posterior: the arm that is pulled most may not be the best one."""
    if anchor is not None and anchor.arm is None:
        text = "not possible here: where arms arrive late or are withdrawn, the arm pulled most may not be the best."
        remedy = f"Give the mean of one arm with {option('anchor')}."
        raise ParameterError(text, parameter="best_mean", value=anchor.value, remedy=remedy)


def said_of_filtered(log: ActionLog, availability: Availability) -> list[Notice]:
    """Return what was taken for what in a posterior, and to which arms gaps are."""
    notes = [said_of_table(availability)]
    if any((availability.last < length).any() for length in log.lengths.tolist()):
        text = "A gap is to the best of the arms that were there in an arm's last round. "
        notes.append(Notice("gap-to", f"{text}Ranks are of arms whose gap is to the best of the same arms."))
    return notes


def said_of_table(availability: Availability) -> Notice:
    """Say in which rounds arms could be pulled."""
    limits = f"in some rounds only: {availability.said}" if availability.said else "in all rounds"
    days = " Days are those of UTC." if availability.in_utc else ""
    return Notice("availability", f"Arms could be pulled {limits}.{days}")


def read_available(
    actions: NDArray[Any], offsets: Counts, availability: Availability, rule: Demonstrator, method: Method,
    horizons: Counts, anchor: Anchor | None, noise: Noise | None,
) -> AvailableReading:  # fmt: skip
    """Read demonstrations, one after the other in `actions`, of a rule for this number of arms."""
    from unbandit.kernels import availability as kernels
    from unbandit.kernels.simulate_available import Spans

    shape = offsets.size - 1, len(availability.arms)
    result = Comparison.empty(shape, at_the_end=isinstance(rule, IndexRule))
    references, broken = np.full(shape, NOBODY), np.zeros((shape[0], 2), np.int64)
    assumed, spans = assumptions(rule, anchor, noise), Spans(availability.first, availability.last)
    if isinstance(rule, IndexRule) and not rule.shifts and assumed.anchor == NO_ARM:
        raise without_a_mean(rule)
    codes = actions.view(f"u{actions.itemsize}")
    for horizon in np.unique(horizons).tolist():
        rows = np.flatnonzero(horizons == horizon)
        lengths = np.diff(offsets)[rows]
        own = codes if rows.size == shape[0] else np.concatenate([codes[offsets[r] : offsets[r + 1]] for r in rows])
        places = np.concatenate(([0], np.cumsum(lengths)))
        part = Comparison.empty((rows.size, shape[1]), at_the_end=bool(result.at_the_end.size))
        shown, odd = np.full((rows.size, shape[1]), NOBODY), np.zeros((rows.size, 2), np.int64)
        how, rows_of = (rule.parameters(horizon), assumed, method == "bracket"), (own, places, spans)
        filled = part.best, part.verdict, part.numbers
        if isinstance(rule, EliminationRule):
            kernels.compare_available_elimination(*how, *rows_of, *filled, odd)
        else:
            kernels.compare_available_index(*how, rule.fixed_delay, *rows_of, *filled, odd, part.at_the_end, shown)
        result.put(rows, part)
        references[rows], broken[rows] = shown, odd
    return AvailableReading(result, references, broken)


def without_other_levels(reading: AvailableReading, anchor: Anchor, numbers: dict[str, Numbers]) -> None:
    """Leave out means that the known one says nothing about: of arms whose gap is to another arm than the known one's.

    Elimination rules do not show to which arm a gap is: there, an arm that was withdrawn has no mean.
    """
    for which, row in enumerate(reading.references):
        known = _last_best(reading, which) if anchor.arm is None else int(row[anchor.arm])
        for name in ("mean", "mean_low", "mean_high"):
            numbers[name][which, row != known] = np.nan


def _last_best(reading: AvailableReading, which: int) -> int:
    """Return the arm that gaps of arms still there are to; -1 if it is not known."""
    row = reading.references[which]
    own = [arm for arm in np.flatnonzero(reading.comparison.verdict[which] == BEST).tolist() if row[arm] == arm]
    return own[-1] if own else NOBODY


def apart_arms(reading: AvailableReading, which: int, availability: Availability, length: int) -> NDArray[np.bool_]:
    """Return the arms whose gap is to another arm than those of the arms that stayed to the end, or may be.

    Elimination rules do not show to which arm a gap is: there it may be another for every arm that was withdrawn, if an
    arm that might have been the best was withdrawn too, or the best one came later.
    """
    to, best = reading.references[which], reading.comparison.best[which]
    withdrawn = availability.last < length
    if (to != NOBODY).any():
        last = to[~withdrawn & (to != NOBODY)]
        return np.asarray((to != NOBODY) & (to != (last[0] if last.size else NOBODY)))
    came = availability.first[best & ~withdrawn].max(initial=0)
    return np.asarray(withdrawn & ((best & withdrawn).any() | (availability.last < came)))


def obstacle_to_simulations(
    reading: AvailableReading, which: int, log: Record, availability: Availability, low: Numbers, high: Numbers
) -> str | None:
    """Return why there are no means to simulate a demonstration at; None where there are.

    All gaps must be to one arm, which is there to the end, and no arm may be left without any bound. `low` and `high`
    are the ends of the gaps, one per arm.
    """
    arms, verdict, to = log.arms, reading.comparison.verdict[which], reading.references[which]
    best = np.flatnonzero(verdict == BEST)
    with np.errstate(invalid="ignore"):
        open_ended = np.flatnonzero((verdict == BOUNDED) & ~(low > 0) & ~np.isfinite(high))
    why = None
    if (gone := best[availability.last[best] < int(log.lengths[which])]).size:
        why = f"arm {quoted(arms[gone[0]])} was the best until it was withdrawn"
    elif best.size > 1 or np.unique(to[to >= 0]).size > 1:
        why = "not all gaps are to the same arm"
    elif open_ended.size:
        why = f"the gap of arm {quoted(arms[open_ended[0]])} has no bound"
    return why and f"{why}, so there are no means to simulate at."


def said_of_availability(
    reading: AvailableReading, log: ActionLog, availability: Availability
) -> tuple[list[Notice], list[Notice], NDArray[np.bool_]]:
    """Return warnings and notes (what was taken for what, to which arms gaps are, what does not add up), and the arms
    of each demonstration that have no rank among the others.
    """
    warnings, notes = list[Notice](), [said_of_table(availability)]
    arms, several, first = log.arms, len(log) > 1, log.tallied("counts").first
    apart = np.array([apart_arms(reading, which, availability, int(each)) for which, each in enumerate(log.lengths)])
    for which, name in enumerate(log.demonstrations):
        place, length, row = name if several else None, int(log.lengths[which]), reading.references[which]
        late = np.flatnonzero((first[which] > availability.first + len(arms)) & (availability.first <= length))
        for arm in late[:1].tolist():
            text = (
                f"Arm {quoted(arms[arm])} could be pulled from round {availability.first[arm]:,} on, and is first "
                f"pulled in round {first[which, arm]:,}. The rule assumed would have opened it at once."
            )
            found = Notice("availability-opening", text, round=int(first[which, arm]), arm=arms[arm])
            warnings.append(replace(found, demonstration=place))
        if at := int(reading.broken[which, 0]):
            arm = int(reading.broken[which, 1])
            turn = quoted(arms[arm])
            if (row == NOBODY).all():
                text = (
                    f"The order of an elimination rule is broken in round {at:,}, at the turn of arm {turn}. The log "
                    "was made by another rule, rows are missing, or arms were there in other rounds than given."
                )
                found = Notice("availability-order", text, round=at, arm=arms[arm])
            else:
                text = (
                    f"In round {at:,} the rule assumed would have pulled arm {turn}: a batch or an opening went on. "
                    "The batch or the delay is another one, rows are missing, or arms were there in other rounds than "
                    "given; do not trust the estimates."
                )
                found = Notice("availability-batch", text, round=at, arm=arms[arm])
            warnings.append(replace(found, demonstration=place))
        open_still = reading.comparison.best[which] & (availability.last >= length)
        if open_still.sum() > 1:
            names = ", ".join(quoted(arms[arm]) for arm in np.flatnonzero(open_still)[:6])
            text = f"The log does not show which of {names} is best: no gap to the best arm is known beyond a bound."
            if (row == NOBODY).all():
                text = f"{names} were still active when the log ended: gaps are to the unknown best among them."
            warnings.append(Notice("unresolved", text, demonstration=place))
        others: dict[int, list[str]] = {}
        for arm, to in enumerate(row.tolist()):
            if to not in (NOBODY, arm):
                others.setdefault(to, []).append(quoted(arms[arm]))
        if apart[which].any():
            parts = [f"{', '.join(some)} to {quoted(arms[to])}" for to, some in others.items()]
            text = "A gap is to the best arm that was there in an arm's last round"
            text += f": of {'; of '.join(parts)}." if parts else "."
            gone = [quoted(arms[arm]) for arm in np.flatnonzero(apart[which] & reading.comparison.best[which])]
            if gone:
                verb, it = ("was", "it") if len(gone) == 1 else ("were", "they")
                text += f" {', '.join(gone)} {verb} withdrawn before {it} fell behind, and may be better than all that "
                text += "stayed."
            text += " Ranks are of arms whose gap is to the same arm."
            notes.append(Notice("gap-to", text, demonstration=place))
    return warnings, notes, apart
