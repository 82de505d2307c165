"""Top-two Thompson sampling: try the arm that a draw puts first, or else the one that leads when another does."""

import math
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from unbandit.demonstrators.base import Demonstrator, Examples
from unbandit.demonstrators.randomised import Draws, Memory, Pulls, RandomisedRule
from unbandit.demonstrators.thompson import fill_beliefs, precisions
from unbandit.kernels.compile import called
from unbandit.kernels.largest import log_largest_of_normals


class TopTwoThompson(RandomisedRule):
    """Pull the leader of a draw with probability beta; otherwise draw again until another arm leads, and pull that.

    Russo's rule to find the best arm, for rewards that it takes as normal: its draws are those of Thompson sampling. If
    `p_i` is the probability that arm `i` leads a draw, it is pulled with probability `p_i (beta + (1 - beta) sum over
    j != i of p_j / (1 - p_j))`. Probabilities are computed, not drawn: late in a run billions of draws would have the
    same leader.

    Parameters
    ----------
    beta
        The probability of pulling the leader of the first draw.
    mean, deviation, sigma
        As for `Thompson` with Normal rewards.

    Examples
    --------
    >>> from unbandit import Instance
    >>> TopTwoThompson(sigma=0.5).demonstrate(Instance([1.0, 0.5], 0.5), horizon=10, seed=1)
    <ActionLog: 1 demonstration, 2 arms, 10 rounds>
    """

    name: ClassVar[str] = "top-two-thompson"
    no_standard: ClassVar[tuple[str, ...]] = ("sigma",)
    unit: ClassVar[str] = "sigma"
    title: ClassVar[str] = "Top-two Thompson sampling"
    aliases: ClassVar[tuple[str, ...]] = ("ttts", "top-two")
    proposed: ClassVar[bool] = False
    tries_first: ClassVar[bool] = True
    examples: ClassVar[Examples] = (
        {},
        {"beta": 0.8, "mean": 0.5, "deviation": 0.3, "sigma": 0.5, "initial": 1},
        {"deviation": 10, "sigma": 0.1, "batch": 5},
    )

    beta: float = Field(0.5, gt=0, lt=1, description="probability of pulling the leader of the first draw, in (0, 1)")
    mean: float = Field(0.0, description="mean of its Normal prior")
    deviation: float = Field(1.0, gt=0, description="deviation of its Normal prior")
    sigma: float = Field(1.0, gt=0, description="noise of a reward, as it believes")

    @staticmethod
    def probability(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
        """Return the probability of pulling the arm."""
        chance: float = fill_chances(parameters, pulls, memory[:, 0])[arm]
        return chance

    @staticmethod
    def choose(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
        """Return the arm in whose stretch of the summed probabilities the draw falls."""
        chances, left = fill_chances(parameters, pulls, memory[:, 0]), draws[0]
        for arm in range(pulls.size - 1):
            left -= chances[arm]
            if left < 0.0:
                return arm
        return pulls.size - 1

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return beta, and prior and noise as precisions."""
        return precisions(self.name, self.mean, self.deviation, self.sigma) | {"beta": self.beta}

    def _gpu_loop(self, arms: int) -> tuple[str, tuple[Any, ...]]:
        return Demonstrator._gpu_loop(self, arms)  # its probabilities need working memory


@called
def fill_chances(parameters: Any, pulls: Pulls, sums: Draws) -> Draws:
    """Return the probability of every arm, from logs of the probabilities of leading; they sum to 1."""
    arms = pulls.size
    work = np.empty((4, arms))
    centres, roots, logs = work[0], work[1], work[2]
    chances: Draws = work[3]
    fill_beliefs(parameters, pulls, sums, centres, roots)
    for arm in range(arms):
        logs[arm] = log_largest_of_normals(centres, roots, arm)
    whole = log_sum(logs, -1)
    for arm in range(arms):
        logs[arm] -= whole
    for leader in range(arms):
        rest = log_sum(logs, leader)  # 1 - p of the leader, exactly
        chances[leader] = parameters.beta if rest > -math.inf else 1.0
        centres[leader] = logs[leader] - rest
    for arm in range(arms):
        chances[arm] *= math.exp(logs[arm])
        for leader in range(arms):
            if leader != arm:
                chances[arm] += (1.0 - parameters.beta) * math.exp(logs[arm] + centres[leader])
    return chances


@called
def log_sum(logs: Draws, left_out: int) -> float:
    """Return the log of the sum of numbers given by their logs, one of which may be left out; -inf for none."""
    largest, total = -math.inf, 0.0
    for each in range(logs.size):
        if each != left_out:
            largest = max(largest, logs[each])
    if largest == -math.inf:
        return largest
    for each in range(logs.size):
        if each != left_out:
            total += math.exp(logs[each] - largest)
    return largest + math.log(total)
