"""UCB-V of Audibert, Munos and Szepesvari: the width follows the arm's sample variance."""

import math
from abc import abstractmethod
from typing import Any, ClassVar

from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.index import RoundIndexRule, pulls_before
from unbandit.instance import Noise
from unbandit.kernels.compile import inlined


@inlined
def _index(parameters: Any, mean: float, pulls: Any, time: Any) -> float:
    rate: float = parameters.exploration * math.log(time) / pulls
    variance = max(mean * (1.0 - mean), 0.0)
    if parameters.tuned > 0.0:
        return mean + math.sqrt(rate * min(0.25, variance + math.sqrt(2.0 * rate)))
    bias: float = 3.0 * parameters.correction * rate
    return mean + math.sqrt(2.0 * variance * rate) + bias


@inlined
def _smallest_mean(parameters: Any, index: float, pulls: Any, time: Any) -> float:
    rate: float = parameters.exploration * math.log(time) / pulls
    if parameters.tuned > 0.0:
        return _tuned_mean(index, rate)
    value: float = index - 3.0 * parameters.correction * rate
    inside = 2.0 * rate * (2.0 * rate + 4.0 * value * (1.0 - value))
    if value <= 0.0 or inside < 0.0:  # no mean from 0 to 1 has this index
        return value
    return 2.0 * value * value / (2.0 * value + 2.0 * rate + math.sqrt(inside))


@inlined
def _tuned_mean(index: float, rate: float) -> float:
    """Return the mean with UCB-tuned's index, which rises with the mean: `(index - m)^2 = rate min(1/4, V)`."""
    excess = math.sqrt(2.0 * rate)
    mean = index - 0.5 * math.sqrt(rate)
    if max(mean * (1.0 - mean), 0.0) + excess >= 0.25:  # the variance's bound is the largest that there is
        return mean
    outside = index - math.sqrt(rate * excess)
    if not 0.0 < outside < 1.0:
        return outside
    half, free = index + 0.5 * rate, index * index - rate * excess  # (1 + rate) m^2 - 2 half m + free = 0
    return free / (half + math.sqrt(max(half * half - (1.0 + rate) * free, 0.0)))


class VarianceIndexRule(RoundIndexRule):
    """Pull the arm with the largest index, which depends on the sample variance: `m (1 - m)` of rewards of 0 and 1.

    The formula is UCB-V's or, where the number `tuned` is 1, UCB-tuned's: both share their compiled loops.
    """

    uses_round: ClassVar[bool] = True
    bernoulli_only: ClassVar[bool] = True  # for other rewards the mean does not determine the variance

    @abstractmethod
    def numbers(self, horizon: int) -> dict[str, float]:
        """Return `exploration`, `correction` and `tuned`."""

    @staticmethod
    def formula(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the mean plus a width that grows with the variance."""
        return _index(parameters, mean, pulls, round)

    @staticmethod
    def inverse(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return the smallest mean with this index: of a quadratic's two roots the one on the rising branch."""
        return _smallest_mean(parameters, index, pulls, round)

    @staticmethod
    def formula_by_pulls(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the same with `t - 1` for `t`."""
        return _index(parameters, mean, pulls, pulls_before(round))

    @staticmethod
    def inverse_by_pulls(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return the same with `t - 1` for `t`."""
        return _smallest_mean(parameters, index, pulls, pulls_before(round))


class UCBV(VarianceIndexRule):
    """Pull the arm with the largest mean plus sqrt(2 variance L / n) + 3 L / n, L growing with ln t.

    The index is `m + sqrt(2 m (1 - m) L / n) + 3 correction L / n` with `L = exploration ln t`: the mean `m` of rewards
    of 0 and 1 determines their variance too. Near 1 the index falls as the mean rises, because the variance falls
    faster: two means can have one index, and `inverse` returns the smaller. Outside [0, 1] the variance counts as 0.

    Examples
    --------
    >>> round(UCBV(exploration=1).index(mean=0.5, pulls=100, round=100, horizon=1_000), 6)
    0.789898
    """

    name: ClassVar[str] = "ucbv"
    varied: ClassVar[tuple[str, ...]] = ("exploration",)
    title: ClassVar[str] = "UCB-V"
    aliases: ClassVar[tuple[str, ...]] = ("ucb-v",)
    examples: ClassVar[Examples] = (
        {},
        {"exploration": 0.3, "correction": 0},
        {"exploration": 0.2, "ties": "random", "initial": 2, "batch": 3, "clock": "pulls"},
    )

    exploration: float = Field(1.2, gt=0, description="factor of ln t")
    correction: float = Field(1.0, ge=0, description="factor of the term 3 L / n, for the range of the rewards")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return factors with and without the term for the rewards' range."""
        return {"exploration": (0.5, 1.2), "correction": (0.0, 1.0)}

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return the factors."""
        return {"exploration": self.exploration, "correction": self.correction, "tuned": 0.0}
