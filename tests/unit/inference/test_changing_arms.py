"""Posteriors where arms or rewards of index rules come late: held against counting, simulations and plain logs."""

import numpy as np
import pytest
from reference_posterior import exact_posterior

import unbandit as ub
from unbandit.demonstrators import parse_rule
from unbandit.inference import infer
from unbandit.inference.clouds import LookAhead, run_filters
from unbandit.inference.prior import belief_of
from unbandit.log.availability import availability_of

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

OUTCOMES, PRIOR = ub.Instance([0.7, 0.4, 0.6], ub.Bernoulli()), ub.BetaPrior(1.5, 1.0)
TABLE, SPANS = {"2": (5, None), "0": (None, 7)}, {2: (5, 1e9), 0: (1, 7)}
INSTANCE, NORMAL, NOISE = ub.Instance([0.2, 1.0, 0.6], 0.5), ub.NormalPrior(0.0, 1.0), ub.Gaussian(0.5)


@pytest.mark.parametrize(
    "text",
    [
        "thompson:sigma=0.5", "thompson:noise=bernoulli", "softmax:temperature=0.3",
        "softmax:temperature=0.3,initial=0",
        "learning-softmax:rate=0.4,temperature=0.4", "epsilon-greedy:epsilon=0.3",
        "top-two-thompson:beta=0.6,sigma=0.5",
        "ucb:alpha=0.25,scale=0.5", "ucb:scale=0.4,initial=2", "ucb:scale=0.3,ties=random", "ucb1:exploration=0.5",
    ],
)  # fmt: skip
def test_evidence_and_means_are_those_of_counting(text):
    rule = parse_rule(text).for_arms(3)
    played = rule.demonstrate(OUTCOMES, 12, seed=3, availability=TABLE).demonstration(0)
    short = ub.ActionLog.from_codes(np.ascontiguousarray(played[:9]), OUTCOMES.arms)
    evidence, means = exact_posterior(rule, [played[:9].tolist()], 3, (1.5, 1.0), 12, spans=SPANS)
    options = {"horizon": 12, "particles": 2_000, "seed": 1, "check": False}
    found = ub.posterior(short, rule, prior=PRIOR, bernoulli=True, availability=TABLE, **options)
    assert abs(found.log_evidence - evidence) < 0.03 + 4 * found.log_evidence_error
    assert np.allclose(found.draws.mean(axis=0), means, atol=0.03)


@pytest.mark.parametrize(
    ("text", "seed"),
    [
        ("ucb:alpha=0.25,scale=0.5", 1), ("ucb1:exploration=0.3", 1), ("thompson:sigma=0.5", 6),
        pytest.param("ucb:alpha=0.25,scale=0.5,delay=3", 5, marks=pytest.mark.thorough),
        ("ucb1:exploration=0.3,delay=2", 5),
    ],
)  # fmt: skip
def test_normal_rewards_are_those_of_simulations_that_made_the_log(text, seed):
    rule = parse_rule(text)
    there = availability_of({"2": (5, None), "0": (None, 9)}, INSTANCE.arms) if "delay" not in text else None
    log = rule.demonstrate(INSTANCE, 12, seed=seed, availability=there)
    drawn = np.random.default_rng(1).normal(size=(150_000, 3))
    played = rule.demonstrate_at(drawn, NOISE, 12, seed=4, availability=there)
    alike = drawn[(played == log.demonstration(0)).all(axis=1)]
    assert len(alike) > 300
    found = infer(log, rule, NORMAL, NOISE, [12], particles=2_000, seed=1, there=there)
    error = found.log_evidence_error + len(alike) ** -0.5
    assert abs(found.log_evidence - np.log(len(alike) / len(drawn))) < 4 * error
    away = np.abs(found.draws.mean(axis=0) - alike.mean(axis=0))
    assert (away < 0.03 + 4 * alike.std(axis=0) / len(alike) ** 0.5).all()


@pytest.mark.parametrize("text", ["thompson:sigma=0.5", "epsilon-greedy:epsilon=0.2", "ucb:alpha=0.25,scale=0.5"])
def test_arms_that_were_always_there_change_no_bit(text):
    rule = parse_rule(text)
    log = rule.demonstrate(INSTANCE, 40, seed=3)
    options = {"sigma": 0.5, "particles": 50, "seed": 2, "check": False}
    plain = ub.posterior(log, rule, **options)
    told = ub.posterior(log, rule, availability={"0": (1, 40)}, **options)
    assert np.array_equal(plain.means, told.means)
    assert np.array_equal(plain.evidences, told.evidences)
    assert told.rivals is None


@pytest.mark.thorough
def test_looking_ahead_changes_nothing_but_the_error():
    rule, table = ub.Thompson(sigma=0.5), {"2": (41, None), "0": (None, 70)}
    there = availability_of(table, INSTANCE.arms)
    log, belief = rule.demonstrate(INSTANCE, 90, seed=1, availability=there), belief_of(NORMAL, 3, NOISE, None)
    looking = run_filters(log, rule, belief, [90], 300, 4, 1, 1, there=there)
    straight = run_filters(log, rule, belief, [90], 1_500, 4, 1, 1, there=there, look_ahead=LookAhead())
    assert looking.twisted
    assert not straight.twisted
    assert np.isfinite(looking.surprise).all()
    error = np.hypot(looking.evidences.std(), straight.evidences.std())
    assert abs(looking.evidences.mean() - straight.evidences.mean()) < 0.1 + 2 * error


def test_gaps_are_to_the_best_arm_that_was_there():
    rule, table = ub.Thompson(sigma=0.5), {"1": (None, 150)}  # the best arm is withdrawn
    log = rule.demonstrate(INSTANCE, 300, seed=2, availability=table)
    found = ub.estimate(log, rule, sigma=0.5, availability=table, seed=1, particles=100, check=True)
    assert {"availability", "gap-to"} <= {each.code for each in found.notes}
    assert found["1"].verdict == "best"
    assert found.apart(found.demonstrations[0]) == ("1",)
    assert found["2"].gap < 0.3  # to "0" alone, not to "1"
    own = found.posteriors[0]
    assert own.rivals.tolist() == [[True, False, True], [True, True, True], [True, False, True]]
    assert np.array_equal(own.gaps[..., 2], own.means[..., [0, 2]].max(axis=-1) - own.means[..., 2])
    assert found.check.verdict == "fits"


def test_the_bootstrap_simulates_the_same_arms():
    rule, table = ub.EpsilonGreedy(epsilon=0.3), {"2": (11, None)}
    log = rule.demonstrate(INSTANCE, 30, seed=2, availability=table)
    options = {"sigma": 0.5, "availability": table, "seed": 1, "particles": 20, "check": False}
    found = ub.estimate(log, rule, method="bootstrap", resamples=100, **options)
    assert {"availability", "bootstrap"} <= {each.code for each in found.notes}
    assert np.isfinite(found.columns.mean_low).all()


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("sae:scale=0.2", {}, "no posterior of a rule of this kind"),
        ("ucb:batch=5", {}, "a batch or a delay"),
        ("softmax:delay=3", {}, "a batch or a delay"),
        ("exp3", {"bernoulli": True}, "its weights depend"),
        ("thompson:sigma=0.5", {"best_mean": 1.0}, "the arm pulled most may not be the best"),
        ("thompson:sigma=0.5", {"pool": True}, "are not combined"),
    ],
)
def test_what_no_filter_reads_is_refused(text, options, why):
    log = ub.Thompson(sigma=0.5).demonstrate(INSTANCE, 60, runs=2, seed=2, availability={"2": (21, None)})
    log = log if "pool" in options else log.select(0)
    given = {} if "bernoulli" in options else {"sigma": 0.5}
    with pytest.raises(ub.UnbanditError, match=why):
        ub.posterior(log, parse_rule(text), availability={"2": (21, None)}, **given, **options)


@pytest.mark.parametrize("text", ["ucb:alpha=0.25", "softmax"])
def test_an_arm_that_was_not_opened_when_it_came_is_refused(text):
    rule = parse_rule(text)
    log = rule.demonstrate(INSTANCE, 60, seed=2, availability={"2": (21, None)})
    with pytest.raises(ub.InferenceError, match=r'round 11: .*once before it decides, and "2" would have come'):
        ub.posterior(log, rule, sigma=0.5, availability={"2": (11, None)})
    with pytest.raises(ub.LogError, match="is pulled in round 21"):
        ub.posterior(log, rule, sigma=0.5, availability={"2": (31, None)})


def played_by(rule, table, seed=2):
    return rule.demonstrate(ub.Instance([1.0, 0.7, 0.3, 0.0], 0.5), 1_000, seed=seed, availability=table)


def test_where_an_arm_was_withdrawn_other_index_rules_are_told_apart():
    table = {"1": (None, 500)}
    log = played_by(ub.UCB1(), table)
    right, wrong = (
        ub.estimate(log, rule, sigma=0.5, availability=table, check=True).check for rule in (ub.UCB1(), ub.UCB())
    )
    assert (right.verdict, wrong.verdict) == ("fits", "does not fit")
    assert wrong.instead[0].startswith("ucb1")


def test_where_the_best_arm_was_withdrawn_decisions_are_still_predicted():
    table = {"0": (None, 500)}
    found = ub.estimate(played_by(ub.UCB1(), table), ub.UCB1(), sigma=0.5, availability=table, check=True).check
    assert found.verdict == "fits"
    assert found.simulations > 0


def test_an_arm_that_arrives_is_opened_at_once_or_the_rule_does_not_fit():
    table = {"1": (301, None)}
    log = played_by(ub.Thompson(sigma=0.5), table)
    found = ub.estimate(log, ub.UCB1(), sigma=0.5, availability=table, check=True).check
    assert found.verdict == "does not fit"
    assert "before it decides" in found.reason
    own = ub.posterior(log, ub.Thompson(sigma=0.5), sigma=0.5, availability=table, particles=300, check=True).check
    assert own.verdict == "fits"
    assert "arms arrive late" in own.reason  # so that index rules were not asked
