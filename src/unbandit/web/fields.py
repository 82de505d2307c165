"""From one parameter to one field of a form, and from what was typed back to a value."""

from __future__ import annotations

import math
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

__all__ = ["Field", "FieldErrors", "field_of", "identifier", "read_field", "read_fields", "shown"]

Kind = Literal["number", "whole", "choice", "box", "text"]

ON = frozenset({"on", "yes", "true", "1"})
"""What a box says when it is ticked."""

LONGEST = 60
"""Characters of a wrong value that are said again."""

ENDLESS = 2**31
"""A bound that nobody comes near, and that is not worth saying."""


class FieldErrors(Exception):
    """Say at which fields something is wrong: one sentence each, by the field's name."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__("; ".join(f"{name}: {sentence}" for name, sentence in self.errors.items()))


@dataclass(frozen=True)
class Field:
    """Hold a field of a form.

    Attributes
    ----------
    name, label, about
        How it is sent, how it is called, and one line that explains it.
    kind
        What is typed or chosen there.
    usual
        What stands there at first.
    choices
        Of a `choice`: what is sent, and how it is called.
    at_least, above, at_most, below
        Bounds of a number, each only where there is one.
    """

    name: str
    label: str
    about: str = ""
    kind: Kind = "text"
    usual: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None

    @property
    def id(self) -> str:
        """Return what the page calls the field's input."""
        return "field-" + identifier(self.name)

    @property
    def wide(self) -> bool:
        """Tell whether its choices need much room."""
        return any(len(called) > LONGEST for _, called in self.choices)


def identifier(name: str) -> str:
    """Write a name so that HTML and CSS can take it as part of an identifier, whatever is in it.

    Examples
    --------
    >>> identifier("epsilon-greedy.epsilon"), identifier('a"{b')
    ('epsilon-greedy-epsilon', 'a_22_7bb')
    """
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: f"_{ord(found[0]):x}", name.replace(".", "-"))


def field_of(name: str, parameter: str, info: FieldInfo) -> Field | None:
    """Return the field for a parameter of a pydantic model; None where there is nothing to choose.

    Examples
    --------
    >>> from unbandit import UCB
    >>> made = field_of("ucb.alpha", "alpha", UCB.model_fields["alpha"])
    >>> made.kind, made.usual, made.at_least, made.below
    ('number', '0.25', 0, 1)
    """
    usual = "" if info.is_required() or info.default is None else str(info.default)
    plain = Field(name, _begun(parameter.replace("_", " ")), _sentence(info.description or ""), usual=usual)
    annotation, optional, bounds = _bare(info.annotation)
    if get_origin(annotation) is Literal:
        values = get_args(annotation)
        if len(values) == 1 and not optional:
            return None
        blank = (("", "as usual"),) if optional or info.is_required() else ()
        return replace(plain, kind="choice", choices=blank + tuple((str(each), str(each)) for each in values))
    if annotation is bool:
        if optional or info.is_required():
            choices = (("", "as usual"), ("True", "yes"), ("False", "no"))
            return replace(plain, kind="choice", choices=choices)
        return replace(plain, kind="box", usual="on" if info.default else "")
    if annotation in (int, float):
        kind: Kind = "whole" if annotation is int else "number"
        found = _bounds([*bounds, *info.metadata])
        return replace(
            plain, kind=kind, at_least=found.get("ge"), above=found.get("gt"), at_most=found.get("le"),
            below=found.get("lt"),
        )  # fmt: skip
    return plain


def _sentence(words: str) -> str:
    """Begin with a large letter and end with a full stop."""
    return _begun(words) + ("." if words and not words.endswith(".") else "")


def _begun(words: str) -> str:
    return words[:1].upper() + words[1:]


def _bare(annotation: Any) -> tuple[Any, bool, list[Any]]:
    """Return a type without `None` and annotations, whether `None` was allowed, and what it was annotated with."""
    if get_origin(annotation) in (Union, types.UnionType):
        others = [each for each in get_args(annotation) if each is not type(None)]
        if len(others) == 1:
            bare, _, found = _bare(others[0])
            return bare, True, found
        return annotation, True, []
    if hasattr(annotation, "__metadata__"):
        bare, optional, found = _bare(get_args(annotation)[0])
        inner = [each for kept in annotation.__metadata__ for each in getattr(kept, "metadata", [kept])]
        return bare, optional, [*found, *inner]
    return annotation, False, []


def _bounds(metadata: list[Any]) -> dict[str, float]:
    """Return a number's bounds, as pydantic keeps them."""
    found = ((name, getattr(kept, name, None)) for kept in metadata for name in ("ge", "gt", "le", "lt"))
    return {name: bound for name, bound in found if isinstance(bound, int | float)}


def shown(field: Field, form: Mapping[str, str]) -> str:
    """Return what stands in the field: what was sent, or what is usual."""
    return form.get(field.name, field.usual)


def read_field(field: Field, form: Mapping[str, str]) -> Any:
    """Return the value of a field, None where it was left blank; raise `ValueError` with a sentence.

    Examples
    --------
    >>> level = Field("level", "Level", kind="number", above=0, below=1)
    >>> read_field(level, {"level": "0.9"})
    0.9
    >>> read_field(level, {"level": "95"})
    Traceback (most recent call last):
    ...
    ValueError: Expected a number above 0 and below 1; got "95".
    """
    if field.kind == "box":
        return shown(field, form).strip().lower() in ON
    text = form.get(field.name, "").strip()
    if not text:
        return None
    if field.kind == "choice":
        if text not in [sent for sent, _ in field.choices]:
            raise ValueError(f"Expected {_either([sent for sent, _ in field.choices if sent])}; got {quoted(text)}.")
        return text
    return text if field.kind == "text" else _number(field, text)


def read_fields(fields: tuple[Field, ...], form: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of those fields that were filled in, and what is wrong with the others."""
    values, errors = {}, {}
    for field in fields:
        try:
            value = read_field(field, form)
        except ValueError as error:
            errors[field.name] = str(error)
        else:
            if value is not None:
                values[field.name] = value
    return values, errors


def _number(field: Field, text: str) -> float | int:
    """Read a number within its bounds; spaces and thousands commas of a whole number are allowed."""
    whole = field.kind == "whole"
    if whole and re.fullmatch(r"\d{1,3}([,   ]\d{3})+", text):
        text = re.sub(r"\D", "", text)
    value = _finite(text, whole)
    if value is None or not _within(field, value):
        comma = " Write the decimal point as a point." if re.fullmatch(r"[+-]?\d*,\d+", text) else ""
        raise ValueError(f"Expected {_wanted(field)}; got {quoted(text)}.{comma}")
    return value


def _finite(text: str, whole: bool) -> float | int | None:
    """Return a finite number, None where it is none."""
    if len(text) > 40 or "_" in text:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    if not whole:
        return value
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else None


def _within(field: Field, value: float) -> bool:
    return (
        (field.at_least is None or value >= field.at_least)
        and (field.above is None or value > field.above)
        and (field.at_most is None or value <= field.at_most)
        and (field.below is None or value < field.below)
    )


def _wanted(field: Field) -> str:
    """Say which numbers a field takes."""
    what = "a whole number" if field.kind == "whole" else "a number"
    if field.at_least is not None and field.at_most is not None:
        return f"{what} from {_written(field.at_least)} to {_written(field.at_most)}"
    bounds = (("at least", field.at_least), ("above", field.above), ("at most", field.at_most), ("below", field.below))
    said = [f"{word} {_written(bound)}" for word, bound in bounds if bound is not None and bound < ENDLESS]
    joined = " and ".join(said)
    return f"{what}, {joined}" if joined.startswith("at") else f"{what} {joined}".strip()


def _written(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _either(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" or {words[-1]}"


def quoted(text: str) -> str:
    """Return a wrong value as it is said again: short, and between quotation marks."""
    return f'"{text}"' if len(text) <= LONGEST else f'"{text[:LONGEST]}…"'
