"""Checks of arguments, each with the sentence that refuses; and the threads that work is spread over."""

import difflib
import math
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from unbandit.errors import ParameterError

Result = TypeVar("Result")

LARGEST_COUNT = 2**32 - 1
LARGEST_SEED = 2**64 - 1
DEEPEST = 50  # levels of lists and tables in a file


def integer(value: object) -> int | None:
    """Return a whole number of Python's or NumPy's as an int; None for anything else, booleans included."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def whole(name: str, value: object, least: int = 1, most: int = LARGEST_COUNT) -> int:
    """Check a whole number within limits, by default a count."""
    number = integer(value)
    if number is None or not least <= number <= most:
        power = (most + 1).bit_length() - 1
        limit = f"2^{power} - 1" if power >= 32 and most == 2**power - 1 else f"{most:,}"
        raise _no_number(name, value, f"a whole number from {least} to {limit}")
    return number


def seed(value: object, name: str = "seed") -> int:
    """Check a seed."""
    return whole(name, value, 0, LARGEST_SEED)


def level(value: Any, name: str = "level") -> float:
    """Check the level of an interval."""
    if isinstance(value, bool) or not _is_number(value) or not 0 < value < 1:
        raise _no_number(name, value, "a number between 0 and 1")
    return float(value)


def finite(name: str, value: Any) -> float:
    """Check a finite number."""
    if isinstance(value, bool) or not _is_number(value) or not math.isfinite(value):
        raise _no_number(name, value, "a finite number")
    return float(value)


def positive(name: str, value: Any) -> float:
    """Check a positive, finite number."""
    if isinstance(value, bool) or not _is_number(value) or not (math.isfinite(value) and value > 0):
        raise _no_number(name, value, "a positive number")
    return float(value)


def flag(name: str, value: object) -> None:
    """Check that a value is true or false; a word such as "no" is neither."""
    if str(value) not in ("True", "False") or isinstance(value, str):
        text = f"expected True or False; got {value!r}."
        raise ParameterError(text, parameter=name, value=value, remedy="Write it without quotes.")


def _no_number(name: str, value: object, expected: str) -> ParameterError:
    remedy = "Write it as a number, without quotes." if isinstance(value, str | bytes) else None
    return ParameterError(f"expected {expected}; got {value!r}.", parameter=name, value=value, remedy=remedy)


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return not isinstance(value, str | bytes)


def shallow(value: Result) -> Result:
    """Return what a TOML or JSON file holds; a RecursionError if its nesting would break whatever writes it out."""
    layer: list[Any] = [value]
    for _ in range(DEEPEST):
        inner = [list(each.values()) if isinstance(each, dict) else each for each in layer]
        layer = [item for each in inner if isinstance(each, list) for item in each]
    if layer:
        raise RecursionError(f"nested in more than {DEEPEST} levels")
    return value


def did_you_mean(value: object, options: Iterable[str]) -> str | None:
    """Return the sentence that suggests the nearest of some options, if one is near."""
    near = difflib.get_close_matches(str(value).lower().replace("_", "-"), list(options), 1)
    return f'Did you mean "{near[0]}"?' if near else None


def one_of(name: str, value: object, options: Iterable[str], **data: Any) -> str:
    """Check that a value is one of some options, and suggest the nearest where it is not."""
    known = list(options)
    if isinstance(value, str) and value in known:
        return value
    raise ParameterError(
        f'expected one of {", ".join(known)}; got "{value}".',
        parameter=name,
        value=value,
        remedy=did_you_mean(value, known),
        **data,
    )


def position(name: str, value: object, names: Sequence[str], most: int = 12) -> int:
    """Return the position of a name; of None, 0: the first."""
    if value is None:
        return 0
    if str(value) not in names:
        known = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
        raise ParameterError(f'expected one of {known}; got "{value}".', parameter=name, value=value)
    return names.index(str(value))


def anchors(texts: Sequence[str] | None) -> dict[str, float] | None:
    """Read `ARM=VALUE`, once or more; an arm's name may have an equals sign in it."""
    if not texts:
        return None
    known: dict[str, float] = {}
    for text in texts:
        arm, _, value = text.rpartition("=")
        try:
            number = float(value)
        except ValueError:
            arm = ""
        if not arm.strip():
            raise ParameterError(f'expected ARM=VALUE, as in B=0.4; got "{text}".', parameter="anchor", value=text)
        if arm.strip() in known:
            raise ParameterError(f'expected each arm once; got "{arm.strip()}" twice.', parameter="anchor", value=text)
        known[arm.strip()] = number
    return known


def threads(count: object = None, most: int | None = None) -> int:
    """Return how many threads to use: as many as were asked for, by default one per processor, at most `most`."""
    wanted = os.cpu_count() or 1 if count is None else whole("threads", count)
    return wanted if most is None else max(1, min(wanted, most))


def in_threads(work: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], count: int) -> list[Result]:
    """Call `work` with each tuple of arguments, on threads: compiled kernels release the interpreter lock."""
    if count <= 1 or len(arguments) <= 1:
        return [work(*each) for each in arguments]
    with ThreadPoolExecutor(min(count, len(arguments))) as pool:
        return [future.result() for future in [pool.submit(work, *each) for each in arguments]]
