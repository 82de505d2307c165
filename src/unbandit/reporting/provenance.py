"""Where a report comes from: the log's checksum, the command that reproduces the report, and how to cite it."""

from __future__ import annotations

import hashlib
import os
import shlex
import stat
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from unbandit import checks
from unbandit._version import __version__
from unbandit.demonstrators import Demonstrator
from unbandit.demonstrators.family import RuleFamily
from unbandit.demonstrators.rule import Rule
from unbandit.errors import LogError
from unbandit.formatting import shown
from unbandit.log.partial import read_bytes, read_or_scan
from unbandit.log.sources import Blank, Duplicates, files_of

STANDARD_INPUT = "standard input"

TABLES = {"starting_pulls": "counts.csv", "availability": "arms.csv"}  # files that commands name where there was none

BLOCK_SIZE = 1024**2  # bytes read at a time: a file is never held in memory for its checksum


@dataclass(frozen=True)
class LogSource:
    """Origin of a log.

    Attributes
    ----------
    name
        As people know it: a path, or "standard input". It is only shown.
    checksum
        SHA-256 of the bytes, in hexadecimal; None for a log made in memory.
    size
        Number of bytes.
    """

    name: str
    checksum: str | None = None
    size: int | None = None

    @classmethod
    def of_file(cls, path: str | os.PathLike[str]) -> LogSource:
        """Read a file, or all files of a folder, block by block, for checksum and size."""
        digest, size = hashlib.sha256(), 0
        try:
            for part in files_of(path):  # of a folder: all files in it, one after the other
                with part.path.open("rb") as file:
                    while block := file.read(BLOCK_SIZE):
                        digest.update(block)
                        size += len(block)
        except OSError as error:
            refusal = f"expected a readable file; got an error of the system: {error.strerror or error}."
            raise LogError(refusal, path=os.fspath(path), remedy="Check the path.") from error
        return cls(os.fspath(path), digest.hexdigest(), size)

    @classmethod
    def of_bytes(cls, name: str, data: bytes) -> LogSource:
        """Take bytes that are already in memory."""
        return cls(name, hashlib.sha256(data).hexdigest(), len(data))


def opened(
    log: Any, source: LogSource | None, progress: Callable[[str, float], None] | None, **texts: str | None
) -> tuple[Any, LogSource | None, Callable[[str, float], None]]:
    """Check what all reports are told, and read the log where it is a path."""
    checks.function("progress", progress)
    for parameter, text in texts.items():
        checks.text(parameter, text)
    say = progress or (lambda step, part: None)
    say("Reading the log", 0.0)
    if isinstance(log, str | os.PathLike):
        log, file_source = read_log(log)
        source = source or file_source
    return log, source, say


def heading_of(
    usual: str, source: LogSource | None, name: str | None, title: str | None, author: str | None, date: str | None
) -> dict[str, str]:
    """Return title and byline of a report."""
    called = name or (Path(source.name).name if source else None)
    composed = usual + ("" if called is None else f": {shown(called)}")
    return {"title": title or composed, "byline": ", ".join(filter(None, (author, date)))}


def without_folders(words: Sequence[str]) -> str:
    """Write a command with the names of files alone: where they lie on one computer says nothing to readers."""
    return shlex.join(map(_without_folder, words))


def _without_folder(word: str) -> str:
    """Return the name of a file; other words as they are, also those with a slash in them."""
    if word.startswith("--") and "=" in word:
        name, _, value = word.partition("=")
        return f"{name}={_without_folder(value)}"
    path = Path(word)
    is_file = path.is_absolute() or path.exists() or path.suffix[1:].isalpha()
    return path.name if os.sep in word and path.name and is_file else word


def read_log(
    path: str | os.PathLike[str], *, columns: Mapping[str, str] | None = None, arms: Sequence[object] | None = None,
    duplicates: Duplicates = None, sheet: str | None = None, header: bool = True, blank: Blank = None,
) -> tuple[Any, LogSource]:  # fmt: skip
    """Read a log together with the checksum of the bytes that were read; "-" is standard input.

    A log that begins in mid-run or misses rounds is a record of part of a run, as `read_or_scan` returns it.

    A file is read for its checksum in small blocks, and refused if it changed between that and its reading. What can
    be read only once, such as a pipe, is held in memory.
    """
    name, file = os.fspath(path), Path(path)
    if name == "-" or _is_stream(file):
        called = STANDARD_INPUT if name == "-" else name
        data = sys.stdin.buffer.read() if name == "-" else file.read_bytes()
        log: Any = read_bytes(
            data, name=called, columns=columns, arms=arms, duplicates=duplicates, sheet=sheet, header=header,
            blank=blank,
        )  # fmt: skip
        return log, LogSource.of_bytes(called, data)
    before = _state(file)
    log = read_or_scan(
        path, columns=columns, arms=arms, duplicates=duplicates, sheet=sheet, header=header, scan=False, blank=blank
    )
    source = LogSource.of_file(file)
    if _state(file) != before:
        refusal = "the file changed while it was being read."
        raise LogError(refusal, path=name, remedy="Try again once it has been written.")
    return log, source


def _is_stream(file: Path) -> bool:
    """Return whether a file is one that can be read only once."""
    try:
        mode = file.stat().st_mode
    except (OSError, ValueError):  # reading it will say why
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _state(file: Path) -> tuple[int, int, int] | None:
    """Return what changes with a file's contents; None where there is no file."""
    try:
        status = file.stat()
    except (OSError, ValueError):
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def shell_line(log: str, rule: Rule | RuleFamily, options: Mapping[str, Any]) -> str:
    """Write the shell command that reproduces a report of a rule."""
    return command_line(log, ["--rule", str(rule)], options)


def command_line(log: str, first: Sequence[str], options: Mapping[str, Any]) -> str:
    """Write the shell command that reproduces a report, with some words before its options."""
    name = Path(log).name or log
    words = ["unbandit", "report", f"./{name}" if name.startswith("-") and name != "-" else name, *first]
    for name, value in _given(options).items():
        flag = "--" + name.replace("_", "-")
        if name == "check":
            words += [] if value else ["--no-check"]
        elif name in TABLES and not isinstance(value, str | os.PathLike):
            words += [flag, TABLES[name]]  # which the shell takes from a file
        elif name == "anchor":
            words += [word for arm, mean in value.items() for word in (flag, f"{arm}={mean}")]
        else:
            words += [flag] if value is True else [flag, str(value)]
    return shlex.join(words)


def python_line(rule: Demonstrator | RuleFamily, options: Mapping[str, Any], function: str = "report") -> str:
    """Write the Python call that reproduces a report of a rule, of a log that was never a file."""
    return call_line(function, f'log, "{rule}"', options)


def call_line(function: str, first: str, options: Mapping[str, Any]) -> str:
    """Write the Python call that reproduces a report, with some arguments before its options."""
    plain = (bool, int, float, str, dict)
    given = {name: value if isinstance(value, plain) else str(value) for name, value in _given(options).items()}
    arguments = "".join(f", {name}={value!r}" for name, value in given.items())
    return f'unbandit.{function}({first}{arguments}).write("report.html")'


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out options that have their default."""
    defaults: dict[str, Any] = {"scale": "known", "level": 0.95}
    given = {
        key: value for key, value in options.items() if value is not None and (value is not False or key == "check")
    }
    return {key: value for key, value in given.items() if value != defaults.get(key)}


# Citation: written here once; a test compares it with CITATION.cff.

AUTHORS = "The unbandit authors"
RELEASED = "2026-11-15"
ABOUT = "Estimates the value of every arm of a multi-armed bandit from its action log alone, without rewards."


PAPER = SimpleNamespace(
    authors=(
        ("Guo", "Wenshuo"),
        ("Agrawal", "Kumar Krishna"),
        ("Grover", "Aditya"),
        ("Muthukumar", "Vidya"),
        ("Pananjady", "Ashwin"),
    ),
    title="Learning from an Exploring Demonstrator: Optimal Reward Estimation for Bandits",
    venue="International Conference on Artificial Intelligence and Statistics (AISTATS)",
    year=2022,
    identifier="arXiv:2106.14866",
)
"""The paper that Procedures 1 and 2 come from; its authors by family name and given names."""


def paper_entry() -> str:
    """Return the paper's BibTeX entry."""
    return _entry(
        "inproceedings",
        f"{PAPER.authors[0][0].lower()}{PAPER.year}{PAPER.title.split()[0].lower()}",
        author=" and ".join(f"{family}, {given}" for family, given in PAPER.authors),
        title=f"{{{PAPER.title}}}",
        booktitle=PAPER.venue,
        year=str(PAPER.year),
        note=PAPER.identifier,
    )


def software_entry() -> str:
    """Return the package's BibTeX entry."""
    about = ABOUT[0].lower() + ABOUT[1:].rstrip(".")
    title = f"{{unbandit: {about}}}"
    return _entry("software", "unbandit", author=f"{{{AUTHORS}}}", title=title, version=__version__, year=RELEASED[:4])


def _entry(kind: str, key: str, **fields: str) -> str:
    width = max(map(len, fields))
    lines = "".join(f"  {name:{width}} = {{{value}}},\n" for name, value in fields.items())
    return f"@{kind}{{{key},\n{lines}}}"
