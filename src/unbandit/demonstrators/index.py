"""Index rules: give every arm an index from its own record, and pull the arm with the largest."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from unbandit.demonstrators.base import Demonstrator, Gather
from unbandit.demonstrators.delay import DELAY, Delay
from unbandit.demonstrators.widths import has_power_width, width_parameters
from unbandit.errors import NotIdentifiable
from unbandit.instance import Bernoulli, Instance, Noise
from unbandit.kernels.bandit import Bandit
from unbandit.kernels.compile import inlined
from unbandit.kernels.formula import formula_parameters, index_value, mean_by_bisection
from unbandit.log.tallies import LOOKS, LookRule, Tallies

if TYPE_CHECKING:
    from unbandit.kernels.simulate_available import Spans
    from unbandit.kernels.simulate_index import IndexOptions


FEW_ARMS = 6
"""Up to this many arms, tapes are merged without sorting (`kernels.simulate_index.merge_few_tapes`)."""

MANY_ARMS = 64
"""From this many arms on, counts are taken from levels (`kernels.counts`) rather than from simulated actions."""


class IndexRule(Demonstrator):
    """Pull the arm with the largest `index(mean, pulls, round)`; an arm never pulled comes first.

    Every arm is pulled `initial` times first, in turn. From then on the rule decides every `batch` rounds, and keeps
    its arm in between. With a `delay` of `d` the reward of round `s` is known from round `s + d + 1` on: means and
    pulls in the index are those of known rewards, and the opening goes on in turn until `initial` of each arm are. A
    delay such as `geometric:50` is drawn for every reward; of an arm's, those on the tape come in the order of arrival.

    A rule of this kind has a `formula`, compiled by numba, and the numbers it reads; or, simpler, it is an
    `AdditiveIndexRule`.
    """

    @property
    def uses_round(self) -> bool:
        """Return whether the index changes with the round; if not, arms need never be compared."""
        return False

    @property
    def shifts(self) -> bool:
        """Return whether the index rises with the mean one for one, so that gaps need no known mean."""
        return False

    ties: Literal["lowest", "random"] = Field("lowest", description="arm that wins a tie: lowest or random")
    initial: int = Field(1, ge=1, lt=2**32, description="pulls of each arm before the rule decides")
    batch: int = Field(1, ge=1, lt=2**32, description="rounds from one decision to the next")
    delay: Delay = DELAY

    @model_validator(mode="before")
    @classmethod
    def _without_opening(cls, given: Any) -> Any:
        """Read `initial=0` as 1, which is the same: an arm never pulled comes first. Not so with a batch or a delay."""
        if not isinstance(given, dict) or given.get("initial") != 0 or isinstance(given["initial"], bool):
            return given
        if given.get("batch", 1) != 1 or given.get("delay", 0) != 0:
            raise ValueError(
                "expected initial=1 or more with a batch or a delay: without an opening, one arm would be pulled until "
                "its first reward is known, which no rule here does."
            )
        return {**given, "initial": 1}

    def conventions(self, noise: Noise) -> list[Self]:
        """Return the rule with ties broken at random; with normal rewards, no two indices are equal."""
        tied = isinstance(noise, Bernoulli) and self.ties == "lowest"
        return [self.model_copy(update={"ties": "random"})] if tied else []

    @staticmethod
    def formula(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return the index of an arm; `parameters` has the rule's `numbers` as attributes."""
        raise TypeError("an IndexRule needs a formula")

    @staticmethod
    def inverse(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return the mean at which the index has a value; by default found by bisection."""
        return mean_by_bisection(parameters, index, pulls, round)

    def parameters(self, horizon: int) -> Any:
        """Return what the kernels take as the rule's parameters."""
        formulas = {"index_value": type(self).formula, "mean_value": type(self).inverse}
        return formula_parameters(formulas, self.numbers(horizon))

    def index(self, mean: float, pulls: int, round: int, horizon: int) -> float:
        """Return an arm's index before round `round`, from its sample mean and its pulls."""
        return float("inf") if pulls == 0 else float(index_value(self.parameters(horizon), mean, pulls, round))

    @property
    def _merges(self) -> bool:
        """Return whether arms need never be compared, so that each advances on its own (`merge_tapes`)."""
        return not (self.uses_round or self.is_late) and self.ties == "lowest" and self.initial == self.batch == 1

    @property
    def _options(self) -> IndexOptions:
        from unbandit.kernels.simulate_index import IndexOptions

        return IndexOptions(self.uses_round, self.ties == "random", self.initial, self.batch, self.fixed_delay)

    def _simulate(self, bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
        from unbandit.kernels.simulate_index import merge_few_tapes, merge_tapes, pull_largest_index, room_to_play

        if self._merges:
            merge = merge_few_tapes if bandit.means.size <= FEW_ARMS else merge_tapes
            merge(bandit, parameters, first_run, actions)
        else:
            room = room_to_play(bandit.means.size, actions.shape[1], self.delay_distribution)
            pull_largest_index(bandit, parameters, first_run, self._options, *room, actions)

    def _simulate_available(
        self, bandit: Bandit, parameters: Any, first_run: int, spans: Spans, actions: NDArray[Any]
    ) -> None:
        from unbandit.kernels.simulate_available import pull_available_index

        pull_available_index(bandit, parameters, first_run, self._options, spans, actions)

    def _fixed_arms(self) -> str | None:
        late = self.random_delay is not None
        return "it is not defined when a rule with random delays has opened a new arm" if late else None

    def _gpu_loop(self, arms: int) -> tuple[str, tuple[Any, ...]]:
        return "merge" if self._merges else "index", self._options

    def _empty_evidence(self, runs: int, arms: int) -> Tallies:
        found = Tallies.zeros((runs, arms), "own", "of_best", "rounds")
        return replace(found, looks=np.zeros((runs, arms, LOOKS), np.int64)) if self.is_late else found

    def look_rule(self) -> LookRule | None:
        """Return when the rule looks at what it knows, if its rewards are late."""
        if self.random_delay is None:
            return LookRule(self.initial, self.batch, self.delay) if self.is_late else None
        if self.batch > 1:
            raise NotIdentifiable(
                f"{self.name}: with random delays a log does not show when the opening ended, and so not where batches "
                f"begin; got batch={self.batch} with delay={self.delay}.",
                remedy="Leave the batch out, or give the mean delay as a fixed one.",
            )
        return LookRule(self.initial, self.batch, 0, self.delay_distribution, self.ties == "lowest")

    def _gather(self, bandit: Bandit, parameters: Any, first_run: int, rows: Tallies) -> None:
        if self._merges and bandit.means.size >= MANY_ARMS:
            from unbandit.kernels.counts import count_by_levels

            own, of_best, _ = rows.at_switching
            count_by_levels(bandit, parameters, first_run, rows.pulls, own, of_best)
        else:
            super()._gather(bandit, parameters, first_run, rows)

    def _drawing_needed(self, instance: Instance, horizon: int) -> tuple[Any, Gather]:
        obstacles = {
            "rewards of 0 and 1": isinstance(instance.noise, Bernoulli),
            "an index that is not the sample mean plus a width in 1/sqrt(n)": not has_power_width(self, horizon),
            "an index that uses the round": self.uses_round,
            "ties broken at random": self.ties == "random",
            f"initial={self.initial}": self.initial > 1,
            f"batch={self.batch}": self.batch > 1,
            f"delay={self.delay}": self.is_late,
        }
        for obstacle, present in obstacles.items():
            if present:
                raise self._cannot_skip(f"{self.name} with {obstacle}")
        return width_parameters(self, horizon, table=False), self._count_over_bridges

    def _count_over_bridges(self, bandit: Bandit, parameters: Any, first_run: int, rows: Tallies) -> None:
        from unbandit.kernels.counts import count_by_bridges

        own, of_best, _ = rows.at_switching
        count_by_bridges(bandit, parameters, first_run, rows.pulls, own, of_best)


class RoundIndexRule(IndexRule):
    """Pull the arm with the largest index, which grows with ln t.

    In round `t` implementations take the logarithm of `t`, or of the pulls made so far, `t - 1`: the original UCB1 and
    several libraries do the latter. With rewards of 0 and 1 that alone decides whether a record is possible.
    """

    clock: Literal["round", "pulls"] = Field(
        "round", description="what t counts: the round to be decided, or the pulls made before it (one fewer)"
    )

    def _gpu_loop(self, arms: int) -> tuple[str, tuple[Any, ...]]:
        loop, options = super()._gpu_loop(arms)
        return "rising" if loop == "index" and self.uses_round else loop, options

    def conventions(self, noise: Noise) -> list[Self]:
        """Return the rule with ties broken at random, with the other clock, and with both."""
        ties = super().conventions(noise)
        if not self.uses_round or not isinstance(noise, Bernoulli):
            return ties
        other = {"clock": "round" if self.clock == "pulls" else "pulls"}
        return [*ties, *(each.model_copy(update=other) for each in (self, *ties))]

    @staticmethod
    def formula_by_pulls(parameters: Any, mean: float, pulls: Any, round: Any) -> float:
        """Return what `formula` does, with the pulls made before the round for `t`.

        A formula of its own, since compiled loops take the logarithm of a plain round once for all arms.
        """
        raise TypeError("a RoundIndexRule needs a formula_by_pulls")

    @staticmethod
    def inverse_by_pulls(parameters: Any, index: float, pulls: Any, round: Any) -> float:
        """Return what `inverse` does, likewise."""
        return mean_by_bisection(parameters, index, pulls, round)

    def parameters(self, horizon: int) -> Any:
        """Return what the kernels take as the rule's parameters: the formulas are those of its clock."""
        if self.clock == "round":
            return super().parameters(horizon)
        formulas = {"index_value": type(self).formula_by_pulls, "mean_value": type(self).inverse_by_pulls}
        return formula_parameters(formulas, self.numbers(horizon))


@inlined
def pulls_before(round: Any) -> float:
    """Return how many pulls were made before a round; at least 1, of which the logarithm is 0."""
    return float(max(round - 1.0, 1.0))


class AdditiveIndexRule(IndexRule):
    """Pull the arm with the largest `mean + width(pulls)`: an index rule that is given by its width alone."""

    shifts: ClassVar[bool] = True

    @abstractmethod
    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Return `C(n)` for pull counts of 1 and more."""

    def parameters(self, horizon: int) -> Any:
        """Return the widths as a table over pull counts; an arm never pulled has an infinite one."""
        return width_parameters(self, horizon)

    def index(self, mean: float, pulls: int, round: int, horizon: int) -> float:
        """Return `mean + C(pulls)`."""
        return float("inf") if pulls == 0 else float(mean + self.width(np.array([float(pulls)]), horizon)[0])
