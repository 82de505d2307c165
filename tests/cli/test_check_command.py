"""`unbandit check`, and the check in other commands: tables, JSON, exit codes."""

from __future__ import annotations

import io
import json
import sys

import pytest
import shell
from rich.console import Console

import unbandit as ub
from unbandit.cli import output

refused, unbandit = shell.refused, shell.unbandit

RIGHT = ["estimate", "log.csv", "--rule", "ucb1", "--sigma", "0.5"]
LILUCB = "lilucb:reward_range=1.0,delta=0.05"
WRONG = ["estimate", "log.csv", "--rule", "ucb:alpha=0.25", "--sigma", "0.5"]


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.setenv("UNBANDIT_CHECK", "on")
    made = ub.UCB1().demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5, arms="ABC"), 600, seed=3)
    made.write(tmp_path / "log.csv")
    return made


def test_the_table_has_the_rules_that_fit_first(unbandit, log):
    done = unbandit("check", "log.csv", "--candidates", "sae,ucb1,ucb:alpha=0.25", "--sigma", "0.5")
    assert done.code == 0
    assert done.out.splitlines()[0] == "1 of 3 rules fits this log."
    assert "At 0.01 or less the rule does not fit." in done.out
    assert "Not tried" not in done.out  # all that were asked for
    verdicts = [line.split()[0].split(":")[0] for line in done.out.splitlines() if "fit" in line][1:4]
    assert verdicts[0] == "ucb1"


def test_choices_at_random_are_called_so(unbandit, log, tmp_path):
    made = ub.parse_rule("epsilon-greedy:epsilon=0.2").demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), 600, seed=3)
    made.write(tmp_path / "log.csv")
    done = unbandit("check", "log.csv", "--candidates", "moss,ucb1", "--sigma", "0.5")
    assert done.out.splitlines()[0] == "None of the 2 rules that were tried fits this log."
    assert "as if they were chosen at random" in done.err


def test_choices_of_people_lead_to_a_population(unbandit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = ub.Softmax(temperature=0.5).demonstrate(ub.Instance([0.7, 0.3], ub.Bernoulli()), 60, runs=3, seed=1)
    runs = [made.demonstration(run).tolist() for run in range(3)]
    rows = [f"S{run},{at},{'AB'[code]},{at % 2}" for run, each in enumerate(runs) for at, code in enumerate(each)]
    (tmp_path / "log.csv").write_text("subject,trial,choice,outcome\n" + "\n".join(rows) + "\n")
    done = unbandit("check", "log.csv", "--candidates", "sae")
    assert "run: unbandit population log.csv --bernoulli --rule learning-softmax" in " ".join(done.out.split())
    layout = ["--columns", "demonstration=subject,round=trial", "--arms", "A,B", "--horizon", "60"]
    said = " ".join(unbandit("check", "log.csv", "--candidates", "sae", *layout).out.split())
    assert f"population log.csv {' '.join(layout[:4])} --bernoulli --rule" in said
    assert "Every reward in the log is 0 or 1" in done.err
    assert "--bernoulli" in done.err


def test_json_is_that_of_python(unbandit, log):
    said = json.loads(unbandit("check", "log.csv", "--candidates", "ucb1,sae", "--sigma", "0.5", "--json").out)
    assert said["schema"] == "unbandit.check/1"
    found = ub.check(log, "ucb1,sae", sigma=0.5).to_dict()
    assert [row["verdict"] for row in said["rules"]] == [row["verdict"] for row in found["rules"]]
    assert said["rules"][0]["estimate"]["check"]["verdict"] == "fits"
    assert said["answer"] == "1 of 2 rules fits this log"
    assert [each["code"] for each in said["notes"]] == [each.code for each in ub.ActionLog.read("log.csv").reading]


def test_several_rules_that_fit_lead_to_identify_and_sigma_is_suggested(unbandit, log):
    done = unbandit("check", "log.csv", "--candidates", "ucb1,ucb1:exploration=2.1,sae:alpha=0.25")
    assert "run: unbandit identify log.csv --candidates ucb1,ucb1:exploration=2.1" in " ".join(done.out.split())
    assert "(0.5 under ucb1:exploration=2.1)." in done.err
    alone = unbandit("estimate", "log.csv", "--rule", "ucb1")
    assert "try what makes the log most probable: 0.5 under ucb1." in alone.err


def test_the_way_on_reads_the_log_as_it_was_read(unbandit, log):
    layout = ["--columns", "arm=arm", "--arms", "A, B,C", "--blank", "skip"]
    rules = ["--candidates", "ucb1,ucb1:exploration=2.1,sae:alpha=0.25"]
    said = " ".join(unbandit("check", "log.csv", *rules, *layout, "--horizon", "600").out.split())
    assert "identify log.csv --columns arm=arm --arms 'A, B,C' --blank skip --horizon 600 --candidates ucb1" in said


def test_rules_that_are_left_out_are_named(unbandit, log, monkeypatch):
    from unbandit.identification import survey

    row = survey.check(log, "ucb1", sigma=0.5).rows
    left_out = survey.Survey(row, 0.5, (), ("thompson", "uniform"))
    monkeypatch.setattr("unbandit.identification.check", lambda *_, **__: left_out)
    done = unbandit("check", "log.csv", "--sigma", "0.5")
    assert "Not tried, because they choose at random or reveal no values: thompson, uniform." in done.out
    assert "unbandit identify log.csv" in done.out
    said = json.loads(unbandit("check", "log.csv", "--sigma", "0.5", "--json").out)
    assert (said["threshold"], said["not_tried"]) == (0.01, ["thompson", "uniform"])


def test_counts_are_refused(unbandit, log, tmp_path):
    (tmp_path / "counts.csv").write_text("arm,pulls\nA,90\nB,30\n")
    done = unbandit("check", "counts.csv", "--sigma", "0.5")
    assert (done.code, "without their order" in done.err) == (4, True)


def test_a_rule_that_does_not_fit_is_the_first_warning(unbandit, log):
    done = unbandit(*WRONG)
    assert done.code == 0
    assert done.err.splitlines()[0].startswith("warning: The log does not look like one that ucb:alpha=0.25")


def test_strict_also_ends_with_4_where_a_warning_puts_the_rule_in_doubt(unbandit, tmp_path):
    rows = [*"ABBABAAB" * 40, "C", *"ABBABAAB" * 5]
    (tmp_path / "late.csv").write_text("arm\n" + "\n".join(rows) + "\n")
    asked = "estimate", str(tmp_path / "late.csv"), "--rule", "thompson:sigma=0.5", "--sigma", "0.5"
    done = unbandit(*asked, "--json", "--strict")
    assert "late-arm" in {each["code"] for each in json.loads(done.out)["warnings"]}
    assert (unbandit(*asked).code, done.code) == (0, 4)


@pytest.mark.parametrize(
    "asked",
    ["estimate --rule ucb1", "posterior --rule softmax:temperature=0.3", "identify --candidates uniform",
     "check --candidates ucb1"],
)  # fmt: skip
def test_times_that_run_against_the_rounds_put_every_answer_in_doubt(unbandit, tmp_path, asked):
    rows = [f"{at + 1},2026-05-01T00:{59 - at:02}:00,{'AB'[at % 3 == 1]}" for at in range(60)]
    (tmp_path / "log.csv").write_text("\n".join(["round,timestamp,arm", *rows, ""]))
    command, *rule = asked.split()
    given = command, str(tmp_path / "log.csv"), *rule, "--sigma", "0.5"
    assert "times-against" in [each["code"] for each in json.loads(unbandit(*given, "--json").out)["warnings"]]
    if command == "estimate":
        assert unbandit(*given, "--strict").code == 4


def test_strict_turns_it_into_an_exit_code(unbandit, log):
    assert (unbandit(*WRONG, "--strict").code, unbandit(*RIGHT, "--strict").code) == (4, 0)
    done = unbandit(*WRONG, "--strict", "--json")
    assert (done.code, json.loads(done.out)["check"]["verdict"]) == (4, "does not fit")


def test_no_check_skips_it(unbandit, log):
    done = unbandit(*WRONG, "--no-check", "--json")
    assert json.loads(done.out)["check"]["verdict"] == "not checked"
    assert "does not look like" not in done.err


def test_both_at_once_are_refused(unbandit, log):
    done = unbandit(*WRONG, "--no-check", "--strict")
    assert (done.code, "--strict: expected without --no-check" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "number"), [("estimate", "method bracket"), ("posterior", "P(best)"), ("report", "is the best")]
)
def test_a_rule_that_does_not_fit_is_said_above_its_numbers(unbandit, log, monkeypatch, command, number):
    monkeypatch.setattr(sys, "stderr", sys.stdout)  # as both come on one terminal
    said = unbandit(command, *WRONG[1:]).out
    assert said.index("warning: The log does not look like one that ucb:alpha=0.25") < said.index(number)
    assert said.count("does not look like one that") == 1
    if command == "report":
        assert "This log does not look like the work of ucb. If ucb did make it, then of the" in " ".join(said.split())


@pytest.mark.parametrize(("columns", "parts"), [(80, ["lilucb:", "reward_range=1.0,", "delta=0.05"]), (200, [LILUCB])])
def test_a_narrow_window_breaks_names_between_parameters_alone(columns, parts, monkeypatch):
    monkeypatch.setattr(output.sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    window = Console(file=io.StringIO(), width=columns)
    window.print(output.new_table([("rule", output.RULE), ("why", output.TEXT)], [(LILUCB, "NO " * 80)]))
    said = window.file.getvalue().replace("NO", "").splitlines()[3:]
    assert [line.strip() for line in said if line.strip()] == parts
