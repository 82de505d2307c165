"""What every demonstrator is: a name, validated parameters, and a way to be simulated.

A rule is a frozen model whose fields are its parameters. Its *kind* (`IndexRule`, `EliminationRule`) knows how such a
rule is simulated and inverted, so a rule's own file holds its formula and little else. Defining a class with a `name`
is all it takes to have it simulated, inverted, listed and found by that name.
"""

from __future__ import annotations

import difflib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import pairwise
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from unbandit.errors import ParameterError
from unbandit.instance import Gaussian, Instance
from unbandit.kernels.bandit import Bandit
from unbandit.kernels.scalar import QUANTILE_TABLE
from unbandit.log import ActionLog
from unbandit.tape import Tape

__all__ = ["Demonstrator", "SwitchingCounts", "kept_table", "known_rules", "laid_out", "width_table"]

known_rules: dict[str, type[Demonstrator]] = {}
"""Every rule that has been defined, by name; filled as classes are defined."""


def kept_table(make: Callable[..., NDArray[np.float64]]) -> Callable[..., NDArray[np.float64]]:
    """Keep the last few tables that `make(..., horizon)` gave, for a study asks for the same ones again and again.

    Only those of a few million rounds: a longer one is quick to make beside its simulation, and large to keep.
    """
    keep = lru_cache(maxsize=4)(make)

    @wraps(make)
    def made(*arguments: Any) -> NDArray[np.float64]:
        return (keep if arguments[-1] <= 4_000_000 else make)(*arguments)

    return made


@kept_table
def _inverse(horizon: int) -> NDArray[np.float64]:
    """Return 1/n for n = 0 ... horizon + 1, with 1 at 0."""
    counts = np.arange(horizon + 2, dtype=np.float64)
    counts[0] = 1.0
    return np.divide(1.0, counts, out=counts)


class _HasWidth(Protocol):
    name: ClassVar[str]

    def width(self, pulls: NDArray[np.float64], horizon: int) -> NDArray[np.float64]: ...


@kept_table
def width_table(rule: _HasWidth, horizon: int) -> NDArray[np.float64]:
    """Return a rule's `C(n)` for n = 0 ... horizon + 1, infinite at 0."""
    table = np.empty(horizon + 2)
    table[0] = np.inf
    table[1:] = rule.width(np.arange(1.0, horizon + 2), horizon)
    if not np.isfinite(table[1:]).all():
        raise ParameterError(
            f"{rule.name}: expected finite widths over {horizon} rounds; got {table[1]}. Check {rule}."
        )
    return table


def laid_out(instance: Instance, horizon: int, seed: int) -> Bandit:
    """Lay out an instance for the kernels."""
    gaussian, ranked = isinstance(instance.noise, Gaussian), np.sort(instance.means)
    sample = ranked[np.linspace(0, len(instance) - 1, min(len(instance), 64)).round().astype(int)]
    sigma = instance.sigma if gaussian else 1.0
    return Bandit(
        np.array(instance.means), sample, sigma, not gaussian, _inverse(horizon), Tape(seed).key, QUANTILE_TABLE
    )


@dataclass(frozen=True)
class SwitchingCounts:
    """Hold what Procedures 1 and 2 read from demonstrations: one row a run, one column an arm.

    Attributes
    ----------
    pulls
        `n_{i,T}`.
    own, of_best
        Pulls of the arm and of the run's most-pulled arm at the arm's switching round; 0 where it has none.
    """

    pulls: NDArray[np.int64]
    own: NDArray[np.int64]
    of_best: NDArray[np.int64]


class Demonstrator(BaseModel, ABC):
    """Decide which arm to pull, by a rule with frozen, validated parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    """How the rule is called in the shell, in tables and in files."""

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
        numbers = {key: value for key, value in values.items() if isinstance(value, int | float)}
        usual = {key: field.default for key, field in type(self).model_fields.items()}
        others = {key: value for key, value in values.items() if key not in numbers and value != usual[key]}
        written = ",".join(f"{key}={value}" for key, value in (numbers | others).items())
        return f"{self.name}:{written}" if written else self.name

    def demonstrate(
        self, instance: Instance, horizon: int, *, runs: int = 1, seed: int = 0, threads: int | None = None
    ) -> ActionLog:
        """Play the rule on an instance and return the actions alone.

        Parameters
        ----------
        horizon
            `T`, the number of rounds.
        runs
            How many independent demonstrations; run `r` is the same whatever their number.
        threads
            By default one a core; the result does not depend on it.
        """
        horizon, runs = _whole("horizon", horizon), _whole("runs", runs)
        smallest = np.min_scalar_type(len(instance) - 1)
        actions = np.empty((runs, horizon), dtype=smallest)
        bandit = laid_out(instance, horizon, seed)

        def fill(first: int, last: int) -> None:
            self._simulate(bandit, first, actions[first:last])

        _in_blocks(fill, runs, threads)
        return ActionLog.from_codes(actions, instance.arms)

    def switching_counts(
        self, instance: Instance, horizon: int, *, runs: int = 1, seed: int = 0, threads: int | None = None
    ) -> SwitchingCounts:
        """Play the rule and return only what the switching estimators read; the logs themselves are not kept."""
        horizon, runs = _whole("horizon", horizon), _whole("runs", runs)
        counts = SwitchingCounts(*(np.empty((runs, len(instance)), np.int64) for _ in range(3)))
        bandit = laid_out(instance, horizon, seed)

        def fill(first: int, last: int) -> None:
            rows = SwitchingCounts(*(part[first:last] for part in (counts.pulls, counts.own, counts.of_best)))
            self._count(bandit, horizon, first, rows)

        _in_blocks(fill, runs, threads)
        return counts

    @abstractmethod
    def _simulate(self, bandit: Bandit, first_run: int, actions: NDArray[Any]) -> None:
        """Fill `actions`, one row a run, with the runs from `first_run` on."""

    def _count(self, bandit: Bandit, horizon: int, first_run: int, rows: SwitchingCounts) -> None:
        """Fill the counts of the runs from `first_run` on: simulate a few at a time, and read them."""
        from unbandit.kernels.switching import pulls_and_last, switching_counts_of_runs

        arms = bandit.means.size
        few = max(1, 2_000_000 // horizon)
        scratch = np.empty((min(few, len(rows.pulls)), horizon), np.min_scalar_type(arms - 1))
        for start in range(0, len(rows.pulls), few):
            block = scratch[: min(few, len(rows.pulls) - start)]
            self._simulate(bandit, first_run + start, block)
            pulls, last = pulls_and_last(block.reshape(-1), np.arange(len(block) + 1) * horizon, arms)
            part = slice(start, start + len(block))
            rows.pulls[part] = pulls
            switching_counts_of_runs(block, pulls, last, rows.own[part], rows.of_best[part])


def _in_blocks(fill: Any, runs: int, threads: int | None) -> None:
    """Call `fill(first, last)` over blocks of runs, on threads: the kernels let go of the interpreter."""
    workers = min(runs, os.cpu_count() or 1 if threads is None else _whole("threads", threads))
    if workers == 1:
        fill(0, runs)
        return
    ends = np.linspace(0, runs, workers * (4 if runs >= 64 * workers else 1) + 1).astype(int)
    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(fill, first, last) for first, last in pairwise(ends)]:
            future.result()


def _whole(name: str, value: int) -> int:
    """Check a count."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**32:
        raise ParameterError(f"{name}: expected a whole number from 1 to 2^32 - 1; got {value!r}.")
    return int(value)


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
    message = message.replace("Input should be", "expected")
    return f"{rule.name}: {field}: {message}; got {first['input']!r}."
