"""Draw a sum of hidden rewards towards where it must lead, and know what that costs in weight."""

from __future__ import annotations

import math
from typing import NamedTuple

from unbandit.kernels.belief import Belief, of_mean
from unbandit.kernels.compiling import called, inlined

__all__ = ["Guide", "guide", "missed"]


class Guide(NamedTuple):
    """Hold a normal proposal for a sum, and how far a drawn one leads.

    Attributes
    ----------
    centre, deviation
        Of the proposal: the predictive distribution times a normal density of the sample mean at the end.
    weight
        Logarithm of what the product has to be divided by.
    by_sum, constant, uncertain
        The sample mean at the end is expected at `constant + by_sum * sum`, with this variance.
    """

    centre: float
    deviation: float
    weight: float
    by_sum: float
    constant: float
    uncertain: float


@called
def guide(
    belief: Belief, arm: int, known: float, total: float, base: float, hidden: int, after: int, left: int, goal: float,
    slack: float,
) -> Guide:  # fmt: skip
    """Lead the next `hidden` rewards of an arm to a sample mean of `goal`, `left` pulls after them.

    Parameters
    ----------
    known, total
        How many rewards the observer has of the arm, and their sum.
    base, after
        The rule's own sum before this step, and its pulls after it.
    slack
        A variance that the goal itself has.
    """
    noise, prior = belief.sigma * belief.sigma, belief.second[arm]
    mean, variance = of_mean(belief, arm, known, total)
    spread = hidden * hidden * variance + hidden * noise
    slope = prior / (noise + (known + hidden) * prior)  # of the expected mean by the sum
    middle, later = of_mean(belief, arm, known + hidden, total)
    end = 1.0 / (after + left)
    by_sum, constant = end * (1.0 + left * slope), end * (base + left * middle)
    uncertain = end * end * (left * left * later + left * noise) + slack
    narrowed = 1.0 / (1.0 / spread + by_sum * by_sum / uncertain)
    centre = narrowed * (hidden * mean / spread + by_sum * (goal - constant) / uncertain)
    miss = constant + by_sum * hidden * mean - goal
    weight = 0.5 * math.log(narrowed / spread) - 0.5 * miss * miss / (by_sum * by_sum * spread + uncertain)
    return Guide(centre, math.sqrt(narrowed), weight, by_sum, constant, uncertain)


@inlined
def missed(way: Guide, gained: float, goal: float) -> float:
    """Return the logarithm of the guiding factor that a sum ends up with: how well it leads to the goal."""
    off = way.constant + way.by_sum * gained - goal
    return -0.5 * off * off / way.uncertain
