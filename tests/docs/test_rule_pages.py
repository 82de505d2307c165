"""Every rule has a page, with a formula, a picture, how it is inverted, when that fails, and an example that runs."""

from __future__ import annotations

import pytest
from documents_shown import ROOT, blocks

import unbandit

FOLDER = ROOT / "docs" / "rules"
RULES = [name for name, rule in unbandit.rules().items() if rule.__module__.startswith("unbandit.")]

SECTIONS = ("The rule", "What its log looks like", "How it is inverted", "When it fails", "Parameters")


def test_there_are_pages_for_all_rules_and_no_others():
    assert sorted(page.stem for page in FOLDER.glob("*.md")) == sorted([*RULES, "index"])


@pytest.mark.parametrize("name", RULES)
def test_a_rules_page_is_whole(name):
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8")
    titles = [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]
    assert tuple(titles[: len(SECTIONS)]) == SECTIONS
    assert "$$" in text.partition("## The rule")[2].partition("\n## ")[0]
    kinds = [block.kind for block in blocks(FOLDER / f"{name}.md")]
    assert {"python", "{picture} timeline", "{parameters}"} <= set(kinds)
    values = unbandit.rules()[name].reveals == "values"
    assert ("{picture} arms" in kinds) == ("{calibration}" in kinds) == values


def test_the_list_of_rules_names_them_all():
    (listed,) = [block for block in blocks(FOLDER / "index.md") if block.kind == "{rules}"]
    assert listed.text == ""
    named = {
        line
        for block in blocks(FOLDER / "index.md")
        if block.kind == "{toctree}"
        for line in block.text.splitlines()
        if line and not line.startswith(":")
    }
    assert named == set(RULES)
