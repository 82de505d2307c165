"""Randomised rules: their probabilities by definition, their draws by their probabilities, their memory by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from unbandit import posterior
from unbandit.demonstrators import (
    EXP3,
    UCB1,
    EpsilonGreedy,
    LearningSoftmax,
    RandomisedRule,
    Softmax,
    Thompson,
    TopTwoThompson,
    Uniform,
    parse_rule,
    rules,
)
from unbandit.demonstrators.base import linear_rules
from unbandit.errors import InferenceError, ParameterError
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels.formula import choose, probability
from unbandit.log import ActionLog

HORIZON = 1000
EXAMPLES = [rule(**given) for rule in rules().values() if issubclass(rule, RandomisedRule) for given in rule.examples]
every_example = pytest.mark.parametrize("rule", EXAMPLES, ids=str)


def chances(rule, pulls, memory, round):
    """Return the probability of every arm."""
    parameters = rule.parameters(HORIZON)
    return np.array([probability(parameters, pulls, memory, round, arm) for arm in range(pulls.size)])


def state_of(rule, rng, arms=4, rounds=60):
    """Play a rule for a while, with rewards of 0 and 1, and return its pulls and its memory."""
    parameters = rule.parameters(HORIZON)
    pulls, memory = np.zeros(arms, np.int64), np.zeros((arms, rule.columns))
    for round in range(1, rounds + 1):
        arm = (
            (round - 1) % arms
            if round <= rule.initial * arms
            else choose(parameters, pulls, memory, round, rng.random(arms))
        )
        reward = float(rng.random() < 0.2 + 0.15 * arm)
        rule.learn(parameters, pulls, memory, round, arm, reward)
        memory[arm, 0] += reward
        pulls[arm] += 1
    return pulls, memory


@every_example
def test_probabilities_sum_to_one(rule):
    rng = np.random.default_rng(1)
    for rounds in (8, 9, 60):
        found = chances(rule, *state_of(rule, rng, rounds=rounds), rounds + 1)
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(1, abs=2e-3 if isinstance(rule, Thompson) else 1e-9)


@every_example
def test_arms_are_chosen_as_often_as_they_are_likely(rule):
    """Chi-square over 4,000 draws from one state; the seed is fixed."""
    rng = np.random.default_rng(5)
    draws = 400 if isinstance(rule, TopTwoThompson) else 4000  # it takes long in plain Python
    pulls, memory = state_of(rule, rng, rounds=12)
    parameters, expected = rule.parameters(HORIZON), chances(rule, pulls, memory, 13)
    counts = np.zeros(pulls.size)
    for uniforms in rng.random((draws, pulls.size)):
        counts[choose(parameters, pulls, memory, 13, uniforms)] += 1
    possible = expected * draws > 1
    assert counts[~possible].sum() <= 10
    scaled = expected[possible] / expected[possible].sum() * counts[possible].sum()
    if possible.sum() > 1:
        assert stats.chisquare(counts[possible], scaled).pvalue > 1e-3


PULLS, SUMS = np.array([3, 5, 2, 4]), np.array([[1.0], [4.0], [1.6], [0.5]])


def test_epsilon_greedy_by_definition():
    assert chances(EpsilonGreedy(epsilon=0.2), PULLS, SUMS, 15) == pytest.approx([0.05, 0.85, 0.05, 0.05])
    tied = EpsilonGreedy(epsilon=0.2, ties="random")
    assert chances(tied, PULLS, SUMS, 15) == pytest.approx([0.05, 0.45, 0.45, 0.05])
    falling = EpsilonGreedy(epsilon=0.5, decay=10)
    assert chances(falling, PULLS, SUMS, 50) == pytest.approx([0.025, 0.925, 0.025, 0.025])
    assert chances(falling, PULLS, SUMS, 5) == pytest.approx([0.25] * 4)
    falling = EpsilonGreedy(epsilon=0.4, rate=math.log(2) / 14)
    assert chances(falling, PULLS, SUMS, 15) == pytest.approx([0.05, 0.85, 0.05, 0.05])
    with pytest.raises(ParameterError, match="decay or rate, not both"):
        EpsilonGreedy(decay=10, rate=0.1)


def test_a_log_that_an_epsilon_of_nearly_nothing_cannot_make_is_refused():
    log = ActionLog.from_actions([[0, 1, 1, 0]])  # after round 3 arm 1 leads, whatever it gains: 1/2 or 1 against 0
    with pytest.raises(InferenceError, match="round 4: none of"):
        posterior(log, "egreedy:epsilon=0.5,rate=500", bernoulli=True, check=False, particles=50)


def test_softmax_by_definition():
    weights = np.exp(SUMS[:, 0] / PULLS / 0.3)
    assert chances(Softmax(temperature=0.3), PULLS, SUMS, 15) == pytest.approx(weights / weights.sum())
    sharper = np.exp(SUMS[:, 0] / PULLS / 0.3 * 4)
    annealed = Softmax(temperature=0.3, annealing=0.5)
    assert chances(annealed, PULLS, SUMS, 16) == pytest.approx(sharper / sharper.sum())
    cold = chances(Softmax(temperature=1e-9), PULLS, np.array([[0.0], [5.0], [1.0], [0.0]]), 15)
    assert cold == pytest.approx([0, 1, 0, 0], abs=1e-300)


def test_values_are_learnt_at_their_rate():
    rule = LearningSoftmax(rate=0.25, temperature=0.5, start=0.4)
    pulls, memory, values = np.zeros(2, np.int64), np.zeros((2, 2)), np.full(2, 0.4)
    for arm, reward in ((0, 1.0), (0, 0.2), (1, -1.0)):
        rule.learn(rule.parameters(HORIZON), pulls, memory, 1, arm, reward)
        values[arm] += 0.25 * (reward - values[arm])
    assert memory[:, 1] + 0.4 == pytest.approx(values)
    expected = np.exp(values / 0.5)
    assert chances(rule, pulls, memory, 4) == pytest.approx(expected / expected.sum())


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("rate", [None, 0.3])
def test_exp3_weighs_a_reward_by_the_probability_of_its_pull(batch, rate):
    """With batches that probability is the one at the batch's first round, whatever was learnt since."""
    rule, rng, arms = EXP3(mixing=0.2, rate=rate, batch=batch), np.random.default_rng(2), 3
    parameters, gains = rule.parameters(HORIZON), np.zeros(arms)
    pulls, memory = np.zeros(arms, np.int64), np.zeros((arms, rule.columns))
    for round in range(1, 20):
        if (round - 1) % batch == 0:
            weights = np.exp((rate or 0.2 / arms) * gains)
            shares = 0.8 * weights / weights.sum() + 0.2 / arms
            assert chances(rule, pulls, memory, round) == pytest.approx(shares)
        arm, reward = int(rng.integers(arms)), float(rng.integers(2))
        rule.learn(parameters, pulls, memory, round, arm, reward)
        gains[arm] += reward / shares[arm]
        memory[arm, 0] += reward
        pulls[arm] += 1
        assert memory[:, 1] == pytest.approx(gains)


def test_thompson_draws_from_its_own_posterior():
    """Its choices, and its probabilities, against draws made by NumPy."""
    rng, size = np.random.default_rng(4), 400_000
    rule = Thompson(mean=0.2, deviation=0.5, sigma=2)
    precision = 0.5**-2 + PULLS / 4
    drawn = rng.normal((0.2 * 4 + SUMS[:, 0] / 4) / precision, precision**-0.5, (size, 4))
    assert chances(rule, PULLS, SUMS, 15) == pytest.approx(np.bincount(drawn.argmax(axis=1)) / size, abs=3e-3)
    rule, sums = Thompson(noise="bernoulli", successes=2, failures=0.5), np.array([[1.0], [4.0], [1.0], [0.0]])
    drawn = rng.beta(2 + sums[:, 0], 0.5 + PULLS - sums[:, 0], (size, 4))
    assert chances(rule, PULLS, sums, 15) == pytest.approx(np.bincount(drawn.argmax(axis=1)) / size, abs=3e-3)


def test_top_two_draws_again_until_another_arm_leads():
    """The probabilities of actions against the rule played by its words, with draws made by NumPy."""
    rng, size = np.random.default_rng(6), 200_000
    rule = TopTwoThompson(beta=0.4, mean=0.2, deviation=0.5, sigma=2)
    precision = 0.5**-2 + PULLS / 4
    centres, deviations = (0.2 * 4 + SUMS[:, 0] / 4) / precision, precision**-0.5
    leaders = rng.normal(centres, deviations, (size, 4)).argmax(axis=1)
    actions, again = leaders.copy(), np.flatnonzero(rng.random(size) >= 0.4)
    while again.size:
        actions[again] = rng.normal(centres, deviations, (again.size, 4)).argmax(axis=1)
        again = again[actions[again] == leaders[again]]
    assert chances(rule, PULLS, SUMS, 15) == pytest.approx(np.bincount(actions) / size, abs=5e-3)


def test_top_two_goes_on_where_the_leader_is_certain():
    """Of three arms the first is certain to lead: the second comes whenever it does not, at any distance."""
    rule, pulls = TopTwoThompson(beta=0.3, deviation=10, sigma=0.5), np.array([4_000, 4_000, 4_000])
    for gap in (0.05, 0.5, 5.0):
        found = chances(rule, pulls, np.array([[4_000.0], [4_000 * (1 - gap)], [4_000 * (1 - 2 * gap)]]), 12_001)
        assert found.sum() == pytest.approx(1)
        if gap > 0.05:
            assert found == pytest.approx([0.3, 0.7, 0.0], abs=1e-6)
    assert chances(rule, np.array([3]), np.array([[1.0]]), 4) == pytest.approx([1.0])


def test_a_batch_draws_anew_from_what_was_seen():
    """Softmax at a high temperature and a batch as long as the record: every round is a draw of its own."""
    rule, instance = Softmax(temperature=1e9, batch=500), Instance([1.0, 0.5])
    actions = rule.demonstrate(instance, 500, seed=3).actions
    assert actions[:2].tolist() == [0, 1]
    assert 200 < actions.sum() < 300
    frozen = EpsilonGreedy(epsilon=1e-9, batch=500).demonstrate(instance, 500, seed=3).actions
    assert len(set(frozen[2:].tolist())) == 1


def test_without_an_opening_untried_arms_have_the_mean_0():
    """As in river without burn-in: the rule decides from the first round on."""
    pulls, memory = np.array([0, 3, 0]), np.array([[0.0], [-1.5], [0.0]])
    assert chances(EpsilonGreedy(epsilon=0.3, initial=0), pulls, memory, 4) == pytest.approx([0.8, 0.1, 0.1])
    shares = np.exp([0.0, -0.5 / 0.4, 0.0])
    found = chances(Softmax(temperature=0.4, initial=0), pulls, memory, 4)
    assert found == pytest.approx(shares / shares.sum())
    log = EpsilonGreedy(epsilon=1e-9, initial=0).demonstrate(Instance([0.9, 0.5, 0.1], Bernoulli()), 30, seed=1)
    assert log.actions[:4].tolist() == [0, 0, 0, 0]  # the lowest of the tied, and no mean is below 0
    assert not EpsilonGreedy(initial=0).shifts
    assert EpsilonGreedy().shifts


def test_rewards_of_another_kind_are_refused():
    for rule in (EXP3(), Thompson(noise="bernoulli")):
        with pytest.raises(ParameterError, match="expected Bernoulli rewards"):
            rule.demonstrate(Instance([1.0, 0.5]), 10)
        rule.demonstrate(Instance([1.0, 0.5], Bernoulli()), 10)
    Thompson().demonstrate(Instance([1.0, 0.5], Bernoulli()), 10)  # a belief, even if it is a wrong one


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("thompson:noise=poisson", "thompson: noise: "),
        ("thompson:sigma=0", "thompson: sigma: "),
        ("thompson:deviation=-1", "thompson: deviation: "),
        ("thompson:noise=bernoulli,sigma=1", 'expected successes, failures for noise bernoulli; got "sigma"'),
        ("thompson:successes=1", 'expected mean, deviation, sigma for noise gaussian; got "successes"'),
        ("thompson:noise=bernoulli,failures=0", "thompson: failures: "),
        ("top-two-thompson:beta=1", "top-two-thompson: beta: "),
        (
            "top-two-thompson:noise=bernoulli",
            'beta, mean, .*, batch, delay, opening; got "noise"',
        ),
        ("epsilon-greedy:epsilon=0", "epsilon-greedy: epsilon: "),
        ("epsilon-greedy:epsilon=1.1", "epsilon-greedy: epsilon: "),
        ("epsilon-greedy:initial=-1", "epsilon-greedy: initial: "),
        ("epsilon-greedy:epsilom=0.1", 'Did you mean "epsilon"'),
        ("softmax:temperature=0", "softmax: temperature: "),
        ("softmax:temperature=nan", "softmax: temperature: "),
        ("softmax:annealing=-1", "softmax: annealing: "),
        ("learning-softmax:rate=0", "learning-softmax: rate: "),
        ("learning-softmax:rate=1.5", "learning-softmax: rate: "),
        ("exp3:mixing=0", "exp3: mixing: "),
        ("exp3:rate=-1", "exp3: rate: "),
        ("uniform:batch=0", "uniform: batch: "),
    ],
)
def test_bad_parameters_are_refused(text, words):
    with pytest.raises(ParameterError, match=words):
        parse_rule(text)


def test_what_they_reveal():
    assert Uniform.reveals == "nothing"
    assert {rule.reveals for rule in (Thompson, EpsilonGreedy, Softmax, LearningSoftmax, EXP3)} == {"values"}
    assert math.isclose(chances(Uniform(), PULLS, SUMS, 3).sum(), 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q-learning:alpha=0.1", '"alpha" is called "rate" here.'),
        (
            "learning-softmax:lr=0.1,beta=4",
            '"lr" is called "rate" here. Here temperature is 1 / beta: for beta=4 write',
        ),
        ("learning-softmax:beta=4", "for beta=4 write temperature=0.25."),
        ("softmax:beta=fit", "Here temperature is 1 / beta."),
        ("softmax:beta=0", "Here temperature is 1 / beta."),
        ("softmax:tau=0.3", '"tau" is called "temperature" here.'),
        ("epsilon-greedy:eps=0.1", '"eps" is called "epsilon" here.'),
        ("exp3:gamma=0.1", '"gamma" is called "mixing" here.'),
        ("ucb1:c=3", "Where the width is c sqrt(ln t / n), exploration is c^2: for c=3 write exploration=9."),
        ("ucb:c=3", 'got "c".'),
        ("softmax:temperatur=3", 'Did you mean "temperature"?'),
    ],
)
def test_parameters_by_their_names_elsewhere(text, said):
    with pytest.raises(ParameterError) as refused:
        parse_rule(text)
    assert said in str(refused.value)


def test_conversions_of_other_names_keep_the_rule():
    assert UCB1(exploration=9).index(0.5, 4, 100, 1_000) == pytest.approx(0.5 + 3 * np.sqrt(np.log(100) / 4))
    memory = np.array([[0.0, 0.3], [0.0, 0.5]])
    shares = chances(LearningSoftmax(temperature=0.25), np.array([1, 1]), memory, 3)
    assert shares[1] / shares[0] == pytest.approx(math.exp(4 * (0.5 - 0.3)))


@pytest.mark.parametrize("rule", [*rules().values(), *linear_rules().values()], ids=lambda rule: rule.name)
def test_names_elsewhere_stand_for_parameters_of_the_rule(rule):
    assert {each.name for each in rule.called.values()} <= set(rule.model_fields)
    assert not set(rule.called) & set(rule.model_fields)
