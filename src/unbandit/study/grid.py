"""Horizons at even distances.

Instances that change with the horizon, as in the paper's study of gaps that shrink.

Which estimators a study asks for, as people write them.

Where a cell's randomness comes from: a seed that depends on the cell and on the study's seed alone.

A study: the grid of instances, rules and horizons, with so many runs in each of its cells.

Every cell has a seed of its own, so a cell's numbers do not depend on what else is in the grid; every cell is cut into
tasks, so a study can stop anywhere and go on later.

What a study is, in words and numbers: all that determines its bytes.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import numpy as np
import polars as pl

from unbandit import datasets
from unbandit._version import __version__
from unbandit.checks import whole
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.devices import DEVICES, Device, check_length, checked_device
from unbandit.errors import ParameterError
from unbandit.estimators.procedures import Method, check_comparable
from unbandit.instance import Bernoulli, Gaussian, Instance
from unbandit.study.taskgrid import GPU_ROUNDS, ROUNDS, ROWS, Task, Tasks, Work, block, code, rule_described
from unbandit.tape import Tape

if TYPE_CHECKING:
    import polars as pl

    from unbandit.study.grid import Study
    from unbandit.study.progress import Progress
    from unbandit.study.study import StudyResult


def spaced(start: int, stop: int, points: int, spacing: str = "log") -> tuple[int, ...]:
    """Return whole numbers from `start` to `stop`, both among them: evenly spaced, or in their logarithm.

    Examples
    --------
    >>> spaced(500, 5_000, 4)
    (500, 1077, 2321, 5000)
    >>> spaced(500, 1_000, 3, "linear")
    (500, 750, 1000)
    """
    first, last, count = whole("from", start), whole("to", stop), whole("points", points)
    if spacing not in ("log", "linear"):
        raise ParameterError(f'expected log or linear; got "{spacing}".', parameter="spacing")
    if not first < last:
        raise ParameterError(f"expected less than to, {last}; got {first}.", parameter="from")
    if count < 2:
        raise ParameterError(f"expected two or more; got {count}.", parameter="points")
    numbers = (np.geomspace if spacing == "log" else np.linspace)(first, last, count).round().astype(int).tolist()
    if len(set(numbers)) < count:
        raise ParameterError(
            f"expected no more than there are whole numbers apart; got {count} from {first} to {last}. Take fewer.",
            parameter="points",
        )
    return tuple(numbers)


@runtime_checkable
class Family(Protocol):
    """Stand for anything that has a name and gives an instance for a horizon; it must pickle."""

    @property
    def name(self) -> str:
        """Return how the family is called in tables."""

    def __call__(self, horizon: int) -> Instance:
        """Return the instance for a horizon."""


@dataclass(frozen=True)
class ShrinkingGap:
    """Give two arms whose gap is `Delta_T = T^-beta`.

    Parameters
    ----------
    beta
        From 0 up.
    bernoulli
        Rewards are 0 or 1, with means as far above 1/2 as below it; otherwise they have unit variance, and the better
        arm is worth 1.

    Examples
    --------
    >>> family = ShrinkingGap(beta=0.5)
    >>> family.name, family(10_000).gaps.round(12).tolist()
    ('shrinking-gap beta=0.5', [0.0, 0.01])
    >>> ShrinkingGap(beta=0.5, bernoulli=True)(10_000).means.tolist()
    [0.505, 0.495]
    """

    beta: float
    bernoulli: bool = False

    def __post_init__(self) -> None:
        datasets.shrinking_gap(2, self.beta)  # it refuses a beta out of range
        if not isinstance(self.bernoulli, bool):
            raise ParameterError(f"expected True or False; got {self.bernoulli!r}.", parameter="bernoulli")

    @property
    def name(self) -> str:
        """Return the family's name, which holds its beta."""
        return f"shrinking-gap beta={self.beta}" + " Bernoulli" * self.bernoulli

    def __call__(self, horizon: int) -> Instance:
        """Return the two arms for a horizon."""
        instance = datasets.shrinking_gap(horizon, self.beta)  # it refuses a gap that is too small
        if not self.bernoulli:
            return instance
        half = horizon**-self.beta / 2
        return Instance([0.5 + half, 0.5 - half], Bernoulli(), name=instance.name)


METHODS: dict[str, Method] = {"switching": "switching", "counts": "counts", "naive": "naive"}


@dataclass(frozen=True)
class Estimator:
    """Hold a method of estimation, and the constant that the naive one may be given.

    Parameters
    ----------
    method
        `switching`, `counts` or `naive`.
    constant
        Of the naive method alone; `None` stands for sqrt(2) sigma, sigma being the instance's.

    Examples
    --------
    >>> str(Estimator("naive", 0.75)), str(Estimator("naive")), str(Estimator("counts"))
    ('naive:constant=0.75', 'naive', 'counts')
    """

    method: Method
    constant: float | None = None

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            near = difflib.get_close_matches(str(self.method).lower(), METHODS, 1)
            meant = f' Did you mean "{near[0]}"?' if near else ""
            raise ParameterError(
                f'expected one of {", ".join(METHODS)}; got "{self.method}".{meant}', parameter="estimator"
            )
        if self.constant is None:
            return
        if self.method != "naive":
            raise ParameterError(
                f'expected a constant only for naive; got one for "{self.method}".', parameter="estimator"
            )
        if not (math.isfinite(self.constant) and self.constant > 0):
            raise ParameterError(f"constant: expected a positive number; got {self.constant}.", parameter="estimator")
        object.__setattr__(self, "constant", float(self.constant))  # 1 and 1.0 are one constant, and one text

    def __str__(self) -> str:
        return self.method if self.constant is None else f"{self.method}:constant={self.constant}"


def parse_estimator(text: str) -> Estimator:
    """Read `switching`, `counts`, `naive` or `naive:constant=0.75`.

    Examples
    --------
    >>> parse_estimator("naive:constant=0.75").constant
    0.75
    >>> parse_estimator("switch")
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: estimator: expected one of switching, counts, naive; got "switch". \
Did you mean "switching"?
    """
    if not isinstance(text, str):
        raise ParameterError(f"expected a text such as switching; got {text!r}.", parameter="estimator")
    name, colon, rest = (part.strip() for part in text.partition(":"))
    method = METHODS.get(name.lower(), name)
    if not colon:
        return Estimator(method)  # type: ignore[arg-type]  # it refuses another name itself
    key, equals, value = (part.strip() for part in rest.partition("="))
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if key != "constant" or not equals or math.isnan(number):
        raise ParameterError(f'expected name or naive:constant=NUMBER; got "{text}".', parameter="estimator")
    return Estimator(method, number)  # type: ignore[arg-type]


def cell_seed(seed: int, name: str, instance: Instance, rule: Demonstrator, horizon: int) -> int:
    """Derive the seed of a cell, from 0 to 2^64 - 1: it depends on the cell and the study's seed, on nothing else.

    Means count to nine digits of the largest, so that a library which rounds the last bit differently changes nothing.

    Examples
    --------
    >>> from unbandit import UCB
    >>> cell_seed(1, "two", Instance([1.0, 0.5]), UCB(), 500) == cell_seed(1, "two", Instance([1.0, 0.5]), UCB(), 501)
    False
    """
    said = json.dumps([seed, name, _means(instance), _noise(instance), str(rule), horizon])
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big")


def _means(instance: Instance) -> list[str]:
    largest = float(abs(instance.means).max()) or 1.0
    shares = (instance.means / largest).round(9) + 0.0  # there is one zero
    return [f"{largest:.9g}", *(f"{share:.9f}" for share in shares)]


def _noise(instance: Instance) -> str:
    return f"gaussian {instance.sigma:.9g}" if isinstance(instance.noise, Gaussian) else "bernoulli"


KEPT = ("rows", "sums")


@dataclass(frozen=True, eq=False)
class Cell:
    """Hold one point of the grid: what is played, by which rule, for how long, with which seed."""

    instance_name: str
    instance: Instance
    rule: Demonstrator
    horizon: int
    seed: int


@dataclass(frozen=True, eq=False)
class Study(Work):
    """Hold a grid to simulate and estimate; equal grids are equal studies.

    Parameters
    ----------
    instances
        Instances, data sets by name, or families that give an instance for a horizon (`ShrinkingGap`).
    rules
        Demonstrators, or their text such as ``"ucb:alpha=0.25"``.
    horizons
        `T`, the rounds of a run.
    runs
        Runs of each cell, two or more.
    seed
        The same seed gives the same numbers, on any number of threads.
    estimators
        Any of ``"switching"``, ``"counts"``, ``"naive"``, ``"naive:constant=0.75"``.
    level
        Of the intervals, between 0 and 1.
    device
        `cpu`, or `cuda` for a GPU: the same answers, in bits of its own.
    keep
        `rows` (one for each estimator, run and arm), or `sums`: over runs, all that statistics are made of, and small
        for any number of runs.

    Raises
    ------
    ParameterError
        For anything wrong in the grid.
    NotIdentifiable
        For a rule that one of the estimators cannot read.

    Examples
    --------
    >>> study = Study(["two-armed", "linear"], ["ucb:alpha=0.25", "sae"], [500, 5_000], runs=100)
    >>> study
    <Study: 2 instances x 2 rules x 2 horizons, 100 runs each, estimated by switching>
    >>> len(study.cells), len(study.tasks), study.rounds
    (8, 8, 2200000)
    >>> study.cells[1].instance_name, study.cells[1].horizon
    ('two-armed', 5000)
    """

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
        estimators: Iterable[Estimator | str] | Estimator | str = ("switching",),
        level: float = 0.95,
        device: str = "cpu",
        keep: str = "rows",
    ) -> None:
        settled = {
            "instances": tuple(_instance(given) for given in _several("instances", instances)),
            "rules": tuple(_rule(given) for given in _several("rules", rules)),
            "horizons": tuple(whole("horizons", given) for given in _several("horizons", horizons)),
            "runs": checked_runs(runs),
            "seed": checked_seed(seed),
            "estimators": tuple(
                given if isinstance(given, Estimator) else parse_estimator(given)
                for given in _several("estimators", estimators)
            ),
            "level": _level(level),
            "device": _one_of("device", device, DEVICES),
            "keep": _one_of("keep", keep, KEPT),
        }
        for field, value in settled.items():
            object.__setattr__(self, field, value)
        _different("instances", [each.name for each in self.instances], "Give one of them a name of its own.")
        for field in ("rules", "horizons", "estimators"):
            _different(field, [str(each) for each in getattr(self, field)], "Leave one of them out.")
        for rule, estimator in product(self.rules, self.estimators):
            check_comparable(rule, estimator.method)
        if self.device == "cuda":
            check_length(max(self.horizons))
        _ = self.cells  # a family that gives no instance at some horizon is refused here

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, runs: int | None = None, seed: int | None = None) -> Study:
        """Read a study from a TOML file; `runs` and `seed` take the place of those in the file."""
        from unbandit.study.description import read_study

        return read_study(path, runs=runs, seed=seed)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Return the points of the grid: for each instance each rule, for each rule each horizon."""
        resolved = {
            (given.name, horizon): given if isinstance(given, Instance) else _resolved(given, horizon)
            for given, horizon in product(self.instances, self.horizons)
        }
        return tuple(
            Cell(
                given.name,
                instance := resolved[given.name, horizon],
                rule,
                horizon,
                cell_seed(self.seed, given.name, instance, rule, horizon),
            )
            for given, rule, horizon in product(self.instances, self.rules, self.horizons)
        )

    @cached_property
    def tasks(self) -> Tasks:
        """Return the work, cut into blocks of runs whose sizes depend on the grid alone."""
        rows, rounds = len(self.estimators), GPU_ROUNDS if self.device == "cuda" else ROUNDS
        if self.device == "cuda" and self.keep == "sums":
            rows = 0  # no run leaves any
        sizes = ((cell.horizon, block(cell.horizon, rows * len(cell.instance), rounds)) for cell in self.cells)
        return Tasks(sizes, self.runs)

    @property
    def rounds(self) -> int:
        """Return how many rounds there are to simulate in all."""
        return self.runs * sum(self.horizons) * len(self.instances) * len(self.rules)

    def check(self) -> None:
        """Refuse a GPU that is not there."""
        checked_device(self.device)

    def describe(self) -> dict[str, Any]:
        """Return all that determines the study's bytes, as plain values."""
        return identity(self)

    def rows(self, task: Task) -> pl.DataFrame:
        """Simulate and estimate the runs of a task: one row for each estimator, run and arm, or for each fold."""
        from unbandit.study.rows import rows, sums

        return (sums if self.keep == "sums" else rows)(self, task)

    def on(self, device: str, *, keep: str | None = None) -> Study:
        """Return the same study on another device, keeping rows or sums.

        Examples
        --------
        >>> Study("two-armed", "ucb", 100, runs=10).on("cpu", keep="sums").keep
        'sums'
        """
        return replaced(self, device=device, keep=self.keep if keep is None else keep)

    def run(
        self,
        folder: str | os.PathLike[str],
        *,
        executor: Executor | str | Any = None,
        address: str | None = None,
        wait: float = 20.0,
        threads: int | None = None,
        progress: Progress | None = None,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> StudyResult:
        """Do what is not yet done, and keep it in a folder as Parquet parts, one a task.

        Parameters
        ----------
        folder
            Made if it is not there. One with the same study goes on where it stopped; any other is refused. An address
            such as ``s3://bucket/results`` is a place elsewhere, which fsspec must know.
        executor
            ``"threads"``, the default; ``"ray"`` or ``"dask"``, a cluster; or anything with
            `submit(function, *arguments)` that gives futures. The parts do not depend on it.
        address
            Of the cluster's head; without one a cluster is started on this machine, and stopped at the end.
        wait
            Seconds that the head has to answer.
        threads
            How many of them, or workers of a cluster on this machine: one a core unless told.
        progress
            Is told of every task done; by default nobody is.
        say
            Is told in a sentence what is worth knowing: parts that are made again, workers that died.

        Raises
        ------
        ClusterError
            If the head cannot be reached, or is lost; what is done is kept, and the same call goes on.
        OutputError, ResumeError
            If the folder cannot be written, or is not this study's.

        Examples
        --------
        >>> import tempfile
        >>> study = Study("two-armed", "ucb", [100, 200], runs=10)
        >>> result = study.run(tempfile.mkdtemp())
        >>> result.scan().collect().height
        40
        """
        from unbandit.study.dispatch import run
        from unbandit.study.study import StudyResult

        return StudyResult(
            self,
            run(
                self, folder, executor=executor, address=address, wait=wait, threads=threads, progress=progress, say=say
            ),
        )

    def __reduce__(self) -> tuple[type[Study], tuple[Any, ...]]:
        return Study, tuple(getattr(self, field.name) for field in fields(self))

    def __repr__(self) -> str:
        sizes = [
            f"{len(values)} {noun}{'s' * (len(values) > 1)}"
            for noun, values in (("instance", self.instances), ("rule", self.rules), ("horizon", self.horizons))
        ]
        by = ", ".join(str(estimator) for estimator in self.estimators)
        return f"<Study: {' x '.join(sizes)}, {self.runs:,} runs each, estimated by {by}>"


def checked_runs(runs: int) -> int:
    """Check how many runs a cell has: from two runs on, there is an error to tell."""
    if isinstance(runs, bool) or not isinstance(runs, int | np.integer) or not 2 <= runs < 2**32:
        raise ParameterError(f"expected a whole number from 2 to 2^32 - 1; got {runs!r}.", parameter="runs")
    return int(runs)


def checked_seed(seed: int) -> int:
    """Check a seed."""
    return int(Tape(seed).seed)


def _several(name: str, given: Any) -> list[Any]:
    """Take a list of things, or one thing; refuse none."""
    one = isinstance(given, str | Demonstrator) or not isinstance(given, Iterable)
    listed = [given] if one else list(given)
    if not listed:
        raise ParameterError("expected one or more; got none.", parameter=name)
    return listed


def _instance(given: Any) -> Instance | Family:
    if isinstance(given, str):
        return datasets.load(given)
    if not isinstance(given, Instance) and not (callable(given) and isinstance(given, Family)):
        raise ParameterError(
            f"expected an Instance, the name of a data set, or a callable with a name; got {given!r}.",
            parameter="instances",
        )
    if not (isinstance(given.name, str) and given.name):
        raise ParameterError(f"expected a name for each; got {given.name!r}.", parameter="instances")
    return given


def _rule(given: Any) -> Demonstrator:
    if isinstance(given, str):
        return parse_rule(given)
    if not isinstance(given, Demonstrator):
        raise ParameterError(f"expected demonstrators or their texts; got {given!r}.", parameter="rules")
    return given


def _resolved(family: Family, horizon: int) -> Instance:
    instance = family(horizon)
    if not isinstance(instance, Instance):
        raise ParameterError(f"expected {family.name} to give an Instance; got {instance!r}.", parameter="instances")
    return instance


def replaced(study: Study, **changes: Any) -> Study:
    """Return a study with some of its fields changed."""
    return Study(**{field.name: getattr(study, field.name) for field in fields(study)} | changes)


def _one_of(name: str, given: Any, known: tuple[str, ...]) -> Any:
    if given not in known:
        raise ParameterError(f'expected one of {", ".join(known)}; got "{given}".', parameter=name)
    return given


def _level(level: Any) -> float:
    if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
        raise ParameterError(f"expected a number between 0 and 1; got {level!r}.", parameter="level")
    return float(level)


def _different(name: str, texts: list[str], remedy: str) -> None:
    twice = [text for text, count in Counter(texts).items() if count > 1]
    if twice:
        raise ParameterError(f'expected each once; got "{twice[0]}" twice. {remedy}', parameter=name)


SCHEMA = "unbandit.study/1"


LISTED = 256
"""Of more arms than this, a digest stands for names and means."""


def identity(study: Study) -> dict[str, Any]:
    """Return all that determines a study's bytes, as plain values."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "code": code(),
        "polars": pl.__version__,
        "instances": [
            described(given.name, given) if isinstance(given, Instance) else _family(given, study)
            for given in study.instances
        ],
        "rules": [rule_described(rule) for rule in study.rules],
        "horizons": list(study.horizons),
        "runs": study.runs,
        "seed": study.seed,
        "estimators": [str(estimator) for estimator in study.estimators],
        "level": study.level,
        "device": study.device,
        "keep": study.keep,
        "tasks": {"rounds": GPU_ROUNDS if study.device == "cuda" else ROUNDS, "rows": ROWS, "count": len(study.tasks)},
    }


def described(name: str, instance: Instance) -> dict[str, Any]:
    """Describe an instance: every arm, or of very many their number and a digest.

    Examples
    --------
    >>> described("two", Instance([1.0, 0.5], arms="AB"))
    {'name': 'two', 'noise': 'Gaussian(sigma=1.0)', 'arms': ['A', 'B'], 'means': [1.0, 0.5]}
    """
    known: dict[str, Any] = {"name": name, "noise": str(instance.noise)}
    if len(instance) <= LISTED:
        return known | {"arms": list(instance.arms), "means": instance.means.tolist()}
    said = json.dumps([instance.means.tolist(), list(instance.arms)])
    return known | {"arms": len(instance), "sha256": hashlib.sha256(said.encode()).hexdigest()}


def _family(given: Family, study: Study) -> dict[str, Any]:
    """Describe a family: ours by its parameters, any other by what it gives."""
    if type(given) is ShrinkingGap:  # a subclass may give anything
        return {"name": given.name, "family": "shrinking-gap", "beta": given.beta, "bernoulli": given.bernoulli}
    members = {cell.horizon: cell.instance for cell in study.cells if cell.instance_name == given.name}
    return {
        "name": given.name,
        "family": type(given).__qualname__,
        "members": [described(str(horizon), instance) for horizon, instance in members.items()],
    }
