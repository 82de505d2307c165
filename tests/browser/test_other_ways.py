"""The same visits with a keyboard alone, and without JavaScript."""

from __future__ import annotations

import time

from visiting import ANSWERED

PRESSES = 120
"""After so many presses of Tab, a place counts as out of reach."""


def tabbed_to(page, place):
    """Press Tab until the place has the focus; every stop on the way must be seen."""
    for _ in range(PRESSES):
        page.keyboard.press("Tab")
        found = page.evaluate(
            """place => {
                const here = document.activeElement;
                if (here === document.body) return "body";
                const style = getComputedStyle(here), box = here.getBoundingClientRect();
                const ringed = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
                if (!ringed || !box.width || !box.height) return `not seen: ${here.outerHTML.slice(0, 200)}`;
                return here.matches(place) ? "here" : "elsewhere";
            }""",
            place,
        )
        assert not found.startswith("not seen"), found
        if found == "here":
            return
    raise AssertionError(f"{place} cannot be reached")


def test_from_the_first_page_to_an_answer_with_the_keyboard_alone(opened, log):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"
    page.keyboard.press("Enter")
    tabbed_to(page, "#file")
    page.set_input_files("#file", files=[{"name": "log.csv", "mimeType": "text/csv", "buffer": log}])
    tabbed_to(page, "button.main")
    page.keyboard.press("Enter")
    page.wait_for_selector("#field-rule")
    tabbed_to(page, "input[name=rule]")
    while not page.is_checked("#rule-ucb"):
        page.keyboard.press("ArrowDown")
    tabbed_to(page, "#field-ucb-preset")
    page.keyboard.press("ArrowDown")
    assert page.input_value("#field-ucb-preset") == "usual"
    tabbed_to(page, "#field-ucb-alpha")
    page.keyboard.type("0.25")
    tabbed_to(page, "#field-sigma")
    page.keyboard.type("0.5")
    tabbed_to(page, "summary")
    page.keyboard.press("Enter")
    tabbed_to(page, "select[name=level]")
    page.keyboard.press("ArrowUp")
    tabbed_to(page, "button.main")
    page.keyboard.press("Space")
    page.wait_for_selector(ANSWERED)
    assert "90%" in page.inner_text("main")
    tabbed_to(page, ".downloads a")
    tabbed_to(page, "footer, form[action$=forget] button")


def test_the_whole_way_without_javascript(opened, log):
    page = opened(java_script_enabled=False)
    page.set_input_files("#file", files=[{"name": "log.csv", "mimeType": "text/csv", "buffer": log}])
    page.click("text=Continue")
    page.check("#rule-ucb")
    page.select_option("#field-ucb-preset", "usual")
    page.fill("#field-ucb-alpha", "2")
    page.click("button.main")
    page.wait_for_selector("#errors")
    page.fill("#field-ucb-alpha", "0.25")
    page.fill("#field-sigma", "0.5")
    page.click("button.main")
    page.wait_for_selector(ANSWERED)
    with page.expect_download() as waiting:
        page.click(f"{ANSWERED} a >> nth=0")
    assert waiting.value.path().stat().st_size > 0
    page.click("text=Delete this answer")
    page.wait_for_selector("#file")


def test_waiting_and_cancelling_without_javascript(opened):
    page = opened("/look?example=battery", java_script_enabled=False)
    page.check("#rule-unknown")
    page.click("button.main")
    page.wait_for_selector("progress")
    began, first = time.monotonic(), page.inner_text("#seconds")
    while page.locator("#seconds").count() and page.inner_text("#seconds") == first:
        assert time.monotonic() - began < 300, "the page did not look again"
        time.sleep(0.3)
    page.click("text=Cancel")
    page.wait_for_selector("text=Begin again")
