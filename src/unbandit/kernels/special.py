"""Special functions that compiled loops can inline: normal, Beta, Bernoulli divergence, softmax.

SciPy's cannot be called from a kernel, and the filters evaluate these for thousands of particles in every round, where
`math.erfc` alone would be most of the cost: the normal distribution function comes from a table.
"""

import math

import numpy as np

from unbandit.kernels.compile import Integers, Numbers, called, inlined

# --- normal distribution ---

CDF_LOWEST, CDF_HIGHEST, CDF_CELLS = -9.0, 6.0, 32  # the table's ends, and its cells per unit
ROOT_HALF = math.sqrt(0.5)
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


def _cdf_table() -> Numbers:
    """Return for each cell the first four Taylor coefficients of the distribution function at its middle."""
    middles = CDF_LOWEST + (np.arange(round((CDF_HIGHEST - CDF_LOWEST) * CDF_CELLS)) + 0.5) / CDF_CELLS
    heights = np.array([0.5 * math.erfc(-u * ROOT_HALF) for u in middles])
    densities = DENSITY * np.exp(-0.5 * middles**2)
    table = np.column_stack([heights, densities, -middles * densities / 2, (middles**2 - 1) * densities / 6])
    table.setflags(write=False)
    return table


CDF_TABLE = _cdf_table()


@inlined
def normal_cdf(u: float) -> float:
    """Return `Phi(u)`, with a relative error below 2e-5, also far below the mean."""
    if u >= CDF_HIGHEST:
        return 1.0
    if u < CDF_LOWEST:
        return 0.5 * math.erfc(-u * ROOT_HALF)
    scaled = (u - CDF_LOWEST) * CDF_CELLS
    at = np.int64(scaled)
    d, cell = (scaled - at - 0.5) * (1.0 / CDF_CELLS), np.uint64(at)
    return (CDF_TABLE[cell, 0] + d * CDF_TABLE[cell, 1]) + (d * d) * (CDF_TABLE[cell, 2] + d * CDF_TABLE[cell, 3])


@inlined
def log_normal_cdf(u: float) -> float:
    """Return `log Phi(u)` to full precision, also where `Phi` itself is too small a number."""
    if u > -20.0:
        return math.log(0.5 * math.erfc(-u * ROOT_HALF))
    square, series = u * u, 1.0
    for term in range(13, 0, -2):
        series = 1.0 - term / square * series
    return -0.5 * square - math.log(-u) - HALF_LOG_TWO_PI + math.log(series)


@inlined
def normal_density(u: float) -> float:
    """Return the standard normal density, as the derivative of the table of `normal_cdf`."""
    down = -abs(u)
    if down < CDF_LOWEST:
        return DENSITY * math.exp(-0.5 * u * u)
    scaled = (down - CDF_LOWEST) * CDF_CELLS
    at = np.int64(scaled)
    d, cell = (scaled - at - 0.5) * (1.0 / CDF_CELLS), np.uint64(at)
    return CDF_TABLE[cell, 1] + d * (2.0 * CDF_TABLE[cell, 2] + d * (3.0 * CDF_TABLE[cell, 3]))


@inlined
def hazard(u: float) -> float:
    """Return the derivative of `log Phi`: density over distribution function."""
    if u < -8.0:
        return -u - 1.0 / u
    return normal_density(u) / normal_cdf(u)


@inlined
def _horner(r: float, c0: float, c1: float, c2: float, c3: float, c4: float, c5: float, c6: float, c7: float) -> float:
    return c0 + r * (c1 + r * (c2 + r * (c3 + r * (c4 + r * (c5 + r * (c6 + r * c7))))))


@inlined
def normal_from_uniform(p: float) -> float:
    """Return the standard normal quantile of a number in (0, 1).

    M. J. Wichura's algorithm AS 241, to 16 digits. Rewards use `rng.normal_from_word`, whose table is too long for a
    rule's formula.
    """
    q = p - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        return q * _horner(
            r, 3.3871328727963666080, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
            4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
        ) / _horner(
            r, 1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
            2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
        )  # fmt: skip
    r = math.sqrt(-math.log(min(p, 1.0 - p)))
    if r <= 5.0:
        r -= 1.6
        value = _horner(
            r, 1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550, 3.64784832476320460504,
            1.27045825245236838258, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
        ) / _horner(
            r, 1.0, 2.05319162663775882187, 1.67638483018380384940, 6.89767334985100004550e-1,
            1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
            1.05075007164441684324e-9,
        )  # fmt: skip
    else:
        r -= 5.0
        value = _horner(
            r, 6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580, 2.96560571828504891230e-1,
            2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5,
            2.01033439929228813265e-7,
        ) / _horner(
            r, 1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
            7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
            2.04426310338993978564e-15,
        )  # fmt: skip
    return value if q > 0.0 else -value


# --- Beta distribution, on the scale of log odds `y`, where all its shapes are smooth and have one peak: a number `x`
# in (0, 1) is `1 / (1 + exp(-y))`, and the density of Beta(a, b) is `x^a (1 - x)^b / B(a, b)` ---

CELLS = 16  # of the table of exponentials, per unit
EXP_LOWEST = -40.0
EXPONENTIALS = np.exp(EXP_LOWEST + (np.arange(round((4.0 - EXP_LOWEST) * CELLS) + 1) + 0.5) / CELLS)
"""With a cell more than there is room for: a value just below 4 is rounded up to the end."""


@inlined
def exponential(value: float) -> float:
    """Return `exp(value)`, up to 4 with a relative error of 3e-10."""
    if not EXP_LOWEST <= value <= 4.0:  # also where it is no number
        return math.exp(value)
    scaled = (value - EXP_LOWEST) * CELLS
    at = np.int64(scaled)
    d = (scaled - at - 0.5) * (1.0 / CELLS)
    return EXPONENTIALS[np.uint64(at)] * (1.0 + d * (1.0 + d * (0.5 + d * (1.0 / 6.0 + d * (1.0 / 24.0)))))


@inlined
def _log_gamma(value: float) -> float:
    """Return `log Gamma`, by Stirling's series from 8 on and by the recurrence below."""
    below = 1.0
    while value < 8.0:
        below *= value
        value += 1.0
    inverse = 1.0 / value
    square = inverse * inverse
    series = inverse * (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0))
    stirling = (value - 0.5) * math.log(value) - value + HALF_LOG_TWO_PI + series
    return stirling if below == 1.0 else stirling - math.log(below)


@inlined
def log_beta(a: float, b: float) -> float:
    """Return the logarithm of the Beta function."""
    return _log_gamma(a) + _log_gamma(b) - _log_gamma(a + b)


@inlined
def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete Beta function, from the front (Lentz), to 1e-9."""
    total, c = a + b, 1.0
    d = 1.0 / (1.0 - total * x / (a + 1.0))
    value = d
    for m in range(1, 10_000):
        twice = a + 2.0 * m
        even = m * (b - m) * x / ((twice - 1.0) * twice)
        d, c = 1.0 / (1.0 + even * d), 1.0 + even / c
        value *= d * c
        odd = -(a + m) * (total + m) * x / (twice * (twice + 1.0))
        d, c = 1.0 / (1.0 + odd * d), 1.0 + odd / c
        value *= d * c
        if abs(d * c - 1.0) < 1e-9:
            break
    return value


@inlined
def beta_cdf(a: float, b: float, norm: float, y: float) -> float:
    """Return the probability of log odds below `y`; `norm` is `log_beta(a, b)`."""
    x, log_x = 1.0 / (1.0 + math.exp(-y)), -math.log1p(math.exp(-y)) if y > -36.0 else y
    front = math.exp(a * log_x + b * (log_x - y) - norm)
    if x * (a + b + 2.0) < a + 1.0:
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, 1.0 - x) / b


@inlined
def log_odds_from_uniform(a: float, b: float, uniform: float) -> float:
    """Return the log odds at which the distribution function is `uniform`, by Newton steps on its logarithm.

    The logarithm is concave, so every step lands below the solution and the next ones rise to it. The upper half is
    the lower half of Beta(b, a).
    """
    below = uniform <= 0.5
    if not below:
        a, b, uniform = b, a, 1.0 - uniform
    norm, goal = log_beta(a, b), math.log(uniform)
    y = math.log(a / b) + min(0.0, normal_from_uniform(uniform)) * math.sqrt(1.0 / a + 1.0 / b)
    for _ in range(100):
        height = beta_cdf(a, b, norm, y)
        log_x = -math.log1p(math.exp(-y)) if y > -36.0 else y
        density = math.exp(a * log_x + b * (log_x - y) - norm)
        step = (goal - math.log(height)) * height / density if density > 0.0 else 1.0
        y += step
        if abs(step) < 1e-9 * (1.0 + abs(y)):
            break
    return y if below else -y


MOST_SECANTS = 100
CLOSE_LOG = 1e-8  # logarithms of probabilities that cannot be told apart
TINY = 1e-300
CLOSE = 4e-16


@called
def upper_of_beta(mean: float, pulls: float, tail: float) -> float:
    """Return the quantile of Beta(1 + n mean, 1 + n (1 - mean)) with `tail` above it; means are clipped to [0, 1]."""
    successes = pulls * min(max(mean, 0.0), 1.0)
    below = log_odds_from_uniform(1.0 + pulls - successes, 1.0 + successes, tail)  # 1 - tail would be rounded
    return 1.0 / (1.0 + math.exp(below))


@called
def _log_excess(mean: float, pulls: float, tail: float, odds: float) -> float:
    """Return the logarithm of the probability above some log odds, over `tail`."""
    a, b = 1.0 + pulls * mean, 1.0 + pulls * (1.0 - mean)
    return math.log(max(beta_cdf(b, a, log_beta(b, a), -odds), TINY) / tail)


@called
def mean_below_beta(index: float, pulls: float, tail: float) -> float:
    """Return the mean whose `upper_of_beta` is `index`; infinite where there is none.

    The logarithm of the probability above the index rises with the mean. Its root is between two points that close in
    (regula falsi; the value at an end that stays twice is halved).
    """
    if not 0.0 < index < 1.0:
        return math.inf if index >= 1.0 else -math.inf
    odds = math.log(index / (1.0 - index))
    low, high = 0.0, 1.0
    below, above = _log_excess(low, pulls, tail, odds), _log_excess(high, pulls, tail, odds)
    if below >= 0.0:
        return 0.0 if below < CLOSE_LOG else -math.inf
    if above <= 0.0:
        return 1.0 if above > -CLOSE_LOG else math.inf
    stayed = 0  # which end stayed where it was in the last step
    for _ in range(MOST_SECANTS):
        middle = low + (high - low) * below / (below - above)
        value = _log_excess(middle, pulls, tail, odds)
        if value < 0.0:
            low, below = middle, value
            above = 0.5 * above if stayed == 1 else above
            stayed = 1
        else:
            high, above = middle, value
            below = 0.5 * below if stayed == -1 else below
            stayed = -1
        if abs(value) < 1e-3 * CLOSE_LOG or high - low < CLOSE:
            return middle
    return 0.5 * (low + high)


# --- bounds from the Bernoulli divergence `d(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q))` ---

MOST_NEWTON_STEPS = 64


@inlined
def bernoulli_divergence(mean: float, away: float) -> float:
    """Return `d(mean, mean + away)` for `mean` and `mean + away` in (0, 1); accurate relative to `away`."""
    return -mean * math.log1p(away / mean) - (1.0 - mean) * math.log1p(-away / (1.0 - mean))


@inlined
def upper_bernoulli(mean: float, rate: float) -> float:
    """Return the largest `q` with `d(mean, q) <= rate`; means outside [0, 1] are clipped.

    The divergence is convex in `q`, so Newton steps from above descend to the solution without passing it. Two points
    above it are known: Pinsker's `mean + sqrt(rate / 2)`, and the solution without the term `-mean ln q`.
    """
    if mean >= 1.0:
        return 1.0
    if mean < TINY:
        return -math.expm1(-rate)
    if not rate > 0.0:
        return mean
    rest = 1.0 - mean
    entropy = -mean * math.log(mean) - rest * math.log(rest)
    away = min(math.sqrt(0.5 * rate), rest - math.exp(-(rate + entropy) / rest))
    for _ in range(MOST_NEWTON_STEPS):
        left = rest - away
        if not left > 0.0:
            return 1.0
        step = (bernoulli_divergence(mean, away) - rate) * (mean + away) * left / away
        away -= step
        if not step > CLOSE:
            break
    return min(mean + away, 1.0)


@inlined
def lower_bernoulli(index: float, rate: float) -> float:
    """Return the mean whose `upper_bernoulli` is `index`: the smallest `p` with `d(p, index) <= rate`.

    Infinite where no mean has that bound: above 1, and below the bound of a mean of 0. The divergence is convex in `p`.
    """
    if index >= 1.0:
        return 1.0 if index == 1.0 else math.inf
    if not rate > 0.0:
        return index
    lowest = -math.expm1(-rate)
    if index <= lowest:
        return 0.0 if index == lowest else -math.inf
    p = index - math.sqrt(0.5 * rate)  # below the solution, by Pinsker's inequality
    if not p > 0.0:
        p = 0.5 * min(index, -math.log1p(-index) - rate)
        for _ in range(MOST_NEWTON_STEPS):
            if bernoulli_divergence(p, index - p) >= rate:
                break
            p *= 0.5
    for _ in range(MOST_NEWTON_STEPS):
        slope = math.log1p((index - p) / p) - math.log1p((p - index) / (1.0 - p))
        step = (bernoulli_divergence(p, index - p) - rate) / slope
        p += step
        if not step > CLOSE:
            break
    return min(max(p, 0.0), index)


# --- softmax ---

LARGEST_EXPONENT = 700.0  # beyond it the exponential overflows


@inlined
def _score(memory: Numbers, column: int, pulls: Integers, average: bool, arm: int) -> float:
    """Return an arm's score: the number in a column, or that number per pull; 0 for an arm without any."""
    return memory[arm, column] / max(pulls[arm], 1) if average else memory[arm, column]


@inlined
def softmax_share(memory: Numbers, column: int, pulls: Integers, average: bool, sharpness: float, arm: int) -> float:
    """Return `exp(sharpness score)` of an arm as a share of the sum over all arms."""
    own, others = _score(memory, column, pulls, average, arm), 0.0
    for other in range(pulls.size):
        if other != arm:
            ahead = sharpness * (_score(memory, column, pulls, average, other) - own)
            others += exponential(min(ahead, LARGEST_EXPONENT))
    return 1.0 / (1.0 + others)


@inlined
def softmax_choice(memory: Numbers, column: int, pulls: Integers, average: bool, sharpness: float, draw: float) -> int:
    """Return the arm in whose share the draw falls, shares being laid one after the other."""
    largest, total = -math.inf, 0.0
    for arm in range(pulls.size):
        largest = max(largest, _score(memory, column, pulls, average, arm))
    for arm in range(pulls.size):
        total += math.exp(sharpness * (_score(memory, column, pulls, average, arm) - largest))
    left = draw * total
    for arm in range(pulls.size - 1):
        left -= math.exp(sharpness * (_score(memory, column, pulls, average, arm) - largest))
        if left < 0.0:
            return arm
    return pulls.size - 1


@called
def expand_softmax(
    scores: Numbers, pulls: Integers, average: bool, sharpness: float, arm: int, slope: Numbers, bend: Numbers
) -> float:
    """Return the log of `softmax_share`; fill in its gradient and negative Hessian with respect to the scores.

    With shares `p` of `exp(b_j score_j)` these are `b_j (1[j = arm] - p_j)` and `b_j b_k (p_j 1[j = k] - p_j p_k)`.
    """
    arms, largest, total = scores.size, -math.inf, 0.0
    for each in range(arms):
        slope[each] = sharpness * (scores[each] / max(pulls[each], 1) if average else scores[each])
        largest = max(largest, slope[each])
    ahead = slope[arm] - largest
    for each in range(arms):
        slope[each] = math.exp(slope[each] - largest)
        total += slope[each]
    for each in range(arms):
        slope[each] /= total
    for row in range(arms):
        scale = sharpness / max(pulls[row], 1) if average else sharpness
        for column in range(arms):
            other = sharpness / max(pulls[column], 1) if average else sharpness
            bend[row, column] = ((slope[row] if row == column else 0.0) - slope[row] * slope[column]) * scale * other
    for each in range(arms):
        scale = sharpness / max(pulls[each], 1) if average else sharpness
        slope[each] = scale * ((1.0 if each == arm else 0.0) - slope[each])
    return ahead - math.log(total)
