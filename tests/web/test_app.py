"""From a file to an answer through the page's addresses, without a browser."""

from __future__ import annotations

import gzip
import hashlib
import html
import io
import json
import re
import sys
import time

import numpy as np
import polars as pl
import pytest
from workbooks import xlsx

import unbandit as ub
from unbandit.reporting import pdf
from unbandit.web import app
from unbandit.web.examples import EXAMPLES
from unbandit.web.safety import HEADERS

UCB = {"rule": "ucb", "ucb.alpha": "0.25", "best_mean": "1", "sigma": "1"}


def csv_of(log: ub.ActionLog) -> bytes:
    return log.to_frame().write_csv().encode()


@pytest.fixture(scope="module")
def log():
    return ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.6, 0.2], arms=["A", "B", "C"]), 2_000, seed=1)


def text_of(response) -> str:
    """Return what a page shows, without its marks."""
    return html.unescape(re.sub(r"<[^>]+>", " ", re.sub(r"(?s)<(style|script).*?</\1>", "", response.text)))


def ended(client, response, seconds=600.0):
    """Follow a piece of work to its end, as a visitor without JavaScript would: by loading the page again."""
    address, until = str(response.url), time.monotonic() + seconds
    while 'data-state="' in response.text or "noscript" in response.text.split("</head>")[0]:
        assert time.monotonic() < until, "the work did not end"
        time.sleep(0.1)
        response = client.get(address)
    return response


def estimated(client, data, form=UCB, name="log.csv"):
    return ended(client, client.post("/estimate", data=form, files={"log": (name, data)}))


@pytest.mark.parametrize(
    "address", ["/", "/simulate", "/look?example=battery", "/rules/ucb1", "/rules/linucb", "/report.css", "/page.js"]
)
def test_every_address_answers_with_the_headers(client, address):
    response = client.get(address)
    assert response.status_code == 200
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy"):
        assert response.headers[name] == HEADERS[name]
    assert "unsafe" not in response.headers["content-security-policy"]


@pytest.mark.parametrize("address", ["/rules/", "/rules/nothing", "/rules/ucb1/more", "/rules/%3Cb%3E"])
def test_there_is_no_page_of_a_rule_that_is_not_there(client, address):
    response = client.get(address)
    assert response.status_code == 404
    assert "There is nothing here" in text_of(response)


def test_a_log_is_looked_at_and_carried_on_to_an_answer(client, log):
    looked = client.post("/look", files={"log": ("log.csv", csv_of(log))})
    assert looked.status_code == 200
    assert "2,000 rounds, 3 arms" in text_of(looked)
    carried = re.search(r'name="carried"[^>]*value="([^"]+)"', looked.text)[1]
    sent = {**UCB, "carried": html.unescape(carried), "carried_name": "log.csv"}
    answer = ended(client, client.post("/estimate", data=sent))
    assert answer.status_code == 200
    expected = ub.estimate(log, "ucb:alpha=0.25", best_mean=1.0, sigma=1.0)
    assert f"{expected['B'].mean:.3g}"[:4] in text_of(answer)
    assert hashlib.sha256(csv_of(log)).hexdigest() in text_of(answer)


def test_the_files_are_the_answer(client, log):
    answer = estimated(client, csv_of(log))
    files = sorted(set(re.findall(r'href="(/jobs/[^"]+/files/[^"]+)" download', answer.text)))
    assert {name.rsplit("/", 1)[1] for name in files} >= {
        "report.html", "estimate.csv", "estimate.json", "estimate.parquet"
    }  # fmt: skip
    got = {name.rsplit("/", 1)[1]: client.get(name) for name in files}
    assert all(each.headers["content-disposition"].startswith("attachment") for each in got.values())
    expected = ub.estimate(log, "ucb:alpha=0.25", best_mean=1.0, sigma=1.0)
    assert pl.read_parquet(io.BytesIO(got["estimate.parquet"].content)).equals(expected.to_frame())
    assert json.loads(got["estimate.json"].text)["best"] == list(expected.best)
    assert got["report.html"].text.startswith("<!doctype html>")
    assert "http://" not in re.sub(r"http://www\.w3\.org\S*", "", got["report.html"].text)


@pytest.fixture(scope="module")
def answered(client, log):
    """Return the address of an answer with a report."""
    return str(estimated(client, csv_of(log)).url)


def test_a_report_is_printed_where_a_browser_is_installed(client, answered):
    if pdf.installed_browser() is None:
        pytest.skip("no browser is installed")
    (link,) = re.findall(r'href="(/jobs/[^"]+/files/report.pdf)"', client.get(answered).text)
    printed = client.get(link)
    assert printed.content.startswith(b"%PDF")
    assert printed.headers["content-type"] == "application/pdf"
    assert printed.headers["content-disposition"].startswith("attachment; filename*=utf-8''report.pdf")


def test_without_a_browser_it_is_said_what_to_install(client, answered, monkeypatch):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    monkeypatch.setattr(pdf, "PLACES", {})
    page = client.get(answered)
    assert "report.pdf" not in page.text
    assert "For a PDF, install Chromium, Chrome or Edge" in text_of(page)
    refused = client.get(f"{answered}/files/report.pdf")
    assert refused.status_code == 503
    assert "none is installed" in text_of(refused)


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for the browser")
def test_a_browser_that_fails_is_said_on_a_page(client, answered, monkeypatch, tmp_path, capfd):
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho 'no display' >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(pdf.shutil, "which", lambda name: str(program))
    failed = client.get(f"{answered}/files/report.pdf")
    assert failed.status_code == 503
    assert "could not be printed" in text_of(failed)
    assert str(tmp_path) not in failed.text
    assert "no display" in capfd.readouterr().err


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=lambda each: each.name)
def test_every_example_gives_an_answer(client, example):
    looked = client.get(f"/look?example={example.name}")
    assert looked.status_code == 200
    answer = ended(client, client.post("/estimate", data={**example.form, "example": example.name}))
    assert answer.status_code == 200, text_of(answer)
    assert "/files/report.html" in answer.text


def test_packed_and_parquet_files_are_taken(client, log):
    held = io.BytesIO()
    log.to_frame().write_parquet(held)
    for data in (gzip.compress(csv_of(log)), held.getvalue()):
        assert "/files/report.html" in estimated(client, data).text


def test_a_damaged_parquet_file_is_refused_in_words(client, capfd):
    held = io.BytesIO()
    pl.DataFrame({"arm": ["A", "B"] * 20}).write_parquet(held, compression="uncompressed")
    for at, value in ((35, 1), (60, 255)):  # polars aborts, and panics
        data = held.getvalue()[:at] + bytes([value]) + held.getvalue()[at + 1 :]
        answer = client.post("/look", files={"log": ("log.parquet", data)})
        assert answer.status_code == 422
        assert "expected a whole Parquet file" in text_of(answer)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("cell", ["x" * 140_000, '"' + "x" * 140_000 + '""\nx"'], ids=["plain", "quoted"])
@pytest.mark.parametrize("column", ["arm", "round", "note"])
def test_a_cell_longer_than_the_csv_module_takes_is_no_mistake_of_ours(client, cell, column):
    rows = [{"round": number, "arm": "AB"[number % 2], "note": "n"} for number in range(1, 30)]
    rows[2][column] = cell
    data = "\n".join(["round,arm,note", *(",".join(map(str, row.values())) for row in rows)]).encode()
    for answer in (client.post("/look", files={"log": ("log.csv", data)}), estimated(client, data)):
        assert answer.status_code in ((200, 422) if column != "round" else (422,))


def test_a_simulation_is_run_beside_its_truth(client):
    page = client.get("/simulate")
    assert page.status_code == 200
    form = {"source": "means", "means": "1, 0.5, 0", "noise": "gaussian", "sigma": "0.5", "rule": "ucb",
            "ucb.alpha": "0.25", "horizon": "3000", "seed": "1"}  # fmt: skip
    answer = ended(client, client.post("/simulate", data=form))
    assert answer.status_code == 200
    assert "truth" in text_of(answer).lower()
    assert "/files/log.csv" in answer.text


def test_a_rule_that_is_not_known_is_looked_for(client):
    log = ub.Uniform().demonstrate(ub.Instance([1.0, 0.0], 0.5), 150, seed=1)
    answer = estimated(client, csv_of(log), {"rule": "unknown", "sigma": "0.5"})
    assert answer.status_code == 200, text_of(answer)
    assert "Which rule made this log, and what the arms were worth" in text_of(answer)
    assert "uniform" in text_of(answer)
    assert "Reproduce this report" in text_of(answer)
    everything = json.loads(client.get(re.search(r'href="(/jobs/[^"]+/files/identify.json)"', answer.text)[1]).text)
    assert everything["leading"] == "uniform"
    assert "posterior" not in everything  # draws are for Python


def test_a_first_look_says_which_rules_fit(client):
    log = ub.UCB1().demonstrate(ub.Instance([1.0, 0.0], 0.5), 60, seed=1)
    answer = estimated(client, csv_of(log), {"rule": "any", "sigma": "0.5"})
    assert answer.status_code == 200, text_of(answer)
    assert "Which rules fit this log?" in text_of(answer)
    assert "ucb1:exploration=2.0" in text_of(answer)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"ucb.alpha": "2"}, "ucb.alpha"),
        ({"ucb.alpha": "x"}, "ucb.alpha"),
        ({"best_mean": "much"}, "best_mean"),
        ({"level": "95"}, "level"),
        ({"rule": "no-such-rule"}, "rule"),
        ({"rule": ""}, "rule"),
        ({"rule": "klucb", "klucb.noise": "bernoulli", "best_mean": "", "sigma": ""}, "best_mean"),
    ],
)
def test_a_field_that_does_not_fit_is_named_and_what_was_filled_in_stays(client, log, form, field):
    response = client.post("/estimate", data={**UCB, "seed": "12345", **form}, files={"log": ("log.csv", csv_of(log))})
    assert response.status_code == 422
    assert 'aria-invalid="true"' in response.text or 'class="error' in response.text
    assert "12345" in response.text


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"arm\n\x81\n", "UTF-8"),
        (b"x,y\n1,2\n", "expected a column"),
        (b"arm\nA\nA\n", "two"),
        (gzip.compress(bytes(30_000_000), 1), "once it is unpacked"),
        (b"arm\n" + b"A\nB\n" * 100_001, "at most 200,000 rows"),
        (b"PK\x03\x04" + bytes(100), "spreadsheet"),
    ],
)
def test_a_file_that_is_no_log_is_refused_kindly(client, data, words):
    for response in (client.post("/look", files={"log": ("log.csv", data)}), estimated(client, data)):
        assert response.status_code == 422
        assert words in text_of(response)
        assert "Traceback" not in response.text
        assert " --" not in text_of(response)


@pytest.mark.parametrize("first", [[], [["who", "when"], ["me", "now"]]], ids=["blank", "notes"])
def test_a_sheet_of_several_is_chosen_in_a_field(client, first):
    rows = [["trial", "choice"], *([at, "AABC"[at % 4]] for at in range(1, 41))]
    files = {"log": ("log.xlsx", xlsx(Notes=first, Choices=rows))}
    looked = client.post("/look", files=files)
    assert looked.status_code == 422
    assert '<option value="Choices">' in looked.text
    assert 'that sheet in the field "Sheet"' in text_of(looked)
    again = client.post("/look", data={"sheet": "Choices"}, files=files)
    assert (again.status_code, "40 rounds, 3 arms" in text_of(again)) == (200, True)
    assert '<option value="Choices" selected>' in again.text
    answer = estimated(client, files["log"][1], {**UCB, "sheet": "Choices"}, "log.xlsx")
    assert "--sheet Choices" in text_of(answer)


def test_a_sheet_that_is_not_there_marks_its_field(client):
    files = {"log": ("log.xlsx", xlsx(one=[["arm"], ["A"], ["B"]], two=[["arm"], ["A"], ["B"]]))}
    looked = client.post("/look", data={"sheet": "three"}, files=files)
    assert looked.status_code == 422
    assert 'Sheet : Expected a sheet of log.xlsx; got "three". It has "one", "two".' in text_of(looked)
    assert re.search(r'<select id="field-sheet"[^>]*aria-invalid="true"', looked.text)
    only = client.post("/look", files={"log": ("log.xlsx", xlsx(one=[["arm"], ["A"], ["B"]]))})
    assert "field-sheet" not in only.text


def test_a_long_field_where_no_file_belongs_is_refused(client):
    for address in ("/simulate", "/look"):
        response = client.post(address, data={"means": "1," * 200_000})
        assert response.status_code in (400, 413)
        assert "<h1" in response.text


def test_no_file_at_all_is_said(client):
    for address in ("/look", "/estimate"):
        assert "There is no file" in text_of(client.post(address, data={"rule": "ucb"}))
        assert "There is no file" in text_of(client.post(address, files={"log": ("", b"")}))


@pytest.mark.parametrize("rule", ["uniform", "explore-then-commit"])
def test_a_record_that_cannot_tell_says_why(client, log, rule):
    answer = estimated(client, csv_of(log), {"rule": rule, "sigma": "1"})
    assert answer.status_code == 200
    assert "This log cannot answer that" in text_of(answer)
    assert rule in text_of(answer)


def test_a_file_that_is_too_large_is_refused(client):
    response = client.post("/look", files={"log": ("log.csv", b"arm\n" + b"A\nB\n" * 2_000_000)})
    assert response.status_code == 413
    assert "too large" in text_of(response)


def test_work_can_be_cancelled_and_forgotten(client):
    log = ub.Thompson(sigma=1.0).demonstrate(ub.Instance([1.0, 0.5]), 20_000, seed=1)
    form = {"rule": "thompson", "sigma": "1"}
    waiting = client.post("/estimate", data=form, files={"log": ("log.csv", csv_of(log))})
    address = str(waiting.url)
    state = client.get(address + "/state").json()
    assert state["state"] in ("waiting", "running")
    assert "Cancel" in text_of(waiting)
    after = client.post(address + "/cancel")
    assert "Cancelled" in text_of(after)
    assert client.get(address + "/state").json()["state"] == "cancelled"
    assert str(client.post(address + "/forget").url).endswith("/")
    assert client.get(address).status_code == 404
    assert client.get(address + "/state").status_code == 404


@pytest.mark.parametrize(
    "address", ["/nowhere", "/jobs/none", "/jobs/none/files/x", "/look?example=none", "/../etc/passwd"]
)
def test_what_is_not_there_is_said_kindly(client, address):
    response = client.get(address)
    assert response.status_code == 404
    assert "<h1" in response.text


def test_an_address_that_wants_a_form_sends_home(client):
    assert str(client.get("/estimate").url).endswith("8350/")


def test_a_form_that_is_no_form_is_refused(client):
    response = client.post("/look", content=b"garbage", headers={"content-type": "multipart/form-data; boundary=x"})
    assert response.status_code == 400
    assert "<h1" in response.text


def numbered(log, keep):
    """Write the rounds of a log that are to be kept, with their numbers."""
    arms = [log.arms[action] for action in log.actions.tolist()]
    return "\n".join(["round,arm", *(f"{at},{arm}" for at, arm in enumerate(arms, 1) if keep(at))]).encode()


def at_field(response, name):
    """Return what stands at a field that is wrong."""
    assert response.status_code == 422, text_of(response)
    assert re.search(rf'id="field-{name}"[^>]*aria-invalid="true"', response.text)
    return html.unescape(re.search(rf'id="field-{name}-error">.*?</span>(.*?)</p>', response.text)[1])


@pytest.fixture
def patient(monkeypatch):
    """Have the page wait for the end of its work, however busy this computer is."""
    monkeypatch.setattr(app, "WAIT_SECONDS", 600.0)


def test_a_numbered_log_with_holes_is_read_and_gaps_are_bracketed(client, log, patient):
    data = numbered(log, lambda at: at % 5 != 2)
    looked = client.post("/look", files={"log": ("log.csv", data)})
    assert looked.status_code == 200
    assert "1,600 of 2,000 rounds, 3 arms" in text_of(looked)
    assert 'the share that was kept with the field "Probability of being kept"' in text_of(looked)
    answer = estimated(client, data, UCB | {"best_mean": ""})
    assert "of the others the log gives only bounds" in text_of(answer)
    assert "others the log gives only bounds" not in text_of(estimated(client, csv_of(log), UCB | {"best_mean": ""}))


def test_rounds_that_got_lost_at_random_are_read_with_their_probability(client, log, patient):
    kept = np.random.default_rng(1).random(2_001) < 0.8
    data = numbered(log, lambda at: kept[at])
    answer = estimated(client, data, UCB | {"kept": "0.8"})
    assert "--kept 0.8" in text_of(answer)
    assert "Every round was kept with a probability of 0.8" in text_of(answer)
    refused = client.post("/estimate", data=UCB | {"kept": "0.3"}, files={"log": ("log.csv", data)})
    assert re.fullmatch(r"Of 2,000 rounds 1,\d+ are here, a share of 0.\d+; got 0.3. .*", at_field(refused, "kept"))
    assert 'value="0.3"' in refused.text
    assert "below 1" in at_field(client.post("/estimate", data=UCB | {"kept": "2"}, files={"log": ("l", data)}), "kept")


def test_a_log_that_begins_late_is_looked_at_though_nothing_can_be_said_yet(client, log):
    looked = client.post("/look", files={"log": ("log.csv", numbered(log, lambda at: at > 1_500))})
    assert looked.status_code == 200
    assert "500 rounds, 3 arms" in text_of(looked)
    assert "they begin at 1,501, so the opening is missing" in text_of(looked)
    refused = estimated(client, numbered(log, lambda at: at > 1_500))
    assert "the opening is missing" in text_of(refused)


def test_pulls_before_a_log_are_told_in_a_field(client, log, patient):
    data, counts = numbered(log, lambda at: at > 1_500), log.select(0, 1_500).pulls[0].tolist()
    typed = "\n".join(f"{arm}, {count}" for arm, count in zip(log.arms, counts, strict=True))
    answer = estimated(client, data, UCB | {"starting_pulls": typed, "best_mean": ""})
    assert "--starting-pulls counts.csv" in text_of(answer)
    assert "the log begins in round 1,501" in text_of(answer)
    told = client.get(re.search(r'href="(/jobs/[^"]+/files/counts.csv)"', answer.text)[1])
    assert told.text.splitlines() == ["arm,pulls", *typed.replace(", ", ",").splitlines()]
    wrong = "\n".join(f"{arm}, 1" for arm in log.arms)
    refused = client.post("/estimate", data=UCB | {"starting_pulls": wrong}, files={"log": ("log.csv", data)})
    assert "the counts given add up to 3" in at_field(refused, "starting_pulls")
    assert f"{wrong}</textarea>" in refused.text


def test_arms_that_come_and_go_are_told_in_a_field(client, patient):
    instance = ub.Instance([1.0, 0.5, 0.2], 0.5, arms=["A", "B", "C"])
    data = csv_of(ub.UCB1().demonstrate(instance, 1_000, seed=1, availability={"C": (301, None), "B": (None, 700)}))
    form = {"rule": "ucb1", "sigma": "0.5", "availability": "C, 301,\r\nB, , 700"}
    answer = estimated(client, data, form)
    assert "--availability arms.csv" in text_of(answer)
    assert "Arms could be pulled in some rounds only" in text_of(answer)
    told = client.get(re.search(r'href="(/jobs/[^"]+/files/arms.csv)"', answer.text)[1])
    assert told.text == "arm,first,last\nC,301,\nB,,700\n"
    for wrong, words in (("Z, 1, 2", 'got "Z"'), ("C, 9, 3", "up to the last")):
        refused = client.post("/estimate", data=form | {"availability": wrong}, files={"log": ("log.csv", data)})
        assert words in at_field(refused, "availability")
        assert f"{wrong}</textarea>" in refused.text
    impossible = estimated(client, data, form | {"availability": "C, 500,"})
    assert "and its first round is 500" in text_of(impossible)


@pytest.mark.thorough
def test_the_rule_of_a_log_whose_arms_come_and_go_is_looked_for(client, patient):
    instance = ub.Instance([1.0, 0.5, 0.2], 0.5, arms=["A", "B", "C"])
    data = csv_of(ub.UCB1().demonstrate(instance, 1_000, seed=1, availability={"C": (301, None), "B": (None, 700)}))
    surveyed = estimated(client, data, {"rule": "any", "sigma": "0.5", "availability": "C, 301,\r\nB, , 700"})
    assert re.search(r"ucb1:exploration=2.0\s+fits", text_of(surveyed))


def test_a_log_is_compared_in_stretches(client, log, patient):
    form = UCB | {"windows": "3"}
    answer = estimated(client, csv_of(log), form)
    assert "--windows 3" in text_of(answer)
    assert "stretch" in text_of(answer)
    refused = client.post("/estimate", data=form | {"windows": "90"}, files={"log": ("log.csv", csv_of(log))})
    assert at_field(refused, "windows").startswith("2,000 rounds make no 90 stretches")


SCRIPT = "<script>alert(1)</script>"


def test_no_name_becomes_markup(client):
    log = ub.UCB(alpha=0.25).demonstrate(
        ub.Instance([1.0, 0.4, 0.1], arms=[SCRIPT, '"><img src=x onerror=alert(2)>', "=1+1"]), 800, seed=1
    )
    looked = client.post("/look", files={"log": (f"{SCRIPT}.csv", csv_of(log))})
    answer = estimated(client, csv_of(log), name=f"{SCRIPT}.csv")
    report = client.get(re.search(r'href="(/jobs/[^"]+/files/report.html)"', answer.text)[1])
    for page in (looked, answer, report):
        assert SCRIPT not in page.text
        assert "<img src=x" not in page.text
        assert html.escape(SCRIPT) in page.text
    table = client.get(re.search(r'href="(/jobs/[^"]+/files/estimate.csv)"', answer.text)[1])
    assert "'=1+1" in table.text
