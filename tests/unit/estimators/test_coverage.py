"""The row of the table of simulations that a log is like, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unbandit import parse_rule
from unbandit._version import __version__
from unbandit.estimators import coverage
from unbandit.estimators.coverage import SimulatedCoverage, coverage_like, coverages_csv, shipped_coverages

UCB, WIDE = (str(parse_rule(text)) for text in ("ucb:alpha=0.25", "ucb:alpha=0.5"))
ROW = SimulatedCoverage("bracket", "gap", UCB, "gaussian", 4, 2_000, 0.9463, 0.0061, 1_000, __version__)
TABLE = (
    ROW, replace(ROW, arms=10, rounds=5_000), replace(ROW, rule=WIDE, coverage=0.9), replace(ROW, noise="bernoulli"),
    replace(ROW, method="posterior", quantity="mean"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("bracket", "gap", UCB, False, 4, 2_000), 0),
        (("bracket", "gap", UCB, False, 8, 6_000), 1),
        (("bracket", "gap", UCB, False, 3, 600), 0),
        (("bracket", "gap", WIDE, False, 4, 2_000), 2),
        (("bracket", "gap", "ucb:alpha=0.75", False, 4, 2_000), 0),
        (("bracket", "gap", UCB, True, 4, 2_000), 3),
        (("posterior", "mean", UCB, False, 4, 2_000), 4),
        (("posterior", "gap", UCB, False, 4, 2_000), None),
        (("switching", "gap", UCB, False, 4, 2_000), None),
        (("bracket", "gap", "ucb1", False, 4, 2_000), None),
        (("bracket", "gap", UCB, False, 40, 2_000), None),
        (("bracket", "gap", UCB, False, 4, 100_000), None),
    ],
)
def test_the_nearest_simulations_of_the_rule_are_found_or_none(asked, found):
    method, quantity, rule, *size = asked
    row = coverage_like(method, quantity, parse_rule(rule), *size, table=TABLE)
    assert row == (None if found is None else TABLE[found])


def test_a_row_is_written_as_a_sentence():
    assert str(ROW) == (
        "In simulations like this one (ucb:alpha=0.25,scale=1.414, 4 arms, 2,000 rounds) 95% intervals of gaps held in "
        "94.6% of cases (± 0.6%, 1,000 runs)."
    )
    assert str(replace(ROW, version="0.6.0")).endswith("1,000 runs, measured by unbandit 0.6.0).")


def test_the_table_is_read_as_it_was_written(tmp_path, monkeypatch):
    (tmp_path / "coverage.csv").write_text(coverages_csv(TABLE), encoding="utf-8")
    monkeypatch.setattr(coverage.resources, "files", lambda package: tmp_path)
    shipped_coverages.cache_clear()
    try:
        assert shipped_coverages() == TABLE
    finally:
        shipped_coverages.cache_clear()


def test_the_table_that_is_shipped_has_every_rule_with_a_closed_form():
    rows = shipped_coverages()
    assert all(row.version.count(".") == 2 for row in rows)
    assert {row.rule.partition(":")[0] for row in rows} >= {"ucb", "ucb1", "moss", "klucb", "lilucb", "sae", "phased"}
    assert all(0.5 < row.coverage <= 1 and row.runs >= 100 for row in rows)
