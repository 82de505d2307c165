"""The criteria of the calibration: what is to be reached, and every score judged by it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from unbandit.calibration.closed_forms import Design
from unbandit.calibration.metrics import (
    USUAL_RECORD,
    ClosedFormMetrics,
    IdentifyMetrics,
    PosteriorMetrics,
    Timing,
    holm,
)
from unbandit.calibration.misfits import FALSE_ALARMS, CheckMetrics, cell_name
from unbandit.calibration.settings import NOISE, noise_name, short
from unbandit.demonstrators import IndexRule, Thompson
from unbandit.instance import Bernoulli
from unbandit.study.monte_carlo import LEVEL, Measured, Share, computed, share

Verdict = Literal["reached", "not decided", "not reached", "not measured"]
REACHED: Verdict = "reached"
OPEN: Verdict = "not decided"
MISSED: Verdict = "not reached"
UNKNOWN: Verdict = "not measured"
MARKS: dict[Verdict | None, str] = {REACHED: " ✓", OPEN: " ~", MISSED: " ✗", UNKNOWN: "", None: ""}

ERRORS = 2.0  # how many Monte-Carlo errors a score must be from its limit for the runs to decide

MOST_FAILURES = 0.01
"""If more than this share of the runs gives no posterior, the intervals of the others are a selection."""

AGAINST_ORACLE = {IndexRule: 1.15, Thompson: 1.25}  # how many times an oracle's error is allowed, by kind of rule

RANKS_LEVEL = 0.01

FEWEST_RUNS = 5  # of a kind, from which on it is judged how often their intervals hold
FEWEST_INTERVALS = 20  # with fewer intervals nothing can be said about whether 93% of them hold


@dataclass(frozen=True)
class Score:
    """One measured number with its verdict, and its place in the criterion's table."""

    row: str  # rule
    column: str  # cell
    measured: Measured
    text: str  # the number as it is written
    verdict: Verdict | None  # None if the criterion does not apply


@dataclass(frozen=True)
class Criterion:
    """One criterion, and every score that it applies to."""

    key: str
    measure: str  # what is measured
    reach: str  # what is to be reached
    note: str = ""  # what a reader of its table has to know
    rows: str = "rule"  # what the rows of its table are
    scores: Sequence[Score] = ()

    @property
    def span(self) -> str:
        """Return the smallest and the largest score that were judged, as they are written."""
        judged = [score for score in self.scores if score.verdict not in (None, UNKNOWN)] or self.scores
        shown = sorted(judged, key=lambda score: score.measured.value)
        shown = [score for score in shown if math.isfinite(score.measured.value)]
        return " to ".join(dict.fromkeys((shown[0].text, shown[-1].text))) if shown else "-"

    @property
    def counted(self) -> str:
        """Return how many scores have which verdict: `2 reached, 1 not reached`."""
        counts = Counter(score.verdict for score in self.scores)
        order = (REACHED, OPEN, MISSED, UNKNOWN)
        return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in order if counts[verdict]) or "no goal"


def judge(value: Measured, low: float = -math.inf, high: float = math.inf) -> Verdict:
    """Return whether a number lies between its limits, as far as the runs decide: two Monte-Carlo errors either way."""
    if not math.isfinite(value.value):
        return UNKNOWN
    reach = ERRORS * value.error if math.isfinite(value.error) else 0.0
    if low + reach <= value.value <= high - reach:
        return REACHED
    return OPEN if low - reach <= value.value <= high + reach else MISSED


POSTERIOR = (
    Criterion(
        "coverage",
        "posterior: coverage of the 95% intervals of the means",
        "93% to 97%, averaged over arms",
        "Every run draws its means from the prior. A run that ends without a posterior (an `InferenceError`) has no "
        "interval; such runs are counted in brackets, and where they are more than 1% the goal is not reached.",
    ),
    Criterion(
        "lowest arm",
        "posterior: coverage of the arm that has the lowest",
        "no more than two Monte-Carlo errors below 92%",
        "Arms are told apart by their place in the list: ties and elimination treat places differently. Of many arms "
        "the lowest is low by luck alone, which two Monte-Carlo errors allow for.",
    ),
    Criterion(
        "ranks",
        "posterior: ranks of the true means among 99 draws (simulation-based calibration)",
        f"uniform: p > {RANKS_LEVEL}, adjusted by Holm's method for all cells at once",
        "Chi-square in 20 bins, of one arm per run, because those of one run err together.",
    ),
    Criterion(
        "gap coverage",
        "posterior: coverage of the 95% intervals of the gaps to the best arm",
        "at least 93%, averaged over arms",
        "More than 95% is no fault: the best arm's gap is exactly 0, and one that begins there is certain to hold it. "
        "Where actions do not tell the level of all means, the intervals of the means are mostly the prior's, and it "
        "is these that tell whether the differences are right.",
    ),
    Criterion(
        "oracle",
        "posterior: root mean squared error of the gaps, relative to oracle Bayes (same prior, rewards seen)",
        "at most 1.15 times for index rules, 1.25 times for Thompson",
        "For other rules there is no goal: what their actions tell is given as it is.",
    ),
    Criterion(
        "naive",
        "posterior: mean squared error of the gaps, relative to the naive estimator `sqrt(2) sigma sqrt(ln T / n)`",
        "below 1, averaged over arms, for every rule and cell",
        "The naive estimator takes the most-pulled arm for the best. Arms never pulled, of which it says nothing, are "
        "left out of both.",
    ),
)


def posterior_criteria(cells: Sequence[PosteriorMetrics]) -> list[Criterion]:
    """Return the criteria of the posterior with their scores, one per cell."""
    if not cells:
        return []
    chances = holm(np.array([cell.uniform for cell in cells])).tolist()
    scores = [_posterior_scores(cell, chance) for cell, chance in zip(cells, chances, strict=True)]
    by_criterion = zip(POSTERIOR, zip(*scores, strict=True), strict=True)
    return [replace(criterion, scores=own) for criterion, own in by_criterion]


def _posterior_scores(cell: PosteriorMetrics, chance: float) -> list[Score]:
    """Return the scores of one cell in the order of the criteria; `chance` is its adjusted p-value of the ranks."""
    setting, lowest, uniform = cell.setting, cell.lowest, computed(chance)
    failed = f" ({cell.failed:,} of {cell.runs:,} failed)" if cell.failed else ""
    many_failed = cell.failed > MOST_FAILURES * cell.runs
    lowest_possible = Measured(lowest.value + 2 * lowest.error, 0.0, lowest.folds)  # errors are in the criterion itself
    limit = next((most for kind, most in AGAINST_ORACLE.items() if isinstance(setting.rule, kind)), None)
    by_oracle = None if limit is None else judge(cell.against_oracle, high=limit)
    entries: list[tuple[Measured, str, Verdict | None]] = [
        (cell.coverage, percent(cell.coverage) + failed, MISSED if many_failed else judge(cell.coverage, 0.93, 0.97)),
        (lowest, percent(lowest), judge(lowest_possible, 0.92)),
        (uniform, f"p = {chance:.2g}" if math.isfinite(chance) else "-", judge(uniform, RANKS_LEVEL)),
        (cell.gap_coverage, percent(cell.gap_coverage), judge(cell.gap_coverage, 0.93)),
        (cell.against_oracle, times(cell.against_oracle), by_oracle),
        (cell.against_naive, times(cell.against_naive), judge(cell.against_naive, high=1.0)),
    ]
    row = f"{short(setting.rule)}{', Bernoulli' * isinstance(setting.noise, Bernoulli)}"
    return [Score(row, setting.cell, *entry) for entry in entries]


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
        "shown, but not judged."
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
            about, notes = f"closed forms, {design} means", f"{DESIGNS[design]} {note}".rstrip()
            criteria.append(Criterion(f"{design} means, {key}", f"{about}: {measure}", reach, notes, rows, scores))

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
            "Of arms that both estimate, on the same records.",
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
    return f"{short(cell.rule)}, {noise_name(cell.noise)}", f"K={cell.arms}, T={cell.horizon:,}"


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


def identify_criteria(rules: Sequence[IdentifyMetrics]) -> list[Criterion]:
    """Return the criteria of `identify` with their scores, one per rule and one for all together."""
    if not rules:
        return []
    where = f"`identify` among these rules, means from the prior, {rules[0].setting.cell}"
    note = " ".join(
        [
            "It is wrong to name another rule, and to say that none of them fits.",
            *(
                f"`{short(each.setting.rule)}` was taken for {short(name)} {count:,} times."
                for each in rules
                for name, count in each.taken_for.items()
            ),
        ]
    )
    rows = [(short(each.setting.rule), (each.right, each.wrong, each.cannot_tell)) for each in rules]
    by_outcome = zip(*(shares for _, shares in rows), strict=True)
    together = [share(sum(one.held for one in every), sum(one.runs for one in every)) for every in by_outcome]
    right_scores, wrong_scores = [], []
    for row, (right, wrong, neither) in (*rows, ("all together", together)):
        right_scores.append(Score(row, "right", right, percent(right), judge(right, 0.85)))
        right_scores.append(Score(row, "cannot tell", neither, percent(neither), None))
        wrong_scores.append(Score(row, "wrong", wrong, percent(wrong), judge(wrong, high=0.02)))
    return [
        Criterion("identify, right", f"{where}: right", "at least 85%", "", "made by", right_scores),
        Criterion("identify, wrong", f"{where}: wrong", "at most 2%", note, "made by", wrong_scores),
    ]


def check_criteria(cells: Sequence[CheckMetrics]) -> list[Criterion]:
    """Return the criteria of the check with their scores: where the rule is right, and where it is not."""
    right, wrong = ([each for each in cells if each.cell.right == is_right] for is_right in (True, False))
    criteria = []
    if right:
        scores = [_flagged(each, _size(each), each.flagged, judged=True) for each in right]
        scores += [_together(right, size) for size in dict.fromkeys(map(_size, right))]
        scores += [
            _flagged(each, f"{_size(each)}, {design} means", held, judged=False)
            for each in right
            for design, held in each.by_design.items()
            if design == "near"
        ]
        note = (
            "Two runs in five have means from N(0, 1) (rewards of 0 and 1: uniform from 0 to 1), two have even means, "
            "from 1 to 0 (0.9 to 0.1), one has means that differ by at most 0.05; these have a column of their own."
        )
        goal = f"at most {100 * FALSE_ALARMS:g}%"
        criteria.append(Criterion("check, right rule", "check: right rule flagged", goal, note, "rule", scores))
    if wrong:
        scores = []
        for each in wrong:
            scores.append(_flagged(each, _size(each), each.flagged, judged=not each.beyond_any_test))
            for design, held in each.by_design.items():
                scores.append(_flagged(each, f"{_size(each)}, {design} means", held, judged=False))
            if each.bound is not None:
                column = f"{_size(each)}, random means: most powerful test"
                scores.append(Score(cell_name(each.cell), column, each.bound, percent(each.bound), None))
        goal = "at least 95%; 80% at K=2, T=500 and for `lilucb` as `ucb`, 90% for Even-Dar elimination"
        note = (
            "Every other run has means from N(0, 1), the others have even means, from 1 to 0. The most powerful test "
            "knows both rules, the noise and what the means were drawn from, and asks at 1% which of the two it was: "
            "no check can flag more. Of a rule that chooses at random the column has the share of records that "
            "`ucb1` makes with a probability of at most 1%: no test at 1% can flag the others. Where no test reaches "
            "the goal, even if it flagged every record with even means, there is no mark. "
            "`drift`: the best arm falls by its gap to the second best, evenly over the log. "
            "`sigma half`, `sigma double`: rewards scatter half or twice as much as assumed."
        )
        about = "check: flagged when read as another rule"
        criteria.append(Criterion("check, other rules", about, goal, note, "made by, read as", scores))
    return criteria


def _size(each: CheckMetrics) -> str:
    return f"K={each.cell.arms}, T={each.cell.horizon:,}"


def _flagged(each: CheckMetrics, column: str, held: Share, *, judged: bool) -> Score:
    """Return the score of a share of flagged records."""
    text = _share_text(held) + (f", {each.unchecked} not checked" if judged and each.unchecked else "")
    at_most, at_least = (each.cell.goal, 0.0) if each.cell.right else (1.0, each.cell.goal)
    return Score(cell_name(each.cell), column, held, text, _decided(held, at_least, at_most) if judged else None)


def _together(right: Sequence[CheckMetrics], size: str) -> Score:
    """Return the score of all rules of one size together."""
    own = [each.flagged for each in right if _size(each) == size]
    held = share(sum(each.held for each in own), sum(each.runs for each in own))
    return Score("all together", size, held, _share_text(held), _decided(held, 0.0, FALSE_ALARMS))


def _share_text(held: Share) -> str:
    low, high = held.interval(LEVEL)
    return f"{100 * held.value:.1f}% ({100 * low:.1f} to {100 * high:.1f})"


def _decided(held: Share, at_least: float, at_most: float) -> Verdict:
    """Judge a share: only an exact interval that excludes the other side decides."""
    low, high = held.interval(LEVEL)
    if low >= at_least and high <= at_most:
        return REACHED
    return MISSED if high < at_least or low > at_most else OPEN


def timing_criteria(timings: Sequence[Timing]) -> list[Criterion]:
    """Return the criteria of time and memory with their scores."""
    usual = [each for each in timings if (each.arms, each.rounds) == USUAL_RECORD]
    large = [each for each in timings if each not in usual]
    note = "On one core of the machine that wrote this page, with as many particles as there are by default."

    def score(each: Timing, column: str, value: float, text: str, limit: float) -> Score:
        return Score(short(each.text), column, computed(value), text, judge(computed(value), high=limit))

    criteria = []
    if usual:
        where = f"time of a posterior, K={USUAL_RECORD[0]}, T={USUAL_RECORD[1]:,}, one core"
        goal = "under 2 s for index rules, under 5 s for Thompson"
        scores = [score(each, "seconds", each.seconds, f"{each.seconds:.2f} s", each.most_seconds) for each in usual]
        criteria.append(Criterion("time", where, goal, note, scores=scores))
    for each in large:
        where = f"time and memory of a posterior, K={each.arms}, T={each.rounds:,}"
        goal = f"under {each.most_seconds:g} s, under {each.most_memory / 1e9:g} GB"
        scores = [
            score(each, "seconds", each.seconds, f"{each.seconds:.1f} s", each.most_seconds),
            score(each, "memory", each.memory, f"{each.memory / 1e9:.2f} GB", each.most_memory),
        ]
        criteria.append(Criterion("large record", where, goal, note, scores=scores))
    return criteria


def percent(value: Measured) -> str:
    """Write a share with its error: `94.8 ± 0.5%`."""
    return f"{_with_error(100 * value.value, 100 * value.error, 1)}%" if math.isfinite(value.value) else "-"


def times(value: Measured) -> str:
    """Write a ratio with its error: `1.03 ± 0.02`, `1.046 ± 0.002`, `0.0012 ± 0.0002`."""
    digits = 4 if value.value < 0.1 else 3 if value.error < 0.005 else 2
    return _with_error(value.value, value.error, digits) if math.isfinite(value.value) else "-"


def _with_error(value: float, error: float, digits: int) -> str:
    return f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if math.isfinite(error) else "")


@dataclass
class Calibration:
    """What was measured.

    Attributes
    ----------
    folder
        Where everything is.
    asked
        The command that measures the same again.
    seed, particles, clouds
        Seed of everything drawn at random, and the size of the posteriors.
    posteriors, closed_forms, identified, checks, timings
        The metrics; empty for what was not asked for.
    """

    folder: Path
    asked: str
    seed: int
    particles: int
    clouds: int
    posteriors: list[PosteriorMetrics] = field(default_factory=list)
    closed_forms: list[ClosedFormMetrics] = field(default_factory=list)
    identified: list[IdentifyMetrics] = field(default_factory=list)
    checks: list[CheckMetrics] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)

    @property
    def page(self) -> Path:
        """Return the path of the page."""
        return self.folder / "calibration.md"

    @property
    def criteria(self) -> list[Criterion]:
        """Return what is to be reached, with what was measured."""
        return [
            *closed_form_criteria(self.closed_forms),
            *posterior_criteria(self.posteriors),
            *identify_criteria(self.identified),
            *check_criteria(self.checks),
            *timing_criteria(self.timings),
        ]

    @property
    def figures(self) -> pl.DataFrame:
        """Return every score as a row."""
        rows = [
            (criterion.key, score.row, score.column, score.measured.value, score.measured.error, score.verdict)
            for criterion in self.criteria
            for score in criterion.scores
        ]
        texts, numbers = ("goal", "whose", "cell"), ("value", "error")
        schema = dict.fromkeys(texts, pl.String) | dict.fromkeys(numbers, pl.Float64) | {"verdict": pl.String}
        table = pl.DataFrame(rows, schema=schema, orient="row")
        return table.with_columns(pl.col(numbers).fill_nan(None).round_sig_figs(6))
