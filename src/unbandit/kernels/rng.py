"""Counter-based random numbers: Philox, and the uniform and normal numbers made from its bits.

The first functions take one number. They are plain Python that every compiled loop can call, so the tests compare the
compiled bits with the uncompiled ones. From a counter to a reward there are only additions, multiplications,
comparisons and integer operations: the bits are the same on every machine. Written by hand because no library has a
Philox that numba can inline, nor a quantile with these two properties. The last four functions take arrays.
"""

import math
from pathlib import Path

import numpy as np

from unbandit.kernels.compile import Numbers, Words, called, compiled, inlined

Word = np.uint64

MULTIPLIER_0, MULTIPLIER_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
WEYL_0, WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW_32 = np.uint64(0xFFFFFFFF)
_LOW_53 = np.uint64((1 << 53) - 1)
_ZERO, _ONE, _TWO, _THREE = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3)
_FOUR, _FIVE, _SIX, _SEVEN = np.uint64(4), np.uint64(5), np.uint64(6), np.uint64(7)
_SEGMENT_MASK, _FIRST_SEGMENT = np.uint64(255), np.uint64(16)
_SHIFT_12, _SHIFT_32, _SHIFT_55 = np.uint64(12), np.uint64(32), np.uint64(55)
_UNIT_52, _UNIT_53 = 2.0**-52, 2.0**-53


def _signed_table() -> Numbers:
    """Lay out the quantile's coefficients as [level][sign][segment][power], so that the sign is free."""
    table = np.load(Path(__file__).with_name("normal_quantile.npy"))
    signed = np.stack([table, -table], axis=1).ravel()
    room = np.empty(signed.size + 8)
    start = -room.ctypes.data % 64 // 8  # a row of eight numbers is one line of the cache
    room[start : start + signed.size] = signed
    signed = room[start : start + signed.size]
    signed.setflags(write=False)
    return signed


QUANTILE_TABLE = _signed_table()
"""Coefficients of the normal quantile (see tools/normal_quantile_table.py), passed to every kernel that draws."""


@inlined
def philox(
    counter_0: Word, counter_1: Word, counter_2: Word, counter_3: Word, key_0: Word, key_1: Word
) -> tuple[Word, Word]:
    """Return the 128 bits of one Philox4x32-10 block as two 64-bit words.

    Counters and keys are 32-bit numbers in 64-bit words; masking them first lets the compiler use the cheap
    multiplication. J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11.
    """
    counter_0, counter_1 = counter_0 & _LOW_32, counter_1 & _LOW_32
    counter_2, counter_3 = counter_2 & _LOW_32, counter_3 & _LOW_32
    key_0, key_1 = key_0 & _LOW_32, key_1 & _LOW_32
    for _ in range(10):
        product_0 = MULTIPLIER_0 * counter_0
        product_1 = MULTIPLIER_1 * counter_2
        counter_0 = (product_1 >> _SHIFT_32) ^ counter_1 ^ key_0
        counter_1 = product_1 & _LOW_32
        counter_2 = (product_0 >> _SHIFT_32) ^ counter_3 ^ key_1
        counter_3 = product_0 & _LOW_32
        key_0 = (key_0 + WEYL_0) & _LOW_32
        key_1 = (key_1 + WEYL_1) & _LOW_32
    return (counter_0 << _SHIFT_32) | counter_1, (counter_2 << _SHIFT_32) | counter_3


@inlined
def uniform_from_word(word: Word) -> float:
    """Turn 64 random bits into a number in (0, 1), an odd multiple of 2^-53 (one bit more would round up to 1)."""
    return (np.float64(np.int64(word >> _SHIFT_12)) + 0.5) * _UNIT_52


Coefficients = tuple[float, float, float, float, float, float, float, float]


@inlined
def coefficients(table: Numbers, row: Word) -> Coefficients:
    """Return the eight numbers of a row of the table; the row number combines level, sign and segment."""
    at = row << _THREE
    return (
        table[at], table[at + _ONE], table[at + _TWO], table[at + _THREE],
        table[at + _FOUR], table[at + _FIVE], table[at + _SIX], table[at + _SEVEN],
    )  # fmt: skip


@inlined
def _polynomial(table: Numbers, row: Word, t: float) -> float:
    """Evaluate a row's polynomial of degree 7, as a tree of pairs (short latency)."""
    c0, c1, c2, c3, c4, c5, c6, c7 = coefficients(table, row)
    square = t * t
    low = (c0 + c1 * t) + (c2 + c3 * t) * square
    high = (c4 + c5 * t) + (c6 + c7 * t) * square
    return low + high * (square * square)


@inlined
def _in_tail(sign: Word, scaled: float) -> tuple[Word, float]:
    """Find row and place of a probability in the lowest 16 of 256 segments, each cut again 16 times as fine."""
    level = _ZERO
    while scaled < 16.0:
        scaled *= 16.0
        level += _ONE
    segment = np.uint64(np.int64(scaled))
    return ((level << _ONE) + sign) * np.uint64(256) + segment, np.float64(np.int64(segment)) + 1.0 - scaled


@inlined
def normal_from_word(word: Word, table: Numbers) -> float:
    """Turn 64 random bits into a standard normal: one bit of sign, 8 of segment, 53 within the segment.

    It is the quantile at `p = (segment + 1 - t) / 512`, in (0, 1/2], times the sign.
    """
    row = word >> _SHIFT_55
    t = np.float64(np.int64((word >> _TWO) & _LOW_53)) * _UNIT_53
    if (row & _SEGMENT_MASK) < _FIRST_SEGMENT:
        row, t = _in_tail(row >> np.uint64(8), np.float64(np.int64(row & _SEGMENT_MASK)) + (1.0 - t))
    return _polynomial(table, row, t)


@called
def _far_tail(probability: float) -> float:
    """Solve for the quantile below 2^-60, beyond the table, by Newton steps on the logarithm.

    `Phi(-y) = density(y) / (y + 1/(y + 2/(y + 3/...)))`: nothing in it underflows, down to the smallest probability.
    """
    goal = math.log(probability) + 0.5 * math.log(2.0 * math.pi)
    y = math.sqrt(-2.0 * math.log(probability))
    for _ in range(6):
        fraction = y
        for term in range(40, 0, -1):
            fraction = y + term / fraction
        y -= (goal + 0.5 * y * y + math.log(fraction)) / fraction
    return -y


@inlined
def normal_quantile(probability: float, table: Numbers) -> float:
    """Return the standard normal quantile of a probability in (0, 1); relative error below 1e-14."""
    if not 0.0 < probability < 1.0:
        return math.nan
    if probability == 0.5:
        return 0.0
    sign = _ZERO
    if probability > 0.5:
        probability = 1.0 - probability
        sign = _ONE
    if probability < 2.0**-60:
        return _far_tail(probability)
    row, t = _in_tail(sign, probability * 512.0)
    return _polynomial(table, row, t)


@compiled
def words(key_low: Word, key_high: Word, run: Words, arm: Words, pull: Words, stream: Word) -> Words:
    """Return the 64 bits at each (run, arm, pull); pulls are counted from 0, two to a block."""
    bits = np.empty(run.size, np.uint64)
    for at in range(bits.size):
        first, second = philox(pull[at] >> _ONE, arm[at], run[at], stream, key_low, key_high)
        bits[at] = second if pull[at] & _ONE else first
    return bits


@compiled
def uniforms(bits: Words) -> Numbers:
    """Turn words into numbers in (0, 1)."""
    out = np.empty(bits.size)
    for at in range(out.size):
        out[at] = uniform_from_word(bits[at])
    return out


@compiled
def normals(bits: Words, table: Numbers) -> Numbers:
    """Turn words into standard normals."""
    out = np.empty(bits.size)
    for at in range(out.size):
        out[at] = normal_from_word(bits[at], table)
    return out


@compiled
def quantiles(probabilities: Numbers, table: Numbers) -> Numbers:
    """Turn probabilities into standard normal quantiles."""
    out = np.empty(probabilities.size)
    for at in range(out.size):
        out[at] = normal_quantile(probabilities[at], table)
    return out
