"""Trials of the check: the records, the same check as an answer's, and the bound by the most powerful test."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import unbandit as ub
from unbandit import parse_rule
from unbandit.calibration.measure import MET, MISSED, OPEN
from unbandit.calibration.misfits import (
    EVEN_DAR,
    READ_AT_RANDOM,
    RIGHT,
    SAE,
    TAKEN_FOR_CLICKS,
    TAKEN_FOR_RANDOM,
    UCB,
    UCB1,
    UCB1_CLICKS,
    WITH_EVIDENCE,
    CheckCell,
    CheckMetrics,
    CheckTrials,
    Misfits,
    check_cells,
    check_criteria,
    check_metrics,
    checked_record,
    drifting,
    even_dar,
    log_ratio,
    play_cell,
    power_bound,
)
from unbandit.calibration.page import page
from unbandit.calibration.record import Findings, MeasuredCell
from unbandit.calibration.settings import Sizes
from unbandit.study.monte_carlo import computed, share

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

ONE = CheckCell(UCB1, UCB, 3, 200, 4, 0.95)


def test_cells_have_every_rule_pair_and_twist():
    cells = check_cells()
    assert {cell.runs for cell in cells} == {300}
    assert {cell.runs for cell in check_cells(3)} == {3}
    right = [(cell.made, cell.arms, cell.horizon) for cell in cells if cell.right]
    sizes = (2, 500), (4, 2_000), (10, 5_000)
    assert right == [
        *((rule, *size) for rule in RIGHT for size in sizes), *((rule, *sizes[1]) for rule in READ_AT_RANDOM)
    ]  # fmt: skip
    names = {parse_rule(text.partition(" on ")[0]).name for text in RIGHT}
    proposed = [name for name, rule in ub.demonstrators.rules().items() if rule.proposed]
    closed = {rule.name for rule in map(parse_rule, proposed) if rule.reveals == "values"}
    assert names == {name for name in closed if not isinstance(parse_rule(name), ub.demonstrators.RandomisedRule)}
    assert len({(cell.made, cell.read, cell.arms, cell.twist) for cell in cells}) == len(cells)
    pairs = [cell for cell in cells if cell.made in WITH_EVIDENCE and cell.made != cell.read]
    assert sorted({(cell.arms, cell.goal) for cell in pairs}) == [(2, 0.8), (4, 0.8), (4, 0.95)]
    assert len(pairs) == 25 + len(READ_AT_RANDOM) * len(set(TAKEN_FOR_RANDOM) & set(WITH_EVIDENCE))
    clicks = [cell.made for cell in cells if cell.read == UCB1_CLICKS and not cell.right]
    assert clicks == list(TAKEN_FOR_CLICKS)
    assert sum(bool(cell.twist) for cell in cells) == 20


def test_every_rule_reads_the_same_records():
    other = replace(ONE, read=UCB, twist="")
    first, means, design = play_cell(ONE, 5, 2)
    again, _, _ = play_cell(replace(other, read="moss"), 5, 2)
    assert design == "random"
    assert first.actions.tolist() == again.actions.tolist()
    assert first.actions.tolist() != play_cell(ONE, 6, 2)[0].actions.tolist()
    assert sorted(play_cell(ONE, 5, 1)[1].tolist()) == [0.0, 0.5, 1.0]
    near = play_cell(replace(ONE, made=UCB), 5, 4)
    assert near[2] == "near"
    assert np.ptp(near[1]) <= 0.05
    assert means.size == 3


@pytest.mark.parametrize(
    "cell",
    [
        ONE,
        CheckCell(UCB, UCB, 3, 200, 4, 0.02),
        CheckCell("klucb", "klucb", 2, 100, 4, 0.02),
        CheckCell(EVEN_DAR, SAE, 3, 200, 4, 0.9),
    ],
    ids=lambda cell: f"{cell.made} as {cell.read}",
)
def test_it_is_the_check_of_an_answer(cell):
    log, means, _ = play_cell(cell, 1, 0)
    known = {"bernoulli": True, "best_mean": float(means.max())} if cell.read == "klucb" else {"sigma": 0.5}
    answer = ub.estimate(log, cell.read, check=True, horizon=cell.horizon, **known)
    assert checked_record(cell, log, float(means.max())) == answer.check
    assert answer.check.verdict != "not checked"


def test_drift_makes_the_best_arm_as_good_as_the_second():
    rule = parse_rule("ucb:alpha=0.25").for_arms(2)
    generator = np.random.default_rng(1)
    late = [drifting(rule, np.array([0.0, 3.0]), 0.1, 400, generator)[-40:].mean() for _ in range(3)]
    still = [drifting(rule, np.array([2.999, 3.0]), 0.1, 400, generator) for _ in range(3)]
    assert all(np.bincount(each).min() > 100 for each in still)
    assert all(share_of_best > 0.9 for share_of_best in late)  # the others are only as good at the very end
    noiseless = drifting(rule, np.array([0.5, 1.0]), 0.0, 50, generator)
    pulls, sums = [1, 1], [0.5, 1.0 - 0.5 / 50]
    assert noiseless[:2].tolist() == [0, 1]
    for round in range(2, 50):
        arm = int(np.argmax([rule.index(sums[k] / pulls[k], pulls[k], round + 1, 50) for k in (0, 1)]))
        assert noiseless[round] == arm
        sums[arm] += (0.5, 1.0 - 0.5 * round / 50)[arm]
        pulls[arm] += 1


def test_even_dar_drops_an_arm_when_its_width_says_so():
    actions = even_dar(np.array([0.0, 2.0, 1.9]), 0.5, 3_000, np.random.default_rng(3))
    dropped = int(np.flatnonzero(actions == 0)[-1]) // 3 + 1
    width = [2 * 0.5 * math.sqrt(2 * math.log(12 * n**2 / 0.05) / n) for n in (dropped // 2, dropped * 2)]
    assert width[1] < 2.0 < width[0]
    assert actions[: 3 * dropped].tolist() == [0, 1, 2] * dropped
    assert len(actions) == 3_000


def test_the_bound_is_the_power_of_the_most_powerful_test():
    generator = np.random.default_rng(4)
    for distance in (0.0, 1.0, 2.5, 40.0):  # records: one normal number, with mean 0 or `distance`
        made = distance + generator.standard_normal(4_000)
        expected = 0.5 * math.erfc((2.3263 - distance) / math.sqrt(2))
        found = power_bound(distance * made - distance**2 / 2)
        assert found.value == pytest.approx(expected, abs=4 * found.error + 0.01)
        assert found.error < 0.05


def test_a_record_that_the_other_rule_cannot_have_made_counts_as_flagged():
    impossible = 15
    ratios = np.array([math.inf] * impossible + [math.log(0.5)] * 15)  # the others are as probable under both rules
    assert power_bound(ratios).value == pytest.approx(0.5 + 0.01 / 2, abs=1e-9)


def flagged(held, runs=200, *, right=False, unchecked=0):
    cell = CheckCell(UCB, UCB if right else UCB1, 4, 2_000, runs, 0.02 if right else 0.95)
    return CheckMetrics(cell, share(held, runs), {}, unchecked, {})


def test_only_runs_that_decide_are_ticked():
    cells = [flagged(held, right=True) for held in (0, 2, 12)] + [flagged(held) for held in (199, 192, 150)]
    right, wrong = Misfits().criteria(cells)
    assert [score.verdict for score in right.scores] == [MET, OPEN, MISSED, OPEN]
    assert (right.scores[3].row, right.scores[3].measured.held) == ("all together", 14)
    assert [score.verdict for score in wrong.scores] == [MET, OPEN, MISSED]
    assert right.scores[1].text == "1.0% (0.1 to 3.6)"
    trials = SimpleNamespace(identity={})
    assert "### Check, other rules" in page(
        [Findings(Misfits(), [MeasuredCell(trials, each.cell, each) for each in cells])]
    )
    unsaid = Misfits().criteria([flagged(150, unchecked=50)])
    assert unsaid[0].scores[0].text.endswith(", 50 not checked")


def test_rows_metrics_and_bounds_of_two_rules():
    cells = tuple(CheckCell(made, UCB, 2, 150, 40, 0.8) for made in (UCB, UCB1))
    trials = CheckTrials(cells, seed=3)
    found = [check_metrics(cells[task.cell], trials.rows(task)) for task in trials.tasks]
    assert [each.flagged.runs for each in found] == [40, 40]
    assert found[0].by_design.keys() == {"random", "even", "near"}
    assert found[1].by_design.keys() == {"random", "even"}
    assert found[0].bounds == {}  # the rule is right
    assert found[1].bounds.keys() == {"random", "even"}
    assert all(0 <= bound.value <= 1 for bound in found[1].bounds.values())


def test_bounds_of_other_rewards_and_of_rules_that_choose_at_random():
    cells = (
        CheckCell(UCB1, UCB1, 2, 100, 40, 0.95, "sigma double"), CheckCell("uniform", UCB1, 2, 100, 40, 0.95),
        CheckCell(UCB1, UCB1, 2, 100, 40, 0.95, "drift"), CheckCell(UCB1, UCB1, 2, 100, 40, 0.95, "batches of 5"),
    )  # fmt: skip
    trials = CheckTrials(cells, seed=3)
    found = [check_metrics(trials.cells[task.cell], trials.rows(task)) for task in trials.tasks]
    scattered, uniform, drift, batched = (each.bounds for each in found)
    assert scattered.keys() == {"random", "even"}
    assert scattered["random"].value < 0.9
    assert uniform["random"].value > 0.6
    assert drift.keys() == {"even"}
    assert found[2].by_design.keys() == {"even", "random, lead below 0.3", "random, lead from 0.3"}
    assert batched == {}


def test_the_ratio_is_that_of_the_probabilities_of_the_record():
    """Two arms and eight rounds: the ratio of the rules' probabilities, by plain simulation."""
    cell = CheckCell(UCB1, UCB, 2, 8, 1, 0.8)
    generator, number, played = np.random.default_rng(1), 40_000, []
    for text, sizes in ((UCB1, (1.0,)), (UCB, (0.5, 1.0, 2.0, 4.0))):
        size = np.array(sizes)[np.arange(number) % len(sizes)]
        drawn = size[:, None] * generator.standard_normal((number, 2))
        rule = parse_rule(text).for_arms(2)
        played.append(np.asarray(rule.demonstrate_at(drawn, ub.instance.Gaussian(0.5), 8, length=8, seed=3)))
    ratios = []
    for run in (0, 2, 4, 6):
        log, means, _ = play_cell(cell, 2, run)
        chances = [np.mean((each == log.demonstration(0)).all(axis=1)) for each in played]
        ratios.append(math.log(chances[0] / chances[1]))
        assert log_ratio(cell, log, means, "random") == pytest.approx(ratios[-1], abs=0.3)
    assert max(ratios) - min(ratios) > 0.5


def test_a_goal_that_no_test_reaches_is_not_held_against_the_check():
    each = replace(flagged(80, 100), by_design={"random": share(30, 50), "even": share(50, 50)})
    assert not each.beyond_any_test
    limited, ample = (replace(each, bounds={"random": computed(value)}) for value in (0.7, 0.95))
    assert limited.beyond_any_test  # (1 + 0.7) / 2 < 0.95
    assert not ample.beyond_any_test
    criterion, bounds = check_criteria([limited, ample])
    assert [score.verdict for score in criterion.scores if score.column == "K=4, T=2,000"] == [None, MISSED]
    assert [score.measured.value for score in bounds.scores] == [0.7, 0.95]


def test_a_rule_that_chooses_at_random_is_checked_as_users_get_it():
    """Its check asks index rules, and the most powerful test is not made: the assumed rule is no index rule."""
    cell = CheckCell(UCB1, READ_AT_RANDOM[-1], 4, 1_000, 2, 0.95)
    log, means, design = play_cell(cell, 1, 1)
    assert checked_record(cell, log, float(means.max())).verdict == "does not fit"
    assert log_ratio(cell, log, means, design) is None


def test_every_cell_is_measured():
    measured = [cell for _, trials in Misfits().trials(Sizes()) for cell in trials.cells]
    assert sorted(map(str, measured)) == sorted(map(str, check_cells()))


def test_a_refused_record_counts_as_flagged():
    (cell,) = [CheckCell("uniform", "softmax:temperature=0.2", 4, 60, 6, 0.95)]
    trials = CheckTrials((cell,), seed=1)
    rows = trials.rows(next(iter(trials.tasks)))
    refused = rows.filter(verdict="refused")
    assert refused.height >= 4  # uniform choices hardly ever pull every arm once first
    assert refused["p_value"].null_count() == refused.height
    assert check_metrics(cell, rows).flagged.held >= refused.height
