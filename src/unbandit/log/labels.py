"""The names of arms: as text, in order, and shortened for a message."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from decimal import Decimal

import numpy as np

from unbandit.errors import ParameterError

__all__ = [
    "given_arms",
    "is_hole",
    "is_missing_word",
    "is_not_finite",
    "is_number",
    "label_of",
    "listed",
    "natural_order",
]

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)
_HOLES = frozenset(("na", "n/a", "<na>", "null"))  # what statistics programs write
_MISSING_WORDS = _HOLES | {"none", "nil", "missing", "."}  # may be the name of an arm


def label_of(value: object) -> str:
    """Write a label as text: whole floats without a point, truth values in small letters, no blanks around.

    Examples
    --------
    >>> [label_of(value) for value in (3, 3.0, 0.5, True, " A ", "01")]
    ['3', '3', '0.5', 'true', 'A', '01']
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value).strip()


def is_number(label: str) -> bool:
    """Tell whether a label is a number as people write them."""
    return _NUMBER.fullmatch(label) is not None


def is_not_finite(label: str) -> bool:
    """Tell whether a label is what a computation leaves where a number should be: NaN or infinity."""
    return _NOT_FINITE.fullmatch(label) is not None


def is_hole(label: str) -> bool:
    """Tell whether a label is what statistics programs write for a value that is not there, and hardly a name."""
    return label.lower() in _HOLES


def is_missing_word(label: str) -> bool:
    """Tell whether a label is what programs write for a value that is not there."""
    return label.lower() in _MISSING_WORDS


def natural_order(labels: Iterable[str]) -> list[str]:
    """Sort labels by value when all are numbers; otherwise leave them as they come.

    Examples
    --------
    >>> natural_order(["10", "9", "1"]), natural_order(["b", "10", "a"])
    (['1', '9', '10'], ['b', '10', 'a'])
    """
    found = list(labels)
    if all(map(is_number, found)):
        found.sort(key=lambda label: (Decimal(label), label))
    return found


def same_but_capitals(labels: Sequence[str]) -> tuple[str, ...]:
    """Say which arms differ in capitals alone: perhaps they are one.

    Examples
    --------
    >>> same_but_capitals(["red", "blue", "RED"])
    ('arms "red" and "RED" differ in capitals only, and are read as two. If they are one, write them alike.',)
    """
    first: dict[str, str] = {}
    for label in labels:
        other = first.setdefault(label.casefold(), label)
        if other != label:
            return (
                f'arms "{other}" and "{label}" differ in capitals only, and are read as two. If they are one, write '
                "them alike.",
            )
    return ()


def typed(labels: Iterable[str]) -> str:
    """Write labels as `--arms` takes them: with commas between, and those that have one in quotes; few of many.

    Examples
    --------
    >>> typed(["A", "B, large"])
    'A,"B, large"'
    """
    return listed([f'"{label}"' if "," in label else label for label in labels])


def given_arms(arms: Iterable[object]) -> tuple[str, ...]:
    """Return the arms that a user lists, as text; refuse fewer than two, blanks and repeats.

    Examples
    --------
    >>> given_arms([0, 1, 2])
    ('0', '1', '2')
    """
    labels = tuple([arm.strip() if type(arm) is str else label_of(arm) for arm in arms])
    if len(labels) < 2:
        raise ParameterError(
            f"expected two labels or more; got {len(labels)}. List every arm there was.", parameter="arms"
        )
    if all(labels) and len(set(labels)) == len(labels):  # of thousands of arms, quickly
        return labels
    seen: set[str] = set()
    for at, label in enumerate(labels):
        if not label:
            raise ParameterError(
                f"expected a label at position {at + 1}; got a blank. Leave it out or name it.", parameter="arms"
            )
        if label in seen:
            raise ParameterError(f'expected different labels; got "{label}" twice. List it once.', parameter="arms")
        seen.add(label)
    return labels


def listed(labels: Sequence[str], separator: str = ",", limit: int = 12) -> str:
    """Write labels one after the other; of more than `limit`, the first ones and the last.

    Examples
    --------
    >>> listed([str(number) for number in range(30)], separator=", ", limit=4)
    '0, 1, 2, ..., 29'
    """
    shown = list(labels) if len(labels) <= limit else [*labels[: limit - 1], "...", labels[-1]]
    return separator.join(shown)
