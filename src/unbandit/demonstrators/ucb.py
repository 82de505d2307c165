"""Algorithm 2 of the paper: upper confidence bounds with O(T^alpha) regret."""

from typing import ClassVar

from unbandit.demonstrators.base import Examples
from unbandit.demonstrators.index import AdditiveIndexRule
from unbandit.demonstrators.widths import RegretWidth


class UCB(RegretWidth, AdditiveIndexRule):
    """Pull the arm with the largest upper confidence bound, sample mean plus width.

    Algorithm 2 of Guo et al. Every arm is pulled once first; ties go to the lowest arm, or to one at random.

    Examples
    --------
    >>> from unbandit import Instance
    >>> UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5]), horizon=10, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 10 rounds>
    >>> str(UCB.variance_adjusted(alpha=0.25, sigma=0.14))
    'ucb:alpha=0.25,sigma=0.14'
    """

    name: ClassVar[str] = "ucb"
    fits: ClassVar[tuple[str, ...]] = ("alpha", "scale")
    title: ClassVar[str] = "Upper confidence bounds, Algorithm 2 of the paper"
    examples: ClassVar[Examples] = (
        {},
        {"alpha": 0},
        {"alpha": 0.001, "scale": 0.3},
        {"alpha": 0.9, "sigma": 0.14},
        {"alpha": 1 / 3, "scale": 1e-9},
        {"ties": "random"},
    )
