"""Which arm when: the whole record on one strip, however long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.binning import binned, most_pulled_first, rounds_of
from unbandit.plots.labelling import Sign, key, remark, tell_demonstration
from unbandit.plots.rows import SeveralRows, bars
from unbandit.plots.scales import even_ticks, put_x
from unbandit.plots.style import styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from unbandit.log import ActionLog

__all__ = ["timeline"]

COLUMNS = 400
ROWS = 39

DARK = np.array([0x14, 0x3F, 0x5C], float)
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
        _explain(axes, stretch)
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
    return np.asarray(255 - depths.T[..., None] * (255 - DARK)).round().astype(np.uint8)


def _explain(axes: Axes, stretch: int) -> None:
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
