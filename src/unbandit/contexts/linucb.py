"""LinUCB: upper confidence bounds of a linear model."""

from typing import ClassVar

from pydantic import Field

from unbandit.contexts.rule import LinearRule
from unbandit.demonstrators.rule import Examples
from unbandit.kernels.simulate_linear import UCB


class LinUCB(LinearRule):
    """Choose the offer with the largest `x'M + alpha sqrt(x'A^-1 x)`.

    L. Li, W. Chu, J. Langford, R. E. Schapire, "A contextual-bandit approach to personalized news article
    recommendation", WWW 2010: with `disjoint=True` their Algorithm 1.

    Examples
    --------
    >>> LinUCB(alpha=2)
    LinUCB(alpha=2.0, ridge=1.0)
    """

    name: ClassVar[str] = "linucb"
    title: ClassVar[str] = "LinUCB"
    aliases: ClassVar[tuple[str, ...]] = ("lin-ucb",)
    fits: ClassVar[tuple[str, ...]] = ("alpha",)
    no_standard: ClassVar[tuple[str, ...]] = ("alpha",)
    tuning: ClassVar[str] = "alpha"
    kind: ClassVar[int] = UCB
    examples: ClassVar[Examples] = (
        {},
        {"alpha": 3, "intercept": True},
        {"alpha": 0.5, "disjoint": True, "ties": "random"},
        {"ridge": 0.1, "batch": 7, "delay": 3},
    )

    alpha: float = Field(1.0, gt=0, description="width of its bounds, in deviations of what the model predicts")
