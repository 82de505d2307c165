"""The answer in one plain sentence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.check import DOUBTS
from unbandit.estimators.diagnostics import demonstrations_behind
from unbandit.formatting import counted, interval, listed, number, plural, probability, quoted, share
from unbandit.result import BEST, ArmEstimate, Estimate, Quantity, shown_quantity

CHANCE_SHARE = 0.05
"""Of many demonstrations, so small a share may look strange by chance, and does not put the others in doubt."""

LEVEL_FROM_PRIOR = frozenset({"level-from-prior", "values-from-prior"})
"""Notes that say the level of the means comes from the prior, not from the record: gaps are shown instead."""


def sentence(answer: Estimate, rows: Sequence[ArmEstimate]) -> str:
    """Say in one sentence what the record shows; `rows` are the first demonstration's, best first."""
    total, rule = len(answer.demonstrations), answer.rule.split(":")[0]
    text = _of_many(answer) if total > 1 else _of_one(answer, rows)
    strange = _strange(answer)
    if 0 < strange <= CHANCE_SHARE * total:
        look, made = ("looks", "it") if strange == 1 else ("look", "them")
        return f"{text}; {strange:,} of them {look} as if another rule had made {made}."
    if strange:
        doubt = f"This log does not look like the work of {rule}."
        text = f"{doubt} If {rule} did make it, then {text[0].lower()}{text[1:]}"
    return f"{text}."


def _strange(answer: Estimate) -> int:
    """Count the demonstrations that do not look as if the rule had made them, at least."""
    total = len(answer.demonstrations)
    doubts = [notice for notice in answer.warnings if notice.code in DOUBTS]
    named = len({notice.demonstration for notice in doubts if notice.demonstration is not None})
    gathered = [demonstrations_behind(notice, total) for notice in doubts if notice.demonstration is None]
    return max([named, *gathered])


def _of_many(answer: Estimate) -> str:
    """Count in how many demonstrations each arm is best."""
    total, arms, marks = len(answer.demonstrations), len(answer.arms), answer.marks
    decided = settled(answer)
    times_best = marks[decided].sum(axis=0)
    if not decided.any():
        return f"In none of the {counted(total, answer.noun)} does the log show which of the {arms:,} arms is the best"
    places = np.argsort(marks[decided].argmax(axis=0), kind="stable")  # as they first appear
    alone = Counter({answer.arms[at]: int(times_best[at]) for at in places if times_best[at]})
    (first, times), *others = alone.most_common()
    which = f"{times:,} of {total:,}" if times < total else "both" if total == 2 else f"all {total:,}"
    text = f"In {which} {plural(answer.noun)} {quoted(first)} is the {_best_of(arms)} of the {arms:,} arms"
    parts = [f"in {count:,} it is {quoted(arm)}" for arm, count in others[:3]]
    if len(others) > 3:
        parts.append(f"in {sum(count for _, count in others[3:]):,} it is one of {len(others) - 3:,} other arms")
    if undecided := total - alone.total():
        parts.append(f"in {undecided:,} it stays open")
    return "; ".join([text, ", ".join(parts)] if parts else [text])


def settled(answer: Estimate) -> NDArray[np.bool_]:
    """Return for each demonstration whether one arm is the best, by its verdict, and no other is too close to it."""
    has_best = (answer.marks & (answer.columns.verdict == BEST)).sum(axis=1) == 1
    return np.asarray(has_best & (answer.marks.sum(axis=1) == 1) & ~_doubtful(answer))


def _of_one(answer: Estimate, rows: Sequence[ArmEstimate]) -> str:
    """Name the best arm, or those that may be, and how far the others are behind."""
    quantity, best = reported_quantity(answer), answer.best_by_demonstration[0]
    apart = set(answer.apart(answer.demonstrations[0]))
    stayed, withdrawn = ([arm for arm in best if (arm in apart) is gone] for gone in (False, True))
    named = set(best) | apart
    best = tuple(stayed) if stayed else best
    others = [row for row in rows if row.arm not in named and row.value(quantity) is not None]
    close = _too_close(answer, others) if len(best) == 1 else []
    too_close = {row.arm for row in close}
    clear = [row for row in others if row.arm not in too_close]
    is_open = bool(stayed and withdrawn)
    among = "arms that stayed to the end" if is_open else f"{len(rows):,} arms"
    parts = [_which(answer, rows, best, close, quantity, among)]
    if is_open:
        parts.append(f"{listed(withdrawn)}, withdrawn before, may be better")
    if clear:
        than = " than the best of them" * (len(best) > 1)
        parts.append(_how_far(answer, clear, quantity, some_close=bool(close), than=than))
    elif not close and len(best) < len(rows):
        bounded = any(row.verdict == "bounded" for row in rows if row.arm not in named)
        others_are = "the other" if len(rows) - len(best) == 1 else "the others"
        parts.append(f"of {others_are} the log {'gives only bounds' if bounded else 'shows nothing'}")
    return "; ".join(parts)


def _which(
    answer: Estimate, rows: Sequence[ArmEstimate], best: tuple[str, ...], close: Sequence[ArmEstimate],
    quantity: Quantity, among: str,
) -> str:  # fmt: skip
    """Name the best arm among all, or among some; or say between which it stays open."""
    arms = len(answer.arms)
    if len(best) != 1:
        which = f"of the {arms:,} arms" if len(best) in (0, arms) else f"of {listed(best)}"
        return f"The log does not show which {which} is the {_best_of(len(best) or arms)}"
    doubtful = close or any(notice.code == "tied-best" for notice in answer.warnings)
    is_best = f"{quoted(best[0])} is {'taken to be ' if doubtful else ''}the {_best_of(arms)} one"
    known = quantity == "mean" and rows[0].mean is not None
    worth = f", {_worth(answer, rows[0], quantity, in_full=True)}" if known else ""
    text = f"Of the {among} {is_best}{_chance(answer, best[0])}{worth}"
    if len(close) > 1:
        return f"{text}, but {listed([row.arm for row in close], 2)} are too close to it to tell apart"
    if close:
        full = _worth(answer, close[0], quantity, in_full=True)
        return f"{text}, but {quoted(close[0].arm)}, {full}, is too close to it to tell apart"
    return text


def _how_far(answer: Estimate, clear: Sequence[ArmEstimate], quantity: Quantity, *, some_close: bool, than: str) -> str:
    """Say how far behind the others are: the closest and the furthest."""
    first, last = clear[0], clear[-1]
    if quantity == "ratio":
        unit = next((notice.arm for notice in answer.notes if notice.code == "reference"), None)
        if len(clear) == 1:
            return f"how far {quoted(last.arm)} is behind is not known"
        if unit is None or last.arm == unit:
            return "how far the others are behind is known in proportion only"
        times = number(last.ratio or 0.0, 3)
        return f"{quoted(last.arm)}, the furthest behind, is {times} times as far behind as {quoted(unit)}"
    if first is last or some_close:
        behind = "" if first is last and not some_close else ", the furthest behind,"
        return f"{quoted(last.arm)}{behind} is {_worth(answer, last, quantity, in_full=True, than=than)}"
    closest = f"the closest behind is {quoted(first.arm)}, {_worth(answer, first, quantity, in_full=True, than=than)}"
    return f"{closest}, the furthest {quoted(last.arm)}, {_worth(answer, last, quantity, in_full=False)}"


def _worth(answer: Estimate, row: ArmEstimate, quantity: Quantity, *, in_full: bool, than: str = "") -> str:
    """Write an arm's value, with its interval where it is to be in full."""
    value = row.value(quantity) or 0.0
    amount = "" if answer.unit is None else f" {answer.unit.name}"
    text = f"worth {number(value, 3)}{amount}"
    if quantity != "mean":
        text = f"worth {number(abs(value), 3)}{amount} {'less' if value >= 0 else 'more'}{than}"
    low, high = row.interval(quantity)
    if in_full and low is not None and high is not None and low < high:  # not of a value that was given
        text += f" ({share(answer.level)} interval {interval(low, high, partial(number, digits=3))})"
    return text


def _too_close(answer: Estimate, others: Sequence[ArmEstimate]) -> list[ArmEstimate]:
    """Return the arms whose interval contains a gap of 0; a posterior that names one best arm has decided."""
    if answer.method == "posterior":
        return []
    return [row for row in others if row.gap_low is not None and row.gap_low <= 0]


def _doubtful(answer: Estimate) -> NDArray[np.bool_]:
    """Return for each demonstration whether its first place is shared, or too close to call."""
    columns, tied = answer.columns, np.zeros(len(answer.demonstrations), np.bool_)
    if any(notice.code == "tied-best" for notice in answer.warnings):
        tied = (columns.pulls == columns.pulls.max(axis=1, keepdims=True)).sum(axis=1) > 1
    with np.errstate(invalid="ignore"):
        close = (columns.verdict != BEST) & np.isfinite(columns.gap) & (columns.gap_low <= 0)
    too_close = close.any(axis=1) & (answer.method != "posterior")
    return np.asarray(tied | too_close)


def _chance(answer: Estimate, best: str) -> str:
    """Write the probability that the best arm is the best, where there is a posterior."""
    if answer.method != "posterior" or not answer.posteriors:
        return ""
    posterior = answer.posteriors[0]
    return f" with probability {probability(float(posterior.probability_best[posterior.arms.index(best)]))}"


def _best_of(arms: int) -> str:
    return "better" if arms == 2 else "best"


def reported_quantity(answer: Estimate) -> Quantity:
    """Return what is reported: means where the record determines them, else gaps, else ratios."""
    return shown_quantity(reported_estimate(answer))


def reported_estimate(answer: Estimate) -> Estimate:
    """Return the estimate without means whose level comes from the prior."""
    if not any(note.code in LEVEL_FROM_PRIOR for note in answer.notes):
        return answer
    missing = np.full(answer.columns.mean.shape, np.nan)
    return replace(answer, columns=replace(answer.columns, mean=missing, mean_low=missing, mean_high=missing))
