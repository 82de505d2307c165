"""Rewards drawn in vectors: the bits of the tape, whatever the word, the arm and the pull."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

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


@intrinsic
def normals_of(typing, given, table, out):
    """Turn eight words into normals by the vectors' own formula."""

    def generate(context, builder, signature, arguments):
        bits, coefficients, target = (
            context.make_array(kind)(context, builder, value).data
            for kind, value in zip(signature.args, arguments, strict=True)
        )
        kinds = ir.VectorType(ir.IntType(64), 8).as_pointer(), ir.VectorType(ir.DoubleType(), 8).as_pointer()
        word = builder.load(builder.bitcast(bits, kinds[0]), align=8)
        builder.store(rewards._normals(builder, coefficients, word), builder.bitcast(target, kinds[1]), align=8)
        return context.get_dummy_value()

    return types.void(given, table, out), generate


@compiled
def compiled_normals(given, table, out):
    normals_of(given, table, out)


@compiled
def compiled_draw(bandit, run, arm, pull, out, at):
    rewards.draw_rewards(bandit, run, arm, pull, out, at)


@given(st.lists(words, min_size=8, max_size=8))
def test_a_vector_has_the_normals_of_its_words(drawn):
    given, out = np.array(drawn, np.uint64), np.empty(8)
    compiled_normals(given, QUANTILE_TABLE, out)
    assert out.tolist() == [normal_from_word(word, QUANTILE_TABLE) for word in given]


@pytest.mark.parametrize("noise", [0.7, Bernoulli()], ids=["Gaussian", "Bernoulli"])
@pytest.mark.parametrize("seed", [0, 2**64 - 1])
def test_a_block_has_the_rewards_of_the_tape(noise, seed):
    instance, run = Instance([0.9, 0.2, 0.5], noise), 2**32 - 1
    bandit, out, plain = laid_out(instance, 100, seed), np.empty(20), np.empty(20)
    for arm, pull in ((0, 0), (1, 40), (2, 2**33 - 16)):
        given = np.uint64(run), np.uint64(arm), np.uint64(pull)
        compiled_draw(bandit, *given, out, np.uint64(3))
        with np.errstate(over="ignore"):
            rewards.draw_rewards(bandit, *given, plain, np.uint64(3))
        expected = Tape(seed).reward(instance, run, arm, pull + np.arange(1, 17)).tolist()
        assert out[3:19].tolist() == expected == plain[3:19].tolist()
