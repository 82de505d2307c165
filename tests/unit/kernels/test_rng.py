"""The generator, the uniform, the quantile and the reward: one number at a time, compiled and not."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import mpmath
import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit.kernels import rng
from unbandit.kernels.bandit import reward_from_word
from unbandit.kernels.compile import compiled
from unbandit.tape import normal_quantile

KNOWN_ANSWERS = [  # from the Random123 distribution, file kat_vectors: counter, key, result
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]
TABLE = rng.QUANTILE_TABLE
counters = st.lists(st.integers(0, 2**32 - 1), min_size=6, max_size=6)
words = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**11, 2**12, 2**63 - 1, 2**63, 2**64 - 1]))


@compiled
def compiled_philox(a, b, c, d, e, f):
    return rng.philox(a, b, c, d, e, f)


@compiled
def compiled_draws(word, mean, sigma, table):
    return (
        rng.uniform_from_word(word),
        rng.normal_from_word(word, table),
        reward_from_word(word, mean, sigma, False, table),
        reward_from_word(word, mean, sigma, True, table),
    )


@compiled
def compiled_quantile(probability, table):
    return rng.normal_quantile(probability, table)


@pytest.mark.parametrize("philox", [rng.philox, compiled_philox], ids=["plain", "compiled"])
@pytest.mark.parametrize(("counter", "key", "expected"), KNOWN_ANSWERS)
def test_philox_gives_the_known_answers(philox, counter, key, expected):
    first, second = (int(word) for word in philox(*map(np.uint64, counter + key)))
    assert (first >> 32, first & 0xFFFFFFFF, second >> 32, second & 0xFFFFFFFF) == expected


@given(counters)
def test_compiled_philox_is_the_plain_one(numbers):
    given = [np.uint64(number) for number in numbers]
    assert compiled_philox(*given) == rng.philox(*given)


@given(words, st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_compiled_draws_are_the_plain_ones(word, mean, sigma):
    word = np.uint64(word)
    plain = (
        rng.uniform_from_word(word),
        rng.normal_from_word(word, TABLE),
        reward_from_word(word, mean, sigma, False, TABLE),
        reward_from_word(word, mean, sigma, True, TABLE),
    )
    assert compiled_draws(word, mean, sigma, TABLE) == plain


@given(st.floats(0, 1, exclude_min=True, exclude_max=True))
def test_compiled_quantile_is_the_plain_one(probability):
    plain, fast = rng.normal_quantile(probability, TABLE), compiled_quantile(probability, TABLE)
    # bits agree where the tables reach; below 2^-60 the system's and numba's exp and log may differ in the last place
    assert fast == plain if probability >= 2.0**-60 else math.isclose(fast, plain, rel_tol=1e-15)


@given(words)
def test_a_uniform_lies_strictly_between_0_and_1(word):
    uniform = rng.uniform_from_word(np.uint64(word))
    assert 0 < uniform < 1
    assert (uniform * 2**53) % 2 == 1


@given(words)
def test_certain_bernoulli_rewards_are_certain(word):
    assert reward_from_word(np.uint64(word), 1.0, 1.0, True, TABLE) == 1.0
    assert reward_from_word(np.uint64(word), 0.0, 1.0, True, TABLE) == 0.0


def probability_of_word(word: int) -> mpmath.mpf:
    """Return the probability whose quantile a word stands for: 1 bit of sign, 8 of segment, 53 within the segment."""
    segment, within = (word >> 55) & 255, (word >> 2) & (2**53 - 1)
    return (segment + 1 - mpmath.mpf(within) / 2**53) / 512


@given(words)
def test_a_normal_is_the_quantile_of_its_bits(word):
    with mpmath.workdps(50):
        p = probability_of_word(word)
        error = relative_error(rng.normal_from_word(np.uint64(word), TABLE) * (-1 if word >> 63 else 1), p)
    assert error < 1e-14


def relative_error(quantile: float, probability: mpmath.mpf) -> float:
    """Return the relative error of a quantile: one Newton step from it in 50 digits, which doubles its digits."""
    x, p = mpmath.mpf(quantile), mpmath.mpf(probability)
    if p == 0.5:
        return abs(quantile)
    sign = 1
    if x > 0:  # mirrored: the upper tail keeps its digits only as a lower one
        x, p, sign = -x, 1 - p, -1
    below = mpmath.erfc(-x / mpmath.sqrt(2)) / 2
    step = mpmath.log(below / p) * below / mpmath.npdf(x) if p < 0.1 else (below - p) / mpmath.npdf(x)
    exact = sign * (x - step)
    return abs(float((mpmath.mpf(quantile) - exact) / exact))


def probabilities() -> dict[str, np.ndarray]:
    random = np.random.default_rng(20240607)
    steps = 10.0 ** -np.linspace(2, 16, 60)
    edges = np.concatenate([np.arange(16, 257) / 512 / 16.0**level for level in range(16)])[::7]
    return {
        "anywhere": random.random(500),
        "lower tail": 10.0 ** -np.linspace(0.31, 300, 400),
        "far lower tail": np.append(10.0 ** -np.linspace(300, 323, 90), 5e-324),
        "upper tail": 1 - 10.0 ** -np.linspace(0.31, 15.9, 300),
        "middle": np.concatenate([0.5 - steps, 0.5 + steps, [np.nextafter(0.5, 0), np.nextafter(0.5, 1)]]),
        "edges of segments": np.concatenate([np.nextafter(edges, 0), edges, np.nextafter(edges, 1)]),
        "end of the tables": 2.0**-60 * np.array([1 - 2.0**-53, 1.0, 1 + 2.0**-52]),
    }


@pytest.mark.parametrize("where", probabilities())
def test_the_quantile_is_accurate_to_1e_14(where):
    values = probabilities()[where]
    with mpmath.workdps(50):
        worst = max(relative_error(x, p) for x, p in zip(normal_quantile(values).tolist(), values, strict=True))
    assert worst < 1e-14


def test_the_quantile_never_falls():
    values = np.unique(np.concatenate(list(probabilities().values())))
    # it may fall by its own rounding only, where neighbours are one unit in the last place apart
    quantiles = normal_quantile(values)
    assert (np.diff(quantiles) >= -1e-14 * np.abs(quantiles[1:])).all()


@pytest.mark.parametrize("outside", [0.0, 1.0, -0.0, -0.1, 1.1, math.nan, math.inf, -math.inf])
def test_there_is_no_quantile_outside(outside):
    assert math.isnan(normal_quantile(outside))
    assert math.isnan(rng.normal_quantile(outside, TABLE))


def test_the_quantile_keeps_the_shape_of_its_argument():
    assert normal_quantile(0.5).shape == ()
    assert normal_quantile([[0.1, 0.2, 0.3]]).shape == (1, 3)
    assert normal_quantile([]).shape == (0,)
    assert normal_quantile(np.linspace(0.1, 0.9, 9)[::2]).tolist() == [
        float(normal_quantile(p)) for p in np.linspace(0.1, 0.9, 9)[::2]
    ]


TOOL = Path(__file__).parents[3] / "tools" / "normal_quantile_table.py"


@pytest.mark.parametrize(("level", "segment"), [(0, 16), (0, 200), (0, 255), (7, 100), (15, 16), (15, 255)])
def test_the_table_is_what_the_tool_makes(level, segment):
    specification = importlib.util.spec_from_file_location("normal_quantile_table", TOOL)
    tool = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(tool)
    with mpmath.workdps(40):
        assert tool.segment_coefficients(level, segment) == np.load(tool.TARGET)[level, segment].tolist()


def test_tables_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        TABLE[0] = 1.0


def test_kernels_run_without_the_interpreter_lock():
    assert isinstance(compiled_philox, numba.core.registry.CPUDispatcher)
    assert compiled_philox.targetoptions["nogil"]
