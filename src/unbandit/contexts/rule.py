"""Rules that choose by the features of arms: a ridge regression of rewards on features, and a choice with it.

Before round `t` the learner has `A_t = ridge I + sum x x'` and `b_t = sum x y` of the rounds whose rewards it knows,
and with them `M_t = A_t^-1 b_t`. A rule's own file says how it chooses among the offers of the round. Defining a class
with a `name` is enough to have it found by that name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from unbandit import checks
from unbandit.contexts.design import Design, design_of
from unbandit.contexts.log import ContextLog
from unbandit.contexts.simulation import ContextInstance, choices_at, demonstrated, offers_of
from unbandit.demonstrators.base import Demonstrator, is_linear, rule_or_family
from unbandit.demonstrators.base import parse_rule as plain_rule
from unbandit.demonstrators.family import RuleFamily, refusal_of
from unbandit.demonstrators.rule import OtherName, Rule, aliases_of, by_any_name, rule_in
from unbandit.errors import NotIdentifiable, ParameterError, option
from unbandit.formatting import counted, joined
from unbandit.kernels.simulate_linear import LinearOptions

RIDGE = {name: OtherName("ridge") for name in ("lambda", "lam", "lambda_", "reg", "l2")}
"""What the ridge is called elsewhere."""

known_linear_rules: dict[str, type[LinearRule]] = {}
"""Every rule of this kind that has been defined, by name; filled as classes are defined."""


class LinearRule(Rule):
    """A rule that chooses among offers by a linear model of their features.

    With a `delay` of `d` the reward of round `s` is known from round `s + d + 1` on. With a `batch` of `b` the learner
    takes up rewards every `b` rounds, and chooses in between with what it knew then.

    Parameters
    ----------
    ridge
        What `A` begins with: the precision of the learner's prior, in units of the noise it assumes.
    intercept
        Whether the model has a constant beside the features.
    disjoint
        Whether each arm has parameters of its own.
    """

    kind: ClassVar[int]
    """Which choice the kernels make: `UCB`, `THOMPSON`, `GREEDY` or `SOFTMAX` of `kernels/simulate_linear.py`."""

    tuning: ClassVar[str]
    """The parameter that says how much the rule explores."""

    called: ClassVar[Mapping[str, OtherName]] = RIDGE

    unwritten: ClassVar[frozenset[str]] = frozenset({"intercept", "disjoint", "batch", "delay"})

    ridge: float = Field(1.0, gt=0, description="number that A begins with, on its diagonal")
    intercept: bool = Field(False, description="whether there is a constant beside the features")
    disjoint: bool = Field(False, description="whether each arm has parameters of its own")
    ties: Literal["lowest", "random"] = Field("lowest", description="offer that wins a tie: the first one, or random")
    batch: int = Field(1, ge=1, lt=2**32, description="rounds from one look at the rewards to the next")
    delay: int = Field(0, ge=0, lt=2**32, description="rounds by which a reward is known later than in the next round")

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            known_linear_rules[cls.name] = cls

    @property
    def strength(self) -> float:
        """Return the value of the parameter that says how much the rule explores."""
        return float(getattr(self, self.tuning))

    def design(self, log: ContextLog) -> Design:
        """Return the vectors that the rule's model multiplies; see `Design`."""
        return design_of(checked_contexts(log), intercept=self.intercept, disjoint=self.disjoint)

    def known(self, length: int) -> NDArray[np.int64]:
        """Return how many rewards the learner knows when it chooses, for each round of a demonstration.

        Examples
        --------
        >>> from unbandit import LinUCB
        >>> LinUCB(batch=3, delay=1).known(8).tolist()
        [0, 0, 0, 2, 2, 2, 5, 5]
        """
        rounds = np.arange(length)
        return np.asarray(np.maximum(rounds - rounds % self.batch - self.delay, 0))

    def refuse_unlearnt(self, log: ContextLog) -> None:
        """Refuse a log in which the learner knew no reward when it chose last: its choices depend on none of them."""
        if log.rewards is not None or not log.rounds or self.known(log.rounds)[-1] > 0:
            return
        names = [name for name in ("batch", "delay") if name in self.model_fields_set]
        numbers = joined(f"{name}={getattr(self, name)}" for name in names) if names else ""
        text = f"{f'With {numbers} the' if names else 'The'} learner knew no reward when it made the last of "
        raise NotIdentifiable(
            f"{text}its {counted(log.rounds, 'choice')}, so they show nothing of the coefficients.",
            remedy=f"Check {joined(names)}, in rounds." if names else "Take a longer log.",
        )

    def options(self) -> LinearOptions:
        """Return what the kernels take as the rule."""
        return LinearOptions(self.kind, self.strength, self.ridge, self.ties == "random", self.batch, self.delay)

    def demonstrate(
        self, instance: ContextInstance, contexts: ArrayLike | ContextLog, *, runs: int = 1, seed: int = 0,
        rewards: bool = False, threads: int | None = None, first_run: int = 0,
        feature_names: Sequence[object] | None = None, arms: Sequence[object] | None = None,
    ) -> ContextLog:  # fmt: skip
        """Play the rule and return what an observer sees.

        Parameters
        ----------
        instance
            What rewards follow: `ContextInstance(theta, sigma)`.
        contexts
            The features of the offers: an array (rounds, arms, features); an array (rounds, features) of which every
            arm has the same row, for a disjoint model; or a log, of which the choices are left out.
        runs
            The number of demonstrations, all with these contexts.
        first_run
            The number of the first one: runs of one seed are told apart by their numbers.
        rewards
            Whether the log has the rewards too.
        feature_names
            Names for the features of an array; by default x1, x2, ...
        arms
            Names for the arms of an array; by default 0, 1, ...

        Examples
        --------
        >>> from unbandit import ContextInstance, LinUCB
        >>> contexts = np.random.default_rng(1).normal(size=(100, 4, 3))
        >>> LinUCB(alpha=1).demonstrate(ContextInstance([1.0, 0.0, -1.0], sigma=0.5), contexts, seed=1)
        <ContextLog: 1 demonstration, 100 rounds, 4 arms, 3 features>
        """
        offered = offers_of(contexts, instance, disjoint=self.disjoint, feature_names=feature_names, arms=arms)
        return demonstrated(
            self.options(), self.design(offered), offered, instance, runs=runs, seed=seed, rewards=rewards,
            threads=threads, first_run=first_run,
        )  # fmt: skip

    def choices_at(
        self, design: Design, thetas: NDArray[np.float64], sigma: float, *, seed: int = 0, threads: int | None = None,
        first_run: int = 0,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:  # fmt: skip
        """Play the rule once at each row of `thetas`; return what was chosen and gained, one row per run."""
        return choices_at(self.options(), design, thetas, sigma, seed, threads, first_run)


def checked_contexts(log: object) -> ContextLog:
    """Refuse anything but a log with contexts."""
    if isinstance(log, ContextLog):
        return log
    text = f"expected a log with contexts; got {checks.brief(log)}."
    raise ParameterError(text, parameter="log", value=log, remedy="Read one with ContextLog.read.")


def linear_rule_named(name: str, parameter: str = "rule") -> type[LinearRule]:
    """Return a rule for logs with contexts by its name or an alias; refuse others."""
    known = dict(sorted(known_linear_rules.items()))
    return by_any_name(name, known) or known[checks.one_of(parameter, name, known, also=aliases_of(known))]


def linear_rule_or_family(text: str | LinearRule | RuleFamily, parameter: str = "rule") -> LinearRule | RuleFamily:
    """Read a rule for a log with contexts, also one with numbers that are to be fitted; refuse rules for plain logs.

    >>> linear_rule_or_family("linucb:alpha=2,disjoint=true")
    LinUCB(alpha=2.0, ridge=1.0, disjoint=True)
    """
    if _is_for_contexts(text):
        found: LinearRule | RuleFamily = rule_in(text, linear_rule_named, parameter) if isinstance(text, str) else text
        return found
    plain = rule_or_family(text, parameter)  # type: ignore[arg-type]  # refuses what is no rule at all
    known = ", ".join(sorted(known_linear_rules))
    remedy = f"Take one of {known}; for a log without contexts leave {option('features')} out."
    refusal = f'expected a rule that chooses by features; got "{plain}", which does not read them.'
    raise ParameterError(refusal, parameter=parameter, value=str(plain), remedy=remedy)


def _is_for_contexts(text: object) -> bool:
    """Return whether a rule, a family or the text of either chooses by features."""
    if isinstance(text, str):
        return by_any_name(text.partition(":")[0].strip(), known_linear_rules) is not None
    return isinstance(text, Rule | RuleFamily) and is_linear(text)


def parse_rule(
    text: str | Demonstrator | LinearRule | RuleFamily, parameter: str = "rule"
) -> Demonstrator | LinearRule:
    """Read `name:key=value,...`, for logs with contexts or without; take a rule as it is, and refuse everything else.

    A name may be an alias: `ts` is `thompson`, `egreedy` is `epsilon-greedy`.

    >>> parse_rule("ucb:alpha=0.25,sigma=0.14").sigma, parse_rule("lin-ts:v=0.5").v
    (0.14, 0.5)
    """
    if not _is_for_contexts(text):
        return plain_rule(text, parameter)  # type: ignore[arg-type]
    found = linear_rule_or_family(text, parameter)  # type: ignore[arg-type]
    if isinstance(found, RuleFamily):
        raise refusal_of(found, parameter)
    return found
