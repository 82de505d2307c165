"""Closed forms read whatever can be tallied; what needs the rounds themselves says so."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from unbandit import (
    SAE,
    UCB,
    ActionLog,
    AssumptionWarning,
    Instance,
    ParameterError,
    estimate,
    identify,
    learning_curve,
    posterior,
    report,
    sensitivity,
    switching_moment,
    switching_rounds,
)
from unbandit.errors import Notice
from unbandit.result import NUMBERS


@dataclass(frozen=True)
class Elsewhere:
    """A record that only counts what it is asked for."""

    log: ActionLog
    rewards: None = None
    ordered: bool = True
    reading: tuple[Notice, ...] = (Notice("reading", "read elsewhere."),)

    @property
    def arms(self):
        return self.log.arms

    @property
    def demonstrations(self):
        return list(self.log.demonstrations)

    @property
    def lengths(self):
        return self.log.lengths

    @property
    def pulls(self):
        return self.log.pulls

    def __len__(self):
        return len(self.log)

    def tallied(self, need):
        return self.log.tallied(need)


def quietly(log, rule, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(log, rule, **options)


@pytest.fixture(scope="module")
def log():
    return UCB().demonstrate(Instance([1.0, 0.5, 0.0]), 200, runs=3, seed=1)


@pytest.mark.parametrize("rule", [UCB(), SAE()], ids=str)
@pytest.mark.parametrize("method", ["switching", "counts", "naive"])
@pytest.mark.parametrize("pool", [False, True])
def test_a_record_gives_the_answer_of_its_log(log, rule, method, pool):
    found, expected = (quietly(record, rule, method=method, pool=pool, sigma=1.0) for record in (Elsewhere(log), log))
    for name in (*NUMBERS, "pulls", "verdict"):
        np.testing.assert_array_equal(getattr(found.columns, name), getattr(expected.columns, name))
    assert [notice.message for notice in found.notes] == [
        "read elsewhere.", *(notice.message for notice in expected.notes)
    ]  # fmt: skip


def test_the_default_method_and_sensitivity_read_records_too(log):
    assert quietly(Elsewhere(log), "ucb", sigma=1.0).method == "bracket"
    assert set(sensitivity(Elsewhere(log), "ucb", sigma=1.0)) == set(sensitivity(log, "ucb", sigma=1.0))


@pytest.mark.parametrize(
    ("what", "ask"),
    [
        ("method posterior", lambda record: estimate(record, "thompson")),
        ("method posterior", lambda record: estimate(record, "ucb", method="posterior", sigma=1.0)),
        ("method bootstrap", lambda record: estimate(record, "ucb", method="bootstrap", sigma=1.0)),
        ("method posterior", lambda record: posterior(record, "ucb", sigma=1.0, pool=True)),
        ("switching moment", lambda record: switching_moment(record, "ucb", sigma=1.0)),
        ("switching rounds", lambda record: switching_rounds(record, "ucb")),
        ("learning curve", lambda record: learning_curve(record, "ucb", sigma=1.0)),
        ("identify", lambda record: identify(record, sigma=1.0)),
        ("report", lambda record: report(record, "ucb", sigma=1.0)),
    ],
)
def test_what_needs_the_rounds_refuses_a_record_without_them(log, what, ask):
    said = f"^{what}: expected a log in memory, whose rounds can be looked at one by one; got a Elsewhere. Read the"
    with pytest.raises(ParameterError, match=said):
        ask(Elsewhere(log))
