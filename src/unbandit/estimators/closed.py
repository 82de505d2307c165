"""Answer by closed forms: every demonstration by itself, or all of one instance together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import NotIdentifiable, ParameterError
from unbandit.estimators import intervals
from unbandit.estimators.asking import Answer, Asked
from unbandit.estimators.compare import ratios
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.pooling import pool
from unbandit.estimators.signs import Said, Signs
from unbandit.estimators.telling import told
from unbandit.log.blocks import in_threads
from unbandit.result import BEST, Notice

__all__ = ["apart", "read_one", "together"]

Numbers = NDArray[np.float64]


def apart(asked: Asked) -> Answer:
    """Read every demonstration by itself."""
    answer, signs = Answer(asked.log.demonstrations, asked.tallies.pulls), Signs(asked)
    units = np.full(len(asked.log), -1)
    if asked.scale == "unknown":
        answer.room("gap", "ratio")
    else:
        answer.room("gap", "gap_low", "gap_high", *(("mean", "mean_low", "mean_high") if asked.anchor else ()))

    def read(start: int, stop: int) -> None:
        comparison, here = signs.look(start, stop), slice(start, stop)
        if asked.scale == "unknown":
            row, units[here] = _in_ratios(asked, comparison)
        else:
            row = _numbers(asked, comparison)
        answer.put(here, row, comparison)

    in_threads(read, signs.blocks)
    signs.tell(answer, _references(asked, answer, units) if asked.scale == "unknown" else [])
    _tell_lost(asked, answer, units)
    return answer


def together(asked: Asked) -> Answer:
    """Combine all demonstrations, of one instance, into one answer."""
    several = len(asked.log)
    if several < 2:
        raise ParameterError(f"pool: expected two demonstrations of one instance or more; got {several}. Leave it out.")
    signs = Signs(asked)
    answer = Answer(("pooled",), asked.tallies.pulls.sum(axis=0, keepdims=True))
    comparison = Comparison.joined(in_threads(signs.look, signs.blocks))
    signs.tell(answer)
    pooled = pool(comparison, asked.noise, asked.anchor, asked.z, asked.log.arms)
    answer.warnings += pooled.notices
    if 2 * signs.count("few-pulls") > several:
        said = (
            "Most demonstrations turned from an arm after few pulls: that its gap is rather too small does not average"
        )
        answer.warnings.append(Notice("few-pulls-pooled", f"{said} out, and its pooled interval is likely too short."))
    answer.notes.append(Notice("pooled", f"{several:,} demonstrations are taken as of one instance, and pooled."))
    row, units = pooled.numbers, np.array([-1])
    if asked.method == "naive":  # it has no intervals
        row = {name: values for name, values in row.items() if name in ("gap", "mean")}
    if asked.scale == "unknown":
        whole = Comparison.of_nothing((1, len(asked.log.arms)))
        whole.gap[0], whole.verdict[0] = row["gap"], pooled.verdict
        whole.own[0] = whole.other[0] = 2 / np.where(pooled.deviation > 0, pooled.deviation, np.nan) ** 2
        row, units = _in_ratios(asked, whole)
    answer.room(*row)
    answer.put(slice(0, 1), row, pooled)
    if asked.scale == "unknown":
        answer.notes += [notice for _, notice in _references(asked, answer, units)]
    _tell_lost(asked, answer, units)
    return answer


def _numbers(asked: Asked, comparison: Comparison) -> dict[str, Numbers]:
    """Return gaps and, where one mean is known, means, with their intervals."""
    row = {"gap": comparison.gap}
    ends = intervals.ends(comparison, asked.noise, asked.anchor, asked.z)
    row["gap_low"], row["gap_high"] = ends
    if asked.anchor is not None:
        found = intervals.means(comparison, asked.noise, asked.anchor, asked.z, ends)
        row["mean"], row["mean_low"], row["mean_high"] = found
    return row


def _in_ratios(asked: Asked, comparison: Comparison) -> tuple[dict[str, Numbers], NDArray[np.int64]]:
    """Give gaps in units of one of them, where the width's scale is not known; and which arm's that is."""
    ratio, units = ratios(comparison, asked.reference)
    gap = np.where(comparison.verdict == BEST, 0.0, np.nan)  # the one gap that no factor changes
    return {"gap": gap, "ratio": ratio}, units


def _references(asked: Asked, answer: Answer, units: NDArray[np.int64]) -> Said:
    """Say what ratios are counted in, where they are."""

    def tell(which: int) -> Notice:
        arm = asked.log.arms[units[which]]
        return Notice("reference", f'Ratios are counted in the gap of "{arm}".', arm=arm)

    counted = ~np.isnan(answer.numbers["ratio"]).all(axis=-1)
    return told(np.flatnonzero(counted), answer.demonstrations, tell)


def _tell_lost(asked: Asked, answer: Answer, units: NDArray[np.int64]) -> None:
    """Say where an anchor, or the arm that ratios are counted in, has no estimated gap, so that nothing follows."""
    arms, anchor = asked.log.arms, asked.anchor

    def no_anchor(which: int) -> Notice:
        assert anchor is not None
        assert anchor.arm is not None
        return Notice("no-anchor", f'The anchor "{arms[anchor.arm]}" has no estimated gap.')

    def no_ratio(which: int) -> Notice:
        missing = "No arm has an" if units[which] < 0 else f'"{arms[units[which]]}" has no'
        return Notice("no-ratio", f"{missing} estimated gap above 0 to count the others in.")

    if asked.scale == "unknown":
        lost, tell = np.isnan(answer.numbers["ratio"]).all(axis=-1), no_ratio
    elif anchor is not None and anchor.arm is not None:
        lost, tell = np.isnan(answer.numbers["gap"][:, anchor.arm]), no_anchor
    else:
        return
    if lost.all():
        raise NotIdentifiable(f"{tell(0).message} So nothing else follows; choose an arm with verdict estimated.")
    answer.warnings += [notice for _, notice in told(np.flatnonzero(lost), answer.demonstrations, tell)]
