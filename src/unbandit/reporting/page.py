"""The report as HTML that needs no other file, no script and no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from jinja2 import Environment, StrictUndefined, Template

from unbandit._version import __version__
from unbandit.errors import Audience, Notice, phrase, python_option
from unbandit.formatting import counted, shortened, shown
from unbandit.reporting import provenance
from unbandit.reporting.glossary import GLOSSARY, NOTICES, VERDICTS, Explanation

MARKS = {"best": "◆", "estimated": "●", "bounded": "▸", "unseen": "○"}
"""One mark per verdict, so that nobody needs colours to distinguish them."""

MOST_MESSAGES = 5
"""Of more notices of one kind than this, the first are shown."""


@dataclass(frozen=True)
class NoticeGroup:
    """All notices of one kind: its explanation, the first messages, and how many more there are."""

    code: str
    words: Explanation | None
    messages: tuple[str, ...]
    more: int


def group_notices(
    notices: Sequence[Notice], arms: Sequence[str], audience: Audience = python_option
) -> list[NoticeGroup]:
    """Group notices by kind, in the order in which the kinds first appear."""
    groups: dict[str, list[Notice]] = {}
    for notice in notices:
        groups.setdefault(notice.code, []).append(notice)
    found = []
    for code, group in groups.items():
        messages = tuple(
            (f"Demonstration {shown(notice.demonstration)}: " if notice.demonstration else "")
            + shortened(phrase(notice.text, audience), arms)
            for notice in group[:MOST_MESSAGES]
        )
        found.append(NoticeGroup(code, NOTICES.get(code), messages, len(group) - len(messages)))
    return found


@cache
def stylesheet() -> str:
    """Return the report's style sheet: the standalone page contains it, a web page links it."""
    return _file("report.css")


def main_part(**contents: Any) -> str:
    """Return what stands inside `<main>`: escaped, without scripts and without style attributes.

    `contents` are what the template shows; one that is missing is an error.
    """
    return _template("report.html").render(
        it=contents,
        version=__version__,
        marks=MARKS,
        meanings=VERDICTS,
        glossary=GLOSSARY,
        paper=provenance.PAPER,
        entries=(provenance.paper_entry(), provenance.software_entry()),
        authors=provenance.AUTHORS,
        year=provenance.RELEASED[:4],
    )


def standalone(title: str, main: str) -> str:
    """Return the whole page around its main part."""
    return _template("standalone.html").render(title=title, main=main, style=stylesheet(), version=__version__)


@cache
def _template(name: str) -> Template:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    filters: dict[str, Any] = {"counted": counted, "shown": shown}
    environment.filters |= filters
    return environment.from_string(_file(name))


def _file(name: str) -> str:
    return resources.files("unbandit.reporting").joinpath(name).read_text(encoding="utf-8")
