"""`unbandit identify`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
import shell

import unbandit as ub
from unbandit.cli import output as printer
from unbandit.errors import Notice
from unbandit.estimators.posterior import best_notice

refused, unbandit = shell.refused, shell.unbandit

ASKED = [
    "identify",
    "log.csv",
    "--candidates",
    "ucb:alpha=0.25,sae:alpha=0|0.25,uniform",
    "--sigma",
    "0.5",
    "--particles",
    "150",
]


@pytest.fixture
def log(tmp_path):
    made = ub.SAE(alpha=0.25).demonstrate(ub.Instance([1.0, 0.4, 0.0], 0.5, arms="ABC"), 300, seed=1)
    made.write(tmp_path / "log.csv")
    return made


def test_the_answer_for_people(unbandit, log):
    done = unbandit(*ASKED)
    assert done.code == 0
    said = done.out.splitlines()
    assert said[0].startswith("The most probable rule is sae:alpha=0|0.25: probability above 0.999 if one")
    for part in (
        "times less probable",
        "10^",
        "probability",
        "parameters",
        "Most surprising rounds under sae:alpha=0|0.25:",
    ):
        assert part in done.out
    assert "fits, p = " in done.out
    assert "nats" not in done.out
    assert "alpha 0.25" in done.out
    assert "What the arms were worth under sae:alpha=0|0.25, 95% intervals" in done.out
    assert "P(best)" in done.out


def test_json_is_that_of_python(unbandit, log):
    said = json.loads(unbandit(*ASKED, "--json").out)
    candidates = "ucb:alpha=0.25,sae:alpha=0|0.25,uniform"
    assert said == ub.identify(log, candidates, sigma=0.5, particles=150).to_dict()


def test_values_are_part_of_the_answer(unbandit, log):
    said = json.loads(unbandit(*ASKED, "--level", "0.9", "--json", "-o", "answer.json").out)
    assert {row["arm"] for row in said["values"]} == set("ABC")
    assert said["level"] == 0.9
    assert set(said["best_by_rule"].values()) <= {"A"}
    assert json.loads(Path("answer.json").read_text()) == said
    nothing = unbandit("identify", "-", "--candidates", "uniform", "--sigma", "1", stdin=b"arm\nA\nB\nB\n")
    assert nothing.code == 0
    assert (
        "note: The log says nothing about what the arms were worth: uniform: its choices do not depend" in nothing.err
    )


def test_pictures_tables_and_json_can_be_written(unbandit, log, tmp_path):
    for name in ("a.png", "a.csv", "a.json"):
        assert f"{name}: written" in unbandit(*ASKED, "-o", name).err
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert pl.read_csv(tmp_path / "a.csv")["candidate"].to_list()[:2] == ["sae:alpha=0|0.25"] * 2
    assert json.loads((tmp_path / "a.json").read_text())["schema"] == "unbandit.identify/2"


def test_cannot_tell_is_an_answer(unbandit):
    done = unbandit("identify", "-", "--candidates", "ucb,sae", "--sigma", "1", stdin=b"arm\nA\nB\nC\n")
    assert done.code == 0
    assert done.out.startswith("This log cannot distinguish between ")


def test_a_candidate_that_cannot_be_is_shown_with_its_round(unbandit):
    rows = "\n".join(["arm", *"ABCABCABAABC"]).encode()
    done = unbandit("identify", "-", "--candidates", "sae:alpha=0,uniform", stdin=rows)
    assert done.code == 0
    assert "sae:alpha=0: round 11: arm" in done.out
    assert "warning: The rewards' standard deviation was not given" in done.err


@pytest.mark.parametrize(
    ("code", "arguments", "said"),
    [
        (2, ["--candidates", "ucbb"], 'Did you mean "ucb"'),
        (2, ["--candidates", "exp3", "--sigma", "1"], "expected rewards of 0 and 1"),
        (2, ["--sigma", "1", "--bernoulli"], "leave --sigma or --bernoulli out"),
        (2, ["--sigma", "1", "--level", "2"], "--level: expected a number between 0 and 1"),
        (2, ["--prior", "cauchy"], "prior: expected normal or beta"),
        (2, ["-o", "answer.xlsx"], ".png, .svg, .json; got"),
        (3, ["--sigma", "1", "--horizon", "9", "--candidates", "uniform"], "log.csv: the log has 300 rounds"),
        (4, ["--sigma", "1", "--candidates", "explore-then-commit:explore=2"], "None of 1 candidates can have made"),
    ],
)
def test_what_is_refused(refused, log, code, arguments, said):
    assert said in refused(code, "identify", "log.csv", *arguments)


def test_counts_alone_end_with_4(refused, tmp_path):
    (tmp_path / "counts.csv").write_text("arm,pulls\nA,7\nB,3\n")
    assert "without their order" in refused(4, "identify", "counts.csv", "--sigma", "1")


def test_a_library_that_breaks_ties_at_random(unbandit, tmp_path):
    rule = ub.UCB1(ties="random", clock="pulls")
    rule.demonstrate(ub.Instance([0.8, 0.6, 0.4, 0.2], ub.Bernoulli()), 100, seed=2).write(tmp_path / "ties.csv")
    asked = ("identify", "ties.csv", "--candidates", "ucb1:exploration=2,uniform", "--bernoulli", "--particles", "150")
    done = unbandit(*asked)
    assert done.code == 0
    said = " ".join(done.out.split())
    assert said.startswith(
        "The most probable rule is ucb1:exploration=2 (as ucb1:exploration=2.0,ties=random,clock=pulls)"
    )
    assert "broken at random" in done.err
    answer = json.loads(unbandit(*asked, "--json").out)
    assert answer["winner"] == "ucb1:exploration=2"
    assert answer["candidates"][0]["guesses"][0]["rule"] == "ucb1:exploration=2.0,ties=random,clock=pulls"
    assert [notice["code"] for notice in answer["notes"]][:2] == ["ties-at-random", "other-clock"]


def test_rounds_of_hardly_any_probability_are_shown(unbandit, tmp_path):
    made = ub.UCB(alpha=0.0).demonstrate(ub.Instance([1.0, 0.9], 1.0, arms="AB"), 3_000, seed=1)
    made.write(tmp_path / "log.csv")
    done = unbandit("identify", "log.csv", "--candidates", "ucb:alpha=0.9", "--sigma", "0.01", "--particles", "150")
    assert done.code == 4  # and the rule does not fit
    assert "(arm B, 1 in 10^" in done.out


def test_notes_on_the_reading_are_among_the_answers(unbandit):
    data = b"choice\nA\nB\nA\n"
    asked = ["identify", "-", "--candidates", "uniform", "--sigma", "1", "--particles", "150"]
    assert 'note: Columns were recognised by name: "choice" as arm.' in unbandit(*asked, stdin=data).err
    assert json.loads(unbandit(*asked, "--json", stdin=data).out)["notes"][0]["code"] == "columns"
    done = unbandit("posterior", "-", "--rule", "thompson:sigma=1", "--sigma", "1", stdin=data)
    assert 'note: Columns were recognised by name: "choice" as arm.' in done.err


def test_every_subject_has_its_values_and_a_shared_reason_is_said_once(unbandit, tmp_path, monkeypatch):
    made = ub.LearningSoftmax(rate=0.3, temperature=0.3).demonstrate(
        ub.Instance([1.0, 0.4], 0.5, arms="AB"), 40, runs=3, seed=3
    )
    made.to_frame().rename({"demonstration": "subject"}).write_csv(tmp_path / "two.csv")
    monkeypatch.setattr("unbandit.cli.output.MOST_LINES", 4)
    names = made.demonstrations
    rules = "learning-softmax:rate=0.3,temperature=0.3,uniform,ucb1,moss,sae:alpha=0"
    asked = ("identify", "two.csv", "--sigma", "0.5", "--particles", "50", "--candidates", rules)
    done = unbandit(*asked)
    assert done.code == 0, done.err
    table = done.out[done.out.index("What the arms were worth") :]
    assert [len(re.findall(rf"^ {name}  ", table, re.MULTILINE)) for name in names] == [1, 1, 0]
    assert "... and 1 more subject: --json has the values of all" in table
    assert "Each subject has its own values." in done.err
    assert done.out.count("the rule pulls every arm once first") == 1
    assert "ucb1, moss, sae:alpha=0: round" in " ".join(done.out.split())
    said = json.loads(unbandit(*asked, "--json").out)
    assert said["values"] is None
    assert list(said["values_by_demonstration"]) == list(names)
    assert {row["arm"] for row in said["values_by_demonstration"][names[1]]} == {"A", "B"}


def test_where_no_candidate_fits_no_subject_has_values(unbandit, tmp_path):
    rows = "".join(f"{subject},{arm}\n" for subject in "xy" for arm in "AB" * 40)
    (tmp_path / "turns.csv").write_text(f"subject,arm\n{rows}")
    done = unbandit("identify", "turns.csv", "--sigma", "0.5", "--candidates", "uniform", "--particles", "50")
    assert done.code == 4
    assert "does not look like one that uniform made" in done.out
    assert "Next: unbandit check turns.csv --sigma 0.5" in done.err
    assert "worth" not in done.out
    (tmp_path / "turns.csv").write_text(rows)
    layout = ("--no-header", "--columns", "arm=2,demonstration=1")
    done = unbandit("identify", "turns.csv", "--candidates", "uniform", "--particles", "50", *layout)
    assert "Next: unbandit check turns.csv --columns arm=2,demonstration=1 --no-header" in done.err


def test_where_no_candidate_fits_there_are_no_values_and_the_code_is_4(unbandit):
    rows = "\n".join(["arm", *("A" * 106 + "B" * 100 + "C" * 94)]).encode()
    asked = ("identify", "-", "--candidates", "uniform,sae", "--sigma", "0.5")
    done = unbandit(*asked, stdin=rows)
    assert done.code == 4
    assert done.out.startswith("None of the candidates made this")
    assert "worth" not in done.out
    assert "above 0.999" not in done.out  # a probability among rules of which none fits
    assert "So no values are given" in done.err
    in_json = unbandit(*asked, "--json", stdin=rows)
    said = json.loads(in_json.out)
    assert (in_json.code, said["verdict"], said["values"], said["averaged"]) == (4, "none fits", None, [])
    assert said["warnings"][-1]["code"] == "does-not-reproduce"


def test_more_notes_of_a_kind_are_counted_and_probabilities_are_written_one_way(capsys):
    printer.print_notices([], [Notice("same-rule", "a."), Notice("same-rule", "b.")])
    printer.print_notices([Notice("strained", "c.")] * 3)
    said = capsys.readouterr().err
    assert "note: a.\n1 similar note is not shown (use --verbose).\n" in said
    assert "warning: c.\n2 similar warnings are not shown (use --verbose).\n" in said
    sure = SimpleNamespace(arms=("A", "B"), probability_best=np.array([1.0, 0.0]))
    assert best_notice(sure, 0.95).text == '"A" is the best arm with probability above 0.999.'
    open_still = SimpleNamespace(arms=("A", "B"), probability_best=np.array([0.9, 0.1]))
    assert best_notice(open_still, 0.95).text.endswith("Its own gap is above 0 because another arm may be better.")


def test_arms_that_come_and_go(unbandit, refused, tmp_path):
    table = {"C": (101, None), "B": (None, 300)}
    ub.UCB1().demonstrate(ub.Instance([1.0, 0.6, 0.8], 0.5, arms="ABC"), 400, seed=2, availability=table).write(
        tmp_path / "log.csv"
    )
    (tmp_path / "arms.csv").write_text("arm,first,last\nC,101,\nB,,300\n")
    asked = ["log.csv", "--sigma", "0.5", "--availability", "arms.csv"]
    done = unbandit("identify", *asked, "--candidates", "ucb1,uniform,sae")
    assert (done.code, done.out.splitlines()[0][:30]) == (0, "The most probable rule is ucb1")
    assert "note: sae is left out" in done.err
    assert '"B" to round 300, "C" from round 101' in done.err
    done = unbandit("report", *asked, "--candidates", "ucb1,uniform", "-o", "page.html")
    page = (tmp_path / "page.html").read_text()
    assert done.code == 0
    assert "Arms could be pulled in some rounds only" in page
    assert "Grey: it could not be pulled." in page
    done = unbandit("check", *asked, "--candidates", "ucb1")
    assert "The rule ucb1:exploration=2.0 fits this log." in done.out
    said = refused(4, "estimate", *asked, "--rule", "ucb1:exploration=fit")
    assert "ask `identify` with --candidates ucb1" in said
