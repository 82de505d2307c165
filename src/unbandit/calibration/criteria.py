"""The criteria of the calibration: what is to be reached, every score that is judged by it, and why some miss it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbandit.calibration.closed_forms import TIMES, CoverageMetrics
from unbandit.calibration.costs import USUAL, Timing
from unbandit.calibration.metrics import IdentifyMetrics, PosteriorMetrics, holm
from unbandit.calibration.settings import short
from unbandit.demonstrators import IndexRule, Thompson
from unbandit.instance import Bernoulli, Gaussian
from unbandit.study.monte_carlo import Measured, Share, computed, share

Verdict = Literal["reached", "within error", "not reached", "not measured"]
REACHED: Verdict = "reached"
NEARLY: Verdict = "within error"
MISSED: Verdict = "not reached"
UNKNOWN: Verdict = "not measured"

ERRORS = 2.0
"""How many Monte-Carlo errors a score may be beyond its limit by chance."""

MOST_FAILURES = 0.01
"""If more than this share of the runs gives no posterior, the intervals of the others are a selection."""

AGAINST_ORACLE = {IndexRule: 1.15, Thompson: 1.25}
"""How many times an oracle's error is allowed, by kind of rule."""

RANKS_LEVEL = 0.01

FEWEST_INTERVALS = 20
"""With fewer intervals nothing can be said about whether 93% of them hold."""


@dataclass(frozen=True)
class Score:
    """One measured number with its verdict.

    Attributes
    ----------
    row, column
        Its place in the criterion's table: rule, and cell.
    measured, text
        The number with its Monte-Carlo error, and how it is written.
    verdict
        Whether it reaches the criterion; None if the criterion does not apply.
    """

    row: str
    column: str
    measured: Measured
    text: str
    verdict: Verdict | None


@dataclass(frozen=True)
class Criterion:
    """One criterion, and every score that it applies to.

    Attributes
    ----------
    key
        A short name.
    measure, reach
        What is measured, and what is to be reached.
    rows
        What the rows of its table are, in a word.
    scores
        All scores.
    note
        What a reader of the table has to know.
    """

    key: str
    measure: str
    reach: str
    rows: str
    scores: Sequence[Score]
    note: str = ""

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


def posterior_criteria(cells: Sequence[PosteriorMetrics]) -> list[Criterion]:
    """Return the criteria of the posterior with their scores, one per cell."""

    def scores(entries: Sequence[tuple[Measured, str, Verdict | None]]) -> list[Score]:
        return [
            Score(
                f"{short(cell.setting.rule)}{', Bernoulli' * isinstance(cell.setting.noise, Bernoulli)}",
                cell.setting.cell,
                *entry,
            )
            for cell, entry in zip(cells, entries, strict=True)
        ]

    chances = [computed(chance) for chance in holm(np.array([cell.uniform for cell in cells])).tolist()]
    return [
        Criterion(
            "coverage",
            "posterior: coverage of the 95% intervals of the means",
            "93% to 97%, averaged over arms",
            "rule",
            scores([(cell.coverage, _coverage(cell), _covers(cell)) for cell in cells]),
            "Every run draws its means from the prior. A run that ends without a posterior (an `InferenceError`) has "
            "no interval; such runs are counted in brackets, and where they are more than 1% the goal is not reached.",
        ),
        Criterion(
            "lowest arm",
            "posterior: coverage of the arm that has the lowest",
            "no more than two Monte-Carlo errors below 92%",
            "rule",
            scores([(cell.lowest, percent(cell.lowest), _lowest(cell.lowest)) for cell in cells]),
            "Arms are told apart by their place in the list: ties and elimination treat places differently. Of many "
            "arms the lowest is low by luck alone, which two Monte-Carlo errors allow for.",
        ),
        Criterion(
            "ranks",
            "posterior: ranks of the true means among 99 draws (simulation-based calibration)",
            f"uniform: p > {RANKS_LEVEL}, adjusted by Holm's method for all cells at once",
            "rule",
            scores([(chance, _chance(chance.value), judge(chance, RANKS_LEVEL)) for chance in chances]),
            "Chi-square in 20 bins, of one arm a run, for those of one run err together.",
        ),
        Criterion(
            "gap coverage",
            "posterior: coverage of the 95% intervals of the gaps to the best arm",
            "at least 93%, averaged over arms",
            "rule",
            scores([(cell.gap_coverage, percent(cell.gap_coverage), judge(cell.gap_coverage, 0.93)) for cell in cells]),
            "More than 95% is no fault: the best arm's gap is exactly 0, and one that begins there is certain to "
            "hold it. Where actions do not tell the level of all means, the intervals of the means are mostly the "
            "prior's, and it is these that tell whether the differences are right.",
        ),
        Criterion(
            "oracle",
            "posterior: root mean squared error of the gaps, relative to oracle Bayes (same prior, rewards seen)",
            "at most 1.15 times for index rules, 1.25 times for Thompson",
            "rule",
            scores([(cell.against_oracle, times(cell.against_oracle), _by_oracle(cell)) for cell in cells]),
            "For other rules there is no goal: what their actions tell is given as it is.",
        ),
        Criterion(
            "naive",
            "posterior: mean squared error of the gaps, relative to the naive estimator `sqrt(2) sigma sqrt(ln T / n)`",
            "below 1, averaged over arms, for every rule and cell",
            "rule",
            scores(
                [(cell.against_naive, times(cell.against_naive), judge(cell.against_naive, high=1.0)) for cell in cells]
            ),
            "The naive estimator takes the most-pulled arm for the best. Arms never pulled, of which it says nothing, "
            "are left out of both.",
        ),
    ]


def closed_form_criteria(cells: Sequence[CoverageMetrics]) -> list[Criterion]:
    """Return the criteria of the closed forms with their scores."""
    where = "means evenly from 1 to 0 (Bernoulli: 0.9 to 0.1), shuffled in every run"
    note = (
        f"All runs, whatever they found, {TIMES} times as many as of the posterior. In brackets the share of all arms "
        f"that have such an interval. Fewer than {FEWEST_INTERVALS} intervals are shown, but not judged."
    )

    def score(cell: CoverageMetrics, value: Measured, count: int, low: float, high: float = math.inf) -> Score:
        noise = cell.instance.noise
        row = f"{short(cell.rule)}, {f'sigma {noise.sigma:g}' if isinstance(noise, Gaussian) else 'Bernoulli'}"
        given = f"{percent(value)} (of {100 * count / (cell.runs * len(cell.instance)):.3g}%)" if count else "-"
        verdict = UNKNOWN if count < FEWEST_INTERVALS else judge(value, low, high)
        return Score(row, f"K={len(cell.instance)}, T={cell.horizon:,}", value, given, verdict)

    return [
        Criterion(
            "closed forms, estimated",
            f"closed forms, {where}: coverage of the 95% intervals of arms with the verdict `estimated`",
            "92% to 98%",
            "rule and noise",
            [score(cell, cell.estimated, cell.intervals, 0.92, 0.98) for cell in cells],
            note,
        ),
        Criterion(
            "closed forms, bounded",
            f"closed forms, {where}: how often the bound of arms with the verdict `bounded` holds",
            "at least 93%",
            "rule and noise",
            [score(cell, cell.bounded, cell.bounds, 0.93) for cell in cells],
            note,
        ),
    ]


def identify_criteria(rules: Sequence[IdentifyMetrics]) -> list[Criterion]:
    """Return the criteria of `identify` with their scores, one per rule and one for all together."""
    if not rules:
        return []
    where = f"`identify` among these rules, means from the prior, {rules[0].setting.cell}"
    mistaken = [
        f"`{short(each.setting.rule)}` was taken for {short(name)} {count:,} times."
        for each in rules
        for name, count in each.taken_for.items()
    ]
    rows = [(short(each.setting.rule), each.right, each.wrong, each.cannot_tell) for each in rules]
    right, wrong, neither = (_together(shares) for shares in list(zip(*rows, strict=True))[1:])
    rows.append(("all together", right, wrong, neither))
    found = [
        score
        for row, right, _, neither in rows
        for score in (
            Score(row, "right", right, percent(right), judge(right, 0.85)),
            Score(row, "cannot tell", neither, percent(neither), None),
        )
    ]
    missed = [Score(row, "wrong", wrong, percent(wrong), judge(wrong, high=0.02)) for row, _, wrong, _ in rows]
    note = " ".join(["It is wrong to name another rule, and to say that none of them fits.", *mistaken])
    return [
        Criterion("identify, right", f"{where}: right", "at least 85%", "made by", found),
        Criterion("identify, wrong", f"{where}: wrong", "at most 2%", "made by", missed, note),
    ]


def timing_criteria(timings: Sequence[Timing]) -> list[Criterion]:
    """Return the criteria of time and memory with their scores."""
    usual = [each for each in timings if (each.asked.arms, each.asked.rounds) == USUAL]
    large = [each for each in timings if each not in usual]
    note = "On one core of the machine that wrote this page, with as many particles as there are by default."

    def score(each: Timing, column: str, value: float, text: str, limit: float) -> Score:
        return Score(short(each.asked.text), column, computed(value), text, judge(computed(value), high=limit))

    criteria = []
    if usual:
        where = f"time of a posterior, K={USUAL[0]}, T={USUAL[1]:,}, one core"
        goal = "under 2 s for index rules, under 5 s for Thompson"
        scores = [score(each, "seconds", each.seconds, f"{each.seconds:.2f} s", each.asked.seconds) for each in usual]
        criteria.append(Criterion("time", where, goal, "rule", scores, note))
    if large:
        asked = large[0].asked
        where = f"time and memory of a posterior, K={asked.arms}, T={asked.rounds:,}"
        goal = f"under {asked.seconds:g} s, under {asked.memory / 1e9:g} GB"
        scores = []
        for each in large:
            scores.append(score(each, "seconds", each.seconds, f"{each.seconds:.1f} s", each.asked.seconds))
            scores.append(score(each, "memory", each.memory, f"{each.memory / 1e9:.2f} GB", each.asked.memory))
        criteria.append(Criterion("large record", where, goal, "rule", scores, note))
    return criteria


def percent(value: Measured) -> str:
    """Write a share with its error: `94.8 ± 0.5%`."""
    if not math.isfinite(value.value):
        return "-"
    error = f" ± {100 * value.error:.1f}" if math.isfinite(value.error) else ""
    return f"{100 * value.value:.1f}{error}%"


def times(value: Measured) -> str:
    """Write a ratio with its error: `1.03 ± 0.02`, `0.0012 ± 0.0002`."""
    if not math.isfinite(value.value):
        return "-"
    digits = 2 if value.value >= 0.1 else 4
    error = f" ± {value.error:.{digits}f}" if math.isfinite(value.error) else ""
    return f"{value.value:.{digits}f}{error}"


def _coverage(cell: PosteriorMetrics) -> str:
    return percent(cell.coverage) + (f" ({cell.failed:,} of {cell.runs:,} failed)" if cell.failed else "")


def _covers(cell: PosteriorMetrics) -> Verdict:
    return MISSED if cell.failed > MOST_FAILURES * cell.runs else judge(cell.coverage, 0.93, 0.97)


def _lowest(lowest: Share) -> Verdict:
    """Judge the lowest arm: the criterion itself allows for two Monte-Carlo errors, so there is nothing in between."""
    return judge(Measured(lowest.value + 2 * lowest.error, 0.0, lowest.folds), 0.92)


def _chance(chance: float) -> str:
    return f"p = {chance:.2g}" if math.isfinite(chance) else "-"


def _by_oracle(cell: PosteriorMetrics) -> Verdict | None:
    limits = [limit for kind, limit in AGAINST_ORACLE.items() if isinstance(cell.setting.rule, kind)]
    return judge(cell.against_oracle, high=limits[0]) if limits else None


def _together(shares: Sequence[Share]) -> Share:
    return share(sum(each.held for each in shares), sum(each.runs for each in shares))


LEVEL = (
    "what all means have in common is hardly in the record, and a cloud of this size loses its spread over thousands "
    "of rounds; gaps suffer less. With several clouds the tool warns (`clouds-differ`). It takes more particles, or an "
    "exact move for the level, which this rule does not have."
)
FEW = (
    "the cloud is too small for so many arms whose sums the record tells so little of; with several clouds the tool "
    "warns where they differ."
)
GIVEN_UP = (
    "the rule gives arms up after one to three pulls, and from then on the record holds less than the rewards did. The "
    "intervals hold, so what is there is read."
)
UNEXPLAINED = "in some runs 200 particles do not hold one that explains every choice; more do."

REASONS: dict[tuple[str, str], str] = {
    **{
        (key, name): LEVEL
        for key in ("coverage", "lowest arm", "ranks")
        for name in ("thompson", "learning-softmax", "exp3")
    },
    **{(key, name): FEW for key in ("coverage", "lowest arm") for name in ("epsilon-greedy", "softmax")},
    **{("gap coverage", name): FEW for name in ("epsilon-greedy", "softmax", "learning-softmax", "exp3")},
    **{("oracle", name): GIVEN_UP for name in ("klucb", "lilucb", "moss")},
    ("oracle", "thompson"): "a randomised choice tells of a difference only by how often it is made.",
    **{("coverage", name): UNEXPLAINED for name in ("klucb", "ucbv")},
}
"""Why a criterion is missed, where that is known, by its key and the rule's name; shown only beside such a score."""
