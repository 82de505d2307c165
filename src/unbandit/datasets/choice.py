"""The choice of arms from a larger data set: all, a number at random, or a list."""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from unbandit import checks
from unbandit.checks import brief, integer, is_list
from unbandit.errors import ParameterError, option

_refused = partial(ParameterError, parameter="arms")

Arms = int | Iterable[int] | None
"""Which arms: `None` for all, a count for that many at random, or a list of their numbers."""


def random_order(size: int, seed: int) -> NDArray[np.int64]:
    """Return 0 to size - 1 in an order that depends on the seed alone.

    The raw words of Philox are sorted: NumPy promises that they never change, and not its distributions.
    """
    return np.argsort(np.random.Philox(checks.seed(seed)).random_raw(size), kind="stable").astype(np.int64)


def chosen_numbers(
    arms: Arms, numbers: range, noun: str, draw: Callable[[int], NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Return the numbers of the arms that were asked for, out of those that exist.

    `noun` is the word for one of them in an error message; `draw` picks a number of them.
    """
    if arms is None:
        return np.array(numbers, dtype=np.int64)
    count = integer(arms)
    if count is not None:
        if not 2 <= count <= len(numbers):
            remedy = f"Leave {option('arms')} out to take all {len(numbers)}."
            raise _refused(f"expected a count from 2 to {len(numbers)}; got {brief(count)}.", value=arms, remedy=remedy)
        return draw(count)
    return np.array(_listed_numbers(arms, numbers, noun), dtype=np.int64)


def _listed_numbers(arms: object, numbers: range, noun: str) -> list[int]:
    if not isinstance(arms, Iterable) or not is_list(arms) or isinstance(arms, str | bytes):
        remedy = f"Write {option('arms', 20)} for twenty at random, or {option('arms', [*numbers[:2]])} for two."
        raise _refused(f"expected a count or a list of {noun} numbers; got {brief(arms)}.", value=arms, remedy=remedy)
    listed: list[int] = []
    for value in arms:
        number = integer(value)
        if number is None or number not in numbers:
            refusal = f"expected {noun} numbers from {numbers[0]} to {numbers[-1]}; got {brief(value)}."
            raise _refused(refusal, value=value, remedy="Correct it or leave it out.")
        listed.append(number)
    if len(listed) < 2:
        raise _refused(f"expected two {noun}s or more; got {len(listed)}. Add another one to choose between.")
    if len(set(listed)) < len(listed):
        twice = next(number for at, number in enumerate(listed) if number in listed[:at])
        raise _refused(f"expected each {noun} once; got {twice} twice. Leave one of them out.")
    return listed
