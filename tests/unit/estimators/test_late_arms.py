"""Arms that Thompson sampling pulled late: a warning that asks whether they were there before."""

from __future__ import annotations

import csv
import math
from types import SimpleNamespace

import numpy as np
import pytest
from reference_posterior import exact_posterior

import unbandit as ub
from unbandit.errors import Notice, NotIdentifiable, shell_option
from unbandit.estimators.check import STANDS, beside_doubts
from unbandit.estimators.diagnostics import table_with
from unbandit.estimators.posterior import late_arms
from unbandit.inference.rivals import FOLLOWING, settled_from_the_start
from unbandit.reporting.sentence import sentence


def asked(actions, rule, availability=None):
    log = ub.ActionLog.from_actions(actions, arms=["A", "B", "C"])
    return SimpleNamespace(log=log, rule=rule, availability=availability)


LATE = [*(["A", "B"] * 400), "C", "A"]


def test_an_arm_that_comes_late_is_named_with_its_round_and_the_option():
    (notice,) = late_arms(asked(LATE, ub.Thompson()))
    assert (notice.code, notice.arm, notice.round) == ("late-arm", "C", 801)
    assert "availability" in notice.message


@pytest.mark.parametrize(
    ("actions", "rule", "availability"),
    [
        (LATE, ub.Softmax(temperature=0.1), None),
        (LATE, ub.Thompson(), "told"),
        (LATE, ub.Thompson(batch=200), None),
        (np.random.default_rng(1).choice(["A", "B", "C"], 900).tolist(), ub.Thompson(), None),
    ],
    ids=["another rule", "it is said when", "long batches", "in time"],
)
def test_others_are_not_warned_of(actions, rule, availability):
    assert late_arms(asked(actions, rule, availability)) == []


def test_nobody_is_advised_to_leave_out_what_is_true():
    with pytest.raises(NotIdentifiable) as refused:
        ub.Thompson(batch=50).check_availability()
    assert "--availability" not in refused.value.phrased(shell_option)
    assert "leave" not in refused.value.phrased(shell_option).lower()


# Logs whose beginning is lost

INSTANCE, RULE = ub.Instance([1.0, 0.8, 0.5, 0.2, 0.4, 0.3], 0.5), "thompson:sigma=0.5"


def without_beginning(text, seed, cut):
    log = ub.parse_rule(text).demonstrate(INSTANCE, 900, seed=seed)
    return ub.ActionLog.from_codes(log.demonstration(0)[cut:], log.arms)


def warned(log, rule, **options):
    answer = ub.estimate(log, rule, sigma=0.5, **({"check": True} | options))
    return [each for each in answer.warnings if each.code == "late-start"]


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_a_log_without_its_beginning_is_warned_of_and_the_remedies_are_named():
    log = without_beginning(RULE, 8, 400)
    answer = ub.estimate(log, RULE, sigma=0.5, check=True)
    (notice,) = (each for each in answer.warnings if each.code == "late-start")
    for words in ("beginning were missing", "starting_pulls", "number its rounds", "Do not rely"):
        assert words in notice.message
    assert "does not look like the work of thompson" in sentence(answer, answer.ranked("1"))
    assert "late-start" in [each.code for each in ub.posterior(log, RULE, sigma=0.5, check=True).warnings]
    assert warned(log, RULE, check=False) == []


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
@pytest.mark.parametrize("text", [RULE, f"{RULE},initial=1", f"{RULE},batch=5", "softmax:temperature=0.3"])
def test_whole_logs_and_rules_that_open_in_turn_are_not_warned_of(text):
    assert warned(without_beginning(text, 3, 0), text) == []


def test_the_first_rounds_are_weighed_as_in_plain_python():
    rule = ub.parse_rule("thompson:noise=bernoulli").for_arms(2)
    actions = np.array([0, 0, 0, 1, 0, 0, 0, 0, *([0] * 28), *([1] * 4), *([0, 1] * 15)])
    own = exact_posterior(rule, [actions[:8].tolist()], 2, (1.0, 1.0), 70)[0]
    shares = (np.array([28, 4]) + 0.5) / 33.0
    expected = 7 * np.log(shares[0]) + np.log(shares[1]) - own
    log, prior = ub.ActionLog.from_codes(actions, ["a", "b"]), ub.BetaPrior()
    found = settled_from_the_start(log, rule, ub.Bernoulli(), prior, 70, 1, 1)
    assert actions.size < 16 * (1 + FOLLOWING)  # so that there is one length
    assert found == pytest.approx(expected, abs=0.1)
    assert settled_from_the_start(log.select(0, 39), rule, ub.Bernoulli(), prior, 70, 1, 1) == -math.inf


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_of_several_demonstrations_more_than_chance_would_have_are_warned_of():
    parts = [without_beginning(RULE, seed, cut).demonstration(0) for seed, cut in ((8, 400), (3, 0), (6, 400), (2, 0))]
    log = ub.ActionLog.from_actions([part[:500].tolist() for part in parts])
    (notice,) = warned(log, RULE)
    assert notice.count == 2
    assert notice.message.startswith("2 of 4 demonstrations look")


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_a_lost_beginning_that_is_told_as_random_loss_is_doubted():
    answer = ub.estimate(without_beginning("ucb:alpha=0.25", 3, 180), "ucb:alpha=0.25", sigma=0.5, kept=0.8, check=True)
    assert answer.check.verdict == "does not fit"
    assert "If the beginning is missing, and not rounds at random, give starting_pulls" in answer.warnings[0].message


def test_a_check_that_finds_nothing_does_not_lift_a_warning():
    said = [Notice("fits", "Checked: nothing stands out."), Notice("fitted", "scale = 1.")]
    assert beside_doubts(said, [Notice("drift", "An arm changed.")]) == said
    fits, other = beside_doubts(said, [Notice("late-start", "The beginning is missing.")])
    assert fits.text == f"Checked: nothing stands out. {STANDS}"
    assert other == said[1]


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_a_check_of_a_rule_of_chance_does_not_lift_the_warning_of_a_late_arm_either():
    """Simulations are at values that make up for the arm that came late: the log looks like them."""
    late = ub.parse_rule(RULE).demonstrate(INSTANCE, 700, seed=3, availability={"3": (400, None)})
    answer = ub.estimate(late, RULE, sigma=0.5, check=True, particles=100)
    assert "late-arm" in [each.code for each in answer.warnings]
    assert answer.check.verdict == "fits"
    assert next(each.text for each in answer.notes if each.code == "fits").endswith(STANDS)


@pytest.mark.parametrize("label", ["B", "B, large", 'a "B"', "B\nlarge", "B\rlarge", " B", "B\u00a0"])
def test_a_proposed_line_of_a_table_is_read_as_the_label_that_it_was_made_of(label):
    line = table_with([(label, 7, None)]).split("`")[3]
    assert next(csv.reader([line], strict=True)) == [label, "7", ""]
    assert line.startswith('"') == (label != "B")
