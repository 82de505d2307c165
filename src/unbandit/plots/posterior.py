"""The posterior of every arm as a density."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from unbandit.plots.axes import SeveralRows, Sign, bars, even_ticks, key, label_ends, put_x, put_y, remark, span_of
from unbandit.plots.naming import short, text_width
from unbandit.plots.style import LINES, PALETTE, Look, frame, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from unbandit.inference import Posterior

MOST = 12
HIGH = 0.82
"""How much of its row a density may take."""

GRID_POINTS = 200
Numbers = NDArray[np.float64]


def densities(posterior: Posterior, *, gaps: bool = True, truth: Mapping[str, float] | None = None) -> Figure:
    """Draw the posterior density of every arm's gap, or mean, the best on top.

    Below each density lies its 95% interval, with a dot at the median. A gap is exactly 0 where the arm is the best: a
    stem at 0 is as high as that is probable. Of more than twelve arms twelve are drawn, from the best to the worst.

    Parameters
    ----------
    posterior
        What `unbandit.posterior(log, rule)` found.
    gaps
        Whether gaps are drawn, or means.
    truth
        The gap, or mean, of each arm where it is known.
    """
    draws = (posterior.gaps if gaps else posterior.means).reshape(-1, len(posterior.arms))
    ranked = np.argsort(posterior.gaps.reshape(-1, len(posterior.arms)).mean(axis=0), kind="stable")
    shown = ranked[np.unique(np.linspace(0, ranked.size - 1, min(ranked.size, MOST)).round().astype(int))]
    true = np.array([(truth or {}).get(posterior.arms[arm], np.nan) for arm in shown])
    ends = np.quantile(draws[:, shown], [0.025, 0.5, 0.975], axis=0)
    far = np.quantile(draws[:, shown], [0.002, 0.998], axis=0)
    with styled():
        chances = [_percent(posterior.probability_best[arm]) for arm in shown]
        layout = SeveralRows([posterior.arms[arm] for arm in shown], chances, "is best", tall=0.42)
        axes = layout.axes
        axes.set_ylim(len(shown) - 0.75, -0.95)
        span = span_of(far.ravel(), true)
        put_x(axes, even_ticks(*span), "gap to the best arm" if gaps else "value")
        grid = np.linspace(*span, GRID_POINTS)
        for place, arm in enumerate(shown):
            colour = PALETTE["best" if place == 0 else "estimated"]
            values = draws[:, arm]
            heights = _density(values[values > 0] if gaps else values, grid, floor=0.0 if gaps else None)
            share = float((values > 0).mean()) if gaps else 1.0
            if share < 0.98:
                axes.plot([0, 0], [place, place - HIGH * (1 - share)], color=colour, linewidth=2.4, zorder=2.5)
            tops = place - HIGH * share * heights
            axes.fill_between(grid, place, tops, color=colour, alpha=0.3, linewidth=0, zorder=2)
            axes.plot(grid, tops, color=colour, linewidth=1.0, zorder=2.5)
            bars(axes, np.array([place]), ends[0, place], ends[2, place], color=colour, linewidth=2.4, zorder=3)
            marker = "D" if place == 0 else "o"
            axes.plot([ends[1, place]], [place], marker=marker, color=colour, markersize=5, zorder=3)
        fewer = len(shown) < len(posterior.arms)
        signs = [Sign({}, f"{len(shown)} of {len(posterior.arms):,} arms")] * fewer
        if np.isfinite(true).any():
            look: Look = {"color": PALETTE["truth"], "marker": "|", "markersize": 12, "markeredgewidth": 1.5}
            axes.plot(true, range(true.size), linestyle="none", zorder=4, **look)
            signs.append(Sign(look, "truth (hidden)"))
        key(axes, signs)
    return layout.figure


def _percent(share: float) -> str:
    """Write a probability that was counted in draws.

    Examples
    --------
    >>> _percent(0.0), _percent(0.426), _percent(0.999)
    ('<1%', '43%', '>99%')
    """
    return "<1%" if share < 0.005 else ">99%" if share >= 0.995 else f"{share:.0%}"


def _density(values: Numbers, grid: Numbers, floor: float | None) -> Numbers:
    """Smooth draws into a density on a grid, its largest value 1; mass is not let below a floor, but thrown back."""
    if values.size < 2 or not np.ptp(values) > 0:
        return np.zeros(grid.size)
    quarter = float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34
    width = 0.9 * min(float(values.std()), quarter or float(values.std())) * values.size**-0.2
    step = float(grid[1] - grid[0])
    width = max(width, step)
    mirrored = values if floor is None else np.concatenate([values, 2 * floor - values])
    counts, _ = np.histogram(mirrored, bins=np.append(grid - step / 2, grid[-1] + step / 2))
    reach = int(4 * width / step) + 1
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    smooth = np.convolve(counts, kernel)[reach : reach + grid.size]
    if floor is not None:
        smooth = np.where(grid < floor, 0.0, smooth)
    return np.asarray(smooth / max(float(smooth.max()), 1e-300))


def hidden_paths(
    rounds: NDArray[np.int64], bands: NDArray[np.float64], arms: Sequence[str], title: str
) -> Figure:  # fmt: skip
    """Draw the hidden sample mean of each arm over the rounds: the median, and a 95% band around it.

    `bands` has (rounds, arms, 3): lower end, median, upper end. Of more than eight arms eight are drawn, best to worst.
    """
    order = np.argsort(-np.nan_to_num(bands[-1, :, 1], nan=-np.inf), kind="stable") if len(bands) else np.arange(0)
    shown = order[np.unique(np.linspace(0, order.size - 1, min(order.size, len(LINES))).round().astype(int))]
    drawn = bands[:, shown]
    with styled():
        up = even_ticks(*span_of(drawn.ravel()), 6)
        along = even_ticks(float(rounds[0]), float(rounds[-1]), whole=True) if len(rounds) else even_ticks(0, 1)
        names = [short(arms[arm]) for arm in shown]
        figure, axes = frame(3.6, left=0.45 + text_width(up.labels), right=0.4 + text_width(names))
        put_x(axes, along, "round")
        put_y(axes, up, "hidden sample mean")
        for at, line in zip(range(len(shown)), LINES, strict=False):
            low, middle, high = drawn[:, at].T
            axes.fill_between(rounds, low, high, color=line.colour, alpha=0.13, linewidth=0)
            axes.plot(rounds, middle, color=line.colour, linestyle=line.dashes, linewidth=1.4, zorder=3)
        if len(bands):
            label_ends(axes, drawn[-1, :, 1], names, LINES)
        fewer = f"; {len(shown)} of {len(arms):,} arms" if len(shown) < len(arms) else ""
        remark(axes, f"{short(title, 60)}: median and 95% band{fewer}")
    return figure
