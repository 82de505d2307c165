"""What the page says when something cannot be done."""

import re
import sys
import time
import traceback
from dataclasses import dataclass, replace

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


# Jobs
TOO_LONG = Problem(
    "That took too long",
    "The work was stopped: it took longer than one visitor may have.",
    "Take fewer rounds or arms, or use the command line, which has no limit.",
    503,
)
STOPPED = Problem("Cancelled", "You cancelled this; nothing of it was kept.", "", 200)
CLOSED = Problem("The page was closed", "The program behind this page was stopped before the work was done.", "", 503)
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
FULL = Problem(
    "Too many are asking at once", "There is no room for another piece of work just now.", "Try again in a minute.", 503
)
GONE = Problem(
    "This answer is no longer here",
    "Answers are kept for a short while only, and not at all once the page was stopped or they were forgotten.",
    "Ask again.",
    404,
)
NO_BROWSER = Problem(
    "No browser to print with",
    "A PDF is printed by Chromium, Chrome or Edge, and none is installed on the computer that runs this page.",
    "Install one, or open the downloaded report in any browser and print it to a file.",
    503,
)
NOT_PRINTED = Problem(
    "The report could not be printed",
    "The installed browser did not print it. The window in which the page was started says more.",
    "Open the downloaded report in any browser and print it to a file.",
    503,
)

# Requests
SLOW = Problem("The file did not arrive", "It took too long to be sent.", "Try again, or take a smaller file.", 408)
NO_FILE = Problem(
    "There is no file", "Nothing was chosen, or the file is empty.", "Choose a file, or try an example.", 422
)
BAD_FORM = Problem("The form did not arrive whole", "What was sent could not be read.", "Go back and try again.", 400)
NO_PAGE = Problem("There is nothing here", "No page has this address.", "", 404)
BUSY = Problem(
    "Too much is being sent at once", "Other visitors are sending large files just now.", "Try again in a minute.", 503
)

# Access
STRANGE_HOST = Problem(
    "This address is not known here",
    "The page answers only under the address that it printed when it was started.",
    "Open that address.",
    403,
)
CROSS_SITE = Problem(
    "This was sent from another page",
    "Another website tried to send something to this one, and was refused.",
    "Begin again from this page itself.",
    403,
)
NO_TOKEN = Problem(
    "A key is needed",
    "This page was opened to other computers, so it asks for the key in the address that was printed when it started.",
    "Open the whole address, with everything after the question mark.",
    403,
)

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
    answer = "This is an answer too: no tool can read from a log what it does not hold."
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
