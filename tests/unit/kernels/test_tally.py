"""The tally of a record, held against its definitions and against plain Python that reads it at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import reference_switching, switching_read

from unbandit import ParameterError
from unbandit.kernels.compile import compiled
from unbandit.kernels.tally import (
    advance_switching,
    count_runs,
    epochs_of_runs,
    find_switches_ahead,
    first_out_of_order,
    no_marks,
    switch_runs,
    tally_runs,
)
from unbandit.log.tallies import tally

INTEGERS = [np.uint8, np.uint16, np.uint32, np.uint64, np.int8, np.int16, np.int32, np.int64]
logs = st.integers(2, 6).flatmap(lambda arms: st.tuples(st.just(arms), st.lists(st.integers(0, arms - 1), max_size=60)))


@compiled
def compiled_switches(actions, pulls, best, own, of_best, rounds):
    find_switches_ahead(actions, pulls, best, own, of_best, rounds)


def reference_epochs(actions):
    """Play rounds through the active arms: one whose turn came while another was pulled is gone."""
    ring, passed, broken = list(dict.fromkeys(actions)), {}, 0
    for round, arm in enumerate(actions, 1):
        if arm in passed:
            broken = broken or round
            continue
        while ring[0] != arm:
            passed[ring.pop(0)] = round
        ring.append(ring.pop(0))
    return passed, broken


def zeros(*shape):
    return np.zeros(shape, np.int64)


actions_of_some_arms = st.integers(2, 5).flatmap(
    lambda arms: st.tuples(st.just(arms), st.lists(st.integers(0, arms - 1), min_size=1, max_size=60))
)


@given(made=actions_of_some_arms, size=st.integers(1, 7))
def test_pairs_hold_the_switching_rounds_for_whichever_arm_is_best(made, size):
    arms, actions = made
    pulls, first, last = zeros(arms), zeros(arms), zeros(arms)
    rounds, own, of_other = zeros(arms, arms), zeros(arms, arms), zeros(arms, arms)
    for at in range(0, len(actions), size):
        piece = np.array(actions[at : at + size], np.uint8)
        advance_switching(piece, at, pulls, first, last, rounds, own, of_other)
    assert pulls.tolist() == [actions.count(arm) for arm in range(arms)]
    assert first.tolist() == [actions.index(arm) + 1 if arm in actions else 0 for arm in range(arms)]
    assert last.tolist() == [max((t for t, a in enumerate(actions, 1) if a == arm), default=0) for arm in range(arms)]
    for best in range(arms):  # reference_switching reads the most-pulled arm: make it this one
        extra = [best] * len(actions)
        if best not in actions:
            continue
        end = int(last[best])
        expected = reference_switching(extra + actions[:end] + [a for a in actions[end:] if a != best], arms)
        moved = [round - len(extra) if round > len(extra) else 0 for round in expected[0]]
        assert rounds[:, best].tolist() == moved
        assert of_other[:, best].tolist() == [n - len(extra) if n else 0 for n in expected[2]]
        assert [n for n, r in zip(own[:, best], moved, strict=True) if r] == [
            actions[:r].count(arm) for arm, r in enumerate(moved) if r
        ]


@given(made=actions_of_some_arms, size=st.integers(1, 7), turns=st.booleans())
def test_epochs_go_on_from_piece_to_piece(made, size, turns):
    arms, actions = made
    if turns:  # mostly in turn, as a rule that eliminates plays
        actions = [t % arms for t, a in enumerate(actions) if a or t < arms]
    ring, lengths = np.full((2, 1, arms), -1), zeros(1)
    passed, marks = zeros(1, arms), no_marks(1)
    for at in range(0, len(actions), size):
        piece = np.array(actions[at : at + size], np.uint8)
        epochs_of_runs(piece, np.array([0, piece.size]), zeros(1), lengths, *ring, passed, marks)
    gone, broken = reference_epochs(actions)
    assert passed[0].tolist() == [gone.get(arm, 0) for arm in range(arms)]
    assert marks[0, 4] == broken
    assert marks[0, 5] == (actions[broken - 1] if broken else -1)


@pytest.mark.parametrize("arms", [2, 3, 8, 15, 16])
@pytest.mark.parametrize("seed", range(4))
def test_runs_of_any_length_whole_and_torn(arms, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.choice([1, 2, 7, 30, 200, 3000], 12)
    who = np.append(rng.permutation(8), rng.integers(0, 3, 4))  # three of them come again
    codes = rng.integers(0, arms, lengths.sum()).astype(np.uint8)
    codes[rng.random(codes.size) < 0.6] = seed % arms
    starts = np.concatenate(([0], np.cumsum(lengths)))
    rows = [
        np.concatenate([codes[starts[r] : starts[r + 1]] for r in np.flatnonzero(who == d)]).tolist() for d in range(8)
    ]
    counted, torn, grids = zeros(8), np.zeros(8, np.bool_), [zeros(8, arms) for _ in range(6)]
    assert tally_runs(codes, starts, who, counted, torn, *grids)
    pulls, first, last, own, of_best, rounds = grids
    assert counted.tolist() == [len(row) for row in rows]
    assert torn.tolist() == [(who == d).sum() > 1 for d in range(8)]
    plain = [zeros(8), *(zeros(8, arms) for _ in range(3))]
    count_runs(codes, starts, who, *plain)
    for ours, theirs in zip((counted, pulls, first, last), plain, strict=True):
        assert ours.tolist() == theirs.tolist()
    best = pulls.argmax(axis=1)
    own[torn], of_best[torn], rounds[torn] = pulls[torn], 0, 0
    switch_runs(codes, starts, who, torn, best, last[np.arange(8), best], zeros(8), zeros(8), own, of_best, rounds)
    for d, row in enumerate(rows):
        expected = reference_switching(row, arms)
        others = [arm for arm in range(arms) if arm != best[d]]
        assert pulls[d].tolist() == [row.count(arm) for arm in range(arms)]
        assert first[d].tolist() == [row.index(arm) + 1 if arm in row else 0 for arm in range(arms)]
        assert rounds[d, others].tolist() == [expected[0][arm] for arm in others]
        assert of_best[d, others].tolist() == [expected[2][arm] for arm in others]
        kept = np.where(of_best[d] > 0, own[d], 0)[others]
        assert kept.tolist() == [expected[1][arm] for arm in others]


def test_the_first_round_out_of_order_is_found():
    starts, who = np.array([0, 3, 5, 8]), np.array([0, 1, 0])
    rounds = np.array([0, 1, 2, 1, 2, 3, 4, 5])

    def found(rounds):
        return first_out_of_order(rounds, starts, who, np.full(2, -1), zeros(2))

    assert found(rounds) == 8
    for at in range(8):
        wrong = rounds.copy()
        wrong[at] += 7
        assert found(wrong) == at


@pytest.mark.parametrize("kind", INTEGERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("length", [1, 7, 8, 9, 1000])
@pytest.mark.parametrize("arms", [5, 100])
def test_counts_are_those_of_bincount(kind, length, arms):
    actions = np.random.default_rng(length).integers(0, arms, length).astype(kind)
    pulls, first, last = tally(actions, np.array([0, length]), arms, "counts").counted
    rounds = [np.flatnonzero(actions == arm) + 1 for arm in range(arms)]
    assert pulls.tolist() == [np.bincount(actions.astype(int), minlength=arms).tolist()]
    assert first.tolist() == [[min(each, default=0) for each in rounds]]
    assert last.tolist() == [[max(each, default=0) for each in rounds]]


@pytest.mark.parametrize(("kind", "arms"), [(np.uint8, 256), (np.int8, 128), (np.uint16, 65536)])
def test_counts_reach_the_last_arm_that_a_type_holds(kind, arms):
    actions = np.arange(arms).astype(kind)
    pulls, _, last = tally(actions, np.array([0, arms]), arms, "counts").counted
    assert pulls.tolist() == [[1] * arms]
    assert last.tolist() == [list(range(1, arms + 1))]


@pytest.mark.parametrize("arms", [2, 15, 16, 40])
@pytest.mark.parametrize("length", [3, 5_000])
@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int32])
def test_codes_of_no_arm_are_refused(arms, length, kind):
    for code in (arms, 100, -1) if kind != np.uint8 else (arms, 255):
        actions = np.zeros(length, kind)
        actions[length // 2] = code
        with pytest.raises(ParameterError, match=f"actions: expected codes from 0 to {arms - 1}"):
            tally(actions, np.array([0, length]), arms, "switching")


@given(st.lists(st.lists(st.integers(0, 3), max_size=30), max_size=5))
def test_demonstrations_are_counted_apart(demonstrations):
    offsets = np.cumsum([0, *map(len, demonstrations)])
    actions = np.array([arm for demonstration in demonstrations for arm in demonstration], np.uint8)
    pulls, _, last = tally(actions, offsets, 4, "epochs").counted
    for which, demonstration in enumerate(demonstrations):
        assert pulls[which].tolist() == [demonstration.count(arm) for arm in range(4)]
        rounds = [[round for round, pulled in enumerate(demonstration, 1) if pulled == arm] for arm in range(4)]
        assert last[which].tolist() == [max(found, default=0) for found in rounds]


@given(logs)
def test_switching_rounds_are_those_of_the_definition(log):
    arms, actions = log
    _, *found = switching_read(np.array(actions, np.uint8), arms)
    assert [part.tolist() for part in found] == list(reference_switching(actions, arms))


@pytest.mark.parametrize("find", [find_switches_ahead, compiled_switches], ids=["plain", "compiled"])
@pytest.mark.parametrize("arms", [2, 5, 70])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_switching_rounds_read_ahead(find, arms, data):
    actions = np.array(data.draw(st.lists(st.integers(0, arms - 1), min_size=1, max_size=60)), np.uint8)
    pulls = np.bincount(actions, minlength=arms)
    own, of_best, rounds = (np.empty(arms, np.int64) for _ in range(3))
    find(actions, pulls, int(pulls.argmax()), own, of_best, rounds)
    expected = tally(actions, np.array([0, actions.size]), arms, "switching").at_switching
    assert [each.tolist() for each in (own, of_best, rounds)] == [each[0].tolist() for each in expected]


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
