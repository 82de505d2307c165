"""Draw docs/demo.gif: `unbandit demo` in a terminal, then the local page, in half a minute: `make pictures`.

Needs an installed browser, and the extra web.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib as mpl
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.text import Text

from unbandit import datasets
from unbandit.demonstrators import UCB
from unbandit.reporting.pdf import find_browser

ROOT = Path(__file__).parent.parent
PROGRAM = Path(sys.executable).parent / "unbandit"
ENVIRONMENT = os.environ | {"PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ.get('PATH', '')}"}

WIDE, HIGH, STRIP = 1040, 640, 44  # pixels; the strip below has a caption
COLUMNS = 112  # characters of a line in the terminal
SURFACES, COLOURS = 24, 56  # of the palette: the most frequent colours as they are, and those that cover the rest
LARGEST = 500_000  # bytes

TERMINAL = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; background: #17212b; }}
pre {{ margin: 0; padding: 12px 18px; font: 15px/17px "DejaVu Sans Mono", monospace; color: #e8edf2; }}
</style><pre>{}</pre>"""


@dataclass
class Film:
    """Frames with the time that each is shown."""

    page: Page
    frames: list[Image.Image] = field(default_factory=list)
    milliseconds: list[int] = field(default_factory=list)

    def shoot(self, caption: str, seconds: float) -> None:
        """Take what the browser shows, with a caption below it."""
        shown = Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")
        frame = Image.new("RGB", (WIDE, HIGH + STRIP), "#1d5b79")
        frame.paste(shown)
        letters = ImageFont.truetype(str(Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), 18)
        draw = ImageDraw.Draw(frame)
        draw.text((WIDE / 2, HIGH + STRIP / 2), caption, fill="white", font=letters, anchor="mm")
        self.frames.append(frame)
        self.milliseconds.append(round(1_000 * seconds))

    def type(self, command: str, caption: str) -> None:
        """Show a command being typed into an empty terminal."""
        for end in range(0, len(command) + 1, 2):
            self.show_terminal(f"$ {command[:end]}█", caption, 0.12)

    def show_terminal(self, ansi: str, caption: str, seconds: float) -> None:
        """Show a terminal with a text in it."""
        console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
        console.print(Text.from_ansi(ansi))
        self.page.set_content(TERMINAL.format(console.export_html(inline_styles=True, code_format="{code}")))
        self.shoot(caption, seconds)

    def save(self, path: Path) -> None:
        """Write the frames as one looped GIF with one palette, and refuse to make it large."""
        sheet = Image.new("RGB", (WIDE, sum(frame.height for frame in self.frames)))
        for place, frame in enumerate(self.frames):
            sheet.paste(frame, (0, place * frame.height))
        frequent = sorted(sheet.getcolors(WIDE * sheet.height) or (), reverse=True)[:SURFACES]
        covering = sheet.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).getpalette() or []
        palette = Image.new("P", (1, 1))
        palette.putpalette([part for _, colour in frequent for part in colour] + covering[: 3 * COLOURS])
        first, *others = (frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in self.frames)
        held = io.BytesIO()
        first.save(held, "GIF", save_all=True, append_images=others, duration=self.milliseconds, loop=0)
        size, seconds = held.tell(), sum(self.milliseconds) / 1_000
        if size > LARGEST:
            raise SystemExit(f"The picture has {size:,} bytes, more than {LARGEST:,}. Take fewer frames or colours.")
        path.write_bytes(held.getvalue())
        print(f"Written: {path.relative_to(ROOT)}, {seconds:.0f} s, {size // 1_000} kB")


def main() -> None:
    """Film the demo in a terminal, then a visit to the page."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        film = Film(browser.new_page(viewport={"width": WIDE, "height": HIGH}))
        film_demo(film, folder)
        film_page(film, folder)
        browser.close()
        film.save(ROOT / "docs" / "demo.gif")


def film_demo(film: Film, folder: str) -> None:
    """Show `unbandit demo`: the choices, then the table line by line, then what was written."""
    told = ENVIRONMENT | {"COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"}
    done = subprocess.run([PROGRAM, "demo"], cwd=folder, env=told, check=True, capture_output=True, text=True)
    lines = ["$ unbandit demo", *done.stdout.splitlines()]
    rule = next(at for at, line in enumerate(lines) if "───" in line)
    last = max(at for at, line in enumerate(lines) if line.rstrip().endswith("yes"))
    film.type("unbandit demo", "A simulated experiment, whose rewards are then hidden")
    film.show_terminal("\n".join(lines[:4]), "All that is left: which protocol was tested when", 2.5)
    for at in range(rule + 2, last + 1, 3):
        film.show_terminal("\n".join(lines[:at]), "From that alone: the lifetime of every protocol", 0.4)
    film.show_terminal("\n".join(lines[: last + 1]), "Estimates with intervals, beside the hidden truth", 3.0)
    film.show_terminal("\n".join(lines), "The best one was found, and a report is written", 2.5)


@contextmanager
def served(folder: str) -> Iterator[str]:
    """Run the page, and return its address."""
    command = [PROGRAM, "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as running:
        try:
            line = next(line for line in running.stdout or () if "http://" in line)
            yield line[line.index("http://") :].split()[0]
        finally:
            running.terminate()


def film_page(film: Film, folder: str) -> None:
    """Show `unbandit serve`: the log of the demo is uploaded, looked at and answered."""
    page = film.page
    film.type("unbandit serve", "The same in a browser, without a line of code")
    with served(folder) as address:
        page.goto(address)
        film.shoot("Drop a log onto the page", 2.0)
        page.set_input_files("#file", next(Path(folder).rglob("log.csv")))
        page.click("text=Continue")
        film.shoot("How the file was read", 2.0)
        page.check("#rule-ucb")
        rule = UCB.variance_adjusted(alpha=0.25, sigma=datasets.load("battery-high", arms=20).sigma)
        page.select_option("#field-ucb-preset", "usual")
        for name in ("alpha", "scale", "sigma"):
            if getattr(rule, name, None) is not None and page.locator(f"#field-ucb-{name}").count():
                page.fill(f"#field-ucb-{name}", str(getattr(rule, name)))
        page.fill("#field-best_mean", "1")
        scroll_to(page, "#rule-ucb", "center")
        film.shoot("Which rule made the choices?", 2.0)
        scroll_to(page, "#field-best_mean", "center")
        film.shoot("What else is known?", 2.0)
        page.click("button.main")
        page.wait_for_selector("ul.downloads")
        film.shoot("The answer, in one sentence, with files to take home", 3.0)
        for part, caption in (("table", "Every arm with its interval"), ("figure", "And as a picture")):
            scroll_to(page, f"main {part}")
            film.shoot(caption, 3.0)


def scroll_to(page: Page, selector: str, block: str = "start") -> None:
    """Move the first such element to the top of the window, or to its middle."""
    page.evaluate(f"document.querySelector('{selector}').scrollIntoView({{block: '{block}'}})")
    page.evaluate("window.scrollBy(0, -7)")


if __name__ == "__main__":
    main()
