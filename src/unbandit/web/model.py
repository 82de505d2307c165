"""What passes between the parts of the web page: plain data that can cross to another process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Download", "Example", "Limits", "Look", "Outcome", "Problem", "Progress", "State"]

State = Literal["waiting", "running", "done", "failed", "cancelled"]


@dataclass(frozen=True)
class Limits:
    """Hold how much one visitor may ask for.

    Attributes
    ----------
    upload
        Bytes of a file, as it is sent.
    unpacked
        Bytes of a file, once it is unpacked.
    rows
        Rows of its table.
    seconds
        Time for one piece of work, from its start.
    upload_seconds
        Time for a file to arrive.
    memory
        Bytes that one piece of work may take.
    jobs
        Pieces of work that may wait or run at once.
    waiting
        Bytes that all visitors together may have brought and not yet had looked at.
    kept_seconds
        How long an answer can be looked at and downloaded.
    """

    upload: int = 64 * 1024**2
    unpacked: int = 512 * 1024**2
    rows: int = 10_000_000
    seconds: float = 300.0
    upload_seconds: float = 120.0
    memory: int = 8 * 1024**3
    jobs: int = 100
    waiting: int = 1024**3
    kept_seconds: float = 900.0


@dataclass(frozen=True)
class Example:
    """Hold a log that comes with the page: its name, what it is, and the form that fits it."""

    name: str
    title: str
    about: str
    form: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Look:
    """Hold what was understood of a log before anything is estimated.

    Attributes
    ----------
    name, size
        Of the file, as it was sent; the name is only shown.
    columns, columns_left_out
        The table's columns, up to 200 of them, and how many more there are.
    roles
        Which column plays which role: `arm`, and where there are `demonstration`, `round`, `pulls`, `reward`.
    rows, rows_more
        The first rows, cut to as many cells as `columns_shown`, each cell cut to a readable length; whether there are
        more.
    columns_shown
        The columns that `rows` shows.
    summary
        What the log is, in words: "5,000 rounds of 20 arms".
    arms
        The arms with their pulls, the most-pulled first, up to 12; and how many more there are.
    notices
        What should be known about the reading.
    problem
        Why the log cannot be used as it stands; the first rows may still be there.
    carried, example
        The file itself, as text that a form can carry; or the name of the example.
    """

    name: str
    size: int
    columns: tuple[str, ...] = ()
    columns_left_out: int = 0
    columns_shown: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    rows_more: bool = False
    summary: str = ""
    arms: tuple[tuple[str, int], ...] = ()
    arms_left_out: int = 0
    notices: tuple[str, ...] = ()
    problem: str | None = None
    carried: str = ""
    example: str = ""


@dataclass(frozen=True)
class Download:
    """Hold a file to take home."""

    name: str
    label: str
    media_type: str
    data: bytes


@dataclass(frozen=True)
class Outcome:
    """Hold a finished piece of work: a title, the HTML of the page's main part, and files to take home."""

    title: str
    main: str
    downloads: tuple[Download, ...] = ()


@dataclass(frozen=True)
class Progress:
    """Hold where a piece of work stands.

    Attributes
    ----------
    title
        What it is, for people: "Estimate of log.csv".
    state, stage
        Where it stands, and what is being done, in words.
    share
        How much is done, from 0 to 1; None where nobody knows.
    seconds
        Since it was asked for.
    ahead
        How many pieces of work wait before it.
    """

    title: str
    state: State
    stage: str = ""
    share: float | None = None
    seconds: float = 0.0
    ahead: int = 0


@dataclass(frozen=True)
class Problem:
    """Hold why something cannot be done, for people: a heading, what happened, what helps, and the HTTP status."""

    title: str
    message: str
    remedy: str = ""
    status: int = 400
