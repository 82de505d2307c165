"""The grid of a study: instances, rules and horizons, with a number of runs in each cell.

Every cell has its own seed, so its numbers do not depend on the rest of the grid, and is cut into tasks.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from itertools import product
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
import polars as pl

from unbandit import checks, datasets
from unbandit._version import __version__
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.devices import DEVICES, Device, check_length, checked_device
from unbandit.errors import ParameterError
from unbandit.estimators.procedures import Method, check_comparable
from unbandit.formatting import counted
from unbandit.instance import Bernoulli, Gaussian, Instance
from unbandit.study import taskgrid
from unbandit.study.taskgrid import TaskGrid, Tasks

SCHEMA = "unbandit.study/2"

METHODS: dict[str, Method] = {
    "bracket": "bracket",
    "switching": "switching",
    "counts": "counts",
    "naive": "naive",
}

KEPT = ("rows", "sums")

MOST_ARMS_LISTED = 256  # with more arms than this, a digest stands for their names and means


def spaced(start: int, stop: int, points: int, spacing: str = "log") -> tuple[int, ...]:
    """Return whole numbers from `start` to `stop`, both included, evenly spaced on a log or a linear axis.

    Examples
    --------
    >>> spaced(500, 5_000, 4)
    (500, 1077, 2321, 5000)
    >>> spaced(500, 1_000, 3, "linear")
    (500, 750, 1000)
    """
    first, last, count = (checks.whole(*given) for given in (("from", start), ("to", stop), ("points", points)))
    if spacing not in ("log", "linear"):
        raise ParameterError(f'expected log or linear; got "{spacing}".', parameter="spacing")
    if not first < last:
        raise ParameterError(f"expected less than to, {last}; got {first}.", parameter="from")
    if count < 2:
        raise ParameterError(f"expected two or more; got {count}.", parameter="points")
    numbers = (np.geomspace if spacing == "log" else np.linspace)(first, last, count).round().astype(int).tolist()
    if len(set(numbers)) < count:
        refusal = f"expected at most as many as there are whole numbers; got {count} from {first} to {last}."
        raise ParameterError(refusal, parameter="points", remedy="Use fewer.")
    return tuple(numbers)


@runtime_checkable
class Family(Protocol):
    """Anything with a name that returns an instance for a horizon; it must pickle."""

    @property
    def name(self) -> str:
        """Return the name used in tables."""

    def __call__(self, horizon: int) -> Instance:
        """Return the instance for a horizon."""


@dataclass(frozen=True)
class ShrinkingGap:
    """Two arms whose gap is `Delta_T = T^-beta`.

    Parameters
    ----------
    beta
        0 or more.
    bernoulli
        Rewards are 0 or 1, the means symmetric around 1/2; else of unit variance, and the better arm has mean 1.

    Examples
    --------
    >>> family = ShrinkingGap(beta=0.5)
    >>> family.name, family(10_000).gaps.round(12).tolist()
    ('shrinking-gap beta=0.5', [0.0, 0.01])
    """

    beta: float
    bernoulli: bool = False

    def __post_init__(self) -> None:
        datasets.shrinking_gap(2, self.beta)  # refuses a beta out of range
        checks.flag("bernoulli", self.bernoulli)

    @property
    def name(self) -> str:
        """Return the family's name, which includes beta."""
        return f"shrinking-gap beta={self.beta}" + " Bernoulli" * self.bernoulli

    def __call__(self, horizon: int) -> Instance:
        """Return the two arms for a horizon."""
        instance = datasets.shrinking_gap(horizon, self.beta)  # refuses a gap that is too small
        if not self.bernoulli:
            return instance
        half = horizon**-self.beta / 2
        return Instance([0.5 + half, 0.5 - half], Bernoulli(), name=instance.name)


@dataclass(frozen=True)
class Estimator:
    """A method of estimation, with the constant of the naive one.

    Parameters
    ----------
    method
        `bracket`, `switching`, `counts` or `naive`.
    constant
        For the naive method only; `None` stands for sqrt(2) sigma, with the instance's sigma.

    Examples
    --------
    >>> str(Estimator("naive", 0.75)), str(Estimator("naive")), str(Estimator("counts"))
    ('naive:constant=0.75', 'naive', 'counts')
    """

    method: Method
    constant: float | None = None

    def __post_init__(self) -> None:
        checks.one_of("estimator", self.method, METHODS)
        if self.constant is None:
            return
        if self.method != "naive":
            refusal = f'expected a constant only for naive; got one for "{self.method}".'
            raise ParameterError(refusal, parameter="estimator")
        if not (math.isfinite(self.constant) and self.constant > 0):
            raise ParameterError(f"constant: expected a positive number; got {self.constant}.", parameter="estimator")
        object.__setattr__(self, "constant", float(self.constant))  # 1 and 1.0 are the same constant and text

    def __str__(self) -> str:
        return self.method if self.constant is None else f"{self.method}:constant={self.constant}"


def parse_estimator(text: str) -> Estimator:
    """Read `bracket`, `switching`, `counts`, `naive` or `naive:constant=0.75`."""
    if not isinstance(text, str):
        raise ParameterError(f"expected a text such as bracket; got {checks.brief(text)}.", parameter="estimator")
    name, colon, rest = (part.strip() for part in text.partition(":"))
    method = METHODS.get(name.lower(), name)
    if not colon:
        return Estimator(method)  # type: ignore[arg-type]  # refuses an unknown name
    key, equals, value = (part.strip() for part in rest.partition("="))
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if key != "constant" or not equals or math.isnan(number):
        raise ParameterError(f'expected name or naive:constant=NUMBER; got "{text}".', parameter="estimator")
    return Estimator(method, number)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class Cell:
    """One point of the grid: which instance, which rule, how many rounds, which seed."""

    instance_name: str
    instance: Instance
    rule: Demonstrator
    horizon: int
    seed: int


def cell_seed(seed: int, name: str, instance: Instance, rule: Demonstrator, horizon: int) -> int:
    """Derive the seed of a cell, from 0 to 2^64 - 1, from the cell and the study's seed alone.

    Means count to nine digits of the largest, so that a library that rounds the last bit differently changes nothing.
    """
    largest = float(abs(instance.means).max()) or 1.0
    shares = (instance.means / largest).round(9) + 0.0  # no negative zero
    means = [f"{largest:.9g}", *(f"{share:.9f}" for share in shares)]
    noise = f"gaussian {instance.sigma:.9g}" if isinstance(instance.noise, Gaussian) else "bernoulli"
    text = json.dumps([seed, name, means, noise, str(rule), horizon])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass(frozen=True, eq=False)
class StudyGrid(TaskGrid):
    """The checked arguments of a `Study`, its cells and its tasks."""

    instances: tuple[Instance | Family, ...]
    rules: tuple[Demonstrator, ...]
    horizons: tuple[int, ...]
    runs: int
    seed: int
    estimators: tuple[Estimator, ...]
    level: float
    device: Device
    keep: Literal["rows", "sums"]

    def __init__(
        self,
        instances: Iterable[Instance | Family | str] | Instance | Family | str,
        rules: Iterable[Demonstrator | str] | Demonstrator | str,
        horizons: Iterable[int] | int,
        runs: int,
        seed: int = 1,
        estimators: Iterable[Estimator | str] | Estimator | str = ("bracket",),
        level: float = 0.95,
        device: str = "cpu",
        keep: str = "rows",
    ) -> None:
        checked = {
            "instances": tuple(_instance(given) for given in _several("instances", instances)),
            "rules": tuple(_rule(given) for given in _several("rules", rules)),
            "horizons": tuple(checks.whole("horizons", given) for given in _several("horizons", horizons)),
            "runs": checks.whole("runs", runs, 2),  # two runs or more have a Monte-Carlo error
            "seed": checks.seed(seed),
            "estimators": tuple(
                given if isinstance(given, Estimator) else parse_estimator(given)
                for given in _several("estimators", estimators)
            ),
            "level": checks.level(level),
            "device": checks.one_of("device", device, DEVICES),
            "keep": checks.one_of("keep", keep, KEPT),
        }
        for field, value in checked.items():
            object.__setattr__(self, field, value)
        _different("instances", [each.name for each in self.instances], "Give one of them another name.")
        for field in ("rules", "horizons", "estimators"):
            _different(field, [str(each) for each in getattr(self, field)], "Leave one of them out.")
        for rule, estimator in product(self.rules, self.estimators):
            check_comparable(rule, estimator.method)
        if self.device == "cuda":
            check_length(max(self.horizons))
        _ = self.cells  # refuses a family that returns no instance at some horizon

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Return the points of the grid: instance by instance, within that rule by rule, then by horizon."""
        resolved = {}
        for given, horizon in product(self.instances, self.horizons):
            instance = given if isinstance(given, Instance) else given(horizon)
            if not isinstance(instance, Instance):
                refusal = f"expected {given.name} to return an Instance; got {checks.brief(instance)}."
                raise ParameterError(refusal, parameter="instances")
            resolved[given.name, horizon] = instance
        cells = []
        for given, rule, horizon in product(self.instances, self.rules, self.horizons):
            instance = resolved[given.name, horizon]
            seed = cell_seed(self.seed, given.name, instance, rule, horizon)
            cells.append(Cell(given.name, instance, rule, horizon, seed))
        return tuple(cells)

    @property
    def _task_rounds(self) -> int:
        return taskgrid.GPU_TASK_ROUNDS if self.device == "cuda" else taskgrid.TASK_ROUNDS

    @cached_property
    def tasks(self) -> Tasks:
        """Return the tasks: blocks of runs whose sizes depend on the grid alone."""
        rows = 0 if self.device == "cuda" and self.keep == "sums" else len(self.estimators)  # no run leaves the GPU
        sizes = (
            (cell.horizon, taskgrid.runs_per_task(cell.horizon, rows * len(cell.instance), self._task_rounds))
            for cell in self.cells
        )
        return Tasks(sizes, self.runs)

    @property
    def rounds(self) -> int:
        """Return how many rounds there are to simulate in all."""
        return self.runs * sum(self.horizons) * len(self.instances) * len(self.rules)

    def check(self) -> None:
        """Refuse a GPU that is not there."""
        checked_device(self.device)

    def describe(self) -> dict[str, Any]:
        """Return everything that determines the study's bytes, as plain values."""
        return {
            "schema": SCHEMA,
            "version": __version__,
            "code": taskgrid.code(),
            "polars": pl.__version__,
            "instances": [
                _describe_instance(given.name, given) if isinstance(given, Instance) else self._describe_family(given)
                for given in self.instances
            ],
            "rules": [taskgrid.describe_rule(rule) for rule in self.rules],
            "horizons": list(self.horizons),
            "runs": self.runs,
            "seed": self.seed,
            "estimators": [str(estimator) for estimator in self.estimators],
            "level": self.level,
            "device": self.device,
            "keep": self.keep,
            "tasks": {"rounds": self._task_rounds, "rows": taskgrid.TASK_ROWS, "count": len(self.tasks)},
        }

    def _describe_family(self, family: Family) -> dict[str, Any]:
        """Describe one of our families by its parameters, any other by the instances that it returns."""
        if type(family) is ShrinkingGap:  # a subclass may return anything
            return {"name": family.name, "family": "shrinking-gap"} | asdict(family)
        members = {cell.horizon: cell.instance for cell in self.cells if cell.instance_name == family.name}
        described = [_describe_instance(str(horizon), instance) for horizon, instance in members.items()]
        return {"name": family.name, "family": type(family).__qualname__, "members": described}

    def replace(self, **changes: Any) -> Self:
        """Return a study with some of its arguments changed."""
        return type(self)(**{field.name: getattr(self, field.name) for field in fields(self)} | changes)

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __repr__(self) -> str:
        sizes = (counted(len(getattr(self, noun + "s")), noun) for noun in ("instance", "rule", "horizon"))
        by = ", ".join(str(estimator) for estimator in self.estimators)
        return f"<Study: {' x '.join(sizes)}, {self.runs:,} runs each, estimated by {by}>"


def _describe_instance(name: str, instance: Instance) -> dict[str, Any]:
    """Describe an instance by all its arms or, where there are very many, by their number and a digest."""
    known: dict[str, Any] = {"name": name, "noise": str(instance.noise)}
    if len(instance) <= MOST_ARMS_LISTED:
        return known | {"arms": list(instance.arms), "means": instance.means.tolist()}
    text = json.dumps([instance.means.tolist(), list(instance.arms)])
    return known | {"arms": len(instance), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def _several(name: str, given: Any) -> list[Any]:
    """Return a list of things, given such a list or one thing; refuse an empty one."""
    one = isinstance(given, str | bytes | Demonstrator) or not checks.is_list(given)
    listed = [given] if one else list(given)
    if not listed:
        raise ParameterError("expected one or more; got none.", parameter=name)
    return listed


def _instance(given: Any) -> Instance | Family:
    if isinstance(given, str):
        return datasets.load(given)
    if not isinstance(given, Instance) and not (callable(given) and isinstance(given, Family)):
        refusal = f"expected an Instance, the name of a data set, or a callable with a name; got {checks.brief(given)}."
        raise ParameterError(refusal, parameter="instances")
    if not (isinstance(given.name, str) and given.name):
        raise ParameterError(f"expected a name for each; got {checks.brief(given.name)}.", parameter="instances")
    return given


def _rule(given: Any) -> Demonstrator:
    if isinstance(given, str):
        return parse_rule(given)
    if not isinstance(given, Demonstrator):
        raise ParameterError(f"expected demonstrators or their texts; got {checks.brief(given)}.", parameter="rules")
    return given


def _different(name: str, texts: list[str], remedy: str) -> None:
    twice = [text for text, count in Counter(texts).items() if count > 1]
    if twice:
        raise ParameterError(f'expected each once; got "{twice[0]}" twice.', parameter=name, remedy=remedy)
