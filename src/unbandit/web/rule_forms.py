"""A form for every rule, made from the rule's own parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule, parse_rule, rules
from unbandit.errors import ParameterError
from unbandit.web.fields import Field, FieldErrors, field_of, identifier, quoted, read_fields

__all__ = ["UNKNOWN", "RuleForm", "RuleGroup", "read_rule", "rule_css", "rule_forms", "rule_groups"]

UNKNOWN = "unknown"
"""What the form says where nobody knows the rule."""

RARELY = frozenset({"ties"})
"""Parameters that are rarely changed, beside those that a rule leaves unwritten."""


@dataclass(frozen=True)
class RuleForm:
    """Hold a rule's form: its name and line, the fields that matter, and those that are rarely changed."""

    name: str
    summary: str
    group: str
    fields: tuple[Field, ...]
    rarely: tuple[Field, ...]

    @property
    def id(self) -> str:
        """Return the rule's name as part of an identifier."""
        return identifier(self.name)


@dataclass(frozen=True)
class RuleGroup:
    """Hold rules of one kind, with what they have in common."""

    title: str
    about: str
    rules: tuple[RuleForm, ...]


GROUPS = {
    "index": ("Rules that score", "Every arm has a score that grows with its results; the largest score is pulled."),
    "elimination": ("Rules that eliminate", "All arms take turns, and those that fall behind are dropped."),
    "randomised": ("Rules that draw lots", "Every arm has a chance, and better ones have a larger one. Takes longer."),
    "other": ("Other rules", "They come from other packages."),
    "silent": (
        "Rules that give no values away",
        "Their choices cannot tell what an arm was worth, and you will be told why.",
    ),
}


def rule_forms() -> tuple[RuleForm, ...]:
    """Return the form of every rule, those of other packages too.

    Examples
    --------
    >>> [field.name for field in next(form for form in rule_forms() if form.name == "ucb").fields]
    ['ucb.alpha', 'ucb.scale', 'ucb.sigma']
    """
    return tuple(_form(name, rule) for name, rule in rules().items() if _can_be_typed(name))


def rule_groups() -> tuple[RuleGroup, ...]:
    """Return the forms by the kind of their rules, kinds without a rule left out."""
    forms = rule_forms()
    found = []
    for key, (title, about) in GROUPS.items():
        members = tuple(form for form in forms if form.group == key)
        if members:
            found.append(RuleGroup(title, about, members))
    return tuple(found)


def _can_be_typed(name: str) -> bool:
    """Tell whether a rule's name can be written and found again, as in the shell."""
    return re.fullmatch(r"[^\s:,=]+", name) is not None and name == name.lower() and name != UNKNOWN


def _form(name: str, rule: type[Demonstrator]) -> RuleForm:
    made = {key: field_of(f"{name}.{key}", key, info) for key, info in rule.model_fields.items()}
    rare = RARELY | rule.unwritten
    usual = tuple(field for key, field in made.items() if field is not None and key not in rare)
    rarely = tuple(field for key, field in made.items() if field is not None and key in rare)
    return RuleForm(name, rule.summary(), _group(rule), usual, rarely)


def _group(rule: type[Demonstrator]) -> str:
    if rule.reveals != "values":
        return "silent"
    kinds = (("index", IndexRule), ("elimination", EliminationRule), ("randomised", RandomisedRule))
    return next((key for key, kind in kinds if issubclass(rule, kind)), "other")


def read_rule(form: Mapping[str, str]) -> str | None:
    """Return the chosen rule as the shell takes it; None where it is not known.

    Examples
    --------
    >>> read_rule({"rule": "ucb", "ucb.alpha": "0.3", "ucb.ties": "lowest", "sae.alpha": "not looked at"})
    'ucb:alpha=0.3'
    >>> read_rule({"rule": "unknown"}) is None
    True
    """
    name = form.get("rule", "").strip()
    if name == UNKNOWN:
        return None
    if not name:
        raise FieldErrors({"rule": "Expected one of the rules; got none. Choose the rule that made the choices."})
    chosen = next((each for each in rule_forms() if each.name == name), None)
    if chosen is None:
        raise FieldErrors({"rule": f"Expected one of the rules below; got {quoted(name)}."})
    given, errors = read_fields(chosen.fields + chosen.rarely, form)
    if errors:
        raise FieldErrors(errors)
    return _written(rules()[name], {key.removeprefix(f"{name}."): value for key, value in given.items()})


def _written(rule: type[Demonstrator], given: Mapping[str, Any]) -> str:
    """Write what was given as the shell takes it: numbers, and whatever else is not as usual."""
    try:
        rule(**given)
    except ParameterError as error:
        raise FieldErrors(_placed(rule, str(error))) from None
    usual = {key: info.default for key, info in rule.model_fields.items()}
    parts = []
    for key, value in given.items():
        number = isinstance(value, int | float) and not isinstance(value, bool) and key not in rule.unwritten
        if number or str(value) != str(usual[key]):
            parts.append(f"{key}={value}")
    text = f"{rule.name}:{','.join(parts)}" if parts else rule.name
    try:
        parse_rule(text)
    except ParameterError as error:
        raise FieldErrors(_placed(rule, str(error))) from None
    return text


def _placed(rule: type[Demonstrator], message: str) -> dict[str, str]:
    """Find the field that a rule's complaint is about; otherwise it is about the rule."""
    said = message.removeprefix(f"{rule.name}: ")
    parameter, colon, rest = said.partition(": ")
    if colon and parameter in rule.model_fields:
        return {f"{rule.name}.{parameter}": rest[:1].upper() + rest[1:]}
    return {rule.name: said[:1].upper() + said[1:]}


def rule_css() -> str:
    """Return the lines that show the chosen rule's fields alone, where a browser can do that.

    Examples
    --------
    >>> "form:not(:has(#rule-ucb:checked)) #fields-ucb" in rule_css()
    True
    """
    hidden = [f"  form:not(:has(#rule-{form.id}:checked)) #fields-{form.id}" for form in rule_forms()]
    return "@supports selector(:has(*)) {\n" + ",\n".join(hidden) + " { display: none; }\n}\n"
