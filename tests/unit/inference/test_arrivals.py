"""Posteriors of rules whose rewards are late by random delays: held against counting all ways, and plain Python."""

import math

import numpy as np
import pytest
from reference_hidden import PlainFilter

import unbandit as ub
from unbandit.demonstrators import parse_rule
from unbandit.errors import NotIdentifiable
from unbandit.inference import hidden, infer_by_conventions
from unbandit.inference.filter import CloudCollapsed, new_cloud
from unbandit.inference.prior import belief_of
from unbandit.kernels.smc.hidden import Waiting, filter_arrivals

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

BETA, BERNOULLI = ub.BetaPrior(1.5, 1.0), ub.Bernoulli()
NORMAL, NOISE = ub.NormalPrior(0.0, 1.0), ub.Gaussian(0.5)


def softmax(known, sums, arm):
    """Return the probability of an arm under a softmax with temperature 0.3."""
    scores = [math.exp(total / number / 0.3) for number, total in zip(known, sums, strict=True)]
    return scores[arm] / sum(scores)


def counted(actions, delays, batch=1):
    """Count every delay and every reward of 0 or 1 behind the actions of a softmax over two arms that opens in turn.

    Returns the probability of the actions, and the expectations of the means given them.
    """

    def after(t, known, sums, waiting, opened, seen):
        if t == len(actions):
            means = [(1.5 + total) / (2.5 + number) for number, total in zip(known, sums, strict=True)]
            return np.array([1.0, *means])
        if here := [each for each in waiting if each[0] == t]:
            (_, arm), rest = here[0], list(waiting)
            rest.remove(here[0])
            chance = (1.5 + sums[arm]) / (2.5 + known[arm])
            more = tuple(number + (at == arm) for at, number in enumerate(known))
            gained = tuple(total + (at == arm) for at, total in enumerate(sums))
            return chance * after(t, more, gained, rest, opened, seen) + (1 - chance) * after(
                t, more, sums, rest, opened, seen
            )
        if opened is None and min(known) >= 1:
            opened = t
        if opened is None:
            chance = 1.0 if actions[t] == t % 2 else 0.0
        else:
            if (t - opened) % batch == 0:
                seen = known, sums
            chance = softmax(*seen, actions[t])
        if chance == 0.0:
            return np.zeros(3)
        ways = (
            share * after(t + 1, known, sums, [*waiting, (t + 1 + delay, actions[t])], opened, seen)
            for delay, share in enumerate(delays)
        )
        return chance * sum(ways)

    total, *means = after(0, (0, 0), (0, 0), [], None, None)
    return total, np.array(means) / total


@pytest.mark.parametrize("batch", [1, 2])
def test_evidence_and_means_are_those_of_counting_every_delay_and_reward(batch):
    actions = [0, 1, 0, 1, 1, 0, 1]
    rule = parse_rule(f"softmax:temperature=0.3,delay=uniform:0-2,batch={batch}")
    log = ub.ActionLog.from_codes(np.array(actions), ("A", "B"))
    exact, means = counted(actions, [1 / 3] * 3, batch)
    found, _ = infer_by_conventions(log, rule, BETA, BERNOULLI, [7], particles=30_000, seed=1)
    assert abs(found.log_evidence - math.log(exact)) < 0.02 + 4 * found.log_evidence_error
    np.testing.assert_allclose(found.draws.mean(axis=0), means, atol=0.01)


@pytest.mark.parametrize(
    ("text", "noise"),
    [
        ("thompson:sigma=0.5,delay=geometric:3", NOISE),
        ("softmax:temperature=0.3,delay=uniform:1-4,batch=3", BERNOULLI),
        ("epsilon-greedy:epsilon=0.3,initial=0,delay=poisson:2", NOISE),
    ],
)
def test_the_kernel_does_what_plain_python_does(text, noise):
    rule, horizon, number = parse_rule(text).for_arms(3), 25, 40
    arms = rule.demonstrate(ub.Instance([0.2, 0.9, 0.6], noise), horizon, seed=3).demonstration(0).astype(np.int64)
    belief = belief_of(BETA if noise == BERNOULLI else NORMAL, 3, noise, None)
    cloud = new_cloud(belief, np.zeros((number, 3)), np.zeros(3), horizon, np.zeros(0, np.int64), 5, 2)
    memories, pulls = np.zeros((number, 3, rule.columns)), np.zeros((number, 3), np.int64)
    cumulative = rule.random_delay.cumulative.copy()
    rounds = min(cumulative.size + 1, horizon)
    waiting = Waiting(
        cumulative, np.zeros((number, rounds, 3), np.uint16), np.full((number, 1), -1), pulls.copy(), memories.copy()
    )
    parameters = rule.parameters(horizon)
    filter_arrivals(parameters, arms, rule.initial, rule.batch, cloud, memories, pulls, waiting, False, False)
    twin = PlainFilter(rule, parameters, belief, cloud.rng)
    particles, increments = twin.run_late(arms.tolist(), rule.initial, rule.batch, cumulative, number, rounds)
    assert pulls.tolist() == [each.pulls.tolist() for each in particles]  # the same rewards have arrived
    np.testing.assert_allclose(memories, [each.memory for each in particles], rtol=0, atol=1e-9)
    np.testing.assert_allclose(cloud.log_weights, [each.log_weight for each in particles], rtol=0, atol=1e-9)
    np.testing.assert_allclose(cloud.increments, increments, rtol=0, atol=1e-9)


def test_a_delay_that_is_always_the_same_is_a_fixed_delay():
    rule = parse_rule("thompson:sigma=0.5,delay=uniform:20-20")
    log = rule.demonstrate(ub.Instance([1.0, 0.6, 0.2], NOISE), 300, seed=2)
    found = ub.posterior(log, rule, sigma=0.5, seed=1)
    fixed = ub.posterior(log, "thompson:sigma=0.5,delay=20", sigma=0.5, seed=1)
    assert abs(found.log_evidence - fixed.log_evidence) < 0.5
    gaps = [each.draws[:, [0]] - each.draws[:, 1:] for each in (found, fixed)]
    np.testing.assert_allclose(gaps[0].mean(axis=0), gaps[1].mean(axis=0), atol=0.15)


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("thompson:sigma=0.5,delay=geometric:20", "mean"),
        ("learning-softmax:rate=0.2,temperature=0.3,delay=geometric:20", "start"),
    ],
)
def test_answers_move_with_the_level_of_rewards_and_prior_where_particles_know_different_arms(text, level):
    found = []
    for shift in (0, 100):  # these rules do not open, so that some particles know nothing of an arm for long
        rule = parse_rule(f"{text},{level}={shift}")
        log = rule.demonstrate(ub.Instance(shift + np.array([1.0, 0.6, -0.2, 0.0]), NOISE), 200, seed=4)
        found.append(ub.posterior(log, rule, sigma=0.5, prior=ub.NormalPrior(shift, 1.0), seed=1, particles=300))
    assert abs(found[0].log_evidence - found[1].log_evidence) < 1e-6
    np.testing.assert_allclose(found[1].draws - 100, found[0].draws, atol=1e-6)
    assert found[0].draws.std(axis=0).max() < 1.05  # no wider than the prior


def test_clouds_live_through_an_opening_whose_end_nobody_sees():
    rule = parse_rule(
        "softmax:temperature=0.3,delay=poisson:30"
    )  # particles know nothing when they are first resampled
    log = rule.demonstrate(ub.Instance([1.0, 0.7, 0.4, 0.0], NOISE), 300, seed=3)
    found = ub.estimate(log, rule, sigma=0.5, check=True)
    assert np.ptp(found.posteriors[0].evidences) < 3
    assert found.check.verdict == "fits"
    again = ub.estimate(log, rule, sigma=0.5, check=False)
    np.testing.assert_array_equal(again.columns.gap, found.columns.gap)


def test_a_log_that_the_rule_cannot_have_made_is_refused_at_its_round():
    log = ub.ActionLog.from_actions("ABBBBBBBBBBB")
    with pytest.raises(ub.UnbanditError, match="round 3"):
        ub.posterior(log, "softmax:temperature=0.3,delay=uniform:5-9", sigma=0.5)


@pytest.mark.parametrize(
    ("rule", "changes", "match"),
    [
        ("softmax:delay=geometric:5", {"rewards": True}, "which of the known rewards the rule knew when"),
        ("softmax:delay=geometric:5", {"pool": True}, "not pooled"),
        (
            "softmax:delay=geometric:5",
            {"availability": {"2": (3, None)}},
            "with a batch or a delay",
        ),
        ("softmax:delay=geometric:5,opening=random", {}, "opening in random order"),
        ("uniform:delay=geometric:5", {}, "do not depend on rewards"),
        ("ucb1:delay=geometric:5", {}, "Closed forms read index"),
    ],
)
def test_what_stays_hidden_is_refused_with_the_reason(rule, changes, match):
    played = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.7, 0.4], NOISE), 60, runs=2, seed=3)
    log, options = played if changes.get("pool") else played.select(0), dict(changes)
    if options.pop("rewards", False):
        log = ub.ActionLog.from_codes(log.demonstration(0), log.arms, rewards=np.linspace(0, 1, 60))
    with pytest.raises(NotIdentifiable, match=match):
        ub.posterior(log, rule, sigma=0.5, **options)


def test_a_rule_that_divides_rewards_is_refused(monkeypatch):
    rule = parse_rule("softmax:delay=geometric:5")
    monkeypatch.setattr(type(rule), "gains", "divided")
    log = ub.ActionLog.from_actions("ABABABAB")
    with pytest.raises(NotIdentifiable, match="divides rewards by the probabilities"):
        infer_by_conventions(log, rule, NORMAL, NOISE, [8])


def test_delays_that_take_too_much_memory_are_refused(monkeypatch):
    monkeypatch.setattr(hidden, "WAITING_BYTES", 10_000)
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.7, 0.4], NOISE), 60, seed=3)
    with pytest.raises(NotIdentifiable, match=r"leave memory for \d+ particles of a cloud.*delay=50\)"):
        ub.posterior(log, "softmax:temperature=0.3,delay=geometric:50", sigma=0.5)
    with pytest.raises(NotIdentifiable, match=r"leave memory for \d+ particles of a cloud. Give fewer"):
        ub.posterior(log, "softmax:temperature=0.3,delay=geometric:50", sigma=0.5, particles=100)


def test_where_more_particles_explain_nothing_the_first_answer_stands(monkeypatch):
    run = hidden.LateRun.run

    def once(task, cloud):
        if task.particles > 40:
            raise CloudCollapsed("none explains the log.", round=9)
        return run(task, cloud)

    monkeypatch.setattr(hidden.LateRun, "run", once)
    monkeypatch.setattr(hidden, "default_particles", lambda *_, **__: 40)
    monkeypatch.setattr(hidden, "UNSETTLED", 0.0)
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.7, 0.4], NOISE), 60, seed=3)
    assert ub.posterior(log, "softmax:temperature=0.3,delay=geometric:3", sigma=0.5).particles == 40


@pytest.mark.parametrize("ask", [ub.posterior, ub.estimate, ub.population])
def test_numbers_are_not_fitted_to_late_rewards(ask):
    log = ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.7, 0.4], NOISE), 60, runs=3, seed=3)
    log = log if ask is ub.population else log.select(0)
    with pytest.raises(NotIdentifiable, match=r"whose numbers are all given.*delay=3"):
        ask(log, "softmax:temperature=fit,delay=geometric:3", sigma=0.5)
