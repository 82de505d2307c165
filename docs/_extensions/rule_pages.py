"""What the pages of the rules take from the package, so that it cannot go stale.

| directive | gives |
|---|---|
| `{rules}` | every rule in a line, with a link to its page |
| `{parameters}` | the parameters of the page's rule, from its class |
| `{picture} timeline` | a picture drawn from the page's own example (`docs/pictures.py`) |
| `{calibration}` | the rows of `calibration.md` that are of the page's rule |
"""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args, get_origin

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1]))

import pictures

from unbandit.demonstrators import (
    Demonstrator,
    EliminationRule,
    IndexRule,
    RandomisedRule,
    rules,
)

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo
    from sphinx.application import Sphinx

SECTIONS = {
    "Random means, coverage": "closed form, gaps",
    "Random means, bounds": "closed form, bounds",
    "Posterior, means": "posterior, means",
    "Posterior, gaps": "posterior, gaps",
}
"""Which tables of the calibration a rule's page shows, and what they measure."""


NUMBERS = re.compile(r"\d[\d,]*")

SAID_BEFORE = (
    "How often 95% intervals held the truth in simulations, with the Monte-Carlo error. In brackets: the share of all",
    "arms that had such an interval, or the runs that failed.",
)
SAID_AFTER = (
    "No sign: the figure is right (93% to 97%; bounds, and gaps of posteriors: at least 93%). ✗: it is outside.",
    "~: the runs do not decide. ·: too few cases. What has no row was not measured. Numbers of runs, and why some",
    "figures are outside, are on [the page of the calibration](../calibration.md).",
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directives, and draw the pictures before the pages are read."""
    for name, directive in {
        "rules": Rules,
        "parameters": Parameters,
        "picture": Picture,
        "calibration": Calibration,
    }.items():
        app.add_directive(name, directive)
    app.add_config_value("drawn_rules", "", "env", str, "Rules whose pictures are drawn, with commas; empty: all.")
    app.connect("builder-inited", draw)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def draw(app: Sphinx) -> None:
    """Draw the pictures of the rules, unless the builder shows none."""
    if app.builder.format == "html":
        logging.getLogger(__name__).info("drawing the pictures of the rules")
        asked = [name for name in app.config.drawn_rules.split(",") if name]
        Picture.drawn = pictures.draw(Path(app.srcdir) / "_build" / "pictures", asked or list(rules()))


class OfARule(SphinxDirective):
    """Stand on the page of one rule, which the page is named after."""

    @property
    def rule(self) -> type[Demonstrator]:
        """Return the page's rule."""
        return rules()[posixpath.basename(self.env.docname)]

    def table(self, lines: list[str]) -> list[nodes.Node]:
        """Read lines as a table in Markdown."""
        parent = nodes.Element()
        self.state.nested_parse(StringList(lines, self.env.docname), 0, parent)
        return parent.children


class Rules(OfARule):
    """List every rule."""

    def run(self) -> list[nodes.Node]:
        """Return a table with one row a rule."""
        lines = ["| rule | name | what it does | kind | what its log shows |", "|---|---|---|---|---|"]
        for name, rule in rules().items():
            also = "".join(f", `{alias}`" for alias in rule.aliases)
            called = f"[`{name}`]({name}.md){also} | {_cell(rule.title or name)}"
            lines.append(f"| {called} | {_cell(rule.summary())} | {kind(rule)} | {tells(rule)} |")
        return self.table(lines)


class Parameters(OfARule):
    """Describe a rule's parameters, its own first."""

    def run(self) -> list[nodes.Node]:
        """Return a table with one row a parameter."""
        fields = self.rule.model_fields
        usual = {"ties", "clock", *self.rule.unwritten}
        lines = ["| parameter | what it is | allowed | unless given |", "|---|---|---|---|"]
        for name in sorted(fields, key=lambda name: name in usual):
            field = fields[name]
            default = "" if field.default is None else f"`{_number(field.default)}`"
            lines.append(f"| `{name}` | {_cell(field.description or '')} | {allowed(field)} | {default} |")
        lines += ["", f"In the shell, `unbandit demonstrators {self.rule.name}` prints them."]
        return self.table(lines)


class Picture(OfARule):
    """Show a picture that was drawn from the page's own example."""

    required_arguments = 1
    drawn: ClassVar[dict[tuple[str, str], pictures.Drawn]] = {}

    def run(self) -> list[nodes.Node]:
        """Return a figure with its alternative text and caption."""
        page = posixpath.basename(self.env.docname)
        if not any(page == name for name, _ in self.drawn):
            return []
        drawn = self.drawn[page, self.arguments[0]]
        self.env.note_dependency(str(drawn.path))
        place = "/" + drawn.path.relative_to(self.env.srcdir).as_posix()
        image = nodes.image(uri=place, alt=drawn.alt, classes=["drawn"])
        return [nodes.figure("", image, nodes.caption("", drawn.caption))]


class Calibration(OfARule):
    """Show what was measured of a rule."""

    def run(self) -> list[nodes.Node]:
        """Return the rule's rows of the calibration's tables, with a link."""
        self.env.note_dependency(str(Path(self.env.srcdir) / "calibration.md"))
        text = (Path(self.env.srcdir) / "calibration.md").read_text(encoding="utf-8")
        found = list(calibrated(text, self.rule.name))
        if not found:
            return self.table(["It was not measured yet: see [the calibration](../calibration.md)."])
        lines = [*SAID_BEFORE]
        for method in dict.fromkeys(measure.partition(",")[0] for measure, _, _ in found):  # each has cells of its own
            own = [each for each in found if each[0].partition(",")[0] == method]
            named = dict.fromkeys(cell for _, _, row in own for cell in row)
            cells = sorted(named, key=lambda cell: [int(digits.replace(",", "")) for digits in NUMBERS.findall(cell)])
            lines += ["", f"| {method} | rule and rewards | {' | '.join(cells)} |", "|---" * (len(cells) + 2) + "|"]
            for measure, written, row in own:
                texts = [measure.partition(", ")[2], _played(written)]
                lines.append(f"| {' | '.join([*texts, *(_measured(row.get(cell, '')) for cell in cells)])} |")
        lines += ["", *SAID_AFTER]
        return self.table(lines)


def calibrated(text: str, name: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Give the rows of a rule in the tables of the calibration: what is measured, of which rule, and the cells."""
    for title, measure in SECTIONS.items():
        section = text.partition(f"\n### {title}\n")[2].partition("\n##")[0]
        rows = [
            [cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:1] == "|"
        ]
        for written, *cells in rows[2:]:
            if written.strip("`").partition(":")[0].partition(",")[0] == name and set(cells) != {"-"}:
                yield measure, written, dict(zip(rows[0][1:], cells, strict=True))


def kind(rule: type[Demonstrator]) -> str:
    """Say what kind of rule it is, in a word."""
    kinds = {IndexRule: "index", EliminationRule: "elimination", RandomisedRule: "randomised"}
    return next((word for parent, word in kinds.items() if issubclass(rule, parent)), "other")


def tells(rule: type[Demonstrator]) -> str:
    """Say what a rule's record can tell."""
    return {"values": "what every arm is worth", "best": "which arm it judged best", "nothing": "nothing"}[rule.reveals]


def allowed(field: FieldInfo) -> str:
    """Say which values a parameter may have."""
    kinds = [kind for kind in get_args(field.annotation) if kind is not type(None)] or [field.annotation]
    chosen = field.annotation if get_origin(field.annotation) is Literal else kinds[0]
    if get_origin(chosen) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(chosen))
    word = {int: "whole number", float: "number"}.get(chosen, getattr(chosen, "__name__", str(chosen)))
    signs = {"gt": "above", "ge": "from", "lt": "below", "le": "up to"}
    bounds = [
        f"{said} {_number(getattr(bound, sign))}"
        for bound in field.metadata
        for sign, said in signs.items()
        if hasattr(bound, sign) and getattr(bound, sign) != 2**32
    ]
    return ", ".join([word, *bounds])


def _played(written: str) -> str:
    """Write a rule's parameters and its rewards so that they can be broken into lines."""
    rule, _, rewards = written.strip("`").partition(", ")
    return "; ".join(filter(None, [rule.partition(":")[2].replace(",", ", "), rewards])).replace("_", "\\_")


def _measured(cell: str) -> str:
    """Keep a figure, its error and its mark on one line of a narrow cell, and what is in brackets on the next."""
    figure, bracket, rest = cell.partition(" (")
    inside, _, mark = rest.partition(")")
    lines = [figure + mark, f"({inside})"] if bracket else [figure]
    unbroken = " ".join(line.replace(" ", "\u00a0") for line in lines)
    return unbroken.replace("\u00a0±", " ±").replace("\u00a0failed", " failed")  # tables have many columns


def _number(value: object) -> str:
    """Write a value as people do: 2 rather than 2.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _cell(text: str) -> str:
    """Keep a bar in a cell from ending it, and signs from being read as markup."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("_", "\\_")
