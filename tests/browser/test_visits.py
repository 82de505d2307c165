"""From a file to an answer and home again, as visitors do it."""

from __future__ import annotations

import io
import json

import polars as pl
import pytest
from visiting import ANSWERED, PLACES, ask, bring
from workbooks import xlsx

import unbandit as ub
from unbandit.reporting.pdf import installed_browser

EVIL = "<script>alert(1)</script>"


def chosen_rule(page, name="ucb"):
    page.check(f"#rule-{name}")
    if page.locator(f"#field-{name}-preset").count():
        page.select_option(f"#field-{name}-preset", "usual")


def test_a_file_is_brought_looked_at_answered_and_taken_home(opened, log):
    page = opened()
    bring(page, log)
    assert page.inner_text("h1") == "log.csv"
    assert page.locator(".rows tbody tr").count() > 2
    assert page.locator(".role").all_inner_texts() == ["read as round", "read as arm"]
    chosen_rule(page)
    page.fill("#field-best_mean", "1")
    page.fill("#field-sigma", "0.5")
    ask(page)
    table = page.inner_text("main table >> nth=0")
    assert all(arm in table for arm in "ABC")
    taken = {}
    for link in page.locator(f"{ANSWERED} a").all():
        with page.expect_download() as waiting:
            link.click()
        taken[waiting.value.suggested_filename.rpartition(".")[2]] = waiting.value.path().read_bytes()
    assert {"csv", "json", "parquet", "html"} <= set(taken)
    assert ("pdf" in taken) == (installed_browser() is not None)
    assert taken.get("pdf", b"%PDF").startswith(b"%PDF")
    arms = ["A", "B", "C"]
    assert sorted(pl.read_csv(io.BytesIO(taken["csv"]))["arm"]) == arms
    assert sorted(pl.read_parquet(io.BytesIO(taken["parquet"]))["arm"]) == arms
    assert "ucb" in json.dumps(json.loads(taken["json"]))
    assert taken["html"].lower().startswith(b"<!doctype html>")
    page.click("text=Delete this answer")
    page.wait_for_selector("#file")


@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without JavaScript"])
def test_an_unreadable_file_is_refused_kindly(opened, script):
    page = opened(java_script_enabled=script)
    bring(page, b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "picture.csv")
    page.wait_for_load_state()
    assert "Traceback" not in page.content()
    assert page.locator("#problem, .message").count() == 1


def test_columns_can_be_corrected(opened, log):
    page = opened()
    bring(page, log.replace(b"round,arm", b"when,picked"))
    assert "cannot be used" in page.inner_text("#problem")
    page.select_option("#field-column-arm", "picked")
    page.select_option("#field-column-round", "when")
    page.click("text=Read it again")
    page.wait_for_selector("#field-rule")
    assert page.locator(".role").all_inner_texts() == ["read as round", "read as arm"]
    chosen_rule(page)
    ask(page)


def test_a_sheet_of_a_workbook_is_chosen_read_and_answered(opened, log):
    rows = [line.split(",") for line in log.decode().splitlines()]
    page = opened()
    bring(page, xlsx(Notes=[["who", "when"], ["me", "now"]], Choices=rows), "experiment.xlsx")
    assert "cannot be used" in page.inner_text("#problem")
    page.select_option("#field-sheet", "Choices")
    page.click("text=Read it again")
    page.wait_for_selector("#field-rule")
    assert page.inner_text("h1") == "experiment.xlsx"
    assert "1,000 rounds, 3 arms" in page.inner_text("main")
    chosen_rule(page)
    page.fill("#field-sigma", "0.5")
    ask(page)
    assert "--sheet Choices" in page.inner_text("main")


def test_the_example_of_a_person_is_answered_as_it_comes(opened):
    page = opened()
    page.click("text=A person choosing cards")
    page.wait_for_selector("#field-rule")
    assert page.is_checked("#rule-learning-softmax")
    assert page.input_value("#field-learning-softmax-rate") == "0.3"
    ask(page)
    said = page.inner_text("main")
    assert "learning-softmax:rate=0.3,temperature=0.25" in said
    assert all(f"deck {letter}" in page.inner_text("main table >> nth=0") for letter in "ABCD")


def test_a_number_that_nobody_knows_is_fitted(opened):
    played = ub.UCB1(exploration=1.0).demonstrate(ub.Instance([1.0, 0.6, 0.2], 0.5, ["A", "B", "C"]), 1_000, seed=1)
    page = opened()
    bring(page, played.to_frame().write_csv().encode())
    page.check("#rule-ucb1")
    assert page.input_value("#field-ucb1-preset") == "fit"  # what a visitor who leaves all blank asks for
    assert page.input_value("#field-ucb1-exploration") == ""
    page.fill("#field-sigma", "0.5")
    ask(page)
    with page.expect_download() as waiting:
        page.click(f"{ANSWERED} a[href*='json']")
    answer = json.loads(waiting.value.path().read_bytes())
    (fitted,) = answer["fitted"]
    assert fitted["parameter"] == "exploration"
    assert fitted["low"] < 1.0 < fitted["high"]
    name, value, _ = page.locator("[aria-label='Table: fitted numbers'] tbody tr >> nth=0").inner_text().split("\t")
    assert (name, float(value)) == ("exploration", pytest.approx(fitted["value"], rel=0.02))


@pytest.mark.parametrize("path", ["/look?example=battery", "/simulate"])
def test_the_chosen_rule_and_no_other_shows_its_fields(opened, path):
    page = opened(path)
    for name, rule in ub.rules().items():
        page.check(f"#rule-{name}")
        assert page.locator("fieldset[id^=fields-]").evaluate_all(
            "found => found.filter(each => each.checkVisibility()).map(each => each.id)"
        ) == [f"fields-{name}"]
        fields = page.locator(f"#fields-{name} :is(input, select)")
        sent = fields.evaluate_all("fields => fields.filter(f => f.type != 'hidden').map(f => f.name)")
        assert set(sent) <= {f"{name}.{parameter}" for parameter in (*rule.model_fields, "preset")}
        usual = page.locator(f"#fields-{name} > .fields :is(input, select)")
        assert usual.evaluate_all("fields => fields.every(each => each.checkVisibility())")


@pytest.mark.parametrize(
    ("rule", "said"), [("uniform", "do not depend on rewards"), ("explore-then-commit", "judged best")]
)
def test_rules_that_give_nothing_away_say_so(opened, rule, said):
    page = opened("/look?example=trial")
    chosen_rule(page, rule)
    page.click("button.main")
    page.wait_for_selector("text=Begin again")
    assert said in page.inner_text("main")


def test_mistakes_are_said_at_their_fields_and_can_be_mended(opened):
    page = opened("/look?example=battery")
    page.fill("#field-ucb-alpha", "2")
    page.click("button.main")
    page.wait_for_selector("#errors")
    assert page.evaluate("document.activeElement.id") == "errors"
    assert page.title().startswith("Correct: ")
    page.click("#errors a")
    assert page.evaluate("document.activeElement.id") == "field-ucb-alpha"
    assert page.get_attribute("#field-ucb-alpha", "aria-invalid") == "true"
    assert page.input_value("#field-ucb-alpha") == "2"
    page.fill("#field-ucb-alpha", "0.25")
    page.keyboard.press("Enter")
    page.wait_for_selector(ANSWERED)


def test_enter_asks_for_the_answer_and_back_brings_the_question(opened, log):
    page = opened()
    with page.expect_response("**/look") as looked:
        bring(page, log)
    chosen_rule(page)
    page.fill("#field-sigma", "0.5")
    page.keyboard.press("Enter")
    page.wait_for_selector(ANSWERED)
    if "no-store" in looked.value.headers["cache-control"]:
        pytest.skip("the browser is told to forget the page that it would go back to")
    page.click("button.back")
    page.wait_for_selector("#field-rule")
    assert page.input_value("#field-sigma") == "0.5"
    page.fill("#field-sigma", "0.7")
    ask(page)


def test_long_work_shows_where_it_stands_and_can_be_cancelled(opened):
    page = opened("/look?example=battery")
    page.check("#rule-unknown")
    page.click("button.main")
    page.wait_for_selector("progress")
    assert page.inner_text("#stage")
    page.click("text=Cancel")
    page.wait_for_selector("text=Begin again")
    assert "ancelled" in page.inner_text("h1")


def test_a_waiting_page_ends_by_itself_at_the_answer(opened):
    page = opened("/simulate")
    page.check("#source-means")
    page.check("#rule-thompson")
    page.fill("#field-means", "1, 0")
    page.fill("#field-horizon", "60")
    page.click("button.main")
    page.wait_for_selector(ANSWERED)


def test_a_server_that_was_stopped_is_told_of(opened):
    page = opened("/look?example=battery")
    page.check("#rule-unknown")
    page.route("**/state", lambda route: route.abort())
    page.click("button.main")
    page.wait_for_selector("text=The server does not answer. Was it stopped?")
    page.unroute("**/state")
    page.click("text=Cancel")
    page.wait_for_selector("text=Begin again")


def test_an_arm_that_is_a_script_is_shown_as_text(opened, log):
    page = opened()
    PLACES["look"](page, log)
    assert EVIL in page.inner_text(".rows")
    assert EVIL in page.inner_text(".pulled")
    chosen_rule(page)
    ask(page)
    assert EVIL in page.inner_text("main")
    assert page.locator("main script").count() == 0


def test_a_file_too_large_is_told_before_it_is_sent(opened, tmp_path):
    large = tmp_path / "large.csv"
    with large.open("wb") as file:
        file.truncate(65 * 1024**2)
    page = opened()
    page.set_input_files("#file", large)
    assert "65 MB" in page.inner_text("#file-said")
    page.click("text=Continue")
    assert page.url.endswith("/")
    page.set_input_files("#file", files=[{"name": "small.csv", "mimeType": "text/csv", "buffer": b"arm\nA\n"}])
    assert page.inner_text("#file-said") == "small.csv, 6 bytes"
    assert page.evaluate("document.getElementById('file').checkValidity()")


def test_a_file_can_be_dropped_anywhere(opened, log):
    page = opened()
    dropped = page.evaluate_handle(
        """text => {
            const carried = new DataTransfer();
            carried.items.add(new File([text], "dropped.csv", { type: "text/csv" }));
            return carried;
        }""",
        log.decode(),
    )
    page.dispatch_event("h1", "dragover", {"dataTransfer": dropped})
    assert "over" in (page.get_attribute("#drop", "class") or "")
    page.dispatch_event("h1", "drop", {"dataTransfer": dropped})
    assert page.inner_text("#file-said").startswith("dropped.csv")
    page.keyboard.press("Enter")
    page.wait_for_selector("#field-rule")
    assert page.inner_text("h1") == "dropped.csv"


def test_a_simulation_is_shown_beside_the_truth(opened):
    page = opened()
    page.click("nav >> text=Simulate")
    ask(page)
    assert "truth" in page.inner_text("main")
    drawn = "getComputedStyle(document.querySelector('#report-settling + figure img')).animationName"
    page.click("text=Play the rounds again")
    assert page.evaluate(drawn) == "settling"
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    page.wait_for_selector("#report-settling")
    assert page.evaluate(drawn) == "none"
    assert page.locator("text=Play the rounds again").count() == 0
