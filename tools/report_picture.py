"""Draw docs/report.png, the picture at the top of the README: `make pictures`. Needs an installed browser."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from unbandit.reporting.pdf import find_browser

ROOT = Path(__file__).parent.parent
WIDE, HIGH = 1100, 1000


def main() -> None:
    """Write the demo's report, open it in a browser, and keep what one sees first."""
    target = ROOT / "docs" / "report.png"
    with tempfile.TemporaryDirectory() as folder:
        program = Path(sys.executable).parent / "unbandit"
        subprocess.run([program, "demo", "--folder", folder], check=True, capture_output=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=str(find_browser()), args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": WIDE, "height": HIGH}, device_scale_factor=1.5)
            page.goto((Path(folder) / "report.html").as_uri())
            page.screenshot(path=target)
            browser.close()
    print(f"Written: {target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
