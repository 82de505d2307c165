"""Every name on the architecture page stands for something that exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "unbandit"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PROSE = re.sub(r"^```.*?^```", "", PAGE, flags=re.M | re.S)
BLOCKS = [block for block in re.split(r"\n\n|\n(?=\|)|\n(?=- )", PROSE) if block.strip()]
SPANS = sorted(set(re.findall(r"`([^`\n]+)`", PROSE)))
TARGETS = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))

PATHS = re.compile(r"[\w./-]*(\.(py|pyi|npy|toml|md|html|css)|/)")
WRITTEN = ("study.json",)  # files that the package writes
FILES = [span for span in SPANS if PATHS.fullmatch(span)]
IN_FILES = [span for span in SPANS if re.fullmatch(r"[\w./-]+\.py:\w+", span)]
NAMES = [
    span
    for span in SPANS
    if re.fullmatch(r"[A-Za-z_]\w+(\.[A-Za-z_]\w*)*(\(.*\))?", span) and span not in (*FILES, *WRITTEN)
]
COMMANDS = [span for span in SPANS if span.startswith("make ")]


@cache
def names_defined() -> frozenset[str]:
    """Return every function, class, variable, parameter, attribute and module name of the package."""
    names: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        names.add(path.stem if path.stem != "__init__" else path.parent.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.keyword) and node.arg:
                names.add(node.arg)
    return frozenset(names)


def defined_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def test_the_page_names_many_things():
    assert len(FILES) > 60
    assert len(IN_FILES) > 5
    assert len(NAMES) > 30


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split("`")[1] if "`" in block else "")
def test_every_file_exists(block):
    """A path is relative to the package or the repository, a bare name also to a room that the same block names."""
    spans = [span for span in re.findall(r"`([^`\n]+)`", block) if PATHS.fullmatch(span)]
    rooms = [PACKAGE, ROOT, *(PACKAGE / span for span in spans if span.endswith("/"))]
    assert [span for span in spans if not any((room / span).exists() for room in rooms)] == []


@pytest.mark.parametrize("span", IN_FILES)
def test_every_function_is_in_its_file(span):
    path, _, name = span.partition(":")
    assert name in defined_in(PACKAGE / path)


@pytest.mark.parametrize("span", NAMES)
def test_every_name_is_defined(span):
    for name in span.partition("(")[0].removeprefix("unbandit.").removeprefix("ub.").split("."):
        assert name in names_defined()


@pytest.mark.parametrize("span", COMMANDS)
def test_every_make_target_exists(span):
    assert span.split()[1] in TARGETS


def test_every_room_is_on_the_page():
    rooms = {f"{path.name}/" for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert rooms <= set(FILES)


def test_the_page_leads_from_estimate_to_the_formula():
    steps = ["estimators/api.py:estimate", "kernels/procedures.py:procedure_1", "kernels/procedures.py:procedure_2"]
    assert set(steps) <= set(IN_FILES)
