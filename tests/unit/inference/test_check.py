"""Does the assumed rule fit? Verdicts, what they rest on, and where there is none."""

from __future__ import annotations

import json
import math
import random
import re
import warnings
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbandit as ub
from unbandit.errors import phrase
from unbandit.estimators.check import said_of
from unbandit.fit import Check, Statistic
from unbandit.inference import check as check_module
from unbandit.inference import rivals
from unbandit.inference.check import check_together
from unbandit.inference.predictive import in_turn, statistics_of, wordings
from unbandit.inference.rivals import ROOM, batch_of, numbers_of, odds_of_numbers, odds_of_rivals, rivals_of
from unbandit.instance import Gaussian

MEANS, SIGMA, ROUNDS = (1.0, 0.5, 0.0), 0.5, 600
WRONG = "ucb:alpha=0.25"


@pytest.fixture(scope="module")
def log() -> ub.ActionLog:
    """Return a log of UCB1."""
    return ub.UCB1().demonstrate(ub.Instance(MEANS, SIGMA), ROUNDS, seed=3)


def estimated(log: ub.ActionLog, rule: str, **options: object) -> ub.Estimate:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ub.AssumptionWarning)
        return ub.estimate(log, rule, **({"sigma": SIGMA, "check": True} | options))


def test_the_right_rule_fits_and_the_answer_says_so(log: ub.ActionLog) -> None:
    answer = estimated(log, "ucb1")
    assert answer.check.verdict == "fits"
    assert answer.check.p_value > 0.01
    assert "does-not-fit" not in {notice.code for notice in answer.warnings}
    assert "fits" in {notice.code for notice in answer.notes}


def test_an_epsilon_that_falls_is_pointed_to() -> None:
    instance, advice = ub.Instance(MEANS, SIGMA), "epsilon-greedy:epsilon=1,decay=fit"
    falling = ub.parse_rule("epsilon-greedy:epsilon=1,decay=60").demonstrate(instance, ROUNDS, seed=3)
    first = estimated(falling, "epsilon-greedy:epsilon=0.1").warnings[0]
    assert first.code == "does-not-fit"
    assert f'"{advice}"' in first.message
    codes, half = falling.actions[3:], (ROUNDS - 3) // 2
    counted = [int((part != falling.pulls[0].argmax()).sum()) for part in (codes[:half], codes[-half:])]
    assert f"{counted[0]:,} times in the first half of the log and {counted[1]:,} times in the second" in first.message
    constant = ub.parse_rule("epsilon-greedy:epsilon=0.1").demonstrate(instance, ROUNDS, seed=3)
    wrong = estimated(constant, "epsilon-greedy:epsilon=0.9").warnings[0]
    assert wrong.code == "does-not-fit"
    assert advice not in wrong.message
    assert ub.parse_rule("epsilon-greedy:decay=60").advice(falling) is None
    assert ub.UCB1().advice(falling) is None
    greedy = ub.ActionLog.from_codes(np.zeros(300, np.int64), ("A", "B"))
    assert ub.parse_rule("epsilon-greedy:epsilon=0.1").advice(greedy) is None
    kept = ub.parse_rule("epsilon-greedy:epsilon=0.1,batch=2").advice(falling)
    assert "epsilon-greedy:epsilon=1,decay=fit,batch=2" in phrase(kept or "")


def test_a_wrong_rule_is_the_first_warning_and_says_what_looks_different(log: ub.ActionLog) -> None:
    with pytest.warns(ub.AssumptionWarning, match="does not look like"):
        answer = ub.estimate(log, WRONG, sigma=SIGMA, check=True)
    check, first = answer.check, answer.warnings[0]
    assert (check.verdict, first.code) == ("does not fit", "does-not-fit")
    assert check.p_value <= 0.01
    assert check.instead
    assert str(ub.parse_rule(WRONG)) not in check.instead
    assert check.reason in first.message


def epsilon_greedy(rounds: int, seed: int) -> list[int]:
    """Play epsilon-greedy as anybody would write it."""
    chance = random.Random(seed)
    sums, pulls, chosen = [0.0] * 3, [0] * 3, []
    for round in range(rounds):
        if round < 3:
            arm = round
        elif chance.random() < 0.1:
            arm = chance.randrange(3)
        else:
            arm = max(range(3), key=lambda each: sums[each] / pulls[each])
        sums[arm] += chance.gauss(MEANS[arm], SIGMA)
        pulls[arm] += 1
        chosen.append(arm)
    return chosen


@pytest.mark.parametrize("seed", range(3))
def test_choices_at_random_do_not_fit_an_index_rule(seed: int) -> None:
    log = ub.ActionLog.from_actions(epsilon_greedy(ROUNDS, seed), arms=range(3))
    assert estimated(log, "ucb1").check.verdict == "does not fit"


def test_batches_do_not_fit_a_rule_that_decides_every_round() -> None:
    log = ub.UCB1(batch=5).demonstrate(ub.Instance(MEANS, SIGMA), ROUNDS, seed=1)
    check = estimated(log, "ucb1").check
    assert check.verdict == "does not fit"
    assert estimated(log, "ucb1:batch=5").check.verdict == "fits"


def test_another_sigma_does_not_fit() -> None:
    log = ub.UCB().demonstrate(ub.Instance(MEANS, 2 * SIGMA), 2_000, seed=2)
    assert estimated(log, "ucb").check.verdict == "does not fit"
    assert estimated(log, "ucb", sigma=2 * SIGMA).check.verdict == "fits"


def test_an_impossible_record_does_not_fit_and_has_its_round() -> None:
    check = estimated(ub.ActionLog.from_actions("AAB" + "AB" * 60), "sae").check
    assert (check.verdict, check.p_value) == ("does not fit", 0.0)
    assert "Round 2" in check.reason


@pytest.mark.parametrize(
    ("record", "rule", "options", "reason"),
    [
        (ub.ActionLog.from_counts({"A": 90, "B": 30}), "ucb", {}, "without their order"),
        (ub.ActionLog.from_actions("AB" + "AAAB" * 30), "ucb", {"scale": "unknown"}, "scale is unknown"),
        (ub.ActionLog.from_actions("ABA"), "ucb", {}, "too few"),
    ],
)
def test_where_nothing_can_be_checked_the_answer_says_why(
    record: ub.ActionLog, rule: str, options: dict[str, str], reason: str
) -> None:
    answer = estimated(record, rule, **options)
    assert answer.check.verdict == "not checked"
    assert reason in answer.check.reason
    assert "not-checked" in {notice.code for notice in answer.notes}


def test_a_check_that_is_not_wanted_leaves_no_trace(log: ub.ActionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNBANDIT_CHECK", "off")
    for answer in (estimated(log, WRONG, check=False), estimated(log, WRONG, check=None)):
        assert answer.check.verdict == "not checked"
        assert not {"does-not-fit", "fits", "not-checked"} & {each.code for each in (*answer.warnings, *answer.notes)}


def test_json_carries_the_check(log: ub.ActionLog) -> None:
    read = json.loads(estimated(log, WRONG).to_json())["check"]
    assert (read["verdict"], read["simulations"] > 100) == ("does not fit", True)
    assert 0 <= read["p_value"] <= 0.01
    assert {"name", "observed", "low", "median", "high", "tail"} < set(read["statistics"][0])


def test_several_demonstrations_are_checked_each_and_summarised() -> None:
    wrong = ub.Uniform().demonstrate(ub.Instance(MEANS, SIGMA), 300, seed=5)
    right = ub.UCB1().demonstrate(ub.Instance(MEANS, SIGMA), 300, runs=2, seed=6)
    actions = [right.demonstration(0), wrong.demonstration(0), right.demonstration(1)]
    log = ub.ActionLog.from_actions([each.tolist() for each in actions], arms=range(3))
    check = estimated(log, "ucb1").check
    assert (check.verdict, check.checked, check.failed) == ("does not fit", 3, ("2",))
    assert check.reason.startswith('1 of 3 does not fit; 2 fit. Demonstration "2", the one that fits worst: ')


def test_of_a_long_log_the_beginning_is_checked() -> None:
    log = ub.UCB1().demonstrate(ub.Instance(MEANS, SIGMA), 25_000, seed=1)
    check = estimated(log, "ucb1").check
    assert check.verdict == "fits"
    assert "Simulations cover the first 10,000 of 25,000 rounds." in check.reason
    assert "The first 2,000 decisions were predicted one by one." in check.reason


def test_ties_broken_at_random_are_no_reason_to_reject_a_rule() -> None:
    log = ub.UCB1(ties="random").demonstrate(ub.Instance([0.7, 0.5, 0.3], ub.Bernoulli()), ROUNDS, seed=4)
    check = estimated(log, "ucb1", sigma=None, bernoulli=True).check
    assert check.verdict == "fits"
    assert check.reason is None or "ties=random" in check.reason


def test_posteriors_are_checked_too() -> None:
    log = ub.Thompson(sigma=SIGMA).demonstrate(ub.Instance(MEANS, SIGMA), 300, seed=1)
    found = ub.posterior(log, f"thompson:sigma={SIGMA}", sigma=SIGMA, particles=200, check=True)
    assert found.check.verdict == "fits"


# The parts, against plain references


@given(st.lists(st.lists(st.integers(0, 2), min_size=12, max_size=12), min_size=1, max_size=4))
def test_statistics_are_those_of_a_plain_loop(rows: list[list[int]]) -> None:
    found = statistics_of(np.array(rows), 3)
    for at, row in enumerate(rows):
        runs = [[row[0]]]
        for before, arm in pairwise(row):
            if arm == before:
                runs[-1].append(arm)
            else:
                runs.append([arm])
        lengths = [len(run) for run in runs]
        first = sorted(range(3), key=lambda arm: (-row.count(arm), arm))[0]
        assert found["switches"][at] == len(runs) - 1
        assert found["longest run"][at] == max(lengths)
        assert found["runs of one pull"][at] == lengths.count(1)
        assert found["mean log run"][at] == pytest.approx(np.mean(np.log(lengths)))
        assert found["pulls, rank 1"][at] == row.count(first)
        assert found["pulls, rank 1, first 6 rounds"][at] == row[:6].count(first)
        assert found["runs, rank 1"][at] == sum(run[0] == first for run in runs)


@pytest.mark.parametrize("rule", ["ucb", "ucb1:batch=3", "sae", "thompson:sigma=0.5"])
def test_a_rule_played_at_many_means_plays_each_as_if_alone(rule: str) -> None:
    means = np.random.default_rng(1).standard_normal((4, 3))
    played = ub.parse_rule(rule).demonstrate_at(means, Gaussian(SIGMA), 80, length=50, seed=9)
    for run, row in enumerate(means):
        alone = ub.parse_rule(rule).demonstrate(ub.Instance(row, SIGMA), 80, seed=9, first_run=run)
        assert played[run].tolist() == alone.demonstration(0)[:50].tolist()


def test_rivals_are_other_rules_and_never_the_rule_itself(log: ub.ActionLog) -> None:
    rule = ub.parse_rule("ucb1")
    rivals = rivals_of(rule, Gaussian(SIGMA), log, 0.5)
    assert all((each.rule, each.noise, each.drift) != (rule, Gaussian(SIGMA), None) for each in rivals)
    assert {"ucb", "moss", "klucb", "lilucb"} <= {each.rule.name for each in rivals}
    leader = int(log.pulls[0].argmax())
    assert [each.drift for each in rivals if each.drift] == [(leader, -1.0), (leader, 1.0)]


@pytest.mark.parametrize(
    ("actions", "batch"), [("AB" + "AAABBBAAAAAA" + "BB", 3), ("AB" + "AAABBA", 1), ("AB" + "AAAAAA", 1)]
)
def test_a_batch_is_what_all_stretches_are_multiples_of(actions: str, batch: int) -> None:
    assert batch_of(ub.ActionLog.from_actions(actions)) == batch


def test_where_no_particle_survives_only_simulations_count(log: ub.ActionLog, monkeypatch: pytest.MonkeyPatch) -> None:
    predicted = check_module.predict
    dead = {"log_evidence": -math.inf}
    monkeypatch.setattr(check_module, "predict", lambda *given, **named: replace(predicted(*given, **named), **dead))
    check = estimated(log, "ucb1").check
    assert check.verdict == "fits"
    assert check.statistics
    assert "switches, expected one by one" not in {each.name for each in check.statistics}


def test_each_test_can_flag_a_log_alone() -> None:
    """A record beyond all simulations must not fit, whatever the other tests say."""
    assert sum(check_module.SHARES.values()) == pytest.approx(1)
    assert 1 / (check_module.SIMULATIONS + 1) / check_module.SHARES["simulations"] <= check_module.DOES_NOT_FIT


def test_what_comes_after_the_predicted_decisions_is_compared_too() -> None:
    start = ub.UCB1().demonstrate(ub.Instance(MEANS, SIGMA), 2_000, seed=3).demonstration(0)
    rest = np.random.default_rng(1).integers(3, size=3_000)
    log = ub.ActionLog.from_codes(np.concatenate([start, rest]).astype(np.int64), ["a", "b", "c"])
    assert estimated(log, "ucb1").check.verdict == "does not fit"


@pytest.mark.parametrize("sigma", [0.003, 0.5, 20.0])
def test_a_standard_deviation_far_from_any_guess_is_found(sigma: float) -> None:
    rule, means = ub.UCB1(exploration=2 * (sigma / SIGMA) ** 2), np.array(MEANS) * sigma / SIGMA
    log = rule.demonstrate(ub.Instance(means, sigma), ROUNDS, seed=3)
    check = estimated(log, str(rule), sigma=None).check
    assert check.verdict == "fits"
    assert float(re.search(r"a standard deviation of ([\d.e-]+)", check.reason)[1]) == pytest.approx(sigma, rel=0.6)


def test_a_tiny_standard_deviation_does_not_fit(log: ub.ActionLog) -> None:
    assert estimated(log, "ucb1", sigma=1e-4).check.verdict == "does not fit"


def test_the_largest_seed_and_a_far_horizon_are_checked(log: ub.ActionLog) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ub.AssumptionWarning)
        posterior = ub.posterior(log, "ucb1", sigma=SIGMA, seed=2**64 - 1, particles=50, check=True)
    assert posterior.check.verdict == "fits"
    assert estimated(log, "ucb:alpha=0.25", horizon=2**32).check.verdict != "not checked"


def test_demonstrations_without_rounds_are_left_out(log: ub.ActionLog) -> None:
    empty = ub.ActionLog.from_codes(np.zeros(0, np.int64), ["a", "b"], offsets=[0, 0])
    assert estimated(empty, "ucb1").check.verdict == "not checked"
    codes = log.demonstration(0).astype(np.int64)
    both = ub.ActionLog.from_codes(codes, log.arms, offsets=[0, 0, codes.size])
    check = estimated(both, "ucb1").check
    assert (check.verdict, check.checked) == ("fits", 1)
    assert "Of 2 demonstrations 1 was checked." in check.reason


def test_batches_are_named_as_what_would_fit() -> None:
    log = ub.UCB1(batch=5).demonstrate(ub.Instance(MEANS, SIGMA), ROUNDS, seed=3)
    check = estimated(log, "ucb1").check
    assert check.verdict == "does not fit"
    assert any("batch=5" in name for name in check.instead)


@pytest.mark.parametrize(("failed", "verdict"), [(0, "fits"), (1, "fits"), (3, "does not fit"), (7, "does not fit")])
def test_more_demonstrations_that_do_not_fit_than_by_chance_are_a_misfit(failed: int, verdict: str) -> None:
    """No single value is small enough for twenty, but their number is."""
    bad, good = Check("does not fit", 0.009, 399, "It looks odd."), Check("fits", 0.5, 399)
    found = [bad] * failed + [good] * (20 - failed)
    together = check_together(found, [str(each) for each in range(20)], 20)
    assert together.verdict == verdict
    assert len(together.failed) == failed
    _, notes = said_of(together, ub.UCB1())
    if failed == 1:
        assert "1 of 20 does not fit, as may happen by chance; 19 fit." in together.reason
        assert notes[0].text.startswith("Checked: ucb1:exploration=2.0 fits the demonstrations taken together.")
        assert "does not differ" not in notes[0].text
    if failed == 3:
        assert together.p_value == pytest.approx(
            2 * (1 - sum(math.comb(20, k) * 0.01**k * 0.99 ** (20 - k) for k in range(3)))
        )


def test_a_probability_that_simulations_cannot_make_smaller_is_said_to_be_so() -> None:
    # simulations show no smaller probability than 1 in 400, of which a test may have a share
    assert [Check("does not fit", p, 399).chance for p in (0.0096, 0.0025, 0.002, 1e-5)] == [
        "p < 0.01", "p < 0.01", "p = 0.002", "p < 0.0001"
    ]  # fmt: skip
    assert (Check("fits", 0.02, 399).chance, Check("does not fit", 0.005).chance) == ("p = 0.02", "p = 0.005")


def test_simulations_alone_are_said_to_distinguish_little() -> None:
    check = Check("fits", 0.5, 399)
    assert "seldom distinguish one index rule from another" in said_of(check, ub.UCB1())[1][0].text
    assert "seldom" not in said_of(check, ub.Thompson())[1][0].text


def test_most_demonstrations_that_do_not_fit_are_never_called_fitting() -> None:
    log = ub.ActionLog.from_actions([epsilon_greedy(ROUNDS, seed) for seed in range(3)], arms=range(3))
    check = estimated(log, "ucb1").check
    assert (check.verdict, len(check.failed)) == ("does not fit", 3)


def test_without_sigma_it_is_the_one_that_fits_best(log: ub.ActionLog) -> None:
    check = estimated(log, "ucb1", sigma=None).check
    assert check.verdict == "fits"
    assert "a standard deviation of " in check.reason


def test_without_sigma_an_elimination_rule_is_not_checked() -> None:
    log = ub.SAE(alpha=0.25).demonstrate(ub.Instance(MEANS, SIGMA), ROUNDS, seed=2)
    check = estimated(log, "sae:alpha=0.25", sigma=None).check
    assert (check.verdict, "not known" in check.reason) == ("not checked", True)


def test_rewards_other_than_0_and_1_do_not_fit_with_bernoulli() -> None:
    log = ub.ActionLog.from_actions("AB" * 20, rewards=[0.3] * 40)
    check = estimated(log, "ucb1", sigma=None, bernoulli=True).check
    assert (check.verdict, "rewards of 0 and 1" in check.reason) == ("does not fit", True)


def test_a_rotation_shows_nothing_to_compare() -> None:
    log = ub.SAE(scale=30.0).demonstrate(ub.Instance(MEANS, SIGMA), 3_000_000, seed=2)
    check = estimated(log, "sae:alpha=0.25,scale=30.0").check
    assert (check.verdict, "are alike" in check.reason) == ("not checked", True)


def test_a_reason_is_whole_sentences_that_a_layman_understands() -> None:
    check = estimated(ub.ActionLog.from_actions(epsilon_greedy(ROUNDS, 1), arms=range(3)), "ucb1").check
    assert re.match(
        r"After its opening the log switches arms \d+ times; given the choices before each, this rule would switch "
        r"\d+ to \d+ times\.",
        check.reason,
    )
    assert ".." not in check.reason
    assert all(each.outside for each in check.unusual)
    assert check.brief == "{}: {}, not {}".format(*check.unusual[0].said)


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        (
            "switches",
            (391.0, 159.6, 210.2),
            "The log switches arms 391 times; this rule would switch 160 to 210 times.",
        ),
        (
            "pulls, rank 3, first 125 rounds",
            (1.0, 5.3, 18.0),
            "The third most-pulled arm has 1 pull in the first 125 rounds; this rule would give it 6 to 18 pulls.",
        ),
        (
            "runs, rank 4",
            (5.0, 1.0, 1.4),
            "The log turns to the least-pulled arm 5 times; this rule would turn to it 1 time.",
        ),
        (
            "mean log run",
            (np.log(3.1), np.log(1.2), np.log(1.5)),
            "A typical stay with one arm lasts 3.1 rounds; with this rule it would last 1.2 to 1.5 rounds.",
        ),
    ],
)
def test_every_statistic_has_a_sentence(name: str, values: tuple[float, float, float], sentence: str) -> None:
    observed, low, high = values
    said = Statistic(name, observed, low, (low + high) / 2, high, 0.01, wording=wordings(4, 2_000)[name])
    assert (said.sentence, said.outside) == (sentence, True)


@pytest.mark.parametrize(("arms", "length"), [(2, 10), (4, 2_000), (50, 400)])
def test_no_statistic_is_without_words(arms: int, length: int) -> None:
    assert set(statistics_of(np.zeros((1, length), np.int64), arms)) == set(wordings(arms, length))


def test_a_log_of_an_index_rule_is_not_taken_for_one_of_thompson_sampling() -> None:
    """Its choices are so regular that no simulation of Thompson sampling looks odd beside it."""
    log = ub.UCB1().demonstrate(ub.Instance((1.0, 0.7, 0.4, 0.0), SIGMA), 400, seed=1)
    check = estimated(log, "thompson:sigma=0.5").check
    assert check.verdict == "does not fit"
    assert re.match(r"The log is about 10\^\d+ times as probable under deterministic rules\.", check.reason)
    assert any(each.startswith("ucb1") for each in check.instead)


@pytest.mark.parametrize(
    "text", ["thompson:sigma=0.5", "softmax:temperature=0.1", "epsilon-greedy:epsilon=0.1,initial=1"]
)
def test_rules_that_choose_at_random_are_not_taken_for_index_rules(text: str) -> None:
    rule = ub.parse_rule(text)
    log = rule.demonstrate(ub.Instance((1.0, 0.7, 0.4, 0.0), SIGMA), 400, seed=1)
    opened = np.concatenate([np.arange(4), log.demonstration(0)])  # every index rule can have begun so
    odds = odds_of_rivals(
        ub.ActionLog.from_actions(opened, arms=range(4)), rule, Gaussian(SIGMA), ub.NormalPrior(), 404, 1, 1
    )
    assert odds.p_value == 1


@pytest.mark.parametrize("text", ["softmax:temperature=0.05,initial=1,opening=random", "thompson:sigma=0.5,initial=0"])
@pytest.mark.parametrize("seed", [1, 2])
def test_how_a_log_opens_does_not_speak_for_index_rules(text: str, seed: int) -> None:
    """Ten arms in an order of their own: its probability is that of a convention, and not held against the rule."""
    rule = ub.parse_rule(text)
    opening = np.random.default_rng(seed).permutation(10)
    played = rule.model_copy(update={"initial": 1, "opening": "listed"})
    log = played.demonstrate(ub.Instance(np.linspace(1.0, 0.0, 10), SIGMA), 60, seed=seed)
    renamed = ub.ActionLog.from_actions(opening[log.demonstration(0)], arms=range(10))
    odds = odds_of_rivals(renamed, rule, Gaussian(SIGMA), ub.NormalPrior(), 60, 1, 1)
    assert odds.p_value > 0.01


def test_index_rules_are_not_asked_about_a_log_that_opens_otherwise() -> None:
    log = ub.ActionLog.from_actions("AABCABCA" * 20)
    given = ub.Thompson(sigma=SIGMA), Gaussian(SIGMA), ub.NormalPrior(), 160, 1, 1
    assert set(odds_of_rivals(log, *given).names) <= {"choices at random", "uniform"}


@pytest.mark.parametrize(
    ("made", "read"),
    [
        ("softmax:temperature=0.4", "softmax:temperature=0.05"),
        ("thompson:sigma=1.5", "thompson:sigma=0.3"),
        ("epsilon-greedy:epsilon=0.05", "epsilon-greedy:epsilon=0.4"),
    ],
)
def test_a_number_with_which_a_log_is_far_less_probable_does_not_fit(made: str, read: str) -> None:
    """Nothing that is simulated at the gaps that were found stands out, as these make up for the wrong number."""
    log = ub.parse_rule(made).demonstrate(ub.Instance((1.0, 0.7, 0.4, 0.0), SIGMA), 800, seed=5)
    own, other = (ub.parse_rule(each).for_arms(4) for each in (made, read))
    given = Gaussian(SIGMA), ub.NormalPrior(0.0, 1.0), 800, 1, 1
    right, wrong = odds_of_numbers(log, own, *given), odds_of_numbers(log, other, *given)
    assert right.p_value > 0.1 > 1e-3 > wrong.p_value
    assert wrong.names[0].partition(":")[0] == own.name
    check = estimated(log, read, particles=300).check
    assert check.verdict == "does not fit"


def test_numbers_are_compared_where_laplaces_method_breaks_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of Thompson logs with an arm that came late: it was NaN, numpy warned, and nothing was compared."""
    found, rule = rivals.evidence_without_clouds, ub.Thompson(sigma=SIGMA).for_arms(3)
    log = rule.demonstrate(ub.Instance((1.0, 0.7, 0.0), SIGMA), 300, seed=5)

    def broken(record: ub.ActionLog, one: ub.Thompson, *others: object) -> float | None:
        return math.nan if one.sigma and one.sigma < SIGMA / 3 else found(record, one, *others)

    monkeypatch.setattr(rivals, "evidence_without_clouds", broken)
    odds = odds_of_numbers(log, rule, Gaussian(SIGMA), ub.NormalPrior(0.0, 1.0), 300, 1, 1)
    assert odds is not None
    assert 0.01 < odds.p_value <= 1.0


def test_a_number_that_sets_the_size_of_all_gaps_is_compared_at_gaps_of_that_size() -> None:
    rule, prior = ub.LearningSoftmax(rate=0.3, temperature=0.2), ub.NormalPrior(1.0, 2.0)
    found = numbers_of(rule, prior)
    scaled = [each for each in found if each[2] == 0]
    assert {round(other.temperature / 0.2, 3): own.deviation / 2 for other, own, _ in scaled} == {
        factor: factor for factor in (0.125, 0.25, 0.5, 2.0, 4.0, 8.0)
    }
    rates = {other.rate: own for other, own, room in found if room == ROOM}
    assert (max(rates) <= 1, min(rates), set(rates.values())) == (True, 0.0375, {prior})  # a rate ends at 1
    assert all(room == ROOM for _, _, room in numbers_of(rule, ub.BetaPrior()))
    assert numbers_of(ub.Thompson(noise="bernoulli"), ub.BetaPrior()) == []
    assert numbers_of(ub.Uniform(), prior) == []


def test_an_answer_says_which_number_all_gaps_hang_on_unless_it_was_fitted() -> None:
    log = ub.Softmax(temperature=0.2).demonstrate(ub.Instance(MEANS, SIGMA), 300, seed=2)

    def said(rule: str) -> list[str]:
        answer = estimated(log, rule, particles=100)
        return [phrase(each.message) for each in answer.notes if each.code == "in-proportion"]

    (text,) = said("softmax:temperature=0.2,annealing=0.1")
    assert text.startswith("Gaps are roughly proportional to temperature")
    assert text.endswith('use rule="softmax:annealing=0.1,temperature=fit".')
    assert said("softmax:temperature=fit") == said("epsilon-greedy:epsilon=0.2") == []
    fits = replace(estimated(log, "softmax:temperature=0.2", particles=100).check, verdict="fits")
    (other,) = [each for each in said_of(fits, ub.TopTwoThompson(sigma=0.5))[1] if each.code == "in-proportion"]
    assert other.text.endswith("do not rely on them.")  # its sigma cannot be fitted
    for rule, can_fit in (
        (ub.Softmax(temperature=0.2), False),
        (ub.Softmax(temperature=0.2, delay="geometric:9"), True),
    ):
        (other,) = [each for each in said_of(fits, rule, can_fit=can_fit)[1] if each.code == "in-proportion"]
        assert other.text.endswith("do not rely on them.")  # parts of runs and random delays are not fitted


@pytest.mark.parametrize("rule", ["thompson:noise=bernoulli", "exp3:mixing=0.1", "softmax:initial=0"])
def test_choices_that_depend_on_no_reward_are_not_taken_for_those_of_a_learner(rule: str) -> None:
    """Equal means let a learner choose like this too, but not for long: gaps near 0 would be read with confidence."""
    made = ub.Uniform().demonstrate(ub.Instance((0.62, 0.5, 0.35, 0.25), ub.Bernoulli()), 1_500, seed=2)
    check = estimated(made, rule, bernoulli=True, sigma=None, method="posterior", particles=200).check
    assert check.verdict == "does not fit"
    assert check.instead[0] == "uniform"


def test_a_fixed_preference_is_not_taken_for_that_of_a_learner() -> None:
    """Half of the choices are one arm's, from the first round to the last."""
    actions = np.random.default_rng(5).choice(3, size=1_000, p=(0.5, 0.3, 0.2))
    log = ub.ActionLog.from_actions(actions, arms=range(3))
    check = estimated(log, "thompson:noise=bernoulli", bernoulli=True, sigma=None, particles=200).check
    assert check.verdict == "does not fit"
    assert "chosen at random, whatever rewards they bring" in check.reason


NOT_COMPARED = "Not compared with index rules such as UCB1, because"
THOMPSON = "thompson:sigma=0.5"


def test_a_check_says_that_index_rules_were_not_asked_and_why() -> None:
    """UCB1 made this log, and only the comparison would have shown it: the reader is told that it was not made."""
    instance = ub.Instance((1.0, 0.7, 0.4, 0.0), SIGMA)
    actions = ub.UCB1().demonstrate(instance, 400, seed=1).demonstration(0)
    rewards = np.random.default_rng(1).normal(np.array(instance.means)[actions], SIGMA)
    answer = estimated(ub.ActionLog.from_actions(actions, arms=range(4), rewards=rewards), THOMPSON)
    assert (answer.check.verdict, answer.check.reason) == ("fits", f"{NOT_COMPARED} the log has rewards.")
    assert answer.to_dict()["check"]["reason"] == answer.check.reason
    assert any(answer.check.reason in note.message for note in answer.notes if note.code == "fits")


@pytest.mark.parametrize(
    ("arms", "rounds", "why"),
    [(64, 300, "64 arms are too many"), (4, 12, "12 rounds of 4 arms are too few"), (3, 200, None)],
)
def test_a_check_says_where_arms_are_too_many_or_rounds_too_few(arms: int, rounds: int, why: str | None) -> None:
    instance = ub.Instance(np.linspace(1.0, 0.0, arms), SIGMA)
    check = estimated(ub.Thompson(sigma=SIGMA).demonstrate(instance, rounds, seed=1), THOMPSON, particles=50).check
    assert (check.verdict, check.reason) == ("fits", why and f"{NOT_COMPARED} {why}.")


CLICKS = ub.Instance((0.62, 0.5, 0.35, 0.25), ub.Bernoulli())


@pytest.mark.parametrize("made", ["epsilon-greedy:epsilon=1,decay=40,initial=1", "ucb1:exploration=2", "klucb"])
def test_index_rules_of_yes_no_rewards_are_weighed_by_the_probability_of_the_log(made: str) -> None:
    """Simulations alone let each of these pass as UCB1 with another number."""
    log = ub.parse_rule(made).demonstrate(CLICKS, 800, seed=2)
    check = estimated(log, "ucb1:exploration=0.5", bernoulli=True, sigma=None).check
    assert (check.verdict, check.weighed) == ("does not fit", True)
    assert re.match(r"No sequence of rewards that was tried makes the rule choose .* up to round \d+\.", check.reason)


@pytest.mark.parametrize("made", ["ucb1", "ucb1:ties=random", "ucb1:exploration=0.5"])
def test_index_rules_of_yes_no_rewards_that_made_a_log_fit_it(made: str) -> None:
    log = ub.parse_rule(made).demonstrate(CLICKS, 800, seed=2)
    answer = estimated(log, made.replace(":ties=random", ""), bernoulli=True, sigma=None)
    assert (answer.check.verdict, answer.check.weighed) == ("fits", True)
    assert not any("seldom distinguish" in each.message for each in answer.notes)


def test_what_cannot_be_weighed_is_simulated_and_says_so() -> None:
    log = ub.UCB1(batch=10).demonstrate(CLICKS, 800, seed=2)
    answer = estimated(log, "ucb1:batch=10", bernoulli=True, sigma=None)
    assert (answer.check.verdict, answer.check.weighed) == ("fits", False)
    assert any("seldom distinguish" in each.message for each in answer.notes)


def delayed_ucb1(seed: int, delay: int, rounds: int = 1_000) -> ub.ActionLog:
    """Return the log of a plain UCB1 that learns of a reward so many rounds late, and takes arms in turn till then."""
    generator, means, known = np.random.default_rng(seed), (1.0, 0.7, 0.4, 0.0), list[tuple[int, int, float]]()
    pulls, sums, actions = np.zeros(4), np.zeros(4), list[int]()
    for at in range(rounds):
        while known and known[0][0] < at:
            _, arm, reward = known.pop(0)
            pulls[arm] += 1
            sums[arm] += reward
        untried = at < 4 or bool((pulls == 0).any())
        arm = at % 4 if untried else int(np.argmax(sums / pulls + np.sqrt(2 * np.log(at + 1) / pulls)))
        known.append((at + delay, arm, generator.normal(means[arm], SIGMA)))
        actions.append(arm)
    return ub.ActionLog.from_codes(actions, tuple("ABCD"))


@pytest.mark.parametrize("rule", ["ucb1:exploration=fit", "moss:scale=fit"])
def test_numbers_fitted_to_a_log_of_late_rewards_do_not_explain_its_beginning(rule: str) -> None:
    answer = estimated(delayed_ucb1(1, 12), rule)
    assert answer.check.verdict == "does not fit"
    assert "rounds pull all arms in turn, and no simulation does so for more than" in (answer.check.reason or "")
    assert "delay=fit" in (answer.check.reason or "")
    assert estimated(delayed_ucb1(1, 0), "ucb1:exploration=fit").check.verdict == "fits"
    assert estimated(delayed_ucb1(1, 12), "ucb1:delay=12").check.verdict == "fits"


def test_what_a_rule_does_not_have_is_not_advised() -> None:
    log = ub.ActionLog.from_codes(np.tile(np.arange(4), 50), tuple("ABCD"))
    check = estimated(log, "sliding-window-ucb:window=100").check
    assert check.verdict == "does not fit"
    assert "rounds pull all arms in turn" in (check.reason or "")
    assert "Try the rule" not in (check.reason or "")
    assert in_turn(np.array([[0, 1]]), 2).tolist() == [0]  # no second turn
