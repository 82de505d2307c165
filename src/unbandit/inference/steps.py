"""A demonstration as the filters read it: the steps of a rule, or the tests of an elimination rule."""

import math

import numpy as np

from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule, RecentIndexRule
from unbandit.demonstrators.elimination import tested_epochs
from unbandit.errors import InferenceError, NotIdentifiable, option
from unbandit.kernels.compile import Integers, Numbers
from unbandit.kernels.smc.cloud import NEVER, Steps, Views
from unbandit.kernels.smc.elimination import GOES, OPEN, OUT, STAYS, EliminationTests
from unbandit.kernels.tally import read_epochs
from unbandit.log import ActionLog

Reading = Steps | EliminationTests  # a demonstration as the filter of the rule's kind reads it


def reading_of(log: ActionLog, which: int, rule: Demonstrator, horizon: int) -> Reading:
    """Cut a demonstration into what the filter of the rule's kind reads; refuse one that no such rule makes."""
    actions = log.demonstration(which).astype(np.int64)
    given = log.select(which).rewards
    rewards = np.full(actions.size, np.nan) if given is None else np.array(given)
    if isinstance(rule, EliminationRule):
        return _tests(actions, rewards, log.arms, rule, horizon)
    if isinstance(rule, IndexRule):
        if rule.delay > 0:
            raise NotIdentifiable(
                f"{rule.name}: there is no posterior for index rules whose rewards are late (delay={rule.delay}).",
                remedy=f"Use {option('method', 'bracket')}.",
            )
        return steps_of(actions, rewards, log.arms, rule.initial, rule.batch)
    if isinstance(rule, RandomisedRule):
        return steps_of(actions, rewards, log.arms, rule.initial, 1, rule.delay if rule.initial > 0 else 0)
    if isinstance(rule, RecentIndexRule):
        raise NotIdentifiable(
            f"{rule.name}: there is no posterior of a rule that forgets: particles hold the sum of each arm's rewards, "
            "and this rule fades or drops parts of it.",
            remedy=f"Use {option('method', 'bracket')}.",
        )
    raise NotIdentifiable(f"{rule.name}: there is no posterior for rules of this kind.")


def number_of_steps(reading: Reading) -> int:
    """Return how many steps a filter takes."""
    return reading.arm.size if isinstance(reading, Steps) else reading.epoch.size


def work_of(reading: Reading) -> int:
    """Return how much work a particle is: a step, or a test of every arm."""
    return number_of_steps(reading) if isinstance(reading, Steps) else number_of_steps(reading) * reading.last.size


def opening_chance(log: ActionLog, which: int, rule: Demonstrator) -> float:
    """Return the log probability of an opening: 0 in the arms' order, otherwise that of one of all orders."""
    turns = 1 if isinstance(rule, EliminationRule) else int(getattr(rule, "initial", 0))
    arms = len(log.arms)
    head = log.demonstration(which)[: turns * arms]
    in_order = getattr(rule, "ties", "lowest") == "lowest" or not isinstance(rule, IndexRule)
    if in_order and np.array_equal(head, np.arange(head.size) % arms):
        return 0.0
    return -turns * math.lgamma(arms + 1)


def steps_of(
    actions: Integers, rewards: Numbers, labels: tuple[str, ...], initial: int, batch: int, longer: int = 0
) -> Steps:
    """Cut a demonstration into steps: the opening pull by pull, then batch by batch.

    A record that no rule with such an opening and such batches makes is refused, with the round. An opening may be
    `longer`, until late rewards are known: then it goes on in the arms' order.
    """
    arms, opening = len(labels), initial * len(labels) + longer
    _check_opening(actions, labels, initial)
    if longer > 0:
        _check_turns(actions[:opening], labels)
    starts = np.concatenate([np.arange(min(opening, actions.size)), np.arange(opening, actions.size, batch)])
    counts = np.diff(starts, append=actions.size)
    chosen = actions[starts].astype(np.int64)
    expected = np.repeat(chosen, counts)
    if not np.array_equal(expected, actions):
        at = int(np.flatnonzero(expected != actions)[0])
        raise InferenceError(
            f"a rule that decides every {batch} rounds from round {opening + 1} on would have stayed with arm "
            f'"{labels[expected[at]]}"; the record has "{labels[actions[at]]}".',
            round=at + 1,
            remedy="Check batch and initial.",
        )
    next_round, binding = np.full(starts.size, NEVER), np.ones(starts.size, np.bool_)
    for arm in range(arms):
        own = np.flatnonzero(chosen == arm)
        decided = own[own >= opening]
        place = np.searchsorted(decided, own, side="right")
        later = place < decided.size
        next_round[own[later]] = starts[decided[place[later]]] + 1
        binding[own[own < opening][:-1]] = False
    opened = min(opening, starts.size)
    stretches = _stretches(chosen, counts, starts + 1, opened)
    return Steps(chosen, counts, starts + 1, next_round, opened, binding, *stretches, rewards)


def views_of(steps: Steps, rule: RandomisedRule) -> Views:
    """Return which actions are drawn from which state; those after an opening alone."""
    size, batch, delay = steps.arm.size, rule.batch, rule.delay
    judged, first, decided = np.zeros(size, np.int64), np.arange(size), np.arange(1, size + 1)
    looks = np.arange(steps.opening, size, batch)
    states = np.maximum(looks - delay, 0)
    np.add.at(judged, states, np.minimum(batch, size - looks))
    first[states[::-1]], decided[states[::-1]] = looks[::-1], looks[::-1] + 1  # of several looks, the first
    return Views(judged, first, decided)


def _stretches(
    chosen: Integers, counts: Integers, rounds: Integers, opening: int
) -> tuple[Integers, Integers, Integers]:
    """Find for each step of a stretch of one arm how many of its pulls are left, which arm ends it, and when.

    The last step of a stretch has none left; a stretch to the end of the record is ended by nobody, and has none.
    """
    ends = np.flatnonzero(np.append(chosen[1:] != chosen[:-1], True))  # the last step of each stretch
    last = ends[np.searchsorted(ends, np.arange(chosen.size))]
    summed = np.cumsum(counts)
    ended = last + 1 < chosen.size
    following = np.where(ended, last + 1, 0)
    left = np.where(ended, summed[last] - summed, 0)
    left[:opening] = 0
    return left, chosen[following], rounds[following]


def _tests(
    actions: Integers, rewards: Numbers, labels: tuple[str, ...], rule: EliminationRule, horizon: int
) -> EliminationTests:
    """Read every test that a demonstration shows; a record that no such rule makes is refused, with the round."""
    arms = len(labels)
    _check_opening(actions, labels, 1)
    pulls = np.bincount(actions, minlength=arms)
    passed, broken = read_epochs(actions, arms)
    if broken:
        raise InferenceError(
            f'arm "{labels[actions[broken - 1]]}" is pulled again after its turn had passed, which no elimination rule '
            "does.",
            round=broken,
            remedy="Another rule made this record, or rows are missing.",
        )
    gone = passed > 0
    if rule.delay > 0:  # what counts is how many epochs were tested when an arm went, or was last seen to stay
        tested = tested_epochs(np.stack([pulls, pulls]), np.stack([pulls, pulls - 1]), rule.delay)
        pulls = np.where(gone & (tested[0] > tested[1]), tested[0], np.where(gone, 0, tested[1] + 1))
    epochs = np.arange(1, int(pulls[~gone].min()) + 1)
    epochs = epochs[rule.tests(epochs) & (epochs <= np.sort(pulls)[-2])]  # a single arm is not tested
    early = np.flatnonzero(gone & ~np.isin(pulls, epochs))
    if early.size:
        arm = int(early[np.argmin(passed[early])])
        raise InferenceError(
            f'arm "{labels[arm]}" was dropped after {(actions == arm).sum()} pulls, where {rule} makes no test.',
            round=int(passed[arm]),
            remedy="Check the rule and its parameters.",
        )
    beyond = pulls[None, :] - epochs[:, None]
    fate = np.where(beyond < 0, OUT, np.where(beyond > 0, STAYS, np.where(gone, GOES, OPEN))).astype(np.int8)
    widths = rule.width(np.maximum(epochs, 1).astype(np.float64), horizon)
    # When an arm went it lay 2 C below the leading one; at the test before, it did not.
    last = np.where(gone, pulls, 0)
    at_last = np.searchsorted(epochs, last)
    below = 2 * np.append(widths, 0.0)[at_last]
    above = np.where(at_last > 0, 2 * np.append(widths, 0.0)[at_last - 1], 2 * below)
    drop, drop_variance = (below + above) / 2, (above - below) ** 2 / 6
    known, known_sum = _known_between_tests(actions, rewards, epochs, arms)
    order = np.argsort(np.where(gone, -last, -NEVER), kind="stable")
    return EliminationTests(epochs, np.asarray(widths), fate, last, order, drop, drop_variance, known, known_sum)


def _known_between_tests(actions: Integers, rewards: Numbers, epochs: Integers, arms: int) -> tuple[Integers, Numbers]:
    """Count and sum the known rewards of each arm between two tests."""
    known, known_sum = np.zeros((epochs.size, arms), np.int64), np.zeros((epochs.size, arms))
    for arm in range(arms) if not np.isnan(rewards).all() else ():
        own = rewards[actions == arm]
        seen = np.flatnonzero(~np.isnan(own))
        test = np.searchsorted(epochs, seen + 1)
        inside = test < epochs.size
        np.add.at(known[:, arm], test[inside], 1)
        np.add.at(known_sum[:, arm], test[inside], own[seen[inside]])
    return known, known_sum


def check_late_opening(log: ActionLog, rule: IndexRule) -> None:
    """Refuse a demonstration whose opening is not that of an index rule whose rewards are late."""
    actions = log.demonstration(0).astype(np.int64)
    if rule.ties == "lowest":
        steps_of(actions, np.full(actions.size, np.nan), log.arms, rule.initial, rule.batch, rule.delay)
    else:  # every turn has an order of its own
        _check_opening(actions, log.arms, rule.initial)


def _check_turns(actions: Integers, labels: tuple[str, ...]) -> None:
    """Refuse a record whose opening, while rewards are awaited, does not go on in the order of the first turn."""
    expected = actions[np.arange(actions.size) % len(labels)]
    wrong = np.flatnonzero(actions != expected)
    if wrong.size:
        at = int(wrong[0])
        raise InferenceError(
            f'the rule pulls arms in turn until a reward of each is known, and "{labels[expected[at]]}" would have '
            f'come; the record has "{labels[actions[at]]}".',
            round=at + 1,
            remedy="Check delay and initial.",
        )


def _check_opening(actions: Integers, labels: tuple[str, ...], initial: int) -> None:
    """Refuse a record whose first rounds do not pull every arm `initial` times, in any order."""
    seen = np.zeros(len(labels), np.int64)
    for at, arm in enumerate(actions[: initial * len(labels)].tolist()):
        seen[arm] += 1
        if seen[arm] > initial:
            times = "once" if initial == 1 else f"{initial} times"
            raise InferenceError(
                f'the rule pulls every arm {times} first, and "{labels[arm]}" comes again before all {len(labels)} '
                "have been.",
                round=at + 1,
                remedy="Another rule made this record, or it begins in mid-run.",
            )
