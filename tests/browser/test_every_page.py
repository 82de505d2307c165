"""Every page, wide and narrow, light and dark: nothing sticks out, and axe-core finds no barrier."""

from __future__ import annotations

import pytest
from browsers import barriers
from visiting import PLACES, bring

WIDE, NARROW = {"width": 1200, "height": 850}, {"width": 390, "height": 844}


@pytest.mark.parametrize("place", list(PLACES))
def test_a_page_is_open_to_everyone(opened, log, place):
    checker = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed")
    axe = checker.Axe()
    page = opened()
    PLACES[place](page, log)
    for details in page.query_selector_all("details:not([open]) > summary"):
        if details.is_visible():
            details.click()
    grounds = set()
    for size, scheme in ((WIDE, "light"), (NARROW, "dark")):  # colours do not depend on the width
        page.set_viewport_size(size)
        page.emulate_media(color_scheme=scheme)
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert barriers(page, axe) == {}, (size, scheme)
    assert len(grounds) == 2
    if place == "waiting":
        page.click("text=Cancel")
        page.wait_for_selector("text=Begin again")


def test_a_narrow_table_can_be_scrolled_by_itself(opened, log):
    page = opened("/", viewport=NARROW)
    header = ",".join(f"column{at}" for at in range(30))
    bring(page, f"arm,{header}\n".encode() + b"".join(b"A" + b",1" * 30 + b"\n" for _ in range(9)))
    page.wait_for_selector(".rows-box")
    page.wait_for_function("(box => box.scrollWidth > box.clientWidth)(document.querySelector('.rows-box'))")  # styled
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".rows-box")
    beginning, _ = box.screenshot(), box.evaluate("box => { box.style.setProperty('--shade', 'transparent'); }")
    assert box.screenshot() != beginning  # the edge is shaded: there is more


def test_targets_are_large_enough_for_a_finger(opened, log):
    page = opened("/", viewport=NARROW)
    for place in ("home", "look", "simulate"):
        page.goto("/")
        PLACES[place](page, log)
        page.wait_for_function("getComputedStyle(document.querySelector('nav a')).display == 'flex'")  # has its style
        heights = page.evaluate(
            """targets => [...document.querySelectorAll(targets)]
                .filter(each => each.checkVisibility({ visibilityProperty: true }))
                .map(each => [each.getBoundingClientRect().height, each.outerHTML.slice(0, 200)])
                .filter(([height]) => height > 1)""",
            "button, .button, input[type=text], select, summary, nav a, .option",
        )
        assert len(heights) >= 3
        assert [target for height, target in heights if height < 43.9] == []


def test_motion_is_left_out_for_those_who_ask(opened, log):
    page = opened("/", reduced_motion="reduce")
    PLACES["waiting"](page, log)
    assert page.evaluate("getComputedStyle(document.getElementById('share')).animationName") == "none"
    page.click("text=Cancel")
    page.wait_for_selector("text=Begin again")
