"""What makes a report again: a line for the shell, or one of Python."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from unbandit.demonstrators import Demonstrator

__all__ = ["python_line", "shell_line", "typed"]


def shell_line(log: str, rule: Demonstrator, options: Mapping[str, Any]) -> str:
    """Write the command for the shell.

    Examples
    --------
    >>> from unbandit import UCB1
    >>> shell_line("my log.csv", UCB1(), {"anchor": {"B": 0.4}, "best_mean": None, "pool": True, "level": 0.9})
    "unbandit report 'my log.csv' --rule ucb1:exploration=2.0 --anchor B=0.4 --pool --level 0.9"
    """
    words = ["unbandit", "report", log, "--rule", str(rule)]
    for name, value in _given(options).items():
        words.append("--" + name.replace("_", "-"))
        if name == "anchor":
            words += [f"{arm}={mean}" for arm, mean in value.items()]
        elif value is not True:
            words.append(str(value))
    return shlex.join(words)


def typed(words: Sequence[str]) -> str:
    """Write a command as it was typed, whatever the program's own path.

    Examples
    --------
    >>> typed(["/usr/bin/unbandit", "report", "my log.csv"])
    "unbandit report 'my log.csv'"
    """
    return shlex.join(["unbandit", *words[1:]])


def python_line(rule: Demonstrator, options: Mapping[str, Any]) -> str:
    """Write the call in Python, for a log that was never a file.

    Examples
    --------
    >>> from unbandit import UCB1
    >>> python_line(UCB1(), {"sigma": 0.5, "seed": None})
    'unbandit.report(log, "ucb1:exploration=2.0", sigma=0.5).write("report.html")'
    """
    plain = (bool, int, float, str, dict)
    given = {name: value if isinstance(value, plain) else str(value) for name, value in _given(options).items()}
    written = "".join(f", {name}={value!r}" for name, value in given.items())
    return f'unbandit.report(log, "{rule}"{written}).write("report.html")'


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what is as usual."""
    usual: dict[str, Any] = {"scale": "known", "level": 0.95}
    return {
        name: value
        for name, value in options.items()
        if value is not None and value is not False and value != usual.get(name)
    }
