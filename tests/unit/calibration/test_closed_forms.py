"""Trials of the closed forms: the same records for every method, and metrics against rows counted one by one."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import unbandit as ub
from unbandit import Bernoulli, Gaussian, parse_rule
from unbandit.calibration.closed_forms import (
    BERNOULLI_RULES,
    GAUSSIAN_RULES,
    ClosedFormCell,
    ClosedFormTrials,
    closed_form_cells,
    closed_form_metrics,
    paper_cells,
)

CELLS = (
    ClosedFormCell("random", parse_rule("ucb:alpha=0.25"), 3, 120, 12, Gaussian(0.5)),
    ClosedFormCell("random", parse_rule("klucb"), 3, 120, 6, Bernoulli()),
    ClosedFormCell("even", parse_rule("sae:alpha=0.25,scale=0.4"), 3, 300, 30, Gaussian(0.5), (1.0, 0.5, 0.0)),
    ClosedFormCell("near", parse_rule("ucb1"), 3, 120, 8, Gaussian(0.5)),
)
TRIALS = ClosedFormTrials(CELLS, seed=5)


@pytest.fixture(scope="module")
def rows():
    return pl.concat([TRIALS.rows(task) for task in TRIALS.tasks])


def played(cell, run):
    """Play one run by itself, and return its log and instance."""
    seed = cell.seed(TRIALS.seed)
    if cell.means is None:
        instance = ub.Instance(cell.drawn_means(seed, run), cell.noise)
    else:
        instance = ub.Instance(cell.means, cell.noise).reordered(ub.Tape(seed).orders([run], cell.arms)[0])
    return cell.rule.demonstrate(instance, cell.horizon, seed=seed, first_run=run), instance, seed


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
@pytest.mark.parametrize("at", range(len(CELLS)))
def test_rows_are_what_estimate_says_of_the_same_log(rows, at):
    cell = CELLS[at]
    for run in (0, 3):
        log, instance, seed = played(cell, run)
        own = rows.filter(cell=at, run=run)
        assert own["pulls"].to_list() == log.pulls[0].tolist()
        assert own["gap"].to_numpy() == pytest.approx(instance.gaps)
        known = {"sigma": 0.5} if isinstance(cell.noise, Gaussian) else {"bernoulli": True}
        for method in ("bracket", "switching"):
            best = instance.best_mean if cell.rule.name == "klucb" else None
            answer = ub.estimate(log, cell.rule, method=method, best_mean=best, **known)
            for name, column in (("gap", method), ("gap_low", f"{method} low"), ("gap_high", f"{method} high")):
                expected = [np.nan if (value := getattr(row, name)) is None else value for row in answer]
                if name == "gap":
                    assert own[column].cast(pl.Float64).fill_null(np.nan).to_numpy() == pytest.approx(
                        expected, nan_ok=True
                    )
                else:  # the best arm has no interval in an answer
                    best_arm = own[f"{method} verdict"].to_numpy() == 0
                    found = own[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
                    assert found[~best_arm] == pytest.approx(np.array(expected)[~best_arm], nan_ok=True)
        rewards = [ub.Tape(seed).reward(instance, run, arm, np.arange(1, n + 1)) for arm, n in enumerate(log.pulls[0])]
        top = int(log.pulls[0].argmax())
        first = [len(each) if cell.rule.name == "sae" else None for each in rewards]
        expected = [rewards[top][:until].mean() - each.mean() for each, until in zip(rewards, first, strict=True)]
        assert own["seen"].to_numpy() == pytest.approx(np.array(expected))


def test_metrics_are_those_of_the_rows(rows):
    for at, cell in enumerate(CELLS):
        own = rows.filter(cell=at)
        found = closed_form_metrics(cell, own)
        given = own.filter(pl.col("bracket verdict") == 1)
        held = (given["bracket low"] <= given["gap"]) & (given["gap"] <= given["bracket high"])
        assert (found.intervals, found.coverage.value) == (given.height, pytest.approx(held.mean()))
        both = given.filter(pl.col("switching verdict") == 1)
        root = {name: np.sqrt(((both[name] - both["gap"]) ** 2).mean()) for name in ("bracket", "switching", "naive")}
        assert found.against_procedures.value == pytest.approx(root["bracket"] / root["switching"])
        assert found.against_naive.value == pytest.approx(root["bracket"] / root["naive"])
        assert found.reach_zero.value == pytest.approx((given["bracket low"] <= 0).mean())
        assert found.bounds == own.filter(pl.col("bracket verdict") == 2).height
        assert (found.pull_counts > 0) == (cell.means is not None)
        assert found.unwarned.value == found.coverage.value  # three arms are too few for the notice
    assert found.coverage.error > 0


def test_every_rule_with_a_closed_form_plays_every_design():
    names = {parse_rule(text).name for text in (*GAUSSIAN_RULES, *BERNOULLI_RULES) if closed_form_cells(text)}
    assert names == {"ucb", "ucb1", "klucb", "lilucb", "moss", "sae", "phased", "ucbv"}
    for text in (*GAUSSIAN_RULES, *BERNOULLI_RULES):
        cells = closed_form_cells(text)
        assert all(cell.runs >= 300 for cell in cells)
        assert {cell.design for cell in cells} >= ({"random", "even", "near"} if cells else set())
    assert not closed_form_cells("thompson:noise=bernoulli")
    assert len(list(paper_cells("ucb"))) == 15
    assert {cell.horizon for cell in paper_cells("sae")} == {5_000, 50_000}


def test_tasks_and_seeds_do_not_depend_on_the_number_of_runs():
    few, many = (closed_form_cells("moss", runs) for runs in (2, 300))
    assert [cell.seed(1) for cell in few] == [cell.seed(1) for cell in many]
    assert len({cell.seed(1) for cell in many}) == len(many)
    assert ClosedFormTrials(few) != ClosedFormTrials(many)
