"""The report as PDF, printed by an installed browser."""

import os
import shutil
import subprocess
import sys
import tempfile
from itertools import chain
from pathlib import Path

from unbandit import checks
from unbandit.errors import OutputError, ParameterError
from unbandit.files import written_whole

NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge", "brave-browser"),
)
"""Browsers that print a page without a window, in order of preference."""

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
"""Where they are on systems that do not put programs on the path."""


def installed_browser() -> str | None:
    """Return an installed browser that can print; None if there is none."""
    on_path = (found for name in NAMES if (found := shutil.which(name)))
    elsewhere = (place for place in PLACES.get(sys.platform, ()) if Path(place).is_file())
    return next(chain(on_path, elsewhere), None)


def find_browser() -> str:
    """Return an installed browser, or say what to install."""
    if browser := installed_browser():
        return browser
    text = "expected an installed browser that can print (Chromium, Chrome or Edge), and found none."
    remedy = "Install one, for example with apt install chromium, or print the HTML report from any browser."
    raise ParameterError(text, parameter="pdf", remedy=remedy)


def write_pdf(html: str, path: str | os.PathLike[str], seconds: float = 120, *, paper: str = "A4") -> None:
    """Print a page as PDF on A4 or letter paper; nothing is left behind if that fails.

    The page loads nothing, and the browser gets a fresh profile that is removed afterwards.
    """
    size = checks.one_of("paper", paper, ("A4", "letter"))
    html = html.replace("</style>", f"@page {{ size: {size}; }}\n</style>", 1)
    browser = find_browser()
    with tempfile.TemporaryDirectory(prefix="unbandit-") as folder, written_whole(path) as temporary:
        page, printed = Path(folder) / "report.html", Path(folder) / "report.pdf"
        page.write_text(html, encoding="utf-8")
        sandbox = not (hasattr(os, "geteuid") and os.geteuid() == 0)  # root has no sandbox to offer
        output = _print(browser, page, printed, Path(folder), seconds, sandbox=sandbox)
        if not printed.is_file() and sandbox and "sandbox" in output.lower():  # nor have many containers
            output = _print(browser, page, printed, Path(folder), seconds, sandbox=False)
        if not printed.is_file():
            reason = output.strip().splitlines()[-1][:200] if output.strip() else "it said nothing"
            text = f"{os.fspath(path)}: could not be printed by {browser} ({reason})."
            raise OutputError(text, remedy="Open the HTML report in a browser and print it there.")
        shutil.copyfile(printed, temporary)


def _print(browser: str, page: Path, printed: Path, folder: Path, seconds: float, *, sandbox: bool) -> str:
    """Let the browser print, and return its messages."""
    options = [
        *("--headless", "--disable-gpu", "--disable-background-networking", "--disable-extensions", "--no-first-run"),
        *("--no-pdf-header-footer", f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={printed}"),
        *([] if sandbox else ["--no-sandbox"]),  # the page is ours, holds no script, and may load nothing
    ]
    try:
        done = subprocess.run(
            [browser, *options, page.as_uri()], capture_output=True, timeout=seconds, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"it did not end within {seconds:g} seconds"
    except OSError as error:
        return error.strerror or str(error)
    return done.stderr.decode("utf-8", "replace")
