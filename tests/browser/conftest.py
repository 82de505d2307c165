"""A real server and a real browser for all tests of this folder; without a browser they are skipped."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from browsers import started_browser

import unbandit as ub

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PATIENCE = 300_000
"""Milliseconds until something that should be on a page is missed: long, since a busy machine is no mistake of ours."""


@pytest.fixture(scope="package")  # its event loop must not outlive these tests: others run loops of their own
def browser() -> Iterator[Browser]:
    """Start the installed browser once."""
    with started_browser() as started:
        yield started


@pytest.fixture(scope="package")
def address(browser: Browser) -> Iterator[str]:
    """Start the page as `unbandit serve` does, and return where it is."""
    command = [sys.executable, "-u", "-c", "from unbandit.cli import main; main()", "serve", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            said = re.search(r"unbandit is at (http://\S+?)/?$", server.stdout.readline().strip())
            assert said is not None, "the server did not say where it is"
            yield said[1]
        finally:
            server.terminate()
            server.wait(120)


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Callable[..., Page]]:
    """Open pages that refuse whatever should never happen: dialogs, strangers, broken policies, broken scripts."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def watched(page: Page) -> Page:
        def dialog(shown: Any) -> None:
            wrong.append(f"a dialog: {shown.message}")
            shown.dismiss()

        def asked(request: Any) -> None:
            if not request.url.startswith((f"{address}/", "data:", "blob:")):
                wrong.append(f"a request to {request.url}")

        def logged(message: Any) -> None:
            if "Content Security Policy" in message.text:
                wrong.append(message.text)

        page.on("dialog", dialog)
        page.on("request", asked)
        page.on("console", logged)
        page.on("pageerror", lambda error: wrong.append(f"a broken script: {error}"))
        return page

    def opening(path: str = "/", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 850}, "base_url": address} | options)
        context.set_default_timeout(PATIENCE)
        contexts.append(context)
        page = watched(context.new_page())
        page.goto(path)
        return page

    yield opening
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.fixture(scope="session")
def log() -> bytes:
    """Return a log of UCB with three arms, as a CSV."""
    played = ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.6, 0.2], 0.5, ["A", "B", "C"]), 1_000, seed=1)
    return played.to_frame().write_csv().encode()
