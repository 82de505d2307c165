"""Posteriors on simulated records: whether their intervals hold, how far seeds and clouds move them, what actions keep.

`Posteriors` measures what users get, in every cell. `Sampler` repeats some records with many times as many particles,
and shows what the smaller number costs.
"""

import math
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unbandit._version import __version__
from unbandit.calibration import settings
from unbandit.calibration.measure import (
    GOAL,
    MISSED,
    Criterion,
    Measure,
    Score,
    Verdict,
    by_row,
    judge,
    percent,
    times,
)
from unbandit.calibration.settings import Sizes, TrialSetting, rule_name, trial_setting
from unbandit.calibration.trials import Trial, Trials, draw_knowing_rewards
from unbandit.demonstrators import RandomisedRule
from unbandit.errors import InferenceError
from unbandit.estimators.coverage import LEVEL, SimulatedCoverage, noise_kind
from unbandit.estimators.procedures import compare_naive
from unbandit.formatting import markdown_table
from unbandit.inference import Posterior, infer_by_conventions
from unbandit.study.monte_carlo import RANKS, Floats, Measured, average, computed, holm, rank_test, ratio

MOST_FAILURES = 0.01
"""If more than this share of the runs gives no posterior, the intervals of the others are a selection."""

RANKS_LEVEL = 0.01
MOST_SPREAD, MOST_EVIDENCE_ERROR, MOST_AGAINST_LONG = 0.2, 0.3, 1.03
LONG = 8  # times as many particles as users get, in what stands for an exact sampler
LONG_RUNS = 60

SECONDS = 0.4  # about, of an arm of a posterior

NUMBERS = (
    *("mean", "gap", "mean_estimate", "mean_low", "mean_high", "gap_estimate", "gap_low", "gap_high"),
    *("mean_deviation", "gap_deviation", "between", "informed_deviation", "naive_gap", "probability_best"),
    *("effective_size", "log_evidence", "log_evidence_error"),
)


@dataclass(frozen=True, eq=False)
class PosteriorTrials(Trials):
    """Trials of the posterior; one row per run and arm, with nulls and a `failure` where there is no posterior."""

    particles: int | None = None  # of each cloud; None for as many as users get
    clouds: int = 4
    draws: int = 1_000  # of each cloud
    measure: ClassVar[str] = "posterior"
    columns: ClassVar[dict[str, Any]] = {
        **dict.fromkeys(("arm", "pulls"), pl.Int64),
        **dict.fromkeys(NUMBERS, pl.Float64),
        "rank": pl.Int64,
        **dict.fromkeys(("warnings", "failure"), pl.String),
    }

    def describe(self) -> dict[str, Any]:
        work = {"particles": self.particles, "clouds": self.clouds, "draws": self.draws, "level": LEVEL}
        return super().describe() | work

    def seconds(self, cell: TrialSetting) -> float:
        return SECONDS * cell.arms

    def one(self, trial: Trial) -> dict[str, Any]:
        """Return what the posterior says of every arm of one record, and the truth."""
        setting, pulls = trial.setting, trial.log.pulls[0]
        generator = np.random.default_rng([trial.seed, 1])
        informed = draw_knowing_rewards(
            setting.prior, setting.noise, pulls, trial.sums, self.clouds * self.draws, generator
        )
        known = dict.fromkeys(self.columns) | {
            "arm": np.arange(setting.arms),
            "pulls": pulls,
            "mean": trial.instance.means,
            "gap": trial.instance.gaps,
            "informed_deviation": (informed.max(axis=1, keepdims=True) - informed).std(axis=0),
            "naive_gap": compare_naive(pulls[None], setting.horizon, np.sqrt(2) * trial.instance.sigma).gap[0],
        }
        try:
            return known | self._answer(trial)
        except InferenceError as error:
            return known | {"failure": str(error)}

    def infer(self, trial: Trial, particles: int | None, seed: int) -> Posterior:
        """Return the posterior of a record, as users get it."""
        setting = trial.setting
        return infer_by_conventions(
            trial.log, setting.rule, setting.prior, setting.noise, [setting.horizon], particles=particles,
            clouds=self.clouds, draws=self.draws, seed=seed, threads=1,
        )[0]  # fmt: skip

    def _answer(self, trial: Trial) -> dict[str, Any]:
        posterior, arms = self.infer(trial, self.particles, trial.seed), trial.setting.arms
        (mean_low, mean_high), (gap_low, gap_high) = posterior.interval(LEVEL), posterior.interval(LEVEL, gaps=True)
        few = posterior.draws[np.linspace(0, len(posterior.draws) - 1, RANKS).astype(int)]
        gaps, by_cloud = posterior.gaps.reshape(-1, arms), posterior.means.mean(axis=1)
        return {
            "mean_estimate": posterior.draws.mean(axis=0),
            "mean_low": mean_low,
            "mean_high": mean_high,
            "mean_deviation": posterior.draws.std(axis=0),
            "between": by_cloud.std(axis=0, ddof=1) if len(by_cloud) > 1 else None,
            "gap_estimate": gaps.mean(axis=0),
            "gap_low": gap_low,
            "gap_high": gap_high,
            "gap_deviation": gaps.std(axis=0),
            "probability_best": posterior.probability_best,
            "effective_size": posterior.effective_size,
            "log_evidence": posterior.log_evidence,
            "log_evidence_error": posterior.log_evidence_error,
            "rank": (few < trial.instance.means).sum(axis=0),
            "warnings": ",".join(sorted({notice.code for notice in posterior.warnings})) or None,
        }


@dataclass(frozen=True)
class PosteriorMetrics:
    """Metrics of the posterior in one cell."""

    setting: TrialSetting
    runs: int
    failed: int  # runs without a posterior
    warned: int  # runs with a warning
    coverage: Measured  # share of the intervals that hold the true mean, averaged over arms
    gap_coverage: Measured  # the same of the gaps
    uniform: float  # p-value of uniform ranks; NaN for too few runs
    spread: Measured  # of a mean's expectation between clouds, in posterior deviations
    evidence_error: Measured  # of the log evidence, in nats
    kept: Measured  # variance of the gaps for one who knows the rewards, divided by that from actions alone
    against_naive: Measured  # mean squared error of the gaps, divided by that of the naive estimator


def posterior_metrics(setting: TrialSetting, rows: pl.DataFrame) -> PosteriorMetrics:
    """Return the metrics of one cell; runs without a posterior are counted, and do not enter the others."""
    rows = rows.sort("run", "arm")
    answered = rows.filter(pl.col("failure").is_null())

    def table(values: pl.Expr | str) -> Floats:
        """Lay out a column with one row per run, and one column per arm."""
        column = answered.select(pl.col(values) if isinstance(values, str) else values).to_series()
        return column.cast(pl.Float64).fill_null(math.nan).to_numpy().reshape(-1, setting.arms)

    own, plain = (table((pl.col(name) - pl.col("gap")) ** 2) for name in ("gap_estimate", "naive_gap"))
    ranks, pulled, errors = table("rank"), ~np.isnan(plain), table("log_evidence_error")[:, 0]
    places = np.arange(len(ranks)) % setting.arms  # one arm per run, for those of one run err together
    error = errors.std(ddof=1) / math.sqrt(errors.size) if errors.size > 1 else math.nan
    return PosteriorMetrics(
        setting,
        runs=rows.height // setting.arms,
        failed=(rows.height - answered.height) // setting.arms,
        warned=answered.filter(pl.col("warnings").is_not_null())["run"].n_unique(),
        coverage=average(table(pl.col("mean").is_between("mean_low", "mean_high"))),
        gap_coverage=average(table(pl.col("gap").is_between("gap_low", "gap_high"))),
        uniform=rank_test(ranks[np.arange(len(ranks)), places]),
        spread=ratio(table("between") ** 2, table("mean_deviation") ** 2, root=True),
        evidence_error=Measured(float(errors.mean()) if errors.size else math.nan, float(error), errors.size),
        kept=ratio(table("informed_deviation") ** 2, table("gap_deviation") ** 2),
        against_naive=ratio(np.where(pulled, own, 0.0), np.where(pulled, plain, 0.0)),
    )


_TEXTS = tomllib.loads(resources.files("unbandit.calibration").joinpath("criteria.toml").read_text("utf-8"))
CRITERIA = [Criterion(**each | {"goal": each["goal"].format_map(globals())}) for each in _TEXTS["posterior"]]
BY_RULE = Criterion(**_TEXTS["by_rule"])


def _failed(failed: int, runs: int) -> str:
    return f" ({failed:,} of {runs:,} failed)" if failed else ""


def posterior_scores(cell: PosteriorMetrics, chance: float) -> list[Score]:
    """Return the scores of one cell in the order of the criteria; `chance` is its adjusted p-value of the ranks."""
    failed, many_failed = _failed(cell.failed, cell.runs), cell.failed > MOST_FAILURES * cell.runs
    randomised = isinstance(cell.setting.rule, RandomisedRule)
    entries: list[tuple[Measured, str, Verdict | None]] = [
        (cell.coverage, percent(cell.coverage) + failed, MISSED if many_failed else judge(cell.coverage, *GOAL)),
        (cell.gap_coverage, percent(cell.gap_coverage), judge(cell.gap_coverage, GOAL[0])),
        (
            computed(chance),
            f"p = {chance:.2g}" if math.isfinite(chance) else "-",
            MISSED if chance <= RANKS_LEVEL else None,
        ),
        (cell.spread, times(cell.spread), judge(cell.spread, high=MOST_SPREAD)),
        (
            cell.evidence_error,
            times(cell.evidence_error),
            judge(cell.evidence_error, high=MOST_EVIDENCE_ERROR) if randomised else None,
        ),
        (cell.kept, times(cell.kept), None),
        (cell.against_naive, times(cell.against_naive), judge(cell.against_naive, high=1.0)),
    ]
    return [Score(rule_name(cell.setting.rule, cell.setting.noise), cell.setting.cell, *entry) for entry in entries]


class Posteriors(Measure):
    """How well the posteriors that users get hold, in every cell."""

    name = "posterior"
    title = "Posteriors"
    about = "how often the intervals of posteriors hold, how far clouds differ, and what the actions reveal"
    metrics_type = PosteriorMetrics
    metrics = staticmethod(posterior_metrics)

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, PosteriorTrials]]:
        for text in (*settings.GAUSSIAN, *settings.BERNOULLI):
            places = [(arms, horizon) for arms in settings.ARMS for horizon in settings.HORIZONS]
            cells = tuple(trial_setting(text, *place, sizes.runs or settings.RUNS) for place in places)
            yield text, _sized(PosteriorTrials(cells, sizes.seed, sizes.particles), sizes)

    def criteria(self, metrics: Sequence[PosteriorMetrics]) -> list[Criterion]:
        chances = holm(np.array([cell.uniform for cell in metrics])).tolist()
        scores = [posterior_scores(cell, chance) for cell, chance in zip(metrics, chances, strict=True)]
        by_criterion = zip(CRITERIA, zip(*scores, strict=True), strict=True)
        means, *others = [replace(criterion, scores=own) for criterion, own in by_criterion]
        return [means, replace(BY_RULE, scores=by_row(means.scores, *GOAL)), *others]

    def remarks(self, metrics: Sequence[PosteriorMetrics], criteria: Sequence[Criterion]) -> Iterator[str]:
        """List the cells in which some runs come with a warning, or without a posterior."""
        listed = [each for each in metrics if each.failed or each.warned]
        if not listed:
            return
        yield from ("", "### Where the tool warns or gives up", "")
        yield from ("A posterior that cannot be trusted comes with a warning (`clouds-differ`), or not at all.", "")
        headings = ("rule", "cell", "runs", "with a warning", "without a posterior")
        yield from markdown_table(
            headings,
            [
                (
                    f"`{rule_name(each.setting.rule, each.setting.noise)}`",
                    each.setting.cell,
                    *(f"{number:,}" for number in (each.runs, each.warned, each.failed)),
                )
                for each in listed
            ],
        )

    def coverages(self, metrics: Sequence[PosteriorMetrics]) -> Iterator[SimulatedCoverage]:
        for each in metrics:
            own = each.setting
            if each.failed > MOST_FAILURES * each.runs:
                continue
            for quantity, held in (("mean", each.coverage), ("gap", each.gap_coverage)):
                if math.isfinite(held.value):
                    where = str(own.rule), noise_kind(own.noise), own.arms, own.horizon
                    yield SimulatedCoverage(self.name, quantity, *where, held.value, held.error, each.runs, __version__)


def _sized(trials: PosteriorTrials, sizes: Sizes) -> PosteriorTrials:
    return trials if sizes.clouds is None else replace(trials, clouds=sizes.clouds)


@dataclass(frozen=True, eq=False)
class SamplerTrials(PosteriorTrials):
    """The same records, put to the posterior that users get and to one with many times as many particles."""

    measure: ClassVar[str] = "sampler"
    rounds_of_a_task: ClassVar[int] = 2_000
    columns: ClassVar[dict[str, Any]] = {
        "arm": pl.Int64,
        **dict.fromkeys(("gap", "gap_estimate", "long_gap", "log_evidence", "long_log_evidence"), pl.Float64),
        "failure": pl.String,
    }

    def describe(self) -> dict[str, Any]:
        return super().describe() | {"times": LONG}

    def seconds(self, cell: TrialSetting) -> float:
        return (1 + LONG) * super().seconds(cell)

    def one(self, trial: Trial) -> dict[str, Any]:
        """Return the gaps that both posteriors expect, and the truth."""
        known = dict.fromkeys(self.columns) | {"arm": np.arange(trial.setting.arms), "gap": trial.instance.gaps}
        try:
            own = self.infer(trial, self.particles, trial.seed)
            long = self.infer(trial, LONG * own.particles, trial.seed + 1)
        except InferenceError as error:
            return known | {"failure": str(error)}
        gaps = [each.gaps.reshape(-1, trial.setting.arms).mean(axis=0) for each in (own, long)]
        evidences = own.log_evidence, long.log_evidence
        return known | dict(
            zip(("gap_estimate", "long_gap", "log_evidence", "long_log_evidence"), (*gaps, *evidences), strict=True)
        )


@dataclass(frozen=True)
class SamplerMetrics:
    """What the number of particles costs in one cell."""

    setting: TrialSetting
    against_long: Measured  # root mean squared error of the gaps, divided by that of the long run
    evidence_off: Measured  # root mean squared difference of the log evidence from that of the long run, in nats
    failed: int = 0  # runs without one of both posteriors


class Sampler(Measure):
    """Posteriors beside long runs of the same sampler, on shared records."""

    name = "sampler"
    title = "Posteriors beside long runs"
    about = f"what users' posteriors lose against {LONG} times as many particles"
    metrics_type = SamplerMetrics

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, SamplerTrials]]:
        for text in (*settings.GAUSSIAN, *settings.BERNOULLI):
            cell = trial_setting(text, *settings.USUAL_CELL, sizes.runs or LONG_RUNS)
            trials = _sized(SamplerTrials((cell,), sizes.seed, sizes.particles), sizes)
            assert isinstance(trials, SamplerTrials)
            yield text, trials

    def metrics(self, cell: TrialSetting, rows: pl.DataFrame) -> SamplerMetrics:
        """Return the metrics of one cell; runs without a posterior are counted, and do not enter the others."""
        answered = rows.filter(pl.col("failure").is_null()).sort("run", "arm")
        own, long, off = (
            answered.select((pl.col(one) - pl.col(other)) ** 2).to_series().to_numpy().reshape(-1, cell.arms)
            for one, other in (("gap_estimate", "gap"), ("long_gap", "gap"), ("log_evidence", "long_log_evidence"))
        )
        off_by = ratio(off[:, :1], np.ones((len(off), 1)), root=True)
        return SamplerMetrics(cell, ratio(own, long, root=True), off_by, rows["run"].n_unique() - len(own))

    def criteria(self, metrics: Sequence[SamplerMetrics]) -> list[Criterion]:
        long = f"{LONG} times as many particles and another seed"
        scores: tuple[list[Score], list[Score]] = ([], [])
        for each in metrics:
            place = rule_name(each.setting.rule, each.setting.noise), each.setting.cell
            randomised = isinstance(each.setting.rule, RandomisedRule)
            close = judge(each.evidence_off, high=MOST_EVIDENCE_ERROR) if randomised else None
            many_failed = each.failed > MOST_FAILURES * each.setting.runs
            near = MISSED if many_failed else judge(each.against_long, high=MOST_AGAINST_LONG)
            text = times(each.against_long) + _failed(each.failed, each.setting.runs)
            scores[0].append(Score(*place, each.against_long, text, near))
            scores[1].append(Score(*place, each.evidence_off, times(each.evidence_off), close))
        return [
            Criterion(
                "against a long run",
                f"root mean squared error of the gaps, relative to a posterior with {long}, on the same logs",
                f"at most {MOST_AGAINST_LONG}",
                "A long run stands for an exact sampler. If a rule's filter is an approximation, so is its long run. "
                "Runs without one of both posteriors are counted in brackets; if more than 1%, the cell is outside.",
                scores=scores[0],
            ),
            Criterion(
                "log evidence against a long run",
                f"root mean squared difference of the log evidence from that with {long}, in nats",
                f"at most {MOST_EVIDENCE_ERROR} for rules that choose at random",
                scores=scores[1],
            ),
        ]
