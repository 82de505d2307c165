"""How pulls added up, and where the demonstrator switched away from each arm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.binning import binned, rounds_of
from unbandit.plots.labelling import Sign, key, label_ends, tell_demonstration
from unbandit.plots.naming import short, text_width
from unbandit.plots.scales import count_ticks, even_ticks, put_x, put_y
from unbandit.plots.style import INK, LINES, Look, frame, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unbandit.log import ActionLog

__all__ = ["cumulative_pulls"]

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
        _explain(axes, bool(marks), int((pulls > 0).sum()) - named.size, behind.size)
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


def _explain(axes: Axes, marked: bool, others: int, behind: int) -> None:
    """Say what is marked, and what is pale or left out."""
    signs = [Sign({"marker": "o"} | DARK, "switching round")] * marked
    if others:
        said = f"{others:,} other arms" if behind == others else f"{behind:,} of {others:,} other arms"
        signs.append(Sign({"color": "#b5b5b5", "linestyle": "-", "linewidth": 0.9}, said))
    key(axes, signs)
