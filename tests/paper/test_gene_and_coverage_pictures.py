"""The gene pictures' choices, and the picture that asks all others how often their intervals hold the truth."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit.datasets.gene import GENES
from unbandit.paper.coverage import Coverage
from unbandit.paper.covered import Trail, exact_interval, inside, trails
from unbandit.paper.gene import COUNTS, TRACKED, Gene, chosen
from unbandit.paper.gene_all import _groups, _ranks
from unbandit.paper.picture import Size
from unbandit.paper.registry import pictures
from unbandit.study import Study
from unbandit.study.folds import Folds, Measured
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


def test_coverage_asks_for_the_very_studies_of_all_other_pictures():
    size = Size(runs=3, seed=5)
    asked = Coverage().studies(size)
    others = {
        f"{name}/{study}": made
        for name, picture in pictures().items()
        if name != "coverage"
        for study, made in picture.studies(size).items()
    }
    assert asked == others
    assert all(Coverage().home(name) == name for name in asked)


def trail(held: list[int], intervals: list[int], runs: int) -> Trail:
    good, there = np.array(held, float), np.array(intervals, float)
    share = good / there
    errors = np.sqrt(share * (1 - share) / there)
    horizons = np.arange(1, good.size + 1) * 1_000
    return Trail("made", True, True, horizons, Measured(share, errors, 20), good, there, there / runs)


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
    few = trail([95_000, 10], [100_000, 40_000], 100_000)
    assert inside([few], 0.93, 0.97)[1][0] == "holds"
    assert inside([trail([1], [4], 100)], 0.93, 0.97) == (None, inside([], 0.93, 0.97)[1])


def test_many_points_make_every_interval_wider():
    """A coverage of 90% in 200 intervals lies outside 93% to 97% for itself, not as one of a thousand points."""
    low = trail([178], [200], 200)
    assert inside([low], 0.93, 0.97)[1][0] == "does not hold"
    assert inside([low] + [trail([190], [200], 200)] * 999, 0.93, 0.97)[1][0] == "cannot be tested"


def test_trails_count_what_the_rows_hold():
    study = Study(["two-armed"], ["ucb:alpha=0.25", "ucb:alpha=0.15"], [200, 400], runs=30)
    parts = [rows(study, task) for task in study.tasks]
    found = trails(study, Folds(study, parts))
    assert [each.name for each in found] == ["alpha=0.25", "alpha=0.15"]
    worse = parts[0].filter((parts[0]["arm"] == "1") & (parts[0]["verdict"] == "estimated"))
    held = ((worse["low"] <= worse["gap"]) & (worse["gap"] <= worse["high"])).sum()
    assert (found[0].held[0], found[0].intervals[0]) == (held, worse.height)
    assert trails(Study("two-armed", "ucb", [200], runs=2, estimators="naive"), None) == []


def test_the_exact_interval_is_that_of_the_binomial():
    from scipy.stats import binom

    low, high = exact_interval(90, 100, 0.95)
    assert binom.sf(89, 100, low) == pytest.approx(0.025)
    assert binom.cdf(90, 100, high) == pytest.approx(0.025)
