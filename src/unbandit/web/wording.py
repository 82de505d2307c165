"""Errors of the command line, said to somebody who sees a page and no shell."""

from __future__ import annotations

import re

from unbandit.errors import InferenceError, LogError, NotIdentifiable, ParameterError, UnbanditError
from unbandit.web.model import Problem

__all__ = ["BROKEN", "NO_MEMORY", "plain", "plain_error", "problem_of", "size"]

LONGEST, LONGEST_NAME = 1_000, 80
"""Letters of a message, and of a name in it, that are shown."""

_FIELDS = tuple(
    (re.compile(shell), page)
    for shell, page in (
        (r"Say which one (it is|holds the arms) with --columns \w+=.*\.$", "Say which column it is in the form."),
        (r"Name one of these with --columns \w+=.*\.$", "Choose one of these in the form."),
        (r"if it holds the rewards, say so with --columns reward=.*\.$", "if it does, choose it in the form."),
        (r"Add it with --arms .*\.$", 'Add it to the field "All arms".'),
        (r"with --arms .*\.$", 'in the field "All arms".'),
        (r" with --columns \w+=\w* or --columns \w+=\w*", " in the form"),
        (r" with --columns \w+=\w*", " in the form"),
        (r"--best-mean\b|\bbest_mean\b", "the best arm's value"),
        (r"--sigma\b", "the noise of a reward"),
        (r"--bernoulli\b", "rewards of 0 or 1"),
        (r"--horizon\b", "the planned number of rounds"),
        (r"--anchor\b", "the one known arm"),
        (r"--pool\b", "the box to combine all demonstrations"),
        (r"--scale\b", "the scale"),
        (r"--(method|level|seed|prior|particles|resamples)\b", r"the field \1"),
        (r"\s*\(see: unbandit demonstrators\)", ""),
    )
)
"""What the shell calls an option, and what the page calls it."""

_TITLES = (
    (LogError, "This file cannot be read as a log", 422),
    (ParameterError, "One of the choices does not fit", 422),
    (NotIdentifiable, "This record cannot tell", 200),
    (InferenceError, "The computation broke down", 200),
)

NO_MEMORY = Problem(
    "That was too much for this computer",
    "The work was stopped, because it needed more memory than there is for one visitor.",
    "Take fewer rounds or arms, or use the command line.",
    507,
)
BROKEN = Problem(
    "Something broke here",
    "This is a mistake in unbandit, not in your file. The window in which the page was started says more.",
    "Other files and questions will still work.",
    500,
)


def plain(message: str) -> str:
    """Say a message of the command line in the words of the page; what stands in quotes is the visitor's, and stays.

    Examples
    --------
    >>> plain('expected a column "arm"; the table has "x". Say which one holds the arms with --columns arm=NAME.')
    'expected a column "arm"; the table has "x". Say which column it is in the form.'
    >>> plain('expected an arm among A, B; got "--sigma". Add it with --arms A,B,--sigma.')
    'expected an arm among A, B; got "--sigma". Add it to the field "All arms".'
    """
    parts = re.split(r'("[^"]*")', _short(message))
    for at in range(0, len(parts), 2):
        for shell, page in _FIELDS:
            parts[at] = shell.sub(page, parts[at])
    return "".join(parts)


def plain_error(error: UnbanditError) -> str:
    """Say an error; the place in a file is the visitor's words, and stays."""
    if not isinstance(error, LogError):
        return plain(str(error))
    place = LogError("", path=error.path, row=error.row, line=error.line, column=error.column)
    return _short(str(place)) + plain(error.message)


def _short(message: str) -> str:
    """Cut names without end, and a message that is endless for another reason.

    Examples
    --------
    >>> _short('got "' + "x" * 10_000 + '", really') == 'got "' + "x" * 79 + '…", really'
    True
    """
    cut = re.sub(rf'"([^"]{{{LONGEST_NAME}}})[^"]+"', lambda found: f'"{found[1][:-1]}…"', message[: 100 * LONGEST])
    return cut if len(cut) <= LONGEST else cut[: LONGEST - 1] + "…"


def problem_of(error: BaseException) -> Problem:
    """Return what to show of an error: ours speak for themselves, others are ours to mend and show nothing."""
    if isinstance(error, MemoryError):
        return NO_MEMORY
    if not isinstance(error, UnbanditError):
        return BROKEN
    title, status = next(((title, code) for kind, title, code in _TITLES if isinstance(error, kind)), ("Refused", 400))
    remedy = ""
    if isinstance(error, NotIdentifiable):
        remedy = "This is an answer too: no tool can read from a record what it does not hold."
    return Problem(title, plain_error(error), remedy, status)


def size(count: int) -> str:
    """Write a number of bytes for people.

    Examples
    --------
    >>> size(100), size(64 * 1024**2)
    ('100 bytes', '64 MB')
    """
    for unit, amount in (("GB", 1024**3), ("MB", 1024**2), ("kB", 1024)):
        if count >= amount:
            return f"{count / amount:.3g} {unit}"
    return f"{count} bytes"
