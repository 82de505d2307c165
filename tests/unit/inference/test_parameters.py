"""Numbers of a rule, fitted from a log."""

import math
from itertools import product

import numpy as np
import pytest

import unbandit as ub
from unbandit import checks
from unbandit.demonstrators.base import rule_or_family
from unbandit.errors import NotIdentifiable, ParameterError, shell_option
from unbandit.inference import parameters, surface, usual_prior
from unbandit.inference.parameters import (
    BY_BEGINNING,
    BY_SIMULATION,
    Axis,
    _by_clouds,
    _Evidence,
    _narrowed,
    _of_a_long_log,
    _refuse_spikes,
    _scale_note,
    _without_clouds,
    fit_family,
)
from unbandit.inference.simulations import _features, _regressed
from unbandit.inference.surface import (
    _surface,
    cell_masses,
    evidence_density,
    narrowed,
    quantile,
    spread_out,
    surveyed,
)

NOISE = ub.Gaussian(0.5)
PRIOR = usual_prior(NOISE, None)
INSTANCE = ub.Instance([1.0, 0.6, 0.2], 0.5)


def fit(log, text, **options):
    return fit_family(log, rule_or_family(text), NOISE, PRIOR, [int(log.lengths[0])] * len(log), **options)


def test_a_surface_goes_through_exact_points_of_a_quadratic_function():
    at = np.array(list(product(np.linspace(-1, 1, 5), repeat=2)))
    exact = lambda x: 3.0 - 2 * x[:, 0] ** 2 + x[:, 0] * x[:, 1] - x[:, 1] ** 2  # noqa: E731
    places = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    mean, variance = _surface(at, exact(at), places, 0.0)
    assert np.abs(mean - exact(places)).max() < 0.02
    assert variance.max() < 0.01


def test_a_density_is_that_of_the_evidence_and_wider_with_errors():
    xs = np.linspace(-0.5, 0.5, 21)[:, None]
    exact = -0.5 * (xs[:, 0] / 0.1) ** 2
    noisy = exact + np.random.default_rng(1).normal(0, 1.0, 21)

    def deviation(values, error):
        places, density = evidence_density(xs, values, error)
        weights = density / density.sum()
        centre = weights @ places[:, 0]
        return math.sqrt(weights @ (places[:, 0] - centre) ** 2)

    assert deviation(exact, 0.0) == pytest.approx(0.1, rel=0.03)
    assert 0.07 < deviation(noisy, 1.0) < 0.14


def test_an_error_that_is_known_does_not_pass_for_a_narrow_top():
    generator = np.random.default_rng(2)
    xs, known, unknown = np.linspace(-0.4, 0.4, 9)[:, None], [], []
    for _ in range(20):
        values = -0.5 * (xs[:, 0] / 0.1) ** 2 + generator.normal(0, 1.5, 9)
        for error, deviations in ((1.5, known), (0.0, unknown)):
            places, density = evidence_density(xs, values, error)
            weights = density / density.sum()
            deviations.append(math.sqrt(weights @ (places[:, 0] - weights @ places[:, 0]) ** 2))
    assert 0.08 < min(known) < max(known) < 0.12
    assert min(unknown) < 0.05


class LuckyEvidence:
    """An evidence of which a single cloud finds far too much at one place, as clouds of few particles may."""

    best, variances, family, threads, at_once = None, {}, rule_or_family("moss:fit"), 1, 1

    def __call__(self, x, clouds, threads=1):
        lucky = 12.0 if clouds == 1 and abs(x[0]) < 1e-9 else 0.0
        return -0.5 * ((x[0] - 0.15) / 0.1) ** 2 + lucky


def test_one_lucky_cloud_does_not_hide_the_values_around_it():
    axis = Axis("scale", -6.0, 6.0, open_low=True, open_high=True)
    xs, values = _narrowed(LuckyEvidence(), (axis,))
    assert xs.min() < -0.1
    assert xs.max() > 0.4
    assert values.max() < 0.1
    places, density = evidence_density(xs, values, 0.0)
    assert places[density.argmax(), 0] == pytest.approx(0.15, abs=0.01)


@pytest.mark.parametrize(("places", "most"), [([0.0], 12), ([0.0, 0.3], 30)])
def test_nothing_closer_is_tried_where_a_single_value_explains_the_log(places, most):
    """As with ties between rewards of 0 and 1, which only one value of a parameter makes."""
    asked = []

    def evidence(x, clouds):
        asked.append(float(x[0]))
        return -math.inf

    known = {(x,): -math.inf for x in (-1.0, 1.0)} | {(x,): -5.0 for x in places}
    xs, _ = narrowed(evidence, known, np.array(sorted(x for (x,) in known)), 5, 6)
    assert sorted(xs[:, 0]) == [x for x in sorted([*asked, *places]) if min(places) <= x <= max(places)]
    assert most / 2 < len(asked) <= most


class RidgeEvidence:
    """An evidence of two numbers that make up for each other; clouds find it with errors."""

    best, family, threads, at_once, horizons = None, rule_or_family("learning-softmax:fit"), 1, 1, (100,)
    centre, covariance = np.array([-1.0, -1.3]), np.array([[0.041, 0.028], [0.028, 0.0225]])

    def __init__(self, error):
        self.error, self.generator, self.variances = error, np.random.default_rng(5), {}

    def __call__(self, x, clouds, threads=1):
        self.variances[tuple(x.tolist())] = self.error**2
        away = x - self.centre
        return -0.5 * away @ np.linalg.solve(self.covariance, away) + self.error * self.generator.normal()

    def without_clouds(self, x):
        exact = self.error
        self.error = 0.0
        value = self(x, 1) - 0.7
        self.error = exact
        return value


AXES = (
    Axis("rate", -7.15, 0.0, open_low=True, open_high=False),
    Axis("temperature", -7.15, 4.16, open_low=True, open_high=True),
)


@pytest.mark.parametrize(("density", "error"), [(_by_clouds, 0.0), (_by_clouds, 0.15), (_without_clouds, 0.15)])
def test_numbers_that_make_up_for_each_other_have_the_density_of_their_ridge(density, error):
    evidence = RidgeEvidence(error)
    places, weights = density(evidence, AXES)
    weights = weights / weights.sum()
    centre = weights @ places
    covariance = (weights[:, None] * (places - centre)).T @ (places - centre)
    deviations = np.sqrt(np.diag(evidence.covariance))
    assert (np.abs(centre - evidence.centre) < 0.2 * deviations).all()
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), deviations, rtol=0.02 if error == 0 else 0.15)
    assert (places <= [axis.high for axis in AXES]).all()


def test_clouds_that_contradict_a_method_without_them_are_believed():
    evidence = RidgeEvidence(0.05)
    assert _without_clouds(evidence, AXES) is not None
    evidence.without_clouds = lambda x: evidence(x - [0.5, -0.3], 1)
    assert _without_clouds(evidence, AXES) is None
    evidence.without_clouds = lambda x: None
    assert _without_clouds(evidence, AXES) is None


def test_two_numbers_of_which_no_value_explains_the_log_are_refused():
    class Impossible(RidgeEvidence):
        def __call__(self, x, clouds, threads=1):
            return -math.inf

    assert _without_clouds(Impossible(0.0), AXES) is None
    with pytest.raises(ub.InferenceError, match="no value of rate and temperature explains the log"):
        _by_clouds(Impossible(0.0), AXES)


def test_an_evidence_of_which_only_errors_are_left_is_refused():
    family = rule_or_family("moss:fit")
    _refuse_spikes(family, np.array([[0.1], [0.2], [0.3]]))
    for places in ([[0.1]], [[0.1], [0.2]]):
        with pytest.raises(NotIdentifiable, match="does not show scale: Monte-Carlo errors"):
            _refuse_spikes(family, np.array(places))
    two = rule_or_family("learning-softmax:fit")
    _refuse_spikes(two, np.array(list(product([0.0, 0.1, 0.2], repeat=2))))
    with pytest.raises(NotIdentifiable, match=r"does not show rate.* its first rounds alone, as a log of their own"):
        _refuse_spikes(two, np.array(list(product([0.0, 0.1, 0.2], [0.3, 0.4]))))


def test_epsilon_is_as_precise_as_the_visible_choices_of_a_long_log_allow():
    log = ub.EpsilonGreedy(epsilon=0.2).demonstrate(INSTANCE, 1_000, seed=2)
    found = fit(log, "epsilon-greedy:fit")
    (epsilon,) = found.fitted
    assert epsilon.low < 0.2 < epsilon.high
    # 1,000 rounds, of which a share of epsilon (K - 1) / K visibly explore
    chance = 0.2 * 2 / 3
    deviation = math.sqrt(chance * (1 - chance) / 1_000) * 3 / 2
    assert (epsilon.high - epsilon.low) / 2 == pytest.approx(1.96 * deviation, rel=0.35)


def test_two_numbers_are_fitted_together_and_rules_have_their_spread():
    rule = ub.LearningSoftmax(rate=0.3, temperature=0.3)
    found = fit(rule.demonstrate(INSTANCE, 400, seed=1), "learning-softmax:fit")
    assert [each.parameter for each in found.fitted] == ["rate", "temperature"]
    assert all(each.low < 0.3 < each.high for each in found.fitted)
    rules = found.rules(5)
    spread = np.log([[each.rate, each.temperature] for each in rules])
    weights = found.weights[:, None]
    centre = (weights * found.places).sum(axis=0)
    expected = (weights * (found.places - centre)).T @ (found.places - centre)
    np.testing.assert_allclose(np.cov(spread.T, ddof=0), expected, rtol=0.2)


def test_the_scale_of_an_index_rule_is_found_and_the_fit_repeats():
    log = ub.MOSS(scale=1.0).demonstrate(ub.Instance([1.0, 0.9, 0.8], 0.5), 600, seed=4)
    first, again = fit(log, "moss:fit"), fit(log, "moss:fit", threads=2)
    (scale,) = first.fitted
    assert scale.low < 1.0 < scale.high
    assert first.fitted == again.fitted
    spread = np.log([each.scale for each in first.rules(41)])
    centre = first.weights @ first.places[:, 0]
    assert spread.std() == pytest.approx(math.sqrt(first.weights @ (first.places[:, 0] - centre) ** 2), rel=0.02)


def test_alpha_and_scale_are_reported_as_what_is_known_of_them():
    log = ub.UCB(alpha=0.4, scale=0.5).demonstrate(INSTANCE, 400, seed=1)
    (both,) = fit(log, "ucb:fit").fitted
    assert both.parameter == "scale sqrt((T^alpha - 1) / alpha)"
    assert both.low < 0.5 * math.sqrt((400**0.4 - 1) / 0.4) < both.high
    assert "not the two apart" in both.note


def test_a_fit_takes_several_threads_and_is_the_same(monkeypatch):
    log, asked, text = ub.Softmax(temperature=0.5).demonstrate(INSTANCE, 100, seed=2), [], "softmax:temperature=fit"
    one = fit(log, text, particles=30)

    def in_threads(work, arguments, count):
        asked.append(min(count, len(arguments)))
        return checks.in_threads(work, arguments, count)

    for module in (surface, parameters):
        monkeypatch.setattr(module, "in_threads", in_threads)
    two = fit(log, text, particles=30, threads=2)
    assert max(asked) == 2
    assert two.fitted == one.fitted


def test_a_log_that_does_not_show_a_number_is_refused():
    log = ub.ActionLog.from_actions("AB" + "A" * 30)
    with pytest.raises(NotIdentifiable, match="the log does not show exploration: however small") as refused:
        fit(log, "ucb1:fit")
    # an option may have the name of a number of the rule: what is refused is the rule
    assert refused.value.phrased(shell_option).startswith("ucb1:exploration=fit: the log does not show")
    assert "Give it a value, as in --rule ucb1:exploration=VALUE, or" in refused.value.phrased(shell_option)


def test_what_cannot_be_predicted_is_refused():
    log = ub.UCB1(delay=5).demonstrate(INSTANCE, 100)
    with pytest.raises(NotIdentifiable, match="its rewards are late"):
        fit(log, "ucb1:delay=5,fit")
    with pytest.raises(NotIdentifiable, match="Gaussian rewards only"):
        fit_family(log, rule_or_family("ucb1:fit"), ub.Bernoulli(), usual_prior(ub.Bernoulli(), None), [100])
    with pytest.raises(ParameterError, match="expected 1 number to fit at once; got 2"):
        fit(log, "lilucb:reward_range=fit,delta=fit")
    with pytest.raises(ParameterError, match="only numbers that cannot be negative"):
        fit(log, "learning-softmax:start=fit")


def bent_ridge(x, _=1):
    return -0.5 * ((x[..., 1] - 0.2 * x[..., 0] ** 2) / 0.25) ** 2 - 0.5 * (x[..., 0] / 0.9) ** 2


def test_a_narrow_bent_ridge_is_followed_to_its_ends():
    lows, highs = np.array([-6.0, -7.0]), np.array([5.0, 6.0])
    asked = []

    def evidence(x, clouds):
        asked.append(x)
        return bent_ridge(x)

    cells = surveyed(evidence, lows, highs)
    places, masses = cell_masses(cells, (lows, highs))
    assert len(asked) < 450
    assert cells.complete
    assert (4 * cells.halves.prod(axis=1)).sum() == pytest.approx(4.0)  # from -1 to 1 along both ways
    axes = [np.linspace(low, high, 1_201) for low, high in zip(lows, highs, strict=True)]
    exact = np.exp(bent_ridge(np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)))
    for at, x in enumerate(axes):
        density = exact.sum(axis=1 - at)
        for share in (0.025, 0.5, 0.975):
            found = quantile(places[:, at], masses / masses.sum(), share)
            assert found == pytest.approx(quantile(x, density / density.sum(), share), abs=0.1)


class PlateauEvidence(RidgeEvidence):
    """An evidence that is nearly as large along a ridge, down to the smallest values of both numbers."""

    def __call__(self, x, clouds, threads=1):
        return -0.5 * ((x[0] - x[1]) / 0.2) ** 2 - 0.5 * max(x[0] + 3.0, 0.0) ** 2


def test_a_ridge_that_reaches_the_end_of_the_range_does_not_show_the_numbers():
    with pytest.raises(NotIdentifiable, match="does not show rate: however small it is"):
        _without_clouds(PlateauEvidence(0.0), AXES)


def test_a_few_places_are_apart_and_probable():
    generator = np.random.default_rng(6)
    places = generator.normal(size=(2_000, 2)) * [0.1, 3.0]
    weights = np.exp(-0.5 * np.square(places / [0.1, 3.0]).sum(axis=1))
    chosen = spread_out(places, weights / weights.sum(), 12) / [0.1, 3.0]
    assert len(np.unique(chosen, axis=0)) == 12
    assert np.linalg.norm(chosen, axis=1).max() < 2.6
    assert (chosen.min(axis=0) < -1.2).all()
    assert (chosen.max(axis=0) > 1.2).all()


@pytest.mark.parametrize(("centre", "angle"), [((0.48987739, -5.32891355), 2.29228), ((-1.0, -2.0), 0.6)])
def test_a_ridge_too_narrow_for_the_range_is_surveyed_along_its_axes(centre, angle):
    lows, highs = np.array([-6.0, -7.0]), np.array([3.0, 4.0])
    turned = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    covariance = turned.T @ np.diag([0.57225**2, 0.022756**2]) @ turned
    precision = np.linalg.inv(covariance)
    cells = surveyed(lambda x, clouds: -0.5 * (x - centre) @ precision @ (x - centre), lows, highs)
    assert cells.complete
    places, masses = cell_masses(cells, (lows, highs))
    for at, deviation in enumerate(np.sqrt(np.diag(covariance))):
        for share, ends in ((0.025, -1.96), (0.5, 0.0), (0.975, 1.96)):
            found = quantile(places[:, at], masses / masses.sum(), share)
            assert found == pytest.approx(centre[at] + ends * deviation, abs=0.15 * deviation)


def test_errors_larger_than_what_they_measure_show_no_two_numbers():
    with pytest.raises(NotIdentifiable, match="Monte-Carlo errors"):
        _by_clouds(RidgeEvidence(3.0), AXES)


# Long logs, by simulation


def test_features_count_pulls_visits_and_changes():
    actions = np.array([0, 1, 0, 0, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0])
    found = np.exp(_features(actions, 2)) - 0.5
    assert found[:4].sum() == pytest.approx(6)  # changes of arm
    assert found[4:].round(6).tolist() == [11, 5, 1, 1, 3, 3, 0, 2]  # pulls, early pulls, visits, single visits


def test_a_regression_finds_the_place_of_a_log_and_what_is_left_over():
    generator = np.random.default_rng(1)
    places, noise = generator.uniform(-1, 1, 2_000), generator.standard_normal((2_000, 2))
    features = np.column_stack([places + 0.2 * noise[:, 0], noise[:, 1]])
    found = _regressed(places, features - [0.3, 0.0])
    assert found.centre == pytest.approx(0.3, abs=0.03)
    assert found.deviation == pytest.approx(0.2, abs=0.03)


def test_the_scale_of_a_long_log_is_found_by_simulation():
    long_log = ub.UCB(scale=0.9).demonstrate(ub.Instance([1.0, 0.98, 0.9, 0.2], 0.5), 10_000, seed=3)
    (scale,) = fit(long_log, "ucb:alpha=0.25,scale=fit").fitted
    assert scale.method == "pulls and visits, beside simulations"
    assert scale.low < 0.9 < scale.high
    assert scale.high < 1.6 * scale.low


def test_the_scale_of_a_long_log_that_soon_settles_is_found_by_its_first_decisions():
    """Few arms are tried after the beginning: too few for simulations, which were all that such logs were read by."""
    long_log = ub.UCB(scale=0.9).demonstrate(ub.Instance([1.0, 0.0, 0.2, 0.5], 0.5), 10_000, seed=3)
    (scale,) = fit(long_log, "ucb:alpha=0.25,scale=fit").fitted
    assert scale.method == "decisions of the first rounds, predicted one by one"
    assert scale.low < 0.9 < scale.high < 1.6 * scale.low


def line(centre, deviation):
    x = np.linspace(centre - 5 * deviation, centre + 5 * deviation, 401)
    return x[:, None], np.exp(-0.5 * np.square((x - centre) / deviation))


@pytest.mark.parametrize(
    ("simulated", "method", "reach"),
    [
        ((0.1, 0.1), BY_SIMULATION, (-0.1, 0.3)),
        (None, BY_BEGINNING, (-0.2, 0.2)),
        ((4.9, 1.0), BY_BEGINNING, (-0.2, 0.2)),
    ],
    ids=["simulations show it", "they do not", "they leave large values open"],
)
def test_the_first_decisions_are_predicted_where_simulations_do_not_show_the_number(
    simulated, method, reach, monkeypatch
):
    refusal = NotIdentifiable("nothing shows.")

    def by_clouds(evidence, axes):
        assert evidence.rounds == 2_000
        return line(0.0, 0.1)

    def by_simulations(evidence, axis):
        if simulated is None:
            raise refusal
        places, density = line(*simulated)
        return np.minimum(places, axis.high), density

    monkeypatch.setattr(parameters, "_by_clouds", by_clouds)
    monkeypatch.setattr(parameters, "_by_simulations", by_simulations)
    axis = Axis("scale", -5.0, 5.0, open_low=True, open_high=True)
    family, log = rule_or_family("ucb:alpha=0.25,scale=fit"), ub.ActionLog.from_actions([0, 1] * 6_000)
    evidence = _Evidence(log, family, (axis,), {}, ub.Gaussian(0.5), ub.NormalPrior(0.0, 1.0), (12_000,), 0)
    places, weights, found = _of_a_long_log(evidence, (axis,), 0.95)
    ends = [quantile(places[:, 0], weights / weights.sum(), share) for share in (0.025, 0.975)]
    assert found == method
    assert ends == pytest.approx(reach, abs=0.05)


def test_a_long_log_of_one_arm_shows_no_scale():
    log = ub.ActionLog.from_codes(np.append([0, 1, 2], np.zeros(9_997, np.int64)), ("A", "B", "C"))
    with pytest.raises(NotIdentifiable, match="does not show scale"):
        fit(log, "ucb:alpha=0.25,scale=fit")


def test_a_long_log_that_no_width_explains_is_refused():
    uniform = np.random.default_rng(1).integers(0, 4, 9_996)
    log = ub.ActionLog.from_codes(np.append([0, 1, 2, 3], uniform), ("A", "B", "C", "D"))
    with pytest.raises(ub.InferenceError, match="no value of scale explains the log"):
        fit(log, "ucb:alpha=0.25,scale=fit")


def test_a_temperature_that_the_prior_settled_is_said_to_be_so():
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([0.4, 0.0], 0.5), 300, seed=1)
    wide, narrow = (
        fit_family(log, rule_or_family("softmax:temperature=fit"), ub.Gaussian(0.5), ub.NormalPrior(0.0, each), [300])
        for each in (1.0, 0.5)
    )
    assert wide.fitted[0].value > 1.4 * narrow.fitted[0].value  # as the prior, not as the log has it
    assert "that is settled by the prior, normal:mean=0" in wide.fitted[0].note
    x, prior = np.linspace(-1, 1, 101), ub.NormalPrior(0.0, 1.0)
    for deviation, is_said in ((0.1, False), (0.3, False), (0.4, True)):  # four gaps alone would leave 0.35
        weights = np.exp(-0.5 * np.square(x / deviation))
        assert bool(_scale_note(x, weights / weights.sum(), prior, 4)) == is_said
    assert _scale_note(x, np.full(101, 1 / 101), ub.BetaPrior(), 4) == ""
