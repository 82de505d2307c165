"""Many participants: whether intervals of a population and of its people hold, and whether pooling helps."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from scipy.special import logit

from unbandit.calibration.measure import FALSE_ALARMS, Criterion, Measure, Score, judge, percent, times
from unbandit.calibration.settings import NOISE, NORMAL, ParticleTrials, SeededCell, Sizes
from unbandit.demonstrators import parse_rule
from unbandit.errors import AssumptionWarning, UnbanditError
from unbandit.hierarchy import population
from unbandit.instance import Instance
from unbandit.log import ActionLog
from unbandit.study.monte_carlo import Measured, Share, measured, replicates, share
from unbandit.study.taskgrid import Task

CENTRES: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "learning-softmax": {"rate": (0.15, 0.6), "temperature": (0.1, 0.4)},
    "softmax": {"temperature": (0.1, 0.4)},
    "epsilon-greedy": {"epsilon": (0.05, 0.3)},
}
"""The rules, and between what values a typical participant's parameters are drawn, evenly in the logarithm."""

BETWEEN_0_AND_1 = ("rate", "epsilon")  # parameters whose log odds are normal; the logarithm of others
SPREADS = (0.2, 0.8)  # between which the spread of the population is drawn
PEOPLE, ARMS, HORIZON, RUNS = 60, 2, 100, 100  # participants, arms and rounds of each, and experiments
LOW, HIGH = 0.92, 0.98  # within which coverage is to be
SECONDS = 60.0  # about, of one experiment


@dataclass(frozen=True)
class PopulationCell(SeededCell):
    """A rule, and the size of an experiment in which every participant has other parameters."""

    text: str
    people: int
    arms: int
    horizon: int
    runs: int

    @property
    def size(self) -> str:
        """Return participants, arms and rounds as they are written in tables."""
        return f"{self.people} people, K={self.arms}, T={self.horizon:,}"

    @property
    def described(self) -> dict[str, object]:
        drawn = {name: list(ends) for name, ends in CENTRES[self.text].items()}
        return {
            "name": f"{self.people} people, {self.text} on {self.arms} arms, {self.horizon} rounds",
            "rule": self.text, "centres": drawn, "spreads": list(SPREADS), "people": self.people,
            "arms": self.arms, "horizon": self.horizon, "runs": self.runs,
        }  # fmt: skip


@dataclass(frozen=True, eq=False)
class PopulationTrials(ParticleTrials):
    """Experiments with other people in each; one row per experiment and parameter."""

    cells: tuple[PopulationCell, ...]
    measure: ClassVar[str] = "population"
    deciding: ClassVar[tuple[str, ...]] = (
        *("kernels", "demonstrators", "inference", "hierarchy", "log", "tape.py", "instance.py"),
        "calibration/population.py",
    )
    rounds_of_a_task: ClassVar[int] = 1  # an experiment is a task

    def seconds(self, cell: PopulationCell) -> float:
        return SECONDS * cell.people * cell.horizon / (PEOPLE * HORIZON)

    def rows(self, task: Task) -> pl.DataFrame:
        """Make the experiments of a task, and estimate the population of each."""
        flags = dict.fromkeys(("centre", "spread", "flagged"), pl.Boolean)
        numbers = dict.fromkeys(("people", "squared", "squared_alone"), pl.Float64)
        schema: dict[str, Any] = {"run": pl.Int64, "parameter": pl.String, **flags, **numbers, "failure": pl.String}
        cell = self.cells[task.cell]
        runs = range(task.first_run, task.last_run)
        return pl.DataFrame([{"run": run, **row} for run in runs for row in self._read(cell, run)], schema=schema)

    def _read(self, cell: PopulationCell, run: int) -> list[dict[str, Any]]:
        """Return for each parameter what holds in one experiment: centre, spread, share of people, squared errors."""
        log, centres, spreads, own = people_of(cell, cell.seed(self.seed), run)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AssumptionWarning)
                found = population(
                    log, cell.text, sigma=NOISE.sigma, prior=NORMAL, particles=self.particles, seed=run, threads=1,
                    check=True,
                )  # fmt: skip
        except UnbanditError as error:
            return [{"parameter": name, "failure": str(error)} for name in centres]
        answers, verdict = [], found.check.verdict
        for at, each in enumerate(found.population):
            name, truth = each.parameter, own[each.parameter]
            pooled, alone = (_scaled(name, found.intervals(at, alone=one)) for one in (False, True))
            answers.append(
                {
                    "parameter": name,
                    "centre": bool(each.low <= _value(name, centres[name]) <= each.high),
                    "spread": bool(each.spread_low <= spreads[name] <= each.spread_high),
                    "flagged": None if verdict == "not checked" else verdict == "does not fit",
                    "people": float(((pooled[0] <= truth) & (truth <= pooled[2])).mean()),
                    "squared": float(np.square(pooled[1] - truth).mean()),
                    "squared_alone": float(np.square(alone[1] - truth).mean()),
                }
            )
        return answers


def people_of(
    cell: PopulationCell, seed: int, run: int
) -> tuple[ActionLog, dict[str, Any], dict[str, float], dict[str, Any]]:
    """Return an experiment's log, centre and spread of each parameter, and every participant's own; all as scaled."""
    generator = np.random.default_rng([seed, run])
    centres, spreads, own = {}, {}, {}
    for name, (low, high) in CENTRES[cell.text].items():
        place = math.exp(generator.uniform(math.log(low), math.log(high)))
        centres[name], spreads[name] = _scaled(name, place), generator.uniform(*SPREADS)
        own[name] = generator.normal(centres[name], spreads[name], cell.people)
    rows = []
    for at in range(cell.people):
        rule = parse_rule(cell.text).model_copy(update={name: _value(name, own[name][at]) for name in own})
        instance = Instance(NORMAL.draw(generator, cell.arms), NOISE)
        first = int(generator.integers(2**32))
        rows.append(rule.demonstrate(instance, cell.horizon, seed=first, threads=1).demonstration(0))
    return ActionLog.from_codes(np.array(rows), instance.arms), centres, spreads, own


def _scaled(name: str, value: Any) -> Any:
    """Return a parameter on the scale on which people are normal."""
    return logit(value) if name in BETWEEN_0_AND_1 else np.log(value)


def _value(name: str, place: float) -> float:
    """Return the parameter at a place on that scale."""
    return float(1 / (1 + math.exp(-place)) if name in BETWEEN_0_AND_1 else math.exp(place))


@dataclass(frozen=True)
class PopulationMetrics:
    """Metrics of one cell, by the name of a parameter."""

    cell: PopulationCell
    centres: Mapping[str, Share]  # experiments in which the interval of the population's centre holds it
    spreads: Mapping[str, Share]
    people: Mapping[str, Measured]  # share of people whose interval holds
    errors: Mapping[str, Measured]  # error per person relative to that of reading everybody alone
    answered: Share
    flagged: Share | None = None  # of experiments that were checked, those whose rule, the right one, is flagged


def population_metrics(cell: PopulationCell, rows: pl.DataFrame) -> PopulationMetrics:
    """Return the metrics of a cell."""
    answered = rows.filter(pl.col("failure").is_null())
    centres, spreads, people, errors = {}, {}, {}, {}
    for name in CENTRES[cell.text]:
        own = answered.filter(parameter=name)
        centres[name] = share(int(own["centre"].sum()), own.height)
        spreads[name] = share(int(own["spread"].sum()), own.height)
        people[name] = measured(replicates(np.mean, own["people"].to_numpy()))
        squared = own["squared"].to_numpy(), own["squared_alone"].to_numpy()
        errors[name] = measured(replicates(lambda one, other: math.sqrt(one.mean() / other.mean()), *squared))
    known = share(answered["run"].n_unique(), rows["run"].n_unique())
    checked, flagged = (
        answered.filter(which)["run"].n_unique() for which in (pl.col("flagged").is_not_null(), pl.col("flagged"))
    )
    false = share(flagged, checked) if checked else None
    return PopulationMetrics(cell, centres, spreads, people, errors, known, false)


class Populations(Measure):
    """Whether intervals hold where participants are read together."""

    name = "population"
    title = "Many participants"
    about = "how often intervals of a population's parameters and of its people hold, and whether pooling helps"
    metrics_type = PopulationMetrics
    metrics = staticmethod(population_metrics)

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, PopulationTrials]]:
        for text in CENTRES:
            cell = PopulationCell(text, PEOPLE, ARMS, HORIZON, sizes.runs or RUNS)
            yield text, PopulationTrials((cell,), sizes.seed, sizes.particles)

    def criteria(self, metrics: Sequence[PopulationMetrics]) -> list[Criterion]:
        centres, spreads, people, errors, flagged = (list[Score]() for _ in range(5))
        for each in metrics:
            if (false := each.flagged) is not None:
                score = Score(each.cell.text, each.cell.size, false, percent(false), judge(false, 0.0, FALSE_ALARMS))
                flagged.append(score)
            for name in each.centres:
                place = f"{each.cell.text}: {name}", each.cell.size
                held = each.centres[name]
                centres.append(Score(*place, held, percent(held), judge(held, LOW, HIGH)))
                held = each.spreads[name]
                spreads.append(Score(*place, held, percent(held), judge(held, LOW, HIGH)))
                persons, ratio = each.people[name], each.errors[name]
                people.append(Score(*place, persons, percent(persons), judge(persons, LOW, HIGH)))
                errors.append(Score(*place, ratio, times(ratio), judge(ratio, high=1.0)))
        note = (
            "Typical parameters are drawn for every experiment, evenly in the logarithm; people are normal around them "
            f"on the scale of `population`, with a spread from {SPREADS[0]} to {SPREADS[1]}; means are from N(0, 1)."
        )
        goal, rows = "92 to 98%", "parameter"
        return [
            Criterion("population, centre", "95% intervals that hold the typical parameter", goal, note, rows,
                      scores=centres),
            Criterion("population, spread", "95% intervals that hold the spread", goal, "", rows, scores=spreads),
            Criterion("population, people", "95% intervals of participants that hold", goal, "", rows, scores=people),
            Criterion("population, pooling", "error per participant, relative to reading each alone", "below 1", "",
                      rows, scores=errors),
        ] + [
            Criterion("population, check", "experiments whose rule, the right one, the check flags",
                      f"at most {FALSE_ALARMS:.0%}", scores=flagged)
        ] * bool(flagged)  # fmt: skip
