"""Draw a standard normal that lies in an interval, and tell how likely the interval was."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.compile import called, inlined
from unbandit.kernels.rng import normal_quantile
from unbandit.kernels.smc.cloud import Belief, posterior_mean

FAR_TAIL = 8.0
"""From here on the tail is drawn from its leading term, which is off by a share of 1 / FAR^2."""

ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@inlined
def _below(x: float) -> float:
    """Return the normal distribution function."""
    return 0.5 * math.erfc(-x * ROOT_HALF)


@called
def _far_tail(low: float, high: float, uniform: float) -> tuple[float, float]:
    """Draw between `low` and `high`, both below -FAR: there minus x^2 / 2 falls nearly as an exponential does."""
    near, steepness = high * high, -high
    for term in range(8, 0, -1):  # the continued fraction of density over tail
        steepness = -high + term / steepness
    beyond = 0.0 if low == -math.inf else math.exp(0.5 * (near - low * low))
    tail = 1.0 - uniform * (1.0 - beyond)
    return -math.sqrt(near - 2.0 * math.log(tail)), -0.5 * near - LOG_ROOT_TWO_PI - math.log(steepness) + math.log1p(
        -beyond
    )


@called
def truncated_normal(low: float, high: float, uniform: float, table: NDArray[np.float64]) -> tuple[float, float]:
    """Return a standard normal between `low` and `high`, and the logarithm of the interval's probability.

    An empty interval has probability 0; what is returned then is its lower end.
    """
    if not low < high:
        return low, -math.inf
    mirrored = low > 0.0
    if mirrored:
        low, high = -high, -low
    if high < -FAR_TAIL:
        value, mass = _far_tail(low, high, uniform)
    else:
        at_low, at_high = _below(low), _below(high)
        if not at_low < at_high:
            return -low if mirrored else low, -math.inf
        inside = at_low + uniform * (at_high - at_low)
        value, mass = normal_quantile(min(max(inside, 1e-300), 1.0 - 1e-16), table), math.log(at_high - at_low)
        value = min(max(value, low), high)
    return -value if mirrored else value, mass


class TwistedProposal(NamedTuple):
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
def twisted_proposal(
    belief: Belief, arm: int, known: float, total: float, base: float, hidden: int, after: int, left: int, goal: float,
    slack: float,
) -> TwistedProposal:  # fmt: skip
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
    mean, variance = posterior_mean(belief, arm, known, total)
    spread = hidden * hidden * variance + hidden * noise
    slope = prior / (noise + (known + hidden) * prior)  # of the expected mean by the sum
    middle, later = posterior_mean(belief, arm, known + hidden, total)
    end = 1.0 / (after + left)
    by_sum, constant = end * (1.0 + left * slope), end * (base + left * middle)
    uncertain = end * end * (left * left * later + left * noise) + slack
    narrowed = 1.0 / (1.0 / spread + by_sum * by_sum / uncertain)
    centre = narrowed * (hidden * mean / spread + by_sum * (goal - constant) / uncertain)
    miss = constant + by_sum * hidden * mean - goal
    weight = 0.5 * math.log(narrowed / spread) - 0.5 * miss * miss / (by_sum * by_sum * spread + uncertain)
    return TwistedProposal(centre, math.sqrt(narrowed), weight, by_sum, constant, uncertain)


@inlined
def log_twist(way: TwistedProposal, gained: float, goal: float) -> float:
    """Return the logarithm of the guiding factor that a sum ends up with: how well it leads to the goal."""
    off = way.constant + way.by_sum * gained - goal
    return -0.5 * off * off / way.uncertain
