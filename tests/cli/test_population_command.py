"""`unbandit population`, as a user types it."""

from __future__ import annotations

import json
import re
import sys

import numpy as np
import polars as pl
import pytest
import shell

import unbandit as ub

unbandit = shell.unbandit


@pytest.fixture
def asked(unbandit, tmp_path):
    """Return a function that asks about choices in the format of hBayesDM: tabs, subjID, trial, choice, outcome."""
    rows = []
    for subject in range(3):
        instance = ub.Instance([1.0, 0.0], 0.5)
        log = ub.LearningSoftmax(rate=0.3, temperature=0.4).demonstrate(instance, 40, seed=subject)
        rewards = np.random.default_rng(subject).normal(1.0 - log.actions, 0.5)
        for trial, (choice, outcome) in enumerate(zip(log.actions.tolist(), rewards.tolist(), strict=True), 1):
            rows.append({"subjID": subject + 1, "trial": trial, "choice": choice + 1, "reward": outcome})
    pl.DataFrame(rows).write_csv(tmp_path / "choices.txt", separator="\t")

    def ask(*options, rule="q-learning"):
        return unbandit("population", "choices.txt", "--rule", rule, *options)

    return ask


def test_tables_of_the_population_and_of_participants(asked, tmp_path):
    done = asked("-o", "forest.svg")
    assert done.code == 0, done.err
    assert (tmp_path / "forest.svg").stat().st_size > 0
    assert "typical participant" in done.out
    assert "shrinkage" in done.out
    assert "two thirds of them" in done.out
    assert re.search(r"Spread: rate .* of its log odds; temperature .* of its logarithm\.", done.out)
    assert "rate" in done.out
    assert "3 participants, 120 choices" in done.out
    assert "the spread of the population rests on its prior" in done.err


def test_warnings_stand_above_the_tables(asked, monkeypatch):
    monkeypatch.setattr("unbandit.cli.inference._print_population", lambda _: print("TABLES", file=sys.stderr))
    done = asked()
    assert done.err.index("warning:") < done.err.index("TABLES") < done.err.index("note:")
    assert "warning:" not in done.err[done.err.index("TABLES") :]


def test_values_that_all_share(asked, unbandit, tmp_path):
    done = asked("--values", "shared")
    assert done.code == 0, done.err
    assert "All participants share its mean." in done.out
    assert "95% interval" in done.out
    done = unbandit("report", "choices.txt", "--rule", "q-learning", "--population", "--values", "shared")
    assert done.code == 0, done.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "All participants have the same bandit" in page
    assert "best for a participant" not in page
    done = unbandit("report", "choices.txt", "--rule", "q-learning", "--values", "shared")
    assert (done.code, "expected with --rule and --population" in done.err) == (2, True)


def test_json_and_a_table(asked, tmp_path):
    done = asked("--json", "-o", "table.csv")
    answer = json.loads(done.out)
    assert answer["rewards_known"] is True
    assert [each["parameter"] for each in answer["population"]] == ["rate", "temperature"]
    assert len(answer["participants"]) == 3
    assert pl.read_csv(tmp_path / "table.csv").height == 6


@pytest.mark.parametrize(
    ("options", "rule", "code", "text"),
    [
        (["--values", "mine"], "q-learning", 2, '--values: expected one of own, shared; got "mine".'),
        ([], "uniform", 4, "no parameter that is known to differ"),
        ([], "ucb:alpha=0.25", 4, "the rule is deterministic"),
        (["--columns", "demonstration=,round="], "q-learning", 4, "one participant"),
    ],
)
def test_what_is_refused(asked, options, rule, code, text):
    done = asked(*options, rule=rule)
    assert done.code == code
    assert text in done.err


def test_a_report_has_the_population_the_forest_plot_and_every_participant(asked, unbandit, tmp_path):
    done = unbandit("report", "choices.txt", "--rule", "q-learning", "--population")
    assert done.code == 0, done.err
    assert "Among 3 participants, the typical rate is" in done.out
    assert "the spread of the population rests on its prior" in done.err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.count("<img ") == 2  # the forest plot, and a panel of choices for every participant
    assert "Forest plot of 3 participants. Pooled values of rate run from" in page
    arms, people = ["1", "2"], ["1", "2", "3"]  # these in a table for each parameter
    assert re.findall(r'<th scope="row"><bdi dir="auto">(.*?)</bdi></th>', page) == [*arms, *(2 * people)]
    assert '<th scope="col" class="amount">temperature</th>' in page
    participants = page.partition('id="report-participants"')[2].partition("</section>")[0]
    cells = re.findall(r'<td class="amount">(\d+\.\d+)</td><td class="reach">(\S+) to (\S+)</td>', participants)
    assert len(cells) == 6
    for column in (cells[:3], cells[3:]):  # rates, temperatures
        assert len({len(text.partition(".")[2]) for row in column for text in row}) == 1
    assert "<code>unbandit report choices.txt --rule q-learning --population</code>" in page
    for options in (["--windows", "2"], ["--pool"], ["--anchor", "1=0.5"], ["--truth", "truth.csv"]):
        refused = unbandit("report", "choices.txt", "--rule", "q-learning", "--population", *options)
        assert refused.code == 2
        assert f"{options[0]}: expected without --population" in refused.err
    alone = unbandit("report", "choices.txt", "--rule", "ucb:alpha=0.25", "--population")
    assert (alone.code, "the rule is deterministic" in alone.err) == (4, True)


def test_a_rule_that_does_not_fit_is_said_first_and_is_an_error_with_strict(asked, tmp_path):
    random = np.random.default_rng(1)
    rows = [
        {"subjID": subject, "trial": trial, "choice": int(random.random() < 0.85) + 1, "reward": random.normal()}
        for subject in range(6)
        for trial in range(40)
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "choices.txt", separator="\t")
    done = asked("--strict")
    assert done.code == 4
    assert (
        done.err.strip().splitlines()[0].startswith("warning: The choices do not look like those of learning-softmax")
    )
    found = json.loads(asked("--json", "--no-check").out)["check"]
    assert found["verdict"] == "not checked"


def test_missed_trials_are_counted_and_can_be_skipped(asked, tmp_path):
    path = tmp_path / "choices.txt"
    lines = path.read_text().splitlines()
    for at in (5, 60, 61):
        subject, trial, *_ = lines[at].split("\t")
        lines[at] = f"{subject}\t{trial}\t\t"
    path.write_text("\n".join(lines) + "\n")
    refused = asked()
    assert refused.code == 3
    assert "the first of 3 in 120 rows" in refused.err
    assert "--blank skip" in refused.err
    assert "--kept" not in refused.err
    done = asked("--blank", "skip")
    assert done.code == 0, done.err
    assert "3 participants, 117 choices" in done.out
    assert "3 rows without a choice were left out" in done.err


def test_the_arms_are_listed_with_the_best_first(asked):
    done = asked()
    lines = [line.split() for line in done.out.splitlines()]
    head = lines.index(["arm", "pulls", "P(best)", "mean", "lowest", "to", "highest"])
    rows = [line for line in lines[head + 1 : head + 4] if len(line) == 7]
    assert [row[0] for row in rows] == ["1", "2"]  # the first was worth 1, the second 0
    assert float(rows[0][2]) > 0.9 > 0.1 > float(rows[1][2])
    assert float(rows[0][3]) > 0.5 > float(rows[1][3].replace("−", "-"))
