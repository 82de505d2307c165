"""What a visitor does, in few words."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

ANSWERED = "ul.downloads"
"""What only the page of an answer has."""


def bring(page: Page, data: bytes, name: str = "log.csv") -> None:
    """Choose a file and have it looked at."""
    page.set_input_files("#file", files=[{"name": name, "mimeType": "text/csv", "buffer": data}])
    page.click("text=Continue")


def ask(page: Page) -> None:
    """Ask for the estimate, and wait until it is there."""
    page.click("button.main")
    page.wait_for_selector(ANSWERED)


def wide_home(page: Page, log: bytes) -> None:
    """Be at the first page."""


def looked(page: Page, log: bytes) -> None:
    """Look at an upload whose arms have strange names."""
    strange = log.replace(b",A\n", b",<script>alert(1)</script>\n").replace(b",B\n", ",אבג 🙂\n".encode())
    bring(page, strange.replace(b",C\n", b"," + b"long " * 60 + b"\n"))
    page.wait_for_selector("#field-rule")


def unusable(page: Page, log: bytes) -> None:
    """Bring a table without arms."""
    bring(page, b"x,y\n1,2\n3,4\n")
    page.wait_for_selector("#problem")


def mistaken(page: Page, log: bytes) -> None:
    """Fill in fields wrongly."""
    page.goto("/look?example=battery")
    page.fill("#field-ucb-alpha", "2")
    page.fill("#field-sigma", "abc")
    page.click("text=More options")
    page.fill("#field-horizon", "-1")
    page.click("button.main")
    page.wait_for_selector("#errors")


def simulated(page: Page, log: bytes) -> None:
    """Be at the second tab."""
    page.goto("/simulate")


def explained(page: Page, log: bytes) -> None:
    """Ask what a rule does, before it is chosen."""
    page.goto("/look?example=battery")
    with page.expect_popup() as opened:
        page.click("a[href='/rules/thompson']")
    opened.value.wait_for_selector("text=What its choices show")
    opened.value.close()
    assert page.locator("#field-rule").is_visible()  # the form is where it was
    page.goto("/rules/thompson")


def waited(page: Page, log: bytes) -> None:
    """Ask for something long, and be told again and again that it goes on."""
    state = '{"state": "running", "stage": "Weighing", "share": null, "seconds": 75, "ahead": 0}'
    page.route("**/state", lambda route: route.fulfill(body=state, content_type="application/json"))
    page.goto("/look?example=battery")
    page.check("#rule-unknown")
    page.click("button.main")
    page.wait_for_selector("text=1 min 15 s")


def answered(page: Page, log: bytes) -> None:
    """Have an example estimated."""
    page.goto("/look?example=battery")
    ask(page)


def shown_beside_the_truth(page: Page, log: bytes) -> None:
    """Have a simulation run."""
    page.goto("/simulate")
    page.fill("#field-horizon", "1000")
    ask(page)


def surveyed(page: Page, log: bytes) -> None:
    """See which rules fit a very short log."""
    bring(page, b"\n".join(log.splitlines()[:25]))
    page.fill("#field-sigma", "0.5")
    ask(page)


def recognised(page: Page, log: bytes) -> None:
    """Have the rule of a very short log found out."""
    bring(page, b"\n".join(log.splitlines()[:25]))
    page.check("#rule-unknown")
    page.fill("#field-sigma", "0.5")
    ask(page)
    page.wait_for_selector("text=Which rules are possible")


def refused(page: Page, log: bytes) -> None:
    """Ask of a record what it cannot tell."""
    page.goto("/look?example=trial")
    page.check("#rule-uniform")
    page.click("button.main")
    page.wait_for_selector("text=Begin again")


def lost(page: Page, log: bytes) -> None:
    """Go where there is nothing."""
    page.goto("/nowhere")


def chose_by_features(page: Page, log: bytes) -> None:
    """Bring a log of offers, and forget to say by which features they were chosen."""
    rows = [f"{at},{arm},{int(arm == 'AB'[at % 2])},{at % 3},{at % 5}" for at in range(1, 30) for arm in "AB"]
    bring(page, "\n".join(["round,arm,chosen,price,age", *rows]).encode())
    page.check("#field-feature-age")
    page.check("#rule-lints")
    page.click("button.main")
    page.wait_for_selector("#errors")


PLACES: dict[str, Callable[[Page, bytes], None]] = {
    "home": wide_home,
    "look": looked,
    "unusable": unusable,
    "mistakes": mistaken,
    "features": chose_by_features,
    "simulate": simulated,
    "rule": explained,
    "waiting": waited,
    "answer": answered,
    "simulation": shown_beside_the_truth,
    "which rules fit": surveyed,
    "which rule": recognised,
    "refusal": refused,
    "nowhere": lost,
}
