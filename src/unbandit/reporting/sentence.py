"""The answer in one plain sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unbandit.estimators.diagnostics import demonstrations_behind
from unbandit.formatting import interval, listed, number, quoted, share
from unbandit.reporting.glossary import DOUBTS
from unbandit.reporting.table import quantity
from unbandit.result import BEST, ArmEstimate, Estimate, Quantity

__all__ = ["sentence"]

FEW = 0.05
"""Of many demonstrations, so small a share that looks strange may do so by chance, and condemns no record."""


def sentence(answer: Estimate, rows: Sequence[ArmEstimate]) -> str:
    """Say what the record tells, in one sentence.

    Parameters
    ----------
    answer
        The estimate.
    rows
        The first demonstration's rows, best first.

    Examples
    --------
    >>> import unbandit
    >>> log = unbandit.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> answer = unbandit.estimate(log, "ucb:alpha=0.25", sigma=0.5)
    >>> sentence(answer, answer.ranked())
    'Of the 2 arms "A" is the better one; "B" is worth 0.424 less (95% interval 0.176 to 0.827).'
    """
    said = _of_many(answer) if len(answer.demonstrations) > 1 else _of_one(answer, rows)
    strange, rule, total = _strange(answer), answer.rule.split(":")[0], len(answer.demonstrations)
    if 0 < strange <= FEW * total:
        look, made = ("looks", "it") if strange == 1 else ("look", "them")
        return f"{said}; {strange:,} of them {look} as if another rule had made {made}."
    if strange:
        said = f"The record does not look as if {rule} had made it; taken as if it had, {said[0].lower()}{said[1:]}"
    return f"{said}."


def _strange(answer: Estimate) -> int:
    """Count the demonstrations that do not look as if the rule had made them, at least."""
    total = len(answer.demonstrations)
    by_code = [
        (notice.demonstration, demonstrations_behind(notice, total))
        for notice in answer.warnings
        if notice.code in DOUBTS
    ]
    named = len({name for name, _ in by_code if name is not None})
    return max([named, *(count for name, count in by_code if name is None)])


def _of_many(answer: Estimate) -> str:
    """Count which arm is best in how many demonstrations."""
    total, arms = len(answer.demonstrations), len(answer.arms)
    marks = answer.marks
    decided = (marks.sum(axis=1) == 1) & ~_doubtful(answer)
    found = marks[decided].sum(axis=0)
    if not decided.any():
        return f"In none of the {total:,} demonstrations does the record tell which of the {arms:,} arms is the best"
    places = np.argsort(marks[decided].argmax(axis=0), kind="stable")  # as they first appear
    alone = Counter({answer.arms[at]: int(found[at]) for at in places if found[at]})
    undecided = total - alone.total()
    (first, times), *others = alone.most_common()
    if times == total:
        which = "both" if total == 2 else f"all {total:,}"
        return f"In {which} demonstrations {quoted(first)} is the {_superlative(arms)} of the {arms:,} arms"
    said = f"In {times:,} of {total:,} demonstrations {quoted(first)} is the {_superlative(arms)} of the {arms:,} arms"
    parts = [f"in {count:,} it is {quoted(arm)}" for arm, count in others[:3]]
    if len(others) > 3:
        parts.append(f"in {sum(count for _, count in others[3:]):,} it is one of {len(others) - 3:,} other arms")
    if undecided:
        parts.append(f"in {undecided:,} it stays open")
    return "; ".join([said, ", ".join(parts)])


def _of_one(answer: Estimate, rows: Sequence[ArmEstimate]) -> str:
    """Name the best arm, or those that may be, and how far the others are behind."""
    shown, best = quantity(answer), answer.best_by_demonstration[0]
    settled = set(best)
    others = [row for row in rows if row.arm not in settled and row.value(shown) is not None]
    close = _too_close(answer, others) if len(best) == 1 else []
    parts = [_which(answer, rows, best, close, shown)]
    unsure = {row.arm for row in close}
    told = [row for row in others if row.arm not in unsure]
    if told:
        parts.append(
            _how_far(answer, told, shown, some_close=bool(close), than=" than the best of them" * (len(best) > 1))
        )
    elif not close and len(best) < len(rows):
        bounded = any(row.verdict == "bounded" for row in rows if row.arm not in settled)
        others_are = "the other" if len(rows) - len(best) == 1 else "the others"
        parts.append(f"of {others_are} the record gives {'only bounds' if bounded else 'nothing away'}")
    return "; ".join(parts)


def _which(
    answer: Estimate, rows: Sequence[ArmEstimate], best: tuple[str, ...], close: Sequence[ArmEstimate], shown: Quantity
) -> str:
    """Name the best arm, or say between which it stays open."""
    arms = len(answer.arms)
    if len(best) != 1:
        among = f"of the {arms:,} arms" if len(best) in (0, arms) else f"of {listed(best)}"
        return f"The record does not tell which {among} is the {_superlative(len(best) or arms)}"
    doubtful = close or any(notice.code == "tied-best" for notice in answer.warnings)
    is_best = f"{quoted(best[0])} is {'taken to be ' if doubtful else ''}the {_superlative(arms)} one"
    known = shown == "mean" and rows[0].mean is not None
    worth = f", {_worth(answer, rows[0], shown, in_full=True)}" if known else ""
    said = f"f the {arms:,} arms {is_best}{_chance(answer, best[0])}{worth}"
    if not close:
        return "O" + said
    if len(close) > 1:
        return f"O{said}, but {listed([row.arm for row in close], 2)} are too close to it to tell apart"
    full = _worth(answer, close[0], shown, in_full=True)
    return f"O{said}, but {quoted(close[0].arm)}, {full}, is too close to it to tell apart"


def _how_far(answer: Estimate, told: Sequence[ArmEstimate], shown: Quantity, *, some_close: bool, than: str) -> str:
    """Say how far behind the others are: the closest and the furthest."""
    if shown == "ratio":
        unit = next((notice.arm for notice in answer.notes if notice.code == "reference"), None)
        last = told[-1]
        if len(told) == 1:
            return f"how far {quoted(last.arm)} is behind cannot be told"
        if unit is None or last.arm == unit:
            return "how far the others are behind is known in proportion only"
        times = number(last.ratio or 0.0, 3)
        return f"{quoted(last.arm)}, the furthest behind, is {times} times as far behind as {quoted(unit)}"
    first, last = told[0], told[-1]
    if first is last or some_close:
        behind = "" if first is last and not some_close else ", the furthest behind,"
        return f"{quoted(last.arm)}{behind} is {_worth(answer, last, shown, in_full=True, than=than)}"
    closest = f"the closest behind is {quoted(first.arm)}, {_worth(answer, first, shown, in_full=True, than=than)}"
    return f"{closest}, the furthest {quoted(last.arm)}, {_worth(answer, last, shown, in_full=False)}"


def _worth(answer: Estimate, row: ArmEstimate, shown: Quantity, *, in_full: bool, than: str = "") -> str:
    """Write an arm's value, with its interval where it is to be in full."""
    value = row.value(shown)
    behind = "" if shown == "mean" else " less" if (value or 0.0) >= 0 else " more"
    said = f"worth {number(abs(value or 0.0) if behind else value or 0.0, 3)}{behind}{than if behind else ''}"
    low, high = row.interval(shown)
    if in_full and low is not None and high is not None:
        said += f" ({share(answer.level)} interval {interval(low, high, partial(number, digits=3))})"
    return said


def _too_close(answer: Estimate, others: Sequence[ArmEstimate]) -> list[ArmEstimate]:
    """Return the arms whose interval does not tell them from the best; a posterior that names one has told."""
    if answer.method == "posterior":
        return []
    return [row for row in others if row.gap_low is not None and row.gap_low <= 0]


def _doubtful(answer: Estimate) -> NDArray[np.bool_]:
    """Tell for each demonstration whether its first place is shared, or too close to tell."""
    columns, tied = answer.columns, np.zeros(len(answer.demonstrations), np.bool_)
    if any(notice.code == "tied-best" for notice in answer.warnings):
        tied = (columns.pulls == columns.pulls.max(axis=1, keepdims=True)).sum(axis=1) > 1
    with np.errstate(invalid="ignore"):
        close = (columns.verdict != BEST) & np.isfinite(columns.gap) & (columns.gap_low <= 0)
    too_close = close.any(axis=1) & (answer.method != "posterior")  # a posterior that names one has told
    return np.asarray(tied | too_close)


def _chance(answer: Estimate, best: str) -> str:
    """Write how likely the best arm is the best, where there is a posterior."""
    if answer.method != "posterior" or not answer.posteriors:
        return ""
    found = answer.posteriors[0]
    probability = float(found.probability_best[found.arms.index(best)])
    return f" with probability {'more than 0.999' if probability > 0.999 else number(probability, 3)}"


def _superlative(arms: int) -> str:
    return "better" if arms == 2 else "best"
