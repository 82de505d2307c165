"""Late rewards: every rule is played as plain Python plays it, and what cannot carry a delay says so."""

import numpy as np
import pytest
import scipy.stats
from reference import reference_index, reference_sae, simulated
from reference_randomised import reference_randomised

from unbandit import UCB, Bernoulli, Instance, NotIdentifiable, ParameterError, plan
from unbandit.demonstrators import IndexRule, parse_rule
from unbandit.demonstrators.delay import RandomDelay
from unbandit.demonstrators.elimination import EliminationRule
from unbandit.kernels.formula import probability

GAUSSIAN = Instance([0.2, 1.0, 0.6], 0.5)
OUTCOMES = Instance([0.3, 0.8, 0.5], Bernoulli())


def reference(rule, instance, horizon, run, seed):
    play = reference_index if isinstance(rule, IndexRule) else reference_randomised
    return (reference_sae if isinstance(rule, EliminationRule) else play)(rule, instance, horizon, run, seed)


@pytest.mark.parametrize(
    "text",
    [
        "ucb:alpha=0.25", "ucb:alpha=0.25,batch=4,initial=2", "ucb:alpha=0.25,ties=random", "ucb1", "ucb1:batch=3",
        "klucb", "ucbv", "sae:alpha=0.1,scale=0.4", "sae:alpha=0.1,scale=0.4,batch=3", "phased:alpha=0.1,scale=0.3",
        "explore-then-commit", "thompson:sigma=0.5", "thompson:noise=bernoulli,batch=3", "epsilon-greedy",
        "softmax", "softmax:initial=2,batch=3", "learning-softmax", "exp3:mixing=0.3", "exp3:initial=2,batch=3",
    ],
)  # fmt: skip
@pytest.mark.parametrize("delay", [1, 30, "geometric:20", "poisson:7.5", "uniform:3-40"])
def test_late_rewards_are_played_as_in_plain_python(text, delay):
    if "exp3" in text and isinstance(delay, str):
        return  # its delays are fixed
    rule = parse_rule(f"{text}{',' if ':' in text else ':'}delay={delay}")
    instance = OUTCOMES if "bernoulli" in text or text in ("klucb", "ucbv") or "exp3" in text else GAUSSIAN
    played = simulated(rule, instance, 150, 2, seed=5)
    for run in range(2):
        assert played[run].tolist() == reference(rule, instance, 150, run, 5)


def test_a_delay_changes_what_is_played_and_is_written():
    prompt, late = (simulated(parse_rule(f"ucb:alpha=0.25,delay={delay}"), GAUSSIAN, 300) for delay in (0, 20))
    assert not np.array_equal(prompt, late)
    assert late[0, :23].tolist() == [t % 3 for t in range(23)]  # in turn until a reward of each arm is known
    assert str(parse_rule("ucb:alpha=0.25,delay=20")) == f"{parse_rule('ucb:alpha=0.25')},delay=20"


@pytest.mark.parametrize("text", ["geometric:50", "geometric:0.5", "poisson:50", "poisson:800", "uniform:2-9"])
def test_random_delays_have_their_distribution(text):
    delay = RandomDelay.read(text)
    rounds, chances = np.arange(delay.cumulative.size), np.diff(delay.cumulative, prepend=0.0)
    known = {
        "geometric": scipy.stats.geom(1 / (1 + delay.mean), loc=-1),
        "poisson": scipy.stats.poisson(delay.mean),
        "uniform": scipy.stats.randint(2, 10),
    }[delay.kind]
    assert delay.cumulative == pytest.approx(known.cdf(rounds), abs=1e-12)
    assert delay.cumulative[-1] == 1.0
    assert rounds @ chances == pytest.approx(delay.mean)
    assert (rounds - delay.mean) ** 2 @ chances == pytest.approx(delay.deviation**2)
    assert str(delay) == text
    rule = parse_rule(f"ucb:delay={text}")
    assert type(rule).model_validate_json(rule.model_dump_json()) == rule == parse_rule(str(rule))


@pytest.mark.parametrize(
    ("delay", "problem"),
    [
        ("normal:5", "one of geometric:MEAN, poisson:MEAN, uniform:LEAST-MOST"), ("geometric", "geometric:MEAN"),
        ("geometric:0", "a mean above 0"), ("poisson:1e9", "poisson:MEAN"), ("geometric:20000", "up to 10,000"),
        ("uniform:9-2", "in rising order"), ("uniform:5", "uniform:LEAST-MOST"), (True, "a whole number of rounds"),
        (2.5, "a whole number of rounds"), (None, "a whole number of rounds"), (-1, "0 or more"), (2**32, "fewer than"),
    ],
)  # fmt: skip
def test_what_is_no_delay_is_refused(delay, problem):
    with pytest.raises(ParameterError, match=f"ucb: delay: expected .*{problem}"):
        UCB(delay=delay)


@pytest.mark.parametrize(
    "text", ["sae:alpha=0.1,scale=0.4", "sae:alpha=0.1,scale=0.4,delay=9", "epsilon-greedy:initial=2"]
)
def test_an_opening_in_random_order_is_played_as_in_plain_python(text):
    rule = parse_rule(f"{text},opening=random")
    played = simulated(rule, GAUSSIAN, 150, 6, seed=5)
    for run in range(6):
        assert played[run].tolist() == reference(rule, GAUSSIAN, 150, run, 5)
    assert len({tuple(row[:3].tolist()) for row in played}) > 1
    assert all(sorted(row[:3].tolist()) == [0, 1, 2] for row in played)
    if isinstance(rule, EliminationRule):
        evidence = rule.evidence(GAUSSIAN, 150, runs=6, seed=5)
        assert evidence.pulls.tolist() == [np.bincount(row, minlength=3).tolist() for row in played]


def test_an_order_without_an_opening_is_refused():
    with pytest.raises(ParameterError, match="expected initial=1 or more with opening=random"):
        parse_rule("thompson:opening=random")
    with pytest.raises(NotIdentifiable, match="where a new arm comes in a random order"):
        parse_rule("sae:opening=random").check_availability()
    with pytest.raises(ParameterError, match="expected parameters among"):
        parse_rule("ucb:opening=random")  # its ties=random does that


def test_eliminations_are_counted_as_they_show():
    rule = parse_rule("sae:alpha=0.1,scale=0.4,delay=30")
    evidence = rule.evidence(GAUSSIAN, 600, runs=3, seed=2)
    for run in range(3):
        actions = simulated(rule, GAUSSIAN, 600, 3, seed=2)[run]
        assert evidence.pulls[run].tolist() == np.bincount(actions, minlength=3).tolist()
    assert evidence.gone.any()


def test_what_cannot_carry_a_delay_says_so():
    with pytest.raises(ParameterError, match="delay: expected less than or equal to 1000"):
        parse_rule("exp3:delay=5000")
    with pytest.raises(ParameterError, match="expected a batch of 1,000 or fewer beside a delay"):
        parse_rule("exp3:delay=5,batch=1000000")
    with pytest.raises(ParameterError, match="delay: expected a number; got 'geometric:5'"):
        parse_rule("exp3:delay=geometric:5")
    with pytest.raises(NotIdentifiable, match="with late rewards, such as"):
        plan(GAUSSIAN, "ucb:alpha=0.25,delay=geometric:5", 0.1)
    with pytest.raises(ParameterError, match="delay: "):
        parse_rule("ucb:delay=-1")
    with pytest.raises(ParameterError, match="got ucb with delay=5"):
        parse_rule("ucb:alpha=0.25,delay=5").evidence(GAUSSIAN, 100, draw="needed")


@pytest.mark.parametrize(("delay", "batch", "initial"), [(1, 1, 0), (4, 1, 1), (3, 2, 0), (2, 5, 2)])
def test_exp3_divides_a_late_reward_by_the_probability_of_its_own_pull(delay, batch, initial):
    """By the definition: what was known at a round's look decides its probabilities, and these divide its reward."""
    rule, arms, rng = (
        parse_rule(f"exp3:mixing=0.2,delay={delay},batch={batch},initial={initial}"),
        3,
        np.random.default_rng(1),
    )
    parameters, divided = rule.parameters(60), []
    pulls, memory = np.zeros(arms, np.int64), np.zeros((arms, rule.columns))
    opening = initial * arms + delay if initial else 0
    waiting = []
    for round in range(1, 61):
        if round > delay + 1:
            learnt, reward = waiting.pop(0)
            rule.learn(parameters, pulls, memory, round - delay - 1, learnt, reward)
            memory[learnt, 0] += reward
            pulls[learnt] += 1
        chances = np.full(arms, 1 / arms)
        if round > opening:
            look = round - (round - 1 - opening) % batch
            gains = sum((gain for gain in divided[: max(look - 1 - delay, 0)]), np.zeros(arms))
            weights = np.exp(0.2 / arms * gains)
            chances = 0.8 * weights / weights.sum() + 0.2 / arms
            if look == round:
                found = [probability(parameters, pulls, memory, round, arm) for arm in range(arms)]
                assert found == pytest.approx(chances)
        arm, reward = int(rng.integers(arms)), float(rng.integers(2))
        divided.append(reward / chances[arm] * np.eye(arms)[arm])
        waiting.append((arm, reward))
