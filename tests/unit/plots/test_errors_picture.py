"""Errors against the truth: which intervals hold it."""

from __future__ import annotations

import numpy as np
import pytest
from picture_tools import FOUR, answered, drawn, words

from unbandit import UCB, Instance, ParameterError, plots


def test_intervals_that_hold_the_truth_are_told_from_those_that_do_not():
    instance = Instance([1.0, 0.7, 0.4, 0.0])
    log = UCB(alpha=0.25).demonstrate(instance, 5_000, seed=3)
    result = answered(log, "ucb:alpha=0.25", best_mean=1.0)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))
    truth["3"] = result["3"].mean_high + 0.1
    held = sum(result[arm].mean_low <= truth[arm] <= result[arm].mean_high for arm in "12")
    figure = plots.errors(result, truth)
    drawn(figure)
    shown = words(figure)
    assert f"{held} of 3 hold the truth" in shown
    assert f"{3 - held} of 3 do not" in shown
    assert "0" not in shown[: shown.index("pulls")]  # the best arm's mean was given: there is nothing to compare
    (missed,) = [line for line in figure.axes[0].lines if line.get_marker() == "X"]
    assert missed.get_xdata()[-1] == pytest.approx(result["3"].mean - truth["3"])


def test_a_bound_that_is_kept_holds_the_truth():
    result = answered(FOUR)
    low = result["C"].gap_low
    assert "2 of 2 hold the truth" in words(plots.errors(result, {"B": result["B"].gap, "C": low + 1}))
    assert "1 of 2 do not" in words(plots.errors(result, {"B": result["B"].gap, "C": low - 1}))


def test_estimates_without_an_interval_have_errors_too():
    figure = answered(FOUR, method="naive").plot("errors", truth={"B": 0.5, "C": 1.0})
    drawn(figure)
    assert "without an interval" in words(figure)


def test_values_are_shown_in_their_unit():
    result = answered(FOUR, best_mean=1.0)
    figure = result.plot("errors", truth={"B": 0.0}, unit=1_000.0, label="cycles")
    assert figure.axes[0].get_xlabel() == "cycles"
    points = np.concatenate([line.get_xdata() for line in figure.axes[0].lines if line.get_marker() == "o"])
    assert np.isclose(points, 1_000 * result["B"].mean).any()


@pytest.mark.parametrize("truth", [{}, {"A": 1.0}, {"D": 1.0}, {"X": 1.0}])
def test_a_truth_that_concerns_no_estimate_is_refused(truth):
    with pytest.raises(ParameterError, match="truth: expected the true value of some arm"):
        plots.errors(answered(FOUR), truth)


def test_errors_need_the_truth():
    with pytest.raises(ParameterError, match="truth: expected"):
        answered(FOUR).plot("errors")
