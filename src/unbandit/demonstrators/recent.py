"""Index rules that forget: an arm's index comes from its recent rewards, since arms may change."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from numpy.typing import NDArray
from pydantic import Field, model_validator

from unbandit.demonstrators.base import Demonstrator
from unbandit.kernels.bandit import Bandit
from unbandit.log.tallies import Tallies

if TYPE_CHECKING:
    from unbandit.kernels.recent import RecentIndex


class RecentIndexRule(Demonstrator):
    """Pull the arm with the largest recent mean plus sqrt(exploration ln n / N), from recent pulls alone.

    `N` counts the arm's recent pulls, and `n` those of all arms. An arm without any comes first. The rule decides in
    as many rounds as there are arms, and from then on every `batch` rounds; it keeps its arm in between. Only the order
    of the rounds shows what was recent: pull counts alone say nothing, and neither does the moment when arms were last
    equal, since such a rule keeps returning to every arm.
    """

    shifts: ClassVar[bool] = True
    proposed: ClassVar[bool] = False

    exploration: float = Field(0.5, gt=0, description="factor of ln n in the width's square")
    ties: Literal["lowest", "random"] = Field("lowest", description="arm that wins a tie: lowest or random")
    batch: int = Field(1, ge=1, lt=2**32, description="rounds from one decision to the next")

    @model_validator(mode="before")
    @classmethod
    def _without_delay(cls, given: Any) -> Any:
        """Refuse a delay: it is not defined which rewards are recent then."""
        if isinstance(given, dict) and "delay" in given:
            raise ValueError(
                f"{cls.title} has no delay: it is taken to know every reward in the next round. What it would forget "
                "of rewards that come late is not defined here, so a log with late rewards cannot be read."
            )
        return given

    @property
    @abstractmethod
    def memory(self) -> tuple[int, float]:
        """Return the rounds that count, 0 for all, and the weight by which a reward fades per round, 1 for none."""

    def parameters(self, horizon: int) -> RecentIndex:
        """Return what the kernels take as the rule's parameters."""
        from unbandit.kernels.recent import RecentIndex

        return RecentIndex(*self.memory, self.exploration, self.ties == "random", self.batch)

    def _simulate(self, bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
        from unbandit.kernels.recent import pull_largest_recent

        pull_largest_recent(bandit, parameters, first_run, actions)

    def _empty_evidence(self, runs: int, arms: int) -> Tallies:
        return Tallies.zeros((runs, arms))
