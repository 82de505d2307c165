"""From figures to verdicts, and to a page that says all of them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from unbandit import SAE, UCB, EpsilonGreedy, Gaussian, Instance, Thompson
from unbandit.calibration import Calibration, criteria
from unbandit.calibration.criteria import MISSED, NEARLY, REACHED, UNKNOWN, page
from unbandit.calibration.metrics import CoverageMetrics, IdentifyMetrics, PosteriorMetrics, Timing
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
    assert found["coverage"] == [REACHED, NEARLY, MISSED]
    assert found["lowest arm"] == [REACHED, REACHED, MISSED]  # 90% of 500 has an error of 1.3%
    assert found["oracle"] == [REACHED, NEARLY, MISSED]
    assert found["naive"] == [REACHED, NEARLY, MISSED]
    assert found["ranks"] == [REACHED, REACHED, MISSED]  # 0.006 of three is 0.012
    assert found["gap coverage"] == [REACHED, REACHED, REACHED]  # 97%: more than 95% is no fault


def test_each_kind_of_rule_has_its_own_limit_against_the_oracle():
    cells = [cell(rule, oracle=1.22) for rule in (UCB(), Thompson(sigma=0.5), EpsilonGreedy(), SAE())]
    assert verdicts(calibration(posteriors=cells))["oracle"] == [MISSED, REACHED, None, None]


def test_runs_without_a_posterior_are_shown_and_count():
    done = calibration(posteriors=[cell(failed=5), cell(failed=6, arms=2)])
    assert verdicts(done)["coverage"] == [REACHED, MISSED]
    text = page(done)
    assert "95.0 ± 0.5% (5 of 500 failed) ✓" in text
    assert "95.0 ± 0.5% (6 of 500 failed) ✗" in text
    assert "## Where the tool warns or gives up" in text


def closed(estimated: float, bounded: float, intervals: int, bounds: int) -> CoverageMetrics:
    instance = Instance([1.0, 0.0], Gaussian(0.5), name="2 arms, sigma 0.5")
    return CoverageMetrics(
        instance,
        str(SAE()),
        500,
        2_000,
        Measured(estimated, 0.004, 20),
        Measured(bounded, 0.004, 20),
        intervals,
        bounds,
    )


def test_limits_of_the_closed_forms():
    cells = [closed(0.95, 0.99, 900, 900), closed(0.987, 0.925, 900, 19), closed(0.99, math.nan, 900, 0)]
    found = verdicts(calibration(closed_forms=cells))
    assert found["closed forms, estimated"] == [REACHED, NEARLY, MISSED]
    assert found["closed forms, bounded"] == [REACHED, UNKNOWN, UNKNOWN]


def test_limits_of_names():
    named = [
        IdentifyMetrics(
            TrialSetting(UCB(), 4, 2_000, 100), share(90, 100), share(1, 100), share(9, 100), {"sae:alpha=0.25": 1}
        ),
        IdentifyMetrics(
            TrialSetting(SAE(), 4, 2_000, 100), share(60, 100), share(10, 100), share(30, 100), {"none of them": 10}
        ),
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
    monkeypatch.setitem(criteria.REASONS, ("coverage", "sae"), "its tests are rare.")
    done = calibration(posteriors=[cell(), cell(SAE(), coverage=0.8)], closed_forms=[closed(0.95, 0.99, 900, 900)])
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


@pytest.mark.parametrize("verdict", [REACHED, NEARLY, MISSED])
def test_verdicts_are_words(verdict):
    assert verdict.replace(" ", "").isalpha()
