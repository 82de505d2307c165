"""Arms that arrive late or are withdrawn: played as plain Python plays them, and refused where nothing is defined."""

import pytest
from reference_available import reference_available

from unbandit import Bernoulli, Instance, NotIdentifiable, ParameterError
from unbandit.demonstrators import parse_rule

GAUSSIAN = Instance([0.2, 1.0, 0.6, 0.4], 0.5)
OUTCOMES = Instance([0.3, 0.8, 0.5, 0.6], Bernoulli())
TABLE = {"2": (21, None), "3": (60, 120), "1": (None, 90)}  # the best arm is withdrawn
SPANS = {2: (21, 1e9), 3: (60, 120), 1: (1, 90)}


@pytest.mark.parametrize(
    "text",
    [
        "ucb:alpha=0.25", "ucb:alpha=0.25,initial=2", "ucb:alpha=0.25,ties=random", "ucb1", "klucb", "moss", "lilucb",
        "ucb:alpha=0.25,batch=7", "ucb:alpha=0.25,delay=6", "ucb1:batch=5,delay=9,initial=2",
        "klucb:delay=4,ties=random", "sae:alpha=0.1,scale=0.3", "successive-elimination:sigma=0.1",
        "thompson:sigma=0.5", "softmax:initial=2",
        "thompson:noise=bernoulli,initial=2", "epsilon-greedy", "softmax", "learning-softmax",
    ],
)  # fmt: skip
def test_rules_are_played_as_in_plain_python(text):
    rule = parse_rule(text)
    instance = OUTCOMES if "bernoulli" in text or text.startswith("klucb") else GAUSSIAN
    played = rule.demonstrate(instance, 200, runs=2, seed=5, availability=TABLE, threads=1)
    for run in range(2):
        assert played.demonstration(run).tolist() == reference_available(rule, instance, 200, SPANS, run, 5)


@pytest.mark.parametrize(
    "text",
    ["ucb:alpha=0.25", "ucb1", "sae:alpha=0.1,scale=0.3", "thompson:sigma=0.5", "ucb1:batch=6,delay=7,initial=2"],
)
def test_arms_that_are_always_there_change_nothing(text):
    rule = parse_rule(text)
    plain, told = (rule.demonstrate(GAUSSIAN, 400, seed=3, availability=each) for each in (None, {"0": (1, 400)}))
    assert plain.demonstration(0).tolist() == told.demonstration(0).tolist()


def test_an_eliminated_arm_comes_back_where_no_other_is_left():
    rule = parse_rule("sae:alpha=0.1,scale=0.1")
    actions = rule.demonstrate(GAUSSIAN, 300, seed=1, availability={"1": (None, 150)}).demonstration(0)
    assert set(actions[60:150].tolist()) == {1}
    assert set(actions[150:].tolist()) == {0, 2, 3}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sae:delay=5", "a batch or a delay"), ("softmax:delay=3", "a batch or a delay"),
        ("ucb:delay=geometric:5", "random delays"),
        ("phased", "tests at some epochs only"), ("exp3", "its weights"), ("sliding-window-ucb", "of this kind"),
    ],
)  # fmt: skip
def test_rules_without_a_meaning_are_refused(text, why):
    with pytest.raises(NotIdentifiable, match=why):
        parse_rule(text).demonstrate(OUTCOMES, 50, availability={"1": (11, None)})


def test_tables_that_cannot_be_are_refused(tmp_path):
    rule = parse_rule("ucb")
    with pytest.raises(ParameterError, match="there is none in round 31"):
        rule.demonstrate(GAUSSIAN, 50, availability=dict.fromkeys("0123", (None, 30)))
    with pytest.raises(ParameterError, match='expected one of 0, 1, 2, 3; got "9"'):
        rule.demonstrate(GAUSSIAN, 50, availability={"9": (2, None)})
    with pytest.raises(ParameterError, match='up to the last, 4, for "0"; got 9'):
        rule.demonstrate(GAUSSIAN, 50, availability={"0": (9, 4)})
    for span in ("12", (1,), 5):
        with pytest.raises(ParameterError, match="expected the first and the last round"):
            rule.demonstrate(GAUSSIAN, 50, availability={"0": span})
    for wrong in (0, 2.5, "x", True):
        with pytest.raises(ParameterError, match="expected a round, counted from 1"):
            rule.demonstrate(GAUSSIAN, 50, availability={"0": (wrong, None)})
    path = tmp_path / "arms.csv"
    path.write_text("arm,first\n0,3\n")
    with pytest.raises(ParameterError, match='there is no "last"'):
        rule.demonstrate(GAUSSIAN, 50, availability=path)
    path.write_text("arm,first,last\n0,3,\n0,4,\n")
    with pytest.raises(ParameterError, match="expected each arm once"):
        rule.demonstrate(GAUSSIAN, 50, availability=path)
    path.write_text("arm,first,last\n2,21,\n3,60,120\n1,,90\n")
    assert rule.demonstrate(GAUSSIAN, 150, availability=path) == rule.demonstrate(GAUSSIAN, 150, availability=TABLE)
