"""`unbandit posterior`, as a user types it."""

from __future__ import annotations

import json

import polars as pl
import pytest
import shell

import unbandit as ub

unbandit = shell.unbandit

RULE = "softmax:temperature=0.3"


@pytest.fixture
def asked(unbandit, tmp_path):
    """Return a function that asks for the posterior of a log in the folder."""
    instance = ub.Instance([1.0, 0.5, 0.0], 0.5, arms="ABC")
    ub.Softmax(temperature=0.3).demonstrate(instance, 200, seed=4).write(tmp_path / "log.csv")

    def ask(*options, rule=RULE):
        return unbandit("posterior", "log.csv", "--rule", rule, "--sigma", "0.5", "--particles", "200", *options)

    return ask


def test_a_table_with_probabilities(asked):
    done = asked("--pair", "A,C", "--by", "0.2")
    assert done.code == 0
    assert "P(best)" in done.out
    assert 'P("A" beats "C" by 0.2 or more) = ' in done.out
    assert "log evidence" in done.out
    assert "their common level comes from the prior" in done.err


def test_arms_may_have_come_late(asked, tmp_path):
    (tmp_path / "arms.csv").write_text("arm,first,last\nC,3,\n")
    assert asked("--availability", "arms.csv", "--no-check").code == 0
    (tmp_path / "arms.csv").write_text("arm,first,last\nC,4,\n")
    assert 'arm "C" is pulled in round 3, and its first round is 4.' in asked("--availability", "arms.csv").err


def test_json_has_every_arm(asked):
    answer = json.loads(asked("--json", "--seed", "3").out)
    assert answer["schema"] == "unbandit.posterior/1"
    assert answer["seed"] == 3
    assert sorted(row["arm"] for row in answer["arms"]) == ["A", "B", "C"]
    assert sum(row["probability_best"] for row in answer["arms"]) == pytest.approx(1)


@pytest.mark.parametrize("name", ["table.csv", "table.parquet", "answer.json", "path.png", "path.svg", "draws.nc"])
def test_what_the_name_asks_for_is_written(asked, name, tmp_path):
    done = asked("-o", name)
    assert done.code == 0
    assert (tmp_path / name).stat().st_size > 0
    if name == "table.parquet":
        assert pl.read_parquet(tmp_path / name).height == 3


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--pair", "A"], 2, '--pair: expected two arms, as in A,B; got "A".'),
        (["--pair", "A,Z"], 2, '--pair: expected one of A, B, C; got "Z".'),
        (["--prior", "normal:deviation=0"], 2, "prior: deviation: expected a positive number"),
        (["--bernoulli"], 2, "Bernoulli rewards have no sigma"),
        (["-o", "answer.xyz"], 2, "--output"),
        (["-o", "nowhere/draws.nc"], 3, "its folder does not exist"),
        (["--horizon", "50"], 3, "log.csv: the log has 200 rounds, more than the horizon 50"),
    ],
)
def test_what_is_refused(asked, options, code, text):
    done = asked(*options)
    assert done.code == code
    assert text in done.err


def test_a_record_that_the_rule_cannot_make(asked):
    done = asked(rule="phased")
    assert done.code == 4
    assert "round " in done.err


def test_ties_broken_at_random_are_found_and_said(unbandit, tmp_path):
    rule = ub.UCB1(ties="random")
    rule.demonstrate(ub.Instance([0.8, 0.6, 0.4, 0.2], ub.Bernoulli()), 80, seed=5).write(tmp_path / "ties.csv")
    options = ("ties.csv", "--bernoulli", "--arms", "0,1,2,3", "--particles", "200")
    done = unbandit("posterior", *options, "--rule", "ucb1")
    assert done.code == 0
    assert "ucb1:exploration=2.0,ties=random, prior" in done.out
    assert "note: Ties between arms are assumed to be broken at random" in " ".join(done.err.split())
    answer = json.loads(unbandit("posterior", *options, "--rule", "ucb1:ties=lowest", "--json").out)
    assert answer["rule"] == "ucb1:exploration=2.0,ties=random"
    assert "ties-at-random" in [notice["code"] for notice in answer["warnings"]]
    estimated = unbandit("estimate", *options, "--rule", "ucb1", "--method", "posterior", "--json")
    assert json.loads(estimated.out)["rule"] == answer["rule"]


def test_numbers_that_another_seed_would_move_are_named(unbandit, tmp_path):
    rule = ub.EpsilonGreedy(epsilon=0.2)
    rule.demonstrate(ub.Instance([1.0, 0.5, 0.0, -0.5], 0.5), 400, seed=3).write(tmp_path / "hard.csv")
    asked = ("posterior", "hard.csv", "--rule", "epsilon-greedy:epsilon=0.2", "--sigma", "0.5")
    starved = unbandit(*asked, "--particles", "3")
    assert "another seed would typically change the" in " ".join(starved.err.split())
    assert "Give more --particles than 3" in " ".join(starved.err.split())


def test_clouds_that_disagree_on_the_evidence_say_so_in_table_json_and_report(unbandit, tmp_path):
    ub.EpsilonGreedy().demonstrate(ub.Instance([0.5, 0.45, 0.4, 0.1], ub.Bernoulli()), 600, seed=3).write(
        tmp_path / "log.csv"
    )
    options = ("log.csv", "--rule", "epsilon-greedy", "--bernoulli", "--particles", "4", "--no-check")
    assert "Intervals may be too short. Give more --particles than 4" in unbandit("posterior", *options).err
    warnings = json.loads(unbandit("posterior", *options, "--json").out)["warnings"]
    assert "evidence-differs" in [each["code"] for each in warnings]
    assert unbandit("report", *options, "-o", "report.html").code == 0
    assert "The computation may have missed something" in (tmp_path / "report.html").read_text()


def test_of_several_demonstrations_one_is_chosen_by_name(unbandit, tmp_path):
    instance = ub.Instance([1.0, 0.5, 0.0], 0.5, arms="ABC")
    logs = ub.Softmax(temperature=0.3).demonstrate(instance, 60, runs=2, seed=4)
    logs.to_frame().with_columns(pl.col("demonstration").cast(pl.String) + "th").write_csv(tmp_path / "two.csv")
    asked = ("posterior", "two.csv", "--rule", RULE, "--sigma", "0.5", "--particles", "100", "--no-check")
    first, second = ub.ActionLog.read(tmp_path / "two.csv").demonstrations
    done = unbandit(*asked)
    assert (done.code, f"as in --demonstration {first}." in done.err) == (2, True)
    assert (
        f'--demonstration: expected one of {first}, {second}; got "x"' in unbandit(*asked, "--demonstration", "x").err
    )
    done = unbandit(*asked, "--demonstration", second, "--json")
    logs.select(1).write(tmp_path / "log.csv")
    alone = unbandit("posterior", "log.csv", *asked[2:], "--json")
    assert json.loads(done.out)["arms"] == json.loads(alone.out)["arms"]
