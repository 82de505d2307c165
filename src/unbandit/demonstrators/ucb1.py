"""UCB1 of Auer, Cesa-Bianchi and Fischer: the width grows with the logarithm of the round."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from unbandit.demonstrators.base import Examples, Grid
from unbandit.demonstrators.index import RoundIndexRule, pulls_before
from unbandit.demonstrators.rule import EXPLORATION, OtherName
from unbandit.instance import Noise
from unbandit.kernels.compile import inlined


class UCB1(RoundIndexRule):
    """Pull the arm with the largest sample mean plus sqrt(exploration ln t / n), where t is the round.

    The horizon plays no part, so the rule can run for ever; the index of an arm that is not pulled rises.

    Examples
    --------
    >>> round(UCB1(exploration=2).index(mean=0.5, pulls=4, round=100, horizon=1_000), 6)
    2.017427
    """

    name: ClassVar[str] = "ucb1"
    fits: ClassVar[tuple[str, ...]] = ("exploration",)
    called: ClassVar[Mapping[str, OtherName]] = EXPLORATION
    title: ClassVar[str] = "UCB1"
    uses_round: ClassVar[bool] = True
    shifts: ClassVar[bool] = True
    examples: ClassVar[Examples] = (
        {},
        {"exploration": 0.1},
        {"exploration": 0.5, "ties": "random", "initial": 2},
        {"exploration": 0.5, "batch": 7},
        {"exploration": 0.5, "clock": "pulls"},
    )

    exploration: float = Field(2.0, gt=0, description="factor of ln t in the width's square")

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return factors in units of the noise's variance; 8 times that is the usual 2 for rewards from 0 to 1."""
        return {"exploration": [noise.deviation**2 * factor for factor in (1.0, 2.0, 4.0, 8.0, 16.0)]}

    @staticmethod
    def formula(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return `mean + sqrt(exploration ln t / n)`."""
        return mean + _width(parameters, pulls, round)

    @staticmethod
    def inverse(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return `index - sqrt(exploration ln t / n)`."""
        return index - _width(parameters, pulls, round)

    @staticmethod
    def formula_by_pulls(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the same with `t - 1` for `t`."""
        return mean + _width(parameters, pulls, pulls_before(round))

    @staticmethod
    def inverse_by_pulls(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return the same with `t - 1` for `t`."""
        return index - _width(parameters, pulls, pulls_before(round))


@inlined
def _width(parameters: Any, pulls: Any, time: Any) -> float:
    return math.sqrt(parameters.exploration * math.log(time) / pulls)
