"""Say in a few words how one study differs from another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["changes"]


def changes(had: Mapping[str, Any], asked: Mapping[str, Any]) -> list[str]:
    """Return one phrase for each thing in which the study asked for is not the one that the folder has.

    Examples
    --------
    >>> changes({"runs": 100, "horizons": [10, 20]}, {"runs": 200, "horizons": [10, 30, 40]})
    ['runs: the folder has 100, asked for 200', 'horizons: the folder has 20, asked for 30, 40']
    """
    said = []
    for key in [*asked, *(key for key in had if key not in asked)]:
        before, now = had.get(key), asked.get(key)
        if before == now:
            continue
        if key == "code":
            if had.get("version") == asked.get("version"):  # another version has other code, of course
                said.append("made by other code than this version's")
        elif isinstance(before, list) and isinstance(now, list):
            said.append(f"{key}: {_lists(before, now)}")
        elif isinstance(before, dict) and isinstance(now, dict):
            said += [f"{key}, {phrase}" for phrase in changes(before, now)]
        else:
            said.append(f"{key}: the folder has {_shown(before)}, asked for {_shown(now)}")
    return said


def _lists(before: list[Any], now: list[Any]) -> str:
    """Tell two lists apart by what only one of them holds."""
    gone, new = [each for each in before if each not in now], [each for each in now if each not in before]
    if not gone and not new:
        return "the folder has them in another order"
    named = all(isinstance(each, dict) for each in gone + new)
    if named and [_shown(each) for each in gone] == [_shown(each) for each in new]:  # same names, other contents
        pairs = list(zip(gone, new, strict=True))
        keys = [key for key in _keys(gone + new) if any(one.get(key) != other.get(key) for one, other in pairs)]
        return f"the folder has {_listed(gone)} with other {', '.join(keys)}"
    return f"the folder has {_listed(gone)}, asked for {_listed(new)}"


def _keys(tables: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for table in tables for key in table))


def _listed(values: list[Any]) -> str:
    shown = ", ".join(_shown(value) for value in values[:4]) or "no other"
    return shown + (f" and {len(values) - 4} more" if len(values) > 4 else "")


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return str(value.get("name", "another"))
    return str(value)
