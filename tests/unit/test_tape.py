"""The tape: a pure function of its counters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit.errors import ParameterError
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels.rng import QUANTILE_TABLE, normal_from_word, philox, uniform_from_word
from unbandit.tape import Stream, Tape

seeds = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 2**32 - 1, 2**32, 2**64 - 1]))
places = st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(1, 2**33))


@given(seeds, places, st.sampled_from(Stream))
def test_a_word_is_half_a_philox_block(seed, place, stream):
    run, arm, pull = place
    counter = ((pull - 1) // 2, arm, run, int(stream))
    block = philox(*map(np.uint64, (*counter, seed & 0xFFFFFFFF, seed >> 32)))
    assert Tape(seed).words(run, arm, pull, stream) == block[(pull - 1) % 2]


@given(seeds, places, st.sampled_from(Stream))
def test_draws_are_functions_of_the_word(seed, place, stream):
    tape = Tape(seed)
    word = tape.words(*place, stream)[()]
    assert tape.uniform(*place, stream) == uniform_from_word(word)
    assert tape.normal(*place, stream) == normal_from_word(word, QUANTILE_TABLE)


@given(seeds, st.permutations(range(20)))
def test_order_does_not_matter(seed, order):
    pulls = np.array(order) + 1
    assert Tape(seed).normal(3, 1, pulls).tolist() == Tape(seed).normal(3, 1, np.arange(1, 21))[order].tolist()


def test_broadcasting_does_not_matter():
    runs, arms, pulls = np.ix_(range(3), range(4), range(1, 6))
    together = Tape(5).normal(runs, arms, pulls)
    assert together.shape == (3, 4, 5)
    for run, arm, pull in np.ndindex(together.shape):
        assert together[run, arm, pull] == Tape(5).normal(run, arm, pull + 1)


def test_shapes():
    tape = Tape(0)
    assert tape.words(0, 0, 1).shape == tape.normal(0, 0, 1).shape == tape.uniform(0, 0, 1).shape == ()
    assert tape.normal(0, 0, []).shape == (0,)
    assert tape.normal(0, [0, 1], [[1], [2], [3]]).shape == (3, 2)
    strided = np.arange(1, 21).reshape(4, 5).T[::2]
    assert tape.normal(0, 0, strided).tolist() == tape.normal(0, 0, strided.copy()).tolist()


def test_every_coordinate_matters():
    base = Tape(1).words(2, 3, 4, Stream.REWARDS)
    others = [
        Tape(0).words(2, 3, 4),
        Tape(1 + 2**32).words(2, 3, 4),
        Tape(1).words(3, 3, 4),
        Tape(1).words(2, 4, 4),
        Tape(1).words(2, 3, 5),
        Tape(1).words(2, 3, 4, Stream.DECISIONS),
        Tape(1).words(2, 3, 4, Stream.TIES),
    ]
    assert len({int(word) for word in [base, *others]}) == 8


def test_a_tape_is_a_value():
    assert Tape(3) == Tape(3) == pickle.loads(pickle.dumps(Tape(3)))
    assert Tape(np.uint64(2**64 - 1)).words(0, 0, 1) == Tape(2**64 - 1).words(0, 0, 1)
    with pytest.raises(AttributeError):
        Tape(3).seed = 4


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, 0.5, True, "7", None, np.float64(3)])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ParameterError, match="seed: expected a whole number from 0"):
        Tape(seed)


@pytest.mark.parametrize("place", [(-1, 0, 1), (0, -1, 1), (0, 0, 0), (0, 0, [1, 0])])
def test_places_off_the_tape_are_refused(place):
    with pytest.raises(ParameterError, match=r"from 0 to .*; pull: from 1"):
        Tape(0).words(*place)


def test_gaussian_rewards_are_means_plus_noise():
    instance, arms = Instance([1.0, -2.0, 0.5], noise=0.25), np.array([2, 0, 1, 1])
    rewards = Tape(4).reward(instance, 6, arms, [1, 2, 3, 4])
    assert rewards.tolist() == (instance.means[arms] + 0.25 * Tape(4).normal(6, arms, [1, 2, 3, 4])).tolist()


def test_bernoulli_rewards_are_thresholded_uniforms():
    instance, pulls = Instance([0.3, 0.0, 1.0], Bernoulli()), np.arange(1, 200)
    rewards = Tape(4).reward(instance, 0, [[0], [1], [2]], pulls)
    assert rewards[0].tolist() == (Tape(4).uniform(0, 0, pulls, Stream.REWARDS) < 0.3).astype(float).tolist()
    assert rewards[1].max() == 0
    assert rewards[2].min() == 1


PINNED_WORDS = [6644187367078650188, 11521597834687880435, 1317429751583727325]
PINNED_NORMALS = [-0.3570665140001741, 1.157863830918967, -1.4672052466061445]


def test_the_tape_never_changes():
    """Pins the bits: every published demonstration rests on them."""
    assert Tape(2024).words(1, 2, [1, 2, 3]).tolist() == PINNED_WORDS
    assert Tape(2024).normal(1, 2, [1, 2, 3]).tolist() == PINNED_NORMALS
