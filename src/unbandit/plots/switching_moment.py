"""The moment of hesitation: the two decision values around an arm's switching round."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.axes import even_ticks, label_ends, put_x, put_y, remark, span_of
from unbandit.plots.naming import short, text_width
from unbandit.plots.style import INK, LINES, Look, frame, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.estimators.switching_moment import SwitchingMoment

BEST, RIVAL = LINES[0], LINES[1]


def hesitation(moment: SwitchingMoment) -> Figure:
    """Draw the two decision values around the switching round of one arm.

    The sample means that decided are hidden: the values drawn are those at the estimated gap.

    Parameters
    ----------
    moment
        What `unbandit.switching_moment(log, rule, arm)` found.

    Examples
    --------
    >>> import unbandit as ub
    >>> log = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    >>> figure = hesitation(ub.switching_moment(log, "ucb", sigma=1.0))
    """
    arm, best = short(moment.arm, 18), short(moment.best, 18)
    index = moment.kind == "index"
    names = [f"index of {best}", f"index of {arm}"] if index else [f"lower bound of {best}", f"upper bound of {arm}"]
    with styled():
        up = even_ticks(*span_of(moment.own, moment.other), 6)
        along = even_ticks(float(moment.rounds[0]), float(moment.rounds[-1]), 6, whole=True)
        counted = "" if moment.best_mean is not None else "\nabove the best arm's mean"
        left, right = 0.45 + 0.15 * bool(counted) + text_width(up.labels), 0.4 + text_width(names)
        figure, axes = frame(3.3, left=left, right=right, top=0.62)
        put_x(axes, along, "round")
        put_y(axes, up, ("index" if index else "confidence bound") + counted)
        axes.axvline(moment.round, color=INK, linewidth=0.9, linestyle=(0, (2, 2)), zorder=1.5)
        here = moment.here
        for values, line in ((moment.other, BEST), (moment.own, RIVAL)):
            look: Look = {"color": line.colour, "linewidth": 1.7, "zorder": 3}
            axes.plot(*_stairs(moment.rounds[: here + 1], values[: here + 1]), **look)
            pale = look if values is moment.other else look | {"linestyle": (0, (4, 1.6)), "linewidth": 1.3}
            axes.plot(*_stairs(moment.rounds[here:], values[here:]), **pale)
        axes.plot([moment.round], [moment.own[here]], marker="o", color=INK, markersize=5, zorder=4)
        label_ends(axes, np.array([moment.other[-1], moment.own[-1]]), names, (BEST, RIVAL))
        remark(axes, _sentence(moment, arm, best), _put_in(moment))
    return figure


def _sentence(moment: SwitchingMoment, arm: str, best: str) -> str:
    """Say what happened, in one line."""
    if moment.kind == "index":
        return f"Round {moment.round:,}: the last time that {arm} was worth a pull beside {best}"
    return f"Round {moment.round:,}: {arm} fell behind {best} for good, and was eliminated"


def _put_in(moment: SwitchingMoment) -> str:
    """Say what stands for the hidden means."""
    apart = f"{moment.gap:.3g} apart, as estimated"
    if moment.equal:
        return f"The sample means are hidden. Put {apart}, they make both values equal here."
    return f"The sample means are hidden: drawn are the values with means {apart}."


def _stairs(rounds: NDArray[np.int64], values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the corners of a curve that jumps after some rounds and stays level between."""
    if rounds.size < 2:
        return rounds, values
    jumps = np.flatnonzero(np.diff(values) != 0) + 1
    if jumps.size > 100:  # too fine to be seen as stairs
        kept = np.unique(np.concatenate([[0, rounds.size - 1], jumps]))
        return rounds[kept], values[kept]
    along = np.concatenate([rounds[:1], np.repeat(rounds[jumps], 2), rounds[-1:]])
    heights = np.concatenate([np.repeat(values[np.concatenate([[0], jumps])], 2)])
    return along, heights
