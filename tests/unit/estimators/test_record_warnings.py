"""Signs that a record was not made the way the estimator assumes: each is said in words, with its round."""

from __future__ import annotations

import pickle
import string
import warnings

import numpy as np
import pytest

from unbandit import (
    SAE,
    UCB,
    ActionLog,
    AssumptionWarning,
    InferenceError,
    Instance,
    NotIdentifiable,
    Thompson,
    estimate,
    identify,
    posterior,
    theory,
)
from unbandit.estimators.diagnostics import explaining_refusals


def notices(log, rule, *, arms=None, **options):
    """Return warnings and notes by code; no code comes twice in one demonstration."""
    record = log if isinstance(log, ActionLog) else ActionLog.from_actions(list(log), arms=arms)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = estimate(record, rule, **({"sigma": 1.0} | options))
    assert [str(each.message) for each in said] == [notice.message for notice in result.warnings]
    assert all(each.category is AssumptionWarning and each.filename == __file__ for each in said)
    found = (*result.warnings, *result.notes)
    assert len({notice.code for notice in found}) == len(found)
    return {notice.code: notice for notice in found}


def test_a_clean_record_has_no_warnings():
    log = UCB().demonstrate(Instance([1.0, 0.5, 0.0], 0.5), 3_000, seed=3)
    assert set(notices(log, UCB())) <= {"short-horizon"}


def test_sigma_assumed_is_a_warning_in_both_places():
    log = ActionLog.from_actions(list("ABAAABA"))
    with pytest.warns(AssumptionWarning, match="intervals assume sigma = 1") as said:
        result = estimate(log, "ucb")
    assert len(said) == 1
    assert said[0].filename == __file__
    assert result.warnings[0].code == "sigma-assumed"


def test_a_tie_for_most_pulled_is_said_with_the_round_that_made_it():
    # A and C have 3 pulls each from round 7 on
    tied = notices("ABCACAC", "ucb")["tied-best"]
    assert (tied.round, tied.arm) == (7, "A")
    assert '"A", "C" have 3 pulls each' in tied.message
    assert "tied-best" not in notices("ABCACACA", "ucb")


def test_an_elimination_rule_does_not_go_by_the_most_pulled():
    found = notices("ABCABC", "sae")
    assert "tied-best" not in found
    assert "3 arms were still active" in found["unresolved"].message


@pytest.mark.parametrize("rule", ["ucb", "sae"])
def test_the_opening_is_one_pull_of_every_arm(rule):
    # round 3 pulls A again before C and D have been pulled
    found = notices("ABACDA", rule)
    assert (found["opening"].round, "round 3 repeats an arm before all 4" in found["opening"].message) == (3, True)
    # D comes in round 5, after the four rounds of an opening
    assert (found["late-arm"].round, found["late-arm"].arm) == (5, "D")
    assert "mid-run" in found["late-arm"].message


def test_several_late_arms_are_one_warning_at_the_first():
    found = notices("AAAAABACA", "ucb", arms="ABC")
    assert (found["opening"].round, found["late-arm"].round, found["late-arm"].arm) == (2, 6, "B")
    assert "and 1 more" in found["late-arm"].message


def test_an_arm_in_time_after_a_repeat_is_not_late():
    # B comes in round 3 of an opening of three; C, in round 4, is late
    found = notices("AABCA", "ucb")
    assert (found["opening"].round, found["late-arm"].arm) == (2, "C")
    assert "more arms" not in found["late-arm"].message


def test_arms_never_pulled_break_the_opening_too():
    found = notices("ABAAB", "ucb", arms="ABCD")
    assert found["opening"].round == 3
    assert "late-arm" not in found


def test_a_record_that_ends_within_the_opening_says_so():
    every = notices("AB", "ucb", arms="ABCD")
    assert "opening" not in every  # as far as it goes, it is what the rule would have done
    found = every["short-record"]
    assert found.round == 2
    assert "ends in round 2, before all 4 arms" in found.message


def test_counts_have_no_opening():
    assert set(notices(ActionLog.from_counts({"A": 36, "B": 4, "C": 0}), "ucb")) <= {
        "counts-only",
        "counts-cannot-tell",
        "few-pulls",
        "short-horizon",
    }


def test_the_first_round_that_no_elimination_rule_explains():
    # two epochs A B; round 5 pulls B where A is due, so A is gone; round 6 pulls it again
    found = notices("ABABBAB", "sae")
    assert (found["order-broken"].round, found["order-broken"].arm) == (6, "A")


def test_an_index_rules_log_breaks_the_order():
    log = UCB().demonstrate(Instance([1.0, 0.6, 0.3], 0.5), 1_000, seed=1)
    broken = notices(log, SAE())["order-broken"]
    assert log.arms[log.demonstration(0)[broken.round - 1]] == broken.arm
    assert "do not trust" in broken.message
    # up to the round before, an elimination rule does explain it
    before = ActionLog.from_actions(log.demonstration(0)[: broken.round - 1], arms=range(3))
    assert "order-broken" not in notices(before, SAE())


def test_an_elimination_rules_own_log_never_breaks_the_order():
    log = SAE(scale=0.5).demonstrate(Instance([1.0, 0.6, 0.3, 0.2], 0.5), 2_000, runs=50, seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        result = estimate(log, SAE(scale=0.5), sigma=0.5)
    assert {notice.code for notice in result.warnings} <= {"unresolved", "many-active"}


def test_an_arm_eliminated_while_many_are_active_is_said_with_the_round_that_showed_it():
    # eight arms, four epochs; epoch 5 leaves H out, which shows in round 40, when A comes after G
    eight = string.ascii_uppercase[:8]
    found = notices(eight * 4 + eight[:7] * 3, "sae")["many-active"]
    assert (found.round, found.arm) == (40, "H")
    assert "while 8 arms were active" in found.message


def test_among_three_arms_an_elimination_is_no_matter_of_many():
    assert "many-active" not in notices("ABC" * 4 + "AC" * 5 + "AA", "sae")


def test_the_note_on_theorem_2_is_no_warning():
    # at the true gap 1/2 the theorem asks for 64 * 4 * (5000^(1/4) - 1) / (1/2)^2 = 7,587 rounds
    assert theory.horizon_required([0.5], 5_000, 0.25) == pytest.approx(7_587, abs=0.5)
    log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5]), 5_000, seed=7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = estimate(log, UCB(alpha=0.25), sigma=1.0)
    (note,) = result.notes
    asked = theory.horizon_required([result["1"].gap], 5_000, 0.25)
    assert note.code == "short-horizon"
    assert f"The horizon 5,000 is below the {asked:,.0f} rounds" in note.message


def test_a_horizon_long_enough_for_theorem_2_has_no_note():
    # one arm, gap C(4) - C(900) = 6/2 - 6/30 = 2.8 at T = 10,000: 32 * 36 / 2.8^2 = 147 rounds are asked for
    rule = UCB(alpha=0.25, scale=1.0)
    log = ActionLog.from_actions(list("AB" + "A" * 899 + "BBB" + "A"))
    assert set(notices(log, rule, horizon=10_000, method="switching")) == {"few-pulls"}
    assert set(notices(log, rule, horizon=10_000)) == set()


def test_what_the_reading_had_to_say_is_a_note(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arm,reward\nA,1\nB,0\nA,1\n")
    assert 'Column "reward" has a reward in all 3 rows' in notices(ActionLog.read(path), "ucb")["reading"].message


def test_with_several_demonstrations_a_notice_names_its_own():
    log = ActionLog.from_actions([list("ABAABA"), list("AABABA")])
    with pytest.warns(AssumptionWarning) as said:
        result = estimate(log, "ucb", sigma=1.0)
    assert len(said) == 2
    assert [(notice.code, notice.demonstration) for notice in result.warnings] == [("opening", "2"), ("late-arm", "2")]
    assert {notice.demonstration for notice in result.notes} == {"1", "2"}


def test_both_kinds_of_missing_rows_are_named_once():
    whole = UCB().demonstrate(Instance([1.0, 0.6, 0.3, 0.0], 0.5), 3_000, seed=3).demonstration(0)
    kept = np.random.default_rng(1).random(3_000) < 0.3
    found = notices(ActionLog.from_actions(whole[kept].tolist(), arms=range(4)), "ucb", check=True)
    said = " ".join(each.message for each in found.values())
    for words in ("give the pulls before it with starting_pulls", "give the share that was kept with kept"):
        assert said.count(words) == 1
    assert "kept" in notices("ABAAB", "ucb", arms="ABCD")["opening"].message  # no arm is late


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_rows_sorted_by_arm_are_said_by_whatever_reads_them(tmp_path):
    log = UCB().demonstrate(Instance([1.0, 0.6, 0.3], 0.5), 900, seed=3)
    rows = sorted(log.demonstration(0).tolist())
    sorted_log = ActionLog.from_actions(rows, arms=range(3))
    assert "name a column of rounds or times" in notices(sorted_log, "ucb")["shows-sorted"].message
    sorted_log.to_frame().select("arm").write_csv(path := tmp_path / "log.csv")
    assert "shows-sorted" in {each.code for each in estimate(ActionLog.scan(path), "ucb", sigma=1.0).warnings}
    drawn = posterior(sorted_log, "thompson:sigma=0.5,initial=0", sigma=0.5, particles=20, check=False)
    assert "shows-sorted" in {each.code for each in drawn.warnings}
    assert "shows-sorted" in notices(sorted_log, "ucb", method="counts")
    assert "shows-sorted" not in notices(log, "ucb")
    assert "shows-sorted" not in notices(ActionLog.from_counts({"A": 90, "B": 30, "C": 20}), "ucb")
    # an opening and one arm ever since, rounds that are numbered and planned, and arms of which each was there alone
    assert "shows-sorted" not in notices("ABC" + "C" * 90, "ucb")
    sorted_log.to_frame().select("round", "arm").write_csv(path)
    assert "added later" in notices(ActionLog.read(path), "ucb")["shows-sorted"].message
    planned = ActionLog.from_actions(list("A" * 30 + "B" * 30 + "C" * 90))
    planned.to_frame().select("round", "arm").write_csv(path)
    assert "shows-sorted" not in notices(ActionLog.read(path), "ucb")
    table = {"0": (1, rows.count(0)), "1": (rows.count(0) + 1, None)}
    assert "shows-sorted" not in notices(sorted_log, "ucb", availability=table)


def test_numbers_of_thousands_and_single_arms_are_written_as_such():
    found = notices("A" * 1_500 + "BACD", "ucb", arms="ABCD")["late-arm"].message
    assert "in round 1,501 (and 2 more arms after it)" in found
    found = notices("A" * 1_500 + "BAC", "ucb", arms="ABC")["late-arm"].message
    assert "in round 1,501 (and 1 more arm after it)" in found


@pytest.mark.parametrize(
    "ask",
    [
        lambda log: posterior(log, "ucb:alpha=0.25", sigma=1.0),
        lambda log: estimate(log, "ucb:alpha=0.25", sigma=1.0, method="posterior"),
        lambda log: estimate(log, "ucb:alpha=fit", sigma=1.0, best_mean=0.5),
        lambda log: identify(log, ["ucb:alpha=0.25", "sae"], sigma=1.0),
    ],
)
def test_a_refusal_says_that_the_order_of_the_rows_may_be_another(ask):
    rows = "".join(f"{at},{'AABABAAAABBCA'[at]},2026-05-01T10:{30 - at}:00Z\n" for at in range(13))
    log = ActionLog.from_bytes(f"round,arm,timestamp\n{rows}".encode())
    with pytest.raises((InferenceError, NotIdentifiable), match="pulls every arm once first") as refused:
        ask(log)
    assert 'The times in "timestamp" run opposite to the rounds in "round"' in str(refused.value)
    assert [each.code for each in refused.value.notices] == ["times-against"]
    again = pickle.loads(pickle.dumps(refused.value))
    assert str(again) == str(refused.value)
    with pytest.raises((InferenceError, NotIdentifiable)) as refused:
        ask(ActionLog.from_bytes(f"round,arm,published\n{rows}".encode()))
    assert refused.value.notices == ()


@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
@pytest.mark.parametrize("runs", [1, 2])
def test_times_that_a_batch_shares_are_no_warning(runs):
    rule = Thompson(sigma=1.0, batch=20)
    logs = [rule.demonstrate(Instance([1.0, 0.7, 0.5], 1.0), 200, seed=seed) for seed in range(runs)]
    rows = [f"{who},{at // 20},{arm}" for who, log in enumerate(logs) for at, arm in enumerate(log.actions)]
    minutes = [f"{who},{arm},2026-05-01T10:{int(at):02}Z" for who, at, arm in (row.split(",") for row in rows)]
    log = ActionLog.from_bytes("\n".join(["subject,arm,timestamp", *minutes, ""]).encode())
    assert "times-tied" in {each.code for each in log.reading}

    def warned(batch, ask=estimate):
        found = ask(log, f"thompson:sigma=1.0,batch={batch}", sigma=1.0, check=False, particles=50)
        return "times-tied" in {each.code for each in found.warnings}

    assert [warned(batch) for batch in (1, 10, 20, 25)] == [True, True, False, False]
    if runs == 1:
        assert [warned(batch, posterior) for batch in (1, 20)] == [True, False]
    refusal = "no particle explains the log."
    for batch, is_said in ((1, True), (20, False)):
        with pytest.raises(InferenceError) as refused, explaining_refusals(log, Thompson(batch=batch)):
            raise InferenceError(refusal)
        assert ("times-tied" in {each.code for each in refused.value.notices}) == is_said
