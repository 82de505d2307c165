"""The shape of the package: imports without cycles, names used once, files neither tiny nor too many."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import unbandit

SOURCE = Path(unbandit.__file__).parent
PROJECT = Path(__file__).parents[2] / "pyproject.toml"

MOST_FILES, MOST_LINES, FEWEST_LINES = 291, 72_500, 60
MOST_VERB_NAMES = 4
NOUNS = {"speed"}  # that end as verbs do


@cache
def modules() -> dict[str, Path]:
    """Return every module of the package by its dotted name."""
    named = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        named[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return named


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(modules()[module].read_text(encoding="utf-8"))


def imports(module: str) -> set[str]:
    """Return what a module imports of the package, wherever the statement stands, type-checking imports included."""
    known, found = modules(), set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {
                within if (within := f"{node.module}.{name.name}") in known else node.module for name in node.names
            }
    return (found & known.keys()) - {module, "unbandit"}


def exceptions() -> set[tuple[str, str]]:
    """Return the imports that the contract in pyproject.toml lists: those of the methods that draw."""
    contracts = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
    listed = [line for contract in contracts for line in contract.get("ignore_imports", ())]
    return {(importer, imported) for importer, _, imported in (line.partition(" -> ") for line in listed)}


def test_no_file_imports_itself_through_others():
    ignored = exceptions()
    graph = {
        module: {imported for imported in imports(module) if (module, imported) not in ignored}
        for module in modules()
        if module != "unbandit"  # the package itself finds public names when they are asked for
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(f"a cycle of imports: {' -> '.join(error.args[1])}") from None


def test_only_methods_that_draw_are_excepted():
    assert all(imported.startswith("unbandit.plots") for _, imported in exceptions())
    for importer, imported in exceptions():
        module = tree(importer)
        top = [node for node in module.body if isinstance(node, ast.ImportFrom)]
        names = {f"{node.module}.{name.name}" for node in top for name in node.names} | {node.module for node in top}
        assert imported not in names, f"{importer} imports {imported} at its top"
        assert imported in imports(importer), f"{importer} no longer imports {imported}: take it off the list"


def test_every_class_name_is_used_once():
    names = Counter(
        node.name for module in modules() for node in tree(module).body if isinstance(node, ast.ClassDef)
    )  # fmt: skip
    assert [name for name, count in names.items() if count > 1] == []


def test_modules_are_named_by_nouns():
    verbs = [name for name, path in modules().items() if re.search(r"(ing|ed)$", path.stem) and path.stem not in NOUNS]
    assert len(verbs) <= MOST_VERB_NAMES, verbs


def test_files_are_neither_tiny_nor_too_many():
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules().items()}
    free = ("__init__.py", "__main__.py", "_version.py")
    tiny = [
        name
        for name, count in lines.items()
        if count < FEWEST_LINES
        and modules()[name].name not in free
        and ".demonstrators." not in name
        and ".contexts.lin" not in name
    ]
    assert tiny == []
    assert len(lines) <= MOST_FILES
    assert sum(lines.values()) <= MOST_LINES
