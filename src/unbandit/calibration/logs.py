"""Logs as they happen: whether intervals hold where a log is not the plain record of a rule that decides every round.

A condition says how the logs of a cell come about, and what is told to `estimate` about it. A new one joins by being
listed in `CONDITIONS`.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unbandit.calibration.measure import Criterion, Measure, Score, judge, percent
from unbandit.calibration.settings import NOISE, NORMAL, ParticleTrials, SeededCell, Sizes, short
from unbandit.demonstrators import Demonstrator, RandomisedRule, parse_rule
from unbandit.demonstrators.delay import RandomDelay
from unbandit.errors import AssumptionWarning, UnbanditError
from unbandit.estimators import estimate
from unbandit.estimators.coverage import LEVEL, SIGMA
from unbandit.inference.result import gaps_of
from unbandit.instance import Instance
from unbandit.log import ActionLog
from unbandit.log.availability import availability_of
from unbandit.log.partial import ThinnedLog
from unbandit.result import BOUNDED, ESTIMATED, VERDICTS
from unbandit.study.monte_carlo import Measured, share, share_of
from unbandit.study.taskgrid import Task, describe_rule

RULES = ("ucb:alpha=0.25", "ucb1", "sae:alpha=0.25,scale=0.4", f"thompson:deviation=1,sigma={SIGMA}")
"""The rules whose logs are read; of elimination one with a width that eliminates within the horizon."""

SIZE, RUNS = (4, 5_000), 200  # arms and rounds of every log, and logs of every cell
LOW, HIGH = 0.92, 0.98  # within which coverage is to be
SECONDS, SECONDS_OF_A_POSTERIOR = 0.05, 8.0  # about, of one log


@dataclass(frozen=True)
class MadeLog:
    """A log, the rule that it is read by, and what else `estimate` is told."""

    log: ActionLog | ThinnedLog
    rule: Demonstrator
    options: Mapping[str, Any] = field(default_factory=dict)
    rivals: Any = None  # for each arm, the arms that its gap is to the best of, (arms, arms); None for all

    def gaps(self, means: Any) -> Any:
        """Return the true gaps."""
        return gaps_of(means, self.rivals)


Make = Callable[["LogCell", Instance, int, int], MadeLog]
"""A function that makes run `run` of a cell on an instance, from a seed."""


def with_parameters(**parameters: Any) -> Make:
    """Return what makes logs of the rule with other parameters, which `estimate` is told."""

    def make(cell: "LogCell", instance: Instance, seed: int, run: int) -> MadeLog:
        rule = cell.rule.model_copy(update=parameters)
        return MadeLog(rule.demonstrate(instance, cell.horizon, seed=seed, first_run=run, threads=1), rule)

    return make


def begun_in_mid_run(before: int) -> Make:
    """Return what makes logs that begin after some rounds, of which `estimate` is told the pulls."""

    def make(cell: "LogCell", instance: Instance, seed: int, run: int) -> MadeLog:
        whole = cell.rule.demonstrate(instance, cell.horizon + before, seed=seed, first_run=run, threads=1)
        starts = np.bincount(whole.demonstration(0)[:before], minlength=cell.arms).tolist()
        rows = ActionLog.from_codes(whole.demonstration(0)[before:], whole.arms)
        return MadeLog(rows, cell.rule, {"starting_pulls": dict(zip(whole.arms, starts, strict=True))})

    return make


def with_missing_rounds(kept: float, *, told: bool = True, numbered: bool = True) -> Make:
    """Return what makes logs of which every round is kept with one probability, which `estimate` may be told."""

    def make(cell: "LogCell", instance: Instance, seed: int, run: int) -> MadeLog:
        whole = cell.rule.demonstrate(instance, cell.horizon, seed=seed, first_run=run, threads=1)
        is_kept = np.random.default_rng([seed, run, 1]).random(cell.horizon) < kept
        rows = ActionLog.from_codes(whole.demonstration(0)[is_kept], whole.arms)
        log = ThinnedLog(rows, None, np.flatnonzero(is_kept) + 1) if numbered else rows
        return MadeLog(log, cell.rule, {"kept": kept} if told else {})

    return make


def with_changing_arms(*late: float, withdrawn: float) -> Make:
    """Return what makes logs of which some arms arrive after a share of the rounds, and another is withdrawn; any."""

    def make(cell: "LogCell", instance: Instance, seed: int, run: int) -> MadeLog:
        order = np.random.default_rng([seed, run, 1]).permutation(cell.arms).tolist()
        spans: dict[str, tuple[int | None, int | None]] = {
            instance.arms[order.pop()]: (None, int(withdrawn * cell.horizon))
        }
        spans |= {instance.arms[order.pop()]: (int(part * cell.horizon) + 1, None) for part in late}
        told = availability_of(spans, instance.arms)
        log = cell.rule.demonstrate(
            instance, cell.horizon, seed=seed, first_run=run, threads=1, availability=told
        )  # fmt: skip
        return MadeLog(log, cell.rule, {"availability": told}, told.rivals(cell.horizon))

    return make


CONDITIONS: dict[str, Make] = {
    "plain": with_parameters(),
    "batches of 20": with_parameters(batch=20),
    "delay of 50": with_parameters(delay=50),
    "random delay, geometric with mean 50": with_parameters(delay=RandomDelay.read("geometric:50")),
    "begun after 500 rounds": begun_in_mid_run(500),
    "20% of rounds missing, at random": with_missing_rounds(0.8),
    "50% missing, not numbered": with_missing_rounds(0.5, numbered=False),
    "90% missing, at random": with_missing_rounds(0.1),
    "20% missing, brackets": with_missing_rounds(0.8, told=False),
    "two late arms and one withdrawn": with_changing_arms(0.2, 0.4, withdrawn=0.6),
}
"""How logs come about, by name."""

MAY_HOLD_MORE = frozenset({"20% missing, brackets"})
"""Conditions whose intervals take in every case, so that they may hold more often than their level."""


@dataclass(frozen=True)
class LogCell(SeededCell):
    """A rule, and under which condition its logs come about."""

    rule: Demonstrator
    condition: str
    arms: int
    horizon: int
    runs: int

    @property
    def described(self) -> dict[str, object]:
        return {
            "name": f"{self.rule}, {self.condition}, on {self.arms} arms, {self.horizon} rounds",
            "rule": describe_rule(self.rule), "arms": self.arms, "horizon": self.horizon,
            "condition": self.condition, "runs": self.runs,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class LogTrials(ParticleTrials):
    """Logs of some cells, each of another bandit; one row per log and arm."""

    cells: tuple[LogCell, ...]
    measure: ClassVar[str] = "logs"
    deciding: ClassVar[tuple[str, ...]] = (
        *("kernels", "demonstrators", "inference", "estimators", "log", "tape.py", "instance.py"),
        "calibration/logs.py",
    )
    rounds_of_a_task: ClassVar[int] = 10_000

    def seconds(self, cell: LogCell) -> float:
        return SECONDS_OF_A_POSTERIOR if isinstance(cell.rule, RandomisedRule) else SECONDS

    def rows(self, task: Task) -> pl.DataFrame:
        """Make the logs of a task and read each."""
        schema: dict[str, Any] = {"run": pl.Int64, "arm": pl.Int64, "pulls": pl.Int64, "gap": pl.Float64}
        schema |= {"verdict": pl.Int8, **dict.fromkeys(("estimate", "low", "high"), pl.Float64), "failure": pl.String}
        cell = self.cells[task.cell]
        tables = [
            pl.DataFrame({"run": run, **self._read(cell, run)}, schema=schema, nan_to_null=True)
            for run in range(task.first_run, task.last_run)
        ]
        return pl.concat(tables, rechunk=True)

    def _read(self, cell: LogCell, run: int) -> dict[str, Any]:
        """Return what `estimate` says about every arm of one log, and the truth."""
        seed = cell.seed(self.seed)
        means = NORMAL.draw(np.random.default_rng([seed, run]), cell.arms)
        made = CONDITIONS[cell.condition](cell, Instance(means, NOISE), seed, run)
        drawn: dict[str, Any] = {}
        if isinstance(made.rule, RandomisedRule):
            drawn = {"method": "posterior", "prior": NORMAL, "seed": run, "particles": self.particles}
        row = {"arm": np.arange(cell.arms), "pulls": made.log.pulls[0], "gap": made.gaps(means)}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AssumptionWarning)
                found = estimate(made.log, made.rule, sigma=NOISE.sigma, check=False, **drawn, **made.options)
        except UnbanditError as error:
            return row | dict.fromkeys(("verdict", "estimate", "low", "high")) | {"failure": str(error)}
        columns = found.columns
        answered = {"verdict": columns.verdict[0], "estimate": columns.gap[0]}
        return row | answered | {"low": columns.gap_low[0], "high": columns.gap_high[0], "failure": None}


@dataclass(frozen=True)
class LogMetrics:
    """Metrics of one cell: NaN where there is nothing to measure."""

    cell: LogCell
    coverage: Measured  # share of the intervals that hold the true gap, of arms that are estimated
    bounded: Measured  # the same of bounds
    estimated: float  # share of the arms that are estimated, of those that are not best
    width: float  # median length of an interval
    bound_width: float  # the same of bounds with two ends
    failed: int  # logs without an answer
    failure: str  # the first reason


def log_metrics(cell: LogCell, rows: pl.DataFrame) -> LogMetrics:
    """Return the metrics of a cell."""
    rows = rows.sort("run", maintain_order=True)

    def table(name: str) -> Any:
        return rows[name].cast(pl.Float64).to_numpy().reshape(-1, cell.arms)

    gap, low, high, verdict = (table(name) for name in ("gap", "low", "high", "verdict"))
    with np.errstate(invalid="ignore"):
        held = ~(low > gap) & ~(gap > high)
        estimated, bounded = verdict == ESTIMATED, verdict == BOUNDED
    failures = rows["failure"].drop_nulls()

    def typical(marks: Any) -> float:
        lengths = (high - low)[marks]
        return float(np.nanmedian(lengths)) if np.isfinite(lengths).any() else float("nan")

    return LogMetrics(
        cell,
        coverage=share_of(held, estimated),
        bounded=share_of(held, bounded),
        estimated=float(estimated.sum() / max((verdict != VERDICTS.index("best")).sum(), 1)),
        width=typical(estimated),
        bound_width=typical(bounded),
        failed=failures.len() // cell.arms,
        failure=failures[0] if failures.len() else "",
    )


class Logs(Measure):
    """Whether intervals hold on logs that are not plain records."""

    name = "logs"
    title = "Logs as they happen"
    about = "how often intervals hold on logs decided in batches or with a delay, incomplete or begun in mid-run"
    metrics_type = LogMetrics
    metrics = staticmethod(log_metrics)

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, LogTrials]]:
        for text in RULES:
            rule, runs = parse_rule(text), sizes.runs or RUNS
            cells = tuple(LogCell(rule, condition, *SIZE, runs) for condition in CONDITIONS)
            yield text, LogTrials(cells, sizes.seed, sizes.particles)

    def criteria(self, metrics: Sequence[LogMetrics]) -> list[Criterion]:
        size = f"K={metrics[0].cell.arms}, T={metrics[0].cell.horizon:,}"
        coverage, bounds, answered = [], [], []
        for each in metrics:
            place = short(each.cell.rule), each.cell.condition
            length = f", median length {each.width:.2f}" if np.isfinite(each.width) else ""
            among = f"{percent(each.coverage)} ({100 * each.estimated:.0f}% of arms{length})"
            most = 1.0 if each.cell.condition in MAY_HOLD_MORE else HIGH
            coverage.append(Score(*place, each.coverage, among, judge(each.coverage, LOW, most)))
            both = f"{percent(each.bounded)} (median length {each.bound_width:.2f})"
            is_long = np.isfinite(each.bound_width)
            bounds.append(Score(*place, each.bounded, both if is_long else percent(each.bounded), None))
            given = share(each.cell.runs - each.failed, each.cell.runs)
            answered.append(Score(*place, given, percent(given), None))
        level = f"{100 * LEVEL:.0f}% intervals that hold the true gap"
        note = "Means are drawn from N(0, 1) for every log. In brackets the share of arms with such an interval."
        failures = sorted({each.failure for each in metrics if each.failure})
        said = " ".join(f"Refused: {text}" for text in failures)
        return [
            Criterion("logs, coverage", f"{size}: {level}", "92 to 98%", note, scores=coverage),
            Criterion("logs, bounds", f"{size}: bounds that hold the true gap", "no goal", scores=bounds),
            Criterion("logs, answered", f"{size}: logs with an answer", "no goal", said, scores=answered),
        ]
