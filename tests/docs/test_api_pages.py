"""Every public name is on a page of the API, once, and every parameter there has its own text."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator

from documents_shown import ROOT

import unbandit

NAMED = re.compile(r"^\.\. auto(?:function|class|exception|module|data):: unbandit\.(\w+)$", re.MULTILINE)
SHOWN = re.compile(r"^\.\. auto(?:function|class|exception|module):: ([\w.]+)$", re.MULTILINE)
JOINT = re.compile(r"^(\w+(?:, \*{0,2}\w+)+)\n((?:    .*\n?)+)", re.MULTILINE)
REFERS = re.compile(r"As (?:for|given to) `")
TRUE_OF_EACH = {
    "None where there is no number.",
    "Of the rule's Normal prior.",
    "Pseudo-count that the rule's Beta prior begins with; 1 unless given.",
    "Shown below the title; by default left out.",
    "Where it is.",
    "Where it shows; None unless it is one alone.",
}


def shown() -> Iterator[tuple[str, object]]:
    """Give every object on the pages of the API, members too, by name."""
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        for name in SHOWN.findall(page.read_text(encoding="utf-8")):
            parent, _, last = name.rpartition(".")
            thing = getattr(importlib.import_module(parent), last)
            yield name, thing
            if inspect.ismodule(thing) or inspect.isclass(thing):
                members = inspect.getmembers(thing, lambda each: callable(each) or isinstance(each, property))
                yield from ((f"{name}.{own}", member) for own, member in members if not own.startswith("_"))


def joint_entries(docstring: str) -> list[tuple[str, str]]:
    """Return the entries of several parameters, and their texts."""
    return [(names, " ".join(text.split())) for names, text in JOINT.findall(docstring)]


def test_every_public_name_is_there_once():
    text = "".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs" / "api").glob("*.md")))
    named = Counter(NAMED.findall(text))
    assert [name for name, times in named.items() if times > 1] == []
    assert set(named) == set(unbandit.__all__) - {"__version__"}
    assert "`unbandit.__version__`" in text


def test_an_entry_of_several_parameters_is_found():
    text = "Say.\n\nParameters\n----------\nlow, high\n    The ends\n    of it.\nlevel, seed\n    Of it.\nx\n    It."
    assert joint_entries(text) == [("low, high", "The ends of it."), ("level, seed", "Of it.")]


def test_parameters_share_a_text_only_where_it_is_true_of_each():
    found = {(name, *entry) for name, thing in shown() for entry in joint_entries(inspect.getdoc(thing) or "")}
    texts = {text for _, _, text in found}
    assert len(found) > 10
    assert texts >= TRUE_OF_EACH
    assert {entry for entry in found if entry[2] not in TRUE_OF_EACH and not REFERS.match(entry[2])} == set()
