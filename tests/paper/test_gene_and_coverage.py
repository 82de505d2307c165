"""The gene figures' choices, and the figure that asks all others how often their intervals hold the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from unbandit.datasets.gene import GENES
from unbandit.instance import Instance
from unbandit.paper.coverage import PLOTTED, Coverage, CoverageCurve, coverage_curves, inside
from unbandit.paper.figure import Size, figures
from unbandit.paper.gene import COUNTS, TRACKED, Gene, _groups, _hardly_apart, _ranks, chosen
from unbandit.study import Study
from unbandit.study.curves import Curve, StudyCurves
from unbandit.study.monte_carlo import Measured
from unbandit.study.rows import rows


def test_the_followed_gene_is_in_every_choice_and_smaller_choices_are_part_of_larger_ones():
    choices = [chosen(count) for count in COUNTS]
    assert [len(choice) for choice in choices] == [100, 200, 400]
    assert all(TRACKED in choice.arms for choice in choices)
    assert set(choices[0].arms) < set(choices[1].arms) < set(choices[2].arms)
    assert len({choice.name for choice in choices}) == 3


def test_the_seed_of_the_runs_does_not_change_the_genes():
    first, second = (Gene().studies(Size(seed=seed))["counts"] for seed in (1, 2))
    assert [each.arms for each in first.instances] == [each.arms for each in second.instances]


def test_every_gene_but_the_best_is_in_one_group_of_neighbours():
    groups, ranks = _groups(), _ranks()
    assert groups.size == GENES - 1
    assert set(np.diff(groups)) <= {0, 1}
    assert groups.max() + 1 == ranks.size
    assert (np.diff(ranks) > 0).all()


def test_coverage_asks_for_the_very_studies_of_all_other_figures():
    size = Size(runs=3, seed=5)
    asked = Coverage().studies(size)
    others = {
        f"{name}/{study}": made
        for name, figure in figures().items()
        if name != "coverage"
        for study, made in figure.studies(size).items()
    }
    assert asked == others
    assert all(Coverage().home(name) == name for name in asked)


def trail(held: list[int], intervals: list[int], runs: int) -> CoverageCurve:
    good, there = np.array(held, float), np.array(intervals, float)
    share = good / there
    errors = np.sqrt(share * (1 - share) / there)
    horizons = np.arange(1, good.size + 1) * 1_000
    coverage = Measured(share, errors, 20)
    return CoverageCurve("made", "", True, horizons, coverage, good, there, there / runs, independent=True)


@pytest.mark.parametrize(
    ("held", "verdict"),
    [([95_000, 94_500], "holds"), ([95_000, 92_000], "does not hold"), ([95_000, 98_000], "does not hold"),
     ([95_000, 93_010], "cannot be tested")],
)  # fmt: skip
def test_coverage_is_decided_by_all_points_at_once(held, verdict):
    smallest, (found, because) = inside([trail(held, [100_000] * 2, 100_000)], 0.93, 0.97)
    assert found == verdict
    assert smallest.value == min(held) / 100_000
    assert "T = 2,000" in because


def test_points_with_few_intervals_do_not_count():
    few = trail([95_000, 10], [100_000, 94_000], 100_000)
    assert inside([few], 0.93, 0.97)[1][0] == "holds"
    assert inside([trail([1], [4], 100)], 0.93, 0.97) == (None, inside([], 0.93, 0.97)[1])


def test_many_points_make_every_interval_wider():
    """A coverage of 90% in 200 intervals lies outside 93% to 97% for itself, not as one of a thousand points."""
    low = trail([178], [200], 200)
    assert inside([low], 0.93, 0.97)[1][0] == "does not hold"
    assert inside([low] + [trail([190], [200], 200)] * 999, 0.93, 0.97)[1][0] == "cannot be tested"


def counted(rows: pl.DataFrame) -> tuple[int, int]:
    """Return how many intervals hold the true gap, and how many there are."""
    there = rows.filter(pl.col("verdict") == "estimated")
    return there.filter((pl.col("low") <= pl.col("gap")) & (pl.col("gap") <= pl.col("high"))).height, there.height


def test_every_interval_given_counts_whatever_the_arm():
    """At so small a gap many runs take the worse arm for the best: then the best arm's interval is the one given."""
    instance = Instance([0.52, 0.5], name="near")
    study = Study([instance], ["ucb:alpha=0.25", "ucb:alpha=0.15"], [200, 400], runs=200, estimators="switching")
    parts = [rows(study, task) for task in study.tasks]
    found = coverage_curves(study, StudyCurves(study, parts))
    assert [each.name for each in found] == [
        "alpha=0.25, all intervals", "alpha=0.25, arm 1 (gap 0.02)", "alpha=0.15, all intervals",
        "alpha=0.15, arm 1 (gap 0.02)",
    ]  # fmt: skip
    together, worse = found[:2]
    first = pl.concat(parts).filter(rule="ucb:alpha=0.25,scale=1.4142135623730951", horizon=200)
    assert first.height == 400
    assert (together.held[0], together.intervals[0]) == counted(first)
    assert (worse.held[0], worse.intervals[0]) == counted(first.filter(arm="1"))
    assert together.given[0] == 1.0  # one interval a run
    assert worse.given[0] < 0.7
    assert together.independent


def test_a_study_without_intervals_has_no_trails():
    assert coverage_curves(Study("two-armed", "ucb", [200], runs=2, estimators="naive"), None) == []


def test_arms_that_are_plotted_are_followed_among_many_others():
    study = Study([chosen(100)], "ucb:alpha=0.25,scale=0.48", [400], runs=4, estimators="switching")
    folds = StudyCurves(study, [rows(study, task) for task in study.tasks])
    assert [each.arm for each in coverage_curves(study, folds)] == [""]
    together, tracked = coverage_curves(study, folds, [TRACKED])
    assert tracked.arm == f"arm {TRACKED} (gap 0.91)"
    assert tracked.plotted
    assert not together.independent
    assert together.given[0] == pytest.approx(together.intervals[0] / (99 * 4))


def test_where_all_groups_of_runs_cover_the_same_the_error_is_unknown():
    several = replace(trail([200], [200], 200), independent=False)
    assert inside([several], 0.93, 0.97)[1][0] == "cannot be tested"


@pytest.mark.parametrize("name", PLOTTED)
def test_the_plotted_arms_are_those_of_the_studies(name):
    for study in figures()[name].studies(Size(runs=2)).values():
        for instance in study.instances:
            assert set(PLOTTED[name]()) <= set(instance.arms)


def made(errors: list[float]) -> Curve:
    """Return a curve with these mean squared errors, from 20 folds of 1,000 runs that hardly differ."""
    wobble = 1 + 0.01 * np.resize([1.0, -1.0], 20)[:, None]
    sums = {"squared": 1_000 * wobble * np.array(errors), "points": np.full((20, len(errors)), 1_000.0)}
    horizons = np.geomspace(2_000, 50_000, len(errors)).round().astype(int)
    return Curve(horizons, np.ones(len(errors)), sums | {"runs": sums["points"]})


def test_a_mean_over_horizons_of_ours_and_the_longest_one_may_disagree():
    errors = np.geomspace(1.0, 0.1, 10)
    many, few = made((errors * np.geomspace(8.0, 1.0, 10)).tolist()), made(errors.tolist())
    few.sums["squared"] = few.sums["squared"][::-1]  # the two are independent
    over_all, at_last = _hardly_apart(many, few, "(K = 400 against 100)", "the same")
    assert (over_all.verdict, at_last.verdict) == ("does not hold", "holds")
    assert over_all.measured.value == pytest.approx(8**0.5)
    assert at_last.measured.value == pytest.approx(1.0)
    for claim in (over_all, at_last):
        assert "ours, the paper gives none" in claim.statistic
