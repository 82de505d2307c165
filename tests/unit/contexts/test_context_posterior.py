"""Posteriors of linear demonstrators: against rejection sampling with a plain simulator, and dense linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

import unbandit as ub
from unbandit.contexts.check import check_notice, check_record
from unbandit.contexts.clouds import run_clouds
from unbandit.contexts.expectation import ChoiceRecord, approximate, log_rewards, log_ties, path_of
from unbandit.contexts.posterior import _record
from unbandit.contexts.rule import parse_rule
from unbandit.kernels.choice_sites import _orthant_site
from unbandit.kernels.linear import PathSites, PathTwist, solve_path
from unbandit.kernels.simulate_linear import GREEDY, SOFTMAX, THOMPSON, UCB

SIGMA, PRIOR, RIDGE = 0.6, 1.3, 0.7
NOISE = np.random.default_rng(7)


def play(contexts, theta, choose, known, generator):
    """Play a linear learner in plain Python: (rounds, offers, coefficients) contexts; return choices and rewards."""
    chosen, rewards = [], []
    for at, offers in enumerate(contexts):
        mean, inverse = learnt(contexts, chosen, rewards, known[at])
        chosen.append(choose(offers, mean, inverse))
        rewards.append(offers[chosen[-1]] @ theta + SIGMA * generator.standard_normal())
    return np.array(chosen), np.array(rewards)


def learnt(contexts, chosen, rewards, known):
    rows = np.array([contexts[at][chosen[at]] for at in range(known)]).reshape(known, contexts.shape[2])
    inverse = np.linalg.inv(RIDGE * np.eye(contexts.shape[2]) + rows.T @ rows)
    return inverse @ (rows.T @ np.array(rewards[:known])), inverse


def weighted_runs(contexts, chosen, known, chance, number, generator, given, step=0.0):
    """Draw coefficients and rewards; return the coefficients, and how probable choices and `given` rewards are.

    The learner had the given ones before they were rounded to multiples of a step.
    """
    seen, size = np.flatnonzero(np.isfinite(given)), contexts.shape[2]
    rows, values = contexts[seen, chosen[seen]], given[seen]
    covariance = np.linalg.inv(np.eye(size) / PRIOR**2 + rows.T @ rows / SIGMA**2)
    theta = covariance @ rows.T @ values / SIGMA**2
    theta = theta + generator.standard_normal((number, size)) @ np.linalg.cholesky(covariance).T
    spread = SIGMA**2 * np.eye(seen.size) + PRIOR**2 * rows @ rows.T
    density = np.exp(-0.5 * values @ np.linalg.solve(spread, values)) / np.sqrt(np.linalg.det(2 * np.pi * spread))
    weights, rewards = np.full(number, density), np.zeros((number, len(contexts)))
    for at, offers in enumerate(contexts):
        rows = contexts[np.arange(known[at]), chosen[: known[at]]]
        inverse = np.linalg.inv(RIDGE * np.eye(contexts.shape[2]) + rows.T @ rows)
        means = rewards[:, : known[at]] @ rows @ inverse
        weights = weights * chance(offers, means, inverse, chosen[at])
        rewards[:, at] = theta @ offers[chosen[at]] + SIGMA * generator.standard_normal(number)
        if np.isfinite(given[at]):
            rewards[:, at] = given[at] + step * generator.uniform(-0.5, 0.5, number)
    return theta, weights


def largest(values, chosen):
    return values.argmax(axis=1) == chosen


def by_bounds(offers, means, inverse, chosen):
    widths = np.sqrt(np.einsum("kd,de,ke->k", offers, inverse, offers))
    return largest(means @ offers.T + 0.8 * widths, chosen)


def by_softmax(offers, means, inverse, chosen, temperature=0.4):
    values = means @ offers.T / temperature
    scores = np.exp(values - values.max(axis=1, keepdims=True))
    return scores[:, chosen] / scores.sum(axis=1)


def by_cold_softmax(*given):
    return by_softmax(*given, temperature=0.002)


def by_greed(offers, means, inverse, chosen):
    return 0.2 / len(offers) + 0.8 * largest(means @ offers.T, chosen)


def by_draws(offers, means, inverse, chosen):
    noise = NOISE.standard_normal(means.shape) @ np.linalg.cholesky(inverse).T
    return largest((means + 0.9 * noise) @ offers.T, chosen)


def in_blocks(contexts, arms):
    """Give each arm coefficients of its own: (rounds, features) to (rounds, arms, arms * features)."""
    full = np.zeros((len(contexts), arms, arms, contexts.shape[1]))
    full[:, np.arange(arms), np.arange(arms)] = contexts[:, None]
    return full.reshape(len(contexts), arms, -1)


@pytest.mark.parametrize(
    ("kind", "strength", "chance", "known", "disjoint", "seen", "step"),
    [
        (UCB, 0.8, by_bounds, [0, 1, 2, 3, 4, 5], False, (), 0.0),
        (UCB, 0.8, by_bounds, [0, 0, 2, 2, 4, 4], False, (), 0.0),
        (UCB, 0.8, by_bounds, [0, 1, 2, 3, 4, 5], True, (), 0.0),
        (SOFTMAX, 0.4, by_softmax, [0, 0, 1, 2, 3, 4], False, (), 0.0),
        (SOFTMAX, 0.002, by_cold_softmax, [0, 1, 2, 3, 4, 5], False, (), 0.0),
        (GREEDY, 0.2, by_greed, [0, 1, 2, 3, 4, 5], False, (), 0.0),
        (THOMPSON, 0.9, by_draws, [0, 1, 2, 3, 4, 5], False, (), 0.0),
        (THOMPSON, 0.9, by_draws, [0, 0, 2, 2, 4, 4], True, (), 0.0),
        (UCB, 0.8, by_bounds, [0, 1, 2, 3, 4, 5], False, (0, 3), 0.0),
        (UCB, 0.8, by_bounds, [0, 1, 2, 3, 4, 5], False, (0, 1, 2, 3, 4, 5), 0.0),
        (UCB, 0.8, by_bounds, [0, 1, 2, 3, 4, 5], False, (0, 2, 3), 0.5),
        (SOFTMAX, 0.4, by_softmax, [0, 0, 1, 2, 3, 4], False, (1, 5), 0.0),
        (SOFTMAX, 0.4, by_softmax, [0, 0, 1, 2, 3, 4], False, (0, 1), 0.5),
        (GREEDY, 0.2, by_greed, [0, 1, 2, 3, 4, 5], False, (0, 2), 0.0),
        (THOMPSON, 0.9, by_draws, [0, 0, 2, 2, 4, 4], False, (0, 1, 4), 0.0),
    ],
)
def test_clouds_agree_with_runs_that_made_the_same_choices(kind, strength, chance, known, disjoint, seen, step):
    generator = np.random.default_rng(3)
    contexts = generator.standard_normal((6, 3, 2))
    if disjoint:
        contexts = in_blocks(contexts[:, 0], 2)
    known = np.array(known)

    def choose(offers, mean, inverse):
        chances = np.array([float(np.mean(chance(offers, mean[None], inverse, at))) for at in range(len(offers))])
        return int(chances.argmax())

    chosen, rewards = play(contexts, PRIOR * generator.standard_normal(contexts.shape[2]), choose, known, generator)
    given = np.where(np.isin(np.arange(6), seen), rewards, np.nan)
    theta, weights = weighted_runs(contexts, chosen, known, chance, 300_000, generator, given, step)
    size = contexts.shape[2]
    record = ChoiceRecord(
        contexts.reshape(-1, size).copy(), np.arange(7) * contexts.shape[1], chosen, known, kind, strength, RIDGE,
        rewards=given if seen else np.zeros(0), rounded_to=step,
    )  # fmt: skip
    approximation = approximate(record, path_of(record, sigma=SIGMA, prior=PRIOR))
    clouds = run_clouds(approximation, particles=4_000, clouds=4, seed=1)
    states = clouds.states[..., :size].reshape(-1, size)
    mean = np.average(theta, axis=0, weights=weights)
    deviation = np.sqrt(np.average((theta - mean) ** 2, axis=0, weights=weights))
    effective = weights.sum() ** 2 / (weights**2).sum()
    error = 4 * np.sqrt(1 / effective + 1 / 4_000)  # in deviations; resampled clouds are worth a quarter or more
    assert error < 0.12
    assert np.abs(states.mean(axis=0) - mean).max() < error * deviation.max()
    by_clouds = np.sqrt(states.var(axis=0) + np.diag(approximation.path.covariance))
    np.testing.assert_allclose(by_clouds, deviation, rtol=error)
    if kind == UCB:
        evidence = clouds.log_evidence[0] + log_rewards(record, SIGMA, PRIOR)
        assert evidence == pytest.approx(np.log(weights.mean()), abs=error)


def test_the_twisting_function_is_that_of_dense_algebra():
    generator = np.random.default_rng(5)
    contexts = generator.standard_normal((5, 3, 2))
    chosen = np.array([0, 2, 1, 1, 0])
    record = ChoiceRecord(contexts.reshape(-1, 2).copy(), np.arange(6) * 3, chosen, np.arange(5), UCB, 1.0, RIDGE)
    path = path_of(record, sigma=SIGMA, prior=PRIOR)
    # The state moves as the posterior mean of a regression on rewards does.
    rows, gram = contexts[np.arange(5), chosen], np.eye(2) * SIGMA**2 / PRIOR**2
    for at in range(5):
        spread = SIGMA**2 + SIGMA**2 * rows[at] @ np.linalg.inv(gram) @ rows[at]
        gain = SIGMA**2 * np.linalg.inv(gram) @ rows[at] / np.sqrt(spread)
        np.testing.assert_allclose(path.gains[at], gain)
        gram += np.outer(rows[at], rows[at])
    np.testing.assert_allclose(path.covariance, SIGMA**2 * np.linalg.inv(gram))
    sites = PathSites(path.rows, generator.random(10), generator.standard_normal(10))
    twist = PathTwist(*(np.zeros(shape) for shape in 2 * ((5, 2), (5,), (5,))))
    log_start = solve_path(path, sites, twist)
    # The same as one Gaussian integral over all innovations.
    effects = np.zeros((10, 5))
    for row in range(10):
        effects[row, : row // 2] = path.gains[: row // 2] @ path.rows[row]
    precision = np.eye(5) + effects.T @ np.diag(sites.precision) @ effects
    pressure = effects.T @ sites.pressure
    expected = 0.5 * pressure @ np.linalg.solve(precision, pressure) - 0.5 * np.linalg.slogdet(precision)[1]
    assert log_start == pytest.approx(expected)


@pytest.fixture(scope="module")
def log():
    contexts = np.random.default_rng(1).standard_normal((60, 3, 2))
    return ub.LinUCB(alpha=1).demonstrate(ub.ContextInstance([1.0, -0.5], sigma=0.5), contexts, seed=1)


@pytest.fixture(scope="module")
def found(log):
    return ub.context_posterior(log, ub.LinUCB(alpha=1), sigma=0.5, particles=500)


def test_the_answer_of_a_shared_model(found):
    low, high = found.interval()
    assert (low < [1.0, -0.5]).all()
    assert (high > [1.0, -0.5]).all()
    assert found.verdicts == ("estimated", "estimated")
    (notice,) = found.notices
    assert notice.code == "fits"
    assert "about in proportion to alpha" in notice.message
    assert found.check.verdict == "fits"
    values = found.predict([[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_allclose(values[0], found.draws.mean(axis=0) * [1, 2])
    assert (np.diff(values[[1, 0, 2]], axis=0) > 0).all()
    assert found.best_at([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.5]])[0] > 0.99
    assert found.length()[0] < np.hypot(1, 0.5) < found.length()[1]
    assert 0 < found.angle < 15


def test_the_picture_has_the_truth_where_it_is_given(found):
    axes = found.plot(truth=[1.0, -0.5]).axes[0]
    marks = [line for line in axes.lines if line.get_marker() == "|"]
    assert [line.get_xdata().tolist() for line in marks] == [[1.0, -0.5]]
    assert not [line for line in found.plot().axes[0].lines if line.get_marker() == "|"]
    with pytest.raises(ub.ParameterError, match="2 numbers, one per coefficient; got 3"):
        found.plot(truth=[1.0, 0.0, 0.0])


def test_two_seeds_agree(log, found):
    other = ub.context_posterior(log, ub.LinUCB(alpha=1), sigma=0.5, particles=500, seed=2, check=False)
    deviation = np.sqrt(np.diag(found.covariance))
    assert (np.abs(other.mean - found.mean) < 0.2 * deviation).all()
    assert other.log_evidence == pytest.approx(found.log_evidence, abs=0.3)


def test_an_arm_that_was_never_chosen_is_unseen():
    contexts = np.abs(np.random.default_rng(2).standard_normal((40, 1))) + 0.1
    instance = ub.ContextInstance([[2.0], [0.0], [-1.0]], sigma=0.1)
    rule = ub.LinUCB(alpha=0.01, disjoint=True)
    log = rule.demonstrate(instance, contexts, seed=1)
    found = ub.context_posterior(log, rule, sigma=0.1, prior=2.0, particles=200, check=False)
    assert log.pulls[0].tolist()[1:] == [0, 0]
    assert found.verdicts[1:] == ("unseen", "unseen")
    assert found.best_at([1.0])[0] > 0.5


def test_a_record_that_the_rule_cannot_have_made_is_refused(log):
    longest = np.linalg.norm(log.features[:3], axis=1).argmax()
    chosen = log.chosen.copy()
    chosen[0] = (longest + 1) % 3
    wrong = ub.ContextLog.from_arrays(log.features.reshape(60, 3, 2), chosen)
    with pytest.raises(ub.InferenceError, match="another offer") as caught:
        ub.context_posterior(wrong, ub.LinUCB(alpha=1), sigma=0.5)
    assert caught.value.round == 1


@pytest.mark.parametrize("seed", [0, 5])
def test_a_missing_feature_is_named_as_a_reason(seed):
    contexts = np.random.default_rng(seed).standard_normal((60, 3, 3))
    made = ub.LinUCB(alpha=1).demonstrate(ub.ContextInstance([0.3, -0.2, 2.0], sigma=0.5), contexts, seed=seed)
    seen = ub.ContextLog.from_arrays(contexts[:, :, :2], made.chosen)
    for alpha in (1, ub.FIT):
        with pytest.raises(ub.UnbanditError, match="with these features") as caught:
            ub.context_posterior(seen, ub.LinUCB(alpha=alpha), sigma=0.5, particles=100)
        assert "missing" in caught.value.remedy


def test_what_is_not_read_is_refused(log, found):
    rule = ub.LinUCB(alpha=1)
    with pytest.raises(ub.ParameterError, match="positive"):
        ub.context_posterior(log, rule, sigma=0.0)
    with pytest.raises(ub.ParameterError, match="rule"):
        ub.context_posterior(log, ub.UCB(alpha=0.25), sigma=0.5)
    with pytest.raises(ub.ParameterError, match="shape"):
        found.predict([1.0, 2.0, 3.0])
    twice = ub.ContextLog.from_arrays(log.features.reshape(60, 3, 2), log.chosen, starts=[0, 30, 60])
    with pytest.raises(ub.ParameterError, match="2 demonstrations"):
        ub.context_posterior(twice, rule, sigma=0.5)


def test_choices_of_another_rule_do_not_fit(log):
    contexts = np.random.default_rng(1).standard_normal((120, 3, 2))
    made = ub.LinTS(v=1.0).demonstrate(ub.ContextInstance([1.0, -0.5], sigma=0.5), contexts, seed=1)
    record = _record(ub.LinUCB(alpha=1).design(made), ub.LinUCB(alpha=1))
    approximation = approximate(record, path_of(record, sigma=0.5, prior=1.0))
    found = check_record(
        record, "linucb", sigma=0.5, prior=1.0, log_evidence=approximation.log_evidence, seed=1
    )  # fmt: skip
    assert found.verdict == "does not fit"
    assert any("lints" in each for each in found.instead)
    (notice,) = check_notice(found, "linucb")
    assert notice.code == "does-not-fit"
    assert "A feature that the learner used may be missing" in notice.text


def test_a_long_record_is_checked_in_part(log, monkeypatch):
    monkeypatch.setattr("unbandit.contexts.check.MOST_WORK", 30 * 3 * 4)
    record = _record(ub.LinUCB(alpha=1).design(log), ub.LinUCB(alpha=1))
    found = check_record(record, "linucb", sigma=0.5, prior=1.0, log_evidence=-1e9, seed=1)
    assert found.verdict == "fits"
    assert "the first 29 of 60 choices" in found.reason
    assert "simulations" not in repr(found)
    monkeypatch.undo()
    whole = check_record(record, "linucb", sigma=0.5, prior=1.0, log_evidence=-1.0, seed=1)
    assert "all 60 choices" in whole.reason
    assert "all 60 choices" in check_notice(whole, "linucb")[0].text


def test_alpha_is_fitted(log):
    found = ub.context_posterior(log, ub.LinUCB(alpha=ub.FIT), sigma=0.5, particles=500, check=False)
    alpha = found.fitted[0]
    assert alpha.parameter == "alpha"
    assert alpha.low < 1.0 < alpha.high < 10
    assert [notice.code for notice in found.notices][-1] == "fitted"
    low, high = found.interval()
    assert (low < [1.0, -0.5]).all()
    assert (high > [1.0, -0.5]).all()
    with pytest.raises(ub.ParameterError, match="no other number"):
        ub.context_posterior(log, ub.LinUCB(alpha=ub.FIT, ridge=ub.FIT), sigma=0.5)
    short = ub.ContextLog.from_arrays(log.features.reshape(60, 3, 2)[:2], log.chosen[:2])
    with pytest.raises(ub.NotIdentifiable, match="does not show alpha"):
        ub.context_posterior(short, ub.LinUCB(alpha=ub.FIT), sigma=0.5)


def test_known_rewards_say_more_and_refute_a_wrong_noise(log, found):
    contexts = np.random.default_rng(1).standard_normal((60, 3, 2))
    rule, instance = ub.LinUCB(alpha=1), ub.ContextInstance([1.0, -0.5], sigma=0.5)
    seen = rule.demonstrate(instance, contexts, seed=1, rewards=True)
    half = ub.ContextLog.from_arrays(contexts, seen.chosen, rewards=np.where(np.arange(60) % 2, np.nan, seen.rewards))
    some = ub.context_posterior(half, rule, sigma=0.5, particles=500)
    every = ub.context_posterior(seen, rule, sigma=0.5, particles=500)
    assert (np.diag(every.covariance) < np.diag(some.covariance)).all()
    assert (np.diag(some.covariance) < np.diag(found.covariance)).all()
    rows = seen.features[seen.rows]
    precision = 0.25 * np.eye(2) + rows.T @ rows
    np.testing.assert_allclose(every.mean, np.linalg.solve(precision, rows.T @ seen.rewards))
    np.testing.assert_allclose(every.covariance, 0.25 * np.linalg.inv(precision))
    assert (some.check.verdict, every.check.verdict) == ("fits", "fits")
    wrong = ub.context_posterior(seen, rule, sigma=1.5, particles=500)
    assert wrong.check.verdict == "does not fit"
    assert "sigma 0.75" in wrong.check.reason


def test_rewards_that_were_rounded_after_the_learner_had_them():
    contexts, rule = np.random.default_rng(102).standard_normal((120, 4, 3)), ub.LinUCB(alpha=1)
    seen = rule.demonstrate(ub.ContextInstance([1.0, -0.5, 0.2], sigma=0.5), contexts, seed=2, rewards=True)
    as_given = ub.context_posterior(seen, rule, sigma=0.5, particles=100)
    rounded = ub.ContextLog.from_arrays(contexts, seen.chosen, rewards=(4 * seen.rewards).round() / 4)
    found = ub.context_posterior(rounded, rule, sigma=0.5, particles=100)
    assert [notice.code for notice in found.notices] == ["fits", "rounded-rewards"]
    assert "multiples of 0.25" in found.notices[1].text
    assert "in proportion" not in found.notices[0].text  # known rewards have a scale
    assert found.check.verdict == "fits"
    np.testing.assert_allclose(found.mean, as_given.mean, atol=0.05)
    np.testing.assert_allclose(found.covariance, as_given.covariance, rtol=1e-6)
    assert [notice.code for notice in as_given.notices] == ["fits"]
    whole = ub.ContextLog.from_arrays(contexts, seen.chosen, rewards=seen.rewards.round())
    with pytest.raises(ub.InferenceError) as caught:  # a step above sigma is not taken to be one of rounding
        ub.context_posterior(whole, rule, sigma=0.5, particles=100)
    assert "multiples of 1, were rounded more coarsely" in caught.value.remedy
    with pytest.raises(ub.InferenceError) as caught:
        ub.context_posterior(seen, ub.LinUCB(alpha=1.3), sigma=0.5, particles=100)
    assert "not those that the learner had" in caught.value.remedy


def test_a_greedy_posterior_of_few_particles_says_that_it_is_not_to_be_trusted(log):
    rule = ub.LinEpsilonGreedy(epsilon=0.1)
    contexts = np.random.default_rng(5).normal(size=(150, 4, 2))
    made = rule.demonstrate(ub.ContextInstance([1.0, -0.5], sigma=0.5), contexts, seed=5)
    thin = ub.context_posterior(made, rule, sigma=0.5, particles=60, check=False)
    assert thin.effective_size < 50
    assert "few-particles" in [notice.code for notice in thin.notices]
    other = ub.context_posterior(log, ub.LinUCB(alpha=1), sigma=0.5, particles=60, check=False)
    assert "few-particles" not in [notice.code for notice in other.notices]


def test_a_default_greedy_posterior_has_enough_particles():
    generator = np.random.default_rng([77, 5])
    theta, contexts = generator.normal(size=5), generator.normal(size=(300, 5, 5)) / np.sqrt(5)
    rule = ub.LinEpsilonGreedy(epsilon=0.1)
    log = rule.demonstrate(ub.ContextInstance(theta, sigma=0.5), contexts, seed=5)
    few, more = (
        ub.context_posterior(log, rule, sigma=0.5, particles=each, check=False).effective_size for each in (500, 4_000)
    )
    assert more > 200  # it was 1 of 16,000, as sites hardly looked ahead
    assert more > 3 * few


@pytest.mark.parametrize(("centre", "spread", "floor"), [(0.3, 1.0, 0.02), (-0.4, 0.5, 0.1), (1.5, 2.0, 0.3)])
def test_the_site_of_a_greedy_or_random_choice_has_the_moments_of_both(centre, spread, floor):
    explores, bend, slope = 0.2, np.zeros((1, 1)), np.zeros(1)
    log_mass = _orthant_site(
        np.array([centre]), np.array([[spread]]), np.zeros((1, 1)), floor, explores, bend, slope
    )  # fmt: skip
    grid = np.linspace(centre - 12 * np.sqrt(spread), centre + 12 * np.sqrt(spread), 400_001)
    density = np.exp(-0.5 * (grid - centre) ** 2 / spread) * (floor + (1 - explores) * (grid >= 0))
    mass = density.sum() * (grid[1] - grid[0]) / np.sqrt(2 * np.pi * spread)
    mean = np.average(grid, weights=density)
    variance = np.average((grid - mean) ** 2, weights=density)
    assert log_mass == pytest.approx(np.log(mass), abs=1e-4)
    found = 1 / (1 / spread + bend[0, 0])
    assert found == pytest.approx(variance, rel=1e-3)
    assert found * (centre / spread + slope[0]) == pytest.approx(mean, abs=1e-3)


def test_parts_that_lie_far_apart_leave_a_site_that_can_be_drawn_from():
    bend, slope = np.zeros((2, 2)), np.zeros(2)
    spread = np.array([[1.0, 0.4], [0.4, 1.0]])
    _orthant_site(np.array([-2.5, -0.5]), spread, np.zeros((2, 2)), 0.02, 0.08, bend, slope)
    assert np.linalg.eigvalsh(bend).min() > -1e-12
    assert slope[0] > 0


def test_first_choices_of_a_greedy_rule_do_not_make_later_ones_look_random():
    generator = np.random.default_rng([17, 13])
    contexts, theta = generator.normal(size=(300, 5, 5)) / np.sqrt(5), generator.normal(size=5)
    rule = ub.LinEpsilonGreedy(epsilon=0.1)
    log = rule.demonstrate(ub.ContextInstance(theta, sigma=0.5), contexts, seed=23, first_run=13)
    record = _record(rule.design(log), rule)
    found = approximate(record, path_of(record, sigma=0.5, prior=1.0))
    assert np.sqrt(np.square(found.means[-1] - theta).mean()) < 0.3  # it was 1


def test_clouds_of_choices_by_chance_have_fewer_particles():
    contexts, value = np.random.default_rng(5).normal(size=(30, 4, 2)), ub.ContextInstance([1.0, -0.5], sigma=0.5)
    rules = (ub.LinUCB(alpha=1), ub.LinTS(v=0.5), ub.LinSoftmax(temperature=0.1), ub.LinEpsilonGreedy(epsilon=0.1))
    logs = [(rule.demonstrate(value, contexts, seed=5), rule) for rule in rules]
    found = [ub.context_posterior(log, rule, sigma=0.5, check=False) for log, rule in logs]
    assert [each.particles for each in found] == [4_000, 1_333, 1_333, 16_000]


@pytest.mark.parametrize("text", ["linucb:alpha=1", "lints:v=0.5"])
def test_coefficients_far_above_the_prior_are_named(text):
    contexts = np.random.default_rng(3).normal(size=(150, 4, 2))
    made = parse_rule(text).demonstrate(ub.ContextInstance([20.0, -10.0], sigma=0.5), contexts, seed=3)
    told = {each.code: each.text for each in ub.context_posterior(made, text, sigma=0.5, particles=100).notices}
    assert "drawn towards 0" in told["narrow-prior"]
    wide = ub.context_posterior(made, text, sigma=0.5, prior=20.0, particles=100)
    assert "narrow-prior" not in {each.code for each in wide.notices}


def test_a_number_to_be_fitted_under_a_narrow_prior_comes_with_a_wider_one():
    contexts, rule = np.random.default_rng(3).normal(size=(300, 5, 2)), ub.LinUCB(alpha=ub.FIT)
    noisy = ub.LinUCB(alpha=40).demonstrate(ub.ContextInstance([20.0, -10.0], sigma=20), contexts, seed=3)
    found = ub.context_posterior(noisy, rule, sigma=20, particles=100)
    assert "narrow-prior" in {each.code for each in found.notices}


def test_batches_and_features_that_the_learner_did_not_have_are_named():
    contexts, value = np.random.default_rng(3).normal(size=(300, 4, 2)), ub.ContextInstance([1.0, -0.5], sigma=0.5)
    batched = ub.LinTS(v=0.5, batch=20).demonstrate(value, contexts, seed=3)
    found = ub.context_posterior(batched, ub.LinTS(v=0.5), sigma=0.5, particles=100).check
    assert (found.verdict, found.instead[0][-23:]) == ("does not fit", "in batches of 20 rounds")
    own = ub.context_posterior(batched, ub.LinTS(v=0.5, batch=20), sigma=0.5, particles=100).check
    assert own.verdict == "fits"
    plain = ub.LinUCB(alpha=1).demonstrate(value, contexts, seed=3)
    more = np.concatenate([contexts, np.random.default_rng(4).normal(size=(300, 4, 1))], axis=2)
    log = ub.ContextLog.from_arrays(more, plain.chosen)
    surplus = ub.context_posterior(log, ub.LinUCB(alpha=1), sigma=0.5, particles=400).check
    assert surplus.verdict == "does not fit"
    assert surplus.instead[0].endswith('without the feature "x3"')


def test_a_wider_prior_is_not_proposed_where_evidence_is_too_rough():
    contexts, value = np.random.default_rng(119).normal(size=(60, 4, 2)), ub.ContextInstance([0.9, 1.7], sigma=0.5)
    for rule in (ub.LinSoftmax(temperature=0.01), ub.LinEpsilonGreedy(epsilon=0.3)):
        made = rule.demonstrate(value, contexts, seed=119)
        found = ub.context_posterior(made, rule, sigma=0.5, particles=100)
        assert "narrow-prior" not in {each.code for each in found.notices}


@pytest.mark.parametrize("seed", range(6))
def test_softmax_choices_at_a_low_temperature_are_read(seed):
    contexts, rule = np.random.default_rng(seed).normal(size=(60, 4, 3)), ub.LinSoftmax(temperature=0.01)
    theta = np.random.default_rng(seed + 100).normal(size=3)
    made = rule.demonstrate(ub.ContextInstance(theta, sigma=0.5), contexts, seed=seed)
    found = ub.context_posterior(made, rule, sigma=0.5, particles=400)
    assert {each.code for each in found.notices} == {"fits"}
    assert np.abs(found.mean - theta).max() < 4 * np.sqrt(found.covariance.diagonal().max())
    assert found.effective_size > 40


@pytest.mark.parametrize("seed", range(4))
def test_ties_do_not_speak_for_batches(seed):
    """While no reward is known, arms of one context have equal indices, and any choice satisfies its cuts."""
    generator, rule = np.random.default_rng(seed), ub.LinUCB(alpha=1, disjoint=True)
    theta, contexts = generator.normal(size=(4, 3)), generator.normal(size=(300, 3)) / np.sqrt(3)
    log = rule.demonstrate(ub.ContextInstance(theta, sigma=0.5), contexts, seed=seed)
    assert ub.context_posterior(log, rule, sigma=0.5, particles=400).check.verdict == "fits"


def test_the_probability_of_ties():
    generator = np.random.default_rng(1)
    wide = in_blocks(generator.standard_normal((5, 2)), 3)

    def ties(contexts, chosen, kind, known=(0, 1, 2, 3, 4), *, first_wins=True):
        offers = np.arange(len(contexts) + 1) * contexts.shape[1]
        vectors = np.ascontiguousarray(contexts.reshape(-1, contexts.shape[2]))
        record = ChoiceRecord(vectors, offers, np.array(chosen), np.array(known), kind, 1.0, RIDGE, first_wins)
        return np.exp(-log_ties(record, path_of(record, sigma=SIGMA, prior=PRIOR)))

    # Three arms are new, then two; in batches of five rounds all of them stay so.
    assert ties(wide, [0, 1, 2, 0, 1], UCB) == 1
    assert ties(wide, [0, 1, 2, 0, 1], UCB, first_wins=False) == pytest.approx(3 * 2)
    assert ties(wide, [2, 1, 0, 0, 1], UCB) == pytest.approx(3 * 2)
    assert ties(wide, [0, 1, 2, 0, 1], UCB, known=[0] * 5) == pytest.approx(3**5)
    assert ties(wide, [0, 1, 2, 0, 1], THOMPSON, known=[0] * 5) == 1
    twins = generator.standard_normal((5, 3, 2))
    twins[2:, 2] = twins[2:, 0]  # offers with equal features, in three rounds
    for kind in (UCB, THOMPSON):
        assert ties(twins, [0, 1, 2, 1, 0], kind) == pytest.approx(2 * 2)
        assert ties(twins, [0, 1, 0, 1, 0], kind) == 1


@pytest.mark.parametrize(
    "rule", [ub.LinUCB(alpha=1, ties="random"), ub.LinTS(v=0.5, ties="random"), ub.LinSoftmax(temperature=0.2)]
)
def test_offers_with_equal_features_do_not_speak_for_greedy_choices(rule):
    kinds, generator = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), np.random.default_rng(2)
    contexts = np.stack([kinds[generator.permutation(4)] for _ in range(200)])
    log = rule.demonstrate(ub.ContextInstance([0.6, 0.3], sigma=0.5), contexts, seed=2)
    found = ub.context_posterior(log, rule, sigma=0.5, particles=400)
    assert found.check.verdict == "fits"
    assert found.best_at(kinds)[0] == found.best_at(kinds)[1] > 0.3


def test_a_greedy_choice_among_equal_offers():
    contexts = np.ones((3, 2, 1))
    contexts[2, 1] = -1.0
    known, offers = np.arange(3), np.arange(4) * 2

    def wins(first_wins, epsilon=0.2):
        record = ChoiceRecord(
            contexts.reshape(-1, 1), offers, np.array([0, 1, 1]), known, GREEDY, epsilon, RIDGE, first_wins
        )
        path = path_of(record, sigma=SIGMA, prior=PRIOR)
        clouds = run_clouds(approximate(record, path), particles=4_000, clouds=4, seed=1)
        return path.wins.tolist(), -np.inf if all(clouds.died) else clouds.log_evidence[0]

    (lowest, strict), (random, fair) = wins(True), wins(False)
    assert (lowest, random) == ([1, 0, 1], [0.5, 0.5, 1])
    # The second choice explores, or wins at random; the third, of -1 against 1, is as often greedy as not.
    assert strict == pytest.approx(np.log(0.9 * 0.1 * 0.5), abs=0.05)
    assert fair == pytest.approx(np.log(0.5 * 0.5 * 0.5), abs=0.05)
    # Without exploration the second choice is at random or impossible.
    assert wins(False, 0.0)[1] == pytest.approx(np.log(0.5 * 0.5 * 0.5), abs=0.05)
    assert wins(True, 0.0)[1] == -np.inf


@pytest.mark.parametrize("rule", [ub.LinTS(v=0.5), ub.LinSoftmax(temperature=0.2)])
def test_a_model_for_all_arms_and_one_for_each_are_told_apart(rule):
    generator, own = np.random.default_rng(4), type(rule)(**rule.model_dump() | {"disjoint": True})
    contexts = generator.normal(size=(300, 3, 2))
    shared = rule.demonstrate(ub.ContextInstance([1.0, -0.5], sigma=0.5), contexts, seed=4)
    found = ub.context_posterior(shared, own, sigma=0.5, particles=300).check
    assert (found.verdict, found.instead[0][-16:]) == ("does not fit", "(disjoint=false)")
    assert ub.context_posterior(shared, rule, sigma=0.5, particles=300).check.verdict == "fits"
    values = ub.ContextInstance([[1.0, -0.5], [-1.0, 0.5], [0.5, 1.0]], sigma=0.5)
    made = own.demonstrate(values, contexts[:, 0], seed=4)
    log = ub.ContextLog.from_arrays(np.repeat(contexts[:, :1], 3, axis=1) + 1e-3 * contexts, made.chosen)
    found = ub.context_posterior(log, rule, sigma=0.5, particles=300).check
    assert (found.verdict, found.instead[0][-15:]) == ("does not fit", "(disjoint=true)")
