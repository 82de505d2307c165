"""The criteria of the calibration: what is to be reached, every score judged by it, and the page that shows them."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from unbandit._version import __version__
from unbandit.calibration.metrics import USUAL_RECORD, CoverageMetrics, IdentifyMetrics, PosteriorMetrics, Timing, holm
from unbandit.calibration.settings import CLOUDS, STUDY_TIMES, noise_name, short
from unbandit.demonstrators import IndexRule, Thompson
from unbandit.formatting import markdown_table
from unbandit.instance import Bernoulli
from unbandit.study.monte_carlo import Measured, computed, share

Verdict = Literal["reached", "within error", "not reached", "not measured"]
REACHED: Verdict = "reached"
NEARLY: Verdict = "within error"
MISSED: Verdict = "not reached"
UNKNOWN: Verdict = "not measured"
MARKS: dict[Verdict | None, str] = {REACHED: " ✓", NEARLY: " ~", MISSED: " ✗", UNKNOWN: "", None: ""}

ERRORS = 2.0  # how many Monte-Carlo errors a score may be beyond its limit by chance

MOST_FAILURES = 0.01
"""If more than this share of the runs gives no posterior, the intervals of the others are a selection."""

AGAINST_ORACLE = {IndexRule: 1.15, Thompson: 1.25}  # how many times an oracle's error is allowed, by kind of rule

RANKS_LEVEL = 0.01

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
        order = (REACHED, NEARLY, MISSED, UNKNOWN)
        return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in order if counts[verdict]) or "no goal"


def judge(value: Measured, low: float = -math.inf, high: float = math.inf) -> Verdict:
    """Return whether a number lies between its limits: itself, within two Monte-Carlo errors, or not."""
    if not math.isfinite(value.value):
        return UNKNOWN
    if low <= value.value <= high:
        return REACHED
    reach = ERRORS * value.error if math.isfinite(value.error) else 0.0
    return NEARLY if low - reach <= value.value <= high + reach else MISSED


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
        "Chi-square in 20 bins, of one arm a run, for those of one run err together.",
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


def closed_form_criteria(cells: Sequence[CoverageMetrics]) -> list[Criterion]:
    """Return the criteria of the closed forms with their scores."""
    if not cells:
        return []
    where = "closed forms, means evenly from 1 to 0 (Bernoulli: 0.9 to 0.1), shuffled in every run"
    note = (
        f"All runs, whatever they found, {STUDY_TIMES} times as many as of the posterior. In brackets the share of all "
        f"arms that have such an interval. Fewer than {FEWEST_INTERVALS} intervals are shown, but not judged."
    )

    def score(cell: CoverageMetrics, value: Measured, count: int, low: float, high: float = math.inf) -> Score:
        row = f"{short(cell.rule)}, {noise_name(cell.instance.noise)}"
        given = f"{percent(value)} (of {100 * count / (cell.runs * len(cell.instance)):.3g}%)" if count else "-"
        verdict = UNKNOWN if count < FEWEST_INTERVALS else judge(value, low, high)
        return Score(row, f"K={len(cell.instance)}, T={cell.horizon:,}", value, given, verdict)

    return [
        Criterion(
            "closed forms, estimated",
            f"{where}: coverage of the 95% intervals of arms with the verdict `estimated`",
            "92% to 98%",
            note,
            "rule and noise",
            [score(cell, cell.estimated, cell.intervals, 0.92, 0.98) for cell in cells],
        ),
        Criterion(
            "closed forms, bounded",
            f"{where}: how often the bound of arms with the verdict `bounded` holds",
            "at least 93%",
            note,
            "rule and noise",
            [score(cell, cell.bounded, cell.bounds, 0.93) for cell in cells],
        ),
    ]


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
    """Write a ratio with its error: `1.03 ± 0.02`, `0.0012 ± 0.0002`."""
    digits = 2 if value.value >= 0.1 else 4
    return _with_error(value.value, value.error, digits) if math.isfinite(value.value) else "-"


def _with_error(value: float, error: float, digits: int) -> str:
    return f"{value:.{digits}f}" + (f" ± {error:.{digits}f}" if math.isfinite(error) else "")


_LEVEL = (
    "what all means have in common is hardly in the record, and a cloud of this size loses its spread over thousands "
    "of rounds; gaps suffer less. With several clouds the tool warns (`clouds-differ`). It takes more particles, or an "
    "exact move for the level, which this rule does not have."
)
_FEW = (
    "the cloud is too small for this many arms, about whose sums the log says so little; with several clouds the tool "
    "warns where they differ."
)
_GIVEN_UP = (
    "the rule gives arms up after one to three pulls, and from then on the record holds less than the rewards did. The "
    "intervals hold, so what is there is read."
)
_UNEXPLAINED = "in some runs 200 particles do not hold one that explains every choice; more do."

REASONS: dict[tuple[str, str], str] = {
    **{
        (key, name): _LEVEL
        for key in ("coverage", "lowest arm", "ranks")
        for name in ("thompson", "learning-softmax", "exp3")
    },
    **{(key, name): _FEW for key in ("coverage", "lowest arm") for name in ("epsilon-greedy", "softmax")},
    **{("gap coverage", name): _FEW for name in ("epsilon-greedy", "softmax", "learning-softmax", "exp3")},
    **{("oracle", name): _GIVEN_UP for name in ("klucb", "lilucb", "moss")},
    ("oracle", "thompson"): "a randomised choice tells of a difference only by how often it is made.",
    **{("coverage", name): _UNEXPLAINED for name in ("klucb", "ucbv")},
}
"""Why a criterion is missed, where that is known, by its key and the rule's name; shown only beside such a score."""

INTRODUCTION = """\
# How far the answers can be trusted

Written by `{asked}` of unbandit {version}, seed {seed}. Posteriors have
{clouds} cloud(s) of {particles:,} particles ({more}),
where users get four clouds of 250 to 4,000 by default: here are thousands of posteriors. Rules whose
posterior takes long have a part of the runs; the table at the end has the number of each.
Records are simulated, so the truth behind them is known; the methods see only which arm was pulled. No run
is left out, whatever it found.

To measure all of it again: `make calibrate`. It can be stopped at any time and resumes where it stopped;
the same seed gives the same figures on any number of cores, but for time and memory. To look at one rule:
`unbandit calibrate posterior --rule ucb --runs 50 -o look`.

Figures are given with one Monte-Carlo error. ✓: the goal is reached. ~: it is missed by less than two
Monte-Carlo errors, so more runs would tell. ✗: it is not reached. No mark: no goal speaks of it.
"""


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
    posteriors, closed_forms, identified, timings
        The metrics; empty for what was not asked for.
    """

    folder: Path
    asked: str
    seed: int
    particles: int
    clouds: int
    posteriors: list[PosteriorMetrics] = field(default_factory=list)
    closed_forms: list[CoverageMetrics] = field(default_factory=list)
    identified: list[IdentifyMetrics] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)

    @property
    def page(self) -> Path:
        """Return the path of the page."""
        return self.folder / "calibration.md"

    @property
    def criteria(self) -> list[Criterion]:
        """Return what is to be reached, with what was measured."""
        return [
            *posterior_criteria(self.posteriors),
            *closed_form_criteria(self.closed_forms),
            *identify_criteria(self.identified),
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


def page(done: Calibration) -> str:
    """Return the page, in Markdown."""
    more = ", ".join(f"{times} times as many for `{short(text)}`" for text, times in CLOUDS.items())
    sizes = {"seed": done.seed, "clouds": done.clouds, "particles": done.particles, "more": more}
    return "\n".join([INTRODUCTION.format(asked=done.asked, version=__version__, **sizes), *_lines(done)]) + "\n"


def _lines(done: Calibration) -> Iterator[str]:
    criteria = done.criteria
    yield from markdown_table(
        ("measure", "to reach", "measured", "figures"),
        [(criterion.measure, criterion.reach, criterion.span, criterion.counted) for criterion in criteria],
    )
    for criterion in criteria:
        yield from ("", f"## {criterion.key[0].upper()}{criterion.key[1:]}", "")
        yield f"{criterion.measure[0].upper()}{criterion.measure[1:]}. To reach: {criterion.reach}."
        if criterion.note:
            yield criterion.note
        yield ""
        yield from _grid(
            criterion.rows,
            [(score.row, score.column, f"{score.text}{MARKS[score.verdict]}") for score in criterion.scores],
        )
        if reasons := list(_reasons(criterion)):
            yield from ("", *reasons)
    if done.posteriors:
        yield from ("", "## Runs behind the figures of the posterior", "")
        cells = [(short(each.setting.rule), each.setting.cell, f"{each.runs:,}") for each in done.posteriors]
        yield from _grid("rule", cells)
    thin = [each for each in done.posteriors if each.failed or each.warned]
    if thin:
        yield from ("", "## Where the tool warns or gives up", "")
        yield from ("A posterior that cannot be trusted comes with a warning (`clouds-differ`), or not at all.", "")
        headings = ("rule", "cell", "runs", "with a warning", "without a posterior")
        counts = [(each, (each.runs, each.warned, each.failed)) for each in thin]
        yield from markdown_table(
            headings,
            [(f"`{short(each.setting.rule)}`", each.setting.cell, *map("{:,}".format, own)) for each, own in counts],
        )


def _grid(heading: str, entries: Iterable[tuple[str, str, str]]) -> list[str]:
    """Lay out (row, column, text) entries as a table."""
    table: dict[str, dict[str, str]] = {}
    for row, column, text in entries:
        table.setdefault(row, {})[column] = text
    columns = list(dict.fromkeys(column for texts in table.values() for column in texts))
    cells = [(f"`{row}`", *(texts.get(column, "") for column in columns)) for row, texts in table.items()]
    return markdown_table((heading, *columns), cells)


def _reasons(criterion: Criterion) -> Iterator[str]:
    """Say why a criterion is missed, where that is known."""
    missed = [score.row for score in criterion.scores if score.verdict == MISSED]
    for name in dict.fromkeys(row.partition(":")[0].partition(",")[0] for row in missed):
        if (criterion.key, name) in REASONS:
            yield f"- `{name}`: {REASONS[criterion.key, name]}"
