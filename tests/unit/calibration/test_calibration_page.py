"""From figures to verdicts, and to a page that says all of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from unbandit import SAE, UCB, EpsilonGreedy, Gaussian, Thompson, parse_rule
from unbandit.calibration import Calibration
from unbandit.calibration import page as page_of_calibration
from unbandit.calibration.closed_forms import ClosedFormCell
from unbandit.calibration.criteria import MISSED, OPEN, REACHED, UNKNOWN, judge
from unbandit.calibration.metrics import ClosedFormMetrics, IdentifyMetrics, PosteriorMetrics, Timing
from unbandit.calibration.page import page
from unbandit.calibration.settings import TrialSetting
from unbandit.study.monte_carlo import Measured, Share, share


def cell(
    rule=None, *, coverage=0.95, lowest=0.94, chance=0.5, oracle=1.05, naive=0.2, failed=0, arms=4
) -> PosteriorMetrics:
    setting = TrialSetting(rule or UCB(), arms, 2_000, 500)
    return PosteriorMetrics(
        setting, 500, failed, failed, Measured(coverage, 0.005, 500), Measured(0.97, 0.005, 500),
        share(round(lowest * 500), 500), chance, Measured(oracle, 0.02, 20), Measured(naive, 0.01, 20),
    )  # fmt: skip


def calibration(**found) -> Calibration:
    return Calibration(Path("calibration"), "unbandit calibrate", 1, 250, 2, **found)


def verdicts(done: Calibration) -> dict[str, list[str | None]]:
    return {criterion.key: [score.verdict for score in criterion.scores] for criterion in done.criteria}


def test_limits_of_the_posterior():
    cells = [
        cell(),
        cell(coverage=0.925, lowest=0.90, oracle=1.16, naive=1.01, chance=0.006),
        cell(coverage=0.985, lowest=0.89, oracle=1.30, naive=1.5, chance=1e-4),
    ]
    found = verdicts(calibration(posteriors=cells))
    assert found["coverage"] == [REACHED, OPEN, MISSED]
    assert found["lowest arm"] == [REACHED, REACHED, MISSED]  # 90% of 500 has an error of 1.3%
    assert found["oracle"] == [REACHED, OPEN, MISSED]
    assert found["naive"] == [REACHED, OPEN, MISSED]
    assert found["ranks"] == [REACHED, REACHED, MISSED]  # 0.006 of three is 0.012
    assert found["gap coverage"] == [REACHED, REACHED, REACHED]  # 97%: more than 95% is no fault


def test_each_kind_of_rule_has_its_own_limit_against_the_oracle():
    cells = [cell(rule, oracle=1.2) for rule in (UCB(), Thompson(sigma=0.5), EpsilonGreedy(), SAE())]
    assert verdicts(calibration(posteriors=cells))["oracle"] == [MISSED, REACHED, None, None]


def test_runs_without_a_posterior_are_shown_and_count():
    done = calibration(posteriors=[cell(failed=5), cell(failed=6, arms=2)])
    assert verdicts(done)["coverage"] == [REACHED, MISSED]
    text = page(done)
    assert "95.0 ± 0.5% (5 of 500 failed) ✓" in text
    assert "95.0 ± 0.5% (6 of 500 failed) ✗" in text
    assert "## Where the tool warns or gives up" in text


def closed(
    design="random", *, rule="ucb:alpha=0.25", arms=4, horizon=2_000, value=None, **changed
) -> ClosedFormMetrics:
    """Return the metrics of a cell, all goals reached unless something is changed."""
    paper = {"means": (1.0, 0.5), "label": "two arms"} if design == "paper" else {}
    cell = ClosedFormCell(design, parse_rule(rule), arms, horizon, 500, Gaussian(0.5), **paper)
    numbers = {
        "coverage": 0.95, "unwarned": 0.95, "procedures": 0.95, "bounded": 0.99, "reach_zero": 0.1,
        "against_procedures": 0.6, "against_naive": 0.3, "against_seen": 1.1, "naive_against_seen": 3.0,
    }  # fmt: skip
    counts = {"intervals": 900, "bounds": 900, "pull_counts": 4, "unwarned_runs": 500}
    measured = {name: Measured(changed.get(name, value), 0.004, 20) for name, value in numbers.items()}
    return ClosedFormMetrics(cell, **measured, **{name: changed.get(name, count) for name, count in counts.items()})


def test_limits_of_the_closed_forms():
    cells = [closed(), closed(coverage=0.965, bounded=0.925), closed(coverage=0.98, bounds=19)]
    found = verdicts(calibration(closed_forms=cells))
    assert found["random means, coverage"] == [REACHED, OPEN, MISSED]
    assert found["random means, bounds"] == [REACHED, OPEN, UNKNOWN]
    assert found["random means, against naive"] == [REACHED] * 3
    near = [
        closed("near", coverage=0.98),
        closed("near", coverage=0.999, unwarned=0.8),
        closed("near", unwarned_runs=4),
    ]
    found = verdicts(calibration(closed_forms=near))
    assert found["near means, coverage"] == [REACHED, MISSED, REACHED]  # no cell above 99%
    assert found["near means, not told"] == [REACHED, MISSED, UNKNOWN]


def test_only_some_cells_have_a_goal_against_the_procedures():
    many = [("random", "ucb:alpha=0.25", 4, 2_000), ("random", "ucb:alpha=0.25", 2, 500), ("random", "ucb1", 4, 2_000),
            ("even", "ucb:alpha=0.25", 4, 2_000), ("paper", "ucb:alpha=0.25", 2, 500)]  # fmt: skip
    cells = [closed(design, rule=rule, arms=arms, horizon=horizon, against_procedures=0.7)
             for design, rule, arms, horizon in many]  # fmt: skip
    found = verdicts(calibration(closed_forms=cells))
    assert found["random means, against the procedures"] == [MISSED, None, None]
    assert found["even means, against the procedures"] == [None]
    assert found["paper means, against the procedures"] == [REACHED]
    worse = calibration(closed_forms=[closed("paper", arms=2, against_procedures=each) for each in (1.047, 1.06)])
    assert verdicts(worse)["paper means, against the procedures"] == [OPEN, MISSED]


def test_a_goal_is_ticked_only_where_the_runs_decide():
    value = Measured(0.95, 0.012, 20)
    assert [judge(value, low, high) for low, high in ((0.9, 1), (0.93, 1), (0.97, 1), (0.98, 1))] == [
        REACHED, OPEN, OPEN, MISSED
    ]  # fmt: skip


def test_cells_that_miss_a_goal_are_listed_with_what_explains_them():
    done = calibration(closed_forms=[closed(), closed(rule="moss", against_naive=1.2, naive_against_seen=0.77)])
    text = page(done)
    assert "## Closed forms that miss a goal, and why" in text
    (line,) = [line for line in text.splitlines() if line.startswith("| random means, against naive |")]
    assert line == (
        "| random means, against naive | `moss:scale=1, sigma 0.5` | K=4, T=2,000 | 1.200 ± 0.004 | 4 | 10.0 ± 0.4% | "
        "1.100 ± 0.004 | 0.770 ± 0.004 |"
    )
    assert "miss a goal" not in page(calibration(closed_forms=[closed()]))


def test_limits_of_names():
    named = [
        IdentifyMetrics(TrialSetting(rule, 4, 2_000, 1_000), *(share(each, 1_000) for each in shares), taken_for)
        for rule, shares, taken_for in (
            (UCB(), (900, 10, 90), {"sae:alpha=0.25": 1}),
            (SAE(), (600, 100, 300), {"none of them": 10}),
        )
    ]
    done = calibration(identified=named)
    found = verdicts(done)
    assert found["identify, right"] == [REACHED, None, MISSED, None, MISSED, None]
    assert found["identify, wrong"] == [REACHED, MISSED, MISSED]
    assert "`sae:alpha=0.25,scale=1.414` was taken for none of them 10 times." in page(done)
    assert "| `all together` | 75.0" in page(done)


def test_limits_of_time():
    timings = [
        Timing("ucb:alpha=0.25", 4, 5_000, 2.0, seconds=1.5, memory=3e8),
        Timing("thompson", 4, 5_000, 5.0, seconds=5.5, memory=3e8),
        Timing("ucb:alpha=0.25", 224, 25_000, 60.0, 2e9, seconds=30.0, memory=2.5e9),
    ]
    found = verdicts(calibration(timings=timings))
    assert found == {"time": [REACHED, MISSED], "large record": [REACHED, MISSED]}


def test_the_page_holds_every_figure(monkeypatch):
    monkeypatch.setitem(page_of_calibration.REASONS, ("coverage", "sae"), "its tests are rare.")
    done = calibration(posteriors=[cell(), cell(SAE(), coverage=0.8)], closed_forms=[closed()])
    text = page(done)
    assert "Written by `unbandit calibrate` of unbandit" in text
    assert "2 cloud(s) of 250 particles" in text
    assert "| `ucb:alpha=0.25,scale=1.414` | 95.0 ± 0.5% ✓ |" in text
    assert "| `sae:alpha=0.25,scale=1.414` | 80.0 ± 0.5% ✗ |" in text
    assert "- `sae`: its tests are rare." in text
    assert "80.0 ± 0.5% to 95.0 ± 0.5% | 1 reached, 1 not reached |" in text
    assert "| `sae:alpha=0.25,scale=1.414` | 500 |" in text
    table = done.figures
    assert table.height == sum(len(criterion.scores) for criterion in done.criteria)
    assert table.filter(goal="coverage")["value"].to_list() == [0.95, 0.8]
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith(" |")


def test_nothing_measured_is_nothing_said():
    assert calibration().criteria == []
    blank = cell()
    nothing = PosteriorMetrics(
        blank.setting, 500, 500, 0, *[Measured(np.nan, np.nan, 0)] * 2, Share(np.nan, np.nan, 0, 0, 0), math.nan,
        *[Measured(np.nan, np.nan, 0)] * 2,
    )  # fmt: skip
    done = calibration(posteriors=[nothing])
    assert verdicts(done)["coverage"] == [MISSED]  # every run failed
    assert verdicts(done)["ranks"] == [UNKNOWN]
    assert "nan" not in page(done).lower().replace("unbandit", "")


@pytest.mark.parametrize("verdict", [REACHED, OPEN, MISSED])
def test_verdicts_are_words(verdict):
    assert verdict.replace(" ", "").isalpha()
