"""Errors and notices: what went wrong or is worth knowing, as data and as one sentence.

A message is one sentence: what was expected, what came, what to do. Where a sentence names an option it does so with
`option("best_mean")`, and each audience reads that name in its own spelling: Python users `best_mean`, shell users
`--best-mean`, users of the page the label of the field.
"""

import json
import os
import re
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

Audience = Callable[[str, Any], str]
"""How a reader writes an option: a function of its name and its value (None for the name alone)."""

# Two Unicode noncharacters, reserved for a program's internal use, enclose an option within a sentence. A file may hold
# them too, so a word that no file can know comes first; it differs from process to process.
_OPEN, _CLOSE = f"\ufdd0{os.urandom(8).hex()}", "\ufdd1"
_OPTION = re.compile(f"{_OPEN}([^\ufdd0\ufdd1]*){_CLOSE}")

_LONGEST_QUOTE, _LONGEST_SENTENCE = 120, 2_000  # characters
_QUOTE = re.compile(r'"([^"]*)"')

# Control characters, and others that nobody sees or takes for a plain space. Joiners only beside ASCII, since some
# scripts and emoji need them.
CONTROL = re.compile(
    "[\x00-\x1f\x7f-\xa0\xad\u061c\u180e\u2000-\u200b\u200e\u200f"
    "\u2028-\u202f\u205f-\u2064\u2066\u2067\ufeff\ufff9-\ufffb\ud800-\udfff\ufdd0-\ufdef]"
    "|(?<=[\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?=[\x00-\x7f])"
)


def option(name: str, value: Any = None) -> str:
    """Return a reference to an option, to be used within a message; `phrase` spells it out for a reader."""
    return f"{_OPEN}{json.dumps([name, value])}{_CLOSE}"


def python_option(name: str, value: Any = None) -> str:
    """Write an option as a keyword argument."""
    return name if value is None else f"{name}={json.dumps(value) if isinstance(value, str) else repr(value)}"


def shell_option(name: str, value: Any = None) -> str:
    """Write an option as the command line takes it."""
    flag = name if name.isupper() else "--" + name.replace("_", "-")
    if value is None or value is True:
        return flag
    if value is False:
        return flag.replace("--", "--no-", 1)
    if isinstance(value, dict):
        value = ",".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list):
        value = ",".join(f'"{each}"' if "," in str(each) else str(each) for each in value)
    return f"{flag} {value}"


def phrase(text: str, audience: Audience = python_option) -> str:
    """Spell out the options that a sentence refers to, as the audience writes them."""

    return printable(_OPTION.sub(lambda match: audience(*json.loads(match[1])), text))


def _split(text: str | None) -> tuple[str, ...] | None:
    """Take the options out of a sentence that goes to another process, where they are enclosed by another word."""
    return None if text is None else tuple(_OPTION.split(text))


def _joined(parts: tuple[str, ...] | None) -> str | None:
    """Put a sentence together again: every second part is an option."""
    if parts is None:
        return None
    return "".join(f"{_OPEN}{part}{_CLOSE}" if number % 2 else part for number, part in enumerate(parts))


def printable(text: str) -> str:
    """Make a sentence fit for any console, whatever file it quotes: control characters escaped, long cells cut.

    Every error and notice goes through here on its way to a reader, so a cell can be quoted as it is.

    >>> printable('expected a number; got "\\x1b[31mred\\r".')
    'expected a number; got "\\\\x1b[31mred\\\\r".'
    """
    if len(text) > _LONGEST_QUOTE:
        text = _QUOTE.sub(lambda quote: f'"{_cut(quote[1], _LONGEST_QUOTE)}"', text)
        text = _cut(text, _LONGEST_SENTENCE)
    return escaped(text)


def escaped(text: str) -> str:
    """Write the characters of a text that a console would obey, or nobody would see, as escapes."""
    return CONTROL.sub(lambda mark: mark[0].encode("unicode_escape", "surrogatepass").decode(), text)


def _cut(text: str, longest: int) -> str:
    """Cut the middle out of a long text: names differ at their ends, and a sentence ends with the remedy."""
    return text if len(text) <= longest else f"{text[: 3 * longest // 4]} … {text[-longest // 4 :]}"


def first_line(error: BaseException) -> str:
    """Return the first line of what a library's error says, without its full stop, to be used within a sentence."""
    text = getattr(error, "strerror", None) or str(error)
    return (text.strip().splitlines() or [type(error).__name__])[0].strip()[:200].rstrip(".")


class UnbanditError(Exception):
    """Base of every error that this package raises on purpose.

    Parameters
    ----------
    text
        What was expected and what came; it may refer to options by `option`.
    remedy
        What to do about it, one sentence; it may refer to options by `option`.
    parameter
        Which parameter is refused.
    owner
        Whose it is: the name of a rule; None for an option of a function or a command.
    value
        The value that came.
    path, column, round
        Where it is.
    row
        The data row of a table, from 1.
    line
        The line of a text file; the header is line 1.
    count
        How many there are of what is refused.

    Attributes
    ----------
    notices
        What is doubtful about how the log was read, which may be why it is refused.
    """

    notices: "tuple[Notice, ...]" = ()

    def __init__(
        self, text: str, *, remedy: str | None = None, parameter: str | None = None, owner: str | None = None,
        value: object = None, path: str | None = None, row: int | None = None, line: int | None = None,
        column: str | None = None, round: int | None = None, count: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(text)
        self.text, self.remedy = text, remedy
        self.parameter, self.owner, self.value = parameter, owner, value
        self.path, self.row, self.line, self.column = path, row, line, column
        self.round, self.count = round, count

    @property
    def message(self) -> str:
        """Return the sentence without its place, for users of Python."""
        return self.said()

    def said(self, audience: Audience = python_option) -> str:
        """Return the sentence with its remedy, what may be the reason, and without its place."""
        parts = (self.text, self.remedy, *(notice.text for notice in self.notices))
        return phrase(" ".join(filter(None, parts)), audience)

    def place(self, audience: Audience = python_option) -> str:
        """Return where it is: the parameter that is refused, or a place in a file."""
        if self.parameter is None:
            return self.owner or ""
        if self.owner is not None:
            return f"{self.owner}: {self.parameter}"
        return ", ".join(audience(name, None) for name in self.parameter.split(", "))

    def phrased(self, audience: Audience = python_option) -> str:
        """Return place, sentence and remedy as one audience reads them."""
        place = printable(self.place(audience))
        return f"{place}: {self.said(audience)}" if place else self.said(audience)

    def __str__(self) -> str:
        return self.phrased()

    def __reduce__(self) -> tuple[Any, ...]:
        parts = {"text": _split(self.text), "remedy": _split(self.remedy)}
        return _unpickled, (type(self), self.__dict__ | parts)

    def at(self, **data: Any) -> Self:
        """Fill in where an error is, once that is known; returns the error itself."""
        for name, value in data.items():
            setattr(self, name, value)
        return self


def _unpickled(kind: type[UnbanditError], state: dict[str, Any]) -> UnbanditError:
    """Build an error that another process raised."""
    error = kind.__new__(kind)
    error.__dict__.update(state | {name: _joined(state[name]) for name in ("text", "remedy")})
    error.args = (error.text,)
    return error


class LogError(UnbanditError, ValueError):
    """Refusal of the contents of a log, with the place where it stands."""

    def place(self, audience: Audience = python_option) -> str:
        """Return path, row and column."""
        row = f"row {self.row}" if self.row is not None else ""
        if self.line is not None:
            row += f" (line {self.line})"
        column = f'column "{self.column}"' if self.column is not None else ""
        return ", ".join(part for part in (" ".join(part for part in (self.path, row) if part), column) if part)


class DescriptionError(UnbanditError, ValueError):
    """Refusal of the file that describes a study: of a table such as "instance 2", and a key in it."""

    def __init__(self, text: str, *, table: str | None = None, key: str | None = None, **data: Any) -> None:
        super().__init__(text, **data)
        self.table, self.key = table, key

    def place(self, audience: Audience = python_option) -> str:
        """Return file, table and key."""
        return ": ".join(part for part in (self.path, self.table, self.key) if part)


class ParameterError(UnbanditError, ValueError):
    """Refusal of a parameter of a rule, an instance or a command."""


class NotIdentifiable(UnbanditError):
    """The log cannot answer the question; the message says why."""


class InferenceError(UnbanditError):
    """The computation failed on a log that could answer the question."""

    impossible: bool = False
    """Whether the rule as given never makes such a choice, however long the computation."""

    def place(self, audience: Audience = python_option) -> str:
        """Return the round, or the parameter."""
        return super().place(audience) if self.round is None else f"round {self.round:,}"


class OutputError(UnbanditError, OSError):
    """A file could not be written; whatever was there before is unchanged."""


class ResumeError(UnbanditError):
    """A results folder does not belong to the study asked for."""


class ClusterError(UnbanditError, OSError):
    """A cluster cannot be reached, was lost, or has incompatible workers; finished results are kept."""


class MissingExtra(UnbanditError, ImportError):
    """An optional dependency is missing; the message names the pip command that installs it."""

    def __init__(self, purpose: str, extra: str = "") -> None:
        needed = f"{purpose} needs an optional part of unbandit. In its checkout, run: pip install '.[{extra}]'"
        super().__init__(needed if extra else purpose)


class AssumptionWarning(UserWarning):
    """Warning that an answer rests on an assumption worth reading."""


HARMLESS = frozenset({"ties-at-random"})
"""Codes of notices about what was found that put no value in doubt."""


MISREAD = frozenset({"missing-block", "perhaps-total", "ties-backwards", "times-against", "times-tied"})
"""Codes of notices about the reading of a log that are warnings: its rows or their order may not be what was read."""


@dataclass(frozen=True)
class Notice:
    """One thing worth knowing about an answer, and where in the log it shows.

    Attributes
    ----------
    code
        The kind of notice, stable for programs.
    text
        The sentence, which may refer to options by `option`.
    round, arm, demonstration
        Where it shows; None unless it is one alone.
    count
        In how many demonstrations it shows, where one notice stands for several.
    """

    code: str
    text: str
    round: int | None = None
    arm: str | None = None
    demonstration: str | None = None
    count: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"text": _split(self.text)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state | {"text": _joined(state["text"])})

    def __repr__(self) -> str:
        return f"Notice(code={self.code!r}, message={self.message!r})"

    @property
    def message(self) -> str:
        """Return the sentence for users of Python."""
        return phrase(self.text)

    @classmethod
    def from_dict(cls, said: Mapping[str, Any]) -> Self:
        """Return the notice that `to_dict` gave."""
        return cls(said["code"], said["message"], said.get("round"), said.get("arm"), said.get("demonstration"))

    def to_dict(self, audience: Audience = python_option) -> dict[str, Any]:
        """Return the notice in the form that JSON has it."""
        return {
            "code": self.code, "message": phrase(self.text, audience), "round": self.round, "arm": self.arm,
            "demonstration": self.demonstration,
        }  # fmt: skip


class Interrupts:
    """Remembers Ctrl-C: a library that it reaches at a bad moment may turn it into an error of its own."""

    def __init__(self) -> None:
        self.came = False

    def __enter__(self) -> Self:
        self._before = signal.signal(signal.SIGINT, self.interrupt)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._before)

    def interrupt(self, *_: object) -> None:
        """Take the signal."""
        self.came = True
        raise KeyboardInterrupt
