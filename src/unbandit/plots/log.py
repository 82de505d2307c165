"""An action log as a figure: which arm was pulled when, or how pulls added up with the switching rounds marked."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.checks import position
from unbandit.errors import ParameterError
from unbandit.formatting import label as short
from unbandit.plots import parts
from unbandit.plots.parts import INK, LINES, Look, Numbers, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unbandit.log import ActionLog
    from unbandit.log.availability import Availability

MOST_PANELS, TENTHS = 24, 10  # demonstrations that are drawn apart, and parts of each

MOST_COLUMNS = 400
MOST_ROWS = 39

DARKEST = np.array([0x14, 0x3F, 0x5C], float)
"""The colour of a column in which one arm alone was pulled; columns without a pull are white."""

FAINTEST = 0.22  # share of that colour for a single pull, however many rounds a column has

ABSENT = "#e4e4e4"  # rounds in which an arm could not be pulled

CURVE_POINTS = 240
MOST_PALE_CURVES = 40

PALE: Look = {"color": "#9a9a9a", "markersize": 2.5, "zorder": 2.5}
DARK: Look = {"color": INK, "markersize": 4.5, "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 4}
"""Marks of switching rounds, on pale curves and on named ones."""


def timeline(
    log: ActionLog, *, demonstration: object = None, availability: Availability | None = None, ax: Axes | None = None
) -> Any:
    """Draw which arm was pulled when: one row per arm, the most-pulled on top, darker where it was pulled more.

    Rounds are grouped into up to 400 columns, so ten million rounds are as legible as a hundred; a single pull still
    shows. Of more than 40 arms the least-pulled share one row.

    Parameters
    ----------
    log
        The log to draw. Counts have no order and are refused.
    demonstration
        Name of the demonstration to draw; default the first.
    availability
        The rounds in which arms could be pulled; others are grey.
    ax
        Axes to draw into, which are then returned; default a new figure.

    Examples
    --------
    >>> from unbandit import ActionLog
    >>> figure = timeline(ActionLog.from_actions("ABABAAAA"))
    """
    which, codes, pulls = _rounds_of(log, demonstration, "timeline")
    ranked = np.argsort(-pulls, kind="stable")
    order = ranked if pulls.size <= MOST_ROWS + 1 else ranked[:MOST_ROWS]
    others = pulls.size - order.size
    edges, counts = binned(codes, order, pulls.size, MOST_COLUMNS)
    counts = counts[:, : order.size + (others > 0)]
    names = [log.arms[arm] for arm in order] + [f"{others:,} other arms"] * (others > 0)
    totals = [f"{number:,}" for number in counts.sum(axis=0)]
    with styled():
        layout = parts.RowLayout(names, totals, "pulls", row_height=0.235 if len(names) <= 20 else 0.18, ax=ax)
        axes = layout.axes
        extent = (0, codes.size, len(names) - 0.5, -0.5)
        axes.imshow(_coloured(_depths(counts, edges)), aspect="auto", interpolation="none", extent=extent)
        if availability is not None:
            _shade_absences(axes, availability.first[order], availability.last[order], codes.size)
        parts.draw_bars(axes, np.arange(1, len(names)) - 0.5, 0, codes.size, color="white", linewidth=1.0)
        parts.put_scale(axes, "x", parts.even_ticks(0, codes.size, whole=True), "round", grid=False)
        _explain_shades(axes, int(np.diff(edges).max()))
        parts.put_demonstration(axes, log.demonstrations, which)
    return layout.drawn


BESIDE_NAME = 0.55  # inches that a name in the key has beside it: its line, and what parts it from the next


def choice_shares(log: ActionLog, *, most: int = MOST_PANELS) -> Any:
    """Draw every demonstration as a small panel: the share of choices that went to each arm, tenth by tenth.

    All panels have the same axes. At most `most` demonstrations are drawn, evenly spread, and at most eight arms, the
    most-pulled.

    Parameters
    ----------
    log
        The log to draw. Counts have no order and are refused.
    most
        The largest number of panels.

    Examples
    --------
    >>> from unbandit import ActionLog
    >>> figure = choice_shares(ActionLog.from_actions([list("ABABAAAA"), list("BAABBABB")]))
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    _rounds_of(log, None, "choice_shares")
    which = parts.evenly(range(len(log)), most)
    shown = np.argsort(-log.pulls.sum(axis=0), kind="stable")[: len(LINES)]
    lines = parts.lines_of(shown, len(log.arms))
    longest = int(log.lengths[which].max())
    columns = min(3 if parts.is_narrow() else 6, len(which))
    rows = -(-len(which) // columns)
    with styled():
        names = [parts.arm_name(log.arms[arm]) for arm in shown]
        names = [parts.fitted_name(name, parts.width() - BESIDE_NAME, 8) for name in names]
        per_line = int((parts.width() - 0.1) / (parts.text_width(names, 8) + BESIDE_NAME))
        per_line = min(max(per_line, 1), 6, len(names))
        lines_of_names = -(-len(names) // per_line)
        height = 0.95 * rows + 0.45 + 0.17 * lines_of_names
        figure = Figure(figsize=(parts.width(), height), dpi=150, layout="constrained")
        figure.get_layout_engine().set(w_pad=0.04, h_pad=0.04)  # type: ignore[union-attr, call-arg]
        panels = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
        for axes, at in zip(panels, which.tolist(), strict=False):
            codes = log.demonstration(at)
            edges, counts = binned(codes, np.arange(len(log.arms)), len(log.arms), TENTHS)
            middles, shares = (edges[1:] + edges[:-1]) / 2, counts / np.diff(edges)[:, None]
            for arm, line in zip(shown.tolist(), lines, strict=True):
                axes.plot(middles, shares[:, arm], color=line.colour, linestyle=line.dashes, linewidth=1.2)
            axes.set_title(short(log.demonstrations[at], 12), fontsize=8, pad=2)
        for spare in panels[len(which) :]:
            spare.remove()
        panels[0].set_ylim(-0.05, 1.05)
        panels[0].set_xlim(0, longest)
        panels[0].set_yticks([0, 0.5, 1], ["0", "50%", "100%"])
        panels[0].set_xticks([0, longest], ["0", f"{longest:,}"])
        figure.supxlabel("round", fontsize=8.5)
        handles = [Line2D([], [], color=line.colour, linestyle=line.dashes) for line in lines]
        look: Look = {"loc": "outside upper left", "fontsize": 8, "frameon": False}
        figure.legend(handles, names, ncols=per_line, **look)
    return figure


def _shade_absences(axes: Axes, first: NDArray[np.int64], last: NDArray[np.int64], rounds: int) -> None:
    """Shade the rounds of each row before its first and after its last."""
    for row, (begins, ends) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        spans = (
            [(0, min(begins - 1, rounds)), (ends, rounds - ends)] if ends < rounds else [(0, min(begins - 1, rounds))]
        )
        axes.broken_barh(spans, (row - 0.5, 1.0), facecolors=ABSENT, linewidth=0)


def _depths(counts: NDArray[np.int64], edges: NDArray[np.int64]) -> Numbers:
    """Return how dark each column of each row is, from 0 to 1: by the logarithm of its pulls, so that few show too."""
    lengths = np.diff(edges)[:, None]
    logarithm = np.log(np.maximum(counts, 1)) / np.log(np.maximum(lengths, 2))
    depth = np.where(counts > 0, FAINTEST + (1 - FAINTEST) * logarithm, 0.0)
    return np.where(counts == lengths, 1.0, depth) * (counts > 0)


def _coloured(depths: Numbers) -> NDArray[np.uint8]:
    """Turn depths, (columns, rows), into an image with one line per row."""
    return np.asarray(255 - depths.T[..., None] * (255 - DARKEST)).round().astype(np.uint8)


def _explain_shades(axes: Axes, stretch: int) -> None:
    if stretch <= 1:
        parts.put_remark(axes, "one column per round")
        return
    some = sorted({1, round(stretch**0.5), stretch})
    shades = _coloured(_depths(np.array([some]), np.array([0, stretch])))[:, 0]
    words = ["1 pull" if count == 1 else f"all {count:,}" if count == stretch else f"{count:,}" for count in some]
    words[-1] += " rounds of a column"
    looks: list[Look] = [{"color": "#{:02x}{:02x}{:02x}".format(*shade), "marker": "s"} for shade in shades]
    parts.put_key(axes, [(look | {"markersize": 7}, word) for look, word in zip(looks, words, strict=True)])


def cumulative_pulls(
    log: ActionLog, *, demonstration: object = None, switching: Mapping[str, int] | None = None, ax: Axes | None = None
) -> Any:
    """Draw how often each arm had been pulled by each round, with its switching round marked.

    Of more than eight arms eight are named, from the most-pulled to the least, and up to forty more are drawn pale
    behind them.

    Parameters
    ----------
    log
        The log to draw. Counts have no order and are refused.
    demonstration
        Name of the demonstration to draw; default the first.
    switching
        The switching round of each arm that has one: `unbandit.switching_rounds(log, rule)`.
    ax
        Axes to draw into, which are then returned; default a new figure.

    Examples
    --------
    >>> from unbandit import ActionLog, switching_rounds
    >>> log = ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = cumulative_pulls(log, switching=switching_rounds(log, "ucb"))
    """
    which, codes, pulls = _rounds_of(log, demonstration, "cumulative_pulls")
    ranked = np.argsort(-pulls, kind="stable")
    ranked = ranked[pulls[ranked] > 0]
    named = parts.evenly(ranked)
    pale = parts.evenly(ranked[~np.isin(ranked, named)], MOST_PALE_CURVES)
    drawn = np.concatenate([named, pale])
    edges, counts = binned(codes, drawn, pulls.size, CURVE_POINTS)
    sums = np.vstack([np.zeros(counts.shape[1], np.int64), counts.cumsum(axis=0)]).astype(np.float64)
    sums[sums == 0] = np.nan
    marks = {at: (switching or {})[arm] for at, arm in enumerate(log.arms) if arm in (switching or {})}
    names = [parts.arm_name(log.arms[arm]) for arm in named]
    with styled():
        up, along = parts.log_ticks(0.9, 1.15 * pulls.max()), parts.even_ticks(0, codes.size, whole=True)
        figure, axes = parts.curve_frame(along, up, ("round", "pulls so far"), names, ax=ax)
        _draw_pale(axes, edges, sums[:, named.size : drawn.size])
        lines = parts.lines_of(named, len(log.arms))
        for at, line in enumerate(lines):
            axes.plot(edges, sums[:, at], color=line.colour, linestyle=line.dashes, linewidth=1.5, zorder=3)
        parts.label_ends(axes, pulls[named].astype(np.float64), names, lines)
        for first, arms, look in ((named.size, pale, PALE), (0, named, DARK)):
            places = [
                _mark(codes, arm, marks[arm], edges, sums[:, at])
                for at, arm in enumerate(arms.tolist(), first)
                if arm in marks
            ]
            if places:
                axes.plot(*zip(*places, strict=True), marker="o", linestyle="none", **look)
        entries: list[tuple[Look, str]] = [({"marker": "o"} | DARK, "switching round")] * bool(marks)
        if others := int((pulls > 0).sum()) - named.size:
            meaning = f"{others:,} other arms" if pale.size == others else f"{pale.size:,} of {others:,} other arms"
            entries.append(({"color": "#b5b5b5", "linestyle": "-", "linewidth": 0.9}, meaning))
        parts.put_key(axes, entries)
        parts.put_demonstration(axes, log.demonstrations, which)
    return figure if ax is None else axes


def _draw_pale(axes: Axes, edges: NDArray[np.int64], sums: Numbers) -> None:
    """Draw curves as one pale line with gaps, with fewer points each."""
    if sums.shape[1] == 0:
        return
    some = np.unique(np.linspace(0, edges.size - 1, 40).astype(int))
    gap = np.full((1, sums.shape[1]), np.nan)
    heights = np.vstack([sums[some], gap]).T.reshape(-1)
    along = np.tile(np.append(edges[some].astype(np.float64), np.nan), sums.shape[1])
    axes.plot(along, heights, color="#cfcfcf", linewidth=0.7, zorder=2)


def _mark(codes: NDArray[Any], arm: int, switch: int, edges: NDArray[np.int64], sums: Numbers) -> tuple[int, float]:
    """Return the point of an arm's curve at its switching round."""
    before = int(np.searchsorted(edges, switch, side="right")) - 1
    return switch, float(np.nan_to_num(sums[before]) + np.count_nonzero(codes[edges[before] : switch] == arm))


def _rounds_of(log: ActionLog, demonstration: object, figure: str) -> tuple[int, NDArray[Any], NDArray[np.int64]]:
    """Return the position of a demonstration, its rounds and its pulls; refuse a log without rounds."""
    if not log.ordered:
        text = "expected a log with rounds; this one holds counts, which have no order."
        raise ParameterError(text, parameter=figure)
    which = position("demonstration", demonstration, log.demonstrations)
    codes = log.demonstration(which)
    if codes.size == 0:
        name = log.demonstrations[which]
        raise ParameterError(f'expected rounds; {log.noun} "{name}" has none.', parameter=figure)
    return which, codes, log.pulls[which]


def binned(
    codes: NDArray[Any], order: NDArray[np.intp], arms: int, bins: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges of at most `bins` bins of rounds, and the pulls in each: of some arms, and of all others."""
    rows = np.full(arms, order.size, np.intp)
    rows[order] = np.arange(order.size)
    bins = max(min(bins, codes.size), 1)
    edges = np.linspace(0, codes.size, bins + 1).astype(np.int64)
    counts = np.empty((bins, order.size + 1), np.int64)
    for at, (begin, end) in enumerate(pairwise(edges.tolist())):
        counts[at] = np.bincount(rows[codes[begin:end]], minlength=order.size + 1)
    return edges, counts
