"""How the answer settled: the estimates as the log grew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.axes import count_ticks, even_ticks, label_ends, put_x, put_y, remark, span_of
from unbandit.plots.estimate import AXIS
from unbandit.plots.naming import short, text_width
from unbandit.plots.style import LINES, frame, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unbandit.estimators.learning_curve import LearningCurve

Numbers = NDArray[np.float64]


def settling(growth: LearningCurve, *, truth: Mapping[str, float] | None = None) -> Figure:
    """Draw the estimates of up to eight arms, from the best to the worst, as the log grew, with their intervals.

    The vertical axis is that of the later half; what the first rounds seemed to say may lie outside.

    Parameters
    ----------
    growth
        What `unbandit.learning_curve(log, rule)` found.
    truth
        The mean (or gap, where there are no means) of each arm, drawn as a dashed line.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = settling(ub.learning_curve(log, "ucb", sigma=1.0), truth={"A": 0.0, "B": 0.5})
    """
    shown = _chosen(growth)
    point, low, high = (_values(growth, end)[:, shown] for end in ("", "_low", "_high"))
    names = [short(growth.arms[arm]) for arm in shown]
    true = np.array([(truth or {}).get(growth.arms[arm], np.nan) for arm in shown])
    late = slice(growth.rounds.size // 2, None)
    told = np.isfinite(point[late]) if np.isfinite(point[late]).any() else np.ones_like(point[late], bool)
    with styled():
        first, last = float(growth.rounds[0]), float(growth.rounds[-1])
        seen = [values[late][told] for values in (point, low, high)]
        up = even_ticks(*span_of(*seen, low[-1], high[-1], true), 6)  # where each arm ends is always in sight
        along = count_ticks(first, last) if last > first else even_ticks(first - 1, last + 1, 3, whole=True)
        figure, axes = frame(3.6, left=0.45 + text_width(up.labels), right=0.4 + text_width(names))
        put_x(axes, along, "rounds of the log")
        put_y(axes, up, AXIS[growth.quantity])
        undecided = _draw_undecided(axes, growth.rounds, point, low, high)
        for at, line in zip(range(len(shown)), LINES, strict=False):
            known = np.isfinite(point[:, at])
            axes.fill_between(growth.rounds, low[:, at], high[:, at], where=known.tolist(), color=line.colour,
                              alpha=0.13 if len(shown) <= 4 else 0.09, linewidth=0)  # fmt: skip
            axes.plot(growth.rounds, point[:, at], color=line.colour, linestyle=line.dashes, linewidth=1.4,
                      marker=line.marker, markersize=3.5, zorder=3)  # fmt: skip
        ends = np.array([_last(point[:, at], low[:, at], high[:, at]) for at in range(len(shown))])
        label_ends(axes, ends, names, LINES)
        _draw_truth(axes, true)
        _explain(axes, growth, len(shown), bool(np.isfinite(true).any()), undecided)
    return figure


def _values(growth: LearningCurve, end: str) -> Numbers:
    """Return one column of what is shown; ratios have no intervals."""
    found: Numbers | None = getattr(growth.columns, growth.quantity + end, None)
    return np.full(growth.columns.pulls.shape, np.nan) if found is None else found


def _chosen(growth: LearningCurve) -> list[int]:
    """Choose arms of which there is something to show, evenly from the best to the worst."""
    places = {arm: at for at, arm in enumerate(growth.arms)}
    ranked = [places[row.arm] for row in growth.answer.ranked()]
    told = np.isfinite(_values(growth, "")) | np.isfinite(_values(growth, "_low") + _values(growth, "_high"))
    ranked = [arm for arm in ranked if told[:, arm].any()]
    few = np.unique(np.linspace(0, len(ranked) - 1, min(len(ranked), len(LINES))).round().astype(int))
    return [ranked[place] for place in few] if ranked else []


def _last(point: Numbers, low: Numbers, high: Numbers) -> float:
    """Return where a curve ends: at its last point, or else in the middle of its last interval."""
    return float(point[-1] if np.isfinite(point[-1]) else (low[-1] + high[-1]) / 2)


def _draw_undecided(axes: Axes, rounds: NDArray[np.int64], point: Numbers, low: Numbers, high: Numbers) -> bool:
    """Draw one band for all arms that have two bounds and no estimate yet; return whether there was any."""
    waiting = np.isnan(point) & np.isfinite(low) & np.isfinite(high)
    if not waiting.any():
        return False
    bottom, top = np.where(waiting, low, np.inf).min(axis=1), np.where(waiting, high, -np.inf).max(axis=1)
    where = waiting.any(axis=1)
    bottom, top = np.where(where, bottom, np.nan), np.where(where, top, np.nan)
    axes.fill_between(rounds, bottom, top, where=where.tolist(), color="#ececec", linewidth=0, zorder=0.5)
    return True


def _draw_truth(axes: Axes, true: Numbers) -> None:
    for value, line in zip(true, LINES, strict=False):
        if np.isfinite(value):
            axes.axhline(value, color=line.colour, linestyle=(0, (6, 4)), linewidth=0.9, zorder=2)


def _explain(axes: Axes, growth: LearningCurve, shown: int, truth: bool, undecided: bool) -> None:
    """Say what the bands are, and what is left out."""
    said = [f"bands: {growth.answer.level:.0%} intervals"] * (growth.quantity != "ratio")
    said += ["grey: bounds of arms still undecided"] * undecided + ["dashed: the truth"] * truth
    said += [f"{shown} of {len(growth.arms):,} arms"] * (shown < len(growth.arms))
    if said:
        remark(axes, "; ".join(said))
