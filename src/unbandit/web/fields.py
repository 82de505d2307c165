"""Form fields: from a parameter to a field, and from what was typed back to a value."""

import math
import operator
import re
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from unbandit.demonstrators.family import FIT
from unbandit.formatting import capitalise, joined

Kind = Literal["number", "whole", "choice", "box", "text", "lines"]
Value = TypeVar("Value")

ON = frozenset({"on", "yes", "true", "1"})  # values of a ticked box
LONGEST_VALUE = 60  # characters of a wrong value that are shown

LARGEST_BOUND_SHOWN = 2**31

BOUNDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "at_least": ("ge", operator.ge),
    "above": ("gt", operator.gt),
    "at_most": ("le", operator.le),
    "below": ("lt", operator.lt),
}
"""Bounds of a field: what pydantic calls each, and when a number keeps it."""


class FieldErrors(Exception):
    """Fields that were filled in wrongly: one sentence for each, by the field's name."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        self.errors = dict(errors)
        super().__init__("; ".join(f"{name}: {sentence}" for name, sentence in self.errors.items()))


def collect(
    errors: dict[str, str], read: Callable[[Mapping[str, str]], Value], form: Mapping[str, str]
) -> Value | None:
    """Read a part of a form; None if its fields are wrong, whose errors are collected."""
    try:
        return read(form)
    except FieldErrors as wrong:
        errors |= wrong.errors
        return None


@dataclass(frozen=True)
class Field:
    """Field of a form."""

    name: str  # as it is sent
    label: str
    about: str = ""  # one line that explains it
    kind: Kind = "text"
    usual: str = ""  # the initial value
    choices: tuple[tuple[str, str], ...] = ()  # of a choice: the value that is sent, and its label
    at_least: float | None = None
    above: float | None = None
    at_most: float | None = None
    below: float | None = None
    may_fit: bool = False  # whether "fit" stands for a number that is to be fitted from the log

    @property
    def id(self) -> str:
        """Return the HTML id of the field's input."""
        return "field-" + identifier(self.name)

    @property
    def wide(self) -> bool:
        """Whether its choices need much room."""
        return any(len(label) > LONGEST_VALUE for _, label in self.choices)


def identifier(name: str) -> str:
    """Write any name as part of an HTML or CSS identifier: `ucb.alpha` as `ucb-alpha`, other characters in hex."""
    return re.sub(r"[^A-Za-z0-9_-]", lambda found: f"_{ord(found[0]):x}", name.replace(".", "-"))


def field_of(name: str, parameter: str, info: FieldInfo) -> Field | None:
    """Return the field for a parameter of a pydantic model; None if there is nothing to choose."""
    usual = "" if info.is_required() or info.default is None else str(info.default)
    about = capitalise(info.description or "")
    about += "." if about and not about.endswith(".") else ""
    plain = Field(name, capitalise(parameter.replace("_", " ")), about, usual=usual)
    annotation, optional, bounds = _bare(info.annotation)
    blank = (("", "as usual"),) if optional or info.is_required() else ()
    if get_origin(annotation) is Literal:
        values = tuple((str(value), str(value)) for value in get_args(annotation))
        return None if len(values) == 1 and not optional else replace(plain, kind="choice", choices=blank + values)
    if annotation is bool:
        if blank:
            return replace(plain, kind="choice", choices=(*blank, ("True", "yes"), ("False", "no")))
        return replace(plain, kind="box", usual="on" if info.default else "")
    if annotation in (int, float):
        kind: Kind = "whole" if annotation is int else "number"
        return replace(plain, kind=kind, **_bounds([*bounds, *info.metadata]))
    return plain


def _bare(annotation: Any) -> tuple[Any, bool, list[Any]]:
    """Return a type without `None` and annotations, whether `None` was allowed, and the annotations."""
    if get_origin(annotation) in (Union, types.UnionType):
        others = [each for each in get_args(annotation) if each is not type(None)]
        if len(others) == 1:
            bare, _, metadata = _bare(others[0])
            return bare, True, metadata
        return annotation, True, []
    if hasattr(annotation, "__metadata__"):
        bare, optional, metadata = _bare(get_args(annotation)[0])
        inner = [each for kept in annotation.__metadata__ for each in getattr(kept, "metadata", [kept])]
        return bare, optional, [*metadata, *inner]
    return annotation, False, []


def _bounds(metadata: list[Any]) -> dict[str, Any]:
    """Return a number's bounds, from pydantic's metadata."""
    bounds = ((name, getattr(kept, key, None)) for kept in metadata for name, (key, _) in BOUNDS.items())
    return {name: bound for name, bound in bounds if isinstance(bound, int | float)}


def field_content(field: Field, form: Mapping[str, str]) -> str:
    """Return the content of the field: what was sent, or its initial value."""
    return form.get(field.name, field.usual)


def is_ticked(field: Field, form: Mapping[str, str]) -> bool:
    """Whether a box is ticked."""
    return field_content(field, form).strip().lower() in ON


def read_field(field: Field, form: Mapping[str, str]) -> Any:
    """Return the value of a field, None if it was left blank; raise `ValueError` with a sentence."""
    if field.kind == "box":
        return is_ticked(field, form)
    text = form.get(field.name, "").strip()
    if not text:
        return None
    if field.kind == "choice":
        if text not in [sent for sent, _ in field.choices]:
            known = joined((sent for sent, _ in field.choices if sent), "or")
            raise ValueError(f"Expected {known}; got {quote(text)}.")
        return text
    if field.may_fit and text.lower() == FIT.value:
        return FIT
    return text if field.kind in ("text", "lines") else _number(field, text)


def read_fields(fields: tuple[Field, ...], form: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values of the fields that were filled in, and the errors of the others."""
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
    """Read a number within its bounds; a whole number may have thousands separators."""
    if field.kind == "whole" and re.fullmatch(r"\d{1,3}([,\u00a0\u202f ]\d{3})+", text):
        text = re.sub(r"\D", "", text)
    value = _finite(text, field.kind == "whole")
    if value is None or not all(BOUNDS[name][1](value, bound) for name, bound in _bounds_of(field).items()):
        comma = " Write the decimal point as a point." if re.fullmatch(r"[+-]?\d*,\d+", text) else ""
        raise ValueError(f"Expected {wanted(field)}; got {quote(text)}.{comma}")
    return value


def _finite(text: str, whole: bool) -> float | int | None:
    """Return a finite number, or None."""
    try:
        value = float(text) if len(text) <= 40 and "_" not in text else math.nan
    except ValueError:
        return None
    if not math.isfinite(value):
        return None
    if not whole:
        return value
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return int(value) if value.is_integer() and abs(value) < 2**53 else None


def _bounds_of(field: Field) -> dict[str, float]:
    return {name: getattr(field, name) for name in BOUNDS if getattr(field, name) is not None}


def wanted(field: Field) -> str:
    """Describe what a field takes: its numbers or its choices; nothing where it takes any text."""
    if field.kind in ("text", "lines"):
        return ""
    if field.kind == "box":
        return "true or false"
    if field.kind == "choice":
        return joined((sent for sent, _ in field.choices if sent), "or")
    what = "a whole number" if field.kind == "whole" else "a number"
    if field.at_least is not None and field.at_most is not None:
        return f"{what} from {_written(field.at_least)} to {_written(field.at_most)}"
    shown = {name.replace("_", " "): bound for name, bound in _bounds_of(field).items() if bound < LARGEST_BOUND_SHOWN}
    limits = " and ".join(f"{words} {_written(bound)}" for words, bound in shown.items())
    return f"{what}, {limits}" if limits.startswith("at") else f"{what} {limits}".strip()


def _written(bound: float) -> str:
    return f"{int(bound):,}" if float(bound).is_integer() else f"{bound:g}"


def quote(text: str) -> str:
    """Quote a wrong value, shortened."""
    return f'"{text}"' if len(text) <= LONGEST_VALUE else f'"{text[:LONGEST_VALUE]}…"'
