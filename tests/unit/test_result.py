"""The answer's forms: rows, ranks, table, JSON, words, a notebook's table."""

from __future__ import annotations

import json
import warnings

import pytest
from shell import ROW, TOP

from unbandit import SAE, UCB, ActionLog, AssumptionWarning, Estimate, estimate
from unbandit.cli.output import estimate_table

NOTICE = ["code", "message", "round", "arm", "demonstration"]


def answered(log, rule="ucb:alpha=0.25,scale=1", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(log, rule, **({"sigma": 1.0} | options))


# A best, B estimated, C bounded, D unseen
FOUR = ActionLog.from_actions(list("ABC" + "A" * 8 + "BBB" + "A"), arms="ABCD")
TWO = ActionLog.from_actions([list("ABABAA"), list("BABBBB" + "BB")])


def strictly(text):
    """Read JSON, and refuse the NaN and Infinity that Python would let pass."""

    def refuse(name):
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


def test_the_json_has_the_keys_of_the_contract_in_order():
    result = answered(FOUR, best_mean=1.0)
    read = strictly(result.to_json())
    assert read == result.to_dict()
    assert list(read) == [*TOP, "arms"]
    assert [list(row) for row in read["arms"]] == [ROW] * 4
    assert {tuple(notice) for notice in read["warnings"] + read["notes"]} == {tuple(NOTICE)}
    assert (read["schema"], read["rule"], read["method"]) == ("unbandit.estimate/1", result.rule, "bracket")
    assert (read["horizon"], read["demonstrations"], read["level"]) == (15, 1, 0.95)
    assert (read["sigma"], read["seed"], read["best"]) == (1.0, None, ["A"])
    assert [row["arm"] for row in read["arms"]] == list("ABCD")
    assert [row["verdict"] for row in read["arms"]] == ["best", "estimated", "bounded", "unseen"]


def test_where_there_is_no_number_there_is_null():
    best, estimated, bounded, unseen = answered(FOUR, best_mean=1.0).to_dict()["arms"]
    assert (best["gap"], best["gap_low"], best["gap_high"], best["mean_low"]) == (0.0, None, None, None)
    assert [name for name in ROW if estimated[name] is None] == ["ratio"]
    assert [name for name in ROW if bounded[name] is None] == ["gap", "gap_high", "mean", "mean_low", "ratio"]
    assert [name for name in ROW if unseen[name] is None] == ROW[2:9]
    assert unseen["pulls"] == 0


def test_several_demonstrations_add_their_names_to_the_rows():
    read = strictly(answered(TWO).to_json())
    assert [set(row) for row in read["arms"]] == [{"demonstration", *ROW}] * 4
    assert [row["demonstration"] for row in read["arms"]] == ["1", "1", "2", "2"]
    assert (read["demonstrations"], read["horizon"]) == (2, [6, 8])
    assert answered(TWO, horizon=9).to_dict()["horizon"] == 9


def test_arms_are_text_in_json_whatever_they_were():
    read = answered(ActionLog.from_actions([3, 1, 3, 2])).to_dict()
    assert [row["arm"] for row in read["arms"]] == ["1", "2", "3"]
    assert read["best"] == ["3"]


def test_changing_what_to_dict_gives_does_not_change_the_answer():
    result = answered(FOUR)
    result.to_dict()["warnings"][0]["code"] = "changed"
    assert result.warnings[0].code == "opening"


def test_the_table_has_the_same_columns_and_nulls():
    import polars as pl

    frame = answered(FOUR, best_mean=1.0).to_frame()
    assert frame.columns == ROW
    assert dict(frame.schema) == {
        "arm": pl.String,
        "pulls": pl.Int64,
        **dict.fromkeys(ROW[2:9], pl.Float64),
        "verdict": pl.String,
    }
    assert frame.rows(named=True) == answered(FOUR, best_mean=1.0).to_dict()["arms"]
    assert not any(frame[name].is_nan().any() for name in ROW[2:9])
    several = answered(TWO).to_frame()
    assert several.columns == ["demonstration", *ROW]
    assert several["demonstration"].to_list() == ["1", "1", "2", "2"]


def test_ranks_go_by_gap_then_bounds_then_arms_never_seen():
    pulls = {"once": 1, "never": 0, "worst": 2, "near": 20, "best": 30, "far": 5}
    result = answered(ActionLog.from_counts(pulls))
    assert [row.arm for row in result.ranked()] == ["best", "near", "far", "worst", "once", "never"]
    assert [row.arm for row in result] == list(pulls)
    assert [row.arm for row in result.ranked(most=2)] == ["best", "near"]


def test_only_the_first_of_many_arms_are_printed(capsys):
    from unbandit.cli.output import MOST_ARMS, print_estimate

    pulls = {f"arm_{at}": 3 + at for at in range(MOST_ARMS + 5)}
    print_estimate(answered(ActionLog.from_counts(pulls)))
    lines = capsys.readouterr().out.splitlines()
    assert sum("arm_" in line for line in lines) == MOST_ARMS
    assert lines[-1] == "... and 5 more arms; see all of them with -o FILE or --json."


def test_arms_that_may_be_best_rank_first():
    # B is eliminated after 4 epochs; A and C are still active
    result = answered(ActionLog.from_actions(list("ABC" * 4 + "CA" * 0 + "AC" * 3)), "sae")
    assert [row.arm for row in result.ranked()] == ["A", "C", "B"]


def test_ratios_rank_as_their_gaps_would():
    log = ActionLog.from_counts({"far": 5, "best": 30, "near": 20})
    assert [row.arm for row in answered(log, scale="unknown").ranked()] == ["best", "near", "far"]


def test_each_demonstration_is_ranked_alone():
    result = answered(TWO)
    assert [(row.demonstration, row.arm) for row in result.ranked()] == [("1", "A"), ("1", "B"), ("2", "B"), ("2", "A")]
    assert [row.arm for row in result.ranked("2")] == ["B", "A"]


def test_an_answer_is_a_sequence_of_rows_by_label():
    result = answered(FOUR)
    assert (len(result), len(list(result)), result["B"].arm) == (4, 4, "B")
    assert answered(ActionLog.from_actions([1, 2, 1]))[2].arm == "2"
    with pytest.raises(KeyError):
        result["X"]


def test_words_say_everything_once():
    said = str(answered(FOUR, best_mean=1.0))
    assert said.splitlines()[0] == "ucb:alpha=0.25,scale=1.0 | bracket | 95% intervals"
    assert "A: best, gap 0, mean 1" in said
    assert "D: unseen\n" in said
    assert "warning: The opening" in said
    assert "note: The horizon" in said
    assert "nan" not in said.lower().replace("unbandit", "")


def test_a_notebook_shows_names_as_text():
    log = ActionLog.from_actions(["<script>alert(1)</script>", "a&b", "<script>alert(1)</script>", "a&b", "'\""])
    shown = answered(log)._repr_html_()
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "a&amp;b" in shown
    assert shown.count("<tr>") == 4
    assert "nan" not in shown


def test_a_notebook_names_demonstrations_where_there_are_several():
    assert "<th scope='col'>demonstration</th>" in answered(TWO)._repr_html_()
    assert "demonstration</th>" not in answered(FOUR)._repr_html_()


def test_many_demonstrations_are_ranked_in_good_time():
    import time

    log = UCB().demonstrate(_twenty(), 100, runs=500, seed=1)
    result = answered(log)
    start = time.perf_counter()
    assert len(result.ranked()) == 10_000
    assert all(len(result.ranked(name)) == 20 for name in result.demonstrations[:100])
    assert time.perf_counter() - start < 5  # some tenths of a second; quadratic in demonstrations it would be minutes


def _twenty():
    from unbandit import datasets

    return datasets.linear(20)


def test_unresolved_arms_are_all_best_in_json():
    read = answered(ActionLog.from_actions(list("ABAB")), SAE()).to_dict()
    assert read["best"] == ["A", "B"]
    assert [row["verdict"] for row in read["arms"]] == ["bounded", "bounded"]


def test_demonstrations_are_called_as_the_log_calls_them():
    rows = "".join(f"{who},{arm}\n" for who in ("ana", "17") for arm in "AB" + "AAAB" * 20 + "A" * 118)
    answer = estimate(ActionLog.from_bytes(f"subject,arm\n{rows}".encode()), "ucb:alpha=0.25", sigma=1.0)
    assert repr(answer).startswith("<Estimate: 2 arms, 2 subjects, ")
    again = Estimate.from_json(answer.to_json())
    assert (again.noun, again.demonstrations, again.to_json()) == ("subject", ("ana", "17"), answer.to_json())


def test_numbers_of_a_column_have_as_many_decimals():
    log = ActionLog.from_actions("ABC" + "AAAB" * 20 + "AC" * 3 + "A" * 118)
    table = estimate_table(estimate(log, "ucb:alpha=0.25", sigma=1.0), "1")
    gaps = list(table.columns[[column.header for column in table.columns].index("gap")].cells)
    assert len({len(str(gap).partition(".")[2]) for gap in gaps}) == 1
