"""Which arm when: the whole record on one strip, however long it is."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.naming import place_of
from unbandit.plots.axes import (
    SeveralRows,
    Sign,
    bars,
    count_ticks,
    even_ticks,
    key,
    label_ends,
    put_x,
    put_y,
    remark,
    tell_demonstration,
)
from unbandit.plots.naming import short, text_width
from unbandit.plots.style import INK, LINES, Look, frame, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unbandit.log import ActionLog

COLUMNS = 400
ROWS = 39

DARKEST = np.array([0x14, 0x3F, 0x5C], float)
"""The colour of a stretch in which one arm alone was pulled; white is where it was not pulled at all."""

FAINTEST = 0.22
"""How much of that colour a single pull has, in however long a stretch."""


def timeline(log: ActionLog, *, demonstration: object = None) -> Figure:
    """Draw which arm was pulled when: a row an arm, the most-pulled on top, the darker the more it was pulled.

    Rounds are put together in up to 400 stretches, so a record of ten million rounds is as legible as one of a
    hundred; a single pull still shows. Of more than 40 arms the least-pulled share one row.

    Parameters
    ----------
    log
        A table of counts is refused: it has no order.
    demonstration
        The name of the demonstration that is drawn; by default the first.

    Examples
    --------
    >>> from unbandit import ActionLog
    >>> figure = timeline(ActionLog.from_actions("ABABAAAA"))
    """
    which, codes, pulls = rounds_of(log, demonstration, "timeline")
    order, rows = most_pulled_first(pulls, ROWS)
    others = pulls.size - order.size
    edges, counts = binned(codes, rows, order.size + (others > 0), COLUMNS)
    names = [log.arms[arm] for arm in order] + [f"{others:,} other arms"] * (others > 0)
    stretch = int(np.diff(edges).max())
    with styled():
        totals = [f"{number:,}" for number in counts.sum(axis=0)]
        layout = SeveralRows(names, totals, "pulls", tall=0.235 if len(names) <= 20 else 0.18)
        axes = layout.axes
        ends = (0, codes.size, len(names) - 0.5, -0.5)
        axes.imshow(_coloured(_depths(counts, edges)), aspect="auto", interpolation="none", extent=ends)
        bars(axes, np.arange(1, len(names)) - 0.5, 0, codes.size, color="white", linewidth=1.0)
        put_x(axes, even_ticks(0, codes.size, whole=True), "round", grid=False)
        _explain_shades(axes, stretch)
        tell_demonstration(layout.figure, log.demonstrations, which)
    return layout.figure


def _depths(counts: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how dark each stretch of each row is, from 0 to 1: by the logarithm of its pulls, so that few show too."""
    lengths = np.maximum(np.diff(edges), 2)[:, None]
    risen = np.log(np.maximum(counts, 1)) / np.log(lengths)
    depth = np.where(counts > 0, FAINTEST + (1 - FAINTEST) * risen, 0.0)
    return np.where(counts == np.diff(edges)[:, None], 1.0, depth) * (counts > 0)


def _coloured(depths: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Turn depths, (stretches, rows), into an image with one line a row."""
    return np.asarray(255 - depths.T[..., None] * (255 - DARKEST)).round().astype(np.uint8)


def _explain_shades(axes: Axes, stretch: int) -> None:
    """Say what the shades stand for."""
    if stretch <= 1:
        remark(axes, "one column a round")
        return
    some = sorted({1, round(stretch**0.5), stretch})
    shades = _coloured(_depths(np.array([some]), np.array([0, stretch])))[:, 0]
    words = ["1 pull" if count == 1 else f"all {count:,}" if count == stretch else f"{count:,}" for count in some]
    words[-1] += " rounds of a column"
    signs = [
        Sign({"color": "#{:02x}{:02x}{:02x}".format(*shade), "marker": "s", "markersize": 7}, word)
        for shade, word in zip(shades, words, strict=True)
    ]
    key(axes, signs)


POINTS = 240
BEHIND = 40
"""So many arms are drawn pale behind those that are named."""

PALE: Look = {"color": "#9a9a9a", "markersize": 2.5, "zorder": 2.5}
DARK: Look = {"color": INK, "markersize": 4.5, "markeredgecolor": "white", "markeredgewidth": 0.6, "zorder": 4}
"""How a switching round is marked, on a pale curve and on a named one."""


def cumulative_pulls(
    log: ActionLog, *, demonstration: object = None, switching: Mapping[str, int] | None = None
) -> Figure:
    """Draw how often each arm had been pulled, round by round, with its switching round marked.

    Of more than eight arms eight are named, from the most-pulled to the least, and up to forty more are drawn pale
    behind them.

    Parameters
    ----------
    log
        A table of counts is refused: it has no order.
    demonstration
        The name of the demonstration that is drawn; by default the first.
    switching
        The switching round of each arm that has one: `unbandit.switching_rounds(log, rule)`.

    Examples
    --------
    >>> from unbandit import ActionLog, switching_rounds
    >>> log = ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = cumulative_pulls(log, switching=switching_rounds(log, "ucb"))
    """
    which, codes, pulls = rounds_of(log, demonstration, "cumulative_pulls")
    named, behind = _chosen(pulls)
    rows = np.full(pulls.size, named.size + behind.size, np.intp)
    rows[np.concatenate([named, behind])] = np.arange(named.size + behind.size)
    edges, counts = binned(codes, rows, named.size + behind.size + 1, POINTS)
    sums = np.vstack([np.zeros(counts.shape[1], np.int64), counts.cumsum(axis=0)]).astype(np.float64)
    sums[sums == 0] = np.nan
    places = {arm: place for place, arm in enumerate(log.arms)}
    marks = {places[arm]: at for arm, at in (switching or {}).items() if arm in places}
    with styled():
        up, along = count_ticks(0.9, 1.15 * pulls.max()), even_ticks(0, codes.size, whole=True)
        names = [short(log.arms[arm]) for arm in named]
        figure, axes = frame(3.6, left=0.45 + text_width(up.labels), right=0.4 + text_width(names))
        put_x(axes, along, "round")
        put_y(axes, up, "pulls so far")
        _draw_pale(axes, edges, sums[:, named.size : named.size + behind.size])
        for at, line in zip(range(named.size), LINES, strict=False):
            axes.plot(edges, sums[:, at], color=line.colour, linestyle=line.dashes, linewidth=1.5, zorder=3)
        label_ends(axes, pulls[named].astype(np.float64), names, LINES)
        columns = dict(zip([*named.tolist(), *behind.tolist()], sums.T, strict=False))
        for arms, look in ((behind, PALE), (named, DARK)):
            _mark(axes, codes, marks, {arm: columns[arm] for arm in arms.tolist()}, edges, look)
        _explain_curves(axes, bool(marks), int((pulls > 0).sum()) - named.size, behind.size)
        tell_demonstration(figure, log.demonstrations, which)
    return figure


def _chosen(pulls: NDArray[np.int64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Choose which arms are named, and which are drawn pale: evenly from the most-pulled to the least."""
    ranked = np.argsort(-pulls, kind="stable")
    ranked = ranked[pulls[ranked] > 0]
    named = ranked[np.unique(np.linspace(0, ranked.size - 1, min(ranked.size, len(LINES))).round().astype(int))]
    others = ranked[~np.isin(ranked, named)]
    few = np.unique(np.linspace(0, others.size - 1, min(others.size, BEHIND)).round().astype(int))
    return named, others[few]


def _draw_pale(axes: Axes, edges: NDArray[np.int64], sums: NDArray[np.float64]) -> None:
    """Draw curves as one pale line with gaps, with fewer points each."""
    if sums.shape[1] == 0:
        return
    some = np.unique(np.linspace(0, edges.size - 1, 40).astype(int))
    gap = np.full((1, sums.shape[1]), np.nan)
    heights = np.vstack([sums[some], gap]).T.reshape(-1)
    along = np.tile(np.append(edges[some].astype(np.float64), np.nan), sums.shape[1])
    axes.plot(along, heights, color="#cfcfcf", linewidth=0.7, zorder=2)


def _mark(
    axes: Axes, codes: NDArray[Any], marks: Mapping[int, int], shown: Mapping[int, NDArray[np.float64]],
    edges: NDArray[np.int64], look: Look,
) -> None:  # fmt: skip
    """Mark switching rounds on the curves of some arms."""
    places = []
    for arm, sums in shown.items():
        if arm in marks:
            before = int(np.searchsorted(edges, marks[arm], side="right")) - 1
            since = np.count_nonzero(codes[edges[before] : marks[arm]] == arm)
            places.append((marks[arm], np.nan_to_num(sums[before]) + since))
    if places:
        axes.plot(*zip(*places, strict=True), marker="o", linestyle="none", **look)


def _explain_curves(axes: Axes, marked: bool, others: int, behind: int) -> None:
    """Say what is marked, and what is pale or left out."""
    signs = [Sign({"marker": "o"} | DARK, "switching round")] * marked
    if others:
        said = f"{others:,} other arms" if behind == others else f"{behind:,} of {others:,} other arms"
        signs.append(Sign({"color": "#b5b5b5", "linestyle": "-", "linewidth": 0.9}, said))
    key(axes, signs)


def rounds_of(log: ActionLog, demonstration: object, picture: str) -> tuple[int, NDArray[Any], NDArray[np.int64]]:
    """Return which demonstration is meant, its rounds and its pulls; refuse a log that has no rounds to draw."""
    if not log.ordered:
        raise ParameterError(f"{picture}: expected a log with rounds; this one holds counts, which have no order.")
    which = place_of(log.demonstrations, demonstration)
    codes = log.demonstration(which)
    if codes.size == 0:
        raise ParameterError(f'{picture}: expected rounds; demonstration "{log.demonstrations[which]}" has none.')
    return which, codes, log.pulls[which]


def binned(
    codes: NDArray[Any], rows: NDArray[np.intp], count: int, bins: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count pulls by stretch of rounds and by row.

    Parameters
    ----------
    codes
        The arm of every round, as its place.
    rows
        The row of every arm, from 0 to `count - 1`.
    bins
        How many stretches at most; of a shorter record every round is one.

    Returns
    -------
    edges, counts
        The rounds after which stretches end, from 0 on, and pulls as (stretches, rows).

    Examples
    --------
    >>> edges, counts = binned(np.array([0, 1, 0, 0]), np.array([0, 1]), 2, bins=2)
    >>> edges.tolist(), counts.tolist()
    ([0, 2, 4], [[1, 1], [2, 0]])
    """
    stretches = max(min(bins, codes.size), 1)
    edges = np.linspace(0, codes.size, stretches + 1).astype(np.int64)
    counts = np.empty((stretches, count), np.int64)
    for at, (begin, end) in enumerate(pairwise(edges.tolist())):
        counts[at] = np.bincount(rows[codes[begin:end]], minlength=count)
    return edges, counts


def most_pulled_first(pulls: NDArray[np.int64], most: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rank arms by their pulls; all after the first `most` share one row, unless it would hold one arm only.

    Returns
    -------
    order, rows
        The arms that have a row of their own, the most-pulled first; and the row of every arm.

    Examples
    --------
    >>> order, rows = most_pulled_first(np.array([3, 9, 1, 5]), 2)
    >>> order.tolist(), rows.tolist()
    ([1, 3], [2, 0, 2, 1])
    """
    ranked = np.argsort(-pulls, kind="stable")
    order = ranked if pulls.size <= most + 1 else ranked[:most]
    rows = np.full(pulls.size, order.size, np.intp)
    rows[order] = np.arange(order.size)
    return order, rows
