"""What is played: every rule that reveals values, on few and many arms, in short and long records."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import polars as pl

from unbandit import checks
from unbandit._version import __version__
from unbandit.demonstrators import Demonstrator, parse_rule
from unbandit.estimators.coverage import SIGMA
from unbandit.inference import BetaPrior, NormalPrior, Prior
from unbandit.instance import Bernoulli, Gaussian, Noise
from unbandit.study.taskgrid import Task, TaskGrid, Tasks, code, describe_rule

NOISE, NORMAL, BETA = Gaussian(SIGMA), NormalPrior(), BetaPrior()
"""Gaussian noise, and what means of Gaussian and of Bernoulli rewards are drawn from."""

GAUSSIAN = (
    "ucb:alpha=0.25", "ucb1", f"klucb:noise=gaussian,sigma={SIGMA}",
    f"klucb:noise=gaussian,sigma={SIGMA},level=round", "lilucb", "moss", "sae:alpha=0.25", "phased:alpha=0.25",
    f"thompson:deviation=1,sigma={SIGMA}", "epsilon-greedy:epsilon=0.1", "softmax:temperature=0.1",
    "learning-softmax",
)  # fmt: skip
"""The rules that play Gaussian rewards."""

BERNOULLI = ("klucb", "klucb:level=round", "ucbv", "thompson:noise=bernoulli", "exp3")
"""The rules that play rewards of 0 and 1."""

ARMS, HORIZONS = (2, 4, 10), (500, 2_000, 5_000)
RUNS = 300  # of every cell

FAMILIES = (
    "ucb", "ucb1", "klucb", "moss", "lilucb", "sae", "thompson", "epsilon-greedy", "softmax", "learning-softmax",
    "exp3", "uniform",
)  # fmt: skip
"""The rules that play records whose rule is to be found, each with parameters that nobody is told."""

DRAWN: Mapping[str, Mapping[str, tuple[float, float]]] = {"learning-softmax": {"rate": (0.05, 0.9)}}
"""Ends between which a rule's parameters are drawn there, if these are not those of its grid."""

USUAL = (
    "ucb:alpha=0.25", "ucb1", f"klucb:noise=gaussian,sigma={SIGMA}", "moss", "lilucb", "sae:alpha=0.25",
    f"thompson:deviation=1,sigma={SIGMA}", "epsilon-greedy:epsilon=0.1", "softmax:temperature=0.1",
    "learning-softmax", "exp3", "uniform",
)  # fmt: skip
"""The same rules with the parameters of their papers, or the default ones: nobody is told these either."""

FOREIGN: tuple[tuple[str, str, bool], ...] = (
    ("random ties", "ucb1:ties=random", True),
    ("random opening", "ucb1", False),
    ("first arm at random", "epsilon-greedy:initial=0,ties=random", False),
)
"""Rules as other programs play them: in which way, the rule, and whether rewards are 0 and 1."""

FAMILY_CANDIDATES: tuple[str, ...] | None = None  # among which it is to be found; None for all that `identify` proposes
FAMILY_CELLS, FAMILY_RUNS = ((2, 1_500), (5, 1_500)), 40  # arms and horizons, and records of each
USUAL_RUNS = 20  # of each with usual parameters

USUAL_CELL = (4, 2_000)  # arms and horizon of what is measured in one cell only


@dataclass(frozen=True)
class Sizes:
    """How much is measured, and how much work each posterior is; None stands for what users get."""

    runs: int | None = None  # of every cell, instead of its own number
    seed: int = 1
    particles: int | None = None
    clouds: int | None = None


def seed_of(*what: object) -> int:
    """Derive a seed from plain values."""
    return int.from_bytes(hashlib.sha256(json.dumps(what).encode()).digest()[:8], "big")


class SeededCell:
    """A cell of a grid that is `described`; its runs have seeds that follow from that."""

    @property
    @abstractmethod
    def described(self) -> dict[str, object]:
        """Return all that determines what is played and read, as plain values."""

    def seed(self, seed: int) -> int:
        """Derive a seed from what is played, except the number of runs, and from the seed of the calibration."""
        return seed_of(seed, {**self.described, "runs": None})


@dataclass(frozen=True)
class TrialSetting:
    """One cell of the grid: a rule, and the bandits that it plays."""

    rule: Demonstrator
    arms: int
    horizon: int
    runs: int  # records, each of a different bandit
    prior: Prior = NORMAL  # what the means are drawn from, and the analyst's prior
    noise: Noise = NOISE

    @property
    def cell(self) -> str:
        """Return arms and rounds as they are written in tables."""
        return f"K={self.arms}, T={self.horizon:,}"

    @property
    def sigma(self) -> float | None:
        """Return the standard deviation of a reward; None for rewards of 0 and 1."""
        return self.noise.sigma if isinstance(self.noise, Gaussian) else None

    @property
    def described(self) -> dict[str, object]:
        """Return all that determines what is played, as plain values."""
        return {
            "name": f"{self.rule} on {self.arms} arms, {self.horizon} rounds",
            "rule": describe_rule(self.rule),
            "arms": self.arms,
            "horizon": self.horizon,
            "prior": str(self.prior),
            "noise": str(self.noise),
            "runs": self.runs,
        }

    def seed(self, seed: int, *purpose: object) -> int:
        """Derive a seed from what is played, except the number of runs, and from the seed of the calibration."""
        return seed_of(seed, str(self.rule), self.arms, self.horizon, str(self.prior), str(self.noise), *purpose)


def trial_setting(text: str, arms: int, horizon: int, runs: int) -> TrialSetting:
    """Return a cell of one rule, with the prior and the noise of its rewards."""
    prior, noise = (BETA, Bernoulli()) if text in BERNOULLI else (NORMAL, NOISE)
    return TrialSetting(parse_rule(text), arms, horizon, runs, prior, noise)


def rule_name(rule: object, noise: Noise) -> str:
    """Write a rule as tables name it: with its noise, where that is not the usual one."""
    if noise == NOISE:
        return short(rule)
    return f"{short(rule)}, {f'sigma {noise.sigma:g}' if isinstance(noise, Gaussian) else 'Bernoulli'}"


def short(rule: object) -> str:
    """Write a rule's numbers to four digits, and without those that are zero: `ucb:alpha=0.25,scale=1.414`."""
    name, _, rest = str(rule).partition(":")
    parts = [part.partition("=") for part in rest.split(",") if part]
    shown = [f"{key}={_digits(value)}" for key, _, value in parts if value != "0.0"]
    return f"{name}:{','.join(shown)}" if shown else name


def _digits(value: str) -> str:
    try:
        return f"{float(value):.4g}"
    except ValueError:
        return value


@dataclass(frozen=True, eq=False)
class CellTrials(TaskGrid):
    """All runs of some cells, to be made in tasks; a subclass makes the rows of a task.

    A cell has a `horizon`, a number of `runs`, and is `described`. The same seed gives the same rows, on any number of
    processes.
    """

    cells: tuple[Any, ...]
    seed: int = 1
    measure: ClassVar[str]
    deciding: ClassVar[tuple[str, ...]]  # the files, and folders of files, that decide the numbers
    rounds_of_a_task: ClassVar[int]  # about: a few seconds' work

    def __post_init__(self) -> None:
        object.__setattr__(self, "cells", tuple(self.cells))
        checks.seed(self.seed)

    @cached_property
    def tasks(self) -> Tasks:
        """Return the work, cut into blocks of runs whose sizes depend on the cells alone."""
        return self._cut(self.rounds_of_a_task)

    def _cut(self, rounds: int) -> Tasks:
        sizes = [(cell.horizon, max(1, rounds // cell.horizon)) for cell in self.cells]
        return Tasks(sizes, [cell.runs for cell in self.cells])

    @property
    def rounds(self) -> int:
        """Return how many rounds there are in all."""
        return sum(cell.runs * cell.horizon for cell in self.cells)

    def seconds(self, cell: Any) -> float:
        """Return about how long a run of a cell takes; by default as long as simulating its rounds."""
        return 1e-6 * float(cell.horizon)

    def cost(self, task: Task) -> int:
        """Return about how many microseconds a task takes: the longest come first, and the time left is known."""
        return max(1, round(1e6 * self.seconds(self.cells[task.cell]) * (task.last_run - task.first_run)))

    def describe(self) -> dict[str, Any]:
        """Return all that determines the bytes, as plain values."""
        return {
            "schema": f"unbandit.calibration.{self.measure}/1",
            "version": __version__,
            "code": code(*self.deciding, "study/taskgrid.py", "calibration/settings.py"),
            "polars": pl.__version__,
            "cells": [cell.described for cell in self.cells],
            "seed": self.seed,
            "tasks": {"rounds": self.rounds_of_a_task, "count": len(self.tasks)},
        }

    def as_stored(self, saved: Mapping[str, Any]) -> Self | None:
        """Return the trials that a folder was written by, given its identity: the same cells, or some, with other runs.

        None for other cells. The code that wrote them may be another: what is stored says which.
        """
        known: dict[str, Any] = {played(cell.described): cell for cell in self.cells}
        cells = [(played(each), each["runs"]) for each in saved["cells"]]
        if not all(cell in known for cell, _ in cells):
            return None
        sizes = {
            each.name: saved[each.name] for each in fields(self) if each.name in saved.keys() - {"cells", "candidates"}
        }
        trials = replace(self, cells=tuple(replace(known[cell], runs=runs) for cell, runs in cells), **sizes)
        trials.__dict__["tasks"] = trials._cut(saved["tasks"]["rounds"])
        trials.__dict__["_identity_json"] = json.dumps(saved, allow_nan=False)
        return trials


@dataclass(frozen=True, eq=False)
class ParticleTrials(CellTrials):
    """The same where logs are read by particles: how many decides the numbers too."""

    particles: int | None = None  # of each cloud; None for as many as users get

    def describe(self) -> dict[str, Any]:
        """Return all that determines the bytes, also how much work each log is."""
        return super().describe() | {"particles": self.particles}


def played(described: Mapping[str, Any]) -> str:
    """Return what a cell is, but for its number of runs."""
    return json.dumps({**described, "runs": None}, sort_keys=True)
