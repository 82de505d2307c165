"""`unbandit plan` and `unbandit leak`."""

from __future__ import annotations

import json

import polars as pl
import pytest
import shell

import unbandit as ub

refused, unbandit = shell.refused, shell.unbandit

PLAN = ["plan", "two-armed", "--rule", "ucb:alpha=0.25", "--within", "0.3", "--runs", "20", "--points", "4"]
LEAK = ["leak", "linear", "--rule", "sae", "--horizon", "2000", "--runs", "20"]


def test_a_plan_shows_theory_and_simulation_side_by_side(unbandit):
    done = unbandit(*PLAN)
    assert done.code == 0
    assert "theory: rounds" in done.out
    assert "simulated: rounds" in done.out
    assert "All gaps by interval:" in done.out
    assert "Theorem 2" in done.err


def test_a_plan_as_json_is_that_of_python(unbandit):
    said = json.loads(unbandit(*PLAN, "--json").out)
    assert said == ub.plan("two-armed", "ucb:alpha=0.25", 0.3, runs=20, points=4).to_dict()


def test_a_leak_as_json_is_that_of_python(unbandit):
    said = json.loads(unbandit(*LEAK, "--json").out)
    assert said == ub.leak("linear", "sae", 2_000, runs=20).to_dict()


@pytest.mark.parametrize("asked", [PLAN, LEAK], ids=["plan", "leak"])
def test_pictures_tables_and_json_can_be_written(unbandit, tmp_path, asked):
    for name in ("a.png", "a.svg", "a.csv", "a.parquet", "a.json"):
        done = unbandit(*asked, "-o", name)
        assert done.code == 0
        assert f"{name}: written" in done.err
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "a.svg").read_text().lstrip().startswith("<?xml")
    assert pl.read_csv(tmp_path / "a.csv").columns == pl.read_parquet(tmp_path / "a.parquet").columns
    assert json.loads((tmp_path / "a.json").read_text())["schema"].startswith("unbandit.")


def test_means_of_ones_own(unbandit):
    asked = ["--means", "0.9,0.5,0.4", "--bernoulli", "--arms", "A,B,C", "--rule", "ucb:scale=0.5", "--runs", "20"]
    done = unbandit("leak", *asked, "--horizon", "500")
    assert done.code == 0
    assert "\n A " in done.out
    done = unbandit("plan", *asked, "--within", "0.3", "--points", "3")
    assert done.code == 0
    assert "\n C " in done.out


def test_rules_that_give_no_values_away(unbandit, refused):
    assert "they reveal nothing" in unbandit("leak", "linear", "--rule", "uniform", "--horizon", "100").out
    done = unbandit("leak", "linear", "--rule", "explore-then-commit", "--horizon", "500", "--runs", "20")
    assert "which arm it judged best" in done.out
    assert "uniform" in refused(4, "plan", "linear", "--rule", "uniform", "--within", "0.1")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "--rule", "ucb", "--within", "0.1"], "plan: expected either a data set or --means"),
        (["leak", "--rule", "ucb", "--horizon", "9"], "leak: expected either a data set or --means"),
        (["plan", "two-armed", "--rule", "ucb", "--within", "-1"], "within: expected a positive number"),
        (["plan", "two-armed", "--rule", "ucbb", "--within", "1"], "expected one of"),
        (["leak", "two-armed", "--rule", "ucb", "--horizon", "0"], "horizon"),
        ([*PLAN, "-o", "plan.xlsx"], ".png, .svg, .json; got"),
        ([*LEAK, "-o", "leak"], ".png, .svg, .json; got"),
        ([*PLAN, "--longest", "5"], "longest: expected 32"),
        (["plan", "two-armed", "--rule", "linucb:alpha=2", "--within", "1"], "Simulate logs of several lengths"),
        (["leak", "two-armed", "--rule", "lin-ts", "--horizon", "9"], 'gaps between arms; got "lin-ts", whose log'),
        (["leak", "--rule", "lin-ts"], 'gaps between arms; got "lin-ts", whose log'),
        (["plan", "--rule=linucb:alpha=1", "--theta", "1,-0.5"], "Simulate logs of several lengths"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_is_asked_wrongly_ends_with_2(refused, arguments, said):
    assert said in refused(2, *arguments)


def test_a_folder_that_is_not_there_is_refused_before_the_work(refused):
    assert "its folder does not exist" in refused(3, *PLAN, "-o", "missing/plan.png")
