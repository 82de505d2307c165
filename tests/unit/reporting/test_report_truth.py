"""The truth beside the answer: read, refused, put in the answer's terms."""

from __future__ import annotations

import re

import made
import pytest

import unbandit as ub
from unbandit.reporting.truth import read_truth
from unbandit.result import true_values


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arm,gap\nA,0\n", 'expected a column "mean"'),
        ("name,mean\nA,0\n", 'expected a column "arm"'),
        ("arm,mean\nA,0\nB,much\n", r'row 2 \(line 3\), column "mean": expected a number; got "much"'),
        ("arm,mean\nA,0\nB,\n", r"row 2 \(line 3\)"),
        ("arm,mean\nA,0\nB,inf\n", r"row 2 \(line 3\)"),
        ("arm,mean\nA,0\nA,1\n", 'expected every arm once; got "A" again'),
        ("", "empty file"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(tmp_path, text, said):
    (tmp_path / "truth.csv").write_text(text)
    with pytest.raises(ub.LogError, match=said):
        read_truth(tmp_path / "truth.csv")


def test_what_simulate_writes_is_read_in_every_format(tmp_path):
    import polars as pl

    table = pl.DataFrame({"arm": ["1", "2"], "mean": [0.5, 0.25], "gap": [0.0, 0.25]})
    table.write_parquet(tmp_path / "truth.parquet")
    table.write_csv(tmp_path / "truth.tsv", separator="\t")
    for name in ("truth.parquet", "truth.tsv"):
        assert read_truth(tmp_path / name) == {"1": 0.5, "2": 0.25}


def test_the_truth_of_other_arms_is_refused():
    with pytest.raises(ub.ParameterError, match="truth: expected the means of arms in the log"):
        ub.report(made.log_of(made.UCB, 100), made.UCB, sigma=0.5, truth={"X": 1.0})
    with pytest.raises(ub.ParameterError, match="truth: expected a finite number"):
        ub.report(made.log_of(made.UCB, 100), made.UCB, sigma=0.5, truth={"A": float("nan")})


def test_some_of_the_truth_is_enough_and_more_does_no_harm():
    report = ub.report(made.log_of(made.UCB, 500), made.UCB, sigma=0.5, best_mean=1.0, truth={"B": 0.7, "Z": 2.0})
    assert "the best arm, &#34;Z&#34;, was not found" in report.main
    assert len(re.findall(r"<td>(yes|no)</td>", report.main)) == 1


def test_it_is_put_in_the_terms_of_the_answer():
    answer = made.report_of("ratios").answer
    assert true_values(made.TRUTH, "mean", answer) == made.TRUTH
    assert true_values(made.TRUTH, "gap", answer) == pytest.approx({"A": 0.0, "B": 0.3, "C": 0.6, "D": 1.0})
    assert true_values(made.TRUTH, "ratio", answer) == pytest.approx({"A": 0.0, "B": 1.0, "C": 2.0, "D": 10 / 3})


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (
            "means",
            "The true values are known, but only the best arm&#39;s mean was used: the best arm, &#34;A&#34;, was "
            "found, and ",
        ),
        ("several", "The true values are known, but were not used: the best arm, &#34;A&#34;, was found, and "),
        (
            "elimination, open",
            "the best arm, &#34;A&#34;, is among those that may be the best, and 4 of 4 intervals hold",
        ),
        ("ratios", "the best arm, &#34;A&#34;, was found."),
    ],
)
def test_how_the_answer_fares(kind, said):
    assert said in made.report_of(kind).main


def test_what_was_given_of_the_truth_is_said():
    report = ub.report(made.log_of(made.UCB, 500), made.UCB, sigma=0.5, anchor={"B": 0.7}, truth=made.TRUTH)
    assert "but only the mean of &#34;B&#34; was used: the best arm" in report.main


def test_a_best_arm_that_is_ruled_out_is_said():
    truth = {"A": 0.0, "B": 0.1, "C": 0.2, "D": 1.0}
    report = ub.report(made.log_of("sae:alpha=0.25", 1_000), "sae:alpha=0.25", sigma=0.5, truth=truth)
    assert len(report.answer.best) > 1
    assert "the best arm, &#34;D&#34;, is not among those that may be the best, and " in report.main


def test_the_answer_does_not_look_at_it():
    told, untold = (
        ub.report(made.log_of(made.UCB, 500), made.UCB, sigma=0.5, truth=truth) for truth in (made.TRUTH, None)
    )
    assert told.answer.to_json() == untold.answer.to_json()
    assert "truth" not in re.sub("holds? the truth", "", untold.main.split("<h2 id")[1])
