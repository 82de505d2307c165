"""Checks of arguments, each with the sentence that refuses; and the threads that work is spread over."""

from __future__ import annotations

import difflib
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, Any, SupportsFloat, SupportsIndex, TypeVar

from unbandit.errors import ParameterError, option
from unbandit.formatting import LONGEST_LABEL, Unit
from unbandit.progress import WorkerThreads, current_work, interruptible, unless_stopped

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Result = TypeVar("Result")

LARGEST_COUNT = 2**32 - 1
LARGEST_SEED = 2**64 - 1
DEEPEST = 50  # levels of lists and tables in a file


def integer(value: object) -> int | None:
    """Return a whole number of Python's or NumPy's as an int; None for anything else, booleans included."""
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    try:
        return operator.index(value)
    except TypeError:  # an array of several
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


def real(value: object) -> float | None:
    """Return a real number of Python's or NumPy's as a float; None for text, booleans, durations and anything else.

    >>> import numpy as np
    >>> real(np.float32(0.5)), real("0.5"), real(True), real(np.timedelta64(1, "s")), real(10**400)
    (0.5, None, None, None, None)
    """
    kind = _scalar_kind(value)
    is_number = isinstance(value, Real | Decimal) and not isinstance(value, bool) if kind is None else kind in "iuf"
    try:
        return float(value) if is_number and isinstance(value, SupportsFloat) else None
    except (ValueError, OverflowError):
        return None


def level(value: object, name: str = "level") -> float:
    """Check the level of an interval."""
    number = real(value)
    if number is None or not 0 < number < 1:
        raise _no_number(name, value, "a number between 0 and 1")
    return number


def finite(name: str, value: object) -> float:
    """Check a finite number."""
    number = real(value)
    if number is None or not math.isfinite(number):
        raise _no_number(name, value, "a finite number")
    return number


def positive(name: str, value: object) -> float:
    """Check a positive, finite number."""
    number = real(value)
    if number is None or not (math.isfinite(number) and number > 0):
        raise _no_number(name, value, "a positive number")
    return number


def unit(value: object, name: str = "unit") -> Unit | None:
    """Check a unit: a text such as `cycles=1208`, or a name and a positive number; None for none.

    >>> unit("cycles=1208")
    Unit(name='cycles', factor=1208.0)
    """
    if value is None:
        return None
    called, amount = value if isinstance(value, tuple) and len(value) == 2 else ("", None)
    if isinstance(value, str):
        called, _, amount = (part.strip() for part in value.rpartition("="))
        with suppress(ValueError):
            amount = float(amount)
    factor = real(amount)
    fits = (
        isinstance(called, str)
        and 0 < len(called) <= LONGEST_LABEL
        and called.isprintable()
        and called == called.strip()
    )
    if not fits or factor is None or not (math.isfinite(factor) and factor > 0):
        text = f"expected a name of at most {LONGEST_LABEL} characters and a positive number; got {brief(value)}."
        remedy = f"Write it as in {option(name, 'cycles=1208')}; the number is 1 if values are in this unit already."
        raise ParameterError(text, parameter=name, value=value, remedy=remedy)
    return Unit(called, factor)


def _scalar_kind(value: object) -> str | None:
    """Return the kind of a scalar of NumPy, or of an array without dimensions; None for what is none."""
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return kind if isinstance(kind, str) and getattr(value, "ndim", None) == 0 else None


def numbers(name: str, values: object) -> NDArray[np.float64]:
    """Check numbers in any arrangement: a copy, in which NaN and infinite numbers may be."""
    import numpy as np  # here, since the help of the command line needs none

    try:
        array = np.array(values)
    except (ValueError, TypeError):  # rows of different lengths, or something that only looks like a list
        array = np.array(None)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    each = [real(value) for value in array.reshape(-1)] if array.dtype.kind == "O" else [None]
    if None in each:
        remedy = "Write them as numbers, without quotes." if array.dtype.kind in "US" else "Write them as [0.5, 0.25]."
        raise ParameterError(f"expected numbers; got {brief(values)}.", parameter=name, value=values, remedy=remedy)
    return np.array(each, np.float64).reshape(array.shape)


def flag(name: str, value: object) -> None:
    """Check that a value is true or false; a word such as "no" is neither."""
    if not isinstance(value, bool) and _scalar_kind(value) != "b":
        text = f"expected True or False; got {brief(value)}."
        raise ParameterError(text, parameter=name, value=value, remedy="Write it without quotes.")


def function(name: str, value: object) -> None:
    """Check something to call; None for nothing."""
    if value is not None and not callable(value):
        text = f"expected a function, or None; got {brief(value)}."
        raise ParameterError(text, parameter=name, value=value, remedy=f"Give one such as {name}=print.")


def text(name: str, value: object) -> None:
    """Check a text; None for none."""
    if value is not None and not isinstance(value, str):
        refusal = f"expected a text; got {brief(value)}."
        raise ParameterError(refusal, parameter=name, value=value, remedy="Write it in quotes.")


def is_list(value: object) -> bool:
    """Return whether a value has members: an array without dimensions only looks as if it had."""
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def path(name: str, value: object) -> None:
    """Check the name of a file."""
    if not isinstance(value, str | os.PathLike):
        refusal = f"expected the name of a file; got {brief(value)}."
        raise ParameterError(refusal, parameter=name, value=value, remedy='Write it as "log.csv".')
    try:
        is_possible = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        refusal = f"expected the name of a file; no file can have this one: {brief(value)}."
        raise ParameterError(refusal, parameter=name, value=value, remedy="Remove the characters that are no text.")


def by_arm(name: str, value: object, every: Sequence[str] = (), since: str = "") -> None:
    """Check numbers by arm: a mapping, or None. `every` names arms that must be in it, and `since` says why."""
    if value is not None and not isinstance(value, Mapping):
        refusal = f"expected arms with their means; got {brief(value)}."
        raise ParameterError(refusal, parameter=name, value=value, remedy='Write them as {"B": 0.4}.')
    for arm, number in (value or {}).items():
        if real(number) is None:
            raise _no_number(f"{name} {arm if isinstance(arm, str) else brief(arm)}", number, "a number")
    if value and (missing := [arm for arm in every if arm not in value]):
        refusal = f'expected the mean of every arm, since {since}; got none of "{missing[0]}".'
        raise ParameterError(refusal, parameter=name)


def brief(value: object, longest: int = 60) -> str:
    """Write any value in a few characters of one line, to be quoted in a sentence."""
    try:
        written = " ".join(repr(value).split())
    except Exception:  # whatever a foreign object raises, also a number with too many digits
        written = f"a value of type {type(value).__name__}"
    return written if len(written) <= longest else f"{written[: longest - 3]}..."


def _no_number(name: str, value: object, expected: str) -> ParameterError:
    remedy = "Write it as a number, without quotes." if isinstance(value, str | bytes) else None
    return ParameterError(f"expected {expected}; got {brief(value)}.", parameter=name, value=value, remedy=remedy)


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
    if not isinstance(value, str):
        return None
    near = nearest(value.lower().replace("_", "-"), options)
    return f'Did you mean "{near}"?' if near else None


def nearest(text: str, options: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the option that is most like a text, if one is like it; the `cutoff` is difflib's."""
    return next(iter(difflib.get_close_matches(text, list(options), 1, cutoff)), None)


def one_of(name: str | None, value: object, options: Iterable[str], *, also: Iterable[str] = (), **data: Any) -> str:
    """Check that a value is one of some options; where it is not, suggest the nearest of these, and of some others."""
    known = list(options)
    if isinstance(value, str) and value in known:
        return value
    got = f'"{value}"' if isinstance(value, str) else brief(value)
    text = f"expected one of {', '.join(known)}; got {got}."
    raise ParameterError(text, parameter=name, value=value, remedy=did_you_mean(value, [*known, *also]), **data)


def position(name: str, value: object, names: Sequence[str], most: int = 12) -> int:
    """Return the position of a name; of None, 0: the first."""
    if value is None:
        return 0
    try:
        label = str(value)
    except Exception:  # whatever a foreign object raises
        label = brief(value)
    if label not in names:
        known = ", ".join(names[:most]) + (", ..." if len(names) > most else "")
        raise ParameterError(f'expected one of {known}; got "{label}".', parameter=name, value=value)
    return names.index(label)


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


def in_parts(
    stage: str, work: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], count: int = 1
) -> list[Result]:
    """Call `work` as `in_threads` does; Ctrl-C ends it, and several calls are shown as parts of a stage."""

    def part(*each: Any) -> Result:
        result = work(*each)
        current_work().finish_part()
        return result

    def all_parts() -> list[Result]:
        if len(arguments) == 1:
            return [work(*arguments[0])]
        with current_work().stage(stage, len(arguments), in_parts=True):
            return in_threads(part, arguments, count)

    return interruptible(all_parts)


def in_threads(work: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], count: int) -> list[Result]:
    """Call `work` with each tuple of arguments, on threads: compiled kernels release the interpreter lock."""
    if count <= 1 or len(arguments) <= 1:
        return [unless_stopped(work, *each) for each in arguments]
    with WorkerThreads(min(count, len(arguments))) as pool:
        futures = [pool.submit(work, *each) for each in arguments]
        try:
            return [future.result() for future in futures]
        except BaseException:  # also Ctrl-C, which must not wait for work that has not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
