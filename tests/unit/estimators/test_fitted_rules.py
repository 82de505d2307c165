"""Answers under a rule whose numbers are fitted."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

import unbandit as ub
from unbandit.demonstrators.base import rule_or_family
from unbandit.errors import NotIdentifiable, ParameterError
from unbandit.estimators.family import mixed_interval, mixed_posterior
from unbandit.fit import FittedNumber, fitted_notice
from unbandit.inference.draws import draws_between
from unbandit.inference.parameters import Axis, ParameterPosterior
from unbandit.inference.surface import principal_axes, spread_quantiles
from unbandit.inference.whole_numbers import (
    MOST_SETTINGS,
    Setting,
    _standing,
    settled_whole_numbers,
    weighed_settings,
)

INSTANCE = ub.Instance([1.0, 0.6, 0.2], 0.5)


@pytest.fixture(scope="module")
def log():
    return ub.UCB(scale=0.7).demonstrate(INSTANCE, 500, seed=3)


@pytest.fixture(scope="module")
def answer(log):
    return ub.estimate(log, "ucb:alpha=0.25,scale=fit", sigma=0.5, check=True)


def test_a_mixture_of_one_interval_is_that_interval():
    point, low, high = (np.full((7, 1), value) for value in (1.0, 0.5, 2.0))
    ends = mixed_interval(point, low, high, 0.95)
    np.testing.assert_allclose(np.concatenate(ends), [0.5, 2.0], rtol=0.03)


def test_a_mixture_keeps_bounds_and_what_is_missing():
    missing = np.full((7, 2), np.nan)
    bounds = np.tile(np.linspace(1.0, 2.0, 7)[:, None], 2)
    low, high = mixed_interval(missing, bounds, missing, 0.9)
    assert (low < 1.1).all()
    assert np.isnan(high).all()


def test_gaps_are_those_at_the_median_with_longer_intervals(log, answer):
    (scale,) = answer.fitted
    assert scale.low < 0.7 < scale.high
    known = ub.estimate(log, f"ucb:alpha=0.25,scale={scale.value}", sigma=0.5, check=False)
    np.testing.assert_allclose(answer.gaps, known.gaps, rtol=1e-6)
    lengths, before = (each.columns.gap_high - each.columns.gap_low for each in (answer, known))
    seen = np.isfinite(before)
    assert (lengths[seen] > 1.02 * before[seen]).all()
    assert answer.check.verdict == "fits"


def test_the_answer_says_what_was_fitted(answer):
    (fitted,) = json.loads(answer.to_json())["fitted"]
    assert list(fitted) == ["parameter", "value", "low", "high", "method"]
    assert fitted["parameter"] == "scale"
    assert fitted["low"] < fitted["value"] < fitted["high"]
    assert any(note.code == "fitted" and "scale = " in note.message for note in answer.notes)


def test_posteriors_are_mixed_over_the_number():
    rule = ub.EpsilonGreedy(epsilon=0.2)
    log = rule.demonstrate(INSTANCE, 200, seed=5)
    options = {"sigma": 0.5, "particles": 100, "check": False}
    found = ub.posterior(log, "epsilon-greedy:fit", draws=100, **options)
    assert found.means.shape == (4, 300, 3)
    assert found.fitted[0].parameter == "epsilon"
    answer = ub.estimate(log, "epsilon-greedy:fit", **options)
    assert answer.method == "posterior"
    assert answer.fitted[0].parameter == "epsilon"
    assert np.isfinite(answer.columns.mean).all()
    assert len(answer.posteriors) == 1


def test_a_report_says_what_was_fitted(log):
    made = ub.report(log, "ucb:alpha=0.25,scale=fit", sigma=0.5, check=False)
    assert "Numbers of the rule came from the log" in made.html
    assert "scale=fit" in made.html  # in the command that reproduces it


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"scale": "unknown"}, ParameterError, "where a number is fitted"),
        ({"method": "bootstrap"}, ParameterError, "bootstrap plays the rule at one value"),
        ({"starting_pulls": {"0": 5, "1": 5, "2": 5}}, NotIdentifiable, "begins in mid-run"),
        ({"kept": 0.8}, NotIdentifiable, "rounds are missing"),
    ],
)
def test_what_does_not_go_with_a_fit_is_refused(log, options, error, message):
    with pytest.raises(error, match=message):
        ub.estimate(log, "ucb:fit", sigma=0.5, **options)


def test_counts_and_an_unknown_noise_are_refused(log):
    counts = ub.ActionLog.from_counts({"A": 300, "B": 40, "C": 12})
    with pytest.raises(NotIdentifiable, match="pull counts without their order"):
        ub.estimate(counts, "ucb:fit", sigma=0.5)
    with pytest.raises(ParameterError, match="fits the one that the rule assumes, which may be another"):
        ub.estimate(log, "thompson:fit")


def test_whole_numbers_are_found_where_they_show():
    rule = ub.UCB(scale=0.4, batch=4, initial=2)
    log = rule.demonstrate(INSTANCE, 200, seed=3)
    found = ub.estimate(log, "ucb:alpha=0.25,scale=0.4,batch=fit,initial=fit", sigma=0.5, check=False)
    assert [each.said for each in found.fitted] == ["batch = 4", "initial = 2"]
    known = ub.estimate(log, rule, sigma=0.5, check=False)
    np.testing.assert_array_equal(found.columns.gap_high, known.columns.gap_high)


def test_whole_and_real_numbers_are_found_together():
    log = ub.UCB(scale=0.7, batch=2).demonstrate(INSTANCE, 500, seed=3)
    found = ub.estimate(log, "ucb:alpha=0.25,scale=fit,batch=fit", sigma=0.5, check=False)
    assert [each.parameter for each in found.fitted] == ["scale", "batch"]
    assert found.fitted[0].low < 0.7 < found.fitted[0].high
    assert found.fitted[1].value == 2


@pytest.mark.parametrize(("gain", "refused"), [(math.log(240) + 1, True), (math.log(240) + 6, False)])
def test_a_long_batch_that_a_single_change_suggests_is_not_believed(gain, refused):
    """One change after 240 rounds is more probable under a batch of 240 by about ln 240, its prior less by as much."""
    log, family = ub.ActionLog.from_actions([0, 1, *[1] * 240, *[0] * 50]), ub.UCB(alpha=0.25, batch=ub.FIT)

    def evidence(given):
        return gain if given["batch"] == 240 else 0.0

    if refused:
        with pytest.raises(NotIdentifiable, match="does not show batch"):
            settled_whole_numbers(log, family, evidence)
    else:
        assert settled_whole_numbers(log, family, evidence)[0] == {"batch": 240}


@pytest.mark.parametrize(
    ("actions", "rule", "message"),
    [
        ([0, 1, 2, 2, 2, 2, 2, 0], "ucb:alpha=0.25,batch=fit", "does not show batch: it may be batch="),
        ([0, 1, 2, 2, 2, 2, 2, 2], "ucb:alpha=0.25,batch=fit", "never changes its arm after the opening"),
        ([0, 1, 2, 0, 1, 2], "softmax:temperature=0.5,initial=fit", "does not show initial: it may be"),
        ([0, 1, 2, 0, 1, 2], "softmax:temperature=0.5,batch=fit", "this rule draws an arm in every round"),
    ],
)
def test_whole_numbers_that_do_not_show_are_refused(actions, rule, message):
    with pytest.raises(NotIdentifiable, match=message):
        ub.estimate(ub.ActionLog.from_codes(np.array(actions), ("A", "B", "C")), rule, sigma=0.5)


def test_the_delay_of_an_index_rule_is_found():
    log = ub.UCB(scale=0.4, delay=20).demonstrate(INSTANCE, 300, seed=3)
    found = ub.estimate(log, "ucb:alpha=0.25,scale=0.4,delay=fit", sigma=0.5, check=False)
    (delay,) = found.fitted
    assert (delay.value, delay.high) == (20, 20)
    assert delay.low >= 17
    known = ub.estimate(log, ub.UCB(scale=0.4, delay=20), sigma=0.5, check=False)
    np.testing.assert_allclose(found.columns.gap, known.columns.gap)


def test_delays_that_explain_a_log_about_as_well_are_averaged():
    log = ub.Softmax(temperature=0.3, delay=4).demonstrate(INSTANCE, 60, seed=3)
    found = ub.posterior(log, "softmax:temperature=0.3,delay=fit", sigma=0.5, check=False, particles=200)
    (delay,) = found.fitted
    assert delay.low <= 4 <= delay.high
    assert len(delay.possible) > 1
    assert sum(chance for _, chance in delay.possible) == pytest.approx(1.0, abs=0.01)
    assert delay.to_dict()["possible"][0] == dict(zip(("value", "probability"), delay.possible[0], strict=True))
    assert FittedNumber(**delay.to_dict()) == delay
    alone = ub.posterior(log, f"softmax:temperature=0.3,delay={delay.value}", sigma=0.5, check=False, particles=200)
    share = (found.means.reshape(-1, 3)[:, None] == alone.means.reshape(-1, 3)[:, None]).all(axis=2).mean()
    assert share == pytest.approx(delay.possible[0][1], abs=0.1)  # so many draws are those under the best delay


def _logistic(values, rounds, particles):
    return {18: -1.0, 20: 0.0}.get(values["delay"], -math.inf), 0.0


def test_delays_are_weighed_by_their_evidence():
    log = ub.UCB(scale=0.4, delay=20).demonstrate(INSTANCE, 300, seed=3)
    settings, (delay,) = weighed_settings(log, ub.UCB(alpha=0.25, delay=ub.FIT), [300], 0.95, _logistic)
    assert [each.values for each in settings] == [{"delay": 20}, {"delay": 18}]
    assert settings[1].probability == pytest.approx(1 / (1 + math.e), abs=0.02)  # a little nearer to half, by errors
    assert (delay.value, delay.low, delay.high) == (20, 18, 20)
    assert delay.said.startswith("delay = 20 (20: 0.7")


def test_a_log_that_no_delay_explains_is_refused():
    log, family = ub.UCB(scale=0.4, delay=20).demonstrate(INSTANCE, 300, seed=3), ub.UCB(alpha=0.25, delay=ub.FIT)
    with pytest.raises(ub.InferenceError, match="no value of delay explains the log"):
        weighed_settings(log, family, [300], 0.95, lambda *asked: (-math.inf, 0.0))


@pytest.mark.parametrize("ties", ["lowest", "random"])
@pytest.mark.parametrize(("kind", "horizon"), [(ub.UCB1, 200), (ub.KLUCB, 100)])
def test_who_wins_a_tie_shows_with_yes_and_no(kind, horizon, ties):
    log = kind(ties=ties).demonstrate(ub.Instance([0.6, 0.5, 0.3], ub.Bernoulli()), horizon, seed=3)
    found = ub.posterior(log, kind(ties=ub.FIT), bernoulli=True, check=False, particles=200)
    assert found.fitted[0].value == ties
    assert found.fitted[0].possible[0][1] > 0.9


def test_with_normal_rewards_ties_show_in_the_opening_alone():
    log = ub.ActionLog.from_codes(np.array([0, 1, 2, 0, 1, 2, 0, 0]), ("A", "B", "C"))
    (ties,) = ub.estimate(log, "ucb:alpha=0.25,ties=fit", sigma=0.5, check=False).fitted
    assert dict(ties.possible)["lowest"] == pytest.approx(6 / 7, abs=0.03)
    assert "ties = lowest (lowest: 0.8" in ties.said


@pytest.mark.parametrize(
    ("actions", "rule", "message"),
    [
        ([1, 0, 2, 0, 1, 2, 0, 0], "ucb:ties=fit,alpha=0.25", "about as probable with ties=lowest or ties=random"),
        ([0, 1, 2] * 9, "ucb:alpha=0.25,delay=fit", "takes the arms in turn for 13 rounds and more"),
        ([0, 1, 2, 0] * 5, "ucb:alpha=0.25,batch=fit,delay=fit", "delay is fitted alone"),
        ([0, 1, 2, 0] * 5, "ucb:alpha=0.25,scale=fit,delay=fit", "delay is not fitted beside scale"),
        ([*[0, 1, 2] * 300, *[0] * 2_000], "ucb:alpha=0.25,delay=fit", "would take about .* minutes"),
        ([0, 0, 1, 2, 1, 2, 1, 1], "ucb:alpha=0.25,delay=fit", "comes again before all 3 have been pulled"),
    ],
)
def test_settings_that_do_not_show_are_refused(actions, rule, message):
    log = ub.ActionLog.from_codes(np.array(actions), ("A", "B", "C"))
    with pytest.raises((NotIdentifiable, ub.InferenceError), match=message):
        ub.estimate(log, rule, sigma=0.5, check=False)


def test_a_log_without_an_opening_is_refused():
    log = ub.ActionLog.from_codes(np.array([0, 0, 0, 1, 2]), ("A", "B", "C"))
    with pytest.raises(ub.InferenceError, match="does not begin like that"):
        ub.estimate(log, "ucb:alpha=0.25,initial=fit", sigma=0.5)


@pytest.mark.parametrize("bounded", [False, True])
def test_draws_between_values_reach_as_far_as_the_number_does(bounded):
    generator = np.random.default_rng(3)
    places = np.linspace(-2.0, 2.0, 401)[:, None]
    weights = np.exp(-0.5 * (places[:, 0] / 0.5) ** 2)
    weights /= weights.sum()
    points = spread_quantiles(places[:, 0], weights, 5)[:, None]
    # one arm is as the number is, one follows it with noise, and one does not
    errors = generator.normal(0, [1e-6, 0.3, 0.3], (5, 4, 500, 3))
    means = points[:, None, None] * [1.0, -1.0, 0.0] + errors
    given = 1 / (1 + np.exp(-means)) if bounded else means
    moved = draws_between(given, points, places, weights, generator, bounded=bounded)
    assert moved.shape == (4, 2_500, 3)
    flat = (np.log(moved / (1 - moved)) if bounded else moved).reshape(-1, 3)
    np.testing.assert_allclose(flat.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(flat.std(axis=0), [0.5, math.hypot(0.5, 0.3), 0.3], rtol=0.04)
    np.testing.assert_allclose(np.quantile(flat[:, 0], [0.025, 0.975]), [-0.98, 0.98], rtol=0.05)


def test_draws_between_values_of_two_numbers_have_their_covariance():
    generator = np.random.default_rng(4)
    places = generator.normal(size=(4_000, 2)) @ [[0.3, 0.2], [0.0, 0.1]]
    weights = np.full(4_000, 1 / 4_000)
    centre, ways = principal_axes(places, weights)
    points = np.vstack([centre, centre + math.sqrt(2.5) * ways, centre - math.sqrt(2.5) * ways])
    means = points[:, None, None] + generator.normal(0, 0.01, (5, 4, 500, 2))
    moved = draws_between(means, points, places, weights, generator).reshape(-1, 2)
    np.testing.assert_allclose(np.cov(moved.T), np.cov(places.T), rtol=0.06)
    np.testing.assert_allclose(np.quantile(moved, 0.975, axis=0), np.quantile(places, 0.975, axis=0), rtol=0.06)


def test_gaps_are_as_uncertain_as_the_temperature_that_they_are_in_proportion_to():
    log = ub.Softmax(temperature=0.4).demonstrate(ub.Instance([1.0, 0.4], 0.3), 500, seed=1)
    found = ub.posterior(log, "softmax:fit", sigma=0.3, particles=100, draws=500, check=False)
    (temperature,) = found.fitted
    low, middle, high = np.quantile(found.gaps[..., 1], [0.025, 0.5, 0.975])
    assert middle / low > 0.95 * temperature.value / temperature.low
    assert high / middle > 0.95 * temperature.high / temperature.value


def test_no_arm_is_better_than_the_one_whose_mean_is_the_best():
    log = ub.Softmax(temperature=0.2).demonstrate(ub.Instance([0.5, 0.45, 0.0], 0.3), 300, seed=3)
    found = ub.posterior(log, "softmax:fit", sigma=0.3, best_mean=0.5, particles=100, draws=500, check=False)
    assert found.means[..., 1:].max() <= 0.5
    assert found.probability_best.tolist() == [1.0, 0.0, 0.0]


def test_how_sure_the_best_arm_is_allows_for_the_number():
    log = ub.Softmax(temperature=0.2).demonstrate(ub.Instance([0.5, 0.45], 0.3), 120, runs=2, seed=8)
    found = ub.estimate(log, "softmax:fit", sigma=0.3, particles=100, check=False)
    said = [note for note in found.notes if note.code == "probability-best"]
    assert [note.demonstration for note in said] == list(found.demonstrations)
    for note, posterior in zip(said, found.posteriors, strict=True):
        assert f"with probability {posterior.probability_best.max():.3g}." in note.text


def test_a_log_with_holes_is_refused_with_the_way_out(tmp_path):
    """A number cannot be fitted where rounds are missing; with a value the log has an answer."""
    rows = [f"{round},{'AB'[round % 3 == 0]}" for round in range(1, 41) if round != 20]
    (tmp_path / "holes.csv").write_text("\n".join(["round,arm", *rows]), encoding="utf-8")
    with pytest.raises(NotIdentifiable, match="rounds are missing") as refused:
        ub.estimate(tmp_path / "holes.csv", "softmax:fit", sigma=0.5)
    assert refused.value.remedy == "Give temperature a value, or the whole run."


def test_rewards_of_0_and_1_are_refused_with_what_works():
    log = ub.UCB1().demonstrate(ub.Instance([0.7, 0.3], ub.Bernoulli()), 200, seed=1)
    with pytest.raises(NotIdentifiable, match="for Gaussian rewards only") as refused:
        ub.estimate(log, "ucb1:exploration=fit", bernoulli=True)
    said = str(refused.value)
    assert '`identify` finds them, with bernoulli and candidates="ucb1"' in said
    assert "fit them with sigma=0.5 in place of bernoulli, as an approximation." in said


def test_one_value_for_all_demonstrations_is_said():
    number = FittedNumber("rate", 0.3, 0.1, 0.5, "evidence")
    assert "All demonstrations are assumed to share it" in fitted_notice([number], 0.95, 2).message
    assert "demonstrations" not in fitted_notice([number], 0.95).message


def test_an_arm_that_may_be_the_best_stands_where_its_gap_puts_it():
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([0.9, 0.5, 0.1], 0.5, arms=list("ABC")), 100, seed=1)
    found = ub.estimate(log, "softmax:temperature=0.3", sigma=0.5, particles=50)
    gaps = [row.gap for row in replace(found, best_by_demonstration=(("A", "C"),)).ranked()]
    assert gaps == sorted(gaps)


def test_few_settings_stand_for_all_only_where_they_have_most_of_the_probability():
    spread = [Setting(0.3, {"delay": 0}), *(Setting(0.7 / 200, {"delay": each}) for each in range(1, 201))]
    stand = _standing(spread)
    assert len(stand) == MOST_SETTINGS
    assert max(each.values["delay"] for each in stand) > 100
    assert sum(each.probability for each in stand) == pytest.approx(1.0)
    few = _standing([Setting(0.97, {"delay": 3}), Setting(0.025, {"delay": 4}), Setting(0.005, {"delay": 9})])
    assert [each.values["delay"] for each in few] == [3, 4]


def test_a_delay_that_nothing_bounds_is_refused():
    log = ub.EXP3().demonstrate(ub.Instance([0.6, 0.4], ub.Bernoulli()), 100, seed=1)
    family = ub.EXP3(mixing=0.1, delay=ub.FIT)
    with pytest.raises(NotIdentifiable, match="does not show delay: it is about as probable"):
        weighed_settings(log, family, [100], 0.95, lambda *asked: (0.0, 0.0))
    with pytest.raises(NotIdentifiable, match="50 rounds, the longest that is considered, are about as probable"):
        weighed_settings(log, family, [100], 0.95, lambda values, *_: (0.1 * values["delay"], 0.0))
    settings, _ = weighed_settings(log, family, [100], 0.95, lambda values, *_: (-2.0 * abs(values["delay"] - 7), 0.0))
    assert settings[0].values == {"delay": 7}


def test_ties_of_rules_that_forget_are_not_fitted():
    log = ub.parse_rule("sliding-window-ucb:window=50").demonstrate(INSTANCE, 300, seed=1)
    with pytest.raises(NotIdentifiable, match="not for those that forget"):
        ub.estimate(log, "sliding-window-ucb:window=50,ties=fit", sigma=0.5, check=False)


def test_draws_beside_settings_come_from_all_clouds():
    log = ub.EpsilonGreedy(epsilon=0.2).demonstrate(ub.Instance([0.6, 0.4], ub.Bernoulli()), 60, seed=2)
    family = rule_or_family("epsilon-greedy:epsilon=fit")
    places, weights = np.log([[0.1], [0.2], [0.4]]), np.array([0.3, 0.4, 0.3])
    settings = tuple(Setting(0.5, {"ties": ties}) for ties in ("lowest", "random"))
    axes = (Axis("epsilon", *np.log([0.01, 0.9]).tolist(), open_low=True, open_high=True),)
    found = ParameterPosterior(family, axes, places, weights, (), {"ties": "lowest"}, settings)
    asked = {"bernoulli": True, "particles": 500, "clouds": 4, "draws": 1_000, "seed": 1, "check": False}
    centre = ub.posterior(log, found.rule, **asked)
    marked = replace(centre, means=np.arange(4.0)[:, None, None] / 10 + 0.2 + 0 * centre.means)

    def answer(record, rule, **options):
        return replace(marked, means=marked.means.reshape(1, -1, 2))

    means = mixed_posterior(answer, log, marked, found, asked).means
    assert means.shape == centre.means.shape
    # Half of a cloud's draws are under the first setting, its own; the others are from one cloud that stands for all.
    assert means.mean(axis=(1, 2)) == pytest.approx((0.2 + np.arange(4) / 10 + 0.35) / 2, abs=0.02)
