"""What every rule is, whatever it chooses among: a name, and frozen parameters that are validated.

`Demonstrator` (rules for arms) and `LinearRule` (rules for arms with features) are built on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import Parameter, Signature, get_annotations
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar, get_args, get_origin

import numpy as np
from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from unbandit import checks
from unbandit.demonstrators.family import FIT, RuleFamily
from unbandit.errors import Notice, ParameterError, option
from unbandit.formatting import listed
from unbandit.tables import html_table

Examples = tuple[Mapping[str, Any], ...]  # parameters worth trying, by name

AnyRule = TypeVar("AnyRule", bound="Rule")


PYDANTIC = frozenset({"model_config", "model_fields", "model_computed_fields", "model_post_init"})
"""What pydantic writes into every class."""


class OtherName(NamedTuple):
    """What a parameter is called elsewhere: the name here, and the power of the value elsewhere that it is here."""

    name: str
    power: int = 1
    where: str = ""  # the formula in which it stands elsewhere, if the name alone does not say it

    def said(self, called: str, value: object) -> str:
        """Say which parameter it is, and what a number becomes."""
        if self.power == 1:
            return f'"{called}" is called "{self.name}" here.'
        formula = f"1 / {called}" if self.power == -1 else f"{called}^{self.power}"
        text = f"{f'Where {self.where},' if self.where else 'Here'} {self.name} is {formula}"
        number = _number_in(value) if isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int | float) or not 1e-100 < number < 1e100:
            return f"{text}."
        return f"{text}: for {called}={number:g} write {self.name}={number**self.power:.6g}."


RATE = {"alpha": OtherName("rate"), "lr": OtherName("rate"), "learning_rate": OtherName("rate")}
TEMPERATURE = {"tau": OtherName("temperature"), "temp": OtherName("temperature")} | {
    name: OtherName("temperature", -1) for name in ("beta", "inverse_temperature")
}
EPSILON = {"eps": OtherName("epsilon"), "e": OtherName("epsilon")}
EXPLORATION = {"c": OtherName("exploration", 2, "the width is c sqrt(ln t / n)")}
"""What parameters that several rules have are called elsewhere."""


class Rule(BaseModel):
    """A rule with a name and frozen, validated parameters."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: ClassVar[str]
    """The rule's name in the shell, in tables and in files."""

    title: ClassVar[str] = ""
    """The rule's name in plain words; its `name` where there is none."""

    aliases: ClassVar[tuple[str, ...]] = ()
    """Other names that people know the rule by: read like its own, never written."""

    examples: ClassVar[Examples] = ({},)
    """Parameters worth trying: the contract tests run on each of them."""

    unwritten: ClassVar[frozenset[str]] = frozenset({"initial", "batch", "delay"})
    """Numbers that are omitted from the written rule where they have their default."""

    fits: ClassVar[tuple[str, ...]] = ()
    """Numbers that are usually unknown, and that a log shows: `name:fit` fits those that are not given."""

    no_standard: ClassVar[tuple[str, ...]] = ()
    """Numbers without a usual value: where one is not given, the default is a guess, and an answer warns of it."""

    varied: ClassVar[tuple[str, ...]] = ()
    """Further numbers that may be off, for `sensitivity`."""

    called: ClassVar[Mapping[str, OtherName]] = {}
    """Names that parameters have elsewhere: refused, with the name here and, where it differs, the value."""

    unfit: ClassVar[str] = ""
    """Why no number of the rule can be fitted from a log; nothing where one can."""

    def __new__(cls, *values: Any, **parameters: Any) -> Any:
        """Return the rule, or the family of all such rules where a number is `FIT`."""
        free = tuple(name for name, value in parameters.items() if value is FIT)
        if not free:
            return super().__new__(cls)
        known = {name: value for name, value in parameters.items() if name not in free}
        return RuleFamily(cls, known, free)

    def __init__(self, *values: Any, **parameters: Any) -> None:
        if values:
            text = f"expected parameters by name; got {values[0]!r} without one."
            remedy = f"Write name={values[0]!r}, the names being {', '.join(type(self)._own_first())}."
            raise ParameterError(text, owner=type(self).name, value=values[0], remedy=remedy)
        try:
            super().__init__(**{name: _strict(type(self), name, value) for name, value in parameters.items()})
        except ValidationError as error:
            raise _refusal(type(self), error) from None

    @model_validator(mode="wrap")
    @classmethod
    def _given_only(cls, given: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Keep apart what was given and what a rule filled in, which nobody has said."""
        made = validate(given)
        if isinstance(given, dict):
            filled = {name for name in made.model_fields_set if given.get(name) is None}
            made.__pydantic_fields_set__.difference_update(filled)
        return made

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Put a rule's own parameters before those that it shares with others, in its signature."""
        fields = cls.model_fields
        cls.__signature__ = Signature(
            [
                Parameter(
                    name, Parameter.KEYWORD_ONLY, default=fields[name].default, annotation=fields[name].annotation
                )
                for name in cls._own_first()
            ]
        )

    @classmethod
    def _own_first(cls) -> list[str]:
        """Return the names of all parameters, those that the rule itself has first."""
        declared = [name for kind in cls.__mro__ for name in get_annotations(kind)]
        return [name for name in dict.fromkeys(declared) if name in cls.model_fields]

    def __repr_args__(self) -> Any:
        """Yield the rule's numbers, its own first, and whatever else is not the default, for the repr."""
        for name in self._own_first():
            value = getattr(self, name)
            is_shown = isinstance(value, int | float) and name not in self.unwritten
            if is_shown or value != type(self).model_fields[name].default:
                yield name, value

    def __dir__(self) -> list[str]:
        """Leave out what pydantic adds, so that completion shows what a rule has."""
        helpers = set(dir(BaseModel)) - set(dir(object))
        mine = {name for kind in type(self).__mro__ if issubclass(kind, Rule) for name in kind.__dict__}
        return sorted(name for name in super().__dir__() if name not in helpers or name in mine - PYDANTIC)

    def _repr_html_(self) -> str:
        """Show the parameters in notebooks, each with its meaning."""
        fields = type(self).model_fields
        rows = [
            (name, str(getattr(self, name)), str(fields[name].default), fields[name].description or "")
            for name in self._own_first()
        ]
        caption = f"{self.title or self.name}: {self.summary()}"
        return html_table(("parameter", "value", "default", "meaning"), rows, caption, (), (True,) * 4)

    @classmethod
    def summary(cls) -> str:
        """Return the rule in one line: the first line of its docstring, or its name where there is none."""
        lines = (cls.__doc__ or "").strip().splitlines()
        return lines[0] if lines else cls.name

    def in_force(self, name: str) -> Any:
        """Return the value of a parameter that the rule plays with, also where it was left open."""
        return getattr(self, name)

    @property
    def guessed(self) -> dict[str, Any]:
        """Return the numbers without a usual value that were not given, and so have their defaults.

        >>> from unbandit import LearningSoftmax
        >>> LearningSoftmax(rate=0.3).guessed
        {'temperature': 0.2}
        """
        taken = {name: self.in_force(name) for name in self.no_standard if name not in self.model_fields_set}
        return {name: value for name, value in taken.items() if value is not None}

    def __str__(self) -> str:
        """Write the rule as the shell takes it: its numbers, then whatever else is not the default."""
        values = {key: value for key, value in self.model_dump().items() if value is not None}
        defaults = {key: field.default for key, field in type(self).model_fields.items()}
        numbers = {
            key: value for key, value in values.items() if isinstance(value, int | float) and key not in self.unwritten
        }
        others = {key: value for key, value in values.items() if key not in numbers and value != defaults[key]}
        pairs = (numbers | others).items()
        written = ",".join(f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in pairs)
        return f"{self.name}:{written}" if written else self.name


def guess_notice(rule: Rule, guessed: Mapping[str, Any], *, can_fit: bool) -> list[Notice]:
    """Warn of an answer that rests on default values which nobody gave; the log can perhaps show better ones."""
    if not guessed:
        return []
    names, numbers = " or ".join(guessed), " and ".join(f"{value:g}" for value in guessed.values())
    was, them, values = ("was", "it", "its value") if len(guessed) == 1 else ("were", "them", "their values")
    default = "the default" if len(guessed) == 1 else "the defaults"
    given = [f"{name}={getattr(rule, name)}" for name in type(rule).model_fields if name in rule.model_fields_set]
    asked = {name: f"{rule.name}:{','.join([*given, *more])}" for name, more in (
        ("fit", ["fit"]), ("value", [f"{name}=VALUE" for name in guessed])
    )}  # fmt: skip
    if can_fit and set(guessed) <= set(rule.fits):
        remedy = f"Fit {them} from the log with {option('rule', asked['fit'])}, or give {values}."
    else:
        remedy = f"Give {values}: {option('rule', asked['value'])}."
    text = f"No {names} was given, so {default} {numbers} {was} used. The answer depends on {them}. {remedy}"
    return [Notice("default-taken", text)]


def _takes_numbers(rule: type[BaseModel], name: str) -> bool:
    """Return whether a parameter is a number, and nothing else but perhaps None."""
    field = rule.model_fields.get(name)
    kinds = () if field is None else get_args(field.annotation) or (field.annotation,)
    return bool(kinds) and set(kinds) <= {int, float, type(None)}


def _strict(rule: type[Rule], name: str, value: Any) -> Any:
    """Take only numbers for a number: pydantic takes text, bytes and booleans too."""
    if name in rule.model_fields and get_origin(rule.model_fields[name].annotation) is Literal:
        known = get_args(rule.model_fields[name].annotation)
        kinds = tuple(map(type, known))  # checked before validators compare the value with something
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            expected = f"expected one of {', '.join(map(str, known))}; got {checks.brief(value)}."
            raise ParameterError(expected, owner=rule.name, parameter=name, value=value)
    if name in rule.model_fields and rule.model_fields[name].annotation is bool and not isinstance(value, bool):
        text = f"expected true or false; got {checks.brief(value)}."
        raise ParameterError(text, owner=rule.name, parameter=name, value=value)
    if value is None or not _takes_numbers(rule, name):
        return value
    number = checks.real(value)
    if number is None:
        meaning = rule.model_fields[name].description
        remedy = f"It is the {meaning}." if meaning else "Give a number."
        if isinstance(value, str) and isinstance(_number_in(value), int | float):
            remedy = "Write it as a number, without quotes."
        got = checks.brief(value)
        raise ParameterError(
            f"expected a number; got {got}.", owner=rule.name, parameter=name, value=value, remedy=remedy
        )
    return value if isinstance(value, int | float | np.integer) else number


def _number_in(text: str) -> int | float | str:
    """Read a number; a text that is none is returned as it is."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


def _value_in(rule: type[Rule], key: str, text: str) -> Any:
    """Read the value of a parameter: `fit`, a number, a truth value or a word."""
    if text == FIT.value and key in rule.model_fields:
        return FIT
    if key in rule.model_fields and rule.model_fields[key].annotation is bool:
        return {"true": True, "false": False}.get(text.lower(), text)
    field = rule.model_fields.get(key)
    among_numbers = field is not None and set(map(type, get_args(field.annotation))) == {int}
    return _number_in(text) if among_numbers or _takes_numbers(rule, key) else text


def rule_in(text: str, find: Callable[[str, str], type[Rule]], parameter: str) -> Any:
    """Read `name:key=value,...`: the rule that `find` has of this name, or a family where numbers are to be fitted."""
    name, _, rest = text.strip().partition(":")
    if "," in name and "=" in text:
        remedy = f'Write parameters after a colon, as in "{text.strip().replace(",", ":", 1)}".'
        raise ParameterError(f'expected name:key=value; got "{text}".', parameter=parameter, value=text, remedy=remedy)
    rule = find(name, parameter)
    parameters: dict[str, Any] = {}
    pieces = [piece.strip() for piece in rest.split(",")]
    for part in filter(None, pieces):
        if part == FIT.value:
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise ParameterError(f'expected name:key=value,key=value; got "{part}" in "{text}".', parameter=parameter)
        if key in parameters:
            raise ParameterError(f'expected each parameter once; got "{key}" twice in "{text}".', parameter=parameter)
        parameters[key] = _value_in(rule, key, value)
    if FIT.value not in pieces:
        return rule(**parameters)
    free = tuple(name for name in rule.fits if name not in parameters)
    known = {name: value for name, value in parameters.items() if value is not FIT}
    return RuleFamily(rule, known, (*(name for name in parameters if name not in known), *free))


def by_any_name(name: str, rules: Mapping[str, type[AnyRule]]) -> type[AnyRule] | None:
    """Return a rule by its name or an alias, whatever its capitals, hyphens, underscores and blanks."""
    named = {**aliases_of(rules), **rules}
    spelt = {spelling(each): rule for each, rule in named.items()}
    return named.get(name.lower()) or spelt.get(spelling(name))


def spelling(name: str) -> str:
    """Return what is left of a rule's name without capitals, hyphens, underscores and blanks.

    >>> spelling("UCB1-Tuned") == spelling("ucb1_tuned ") == "ucb1tuned"
    True
    """
    return "".join(each for each in name.lower() if each not in "-_" and not each.isspace())


def aliases_of(rules: Mapping[str, type[AnyRule]]) -> dict[str, type[AnyRule]]:
    """Return every other name of some rules, with its rule; what is a rule's own name is no other one's alias."""
    named = {alias: rule for rule in rules.values() for alias in rule.__dict__.get("aliases", ())}
    return {alias: rule for alias, rule in named.items() if alias not in rules}


def _refusal(rule: type[Rule], error: ValidationError) -> ParameterError:
    """Say in one sentence what is wrong with a rule's parameters."""
    first = error.errors()[0]
    field = str(first["loc"][0]) if first["loc"] else None
    if first["type"] == "extra_forbidden":
        unknown = {str(each["loc"][0]): each["input"] for each in error.errors() if each["type"] == "extra_forbidden"}
        said = [rule.called[name].said(name, value) for name, value in unknown.items() if name in rule.called]
        text = f"expected parameters among {', '.join(rule._own_first())}; got {listed(list(unknown))}."
        remedy = " ".join(said) or checks.did_you_mean(field, rule.model_fields)
        return ParameterError(text, owner=rule.name, value=field, remedy=remedy)
    message = first["msg"].removeprefix("Value error, ")
    if field is None:
        return ParameterError(message, owner=rule.name)
    message = "expected a number" if "parsing" in first["type"] else message.replace("Input should be", "expected")
    meaning = rule.model_fields[field].description if field in rule.model_fields else None
    text = f"{message}; got {checks.brief(first['input'])}."
    remedy = f"It is the {meaning}." if meaning else None
    return ParameterError(text, owner=rule.name, parameter=field, value=first["input"], remedy=remedy)
