"""The filter of Beta draws: right whatever it looks ahead by, and what it learns is a weighted regression."""

from __future__ import annotations

import numpy as np
import pytest
from reference_posterior import exact_posterior

import unbandit as ub
from unbandit.inference import filter as filters
from unbandit.inference import lookahead
from unbandit.inference.clouds import run_filters
from unbandit.inference.filter import new_cloud
from unbandit.inference.lookahead import BernoulliLog, bernoulli_log, half_each
from unbandit.inference.steps import steps_of
from unbandit.kernels.smc.bernoulli import RIDGE, Lookahead, Visits, filter_bernoulli
from unbandit.kernels.smc.cloud import Belief

RULE = ub.Thompson(noise="bernoulli", successes=1.0, failures=2.0)
ACTIONS = [0, 1, 2, 0, 0, 1, 0, 0, 2]


def read(actions=ACTIONS, arms=3):
    actions = np.array(actions)
    steps = steps_of(actions, np.full(actions.size, np.nan), tuple(map(str, range(arms))), 0, 1)
    return bernoulli_log((1.0, 2.0), [steps], arms), steps


def some_lookahead(rounds, arms, rng):
    """Return functions that have nothing to do with the log; they end with 1 after the last round."""
    centre, slope = rng.uniform(0.5, 1, (rounds + 1, arms)), rng.normal(0, 0.3, (rounds + 1, arms))
    bend = rng.normal(0, 0.1, (rounds + 1, arms, arms))
    slope[rounds], bend[rounds] = 0, 0
    flat = np.full((rounds + 1, arms), 2.0)
    constant = np.append(rng.normal(0, 1, rounds), 0.0)
    return Lookahead(centre, flat, -flat, flat, constant, slope, bend + bend.transpose(0, 2, 1))


def start_of(look, arms):
    """Return the log of a look-ahead at the state before any pull."""
    z = np.clip((np.pi / 4 - look.centre[0]) * look.scale[0], look.lowest[0], look.highest[0])
    return look.constant[0] + look.slope[0] @ z + z @ look.bend[0] @ z


def evidence_of(log, steps, look, particles, name, function=filter_bernoulli):
    arms = look.centre.shape[1]
    belief = Belief(True, np.full(arms, 1.5), np.full(arms, 1.0), 1.0)
    cloud = new_cloud(
        belief, np.zeros((particles, arms)), np.zeros(arms), steps.arm.size, np.zeros(0, np.int64), 5, name
    )
    start = start_of(look, arms) if look.centre.size else 0.0
    died = function(1.0, 2.0, steps, cloud, 1, 0, np.full(particles, start), look, log.visits(0))
    assert died == 0
    return cloud.increments.sum() + start, cloud


def test_any_lookahead_gives_the_evidence_of_counting():
    log, steps = read()
    expected, means = exact_posterior(RULE, [ACTIONS], 3, (1.5, 1.0), 9)
    look = some_lookahead(len(ACTIONS), 3, np.random.default_rng(1))
    pulls = np.bincount(ACTIONS)
    for each in (log.lookahead, look):
        found, cloud = evidence_of(log, steps, each, 20_000, 1)
        assert found == pytest.approx(expected, abs=0.03)
        weights = np.exp(cloud.log_weights)
        drawn = np.average((1.5 + cloud.sums) / (2.5 + pulls), weights=weights, axis=0)
        assert drawn == pytest.approx(means, abs=0.01)


def test_the_compiled_filter_is_its_plain_python():
    log, steps = read()
    look = some_lookahead(len(ACTIONS), 3, np.random.default_rng(2))
    compiled, cloud = evidence_of(log, steps, look, 7, 3)
    plain, reference = evidence_of(log, steps, look, 7, 3, filter_bernoulli.py_func)
    assert compiled == pytest.approx(plain, rel=1e-9)
    assert np.array_equal(cloud.sums, reference.sums)


def reference_fit(log, visits):
    """Return values of the look-ahead at the visited states, round by round, by least squares in plain NumPy."""
    rounds, number, size = visits.angles.shape
    pairs = log.pairs

    def features(z):
        return np.column_stack([np.ones(len(z)), z, z[:, pairs[:, 0]] * z[:, pairs[:, 1]]])

    after, values = None, [np.zeros(number)] * rounds
    for at in range(rounds - 1, -1, -1):
        angles = visits.angles[at].astype(float)
        targets = visits.log_chances[at].astype(float)
        success = visits.success[at].astype(float)
        both = []
        for reward in range(2):
            state = angles.copy()
            state[:, log.arms[at]] = visits.after[at, :, reward]
            both.append(np.zeros(number) if after is None else after(state))
        targets += np.logaddexp(np.log1p(-success) + both[0], np.log(success) + both[1])
        power, weights = 0.5, np.exp(0.5 * (targets - targets.max()))
        while weights.sum() ** 2 <= 10 * (1 + size + len(pairs)) * (weights**2).sum():
            power *= 0.6
            weights = np.exp(power * (targets - targets.max()))
        share = weights / weights.sum()
        centre = share @ angles
        deviation = np.sqrt(share @ (angles - centre) ** 2)
        scale = np.where(deviation > 1e-6, 1 / np.maximum(deviation, 1e-6), 0.0)
        low, high = (angles.min(axis=0) - centre) * scale - 0.5, (angles.max(axis=0) - centre) * scale + 0.5
        x = features((angles - centre) * scale)
        # What the following round's function is in these coordinates, unclipped.
        grid = np.random.default_rng(0).normal(0, 1, (200, size))
        away = centre + np.where(scale > 0, grid / np.where(scale > 0, scale, 1), 0)
        carried = np.zeros(x.shape[1])
        if after is not None:
            varies = np.concatenate([[True], scale > 0, (scale[pairs[:, 0]] > 0) & (scale[pairs[:, 1]] > 0)])
            carried[varies] = np.linalg.lstsq(features(grid)[:, varies], after(away, clip=False), rcond=None)[0]
        penalty = RIDGE * weights.sum() * np.diag([0.0, *np.ones(x.shape[1] - 1)])
        terms = np.linalg.solve((x.T * weights) @ x + penalty, (x.T * weights) @ targets + penalty @ carried)

        def after(state, clip=True, centre=centre, scale=scale, low=low, high=high, terms=terms):
            z = (state - centre) * scale
            return features(np.clip(z, low, high) if clip else z) @ terms

        values[at] = after(angles)
    return values


def test_what_is_learnt_is_a_weighted_regression():
    rng = np.random.default_rng(3)
    actions = rng.integers(0, 3, 25).tolist()
    log, steps = read(actions)
    visits = log.visits(400)
    belief = Belief(True, np.ones(3), np.ones(3), 1.0)
    cloud = new_cloud(belief, np.zeros((400, 3)), np.zeros(3), 25, np.zeros(0, np.int64), 1, 1)
    filter_bernoulli(1.0, 2.0, steps, cloud, 1, 0, np.zeros(400), log.lookahead, visits)
    look, expected = log.learn(visits), reference_fit(log, visits)
    for at in (0, 3, 11, 24):
        z = np.clip((visits.angles[at] - look.centre[at]) * look.scale[at], look.lowest[at], look.highest[at])
        value = look.constant[at] + z @ look.slope[at] + np.einsum("ni,ij,nj->n", z, look.bend[at], z)
        assert value == pytest.approx(expected[at], abs=1e-4)


def test_a_poor_lookahead_is_not_used(monkeypatch):
    log = RULE.demonstrate(ub.Instance([0.8, 0.5, 0.4], ub.Bernoulli()), 60, seed=1)
    belief = Belief(True, np.ones(3), np.ones(3), 1.0)
    usual = run_filters(log, RULE, belief, [60], 300, 4, 1, 1)
    rounds = log.actions.size

    def spoilt(self, visits):
        look = some_lookahead(rounds, 3, np.random.default_rng(4))
        return look._replace(
            slope=40 * look.slope, scale=np.where(np.arange(rounds + 1)[:, None] > 0, 2.0, 0.0) + 0 * look.scale
        )

    monkeypatch.setattr(BernoulliLog, "learn", spoilt)
    used = []
    original = filters.CloudFilter.run
    monkeypatch.setattr(filters.CloudFilter, "run", lambda self, cloud: used.append(self) or original(self, cloud))
    without = run_filters(log, RULE, belief, [60], 300, 4, 1, 1)
    assert used[-1].bernoulli.lookahead.centre.shape[0] == 0
    assert without.evidences.mean() == pytest.approx(usual.evidences.mean(), abs=0.5)


def test_a_log_that_is_too_long_is_filtered_without(monkeypatch):
    log, _ = read()
    assert log.visitors() == lookahead.VISITORS
    monkeypatch.setattr(lookahead, "MOST_VISITED", 1_000)
    assert log.visitors() == 0
    record = ub.ActionLog.from_actions([ACTIONS])
    found = ub.posterior(
        record, RULE, prior=ub.BetaPrior(1.5, 1.0), bernoulli=True, particles=4_000, seed=1, check=False
    )
    expected, _ = exact_posterior(RULE, [ACTIONS], 3, (1.5, 1.0), 9)
    assert found.log_evidence == pytest.approx(expected, abs=0.05)


def test_many_arms_have_more_particles_and_no_look_ahead():
    few, _ = read([0, 1, 2, 3] * 5, 4)
    many, _ = read([*range(12), *[3] * 9, *[7] * 5], 12)
    assert len(few.pairs) == 10
    assert few.visitors() == lookahead.VISITORS
    assert many.visitors() == 0
    log = ub.ActionLog.from_actions([[*range(12), *[3] * 3_000]])
    belief = Belief(True, np.ones(12), np.ones(12), 1.0)
    result = run_filters(log, RULE, belief, [3_012], None, 2, 1, 1)
    assert not result.twisted
    steps = log.actions.size
    assert result.passes[0][0].cloud.sums.shape[0] == int(65 / 12 * (1_500_000 // steps))


def test_half_of_the_first_visits_and_all_of_the_second():
    first = Visits(*(np.full((2, 6, *shape), 1, np.float32) for shape in ((3,), (2,), (), ())))
    second = Visits(*(np.full((2, 3, *shape), 2, np.float32) for shape in ((3,), (2,), (), ())))
    assert half_each(first, second).success.tolist() == [[1, 1, 1, 2, 2, 2]] * 2


def test_a_log_too_long_for_tables_of_betas_gives_the_same_evidence(monkeypatch):
    rule = ub.Thompson(noise="bernoulli")
    log = rule.demonstrate(ub.Instance([0.7, 0.3], ub.Bernoulli()), 30, seed=1)
    asked = {"bernoulli": True, "particles": 2_000, "check": False}
    by_tables = ub.posterior(log, rule, **asked)
    monkeypatch.setattr(filters, "MOST_TABLED", 10)
    assert ub.posterior(log, rule, **asked).log_evidence == pytest.approx(by_tables.log_evidence, abs=0.15)
