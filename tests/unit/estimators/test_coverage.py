"""The row of the table of simulations that a log is like, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unbandit import parse_rule
from unbandit._version import __version__
from unbandit.contexts.rule import parse_rule as linear_or_plain
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


FITS = tuple(
    replace(ROW, method=coverage.FITTED, rule=rule, coverage=held)
    for rule, held in (("ucb:alpha=0.25,scale=fit", 0.94), ("learning-softmax:rate=fit,temperature=fit", 0.95))
)


@pytest.mark.parametrize(
    ("rule", "fitted", "found"),
    [
        ("ucb:alpha=0.25,scale=7", ["scale"], FITS[0]),
        ("learning-softmax:rate=0.01,temperature=9", ["rate", "temperature"], FITS[1]),
        ("learning-softmax:rate=0.01,temperature=9", ["rate"], "none with rate fitted"),
        ("ucb:alpha=0.6,scale=7", ["scale"], "none with parameters near these"),
        ("ucb:alpha=0.25,scale=7,batch=2", ["scale"], "none with batch=2"),
        ("moss:scale=7", ["scale"], "none of the rule moss"),
    ],
)
def test_fitted_numbers_may_be_any_where_they_were_fitted_in_the_simulations_too(rule, fitted, found):
    row, difference = coverage_like("fit", "gap", parse_rule(rule), 0.5, 4, 2_000, table=FITS, fitted=fitted)
    assert (row, difference) == ((None, found) if isinstance(found, str) else (found, ""))
    if row is not None:
        assert "=fit" in row.quoted()


@pytest.mark.parametrize(
    ("rule", "features", "found"),
    [
        ("linucb:alpha=1", 5, ""),
        ("linucb:alpha=2", 3, "your rule has other parameters"),
        ("linucb:alpha=1", 20, None),
        ("linucb:alpha=1,disjoint=true", 5, None),
        ("lints:v=1", 5, None),
    ],
)
def test_logs_with_features_have_simulations_of_their_own(rule, features, found):
    table = [replace(ROW, method="contexts", quantity="coefficient", rule="linucb:alpha=1", features=5)]
    how = {"features": features, "read": linear_or_plain, "table": table}
    row, difference = coverage_like("contexts", "coefficient", linear_or_plain(rule), 0.5, 4, 1_000, **how)
    if found is None:
        assert row is None
    else:
        assert (row, difference) == (table[0], found)
        assert "5 features, 4 arms, 2,000 rounds" in row.quoted()
        assert "arms with the verdict" not in row.quoted()


def test_rounded_numbers_count_as_the_same():
    row, difference = coverage_like("bracket", "gap", parse_rule("ucb:alpha=0.25,scale=1.414"), 0.5, 4, 2_000, TABLE)
    assert (row, difference) == (ROW, "")


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
    assert all(0.5 < row.coverage <= 1 and row.runs >= (40 if row.method == coverage.FITTED else 100) for row in rows)
