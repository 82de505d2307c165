"""Estimates as figures: arms with intervals, errors, other assumptions; as a log grew or by stretch; one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unbandit.checks import numbers, position
from unbandit.errors import ParameterError
from unbandit.formatting import label as short
from unbandit.formatting import number, share
from unbandit.plots import parts
from unbandit.plots.parts import INK, LINES, PALETTE, SOFT, Look, Numbers, styled
from unbandit.result import BEST, ArmEstimate, Estimate, Quantity
from unbandit.result import shown_quantity as shown_quantity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unbandit.contexts.posterior import ContextPosterior
    from unbandit.estimators.learning_curve import LearningCurve
    from unbandit.estimators.stretches import Stretches
    from unbandit.estimators.switching_moment import SwitchingMoment
    from unbandit.estimators.variants import Sensitivity

AXIS_LABELS = {"mean": "value", "gap": "gap to the best arm", "ratio": "ratio of gaps"}


def axis_label(estimate: Estimate, quantity: Quantity) -> str:
    """Return what stands at an axis of values: the quantity, and its unit where there is one."""
    name = AXIS_LABELS[quantity]
    return name if estimate.unit is None or quantity == "ratio" else f"{name}, in {estimate.unit.name}"


MARKERS = {"best": "D", "estimated": "o", "bounded": ""}  # verdicts that are drawn, in this order, with their markers
MOST_DEMONSTRATIONS = 200
MOST_STEPS = 100  # a curve with more steps than this is too fine to be seen as a staircase


@dataclass(frozen=True)
class ArmRows:
    """Numbers of ranked arms as they are drawn: one member per arm, NaN where there is no number."""

    arms: tuple[str, ...]
    pulls: tuple[str, ...]
    verdicts: NDArray[np.str_]
    point: Numbers
    low: Numbers
    high: Numbers

    @classmethod
    def of(cls, rows: Sequence[ArmEstimate], quantity: Quantity, unit: float) -> ArmRows:
        """Take one quantity of some rows, in units of `unit`."""
        numbers = np.array([(row.value(quantity), *row.interval(quantity)) for row in rows], float).reshape(-1, 3)
        verdicts = np.array([row.verdict for row in rows], dtype=np.str_)
        return cls(tuple(row.arm for row in rows), tuple(f"{row.pulls:,}" for row in rows), verdicts, *unit * numbers.T)


def coefficients(found: ContextPosterior, *, truth: ArrayLike | None = None, ax: Axes | None = None) -> Any:
    """Draw every coefficient of a log with features: its expectation and interval, hollow where it is not estimated.

    `truth` has one number per coefficient, in their order; it is drawn as a line across.
    """
    names = [parts.arm_name(*filter(None, pair)) for pair in found.names]
    (low, high), places = found.interval(), np.arange(len(names))
    true = np.zeros(0) if truth is None else numbers("truth", truth).reshape(-1)
    if truth is not None and true.size != places.size:
        text = f"expected {places.size:,} numbers, one per coefficient; got {true.size:,}."
        raise ParameterError(text, parameter="truth", value=truth)
    known = np.array([verdict == "estimated" for verdict in found.verdicts])
    colour = parts.LINES[0].colour
    with parts.styled():
        layout = parts.RowLayout(names, [number(value, 3) for value in found.mean], "value", named=str, ax=ax)
        ends = min(float(low.min()), 0.0, *true), max(float(high.max()), 0.0, *true)
        margin = 0.04 * (ends[1] - ends[0])
        ticks = parts.even_ticks(ends[0] - margin, ends[1] + margin)
        parts.put_scale(layout.axes, "x", ticks, f"coefficient, with its {share(found.level)} interval")
        layout.axes.axvline(0, color=parts.SOFT, linewidth=0.9, linestyle=(0, (3, 2)), zorder=1)
        parts.draw_bars(layout.axes, places, low, high, color=colour, linewidth=layout.size(1.6), zorder=2)
        for chosen, face in ((known, colour), (~known, "white")):
            layout.axes.plot(
                found.mean[chosen], places[chosen], marker="o", linestyle="none", color=colour, markerfacecolor=face,
                markersize=layout.size(5), zorder=3,
            )  # fmt: skip
        if true.size:
            look: Look = {"color": PALETTE["truth"], "marker": "|", "markeredgewidth": 1.5, "linestyle": "none"}
            layout.axes.plot(true, places, markersize=layout.size(10), zorder=4, **look)
    return layout.drawn


def arms_with_intervals(
    estimate: Estimate, *, truth: Mapping[str, float] | None = None, unit: float = 1.0, label: str | None = None,
    demonstration: object = None, most: int | None = None, ax: Axes | None = None,
) -> Any:  # fmt: skip
    """Draw every arm, best first: its estimate, its interval or bound, and the truth where it is known.

    Parameters
    ----------
    estimate
        The estimate to draw.
    truth
        What is shown of each arm: its mean, or its gap where the estimate has no means. `Estimate.plot` takes means.
    unit
        Factor by which all values are multiplied, to show them in their own unit.
    label
        Label of the horizontal axis.
    demonstration
        Name of the demonstration to draw; default the first.
    most
        How many arms to draw, the best first; default all.
    ax
        Axes to draw into, which are then returned; default a new figure.
    """
    which = position("demonstration", demonstration, estimate.demonstrations)
    quantity = shown_quantity(estimate)
    rows = ArmRows.of(estimate.ranked(estimate.demonstrations[which], most), quantity, unit)
    true = unit * parts.true_values(truth, rows.arms)
    groups = [
        Group(rows.verdicts == verdict, verdict, marker, verdict, line=verdict != "best")
        for verdict, marker in MARKERS.items()
    ]
    with styled():
        layout = parts.RowLayout(rows.arms, rows.pulls, "pulls", ax=ax)
        span = parts.span_of(rows.point, rows.low, rows.high, true)
        parts.put_scale(layout.axes, "x", parts.even_ticks(*span), label or axis_label(estimate, quantity))
        entries = _draw_groups(layout, rows, groups)
        if (known := np.flatnonzero(np.isfinite(true))).size:
            look: Look = {"color": PALETTE["truth"], "marker": "|", "markersize": 10, "markeredgewidth": 1.5}
            fitted = {"markersize": layout.size(10), "markeredgewidth": layout.size(1.5)}
            layout.axes.plot(true[known], known, **(look | fitted), linestyle="none", zorder=4)
            entries.append((look, "truth (hidden)"))
        if layout.count <= parts.MOST_NAMED_ROWS:
            for place in np.flatnonzero(rows.verdicts == "unseen").tolist():
                layout.axes.text(0.01, place, "never pulled", transform=layout.axes.get_yaxis_transform(),
                                 va="center_baseline", fontsize=8, color=SOFT)  # fmt: skip
        if layout.count < len(estimate.arms):
            entries.append(({}, f"first {layout.count} of {len(estimate.arms):,} arms"))
        if layout.count > 1:
            parts.put_key(layout.axes, entries)
        parts.put_demonstration(layout.axes, estimate.demonstrations, which)
    return layout.drawn


def demonstrations(
    estimate: Estimate, *, most: int | None = None, settled: NDArray[np.bool_] | None = None, ax: Axes | None = None
) -> Any:
    """Draw all demonstrations on one axis: a row for each, with the values and intervals of up to eight arms.

    On the right stands the best arm, or "open"; `settled` says of each demonstration whether one arm is the best, by
    default by its verdict. Of more than 200 demonstrations, or than `most`, so many are drawn.
    """
    quantity = shown_quantity(estimate)
    which = parts.evenly(range(len(estimate.demonstrations)), most or MOST_DEMONSTRATIONS)
    often = np.argsort(-estimate.marks.sum(axis=0), kind="stable")
    shown = parts.evenly(often)
    missing = np.full(estimate.columns.pulls.shape, np.nan)
    point, low, high = (
        np.asarray(getattr(estimate.columns, quantity + end, missing))[np.ix_(which, shown)]
        for end in ("", "_low", "_high")
    )
    if settled is None:
        settled = (estimate.marks & (estimate.columns.verdict == BEST)).sum(axis=1) == 1
    room = (0.2 if parts.is_narrow() else 0.25) * parts.width()
    best = [
        parts.fitted_name(estimate.best_by_demonstration[at][0], room, 8) if settled[at] else "open" for at in which
    ]
    names = [f"{short(estimate.arms[arm], 16)}" for arm in shown]
    with styled():
        rows = [estimate.demonstrations[at] for at in which]
        height = 0.235 if len(rows) <= parts.MOST_NAMED_ROWS else 0.3
        layout = parts.RowLayout(rows, best, "best", row_height=height, ax=ax)
        axes = layout.axes
        span = parts.span_of(point.ravel(), low.ravel(), high.ravel())
        parts.put_scale(axes, "x", parts.even_ticks(*span), axis_label(estimate, quantity))
        entries = _draw_side_by_side(layout, (point, low, high), names, parts.lines_of(shown, len(estimate.arms)))
        if len(shown) < len(estimate.arms):
            entries.append(({}, f"of {len(estimate.arms):,} arms"))
        if np.isfinite(low).any():
            entries.append(({"color": SOFT, "linestyle": "-"}, f"{share(estimate.level)} interval"))
        parts.put_key(axes, entries)
    return layout.drawn


def sensitivity(found: Sensitivity, *, demonstration: object = None, ax: Axes | None = None) -> Any:
    """Draw every arm as assumed and, beside it, under up to seven other assumptions, with intervals.

    Parameters
    ----------
    found
        The result of `unbandit.sensitivity(log, rule)`.
    demonstration
        Name of the demonstration to draw; default the first.
    ax
        Axes to draw into, which are then returned; default a new figure.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = sensitivity(ub.sensitivity(log, "ucb1", sigma=1.0))
    """
    answer, quantity = found.answer, found.quantity
    which = position("demonstration", demonstration, answer.demonstrations)
    ranked, shown = answer.ranked(answer.demonstrations[which]), parts.evenly(range(len(found) + 1))
    variants = [list(found.assumed.items())[at] for at in shown]
    order, missing = [answer.arms.index(row.arm) for row in ranked], np.full(answer.columns.pulls.shape, np.nan)
    numbers = tuple(
        np.column_stack([getattr(each.columns, quantity + end, missing)[which, order] for _, each in variants])
        for end in ("", "_low", "_high")
    )
    with styled():
        layout = parts.RowLayout(
            [row.arm for row in ranked], [f"{row.pulls:,}" for row in ranked], "pulls", row_height=0.4, ax=ax
        )
        span = parts.span_of(*(each.ravel() for each in numbers))
        parts.put_scale(layout.axes, "x", parts.even_ticks(*span), axis_label(answer, quantity))
        names = [name for name, _ in variants]
        parts.put_key(layout.axes, _draw_side_by_side(layout, numbers, names, LINES))
        parts.put_demonstration(layout.axes, answer.demonstrations, which)
    return layout.drawn


def _draw_side_by_side(
    layout: parts.RowLayout, numbers: tuple[Numbers, ...], names: Sequence[str], lines: Sequence[parts.Line]
) -> list[tuple[Look, str]]:
    """Draw the columns of points, low and high ends one below the other in each row, and return the key."""
    entries: list[tuple[Look, str]] = []
    places, apart = np.arange(len(numbers[0])), 0.5 / len(names)
    for at, (name, line) in enumerate(zip(names, lines, strict=False)):
        point, low, high = (each[:, at] for each in numbers)
        along = places + apart * (at + 0.5) - 0.25
        known = np.isfinite(low) & np.isfinite(high)
        bar: Look = {"color": line.colour, "linewidth": layout.size(1.2), "alpha": 0.6, "zorder": 2}
        parts.draw_bars(layout.axes, along[known], low[known], high[known], **bar)
        dot: Look = {"color": line.colour, "marker": line.marker}
        layout.axes.plot(point, along, linestyle="none", markersize=layout.size(4.0), zorder=3, **dot)
        entries.append((dot | {"markersize": 5}, name))
    return entries


def errors(
    estimate: Estimate, truth: Mapping[str, float], *, unit: float = 1.0, label: str | None = None,
    demonstration: object = None, ax: Axes | None = None,
) -> Any:  # fmt: skip
    """Draw how far every estimate is from the truth, with its interval: which contain the truth, and which do not.

    Arms without a number, arms whose truth is not given, and a best arm without an interval are left out. The
    parameters are those of `arms_with_intervals`.
    """
    which = position("demonstration", demonstration, estimate.demonstrations)
    quantity = shown_quantity(estimate)
    ranked = [
        row
        for row in estimate.ranked(estimate.demonstrations[which])
        if row.arm in truth
        and (row.interval(quantity) != (None, None) or (row.verdict != "best" and row.value(quantity) is not None))
    ]
    if not ranked:
        text = "expected the true value of some arm that has an estimate or a bound; got none."
        raise ParameterError(text, parameter="truth")
    rows = ArmRows.of(ranked, quantity, unit)
    true = unit * parts.true_values(truth, rows.arms)
    rows = replace(rows, point=rows.point - true, low=rows.low - true, high=rows.high - true)
    interval = np.isfinite(rows.low) | np.isfinite(rows.high)
    missed = interval & ((rows.low > 0) | (rows.high < 0))
    held, total = interval & ~missed, f"{interval.sum():,}"
    groups = (
        Group(held, "estimated", "o", f"{held.sum():,} of {total} hold the truth", line=True),
        Group(missed, "truth", "X", f"{missed.sum():,} of {total} do not", line=True),
        Group(~interval, "bounded", "o", "without an interval", line=False),
    )
    unit_name = "" if estimate.unit is None else f", in {estimate.unit.name}"
    with styled():
        layout = parts.RowLayout(rows.arms, rows.pulls, "pulls", ax=ax)
        span = parts.span_of(rows.point, rows.low, rows.high, np.zeros(1))
        parts.put_scale(
            layout.axes, "x", parts.even_ticks(*span), label or f"estimated {quantity}, less the true one{unit_name}"
        )
        layout.axes.axvline(0, color=INK, linewidth=0.9, zorder=1.5)
        parts.put_key(layout.axes, _draw_groups(layout, rows, groups))
        parts.put_demonstration(layout.axes, estimate.demonstrations, which)
    return layout.drawn


class Group(NamedTuple):
    """Rows that are drawn alike: which ones, their colour and marker, and their meaning in the key, a line or not."""

    chosen: NDArray[np.bool_]
    colour: str
    marker: str
    meaning: str
    line: bool


def _draw_groups(layout: parts.RowLayout, rows: ArmRows, groups: Iterable[Group]) -> list[tuple[Look, str]]:
    """Draw the rows of each group, and return the key."""
    entries = []
    for group in groups:
        look: Look = {"color": PALETTE[group.colour], "marker": group.marker}
        if _draw_intervals(layout, rows, group.chosen, look):
            line: Look = {"linestyle": "-", "linewidth": 1.6} if group.line else {}
            entries.append((look | {"markersize": 5} | line, group.meaning))
    return entries


def _draw_intervals(layout: parts.RowLayout, rows: ArmRows, chosen: NDArray[np.bool_], look: Look) -> bool:
    """Draw some rows: intervals, dots, and bounds that point to where the value may be; return whether any was drawn.

    An interval without a dot ends in two strokes.
    """
    axes, places, line = layout.axes, np.arange(chosen.size), layout.size(1.6)
    colour, marker = look["color"], look["marker"]
    low, high, point = (np.isfinite(values) & chosen for values in (rows.low, rows.high, rows.point))
    both = low & high
    parts.draw_bars(axes, places[both], rows.low[both], rows.high[both], color=colour, linewidth=line, zorder=2)
    stroke: Look = {"color": colour, "marker": "|", "linestyle": "none", "zorder": 2}
    stroke |= {"markersize": layout.size(6), "markeredgewidth": line}
    for known, other, values, edge, head in zip(
        (low, high), (high, low), (rows.low, rows.high), reversed(axes.get_xlim()), "><", strict=True
    ):
        open_end, closed = known & ~other, known & ~point
        parts.draw_bars(axes, places[open_end], values[open_end], edge, color=colour, linewidth=line,
                  linestyle=(0, (2, 1.5)))  # fmt: skip
        if closed.any():
            axes.plot(values[closed], places[closed], **stroke)
        if open_end.any():
            ends: Look = {"color": colour, "linestyle": "none", "markersize": layout.size(5), "zorder": 2}
            axes.plot(np.full(open_end.sum(), edge), places[open_end], marker=head, clip_on=False, **ends)
    if point.any():
        axes.plot(rows.point[point], places[point], color=colour, marker=marker or "o", linestyle="none",
                  markersize=layout.size(5), zorder=3)  # fmt: skip
    return bool((low | high | point).any())


def learning_curve(curve: LearningCurve, *, truth: Mapping[str, float] | None = None, ax: Axes | None = None) -> Any:
    """Draw the estimates of up to eight arms, from the best to the worst, as the log grew, with their intervals.

    The vertical axis fits the later half; estimates from the first rounds may lie outside.

    Parameters
    ----------
    curve
        The result of `unbandit.learning_curve(log, rule)`.
    truth
        What is shown of each arm: its mean, or its gap where there are no means. `LearningCurve.plot` takes means.
    ax
        Axes to draw into, which are then returned; default a new figure.

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
    shown = parts.evenly([at for row in curve.answer.ranked() if known[:, at := places[row.arm]].any()])
    point, low, high = (column[:, shown] for column in columns)
    names = [parts.arm_name(curve.arms[arm]) for arm in shown]
    true = parts.true_values(truth, [curve.arms[arm] for arm in shown])
    with styled():
        first, last = float(rounds[0]), float(rounds[-1])
        along = parts.log_ticks(first, last) if last > first else parts.even_ticks(first - 1, last + 1, 3, whole=True)
        up = parts.even_ticks(*_later_span(point, low, high, true), 6)
        figure, axes = parts.curve_frame(
            along, up, ("rounds of the log", axis_label(curve.answer, quantity)), names, ax=ax
        )
        undecided, lines = _draw_undecided(axes, rounds, point, low, high), parts.lines_of(shown, len(curve.arms))
        for at, line in enumerate(lines):
            estimated = np.isfinite(point[:, at]).tolist()
            axes.fill_between(rounds, low[:, at], high[:, at], where=estimated, color=line.colour,
                              alpha=0.13 if len(shown) <= 4 else 0.09, linewidth=0)  # fmt: skip
            axes.plot(rounds, point[:, at], color=line.colour, linestyle=line.dashes, linewidth=1.4,
                      marker=line.marker, markersize=3.5, zorder=3)  # fmt: skip
        parts.label_ends(axes, np.where(np.isfinite(point[-1]), point[-1], (low[-1] + high[-1]) / 2), names, lines)
        for value, line in zip(true, lines, strict=True):
            if np.isfinite(value):
                axes.axhline(value, color=line.colour, linestyle=(0, (6, 4)), linewidth=0.9, zorder=2)
        remarks = {
            f"bands: {curve.answer.level:.0%} intervals": quantity != "ratio",
            "grey: bounds of arms still undecided": undecided,
            "dashed: the truth": np.isfinite(true).any(),
            f"{len(shown)} of {len(curve.arms):,} arms": len(shown) < len(curve.arms),
        }
        parts.put_remark(axes, "; ".join(remark for remark, applies in remarks.items() if applies))
    return figure if ax is None else axes


def stretches(found: Stretches, *, ax: Axes | None = None) -> Any:
    """Draw the estimates of up to eight arms stretch by stretch, with their intervals; where an arm drifted, say so.

    Parameters
    ----------
    found
        The result of `unbandit.stretches(log, rule)`.
    ax
        Axes to draw into, which are then returned; default a new figure.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = stretches(ub.stretches(log, "ucb", sigma=1.0, windows=2))
    """
    quantity, places = found.quantity, {arm: at for at, arm in enumerate(found.arms)}
    columns = [np.asarray(getattr(found.columns, quantity + end)) for end in ("", "_low", "_high")]
    known = np.isfinite(columns[0]) | np.isfinite(columns[1]) | np.isfinite(columns[2])
    shown = parts.evenly([at for row in found.answer.ranked() if known[:, at := places[row.arm]].any()])
    point, low, high = (column[:, shown] for column in columns)
    names, middles = [parts.arm_name(found.arms[arm]) for arm in shown], (found.first + found.last) / 2
    with styled():
        labels = [f"{first:,} to {last:,}" for first, last in zip(found.first, found.last, strict=True)]
        along = parts.Ticks(float(found.first[0]), float(found.last[-1]), middles.tolist(), labels)
        up = parts.even_ticks(*parts.span_of(point.ravel(), low.ravel(), high.ravel()), 6)
        figure, axes = parts.curve_frame(
            along, up, ("rounds of the log", axis_label(found.answer, quantity)), names, ax=ax
        )
        width = float(found.last[0] - found.first[0] + 1)
        for border in found.last[:-1].tolist():
            axes.axvline(border, color=SOFT, linewidth=0.6, zorder=1)
        ends, lines = np.full(len(shown), np.nan), parts.lines_of(shown, len(found.arms))
        for at, line in enumerate(lines):
            here = middles + width * 0.6 * ((at + 0.5) / len(shown) - 0.5)
            ends_here = (
                np.where(np.isfinite(low[:, at]), low[:, at], up.low),
                np.where(np.isfinite(high[:, at]), high[:, at], np.where(np.isfinite(low[:, at]), up.high, np.nan)),
            )
            axes.vlines(here, *ends_here, color=line.colour, linewidth=1.2, alpha=0.6, zorder=2)
            axes.plot(here, point[:, at], color=line.colour, linestyle=line.dashes, linewidth=1.0,
                      marker=line.marker, markersize=4.5, zorder=3)  # fmt: skip
            last = np.flatnonzero(np.isfinite(point[:, at]))
            ends[at] = point[last[-1], at] if last.size else np.nan
        parts.label_ends(axes, ends, names, lines)
        drift = "not tested for drift" if found.furthest is None else "no drift shown"
        if found.furthest is not None and found.drifted:
            moved = found.furthest
            drift = f'drift of "{short(moved.arm if moved.decided else moved.shown_by)}"'
            drift += "" if moved.decided else f' to "{short(moved.compared_with)}"'
        parts.put_remark(axes, f"{drift}; lines: {found.answer.level:.0%} intervals and bounds")
    return figure if ax is None else axes


def _later_span(point: Numbers, low: Numbers, high: Numbers, true: Numbers) -> tuple[float, float]:
    """Return limits that fit the later half, where each arm ends, and the truth."""
    late = slice(point.shape[0] // 2, None)
    estimated = np.isfinite(point[late])
    if not estimated.any():
        estimated = np.ones_like(estimated)
    return parts.span_of(*(values[late][estimated] for values in (point, low, high)), low[-1], high[-1], true)


def _draw_undecided(axes: Axes, rounds: NDArray[np.int64], point: Numbers, low: Numbers, high: Numbers) -> bool:
    """Draw one band for all arms that have two bounds and no estimate yet; return whether there is one."""
    waiting = np.isnan(point) & np.isfinite(low) & np.isfinite(high)
    some = waiting.any(axis=1)
    if some.any():
        bottom = np.where(some, np.where(waiting, low, np.inf).min(axis=1), np.nan)
        top = np.where(some, np.where(waiting, high, -np.inf).max(axis=1), np.nan)
        axes.fill_between(rounds, bottom, top, where=some.tolist(), color="#ececec", linewidth=0, zorder=0.5)
    return bool(some.any())


def switching_moment(moment: SwitchingMoment, *, ax: Axes | None = None) -> Any:
    """Draw the decision values of an arm and of the best arm around the arm's switching round.

    The sample means that decided are hidden: the values drawn are those at the estimated gap.

    Parameters
    ----------
    moment
        The result of `unbandit.switching_moment(log, rule, arm)`.
    ax
        Axes to draw into, which are then returned; default a new figure.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = switching_moment(ub.switching_moment(log, "ucb", sigma=1.0))
    """
    longest = 9 if parts.is_narrow() else 18
    arm, best = short(moment.arm, longest), short(moment.best, longest)
    if moment.kind == "index":
        names, label = [f"index of {best}", f"index of {arm}"], "index"
        event = f"Round {moment.round:,}: the last time that {arm} was worth a pull beside {best}"
    else:
        names, label = [f"lower bound of {best}", f"upper bound of {arm}"], "confidence bound"
        event = f"Round {moment.round:,}: {arm} fell behind {best} for good, and was eliminated"
    if moment.best_mean is None:
        label += "\nabove the best arm's mean"
    apart = f"{moment.gap:.3g} apart, as estimated"
    hidden = f"The sample means are hidden: drawn are the values with means {apart}."
    if moment.equal:
        hidden = f"The sample means are hidden. Put {apart}, they make both values equal here."
    with styled():
        along = parts.even_ticks(float(moment.rounds[0]), float(moment.rounds[-1]), 6, whole=True)
        up = parts.even_ticks(*parts.span_of(moment.own, moment.other), 6)
        figure, axes = parts.curve_frame(along, up, ("round", label), names, height=3.3, top=0.62, ax=ax)
        axes.axvline(moment.round, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1.5)
        here, rival = moment.here, LINES[1].colour
        for values, colour in ((moment.other, LINES[0].colour), (moment.own, rival)):
            look: Look = {"color": colour, "linewidth": 1.7, "zorder": 3}
            axes.plot(*_staircase(moment.rounds[: here + 1], values[: here + 1]), **look)
            if colour == rival:  # after its switching round the arm was no longer pulled
                look |= {"linestyle": (0, (4, 1.6)), "linewidth": 1.3}
            axes.plot(*_staircase(moment.rounds[here:], values[here:]), **look)
        axes.plot([moment.round], [moment.own[here]], marker="o", color=INK, markersize=5, zorder=4)
        parts.label_ends(axes, np.array([moment.other[-1], moment.own[-1]]), names)
        parts.put_remark(axes, event, hidden)
    return figure if ax is None else axes


def _staircase(rounds: NDArray[np.int64], values: Numbers) -> tuple[NDArray[np.int64], Numbers]:
    """Return the corners of a curve that jumps after some rounds and is constant between."""
    if rounds.size < 2:
        return rounds, values
    jumps = np.flatnonzero(np.diff(values) != 0) + 1
    if jumps.size > MOST_STEPS:
        kept = np.unique(np.concatenate([[0, rounds.size - 1], jumps]))
        return rounds[kept], values[kept]
    along = np.concatenate([rounds[:1], np.repeat(rounds[jumps], 2), rounds[-1:]])
    return along, np.repeat(values[np.concatenate([[0], jumps])], 2)
