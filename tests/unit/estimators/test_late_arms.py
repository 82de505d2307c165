"""Arms that Thompson sampling pulled late: a warning that asks whether they were there before."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import NotIdentifiable, shell_option
from unbandit.estimators.posterior import late_arms


def asked(actions, rule, availability=None):
    log = ub.ActionLog.from_actions(actions, arms=["A", "B", "C"])
    return SimpleNamespace(log=log, rule=rule, availability=availability)


LATE = [*(["A", "B"] * 400), "C", "A"]


def test_an_arm_that_comes_late_is_named_with_its_round_and_the_option():
    (notice,) = late_arms(asked(LATE, ub.Thompson()))
    assert (notice.code, notice.arm, notice.round) == ("late-arm", "C", 801)
    assert "availability" in notice.message


@pytest.mark.parametrize(
    ("actions", "rule", "availability"),
    [
        (LATE, ub.Softmax(temperature=0.1), None),
        (LATE, ub.Thompson(), "told"),
        (LATE, ub.Thompson(batch=200), None),
        (np.random.default_rng(1).choice(["A", "B", "C"], 900).tolist(), ub.Thompson(), None),
    ],
    ids=["another rule", "it is said when", "long batches", "in time"],
)
def test_others_are_not_warned_of(actions, rule, availability):
    assert late_arms(asked(actions, rule, availability)) == []


def test_nobody_is_advised_to_leave_out_what_is_true():
    with pytest.raises(NotIdentifiable) as refused:
        ub.Thompson(batch=50).check_availability()
    assert "--availability" not in refused.value.phrased(shell_option)
    assert "leave" not in refused.value.phrased(shell_option).lower()
