"""Run what a page shows as a reader would, block by block in one folder, and compare what it prints with what it shows.

| block | what is done with it |
|---|---|
| `python` | run, in one namespace a page |
| `sh`, or none if every line is an `unbandit` command | the commands are run |
| `text` | what was printed since the last such block |
| `toml`, `csv` | written to a file, if the line before names one: "`study.toml`:" |
| `console` | not run: it takes long, or it does not end |
"""

from __future__ import annotations

import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import unbandit
from unbandit.demonstrators.base import known_rules

ROOT = Path(__file__).parents[1]

PARTS = re.compile(r"(?P<before>[^\n]*)\n*^```(?P<kind>[^\n]*)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"`([\w.-]+)`:$")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what stands in it, and the line before it."""

    kind: str
    text: str
    before: str
    line: int


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    if "```" not in text:  # long tables take the pattern long
        return []
    return [
        Block(_kind(part), part["text"], part["before"].strip(), text[: part.start("kind")].count("\n") + 1)
        for part in PARTS.finditer(text)
    ]


def _kind(part: re.Match[str]) -> str:
    """Return the language that a block says it is in, or that its lines show."""
    typed = all(line.startswith("unbandit ") for line in part["text"].splitlines())
    return part["kind"].strip() or ("sh" if typed else "")


def commands(block: Block) -> Iterator[list[str]]:
    """Give the commands of a block, a line each; a backslash goes on in the next line."""
    for line in block.text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def numbers_and_words(line: str) -> tuple[list[float], list[str]]:
    """Part a line into its numbers, in order, and its words, sorted: of two that are nearly even, either may lead."""
    parts = [part.strip(",;:.()[]%\"'") for part in line.replace("─", " ").replace("−", "-").split()]
    numbers, words = [], []
    for part in filter(None, parts):
        try:
            numbers.append(float(part.replace(",", "")))
        except ValueError:
            words.append(part)
    return numbers, sorted(words)


def alike(shown: str, printed: str, near: float = 0.03, share: float = 0.05) -> bool:
    """Tell whether a line that is shown is one that was printed; `...` at its end stands for anything.

    Numbers may be off by `near` and `share` of their size: draws change a little when a filter does. A line about a
    Monte-Carlo error, a p-value or a surprise may be further off, since these are the tails of draws.
    """
    if shown.endswith(" ..."):
        shown = shown.removesuffix(" ...")
        printed = " ".join(printed.split()[: len(shown.split())])
    numbers, words = numbers_and_words(shown)
    others, other_words = numbers_and_words(printed)
    if words != other_words or len(numbers) != len(others):
        return False
    if "±" in shown or "p = " in shown or "surprise" in shown:
        near, share = max(near, TAILS.near), max(share, TAILS.share)
    return all(abs(one - other) <= near + share * abs(one) for one, other in zip(numbers, others, strict=True))


def lines_missing(shown: str, printed: list[str], near: float, share: float) -> tuple[list[str], int]:
    """Return the lines that are shown and were not printed, and how many there are in all; rules and `...` are none."""
    lines = [line for line in shown.splitlines() if line.strip(" ─") not in ("", "...")]
    return [line for line in lines if not any(alike(line, other, near, share) for other in printed)], len(lines)


@dataclass(frozen=True)
class Trust:
    """How close what is printed must be to what is shown."""

    near: float = 0.002
    share: float = 0.002
    lines: float = 1.0


EXACT = Trust()
DRAWN = Trust(0.03, 0.05, 0.85)
"""Monte Carlo may turn a borderline verdict, and with it a line or two; most lines must stand there."""

TAILS = Trust(0.25, 0.25)
"""The same of numbers that are themselves errors of draws, or come from few of them."""

WITHOUT_DRAWS = tuple(f", method {method}," for method in ("bracket", "switching", "counts", "naive"))
"""What a table says whose numbers are exact, also on a page of which others are drawn."""


def run_page(
    page: Path, command: Callable[..., Any], capfd: Any, trust: Trust = EXACT, names: dict[str, object] | None = None
) -> dict[str, object]:
    """Run a page in the present folder, and return the names that its Python blocks leave behind.

    `command` runs `unbandit` with its arguments and gives exit code, output and errors.
    """
    names = {"__name__": __name__} | (names or {})  # a module that can be imported: compiled rules are kept by its name
    printed: list[str] = []
    compared, before = False, dict(known_rules)
    try:
        for block in blocks(page):
            place = f"{page.name}, line {block.line}"
            if block.kind in ("python", "sh") and compared:
                printed, compared = [], False
            if block.kind == "python":
                capfd.readouterr()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", unbandit.AssumptionWarning)  # the pages say which comes
                    exec(compile(block.text, place, "exec"), names)
                printed += capfd.readouterr().out.splitlines()
            elif block.kind == "sh":
                for words in commands(block):
                    printed += _typed(words, command, place)
            elif block.kind in ("toml", "csv") and (named := NAMED.search(block.before)):
                Path(named[1]).write_text(block.text, encoding="utf-8")
            elif block.kind == "text":
                exact = any(method in block.text for method in WITHOUT_DRAWS)
                own = EXACT if exact else trust
                missing, all_lines = lines_missing(block.text, printed, own.near, own.share)
                told = f"{place}:\n" + "\n".join(missing) + "\n--- is not in ---\n" + "\n".join(printed)
                assert len(missing) <= (1 - own.lines) * all_lines, told
                assert not any(", method " in line for line in missing), told  # no draw changes the method
                compared = True
    finally:
        known_rules.clear()
        known_rules.update(before)
    return names


def _typed(words: list[str], command: Callable[..., Any], place: str) -> list[str]:
    """Run one command; a reason is an answer too (exit code 4), a mistake is not."""
    program, *arguments = words
    assert program == "unbandit", f"{place}: {program}"
    done = command(*arguments)
    assert done.code in (0, 4), f"{place}: {done.err}"
    refused = "warning: The log does not look like" if "--strict" in words else "unbandit: "
    assert (done.code == 4) == done.err.startswith(refused), f"{place}: {done.err}"
    return (done.out + done.err).splitlines()
