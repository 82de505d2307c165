"""Densities and hidden paths of a posterior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from figure_tools import drawn, words

from unbandit import UCB, UCB1, ActionLog, Instance, NotIdentifiable, ParameterError, Thompson, check, plots, posterior
from unbandit.fit import not_checked
from unbandit.plots.parts import PALETTE
from unbandit.plots.posterior import density


@pytest.fixture(scope="module")
def found():
    rule = Thompson(sigma=0.5)
    log = rule.demonstrate(Instance([1.0, 0.6, 0.0], 0.5, ["a", "b", "c"]), 300, seed=1)
    return posterior(log, rule, sigma=0.5, particles=200, seed=1)


@pytest.mark.parametrize("gaps", [True, False])
def test_every_arm_has_a_density_the_best_on_top(found, gaps):
    means = {"a": 0.9, "b": 0.5, "c": 0.0}
    figure = found.plot("densities", gaps=gaps, truth=means)
    drawn(figure)
    (marks,) = [line for line in figure.axes[0].lines if line.get_color() == PALETTE["truth"]]
    assert sorted(marks.get_xdata()) == pytest.approx([0.0, 0.4, 0.9] if gaps else [0.0, 0.5, 0.9])
    with pytest.raises(ParameterError, match="truth: expected the mean of every arm"):
        found.plot("densities", truth={"a": 1.0})
    shown = words(figure)
    by_gap = np.argsort(found.gaps.reshape(-1, 3).mean(axis=0))
    assert [word for word in shown if word in found.arms] == [found.arms[arm] for arm in by_gap]
    assert {"is best", "truth (hidden)"} <= set(shown)
    assert figure.axes[0].get_xlabel() == ("gap to the best arm" if gaps else "value")


def test_a_stem_at_0_is_as_high_as_it_is_probable_that_the_arm_is_best(found):
    axes = found.plot("densities").axes[0]
    stems = [line for line in axes.lines if len(line.get_xdata()) == 2 and list(line.get_xdata()) == [0, 0]]
    chance = found.probability_best.max()
    heights = [abs(np.ptp(line.get_ydata())) / 0.82 for line in stems]
    assert any(np.isclose(height, chance, atol=0.02) for height in heights)


def test_means_that_are_known_have_no_density_and_can_be_drawn():
    rule = Thompson(sigma=0.5)
    log = rule.demonstrate(Instance([1.0, 0.0], 0.5), 100, seed=1)
    known = posterior(log, rule, sigma=0.5, best_mean=1.0, particles=100, seed=1)
    for gaps in (True, False):
        figure = known.plot("densities", gaps=gaps)
        drawn(figure)
        assert {"0", "1"} <= set(words(figure))


def test_of_many_arms_twelve_are_drawn_and_a_word_says_so():
    rule = Thompson(sigma=0.5)
    log = rule.demonstrate(Instance(np.linspace(1, 0, 15), 0.5), 60, seed=1)
    many = posterior(log, rule, sigma=0.5, particles=50, seed=1)
    assert "12 of 15 arms" in words(many.plot("densities"))
    paths = many.plot()
    drawn(paths)
    assert "8 of 15 arms" in " ".join(words(paths))


def test_paths_are_the_usual_picture(found):
    figure = found.plot()
    drawn(figure)
    assert figure.axes[0].get_ylabel() == "hidden sample mean"
    assert set(found.arms) <= set(words(figure))


def test_an_unknown_kind_is_refused(found):
    with pytest.raises(ParameterError, match="kind: expected one of paths, densities"):
        found.plot("pie")


def test_a_density_follows_the_draws():
    draws = np.random.default_rng(1).normal(2.0, 0.5, 20_000)
    grid = np.linspace(0, 4, 200)
    exact = np.exp(-0.5 * ((grid - 2) / 0.5) ** 2)
    assert np.abs(density(draws, grid) - exact).max() < 0.05


def test_a_density_does_not_fall_off_at_its_floor():
    draws = np.abs(np.random.default_rng(1).normal(0.0, 0.5, 20_000))
    grid = np.linspace(-0.5, 2, 200)
    smooth = density(draws, grid, (0.0, np.inf))
    assert smooth[grid < 0].max() == 0.0
    assert smooth[grid >= 0][0] > 0.9


@pytest.mark.parametrize("unit", [1.0, 100.0])
def test_densities_of_rewards_of_0_and_1_end_there(unit):
    import unbandit as ub

    log = ActionLog.from_actions("ABAAAAAAAAAAAA")
    posterior = ub.posterior(log, "thompson", bernoulli=True, particles=200, check=False)
    scaled = replace(posterior, means=unit * posterior.means)
    for gaps in (False, True):
        axes = plots.densities(scaled, gaps=gaps, unit=unit).axes[0]
        hills = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 200]
        assert len(hills) == 2
        assert all(hill.min() >= 0 and hill.max() <= unit for hill in hills)


def test_a_density_that_is_cut_off_keeps_its_height_at_the_end():
    draws = np.random.default_rng(1).beta(8.0, 1.0, 20_000)
    grid = np.linspace(0.2, 1.0, 200)
    assert density(draws, grid, (0.0, 1.0))[-1] > 0.9
    assert density(draws, grid)[-1] < 0.7


def test_an_answer_by_posterior_carries_the_posteriors(found):
    import unbandit as ub

    rule = Thompson(sigma=0.5)
    log = ActionLog.from_actions(
        [rule.demonstrate(Instance([1.0, 0.0], 0.5), 60, seed=seed).actions for seed in (1, 2)]
    )
    apart = ub.estimate(log, rule, sigma=0.5, particles=100)
    assert len(apart.posteriors) == 2
    for which, one in enumerate(apart.posteriors):
        assert np.allclose(one.draws.mean(axis=0), apart.columns.mean[which])
    assert len(ub.estimate(log, rule, sigma=0.5, particles=100, pool=True).posteriors) == 1
    assert ub.estimate(ActionLog.from_actions("ABABAA"), "ucb", sigma=1.0).posteriors == ()


def test_a_check_shows_where_the_log_is_among_simulations():
    """The twelve statistics furthest out, by their names in words; diamonds exactly where the log is outside a bar."""
    log = UCB(alpha=0.25, scale=4).demonstrate(Instance([1.0, 0.6, 0.0], 0.5), 300, seed=1)
    done = check(log, UCB1(), sigma=0.5).rows[0].check
    figure = done.plot()
    drawn(figure)
    (axes,) = figure.axes
    shown = [row for row in done.statistics if row.said[0] in set(words(figure))]
    assert len(shown) == 12 < len(done.statistics)
    diamonds = [line for line in axes.lines if line.get_marker() == "D"]
    assert len(diamonds) == sum(row.outside for row in shown) == sum(row.outside for row in done.statistics) > 0
    assert done.plot(ax=axes) is axes
    with pytest.raises(NotIdentifiable, match=r"nothing to draw\. The log has one arm"):
        not_checked("The log has one arm.").plot()
