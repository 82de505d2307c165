"""Find rules by name, and read them as people write them in the shell."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import warnings
from functools import cache
from importlib.metadata import EntryPoint, entry_points

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
        _load(entry)


def _load(entry: EntryPoint) -> None:
    """Load another package's rules; if that fails, or they take names that are given, say so and do without them."""
    package = entry.dist.name if entry.dist is not None else entry.value
    before = dict(known_rules)
    try:
        entry.load()
    except Exception as error:  # whatever it is, it is that package's, and must not stop this one
        known_rules.clear()
        known_rules.update(before)
        warnings.warn(
            f'The rules of the package "{package}" ({entry.value}) are left out: loading them failed with '
            f"{type(error).__name__}: {error}. Update or remove that package.",
            stacklevel=4,
        )
        return
    for name in [name for name, rule in before.items() if known_rules[name] is not rule]:
        known_rules[name] = before[name]
        warnings.warn(
            f'The rule "{name}" of the package "{package}" is left out: there is one of that name already. '
            "Ask its authors to name it otherwise.",
            stacklevel=4,
        )


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
        raise ParameterError(f'expected one of {", ".join(known)}; got "{name}".{meant}', parameter="rule")
    parameters: dict[str, str] = {}
    for part in filter(None, (piece.strip() for piece in rest.split(","))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise ParameterError(f'expected name:key=value,key=value; got "{part}" in "{text}".', parameter="rule")
        if key in parameters:
            raise ParameterError(f'expected each parameter once; got "{key}" twice in "{text}".', parameter="rule")
        parameters[key] = value
    return known[name.lower()](**parameters)
