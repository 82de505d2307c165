"""Formulas as MathML, written when the site is built: no script, nothing to load."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from docutils import nodes
from latex2mathml.converter import convert

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer that `html_math_renderer = "mathml"` names."""
    app.add_html_math_renderer("mathml", (write_inline, None), (write_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def write_inline(translator: HTML5Translator, node: nodes.math) -> None:
    """Write a formula that stands in a line."""
    translator.body.append(convert(node.astext(), display="inline"))
    raise nodes.SkipNode


def write_block(translator: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own; on a narrow screen it scrolls by itself, by keyboard too."""
    formula = convert(node.astext(), display="block")
    translator.body.append(f'<div class="formula" role="group" aria-label="formula" tabindex="0">{formula}</div>\n')
    raise nodes.SkipNode
