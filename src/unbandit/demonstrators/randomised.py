"""Randomised rules: give every arm a probability from the record so far, and draw the arm to pull."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from unbandit.demonstrators.base import Demonstrator
from unbandit.demonstrators.delay import DELAY, Delay
from unbandit.kernels.bandit import Bandit
from unbandit.kernels.formula import Formula, formula_parameters
from unbandit.kernels.formula import probability as probability_seam
from unbandit.log.tallies import Tallies

if TYPE_CHECKING:
    from unbandit.kernels.simulate_available import Spans
    from unbandit.kernels.simulate_randomised import RandomisedOptions


Pulls = NDArray[np.int64]  # pull counts, one per arm
Memory = NDArray[np.float64]  # what a rule remembers, one row per arm; column 0 is the sum of its rewards
Draws = NDArray[np.float64]  # uniform numbers, one per arm


class RandomisedRule(Demonstrator):
    """Draw the arm to pull, with probabilities that depend on what was pulled and gained so far.

    A rule of this kind has a `probability`, compiled by numba, and the numbers it reads. If it remembers more about an
    arm than its pulls and the sum of its rewards, it declares the number of `columns`, and fills them in `learn`.

    With a `delay` of `d` the reward of round `s` is known from round `s + d + 1` on, and `pulls` and `memory` hold what
    is known; an opening goes on in turn until `initial` rewards of each arm are. A delay such as `geometric:50` is
    drawn for every reward; of an arm's, those on the tape come in the order of arrival.

    In all three functions `parameters` has the rule's `numbers` as attributes; `pulls` has one number per arm, and
    `memory` one row per arm: the sum of its rewards, then the rule's own columns, which begin at 0.
    """

    columns: ClassVar[int] = 1
    """How many numbers an arm remembers; the first is always the sum of its rewards, kept by the simulation."""

    smooth: ClassVar[bool] = True
    """Whether probabilities change smoothly with the sums of rewards; not so where only the largest mean counts."""

    greedy: ClassVar[bool] = False
    """Whether probabilities depend on rewards only through which arm's sample mean is the largest."""

    one_draw: ClassVar[bool] = True
    """Whether `choose` reads one uniform number, not one per arm."""

    tries_first: ClassVar[bool] = False
    """Whether a run tries all arms at first: first rounds like later ones then show that the beginning is missing."""

    unit: ClassVar[str | None] = None
    """The parameter that gaps are about in proportion to, if there is one: a log hardly shows that it is wrong."""

    quick: ClassVar[bool] = False
    """Whether a probability takes no longer than drawing a reward: more particles cost little then."""

    @property
    def shifts(self) -> bool:
        """Return whether the same number added to all rewards would change no probability."""
        return False

    @property
    def score(self) -> int | None:
        """Return the column of `memory` that alone decides, if probabilities are log-concave in it; None otherwise.

        It must be linear in the rewards: column 0, or one that `learn` moves by `f value + g reward + h`, always the
        same numbers. Such a rule's posterior looks at the whole log at once; it needs a `log_expansion`.
        """
        return None

    @property
    def gains(self) -> int | None:
        """Return the column of `memory` that alone decides, if `learn` adds `reward / probability` to it; else None.

        For rewards of 0 and 1; nothing else that `learn` keeps may depend on them. Such a rule's posterior looks at the
        whole log at once; it needs a `log_expansion`.
        """
        return None

    @property
    def beta_prior(self) -> tuple[float, float] | None:
        """Return prior successes and failures, if the rule pulls the arm with the largest of Beta draws; else None."""
        return None

    initial: int = Field(0, ge=0, lt=2**32, description="pulls of each arm, in turn, before the rule decides")
    batch: int = Field(1, ge=1, lt=2**32, description="rounds between decisions")
    delay: Delay = DELAY
    opening: Literal["listed", "random"] = Field(
        "listed", description="order of the arms in the opening: as listed, or drawn for every run"
    )

    @model_validator(mode="after")
    def _has_opening(self) -> Self:
        if self.opening == "random" and self.initial == 0:
            raise ValueError("expected initial=1 or more with opening=random: without an opening nothing has an order.")
        return self

    @staticmethod
    @abstractmethod
    def probability(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any) -> float:
        """Return the probability of pulling `arm` in round `round` (from 1; with batches, the batch's first)."""

    @staticmethod
    def choose(parameters: Any, pulls: Pulls, memory: Memory, round: Any, draws: Draws) -> int:
        """Return the arm to pull: by default the one in whose stretch of the summed probabilities the draw falls."""
        last, left = pulls.size - 1, draws[0]
        for arm in range(last):
            left -= probability_seam(parameters, pulls, memory, round, arm)
            if left < 0.0:
                return arm
        return last

    @staticmethod
    def learn(parameters: Any, pulls: Pulls, memory: Memory, round: Any, arm: Any, reward: float) -> None:
        """Learn from the reward of a round, before `pulls[arm]` and `memory[arm, 0]` are raised; by default nothing.

        Unlike the other two, it always sees the round and the record as they are, not as of the batch's first round.
        The round is that of the pull. Only a posterior with random delays, which hide it, passes that of the arrival,
        so a rule whose `learn` depends on it must refuse them.
        """

    @staticmethod
    def log_expansion(
        parameters: Any, pulls: Pulls, scores: Draws, round: Any, arm: Any, slope: Draws, bend: Memory
    ) -> float:
        """Return the log of `probability`; fill in its gradient and negative Hessian with respect to the scores.

        For rules with a `score` or with `gains`. It shapes how rewards are proposed and enters no weight, so it may be
        approximate; but it must be a number for any scores, also where the probability is too small for one.
        """
        raise NotImplementedError

    def formulas(self) -> dict[str, Formula]:
        """Return the functions that kernels are compiled with, by name."""
        found = {name: getattr(type(self), name) for name in ("probability", "choose", "learn")}
        if type(self).log_expansion is not RandomisedRule.log_expansion:
            found["log_expansion"] = type(self).log_expansion
        return found

    def parameters(self, horizon: int) -> Any:
        """Return what the kernels take as the rule's parameters."""
        return formula_parameters(self.formulas(), self.numbers(horizon))

    def _options(self, arms: int) -> RandomisedOptions:
        from unbandit.kernels.simulate_randomised import RandomisedOptions

        return RandomisedOptions(self.columns, 1 if self.one_draw else arms, self.initial, self.batch, self.fixed_delay)

    def _simulate(self, bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
        from unbandit.kernels.simulate_randomised import draw_actions, room_to_draw

        options = self._options(bandit.means.size)
        sizes, shuffled = (bandit.means.size, self.columns, actions.shape[1]), self.opening == "random"
        room = room_to_draw(*sizes, self.delay_distribution, shuffled=shuffled)
        draw_actions(bandit, parameters, first_run, options, *room, actions)

    def _simulate_available(
        self, bandit: Bandit, parameters: Any, first_run: int, spans: Spans, actions: NDArray[Any]
    ) -> None:
        from unbandit.kernels.simulate_available import draw_available

        draw_available(bandit, parameters, first_run, self.initial, self.columns, self.one_draw, spans, actions)

    def _fixed_arms(self) -> str | None:
        weighted = "its weights depend on how many arms there were" if self.gains is not None else None
        return super()._fixed_arms() or weighted

    def _gpu_loop(self, arms: int) -> tuple[str, tuple[Any, ...]]:
        return "randomised", self._options(arms)

    def _empty_evidence(self, runs: int, arms: int) -> Tallies:
        return Tallies.zeros((runs, arms))
