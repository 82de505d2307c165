"""Answers in JSON that was altered are refused in the package's own words; whole ones come back as they were."""

import json
import math
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import UnbanditError

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")

STRANGE: tuple[Any, ...] = (None, 1, "text", [], {}, [1, "a"], {"a": 1}, True, 1e300)


def a_log() -> ub.ActionLog:
    return ub.UCB1().demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), horizon=120, seed=1)


def people() -> ub.ActionLog:
    return ub.LearningSoftmax().demonstrate(ub.Instance([0.8, 0.2], ub.Bernoulli()), horizon=60, seed=2, runs=3)


ANSWERS: dict[str, Callable[[], Any]] = {
    "Estimate": lambda: ub.estimate(a_log(), "ucb1", sigma=0.5),
    "Posterior": lambda: ub.posterior(a_log(), "ucb1", sigma=0.5, particles=50, draws=20),
    "Identification": lambda: ub.identify(a_log(), "ucb1:exploration=2,ucb:alpha=0", sigma=0.5),
    "Survey": lambda: ub.check(a_log(), "ucb1,klucb", sigma=0.5),
    "Population": lambda: ub.population(people(), "q-learning", bernoulli=True, check=False),
    "Plan": lambda: ub.plan(ub.Instance([1.0, 0.9, 0.0]), "sae", 0.05, longest=3000, runs=20, points=8),
    "Leak": lambda: ub.leak("two-armed", "ucb", 300, runs=20),
    "LearningCurve": lambda: ub.learning_curve(a_log(), "ucb1", sigma=0.5, points=4),
    "Stretches": lambda: ub.stretches(a_log(), "ucb1", sigma=0.5, windows=2),
    "SwitchingMoment": lambda: ub.switching_moment(a_log(), "ucb1", sigma=0.5),
    "Sensitivity": lambda: ub.sensitivity(a_log(), "ucb1", sigma=0.5),
    "Check": lambda: ub.estimate(a_log(), "ucb1", sigma=0.5).check,
}


@cache
def answer(kind: str) -> Any:
    return ANSWERS[kind]()


def kind_of(kind: str) -> Any:
    return type(answer(kind))


@pytest.mark.parametrize("kind", ANSWERS)
def test_an_answer_comes_back(kind: str) -> None:
    again = kind_of(kind).from_json(answer(kind).to_json())
    assert again.to_json() == answer(kind).to_json()
    assert repr(again) == repr(answer(kind))
    assert again.to_frame().equals(answer(kind).to_frame(), null_equal=True)
    assert again._repr_html_() == answer(kind)._repr_html_()


@pytest.mark.parametrize("kind", ANSWERS)
def test_what_was_altered_is_refused_or_read(kind: str) -> None:
    whole = json.loads(answer(kind).to_json())
    if "draws" in whole and kind == "Population":  # four thousand are written and read again each time
        whole["draws"] = {name: draws[:20] for name, draws in whole["draws"].items()}
    for name in whole:
        lacking = {key: value for key, value in whole.items() if key != name}
        for altered in (lacking, *({**whole, name: value} for value in STRANGE)):
            with suppress(UnbanditError):  # all other errors are mistakes
                kind_of(kind).from_json(json.dumps(altered))


@pytest.mark.parametrize(
    "text", ["[" * 200_000, '{"schema": NaN}', "", "null", "3", b"\xff", '{"schema": "unbandit.estimate/9"}']
)
@pytest.mark.parametrize("kind", ANSWERS)
def test_what_is_no_answer_is_refused(kind: str, text: Any) -> None:
    with pytest.raises(UnbanditError, match="expected"):
        kind_of(kind).from_json(text)


def test_values_that_are_averaged_over_rules_come_back() -> None:
    found = answer("Identification")
    assert len(found.averaged) > 1
    assert math.isnan(found.values.effective_size)  # no cloud is of several rules
    again = ub.Identification.from_json(found.to_json())
    np.testing.assert_array_equal(again.values.means, found.values.means)
    assert math.isnan(again.values.effective_size)
    assert np.isnan(again.values.evidences).all()


def test_a_log_that_is_not_saved_is_named() -> None:
    again = ub.Identification.from_json(answer("Identification").to_json())
    assert not hasattr(again.question.log, "codes")
    with pytest.raises(ub.ParameterError, match="does not hold the log"):
        again.posterior("ucb:alpha=0")


def test_what_a_check_compared_comes_back() -> None:
    check, again = answer("Check"), ub.Check.from_json(answer("Check").to_json())
    assert [each.sentence for each in again.statistics] == [each.sentence for each in check.statistics]
    assert again.brief == check.brief
    older = {"name": "switches", "observed": 4, "low": 20, "high": 52}  # as version 0.6 wrote it
    said = json.loads(check.to_json()) | {"statistics": [older]}
    assert math.isnan(ub.Check.from_json(json.dumps(said)).statistics[0].median)


def test_errors_of_a_plan_that_are_not_known_stay_so() -> None:
    plan = answer("Plan")
    again = ub.Plan.from_json(plan.to_json())
    for name in ("reach", "error", "regret"):
        for one, other in zip(getattr(again.curves, name), getattr(plan.curves, name), strict=True):
            np.testing.assert_array_equal(one, other)


def test_draws_that_are_no_numbers_are_refused() -> None:
    said = json.loads(answer("Population").to_json())
    said["draws"]["centre"] = "abc"
    with pytest.raises(UnbanditError, match="expected"):
        ub.Population.from_json(json.dumps(said))
