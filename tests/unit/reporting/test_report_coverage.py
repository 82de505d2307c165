"""A report quotes how often intervals held in simulations like its log, or says that there are none."""

from __future__ import annotations

from dataclasses import replace

import made
import pytest

from unbandit import parse_rule
from unbandit.errors import Notice
from unbandit.fit import Check
from unbandit.reporting.assumptions import assumptions

UCB = parse_rule(made.UCB)
NONE = "No simulation like this one was run"
WHERE = "ucb:alpha=0.25,scale=1.414, 4 arms, 2,000 rounds"
LIKE = f"In simulations like this one ({WHERE}) 95% intervals of gaps held the truth in"


def level(answer, log=None, rule=UCB, **options) -> str:
    return assumptions(answer, rule, log or made.log_of(made.UCB, 1_000), options).get("The level", "")


def none(difference: str) -> str:
    return f"{NONE} ({difference}), so how often these intervals hold was not measured."


@pytest.mark.parametrize("kind", ["gaps", "means"])
def test_the_row_that_fits_is_quoted(kind):
    assert LIKE in made.report_of(kind).main
    assert NONE not in made.report_of(kind).main


def test_what_was_not_simulated_is_said():
    answer = made.report_of("gaps").answer
    assert LIKE in level(answer)
    assert none("none with intervals of 80%") in level(replace(answer, level=0.8))
    assert none("none of pooled demonstrations") in level(answer, pool=True)
    long = made.log_of(made.UCB, 50_000)
    assert none("none with about 50,000 rounds") in level(replace(answer, horizons=[50_000]), long)
    assert none("none with a horizon other than the log's length") in level(answer, long)
    assert none("none of posteriors that know a mean or rewards") in level(
        replace(answer, method="posterior"), best_mean=1.0
    )
    assert NONE in level(replace(answer, method="posterior"), particles=50)
    assert none("none of bootstrap intervals") in made.report_of("bootstrap").main
    assumed = Notice("sigma-assumed", "The rewards' standard deviation was not given.")
    assert none("none with sigma assumed") in level(replace(answer, sigma=1.0, warnings=(assumed,)))
    assert none("none with sigma near 5") in level(replace(answer, sigma=5.0))


@pytest.mark.parametrize(
    ("rule", "difference"),
    [
        ("ucb:alpha=0.25,batch=20", "none with batch=20"),
        ("ucb:alpha=0.25,initial=3", "none with initial=3"),
        ("ucb:alpha=0.25,ties=random", "none with ties=random"),
        ("ucb1:clock=pulls", "none with clock=pulls"),
        ("ucb:alpha=0.9,scale=20", "none with parameters near these"),
        ("moss:arms=7", "none with arms=7"),
    ],
)
def test_no_row_of_a_rule_that_works_otherwise_is_quoted(rule, difference):
    assert none(difference) in level(made.report_of("gaps").answer, rule=parse_rule(rule))


def test_the_nearest_simulations_are_called_so():
    answer = made.report_of("gaps").answer
    near = level(answer, rule=parse_rule("ucb:alpha=0.3,scale=1.414"))
    assert f"In the nearest simulations ({WHERE}; your rule has other parameters) 95% intervals of gaps held" in near
    near = level(replace(answer, sigma=0.8))
    assert f"In the nearest simulations ({WHERE}; sigma 0.5 where yours is 0.8) 95% intervals of gaps held" in near


def test_a_mean_must_be_known_as_it_was_in_the_simulations():
    answer = made.report_of("gaps").answer
    (best,) = answer.best
    other = next(arm for arm in answer.arms if arm != best)
    assert LIKE in level(answer, anchor={best: 1.0})
    assert none("none with the mean of another arm than the best") in level(answer, anchor={other: 1.0})
    unknown, bernoulli = none("none without the best arm's mean"), replace(answer, sigma=None)
    assert unknown in level(bernoulli, rule=parse_rule("klucb"))
    assert "In simulations like this one (klucb" in level(bernoulli, rule=parse_rule("klucb"), best_mean=0.9)
    gaussian = parse_rule("klucb:noise=gaussian,sigma=0.5")
    shifted = level(answer, rule=gaussian)
    assert (unknown in shifted) == (not gaussian.shifts)


def test_a_rule_that_does_not_fit_has_no_simulations():
    answer = replace(made.report_of("gaps").answer, check=Check("does not fit", 0.001))
    assert "simulation" not in level(answer)
