"""Numbers of a rule fitted from a log: whether their intervals hold, how long these are, and whether gaps hold."""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit._version import __version__
from unbandit.calibration.measure import Criterion, Measure, Score, judge, percent
from unbandit.calibration.settings import NOISE, NORMAL, ParticleTrials, SeededCell, Sizes
from unbandit.demonstrators import RandomisedRule
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import AssumptionWarning, UnbanditError
from unbandit.estimators import estimate
from unbandit.estimators.coverage import FITTED, SimulatedCoverage, noise_kind
from unbandit.inference.parameters import PARTICLES as PREDICTING
from unbandit.inference.parameters import fit_family
from unbandit.inference.simulations import LONG
from unbandit.instance import Instance
from unbandit.log import ActionLog
from unbandit.result import ESTIMATED
from unbandit.study.monte_carlo import Measured, Share, computed, share
from unbandit.study.taskgrid import Task

TRUTHS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "ucb:alpha=0.25,scale=fit": {"scale": (0.7, 2.5)},
    "ucb1:exploration=fit": {"exploration": (0.25, 2.0)},
    "moss:scale=fit": {"scale": (0.5, 2.0)},
    "lilucb:reward_range=fit": {"reward_range": (0.3, 1.5)},
    "klucb:noise=gaussian,sigma=fit": {"sigma": (0.3, 1.0)},
    "ucb:alpha=0.25,scale=0.7,delay=fit": {"delay": (1, 100)},
    "ucb1:delay=fit": {"delay": (1, 100)},
    "thompson:sigma=fit": {"sigma": (0.25, 1.0)},
    "epsilon-greedy:epsilon=fit": {"epsilon": (0.03, 0.3)},
    "softmax:temperature=fit": {"temperature": (0.1, 0.5)},
    "learning-softmax:rate=fit,temperature=fit": {"rate": (0.1, 0.5), "temperature": (0.1, 0.5)},
}
"""The rules whose numbers are fitted, and between what values the true ones are drawn, evenly in the logarithm.

A delay is a whole number of rounds."""

USUAL: Mapping[str, Mapping[str, float]] = {
    "ucb:alpha=0.25,scale=fit": {"scale": math.sqrt(2)},
    "ucb1:exploration=fit": {"exploration": 2.0},
    "moss:scale=fit": {"scale": 1.0},
    "lilucb:reward_range=fit": {"reward_range": 1.0},
    "klucb:noise=gaussian,sigma=fit": {"sigma": 0.5},
}
"""The values that these rules are published with, and the noise: most logs of smaller ones show less."""

SHARPER, SHARPER_RUNS = 10, 12  # times as many particles, and the logs that are also read by them
INDEX_CELLS, RANDOMISED_CELLS = (
    ((4, 2_000), (4, 50_000)),
    ((2, 300), (4, 300), (2, 2_000), (4, 2_000)),
)  # arms and rounds
RUNS = 100  # logs of every cell
FEWEST_QUOTED = 50  # intervals of gaps whose share reports quote
LOW, HIGH = 0.92, 0.98  # within which coverage is to be
SQUARED = {"exploration": 2.0}  # numbers that stand under a square root in the width: twice as much is allowed
NARROW, NARROWER = (
    0.2,
    0.08,
)  # half of an interval's length relative to its value, at most, for index rules; of a long log
SECONDS, SECONDS_OF_A_POSTERIOR = 8.0, 10.0  # about, of one log


@dataclass(frozen=True)
class FitCell(SeededCell):
    """A rule with numbers to be fitted, and how long its logs are."""

    text: str
    arms: int
    horizon: int
    runs: int
    usual: bool = False  # whether the true number is the usual one, rather than drawn

    @property
    def family(self) -> RuleFamily:
        """Return the rule with its free numbers."""
        found = rule_or_family(self.text)
        assert isinstance(found, RuleFamily)
        return found

    @property
    def size(self) -> str:
        """Return arms and rounds as they are written in tables."""
        return f"K={self.arms}, T={self.horizon:,}"

    @property
    def truths(self) -> Mapping[str, tuple[float, float]]:
        """Return between what values the true numbers are drawn."""
        if not self.usual:
            return TRUTHS[self.text]
        return {name: (value, value) for name, value in USUAL[self.text].items()}

    def row(self, name: str) -> str:
        """Return what is fitted, as it is written in tables."""
        usual = f" = {USUAL[self.text][name]:.4g}" if self.usual else ""
        return f"{self.family.kind.name}: {name}{usual}"

    @property
    def described(self) -> dict[str, object]:
        """Return all that determines what is played, as plain values."""
        drawn = {name: list(ends) for name, ends in self.truths.items()}
        name = f"{self.text} on {self.arms} arms, {self.horizon} rounds{', usual' if self.usual else ''}"
        return {
            "name": name, "rule": self.text, "truths": drawn, "arms": self.arms, "horizon": self.horizon,
            "runs": self.runs,
        }  # fmt: skip


def made(cell: FitCell, seed: int, run: int) -> tuple[ActionLog, dict[str, float], NDArray[np.float64]]:
    """Return a log of a cell, the rule's true numbers, and the arms' means."""
    own = cell.seed(seed)
    generator = np.random.default_rng([own, run])
    truth = {
        name: math.exp(generator.uniform(math.log(low), math.log(high))) for name, (low, high) in cell.truths.items()
    }
    truth = {name: round(value) if name == "delay" else value for name, value in truth.items()}
    means = NORMAL.draw(generator, cell.arms)
    rule = cell.family.at(truth)
    log = rule.demonstrate(Instance(means, NOISE), cell.horizon, seed=own, first_run=run, threads=1)
    return log, truth, means


@dataclass(frozen=True, eq=False)
class FitTrials(ParticleTrials):
    """Logs of some cells, each of another bandit and with other numbers; one row per log and number."""

    cells: tuple[FitCell, ...]
    measure: ClassVar[str] = "fit"
    deciding: ClassVar[tuple[str, ...]] = (
        *("kernels", "demonstrators", "inference", "estimators", "log", "tape.py", "instance.py"),
        "calibration/parameters.py",
    )
    rounds_of_a_task: ClassVar[int] = 4_000

    def seconds(self, cell: FitCell) -> float:
        """Return about how long a log takes."""
        return SECONDS_OF_A_POSTERIOR if issubclass(cell.family.kind, RandomisedRule) else SECONDS

    def rows(self, task: Task) -> pl.DataFrame:
        """Make the logs of a task, and fit and estimate each."""
        numbers = dict.fromkeys(("truth", "value", "low", "high", "sharper"), pl.Float64)
        counts = {"gaps": pl.Int64, "held": pl.Int64, "failure": pl.String}
        schema: dict[str, Any] = {"run": pl.Int64, "parameter": pl.String, **numbers, **counts}
        cell = self.cells[task.cell]
        runs = range(task.first_run, task.last_run)
        found = [{"run": run, **row} for run in runs for row in self._read(cell, run)]
        return pl.DataFrame(found, schema=schema)

    def _read(self, cell: FitCell, run: int) -> list[dict[str, Any]]:
        """Return what is fitted to one log, and the truth; the counts of gaps stand in the first row."""
        family, (log, truth, means) = cell.family, made(cell, self.seed, run)
        drawn: dict[str, Any] = {}
        if issubclass(family.kind, RandomisedRule):
            drawn = {"prior": NORMAL, "seed": run, "particles": self.particles}
        rows: list[dict[str, Any]] = [{"parameter": name, "truth": value} for name, value in truth.items()]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", AssumptionWarning)
                answer = estimate(log, family, sigma=NOISE.sigma, check=False, **drawn)
        except UnbanditError as error:
            return [row | {"failure": str(error)} for row in rows]
        for row, fitted in zip(rows, answer.fitted, strict=True):
            row |= {"value": fitted.value, "low": fitted.low, "high": fitted.high}
        if cell.text in USUAL and cell.horizon < LONG and run < SHARPER_RUNS:
            rows[0] |= {"sharper": self._sharper(log, cell)}
        columns, gaps = answer.columns, means.max() - means
        estimated = columns.verdict[0] == ESTIMATED
        held = estimated & (columns.gap_low[0] <= gaps) & (gaps <= columns.gap_high[0])
        rows[0] |= {"gaps": int(estimated.sum()), "held": int(held.sum())}
        return rows

    def _sharper(self, log: ActionLog, cell: FitCell) -> float | None:
        """Return the number's interval by many more particles: the ratio of its ends; None if nothing shows it."""
        many = SHARPER * PREDICTING
        try:
            fitted = fit_family(log, cell.family, NOISE, NORMAL, [cell.horizon], particles=many).fitted[0]
        except UnbanditError:
            return None
        return float(fitted.high / fitted.low)


@dataclass(frozen=True)
class FitMetrics:
    """Metrics of one cell."""

    cell: FitCell
    coverage: Mapping[str, Share]  # share of the intervals that hold the true number, by its name
    widths: Mapping[str, float]  # median of half an interval's length over the value, by its name
    gaps: Share  # share of the intervals of gaps that hold the true one
    answered: Share  # logs that are not refused
    sharper: float = math.nan  # length of intervals with many more particles, relative to that of users', in logarithms


def fit_metrics(cell: FitCell, rows: pl.DataFrame) -> FitMetrics:
    """Return the metrics of a cell."""
    coverage, widths = {}, {}
    answered = rows.filter(pl.col("failure").is_null())
    for name in cell.truths:
        own = answered.filter(parameter=name)
        held = own.filter((pl.col("low") <= pl.col("truth")) & (pl.col("truth") <= pl.col("high")))
        coverage[name] = share(held.height, own.height)
        half = ((own["high"] - own["low"]) / (2 * own["value"])).median()
        widths[name] = float(half) if isinstance(half, float) else math.nan
    gaps = share(int(answered["held"].sum()), int(answered["gaps"].sum()))
    both = answered.drop_nulls("sharper")
    many, users = (np.log(each.to_numpy()) for each in (both["sharper"], both["high"] / both["low"]))
    return FitMetrics(
        cell, coverage, widths, gaps, share(answered["run"].n_unique(), cell.runs),
        float(np.median(many) / np.median(users)) if many.size else math.nan,
    )  # fmt: skip


class Fits(Measure):
    """Whether intervals hold where numbers of the rule are fitted."""

    name = "fit"
    title = "Numbers fitted from the log"
    about = "how often intervals of numbers that are fitted from a log hold, and those of gaps that allow for it"
    metrics_type = FitMetrics

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, FitTrials]]:
        """Yield the logs of each rule."""
        for text in TRUTHS:
            family = rule_or_family(text)
            assert isinstance(family, RuleFamily)
            cells_of_it = RANDOMISED_CELLS if issubclass(family.kind, RandomisedRule) else INDEX_CELLS
            places = [each for each in cells_of_it if each[1] < LONG or family.free != ("delay",)]
            cells = tuple(
                FitCell(text, *place, sizes.runs or RUNS, usual)
                for usual in (False, True)[: 1 + (text in USUAL)]
                for place in places
            )
            yield str(family.example), FitTrials(cells, sizes.seed, sizes.particles)

    def metrics(self, cell: FitCell, rows: pl.DataFrame) -> FitMetrics:
        """Return the metrics of one cell."""
        return fit_metrics(cell, rows)

    def coverages(self, metrics: Sequence[FitMetrics]) -> Iterator[SimulatedCoverage]:
        """Yield how often the intervals of gaps held."""
        for each in metrics:
            cell, held = each.cell, each.gaps
            if held.runs >= FEWEST_QUOTED:
                where = FITTED, "gap", cell.text, noise_kind(NOISE), cell.arms, cell.horizon
                yield SimulatedCoverage(*where, held.value, held.error, each.answered.held, __version__)

    def criteria(self, metrics: Sequence[FitMetrics]) -> list[Criterion]:
        """Return the criteria with their scores, one per number and cell."""
        held, widths, gaps, answered = list[Score](), list[Score](), list[Score](), list[Score]()
        sharper = list[Score]()
        for each in metrics:
            text = each.cell.text + (", usual value" if each.cell.usual else "")
            place, index = (text, each.cell.size), not issubclass(each.cell.family.kind, RandomisedRule)
            for name, covered in each.coverage.items():
                row = each.cell.row(name), each.cell.size
                held.append(Score(*row, covered, percent(covered), judge(covered, LOW, HIGH)))
                half = Measured(each.widths[name], 0.0, 0)
                most = (NARROWER if each.cell.horizon >= LONG else NARROW) * SQUARED.get(name, 1.0)
                verdict = judge(half, high=most) if index and name != "delay" else None
                widths.append(Score(*row, half, f"{100 * half.value:.0f}%", verdict))
            gaps.append(Score(*place, each.gaps, percent(each.gaps), judge(each.gaps, LOW, HIGH)))
            answered.append(Score(*place, each.answered, percent(each.answered), None))
            if math.isfinite(each.sharper):
                sharper.append(Score(*place, computed(each.sharper), f"{each.sharper:.2f}", None))
        note = (
            "True numbers are drawn evenly in the logarithm, or are those that a rule is published with (`= 2`). Means "
            "are drawn from N(0, 1) for every log."
        )
        about = (
            "Half of an interval's length relative to the value, the median over logs. An exploration constant stands "
            "under a square root: the width that it makes is known twice as closely, so that twice as much is allowed."
        )
        goal = "92 to 98%"
        found = [
            Criterion("fit, coverage", "95% intervals that hold the fitted number", goal, note, "number", scores=held),
            Criterion(
                "fit, width",
                "length of the intervals of fitted numbers",
                "index rules: at most 20% at T=2,000, 8% at T=50,000",
                about,
                "number",
                scores=widths,
            ),
            Criterion("fit, gaps", "95% intervals that hold the true gap, with fitted numbers", goal, scores=gaps),
            Criterion("fit, answered", "logs that show the number", "no goal", scores=answered),
        ]
        if sharper:
            what = f"length of the intervals with {SHARPER} times as many particles, relative to that of users"
            about = "On the same logs. Near 1, it is the log that limits how closely the number is known."
            found.append(Criterion("fit, more particles", what, "no goal", about, scores=sharper))
        return found
