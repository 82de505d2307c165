"""Answer by closed forms: every demonstration by itself, or all of one instance together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.estimators import intervals
from unbandit.estimators.asking import Answer, Asked
from unbandit.estimators.compare import horizon_note, ratios
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.pooling import pool
from unbandit.result import BEST, Notice

__all__ = ["apart", "labels", "read", "together"]


def apart(asked: Asked) -> Answer:
    """Read every demonstration by itself."""
    answer = Answer(asked.log.demonstrations, asked.log.pulls)
    for which in range(len(asked.log)):
        comparison = read(asked, which, answer)
        row = {"gap": comparison.gap}
        row["gap_low"], row["gap_high"] = intervals.ends(comparison, asked.noise, asked.anchor, asked.z)
        row["mean"], row["mean_low"], row["mean_high"] = intervals.means(comparison, asked.noise, asked.anchor, asked.z)
        here = asked.log.demonstrations[which] if len(asked.log) > 1 else None
        _tell_lost_anchor(asked, comparison.gap, answer, here)
        if asked.scale == "unknown":
            row = _in_ratios(asked, comparison, answer, here)
        answer.put(which, row, comparison.verdict, labels(asked, comparison.best))
    return answer


def together(asked: Asked) -> Answer:
    """Combine all demonstrations, of one instance, into one answer."""
    several = len(asked.log)
    if several < 2:
        raise ParameterError(f"pool: expected two demonstrations of one instance or more; got {several}. Leave it out.")
    answer = Answer(("pooled",), asked.log.pulls.sum(axis=0, keepdims=True))
    comparisons = [read(asked, which, answer) for which in range(several)]
    pooled = pool(comparisons, asked.noise, asked.anchor, asked.z, asked.log.arms)
    answer.warnings += pooled.notices
    few = sum(any(notice.code == "few-pulls" for notice in found.notes) for found in comparisons)
    if 2 * few > several:
        said = (
            "Most demonstrations turned from an arm after few pulls: that its gap is rather too small does not average"
        )
        answer.warnings.append(Notice("few-pulls-pooled", f"{said} out, and its pooled interval is likely too short."))
    answer.notes.append(Notice("pooled", f"{several} demonstrations are taken as of one instance, and pooled."))
    row = pooled.numbers
    if asked.method == "naive":  # it has no intervals
        row = {name: values for name, values in row.items() if name in ("gap", "mean")}
    _tell_lost_anchor(asked, row["gap"], answer, None)
    if asked.scale == "unknown":
        whole = Comparison.of_nothing(pooled.verdict.shape)
        whole.gap, whole.verdict = row["gap"], pooled.verdict
        whole.own = whole.other = 2 / np.where(pooled.deviation > 0, pooled.deviation, np.nan) ** 2
        row = _in_ratios(asked, whole, answer, None)
    answer.put(0, row, pooled.verdict, labels(asked, pooled.best))
    return answer


def read(asked: Asked, which: int, answer: Answer) -> Comparison:
    """Compare the arms of one demonstration, and keep what is worth saying about it."""
    comparison = asked.compare(which)
    notes = list(comparison.notes)
    if asked.method != "naive":
        notes += horizon_note(asked.rule, comparison, asked.horizons[which])
    name = asked.log.demonstrations[which] if len(asked.log) > 1 else None
    answer.warnings += [replace(notice, demonstration=name) for notice in comparison.warnings]
    answer.notes += [replace(notice, demonstration=name) for notice in notes]
    return comparison


def labels(asked: Asked, marks: NDArray[np.bool_]) -> tuple[str, ...]:
    """Return the names of the arms that are marked."""
    return tuple(asked.log.arms[at] for at in np.flatnonzero(marks))


def _tell_lost_anchor(asked: Asked, gap: NDArray[np.float64], answer: Answer, here: str | None) -> None:
    """Say that an anchor has no estimated gap, so that no mean follows from its own."""
    anchor = asked.anchor
    if anchor is not None and anchor.arm is not None and np.isnan(gap[anchor.arm]):
        missing = f'The anchor "{asked.log.arms[anchor.arm]}" has no estimated gap.'
        answer.lost.append(Notice("no-anchor", missing, demonstration=here))


def _in_ratios(
    asked: Asked, comparison: Comparison, answer: Answer, here: str | None
) -> dict[str, NDArray[np.float64]]:
    """Give gaps in units of one of them, where the width's scale is not known."""
    row = {"gap": np.where(comparison.verdict == BEST, 0.0, np.nan)}  # the one gap that no factor changes
    row["ratio"], unit = ratios(comparison, asked.reference)
    arms = asked.log.arms
    if unit is None or np.isnan(row["ratio"][unit]):
        missing = "No arm has an" if unit is None else f'"{arms[unit]}" has no'
        said = f"{missing} estimated gap above 0 to count the others in."
        answer.lost.append(Notice("no-ratio", said, demonstration=here))
    else:
        counted = f'Ratios are counted in the gap of "{arms[unit]}".'
        answer.notes.append(Notice("reference", counted, arm=arms[unit], demonstration=here))
    return row
