"""Mend what the theme leaves undone for keyboards and screen readers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MENDED = {
    # what may scroll can be reached by the tabulator key
    '<div class="table-wrapper': '<div tabindex="0" role="group" aria-label="table" class="table-wrapper',
    '<div class="highlight"><pre>': '<div class="highlight"><pre tabindex="0">',
    '<div class="output text_html">': '<div tabindex="0" role="group" aria-label="output" class="output text_html">',
    # landmarks have names, and headings levels
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="all pages">',
    '<aside class="toc-drawer': '<aside aria-label="this page" class="toc-drawer',
    '<p class="caption" role="heading">': '<p class="caption" role="heading" aria-level="2">',
    '<div id="search-results"></div>': '<h1>Search</h1>\n<div id="search-results" aria-live="polite"></div>',
}
"""What stands in the pages, and what shall stand there."""


def setup(app: Sphinx) -> dict[str, Any]:
    """Change the pages once all are written."""
    app.connect("build-finished", mend)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def mend(app: Sphinx, failure: Exception | None) -> None:
    """Go through the pages; one that was mended before has nothing left to mend."""
    if failure is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        mended = text
        for plain, better in MENDED.items():
            mended = mended.replace(plain, better)
        if mended != text:
            page.write_text(mended, encoding="utf-8")
