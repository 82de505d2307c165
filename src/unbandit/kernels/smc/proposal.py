"""Proposals for hidden rewards: normal within an interval, twisted towards a goal, or a number of ones."""

import math
from typing import NamedTuple

from unbandit.kernels.compile import Numbers, called, inlined
from unbandit.kernels.rng import normal_quantile
from unbandit.kernels.smc.cloud import ArmPrior, posterior_mean

FAR_TAIL = 8.0  # beyond this the tail is drawn from its leading term, whose relative error is about 1 / FAR_TAIL^2

ROOT_HALF = math.sqrt(0.5)
LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)


@inlined
def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x * ROOT_HALF)


@called
def _far_tail(low: float, high: float, uniform: float) -> tuple[float, float]:
    """Draw between `low` and `high`, both below -FAR_TAIL, where the density is nearly exponential in x^2 / 2."""
    near, steepness = high * high, -high
    for term in range(8, 0, -1):  # the continued fraction of density over tail
        steepness = -high + term / steepness
    beyond = 0.0 if low == -math.inf else math.exp(0.5 * (near - low * low))
    tail = 1.0 - uniform * (1.0 - beyond)
    log_mass = -0.5 * near - LOG_ROOT_TWO_PI - math.log(steepness) + math.log1p(-beyond)
    return -math.sqrt(near - 2.0 * math.log(tail)), log_mass


@called
def truncated_normal(low: float, high: float, uniform: float, table: Numbers) -> tuple[float, float]:
    """Return a standard normal between `low` and `high`, and the log probability of the interval.

    An empty interval has probability 0; its lower end is returned.
    """
    if not low < high:
        return low, -math.inf
    mirrored = low > 0.0
    if mirrored:
        low, high = -high, -low
    if high < -FAR_TAIL:
        value, log_mass = _far_tail(low, high, uniform)
    else:
        at_low, at_high = _normal_cdf(low), _normal_cdf(high)
        if not at_low < at_high:
            return -low if mirrored else low, -math.inf
        inside = at_low + uniform * (at_high - at_low)
        value, log_mass = normal_quantile(min(max(inside, 1e-300), 1.0 - 1e-16), table), math.log(at_high - at_low)
        value = min(max(value, low), high)
    return -value if mirrored else value, log_mass


class TwistedProposal(NamedTuple):
    """A normal proposal for a sum: its predictive distribution times a normal density of a later sample mean.

    The later sample mean has expectation `constant + slope * sum`, and the variance.
    """

    centre: float
    deviation: float
    log_weight: float  # log of the normalising constant of the product
    slope: float
    constant: float
    variance: float


@called
def twisted_proposal(
    prior: ArmPrior, known: float, total: float, base: float, hidden: int, after: int, left: int, goal: float,
    slack: float,
) -> TwistedProposal:  # fmt: skip
    """Propose the sum of the next `hidden` rewards, twisted towards a sample mean of `goal`, `left` pulls later.

    The observer has `known` rewards of the arm, of sum `total`; the rule's own sum before this step is `base`, and its
    pulls after it are `after`. `slack` is the variance of the goal itself.
    """
    # Predictive distribution of the sum x: N(hidden mean, spread).
    noise = prior.sigma * prior.sigma
    mean, variance = posterior_mean(prior, known, total)
    spread = hidden * hidden * variance + hidden * noise
    # Later sample mean given x: N(constant + slope x, uncertain).
    mean_slope = prior.second / (noise + (known + hidden) * prior.second)  # of the posterior mean in x
    middle, later = posterior_mean(prior, known + hidden, total)
    end = 1.0 / (after + left)
    slope, constant = end * (1.0 + left * mean_slope), end * (base + left * middle)
    uncertain = end * end * (left * left * later + left * noise) + slack
    # Their product at the goal is N(centre, narrowed) times exp(log_weight), up to the constant in `log_twist`.
    narrowed = 1.0 / (1.0 / spread + slope * slope / uncertain)
    centre = narrowed * (hidden * mean / spread + slope * (goal - constant) / uncertain)
    miss = constant + slope * hidden * mean - goal
    log_weight = 0.5 * math.log(narrowed / spread) - 0.5 * miss * miss / (slope * slope * spread + uncertain)
    return TwistedProposal(centre, math.sqrt(narrowed), log_weight, slope, constant, uncertain)


@inlined
def log_twist(twist: TwistedProposal, gained: float, goal: float) -> float:
    """Return the log of the twisting factor at a drawn sum: how well it leads to the goal."""
    off = twist.constant + twist.slope * gained - goal
    return -0.5 * off * off / twist.variance


@inlined
def no_ones(ones: float, zeros: float, hidden: int) -> float:
    """Return the beta-binomial probability that none of `hidden` rewards is 1."""
    chance = 1.0
    for at in range(hidden):
        chance *= (zeros + at) / (ones + zeros + at)
    return chance


@inlined
def one_more(chance: float, outcome: int, ones: float, zeros: float, hidden: int) -> float:
    """Return the beta-binomial probability of `outcome` ones, given that of one fewer."""
    last = outcome - 1
    return chance * ((hidden - last) / outcome * (ones + last) / (zeros + hidden - last - 1.0))


@inlined
def reservoir(drawn: int, uniform: float, mass: float, outcome: int, chance: float) -> tuple[int, float, float]:
    """Replace a drawn outcome by a new one with probability `chance / (mass + chance)`.

    Returns the outcome, the random number recycled for the next one, and the mass.
    """
    mass += chance
    if uniform * mass < chance:
        return outcome, uniform * mass / chance, mass
    return drawn, (uniform * mass - chance) / (mass - chance), mass
