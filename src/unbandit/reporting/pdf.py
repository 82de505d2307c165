"""The report on paper: printed by a browser that is installed, for none knows pages better."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from unbandit.errors import OutputError, ParameterError
from unbandit.files import written_whole

__all__ = ["find_browser", "write_pdf"]

NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "msedge",
    "brave-browser",
)
"""Browsers that print a page without a window; the first that is found is taken."""

PLACES = {
    "darwin": (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    ),
}
"""Where they are on systems that keep programs off the path."""

SECONDS = 120
"""Longer than that no page takes."""


def find_browser() -> str:
    """Return an installed browser, or say what to install."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    for place in PLACES.get(sys.platform, ()):
        if Path(place).is_file():
            return place
    raise ParameterError(
        "expected an installed browser that can print (Chromium, Chrome or Edge), and found none. Install one, "
        "for example with: apt install chromium; or open the HTML report in any browser and print it.",
        parameter="pdf",
    )


def write_pdf(html: str, path: str | os.PathLike[str]) -> None:
    """Print a page into a PDF; whole, or not at all.

    The page loads nothing from elsewhere. The browser gets a fresh profile, in a folder that is removed afterwards, so
    it knows nothing of other visits and remembers nothing of this one.
    """
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="unbandit-") as folder, written_whole(path) as temporary:
        page, printed = Path(folder) / "report.html", Path(folder) / "report.pdf"
        page.write_text(html, encoding="utf-8")
        locked_up = not (hasattr(os, "geteuid") and os.geteuid() == 0)  # root has no sandbox to offer
        said = _print(browser, page, printed, Path(folder), sandbox=locked_up)
        if not printed.is_file() and locked_up and "sandbox" in said.lower():  # nor have many containers
            said = _print(browser, page, printed, Path(folder), sandbox=False)
        if not printed.is_file():
            reason = said.strip().splitlines()[-1][:200] if said.strip() else "it said nothing"
            raise OutputError(
                f"{os.fspath(path)}: could not be printed by {browser} ({reason}). Open the HTML report in a browser "
                "and print it there."
            )
        shutil.copyfile(printed, temporary)


def _print(browser: str, page: Path, printed: Path, folder: Path, *, sandbox: bool) -> str:
    """Let the browser print, and return what it said."""
    options = [
        "--headless",
        "--disable-gpu",
        "--disable-background-networking",
        "--disable-extensions",
        "--no-first-run",
        "--no-pdf-header-footer",
        f"--user-data-dir={folder / 'profile'}",
        f"--print-to-pdf={printed}",
    ]
    if not sandbox:  # the page is ours, holds no script, and may load nothing
        options.append("--no-sandbox")
    try:
        done = subprocess.run(
            [browser, *options, page.as_uri()],
            capture_output=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {SECONDS} seconds"
    except OSError as error:
        return error.strerror or str(error)
    return done.stderr.decode("utf-8", "replace")
