"""Method bracket against a plain reading of the log, round by round, and a density that is integrated numerically."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import unbandit as ub
from tests.reference import reference_epochs
from unbandit import ActionLog, AssumptionWarning, Instance, NotIdentifiable, ParameterError, estimate
from unbandit.demonstrators import parse_rule
from unbandit.kernels.bracket import gap_at_hesitation, hesitation_moments, magnitude_tilt, stopping_tilt

SIGMA = 0.5
Z = 1.959963984540054
INDEX_RULES = (
    "ucb:alpha=0.25",
    "ucb:alpha=0.25,batch=3",
    "ucb:alpha=0.1,scale=0.3,initial=2",
    "ucb1",
    "moss",
    "lilucb",
    "klucb:noise=gaussian",
    "klucb:noise=gaussian,level=round",
)


def by_integration(before, after, deviation, moved, tilt):
    """Return mean and deviation of the density phi((g - before)/s + tilt) Phi((E[d] - after)/sqrt(var d))."""
    return moments_and_mass(before, after, deviation, moved, tilt)[:2]


def moments_and_mass(before, after, deviation, moved, tilt):
    kept = 1 - moved**2
    gap = np.linspace(before - 12 * deviation, before + 12 * deviation, 40_001)
    expected = before + (1 - kept) * (gap - before)
    cumulative = np.array(
        [0.5 * math.erfc(-x / math.sqrt(2)) for x in (expected - after) / (deviation * np.sqrt(kept * (1 - kept)))]
    )
    density = np.exp(-0.5 * ((gap - before) / deviation + tilt) ** 2) * cumulative
    mass = density.sum()
    density /= mass
    mean = (density * gap).sum()
    return mean, math.sqrt((density * (gap - mean) ** 2).sum()), mass


def two_sides(actions, arms, rule, horizon, arm):
    """Find both moments of an arm's last hesitation: (round, own pulls, best arm's pulls) before a decision."""
    best = max(range(arms), key=actions.count)
    last_of_best = max(t for t, pulled in enumerate(actions, 1) if pulled == best)
    turns = [t for t, pulled in enumerate(actions, 1) if pulled == arm]
    switching = max((t for t in turns if t < last_of_best), default=0)
    own = sum(t <= switching for t in turns)
    of_best = actions[:switching].count(best)
    if own <= rule.initial or of_best == 0:
        return None
    most = actions.count(best)
    after = (last_of_best - rule.batch + 1, own, max(most - rule.batch, of_best))
    if turns[-1] > last_of_best:  # it was preferred right after the best arm's last pull
        return (last_of_best + 1, own, most), after, (switching, own, of_best), True
    before = (switching - rule.batch + 1, max(own - rule.batch, rule.initial), of_best)
    return before, after, (switching, own, of_best), False


def reference_bracket(actions, arms, rule, horizon, arm, sigma):
    """Return gap, low and high end as the definitions say; None for an arm without an estimate."""
    sides = two_sides(actions, arms, rule, horizon, arm)
    if sides is None:
        return None

    def difference(round, own, of_best):
        return rule.index(0.0, own, round, horizon) - rule.index(0.0, of_best, round, horizon)

    moment_before, moment_after, (switching, own, of_best), returned = sides
    before, after = difference(*moment_before), difference(*moment_after)
    if returned:
        gap = middle = (before + after) / 2
        spread = math.sqrt(sigma**2 * (1 / own + 1 / moment_before[2]) + (before - after) ** 2 / 12)
    else:
        _, own_before, best_before = moment_before
        variance = sigma**2 * (1 / own_before + 1 / best_before)
        later = sigma**2 * (1 / own + 1 / moment_after[2])
        step = before - difference(switching + 1, own, of_best)
        deviation, moved = math.sqrt(variance), math.sqrt(1 - later / variance)
        tilt = deviation * (own - own_before) / (own * step) if step > 0 else math.inf
        tilt = min(tilt, 0.5) * (1 - 1 / own)
        if rule.batch > 1:  # the two indices were not equal: the difference lies between those at two decisions
            earlier = max(moment_before[0] - rule.batch, 1), own_before, max(best_before - rule.batch, rule.initial)
            below = min(difference(*earlier), before)
            if before - below > 4 * deviation:
                return None
            places = below + (before - below) * (np.arange(16) + 0.5) / 16
            parts = np.array([moments_and_mass(place, after, deviation, moved, tilt / 2) for place in places])
            shares = parts[:, 2] / parts[:, 2].sum()
            gap = middle = (shares * parts[:, 0]).sum()
            spread = math.sqrt((shares * (parts[:, 1] ** 2 + (parts[:, 0] - middle) ** 2)).sum())
            return gap, _low(middle, spread), middle + Z * spread
        middle, spread = by_integration(before, after, deviation, moved, tilt / 2)
        paper, halfway, many = difference(switching + 1, own, of_best), (before + after) / 2, own**3 / (6**3 + own**3)
        size = max(middle / deviation, 0)  # a density of 1 / sqrt(size^2 + 1), its logarithm taken as straight
        mean, _ = by_integration(before, after, deviation, moved, tilt + many * size / (size**2 + 1))
        lower = (1 - many) * halfway + many * paper
        gap = min(max((mean + lower) / 2, middle - spread), middle + spread)
    return gap, _low(middle, spread), middle + Z * spread


def _low(middle, spread):
    low = middle - Z * spread
    return min(low, 0.0) if middle < 1.3 * Z * spread else low


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_an_arm_with_one_batch_is_bounded_and_not_read_as_if_both_indices_had_been_equal():
    rule = parse_rule("ucb:alpha=0.25,batch=20")
    held = []
    for seed in range(40):
        means = np.random.default_rng(seed).standard_normal(4)
        log = rule.demonstrate(Instance(means, SIGMA), 2_000, seed=seed)
        for row, mean in zip(estimate(log, rule, sigma=SIGMA, check=False), means, strict=True):
            if row.verdict == "best":
                continue
            if row.pulls == 21:
                assert row.verdict == "bounded"
            held.append((row.gap_low or -math.inf) <= means.max() - mean <= (row.gap_high or math.inf))
    assert sum(held) >= 0.92 * len(held)  # 120 arms; it was 60%


@pytest.mark.parametrize("text", INDEX_RULES)
@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_every_arm_is_read_as_the_definitions_say(text):
    rng = np.random.default_rng(3)
    for seed, (arms, horizon) in enumerate([(2, 60), (3, 200), (5, 150)]):
        rule = parse_rule(text).for_arms(arms)
        log = rule.demonstrate(Instance(rng.standard_normal(arms), SIGMA), horizon, seed=seed)
        answer = estimate(log, rule, sigma=SIGMA, method="bracket")
        actions = log.actions.tolist()
        for arm, row in enumerate(answer):
            expected = reference_bracket(actions, arms, rule, horizon, arm, SIGMA)
            if arm == max(range(arms), key=actions.count):
                assert row.verdict == "best"
            elif expected is None:
                assert row.verdict == "bounded"
            else:
                assert (row.gap, row.gap_low, row.gap_high) == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_bernoulli_indices_are_solved_at_both_moments():
    # An index that is not the mean plus a width: by bisection on the rule's own index, at the known best mean.
    rule, means = parse_rule("klucb"), [0.8, 0.5, 0.3]
    log = rule.demonstrate(Instance(means, ub.Bernoulli()), 800, seed=5)
    answer, actions = estimate(log, rule, best_mean=0.8, bernoulli=True), log.actions.tolist()
    plain = estimate(log, rule, best_mean=0.8, bernoulli=True, method="switching")

    def solved(round, own, of_best):
        level, low, high = rule.index(0.8, of_best, round, 800), 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if rule.index(middle, own, round, 800) < level else (low, middle)
        return 0.8 - low

    for arm in (1, 2):
        before, after, _, returned = two_sides(actions, 3, rule, 800, arm)
        assert not returned
        sides = sorted((solved(*before), solved(*after)))
        row = answer[str(arm)]
        assert sides[0] - 0.05 < row.gap < sides[1] + 0.05
        assert row.gap_low < row.gap < row.gap_high
        assert row.gap != plain[str(arm)].gap


ACTIONS = st.lists(st.integers(0, 2), min_size=4, max_size=40).map(lambda rest: [0, 1, 2, *rest])


@given(ACTIONS, st.sampled_from(INDEX_RULES))
@settings(max_examples=60, deadline=None)
@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_any_record_has_the_verdicts_of_procedure_2_and_points_inside_the_intervals(actions, text):
    log = ActionLog.from_actions(actions, arms=(0, 1, 2))
    answer, paper = (estimate(log, text, sigma=SIGMA, method=method) for method in ("bracket", "switching"))
    assert (answer.columns.verdict == paper.columns.verdict).all()
    estimated = answer.columns.verdict == 1
    gap, low, high = (getattr(answer.columns, name)[estimated] for name in ("gap", "gap_low", "gap_high"))
    assert np.isfinite(gap).all()
    assert (low <= gap + 1e-9).all()
    assert (gap <= high + 1e-9).all()


@given(ACTIONS, st.integers(1, 30))
@settings(max_examples=25, deadline=None)
@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_a_log_that_grows_has_the_answer_of_one_read_at_once(actions, cut):
    log = ActionLog.from_actions(actions, arms=(0, 1, 2))
    growing = ub.StreamingEstimate("ucb1", arms=log.arms, sigma=SIGMA)
    growing.update(log.actions[:cut])
    growing.update(log.actions[cut:])
    answer, whole = growing.estimate(), estimate(log, "ucb1", sigma=SIGMA)
    assert answer.method == whole.method == "bracket"
    np.testing.assert_array_equal(answer.columns.gap, whole.columns.gap)


def test_a_scanned_log_has_the_same_answer(tmp_path):
    rule = parse_rule("ucb1")
    log = rule.demonstrate(Instance([1.0, 0.5, 0.0], SIGMA), 400, runs=3, seed=2)
    log.write(tmp_path / "log.csv")
    read, scanned = (estimate(each, rule, sigma=SIGMA) for each in (log, ActionLog.scan(tmp_path / "log.csv")))
    np.testing.assert_array_equal(read.columns.gap, scanned.columns.gap)
    np.testing.assert_array_equal(read.columns.gap_low, scanned.columns.gap_low)


def test_simulated_evidence_has_the_answer_of_its_log():
    from unbandit.estimators.procedures import compare

    rule, instance = parse_rule("ucb:alpha=0.25"), Instance([1.0, 0.5, 0.0], SIGMA)
    log = rule.demonstrate(instance, 500, runs=4, seed=3)
    tallies = rule.evidence(instance, 500, runs=4, seed=3)
    found = compare(tallies, rule, "bracket", 500, noise=instance.noise)
    np.testing.assert_allclose(found.gap, estimate(log, rule, sigma=SIGMA).columns.gap, rtol=1e-12)


def test_without_sigma_the_point_is_halfway_and_does_not_depend_on_it():
    # alpha 1/4 and T = 10,000 give C(n) = 6 / sqrt(n). B's last decision: 3 pulls against 9 of A's, C(3) - C(9); A's
    # last pull: 4 pulls against 11, C(4) - C(11).
    rule = ub.UCB(alpha=0.25, scale=1.0)
    log = ActionLog.from_actions("ABC" + "A" * 8 + "BBB" + "AAA")
    with pytest.warns(AssumptionWarning, match="sigma = 1"):
        row = estimate(log, rule, horizon=10_000)["B"]
    before, after = 6 / math.sqrt(3) - 2, 3 - 6 / math.sqrt(11)
    assert row.gap == pytest.approx((before + after) / 2, rel=1e-12)
    assert row.gap_low < min(before, after) < max(before, after) < row.gap_high
    ratio = estimate(log, rule, horizon=10_000, scale="unknown", reference="B")["B"].ratio
    assert ratio == pytest.approx(1.0)


def test_an_arm_that_came_back_after_the_best_arms_last_pull_lies_between_two_of_its_indices():
    # B is pulled again right after A's last pull: with B's 4 pulls the gap lies between C(4) - C(11) and C(4) - C(12).
    rule = ub.UCB(alpha=0.25, scale=1.0)
    log = ActionLog.from_actions("ABC" + "A" * 8 + "BBB" + "AAA" + "B")
    row = estimate(log, rule, horizon=10_000, sigma=1.0)["B"]
    assert row.gap == pytest.approx(3 - (6 / math.sqrt(11) + 6 / math.sqrt(12)) / 2, rel=1e-12)


def eliminated_by_integration(failed, survived, before, pulls):
    """Return gap and high end: the difference at the failed test has the density Phi((survived - d) / w) above it."""
    variance, added = 2 * SIGMA**2 / pulls, 2 * SIGMA**2 * (1 / before - 1 / pulls)
    difference = np.linspace(failed, max(survived, failed) + 10 * math.sqrt(added), 100_001)
    density = np.array([math.erfc(-x / math.sqrt(2 * added)) for x in survived - difference])
    density /= density.sum()
    mean = (density * difference).sum()
    spread = math.sqrt(variance + (density * (difference - mean) ** 2).sum())
    tilt = min(math.sqrt(variance) * (pulls - before) / (pulls * (survived - failed)), 0.5) * (1 - 1 / pulls)
    shift, size = tilt * math.sqrt(variance), mean / math.sqrt(variance) - tilt / 2
    lowered = mean - shift - math.sqrt(variance) * size / (1 + size**2)
    return (lowered + failed) / 2, mean - shift / 2 + Z * spread


@pytest.mark.parametrize("text", ["sae:alpha=0.25,scale=0.4", "phased:alpha=0.25,scale=0.4"])
def test_an_eliminated_arm_survived_one_test_and_failed_the_next(text):
    rule, arms, horizon = parse_rule(text), 4, 600
    log = rule.demonstrate(Instance([1.0, 0.6, 0.0, -0.6], SIGMA), horizon, seed=4)
    answer, actions = estimate(log, rule, sigma=SIGMA), log.actions.tolist()
    passed, _, _ = reference_epochs(actions, arms)
    seen = 0
    for arm in range(arms):
        pulls = actions.count(arm)
        survived = max((epoch for epoch in range(1, pulls) if rule.tests(np.array([epoch]))[0]), default=0)
        if not passed[arm]:
            continue
        row = answer[str(arm)]
        if survived == 0:
            assert row.verdict == "bounded"
            continue
        low, high = (2 * rule.width(np.array([float(n)]), horizon)[0] for n in (pulls, survived))
        expected = eliminated_by_integration(low, high, survived, pulls)
        assert (row.gap, row.gap_high) == pytest.approx(expected, rel=1e-4)
        seen += 1
    assert seen >= 2


def test_an_arm_that_failed_its_first_test_is_only_bounded():
    # A and B once each, then A alone: B failed the very first test, and nothing bounds its gap from above.
    rule = ub.SAE(alpha=0.25, scale=0.1)
    log = ActionLog.from_actions("AB" + "A" * 10)
    row = estimate(log, rule, sigma=SIGMA)["B"]
    assert (row.verdict, row.gap, row.gap_high) == ("bounded", None, None)
    assert row.gap_low <= 2 * rule.width(np.ones(1), 12)[0]
    assert estimate(log, rule, sigma=SIGMA, method="switching")["B"].verdict == "estimated"


def test_counts_have_no_two_sides():
    counts = ActionLog.from_counts({"A": 50, "B": 8})
    with pytest.raises(ParameterError, match="bracket needs the order of the rounds"):
        estimate(counts, "ucb", method="bracket", sigma=1.0)


def test_a_rule_that_draws_its_arms_has_no_bracket():
    log = ub.Thompson(sigma=0.5).demonstrate(Instance([1.0, 0.0], 0.5), 50, seed=1)
    with pytest.raises(NotIdentifiable, match="method bracket needs"):
        estimate(log, "thompson:sigma=0.5", method="bracket", sigma=0.5)


def test_an_index_without_a_mean_needs_one():
    log = ActionLog.from_actions("ABABAAB" + "A" * 20)
    with pytest.raises(NotIdentifiable, match="best_mean"):
        estimate(log, "klucb", bernoulli=True)


# The formula


def test_moments_are_those_of_the_density():
    rng = np.random.default_rng(1)
    for _ in range(40):
        before, after = rng.normal(1, 1), rng.normal(1, 1)
        deviation, moved, tilt = rng.uniform(0.05, 1), rng.uniform(0.05, 0.95), rng.uniform(0, 0.5)
        found = hesitation_moments(before, after, deviation, moved, tilt)
        assert found == pytest.approx(by_integration(before, after, deviation, moved, tilt), rel=1e-4, abs=1e-5)


SIDES = st.floats(-3, 3)
PULLS = st.integers(1, 10_000)


@given(SIDES, SIDES, st.floats(1e-6, 1), PULLS, PULLS, PULLS, st.floats(0.01, 10), st.floats(0.1, 10))
def test_the_answer_has_the_unit_of_the_rewards(before, after, step, own, best, more, sigma, factor):
    counts = float(own), float(best), own + 1.0, float(best + more)
    gap, middle, spread = gap_at_hesitation(before, after, step, *counts, sigma, sigma)
    scaled = gap_at_hesitation(factor * before, factor * after, factor * step, *counts, factor * sigma, factor * sigma)
    assert scaled == pytest.approx((factor * gap, factor * middle, factor * spread), rel=1e-6, abs=1e-9)
    assert abs(gap - middle) <= spread * (1 + 1e-9)
    assert 0 <= spread <= sigma * math.sqrt(1 / own + 1 / best) * (1 + 1e-9)


@given(st.floats(0.001, 5), st.floats(1e-9, 5), st.integers(2, 10_000))
def test_the_tilt_is_never_more_than_half_a_deviation(deviation, step, pulls):
    assert 0 <= stopping_tilt(deviation, step, 1.0, float(pulls)) <= 0.5
    assert stopping_tilt(deviation, 0.0, 1.0, float(pulls)) == pytest.approx(0.5 * (1 - 1 / pulls))


@given(st.floats(-20, 20))
def test_the_tilt_of_an_unknown_magnitude_is_the_slope_of_its_density(size):
    slope = -(math.log(1 / math.hypot(size + 1e-5, 1)) - math.log(1 / math.hypot(size - 1e-5, 1))) / 2e-5
    assert magnitude_tilt(size) == pytest.approx(max(slope, 0.0), abs=1e-6)
