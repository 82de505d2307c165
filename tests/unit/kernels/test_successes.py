"""The filter of rewards of 0 and 1 behind index rules, held against one that evaluates every index where it is used."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unbandit as ub
from unbandit.inference.filter import new_cloud
from unbandit.inference.prior import belief_of
from unbandit.inference.steps import reading_of, turns_of
from unbandit.kernels.formula import index_value
from unbandit.kernels.smc import successes
from unbandit.kernels.smc.cloud import NEVER, NONE, PARTICLES, resample, uniform
from unbandit.kernels.smc.index import absorb, penalty
from unbandit.kernels.smc.successes import IndexTable, filter_late_successes, filter_successes, tabulate
from unbandit.log.availability import availability_of

PARTICLES_OF_A_CLOUD, HORIZON = 8, 24
INSTANCE = ub.Instance([0.6, 0.4, 0.7], ub.Bernoulli())
RULES = [
    "klucb", "klucb:level=round", "klucb:level=round,ties=random,batch=3", "ucbv:exploration=0.3", "bayes-ucb",
    "ucb-tuned:exploration=0.5", "lil-klucb:delta=0.2", "ucb:scale=0.3,ties=random", "ucb:scale=0.5,batch=4,initial=2",
    "ucb1:exploration=0.3", "moss:scale=0.7",
]  # fmt: skip


def set_up(text, rounds=HORIZON, known=0, table=None, actions=None):
    """Return the arguments of the kernel for a log of a rule, some of whose rewards are known."""
    rule = ub.parse_rule(text).for_arms(3)
    there = None if table is None else availability_of(table, INSTANCE.arms)
    if actions is None:
        actions = rule.demonstrate(INSTANCE, rounds, seed=2, availability=there).demonstration(0).tolist()
    rewards = np.full(len(actions), np.nan)
    rewards[:known] = 1.0
    log = ub.ActionLog.from_actions([actions], arms=list(range(3)), rewards=[rewards])
    steps = reading_of(log, 0, rule, HORIZON, there)
    belief = belief_of(ub.BetaPrior(1.5, 1.0), 3, ub.Bernoulli(), None)
    before = np.bincount(actions[:known], minlength=3).astype(float)
    past, marks = np.tile(before, (PARTICLES_OF_A_CLOUD, 1)), np.zeros(0, np.int64)
    cloud = new_cloud(belief, past, before, steps.arm.size, marks, 3, 0)
    compares_all = rule.uses_round or there is not None
    turns = (turns_of(steps, rule, 3),) if rule.delay > 0 else ()
    return rule.parameters(HORIZON), steps, cloud, *turns, compares_all, rule.ties == "random", steps.arm.size


def may_be_pulled(mine, arm, its, other, random_ties):
    return mine > its or (mine == its and (random_ties or arm < other))


def rivals(steps, step, next_round, uses_round):
    """Yield the arms with which the arm of a step is compared, the round, and whether the other is pulled there."""
    arm, own = steps.arm[step], steps.next_round[step]
    waiting = sorted((other for other in range(3) if NONE < next_round[other] < NEVER and other != arm),
                     key=lambda other: next_round[other])  # fmt: skip
    sooner, later = [[other for other in waiting if (next_round[other] < own) == before] for before in (True, False)]
    never = [other for other in range(3) if next_round[other] == NEVER and other != arm and own != NEVER]
    if not uses_round:
        yield from ((other, 1, other in sooner) for other in sooner[-1:] + (later[:1] or never))
        return
    for other in sooner + later + never:
        at = min(own, next_round[other])
        if at <= min(steps.spans.last[arm], steps.spans.last[other]):
            yield other, at, other in sooner


def late_rivals(steps, turns, step):
    """Yield the same where rewards come late: all decisions for either arm from states that share both sample means."""
    begins, ends = {}, {}
    for at in range(step + 1):
        begins[steps.arm[at]], ends[steps.arm[at]] = at + 1, turns.arrival[at]
    arm = steps.arm[step]
    for other in set(begins) - {arm}:
        for state in range(max(begins[arm], begins[other]), len(turns.chosen)):
            if state <= min(ends[arm], ends[other]) and turns.chosen[state] in (arm, other):
                yield other, state + turns.delay + 1, turns.chosen[state] == other


def filter_plainly(parameters, steps, cloud, *rest):
    """Do what the kernels do, with every index evaluated on its own."""
    turns, (uses_round, random_ties, most_relaxed) = rest[:-3], rest[-3:]
    pulls, next_round, relaxed_steps = [0] * 3, [NONE] * 3, 0

    def index(successes, count, at):
        return index_value(parameters, successes * (1.0 / count), count, at)

    def shares_largest(sums, arm, at):
        there = [other for other in range(3) if steps.spans.first[other] <= at <= steps.spans.last[other]]
        own = index(sums[arm], pulls[arm], at)
        return sum(index(sums[other], pulls[other], at) == own for other in there)

    for step, arm in enumerate(steps.arm.tolist()):
        decided, now = (turns[0].chosen[step], step + turns[0].delay + 1) if turns else (arm, steps.round[step])
        if random_ties and (decided != NONE if turns else steps.decides[step]):
            for particle, sums in enumerate(cloud.sums):
                cloud.log_weights[particle] -= math.log(shares_largest(sums, decided, now))
        seen = absorb(steps, cloud, step)
        after, hidden = pulls[arm] + int(steps.count[step]), int(steps.count[step]) - seen
        if turns:
            compared = list(late_rivals(steps, turns[0], step))
        else:
            compared = list(rivals(steps, step, next_round, uses_round)) if steps.binding[step] else []
        for particle, sums in enumerate(cloud.sums):
            total = cloud.past[particle, arm] + sums[arm]
            a, b = 1.5 + total, 1.0 + cloud.before[arm] + pulls[arm] + seen - total
            chances = {}
            for outcome in range(hidden + 1):
                fits = True
                for other, at, is_others_turn in compared:
                    mine, its = index(sums[arm] + outcome, after, at), index(sums[other], pulls[other], at)
                    if is_others_turn:
                        fits = fits and may_be_pulled(its, other, mine, arm, random_ties)
                    else:
                        fits = fits and may_be_pulled(mine, arm, its, other, random_ties)
                if fits:
                    chances[outcome] = math.comb(hidden, outcome) * math.exp(
                        sum(map(math.lgamma, (a + outcome, b + hidden - outcome, a + b)))
                        - sum(map(math.lgamma, (a, b, a + b + hidden)))
                    )
            draw, mass = uniform(cloud.rng, PARTICLES, step, particle), 0.0
            drawn = hidden if draw * (a + b) < a else 0
            for outcome, chance in chances.items():  # each replaces those before it in proportion
                mass += chance
                takes = draw * mass < chance
                drawn = outcome if takes else drawn
                draw = draw * mass / chance if takes else (draw * mass - chance) / (mass - chance)
            cloud.log_weights[particle] += math.log(mass) if chances else penalty(0.0)
            cloud.relaxed[step] += not chances
            sums[arm] += drawn
        pulls[arm] = after
        if steps.binding[step]:
            next_round[arm] = steps.next_round[step]
        relaxed_steps += cloud.relaxed[step] == PARTICLES_OF_A_CLOUD
        if relaxed_steps > most_relaxed or not resample(cloud, step)[0]:
            return step + 1
    return 0


def assert_equal_clouds(kernel, given, expected_given):
    with np.errstate(over="ignore"):
        ended, expected = kernel(*given), filter_plainly(*expected_given)
    assert ended == expected
    found, reference = given[2], expected_given[2]
    np.testing.assert_array_equal(found.sums, reference.sums)
    np.testing.assert_array_equal(found.relaxed, reference.relaxed)
    np.testing.assert_allclose(found.log_weights, reference.log_weights, atol=1e-9)
    np.testing.assert_allclose(found.increments, reference.increments, atol=1e-9)


@pytest.mark.parametrize("text", RULES)
@pytest.mark.parametrize("known", [0, 4])
def test_tables_draw_what_single_evaluations_draw(text, known):
    assert_equal_clouds(filter_successes.py_func, set_up(text, known=known), set_up(text, known=known))


@pytest.mark.parametrize("text", ["ucb:scale=0.5", "ucb:scale=0.3,ties=random", "ucb1:exploration=0.5"])
def test_arms_are_compared_while_both_are_there(text):
    table = {"2": (5, None), "0": (None, 9)}
    assert_equal_clouds(filter_successes.py_func, set_up(text, table=table), set_up(text, table=table))


@pytest.mark.parametrize(
    "text",
    [
        "klucb:delay=3", "klucb:level=round,delay=2", "bayes-ucb:delay=1,batch=2", "ucb:scale=0.3,ties=random,delay=4",
        "ucbv:exploration=0.3,delay=2",
    ],
)  # fmt: skip
@pytest.mark.parametrize("known", [0, 4])
def test_rewards_that_come_late_are_drawn_by_tables_too(text, known):
    assert_equal_clouds(filter_late_successes.py_func, set_up(text, known=known), set_up(text, known=known))


@pytest.mark.parametrize("text", ["klucb", "ucb:scale=0.5,batch=4,initial=2"])
def test_the_compiled_filter_is_the_same(text):
    assert_equal_clouds(filter_successes, set_up(text), set_up(text))


def test_large_batches_are_compared_in_parts(monkeypatch):
    monkeypatch.setattr(successes, "MOST_MARKED", 3 * 5)
    text = "ucb:scale=0.5,batch=4,initial=2"
    assert_equal_clouds(filter_successes.py_func, set_up(text), set_up(text))


def test_a_record_of_no_such_rule_ends_the_filter():
    """An arm of one pull is never left for so long while another fails as often."""
    actions = [0, 1, 2, *[0, 1] * 8]
    *given, _ = set_up("klucb", actions=actions)
    *expected, _ = set_up("klucb", actions=actions)
    assert_equal_clouds(filter_successes.py_func, (*given, 0), (*expected, 0))
    assert given[2].relaxed.max() == PARTICLES_OF_A_CLOUD


@pytest.mark.parametrize("text", ["klucb:level=round", "ucbv", "bayes-ucb"])
def test_a_table_forgets_other_pulls_and_rounds(text):
    parameters, table = ub.parse_rule(text).parameters(60), IndexTable(np.full(61, np.nan), np.full(61, -1))
    sums = np.array([[3.0, 9.0], [5.0, 7.0], [3.0, 0.0]])
    for arm, outcomes, pulls, at in [(0, 2, 8, 12), (1, 1, 9, 12), (0, 1, 8, 13), (0, 2, 9, 12), (1, 3, 20, 40)]:
        tabulate(parameters, table, sums, 0, 3, arm, outcomes, pulls, at)
        for number in {int(each) + more for each in sums[:, arm] for more in range(outcomes)}:
            assert table.values[number] == index_value(parameters, number * (1.0 / pulls), pulls, at)
