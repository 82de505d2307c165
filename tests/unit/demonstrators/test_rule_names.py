"""Names of rules, however they are spelt."""

from __future__ import annotations

import pytest

from unbandit.contexts.rule import linear_rule_named
from unbandit.demonstrators.base import aliases, linear_rules, parse_rule, rules
from unbandit.demonstrators.rule import aliases_of, spelling
from unbandit.errors import ParameterError


@pytest.mark.parametrize(
    ("spelt", "name"),
    [
        ("qlearning", "learning-softmax"), ("Q_Learning", "learning-softmax"), ("ucb1tuned", "ucb-tuned"),
        ("UCB1-Tuned", "ucb-tuned"), ("UCB tuned", "ucb-tuned"), ("ucb-1", "ucb1"), ("UCB_1", "ucb1"),
        ("kl-UCB", "klucb"), ("EpsilonGreedy", "epsilon-greedy"), ("explore then commit", "explore-then-commit"),
    ],
)  # fmt: skip
def test_capitals_hyphens_underscores_and_blanks_do_not_matter(spelt, name):
    assert parse_rule(spelt).name == name


def test_parameters_without_a_colon_are_refused_with_one():
    with pytest.raises(ParameterError, match='as in "ucb1:batch=20,delay=geometric:50"') as refused:
        parse_rule("ucb1,batch=20,delay=geometric:50")
    assert refused.value.parameter == "rule"


def test_a_rule_for_features_is_found_alike():
    assert linear_rule_named("Lin_UCB") is linear_rules()["linucb"]
    with pytest.raises(ParameterError, match="without features"):
        parse_rule("Lin-UCB")


def test_no_two_known_names_of_different_rules_are_spelt_alike():
    known = {**rules(), **aliases(), **linear_rules(), **aliases_of(linear_rules())}
    spelt = {}
    for name, rule in known.items():
        assert spelt.setdefault(spelling(name), rule) is rule, name


def test_another_name_is_still_refused():
    for name in ("ucb1tune", "-", "q", "ucb.1"):
        with pytest.raises(ParameterError, match="expected one of"):
            parse_rule(name)
