"""The installed browser, and what axe-core finds on a page, for all tests that look at pages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--no-sandbox", "--disable-background-networking"]


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start the installed browser; without one the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="tests in a browser need playwright")
    installed = next(filter(None, map(shutil.which, BROWSERS)), None)
    if installed is None:
        pytest.skip(f"there is no browser here: none of {', '.join(BROWSERS)} is installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=installed, args=FLAGS)
        yield started
        started.close()


def barriers(page: Any, axe: Any) -> dict[str, list[str]]:
    """Return what axe-core finds: the rule, and the first places."""
    found = axe.run(page).response["violations"]
    return {each["id"]: [node["html"][:200] for node in each["nodes"][:3]] for each in found}
