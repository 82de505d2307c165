"""Read demonstrations by a method, as the rule's kind asks for: any number of them at once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, SwitchingCounts
from unbandit.estimators import counts, switching
from unbandit.estimators.comparison import Method
from unbandit.estimators.comparison import Comparison
from unbandit.estimators.equating import equation
from unbandit.estimators.comparison import Anchor
from unbandit.estimators.naive import naive
from unbandit.estimators.widths import Horizon, RuleWidth, common
from unbandit.log.tallies import Need, Tallies
from unbandit.result import ESTIMATED

__all__ = ["Reading", "compare", "needed", "ratios"]

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Reading:
    """Hold demonstrations with what they say: one row each; or one of them, one place an arm.

    Attributes
    ----------
    rule, method, sigma
        Who is taken to have made them, how they were read, and how noisy a reward is taken to be.
    ordered
        Whether the order of rounds is known.
    lengths, horizon
        How many rounds each has, and `T`.
    tallies, comparison
        What was counted, and what follows for every arm's gap.
    at_the_end
        Of an index rule that was read at its switching rounds: the gaps that its last round tells.
    """

    rule: Demonstrator
    method: Method
    sigma: float
    ordered: bool
    lengths: Counts
    horizon: Horizon
    tallies: Tallies
    comparison: Comparison
    at_the_end: NDArray[np.float64] | None = None

    @cached_property
    def deviation(self) -> NDArray[np.float64]:
        """Return the standard deviation of each gap at this noise."""
        result = self.comparison
        return np.asarray(self.sigma * np.sqrt(1 / result.own + np.square(result.steepness) / result.other))

    def row(self, which: int) -> Reading:
        """Return one of the demonstrations."""
        return replace(
            self,
            lengths=self.lengths[which],
            horizon=self.horizon if isinstance(self.horizon, int) else int(self.horizon[which]),
            tallies=self.tallies.row(which),
            comparison=self.comparison.row(which),
            at_the_end=None if self.at_the_end is None else self.at_the_end[which],
        )


def needed(rule: Demonstrator, method: Method) -> Need:
    """Return what must be counted for a method to read a rule's demonstrations.

    Examples
    --------
    >>> from unbandit import SAE, UCB
    >>> needed(UCB(), "switching"), needed(SAE(), "switching"), needed(SAE(), "counts")
    ('switching', 'epochs', 'counts')
    """
    if method != "switching":
        return "counts"
    return "epochs" if isinstance(rule, EliminationRule) else "switching"


def compare(
    tallies: Tallies, lengths: Counts, ordered: bool, rule: Demonstrator, method: Method, horizons: Counts,
    sigma: float, constant: float, anchor: Anchor | None = None,
) -> Reading:  # fmt: skip
    """Return what demonstrations say about every arm's gap, from what was counted of them."""
    horizon, pulls = common(horizons), tallies.pulls
    made = partial(Reading, rule, method, sigma, ordered, lengths, horizon, tallies)
    if method == "naive":
        return made(naive(pulls, horizon, constant))
    if isinstance(rule, EliminationRule):
        width = RuleWidth(rule, horizon)
        if method == "counts":
            return made(counts.elimination_counts(pulls, width, rule.tests))
        gone = (pulls > 0) & (tallies.turns[0] > 0)
        return made(switching.eliminated_and_active(pulls, gone, width, rule.tests))
    assert isinstance(rule, IndexRule)
    set_up = partial(equation, rule, horizon, anchor)
    if method == "counts":
        return made(counts.index_counts(pulls, set_up))
    last = tallies.last
    over = last < np.take_along_axis(last, pulls.argmax(axis=-1)[:, None], axis=-1)
    comparison = switching.index_comparison(SwitchingCounts(pulls, *tallies.at_switching), over, set_up)
    return made(comparison, counts.gaps_at_the_end(pulls, lengths, comparison.verdict == ESTIMATED, set_up))


def ratios(comparison: Comparison, reference: int | None) -> tuple[NDArray[np.float64], Counts]:
    """Count every gap in units of one arm's gap: a common factor falls out.

    Returns the ratios, NaN where the reference arm has no estimated gap above 0, and for each demonstration the
    reference arm: the one given, or the one whose gap is known best; -1 where there is none.
    """
    with np.errstate(invalid="ignore"):
        usable = (comparison.verdict == ESTIMATED) & (comparison.gap > 0)
    known_best = np.where(usable, _uncertainty(comparison), np.inf).argmin(axis=-1)
    units = np.where(usable.any(axis=-1), known_best, -1)
    if reference is not None:
        units = np.full(units.shape, reference)
    place = np.maximum(units, 0)[..., None]
    counted = np.take_along_axis(usable, place, axis=-1) & (units >= 0)[..., None]
    unit = np.where(counted, np.take_along_axis(comparison.gap, place, axis=-1), np.nan)
    return np.asarray(comparison.gap / unit), units


def _uncertainty(comparison: Comparison) -> NDArray[np.float64]:
    """Return the variance of each gap in units of sigma squared; of naive gaps, which have none, a common one."""
    variance = 1 / comparison.own + 1 / comparison.other
    return np.where(np.isnan(variance), 1.0, variance)
