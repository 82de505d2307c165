"""The sort of a merge, against Python's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit.kernels.compiling import compiled
from unbandit.kernels.sorting import sort_entries


@compiled
def compiled_sort(levels, tags, other_levels, other_tags, entries):
    return sort_entries(levels, tags, other_levels, other_tags, entries)


def sort(levels: np.ndarray, tags: np.ndarray) -> list[int]:
    entries = len(levels)
    spare = np.empty(entries + 3), np.empty(entries + 3, np.uint64)  # room to spare, as in a merge
    given = np.append(levels, [9e9] * 3), np.append(tags, np.zeros(3, np.uint64))
    return compiled_sort(*given, *spare, np.uint64(entries))[:entries].tolist()


def expected(levels: np.ndarray, tags: np.ndarray) -> list[int]:
    return [tag for _, tag in sorted((-level, tag) for level, tag in zip(levels.tolist(), tags.tolist(), strict=True))]


# adding 0 makes -0.0 into 0.0: no index is ever -0.0
numbers = st.one_of(st.floats(-1e300, 1e300), st.sampled_from([0.0, 1.0, 0.5, -0.5])).map(lambda level: level + 0.0)


@given(st.lists(numbers, min_size=1, max_size=200))
def test_highest_level_first_then_lowest_tag(levels):
    levels, tags = np.array(levels), np.arange(len(levels), dtype=np.uint64)[::-1].copy()
    assert sort(levels, tags) == expected(levels, tags)


@pytest.mark.parametrize("entries", [399, 400, 4999, 5000, 20_000, 300_001])
@pytest.mark.parametrize("spread", ["around zero", "far from zero", "few values"])
def test_every_number_of_digits(entries, spread):
    random = np.random.default_rng(entries)
    levels = random.normal(size=entries)
    if spread == "far from zero":
        levels += 1000
    if spread == "few values":
        levels = levels.round(1) + 0.0
    tags = random.permutation(entries).astype(np.uint64)
    if spread == "few values":
        tags.sort()  # equal levels arrive in the order of their arms, as in a merge
    assert sort(levels, tags) == expected(levels, tags)
