"""Logs of several demonstrations of which some miss rounds: those that are whole are read as if they were alone."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import SAE, UCB, UCB1, Instance, Thompson, estimate
from unbandit.log.partial import PartialLog, ThinnedLog, read_or_scan

RULES = [UCB(alpha=0.25), UCB1(), SAE(alpha=0.25, scale=0.4)]
INSTANCE = Instance([1.0, 0.5, 0.2], 0.5, ("a", "b", "c"))

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")


def written(path, rule, missing, first=1):
    """Write a whole run and one that misses some rounds, counted from `first`."""
    lines = ["demonstration,round,arm"]
    for name, hidden in (("whole", ()), ("other", missing)):
        arms = rule.demonstrate(INSTANCE, 400, seed=len(name)).actions
        lines += [f"{name},{at + first},{'abc'[arm]}" for at, arm in enumerate(arms) if at not in hidden]
    path.write_text("\n".join([*lines, ""]))
    return read_or_scan(path)


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize("method", ["bracket", "switching"])
@pytest.mark.parametrize("missing", [{56}, range(60)], ids=["a hole", "mid-run"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_whole_demonstration_is_read_as_if_it_were_alone(rule, method, missing, first, tmp_path):
    log = written(tmp_path / "log.csv", rule, missing, first)
    assert isinstance(log, PartialLog if len(missing) > 1 else ThinnedLog)
    asked = {"sigma": 0.5, "method": method, "check": False}
    both, alone = (estimate(each, rule, **asked) for each in (log, log.select(0)))
    for name in ("gap", "gap_low", "gap_high", "verdict"):
        np.testing.assert_array_equal(getattr(both.columns, name)[0], getattr(alone.columns, name)[0])


def test_the_one_with_a_hole_is_still_bracketed_and_a_thinned_one_completed(tmp_path):
    rule = UCB(alpha=0.25)
    log = written(tmp_path / "log.csv", rule, {56})
    both, alone = (estimate(each, rule, sigma=0.5, check=False) for each in (log, log.select(1)))
    np.testing.assert_array_equal(both.columns.gap[1], alone.columns.gap[0])
    kept, whole = (estimate(log, rule, sigma=0.5, check=False, **asked) for asked in ({"kept": 0.99}, {}))
    assert (kept.columns.gap[0, 1:] != whole.columns.gap[0, 1:]).all()


def test_the_note_says_which_are_read_as_they_are(tmp_path):
    log = written(tmp_path / "log.csv", UCB(alpha=0.25), {56})
    notes = [estimate(part, "ucb", sigma=0.5, check=False).notes for part in (log, log.select(1))]
    said = [[each.message for each in some if each.code == "missing-rounds"] for some in notes]
    assert ["without missing rounds are read as they are" in text for (text,) in said] == [True, False]


@pytest.mark.parametrize("missing", [{56}, range(60)], ids=["a hole", "mid-run"])
def test_a_whole_demonstration_has_the_posterior_that_it_has_alone(missing, tmp_path):
    rule = Thompson(sigma=0.5)
    log = written(tmp_path / "log.csv", rule, missing)
    assert isinstance(log, PartialLog if len(missing) > 1 else ThinnedLog)
    asked = {"sigma": 0.5, "particles": 100, "check": False}
    both, alone = (estimate(each, rule, **asked) for each in (log, log.select(0)))
    for name in ("mean", "mean_low", "mean_high", "gap", "verdict"):
        np.testing.assert_array_equal(getattr(both.columns, name)[0], getattr(alone.columns, name)[0])
    np.testing.assert_array_equal(both.posteriors[0].draws, alone.posteriors[0].draws)
