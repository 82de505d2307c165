"""The table of what is to be reached, filled in with what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from unbandit.calibration.closed_forms import TIMES
from unbandit.calibration.coverage import Covered
from unbandit.calibration.goals import MISSED, UNKNOWN, Figure, Goal, Verdict, judge
from unbandit.calibration.measures import Calibrated, Named, holm
from unbandit.calibration.settings import Setting, short
from unbandit.calibration.timing import USUAL, Timed
from unbandit.demonstrators import IndexRule, Thompson
from unbandit.instance import Gaussian
from unbandit.study.monte_carlo import Measured, Share, computed, share

__all__ = ["cell_name", "closed_form_goals", "identify_goals", "posterior_goals", "timing_goals"]

FAILED = 0.01
"""If more than this share of the runs gives no posterior, the intervals of the others are a selection."""

AGAINST_ORACLE = {IndexRule: 1.15, Thompson: 1.25}
"""How many times an oracle's error is allowed, by kind of rule."""

RANKS_LEVEL = 0.01

ENOUGH = 20
"""Of fewer intervals nothing is said: whether 93% of them hold cannot be told."""


def posterior_goals(found: Sequence[Calibrated]) -> list[Goal]:
    """Return what was measured of the posterior, beside what is to be reached."""
    adjusted = holm(np.array([each.uniform for each in found]))
    return [
        Goal(
            "coverage",
            "posterior: coverage of the 95% intervals of the means",
            "93% to 97%, averaged over arms",
            "rule",
            [_at(each.setting, each.coverage, _coverage(each), _covers(each)) for each in found],
            "Every run draws its means from the prior. A run that ends without a posterior (an `InferenceError`) has "
            "no interval; such runs are counted in brackets, and where they are more than 1% the goal is not reached.",
        ),
        Goal(
            "lowest arm",
            "posterior: coverage of the arm that has the lowest",
            "no more than two Monte-Carlo errors below 92%",
            "rule",
            [_at(each.setting, each.lowest, percent(each.lowest), _lowest(each.lowest)) for each in found],
            "Arms are told apart by their place in the list: ties and elimination treat places differently. Of many "
            "arms the lowest is low by luck alone, which two Monte-Carlo errors allow for.",
        ),
        Goal(
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
        Goal(
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
        Goal(
            "oracle",
            "posterior: root mean squared error of the gaps, relative to oracle Bayes (same prior, rewards seen)",
            "at most 1.15 times for index rules, 1.25 times for Thompson",
            "rule",
            [_at(each.setting, each.against_oracle, times(each.against_oracle), _by_oracle(each)) for each in found],
            "For other rules there is no goal: what their actions tell is given as it is.",
        ),
        Goal(
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


def closed_form_goals(found: Iterable[Covered]) -> list[Goal]:
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
        Goal(
            "closed forms, estimated",
            f"closed forms, {of}: coverage of the 95% intervals of arms with the verdict `estimated`",
            "92% to 98%",
            "rule and noise",
            [
                Figure(row, column, each.estimated, _given(each, each.estimated, each.intervals),
                       UNKNOWN if each.intervals < ENOUGH else judge(each.estimated, 0.92, 0.98))
                for row, column, each in rows
            ],
            note,
        ),
        Goal(
            "closed forms, bounded",
            f"closed forms, {of}: how often the bound of arms with the verdict `bounded` holds",
            "at least 93%",
            "rule and noise",
            [
                Figure(row, column, each.bounded, _given(each, each.bounded, each.bounds),
                       UNKNOWN if each.bounds < ENOUGH else judge(each.bounded, 0.93))
                for row, column, each in rows
            ],
            note,
        ),
    ]  # fmt: skip


def identify_goals(found: Sequence[Named]) -> list[Goal]:
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
        Goal(
            "identify, right",
            f"{where}: right",
            "at least 85%",
            "made by",
            [
                figure
                for row, right, _, neither in rows
                for figure in (
                    Figure(row, "right", right, percent(right), judge(right, 0.85)),
                    Figure(row, "cannot tell", neither, percent(neither), None),
                )
            ],
        ),
        Goal(
            "identify, wrong",
            f"{where}: wrong",
            "at most 2%",
            "made by",
            [Figure(row, "wrong", wrong, percent(wrong), judge(wrong, high=0.02)) for row, _, wrong, _ in rows],
            " ".join([note, *(f"{line}." for line in mistaken)]),
        ),
    ]


def timing_goals(found: Sequence[Timed]) -> list[Goal]:
    """Return what posteriors took."""
    usual = [each for each in found if (each.asked.arms, each.asked.rounds) == USUAL]
    large = [each for each in found if each not in usual]
    note = "On one core of the machine that wrote this page, with as many particles as there are by default."
    goals = []
    if usual:
        figures = [
            Figure(short(each.asked.text), "seconds", computed(each.seconds), f"{each.seconds:.2f} s",
                   judge(computed(each.seconds), high=each.asked.seconds))
            for each in usual
        ]  # fmt: skip
        where = f"K={USUAL[0]}, T={USUAL[1]:,}"
        goal = "under 2 s for index rules, under 5 s for Thompson"
        goals.append(Goal("time", f"time of a posterior, {where}, one core", goal, "rule", figures, note))
    if large:
        figures = [
            figure
            for each in large
            for figure in (
                Figure(short(each.asked.text), "seconds", computed(each.seconds), f"{each.seconds:.1f} s",
                       judge(computed(each.seconds), high=each.asked.seconds)),
                Figure(short(each.asked.text), "memory", computed(each.memory), f"{each.memory / 1e9:.2f} GB",
                       judge(computed(each.memory), high=each.asked.memory)),
            )
        ]  # fmt: skip
        asked = large[0].asked
        where = f"K={asked.arms}, T={asked.rounds:,}"
        goal = f"under {asked.seconds:g} s, under {asked.memory / 1e9:g} GB"
        goals.append(Goal("large record", f"time and memory of a posterior, {where}", goal, "rule", figures, note))
    return goals


def cell_name(setting: Setting) -> str:
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


def _at(setting: Setting, measured: Measured, text: str, verdict: Verdict | None) -> Figure:
    return Figure(f"{short(setting.rule)}{_coins(setting)}", cell_name(setting), measured, text, verdict)


def _coins(setting: Setting) -> str:
    return ", Bernoulli" if setting.sigma is None else ""


def _coverage(each: Calibrated) -> str:
    return percent(each.coverage) + (f" ({each.failed:,} of {each.runs:,} failed)" if each.failed else "")


def _chance(chance: float) -> str:
    return f"p = {chance:.2g}" if math.isfinite(chance) else "-"


def _covers(each: Calibrated) -> Verdict:
    return MISSED if each.failed > FAILED * each.runs else judge(each.coverage, 0.93, 0.97)


def _lowest(lowest: Share) -> Verdict:
    """Judge the lowest arm: the goal itself speaks of two Monte-Carlo errors, so there is nothing in between."""
    return judge(Measured(lowest.value + 2 * lowest.error, 0.0, lowest.folds), 0.92)


def _by_oracle(each: Calibrated) -> Verdict | None:
    limits = [limit for kind, limit in AGAINST_ORACLE.items() if isinstance(each.setting.rule, kind)]
    return judge(each.against_oracle, high=limits[0]) if limits else None


def _noise(each: Covered) -> str:
    noise = each.instance.noise
    return f"sigma {noise.sigma:g}" if isinstance(noise, Gaussian) else "Bernoulli"


def _given(each: Covered, measured: Measured, count: int) -> str:
    if not count:
        return "-"
    return f"{percent(measured)} (of {100 * count / (each.runs * len(each.instance)):.3g}%)"


def _together(shares: Sequence[Share]) -> Share:
    return share(sum(each.held for each in shares), sum(each.runs for each in shares))
