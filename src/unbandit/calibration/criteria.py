"""What is to be reached, and whether a figure reaches it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbandit.calibration.closed_forms import TIMES, CoverageMetrics
from unbandit.calibration.metrics import IdentifyMetrics, PosteriorMetrics, holm
from unbandit.calibration.settings import TrialSetting, short
from unbandit.calibration.timing import USUAL, Timing
from unbandit.demonstrators import IndexRule, Thompson
from unbandit.instance import Gaussian
from unbandit.study.monte_carlo import Measured, Share, computed, share

Verdict = Literal["reached", "within error", "not reached", "not measured"]
REACHED: Verdict = "reached"
NEARLY: Verdict = "within error"
MISSED: Verdict = "not reached"
UNKNOWN: Verdict = "not measured"

ERRORS = 2.0
"""So many Monte-Carlo errors may a figure be beyond its limit by luck."""


def judge(measured: Measured, low: float = -math.inf, high: float = math.inf) -> Verdict:
    """Tell whether a figure lies between its limits: itself, or within two Monte-Carlo errors, or not.

    Examples
    --------
    >>> [judge(Measured(value, 0.01, 20), 0.93, 0.97) for value in (0.95, 0.92, 0.90, math.nan)]
    ['reached', 'within error', 'not reached', 'not measured']
    """
    if not math.isfinite(measured.value):
        return UNKNOWN
    if low <= measured.value <= high:
        return REACHED
    reach = ERRORS * measured.error if math.isfinite(measured.error) else 0.0
    return NEARLY if low - reach <= measured.value <= high + reach else MISSED


@dataclass(frozen=True)
class Score:
    """Hold one figure with its verdict.

    Attributes
    ----------
    row, column
        Where it stands in the table of its goal: whose figure it is, and in which cell.
    measured
        The figure with its Monte-Carlo error.
    text
        How it is written.
    verdict
        Whether it reaches the goal; None where the goal does not speak of it.
    """

    row: str
    column: str
    measured: Measured
    text: str
    verdict: Verdict | None


@dataclass(frozen=True)
class Criterion:
    """Hold one line of what is to be reached, and every figure that it speaks of.

    Attributes
    ----------
    key
        The goal in a word.
    measure, reach
        What is measured, and what is to be reached.
    rows
        What the rows of its table are, in a word.
    figures
        All figures.
    note
        What a reader of the table has to know.
    """

    key: str
    measure: str
    reach: str
    rows: str
    figures: Sequence[Score]
    note: str = ""

    @property
    def judged(self) -> list[Score]:
        """Return the figures that the goal speaks of, and that could be measured."""
        return [figure for figure in self.figures if figure.verdict not in (None, UNKNOWN)]

    @property
    def span(self) -> str:
        """Return the smallest and the largest figure that the goal speaks of, as they are written."""
        shown = sorted(self.judged or self.figures, key=lambda figure: figure.measured.value)
        shown = [figure for figure in shown if math.isfinite(figure.measured.value)]
        if not shown:
            return "-"
        ends = dict.fromkeys((shown[0].text, shown[-1].text))
        return " to ".join(ends)

    @property
    def counted(self) -> str:
        """Return how many figures have which verdict.

        Examples
        --------
        >>> one = Measured(1.0, 0.1, 20)
        >>> figures = [Score("ucb", "K = 2", one, "1.0", verdict) for verdict in (REACHED, MISSED, REACHED, None)]
        >>> Criterion("coverage", "coverage", "95%", "rule", figures).counted
        '2 reached, 1 not reached'
        """
        counts = Counter(figure.verdict for figure in self.figures)
        order = (REACHED, NEARLY, MISSED, UNKNOWN)
        return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in order if counts[verdict]) or "no goal"


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

WEAK = ("thompson", "learning-softmax", "exp3")

REASONS: dict[tuple[str, str], str] = {
    **{
        (goal, name): LEVEL for goal in ("coverage", "lowest arm", "ranks") for name in ("thompson", "learning-softmax")
    },
    **{(goal, "exp3"): LEVEL for goal in ("coverage", "lowest arm", "ranks")},
    **{(goal, name): FEW for goal in ("coverage", "lowest arm") for name in ("epsilon-greedy", "softmax")},
    **{("gap coverage", name): FEW for name in ("epsilon-greedy", "softmax", "learning-softmax", "exp3")},
    **{("oracle", name): GIVEN_UP for name in ("klucb", "lilucb", "moss")},
    ("oracle", "thompson"): "a randomised choice tells of a difference only by how often it is made.",
    ("coverage", "klucb"): "in some runs 200 particles do not hold one that explains every choice; more do.",
    ("coverage", "ucbv"): "in some runs 200 particles do not hold one that explains every choice; more do.",
}
"""By the goal's key and the rule's name; shown only where a figure of such a rule does not reach the goal."""

FAILED = 0.01
"""If more than this share of the runs gives no posterior, the intervals of the others are a selection."""

AGAINST_ORACLE = {IndexRule: 1.15, Thompson: 1.25}
"""How many times an oracle's error is allowed, by kind of rule."""

RANKS_LEVEL = 0.01

ENOUGH = 20
"""Of fewer intervals nothing is said: whether 93% of them hold cannot be told."""


def posterior_criteria(found: Sequence[PosteriorMetrics]) -> list[Criterion]:
    """Return what was measured of the posterior, beside what is to be reached."""
    adjusted = holm(np.array([each.uniform for each in found]))
    return [
        Criterion(
            "coverage",
            "posterior: coverage of the 95% intervals of the means",
            "93% to 97%, averaged over arms",
            "rule",
            [_at(each.setting, each.coverage, _coverage(each), _covers(each)) for each in found],
            "Every run draws its means from the prior. A run that ends without a posterior (an `InferenceError`) has "
            "no interval; such runs are counted in brackets, and where they are more than 1% the goal is not reached.",
        ),
        Criterion(
            "lowest arm",
            "posterior: coverage of the arm that has the lowest",
            "no more than two Monte-Carlo errors below 92%",
            "rule",
            [_at(each.setting, each.lowest, percent(each.lowest), _lowest(each.lowest)) for each in found],
            "Arms are told apart by their place in the list: ties and elimination treat places differently. Of many "
            "arms the lowest is low by luck alone, which two Monte-Carlo errors allow for.",
        ),
        Criterion(
            "ranks",
            "posterior: ranks of the true means among 99 draws (simulation-based calibration)",
            f"uniform: p > {RANKS_LEVEL}, adjusted by Holm's method for all cells at once",
            "rule",
            [
                _at(each.setting, computed(chance), _chance(chance), judge(computed(chance), RANKS_LEVEL))
                for each, chance in zip(found, adjusted.tolist(), strict=True)
            ],
            "Chi-square in 20 bins, of one arm a run, for those of one run err together.",
        ),
        Criterion(
            "gap coverage",
            "posterior: coverage of the 95% intervals of the gaps to the best arm",
            "at least 93%, averaged over arms",
            "rule",
            [
                _at(each.setting, each.gap_coverage, percent(each.gap_coverage), judge(each.gap_coverage, 0.93))
                for each in found
            ],
            "More than 95% is no fault: the best arm's gap is exactly 0, and one that begins there is certain to "
            "hold it. Where actions do not tell the level of all means, the intervals of the means are mostly the "
            "prior's, and it is these that tell whether the differences are right.",
        ),
        Criterion(
            "oracle",
            "posterior: root mean squared error of the gaps, relative to oracle Bayes (same prior, rewards seen)",
            "at most 1.15 times for index rules, 1.25 times for Thompson",
            "rule",
            [_at(each.setting, each.against_oracle, times(each.against_oracle), _by_oracle(each)) for each in found],
            "For other rules there is no goal: what their actions tell is given as it is.",
        ),
        Criterion(
            "naive",
            "posterior: mean squared error of the gaps, relative to the naive estimator `sqrt(2) sigma sqrt(ln T / n)`",
            "below 1, averaged over arms, for every rule and cell",
            "rule",
            [
                _at(each.setting, each.against_naive, times(each.against_naive), judge(each.against_naive, high=1.0))
                for each in found
            ],
            "The naive estimator takes the most-pulled arm for the best. Arms never pulled, of which it says nothing, "
            "are left out of both.",
        ),
    ]


def closed_form_criteria(found: Iterable[CoverageMetrics]) -> list[Criterion]:
    """Return what was measured of the closed forms."""
    rows = [
        (f"{short(each.rule)}, {_noise(each)}", f"K={len(each.instance)}, T={each.horizon:,}", each) for each in found
    ]
    of = "means evenly from 1 to 0 (Bernoulli: 0.9 to 0.1), shuffled in every run"
    note = (
        f"All runs, whatever they found, {TIMES} times as many as of the posterior. In brackets the share of all arms "
        f"that have such an interval. Fewer than {ENOUGH} intervals are shown, but not judged."
    )
    return [
        Criterion(
            "closed forms, estimated",
            f"closed forms, {of}: coverage of the 95% intervals of arms with the verdict `estimated`",
            "92% to 98%",
            "rule and noise",
            [
                Score(row, column, each.estimated, _given(each, each.estimated, each.intervals),
                       UNKNOWN if each.intervals < ENOUGH else judge(each.estimated, 0.92, 0.98))
                for row, column, each in rows
            ],
            note,
        ),
        Criterion(
            "closed forms, bounded",
            f"closed forms, {of}: how often the bound of arms with the verdict `bounded` holds",
            "at least 93%",
            "rule and noise",
            [
                Score(row, column, each.bounded, _given(each, each.bounded, each.bounds),
                       UNKNOWN if each.bounds < ENOUGH else judge(each.bounded, 0.93))
                for row, column, each in rows
            ],
            note,
        ),
    ]  # fmt: skip


def identify_criteria(found: Sequence[IdentifyMetrics]) -> list[Criterion]:
    """Return how often the rule that made a record was found."""
    if not found:
        return []
    setting = found[0].setting
    where = f"`identify` among these rules, means from the prior, K={setting.arms}, T={setting.horizon:,}"
    mistaken = [
        f"`{short(each.setting.rule)}` was taken for {short(name)} {count:,} times"
        for each in found
        for name, count in each.taken_for.items()
    ]
    rows = [(short(each.setting.rule), each.right, each.wrong, each.cannot_tell) for each in found]
    right, wrong, neither = (_together(shares) for shares in list(zip(*rows, strict=True))[1:])
    rows.append(("all together", right, wrong, neither))
    note = "It is wrong to name another rule, and to say that none of them fits."
    return [
        Criterion(
            "identify, right",
            f"{where}: right",
            "at least 85%",
            "made by",
            [
                figure
                for row, right, _, neither in rows
                for figure in (
                    Score(row, "right", right, percent(right), judge(right, 0.85)),
                    Score(row, "cannot tell", neither, percent(neither), None),
                )
            ],
        ),
        Criterion(
            "identify, wrong",
            f"{where}: wrong",
            "at most 2%",
            "made by",
            [Score(row, "wrong", wrong, percent(wrong), judge(wrong, high=0.02)) for row, _, wrong, _ in rows],
            " ".join([note, *(f"{line}." for line in mistaken)]),
        ),
    ]


def timing_criteria(found: Sequence[Timing]) -> list[Criterion]:
    """Return what posteriors took."""
    usual = [each for each in found if (each.asked.arms, each.asked.rounds) == USUAL]
    large = [each for each in found if each not in usual]
    note = "On one core of the machine that wrote this page, with as many particles as there are by default."
    goals = []
    if usual:
        figures = [
            Score(short(each.asked.text), "seconds", computed(each.seconds), f"{each.seconds:.2f} s",
                   judge(computed(each.seconds), high=each.asked.seconds))
            for each in usual
        ]  # fmt: skip
        where = f"K={USUAL[0]}, T={USUAL[1]:,}"
        goal = "under 2 s for index rules, under 5 s for Thompson"
        goals.append(Criterion("time", f"time of a posterior, {where}, one core", goal, "rule", figures, note))
    if large:
        figures = [
            figure
            for each in large
            for figure in (
                Score(short(each.asked.text), "seconds", computed(each.seconds), f"{each.seconds:.1f} s",
                       judge(computed(each.seconds), high=each.asked.seconds)),
                Score(short(each.asked.text), "memory", computed(each.memory), f"{each.memory / 1e9:.2f} GB",
                       judge(computed(each.memory), high=each.asked.memory)),
            )
        ]  # fmt: skip
        asked = large[0].asked
        where = f"K={asked.arms}, T={asked.rounds:,}"
        goal = f"under {asked.seconds:g} s, under {asked.memory / 1e9:g} GB"
        goals.append(Criterion("large record", f"time and memory of a posterior, {where}", goal, "rule", figures, note))
    return goals


def cell_name(setting: TrialSetting) -> str:
    """Write a cell's arms and rounds."""
    return f"K={setting.arms}, T={setting.horizon:,}"


def percent(measured: Measured) -> str:
    """Write a share with its error.

    Examples
    --------
    >>> percent(Measured(0.9483, 0.0049, 20)), percent(Measured(math.nan, math.nan, 0))
    ('94.8 ± 0.5%', '-')
    """
    if not math.isfinite(measured.value):
        return "-"
    error = f" ± {100 * measured.error:.1f}" if math.isfinite(measured.error) else ""
    return f"{100 * measured.value:.1f}{error}%"


def times(measured: Measured) -> str:
    """Write a ratio with its error.

    Examples
    --------
    >>> times(Measured(1.0342, 0.0213, 20)), times(Measured(0.00123, 0.0002, 20))
    ('1.03 ± 0.02', '0.0012 ± 0.0002')
    """
    if not math.isfinite(measured.value):
        return "-"
    digits = 2 if measured.value >= 0.1 else 4
    error = f" ± {measured.error:.{digits}f}" if math.isfinite(measured.error) else ""
    return f"{measured.value:.{digits}f}{error}"


def _at(setting: TrialSetting, measured: Measured, text: str, verdict: Verdict | None) -> Score:
    return Score(f"{short(setting.rule)}{_coins(setting)}", cell_name(setting), measured, text, verdict)


def _coins(setting: TrialSetting) -> str:
    return ", Bernoulli" if setting.sigma is None else ""


def _coverage(each: PosteriorMetrics) -> str:
    return percent(each.coverage) + (f" ({each.failed:,} of {each.runs:,} failed)" if each.failed else "")


def _chance(chance: float) -> str:
    return f"p = {chance:.2g}" if math.isfinite(chance) else "-"


def _covers(each: PosteriorMetrics) -> Verdict:
    return MISSED if each.failed > FAILED * each.runs else judge(each.coverage, 0.93, 0.97)


def _lowest(lowest: Share) -> Verdict:
    """Judge the lowest arm: the goal itself speaks of two Monte-Carlo errors, so there is nothing in between."""
    return judge(Measured(lowest.value + 2 * lowest.error, 0.0, lowest.folds), 0.92)


def _by_oracle(each: PosteriorMetrics) -> Verdict | None:
    limits = [limit for kind, limit in AGAINST_ORACLE.items() if isinstance(each.setting.rule, kind)]
    return judge(each.against_oracle, high=limits[0]) if limits else None


def _noise(each: CoverageMetrics) -> str:
    noise = each.instance.noise
    return f"sigma {noise.sigma:g}" if isinstance(noise, Gaussian) else "Bernoulli"


def _given(each: CoverageMetrics, measured: Measured, count: int) -> str:
    if not count:
        return "-"
    return f"{percent(measured)} (of {100 * count / (each.runs * len(each.instance)):.3g}%)"


def _together(shares: Sequence[Share]) -> Share:
    return share(sum(each.held for each in shares), sum(each.runs for each in shares))
