"""What the page says when something cannot be done."""

import re
import sys
import time
import tomllib
import traceback
from dataclasses import dataclass, replace
from importlib import resources

from unbandit.errors import InferenceError, LogError, NotIdentifiable, ParameterError, UnbanditError, phrase, printable
from unbandit.formatting import capitalise, label

LONGEST_MESSAGE, LONGEST_NAME = 1_000, 80  # characters of a message, and of a quoted name in it, that are shown


@dataclass(frozen=True)
class Problem:
    """Reason why something cannot be done: a heading, what happened, what helps, and the HTTP status.

    What is wrong with one option of a form has its name, and the sentence that stands at its field.
    """

    title: str
    message: str
    remedy: str = ""
    status: int = 400
    parameter: str = ""
    at_field: str = ""


class Refusal(Exception):
    """A problem that is raised, to be shown as a page."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        super().__init__(problem.title)


class Console:
    """The window in which the page was started: what breaks is shown there, but at most once in a while."""

    def __init__(self, pause: float = 10.0) -> None:
        self._pause, self._next, self._left_out = pause, 0.0, 0

    def say(self, text: str) -> None:
        """Show a text, which may quote a file, with how many were left out before it; or leave it out."""
        now = time.monotonic()
        if now < self._next:
            self._left_out += 1
            return
        before = f"unbandit: {self._left_out:,} more were left out.\n" if self._left_out else ""
        print(before + "\n".join(map(printable, text.split("\n"))), file=sys.stderr, flush=True)
        self._next, self._left_out = now + self._pause, 0

    def show(self, error: BaseException) -> None:
        """Show where an error that nobody expected comes from."""
        self.say("".join(traceback.format_exception(error)).rstrip())


_TEXTS = tomllib.loads(resources.files("unbandit.web").joinpath("templates", "problems.toml").read_text("utf-8"))
TOO_LONG, STOPPED, CLOSED, NO_MEMORY, BROKEN, FULL, GONE, NO_BROWSER, NOT_PRINTED = (
    Problem(**_TEXTS[name])
    for name in ("TOO_LONG", "STOPPED", "CLOSED", "NO_MEMORY", "BROKEN", "FULL", "GONE", "NO_BROWSER", "NOT_PRINTED")
)
SLOW, NO_FILE, BAD_FORM, NO_PAGE, BUSY = (
    Problem(**_TEXTS[name]) for name in ("SLOW", "NO_FILE", "BAD_FORM", "NO_PAGE", "BUSY")
)
STRANGE_HOST, CROSS_SITE, NO_TOKEN = (Problem(**_TEXTS[name]) for name in ("STRANGE_HOST", "CROSS_SITE", "NO_TOKEN"))

_TITLES = (
    (LogError, "This file cannot be read as a log", 422),
    (ParameterError, "One of the choices does not fit", 422),
    (NotIdentifiable, "This log cannot answer that", 200),
    (InferenceError, "The computation broke down", 200),
)


def too_large(most: int) -> Problem:
    """Return what is shown of a file with more than `most` bytes."""
    return Problem(
        "This file is too large for the page",
        f"A file may have up to {most // 1024**2:,} MB here.",
        "Pack it with gzip or write it as Parquet, or use the command line, which has no such limit.",
        413,
    )


def problem_of(error: BaseException) -> Problem:
    """Return what is shown of an error: the message of one of ours, nothing of any other."""
    if isinstance(error, Refusal):
        return error.problem
    if isinstance(error, MemoryError):
        return NO_MEMORY
    if not isinstance(error, UnbanditError):
        return BROKEN
    answer = "The log does not contain this information."
    title, status = next(((title, code) for kind, title, code in _TITLES if isinstance(error, kind)), ("Refused", 400))
    problem = Problem(title, page_text(error), answer if isinstance(error, NotIdentifiable) else "", status)
    if not isinstance(error, ParameterError) or error.owner is not None or error.parameter is None:
        return problem
    alone = ParameterError(capitalise(error.text), remedy=error.remedy)
    return replace(problem, parameter=error.parameter, at_field=page_text(alone))


def page_text(said: UnbanditError | str) -> str:
    """Write an error or a sentence for a visitor: options by the labels of their fields, endless names shortened."""
    from unbandit.web.forms import page_option  # later than the rest, so that a worker process starts sooner

    text = phrase(said, page_option) if isinstance(said, str) else said.phrased(page_option)
    begun = text[: 100 * LONGEST_MESSAGE]
    cut = re.sub(r'"([^"]*)"', lambda found: f'"{label(found[1], LONGEST_NAME)}"', begun)
    return cut if len(cut) <= LONGEST_MESSAGE else cut[: LONGEST_MESSAGE - 1] + "…"
