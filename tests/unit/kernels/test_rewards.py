"""Rewards drawn in vectors: the bits of the tape, whatever the word, the arm and the pull."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit import Bernoulli, Instance, Tape
from unbandit.demonstrators.base import laid_out
from unbandit.kernels import rewards
from unbandit.kernels.compile import compiled
from unbandit.kernels.rng import QUANTILE_TABLE, normal_from_word

EDGES = [0, 1, 2**63 - 1, 2**63, 2**64 - 1, (16 << 55) - 1, 16 << 55, (255 << 55) | 3]
words = st.one_of(
    st.integers(0, 2**64 - 1),
    st.sampled_from(EDGES),
    st.integers(0, 63).map(lambda bit: 1 << bit),
    st.tuples(st.integers(0, 1), st.integers(0, 2**59)).map(lambda each: each[0] << 63 | each[1]),  # in a tail
)


@compiled
def compiled_normals(given, table, room):
    bits = room.view(np.uint64)
    for at in range(given.size):
        bits[at] = given[at]
    rewards._fill_places(np.uint64(0), room)
    rewards._fill_rewards(table, room, np.uint64(0), (0.0, 1.0))


@compiled
def compiled_draw(bandit, run, arms, pulls, room):
    rewards.prepare_rewards(bandit, run, arms, pulls, room)
    for slot in range(np.uint64(len(arms))):
        rewards.finish_rewards(bandit, arms[slot], slot, room)


@given(st.lists(words, min_size=16, max_size=16))
def test_a_slot_has_the_normals_of_its_words(drawn):
    """Both words of each of eight blocks; first come those of even pulls."""
    given, room = np.array(drawn, np.uint64), np.empty(rewards.ROOM)
    compiled_normals(given, QUANTILE_TABLE, room)
    expected = [normal_from_word(word, QUANTILE_TABLE) for word in given]
    in_turn = [expected[at // 2 + 8 * (at % 2)] for at in range(16)]
    assert room[rewards.PLACES :][:16].tolist() == in_turn


@pytest.mark.parametrize("noise", [0.7, Bernoulli()], ids=["Gaussian", "Bernoulli"])
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
@pytest.mark.parametrize("slots", [1, rewards.SLOTS])
def test_a_batch_has_the_rewards_of_the_tape(noise, seed, slots):
    instance, run = Instance([0.9, 0.2, 0.5], noise), 2**32 - 1
    bandit, room, plain = laid_out(instance, 100, seed), np.empty(rewards.ROOM), np.empty(rewards.ROOM)
    places = [(0, 0), (1, 40), (2, 2**33 - 16), (1, 2)] * 2
    for first in range(4):
        arms, pulls = (tuple(map(np.uint64, each[first : first + slots])) for each in zip(*places, strict=True))
        compiled_draw(bandit, np.uint64(run), arms, pulls, room)
        with np.errstate(over="ignore"):
            rewards.prepare_rewards(bandit, np.uint64(run), arms, pulls, plain)
        drawn = slice(rewards.PLACES, rewards.PLACES + 16 * slots)
        expected = [
            Tape(seed).reward(instance, run, int(arm), int(pull) + np.arange(1, 17))
            for arm, pull in zip(arms, pulls, strict=True)
        ]
        assert room[drawn].tolist() == np.concatenate(expected).tolist() == plain[drawn].tolist()
