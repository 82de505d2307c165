"""A switching moment as a figure: the two decision values around an arm's switching round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.formatting import label as short
from unbandit.plots.axes import Numbers, curve_frame, even_ticks, label_ends, put_remark, span_of
from unbandit.plots.style import INK, LINES, Look, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.estimators.switching_moment import SwitchingMoment

MOST_STEPS = 100
"""A curve with more steps than this is too fine to be seen as a staircase."""


def switching_moment(moment: SwitchingMoment) -> Figure:
    """Draw the decision values of an arm and of the best arm around the arm's switching round.

    The sample means that decided are hidden: the values drawn are those at the estimated gap.

    Parameters
    ----------
    moment
        The result of `unbandit.switching_moment(log, rule, arm)`.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = switching_moment(ub.switching_moment(log, "ucb", sigma=1.0))
    """
    arm, best = short(moment.arm, 18), short(moment.best, 18)
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
        along = even_ticks(float(moment.rounds[0]), float(moment.rounds[-1]), 6, whole=True)
        up = even_ticks(*span_of(moment.own, moment.other), 6)
        figure, axes = curve_frame(along, up, ("round", label), names, height=3.3, top=0.62)
        axes.axvline(moment.round, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1.5)
        here, rival = moment.here, LINES[1].colour
        for values, colour in ((moment.other, LINES[0].colour), (moment.own, rival)):
            look: Look = {"color": colour, "linewidth": 1.7, "zorder": 3}
            axes.plot(*_staircase(moment.rounds[: here + 1], values[: here + 1]), **look)
            if colour == rival:  # after its switching round the arm was no longer pulled
                look |= {"linestyle": (0, (4, 1.6)), "linewidth": 1.3}
            axes.plot(*_staircase(moment.rounds[here:], values[here:]), **look)
        axes.plot([moment.round], [moment.own[here]], marker="o", color=INK, markersize=5, zorder=4)
        label_ends(axes, np.array([moment.other[-1], moment.own[-1]]), names)
        put_remark(axes, event, hidden)
    return figure


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
