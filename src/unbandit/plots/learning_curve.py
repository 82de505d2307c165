"""A learning curve as a figure: the estimates as the log grew."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.formatting import label as short
from unbandit.plots.axes import Numbers, curve_frame, even_ticks, evenly, label_ends, log_ticks, put_remark, span_of
from unbandit.plots.estimate import AXIS_LABELS
from unbandit.plots.style import LINES, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unbandit.estimators.learning_curve import LearningCurve


def learning_curve(curve: LearningCurve, *, truth: Mapping[str, float] | None = None) -> Figure:
    """Draw the estimates of up to eight arms, from the best to the worst, as the log grew, with their intervals.

    The vertical axis fits the later half; estimates from the first rounds may lie outside.

    Parameters
    ----------
    curve
        The result of `unbandit.learning_curve(log, rule)`.
    truth
        The mean (or gap, where there are no means) of each arm, drawn as a dashed line.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = learning_curve(ub.learning_curve(log, "ucb", sigma=1.0), truth={"A": 0.0, "B": 0.5})
    """
    rounds, quantity = curve.rounds, curve.quantity
    missing = np.full(curve.columns.pulls.shape, np.nan)  # ratios have no intervals
    columns = [np.asarray(getattr(curve.columns, quantity + end, missing)) for end in ("", "_low", "_high")]
    known = np.isfinite(columns[0]) | np.isfinite(columns[1] + columns[2])
    places = {arm: at for at, arm in enumerate(curve.arms)}
    shown = evenly([at for row in curve.answer.ranked() if known[:, at := places[row.arm]].any()])
    point, low, high = (column[:, shown] for column in columns)
    names = [short(curve.arms[arm]) for arm in shown]
    true = np.array([(truth or {}).get(curve.arms[arm], np.nan) for arm in shown])
    with styled():
        first, last = float(rounds[0]), float(rounds[-1])
        along = log_ticks(first, last) if last > first else even_ticks(first - 1, last + 1, 3, whole=True)
        up = even_ticks(*_later_span(point, low, high, true), 6)
        figure, axes = curve_frame(along, up, ("rounds of the log", AXIS_LABELS[quantity]), names)
        undecided = _draw_undecided(axes, rounds, point, low, high)
        for at, line in zip(range(len(shown)), LINES, strict=False):
            estimated = np.isfinite(point[:, at]).tolist()
            axes.fill_between(rounds, low[:, at], high[:, at], where=estimated, color=line.colour,
                              alpha=0.13 if len(shown) <= 4 else 0.09, linewidth=0)  # fmt: skip
            axes.plot(rounds, point[:, at], color=line.colour, linestyle=line.dashes, linewidth=1.4,
                      marker=line.marker, markersize=3.5, zorder=3)  # fmt: skip
        label_ends(axes, np.where(np.isfinite(point[-1]), point[-1], (low[-1] + high[-1]) / 2), names)
        for value, line in zip(true, LINES, strict=False):
            if np.isfinite(value):
                axes.axhline(value, color=line.colour, linestyle=(0, (6, 4)), linewidth=0.9, zorder=2)
        remarks = [f"bands: {curve.answer.level:.0%} intervals"] * (quantity != "ratio")
        remarks += ["grey: bounds of arms still undecided"] * undecided
        remarks += ["dashed: the truth"] * bool(np.isfinite(true).any())
        remarks += [f"{len(shown)} of {len(curve.arms):,} arms"] * (len(shown) < len(curve.arms))
        if remarks:
            put_remark(axes, "; ".join(remarks))
    return figure


def _later_span(point: Numbers, low: Numbers, high: Numbers, true: Numbers) -> tuple[float, float]:
    """Return limits that fit the later half, where each arm ends, and the truth."""
    late = slice(point.shape[0] // 2, None)
    estimated = np.isfinite(point[late])
    if not estimated.any():
        estimated = np.ones_like(estimated)
    return span_of(*(values[late][estimated] for values in (point, low, high)), low[-1], high[-1], true)


def _draw_undecided(axes: Axes, rounds: NDArray[np.int64], point: Numbers, low: Numbers, high: Numbers) -> bool:
    """Draw one band for all arms that have two bounds and no estimate yet; return whether there is one."""
    waiting = np.isnan(point) & np.isfinite(low) & np.isfinite(high)
    if not waiting.any():
        return False
    some = waiting.any(axis=1)
    bottom = np.where(some, np.where(waiting, low, np.inf).min(axis=1), np.nan)
    top = np.where(some, np.where(waiting, high, -np.inf).max(axis=1), np.nan)
    axes.fill_between(rounds, bottom, top, where=some.tolist(), color="#ececec", linewidth=0, zorder=0.5)
    return True
