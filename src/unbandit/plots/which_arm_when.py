"""Which arm when: the whole record on one strip, however long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError
from unbandit.plots.binning import binned, most_pulled_first
from unbandit.plots.naming import place_of, short, text_width
from unbandit.plots.style import SOFT, frame, plain, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.log import ActionLog

__all__ = ["timeline"]

COLUMNS = 400
ROWS = 40
DARK = np.array([0x14, 0x3F, 0x5C], float)
"""A stretch in which one arm alone was pulled; white is where it was not pulled."""


def timeline(log: ActionLog, *, demonstration: object = None) -> Figure:
    """Draw which arm was pulled when: a row an arm, the most-pulled on top, the darker the larger its share.

    Rounds are put together in up to 400 stretches, so a record of ten million rounds is as legible as one of a
    hundred. Of more than 40 arms the least-pulled share one row.

    Parameters
    ----------
    demonstration
        The name of the demonstration that is drawn; by default the first.
    """
    if not log.ordered:
        raise ParameterError("timeline: expected a log with rounds; this one holds counts, which have no order.")
    which = place_of(log.demonstrations, demonstration)
    codes, pulls = log.demonstration(which), log.pulls[which]
    order, rows = most_pulled_first(pulls, ROWS)
    others = pulls.size - order.size
    _, counts = binned(codes, rows, order.size + (others > 0), COLUMNS)
    names = [short(log.arms[arm]) for arm in order] + [f"{others:,} other arms"] * (others > 0)
    totals = [f"{number:,}" for number in counts.sum(axis=0)]
    with styled():
        left, right = 0.3 + text_width(names), 0.3 + text_width(["pulls", *totals], 8)
        height = 0.95 + 0.235 * len(names) if len(names) <= 12 else 0.95 + 2.82 + 0.17 * (len(names) - 12)
        figure, axes = frame(max(height, 1.6), left=left, right=right)
        picture = _coloured(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1))
        axes.imshow(picture, aspect="auto", interpolation="nearest", extent=(0, codes.size, len(names) - 0.5, -0.5))
        axes.set_yticks(range(len(names)), names)
        axes.tick_params(axis="y", length=0)
        for place, total in enumerate(totals):
            axes.text(1.015, place, total, transform=axes.get_yaxis_transform(), va="center", fontsize=8, color=SOFT)
        axes.text(1.015, 1.0, "pulls", transform=axes.transAxes, va="bottom", fontsize=8, color=SOFT)
        axes.xaxis.set_major_formatter(lambda value, _: plain(value))
        axes.set_xlabel("round")
    return figure


def _coloured(shares: NDArray[np.float64]) -> NDArray[np.uint8]:
    """Turn shares, (stretches, rows), into an image; a root makes small shares visible."""
    depth = np.sqrt(shares.T)[..., None]
    return np.asarray(255 - depth * (255 - DARK)).round().astype(np.uint8)
