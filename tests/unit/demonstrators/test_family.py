"""Rules with numbers to be fitted: how they are written, and that nothing plays them."""

import pickle

import pytest

import unbandit as ub
from unbandit.demonstrators.base import rule_or_family
from unbandit.demonstrators.family import RuleFamily
from unbandit.errors import NotIdentifiable, ParameterError


def test_a_number_that_is_fit_makes_a_family():
    family = ub.UCB(alpha=0.3, scale=ub.FIT)
    assert isinstance(family, RuleFamily)
    assert str(family) == "ucb:alpha=0.3,scale=fit"
    assert rule_or_family("ucb:alpha=0.3,scale=fit") == family
    assert pickle.loads(pickle.dumps(family)) == family
    assert family.at({"scale": 2.0}) == ub.UCB(alpha=0.3, scale=2.0)


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("ucb:fit", ("alpha", "scale")),
        ("ucb:alpha=0.2,fit", ("scale",)),
        ("learning-softmax:fit", ("rate", "temperature")),
        ("learning-softmax:rate=0.1,fit", ("temperature",)),
        ("thompson:deviation=fit,fit", ("deviation", "sigma")),
        ("klucb:noise=gaussian,fit", ("sigma",)),
    ],
)
def test_fit_alone_stands_for_what_can_be_fitted_and_is_not_given(text, free):
    assert rule_or_family(text).free == free


def test_every_number_that_is_fitted_by_default_is_one_of_the_rule():
    for rule in ub.rules().values():
        assert set(rule.fits) <= set(rule.model_fields), rule


def test_nothing_plays_a_family():
    family = ub.UCB1(exploration=ub.FIT)
    for use in (
        lambda: family.demonstrate(ub.Instance([1.0, 0.5]), 100),
        lambda: ub.parse_rule("ucb1:fit"),
        lambda: ub.leak(ub.Instance([1.0, 0.5]), "ucb1:fit", horizon=1_000),
    ):
        with pytest.raises(ParameterError, match="expected a rule whose numbers are all known; got uc"):
            use()


@pytest.mark.parametrize("text", ["sae:fit", "sae:scale=fit", "successive-elimination:sigma=fit", "phased:alpha=fit"])
def test_elimination_rules_are_refused_with_the_reason(text):
    with pytest.raises(NotIdentifiable, match="leaves one number per arm"):
        rule_or_family(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("klucb:level=fit", "level: expected a value; only real numbers, initial, batch, ties and delay are fitted"),
        ("ucb:scal=fit", 'got "scal"'),
        ("ucb:scale=fit,sigma=2", "expected scale or sigma, not both"),
        ("klucb:fit", "expected no sigma with Bernoulli rewards"),
        ("uniform:fit", "has none"),
    ],
)
def test_what_cannot_be_fitted_is_refused(text, message):
    with pytest.raises(ParameterError, match=message):
        rule_or_family(text)
