"""Figures of posteriors: the arms' densities, and the candidates of an identification."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unbandit.formatting import label as short
from unbandit.instance import Bernoulli
from unbandit.plots import parts
from unbandit.plots.estimate import AXIS_LABELS
from unbandit.plots.parts import INK, PALETTE, Look, Numbers, panels, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from unbandit.fit import Check, Statistic
    from unbandit.identification.result import Identification
    from unbandit.inference import Posterior

MOST_DENSITIES = 12
DENSITY_HEIGHT = 0.82  # share of its row that a density may take

GRID_POINTS = 200


def densities(
    posterior: Posterior, *, gaps: bool = True, truth: Mapping[str, float] | None = None, ax: Axes | None = None,
    unit: float = 1.0,
) -> Any:  # fmt: skip
    """Draw the posterior density of every arm's gap, or mean, the best on top.

    Below each density lies its 95% interval, with a dot at the median. A gap is exactly 0 where the arm is the best:
    the height of a stem at 0 is the probability of that. Of more than twelve arms twelve are drawn, best to worst.

    Parameters
    ----------
    posterior
        The result of `unbandit.posterior(log, rule)`.
    gaps
        Whether to draw gaps or means.
    truth
        The gap, or mean, of each arm where it is known.
    ax
        Axes to draw into, which are then returned; default a new figure.
    unit
        By what the draws were multiplied: means of rewards of 0 and 1 lie between 0 and this number.
    """
    all_gaps = posterior.gaps.reshape(-1, len(posterior.arms))
    draws = all_gaps if gaps else posterior.means.reshape(-1, len(posterior.arms))
    shown = parts.evenly(np.argsort(all_gaps.mean(axis=0), kind="stable"), MOST_DENSITIES)
    arms = [posterior.arms[arm] for arm in shown]
    true = parts.true_values(truth, arms)
    chances = [_percent(posterior.probability_best[arm]) for arm in shown]
    with styled():
        layout = parts.RowLayout(arms, chances, "is best", row_height=0.42, ax=ax)
        axes = layout.axes
        axes.set_ylim(len(shown) - 0.75, -0.95)
        span = parts.span_of(np.quantile(draws[:, shown], [0.002, 0.998], axis=0).ravel(), true)
        parts.put_scale(axes, "x", parts.even_ticks(*span), AXIS_LABELS["gap" if gaps else "mean"])
        least, most = _support(posterior, gaps=gaps, unit=unit)
        if not span[0] < most or not least < span[1]:  # in another unit than the support
            least, most = -np.inf, np.inf
        grid = np.linspace(max(span[0], least), min(span[1], most), GRID_POINTS)
        for place, arm in enumerate(shown):
            _draw_density(axes, place, draws[:, arm], grid, (least, most), gaps=gaps)
        fewer = len(shown) < len(posterior.arms)
        entries: list[tuple[Look, str]] = [({}, f"{len(shown)} of {len(posterior.arms):,} arms")] * fewer
        if np.isfinite(true).any():
            look: Look = {"color": PALETTE["truth"], "marker": "|", "markersize": 12, "markeredgewidth": 1.5}
            axes.plot(true, range(true.size), linestyle="none", zorder=4, **look)
            entries.append((look, "truth (hidden)"))
        parts.put_key(axes, entries)
    return layout.drawn


def _support(posterior: Posterior, *, gaps: bool, unit: float) -> tuple[float, float]:
    """Return the ends between which values can lie."""
    if isinstance(posterior.noise, Bernoulli):
        return 0.0, abs(unit)
    return (0.0, np.inf) if gaps else (-np.inf, np.inf)


def _draw_density(
    axes: Axes, place: int, values: Numbers, grid: Numbers, ends: tuple[float, float], *, gaps: bool
) -> None:
    """Draw one arm's density above its row, and its median and 95% interval on it."""
    colour, marker = (PALETTE["best"], "D") if place == 0 else (PALETTE["estimated"], "o")
    low, median, high = np.quantile(values, [0.025, 0.5, 0.975])
    heights = density(values[values > 0] if gaps else values, grid, ends)
    continuous = float((values > 0).mean()) if gaps else 1.0
    if continuous < 0.98:
        stem = [place, place - DENSITY_HEIGHT * (1 - continuous)]
        axes.plot([0, 0], stem, color=colour, linewidth=2.4, zorder=2.5)
    tops = place - DENSITY_HEIGHT * continuous * heights
    axes.fill_between(grid, place, tops, color=colour, alpha=0.3, linewidth=0, zorder=2)
    axes.plot(grid, tops, color=colour, linewidth=1.0, zorder=2.5)
    parts.draw_bars(axes, np.array([place]), low, high, color=colour, linewidth=2.4, zorder=3)
    axes.plot([median], [place], marker=marker, color=colour, markersize=5, zorder=3)


def _percent(share: float) -> str:
    """Write a probability that was counted in draws."""
    return "<1%" if share < 0.005 else ">99%" if share >= 0.995 else f"{share:.0%}"


def density(values: Numbers, grid: Numbers, ends: tuple[float, float] = (-np.inf, np.inf)) -> Numbers:
    """Return the kernel density of draws on a grid, scaled to a maximum of 1; mass beyond the ends is reflected.

    By histogram and convolution, since `scipy.stats.gaussian_kde` evaluates every draw at every point of the grid.
    """
    if values.size < 2 or not np.ptp(values) > 0:
        return np.zeros(grid.size)
    deviation, step = float(values.std()), float(grid[1] - grid[0])
    quartiles = float(np.subtract(*np.quantile(values, [0.75, 0.25]))) / 1.34
    width = max(0.9 * min(deviation, quartiles or deviation) * values.size**-0.2, step)  # Silverman's rule
    mirrored = np.concatenate([values, *(2 * end - values for end in ends if np.isfinite(end))])
    reach = int(4 * width / step) + 1
    edges = grid[0] + step * (np.arange(-reach, grid.size + reach + 1) - 0.5)
    counts, _ = np.histogram(mirrored, bins=edges)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / width) ** 2)
    smooth = np.convolve(counts, kernel, mode="valid")
    smooth = np.where((grid < ends[0]) | (grid > ends[1]), 0.0, smooth)
    return np.asarray(smooth / max(float(smooth.max()), 1e-300))


def hidden_paths(
    rounds: NDArray[np.int64], bands: Numbers, arms: Sequence[str], title: str, *, hidden: bool = True,
    ax: Axes | None = None,
) -> Any:  # fmt: skip
    """Draw the hidden sample mean of each arm over the rounds: the median, and a 95% band around it.

    `bands` has (rounds, arms, 3): lower end, median, upper end. Of more than eight arms eight are drawn, best to worst.
    `hidden` is whether any reward had to be guessed.
    """
    ranked = np.argsort(-np.nan_to_num(bands[-1, :, 1], nan=-np.inf), kind="stable") if len(bands) else np.arange(0)
    shown = parts.evenly(ranked)
    drawn, names = bands[:, shown], [parts.arm_name(arms[arm]) for arm in shown]
    with styled():
        along = (
            parts.even_ticks(float(rounds[0]), float(rounds[-1]), whole=True) if len(rounds) else parts.even_ticks(0, 1)
        )
        up = parts.even_ticks(*parts.span_of(drawn.ravel()), 6)
        mean = "hidden sample mean" if hidden else "sample mean"
        figure, axes = parts.curve_frame(along, up, ("round", mean), names, ax=ax)
        lines = parts.lines_of(shown, len(arms))
        for at, line in enumerate(lines):
            low, middle, high = drawn[:, at].T
            axes.fill_between(rounds, low, high, color=line.colour, alpha=0.13, linewidth=0)
            axes.plot(rounds, middle, color=line.colour, linestyle=line.dashes, linewidth=1.4, zorder=3)
        if len(bands):
            parts.label_ends(axes, drawn[-1, :, 1], names, lines)
        fewer = f"; {len(shown)} of {len(arms):,} arms" if len(shown) < len(arms) else ""
        of_what = ": median and 95% band" if hidden else ""
        parts.put_remark(axes, f"{short(title, 60)}{of_what}{fewer}")
    return figure if ax is None else axes


FURTHEST = 3.0  # largest distance at which a statistic of the record is drawn, in half the length of the bar

LONGEST_NAME = 34
MOST_STATISTICS = 12  # of a check

POWERS = (0, 1, 2, 4, 10, 30, 100, 300, 1000, 3000, 10000)  # of 10, on the axis of the evidence
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def draw_identification(answer: Identification, *, ax: Any = None) -> Any:
    """Draw the candidates' evidence beside the predictive check of the leading one; on one given axes, evidence."""
    rows = max(len(answer.candidates), len(_furthest(answer.check)))
    with styled():
        figure, both = panels(2, columns=2, width=5.1, height=max(2.6, 0.28 * rows + 1.3), ax=ax)
        _draw_evidence(both[0], answer)
        if len(both) > 1:
            _draw_check(both[1], answer.check, answer.leading.name)
    return figure if ax is None else ax


def draw_evidence(answer: Identification) -> Any:
    """Draw the candidates' evidence alone."""
    with styled():
        figure, (axes,) = panels(
            1, columns=1, width=parts.width(), height=max(2.2, 0.28 * len(answer.candidates) + 1.1)
        )
        _draw_evidence(axes, answer)
    return figure


def _draw_evidence(axes: Axes, answer: Identification) -> None:
    """Draw how many times less probable each candidate makes the log, with its Monte-Carlo error: powers of 10."""
    ten = math.log(10)
    best = answer.leading.evidence.value
    for place, candidate in enumerate(answer.candidates):
        evidence = candidate.evidence
        if not candidate.possible:
            axes.text(0.3, place, "ruled out", va="center", color=INK, transform=axes.get_yaxis_transform())
            continue
        colour = PALETTE["estimated" if candidate.name in answer.left else "bounded"]
        low, middle, high = ((best - value) / ten for value in (evidence.high, evidence.value, evidence.low))
        axes.hlines(place, max(low, 0.0), high, color=colour, linewidth=1.6)
        axes.plot(middle, place, "o", color=colour, markersize=4.5)
    axes.set_xscale("symlog", linthresh=4)
    axes.set_xlim(-0.2, max(axes.get_xlim()[1] * 1.5, 2.0))
    powers = [power for power in POWERS if power <= axes.get_xlim()[1]]
    powers = powers[:: 2 if parts.is_narrow() and len(powers) > 4 else 1]
    axes.set_xticks(powers, [_power_of_ten(power) for power in powers])
    axes.minorticks_off()
    axes.axvline(math.log10(20), color=INK, linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    than = (
        "times less probable than\nunder the first rule"
        if parts.is_narrow()
        else "times less probable than under the first rule"
    )
    axes.set_xlabel(f"{than}\n(dashed: 20 times)")
    _name_rows(axes, [short(each.name, LONGEST_NAME) for each in answer.candidates])


def _power_of_ten(power: int) -> str:
    """Write 1, 10, 10²."""
    return "1" if not power else "10" if power == 1 else f"10{str(power).translate(RAISED)}"


def draw_check(check: Check, *, ax: Axes | None = None) -> Any:
    """Draw what a check compared: each statistic of the log, and where those of simulated logs are."""
    with styled():
        height = max(2.2, 0.28 * len(_furthest(check)) + 1.3)
        figure, (axes,) = panels(1, columns=1, width=parts.width(), height=height, ax=ax)
        _draw_check(axes, check)
    return figure if ax is None else axes


def _draw_check(axes: Axes, check: Check, candidate: str = "") -> None:
    """Draw each statistic of the record against the middle 95% of the simulated ones, all on one scale."""
    for place, row in enumerate(_furthest(check)):
        half, middle = max((row.high - row.low) / 2, 0.5), (row.high + row.low) / 2
        at = float(np.clip((row.observed - middle) / half, -FURTHEST, FURTHEST))
        axes.hlines(place, (row.low - middle) / half, (row.high - middle) / half, color=PALETTE["bounded"],
                    linewidth=5, alpha=0.5)  # fmt: skip
        axes.plot((row.median - middle) / half, place, "|", color=PALETTE["bounded"], markersize=9, markeredgewidth=1.6)
        axes.plot(at, place, "D" if row.outside else "o", color=INK, markersize=4.5)
    axes.set_xlim(-FURTHEST * 1.1, FURTHEST * 1.1)
    axes.set_xticks([-1, 1], ["2.5%", "97.5%"])
    verdict = check.verdict if check.p_value is None else f"{check.verdict} ({check.chance})"
    axes.set_title("\n".join(filter(None, (short(candidate, LONGEST_NAME), verdict))), fontsize=9)
    axes.set_xlabel("the log (point)\namong simulations (bar)")
    _name_rows(axes, [row.said[0] for row in _furthest(check)])


def _furthest(check: Check) -> Sequence[Statistic]:
    """Return the statistics that are drawn: those by which the log is furthest from the simulated ones."""
    return sorted(check.statistics, key=lambda each: (not each.outside, -each.distance))[:MOST_STATISTICS]


def _name_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name rows from the top by text: tick labels are made when a figure is drawn, outside the style."""
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks([])
    for place, name in enumerate(names):
        axes.annotate(name, (0, place), (-5, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                      ha="right", va="center_baseline")  # fmt: skip
