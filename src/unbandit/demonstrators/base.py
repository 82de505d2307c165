"""The base of every demonstrator: a name, validated parameters, and how it is simulated; and rules by name.

A rule is a frozen model whose fields are its parameters. Its *kind* (`IndexRule`, `EliminationRule`, `RandomisedRule`)
knows how such rules are simulated and inverted, so a rule's own file holds its formula and little else. Defining a
class with a `name` is enough to have it simulated, inverted, listed and found by that name.
"""

from __future__ import annotations

import importlib
import pkgutil
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.demonstrators.delay import RandomDelay
from unbandit.demonstrators.family import RuleFamily, refusal_of
from unbandit.demonstrators.rule import Examples as Examples
from unbandit.demonstrators.rule import Rule, aliases_of, by_any_name, rule_in
from unbandit.demonstrators.widths import inverse_table
from unbandit.devices import check_length, checked_device, within_memory
from unbandit.errors import NotIdentifiable, ParameterError, option
from unbandit.instance import Bernoulli, Instance, Noise, checked_instance
from unbandit.kernels.bandit import Bandit
from unbandit.kernels.rng import QUANTILE_TABLE
from unbandit.log import ActionLog
from unbandit.log.availability import Availability, AvailabilityTable, availability_of
from unbandit.log.tallies import LookRule, Tallies, tally, with_looks
from unbandit.progress import interruptible, unless_stopped
from unbandit.tape import Tape

if TYPE_CHECKING:
    from unbandit.kernels.gpu.stage import Stage
    from unbandit.kernels.simulate_available import Spans

Draw = Literal["every", "needed"]  # which rewards are drawn: that of every pull, or only what decides the counts
Grid = Mapping[str, Sequence[Any]]  # values worth considering for each of some parameters

Gather = Callable[[Bandit, Any, int, Any], None]
"""A function that fills in the evidence of some runs, given a bandit, the rule's parameters and the first run."""

LONG = 20_000_000  # rounds whose simulation is worth a thread, so that Ctrl-C need not wait for its end
MOST_SCRATCH_ROUNDS = 2_000_000  # rounds simulated at a time where the actions are only counted

known_rules: dict[str, type[Demonstrator]] = {}
"""Every rule that has been defined, by name; filled as classes are defined."""


class Demonstrator(Rule, ABC):
    """A rule that decides which arm to pull, with frozen, validated parameters."""

    proposed: ClassVar[bool] = True
    """Whether `identify` and `check` consider the rule without being asked to; they were calibrated with those."""

    reveals: ClassVar[Literal["values", "best", "nothing"]] = "values"
    """What the actions reveal: the arms' values, only which arm was judged best, or nothing."""

    @property
    def is_late(self) -> bool:
        """Return whether the rule learns of rewards with a `delay`; a rule without that parameter does not."""
        return getattr(self, "delay", 0) != 0

    @property
    def random_delay(self) -> RandomDelay | None:
        """Return the distribution of the rule's delay, if that is random."""
        delay = getattr(self, "delay", 0)
        return delay if isinstance(delay, RandomDelay) else None

    @property
    def fixed_delay(self) -> int:
        """Return the rule's delay if it is a number; 0 where it is random, or where there is none."""
        return 0 if self.random_delay is not None else int(getattr(self, "delay", 0))

    @property
    def delay_distribution(self) -> NDArray[np.float64]:
        """Return the probabilities of a random delay as the kernels take them; none where the delay is fixed."""
        return np.empty(0) if self.random_delay is None else self.random_delay.cumulative.copy()

    @property
    def bernoulli_only(self) -> bool:
        """Return whether the rule accepts only rewards of 0 and 1."""
        return False

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            known_rules[cls.name] = cls

    @classmethod
    def grid(cls, noise: Noise) -> Grid:
        """Return values worth considering for unknown parameters, possibly in units of `noise.deviation`."""
        return {}

    @classmethod
    def forms(cls, noise: Noise, horizon: int) -> Sequence[Grid]:
        """Return grids of other forms of the rule, such as one that explores less and less, which `identify` tries too.

        The last parameter of each is one whose values between the ends are considered, on a scale of ratios.
        """
        return ()

    @classmethod
    def guesses(cls, noise: Noise, log: ActionLog) -> list[tuple[Self, float]]:
        """Return rules that may have produced a log, each with its prior probability.

        By default every combination of the `grid`, all equally likely, whatever the log.
        """
        grid = cls.grid(noise)
        combined = [cls(**dict(zip(grid, values, strict=True))) for values in product(*grid.values())]
        return [(rule, 1 / len(combined)) for rule in combined]

    def conventions(self, noise: Noise) -> list[Self]:
        """Return the rule as other implementations play it, where that decides whether a record is possible."""
        return []

    def advice(self, log: ActionLog) -> str | None:
        """Return what else of this rule to try, where it does not fit a log and the choices hint at it."""
        return None

    def for_arms(self, arms: int) -> Self:
        """Return the rule for this number of arms: itself, unless its formula needs the number."""
        return self

    def numbers(self, horizon: int) -> dict[str, float]:
        """Return the numbers that the rule's formulas read: by default its numeric parameters, and the horizon."""
        given = self.model_dump() | ({} if self.random_delay is None else {"delay": self.random_delay.mean})
        values = {key: float(value) for key, value in given.items() if isinstance(value, int | float)}
        return values | {"horizon": float(horizon)}

    def _facing(self, instance: Instance) -> Self:
        """Return the rule as it plays an instance; refuse rewards that it cannot take."""
        checked_instance(instance)
        if self.bernoulli_only and not isinstance(instance.noise, Bernoulli):
            text = f"expected Bernoulli rewards, for which {self} is made; got {instance.noise}."
            remedy = "Give the instance noise=Bernoulli(), or take another rule."
            raise ParameterError(text, owner=self.name, value=instance.noise, remedy=remedy)
        return self.for_arms(len(instance))

    def demonstrate(
        self, instance: Instance, horizon: int, *, runs: int = 1, seed: int = 0, threads: int | None = None,
        first_run: int = 0, device: str = "cpu", availability: Availability | AvailabilityTable | None = None,
    ) -> ActionLog:  # fmt: skip
        """Play the rule on an instance and return the actions alone.

        Parameters
        ----------
        horizon
            `T`, the number of rounds.
        runs
            The number of independent demonstrations; run `r` is the same whatever the number.
        threads
            By default one per core; the result does not depend on it.
        first_run
            The number of the first run, to play part of a larger set.
        device
            `cpu`, or `cuda` for a GPU: the same actions, except for one demonstration in very many.
        availability
            The rounds in which arms can be pulled, if not in all: ``{"2": (101, None), "1": (None, 300)}`` for an arm
            that arrives in round 101 and one that is withdrawn after round 300; or the path of a table.
        """
        horizon, runs = checks.whole("horizon", horizon), checks.whole("runs", runs)
        first_run = checks.whole("first_run", first_run, 0, 2**32 - runs)  # all must have a place on the tape
        rule, bandit = self._facing(instance), laid_out(instance, horizon, seed)
        actions = np.empty((runs, horizon), dtype=np.min_scalar_type(len(instance) - 1))
        if availability is not None:
            found = availability_of(availability, instance.arms)
            if checked_device(device) == "cuda":
                text = f'expected {option("device", "cpu")} where arms arrive late or are withdrawn; got "cuda".'
                raise ParameterError(text, parameter="device")
            rule._play_available(bandit, horizon, first_run, found, actions, threads)
            return ActionLog.from_codes(actions, instance.arms)
        if checked_device(device) == "cuda":
            with within_memory():
                rule._staged(bandit, horizon).actions(first_run, runs, actions)
            return ActionLog.from_codes(actions, instance.arms)
        parameters = rule.parameters(horizon)

        def fill(first: int, last: int) -> None:
            rule._simulate(bandit.block(first, last), parameters, first_run + first, actions[first:last])

        _in_blocks(fill, runs, horizon, threads)
        return ActionLog.from_codes(actions, instance.arms)

    def demonstrate_at(
        self, means: NDArray[np.float64], noise: Noise, horizon: int, *, length: int | None = None, seed: int = 0,
        threads: int | None = None, first_run: int = 0, availability: Availability | None = None,
    ) -> NDArray[Any]:  # fmt: skip
        """Play the rule once at each row of `means` (runs x arms) and return the actions, one row per run.

        `length` is the number of rounds to play, if fewer than the rule's horizon.
        """
        if not isinstance(means, np.ndarray) or means.dtype.kind not in "iuf" or means.ndim != 2 or not means.size:
            text = f"expected an array of numbers, runs by arms; got {checks.brief(means)}."
            raise ParameterError(text, parameter="means", value=means)
        (runs, arms), horizon = means.shape, checks.whole("horizon", horizon, most=2**63 - 1)
        played = horizon if length is None else min(checks.whole("length", length), horizon)
        first_run = checks.whole("first_run", first_run, 0, 2**32 - runs)
        rule = self._facing(Instance(means[0], noise))
        # every run has its own means: its "order" picks them from all of them
        bandit = laid_out(Instance(means.reshape(-1), noise), played, seed, np.arange(means.size).reshape(runs, arms))
        bandit = bandit._replace(means=np.array(means[0]))
        parameters, actions = rule.parameters(horizon), np.empty((runs, played), np.min_scalar_type(arms - 1))
        if availability is not None:
            rule._play_available(bandit, horizon, first_run, availability, actions, threads)
            return actions

        def fill(first: int, last: int) -> None:
            rule._simulate(bandit.block(first, last), parameters, first_run + first, actions[first:last])

        _in_blocks(fill, runs, played, threads)
        return actions

    def _play_available(
        self, bandit: Bandit, horizon: int, first_run: int, availability: Availability, actions: NDArray[Any],
        threads: int | None,
    ) -> None:  # fmt: skip
        """Fill `actions` with runs in which arms arrive late or are withdrawn."""
        from unbandit.kernels.simulate_available import Spans

        self.check_availability()
        availability.check_rounds(actions.shape[1])
        parameters, spans = self.parameters(horizon), Spans(availability.first, availability.last)

        def fill(first: int, last: int) -> None:
            block = bandit.block(first, last)
            self._simulate_available(block, parameters, first_run + first, spans, actions[first:last])

        _in_blocks(fill, len(actions), actions.shape[1], threads)

    def check_availability(self) -> None:
        """Refuse a rule of which it is not defined what it does where arms arrive late or are withdrawn."""
        if reason := self._fixed_arms():
            raise NotIdentifiable(
                f"{self.name}: where arms arrive late or are withdrawn, {reason}.",
                remedy="If another rule made the log, give that one; or read the rounds with the same arms as a log of "
                "their own. Without the table the answer would be wrong.",
            )

    def _fixed_arms(self) -> str | None:
        """Return why the rule needs the same arms in all rounds; None if it does not."""
        if self.is_late or int(getattr(self, "batch", 1)) > 1:
            return "it is not defined how a rule with a batch or a delay opens a new arm"
        if getattr(self, "opening", "listed") == "random":
            return "it is not defined where a new arm comes in a random order"
        played = type(self)._simulate_available is not Demonstrator._simulate_available
        return None if played else "it is not defined how a rule of this kind continues"

    def _simulate_available(
        self, bandit: Bandit, parameters: Any, first_run: int, spans: Spans, actions: NDArray[Any]
    ) -> None:
        """Fill `actions` with the runs from `first_run` on, each arm being there in some rounds only."""
        raise NotImplementedError

    def evidence(
        self, instance: Instance, horizon: int, *, runs: int = 1, seed: int = 0, threads: int | None = None,
        first_run: int = 0, orders: NDArray[np.int64] | None = None, length: int | None = None, device: str = "cpu",
        draw: Draw = "every",
    ) -> Tallies:  # fmt: skip
        """Play the rule and return only the counts that the estimator of its kind reads; logs are not kept.

        Parameters
        ----------
        instance, horizon, runs, seed, threads, first_run, device
            As for `demonstrate`.
        orders
            The order of the arms in each run (runs x arms); by default the instance's. Run `r` is then a demonstration
            on `instance.reordered(orders[r])`, and its columns are that instance's arms.
        length
            The number of rounds to play, if fewer than the rule's horizon.
        draw
            "every" draws the reward of every pull, and counts what `demonstrate` shows. "needed" draws only the sums of
            rewards that decide the counts (`kernels.bridges`): other demonstrations with the same distribution, in a
            time that hardly grows with the horizon. Only for UCB with Gaussian rewards.

        Examples
        --------
        >>> from unbandit import UCB, Instance
        >>> UCB(alpha=0.25).evidence(Instance([1.0, 0.5]), horizon=10**8, draw="needed").pulls.sum().tolist()
        100000000
        """
        horizon, runs = checks.whole("horizon", horizon), checks.whole("runs", runs)
        first_run = checks.whole("first_run", first_run, 0, 2**32 - runs)  # all must have a place on the tape
        rule = self._facing(instance)
        placed = None if orders is None else _orders(orders, runs, len(instance))
        played = horizon if length is None else min(checks.whole("length", length), horizon)
        checks.one_of("draw", draw, get_args(Draw))
        if draw == "needed" and isinstance(device, str) and device == "cuda":
            text = f'"needed" expects {option("device", "cpu")}; got "cuda".'
            raise ParameterError(text, parameter="draw", remedy="Leave one of the two out.")
        bandit, gathered = laid_out(instance, played, seed, placed), rule._empty_evidence(runs, len(instance))
        if checked_device(device) == "cuda":
            with within_memory():
                for first, last, counts in rule._staged(bandit, horizon).gathered(first_run, runs):
                    for name, column in gathered.part(first, last).arrays.items():
                        column[:] = getattr(counts, name)
            return gathered
        gather: Gather = rule._gather
        if draw == "every":
            parameters = rule.parameters(horizon)
        else:
            parameters, gather = rule._drawing_needed(instance, horizon)

        def fill(first: int, last: int) -> None:
            gather(bandit.block(first, last), parameters, first_run + first, gathered.part(first, last))

        _in_blocks(fill, runs, horizon, threads)
        return gathered

    def _empty_evidence(self, runs: int, arms: int) -> Tallies:
        """Return room for what the kind's estimator reads."""
        raise NotIdentifiable("it is not known how to read this rule's demonstrations.", owner=self.name)

    def _gather(self, bandit: Bandit, parameters: Any, first_run: int, rows: Tallies) -> None:
        """Fill in the evidence of the runs from `first_run` on: by default simulate a few at a time, and count them."""
        (runs, arms), horizon = rows.pulls.shape, bandit.horizon
        few = max(1, MOST_SCRATCH_ROUNDS // horizon)
        scratch = np.empty((min(few, runs), horizon), np.min_scalar_type(arms - 1))
        for start in range(0, runs, few):
            stop = min(start + few, runs)
            block, part = scratch[: stop - start], rows.part(start, stop)
            self._simulate(bandit.block(start, stop), parameters, first_run + start, block)
            offsets = np.arange(len(block) + 1) * horizon
            counted = tally(block.reshape(-1), offsets, arms, "counts", workers=1)
            if (looks := self.look_rule()) is not None:
                counted = with_looks(counted, block.reshape(-1), offsets, looks)
            for name, column in part.arrays.items():
                column[:] = getattr(counted, name)

    def look_rule(self) -> LookRule | None:
        """Return when an index rule whose rewards are late looks at what it knows; None for any other rule."""
        return None

    def _staged(self, bandit: Bandit, horizon: int, *, drawn: bool = False) -> Stage:
        """Lay instance and rule out in a GPU's memory; `drawn` if each run draws the order of its arms."""
        from unbandit.kernels.gpu.stage import Stage

        check_length(bandit.horizon)
        if self.is_late:
            text = f"a rule whose rewards are delayed cannot be played on a GPU; got {self}."
            raise ParameterError(text, owner=self.name, remedy=f"Take {option('device', 'cpu')}.")
        if getattr(self, "opening", "listed") == "random":
            text = f"a rule that opens in a random order cannot be played on a GPU; got {self}."
            raise ParameterError(text, owner=self.name, remedy=f"Take {option('device', 'cpu')}.")
        computed = getattr(self, "power_width", None)  # faster there than a table
        parameters = (computed if computed is not None and self._width_is_plain() else self.parameters)(horizon)
        return Stage(bandit, parameters, *self._gpu_loop(bandit.means.size), drawn=drawn)

    def _width_is_plain(self) -> bool:
        """Return whether a rule with the paper's width uses it at every pull."""
        return True

    def _gpu_loop(self, arms: int) -> tuple[str, tuple[Any, ...]]:
        """Return how the rule is played on a GPU: one of `kernels.gpu.stage.LOOPS`, and its options."""
        raise ParameterError(
            "this kind of rule cannot be played on a GPU.", owner=self.name, remedy=f"Take {option('device', 'cpu')}."
        )

    def _drawing_needed(self, instance: Instance, horizon: int) -> tuple[Any, Gather]:
        """Return the rule's parameters, and the function that gathers evidence without drawing every reward."""
        raise self._cannot_skip(self.name)

    def _cannot_skip(self, description: str) -> ParameterError:
        text = f'"needed" expects Gaussian rewards and UCB as in the paper; got {description}.'
        remedy = f"Leave it out: {option('draw', 'every')} is for all rules."
        return ParameterError(text, parameter="draw", remedy=remedy)

    @abstractmethod
    def parameters(self, horizon: int) -> Any:
        """Return what the kernels take as the rule's parameters."""

    @abstractmethod
    def _simulate(self, bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
        """Fill `actions`, one row per run, with the runs from `first_run` on."""


def _in_blocks(fill: Callable[[int, int], None], runs: int, horizon: int, threads: int | None) -> None:
    """Call `fill(first, last)` over blocks of runs, on threads; several blocks per thread, if there are many runs."""
    workers = checks.threads(threads, runs)
    blocks = 1 if workers == 1 else workers * (4 if runs >= 64 * workers else 1)
    ends = np.linspace(0, runs, blocks + 1).astype(int).tolist()
    call = interruptible if runs * horizon >= LONG else unless_stopped
    call(checks.in_threads, fill, list(pairwise(ends)), workers)


def _orders(given: NDArray[np.int64], runs: int, arms: int) -> NDArray[np.int64]:
    """Check that every run has an order of all the arms: the kernels do not."""
    orders = np.ascontiguousarray(given)
    whole_numbers = np.issubdtype(orders.dtype, np.integer)
    if not (whole_numbers and orders.shape == (runs, arms) and (np.sort(orders, axis=1) == np.arange(arms)).all()):
        raise ParameterError(
            f"expected {runs} rows, each with 0 to {arms - 1} once; got another array.", parameter="orders"
        )
    return orders.astype(np.int64, copy=False)


def laid_out(instance: Instance, horizon: int, seed: int, orders: NDArray[np.int64] | None = None) -> Bandit:
    """Lay out an instance for the kernels; `orders` (runs x arms) is the order of the arms in each run, if given."""
    bernoulli, ranked = isinstance(instance.noise, Bernoulli), np.sort(instance.means)
    sample = ranked[np.linspace(0, len(instance) - 1, min(len(instance), 64)).round().astype(int)]
    means = np.array(instance.means)
    return Bandit(
        means=means,
        sample=sample,
        sigma=1.0 if bernoulli else instance.sigma,
        bernoulli=bernoulli,
        inverse=inverse_table(horizon),
        key=Tape(seed).key,
        table=QUANTILE_TABLE,
        horizon=horizon,
        listed=means.copy(),
        orders=np.empty((0, means.size), np.int64) if orders is None else orders,
    )


def rules() -> dict[str, type[Demonstrator]]:
    """Return every rule by name: those of this package, those of entry points, and those defined since.

    Examples
    --------
    >>> {"sae", "ucb"} <= set(rules())
    True
    """
    _import_all()
    return dict(sorted(known_rules.items()))


@cache
def _import_all() -> None:
    """Import each file of this folder and each entry point `unbandit.demonstrators`: that defines their rules."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        importlib.import_module(f"unbandit.demonstrators.{module.name}")
    for entry in entry_points(group="unbandit.demonstrators"):
        _load(entry)


def _load(entry: EntryPoint) -> None:
    """Load another package's rules; if that fails, or they take names in use, warn and leave them out."""
    package = entry.dist.name if entry.dist is not None else entry.value
    before = dict(known_rules)
    try:
        entry.load()
    except Exception as error:  # whatever it is, it is that package's, and must not stop this one
        known_rules.clear()
        known_rules.update(before)
        warnings.warn(
            f'The rules of the package "{package}" ({entry.value}) are left out: loading them failed with '
            f"{type(error).__name__}: {error}. Update or remove that package.",
            stacklevel=4,
        )
        return
    for name in [name for name, rule in before.items() if known_rules[name] is not rule]:
        known_rules[name] = before[name]
        warnings.warn(
            f'The rule "{name}" of the package "{package}" is left out: there is one of that name already. '
            "Ask its authors to rename it.",
            stacklevel=4,
        )


def aliases() -> dict[str, type[Demonstrator]]:
    """Return every other name of a rule, with its rule; what is a rule's own name is no other one's alias.

    >>> aliases()["ts"].name
    'thompson'
    """
    return aliases_of(rules())


def rule_named(name: str, parameter: str = "rule") -> type[Demonstrator]:
    """Return a rule by its name or an alias, whatever its capitals, hyphens, underscores and blanks."""
    known = rules()
    found = by_any_name(name, known)
    if found is None and by_any_name(name, linear_rules()) is not None:
        raise _refuse_linear(name, parameter)
    return found or known[checks.one_of(parameter, name, known, also=[*aliases(), *linear_rules()])]


def _refuse_linear(rule: str, parameter: str) -> ParameterError:
    """Say that a rule that chooses by features cannot be used here."""
    text = f'expected a rule that chooses among arms without features; got "{rule}".'
    named = option("features", ["x1", "x2"])
    remedy = (
        f"The commands estimate and report read logs with contexts, with {named}, and check tries all rules that "
        "choose by features; in Python, context_posterior reads them."
    )
    return ParameterError(text, parameter=parameter, value=rule, remedy=remedy)


def is_linear(rule: Any) -> bool:
    """Return whether a rule, or a family of such, chooses by the features of arms."""
    kind = rule.kind if isinstance(rule, RuleFamily) else type(rule)
    return issubclass(kind, Rule) and not issubclass(kind, Demonstrator)


def linear_rules() -> dict[str, type[Rule]]:
    """Return every rule that chooses by the features of arms, by name; `unbandit.contexts` has them.

    Examples
    --------
    >>> sorted(linear_rules())
    ['lin-epsilon-greedy', 'lin-softmax', 'lints', 'linucb']
    """
    found: dict[str, type[Rule]] = importlib.import_module("unbandit.contexts").known_linear_rules
    return dict(sorted(found.items()))


def parse_rule(text: str | Demonstrator | RuleFamily, parameter: str = "rule") -> Demonstrator:
    """Read `name:key=value,...`, given as `parameter`; take a rule as it is, and refuse everything else.

    A name may be an alias: `ts` is `thompson`, `egreedy` is `epsilon-greedy`.

    Examples
    --------
    >>> parse_rule("ucb:alpha=0.25,sigma=0.14").sigma
    0.14
    >>> parse_rule("ucbb")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: rule: expected one of ...; got "ucbb". Did you mean "ucb"?
    """
    found = rule_or_family(text, parameter)
    if isinstance(found, RuleFamily):
        raise refusal_of(found, parameter)
    return found


def rule_or_family(text: str | Demonstrator | RuleFamily, parameter: str = "rule") -> Demonstrator | RuleFamily:
    """Read a rule as `parse_rule` does, and also one with numbers that are to be fitted.

    >>> rule_or_family("learning-softmax:fit").free
    ('rate', 'temperature')
    """
    if isinstance(text, Demonstrator | RuleFamily) and not is_linear(text):
        return text
    if isinstance(text, Rule | RuleFamily):
        raise _refuse_linear(str(text), parameter)
    if not isinstance(text, str):
        got = f"the class {text.__name__}" if isinstance(text, type) else type(text).__name__
        remedy = 'Give one such as UCB(alpha=0.25), or its text: "ucb:alpha=0.25".'
        remedy += " The log comes before it." if hasattr(text, "demonstrations") else ""
        raise ParameterError(f"expected a rule; got {got}.", parameter=parameter, value=text, remedy=remedy)
    found: Demonstrator | RuleFamily = rule_in(text, rule_named, parameter)
    return found
