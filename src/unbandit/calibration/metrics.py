"""Metrics of posteriors, closed forms and `identify`, each with its Monte-Carlo error; time and memory on one core."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.calibration.closed_forms import METHODS, ClosedFormCell, ClosedFormTrials
from unbandit.calibration.settings import BERNOULLI, GAUSSIAN, TrialSetting, trial_setting
from unbandit.calibration.trials import CANNOT_TELL, RANKS, RIGHT, WRONG, play
from unbandit.demonstrators import IndexRule, Thompson, parse_rule
from unbandit.estimators.diagnostics import MANY_CLOSE
from unbandit.inference import infer
from unbandit.result import BOUNDED, ESTIMATED
from unbandit.study.dispatch import WorkerProcesses
from unbandit.study.monte_carlo import Measured, Share, measured, replicates, share

RANK_BINS = 20  # number of bins into which ranks are counted
FEWEST_RANKS = 5  # fewest ranks that a bin must be expected to hold for the test to be worth anything
USUAL_RECORD, LARGE_RECORD = (4, 5_000), (224, 25_000)  # arms and rounds of the records whose posteriors are timed
REPEATS = 3  # how often a usual record is timed; the median is reported

FREQUENT = 0.95  # share of the runs that the most frequent pull counts make up
FEWEST_ESTIMATES = 20  # of an arm, for its pull counts to be looked at

Floats = NDArray[np.float64]

NOTHING = Measured(np.nan, np.nan, 0)


@dataclass(frozen=True)
class PosteriorMetrics:
    """Metrics of the posterior in one cell."""

    setting: TrialSetting
    runs: int
    failed: int  # runs without a posterior
    warned: int  # runs with a warning
    coverage: Measured  # share of the intervals that hold the true mean, averaged over arms
    gap_coverage: Measured  # the same of the gaps
    lowest: Share  # coverage of the arm, by its place, whose intervals hold least often
    uniform: float  # p-value of uniform ranks; NaN for too few runs
    against_oracle: Measured  # root mean squared error of the gaps, divided by that of an observer who sees the rewards
    against_naive: Measured  # mean squared error of the gaps, divided by that of the naive estimator


def posterior_metrics(setting: TrialSetting, rows: pl.DataFrame) -> PosteriorMetrics:
    """Return the metrics of one cell; runs without a posterior are counted, and do not enter the others."""
    rows = rows.sort("run", "arm")
    answered = rows.filter(pl.col("failure").is_null())

    def table(values: pl.Expr) -> NDArray[np.float64]:
        """Lay out a column with one row per run, and one column per arm."""
        column = answered.select(values.cast(pl.Float64)).to_series()
        return column.to_numpy().reshape(-1, setting.arms)

    held = table(pl.col("mean").is_between("mean_low", "mean_high"))
    gap_held = table(pl.col("gap").is_between("gap_low", "gap_high"))
    errors = [(pl.col(name) - pl.col("gap")) ** 2 for name in ("gap_estimate", "oracle_gap", "naive_gap")]
    ranks, own, seen, plain = map(table, (pl.col("rank"), *errors))
    pulled = ~np.isnan(plain)
    places = np.arange(len(ranks)) % setting.arms  # one arm per run, for those of one run err together
    return PosteriorMetrics(
        setting,
        runs=rows.height // setting.arms,
        failed=(rows.height - answered.height) // setting.arms,
        warned=answered.filter(pl.col("warnings").is_not_null())["run"].n_unique(),
        coverage=_average(held),
        gap_coverage=_average(gap_held),
        lowest=_lowest(held),
        uniform=rank_test(ranks[np.arange(len(ranks)), places]),
        against_oracle=ratio(own, seen, root=True),
        against_naive=ratio(np.where(pulled, own, 0.0), np.where(pulled, plain, 0.0)),
    )


def _average(held: NDArray[np.float64]) -> Measured:
    """Return a share averaged over arms; its error is that of a mean over runs, whatever arms have in common."""
    if not held.size:
        return NOTHING
    by_run = held.mean(axis=1)
    error = float(by_run.std(ddof=1) / np.sqrt(by_run.size)) if by_run.size > 1 else 0.0
    return Measured(float(by_run.mean()), max(error, least_error(held.sum(), held.size)), by_run.size)


def least_error(held: float, among: float) -> float:
    """Return the error of a share of independent cases, two hits and two misses added: a share of 1 is not certain."""
    added = (held + 2) / (among + 4)
    return float(np.sqrt(added * (1 - added) / (among + 4)))


def _lowest(held: NDArray[np.float64]) -> Share:
    """Return the share of the arm that has the smallest."""
    if not held.size:
        return Share(np.nan, np.nan, 0, 0, 0)
    return share(float(held.sum(axis=0).min()), len(held))


def rank_test(ranks: NDArray[np.float64]) -> float:
    """Return the p-value of independent ranks being uniform: chi-square in 20 bins."""
    from scipy.special import chdtrc

    expected = ranks.size / RANK_BINS
    if expected < FEWEST_RANKS:
        return float("nan")
    counts = np.bincount((ranks * RANK_BINS // (RANKS + 1)).astype(int), minlength=RANK_BINS)
    return float(chdtrc(RANK_BINS - 1, ((counts - expected) ** 2 / expected).sum()))


def holm(chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values adjusted for their number, by Holm's step-down method; NaN values do not count."""
    known = np.flatnonzero(~np.isnan(chances))
    order = known[np.argsort(chances[known])]
    adjusted = np.full(chances.shape, np.nan)
    steps = chances[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted


def ratio(above: NDArray[np.float64], below: NDArray[np.float64], *, root: bool = False) -> Measured:
    """Return the ratio of two sums over runs (rows), or its root, with its error by leaving out folds of runs."""
    if not below.sum() > 0:
        return NOTHING
    with np.errstate(invalid="ignore", divide="ignore"):
        quotients = replicates(lambda top, bottom: top.sum() / bottom.sum(), above, below)
    return measured(np.sqrt(quotients) if root else quotients)


@dataclass(frozen=True)
class IdentifyMetrics:
    """Shares of one rule's records by outcome, and what the wrong ones were taken for, how often."""

    setting: TrialSetting
    right: Share
    wrong: Share
    cannot_tell: Share
    taken_for: dict[str, int]


def identify_metrics(setting: TrialSetting, rows: pl.DataFrame) -> IdentifyMetrics:
    """Return what the records of one rule were taken for."""
    right, wrong, neither = (
        share(rows.filter(outcome=outcome).height, rows.height) for outcome in (RIGHT, WRONG, CANNOT_TELL)
    )
    mistaken = rows.filter(outcome=WRONG).select(
        pl.when(pl.col("verdict") == "identified").then("leading").otherwise(pl.lit("none of them")).alias("for")
    )
    counted = mistaken.group_by("for").len().sort("len", "for", descending=[True, False])
    return IdentifyMetrics(setting, right, wrong, neither, dict(counted.iter_rows()))


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


def closed_form_metrics(trials: ClosedFormTrials, rows: pl.DataFrame) -> Iterator[ClosedFormMetrics]:
    """Yield the metrics of every cell. Errors are over arms that both methods estimate, coverage over all of one's."""
    for at, cell in enumerate(trials.cells):
        own = rows.filter(cell=at).sort("run", maintain_order=True)

        def table(name: str, own: pl.DataFrame = own, arms: int = cell.arms) -> Floats:
            """Lay out a column with one row per run, and one column per arm."""
            return own[name].cast(pl.Float64).to_numpy().reshape(-1, arms)

        gap, verdict = table("gap"), table("bracket verdict")
        estimated = verdict == ESTIMATED
        both = estimated & (table("switching verdict") == ESTIMATED)
        squared = {name: np.where(both, (table(name) - gap) ** 2, 0.0) for name in (*METHODS, "seen")}
        held = {method: _holds(gap, table(f"{method} low"), table(f"{method} high")) for method in METHODS[:2]}
        quiet = estimated & (table("close").sum(axis=1, keepdims=True) < MANY_CLOSE)
        yield ClosedFormMetrics(
            cell,
            coverage=_share_of(held["bracket"], estimated),
            unwarned=_share_of(held["bracket"], quiet),
            unwarned_runs=int(quiet.any(axis=1).sum()),
            reach_zero=_share_of(table("bracket low") <= 0, estimated),
            procedures=_share_of(held["switching"], table("switching verdict") == ESTIMATED),
            bounded=_share_of(held["bracket"], verdict == BOUNDED),
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


def _share_of(held: NDArray[np.bool_], cases: NDArray[np.bool_]) -> Measured:
    """Return the share of some intervals that hold; arms of a run err together."""
    if not cases.any():
        return NOTHING
    hits, among = (held & cases).sum(axis=1).astype(np.float64), cases.sum(axis=1).astype(np.float64)
    found = ratio(hits, among)
    return replace(found, error=float(np.fmax(found.error, least_error(hits.sum(), among.sum()))))


def _frequent_counts(pulls: Floats, gap: Floats, estimated: NDArray[np.bool_]) -> int:
    """Return how many numbers of pulls make up 95% of the runs, for the arm for which they are fewest."""
    fewest = []
    for size in np.unique(gap[gap > 0]):
        counts = np.sort(np.unique(pulls[estimated & (gap == size)], return_counts=True)[1])[::-1]
        if counts.sum() >= FEWEST_ESTIMATES:
            fewest.append(int(np.searchsorted(np.cumsum(counts), FREQUENT * counts.sum())) + 1)
    return min(fewest, default=0)


@dataclass(frozen=True)
class Timing:
    """A posterior to be timed, the most that it may take, and what it took: seconds, and bytes of its process."""

    text: str  # the rule
    arms: int
    rounds: int
    most_seconds: float
    most_memory: float = np.inf
    seconds: float = np.nan
    memory: float = np.nan


def timings() -> Iterator[Timing]:
    """Yield everything that is to be timed: index rules and Thompson sampling, and one large record."""
    for text in (*GAUSSIAN, *BERNOULLI):
        rule = parse_rule(text)
        if isinstance(rule, IndexRule | Thompson):
            yield Timing(text, *USUAL_RECORD, most_seconds=5.0 if isinstance(rule, Thompson) else 2.0)
    yield Timing("ucb:alpha=0.25", *LARGE_RECORD, most_seconds=60.0, most_memory=2e9)


def timed(asked: Timing) -> Timing:
    """Time one posterior on one core, with the default number of particles, in a separate process."""
    with WorkerProcesses(1) as process:
        seconds, memory = process.submit(_seconds_and_bytes, asked).result()
    return replace(asked, seconds=seconds, memory=memory)


def _seconds_and_bytes(asked: Timing) -> tuple[float, float]:
    _seconds(asked, 2 * asked.arms)  # to compile
    repeats = REPEATS if (asked.arms, asked.rounds) == USUAL_RECORD else 1
    return float(np.median([_seconds(asked, asked.rounds, run) for run in range(repeats)])), _peak_memory()


def _seconds(asked: Timing, rounds: int, run: int = 0) -> float:
    setting = trial_setting(asked.text, asked.arms, rounds, REPEATS)
    trial = play(setting, 1, run)
    began = time.perf_counter()
    infer(trial.log, setting.rule, setting.prior, setting.noise, [rounds], seed=trial.seed, threads=1)
    return time.perf_counter() - began


def _peak_memory() -> float:
    """Return the most memory that this process ever had, in bytes; NaN if the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return float("nan")
