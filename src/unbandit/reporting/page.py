"""The page: HTML that needs no other file, no script and no network."""

from __future__ import annotations

import html
from functools import cache
from importlib import resources

__all__ = ["main_part", "standalone", "stylesheet"]


@cache
def stylesheet() -> str:
    """Return the report's look: the standalone page holds it, a web page links it.

    Examples
    --------
    >>> "--ground" in stylesheet()
    True
    """
    return resources.files("unbandit.reporting").joinpath("report.css").read_text(encoding="utf-8")


def main_part(title: str, sentence: str) -> str:
    """Return what stands inside `<main>`."""
    return f"<h1>{html.escape(title)}</h1>\n<p>{html.escape(sentence)}</p>"


def standalone(title: str, main: str) -> str:
    """Return the whole page."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{html.escape(title)}</title>\n'
        f"<style>\n{stylesheet()}</style>\n</head>\n<body>\n<main>{main}</main>\n</body>\n</html>\n"
    )
