"""Errors of the command line, said to somebody who sees a page and no shell."""

from __future__ import annotations

import re

from unbandit.errors import InferenceError, LogError, NotIdentifiable, ParameterError, UnbanditError
from unbandit.web.model import Problem

__all__ = ["BROKEN", "NO_MEMORY", "plain", "problem_of"]

_FIELDS = (
    (r"Say which one (it is|holds the arms) with --columns \S+=.*?\.(?=\s|$)", "Say which column it is in the form."),
    (r"Name one of these with --columns \S+=.*?\.(?=\s|$)", "Choose one of these in the form."),
    (r"if it holds the rewards, say so with --columns reward=.*\.$", "if it holds the rewards, choose it in the form."),
    (r"\bwith --columns \S+", "in the form"),
    (r"\bAdd (it|them) with --arms\b.*?\.(?=\s|$)", r'Add \1 to the field "All arms".'),
    (r"\bwith --arms(?: [^\s.]+)?", 'in the field "All arms"'),
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
    """Say a message of the command line in the words of the page.

    Examples
    --------
    >>> plain('expected a column "arm"; the table has "x". Say which one holds the arms with --columns arm=NAME.')
    'expected a column "arm"; the table has "x". Say which column it is in the form.'
    >>> plain("expected an arm among A, B; got D. Add it with --arms A,B,D.")
    'expected an arm among A, B; got D. Add it to the field "All arms".'
    """
    for shell, page in _FIELDS:
        message = re.sub(shell, page, message)
    return message


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
    return Problem(title, plain(str(error)), remedy, status)
