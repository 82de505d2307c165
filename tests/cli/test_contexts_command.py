"""Logs with contexts in the shell: simulated, estimated, and refused where an option means nothing."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
import shell

refused, unbandit = shell.refused, shell.unbandit

SHARED = ("--rule", "linucb:alpha=1,ridge=1", "--sigma", "0.5")
FEATURES = ("--features", "x1,x2", *SHARED, "--particles", "200")


def simulated(unbandit, *more, name="log.csv", rounds=60):
    given = ("--theta", "1,-0.5") if "--theta" not in more else ()
    rule = SHARED if "--rule" not in more else ()
    done = unbandit("simulate", *rule, *given, "--horizon", rounds, "-o", name, "--truth", "truth.csv", *more)
    assert (done.code, done.out) == (0, ""), done.err
    return pl.read_csv(name)


def test_a_simulated_log_is_estimated(unbandit):
    table = simulated(unbandit, "--arms", "A,B,C")
    assert table.columns == ["round", "arm", "chosen", "x1", "x2"]
    assert (table.height, table["chosen"].sum()) == (180, 60)
    assert pl.read_csv("truth.csv")["value"].to_list() == [1, -0.5]
    done = unbandit("estimate", "log.csv", *FEATURES, "--json", "--predict", "log.csv")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    assert answer["schema"] == "unbandit.contexts/1"
    assert [(row["feature"], row["arm"]) for row in answer["coefficients"]] == [("x1", None), ("x2", None)]
    for row, truth in zip(answer["coefficients"], (1, -0.5), strict=True):
        assert set(row) == {"feature", "arm", "value", "low", "high", "verdict"}
        assert row["low"] < row["value"] < row["high"]
        assert abs(row["value"] - truth) < 0.6
    assert answer["best"] == []  # features change, so the best arm does
    assert {each["arm"] for each in answer["offers"]} == {"A", "B", "C"}
    assert sum(each["best"] for each in answer["offers"]) == pytest.approx(1)
    for each in answer["offers"]:
        assert each["low"] <= each["best"] <= each["high"]
        assert (each["offered"], 0.1 < each["best"] < 0.7) == (60, True)
    assert len(answer["predictions"]) == 180
    first = answer["predictions"][0]
    assert first["low"] < first["value"] < first["high"]
    shown = unbandit("estimate", "log.csv", *FEATURES, "--predict", "log.csv")
    assert "... and 140 more values; see all of them with --json or -o FILE.json." in shown.out
    assert "95% interval" in shown.out
    assert "degrees; length" in shown.out
    assert "the best offer of its round" in shown.out
    assert "P(best)" not in shown.out
    written = unbandit("estimate", "log.csv", *FEATURES, "-o", "table.csv", "--predict", "log.csv")
    assert (written.out, written.code) == ("", 0)
    assert (
        "2 coefficients, without the 180 values of the requested contexts: for these use --json or -o FILE"
        in written.err
    )
    assert pl.read_csv("table.csv").columns == ["feature", "arm", "value", "low", "high", "verdict"]


def test_a_long_table_says_how_many_arms_it_leaves_out(unbandit):
    simulated(unbandit, "--arms", "12", rounds=20)
    shown = unbandit("estimate", "log.csv", *FEATURES, "--no-check").out
    assert "... and 2 more arms; see all of them with --json or -o FILE.json." in shown
    simulated(unbandit, "--arms", "10", rounds=20)
    assert "more arms" not in unbandit("estimate", "log.csv", *FEATURES, "--no-check").out


def test_a_disjoint_model_has_coefficients_by_arm(unbandit, refused):
    rule = "linucb:alpha=1,disjoint=true,intercept=true"
    table = simulated(unbandit, "--rule", rule, "--theta", "1,0;-1,0.5", "--sigma", "0.5", rounds=40)
    wide = table.filter(pl.col("chosen") == 1).select("round", "arm", "x1")
    wide.write_csv("wide.csv")
    options = ("--rule", rule, "--sigma", "0.5", "--particles", "200", "--features", "x1", "--json")
    answers = [json.loads(unbandit("estimate", name, *options).out) for name in ("log.csv", "wide.csv")]
    names = [(row["feature"], row["arm"]) for row in answers[0]["coefficients"]]
    assert names == [("x1", "0"), ("intercept", "0"), ("x1", "1"), ("intercept", "1")]
    assert answers[0]["coefficients"] == answers[1]["coefficients"]
    assert sum(each["probability"] for each in answers[0]["best"]) == pytest.approx(1)
    assert "disjoint=true" in refused(4, "estimate", "wide.csv", "--features", "x1", *SHARED)


def test_arms_with_features_of_their_own_have_a_best_one(unbandit):
    features = {"A": (1.0, 0.2), "B": (-0.5, 1.0), "C": (0.1, -1.2)}
    rows = [
        {"round": at, "arm": arm, "chosen": int(arm == "A"), "x1": x, "x2": y}
        for at in range(40)
        for arm, (x, y) in features.items()
    ]
    pl.DataFrame(rows).write_csv("offers.csv")
    simulated(unbandit, "--contexts", "offers.csv", "--features", "x1,x2", rounds=40)
    done = unbandit("estimate", "log.csv", *FEATURES, "--no-check")
    assert "P(best): the probability of being the best arm at its own features" in done.out
    answer = json.loads(unbandit("estimate", "log.csv", *FEATURES, "--no-check", "--json").out)
    best, offers = answer["best"], answer["offers"]
    assert best[0]["arm"] == offers[0]["arm"] == "A"
    assert best[0]["probability"] == pytest.approx(offers[0]["best"], abs=0.1)


def test_a_rule_that_does_not_fit_is_an_error_if_strict(unbandit, refused):
    simulated(unbandit, "--rule", "lin-softmax:temperature=0.02", "--sigma", "0.1", "--theta", "2,-1", rounds=100)
    read = ("estimate", "log.csv", "--features", "x1,x2", "--sigma", "0.1", "--particles", "200", "--json")
    wrong = ("--rule", "lin-softmax:temperature=2")
    done = unbandit(*read, *wrong, "--strict")
    assert done.code == 4
    assert json.loads(done.out)["check"]["verdict"] == "does not fit"
    assert unbandit(*read, *wrong).code == 0
    assert unbandit(*read, "--rule", "lin-softmax:temperature=0.02", "--strict").code == 0
    unchecked = unbandit(*read, *wrong, "--no-check")
    assert (unchecked.code, json.loads(unchecked.out)["check"]["verdict"]) == (0, "not checked")
    assert "--strict" in refused(2, *read, *wrong, "--strict", "--no-check")


def test_a_report_shows_coefficients_and_whether_the_rule_fits(unbandit, refused):
    simulated(unbandit, "--arms", "A,B,C", rounds=40)
    done = unbandit("report", "log.csv", *FEATURES, "-o", "log.html")
    assert done.code == 0, done.err
    page = Path("log.html").read_text()
    for said in (
        "Every coefficient",
        ">x2<",
        "Does the rule fit?",
        "do not explain the choices far better",
        "SHA-256",
    ):
        assert said in page
    assert "No rewards were used." in page
    assert "No simulation like this one was run (none with such a prior or number of particles)" in page
    assert "The choices show" in done.out
    assert "--truth: cannot be used with --features" in refused(
        2, "report", "log.csv", *FEATURES, "--truth", "truth.csv"
    )
    simulated(unbandit, "--theta", "1,-0.5,0.3", "--arms", "A,B,C", rounds=80)
    given = ("--features", "x1,x2,x3", *SHARED)
    assert unbandit("report", "log.csv", *given).code == 0
    quoted = "In simulations like this one (linucb:alpha=1, 3 features, 5 arms, 300 rounds) 95% intervals of"
    assert f"{quoted} coefficients held the truth in" in Path("report.html").read_text()
    wrong = ("--rule", "lin-epsilon-greedy:epsilon=0.99", "--sigma", "0.5", "--features", "x1,x2", "--particles", "200")
    assert unbandit("report", "log.csv", *wrong, "--strict").code == 4
    page = Path("report.html").read_text()
    assert "The rule does not fit the choices, so the coefficients cannot be relied on." in page
    assert "Other rules or other numbers make these choices far more probable." in page
    assert "check all rules" not in page


def test_every_demonstration_is_a_learner_of_its_own(unbandit, refused):
    table = simulated(unbandit, "--runs", "2", rounds=40)
    assert table.columns[0] == "demonstration"
    read = ("estimate", "log.csv", *FEATURES, "--no-check")
    answer = json.loads(unbandit(*read, "--json").out)
    assert [each["demonstration"] for each in answer["demonstrations"]] == ["1", "2"]
    assert [each["rounds"] for each in answer["demonstrations"]] == [40, 40]
    names = [(row["demonstration"], row["feature"]) for row in answer["coefficients"]]
    assert names == [("1", "x1"), ("1", "x2"), ("2", "x1"), ("2", "x2")]
    table.filter(pl.col("demonstration") == 2).drop("demonstration").write_csv("second.csv")
    alone = json.loads(unbandit("estimate", "second.csv", *FEATURES, "--no-check", "--json").out)
    assert [row["value"] for row in alone["coefficients"]] == [row["value"] for row in answer["coefficients"][2:]]
    assert "2 demonstrations, each a separate learner" in unbandit(*read).out
    first = (pl.col("demonstration") == 2) & (pl.col("round") == 1)  # LinUCB takes the longest offer of the first round
    longest = (pl.col("x1") ** 2 + pl.col("x2") ** 2).arg_max().over("demonstration", "round")
    place = pl.int_range(pl.len()).over("demonstration", "round")
    other = ((longest + 1) % 5 == place).cast(pl.Int64)
    table.with_columns(chosen=pl.when(first).then(other).otherwise("chosen")).write_csv("wrong.csv")
    assert 'In demonstration "2"' in refused(4, "estimate", "wrong.csv", *FEATURES, "--no-check")


def test_offers_of_a_log_are_played_again(unbandit, refused):
    table = simulated(unbandit)
    again = simulated(unbandit, "--contexts", "log.csv", "--features", "x1,x2", "--seed", "1", name="again.csv")
    assert again.drop("chosen").equals(table.drop("chosen"))
    more = ("--horizon", 61, "--contexts", "log.csv", "--features", "x1,x2")
    assert "at most the 60 rounds" in refused(2, "simulate", *SHARED, "--theta", "1,2", *more)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rule", "ucb:alpha=0.25", "--features", "x1"), "expected a rule that chooses by features"),
        (("--rule", "linucb"), "--features x1,x2, and check tries all rules that choose by features"),
        (("--rule", "linucb:fit", "--features", "x1,x2", "--sigma", "1"), "give alpha a value"),
        (("--rule", "linucb", "--features", "x1"), "--sigma"),
        ((*FEATURES, "--best-mean", "1"), "--best-mean: cannot be used with --features. Leave it out"),
        ((*FEATURES, "--sensitivity"), "--sensitivity: cannot be used with --features. Compare answers"),
        ((*FEATURES, "--bernoulli"), "give --sigma instead: for clicks it is about the root of p (1 - p), such as 0.3"),
        (("--rule", "linucb:lambda=1", "--features", "x1,x2", "--sigma", "1"), '"lambda" is called "ridge" here.'),
        ((*FEATURES, "--method", "bracket"), "--method: expected posterior"),
        ((*FEATURES, "--prior", "normal:mean=1"), "around 0"),
        ((*FEATURES, "--follow"), "--follow"),
        ((*FEATURES, "--predict", "none.csv"), "none.csv"),
        (("--rule", "ucb:alpha=0.25", "--predict", "log.csv"), "--predict: expected only with --features"),
        (("--rule", "linucb", "--sigma", "1", "--features", "x1,,x2"), "--features: expected names between commas"),
        (("--rule", "linucb", "--sigma", "1", "--features", "x9"), 'expected a column "x9"'),
    ],
)
def test_what_cannot_be_estimated_is_refused(refused, arguments, said):
    rows = ["round,arm,chosen,x1,x2", "1,A,1,0.5,1", "1,B,0,0.25,2", "2,A,0,0.5,1", "2,B,1,1.25,2"]
    Path("log.csv").write_text("\n".join(rows))
    code = 3 if arguments[-1] in ("none.csv", "x9") else 4 if arguments[1] == "linucb:fit" else 2
    assert said in refused(code, "estimate", "log.csv", *arguments)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--rule", "linucb"), "--theta: expected the coefficients of linucb"),
        (("--rule", "linucb", "--theta", "1;2"), "--theta: expected the coefficients"),
        (("--rule", "linucb:disjoint=true", "--theta", "1,2"), "one list per arm"),
        (
            ("--rule", "linucb", "--theta", "1", "--means", "1,2"),
            "--means: cannot be used with linucb. Give coefficients with --theta",
        ),
        (("--rule", "linucb", "--theta", "1", "--device", "cuda"), "not played on a GPU"),
        (("--rule", "ucb", "--theta", "1", "--means", "1,2"), "--theta: expected only with a rule"),
        (("--rule", "linucb:disjoint=true", "--theta", "1;2", "--arms", "3"), "--arms: expected 2"),
    ],
)
def test_what_cannot_be_simulated_is_refused(refused, arguments, said):
    assert said in refused(2, "simulate", *arguments, "--horizon", 10)


def test_every_rule_is_checked(unbandit):
    simulated(unbandit, "--rule", "lints:v=0.5", "--sigma", "0.5", rounds=300)
    asked = ("check", "log.csv", "--features", "x1,x2", "--sigma", "0.5")
    done = unbandit(*asked)
    assert done.code == 0, done.err
    said = json.loads(unbandit(*asked, "--json").out)
    assert (said["schema"], {row["rule"].partition(":")[0] for row in said["rules"]}) == (
        "unbandit.check/1", {"linucb", "lints", "lin-epsilon-greedy", "lin-softmax"},
    )  # fmt: skip
    verdicts = {row["rule"].partition(":")[0]: row["verdict"] for row in said["rules"]}
    assert (verdicts["lints"], verdicts["linucb"]) == ("fits", "does not fit")
    assert said["rules"][0]["estimate"]["schema"] == "unbandit.contexts/1"
    assert "direction known to" in done.out
    only = json.loads(unbandit(*asked, "--json", "--candidates", "lints:v=0.5,ridge=2").out)
    assert [row["rule"] for row in only["rules"]] == ["lints:ridge=2.0,v=0.5"]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--features", "x1,x2"), "expected the standard deviation of a reward"),
        (("--features", "x1,x2", "--sigma", "1", "--candidates", "ucb1"), "expected a rule that chooses by features"),
        (("--features", "x1,x2", "--sigma", "1", "--bernoulli"), "cannot be used with --features"),
        (("--features", "x1,x2", "--sigma", "1", "--prior", "beta:successes=1,failures=1"), "a normal prior around 0"),
        (("--prior", "normal:deviation=2"), "expected only with --features"),
    ],
)
def test_what_cannot_be_checked_is_refused(unbandit, refused, more, said):
    simulated(unbandit)
    assert said in refused(2, "check", "log.csv", *more)
