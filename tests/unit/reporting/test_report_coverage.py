"""A report quotes how often intervals held in simulations like its log, or says that there are none."""

from __future__ import annotations

from dataclasses import replace

import made
import pytest

from unbandit import parse_rule
from unbandit.fit import Check
from unbandit.reporting.assumptions import assumptions

UCB = parse_rule(made.UCB)
NONE = "No simulation like this one was run"
LIKE = "In simulations like this one (ucb:alpha=0.25,scale=1.414, 4 arms, 2,000 rounds) 95% intervals of gaps held in"


def level(answer, log=None, **options) -> str:
    return assumptions(answer, UCB, log or made.log_of(made.UCB, 1_000), options).get("The level", "")


@pytest.mark.parametrize("kind", ["gaps", "means"])
def test_the_row_that_fits_is_quoted(kind):
    assert LIKE in made.report_of(kind).main
    assert NONE not in made.report_of(kind).main


def test_what_was_not_simulated_is_said():
    answer = made.report_of("gaps").answer
    assert LIKE in level(answer)
    assert NONE in level(replace(answer, level=0.8))
    assert NONE in level(answer, pool=True)
    assert NONE in level(answer, made.log_of(made.UCB, 50_000))
    assert NONE in level(replace(answer, method="posterior"), best_mean=1.0)
    assert NONE in made.report_of("bootstrap").main


def test_a_rule_that_does_not_fit_has_no_simulations():
    answer = replace(made.report_of("gaps").answer, check=Check("does not fit", 0.001))
    assert "simulation" not in level(answer)
