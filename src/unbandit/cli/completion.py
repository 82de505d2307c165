"""Completion in the shell: rules with their parameters, and the columns of the log at hand.

`unbandit --install-completion` installs it for the current shell, or for the one that is named. Bash splits words at
colons and equals signs, so what it passes is put together again, and it gets back only what follows the last of them.
"""

import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from inspect import signature
from typing import Any, cast

import typer

from unbandit.errors import ParameterError

VARIABLE = "_UNBANDIT_COMPLETE"
GLUE = (":", "=")
ROLES = ("arm", "round", "demonstration", "reward", "pulls")
SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
METHODS = ("bracket", "switching", "posterior", "counts", "naive", "bootstrap")


@contextmanager
def spoken_to_bash() -> Iterator[None]:
    """Put together what bash took apart (`--rule ucb : alpha` is one word), and return what follows the last mark."""
    if os.environ.get(VARIABLE) != "complete_bash" or "COMP_WORDS" not in os.environ:
        yield
        return
    words = joined_words(os.environ["COMP_WORDS"].split(), int(os.environ.get("COMP_CWORD", 0)))
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = " ".join(words), str(len(words) - 1)
    known = max(words[-1].rfind(mark) for mark in GLUE) + 1
    answer = io.StringIO()
    try:
        with redirect_stdout(answer):
            yield
    finally:
        print("\n".join(line[known:] for line in answer.getvalue().splitlines()))


def joined_words(given: list[str], cursor: int) -> list[str]:
    """Join words around colons and equals signs, up to the one with the cursor, which is empty after a space.

    >>> joined_words(["unbandit", "estimate", "--rule", "ucb", ":", "al"], 5)
    ['unbandit', 'estimate', '--rule', 'ucb:al']
    >>> joined_words(["unbandit", "estimate"], 2)
    ['unbandit', 'estimate', '']
    """
    words: list[str] = []
    is_glued = False
    for word in given[: cursor + 1]:
        if words and (is_glued or word in GLUE):
            words[-1] += word
        else:
            words.append(word)
        is_glued = word in GLUE
    return words if is_glued or cursor < len(given) else [*words, ""]


def shell_asked_for(ctx: typer.Context, args: list[str]) -> None:
    """Show or install completion for the shell that is named after the option; typer takes the current one."""
    asked, equals, shell = args[0].partition("=") if args else ("", "", "")
    if asked not in ("--show-completion", "--install-completion") or not (equals or len(args) > 1):
        return
    shell = shell if equals else args[1]
    if shell.startswith("-"):
        return
    if shell not in SHELLS:
        text = f'expected one of {", ".join(SHELLS)}; got "{shell}".'
        raise ParameterError(text, parameter=asked.strip("-").replace("-", "_"), value=shell)
    from typer.completion import install_callback, show_callback

    (show_callback if asked == "--show-completion" else install_callback)(cast(Any, ctx), cast(Any, None), shell)


def rules(incomplete: str) -> list[str]:
    """Complete `name:key=value,...`: names, other ones where none matches, then parameters, then values."""
    with suppress(Exception):  # completion never fails: it has nothing to say then
        from unbandit.contexts.rule import parse_rule
        from unbandit.demonstrators.base import linear_rules
        from unbandit.demonstrators.base import rules as all_rules
        from unbandit.demonstrators.rule import aliases_of

        name, colon, rest = incomplete.partition(":")
        if not colon:
            known = all_rules() | linear_rules()
            shown = [*known, "q-learning"]  # as people call learning-softmax
            return _matching(shown, incomplete) or _matching(aliases_of(known), incomplete)
        kind = type(parse_rule(name))
        fields = {key: kind.model_fields[key] for key in signature(kind).parameters}  # its own ones first
        before, _, last = rest.rpartition(",")
        start = f"{name}:{before}," if before else f"{name}:"
        key, equals, _ = last.partition("=")
        if equals:
            values = [str(fields[key].default).lower(), "fit"]
            return _matching([f"{start}{key}={value}" for value in values if value != "none"], incomplete)
        given = {part.partition("=")[0] for part in before.split(",")}
        shown = [f"{each}=" for each in fields if each not in given]
        shown += ["fit"] if getattr(kind, "fits", ()) and "fit" not in given else []  # whatever is not given
        return _matching([f"{start}{each}" for each in shown], incomplete)
    return []


def parameters() -> set[str]:
    """Return the names of all parameters of rules."""
    from unbandit.demonstrators.base import linear_rules
    from unbandit.demonstrators.base import rules as all_rules

    return {key for rule in (all_rules() | linear_rules()).values() for key in rule.model_fields}


def candidates(incomplete: str) -> list[str]:
    """Complete the last rule of a list."""
    before, comma, last = incomplete.rpartition(",")
    if ":" in last or "=" in last:
        return []
    return [f"{before}{comma}{each}" for each in rules(last)]


def methods(incomplete: str) -> list[str]:
    """Complete a method."""
    return _matching(METHODS, incomplete)


def instances(incomplete: str) -> list[str]:
    """Complete a data set's name."""
    with suppress(Exception):
        from unbandit.datasets.registry import names

        return _matching(names(), incomplete)
    return []


def columns(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete `role=column,...` with the columns of the log that the line names."""
    before, comma, last = incomplete.rpartition(",")
    role, equals, _ = last.partition("=")
    if not equals:
        given = {part.partition("=")[0] for part in before.split(",")}
        return _matching([f"{before}{comma}{each}=" for each in ROLES if each not in given], incomplete)
    return _matching([f"{before}{comma}{role}={name}" for name in _columns_of(ctx)], incomplete)


def features(ctx: typer.Context, incomplete: str) -> list[str]:
    """Complete a list of columns of the log that the line names."""
    before, comma, _ = incomplete.rpartition(",")
    given = before.split(",")
    return _matching([f"{before}{comma}{name}" for name in _columns_of(ctx) if name not in given], incomplete)


def _columns_of(ctx: typer.Context) -> list[str]:
    """Return the columns of the log at hand; none if there is no log yet, or it cannot be read."""
    with suppress(Exception):
        from unbandit.log.formats import sources_of
        from unbandit.log.sources import Layout

        path = ctx.params.get("log") or ctx.params.get("logs") or ctx.args[:1]
        if path and path != "-":
            return list(sources_of(path, Layout(ctx.params.get("sheet"), True), unpack=True)[0].names)
    return []


def _matching(words: Iterable[str], incomplete: str) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
