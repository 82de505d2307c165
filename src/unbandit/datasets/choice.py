"""Choose some arms out of a larger data set: all, so many at random, or exactly these."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from unbandit.errors import ParameterError

Arms = int | Iterable[int] | None
"""How arms are asked for: `None` for all, a count for so many at random, or their numbers."""


def whole_number(value: object) -> int | None:
    """Return the value if it is a whole number of Python's or NumPy's, else `None`.

    Examples
    --------
    >>> whole_number(np.int64(3)), whole_number(3.0), whole_number(True)
    (3, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def random_order(size: int, seed: int) -> NDArray[np.int64]:
    """Return 0 to size - 1 in an order that depends on the seed alone.

    The raw words of Philox are sorted, because NumPy promises that those words never change, while it
    reserves the right to change what its ready-made draws make of them.

    Examples
    --------
    >>> sorted(random_order(5, seed=1).tolist())
    [0, 1, 2, 3, 4]
    """
    number = whole_number(seed)
    if number is None or number < 0:
        raise ParameterError(f"expected a whole number from 0 up; got {seed!r}.", parameter="seed")
    return np.argsort(np.random.Philox(number).random_raw(size), kind="stable").astype(np.int64)


def chosen_numbers(
    arms: Arms, numbers: range, noun: str, draw: Callable[[int], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Return the numbers of the arms that were asked for.

    Parameters
    ----------
    arms
        `None`, a count, or the numbers themselves, whose order is kept.
    numbers
        The numbers that exist.
    noun
        What one of them is called in an error.
    draw
        Picks so many of them, once the count is known to be possible.

    Examples
    --------
    >>> chosen_numbers([7, 3], range(10), "protocol", draw=np.arange).tolist()
    [7, 3]
    >>> chosen_numbers([7, 10], range(10), "protocol", draw=np.arange)
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: arms: expected protocol numbers from 0 to 9; got 10. Correct it or leave it out.
    """
    if arms is None:
        return np.array(numbers, dtype=np.int64)
    count = whole_number(arms)
    if count is not None:
        if not 2 <= count <= len(numbers):
            raise ParameterError(
                f"expected a count from 2 to {len(numbers)}; got {count}. Leave arms out to take all {len(numbers)}.",
                parameter="arms",
            )
        return draw(count)
    return np.array(_listed_numbers(arms, numbers, noun), dtype=np.int64)


def _listed_numbers(arms: object, numbers: range, noun: str) -> list[int]:
    asked = list(arms) if isinstance(arms, Iterable) and not isinstance(arms, str | bytes) else None
    if asked is None:
        raise ParameterError(
            f"expected a count or a list of {noun} numbers; got {arms!r}. "
            f"Write arms=20 for twenty at random, or arms=[{numbers[0]}, {numbers[1]}] for those two.",
            parameter="arms",
        )
    listed: list[int] = []
    for value in asked:
        number = whole_number(value)
        if number is None or number not in numbers:
            raise ParameterError(
                f"expected {noun} numbers from {numbers[0]} to {numbers[-1]}; got {value!s}. "
                "Correct it or leave it out.",
                parameter="arms",
            )
        listed.append(number)
    if len(listed) < 2:
        raise ParameterError(
            f"expected two {noun}s or more; got {len(listed)}. Add another one to choose between.", parameter="arms"
        )
    if len(set(listed)) < len(listed):
        twice = next(number for at, number in enumerate(listed) if number in listed[:at])
        raise ParameterError(f"expected each {noun} once; got {twice} twice. Leave one of them out.", parameter="arms")
    return listed
