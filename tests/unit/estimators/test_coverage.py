"""The row of the table of simulations that a log is like, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unbandit import parse_rule
from unbandit._version import __version__
from unbandit.estimators import coverage
from unbandit.estimators.coverage import (
    SimulatedCoverage,
    coverage_like,
    coverages_csv,
    quote_coverage,
    shipped_coverages,
)

UCB, WIDE = (str(parse_rule(text)) for text in ("ucb:alpha=0.25", "ucb:alpha=0.5"))
ROW = SimulatedCoverage("bracket", "gap", UCB, "gaussian", 4, 2_000, 0.9463, 0.0061, 1_000, __version__)
TABLE = (
    ROW, replace(ROW, arms=10, rounds=5_000), replace(ROW, rule=WIDE, coverage=0.9), replace(ROW, noise="bernoulli"),
    replace(ROW, method="posterior", quantity="mean"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("bracket", "gap", UCB, 0.5, 4, 2_000), 0),
        (("bracket", "gap", UCB, 0.5, 8, 6_000), 1),
        (("bracket", "gap", UCB, 0.5, 3, 600), 0),
        (("bracket", "gap", WIDE, 0.5, 4, 2_000), 2),
        (("bracket", "gap", "ucb:alpha=0.75", 0.5, 4, 2_000), 2),
        (("bracket", "gap", "ucb:alpha=0.3,sigma=0.3", 0.5, 4, 2_000), 0),
        (("bracket", "gap", UCB, 1.0, 4, 2_000), 0),
        (("bracket", "gap", UCB, None, 4, 2_000), 3),
        (("posterior", "mean", UCB, 0.5, 4, 2_000), 4),
        (("posterior", "gap", UCB, 0.5, 4, 2_000), "none of gaps"),
        (("switching", "gap", UCB, 0.5, 4, 2_000), "none of the method switching"),
        (("bracket", "gap", "ucb1", 0.5, 4, 2_000), "none of the rule ucb1"),
        (("bracket", "gap", UCB, 0.5, 40, 2_000), "none with about 40 arms"),
        (("bracket", "gap", UCB, 0.5, 4, 100_000), "none with about 100,000 rounds"),
        (("bracket", "gap", UCB, 0.1, 4, 2_000), "none with sigma near 0.1"),
        (("bracket", "gap", "ucb:alpha=0", 0.5, 4, 2_000), "none with parameters near these"),
        (("bracket", "gap", "ucb:alpha=0.25,batch=2", 0.5, 4, 2_000), "none with batch=2"),
    ],
)
def test_the_nearest_simulations_of_the_rule_are_found_or_none(asked, found):
    method, quantity, rule, *size = asked
    row, difference = coverage_like(method, quantity, parse_rule(rule), *size, table=TABLE)
    if isinstance(found, str):
        assert (row, difference) == (None, found)
    else:
        assert row == TABLE[found]
        expected = ["your rule has other parameters"] * (str(parse_rule(rule)) not in (UCB, WIDE))
        assert difference == ", ".join([*expected, *["sigma 0.5 where yours is 1"] * (size[0] == 1.0)])


def test_defaults_are_named_where_only_another_setting_was_simulated():
    table = [replace(ROW, rule=str(parse_rule("ucb:alpha=0.25,batch=5")))]
    assert "(none with its default settings)" in quote_coverage("bracket", "gap", parse_rule(UCB), 0.5, 4, 2_000, table)


def test_a_row_is_written_as_a_sentence():
    assert ROW.quoted() == (
        "In simulations like this one (ucb:alpha=0.25,scale=1.414, 4 arms, 2,000 rounds) 95% intervals of gaps held "
        "the truth in 94.6% of cases (± 0.6%, 1,000 runs; arms with the verdict estimated)."
    )
    assert ROW.quoted("your rule has other parameters").startswith(
        "In the nearest simulations (ucb:alpha=0.25,scale=1.414, 4 arms, 2,000 rounds; your rule has other parameters) "
    )
    older = replace(ROW, method="posterior", version="0.6.0").quoted()
    assert older.endswith("(± 0.6%, 1,000 runs, measured by unbandit 0.6.0).")


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
