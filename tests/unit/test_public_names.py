"""What `import unbandit` offers: the names it says, all of them, however the rest is imported."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import unbandit

MODULES = [module.name for module in pkgutil.walk_packages(unbandit.__path__, "unbandit.")]


def test_dir_shows_the_public_names():
    assert sorted(dir(unbandit)) == sorted(unbandit.__all__)
    assert len(set(unbandit.__all__)) == len(unbandit.__all__)


@pytest.mark.parametrize("name", unbandit.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(importlib.import_module("unbandit"), name) is not None


def test_star_imports_them_all():
    names: dict[str, object] = {}
    exec("from unbandit import *", names)
    assert set(unbandit.__all__) <= set(names)


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="unbandit attribute nothing"):
        _ = unbandit.nothing


@pytest.mark.parametrize("module", MODULES)
def test_every_module_says_what_it_offers(module):
    found = importlib.import_module(module)
    for name in getattr(found, "__all__", []):
        assert hasattr(found, name), f"{module}.{name}"


SHADOWS = """
import {first}
import unbandit
{then}
assert callable(unbandit.estimate) and unbandit.estimate.__name__ == "estimate", unbandit.estimate
assert callable(unbandit.sensitivity), unbandit.sensitivity
assert callable(unbandit.rules) and isinstance(unbandit.Estimate, type)
assert unbandit.datasets.__name__ == "unbandit.datasets" and callable(unbandit.datasets.battery)
assert unbandit.theory.__name__ == "unbandit.theory"
"""


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ("unbandit", "import unbandit.estimators"),
        ("unbandit.cli", "import unbandit.cli.estimate, unbandit.cli.simulate"),
        ("unbandit.estimators.api", "from unbandit import estimate; import unbandit.estimators.procedures"),
        ("unbandit.log", "import unbandit.datasets.battery, unbandit.plots, unbandit.theory"),
    ],
)
def test_a_function_is_not_shadowed_by_a_module(first, then):
    done = subprocess.run(
        [sys.executable, "-c", SHADOWS.format(first=first, then=then)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_package_is_quick():
    heavy = ["numba", "polars", "scipy", "matplotlib", "pydantic", "numpy"]
    code = f"import sys, unbandit; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("old", ["settling", "Settling", "hesitation", "Hesitation"])
def test_names_of_0_5_are_gone(old):
    with pytest.raises(AttributeError, match=f"unbandit attribute {old}"):
        getattr(unbandit, old)
