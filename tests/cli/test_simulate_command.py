"""`unbandit simulate`: logs of a rule on a known instance."""

from __future__ import annotations

import io

import polars as pl
import pytest
import shell

from unbandit import UCB, ActionLog, Bernoulli, Instance, datasets

refused, unbandit = shell.refused, shell.unbandit

ASKED = ["--rule", "ucb:alpha=0.25", "--horizon", "200"]


@pytest.mark.parametrize("name", ["log.csv", "log.tsv", "log.parquet", "log.csv.gz"])
def test_a_log_can_be_written_in_every_format(unbandit, tmp_path, name):
    done = unbandit("simulate", "two-armed", *ASKED, "--runs", "3", "--seed", "4", "-o", name)
    assert (done.code, done.out) == (0, "")
    assert done.err.strip() == f"{name}: 3 x 200 rounds of {UCB(alpha=0.25)} on two-armed (2 arms)"
    expected = UCB(alpha=0.25).demonstrate(datasets.two_armed(), 200, runs=3, seed=4)
    assert ActionLog.read(tmp_path / name) == expected
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_log_goes_to_standard_output_unless_told(unbandit):
    done = unbandit("simulate", "two-armed", *ASKED)
    assert (done.code, done.err) == (0, "")
    frame = pl.read_csv(io.StringIO(done.out))
    assert (frame.columns, len(frame)) == (["round", "arm"], 200)
    assert unbandit("simulate", "two-armed", *ASKED, "-o", "-").out == done.out
    assert pl.read_csv(io.StringIO(unbandit("simulate", "two-armed", *ASKED, "--runs", "2").out)).columns == [
        "demonstration",
        "round",
        "arm",
    ]


@pytest.mark.parametrize("draw", ["every", "needed"])
def test_counts_instead_of_a_log(unbandit, tmp_path, draw):
    asked = ["simulate", "two-armed", *ASKED, "--runs", "3", "--seed", "4", "--counts", "--draw", draw]
    done = unbandit(*asked, "-o", "counts.csv")
    assert (done.code, done.out) == (0, "")
    expected = UCB(alpha=0.25).evidence(datasets.two_armed(), 200, runs=3, seed=4, draw=draw)
    frame = pl.read_csv(tmp_path / "counts.csv")
    assert frame["demonstration"].to_list() == [1, 1, 2, 2, 3, 3]
    assert frame["pulls"].to_list() == expected.pulls.ravel().tolist()
    assert frame["switching_pulls"].fill_null(0).to_list() == expected.own.ravel().tolist()
    assert frame["switching_pulls_of_best"].fill_null(0).to_list() == expected.of_best.ravel().tolist()
    done = unbandit("estimate", "counts.csv", "--rule", "ucb:alpha=0.25", "--sigma", "1", "--best-mean", "1", "--json")
    assert (done.code, '"method": "counts"' in done.out) == (0, True)


@pytest.mark.parametrize("rule", ["sae", "thompson", "uniform", "ucb1"])
def test_every_rule_can_be_counted(unbandit, rule):
    done = unbandit("simulate", "two-armed", "--rule", rule, "--horizon", "100", "--counts")
    frame = pl.read_csv(io.StringIO(done.out))
    assert frame["pulls"].sum() == 100
    assert ("switching_pulls" in frame.columns) == (rule == "ucb1")


def test_a_horizon_too_long_for_any_log(unbandit):
    done = unbandit("simulate", "two-armed", "--rule", "ucb", "--horizon", 10**9, "--counts", "--draw", "needed")
    assert pl.read_csv(io.StringIO(done.out))["pulls"].sum() == 10**9


def test_what_draw_is_not_for(refused):
    asked = ["simulate", "two-armed", "--horizon", "100", "-o", "x.csv"]
    assert "Add --counts" in refused(2, *asked, "--rule", "ucb", "--draw", "needed")
    assert "got sae" in refused(2, *asked, "--rule", "sae", "--counts", "--draw", "needed")
    assert 'got "some"' in refused(2, *asked, "--rule", "ucb", "--counts", "--draw", "some")


def test_what_was_simulated_can_be_estimated(unbandit, tmp_path):
    unbandit("simulate", "two-armed", *ASKED, "--runs", "2", "-o", "log.parquet", "--truth", "truth.csv")
    done = unbandit("estimate", "log.parquet", "--rule", "ucb:alpha=0.25", "--sigma", "1", "--best-mean", "1")
    assert done.code == 0
    assert pl.read_csv(tmp_path / "truth.csv").rows() == [(0, 1.0, 0.0), (1, 0.5, 0.5)]


def test_means_of_ones_own(unbandit, tmp_path):
    asked = ["simulate", "--means", "1, 0.5,0.2", *ASKED, "--seed", "9"]
    expected = UCB(alpha=0.25).demonstrate(Instance([1, 0.5, 0.2], 0.3, ["x", "y", "z"]), 200, seed=9)
    unbandit(*asked, "--sigma", "0.3", "--arms", "x,y,z", "-o", "a.csv", "--truth", "truth.parquet")
    assert ActionLog.read(tmp_path / "a.csv", arms=["x", "y", "z"]) == expected
    assert pl.read_parquet(tmp_path / "truth.parquet")["arm"].to_list() == ["x", "y", "z"]
    unbandit(*asked, "--bernoulli", "-o", "b.csv")
    expected = UCB(alpha=0.25).demonstrate(Instance([1, 0.5, 0.2], Bernoulli()), 200, seed=9)
    assert ActionLog.read(tmp_path / "b.csv") == expected
    unbandit(*asked, "-o", "c.csv")
    assert ActionLog.read(tmp_path / "c.csv") == UCB(alpha=0.25).demonstrate(Instance([1, 0.5, 0.2]), 200, seed=9)


@pytest.mark.parametrize("rule", ["ucb", "sae:alpha=0,scale=0.5"])
def test_the_same_seed_gives_the_same_bytes_on_any_number_of_threads(unbandit, tmp_path, rule):
    asked = ["simulate", "linear", "--rule", rule, "--horizon", "300", "--runs", "9", "--seed", "5"]
    for name in ("log.csv", "log.parquet", "log.csv.gz"):
        written = []
        for threads in ("1", "2", "1"):
            assert unbandit(*asked, "--threads", threads, "-o", name).code == 0
            written.append((tmp_path / name).read_bytes())
        assert written[0] == written[1] == written[2]
    other = unbandit(*asked[:-1], "6", "-o", "other.csv")
    assert other.code == 0
    assert (tmp_path / "other.csv").read_bytes() != (tmp_path / "log.csv").read_bytes()


def test_some_arms_of_a_data_set(unbandit, tmp_path):
    unbandit("simulate", "battery-high", "--arms", "20", *ASKED, "-o", "a.csv", "--truth", "truth.csv")
    truth = pl.read_csv(tmp_path / "truth.csv")
    assert truth["arm"].to_list() == list(datasets.load("battery-high", arms=20).arms)
    assert (truth.columns, truth["gap"].min()) == (["arm", "mean", "gap"], 0.0)
    unbandit("simulate", "gene", "--arms", "1,50,12979", *ASKED, "-o", "b.csv", "--truth", "ranks.csv")
    assert len(pl.read_csv(tmp_path / "ranks.csv")) == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--rule", "ucb", "--horizon", "9"], "expected either a data set or --means"),
        (["two-armed", "--means", "1,0", *ASKED], "expected either a data set or --means"),
        (["two-armd", *ASKED], 'Did you mean "two-armed"?'),
        (["two-armed", "--rule", "ucb:alpha=1", "--horizon", "9"], "alpha"),
        (["two-armed", "--rule", "sea", "--horizon", "9"], 'Did you mean "sae"?'),
        (["two-armed", "--rule", "ucb", "--horizon", "0"], "horizon: expected a whole number"),
        (["two-armed", *ASKED, "--runs", "0"], "runs: expected a whole number"),
        (["two-armed", *ASKED, "--threads", "0"], "threads: expected a whole number"),
        (["two-armed", *ASKED, "--sigma", "1"], "a data set has its own noise"),
        (["two-armed", *ASKED, "--bernoulli"], "a data set has its own noise"),
        (["battery-high", *ASKED, "--arms", "some"], "--arms: expected how many"),
        (["battery-high", *ASKED, "--arms", "1"], "arms"),
        (["--means", "1", *ASKED], "means: expected a list of two numbers or more"),
        (["--means", "1,x", *ASKED], "--means: expected numbers between commas"),
        (["--means", "1,nan", *ASKED], "means: expected finite numbers"),
        (["--means", "1,0", "--sigma", "0", *ASKED], "sigma: expected a positive number"),
        (["--means", "1,0", "--sigma", "1", "--bernoulli", *ASKED], "leave one of the two out"),
        (["--means", "1,2", "--bernoulli", *ASKED], "expected probabilities"),
        (["--means", "1,0", "--arms", "x", *ASKED], "arms: expected 2 names"),
        (["--means", "1,0", "--arms", "x,x", *ASKED], "arms: expected different names"),
        (["two-armed", *ASKED, "-o", "log.xlsx"], "expected a name that ends in"),
        (["two-armed", *ASKED, "-o", "log.csv", "--truth", "truth"], "expected a name that ends in"),
        (["two-armed", "--rule", "ucb", "--horizon", "4000000000", "--runs", "4000000"], "not enough memory"),
    ],
    ids=lambda value: " ".join(value)[:50] if isinstance(value, list) else "",
)
def test_what_cannot_be_simulated_ends_with_2(refused, arguments, said):
    assert said in refused(2, "simulate", *arguments)


def test_where_nothing_can_be_written_nothing_is(refused):
    assert "could not be written" in refused(3, "simulate", "two-armed", *ASKED, "-o", "missing/log.csv")
    assert "could not be written" in refused(3, "simulate", "two-armed", *ASKED, "--truth", "missing/truth.csv")


def test_the_truth_is_not_left_behind_without_the_log(refused):
    refused(3, "simulate", "two-armed", *ASKED, "--truth", "truth.csv", "-o", "missing/log.csv")


def test_arms_arrive_late_or_are_withdrawn(unbandit, refused, tmp_path):
    (tmp_path / "arms.csv").write_text("arm,first,last\n0,,150\n1,51,\n")
    asked = ["--means", "1,0.2", "--sigma", "0.5", *ASKED, "--availability", "arms.csv"]
    done = unbandit("simulate", *asked, "--seed", "3", "-o", "log.csv")
    assert done.code == 0
    actions = ActionLog.read(tmp_path / "log.csv").demonstration(0).tolist()
    assert (set(actions[:50]), actions[50], set(actions[150:])) == ({0}, 1, {1})
    told = unbandit("estimate", "log.csv", "--rule", "ucb:alpha=0.25", "--sigma", "0.5", "--availability", "arms.csv")
    assert told.code == 0
    assert 'Arms could be pulled in some rounds only: "0" to round 150, "1" from round 51.' in told.err
    assert "--availability: expected without --counts" in refused(2, "simulate", *asked, "--counts")
