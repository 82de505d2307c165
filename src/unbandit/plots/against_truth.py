"""Error against the truth, where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unbandit.errors import ParameterError
from unbandit.naming import place_of
from unbandit.plots.arms import Rows, draw_intervals, span_of
from unbandit.plots.labelling import Sign, key, tell_demonstration
from unbandit.plots.quantity import shown_quantity
from unbandit.plots.rows import SeveralRows
from unbandit.plots.scales import even_ticks, put_x
from unbandit.plots.style import INK, PALETTE, Look, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.result import Estimate

__all__ = ["errors"]


def errors(
    estimate: Estimate,
    truth: Mapping[str, float],
    *,
    unit: float = 1.0,
    label: str | None = None,
    demonstration: object = None,
) -> Figure:
    """Draw how far every estimate is from the truth, with its interval: which hold the truth, and which do not.

    Arms without a number, and those whose truth is not given, are left out; so is a best arm that has no interval.

    Parameters
    ----------
    truth
        The mean (or gap, where the estimate has no means: see `shown_quantity`) of each arm.
    unit
        What a value of 1 stands for, to show values in their own unit.
    label
        Of the horizontal axis.
    demonstration
        The name of the demonstration that is drawn; by default the first.
    """
    which = place_of(estimate.demonstrations, demonstration)
    quantity = shown_quantity(estimate)
    ranked = [row for row in estimate.ranked(estimate.demonstrations[which]) if row.arm in truth]
    known = Rows.of(ranked, quantity, unit)
    interval = np.isfinite(known.low) | np.isfinite(known.high)
    told = interval | (np.isfinite(known.point) & (known.verdicts != "best"))
    if not told.any():
        raise ParameterError(
            "expected the true value of some arm that has an estimate or a bound; got none.", parameter="truth"
        )
    rows = Rows.of([row for row, tells in zip(ranked, told, strict=True) if tells], quantity, unit)
    true = unit * np.array([truth[arm] for arm in rows.arms], float)
    rows = replace(rows, point=rows.point - true, low=rows.low - true, high=rows.high - true)
    interval, missed = interval[told], (rows.low > 0) | (rows.high < 0)
    with styled():
        layout = SeveralRows(rows.arms, rows.pulls, "pulls")
        usual = f"estimated {quantity}, less the true one"
        put_x(layout.axes, even_ticks(*span_of(rows.point, rows.low, rows.high, np.zeros(1))), label or usual)
        layout.axes.axvline(0, color=INK, linewidth=0.9, zorder=1.5)
        held, total, signs = interval & ~missed, f"{interval.sum():,}", []
        for here, colour, marker, meaning in (
            (held, PALETTE["estimated"], "o", f"{held.sum():,} of {total} hold the truth"),
            (interval & missed, PALETTE["truth"], "X", f"{(interval & missed).sum():,} of {total} do not"),
            (~interval, PALETTE["bounded"], "o", "without an interval"),
        ):
            look: Look = {"color": colour, "marker": marker}
            if draw_intervals(layout, rows, here, look):
                line: Look = {"linestyle": "-", "linewidth": 1.6} if (here & interval).any() else {}
                signs.append(Sign(look | {"markersize": 5} | line, meaning))
        key(layout.axes, signs)
        tell_demonstration(layout.figure, estimate.demonstrations, which)
    return layout.figure
