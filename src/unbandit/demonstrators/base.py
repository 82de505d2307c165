"""What every demonstrator is: a name, validated parameters, and a way to be simulated.

A rule is a frozen model whose fields are its parameters. Its *kind* (`IndexRule`, `EliminationRule`) knows how such a
rule is simulated and inverted, so a rule's own file holds its formula and little else. Defining a class with a `name`
is all it takes to have it simulated, inverted, listed and found by that name.
"""

from __future__ import annotations

import difflib
import importlib
import os
import pkgutil
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from unbandit.demonstrators.width import inverse_table
from unbandit.devices import check_length, checked_device, within_memory
from unbandit.errors import NotIdentifiable, ParameterError
from unbandit.instance import Bernoulli, Gaussian, Instance
from unbandit.kernels.bandit import Bandit
from unbandit.kernels.rng import QUANTILE_TABLE
from unbandit.log import ActionLog
from unbandit.tape import Tape

if TYPE_CHECKING:
    from unbandit.kernels.gpu.stage import How, Stage

Draw = Literal["every", "needed"]
"""Which rewards are drawn: that of every pull, or only what decides the counts."""

Gather = Callable[[Bandit, Any, int, Any], None]
"""Fill the evidence of some runs: from a bandit, the rule's parameters and the number of the first run."""

known_rules: dict[str, type[Demonstrator]] = {}
"""Every rule that has been defined, by name; filled as classes are defined."""


class Demonstrator(BaseModel, ABC):
    """Decide which arm to pull, by a rule with frozen, validated parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    """How the rule is called in the shell, in tables and in files."""

    examples: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)
    """Parameters worth trying: the contract tests put each of them to every test."""

    reveals: ClassVar[Literal["values", "best", "nothing"]] = "values"
    """What the actions can tell: what arms are worth, only which arm was judged best, or nothing."""

    unwritten: ClassVar[frozenset[str]] = frozenset({"initial", "batch"})
    """Numbers that are left out where a rule is written, if they are as usual."""

    @property
    def bernoulli_only(self) -> bool:
        """Return whether the rule takes rewards of 0 and 1 alone."""
        return False

    def __init__(self, **parameters: Any) -> None:
        try:
            super().__init__(**parameters)
        except ValidationError as error:
            raise ParameterError(_explain(type(self), error)) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        if "name" in cls.__dict__:
            known_rules[cls.name] = cls

    @classmethod
    def summary(cls) -> str:
        """Return the rule in one line: the first of its docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0]

    def __str__(self) -> str:
        """Write the rule as the shell takes it: its numbers, then whatever else is not as usual."""
        values = {key: value for key, value in self.model_dump().items() if value is not None}
        usual = {key: field.default for key, field in type(self).model_fields.items()}
        numbers = {
            key: value for key, value in values.items() if isinstance(value, int | float) and key not in self.unwritten
        }
        others = {key: value for key, value in values.items() if key not in numbers and value != usual[key]}
        written = ",".join(f"{key}={value}" for key, value in (numbers | others).items())
        return f"{self.name}:{written}" if written else self.name

    @classmethod
    def grid(cls, sigma: float | None) -> Mapping[str, Sequence[Any]]:
        """Return values worth considering for parameters that nobody knows; by default none but the usual ones.

        `sigma` is the standard deviation of a reward, None for rewards of 0 and 1; values may be in units of it.
        """
        return {}

    @classmethod
    def guesses(cls, sigma: float | None, log: ActionLog) -> list[tuple[Self, float]]:
        """Return rules that may have made a log, each with its probability beforehand.

        By default every combination of the `grid`, all equally likely, whatever the log is.
        """
        grid = cls.grid(sigma)
        combined = [cls(**dict(zip(grid, values, strict=True))) for values in product(*grid.values())]
        return [(rule, 1 / len(combined)) for rule in combined]

    def for_arms(self, arms: int) -> Self:
        """Return the rule as it plays this many arms: itself, unless its formula needs their number."""
        return self

    def _facing(self, instance: Instance) -> Self:
        """Return the rule as it plays an instance; refuse rewards that it cannot take."""
        if self.bernoulli_only and not isinstance(instance.noise, Bernoulli):
            raise ParameterError(
                f"{self.name}: expected Bernoulli rewards, for which {self} is made; got {instance.noise}. "
                "Give the instance noise=Bernoulli(), or take another rule."
            )
        return self.for_arms(len(instance))

    def demonstrate(
        self, instance: Instance, horizon: int, *, runs: int = 1, seed: int = 0, threads: int | None = None,
        first_run: int = 0, device: str = "cpu",
    ) -> ActionLog:  # fmt: skip
        """Play the rule on an instance and return the actions alone.

        Parameters
        ----------
        horizon
            `T`, the number of rounds.
        runs
            How many independent demonstrations; run `r` is the same whatever their number.
        threads
            By default one a core; the result does not depend on it.
        first_run
            The number of the first of them, to play some of a larger set.
        device
            `cpu`, or `cuda` for a GPU: the same actions, but for a demonstration in very many.
        """
        horizon, runs, first_run = whole("horizon", horizon), whole("runs", runs), _first(first_run, runs)
        smallest = np.min_scalar_type(len(instance) - 1)
        actions = np.empty((runs, horizon), dtype=smallest)
        rule = self._facing(instance)
        bandit = laid_out(instance, horizon, seed)
        if checked_device(device) == "cuda":
            with within_memory():
                rule._staged(bandit, horizon).actions(first_run, runs, actions)
            return ActionLog.from_codes(actions, instance.arms)
        parameters = rule.parameters(horizon)

        def fill(first: int, last: int) -> None:
            rule._simulate(bandit.block(first, last), parameters, first_run + first, actions[first:last])

        in_blocks(fill, runs, threads)
        return ActionLog.from_codes(actions, instance.arms)

    def evidence(
        self, instance: Instance, horizon: int, *, runs: int = 1, seed: int = 0, threads: int | None = None,
        first_run: int = 0, orders: NDArray[np.int64] | None = None, length: int | None = None, device: str = "cpu",
        draw: Draw = "every",
    ) -> Any:  # fmt: skip
        """Play the rule and return only what the estimator of its kind reads; the logs themselves are not kept.

        Parameters
        ----------
        instance, horizon, runs, seed, threads, first_run, device
            As for `demonstrate`.
        orders
            For each run the order in which its arms stand (runs x arms); by default as the instance lists them. Run `r`
            is then a demonstration on `instance.reordered(orders[r])`, and its columns are that instance's arms.
        length
            How many of the rounds are played, if not all of them up to the rule's horizon.
        draw
            "every" draws the reward of every pull, and counts what `demonstrate` shows. "needed" draws only those sums
            of rewards that decide the counts (`kernels.bridges`): other demonstrations of the same distribution, in a
            time that hardly grows with the horizon. For UCB with Gaussian rewards alone.

        Examples
        --------
        >>> from unbandit import UCB, Instance
        >>> UCB(alpha=0.25).evidence(Instance([1.0, 0.5]), horizon=10**8, draw="needed").pulls.sum().tolist()
        100000000
        """
        horizon, runs, first_run = whole("horizon", horizon), whole("runs", runs), _first(first_run, runs)
        placed = None if orders is None else _orders(orders, runs, len(instance))
        rule, played = self._facing(instance), horizon if length is None else min(whole("length", length), horizon)
        if draw not in get_args(Draw):
            raise ParameterError(f'expected "every" or "needed"; got {draw!r}.', parameter="draw")
        if draw == "needed" and device == "cuda":
            raise ParameterError(
                '"needed" expects device="cpu"; got "cuda". Leave one of the two out.', parameter="draw"
            )
        bandit, found = laid_out(instance, played, seed, placed), rule._empty_evidence(runs, len(instance))
        if checked_device(device) == "cuda":
            with within_memory():
                for first, last, read in rule._staged(bandit, horizon).gathered(first_run, runs):
                    for name, column in vars(found.part(first, last)).items():
                        column[:] = getattr(read, name)
            return found
        ways = {"every": rule._drawing_every, "needed": rule._drawing_needed}
        parameters, gather = ways[draw](instance, horizon)

        def fill(first: int, last: int) -> None:
            gather(bandit.block(first, last), parameters, first_run + first, found.part(first, last))

        in_blocks(fill, runs, threads)
        return found

    def _empty_evidence(self, runs: int, arms: int) -> Any:
        """Return room for what the kind's estimator reads: a dataclass with a method `part(first, last)`."""
        raise NotIdentifiable(f"{self.name}: nothing is known of how to read this rule's demonstrations.")

    def _gather(self, bandit: Bandit, parameters: Any, first_run: int, rows: Any) -> None:
        """Fill the evidence of the runs from `first_run` on."""
        raise NotIdentifiable(f"{self.name}: nothing is known of how to read this rule's demonstrations.")

    def _staged(self, bandit: Bandit, horizon: int, *, drawn: bool = False) -> Stage:
        """Lay instance and rule out in a GPU's memory; `drawn` if each run draws the order of its arms."""
        from unbandit.kernels.gpu.stage import Stage

        check_length(bandit.horizon)
        computed = getattr(self, "power_width", None)  # quicker there than a table
        plain = computed is not None and self._width_is_plain()
        parameters = computed(horizon) if computed is not None and plain else self.parameters(horizon)
        return Stage(bandit, parameters, self._way(bandit.means.size), drawn=drawn)

    def _width_is_plain(self) -> bool:
        """Return whether a rule with the paper's width uses it at every pull."""
        return True

    def _way(self, arms: int) -> How:
        """Return how the rule is played on a GPU."""
        raise ParameterError(f"{self.name}: this kind of rule is not played on a GPU. Take device cpu.")

    def _drawing_every(self, instance: Instance, horizon: int) -> tuple[Any, Gather]:
        """Return the rule's parameters, and what gathers evidence from every reward."""
        return self.parameters(horizon), self._gather

    def _drawing_needed(self, instance: Instance, horizon: int) -> tuple[Any, Gather]:
        """Return the rule's parameters, and what gathers evidence without drawing every reward."""
        raise ParameterError(
            f'"needed" expects Gaussian rewards and UCB as in the paper; got {self.name}. '
            'Leave it out: draw="every" is for all rules.',
            parameter="draw",
        )

    @abstractmethod
    def parameters(self, horizon: int) -> Any:
        """Return what the kernels take as the rule's parameters."""

    @abstractmethod
    def _simulate(self, bandit: Bandit, parameters: Any, first_run: int, actions: NDArray[Any]) -> None:
        """Fill `actions`, one row a run, with the runs from `first_run` on."""


def in_blocks(fill: Callable[[int, int], None], runs: int, threads: int | None) -> None:
    """Call `fill(first, last)` over blocks of runs, on threads: the kernels let go of the interpreter."""
    workers = min(runs, os.cpu_count() or 1 if threads is None else whole("threads", threads))
    if workers == 1:
        fill(0, runs)
        return
    ends = np.linspace(0, runs, workers * (4 if runs >= 64 * workers else 1) + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(fill, first, last) for first, last in pairwise(ends)]:
            future.result()


def whole(name: str, value: int) -> int:
    """Check a count."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**32:
        raise ParameterError(f"expected a whole number from 1 to 2^32 - 1; got {value!r}.", parameter=name)
    return int(value)


def _first(value: int, runs: int) -> int:
    """Check the number of the first run: the last one must have a place on the tape."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= 2**32 - runs:
        raise ParameterError(f"expected a whole number from 0 to 2^32 - {runs}; got {value!r}.", parameter="first_run")
    return int(value)


def _orders(given: NDArray[np.int64], runs: int, arms: int) -> NDArray[np.int64]:
    """Check that every run has an order of all the arms: the kernels look no further."""
    orders = np.ascontiguousarray(given)
    whole_numbers = np.issubdtype(orders.dtype, np.integer)
    if not (whole_numbers and orders.shape == (runs, arms) and (np.sort(orders, axis=1) == np.arange(arms)).all()):
        raise ParameterError(
            f"expected {runs} rows, each with 0 to {arms - 1} once; got another array.", parameter="orders"
        )
    return orders.astype(np.int64, copy=False)


def _explain(rule: type[Demonstrator], error: ValidationError) -> str:
    """Say in one sentence what is wrong with a rule's parameters."""
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        near = difflib.get_close_matches(field, rule.model_fields, 1)
        meant = f' Did you mean "{near[0]}"?' if near else ""
        return f'{rule.name}: expected parameters among {", ".join(rule.model_fields)}; got "{field}".{meant}'
    message = first["msg"].removeprefix("Value error, ")
    if not field:
        return f"{rule.name}: {message}"
    message = "expected a number" if "parsing" in first["type"] else message.replace("Input should be", "expected")
    meaning = rule.model_fields[field].description if field in rule.model_fields else None
    return f"{rule.name}: {field}: {message}; got {first['input']!r}." + (f" It is the {meaning}." if meaning else "")


def laid_out(instance: Instance, horizon: int, seed: int, orders: NDArray[np.int64] | None = None) -> Bandit:
    """Lay out an instance for the kernels; `orders` (runs x arms) has each run's order of the arms, if it has one."""
    gaussian, ranked = isinstance(instance.noise, Gaussian), np.sort(instance.means)
    sample = ranked[np.linspace(0, len(instance) - 1, min(len(instance), 64)).round().astype(int)]
    sigma = instance.sigma if gaussian else 1.0
    means = np.array(instance.means)
    inverse = inverse_table(horizon)
    key, kept_orders = Tape(seed).key, np.empty((0, means.size), np.int64) if orders is None else orders
    return Bandit(means, sample, sigma, not gaussian, inverse, key, QUANTILE_TABLE, horizon, means.copy(), kept_orders)


def rules() -> dict[str, type[Demonstrator]]:
    """Return every rule by name: those of this package's files, of entry points, and those defined since.

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
    """Load another package's rules; if that fails, or they take names that are given, say so and do without them."""
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
            "Ask its authors to name it otherwise.",
            stacklevel=4,
        )


def parse_rule(text: str) -> Demonstrator:
    """Read `name:key=value,...`.

    Examples
    --------
    >>> parse_rule("ucb:alpha=0.25,sigma=0.14").sigma
    0.14
    >>> parse_rule("ucbb")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: rule: expected one of ...; got "ucbb". Did you mean "ucb"?
    """
    name, _, rest = text.strip().partition(":")
    known = rules()
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), known, 1)
        meant = f' Did you mean "{near[0]}"?' if near else ""
        raise ParameterError(f'expected one of {", ".join(known)}; got "{name}".{meant}', parameter="rule")
    parameters: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise ParameterError(f'expected name:key=value,key=value; got "{part}" in "{text}".', parameter="rule")
        if key in parameters:
            raise ParameterError(f'expected each parameter once; got "{key}" twice in "{text}".', parameter="rule")
        parameters[key] = value
    return known[name.lower()](**parameters)
