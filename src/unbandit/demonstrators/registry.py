"""Find rules by name, and read them as people write them in the shell."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points

import unbandit.demonstrators
from unbandit.demonstrators.base import Demonstrator, known_rules
from unbandit.errors import ParameterError

__all__ = ["parse_rule", "rules"]


def rules() -> dict[str, type[Demonstrator]]:
    """Return every rule by name: those of this package's files, of entry points, and those defined since.

    Examples
    --------
    >>> {"sae", "ucb"} <= set(rules())
    True
    """
    _import_all()
    return dict(sorted(known_rules.items()))


@cache
def _import_all() -> None:
    """Import each file of this folder and each entry point `unbandit.demonstrators`: that defines their rules."""
    for module in pkgutil.iter_modules(unbandit.demonstrators.__path__):
        importlib.import_module(f"unbandit.demonstrators.{module.name}")
    for entry in entry_points(group="unbandit.demonstrators"):
        entry.load()


def parse_rule(text: str) -> Demonstrator:
    """Read `name:key=value,...`.

    Examples
    --------
    >>> parse_rule("ucb:alpha=0.25,sigma=0.14").sigma
    0.14
    >>> parse_rule("ucbb")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: rule: expected one of ...; got "ucbb". Did you mean "ucb"?
    """
    name, _, rest = text.strip().partition(":")
    known = rules()
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), known, 1)
        meant = f' Did you mean "{near[0]}"?' if near else ""
        raise ParameterError(f'rule: expected one of {", ".join(known)}; got "{name}".{meant}')
    parameters: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise ParameterError(f'rule: expected name:key=value,key=value; got "{part}" in "{text}".')
        if key in parameters:
            raise ParameterError(f'rule: expected each parameter once; got "{key}" twice in "{text}".')
        parameters[key] = value
    return known[name.lower()](**parameters)
