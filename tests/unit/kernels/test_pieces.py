"""Kernels that read a log piece by piece, held against plain Python that reads it at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import reference_switching

from unbandit.kernels.tally import (
    advance_epochs,
    advance_switching,
    count_runs,
    first_out_of_order,
    no_marks,
    run_starts,
    switch_runs,
    tally_runs,
)


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
    ring = np.full((2, arms), -1)
    passed, marks = zeros(arms), no_marks(1)[0]
    for at in range(0, len(actions), size):
        advance_epochs(np.array(actions[at : at + size], np.uint8), at, *ring, passed, marks)
    gone, broken = reference_epochs(actions)
    assert passed.tolist() == [gone.get(arm, 0) for arm in range(arms)]
    assert marks[4] == broken
    assert marks[5] == (actions[broken - 1] if broken else -1)


@pytest.mark.parametrize("arms", [2, 3, 8, 9])
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
    tally_runs(codes, starts, who, counted, torn, *grids)
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


@given(lengths=st.lists(st.integers(1, 150), max_size=9))
def test_runs_begin_where_another_value_does(lengths):
    values = np.repeat(np.arange(len(lengths)) % 3 - 1, lengths).astype(np.int16)
    starts = np.empty(values.size + 1, np.int64)
    count = run_starts(values, starts)
    assert starts[: count + 1].tolist() == [0, *np.cumsum(lengths).tolist()]
