"""Late rewards: every rule is played as plain Python plays it, and what cannot carry a delay says so."""

import numpy as np
import pytest
from reference import reference_index, reference_sae, simulated
from reference_randomised import reference_randomised

from unbandit import Bernoulli, Instance, ParameterError
from unbandit.demonstrators import IndexRule, parse_rule
from unbandit.demonstrators.elimination import EliminationRule

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
        "softmax", "softmax:initial=2,batch=3", "learning-softmax",
    ],
)  # fmt: skip
@pytest.mark.parametrize("delay", [1, 30])
def test_late_rewards_are_played_as_in_plain_python(text, delay):
    rule = parse_rule(f"{text}{',' if ':' in text else ':'}delay={delay}")
    instance = OUTCOMES if "bernoulli" in text or text in ("klucb", "ucbv") else GAUSSIAN
    played = simulated(rule, instance, 150, 2, seed=5)
    for run in range(2):
        assert played[run].tolist() == reference(rule, instance, 150, run, 5)


def test_a_delay_changes_what_is_played_and_is_written():
    prompt, late = (simulated(parse_rule(f"ucb:alpha=0.25,delay={delay}"), GAUSSIAN, 300) for delay in (0, 20))
    assert not np.array_equal(prompt, late)
    assert late[0, :23].tolist() == [t % 3 for t in range(23)]  # in turn until a reward of each arm is known
    assert str(parse_rule("ucb:alpha=0.25,delay=20")) == f"{parse_rule('ucb:alpha=0.25')},delay=20"


def test_eliminations_are_counted_as_they_show():
    rule = parse_rule("sae:alpha=0.1,scale=0.4,delay=30")
    evidence = rule.evidence(GAUSSIAN, 600, runs=3, seed=2)
    for run in range(3):
        actions = simulated(rule, GAUSSIAN, 600, 3, seed=2)[run]
        assert evidence.pulls[run].tolist() == np.bincount(actions, minlength=3).tolist()
    assert evidence.gone.any()


def test_what_cannot_carry_a_delay_says_so():
    with pytest.raises(ParameterError, match="got 5. It is the delay, always 0: late rewards".replace(".", "[.]")):
        parse_rule("exp3:delay=5")
    with pytest.raises(ParameterError, match="delay: "):
        parse_rule("ucb:delay=-1")
    with pytest.raises(ParameterError, match="got ucb with delay=5"):
        parse_rule("ucb:alpha=0.25,delay=5").evidence(GAUSSIAN, 100, draw="needed")
