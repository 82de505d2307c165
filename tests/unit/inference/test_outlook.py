"""The filter of EXP3: right whatever it looks ahead by, and what it looks ahead by is Gaussian algebra along a path."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference_posterior import exact_posterior

import unbandit as ub
from unbandit.inference import clouds, lookahead
from unbandit.inference.clouds import run_filters
from unbandit.inference.filter import CloudFilter, new_cloud
from unbandit.inference.lookahead import OutlookLog, has_outlook, outlooks_of, reward_paths
from unbandit.inference.steps import steps_of
from unbandit.inference.twist import transitions_of
from unbandit.kernels.formula import log_expansion, probability
from unbandit.kernels.smc.cloud import Belief
from unbandit.kernels.smc.outlook import Outlook, filter_outcomes, innovations_of, play_path, solve_outlook

RULE = ub.EXP3(mixing=0.3)
ACTIONS = [0, 1, 2, 0, 0, 1, 0, 0, 2]
PARAMETERS = RULE.parameters(9)
BELIEF = Belief(True, np.full(3, 1.5), np.full(3, 1.0), 1.0)


def read(actions=ACTIONS, rewards=None):
    actions = np.array(actions)
    rewards = np.full(actions.size, np.nan) if rewards is None else np.array(rewards, float)
    return steps_of(actions, rewards, ("0", "1", "2"), 0, 1)


def moves(steps):
    return transitions_of(RULE, PARAMETERS, BELIEF, steps, (np.zeros(3), np.zeros(3)))


def some_outlook(rounds, paths, rng):
    """Return functions that have nothing to do with the log; they end with 1 after the last round."""
    shape, scale = (paths, rounds + 1, 6), np.array([0.05] * 3 + [0.8] * 3)
    slope, bend = rng.normal(0, 1, shape) * scale, np.zeros((*shape, 6))
    bend[...] = np.diag(scale**2)
    bend[:, :, 0, 4] = bend[:, :, 4, 0] = 0.01
    constant = rng.normal(0, 1, shape[:2])
    slope[:, rounds], bend[:, rounds], constant[:, rounds] = 0, 0, -math.log(paths)
    return Outlook(rng.uniform(0, 1, shape), constant, slope, bend)


def value_of(outlook, at, state):
    z = state - outlook.centre[:, at]
    bent = np.einsum("pi,pij,pj->p", z, outlook.bend[:, at], z)
    return np.logaddexp.reduce(outlook.constant[:, at] + np.einsum("pi,pi->p", outlook.slope[:, at], z) - bent / 2)


def evidence_of(steps, outlook, particles, name, function=filter_outcomes, known=None):
    past, before = (np.zeros(3), np.zeros(3)) if known is None else known
    cloud = new_cloud(
        BELIEF, np.tile(past, (particles, 1)), before.copy(), steps.arm.size, np.zeros(0, np.int64), 5, name
    )
    means = (BELIEF.first + past) / (BELIEF.first + BELIEF.second + before)
    start = value_of(outlook, 0, np.concatenate([np.zeros(3), means]))
    memories = np.zeros((particles, 3, 3))
    assert function(PARAMETERS, steps, cloud, memories, 1, 1, 0, np.full(particles, start), outlook) == 0
    return cloud.increments.sum() + start, cloud


@pytest.mark.parametrize("paths", [1, 2])
def test_any_outlook_gives_the_evidence_of_counting(paths):
    expected, means = exact_posterior(RULE, [ACTIONS], 3, (1.5, 1.0), 9)
    found, cloud = evidence_of(read(), some_outlook(len(ACTIONS), paths, np.random.default_rng(1)), 20_000, 1)
    assert found == pytest.approx(expected, abs=0.03)
    drawn = np.average((1.5 + cloud.sums) / (2.5 + np.bincount(ACTIONS)), weights=np.exp(cloud.log_weights), axis=0)
    assert drawn == pytest.approx(means, abs=0.01)


def test_known_rewards_are_those_that_particles_have():
    rewards = [math.nan, 1, math.nan, 0, 1, math.nan, math.nan, 1, math.nan]
    known = {at: int(value) for at, value in enumerate(rewards) if not math.isnan(value)}
    sums, counts = np.array([2.0, 1, 0]), np.array([3.0, 1, 0])
    outlook = some_outlook(len(ACTIONS), 2, np.random.default_rng(2))
    found, cloud = evidence_of(read(rewards=rewards), outlook, 20_000, 2, known=(sums, counts))
    assert found == pytest.approx(exact_posterior(RULE, [ACTIONS], 3, (1.5, 1.0), 9, known)[0], abs=0.03)
    assert (cloud.before == 0).all()
    assert (cloud.past == 0).all()
    assert (cloud.sums >= sums).all()


def test_the_compiled_filter_is_its_plain_python():
    outlook = some_outlook(len(ACTIONS), 2, np.random.default_rng(3))
    compiled, cloud = evidence_of(read(), outlook, 7, 3)
    plain, reference = evidence_of(read(), outlook, 7, 3, filter_outcomes.py_func)
    assert compiled == pytest.approx(plain, rel=1e-9)
    assert np.array_equal(cloud.sums, reference.sums)


def test_derivatives_of_the_mixed_shares():
    gains, pulls = np.array([3.0, 5.0, 1.0]), np.ones(3, np.int64)

    def log_chance(gains, arm):
        return math.log(probability(PARAMETERS, pulls, np.column_stack([gains, gains, gains]), 4, arm))

    information, step, slopes = np.zeros((3, 3)), 1e-5, []
    for arm in range(3):
        slope, bend = np.empty(3), np.empty((3, 3))
        assert log_expansion(PARAMETERS, pulls, gains, 4, arm, slope, bend) == pytest.approx(log_chance(gains, arm))
        numeric = [(log_chance(gains + d, arm) - log_chance(gains - d, arm)) / (2 * step) for d in step * np.eye(3)]
        assert slope == pytest.approx(numeric, rel=1e-5)
        slopes.append(slope)
    for arm, slope in enumerate(slopes):
        information += math.exp(log_chance(gains, arm)) * np.outer(slope, slope)
    assert bend == pytest.approx(information, rel=1e-9)


@pytest.mark.parametrize("second", [None, [1, 0, 2, 2]])
def test_an_outlook_is_dense_gaussian_algebra_along_the_path(second):
    steps = [read([0, 1, 2, 0, 1])] + ([] if second is None else [read(second)])
    transitions, rng = moves(steps), np.random.default_rng(4)
    rounds, share = transitions.arm.size, 0.7
    innovations = rng.normal(0, 0.5, rounds)

    def path_of(innovations):
        path = np.zeros((rounds + 1, 6))
        return play_path(PARAMETERS, transitions, 3, 1, innovations, path), path

    value, path = path_of(innovations)
    outlook = Outlook(
        path[None].copy(), np.zeros((1, rounds + 1)), np.zeros((1, rounds + 1, 6)), np.zeros((1, rounds + 1, 6, 6))
    )
    aim = np.zeros(rounds)
    solve_outlook(PARAMETERS, transitions, innovations, share, outlook, 0, aim)
    step = 1e-5
    maps = [(path_of(innovations + d)[1] - path_of(innovations - d)[1]) / (2 * step) for d in step * np.eye(rounds)]
    maps = np.stack(maps, axis=-1)[:-1, :3]  # of the gains before each round
    precision, linear, constant = np.eye(rounds), -innovations.copy(), -0.5 * innovations @ innovations
    for at, arm in enumerate(transitions.arm):
        slope, bend = np.empty(3), np.empty((3, 3))
        constant += log_expansion(PARAMETERS, np.ones(3, np.int64), path[at, :3], 1, arm, slope, bend)
        precision += share * maps[at].T @ bend @ maps[at]
        linear += maps[at].T @ slope
    assert constant == pytest.approx(value)
    mode = np.linalg.solve(precision, linear)
    constant += 0.5 * linear @ mode - 0.5 * np.linalg.slogdet(precision)[1]
    assert outlook.constant[0, 0] == pytest.approx(constant, abs=1e-4)
    assert aim == pytest.approx(innovations + mode, abs=1e-4)
    plain = Outlook(*(each.copy() for each in outlook))
    solve_outlook.py_func(PARAMETERS, transitions, innovations, share, plain, 0, aim.copy())
    assert all(one == pytest.approx(other, rel=1e-9, abs=1e-12) for one, other in zip(plain, outlook, strict=True))


def test_innovations_make_the_rewards_that_they_come_from():
    transitions, rewards = moves([read()]), np.array([1, 0, math.nan, 1, 0.5, 1, 0, 0, 1])
    innovations, path = np.zeros(9), np.zeros((10, 6))
    innovations_of(transitions, rewards, innovations)
    play_path(PARAMETERS, transitions, 3, 1, innovations, path)
    own = path[np.arange(9), 3 + np.array(ACTIONS)] + transitions.noise * innovations
    assert own[~np.isnan(rewards)] == pytest.approx(rewards[~np.isnan(rewards)])
    assert innovations[2] == 0


def test_rewards_between_marks_have_the_mean_that_a_path_has_there():
    arm, marks = np.array([0, 1, 0, 0, 1, 1]), np.array([2, 5])
    counts = np.array([[2, 1], [3, 3]])
    means = np.array([[[0.5, 1.0]], [[2 / 3, 1 / 3]]])
    (path,) = reward_paths(arm, marks, counts, means)
    assert path == pytest.approx([0.5, 1, 0.5, 1, 0, 0])


def some_log(seed=1, horizon=200):
    return ub.EXP3().demonstrate(ub.Instance([0.9, 0.6, 0.2], ub.Bernoulli()), horizon, seed=seed)


def test_clouds_agree_far_better_than_without(monkeypatch):
    log = ub.EXP3().demonstrate(ub.Instance(np.linspace(0.9, 0.1, 10), ub.Bernoulli()), 1_000, seed=1)
    belief = Belief(True, np.ones(10), np.ones(10), 1.0)
    looking = run_filters(log, ub.EXP3(), belief, [1_000], 150, 4, 1, 1)
    monkeypatch.setattr(lookahead, "MOST_OUTLOOK", 1_000)
    assert not has_outlook(ub.EXP3(), [read()] * 4, 3)
    straight = run_filters(log, ub.EXP3(), belief, [1_000], 150, 4, 1, 1)
    assert looking.twisted
    assert not straight.twisted
    assert looking.evidences.std() < 0.5 * straight.evidences.std()
    assert looking.evidences.mean() == pytest.approx(straight.evidences.mean(), abs=4 * straight.evidences.std())
    assert looking.surprise.sum() == pytest.approx(looking.evidences.mean(), abs=10)


def test_a_poor_outlook_is_not_used(monkeypatch):
    log, belief = some_log(), Belief(True, np.ones(3), np.ones(3), 1.0)
    usual = run_filters(log, ub.EXP3(), belief, [200], 300, 4, 1, 1)
    spoilt = some_outlook(200, 1, np.random.default_rng(5))
    spoilt = spoilt._replace(slope=30 * spoilt.slope)
    monkeypatch.setattr(clouds, "outlooks_of", lambda *_: [OutlookLog(spoilt, (0,))])
    without = run_filters(log, ub.EXP3(), belief, [200], 300, 4, 1, 1)
    assert not without.twisted
    assert without.evidences.mean() == pytest.approx(usual.evidences.mean(), abs=0.5)


def test_paths_apart_are_added_and_equal_ones_are_not():
    """Rewards of arm 1 alone explain this log too, by another path than rewards as expected lead to."""
    rule = ub.EXP3(rate=0.3)
    log = rule.demonstrate(ub.Instance([0.9, 0.6, 0.2], ub.Bernoulli()), 200, seed=3)
    steps, expected = [read(log.actions)], np.full(200, math.nan)
    others = [np.where(log.demonstration(0) == arm, 1.0, 0.0) for arm in range(3)]
    for starts, paths in (([expected, expected], 1), ([expected, np.zeros(200), np.ones(200), *others], 2)):
        for each in outlooks_of(rule, BELIEF, steps, 200, (np.zeros(3), np.zeros(3)), starts):
            first = each.outlook.constant[:, 0]
            assert first.size == paths
            assert each.log_start == pytest.approx(np.logaddexp.reduce(first))
            assert value_of(each.outlook, 200, np.full(6, 2.0)) == pytest.approx(0)
    ends = each.outlook.centre[:, -1, 3:]
    assert np.abs(ends[0] - ends[1]).max() > 0.1


def test_a_rule_that_divides_rewards_otherwise_is_not_taken_for_its_parent():
    class Implicit(ub.EXP3):
        name = "exp3-implicit"

        @staticmethod
        def learn(parameters, pulls, memory, round, arm, reward):
            memory[arm, 1] += reward / 2

    log = ub.EXP3().demonstrate(ub.Instance([0.6, 0.4], ub.Bernoulli()), 20, seed=1)
    belief = Belief(True, np.ones(2), np.ones(2), 0.0)
    for rule, divides in ((ub.EXP3(), True), (Implicit(), False)):
        filters = CloudFilter(log, rule, belief, (20,), (), 10, 0, keep_paths=False)
        assert filters.divides_rewards == divides
