"""One equation for every index rule: when it hesitated between two arms, their two indices were equal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import AdditiveIndexRule, IndexRule, SwitchingCounts
from unbandit.errors import NotIdentifiable
from unbandit.estimators.comparison import most_pulled
from unbandit.estimators.comparison import Anchor
from unbandit.estimators.widths import Horizon, RuleWidth, by_horizon, spread_out

__all__ = ["Equation", "equation"]

STEP = 1e-5
"""By how much the best arm's mean is moved to see how far another arm's follows."""

Numbers = NDArray[np.float64]
Counts = NDArray[np.int64]
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Equation:
    """Solve `index(m_i, n_i, t) = index(mu_best, n_best, t)` for the gap `mu_best - m_i`.

    Attributes
    ----------
    rule, horizon
        Whose index, and its `T`.
    width
        The rule's width, if its index is the mean plus a width: gaps are then differences of widths.
    best_mean
        The best arm's mean in each demonstration, as an array that fits the pull counts; zeros where the index rises
        one for one with the mean, so that gaps do not depend on it.
    """

    rule: IndexRule
    horizon: Horizon
    width: RuleWidth | None
    best_mean: Numbers

    def solve(self, where: Marks, own: Counts, other: Counts, after: Counts) -> tuple[Numbers, Numbers]:
        """Return the gaps of the arms marked by `where`, and how far each of their means moves with the best arm's.

        All arrays have a row each demonstration and a place each arm, or one for all of them: pulls of the arm, pulls
        of the best arm, and the round after which the two indices are equated. A gap is NaN where no mean solves the
        equation, and where no arm is marked.
        """
        if self.width is not None:
            gap = self.width.of_counts(own) - self.width.of_counts(other)
            return np.where(where, gap, np.nan), np.broadcast_to(1.0, where.shape)
        best = np.broadcast_to(self.best_mean, where.shape)[where]
        counts, others, rounds = (np.broadcast_to(each, where.shape)[where] for each in (own, other, after))
        horizon = spread_out(self.horizon, where)
        solved = partial(_equated, self.rule, horizon, of_known=others, own=counts, rounds=rounds + 1)
        found, slopes = np.full(where.shape, np.nan), np.ones(where.shape)
        gaps = best - solved(best)
        found[where] = gaps
        if self.rule.shifts:
            return found, slopes
        step = STEP * np.maximum(np.abs(best), 1.0)
        below, here, above = solved(best - step), best - gaps, solved(best + step)
        with np.errstate(invalid="ignore"):
            slope = (above - below) / (2 * step)
            slope = np.where(np.isfinite(slope), slope, (here - below) / step)  # at the edge of what a mean can be
        found[where] = np.where(np.isfinite(gaps), gaps, np.nan)
        slopes[where] = np.where(np.isfinite(slope), slope, 1.0)
        return found, slopes


def equation(rule: IndexRule, horizon: Horizon, anchor: Anchor | None, read: SwitchingCounts) -> Equation:
    """Set the equation up; where gaps depend on the best arm's mean, take it from the one mean that is known.

    `read` has the counts at which each arm, the anchor too, is compared with the best one.
    """
    if isinstance(rule, AdditiveIndexRule):
        return Equation(rule, horizon, RuleWidth(rule, horizon), np.zeros(1))
    if rule.shifts:
        return Equation(rule, horizon, None, np.zeros(1))
    if anchor is None:
        raise NotIdentifiable(
            f"{rule.name}: this rule's index does not rise one for one with the mean, so its choices give no gap "
            "without one known mean; give best_mean, or the mean of any one arm as anchor."
        )
    if anchor.arm is None:
        return Equation(rule, horizon, None, np.full(1, anchor.value))
    own, other, rounds = (values[..., anchor.arm] for values in (read.own, read.of_best, read.rounds))
    compared = (own > rule.initial) & (other > 0)
    known = np.where(compared, anchor.value, np.nan).reshape(-1)
    solved = _equated(rule, horizon, known, own.reshape(-1), other.reshape(-1), rounds.reshape(-1) + 1)
    solved = np.where(np.isfinite(solved), solved, np.nan).reshape(own.shape)
    itself = most_pulled(read.pulls)[..., anchor.arm]
    return Equation(rule, horizon, None, np.where(itself, anchor.value, solved)[..., None])


def _equated(
    rule: IndexRule, horizon: Horizon, known: Numbers, of_known: Counts, own: Counts, rounds: Counts
) -> Numbers:
    """Call the compiled loop, on arrays laid out as it takes them."""
    from unbandit.kernels.equating import equated_means

    def solved(one: int, means: Numbers, *counts: Counts) -> Numbers:
        laid_out = (np.ascontiguousarray(values, np.int64) for values in counts)
        return equated_means(rule.parameters(one), np.ascontiguousarray(means, np.float64), *laid_out)

    return by_horizon(solved, horizon, known, of_known, own, rounds)
