"""Rules some of whose numbers are not known: `FIT` in the place of a number, to be fitted from a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from unbandit.errors import NotIdentifiable, ParameterError, option


class Unknown(Enum):
    """What stands in the place of a number that is to be fitted."""

    FIT = "fit"

    def __repr__(self) -> str:
        return "FIT"


FIT: Any = Unknown.FIT
"""A number of a rule that nobody knows: `estimate` and `posterior` fit it from the log, as in `UCB(scale=FIT)`."""


WHOLE = ("initial", "batch")
"""Whole numbers of which a log leaves few possible: the one that explains it is taken, or none."""

AVERAGED = ("ties", "delay")
"""Settings of which all that are possible are weighed, and answers averaged over them."""


@dataclass(frozen=True)
class RuleFamily:
    """A rule with numbers that are to be fitted: `UCB(scale=FIT)`, or `ucb:scale=fit` as text.

    It cannot be played. Whatever needs all numbers refuses it.

    Attributes
    ----------
    kind
        The class of the rule.
    known
        The parameters that were given.
    free
        The names of the numbers that are to be fitted.

    Examples
    --------
    >>> from unbandit import FIT, MOSS
    >>> family = MOSS(scale=FIT)
    >>> str(family), str(family.at({"scale": 2.0}))
    ('moss:scale=fit', 'moss:scale=2.0')
    """

    kind: Any  # type[Demonstrator]
    known: Mapping[str, Any]
    free: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.kind.unfit:
            text = f"its numbers cannot be fitted: {self.kind.unfit}."
            remedy = f"Give them a value, or {option('scale', 'unknown')} for ratios."
            raise NotIdentifiable(text, owner=self.kind.name, remedy=remedy)
        if not self.free:
            text = "expected a rule with a number that can be fitted; it has none."
            raise ParameterError(text, owner=self.kind.name, remedy="Leave fit out.")
        for name in self.free:
            field = self.kind.model_fields.get(name)
            if field is None or name in (*WHOLE, *AVERAGED):
                continue
            if float not in (field.annotation, *getattr(field.annotation, "__args__", ())):
                why = f"only real numbers, {', '.join(WHOLE)}, {' and '.join(AVERAGED)} are fitted"
                raise ParameterError(f"expected a value; {why}.", owner=self.kind.name, parameter=name)
        assert self.example is not None  # refuses names and values as the rule does

    def at(self, values: Mapping[str, float | str]) -> Any:
        """Return the rule with these values of its free numbers; settings that have none are the usual ones."""
        usual = {name: self._usual(name) for name in self.free if name in (*WHOLE, *AVERAGED)}
        return self.kind(**self.known, **{**usual, **values})

    @property
    def example(self) -> Any:
        """Return a rule of the family: its numbers are the default ones, or 1."""
        return self.at({name: self._usual(name) for name in self.free})

    def limits(self, name: str) -> tuple[float | None, float | None]:
        """Return the ends between which a number must lie, None where there is none."""
        return limits_of(self.kind, name)

    def _usual(self, name: str) -> Any:
        """Return a value that a free number may have; a name that the rule does not have is refused elsewhere."""
        field = self.kind.model_fields.get(name)
        if name in (*WHOLE, *AVERAGED):
            return field.default if field is not None else 1
        return field.default if field is not None and isinstance(field.default, float) else 1.0

    @property
    def title(self) -> str:
        """Return what is fitted, in words."""
        return " and ".join(self.free)

    def __str__(self) -> str:
        written = [f"{name}={value}" for name, value in self.known.items()] + [f"{name}=fit" for name in self.free]
        return f"{self.kind.name}:{','.join(written)}"

    def __getattr__(self, name: str) -> Any:
        """Refuse what only a rule with all its numbers can do."""
        if name.startswith("_") or not hasattr(self.kind, name):
            raise AttributeError(name)
        raise refusal_of(self)


def limits_of(kind: Any, name: str) -> tuple[float | None, float | None]:
    """Return the ends between which a number of a rule must lie, None where there is none."""
    ends: dict[str, float] = {}
    for limit in kind.model_fields[name].metadata:
        ends |= {key: float(getattr(limit, key)) for key in ("gt", "ge", "lt", "le") if hasattr(limit, key)}
    return ends.get("gt", ends.get("ge")), ends.get("lt", ends.get("le"))


def refusal_of(family: RuleFamily, parameter: str | None = None) -> ParameterError:
    """Say that a rule whose numbers are to be fitted cannot be used here."""
    text = f"expected a rule whose numbers are all known; got {family}."
    remedy = f"Give {family.title} a value: `estimate` and `posterior` fit it to a log, and print the rule with it."
    return ParameterError(text, parameter=parameter, value=str(family), remedy=remedy)
