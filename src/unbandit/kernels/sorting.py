"""Sort the entries of a merge: highest level first, equal levels by arm."""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from unbandit.kernels.compiling import inlined

__all__ = ["sort_entries"]

ZERO, ONE, SIGN, SHIFT_63 = np.uint64(0), np.uint64(1), np.uint64(1 << 63), np.uint64(63)
EVERY = np.uint64(0xFFFFFFFFFFFFFFFF)


@inlined
def _to_descending_keys(keys: NDArray[np.uint64], entries: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Turn the bits of levels, in place, into integers that rise where levels fall; return the range of them."""
    least, greatest = EVERY, ZERO
    for entry in range(entries):
        bits = keys[entry] if keys[entry] != SIGN else ZERO  # minus zero is zero
        bits = ~(bits ^ ((ZERO - (bits >> SHIFT_63)) | SIGN))  # a float's bits, mended so that they sort; then turned
        keys[entry] = bits
        least, greatest = min(least, bits), max(greatest, bits)
    return least, greatest


@inlined
def _by_insertion(keys: NDArray[np.uint64], tags: NDArray[np.uint64], entries: np.uint64) -> None:
    """Finish the order by (key, tag): the digits that were looked at leave a few neighbours to exchange."""
    for entry in range(ONE, entries):
        key, tag = keys[entry], tags[entry]
        at = entry
        while at > ZERO and (keys[at - ONE] > key or (keys[at - ONE] == key and tags[at - ONE] > tag)):
            keys[at], tags[at] = keys[at - ONE], tags[at - ONE]
            at -= ONE
        keys[at], tags[at] = key, tag


@register_jitable
def sort_entries(
    levels: NDArray[np.float64],
    tags: NDArray[np.uint64],
    other_levels: NDArray[np.float64],
    other_tags: NDArray[np.uint64],
    entries: np.uint64,
) -> NDArray[np.uint64]:
    """Return the tags in order of descending level, equal levels by ascending tag (the arm is its high half).

    A radix sort on one to three digits of the levels' bits, whatever bits differ, finished by insertion. All four
    arrays are overwritten.
    """
    keys, other_keys = levels.view(np.uint64), other_levels.view(np.uint64)
    least, greatest = _to_descending_keys(keys, entries)
    digit = np.uint64(8) if entries < np.uint64(5000) else np.uint64(11)
    passes = 1 if entries < np.uint64(400) else 2 if entries < np.uint64(300_000) else 3
    buckets = ONE << digit
    shift = ZERO
    while (greatest - least) >> shift >= ONE << (np.uint64(passes) * digit):
        shift += ONE
    counts = np.empty(buckets, np.uint64)
    for _ in range(passes):
        counts[:] = ZERO
        for entry in range(entries):
            counts[((keys[entry] - least) >> shift) & (buckets - ONE)] += ONE
        start = ZERO
        for bucket in range(buckets):
            counts[bucket], start = start, start + counts[bucket]
        for entry in range(entries):
            bucket = ((keys[entry] - least) >> shift) & (buckets - ONE)
            place = counts[bucket]
            counts[bucket] = place + ONE
            other_keys[place], other_tags[place] = keys[entry], tags[entry]
        keys, other_keys, tags, other_tags = other_keys, keys, other_tags, tags
        shift += digit
    _by_insertion(keys, tags, entries)
    return tags
