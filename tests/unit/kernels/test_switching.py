"""What is read from a demonstration, against the definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import reference_switching, switching_read

from unbandit.kernels.tally import first_pulls, pulls_and_last

INTEGERS = [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64]
logs = st.integers(2, 6).flatmap(lambda arms: st.tuples(st.just(arms), st.lists(st.integers(0, arms - 1), max_size=60)))


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 1000])
def test_counts_are_those_of_bincount(kind, length):
    actions = np.random.default_rng(length).integers(0, 100, length).astype(kind)
    pulls, last = (part[:, :100] for part in pulls_and_last(actions, np.array([0, length]), 100))
    assert pulls.tolist() == [np.bincount(actions.astype(int), minlength=100).tolist()]
    assert last.tolist() == [[max(np.flatnonzero(actions == arm) + 1, default=0) for arm in range(100)]]


@pytest.mark.parametrize(("kind", "arms"), [(np.uint8, 256), (np.int8, 128), (np.uint16, 65536)])
def test_counts_reach_the_last_arm_that_a_type_holds(kind, arms):
    actions = np.arange(arms).astype(kind)
    pulls, last = (part[:, :arms] for part in pulls_and_last(actions, np.array([0, arms]), arms))
    assert pulls.tolist() == [[1] * arms]
    assert last.tolist() == [list(range(1, arms + 1))]


@given(st.lists(st.lists(st.integers(0, 3), max_size=30), max_size=5))
def test_demonstrations_are_counted_apart(demonstrations):
    offsets = np.cumsum([0, *map(len, demonstrations)])
    actions = np.array([arm for demonstration in demonstrations for arm in demonstration], np.uint8)
    pulls, last = (part[:, :4] for part in pulls_and_last(actions, offsets, 4))
    for which, demonstration in enumerate(demonstrations):
        assert pulls[which].tolist() == [demonstration.count(arm) for arm in range(4)]
        rounds = [[round for round, pulled in enumerate(demonstration, 1) if pulled == arm] for arm in range(4)]
        assert last[which].tolist() == [max(found, default=0) for found in rounds]


@given(logs)
def test_first_pulls_are_the_first(log):
    arms, actions = log
    pulls = np.bincount(np.array(actions, int), minlength=arms)
    found = np.full((1, arms), -1)
    first_pulls(np.array(actions, np.uint8), np.array([0, len(actions)]), pulls[None], found)
    assert found[0].tolist() == [actions.index(arm) + 1 if arm in actions else 0 for arm in range(arms)]


@given(logs)
def test_switching_rounds_are_those_of_the_definition(log):
    arms, actions = log
    _, *found = switching_read(np.array(actions, np.uint8), arms)
    assert [part.tolist() for part in found] == list(reference_switching(actions, arms))


def test_a_worked_example():
    # arm 1 is last pulled in round 6, before the best arm's last pull in round 7; arm 2's pull in round 8 comes after
    # it, so its switching round is 3, when the best arm had been pulled once
    actions = np.array([0, 1, 2, 0, 0, 1, 0, 2])
    _, rounds, own, of_best = switching_read(actions, 3)
    assert rounds.tolist() == [0, 6, 3]
    assert own.tolist() == [0, 2, 1]
    assert of_best.tolist() == [0, 3, 1]


def test_an_arm_not_reconsidered_after_the_best_was_first_pulled_has_no_counts():
    _, rounds, own, of_best = switching_read(np.array([0, 1, 1, 1]), 2)
    assert rounds.tolist() == [1, 0]
    assert own.tolist() == of_best.tolist() == [0, 0]
