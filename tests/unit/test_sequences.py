"""Sequences that make their members when they are asked for behave as tuples do."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from unbandit.log.labels import MOST_IN_TUPLE, Numbered, numbered
from unbandit.result import Integers, Marked, integers, marked

MARKS = np.array([[True, False], [True, True], [False, False]])
PAIRS = [
    (Numbered(5), ("1", "2", "3", "4", "5")),
    (Integers(np.array([4, 2, 2])), (4, 2, 2)),
    (Marked(MARKS, ("A", "B")), (("A",), ("A", "B"), ())),
]


@pytest.mark.parametrize(("made", "plain"), PAIRS, ids=["Numbered", "Integers", "Marked"])
def test_everything_a_tuple_does(made, plain):
    assert made == plain
    assert plain == made
    assert made == pickle.loads(pickle.dumps(made))
    assert made != plain[:-1]
    assert made != (*plain[:-1], "other")
    assert made != list(plain)
    assert hash(made) == hash(plain)
    assert repr(made) == repr(plain)
    assert list(made) == list(plain)
    assert list(reversed(made)) == list(reversed(plain))
    assert len(made) == len(plain)
    assert (made[0], made[-1], made[1:], made[::-1]) == (plain[0], plain[-1], plain[1:], plain[::-1])
    assert isinstance(made[:2], tuple)
    assert [made.index(member) for member in plain] == [plain.index(member) for member in plain]
    assert made.index(plain[1], 1) == plain.index(plain[1], 1)
    assert made.count(plain[0]) == plain.count(plain[0])
    assert all(member in made for member in plain)
    assert "other" not in made
    with pytest.raises(IndexError):
        made[len(plain)]
    with pytest.raises(ValueError):  # noqa: PT011 (a tuple says as little)
        made.index("other")


@pytest.mark.parametrize("name", ["0", "6", "01", "", "-1", "1.0", "²", "x", 1, None])
def test_only_names_that_are_given_are_found(name):
    assert name not in Numbered(5)


def test_few_members_stand_in_a_tuple_and_many_do_not():
    assert isinstance(numbered(MOST_IN_TUPLE), tuple)
    assert isinstance(integers(np.arange(MOST_IN_TUPLE)), tuple)
    assert isinstance(marked(np.ones((MOST_IN_TUPLE, 2), bool), ("A", "B")), tuple)
    assert type(integers(np.arange(3))[0]) is int
    million = numbered(1_000_000)
    assert repr(million) == "<1,000,000 members: '1', '2', '3', ..., '1000000'>"
    assert million == numbered(1_000_000)
    assert million != numbered(999_999)
    assert integers(np.arange(MOST_IN_TUPLE + 1))[MOST_IN_TUPLE] == MOST_IN_TUPLE
    assert marked(np.eye(MOST_IN_TUPLE + 1, 2, dtype=bool), ("A", "B"))[1] == ("B",)
