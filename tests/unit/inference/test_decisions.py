"""Decisions predicted one by one, against plain simulations; and scores that are standard normal."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats

import unbandit as ub
from unbandit.inference.decisions import (
    TOLERANCE,
    Decisions,
    Predictions,
    Residuals,
    by_evidence,
    decisions_of,
    predict,
    residuals,
    without_rule,
)
from unbandit.inference.prior import NormalPrior
from unbandit.instance import Gaussian
from unbandit.kernels.smc import decisions as kernel
from unbandit.log.availability import availability_of

SIGMA, DEVIATION, SIMULATIONS = 0.5, 0.8, 400_000


def simulated(arms: int, rounds: int, factor: float, by_round: bool) -> np.ndarray:
    """Play `mean + factor sqrt(1 / n)`, or with `ln t` for 1, as anybody would write it, at means from the prior."""
    generator = np.random.default_rng(1)
    scale = DEVIATION * np.sqrt(np.array(kernel.WIDENED)[np.arange(SIMULATIONS) % len(kernel.WIDENED)])
    means = scale[:, None] * generator.standard_normal((SIMULATIONS, arms))
    sums = means + SIGMA * generator.standard_normal((SIMULATIONS, arms))
    pulls, played = np.ones((SIMULATIONS, arms)), np.tile(np.arange(arms), (SIMULATIONS, 1))
    each = np.arange(SIMULATIONS)
    for round in range(arms + 1, rounds + 1):
        growth = math.log(round) if by_round else 1.0
        arm = (sums / pulls + factor * np.sqrt(growth / pulls)).argmax(axis=1)
        sums[each, arm] += means[each, arm] + SIGMA * generator.standard_normal(SIMULATIONS)
        pulls[each, arm] += 1
        played = np.column_stack([played, arm])
    return played


CASES = {
    "ucb": (ub.UCB(alpha=0.5, scale=0.6), 0.6 * math.sqrt(2 * (math.sqrt(7) - 1)), False),
    "ucb1": (ub.UCB1(exploration=0.8), math.sqrt(0.8), True),
}


@pytest.mark.parametrize("name", CASES)
def test_probabilities_are_those_of_plain_simulations(name: str) -> None:
    rule, factor, by_round = CASES[name]
    played = simulated(3, 7, factor, by_round)
    histories, counts = np.unique(played, axis=0, return_counts=True)
    for record in histories[np.argsort(-counts)[:4]]:
        log = ub.ActionLog.from_codes(record, ["a", "b", "c"])
        predicted = predict(log, rule, Gaussian(SIGMA), NormalPrior(0.0, DEVIATION), 7, 3_000, seed=2)
        found = np.mean((played == record).all(axis=1))
        assert predicted.log_evidence == pytest.approx(math.log(found), abs=0.05)
        for at, round in enumerate(range(3, 7)):
            alike = (played[:, :round] == record[:round]).all(axis=1)
            again = np.mean(played[alike, round] == record[round - 1])
            few = record[round] != record[round - 1]  # then only some particles are asked
            error = 4 * math.sqrt(again * (1 - again) / alike.sum()) + (0.1 if few else 0.01)
            assert predicted.repeats[at] == pytest.approx(again, abs=error)
            if few:
                shares = [np.mean(played[alike, round] == arm) for arm in range(3)]
                assert predicted.shares[at] == pytest.approx(shares, abs=0.1)


@pytest.mark.parametrize("arms", [3, 7])
def test_the_evidence_alone_is_the_same(arms: int) -> None:
    log = ub.UCB().demonstrate(ub.Instance(np.linspace(0.5, 1.0, arms), SIGMA), 200, seed=3)
    given = log, ub.UCB(), Gaussian(SIGMA), NormalPrior(0.0, 1.0), 200, 24
    every, alone = predict(*given), predict(*given, evidence_only=True)
    assert np.array_equal(every.increments, alone.increments)
    assert every.log_evidence == alone.log_evidence
    assert np.array_equal(every.means, alone.means)
    assert alone.repeats.size == alone.shares.size == 0


@pytest.mark.parametrize(("arms", "spread"), [(3, 1.0), (5, 0.3), (5, 0.01)])
@pytest.mark.parametrize("rule", [ub.UCB(), ub.UCB1(), ub.MOSS()])
def test_probabilities_of_all_arms_sum_to_one(rule: ub.AdditiveIndexRule, arms: int, spread: float) -> None:
    means = spread * np.random.default_rng(arms).standard_normal(arms)
    log = rule.demonstrate(ub.Instance(means, SIGMA), 400, seed=3)
    predicted = predict(log, rule, Gaussian(SIGMA), NormalPrior(0.0, max(spread, 0.1)), 400, 24)
    total = predicted.shares[~decisions_of(log).again].sum(axis=1)
    assert np.abs(total - 1).max() < 0.03


def test_an_arm_that_was_withdrawn_is_not_predicted_any_more() -> None:
    rule, there = ub.UCB1(), availability_of({"0": (None, 150)}, ("0", "1", "2", "3"))
    log = rule.demonstrate(ub.Instance([0.6, 0.3, 0.2, 0.0], SIGMA), 400, seed=3, availability=there)
    given = log, rule, Gaussian(SIGMA), NormalPrior(0.0, 1.0), 400, 24  # of whom all are asked
    predicted, decided = predict(*given, there=there), decisions_of(log, there=there)
    later, asked = np.arange(decided.chosen.size) >= 150 - 4, ~decided.again
    assert (predicted.shares[later & asked, 0] == 0).all()
    assert (predicted.shares[~later & asked, 0] > 0).any()
    assert np.abs(predicted.shares[asked].sum(axis=1) - 1).max() < 0.05
    assert predicted.repeats[150 - 4] < 0.01  # it was pulled in the round before, and cannot be again
    assert decided.before[150 - 4] == 0
    whole = availability_of({"0": (None, 400)}, log.arms)
    assert predict(*given, there=whole).log_evidence == predict(*given).log_evidence
    assert predict(*given).log_evidence < predicted.log_evidence - 5  # as if it had been there, and left alone


def coming_first(centres: np.ndarray, spreads: np.ndarray, bounds: np.ndarray) -> float:
    """Integrate the density of the first index times the probability that all others lie below it."""
    logs = stats.norm.logcdf((bounds - centres) / spreads)

    def density(level: float) -> float:
        below = stats.norm.logcdf((level - centres) / spreads) - logs
        return math.exp(stats.norm.logpdf(level, centres[0], spreads[0]) + below[1:][level < bounds[1:]].sum())

    top = min(bounds[0], centres[0] + 9 * spreads[0])
    bottom = min(centres[0], top) - 10 * spreads[0]
    bends = [at for at in {*bounds[1:], *centres[1:]} if bottom < at < top]
    return float(integrate.quad(density, bottom, top, points=bends, limit=400)[0])


def test_the_probability_of_coming_first_is_the_integral() -> None:
    """Widths that differ by two orders of magnitude, and bounds above and below what was expected."""
    generator, errors = np.random.default_rng(0), []
    for _ in range(60):
        arms = int(generator.integers(2, 6))
        centres, spreads = generator.standard_normal(arms), np.exp(generator.normal(-0.5, 1.0, arms))
        near = centres + 1.5 * spreads * generator.standard_normal(arms)
        bounds = np.where(generator.random(arms) < 0.5, math.inf, near)
        work = np.zeros((kernel.ROWS, kernel.NODES))
        for row, values in ((kernel.CENTRE, centres), (kernel.SPREAD, spreads), (kernel.BOUND, bounds)):
            work[row, :arms] = values
        work[kernel.LOG, :arms] = stats.norm.logcdf((bounds - centres) / spreads)
        count, log_chance = kernel.comes_first(0, arms, work)
        expected = coming_first(centres, spreads, bounds)
        errors.append(abs(math.exp(log_chance) - expected) / max(expected, 0.02))
        assert work[kernel.MASS, :count].sum() == pytest.approx(1.0)
    assert np.median(errors) < 1e-3
    assert max(errors) < 0.05


def test_few_particles_are_enough_for_many_arms() -> None:
    means = np.random.default_rng(2).standard_normal(40)
    rule = ub.UCB().for_arms(40)
    log = rule.demonstrate(ub.Instance(means, SIGMA), 300, seed=1)
    prior = NormalPrior(0.0, 1.0)
    few, many = (
        [predict(log, rule, Gaussian(SIGMA), prior, 300, number, seed=seed).log_evidence for seed in range(3)]
        for number in (60, 400)
    )
    assert np.mean(few) == pytest.approx(np.mean(many), abs=10)
    assert np.std(many) < 4


@pytest.mark.parametrize("seed", [2, 10, 11])
def test_no_rounding_makes_a_probability_undefined(seed: int) -> None:
    """MOSS has no width left at the end: whole intervals then have a probability of 0."""
    means, rule = np.random.default_rng(seed).standard_normal(4), ub.MOSS().for_arms(4)
    log = rule.demonstrate(ub.Instance(means, SIGMA), 2_000, seed=seed)
    predicted = predict(log, rule, Gaussian(SIGMA), NormalPrior(0.0, 1.0), 2_000, 24)
    assert np.isfinite(predicted.log_evidence)
    assert np.isfinite(predicted.repeats).all()


def test_batches_and_openings_are_steps() -> None:
    rule = ub.UCB1(batch=4, initial=2)
    log = rule.demonstrate(ub.Instance([1.0, 0.4, 0.0], SIGMA), 206, seed=1)
    predicted = predict(log, rule, Gaussian(SIGMA), NormalPrior(0.0, 1.0), 206, 50)
    assert predicted.repeats.size == decisions_of(log, 2, 4).chosen.size == 50
    assert ((predicted.repeats >= 0) & (predicted.repeats <= 1)).all()
    assert np.isfinite(predicted.log_evidence)


def test_choices_at_random_are_predicted_by_counts() -> None:
    decisions = decisions_of(ub.ActionLog.from_actions("ABAABABB"))
    predicted, counts = without_rule(decisions, 1e18), [0.5, 0.5]
    expected, value = [], 0.0
    for before, arm in itertools.pairwise("BAABABB"):
        expected.append(counts["AB".index(before)] / sum(counts))
        value += math.log(counts["AB".index(arm)] / sum(counts))
        counts["AB".index(arm)] += 1
    assert predicted.repeats.tolist() == pytest.approx(expected)
    assert predicted.log_evidence == pytest.approx(value)


@pytest.mark.parametrize("arms", [3, 8])
def test_scores_are_standard_normal_where_the_probabilities_are_right(arms: int) -> None:
    generator, largest, scores = np.random.default_rng(4), [], []
    for _ in range(200):
        number = 400
        chosen, before = np.zeros(number, np.int64), np.zeros(number, np.int64)
        repeats, other = np.zeros(number), np.zeros(number)
        columns = arms if arms <= 5 else 1
        shares, others = np.full((number, columns), np.nan), np.full((number, columns), np.nan)
        arm, leader = 0, np.zeros(number, np.int64)
        for at in range(number):
            own, theirs = (generator.dirichlet(np.ones(arms)) for _ in range(2))
            before[at] = arm
            leader[at] = (arm + 1) % arms
            repeats[at], other[at] = own[arm], theirs[arm]
            arm = int(generator.choice(arms, p=own))
            chosen[at] = arm
            shares[at] = own if columns > 1 else own[leader[at]]
            others[at] = theirs if columns > 1 else theirs[leader[at]]
        decisions = Decisions(chosen, before, leader, arms)
        right = Predictions(repeats, shares)
        found = residuals(decisions, (right, right), {"another": Predictions(other, others)})
        spreads = np.array([found.spreads[name] for name in found.names])
        scores.append(found.scores * np.sqrt(1 + (TOLERANCE * spreads) ** 2))
        largest.append(found.p_value())
    assert np.mean(scores, axis=0) == pytest.approx(0, abs=0.25)
    assert np.std(scores, axis=0) == pytest.approx(1, abs=0.2)
    assert np.mean(np.array(largest) <= 0.1) < 0.17


@pytest.mark.parametrize("number", [10, 200])
def test_evidence_of_another_rule_is_seldom_so_much_larger(number: int) -> None:
    """A fair coin against one that is not: the bound holds, and is not much too careful where there are many flips."""
    generator, found, theirs = np.random.default_rng(3), [], 0.6
    decisions = Decisions(np.zeros(number, np.int64), np.zeros(number, np.int64), np.ones(number, np.int64), 2)
    own = Predictions(np.full(number, 0.5), np.full((number, 2), 0.5), number * math.log(0.5))
    for _ in range(2_000):
        again = generator.random(number) < 0.5
        chosen = np.where(again, 0, 1)
        evidence = again.sum() * math.log(theirs) + (~again).sum() * math.log(1 - theirs)
        other = {"another": Predictions(np.full(number, theirs), np.full((number, 2), 0.5), evidence)}
        tested = residuals(Decisions(chosen, decisions.before, decisions.leader, 2), (own, own), other)
        found.append(by_evidence((own, own), other, {"another": 1.0}, tested))
    for level in (0.01, 0.05):
        assert np.mean(np.array(found) <= level) <= level + 3 * math.sqrt(level / 2_000)
    if number > 100:
        assert np.mean(np.array(found) <= 0.05) > 0.01


def test_clouds_that_differ_make_the_evidence_less_certain() -> None:
    own = tuple(Predictions(np.zeros(0), np.zeros((0, 2)), value) for value in (-10.0, -13.0))
    other = {name: Predictions(np.zeros(0), np.zeros((0, 2)), value) for name, value in (("a", -2.0), ("b", -math.inf))}
    nothing = Residuals((), np.zeros(0), np.zeros((0, 0)), {})
    ratio = 0.25 * math.exp(-2.0) / ((math.exp(-10.0) + math.exp(-13.0)) / 2)
    found = [by_evidence(each, other, {"a": 0.25, "b": 0.75}, nothing) for each in (own, (own[0], own[0]))]
    assert found == pytest.approx([math.exp(4.5) / ratio, 4 * math.exp(-8.0)])
    assert by_evidence(own, {"b": other["b"]}, {"b": 1.0}, nothing) == 1.0


def test_the_size_of_the_means_is_learnt_from_the_record() -> None:
    means, rule = np.linspace(1.0, 0.0, 8), ub.UCB().for_arms(8)
    log = rule.demonstrate(ub.Instance(means, SIGMA), 1_500, seed=1)
    prior = NormalPrior(0.0, 8.0)  # right are only the smallest factors

    def evidence(particles: int, widths: tuple[float, ...], seed: int = 0) -> float:
        return predict(log, rule, Gaussian(SIGMA), prior, 1_500, particles, widths=widths, seed=seed).log_evidence

    each = [evidence(300, (width,)) for width in kernel.WIDENED]
    together = np.median([evidence(60, kernel.WIDENED, seed) for seed in range(4)])
    assert together == pytest.approx(np.logaddexp.reduce(each) - math.log(len(each)), abs=5)
    wrong, right = kernel.WIDENED[-1], kernel.WIDENED[int(np.argmax(each))]
    found = evidence(60, (wrong,) * 60 + (right,) * 60)  # all particles begin with the wrong one
    assert max(each) - each[-1] > 20
    assert found > each[-1] + 8


def test_a_rule_that_falls_far_behind_is_given_up() -> None:
    rule = ub.UCB1().for_arms(3)
    log = rule.demonstrate(ub.Instance([1.0, 0.4, 0.0], SIGMA), 600, seed=1)
    own = predict(log, rule, Gaussian(SIGMA), NormalPrior(0.0, 1.0), 600, 40)
    drifting = predict(log, rule, Gaussian(SIGMA), NormalPrior(0.0, 1.0), 600, 40, drift=(0, 20.0), unless_below=own)
    assert drifting.log_evidence == -math.inf
    close = predict(log, rule, Gaussian(SIGMA), NormalPrior(0.0, 1.0), 600, 40, seed=1, unless_below=own)
    assert close.log_evidence == pytest.approx(own.log_evidence, abs=5)


def test_a_known_drift_is_part_of_the_index() -> None:
    """Rewards that fall by as much as the rule is told are as good as rewards that stay."""
    generator, means, falls = np.random.default_rng(5), np.array([1.0, 0.6, 0.0]), 0.8
    differences = []
    for _ in range(6):
        sums, pulls, actions = np.zeros(3), np.zeros(3), []
        for round in range(1, 801):
            arm = round - 1 if round <= 3 else int((sums / pulls + np.sqrt(2 * math.log(round) / pulls)).argmax())
            sums[arm] += means[arm] - falls * round / 800 * (arm == 0) + SIGMA * generator.standard_normal()
            pulls[arm] += 1
            actions.append(arm)
        log = ub.ActionLog.from_codes(np.array(actions), ["a", "b", "c"])
        known, unknown = (
            predict(log, ub.UCB1(), Gaussian(SIGMA), NormalPrior(0.0, 1.0), 800, 60, drift=drift).log_evidence
            for drift in ((0, -falls), None)
        )
        differences.append(known - unknown)
    assert np.mean(differences) > 2
