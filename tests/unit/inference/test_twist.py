"""The twisted filter against dense linear algebra, its own plain Python, and a long run of the other filter."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from reference_twisted import DensePath

import unbandit as ub
from unbandit.inference import clouds
from unbandit.inference import filter as filters
from unbandit.inference.clouds import run_filters
from unbandit.inference.filter import FilterPass, new_cloud
from unbandit.inference.prior import belief_of
from unbandit.inference.steps import reading_of
from unbandit.inference.twist import _Fit, can_twist, transitions_of, twist_log
from unbandit.kernels.formula import learn, log_expansion, probability
from unbandit.kernels.smc.twist import (
    UNRECORDED,
    Exponents,
    Sites,
    Twist,
    factor_covariances,
    filter_twisted,
    follow_twist,
    predict_actions,
    solve_twist,
)

SIGMA, PRIOR = 0.5, ub.NormalPrior(0.2, 0.7)
RULES = [
    "thompson:sigma=0.5", "thompson:sigma=1,batch=3", "softmax:temperature=0.3",
    "softmax:temperature=0.4,annealing=0.3,batch=2", "learning-softmax:rate=0.3,temperature=0.4,start=0.5",
]  # fmt: skip


def record_of(text, arms=3, rounds=14, runs=1, known=()):
    """Return a rule and a short record of it, some of whose rewards are known."""
    rule = ub.parse_rule(text).for_arms(arms)
    log = rule.demonstrate(ub.Instance([0.7, 0.4, 0.5, 0.1][:arms], SIGMA), rounds, runs=runs, seed=3)
    if known:
        rewards = np.full(rounds * runs, np.nan)
        rewards[list(known)] = 1.0
        records = [log.demonstration(which).tolist() for which in range(runs)]
        log = ub.ActionLog.from_actions(records, arms=list(range(arms)), rewards=list(rewards.reshape(runs, rounds)))
    return rule, log


def belief_for(arms=3, anchor=None, bernoulli=False):
    prior, noise = (ub.BetaPrior(1.5, 1.0), ub.Bernoulli()) if bernoulli else (PRIOR, ub.Gaussian(SIGMA))
    return belief_of(prior, arms, noise, anchor)


def task_of(text, particles=50, anchor=None, bernoulli=False, **record):
    rule, log = record_of(text, **record)
    horizons = tuple(int(length) for length in log.lengths)
    readings = tuple(reading_of(log, which, rule, horizon) for which, horizon in enumerate(horizons))
    belief = belief_for(len(log.arms), anchor, bernoulli)
    return filters.CloudFilter(log, rule, belief, horizons, readings, particles, 1, False)


CASES = [(text, {}) for text in RULES] + [
    ("softmax:temperature=0.3", {"known": (2, 9)}),
    ("thompson:sigma=0.5", {"runs": 2, "rounds": 9}),
    ("learning-softmax:rate=0.3,temperature=0.4", {"runs": 2, "rounds": 8, "known": (3, 12)}),
    ("thompson:sigma=0.5", {"anchor": (1, 0.4)}),
    ("softmax:temperature=0.3", {"bernoulli": True}),
]


@pytest.mark.parametrize(("text", "record"), CASES)
def test_the_approximation_is_that_of_dense_linear_algebra(text, record):
    """Normaliser, mode, draws and covariances; sites are any quadratic functions."""
    task = task_of(text, **record)
    parameters = task.rule.parameters(task.horizons[0])
    transitions = transitions_of(task.rule, parameters, task.belief, task.readings, task.known_rewards())
    generator, (rounds, arms) = np.random.default_rng(1), (transitions.arm.size, transitions.start.size)
    roots = generator.normal(0, 0.7, (rounds, arms, arms))
    sites = Sites(generator.normal(0, 1, (rounds, arms)), generator.normal(0, 1, (rounds, arms)), roots @ roots.mT)
    coordinates = arms * (2 if transitions.separate else 1)
    twist = Twist(np.zeros((rounds, coordinates)), np.zeros(rounds), np.ones(rounds))
    dense = DensePath(transitions, sites)

    assert solve_twist(transitions, sites, twist, UNRECORDED) == pytest.approx(dense.log_normaliser, rel=1e-9)
    scores, means, innovations = np.empty((rounds, arms)), np.empty(rounds), np.empty(rounds)
    follow_twist(transitions, twist, np.zeros(rounds), scores, means, innovations)
    assert innovations == pytest.approx(dense.mean, abs=1e-9)
    assert scores == pytest.approx(dense.base + dense.maps @ dense.mean, abs=1e-9)
    noise = generator.standard_normal(rounds)
    follow_twist(transitions, twist, noise, scores, means, innovations)
    assert innovations == pytest.approx(dense.mean + np.linalg.cholesky(dense.covariance) @ noise, abs=1e-9)
    factors = np.zeros((rounds, arms, arms))
    factor_covariances(transitions, twist, factors)
    for at in range(rounds):
        assert factors[at] @ factors[at].T == pytest.approx(dense.scores_covariance(at), abs=1e-8)


@pytest.mark.parametrize("text", RULES[:-1])
def test_recorded_exponents_are_what_proposals_are_made_of(text):
    """Along any path a proposal is the prior of its innovation times `psi` after it over `psi` before it."""
    task = task_of(text)
    twisted = twisted_of(task)[-1]
    transitions, sites, twist = twisted.transitions, twisted.sites, twisted.twist
    rounds, arms = sites.centre.shape
    exponents = Exponents(np.zeros(rounds + 1), np.zeros((rounds + 1, arms)), np.zeros((rounds + 1, arms, arms)))
    start = solve_twist(transitions, sites, twist, exponents)
    assert start == exponents.constant[0] == twisted.log_start
    noise = np.random.default_rng(2).standard_normal(rounds)
    scores, innovations = np.empty((rounds, arms)), np.empty(rounds)
    follow_twist(transitions, twist, noise, scores, np.empty(rounds), innovations)
    x = np.vstack([scores, np.zeros(arms)])  # after the last round the exponents are 0
    psi = exponents.constant + (exponents.slope * x).sum(axis=1) + np.einsum("ti,tij,tj->t", x, exponents.bend, x)
    away = scores - sites.centre
    judged = (sites.slope * away).sum(axis=1) - 0.5 * np.einsum("ti,tij,tj->t", away, sites.bend, away)
    proposal = 0.5 * np.log(twist.precision) - 0.5 * noise**2
    prior = -0.5 * innovations**2 + np.where(transitions.judged > 0, judged, 0.0)
    assert proposal == pytest.approx(prior + psi[1:] - psi[:-1], abs=1e-8)


@pytest.mark.parametrize(("text", "record"), CASES[:-1])
def test_a_weight_is_the_target_over_the_proposal(text, record):
    """Without resampling: log p(actions | rewards) plus prior over proposal density, by dense linear algebra."""
    task = task_of(text, particles=8, **record)
    twisted = twisted_of(task)[-1]
    dense = DensePath(twisted.transitions, twisted.sites)
    passes = replace(task, twists=(twisted,)).run(0)
    assert all((each.cloud.effective_size > 4).all() for each in passes)
    total = sum(each.cloud.increments.sum() for each in passes)
    for log_weight, rewards in zip(passes[-1].cloud.log_weights, rewards_of(task, twisted).T, strict=True):
        innovations, log_chance = _judge(task, twisted.transitions, rewards)
        assert total + log_weight == pytest.approx(log_chance - dense.log_density(innovations), abs=1e-6)


def twisted_of(task):
    """Return the approximations of a record."""
    return twist_log(task.rule, task.belief, task.readings, task.horizons[0], task.known_rewards(), task.seed)


def rewards_of(task, twisted):
    """Return every reward that a filter proposes, (rounds, particles), without resampling.

    The random numbers depend on the step alone, so runs over longer and longer parts of a record agree.
    """
    means, (sums, before) = np.tile(twisted.transitions.start, (task.particles, 1)), task.known_rewards()
    past, rows = np.tile(sums, (task.particles, 1)), []
    for which, reading in enumerate(task.readings):
        previous = np.zeros((task.particles, sums.size))
        for end in range(1, reading.arm.size + 1):
            memories, moved = np.zeros((task.particles, sums.size, task.rule.columns)), means.copy()
            cloud = new_cloud(task.belief, past.copy(), before.copy(), end, np.zeros(0, np.int64), task.seed, which)
            part = reading._replace(arm=reading.arm[:end], rewards=reading.rewards[:end])
            arguments = (part, cloud, memories, moved, twisted.firsts[which], task.rule.score)
            parameters = task.rule.parameters(task.horizons[which])
            filter_twisted(parameters, *arguments, twisted.transitions, twisted.sites, twisted.twist)
            rows.append((cloud.sums - previous)[:, reading.arm[end - 1]])
            previous = cloud.sums
        means, past = moved, cloud.past + cloud.sums
        before = cloud.before + np.bincount(reading.arm, minlength=before.size)
    return np.array(rows)


def _judge(task, transitions, rewards):
    """Return the innovations behind rewards, and the log probability of the actions, in plain Python."""
    expected, innovations, total, at = transitions.start.copy(), np.zeros(len(rewards)), 0.0, 0
    for which, reading in enumerate(task.readings):
        arms = expected.size
        pulls, memory = np.zeros(arms, np.int64), np.zeros((arms, task.rule.columns))
        parameters = task.rule.parameters(task.horizons[which])
        for step, arm in enumerate(reading.arm):
            if step >= reading.opening and (step - reading.opening) % task.rule.batch == 0:
                seen, seen_memory, decided = pulls.copy(), memory.copy(), step + 1
            if step >= reading.opening:
                total += math.log(probability(parameters, seen, seen_memory, decided, arm))
            if transitions.noise[at] > 0:
                innovations[at] = (rewards[at] - expected[arm]) / transitions.noise[at]
                expected[arm] += transitions.learns[at] * (rewards[at] - expected[arm])
            learn(parameters, pulls, memory, step + 1, arm, rewards[at])
            memory[arm, 0] += rewards[at]
            pulls[arm] += 1
            at += 1
    return innovations, total


@pytest.mark.parametrize("bernoulli", [False, True])
@pytest.mark.parametrize("text", RULES)
def test_the_compiled_filter_is_its_plain_python(text, bernoulli):
    task = task_of(text, particles=6, rounds=10, bernoulli=bernoulli)
    twisted = twisted_of(task)[0]
    outcomes = []
    for run in (filter_twisted, filter_twisted.py_func):
        past, before = np.zeros((6, 3)), np.zeros(3)
        cloud = new_cloud(task.belief, past, before, 10, np.array([4, 9]), 1, 0)
        memories, means = np.zeros((6, 3, task.rule.columns)), np.tile(twisted.transitions.start, (6, 1))
        arguments = (task.readings[0], cloud, memories, means, 0, task.rule.score)
        with np.errstate(over="ignore"):
            assert run(task.rule.parameters(10), *arguments, twisted.transitions, twisted.sites, twisted.twist) == 0
        outcomes.append([cloud.sums, cloud.log_weights, cloud.increments, cloud.kept_sums, means, memories])
    for compiled, plain in zip(*outcomes, strict=True):
        assert compiled == pytest.approx(plain, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("text", RULES)
def test_an_expansion_has_the_derivatives_of_the_log_probability(text):
    """By central differences; its value is that of `probability`, and it is concave."""
    rule = ub.parse_rule(text).for_arms(3)
    generator, parameters = np.random.default_rng(2), rule.parameters(50)
    for _ in range(20):
        pulls = generator.integers(1, 30, 3)
        scores = pulls * generator.uniform(0.2, 0.8, 3) if rule.score == 0 else generator.normal(0, 0.5, 3)
        arm, slope, bend = int(generator.integers(3)), np.empty(3), np.empty((3, 3))
        value = log_expansion(parameters, pulls, scores, 7, arm, slope, bend)
        memory = np.zeros((3, rule.columns))
        memory[:, rule.score] = scores
        assert value == pytest.approx(math.log(probability(parameters, pulls, memory, 7, arm)), abs=2e-2)
        for each in range(3):
            step = 1e-4 * np.eye(3)[each]
            sides = [np.empty(3), np.empty(3)]
            ends = [log_expansion(parameters, pulls, scores + sign * step, 7, arm, side, np.empty((3, 3)))
                    for sign, side in zip((1, -1), sides, strict=True)]  # fmt: skip
            assert slope[each] == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=0.02 * (1 + abs(slope).max()))
            assert bend[each] == pytest.approx((sides[1] - sides[0]) / 2e-4, abs=0.02 * (1 + abs(bend).max()))
        assert np.linalg.eigvalsh(bend).min() > -1e-3 * (1 + abs(bend).max())
        assert bend == pytest.approx(bend.T, abs=1e-9)


def test_an_expansion_is_a_number_where_the_probability_is_none():
    for text, scores in (("thompson:sigma=0.5", [2e3, -1e3, 0.0]), ("softmax:temperature=0.01", [900.0, -900.0, 1.0])):
        rule, slope, bend = ub.parse_rule(text), np.empty(3), np.empty((3, 3))
        value = log_expansion(rule.parameters(9), np.array([9, 9, 9]), np.array(scores), 9, 1, slope, bend)
        assert value < -700
        assert np.isfinite(slope).all()
        assert np.isfinite(bend).all()
        assert slope[1] > 0 > slope[0]


def test_newton_finds_the_mode():
    """There, the gradient with respect to the innovations is 0."""
    task = task_of("softmax:temperature=0.05", arms=4, rounds=60)
    parameters = task.rule.parameters(60)
    transitions = transitions_of(task.rule, parameters, task.belief, task.readings, task.known_rewards())
    fit = _Fit(parameters, transitions, task.readings[0].round)
    fit.climb()
    dense = DensePath(transitions, Sites(*(each.copy() for each in fit.sites)))
    scores = fit.sites.centre
    innovations = np.linalg.lstsq(dense.maps.reshape(-1, 60), (scores - dense.base).ravel(), rcond=None)[0]
    assert dense.base + dense.maps @ innovations == pytest.approx(scores, abs=1e-8)
    gradient = sum(dense.maps[at].T @ fit.sites.slope[at] for at in range(60)) - innovations
    assert abs(gradient).max() < 0.1  # ended within a hundredth of the largest log density


@pytest.mark.parametrize("text", ["thompson:sigma=0.5", "softmax:temperature=0.3", "learning-softmax:rate=0.3"])
def test_it_agrees_with_a_long_run_of_the_other_filter(text, monkeypatch):
    rule, log = record_of(text, arms=3, rounds=120)
    belief = belief_for()
    monkeypatch.setattr(clouds, "MOST_PILOTED", 0)  # rounds are predicted by normal states
    twisted = run_filters(log, rule, belief, [120], 500, 4, 1, None)
    monkeypatch.setattr(clouds, "can_twist", lambda *given, **options: False)
    monkeypatch.setattr(filters, "TRIES", 1)
    monkeypatch.setattr(type(rule), "smooth", False)  # without moves of offspring, which are an approximation
    long = run_filters(log, rule, belief, [120], 10_000, 4, 1, None)
    (one, first), (two, second) = _summary(twisted), _summary(long)
    assert one == pytest.approx(two, abs=0.05 + 4 * filters.log_mean(long.evidences)[1])
    assert first == pytest.approx(second, abs=0.08)
    assert twisted.evidences.std() < 0.2
    # Laplace's method is off by a tenth on average, and by more where an action is hardly ever seen
    assert twisted.surprise[2:] == pytest.approx(long.surprise[2:], abs=1.5)
    assert abs(twisted.surprise - long.surprise)[2:].mean() < 0.15
    assert twisted.surprise.argmin() == long.surprise.argmin()


def _summary(result):
    """Return the log of the mean evidence, and every sum's expectation per pull."""
    means = []
    for (last,) in result.passes:
        assert isinstance(last, FilterPass)
        weights = np.exp(last.cloud.log_weights - last.cloud.log_weights.max())
        means.append(weights @ last.cloud.sums / weights.sum() / last.pulls)
    return filters.log_mean(result.evidences)[0], np.mean(means, axis=0)


def test_rounds_of_unknown_probability_are_not_named(monkeypatch):
    """Where predictions miss the evidence of the log, `identify` names no rounds."""
    rule, log = record_of("softmax:temperature=0.3", rounds=60)
    assert np.isfinite(run_filters(log, rule, belief_for(), [60], 100, 2, 1, 1).surprise).all()
    assert ub.identify(log, "softmax:temperature=0.3", sigma=SIGMA, particles=100).surprises
    monkeypatch.setattr(clouds, "CLOSE", 0.0)  # so that no small cloud predicts
    monkeypatch.setattr("unbandit.identification.evidence.CLOSE", 0.0)
    monkeypatch.setattr(clouds, "predict_log", lambda *_: np.full(60, -2.0))
    assert np.isnan(run_filters(log, rule, belief_for(), [60], 100, 2, 1, 1).surprise).all()
    assert not ub.identify(log, "softmax:temperature=0.3", sigma=SIGMA, particles=100).surprises


def test_predictions_restart_with_each_demonstration_and_know_the_past():
    """Compiled and as plain Python; the first demonstration as if it were alone, the second given the first."""
    task = task_of("softmax:temperature=0.2", runs=2, rounds=30)
    both, plain, alone = np.empty(60), np.empty(60), np.empty(30)
    twisted = twisted_of(task)[0]
    rounds = np.concatenate([each.round for each in task.readings])
    for run, values in ((predict_actions, both), (predict_actions.py_func, plain)):
        run(task.rule.parameters(30), twisted.transitions, rounds, 6, values)
    assert both == pytest.approx(plain, abs=1e-9)
    one = task_of("softmax:temperature=0.2", rounds=30)
    predict_actions(one.rule.parameters(30), twisted_of(one)[0].transitions, one.readings[0].round, 3, alone)
    assert both[:30] == pytest.approx(alone, abs=1e-6)
    assert (both[[0, 1, 2, 30, 31, 32]] == 0).all()
    again = twisted.transitions._replace(arm=np.tile(twisted.transitions.arm[:30], 2))
    predict_actions(task.rule.parameters(30), again, rounds, 6, both)
    assert both[30:].sum() > both[:30].sum() + 0.5


def test_the_path_of_pooled_logs_is_that_of_the_first_demonstration_alone():
    rule, log = record_of("thompson:sigma=0.5", rounds=40, runs=3)
    options = {"sigma": SIGMA, "prior": PRIOR, "particles": 100, "check": False}
    pooled, first = ub.posterior(log, rule, pool=True, **options), ub.posterior(log.select(0), rule, **options)
    assert pooled.path_rounds[-1] == 40
    assert np.array_equal(pooled.path, first.path, equal_nan=True)
    assert pooled.draws.std(axis=0).mean() < first.draws.std(axis=0).mean()


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_known_rewards_raise_no_doubt_where_particles_know_them():
    """Only where clouds go forwards does the level rest on the few values that a cloud holds."""
    rule, log = record_of("softmax:temperature=0.3", rounds=40, known=(5, 6, 7))
    options = {"sigma": SIGMA, "prior": PRIOR, "particles": 100, "check": False}
    looking, forwards = (ub.posterior(log, each, **options) for each in (rule, "epsilon-greedy:epsilon=0.3"))
    assert "level-from-rewards" not in [notice.code for notice in looking.warnings]
    assert "level-from-rewards" in [notice.code for notice in forwards.warnings]


def test_clouds_take_two_good_approximations_in_turn():
    """So that an error of one of them shows; where the second is worse, all clouds take the best."""
    rule, log = record_of("softmax:temperature=0.3", rounds=60)
    found = run_filters(log, rule, belief_for(), [60], 100, 4, 1, 1)
    first, second = found.look_ahead.twists
    assert not np.array_equal(first.sites.bend, second.sites.bend)
    alone = run_filters(
        log, rule, belief_for(), [60], 100, 4, 1, 1, look_ahead=replace(found.look_ahead, twists=(first,))
    )
    assert np.array_equal(alone.evidences[::2], found.evidences[::2])
    assert not np.isclose(alone.evidences[1::2], found.evidences[1::2]).any()


def test_evidence_is_unbiased_whatever_the_sites_are():
    """Sites at random, and wide: the mean of the evidences of many small clouds is the same. 4 standard errors."""
    task = task_of("softmax:temperature=0.5", particles=40, rounds=8)
    good = twisted_of(task)[-1]
    noise = np.random.default_rng(3).normal(0, 0.3, good.sites.slope.shape)
    sites = Sites(good.sites.centre, good.sites.slope + noise, 0.3 * good.sites.bend)
    twist = Twist(*(each.copy() for each in good.twist))
    bad = replace(good, sites=sites, twist=twist, log_start=solve_twist(good.transitions, sites, twist, UNRECORDED))
    by_twist = []
    for twisted in (good, bad):
        small = replace(task, twists=(twisted,))
        by_twist.append(np.exp([filters.log_evidence_of(small.run(cloud)) for cloud in range(400)]))
    errors = [each.std() / math.sqrt(each.size) for each in by_twist]
    assert errors[1] > 2 * errors[0]
    assert abs(by_twist[0].mean() - by_twist[1].mean()) < 4 * math.hypot(*errors)


def test_a_log_too_large_for_its_sites_is_filtered_forwards():
    rule, log = record_of("softmax:temperature=0.3")
    steps = [reading_of(log, 0, rule, 14)]
    assert can_twist(rule, steps, 3)
    assert not can_twist(rule, steps, 10_000)
    assert not can_twist(ub.parse_rule("exp3"), steps, 3)
    assert not can_twist(ub.Thompson(noise="bernoulli"), steps, 3)


def test_choices_that_leave_nothing_to_chance_are_filtered_forwards():
    """The log probability has edges there, which no quadratic function follows."""
    rule, belief = ub.Thompson(sigma=0.02), belief_of(ub.NormalPrior(0, 1), 4, ub.Gaussian(SIGMA), None)
    log = rule.demonstrate(ub.Instance(np.random.default_rng(3).normal(0, 1, 4), SIGMA), 500, seed=3)
    assert not run_filters(log, rule, belief, [500], 200, 2, 1, None).twisted


def test_an_impossible_record_is_refused():
    """Known rewards show that one arm is better by far, and the rule pulls the other: no particle survives."""
    log = ub.ActionLog.from_actions([[0, 1] * 15], rewards=[np.tile([1e3, 0.0], 15)])
    with pytest.raises(ub.InferenceError, match="none of 20 particles"):
        run_filters(log, ub.Thompson(sigma=1e-3), belief_for(2), [30], 20, 1, 1, 1)
