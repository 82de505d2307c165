"""Logs with contexts: whether intervals of coefficients hold, and whether misreadings show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unbandit._version import __version__
from unbandit.calibration.measure import FALSE_ALARMS, GOAL, Criterion, Measure, Score, by_row, judge, percent, times
from unbandit.calibration.settings import ParticleTrials, SeededCell, Sizes
from unbandit.contexts import ContextInstance, ContextLog
from unbandit.contexts.posterior import context_posterior
from unbandit.contexts.rule import LinearRule, linear_rule_or_family
from unbandit.errors import UnbanditError
from unbandit.estimators.coverage import CONTEXTS, SIGMA, SimulatedCoverage
from unbandit.study.monte_carlo import NOTHING, Measured, Share, measured, ratio, replicates, share
from unbandit.study.taskgrid import Task

SHARED = ("linucb:alpha=1", "linucb:alpha=3", "lints:v=0.5")
DISJOINT = ("linucb:alpha=1,disjoint=true", "lints:v=0.5,disjoint=true")
FEATURES, ARMS, HORIZONS = (3, 5, 10), (5, 10), (300, 1_000)  # of shared models
DISJOINT_SIZE = (3, 4, 1_000)  # features, arms and rounds of models with parameters for each arm
OTHERS = (
    ("lin-softmax:temperature=0.3", "lin-softmax:temperature=0.3"),
    ("lin-epsilon-greedy:epsilon=0.1", "lin-epsilon-greedy:epsilon=0.1"),
    ("linucb:alpha=1", "linucb:alpha=fit"),
    ("lints:v=0.5", "lints:v=fit"),
)
"""The rule that plays and the one that reads, of other rules and of numbers that are fitted, for one size of logs."""
RUNS, MISREAD_RUNS = 200, 100  # logs of every cell
SECONDS = 4.0  # about, of one log of 1,000 rounds

MISREAD_SIZE = (5, 5, 1_000)
MISREADINGS = (
    ("lints:v=0.5", "linucb:alpha=1", 0),
    ("linucb:alpha=1", "linucb:alpha=3", 0),
    ("linucb:alpha=3", "linucb:alpha=1", 0),
    ("linucb:alpha=1", "linucb:alpha=1", 1),
    ("lints:v=0.5", "lints:v=1.5", 0),
    ("lints:v=1.5", "lints:v=0.5", 0),
    ("lints:v=0.5", "lints:v=0.5", 1),
)
"""The rule that plays, the one that reads, and how many features the reader does not have."""

FLAGGED = 0.8  # share of misread logs, at least
BESIDE_LONG = "contexts, against a long run"
LONG, LONG_RUNS, MOST_AGAINST_LONG = 8, 20, 1.05  # times as many particles, logs of a rule, and the goal


@dataclass(frozen=True)
class ContextCell(SeededCell):
    """A rule, the size of its logs, and how they are read."""

    played: str
    read: str
    features: int
    arms: int
    horizon: int
    runs: int
    missing: int = 0  # features that the reader does not have
    long: int = 0  # times as many particles of the posterior beside which the usual one stands; 0 for none

    @property
    def size(self) -> str:
        """Return features, arms and rounds as they are written in tables."""
        return f"d={self.features}, K={self.arms}, T={self.horizon:,}"

    @property
    def misread(self) -> bool:
        """Return whether the reader assumes something wrong."""
        return self.missing > 0 or (self.played != self.read and "=fit" not in self.read)

    @property
    def reading(self) -> str:
        """Return how the logs are read, in words."""
        lacks = ", a feature missing" if self.missing else ""
        beside = f", beside {self.long} times as many particles" if self.long else ""
        return f"{self.played} read as {self.read}{lacks}{beside}"

    @property
    def described(self) -> dict[str, object]:
        return {
            "name": f"{self.reading}, {self.size}", "played": self.played, "read": self.read,
            "features": self.features, "arms": self.arms, "horizon": self.horizon, "missing": self.missing,
            "runs": self.runs,
        } | ({"long": self.long} if self.long else {})  # fmt: skip


@dataclass(frozen=True, eq=False)
class ContextTrials(ParticleTrials):
    """Logs of some cells, each with other coefficients and contexts; one row per log."""

    cells: tuple[ContextCell, ...]
    measure: ClassVar[str] = "contexts"
    deciding: ClassVar[tuple[str, ...]] = (
        *("kernels", "contexts", "inference", "tape.py", "instance.py"), "calibration/contexts.py"
    )  # fmt: skip
    rounds_of_a_task: ClassVar[int] = 2_000

    def seconds(self, cell: ContextCell) -> float:
        return SECONDS * (1 + cell.long) * cell.horizon / 1_000

    def rows(self, task: Task) -> pl.DataFrame:
        """Make the logs of a task and read each."""
        numbers = dict.fromkeys(("held", "angle", "error", "length", "long_error"), pl.Float64)
        schema: dict[str, Any] = {"run": pl.Int64, **numbers, "flagged": pl.Boolean, "failure": pl.String}
        cell = self.cells[task.cell]
        runs = range(task.first_run, task.last_run)
        return pl.DataFrame([{"run": run, **self._read(cell, run)} for run in runs], schema=schema)

    def _read(self, cell: ContextCell, run: int) -> dict[str, Any]:
        """Return what is found from one log, beside the truth."""
        seed, rule = cell.seed(self.seed), linear_rule_or_family(cell.played)
        assert isinstance(rule, LinearRule)
        generator = np.random.default_rng([seed, run])
        offered = (cell.arms, cell.features) if not rule.disjoint else (cell.features,)
        contexts = generator.normal(size=(cell.horizon, *offered)) / np.sqrt(cell.features)
        shape = (cell.arms, cell.features) if rule.disjoint else (cell.features,)
        theta = generator.normal(size=shape)
        arms = [str(at) for at in range(cell.arms)]
        log = rule.demonstrate(
            ContextInstance(theta, sigma=SIGMA), contexts, seed=seed, first_run=run, threads=1, arms=arms
        )  # fmt: skip
        if cell.missing:
            log = _without(log, cell.missing)
        try:
            found = context_posterior(log, cell.read, sigma=SIGMA, particles=self.particles, seed=run, threads=1)
        except UnbanditError as error:
            return {"failure": str(error), "flagged": cell.misread or None}
        if cell.missing:
            return {"flagged": found.check.verdict == "does not fit"}
        truth, (low, high) = theta.reshape(-1), found.interval()
        cosine = truth @ found.mean / (np.linalg.norm(truth) * np.linalg.norm(found.mean))
        row = {
            "held": float(((low <= truth) & (truth <= high)).mean()),
            "angle": float(np.degrees(np.arccos(np.clip(cosine, -1, 1)))),
            "error": float(np.sqrt(np.square(found.mean - truth).mean())),
            "length": float(np.median(high - low)),
            "flagged": found.check.verdict == "does not fit",
        }
        if not cell.long:
            return row
        more, other = cell.long * found.particles, run + cell.runs  # particles, and a seed that no run has
        exact = context_posterior(log, cell.read, sigma=SIGMA, particles=more, seed=other, threads=1, check=False)
        return row | {"long_error": float(np.sqrt(np.square(exact.mean - truth).mean()))}


def _without(log: ContextLog, missing: int) -> ContextLog:
    """Return a log without its last features."""
    return ContextLog.from_arrays(
        log.features[:, :-missing], log.chosen, offsets=log.offsets, codes=log.codes, arms=log.arms
    )  # fmt: skip


@dataclass(frozen=True)
class ContextMetrics:
    """Metrics of one cell."""

    cell: ContextCell
    coverage: Measured  # share of the intervals that hold the true coefficient
    angle: Measured  # between the true direction and the estimated one, in degrees
    error: Measured  # root mean square of a coefficient's error
    length: float  # median length of an interval
    flagged: Share  # logs of which the check says that the rule does not fit, or which are refused if misread
    answered: Share
    against_long: Measured = NOTHING  # root mean squared error, relative to that of the long run


def context_metrics(cell: ContextCell, rows: pl.DataFrame) -> ContextMetrics:
    """Return the metrics of a cell."""
    answered = rows.filter(pl.col("failure").is_null())
    judged = rows["flagged"].drop_nulls()

    def typical(name: str) -> Measured:
        values = answered[name].drop_nulls().to_numpy()
        return measured(replicates(np.mean, values)) if values.size > 1 else NOTHING

    lengths = answered["length"].drop_nulls()
    return ContextMetrics(
        cell,
        coverage=typical("held"),
        angle=typical("angle"),
        error=typical("error"),
        length=float(np.median(lengths.to_numpy())) if lengths.len() else float("nan"),
        flagged=share(int(judged.sum()), max(judged.len(), 1)),
        answered=share(answered.height, rows.height),
        against_long=_against_long(answered) if cell.long else NOTHING,
    )


def _against_long(rows: pl.DataFrame) -> Measured:
    own, long = (rows[name].to_numpy().reshape(-1, 1) ** 2 for name in ("error", "long_error"))
    return ratio(own, long, root=True)


class Contexts(Measure):
    """Whether intervals of coefficients hold, and whether misreadings show."""

    name = "contexts"
    title = "Logs with contexts"
    about = "how often intervals of a linear learner's coefficients hold, and how often a wrong model is noticed"
    metrics_type = ContextMetrics
    metrics = staticmethod(context_metrics)

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, ContextTrials]]:
        shared = [(d, k, t) for d in FEATURES for k in ARMS for t in HORIZONS]
        for text in (*SHARED, *DISJOINT):
            places = [DISJOINT_SIZE] if text in DISJOINT else shared
            cells = tuple(ContextCell(text, text, *place, sizes.runs or RUNS) for place in places)
            yield text, ContextTrials(cells, sizes.seed, sizes.particles)
        for played, read in OTHERS:
            each = tuple(ContextCell(played, read, *MISREAD_SIZE[:2], t, sizes.runs or RUNS) for t in HORIZONS)
            yield read, ContextTrials(each, sizes.seed, sizes.particles)
        for reader in ("linucb", "lints"):
            cells = tuple(
                ContextCell(played, read, *MISREAD_SIZE, sizes.runs or MISREAD_RUNS, missing)
                for played, read, missing in MISREADINGS
                if read.startswith(reader)
            )
            yield f"{reader} on misread logs", ContextTrials(cells, sizes.seed, sizes.particles)
        for text in SHARED:
            beside = ContextCell(text, text, *MISREAD_SIZE, sizes.runs or LONG_RUNS, long=LONG)
            yield f"{text} on long runs", ContextTrials((beside,), sizes.seed, sizes.particles)

    def coverages(self, metrics: Sequence[ContextMetrics]) -> Iterator[SimulatedCoverage]:
        for each in metrics:
            cell, held = each.cell, each.coverage
            if not (cell.misread or cell.long):
                size = cell.arms, cell.horizon, held.value, held.error, each.answered.held, __version__, cell.features
                yield SimulatedCoverage(CONTEXTS, "coefficient", cell.read, "gaussian", *size)

    def criteria(self, metrics: Sequence[ContextMetrics]) -> list[Criterion]:
        coverage, angles, errors, flags, long = (list[Score]() for _ in range(5))
        for each in metrics:
            cell = each.cell
            place = cell.read, cell.size
            if cell.long:
                near = judge(each.against_long, high=MOST_AGAINST_LONG)
                long.append(Score(*place, each.against_long, times(each.against_long), near))
                continue
            if not cell.misread:
                refused = each.answered.runs - each.answered.held
                text = f"{percent(each.coverage)} ({each.length:.2f}{f', {refused} refused' if refused else ''})"
                coverage.append(Score(*place, each.coverage, text, judge(each.coverage, *GOAL)))
                angles.append(Score(*place, each.angle, f"{times(each.angle)}°", None))
                errors.append(Score(*place, each.error, times(each.error), None))
            limits = (FLAGGED, 1.0) if cell.misread else (0.0, FALSE_ALARMS)
            verdict = judge(each.flagged, *limits)
            flags.append(Score(cell.reading, cell.size, each.flagged, percent(each.flagged), verdict))
        note = "Coefficients are from N(0, 1), features from N(0, 1)/sqrt(d), for every log; the noise is known. "
        note += "In brackets the median length of an interval, and how many logs were refused, if any."
        about = "A misread log that is refused counts as noticed."
        goal = f"at least {FLAGGED:.0%} of misread logs, at most {FALSE_ALARMS:.0%} of others"
        found = [
            Criterion("contexts, coverage", "95% intervals that hold the true coefficient", "93 to 97%", note,
                      scores=coverage),
            Criterion("contexts, coverage by rule", "95% intervals that hold the true coefficient, averaged over all "
                      "cells of a rule", "93 to 97%", scores=by_row(coverage, *GOAL)),
            Criterion("contexts, direction", "angle between the true coefficients and the estimate", "no goal",
                      scores=angles),
            Criterion("contexts, error", "error of a coefficient, root mean square", "no goal", scores=errors),
            Criterion(BESIDE_LONG, "root mean squared error of the coefficients, relative to a "
                      f"posterior with {LONG} times as many particles and another seed, on the same logs",
                      f"at most {MOST_AGAINST_LONG}", scores=long),
            Criterion("contexts, check", "logs of which the check says that the rule does not fit", goal, about,
                      "logs", scores=flags),
        ]  # fmt: skip
        return [each for each in found if each.scores or each.key != BESIDE_LONG]  # where no long run was made
