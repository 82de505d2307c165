"""Trials: play a rule on a bandit whose means are drawn from the prior, and put the record to a method.

`draw_knowing_rewards` draws from the posterior of one who has seen every reward: no method that sees actions alone can
know more.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.calibration.settings import CellTrials, TrialSetting
from unbandit.inference import BetaPrior, Prior
from unbandit.instance import Gaussian, Instance, Noise
from unbandit.log import ActionLog
from unbandit.study.taskgrid import Task
from unbandit.tape import Tape

Floats = NDArray[np.float64]

DECIDING = (
    *("kernels", "demonstrators", "inference", "tape.py", "instance.py", "estimators/procedures.py"),
    *("calibration/trials.py", "calibration/posterior.py"),
)
"""The files, and folders of files, that decide the numbers of every kind of trial."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One record, and the truth behind it."""

    setting: TrialSetting
    run: int
    instance: Instance  # its means are drawn from the prior
    log: ActionLog  # all that the method may see
    sums: Floats  # total reward of each arm
    seed: int  # of the method's own randomness; the record has another


def play(setting: TrialSetting, seed: int, run: int) -> Trial:
    """Draw a bandit and have the rule play it."""
    own = setting.seed(seed)
    means = setting.prior.draw(np.random.default_rng([own, run]), setting.arms)
    instance = Instance(means, setting.noise)
    log = setting.rule.demonstrate(instance, setting.horizon, seed=own, first_run=run, threads=1)
    tape = Tape(own)
    pulled = [np.arange(1, pulls + 1) for pulls in log.pulls[0].tolist()]
    sums = [tape.reward(instance, run, arm, numbers).sum() for arm, numbers in enumerate(pulled)]
    return Trial(setting, run, instance, log, np.array(sums), setting.seed(seed, "method", run))


@dataclass(frozen=True, eq=False)
class Trials(CellTrials):
    """All runs of some settings; a subclass defines the rows of one trial."""

    cells: tuple[TrialSetting, ...]
    deciding: ClassVar[tuple[str, ...]] = DECIDING
    rounds_of_a_task: ClassVar[int] = 10_000
    columns: ClassVar[dict[str, Any]]  # with their types, after those that say what was played

    @abstractmethod
    def one(self, trial: Trial) -> dict[str, Any]:
        """Put one record to the method, and return the columns of its rows: arrays, or a single value for all rows."""

    def rows(self, task: Task) -> pl.DataFrame:
        """Make the trials of a task, one after the other."""
        setting = self.cells[task.cell]
        played = {"rule": str(setting.rule), "arms": setting.arms, "horizon": setting.horizon}
        schema = {"rule": pl.String, "arms": pl.Int64, "horizon": pl.Int64, "run": pl.Int64, **self.columns}
        tables = [
            pl.DataFrame(
                {**played, "run": run, **self.one(play(setting, self.seed, run))}, schema=schema, nan_to_null=True
            )
            for run in range(task.first_run, task.last_run)
        ]
        return pl.concat(tables, rechunk=True)


def draw_knowing_rewards(
    prior: Prior, noise: Noise, pulls: NDArray[np.int64], sums: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """Draw every mean, (draws, arms), from the posterior of one who has the same prior and has seen every reward."""
    size = (draws, pulls.size)
    if isinstance(prior, BetaPrior):
        return generator.beta(prior.successes + sums, prior.failures + pulls - sums, size)
    assert isinstance(noise, Gaussian)
    variance = 1 / (1 / prior.deviation**2 + pulls / noise.sigma**2)
    mean = variance * (prior.mean / prior.deviation**2 + sums / noise.sigma**2)
    return np.asarray(mean + np.sqrt(variance) * generator.standard_normal(size))
