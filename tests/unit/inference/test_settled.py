"""Whether the Monte-Carlo error matters: what another seed would move, and when that is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import unbandit as ub
from unbandit.inference import draws
from unbandit.inference.clouds import run_filters
from unbandit.inference.draws import UNSETTLED, clouds_differ, evidence_differs, movements
from unbandit.inference.filter import log_mean, new_cloud, redraw_common
from unbandit.kernels.smc.cloud import Belief
from unbandit.kernels.smc.elimination import GOES, OUT, STAYS, EliminationTests

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

THOMPSON = ub.Thompson(sigma=0.5)
GREEDY = ub.EpsilonGreedy(epsilon=0.2)  # its clouds see one action ahead, so few particles are too few


def notices(found):
    return [notice for notice in found.warnings if notice.code == "clouds-differ"]


def clouds_of(centres, deviation=1.0, draws=4_000, seed=0):
    """Return clouds of normal draws around their own centres, (clouds, arms)."""
    centres = np.asarray(centres, float)
    noise = np.random.default_rng(seed).standard_normal((len(centres), draws, centres.shape[1]))
    return list(centres[:, None, :] + deviation * noise)


def test_movement_is_what_another_run_shows():
    """Centres of clouds with a known deviation: the size, averaged in squares, is that of differences of two runs."""
    generator, between, shown, moved = np.random.default_rng(1), 0.5, [], []
    for seed in range(200):
        first, second = between * generator.standard_normal((2, 4, 3))
        shown.append(
            [move.size for move in movements(clouds_of(first, draws=200, seed=seed)) if move.quantity == "mean"]
        )
        moved.append(first.mean(axis=0) - second.mean(axis=0))
    # 600 numbers; each side's root mean square is known to about 3%, so a sixth is more than four errors
    assert np.sqrt(np.mean(np.square(shown))) == pytest.approx(np.sqrt(np.mean(np.square(moved))), rel=0.16)


def test_an_easy_log_is_settled():
    for rule, sigma in ((ub.UCB(alpha=0.25, sigma=0.2), 0.5), (ub.Softmax(temperature=0.3), 0.5)):
        log = rule.demonstrate(ub.Instance([1.0, 0.5, 0.0], sigma), 300, seed=2)
        assert notices(ub.posterior(log, rule, sigma=sigma, particles=500, seed=1)) == []


def test_a_starved_cloud_is_not_and_says_what_would_move():
    log = GREEDY.demonstrate(ub.Instance([1.0, 0.5, 0.0, -0.5], 0.5, arms="ABCD"), 400, seed=3)
    (notice,) = notices(ub.posterior(log, GREEDY, sigma=0.5, particles=3, seed=1))
    assert notice.arm in "ABCD"
    assert "another seed would typically change the" in notice.message
    assert "of its interval's half-length)" in notice.message
    assert notice.message.endswith("Give more particles than 3.")


def test_one_arm_of_many_is_named():
    centres = np.zeros((4, 6))
    centres[:, 2] = (-3, 1, 3, -1)
    far = [move for move in movements(clouds_of(centres)) if move.share > UNSETTLED]
    assert {(move.quantity, move.arm) for move in far} >= {("mean", 2)}
    assert all(move.arm == 2 for move in far if move.quantity == "mean")


def test_what_all_arms_share_moves_means_and_not_gaps():
    """Clouds at different levels: the gaps are the same in all of them."""
    level = np.array([-2.0, 0.0, 1.0, 2.0])[:, None]
    moves = movements(clouds_of(level + np.array([0.0, -1.0, -2.0])))
    assert all(move.share > UNSETTLED for move in moves if move.quantity == "mean")
    assert all(move.share < UNSETTLED / 4 for move in moves if move.quantity == "gap")
    (notice,) = clouds_differ(clouds_of(level + np.array([0.0, -1.0, -2.0, -3.0])), tuple("ABCD"), 100, None)
    assert " and 1 more number as far. Give" in notice.message


def test_numbers_without_an_interval_are_left_out():
    clouds = [np.column_stack([np.full(500, 5.0), each[:, 0]]) for each in clouds_of(np.zeros((4, 1)), draws=500)]
    assert [(move.quantity, move.arm) for move in movements(clouds)] == [("mean", 1), ("gap", 1)]


def test_clouds_are_compared_before_a_known_best_mean_mixes_them():
    log = GREEDY.demonstrate(ub.Instance([1.0, 0.5, 0.0, -0.5], 0.5), 400, seed=3)
    assert notices(ub.posterior(log, GREEDY, sigma=0.5, best_mean=1.0, particles=3, seed=1))


def test_a_single_cloud_says_nothing_about_it():
    log = THOMPSON.demonstrate(ub.Instance([1.0, 0.0], 0.5), 100, seed=3)
    assert notices(ub.posterior(log, THOMPSON, sigma=0.5, particles=3, clouds=1)) == []


def test_it_foretells_how_far_another_seed_moves_the_answer():
    """Ordinary and starved clouds of Thompson logs: numbers that are named move as far as said, the others less.

    Twenty logs, two seeds each; movements in half-lengths of the intervals.
    """
    named, others = [], []
    for seed in range(20):
        means = np.random.default_rng(seed).standard_normal(4)
        log = THOMPSON.demonstrate(ub.Instance(means, 0.5), 200, seed=seed)
        particles = 2 if seed % 2 else 400
        first, second = (ub.posterior(log, THOMPSON, sigma=0.5, particles=particles, seed=run) for run in (1, 2))
        shares = {(move.quantity, move.arm): move.share for move in movements(list(first.means))}
        one, two = first.summary(), second.summary()
        for (quantity, arm), share in shares.items():
            half = (one[f"{quantity}_high"][arm] - one[f"{quantity}_low"][arm]) / 2
            moved = abs(one[quantity][arm] - two[quantity][arm]) / half
            (named if share > UNSETTLED else others).append(moved)
    assert len(named) >= 10
    assert len(others) >= 40
    of_named, of_others = (np.sqrt(np.mean(np.square(moved))) for moved in (named, others))
    assert of_named > UNSETTLED
    assert of_others < 0.7 * of_named


def test_clouds_that_disagree_on_the_evidence_say_so():
    instance = ub.Instance(np.random.default_rng(1003).uniform(0, 1, 10), ub.Bernoulli())
    log = GREEDY.demonstrate(instance, 600, seed=1003)
    found = ub.posterior(log, GREEDY, bernoulli=True, particles=20, seed=1, check=False)
    assert found.evidences.std(ddof=1) > 1.0
    (notice,) = [each for each in found.warnings if each.code == "evidence-differs"]
    assert f"from {found.evidences.min():.1f} to {found.evidences.max():.1f}" in notice.message
    assert notice.message.endswith("Give more particles than 20, or compare two seeds.")


@pytest.mark.parametrize(
    ("deviation", "smallest", "by_chance", "said"),
    [(0.2, 2, True, False), (0.5, 2, True, True), (0.5, 500, True, False), (1.5, 500, True, True),
     (3.0, 2, False, False), (30.0, 500, False, True)],
)  # fmt: skip
def test_how_far_evidences_may_differ(deviation, smallest, by_chance, said):
    evidences = -100 + deviation * np.array([-1.0, 1.0, -1.0, 1.0]) * np.sqrt(3 / 4)
    assert bool(evidence_differs(evidences, smallest, 500, by_chance)) == said
    assert evidence_differs(evidences[:1], smallest, 500, by_chance) == []


@pytest.mark.parametrize("ask", [ub.posterior, ub.estimate])
def test_answers_of_clouds_that_differ_warn_in_python(ask):
    log = GREEDY.demonstrate(ub.Instance([1.0, 0.6, 0.2], 0.5), 120, seed=1)
    with pytest.warns(ub.AssumptionWarning) as raised:
        found = ask(log, GREEDY, sigma=0.5, particles=3, seed=1, check=False)
    said = {notice.message for notice in found.warnings if notice.code in ("clouds-differ", "evidence-differs")}
    assert said
    assert said <= {str(each.message) for each in raised}


def test_clouds_of_many_arms_that_are_dropped_agree():
    """Arms that stay to the end must come close: clouds that do not know it lose 10 in the logarithm here."""
    means = np.random.default_rng(1).normal(size=10)
    log = ub.SAE(alpha=0.25).demonstrate(ub.Instance(means, 0.5), 2_500, seed=1)
    found = ub.posterior(log, "sae:alpha=0.25", sigma=0.5, particles=300, seed=1)
    assert found.log_evidence_error < 2


def test_what_arms_have_in_common_is_drawn_given_their_differences():
    """Two phases of three and two arms: mean and covariance of the sums are those of conditioning all at once."""
    prior_mean, prior_variance = np.array([0.3, 0.0, -0.2]), np.array([1.0, 0.5, 2.0])
    sigma, epochs, number = 0.7, (4, 5), 40_000
    fate = np.array([[STAYS, STAYS, GOES], [STAYS, GOES, OUT]], np.int8)
    ends = np.cumsum(epochs)
    nothing = np.zeros((2, 3))
    tests = EliminationTests(
        ends, np.ones(2), fate, np.array([0, 9, 4]), np.arange(3), np.zeros(3), np.zeros(3), nothing.astype(np.int64),
        nothing,
    )  # fmt: skip
    belief = Belief(False, prior_mean, prior_variance, sigma)
    past, before = np.tile([1.0, 0.0, 0.0], (number, 1)), np.array([2.0, 0.0, 0.0])
    cloud = new_cloud(belief, past, before, 2, np.zeros(0, np.int64), 1, 0)
    by_phase = np.tile(np.array([[1.0, 2.0, -3.0], [3.5, 3.0, -3.0]]), (number, 1, 1))
    redraw_common(tests, cloud, np.array([0, 1]), by_phase, np.random.default_rng(5))

    of = np.array([0, 1, 2, 0, 1])  # the arm of each sum: three in the first phase, two in the second
    long = np.array([4, 4, 4, 5, 5])
    seen = 1 / (1 / prior_variance + before / sigma**2)
    expected = seen * (prior_mean / prior_variance + past[0] / sigma**2)
    covariance = np.where(of[:, None] == of, np.outer(long, long) * seen[of], 0.0) + np.diag(long * sigma**2)
    apart = np.array([[1, -1, 0, 0, 0], [1, 0, -1, 0, 0], [0, 0, 0, 1, -1.0]])
    told = apart @ np.array([1.0, 2.0, -3.0, 2.5, 1.0])
    gain = covariance @ apart.T @ np.linalg.inv(apart @ covariance @ apart.T)
    centre = long * expected[of] + gain @ (told - apart @ (long * expected[of]))
    left = covariance - gain @ apart @ covariance
    total = np.array([[1, 0, 0, 1, 0], [0, 1, 0, 0, 1], [0, 0, 1, 0, 0.0]])
    spread = total @ left @ total.T
    errors = np.sqrt(np.diag(spread) / number)
    assert cloud.sums.mean(axis=0) == pytest.approx(total @ centre, abs=5 * errors.max())
    assert np.cov(cloud.sums.T) == pytest.approx(spread, abs=0.03 * spread.max())


def test_clouds_that_differ_are_sent_again_with_more_particles(monkeypatch):
    log = THOMPSON.demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), 60, seed=3)
    once = ub.posterior(log, THOMPSON, sigma=0.5, check=False)
    furthest = max(move.share for move in movements(list(once.means)))
    assert not notices(once)
    monkeypatch.setattr(draws, "UNSETTLED", 0.8 * furthest)  # as if these clouds were far from each other
    again = ub.posterior(log, THOMPSON, sigma=0.5, check=False)
    assert 2 * once.particles <= again.particles < 4 * once.particles
    assert again.means.shape == once.means.shape
    given = ub.posterior(log, THOMPSON, sigma=0.5, check=False, particles=once.particles)
    assert given.particles == once.particles  # what was asked for
    assert notices(given)
    monkeypatch.setattr(draws, "MOST_RESENT", 59)
    assert notices(ub.posterior(log, THOMPSON, sigma=0.5, check=False))  # too long for it


def test_clouds_joined_from_two_runs_find_the_same_evidence_on_average():
    log = GREEDY.demonstrate(ub.Instance([0.6, 0.0], 0.5), 40, seed=4)
    belief = Belief(False, np.zeros(2), np.ones(2), 0.5)
    few, more, precise = (
        run_filters(log, GREEDY, belief, [40], particles, clouds, 0, 1, first=first)
        for particles, clouds, first in ((5, 400, 0), (15, 400, 6_000), (20_000, 4, 0))
    )
    joined = few.joined(more)
    assert (joined.particles, joined.clouds) == (20, 400)
    assert joined.smallest <= 20
    (found, error), (known, _) = log_mean(joined.evidences), log_mean(precise.evidences)
    assert error < 0.1
    assert found == pytest.approx(known, abs=4 * error)
    # A cloud's draws come from both runs, by evidence and particles; clouds count by their evidence.
    weights = np.exp(joined.evidences - joined.evidences.max())
    centres = np.array([draws.draws_of(joined, cloud, belief, 200, 0).mean(axis=0) for cloud in range(400)])
    mean = weights @ centres / weights.sum()
    errors = np.sqrt(np.square(weights) @ np.square(centres - mean)) / weights.sum()
    exact = np.mean([draws.draws_of(precise, cloud, belief, 4_000, 0).mean(axis=0) for cloud in range(4)], axis=0)
    assert np.all(np.abs(mean - exact) < 4 * errors + 0.02)
    assert np.all(errors < 0.05)


def test_draws_of_a_joined_cloud_come_from_each_run_by_its_weight():
    log = GREEDY.demonstrate(ub.Instance([0.6, 0.0], 0.5), 40, seed=4)
    belief = Belief(False, np.zeros(2), np.ones(2), 0.5)
    first, second = (run_filters(log, GREEDY, belief, [40], 8, 1, 0, 1, first=number) for number in (0, 9))
    second.passes[0][-1].cloud.increments[-1] += 1.3
    joined = first.joined(second)
    odds = 1.3 + float(second.evidences[0] - first.evidences[0])
    assert joined.masses(0) == pytest.approx([1 / (1 + np.exp(odds)), 1 / (1 + np.exp(-odds))])
    far = second.passes[0][-1].cloud.sums
    far += 1_000.0  # so that its draws are known by their means
    masses, sizes = joined.masses(0), (first.smallest, second.smallest)
    assert joined.smallest == pytest.approx(1 / (masses**2 @ np.reciprocal(sizes)))  # most of it is one run's
    share = (draws.draws_of(joined, 0, belief, 5_000, 0).max(axis=1) > 5.0).mean()
    assert share == pytest.approx(joined.masses(0)[1], abs=1 / 5_000)


def test_the_number_of_particles_grows_with_the_distance_of_clouds():
    log = THOMPSON.demonstrate(ub.Instance([1.0, 0.0], 0.5), 100, seed=3)
    result = run_filters(log, THOMPSON, Belief(False, np.zeros(2), np.ones(2), 0.5), [100], 50, 4, 0, 1)
    apart = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    times = [
        draws.more_particles(clouds_of(size * apart), result, None, by_chance=True) for size in (0.0, 0.8, 0.9, 5.0)
    ]
    assert times[0] == 1.0
    assert 2.0 <= times[1] < times[2] < times[3] == draws.MOST_TIMES
    far = replace(result, evidences=np.array([-10.0, -14.0, -11.0, -17.0]))
    assert draws.more_particles(clouds_of(0 * apart), far, None, by_chance=True) == draws.MOST_TIMES


def test_a_best_mean_that_no_draw_agrees_with_is_refused_before_clouds_are_compared():
    log = ub.ActionLog.from_actions(["A", "B"] + ["A"] * 200 + ["B"] * 198)
    with pytest.raises(ub.InferenceError, match="agree that no arm is better"):
        ub.posterior(log, THOMPSON, sigma=0.5, best_mean=-3.0, check=False)


def test_glances_at_a_rule_whose_decisions_jump_find_the_same_evidence_on_average():
    rule = ub.EpsilonGreedy(epsilon=0.3, initial=0)
    log = rule.demonstrate(ub.Instance([0.6, 0.0], 0.5), 30, seed=4)
    glances = ub.posterior(log, rule, sigma=0.5, particles=25, clouds=300, draws=1, check=False).evidences
    precise = ub.posterior(log, rule, sigma=0.5, particles=8_000, check=False).evidences
    (found, error), (known, _) = log_mean(glances), log_mean(precise)
    assert glances.std() > 2 * precise.std()
    assert error < 0.05
    assert found == pytest.approx(known, abs=4 * error)
