"""What the tests of figures share: answers without their warnings, and the words in a figure."""

from __future__ import annotations

import warnings
from xml.dom import minidom

from matplotlib.figure import Figure
from matplotlib.text import Text

from unbandit import ActionLog, AssumptionWarning, estimate, plots

PNG = b"\x89PNG\r\n\x1a\n"

FOUR = ActionLog.from_actions(list("ABC" + "A" * 8 + "BBB" + "A"), arms="ABCD")
"""A is the best arm, B is estimated, C bounded, D never pulled."""

ODD_NAMES = [
    "$", "$x$", "$\\frac{", "a$b", "µ–ñ é", "_", "x_1", "^{", "\\alpha", "%", "&", "{}", "<b>", "</text>", "x" * 300,
    "a\nb", "\x00\x1b[31m", "<script>alert(1)</script>", "שלום עולם", "مرحبا", "\u202eab", "]]>",
    "🎉👩‍🔬", "日本語の名前", "\ufffe", "'\"",
]  # fmt: skip


def answered(log, rule="ucb:alpha=0.25,scale=1", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(log, rule, **({"sigma": 1.0} | options))


def words(figure):
    """Return all that is written in a figure."""
    assert isinstance(figure, Figure)
    return [text.get_text() for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def drawn(figure):
    """Write a figure in both formats, and return its SVG, which must be one that a reader takes."""
    assert plots.png(figure, 50).startswith(PNG)
    text = plots.svg(figure)
    minidom.parseString(text)
    return text
