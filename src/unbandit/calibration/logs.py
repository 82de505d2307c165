"""Logs as they happen: whether intervals hold where a log is not the plain record of a rule that decides every round.

A condition says how the logs of a cell come about, and what is told to `estimate` about it. A new one joins by being
listed in `CONDITIONS`.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unbandit.calibration.measure import Criterion, Measure, Score, judge, percent
from unbandit.calibration.settings import NOISE, NORMAL, CellTrials, Sizes, short
from unbandit.demonstrators import Demonstrator, RandomisedRule, parse_rule
from unbandit.errors import AssumptionWarning, UnbanditError
from unbandit.estimators import estimate
from unbandit.estimators.coverage import LEVEL, SIGMA
from unbandit.instance import Instance
from unbandit.log import ActionLog
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

    log: ActionLog
    rule: Demonstrator
    options: Mapping[str, Any] = field(default_factory=dict)


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


CONDITIONS: dict[str, Make] = {
    "plain": with_parameters(),
    "batches of 20": with_parameters(batch=20),
    "delay of 50": with_parameters(delay=50),
    "begun after 500 rounds": begun_in_mid_run(500),
}
"""How logs come about, by name."""


@dataclass(frozen=True)
class LogCell:
    """A rule, and under which condition its logs come about."""

    rule: Demonstrator
    condition: str
    arms: int
    horizon: int
    runs: int

    @property
    def described(self) -> dict[str, object]:
        """Return all that determines what is played, as plain values."""
        return {
            "name": f"{self.rule}, {self.condition}, on {self.arms} arms, {self.horizon} rounds",
            "rule": describe_rule(self.rule), "arms": self.arms, "horizon": self.horizon,
            "condition": self.condition, "runs": self.runs,
        }  # fmt: skip

    def seed(self, seed: int) -> int:
        """Derive a seed from what is played, except the number of runs, and from the seed of the calibration."""
        text = json.dumps([seed, {**self.described, "runs": None}])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


@dataclass(frozen=True, eq=False)
class LogTrials(CellTrials):
    """Logs of some cells, each of another bandit; one row per log and arm."""

    cells: tuple[LogCell, ...]
    particles: int | None = None  # of each cloud of a posterior; None for as many as users get
    measure: ClassVar[str] = "logs"
    deciding: ClassVar[tuple[str, ...]] = (
        *("kernels", "demonstrators", "inference", "estimators", "log", "tape.py", "instance.py"),
        "calibration/logs.py",
    )
    rounds_of_a_task: ClassVar[int] = 10_000

    def describe(self) -> dict[str, Any]:
        """Return all that determines the bytes, also how much work each posterior is."""
        return super().describe() | {"particles": self.particles}

    def seconds(self, cell: LogCell) -> float:
        """Return about how long a log takes."""
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
        row = {"arm": np.arange(cell.arms), "pulls": made.log.pulls[0], "gap": means.max() - means}
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
    lengths, failures = (high - low)[estimated], rows["failure"].drop_nulls()
    return LogMetrics(
        cell,
        coverage=share_of(held, estimated),
        bounded=share_of(held, bounded),
        estimated=float(estimated.sum() / max((verdict != VERDICTS.index("best")).sum(), 1)),
        width=float(np.nanmedian(lengths)) if np.isfinite(lengths).any() else float("nan"),
        failed=failures.len() // cell.arms,
        failure=failures[0] if failures.len() else "",
    )


class Logs(Measure):
    """Whether intervals hold on logs that are not plain records."""

    name = "logs"
    title = "Logs as they happen"
    about = "how often intervals hold on logs decided in batches or with a delay, incomplete or begun in mid-run"

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, LogTrials]]:
        """Yield the logs of each rule, under every condition."""
        for text in RULES:
            rule, runs = parse_rule(text), sizes.runs or RUNS
            cells = tuple(LogCell(rule, condition, *SIZE, runs) for condition in CONDITIONS)
            yield text, LogTrials(cells, sizes.seed, sizes.particles)

    def metrics(self, cell: LogCell, rows: pl.DataFrame) -> LogMetrics:
        """Return the metrics of one cell."""
        return log_metrics(cell, rows)

    def criteria(self, metrics: Sequence[LogMetrics]) -> list[Criterion]:
        """Return the criteria with their scores, one per rule and condition."""
        size = f"K={metrics[0].cell.arms}, T={metrics[0].cell.horizon:,}"
        coverage, bounds, answered = [], [], []
        for each in metrics:
            place = short(each.cell.rule), each.cell.condition
            among = f"{percent(each.coverage)} ({100 * each.estimated:.0f}% of arms, median length {each.width:.2f})"
            coverage.append(Score(*place, each.coverage, among, judge(each.coverage, LOW, HIGH)))
            bounds.append(Score(*place, each.bounded, percent(each.bounded), None))
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
