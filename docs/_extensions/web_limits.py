"""The limits of the web page as they stand in the code: the directive `{limits}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from unbandit.web.forms import MOST_ARMS, MOST_ROUNDS
from unbandit.web.jobs import Limits

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("limits", LimitsTable)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def rows(limits: Limits) -> dict[str, str]:
    """Return every limit in words, with the option that changes it."""
    return {
        "A file, as it is sent": f"{limits.upload // 1024**2:,} MB (`--max-upload`)",
        "A packed file, once unpacked": f"{limits.unpacked // 1024**2:,} MB (eight times `--max-upload`)",
        "Rows of a log": f"{limits.rows:,} (`--max-rows`)",
        "Time for a file to arrive": f"{limits.upload_seconds / 60:g} minutes",
        "Time for one piece of work": f"{limits.seconds / 60:g} minutes (`--max-seconds`)",
        "Memory for one piece of work": f"{limits.memory // 1024**3:,} GB",
        "Pieces of work that wait or run at once": f"{limits.jobs:,}",
        "An answer is kept for": f"{limits.kept_seconds / 60:g} minutes",
        "A simulation": f"{MOST_ARMS:,} arms, {MOST_ROUNDS:,} rounds",
    }


class LimitsTable(SphinxDirective):
    """List how much one visitor may ask for."""

    def run(self) -> list[nodes.Node]:
        """Return a table with one row a limit."""
        lines = ["| what | at most |", "|---|---|"]
        lines += [f"| {what} | {most} |" for what, most in rows(Limits()).items()]
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, self.env.docname), 0, parent)
        return parent.children
