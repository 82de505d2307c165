"""`unbandit.plan`: the horizons asked for, their status, the table, JSON and picture."""

from __future__ import annotations

import json

import numpy as np
import pytest

import unbandit as ub
from unbandit.planning.horizons import crossing, value_at
from unbandit.planning.runs import read_runs


@pytest.fixture(scope="module")
def two():
    return ub.plan("two-armed", "ucb:alpha=0.25", 0.2, runs=100, seed=3)


def test_theory_and_simulation_agree(two):
    for criterion in ("interval", "error"):
        need = two.need("1", criterion)
        assert (need.arm, need.gap, need.status) == ("1", 0.5, "reached")
        assert need.horizon == pytest.approx(need.theory_horizon, rel=0.8 if criterion == "error" else 0.2)
        assert need.regret == pytest.approx(need.theory_regret, rel=0.6 if criterion == "error" else 0.15)
        assert 0 < need.horizon_error < need.horizon / 2
        assert 0 < need.regret_error < need.regret / 4
    assert two.need(1, "error").horizon < two.need(1).horizon
    assert two.longest() == two.need("1")
    assert two.answer().endswith(f"at a regret of {two.need('1').regret:.3g}")


def test_at_the_horizon_planned_intervals_are_as_long_as_was_asked():
    instance, rule = ub.datasets.linear(3), ub.UCB(alpha=0.25)
    planned = ub.plan(instance, rule, 0.15, runs=200, seed=1)
    for arm in (1, 2):
        need = planned.need(arm)
        read = read_runs(instance, rule, round(need.horizon), 400, 99, 0.95)
        assert np.median(read.reach[:, arm]) == pytest.approx(0.15, rel=0.05)
        assert read.regret.mean() == pytest.approx(need.regret, rel=0.05)
        error = planned.need(arm, "error")
        read = read_runs(instance, rule, round(error.horizon), 400, 99, 0.95)
        assert np.sqrt(np.nanmean(read.error[:, arm] ** 2)) == pytest.approx(0.15, rel=0.25)


def test_the_same_seed_gives_the_same_plan_on_any_number_of_threads():
    asked = {"runs": 20, "points": 4}
    once, again = (ub.plan("two-armed", "sae", 0.3, threads=threads, **asked).to_json() for threads in (1, 3))
    assert once == again
    assert once != ub.plan("two-armed", "sae", 0.3, seed=2, **asked).to_json()


def test_arms_that_do_not_resolve_are_said_so():
    planned = ub.plan(ub.Instance([1.0, 0.98, 0.0]), "sae", 0.05, longest=2_000, runs=20, points=4)
    need = planned.need("1")
    assert (need.status, need.horizon, need.horizon_error, need.regret) == ("not reached", None, None, None)
    assert need.theory_horizon > 2_000
    assert any("stays above 0.05 for" in note and "Up to 2,000 rounds" in note for note in planned.notes)
    assert planned.answer() == "not within 2,000 rounds"


def test_what_is_known_at_the_shortest_horizon_is_said_to_be_known_earlier(monkeypatch):
    monkeypatch.setattr("unbandit.planning.horizons.MARGIN", 0.2)  # begins late
    planned = ub.plan("two-armed", "ucb", 0.3, runs=100, points=4)
    need = planned.need("1", "error")
    assert (need.status, need.horizon) == ("earlier", planned.curves.horizons[0])
    assert planned.answer("error").startswith("at most")


@pytest.mark.parametrize("rule", ["klucb", "lilucb", "moss", "ucb1", "ucbv", "phased", "ucb:batch=10"])
def test_every_rule_with_a_closed_form_can_be_planned(rule):
    planned = ub.plan(ub.Instance([0.8, 0.5], ub.Bernoulli()), rule, 0.25, runs=40, points=5)
    need = planned.need("1")
    assert need.status == "reached"
    # of rules whose pulls grow with ln T the horizon is very sensitive, the regret is not
    assert need.regret == pytest.approx(need.theory_regret, rel=0.35)
    assert need.horizon_error > 0


def test_where_an_arm_comes_to_be_estimated_more_horizons_are_simulated():
    planned = ub.plan("linear", "sae", 0.2, runs=40, points=4)
    assert len(planned.curves.horizons) > 4
    need = planned.need("1")
    step = np.diff(planned.curves.horizons)[np.searchsorted(planned.curves.horizons, need.horizon) - 1]
    assert need.horizon_error >= step / 2


def test_table_and_json_hold_the_same(two):
    assert two.to_frame()["arm"].to_list() == ["1", "1"]
    assert two.to_frame()["criterion"].to_list() == ["interval", "error"]
    read = json.loads(two.to_json())
    assert read["arms"] == two.to_frame().to_dicts()
    assert (read["schema"], read["rule"], read["within"], read["best"]) == (
        "unbandit.plan/1",
        str(ub.UCB(alpha=0.25)),
        0.2,
        "0",
    )
    assert len(read["curves"]["arms"]["1"]["interval"]) == len(read["curves"]["horizon"])
    assert "0.2" in repr(two)
    with pytest.raises(KeyError, match="expected an arm but the best"):
        two.need("0")


def test_a_plan_comes_back_from_json(two):
    again = ub.Plan.from_json(two.to_json())
    assert again.to_json() == two.to_json()
    assert (repr(again), again.needs, again.arms) == (repr(two), two.needs, two.arms)
    for name in ("horizons", "found", "theory_horizons", "theory_regret"):
        np.testing.assert_array_equal(getattr(again.curves, name), getattr(two.curves, name))
    np.testing.assert_array_equal(again.curves.reach[0][:, 1], two.curves.reach[0][:, 1])
    np.testing.assert_array_equal(again.curves.theory_error[:, 1], two.curves.theory_error[:, 1])
    assert [len(axes.lines) for axes in again.plot().axes] == [len(axes.lines) for axes in two.plot().axes]


def test_json_of_something_else_is_no_plan(two):
    with pytest.raises(ub.ParameterError, match=r"expected an answer with its typical run.*Plan\.to_json\(\)"):
        ub.Plan.from_json(two.to_json().replace("typical_run", "theory"))  # as version 0.6 wrote it
    with pytest.raises(ub.ParameterError, match=r"got unbandit\.leak/1"):
        ub.Plan.from_json('{"schema": "unbandit.leak/1"}')


def test_the_picture_has_three_panels(two):
    figure = two.plot()
    assert [axes.get_ylabel().split()[0] for axes in figure.axes] == ["half", "root-mean-square", "regret"]
    many = ub.plan(ub.datasets.linear(12), "ucb", 0.5, runs=10, points=3)
    assert len(many.plot().axes[0].containers) == 6


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "said"),
    [
        (("two-armed", "ucb", 0), {}, ub.ParameterError, "within: expected a positive number"),
        (("two-armed", "ucb", float("nan")), {}, ub.ParameterError, "within"),
        (("two-armed", "ucb", True), {}, ub.ParameterError, "within"),
        (("two-armed", "ucb", 0.1), {"level": 1}, ub.ParameterError, "level"),
        (("two-armed", "ucb", 0.1), {"runs": 1}, ub.ParameterError, "runs"),
        (("two-armed", "ucb", 0.1), {"points": 2}, ub.ParameterError, "points: expected three"),
        (("two-armed", "ucb", 0.1), {"longest": 20}, ub.ParameterError, "longest: expected 32 rounds"),
        (("two-armd", "ucb", 0.1), {}, ub.ParameterError, "Did you mean"),
        (("two-armed", "uniform", 0.1), {}, ub.NotIdentifiable, "reveal nothing"),
        (("two-armed", "epsilon-greedy", 0.1), {}, ub.NotIdentifiable, "at random"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, options, kind, said):
    with pytest.raises(kind, match=said):
        ub.plan(*arguments, **options)


def test_a_curve_that_rises_again_counts_from_its_last_fall():
    horizons = np.array([10.0, 20.0, 40.0, 80.0])
    values = np.array([[0.1], [0.4], [0.1], [0.1]])
    assert 20 < crossing(horizons, values, 0.2)[0] < 40
    assert crossing(horizons, np.array([[np.nan], [np.inf], [0.1], [0.1]]), 0.2)[0] == 40


def test_a_curve_is_read_between_horizons_and_not_beyond():
    horizons, values = np.array([100.0, 400.0]), np.array([10.0, 20.0])
    assert value_at(horizons, values, np.array([200.0]))[0] == pytest.approx(10 * np.sqrt(2))
    assert np.isnan(value_at(horizons, values, np.array([np.inf]))[0])
