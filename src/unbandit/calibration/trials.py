"""Trials: play a rule on a bandit whose means are drawn from the prior, and put the record to a method.

`PosteriorTrials` compare the posterior with the truth and with `oracle`, Bayes with every reward seen: no method that
sees actions alone can be better on average. `IdentifyTrials` ask which of a few rules made the record.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.calibration.settings import CellTrials, TrialSetting
from unbandit.demonstrators import Demonstrator
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.estimators.procedures import compare_naive
from unbandit.inference import BetaPrior, Prior, infer
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.log import ActionLog
from unbandit.study.taskgrid import Task, describe_rule
from unbandit.tape import Tape

Floats = NDArray[np.float64]

REACH, POINTS = 9.0, 481
"""Quadrature for each arm: deviations on either side of a mean that hold all of its distribution, and points."""

LEVEL = 0.95  # level of the intervals
RANKS = 99  # number of draws among which the true mean's rank is taken: ranks run from 0 to this number

RIGHT, WRONG, CANNOT_TELL = "right", "wrong", "cannot tell"

DECIDING = (
    *("kernels", "demonstrators", "inference", "tape.py", "instance.py", "estimators/procedures.py"),
    "calibration/trials.py",
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
    rounds_of_a_task: ClassVar[int] = 20_000
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


NUMBERS = (
    *("mean", "gap", "mean_estimate", "mean_low", "mean_high", "gap_estimate", "gap_low", "gap_high"),
    *("oracle_mean", "oracle_gap", "naive_gap", "probability_best"),
    *("effective_size", "log_evidence", "log_evidence_error"),
)


@dataclass(frozen=True, eq=False)
class PosteriorTrials(Trials):
    """Trials of the posterior; one row per run and arm, with nulls and a `failure` where there is no posterior."""

    particles: int = 250  # of each cloud
    clouds: int = 2
    draws: int = 1_000  # of each cloud
    kind: ClassVar[str] = "posterior"
    columns: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("arm", "pulls"), pl.Int64),
        **dict.fromkeys(NUMBERS, pl.Float64),
        "rank": pl.Int64,
        **dict.fromkeys(("warnings", "failure"), pl.String),
    }

    def describe(self) -> dict[str, Any]:
        """Return all that determines the bytes, also how much work each posterior is."""
        work = {"particles": self.particles, "clouds": self.clouds, "draws": self.draws, "level": LEVEL}
        return super().describe() | work

    def one(self, trial: Trial) -> dict[str, Any]:
        """Return what the posterior says of every arm of one record, and the truth."""
        setting, pulls = trial.setting, trial.log.pulls[0]
        oracle_mean, oracle_gap = oracle(setting.prior, setting.noise, pulls, trial.sums)
        known = dict.fromkeys(self.columns) | {
            "arm": np.arange(setting.arms),
            "pulls": pulls,
            "mean": trial.instance.means,
            "gap": trial.instance.gaps,
            "oracle_mean": oracle_mean,
            "oracle_gap": oracle_gap,
            "naive_gap": compare_naive(pulls[None], setting.horizon, np.sqrt(2) * trial.instance.sigma).gap[0],
        }
        try:
            return known | self._answer(trial)
        except InferenceError as error:
            return known | {"failure": str(error)}

    def _answer(self, trial: Trial) -> dict[str, Any]:
        setting = trial.setting
        posterior = infer(
            trial.log, setting.rule, setting.prior, setting.noise, [setting.horizon], particles=self.particles,
            clouds=self.clouds, draws=self.draws, seed=trial.seed, threads=1,
        )  # fmt: skip
        (mean_low, mean_high), (gap_low, gap_high) = posterior.interval(LEVEL), posterior.interval(LEVEL, gaps=True)
        few = posterior.draws[np.linspace(0, len(posterior.draws) - 1, RANKS).astype(int)]
        return {
            "mean_estimate": posterior.draws.mean(axis=0),
            "mean_low": mean_low,
            "mean_high": mean_high,
            "gap_estimate": posterior.gaps.reshape(-1, setting.arms).mean(axis=0),
            "gap_low": gap_low,
            "gap_high": gap_high,
            "probability_best": posterior.probability_best,
            "effective_size": posterior.effective_size,
            "log_evidence": posterior.log_evidence,
            "log_evidence_error": posterior.log_evidence_error,
            "rank": (few < trial.instance.means).sum(axis=0),
            "warnings": ",".join(sorted({notice.code for notice in posterior.warnings})) or None,
        }


@dataclass(frozen=True, eq=False)
class IdentifyTrials(Trials):
    """Trials of `identify` among some candidates; one row per record."""

    candidates: tuple[Demonstrator, ...] = ()
    particles: int | None = None  # by default as many as `identify` takes
    kind: ClassVar[str] = "identify"
    deciding: ClassVar[tuple[str, ...]] = (*DECIDING, "identification", "estimators/arguments.py")
    columns: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("outcome", "verdict", "leading"), pl.String),
        "assured": pl.Float64,
        "failure": pl.String,
    }

    def describe(self) -> dict[str, Any]:
        """Return all that determines the bytes, also the candidates and how much work each record is."""
        candidates = [describe_rule(rule) for rule in self.candidates]
        return super().describe() | {"candidates": candidates, "particles": self.particles}

    def one(self, trial: Trial) -> dict[str, Any]:
        """Return whether the rule that made a record was found; to say that none fits is wrong."""
        from unbandit.identification import identify

        setting = trial.setting
        try:
            result = identify(
                trial.log, self.candidates, prior=setting.prior, sigma=setting.sigma,
                bernoulli=isinstance(setting.noise, Bernoulli), particles=self.particles, seed=trial.seed, threads=1,
            )  # fmt: skip
        except (InferenceError, NotIdentifiable) as error:
            return dict.fromkeys(self.columns) | {"outcome": [WRONG], "failure": [str(error)]}
        right = result.winner == str(setting.rule)
        outcome = CANNOT_TELL if result.verdict == CANNOT_TELL else RIGHT if right else WRONG
        row = (outcome, result.verdict, result.leading.name, result.assured, None)
        return {name: [value] for name, value in zip(self.columns, row, strict=True)}


def oracle(prior: Prior, noise: Noise, pulls: NDArray[np.int64], sums: Floats) -> tuple[Floats, Floats]:
    """Return every arm's expected mean and expected gap, for one who has the same prior and has seen every reward."""
    if isinstance(prior, BetaPrior):
        successes, failures = prior.successes + sums, prior.failures + pulls - sums
        mean = successes / (successes + failures)
        return mean, _largest_of_betas(successes, failures) - mean
    assert isinstance(noise, Gaussian)
    variance = 1 / (1 / prior.deviation**2 + pulls / noise.sigma**2)
    mean = variance * (prior.mean / prior.deviation**2 + sums / noise.sigma**2)
    return mean, expected_largest(mean, np.sqrt(variance)) - mean


def expected_largest(mean: Floats, deviation: Floats) -> float:
    """Return the expectation of the largest of independent normal variables: `h - integral of prod F_i` up to `h`."""
    from scipy.special import ndtr

    points = np.unique(_around(mean, deviation))
    below = ndtr((points[:, None] - mean) / deviation).prod(axis=1)
    return float(points[-1] - np.trapezoid(below, points))


def _largest_of_betas(successes: Floats, failures: Floats) -> float:
    from scipy.special import betainc

    total = successes + failures
    around = _around(successes / total, np.sqrt(successes * failures / (total + 1)) / total)
    points = np.unique(np.clip(np.concatenate([around.ravel(), np.linspace(0, 1, POINTS)]), 0, 1))
    below = betainc(successes, failures, points[:, None]).prod(axis=1)
    return float(1 - np.trapezoid(below, points))


def _around(mean: Floats, deviation: Floats) -> Floats:
    """Return points of the quadrature around every variable, as close together as its deviation requires."""
    return mean[:, None] + deviation[:, None] * np.linspace(-REACH, REACH, POINTS)
