"""`unbandit report`: one file, the same answer as `estimate`, nothing where the input is refused."""

from __future__ import annotations

import hashlib
import json
import re
import shlex

import pytest
import shell

import unbandit as ub
from unbandit.reporting import pdf

refused, script, unbandit = shell.refused, shell.script, shell.unbandit

ASKED = ["--rule", "ucb:alpha=0.25", "--sigma", "0.5"]


@pytest.fixture
def log(unbandit, tmp_path):
    """Simulate four arms, and keep the truth."""
    made = ["--rule", "ucb:alpha=0.25", "--horizon", "1000", "--seed", "1", "-o", "log.csv", "--truth", "truth.csv"]
    assert unbandit("simulate", "--means", "1,0.7,0.4,0", "--arms", "A,B,C,D", "--sigma", "0.5", *made).code == 0
    return tmp_path / "log.csv"


def test_a_report_is_written_and_named(unbandit, log, tmp_path):
    done = unbandit("report", "log.csv", *ASKED)
    assert (done.code, done.err) == (0, "")
    sentence, written = done.out.strip().splitlines()
    assert sentence.startswith('Of the 4 arms "A" is the best one; the closest behind is "B", worth 0.226 less')
    assert written == "Written: report.html"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert hashlib.sha256(log.read_bytes()).hexdigest() in page
    assert "<dt>command</dt><dd><code>unbandit report log.csv --rule ucb:alpha=0.25 --sigma 0.5</code>" in page


def test_values_may_have_a_unit(unbandit, refused, log, tmp_path):
    done = unbandit("report", "log.csv", *ASKED, "--unit", "cycles=1000")
    assert 'the closest behind is "B", worth 226 cycles less' in done.out
    assert "--unit cycles=1000</code>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    for wrong in ("cycles", "cycles=0", "=5"):
        assert "Write it as in --unit cycles=1208" in refused(2, "report", "log.csv", *ASKED, "--unit", wrong)


def test_values_of_an_identification_may_have_a_unit_and_its_arms_names(unbandit, refused, log, tmp_path):
    (tmp_path / "names.csv").write_text("arm,name\nB,slow\n", encoding="utf-8")
    told = ["--sigma", "0.5", "--candidates", "ucb:alpha=0.25", "--unit", "cycles=1000", "--names", "names.csv"]
    done = unbandit("report", "log.csv", *told)
    assert done.code == 0, done.err
    assert re.search(r'the closest behind is "slow", worth \d+ cycles less', done.out)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "gap (cycles)" in page
    assert "--unit cycles=1000 --names names.csv</code>" in page
    assert "Write it as in --unit cycles=1208" in refused(2, "report", "log.csv", "--unit", "cycles")


def test_its_own_command_makes_it_again(unbandit, log, tmp_path):
    options = [
        "--truth",
        "truth.csv",
        "-o",
        "my report.html",
        "--best-mean",
        "1",
        "--method",
        "bootstrap",
        "--seed",
        "5",
    ]
    assert unbandit("report", "log.csv", *ASKED, *options).code == 0
    report = tmp_path / "my report.html"
    before = report.read_text(encoding="utf-8")
    command = re.search(r"<dt>command</dt><dd><code>unbandit (.*?)</code>", before)[1].replace("&#39;", "'")
    report.unlink()
    assert unbandit(*shlex.split(command)).code == 0
    assert report.read_text(encoding="utf-8") == before
    assert "<dt>seed</dt><dd>5</dd>" in before


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--best-mean", "1"],
        ["--anchor", "B=0.7", "--level", "0.9"],
        ["--method", "counts"],
        ["--method", "naive", "--constant", "0.5"],
        ["--horizon", "2000", "--arms", "A,B,C,D,E"],
    ],
    ids=" ".join,
)
def test_the_answer_is_that_of_estimate(unbandit, log, tmp_path, options):
    answer = json.loads(unbandit("estimate", "log.csv", *ASKED, *options, "--json").out)
    assert unbandit("report", "log.csv", *ASKED, *options).code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    for row in answer["arms"]:
        assert f'<bdi dir="auto">{row["arm"]}</bdi>' in page
        value = row["mean"] if "--best-mean" in options or "--anchor" in options else row["gap"]
        if value is not None:
            written = {
                float(each.replace("−", "-")) for each in re.findall(r'<td class="amount">(−?[\d.]+)</td>', page)
            }
            assert min(abs(each - value) for each in written) <= 0.0005


def test_standard_input_has_a_checksum_too(unbandit, log, tmp_path):
    done = unbandit("report", "-", *ASKED, "-o", "a.html", stdin=log.read_bytes())
    assert done.code == 0
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert hashlib.sha256(log.read_bytes()).hexdigest() in page
    assert "What each arm was worth: standard input" in page


def test_the_truth_is_shown_beside_the_answer(unbandit, log, tmp_path):
    assert unbandit("report", "log.csv", *ASKED, "--truth", "truth.csv").code == 0
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "The true values are known, but were not used" in page
    assert '<th scope="col" class="amount">truth</th>' in page
    assert "Error against the truth" in page


def test_warnings_are_said_in_the_shell_too(unbandit, log):
    done = unbandit("report", "log.csv", "--rule", "ucb:alpha=0.25")
    assert (done.code, done.out.count("Written")) == (0, 1)
    assert done.err.startswith("warning: The rewards' standard deviation was not given")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-o", "report.pdf"], "--output: expected a name that ends in .html"),
        (["-o", "report"], "--output: expected a name that ends in .html"),
        (["--pdf", "report.html"], "--pdf: expected a name that ends in .pdf"),
        (["--level", "95"], "level: expected a number between 0 and 1"),
        (["--rule", "ucbb"], "--rule: expected only once; got it 2 times"),
        (["--anchor", "X=1"], "anchor: expected one of"),
        (["--columns", "arm"], "--columns: expected key=value"),
        (["--sensitivities"], "No such option"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_option_ends_with_2(refused, log, options, said):
    assert said in refused(2, "report", "log.csv", *ASKED, *options)


def test_without_a_browser_nothing_is_begun(refused, log, monkeypatch):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    monkeypatch.setattr(pdf, "PLACES", {})
    message = refused(2, "report", "nothing.csv", *ASKED, "--pdf", "report.pdf")
    assert "expected an installed browser that can print (Chromium, Chrome or Edge)" in message


def test_what_cannot_be_read_or_written_ends_with_3(refused, log, tmp_path):
    assert "file not found" in refused(3, "report", "nothing.csv", *ASKED)
    assert "its folder does not exist" in refused(3, "report", "log.csv", *ASKED, "-o", "no/report.html")
    assert "its folder does not exist" in refused(3, "report", "log.csv", *ASKED, "--pdf", "no/report.pdf")
    assert "log.csv: the log has 1,000 rounds" in refused(3, "report", "log.csv", *ASKED, "--horizon", "10")
    assert 'expected a column "mean"' in refused(3, "report", "log.csv", *ASKED, "--truth", "log.csv")
    assert "nowhere.csv" in refused(3, "report", "log.csv", *ASKED, "--truth", "nowhere.csv")
    assert "standard input: expected a header" in refused(3, "report", "-", *ASKED, stdin=b"")
    (tmp_path / "latin.csv").write_bytes(b"arm\ncaf\x81\nB\n")
    assert "row 1 (line 2)" in refused(3, "report", "latin.csv", *ASKED)


def test_what_the_record_cannot_tell_ends_with_4(refused, log):
    assert "do not depend on rewards" in refused(4, "report", "log.csv", "--rule", "uniform", "--sigma", "1")
    assert "show which arm it judged best" in refused(4, "report", "log.csv", "--rule", "explore-then-commit")


def test_both_from_standard_input_is_too_much(refused):
    assert "--truth: standard input is already the log" in refused(
        2, "report", "-", *ASKED, "--truth", "-", stdin=b"arm\nA\nB\n"
    )


def test_an_old_report_stays_as_it_was(refused, log, tmp_path):
    (tmp_path / "report.html").write_text("old")
    refused(4, "report", "log.csv", "--rule", "uniform", "--sigma", "1")
    assert (tmp_path / "report.html").read_text() == "old"


def test_it_is_printed_too(unbandit, log, tmp_path):
    try:
        pdf.find_browser()
    except pdf.ParameterError as error:
        pytest.skip(str(error))
    done = unbandit("report", "log.csv", *ASKED, "--pdf", "report.pdf")
    assert done.out.strip().splitlines()[-1] == "Written: report.html, report.pdf"
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")


def test_a_long_log_makes_a_small_report(script, tmp_path):
    made = ["--rule", "ucb:alpha=0.25", "--horizon", "1000000", "--seed", "1", "-o", "log.parquet"]
    assert script("simulate", "linear", *made).returncode == 0
    done = script("report", "log.parquet", *ASKED)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").stat().st_size < 2_000_000


def test_a_log_with_holes_is_read_from_standard_input_too(unbandit, tmp_path):
    rows = [f"{at},{'AB'[at % 3 == 0]}" for at in range(1, 121) if at % 9 != 4]
    data = "\n".join(["round,arm", *rows, ""]).encode()
    (tmp_path / "log.csv").write_bytes(data)
    asked = ["--rule", "ucb:alpha=0.25", "--sigma", "1", "--no-check"]
    for more in ([], ["--kept", "0.89"]):
        done = [unbandit("report", name, *asked, *more, "-o", "page.html", stdin=data) for name in ("log.csv", "-")]
        assert [each.code for each in done] == [0, 0], done[1].err
        assert done[0].out == done[1].out


def test_arms_that_come_and_go_are_reported_as_they_are_estimated(unbandit, refused, tmp_path):
    (tmp_path / "arms.csv").write_text("arm,first,last\nC,301,\nA,,900\n")
    told = ["--rule", "ucb:alpha=0.25", "--sigma", "0.5", "--availability", "arms.csv"]
    made = ["--means", "1,0.5,0.2", "--arms", "A,B,C", "--horizon", "1500", "-o", "log.csv", "--truth", "truth.csv"]
    assert unbandit("simulate", *made, *told).code == 0
    estimated = json.loads(unbandit("estimate", "log.csv", *told, "--json").out)
    done = unbandit("report", "log.csv", *told, "--truth", "truth.csv")
    page = (tmp_path / "report.html").read_text()
    gap = next(each for each in estimated["arms"] if each["arm"] == "C")["gap"]
    assert re.search(r"<td[^>]*>–</td>", page)  # "A" has no rank, as its gap is to no other arm
    assert f"{gap:.3f}" in page
    assert 'Of the arms that stayed to the end "B" is the best one; "A", withdrawn before, may be better' in done.out
    assert "the best arm that stayed to the end, &#34;B&#34;, was found" in page
    assert "Grey: it could not be pulled." in page
    assert "A moment of hesitation" not in page  # the rounds that it would mark are those of a log with all arms
    assert '"A" to round 900' in done.err
    assert "--availability arms.csv" in page
    assert "--population" in refused(2, "report", "log.csv", *told, "--population")
    (tmp_path / "arms.csv").write_text("arm,first,last\nC,301,\nA,,800\n")
    assert 'arm "A" is pulled in round' in refused(3, "report", "log.csv", *told)


def test_without_a_rule_it_reports_which_rules_are_possible(unbandit, refused, tmp_path):
    unbandit("simulate", "--means", "1,0,0.5", "--sigma", "0.5", "--rule", "sae:alpha=0", "--horizon", "300", "--seed",
             "1", "-o", "log.csv")  # fmt: skip
    asked = ("report", "log.csv", "--sigma", "0.5")
    done = unbandit(*asked, "--candidates", "sae:alpha=0,uniform", "-o", "found.html")
    assert done.code == 0
    assert done.out.startswith("The most probable rule is sae:alpha=0: probability")
    assert done.out.rstrip().endswith("Written: found.html")
    page = (tmp_path / "found.html").read_text(encoding="utf-8")
    assert "unbandit report log.csv --sigma 0.5 --candidates sae:alpha=0,uniform -o found.html" in page
    assert "--method: expected with --rule" in refused(2, *asked, "--method", "bracket")
    assert "--sensitivity: expected with --rule" in refused(2, *asked, "--sensitivity")
    assert "--candidates: expected without --rule" in refused(2, *asked, "--rule", "sae", "--candidates", "ucb")


def test_the_table_beside_a_report_is_not_the_log(unbandit, tmp_path, monkeypatch):
    monkeypatch.setattr("unbandit.reporting.api.MOST_TABLES", 1)
    log = ub.UCB().demonstrate(ub.Instance([1.0, 0.2]), horizon=40, runs=2)
    log.write(tmp_path / "report.csv")
    done = unbandit("report", "report.csv", "--rule", "ucb", "--sigma", "1", "--no-check")
    assert done.out.rstrip().endswith("Written: report.html, report-table.csv")
    assert ub.ActionLog.read(tmp_path / "report.csv").actions.shape == log.actions.shape
    assert "<code>report-table.csv</code>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len((tmp_path / "report-table.csv").read_text(encoding="utf-8").splitlines()) == 5


def test_a_log_with_the_name_of_the_table_is_not_written_over(unbandit, tmp_path):
    log = ub.UCB().demonstrate(ub.Instance([1.0, 0.2]), horizon=40, runs=2)
    log.write(tmp_path / "study-table.csv")
    done = unbandit("report", "study-table.csv", "--rule", "ucb", "--sigma", "1", "--no-check", "-o", "study.html")
    assert done.code == 2
    assert "study-table.csv" in done.err
    assert ub.ActionLog.read(tmp_path / "study-table.csv").actions.shape == log.actions.shape


def test_a_report_on_a_folder_may_be_written_again(unbandit, tmp_path):
    ub.UCB().demonstrate(ub.Instance([1.0, 0.2]), horizon=40).write(tmp_path / "log.csv")
    for _ in range(2):
        assert unbandit("report", ".", "--rule", "ucb", "--sigma", "1", "--no-check").code == 0


def test_a_report_is_about_one_of_several_demonstrations(unbandit, tmp_path):
    logs = ub.UCB1().demonstrate(ub.Instance([1.0, 0.4], 0.5, ["A", "B"]), 200, runs=2, seed=2)
    logs.write(tmp_path / "two.csv")
    name = ub.ActionLog.read(tmp_path / "two.csv").demonstrations[1]
    asked = ("two.csv", "--rule", "ucb1", "--sigma", "0.5", "--no-check", "--demonstration")
    done = unbandit("report", *asked, name)
    assert done.code == 0, done.err
    text = (tmp_path / "report.html").read_text()
    assert f"--demonstration {name}" in text
    assert "200 choices" in text
    estimated = json.loads(unbandit("estimate", *asked, name, "--json").out)
    assert estimated["demonstrations"] == 1
    done = unbandit("estimate", *asked, name, "--follow")
    assert (done.code, "expected without --follow" in done.err) == (2, True)
    done = unbandit("report", *asked, name, "--population")
    assert (done.code, "expected without --population" in done.err) == (2, True)


def test_arms_of_a_population_have_names_and_values_a_unit(unbandit, tmp_path):
    instance = ub.Instance([1.0, 0.2], 0.5, ["A", "B"])
    ub.Softmax(temperature=0.3).demonstrate(instance, 60, runs=3, seed=1).write(tmp_path / "people.csv")
    (tmp_path / "names.csv").write_text("arm,name\nA,slow\n", encoding="utf-8")
    told = ["--rule", "softmax:temperature=fit", "--sigma", "0.5", "--particles", "100", "--no-check", "--population"]
    done = unbandit("report", "people.csv", *told, "--unit", "cycles=1208", "--names", "names.csv")
    assert done.code == 0, done.err
    assert 'arm "slow" is the best' in done.out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<th scope="col" class="amount">value (cycles)</th>' in page
    assert "--unit cycles=1208 --names names.csv</code>" in page
