"""Time and memory of posteriors, fits, `identify` and `population`, on one core, with as many particles as users get.

Posteriors are those of arms, and of coefficients in logs with contexts.
"""

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from unbandit.calibration import settings
from unbandit.calibration.measure import Criterion, Measure, Score, judge
from unbandit.calibration.parameters import TRUTHS, FitCell, made
from unbandit.calibration.population import CENTRES, PopulationCell, people_of
from unbandit.calibration.settings import CellTrials, Sizes, short, trial_setting
from unbandit.calibration.trials import DECIDING, play
from unbandit.contexts import ContextInstance
from unbandit.contexts.posterior import context_posterior
from unbandit.contexts.rule import LinearRule, linear_rule_or_family
from unbandit.demonstrators import RandomisedRule, parse_rule
from unbandit.errors import AssumptionWarning, InferenceError, NotIdentifiable
from unbandit.estimators import estimate
from unbandit.estimators.coverage import SIGMA
from unbandit.hierarchy import population
from unbandit.identification import identify
from unbandit.inference import infer_by_conventions
from unbandit.instance import Bernoulli
from unbandit.study.monte_carlo import computed
from unbandit.study.taskgrid import Task

USUAL, MANY_ARMS, LARGE = (4, 5_000), (10, 5_000), (224, 25_000)  # arms and rounds of the records that are timed
IDENTIFIED = (
    "ucb:alpha=0.25", "ucb1", "moss", "lilucb", "sae:alpha=0.25", f"thompson:deviation=1,sigma={SIGMA}",
    "epsilon-greedy:epsilon=0.1", "softmax:temperature=0.1", "learning-softmax", "exp3", "uniform",
)  # fmt: skip
"""The rules whose logs `identify` is timed on."""

FITTED = tuple(text for text in TRUTHS if "delay" not in text)  # the rules whose numbers are fitted and timed
MOST_OF_IDENTIFY, MOST_OF_A_FIT = 10.0, 5.0  # seconds
PEOPLE, CHOICES, FEW_PEOPLE = 100, 100, 4  # participants of a population, rounds of each; how few show what it compiles
MOST_OF_POPULATION, MOST_MEMORY = 120.0, 1e9  # seconds of processor time: on two cores half of it; and bytes
REPEATS = 3  # how often a record is timed, but for the large one; the median is reported
CONTEXT_RULES = ("linucb:alpha=1", "lints:v=0.5")
CONTEXTS = ((5, 5, 1_000, 5.0, REPEATS), (20, 10, 10_000, 60.0, 1))
"""Features, arms and rounds of logs with contexts, the most seconds, and how often one is timed."""
FEW_CONTEXTS = 50  # rounds that show what a posterior of coefficients compiles


@dataclass(frozen=True)
class TimingCell:
    """Posteriors to be timed, and the most that one may take: seconds of processor time, and bytes of its process."""

    text: str  # the rule
    arms: int
    horizon: int
    runs: int
    most_seconds: float
    most_memory: float | None = None
    identify: bool = False  # whether it is `identify` among all rules that is timed, which is not told this one
    people: int = 0  # whether it is `population`, and of how many participants
    features: int = 0  # whether the log has contexts, and how many features an offer has
    fit: bool = False  # whether it is an estimate with fitted numbers

    @property
    def described(self) -> dict[str, object]:
        name = f"{self.text} on {self.arms} arms, {self.horizon} rounds"
        same = {"rule": self.text, "arms": self.arms, "horizon": self.horizon, "runs": self.runs}
        if self.features:
            return {"name": f"{name}, {self.features} features", **same, "features": self.features}
        if self.fit:
            return {"name": f"fit, {name}", **same, "fit": True}
        if self.people:
            return {"name": f"population, {self.people} people, {name}", **same, "people": self.people}
        return {"name": f"identify, {name}", **same, "identify": True} if self.identify else {"name": name, **same}


@dataclass(frozen=True, eq=False)
class TimingTrials(CellTrials):
    """Posteriors of one rule, timed one after the other in one process; one row per run."""

    cells: tuple[TimingCell, ...]
    measure: ClassVar[str] = "timing"
    deciding: ClassVar[tuple[str, ...]] = (*DECIDING, "identification", "hierarchy", "calibration/speed.py")
    rounds_of_a_task: ClassVar[int] = 1_000_000  # all runs of a cell

    def seconds(self, cell: TimingCell) -> float:
        return cell.most_seconds

    def rows(self, task: Task) -> pl.DataFrame:
        """Time the runs of a task, after a short one that compiles."""
        cell, runs = self.cells[task.cell], range(task.first_run, task.last_run)
        few = replace(cell, people=min(cell.people, FEW_PEOPLE))
        short_log = FEW_CONTEXTS if cell.features else 2 * cell.arms
        whole = cell.identify or cell.people or cell.fit  # compile what only such a log needs
        _seconds(few, cell.horizon if whole else short_log, 0, self.seed)
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the most memory is measured from now on
        seconds = [_seconds(cell, cell.horizon, run, self.seed) for run in runs]
        return pl.DataFrame({"run": list(runs), "seconds": seconds, "memory": _peak_memory()}, nan_to_null=True)


def _seconds(cell: TimingCell, rounds: int, run: int, seed: int) -> float:
    if cell.people:
        return _seconds_of_population(cell, rounds, run, seed)
    if cell.features:
        return _seconds_of_contexts(cell, rounds, run, seed)
    if cell.fit:
        return _seconds_of_fit(cell, rounds, run, seed)
    setting = trial_setting(cell.text, cell.arms, rounds, cell.runs)
    trial = play(setting, seed, run)
    began = time.process_time()
    with suppress(InferenceError, NotIdentifiable), warnings.catch_warnings():  # a refusal is waited for as long
        warnings.simplefilter("ignore", AssumptionWarning)
        if cell.identify:
            bernoulli = isinstance(setting.noise, Bernoulli)
            known: dict[str, Any] = {"sigma": setting.sigma, "bernoulli": bernoulli, "prior": setting.prior}
            identify(trial.log, seed=trial.seed, threads=1, **known)
            return time.process_time() - began
        infer_by_conventions(
            trial.log, setting.rule, setting.prior, setting.noise, [rounds], seed=trial.seed, threads=1
        )
    return time.process_time() - began


def _seconds_of_population(cell: TimingCell, rounds: int, run: int, seed: int) -> float:
    """Time `population` with its check, of participants with parameters of their own and one thread."""
    log = people_of(PopulationCell(cell.text, cell.people, cell.arms, rounds, cell.runs), seed, run)[0]
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        population(log, cell.text, sigma=SIGMA, seed=run, threads=1, check=True)
    return time.process_time() - began


def _seconds_of_contexts(cell: TimingCell, rounds: int, run: int, seed: int) -> float:
    """Time `context_posterior` with its check and one thread; coefficients are from the prior."""
    rule, generator = linear_rule_or_family(cell.text), np.random.default_rng([seed, run])
    assert isinstance(rule, LinearRule)
    contexts = generator.normal(size=(rounds, cell.arms, cell.features)) / np.sqrt(cell.features)
    instance = ContextInstance(generator.normal(size=cell.features), sigma=SIGMA)
    log = rule.demonstrate(instance, contexts, seed=seed, first_run=run, threads=1)
    began = time.process_time()
    context_posterior(log, rule, sigma=SIGMA, seed=run, threads=1)
    return time.process_time() - began


def _seconds_of_fit(cell: TimingCell, rounds: int, run: int, seed: int) -> float:
    """Time `estimate` with fitted numbers, without its check and with one thread."""
    fitted = FitCell(cell.text, cell.arms, rounds, cell.runs)
    log, family = made(fitted, seed, run)[0], fitted.family
    drawn: dict[str, Any] = {"prior": settings.NORMAL, "seed": run} if issubclass(family.kind, RandomisedRule) else {}
    began = time.process_time()
    with suppress(InferenceError, NotIdentifiable), warnings.catch_warnings():  # a refusal is waited for as long
        warnings.simplefilter("ignore", AssumptionWarning)
        estimate(log, family, sigma=SIGMA, check=False, **drawn)
    return time.process_time() - began


def _peak_memory() -> float:
    """Return the most memory that this process had, in bytes; NaN if the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return float("nan")


@dataclass(frozen=True)
class TimingMetrics:
    """What posteriors took: the median of their seconds, and bytes of their process."""

    cell: TimingCell
    seconds: float
    memory: float


class Timings(Measure):
    """Time and memory of posteriors."""

    name = "timing"
    title = "Time and memory"
    about = "processor time and memory of a posterior; they depend on the machine"
    metrics_type = TimingMetrics

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, TimingTrials]]:
        runs = sizes.runs or REPEATS
        for text in (*settings.GAUSSIAN, *settings.BERNOULLI):
            most = 5.0 if isinstance(parse_rule(text), RandomisedRule) else 2.0
            cells = [TimingCell(text, *USUAL, runs, most), TimingCell(text, *MANY_ARMS, runs, 10.0)]
            if text == "ucb:alpha=0.25":
                cells.append(TimingCell(text, *LARGE, 1, 60.0, 2e9))
            yield text, TimingTrials(tuple(cells), sizes.seed)
        for text in CONTEXT_RULES:
            cells = [
                TimingCell(text, K, T, min(runs, times), most, MOST_MEMORY, features=d)
                for d, K, T, most, times in CONTEXTS
            ]
            yield f"{text} on contexts", TimingTrials(tuple(cells), sizes.seed)
        for text in FITTED:
            cell = TimingCell(text, *settings.USUAL_CELL, runs, MOST_OF_A_FIT, fit=True)
            yield f"{text} on fit", TimingTrials((cell,), sizes.seed)
        for text in IDENTIFIED:
            cell = TimingCell(text, *settings.USUAL_CELL, runs, MOST_OF_IDENTIFY, identify=True)
            yield f"{text} on identify", TimingTrials((cell,), sizes.seed)
        for text in CENTRES:
            cells = [TimingCell(text, K, CHOICES, 1, MOST_OF_POPULATION, MOST_MEMORY, people=PEOPLE) for K in (2, 4)]
            yield f"{text} on population", TimingTrials(tuple(cells), sizes.seed)

    def metrics(self, cell: TimingCell, rows: pl.DataFrame) -> TimingMetrics:
        """Return the median time, and the memory."""
        memory = rows["memory"].drop_nulls().to_numpy()
        return TimingMetrics(cell, float(np.median(rows["seconds"])), float(memory.max()) if memory.size else np.nan)

    def criteria(self, metrics: Sequence[TimingMetrics]) -> list[Criterion]:
        scores, named, peopled, featured, fitted = (list[Score]() for _ in range(5))
        for each in metrics:
            cell = each.cell
            where = f"{f'd={cell.features}, ' if cell.features else ''}K={cell.arms}, T={cell.horizon:,}"
            kind = featured if cell.features else peopled if cell.people else named if cell.identify else scores
            kind = fitted if cell.fit else kind
            values = [(where, each.seconds, f"{each.seconds:.2f} s", cell.most_seconds)]
            if cell.most_memory is not None:
                values.append((f"{where}: memory", each.memory, f"{each.memory / 1e9:.2f} GB", cell.most_memory))
            for column, value, text, most in values:
                kind.append(Score(short(cell.text), column, computed(value), text, judge(computed(value), high=most)))
        goal = (
            f"K={USUAL[0]}: under 2 s, under 5 s for rules that choose at random; K={MANY_ARMS[0]}: under 10 s; "
            f"K={LARGE[0]}: under 60 s and 2 GB"
        )
        note = "Processor time on one core of the machine that measured it: the median of a few logs."
        found = [Criterion("time", "processor time of a posterior", goal, note, scores=scores)] if scores else []
        if fitted:
            what = "processor time of an estimate with fitted numbers, without its check"
            limit = f"at most {MOST_OF_A_FIT:.0f} s"
            found.append(Criterion("time of fits", what, limit, note, scores=fitted))
        if named:
            what, goal = "processor time of `identify` among all rules", f"at most {MOST_OF_IDENTIFY:.0f} s"
            found.append(Criterion("time of identify", what, goal, note, "made by", scores=named))
        if peopled:
            what = f"processor time and memory of `population` with {PEOPLE} participants of {CHOICES} rounds"
            goal = f"at most {MOST_OF_POPULATION:.0f} s, which is {MOST_OF_POPULATION / 2:.0f} s on two cores, and 1 GB"
            found.append(Criterion("time of population", what, goal, note, "made by", scores=peopled))
        if featured:
            what = "processor time and memory of a posterior of coefficients, with its check"
            limits = [f"d={d}, K={K}, T={T:,}: at most {most:.0f} s" for d, K, T, most, _ in CONTEXTS]
            goal = "; ".join([*limits, "below 1 GB"])
            found.append(Criterion("time of contexts", what, goal, note, "made by", scores=featured))
        return found
