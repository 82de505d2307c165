"""Closed forms on simulated records: `bracket` beside Procedures 1 and 2 and beside the naive estimator.

Records of four designs: means drawn anew in every run, means at even distances, arms that are nearly equal, and the
paper's own instances. The same records are read by every method. The noise is known, and for an index that does not
rise one for one with the mean (and for Bernoulli rewards) the best mean, as the paper has it.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit import datasets
from unbandit._version import __version__
from unbandit.calibration.measure import MISSED, UNKNOWN, Criterion, Measure, Score, grid, judge, percent, times
from unbandit.calibration.settings import BERNOULLI, GAUSSIAN, NOISE, CellTrials, SeededCell, Sizes, rule_name, short
from unbandit.demonstrators import UCB, Demonstrator, EliminationRule, parse_rule
from unbandit.estimators.coverage import LEVEL, SIGMA, SimulatedCoverage, noise_kind
from unbandit.estimators.diagnostics import MANY_CLOSE
from unbandit.estimators.procedures import Anchor, Method, can_compare, compare, intervals, quantile
from unbandit.formatting import markdown_table
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.log.tallies import Tallies
from unbandit.result import BOUNDED, ESTIMATED
from unbandit.study.monte_carlo import FOLDS, Floats, Measured, ratio, share_of
from unbandit.study.taskgrid import Task, describe_rule
from unbandit.tape import Tape

Design = Literal["random", "even", "near", "paper"]

METHODS: Final[tuple[Method, ...]] = ("bracket", "switching", "naive")
FREQUENT = 0.95  # share of the runs that the most frequent pull counts make up
FEWEST_ESTIMATES = 20  # of an arm, for its pull counts to be looked at
FEWEST_RUNS = 5  # of a kind, from which on it is judged how often their intervals hold
FEWEST_INTERVALS = 20  # with fewer intervals nothing can be said about whether 93% of them hold

CELLS: dict[Design, tuple[tuple[int, int, int], ...]] = {
    "random": ((2, 500, 2_000), (4, 2_000, 1_000), (10, 500, 500), (10, 5_000, 300), (20, 2_000, 300)),
    "even": ((2, 500, 2_000), (2, 5_000, 1_000), (4, 2_000, 1_000), (10, 500, 500), (10, 5_000, 500)),
    "near": ((2, 500, 1_000), (4, 2_000, 500), (10, 500, 300), (20, 5_000, 300)),
}
"""Arms, horizon and runs of each cell, by design."""

NEAR = 0.05  # within which nearly equal means are

BERNOULLI_RULES = (*BERNOULLI, "ucb:alpha=0.25,scale=0.7")
"""The rules that play rewards of 0 and 1 here; those without a closed form are left out later."""

GAUSSIAN_RULES = (*GAUSSIAN, "sae:alpha=0.25,scale=0.4", "phased:alpha=0.25,scale=0.4")
"""The rules that play Gaussian rewards; of elimination also with a width that eliminates in these horizons."""

EVEN_SIGMAS = (SIGMA, 1.0)  # noise of Gaussian rewards where the best arm is 1 better than the worst


@dataclass(frozen=True)
class ClosedFormCell(SeededCell):
    """A rule and the bandits that it plays in a number of runs: of a fixed instance, or with other means in each."""

    design: Design
    rule: Demonstrator
    arms: int
    horizon: int
    runs: int
    noise: Noise
    means: tuple[float, ...] | None = None  # fixed, and shuffled in every run; None for means drawn anew
    label: str = ""  # of an instance of the paper

    @property
    def described(self) -> dict[str, object]:
        name = f"{self.rule} on {self.arms} arms, {self.horizon} rounds, {self.design} {self.label}".rstrip()
        return {
            "name": name, "rule": describe_rule(self.rule), "arms": self.arms, "horizon": self.horizon,
            "noise": str(self.noise), "means": None if self.means is None else list(self.means), "runs": self.runs,
        }  # fmt: skip

    def drawn_means(self, seed: int, run: int) -> Floats:
        """Draw the means of a run of a design that is not fixed."""
        generator, bernoulli = np.random.default_rng([seed, run]), isinstance(self.noise, Bernoulli)
        if self.design == "near":
            return generator.uniform(0.0, NEAR, self.arms) + 0.5 * bernoulli
        return generator.uniform(0.0, 1.0, self.arms) if bernoulli else generator.standard_normal(self.arms)


def closed_form_cells(text: str, runs: int | None = None) -> tuple[ClosedFormCell, ...]:
    """Return the cells of a rule, those of the paper with the first rule of each name; `runs` replaces their number."""
    rule, bernoulli = parse_rule(text), text in BERNOULLI_RULES
    if not can_compare(rule, "switching"):
        return ()
    cells, best, worst = [], (0.9 if bernoulli else 1.0), (0.1 if bernoulli else 0.0)
    for design, sizes in CELLS.items():
        noises: Sequence[Noise] = [Gaussian(sigma) for sigma in (EVEN_SIGMAS if design == "even" else (SIGMA,))]
        for noise in [Bernoulli()] if bernoulli else noises:
            for arms, horizon, usual in sizes:
                means = tuple(np.linspace(best, worst, arms).tolist()) if design == "even" else None
                cells.append(ClosedFormCell(design, rule, arms, horizon, usual, noise, means))
    if text in ("ucb:alpha=0.25", "sae:alpha=0.25"):
        cells += paper_cells(rule.name)
    return tuple(cells if runs is None else [replace(cell, runs=runs) for cell in cells])


def paper_cells(name: str) -> Iterator[ClosedFormCell]:
    """Yield the cells with the paper's own instances; horizons from the shortest to the longest that it shows."""

    def cell(label: str, rule: Demonstrator, instance: Instance, horizon: int, runs: int) -> ClosedFormCell:
        means = tuple(instance.means.tolist())
        return ClosedFormCell("paper", rule, len(means), horizon, runs, instance.noise, means, label)

    two, four, rule = datasets.two_armed(), datasets.linear(), parse_rule(f"{name}:alpha=0.25")
    if name == "sae":
        for horizon, runs in ((5_000, 500), (50_000, 300)):
            yield cell("two arms", rule, two, horizon, runs)
            yield cell("four arms", rule, four, horizon, runs)
        return
    for horizon, runs in ((500, 100_000), (1_077, 10_000), (5_000, 2_000)):
        yield cell("two arms", UCB(alpha=0.15), two, horizon, runs)
        yield cell("two arms", rule, two, horizon, runs)
        yield cell("four arms", rule, four, horizon, max(runs // 20, 500))
    for horizon, runs in ((500, 100_000), (5_000, 2_000)):
        for beta in (0.05, 0.5):
            yield cell(f"gap T^-{beta}", rule, datasets.shrinking_gap(horizon, beta), horizon, runs)
    protocols = datasets.battery("high", arms=20, seed=1)
    for horizon in (1_000, 10_000):
        adjusted = UCB.variance_adjusted(alpha=0.25, sigma=protocols.sigma)
        yield cell("20 protocols", adjusted, protocols, horizon, 300)


@dataclass(frozen=True, eq=False)
class ClosedFormTrials(CellTrials):
    """All runs of some cells; one row per run and arm, with every method's answer."""

    cells: tuple[ClosedFormCell, ...]
    measure: ClassVar[str] = "closed-forms"
    deciding: ClassVar[tuple[str, ...]] = (
        *("kernels", "demonstrators", "datasets", "tape.py", "instance.py", "estimators/procedures.py"),
        "calibration/closed_forms.py",
    )
    rounds_of_a_task: ClassVar[int] = 400_000

    def rows(self, task: Task) -> pl.DataFrame:
        """Play the runs of a task and read them by every method."""
        cell, runs = self.cells[task.cell], np.arange(task.first_run, task.last_run)
        seed = cell.seed(self.seed)
        tallies, instances = _played(cell, seed, runs)
        means = np.array([instance.means for instance in instances])
        columns: dict[str, Floats | NDArray[Any]] = {
            "cell": np.full(means.size, task.cell),
            "run": np.repeat(runs, cell.arms),
            "pulls": tallies.pulls.reshape(-1),
            "gap": (means.max(axis=1, keepdims=True) - means).reshape(-1),
            "seen": _seen_gaps(cell, tallies.pulls, instances, seed, runs).reshape(-1),
        }
        # Gaussian gaps need no known mean, so all runs are read at once; otherwise each has a best mean of its own.
        together = isinstance(cell.noise, Gaussian) and getattr(cell.rule, "shifts", True)
        blocks = [(0, runs.size)] if together or cell.means else [(run, run + 1) for run in range(runs.size)]
        for method in METHODS:
            parts = []
            for start, stop in blocks:
                known = None if together else Anchor(None, instances[start].best_mean)
                parts.append(_answers(cell, method, tallies.part(start, stop), known))
            columns |= {name: np.concatenate([part[name] for part in parts]).reshape(-1) for name in parts[0]}
        return pl.DataFrame(columns, nan_to_null=True)


def _played(cell: ClosedFormCell, seed: int, runs: NDArray[np.int64]) -> tuple[Tallies, list[Instance]]:
    """Play runs of a cell; return what was counted, and the instance of each run, its arms in the order of the run."""
    if cell.means is not None:
        fixed, orders = Instance(cell.means, cell.noise), Tape(seed).orders(runs, cell.arms)
        tallies = cell.rule.evidence(
            fixed, cell.horizon, runs=runs.size, seed=seed, threads=1, first_run=int(runs[0]), orders=orders
        )
        return tallies, [fixed.reordered(order) for order in orders]
    instances = [Instance(cell.drawn_means(seed, run), cell.noise) for run in runs.tolist()]
    parts = [
        cell.rule.evidence(instance, cell.horizon, seed=seed, first_run=run, threads=1)
        for run, instance in zip(runs.tolist(), instances, strict=True)
    ]
    names = parts[0].arrays
    return Tallies(**{name: np.concatenate([part.arrays[name] for part in parts]) for name in names}), instances


def _seen_gaps(
    cell: ClosedFormCell, pulls: NDArray[np.int64], instances: Sequence[Instance], seed: int, runs: NDArray[np.int64]
) -> Floats:
    """Return every gap as one who saw the rewards would estimate it: between the sample means of arm and best arm.

    The most-pulled arm is taken for the best, as the closed forms take it. Of an elimination rule, the two are compared
    after as many pulls of each: what the best arm gave later decided nothing.
    """
    tape, gaps = Tape(seed), np.full(pulls.shape, np.nan)
    for row, (run, instance) in enumerate(zip(runs.tolist(), instances, strict=True)):
        counts, best = pulls[row], int(pulls[row].argmax())
        arms = np.repeat(np.arange(counts.size), counts)
        numbers = np.arange(1, arms.size + 1) - np.repeat(np.cumsum(counts) - counts, counts)
        rewards = tape.reward(instance, run, arms, numbers)
        own = np.bincount(arms, rewards, minlength=counts.size)
        until = counts if isinstance(cell.rule, EliminationRule) else np.full(counts.size, counts[best])
        of_best = np.concatenate([[0.0], np.cumsum(rewards[arms == best])])[until]
        pulled = counts > 0
        gaps[row, pulled] = (of_best / np.maximum(until, 1) - own / np.maximum(counts, 1))[pulled]
    return gaps


def _answers(
    cell: ClosedFormCell, method: Method, tallies: Tallies, known: Anchor | None
) -> dict[str, NDArray[Any]]:  # fmt: skip
    """Return what a method says about every arm of some runs, by column; of `bracket` also which arms look close."""
    constant = float(np.sqrt(2) * cell.noise.deviation)
    found = compare(tallies, cell.rule, method, cell.horizon, constant, known, cell.noise)
    low, high, deviation, *_ = intervals(found, cell.noise, known, quantile(LEVEL))
    columns: dict[str, NDArray[Any]] = {method: found.gap, f"{method} verdict": found.verdict}
    if method != "naive":
        columns |= {f"{method} low": low, f"{method} high": high}
    if method == "bracket":
        with np.errstate(invalid="ignore"):
            columns["close"] = (found.verdict == ESTIMATED) & (found.gap < 2 * deviation)
    return columns


@dataclass(frozen=True)
class ClosedFormMetrics:
    """Metrics of one cell: NaN where there is nothing to measure."""

    cell: ClosedFormCell
    coverage: Measured  # share of the 95% intervals of `bracket` that hold the true gap, of arms that are estimated
    unwarned: Measured  # the same in runs without the notice that arms are too close to the best to tell apart
    unwarned_runs: int
    reach_zero: Measured  # share of these intervals that reach down to 0: the arm may be as good as the best
    procedures: Measured  # the same of the paper's procedures
    bounded: Measured  # the same of bounds
    intervals: int  # how many arms are estimated
    bounds: int  # and bounded
    against_procedures: Measured  # root mean squared error of `bracket`, divided by that of the paper's procedures
    against_naive: Measured  # divided by that of the naive estimator
    against_seen: Measured  # divided by that of the sample means of the rewards, which the choices are made by
    naive_against_seen: Measured
    pull_counts: int  # how many numbers of pulls of an arm make up 95% of the runs; of fixed means


def closed_form_metrics(cell: ClosedFormCell, rows: pl.DataFrame) -> ClosedFormMetrics:
    """Return the metrics of a cell. Errors are over arms that both methods estimate, coverage over all of one's."""
    rows = rows.sort("run", maintain_order=True)

    def table(name: str) -> Floats:
        """Lay out a column with one row per run, and one column per arm."""
        return rows[name].cast(pl.Float64).to_numpy().reshape(-1, cell.arms)

    gap, verdict = table("gap"), table("bracket verdict")
    estimated = verdict == ESTIMATED
    both = estimated & (table("switching verdict") == ESTIMATED)
    squared = {name: np.where(both, (table(name) - gap) ** 2, 0.0) for name in (*METHODS, "seen")}
    held = {method: _holds(gap, table(f"{method} low"), table(f"{method} high")) for method in METHODS[:2]}
    quiet = estimated & (table("close").sum(axis=1, keepdims=True) < MANY_CLOSE)
    return ClosedFormMetrics(
        cell,
        coverage=share_of(held["bracket"], estimated),
        unwarned=share_of(held["bracket"], quiet),
        unwarned_runs=int(quiet.any(axis=1).sum()),
        reach_zero=share_of(table("bracket low") <= 0, estimated),
        procedures=share_of(held["switching"], table("switching verdict") == ESTIMATED),
        bounded=share_of(held["bracket"], verdict == BOUNDED),
        intervals=int(estimated.sum()),
        bounds=int((verdict == BOUNDED).sum()),
        against_procedures=ratio(squared["bracket"], squared["switching"], root=True),
        against_naive=ratio(squared["bracket"], squared["naive"], root=True),
        against_seen=ratio(squared["bracket"], squared["seen"], root=True),
        naive_against_seen=ratio(squared["naive"], squared["seen"], root=True),
        pull_counts=_frequent_counts(table("pulls"), gap, estimated) if cell.means else 0,
    )


def _holds(gap: Floats, low: Floats, high: Floats) -> NDArray[np.bool_]:
    """Return which intervals hold the gap; an end that is missing excludes nothing."""
    with np.errstate(invalid="ignore"):
        return np.asarray(~(low > gap) & ~(gap > high))


def _frequent_counts(pulls: Floats, gap: Floats, estimated: NDArray[np.bool_]) -> int:
    """Return how many numbers of pulls make up 95% of the runs, for the arm for which they are fewest."""
    fewest = []
    for size in np.unique(gap[gap > 0]):
        counts = np.sort(np.unique(pulls[estimated & (gap == size)], return_counts=True)[1])[::-1]
        if counts.sum() >= FEWEST_ESTIMATES:
            fewest.append(int(np.searchsorted(np.cumsum(counts), FREQUENT * counts.sum())) + 1)
    return min(fewest, default=0)


DESIGNS: dict[Design, str] = {
    "random": "Means are drawn from N(0, 1) in every run (Bernoulli: uniformly from 0 to 1).",
    "even": "Means lie evenly from 1 to 0 (Bernoulli: 0.9 to 0.1), shuffled in every run.",
    "near": "Means are drawn within 0.05 of each other in every run (Bernoulli: from 0.5 to 0.55).",
    "paper": "Instances and horizons are the paper's own, arms shuffled in every run.",
}
CLEARLY_BETTER = {("ucb", 4, 2_000), ("ucb", 10, 500)}  # rules, arms and horizons of random means that have a goal


def closed_form_criteria(cells: Sequence[ClosedFormMetrics]) -> list[Criterion]:
    """Return the criteria of the closed forms with their scores, design by design."""
    share_note = (
        f"In brackets the share of all arms that have such an interval. Fewer than {FEWEST_INTERVALS} intervals are "
        "shown, but not judged; those of fewer than 20 runs decide nothing."
    )
    criteria = []
    for design in DESIGNS:
        own = [each for each in cells if each.cell.design == design]
        if not own:
            continue
        near, paper = design == "near", design == "paper"
        rows = "instance and rule" if paper else "rule and noise"
        low, high = (0.92, 0.99) if near else (0.93, 0.97)

        def add(
            key: str, measure: str, reach: str, scores: list[Score], note: str = "", *, design: Design = design,
            rows: str = rows,
        ) -> None:  # fmt: skip
            about, notes = f"{design} means", f"{DESIGNS[design]} {note}".rstrip()
            charted = "closed forms, gaps" if (design, key) == ("random", "coverage") else ""
            key = f"{design} means, {key}"
            criteria.append(Criterion(key, f"{about}: {measure}", reach, notes, rows, charted, scores))

        add(
            "coverage", "coverage of the 95% intervals of `bracket`, of arms with the verdict `estimated`",
            "at least 92%, none above 99%" if near else "93% to 97%, none above 99%",
            [_interval_score(each, each.coverage, each.intervals, low, high) for each in own], share_note,
        )  # fmt: skip
        if near:
            add(
                "not told", "the same in runs in which no notice says that arms are too close to tell apart",
                "at least 92%", [_unwarned_score(each) for each in own],
            )  # fmt: skip
        if not paper:
            add(
                "bounds", "how often the bound of arms with the verdict `bounded` holds", "at least 93%",
                [_interval_score(each, each.bounded, each.bounds, 0.93) for each in own], share_note,
            )  # fmt: skip
        goals = {"paper": "at most 1.05", "random": "at most 0.65 for ucb with K=4, T=2,000 and K=10, T=500"}
        add(
            "against the procedures", "root mean squared error of `bracket` over that of Procedures 1 and 2",
            goals.get(design, "no goal"), [_against_procedures(each) for each in own],
            "Of arms that both estimate, on the same logs.",
        )  # fmt: skip
        add(
            "against naive", "root mean squared error of `bracket` over that of the naive estimator", "below 1",
            [_ratio_score(each, each.against_naive, 1.0) for each in own],
        )  # fmt: skip
    return criteria


def place(each: ClosedFormMetrics) -> tuple[str, str]:
    """Return the row and the column of a cell."""
    cell = each.cell
    if cell.design == "paper":
        return f"{cell.label}, {short(cell.rule)}", f"T={cell.horizon:,}"
    return rule_name(cell.rule, cell.noise), f"K={cell.arms}, T={cell.horizon:,}"


def _interval_score(
    each: ClosedFormMetrics, value: Measured, count: int, low: float, high: float = math.inf
) -> Score:  # fmt: skip
    known = count > 0 and math.isfinite(value.value)
    given = f"{percent(value)} (of {100 * count / (each.cell.runs * each.cell.arms):.3g}%)" if known else "-"
    return Score(*place(each), value, given, UNKNOWN if count < FEWEST_INTERVALS else judge(value, low, high))


def _unwarned_score(each: ClosedFormMetrics) -> Score:
    count, value = each.unwarned_runs, each.unwarned
    text = f"{percent(value)} ({count:,} of {each.cell.runs:,} runs)" if count else "-"
    return Score(*place(each), value, text, UNKNOWN if count < FEWEST_RUNS else judge(value, 0.92))


def _ratio_score(each: ClosedFormMetrics, value: Measured, most: float | None) -> Score:
    verdict = UNKNOWN if each.intervals < FEWEST_INTERVALS else None if most is None else judge(value, high=most)
    return Score(*place(each), value, times(value), verdict)


def _against_procedures(each: ClosedFormMetrics) -> Score:
    cell = each.cell
    small = cell.design == "random" and (cell.rule.name, cell.arms, cell.horizon) in CLEARLY_BETTER
    small = small and cell.noise == NOISE
    return _ratio_score(each, each.against_procedures, 1.05 if cell.design == "paper" else 0.65 if small else None)


BEYOND = """\
What is taken as right is asked of every cell. What puts some outside has a column of its own where it can be measured.

- *Few different logs.* With fixed means a coverage is a sum of the probabilities of logs, each of which has one
  interval. Where an arm's number of pulls takes a few values only (the fewest of any arm are counted), coverage jumps
  between them. Over random means the jumps average out. Phased elimination tests after 1, 2, 4, 8, ... pulls, so that a
  gap is anywhere between two tests: there an interval that has the right length for a bell curve is longer than needed.
- *Arms too close to the best.* An interval reaches down to 0 where the most-pulled arm may be the luckiest rather than
  the best. Where most do, they hold more often than 95%; that is what nearly equal arms need.
- *Means near 0 or 1.* Rewards of 0 and 1 hardly vary there, but after few pulls a log does not show how rare the
  rarer of them is: intervals are as long as if two more of each had come, and hold too often.
- *The largest of many.* Elimination compares an arm with the largest of all active sample means. After few pulls, with
  noise as large as the gaps, that is too large by luck; `many-active` warns of it.
- *A lucky leader.* All arms of a log are compared with the same one, so they miss together. Among nearly equal arms
  it breaks away in a few runs in a hundred, and then no arm looks close. A leader that is better by as much leaves the
  same logs, so no reading of one can tell; over all runs the intervals hold (the first table of that design).
- *An estimator that is right by accident.* The naive estimator is too large for some gaps and too small for others;
  near where it is right, it errs less than the sample means of the very rewards that the choices were made by. Nothing
  in a log shows that one is there.
"""


def beyond_goals(cells: Sequence[ClosedFormMetrics], criteria: Sequence[Criterion]) -> Iterator[str]:
    """Yield the lines about closed-form cells that are outside, with what explains most of them."""
    by_place = {(f"{each.cell.design} means", *place(each)): each for each in cells}
    found = [
        (criterion, score, own)
        for criterion in criteria
        for score in criterion.scores
        if score.verdict == MISSED
        and (own := by_place.get((criterion.key.partition(",")[0], score.row, score.column))) is not None
    ]
    if not found:
        return
    yield from ("", "### Closed forms outside, and why", "", BEYOND)
    headings = (
        "measure", "whose", "cell", "measured", "pull counts that make up 95% of the runs", "intervals that reach 0",
        "error of `bracket` over that of the rewards' sample means", "error of the naive estimator over that",
    )  # fmt: skip
    rows = []
    for criterion, score, own in found:
        counts = f"{own.pull_counts:,}" if own.pull_counts else ""
        measured = percent(own.reach_zero), times(own.against_seen), times(own.naive_against_seen)
        rows.append((criterion.key, f"`{score.row}`", score.column, score.text, counts, *measured))
    yield from markdown_table(headings, rows)


class ClosedForms(Measure):
    """How well the closed forms hold, for every rule that has one."""

    name = "closed-forms"
    title = "Closed forms"
    about = "how often the intervals of `bracket` hold, and how large its errors are"
    metrics_type = ClosedFormMetrics
    metrics = staticmethod(closed_form_metrics)
    criteria = staticmethod(closed_form_criteria)

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, ClosedFormTrials]]:
        for text in (*GAUSSIAN_RULES, *BERNOULLI_RULES):
            if cells := closed_form_cells(text, sizes.runs):
                yield text, ClosedFormTrials(cells, sizes.seed)

    def remarks(self, metrics: Sequence[ClosedFormMetrics], criteria: Sequence[Criterion]) -> Iterator[str]:
        """List the cells that are outside, and the runs behind all of them."""
        yield from beyond_goals(metrics, criteria)
        yield from ("", "### Runs behind the figures of the closed forms", "")
        runs: dict[tuple[str, str], str] = {}
        for own in metrics:
            label = f"{own.cell.label}, {own.cell.rule.name}" if own.cell.label else f"{own.cell.design} means"
            runs[label, place(own)[1]] = f"{own.cell.runs:,}"
        yield from grid("means", [(*where, number) for where, number in runs.items()])

    def coverages(self, metrics: Sequence[ClosedFormMetrics]) -> Iterator[SimulatedCoverage]:
        for each in metrics:
            cell = each.cell
            if cell.design != "random":
                continue
            where = str(cell.rule), noise_kind(cell.noise), cell.arms, cell.horizon
            for method, held in (("bracket", each.coverage), ("switching", each.procedures)):
                if math.isfinite(held.error) and held.folds >= FOLDS:
                    yield SimulatedCoverage(method, "gap", *where, held.value, held.error, cell.runs, __version__)
