"""The report as a file: opened from disk, without a network, by everyone."""

from __future__ import annotations

import pytest

import unbandit as ub

WIDE, NARROW = {"width": 1200, "height": 850}, {"width": 375, "height": 812}
NAMES = ["<script>alert(1)</script>", "الذراع الأول", "x" * 500, "D"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write reports that look as different as they can."""
    folder = tmp_path_factory.mktemp("reports")
    four = ub.Instance([1.0, 0.7, 0.4, 0.0], noise=0.5)
    known = dict(zip(NAMES, four.means.tolist(), strict=True))
    actions = ub.UCB(alpha=0.25).demonstrate(four, 1_000, seed=1).actions
    made = {
        "means": ub.report(
            ub.ActionLog.from_codes(actions, NAMES), "ucb:alpha=0.25", best_mean=1.0, sigma=0.5, truth=known
        ),
        "warned": ub.report(ub.Uniform().demonstrate(four, 300, runs=2, seed=1), "ucb:alpha=0.25"),
        "bounds": ub.report(ub.SAE().demonstrate(four, 200, seed=1), "sae", sigma=1.0),
    }
    for name, report in made.items():
        report.write(folder / f"{name}.html")
    return folder


@pytest.fixture
def page(browser):
    """Open a page that counts what should never happen."""
    context = browser.new_context(bypass_csp=True)  # axe is a script, which the report itself does not allow
    opened = context.new_page()
    opened.wrong = []
    opened.on("dialog", lambda shown: (opened.wrong.append(shown.message), shown.dismiss()))
    opened.on("console", lambda said: opened.wrong.append(said.text))
    opened.on("request", lambda asked: asked.url.startswith(("file:", "data:")) or opened.wrong.append(asked.url))
    yield opened
    assert opened.wrong == []
    context.close()


@pytest.mark.parametrize("name", ["means", "warned", "bounds"])
def test_a_report_is_open_to_everyone(page, files, name):
    checker = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")
    axe = checker.Axe()
    page.goto((files / f"{name}.html").as_uri())
    for size, scheme in ((WIDE, "light"), (NARROW, "dark")):  # colours do not depend on the width
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        found = axe.run(page).response["violations"]
        assert {each["id"]: [node["html"][:200] for node in each["nodes"][:3]] for each in found} == {}, (size, scheme)


def test_pictures_are_drawn_and_names_are_only_names(page, files):
    page.goto((files / "means.html").as_uri())
    sizes = page.evaluate("[...document.images].map(image => [image.complete, image.naturalWidth])")
    assert len(sizes) >= 6
    assert all(complete and width > 100 for complete, width in sizes)
    assert page.locator("table.arms tbody th").first.inner_text() == NAMES[0]
    assert page.locator("script").count() == 0


def test_figures_fit_a_phone(page, files):
    page.goto((files / "means.html").as_uri())
    widths, drawn = "[...document.querySelectorAll('.frame')].map(each => each.scrollWidth - each.clientWidth)", {}
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)
        page.wait_for_function("[...document.images].every(image => image.complete && image.naturalWidth)")
        assert set(page.evaluate(widths)) == {0}
        drawn[size["width"]] = page.evaluate("[...document.images].map(image => image.width / image.naturalWidth)")
    assert all(scale > 1 for scale in drawn[WIDE["width"]])
    assert all(0.9 < scale < 1 for scale in drawn[NARROW["width"]])  # text of 12 pixels stays legible


def test_the_keyboard_is_enough(page, files):
    page.set_viewport_size(NARROW)
    page.goto((files / "means.html").as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "report"
    table = page.locator("[role=region]").first
    table.focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelector('[role=region]').scrollLeft > 0")


def test_paper_is_never_dark(page, files):
    page.emulate_media(media="print", color_scheme="dark")
    page.goto((files / "means.html").as_uri())
    colours = "[document.body, document.querySelector('.frame')].map(each => getComputedStyle(each).backgroundColor)"
    assert page.evaluate(colours) == ["rgb(255, 255, 255)"] * 2
    assert page.evaluate("getComputedStyle(document.querySelector('.frame img')).filter") == "none"
