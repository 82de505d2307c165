"""Linear Thompson sampling: one draw of the parameters in every round."""

from typing import ClassVar

from pydantic import Field

from unbandit.contexts.rule import LinearRule
from unbandit.demonstrators.rule import Examples
from unbandit.kernels.simulate_linear import THOMPSON


class LinTS(LinearRule):
    """Draw parameters from `N(M, v^2 A^-1)` and choose the offer that is best at these.

    S. Agrawal, N. Goyal, "Thompson sampling for contextual bandits with linear payoffs", ICML 2013. A shared model
    draws once per round, for all offers; a disjoint one draws for each arm.

    Examples
    --------
    >>> LinTS(v=0.5)
    LinTS(v=0.5, ridge=1.0)
    """

    name: ClassVar[str] = "lints"
    title: ClassVar[str] = "Linear Thompson sampling"
    aliases: ClassVar[tuple[str, ...]] = ("lin-ts", "linear-thompson")
    fits: ClassVar[tuple[str, ...]] = ("v",)
    no_standard: ClassVar[tuple[str, ...]] = ("v",)
    tuning: ClassVar[str] = "v"
    kind: ClassVar[int] = THOMPSON
    examples: ClassVar[Examples] = (
        {},
        {"v": 0.3, "intercept": True},
        {"v": 0.5, "disjoint": True},
        {"ridge": 0.1, "batch": 7, "delay": 3},
    )

    v: float = Field(1.0, gt=0, description="scale of its draws: the deviation of a reward that it assumes")
