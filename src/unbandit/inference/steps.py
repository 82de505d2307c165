"""A demonstration as the filters read it: the steps of a rule, or the tests of an elimination rule."""

import math
from collections.abc import Iterator

import numpy as np

from unbandit.demonstrators import Demonstrator, EliminationRule, IndexRule, RandomisedRule, RecentIndexRule
from unbandit.demonstrators.elimination import tested_epochs
from unbandit.errors import InferenceError, NotIdentifiable, option
from unbandit.kernels.compile import Integers, Marks, Numbers
from unbandit.kernels.simulate_available import Spans
from unbandit.kernels.smc.cloud import NEVER, NONE, Steps, Views
from unbandit.kernels.smc.elimination import GOES, OPEN, OUT, STAYS, EliminationTests
from unbandit.kernels.smc.late import Turns
from unbandit.kernels.tally import read_epochs
from unbandit.log import ActionLog
from unbandit.log.availability import Availability

MOST_TURNS = 20_000_000  # rounds times arms up to which late decisions are laid out by their states

Reading = Steps | EliminationTests  # a demonstration as the filter of the rule's kind reads it


def reading_of(
    log: ActionLog, which: int, rule: Demonstrator, horizon: int, there: Availability | None = None
) -> Reading:
    """Cut a demonstration into what the filter of the rule's kind reads; refuse one that no such rule makes.

    `there` says which arms could be pulled when, if not all in all rounds.
    """
    if rule.random_delay is not None:
        raise NotIdentifiable(
            f"{rule.name}: random delays hide which rewards were known when. Only the posterior of one log, of a rule "
            f"that chooses at random and whose numbers are all given, allows for that; got delay={rule.random_delay}.",
            remedy=f"{rule.random_delay.remedy} Closed forms read index and elimination rules with random delays.",
        )
    actions = log.demonstration(which).astype(np.int64)
    given = log.select(which).rewards
    rewards = np.full(actions.size, np.nan) if given is None else np.array(given)
    if there is not None:
        check_filtered(rule)
        return steps_while_there(actions, rewards, _initial(rule), there)
    if isinstance(rule, EliminationRule):
        return _tests(actions, rewards, log.arms, rule, horizon)
    if isinstance(rule, IndexRule):
        if rule.delay > 0:
            return late_steps(log.select(which), rewards, rule)
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
    """Return how much work a particle is: a step, or an arm in a test."""
    return number_of_steps(reading) if isinstance(reading, Steps) else int(np.count_nonzero(reading.fate != OUT))


def check_filtered(rule: Demonstrator) -> None:
    """Refuse a rule that no filter reads where arms arrive late or are withdrawn."""
    rule.check_availability()
    slow = rule.is_late or getattr(rule, "batch", 1) > 1
    if slow or not isinstance(rule, RandomisedRule | IndexRule):
        what = "with a batch or a delay" if slow else "of this kind"
        raise NotIdentifiable(
            f"{rule.name}: there is no posterior of a rule {what} where arms arrive late or are withdrawn.",
            remedy=f"Use {option('method', 'bracket')}.",
        )


def opening_chance(log: ActionLog, which: int, rule: Demonstrator, there: Availability | None = None) -> float:
    """Return the log probability of an opening: 0 in the arms' order, otherwise that of one of all orders."""
    if there is not None:
        return _chance_of_openings(log.demonstration(which).astype(np.int64), rule, there)
    turns, arms = _initial(rule), len(log.arms)
    head = log.demonstration(which)[: turns * arms]
    if getattr(rule, "opening", "listed") == "random":  # one order for all turns
        return -math.lgamma(arms + 1)
    in_order = _opens_in_order(rule)
    delay = rule.fixed_delay
    if delay > 0 and not in_order:  # then every turn has an order of its own, until a reward of each arm is known
        whole, rest = divmod(min(turns * arms + delay, int(log.lengths[which])), arms)
        return -(whole + 1) * math.lgamma(arms + 1) + math.lgamma(arms - rest + 1)
    if in_order and np.array_equal(head, np.arange(head.size) % arms):
        return 0.0
    return -turns * math.lgamma(arms + 1)


def _chance_of_openings(actions: Integers, rule: Demonstrator, there: Availability) -> float:
    """Return the log probability of all openings: 0 in the arms' order, otherwise that of any turn among the arms."""
    turns = list(_openings(actions, _opening_rounds(actions, _initial(rule), there), there))
    if _opens_in_order(rule) and all(actions[at] == arms[0] for at, arms in turns):
        return 0.0
    return -sum(math.log(arms.size) for _, arms in turns)


def _initial(rule: Demonstrator) -> int:
    """Return how often a rule pulls every arm before it decides."""
    return 1 if isinstance(rule, EliminationRule) else int(getattr(rule, "initial", 0))


def _opens_in_order(rule: Demonstrator) -> bool:
    return getattr(rule, "ties", "lowest") == "lowest" or not isinstance(rule, IndexRule)


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
    starts, counts, chosen = _batches(actions, labels, opening, batch)
    spans = Spans(np.ones(arms, np.int64), np.full(arms, NEVER))
    return _steps(chosen, counts, starts + 1, np.arange(starts.size) >= opening, rewards, spans)


def _batches(
    actions: Integers, labels: tuple[str, ...], opening: int, batch: int
) -> tuple[Integers, Integers, Integers]:
    """Return where the steps begin, how many rounds they have, and their arms; refuse batches of several arms."""
    starts = np.concatenate([np.arange(min(opening, actions.size)), np.arange(opening, actions.size, batch)])
    counts = np.diff(starts, append=actions.size)
    chosen = actions[starts].astype(np.int64)
    expected = np.repeat(chosen, counts)
    if not np.array_equal(expected, actions):
        at = int(np.flatnonzero(expected != actions)[0])
        raise InferenceError(
            f"a rule that decides every {batch} rounds from round {opening + 1:,} on would have stayed with arm "
            f'"{labels[expected[at]]}"; the log has "{labels[actions[at]]}".',
            round=at + 1,
            remedy="Check batch and initial.",
        )
    return starts, counts, chosen


def _steps(
    chosen: Integers, counts: Integers, rounds: Integers, decides: Marks, rewards: Numbers, spans: Spans
) -> Steps:
    """Find when each arm is decided for next, and what ends its stretches."""
    next_round, binding = np.full(chosen.size, NEVER), np.ones(chosen.size, np.bool_)
    for arm in range(spans.first.size):
        own = np.flatnonzero(chosen == arm)
        decided = own[decides[own]]
        place = np.searchsorted(decided, own, side="right")
        later = place < decided.size
        next_round[own[later]] = rounds[decided[place[later]]]
        binding[own[~decides[own]][:-1]] = False
    opened = int(np.argmax(decides)) if decides.any() else decides.size
    stretches = _stretches(chosen, counts, rounds, decides, spans)
    return Steps(chosen, counts, rounds, next_round, opened, decides, binding, *stretches, rewards, spans)


def steps_while_there(actions: Integers, rewards: Numbers, initial: int, there: Availability) -> Steps:
    """Cut a demonstration into rounds, where arms arrive late or are withdrawn; refuse one that opens them otherwise.

    A rule opens an arm as soon as it can: while there is one with fewer than `initial` pulls, it decides nothing.
    """
    opens, early = _opening_rounds(actions, initial, there), np.zeros(actions.size, np.bool_)
    for arm in range(len(there.arms)):
        early[np.flatnonzero(actions == arm)[:initial]] = True
    wrong = np.flatnonzero(opens & ~early)
    if wrong.size:
        at = int(wrong[0])
        new = next(int(arms[0]) for round, arms in _openings(actions, opens, there) if round == at)
        raise InferenceError(
            f'the rule pulls an arm that arrives {_times(initial)} before it decides, and "{there.arms[new]}" would '
            f'have come; the log has "{there.arms[actions[at]]}".',
            round=at + 1,
            remedy="Another rule made this log, or the arm arrived in another round than given.",
        )
    rounds = np.arange(1, actions.size + 1)
    return _steps(actions, np.ones_like(actions), rounds, ~opens, rewards, Spans(there.first, there.last))


def check_decisions(log: ActionLog, rule: IndexRule, there: Availability) -> None:
    """Refuse a demonstration that contradicts the batch or the delay of a rule whose arms arrive late or are withdrawn.

    Arms may be opened in any order.
    """
    from unbandit.kernels.availability import first_contradiction

    actions, spans = log.demonstration(0).astype(np.int64), Spans(there.first, there.last)
    at, turn = first_contradiction(actions, spans, rule.initial, rule.batch, rule.fixed_delay)
    if at > 0:
        raise InferenceError(
            f'a batch or an opening of {rule} goes on, and "{log.arms[turn]}" would have come; the log has '
            f'"{log.arms[actions[at - 1]]}".',
            round=at,
            remedy="Check batch and delay, and the rounds in which arms were there.",
        )


def _opening_rounds(actions: Integers, initial: int, there: Availability) -> Marks:
    """Return the rounds in which some arm that can be pulled has fewer than `initial` pulls."""
    opens = np.zeros(actions.size, np.bool_)
    for arm in range(len(there.arms) if initial > 0 else 0):
        own = np.flatnonzero(actions == arm)
        end = own[initial - 1] + 1 if own.size >= initial else actions.size
        opens[there.first[arm] - 1 : min(end, int(there.last[arm]))] = True
    return opens


def _openings(actions: Integers, opens: Marks, there: Availability) -> Iterator[tuple[int, Integers]]:
    """Yield the rounds (from 0) in which an arm is opened, and the arms whose turn it may be: those pulled least."""
    pulls, before = np.zeros(len(there.arms), np.int64), 0
    for at in np.flatnonzero(opens).tolist():
        pulls += np.bincount(actions[before:at], minlength=pulls.size)
        before = at
        present = np.flatnonzero(there.at(at + 1))
        yield at, present[pulls[present] == pulls[present].min()]


def late_steps(log: ActionLog, rewards: Numbers, rule: IndexRule) -> Steps:
    """Cut a demonstration of an index rule whose rewards are late into the arrivals of its rewards."""
    check_late_opening(log, rule)
    actions = log.demonstration(0).astype(np.int64)
    if actions.size * len(log.arms) > MOST_TURNS:
        raise NotIdentifiable(
            f"{rule.name}: a posterior of a rule with a delay takes tables of {actions.size:,} rounds for "
            f"{len(log.arms):,} arms, which are too large.",
            remedy=f"Use {option('method', 'bracket')}.",
        )
    steps = steps_of(actions, rewards, log.arms, rule.initial, 1)
    chosen, size = _chosen(actions, len(log.arms), rule), actions.size
    # In a stretch of arrivals of one arm: the first state from the next one on that decides for another arm.
    against = np.append(NEVER, np.where((chosen[1:] == NONE) | (chosen[1:] == actions), NEVER, np.arange(1, size + 1)))
    turned = np.minimum.accumulate(against[::-1])[::-1][1:]
    ends = np.append(np.flatnonzero(actions[1:] != actions[:-1]) + 1, size)
    ended = turned <= ends[np.searchsorted(ends, np.arange(size), side="right")]
    state = np.where(ended, turned, 0)
    left = np.where(ended, state - 1 - np.arange(size), 0)
    return steps._replace(left=left, rival=chosen[state], rival_round=state + rule.delay + 1)


def turns_of(steps: Steps, rule: IndexRule, arms: int) -> Turns:
    """Return which arms are decided for from which state, where rewards are late."""
    size, chosen = steps.arm.size, _chosen(steps.arm, arms, rule)
    states = np.flatnonzero(chosen != NONE)
    first, last = np.full((size + 1, arms), NEVER), np.full((size + 1, arms), NONE)
    first[states, chosen[states]] = last[states, chosen[states]] = states
    arrival = np.full(size, NEVER)
    for arm in range(arms):
        own = np.flatnonzero(steps.arm == arm)
        arrival[own[:-1]] = own[1:]
    first = np.ascontiguousarray(np.minimum.accumulate(first[::-1])[::-1])
    return Turns(chosen, first, np.maximum.accumulate(last), arrival, rule.delay)


def _chosen(actions: Integers, arms: int, rule: IndexRule) -> Integers:
    """Return the arm that is decided for from the state after every number of rewards; `NONE` where there is none."""
    chosen, delay = np.full(actions.size + 1, NONE), rule.delay
    states = np.arange(rule.initial * arms, actions.size - delay, rule.batch)
    chosen[states] = actions[states + delay]
    return chosen


def views_of(steps: Steps, rule: RandomisedRule) -> Views:
    """Return which actions are drawn from which state; those after an opening alone."""
    size, batch, delay = steps.arm.size, rule.batch, rule.delay
    judged, first, decided = np.zeros(size, np.int64), np.arange(size), np.arange(1, size + 1)
    looks = np.flatnonzero(steps.decides)[::batch]  # where there are batches, the rule decides from some round on
    states = np.maximum(looks - delay, 0)
    np.add.at(judged, states, np.minimum(batch, size - looks))
    first[states[::-1]], decided[states[::-1]] = looks[::-1], looks[::-1] + 1  # of several looks, the first
    return Views(judged, first, decided, steps.spans)


def _stretches(
    chosen: Integers, counts: Integers, rounds: Integers, decides: Marks, spans: Spans
) -> tuple[Integers, Integers, Integers]:
    """Find for each step of a stretch of one arm how many of its pulls are left, which arm ends it, and when.

    The last step of a stretch has none left; a stretch to the end of the record is ended by nobody, and has none. Nor
    has one that ends because an arm arrives or is withdrawn.
    """
    ends = np.flatnonzero(np.append(chosen[1:] != chosen[:-1], True))  # the last step of each stretch
    last = ends[np.searchsorted(ends, np.arange(chosen.size))]
    summed = np.cumsum(counts)
    ended = last + 1 < chosen.size
    following = np.where(ended, last + 1, 0)
    ended &= decides[following] & (spans.last[chosen] >= rounds[following])
    left = np.where(ended & decides, summed[last] - summed, 0)
    return left, chosen[following], rounds[following]


def _tests(
    actions: Integers, rewards: Numbers, labels: tuple[str, ...], rule: EliminationRule, horizon: int
) -> EliminationTests:
    """Read every test that a demonstration shows; a record that no such rule makes is refused, with the round."""
    arms = len(labels)
    _check_opening(actions, labels, 1)
    pulls = np.bincount(actions, minlength=arms)
    passed = _turns_passed(actions, labels)
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


def _turns_passed(actions: Integers, labels: tuple[str, ...]) -> Integers:
    """Return when each arm's turn passed, 0 for arms still active; refuse a record that no elimination rule makes."""
    passed, broken = read_epochs(actions, len(labels))
    if broken:
        raise InferenceError(
            f'arm "{labels[actions[broken - 1]]}" is pulled again after its turn had passed, which no elimination rule '
            "does.",
            round=broken,
            remedy="Another rule made this log, or rows are missing.",
        )
    return passed


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


def check_late_opening(log: ActionLog, rule: Demonstrator) -> None:
    """Refuse a demonstration whose opening is not that of a rule whose rewards are late, and that no filter reads."""
    actions = log.demonstration(0).astype(np.int64)
    if isinstance(rule, EliminationRule):
        _check_opening(actions, log.arms, 1)
        _turns_passed(actions, log.arms)
    elif isinstance(rule, IndexRule) and rule.ties == "lowest" and rule.random_delay is None:
        steps_of(actions, np.full(actions.size, np.nan), log.arms, rule.initial, rule.batch, rule.delay)
    elif isinstance(rule, IndexRule) and rule.random_delay is None:  # every turn has an order of its own
        arms = len(log.arms)
        opening = rule.initial * arms + rule.delay
        for start in range(0, min(opening, actions.size), arms):
            _check_opening(actions[start : min(start + arms, opening)], log.arms, 1, start)
        _batches(actions, log.arms, opening, rule.batch)
    else:  # nobody knows how long the opening was
        _check_opening(actions, log.arms, int(getattr(rule, "initial", 0)))


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def _check_turns(actions: Integers, labels: tuple[str, ...]) -> None:
    """Refuse a record whose opening, while rewards are awaited, does not go on in the order of the first turn."""
    expected = actions[np.arange(actions.size) % len(labels)]
    wrong = np.flatnonzero(actions != expected)
    if wrong.size:
        at = int(wrong[0])
        raise InferenceError(
            f'the rule pulls arms in turn until a reward of each is known, and "{labels[expected[at]]}" would have '
            f'come; the log has "{labels[actions[at]]}".',
            round=at + 1,
            remedy="Check delay and initial.",
        )


def _check_opening(actions: Integers, labels: tuple[str, ...], initial: int, before: int = 0) -> None:
    """Refuse a record whose first rounds do not pull every arm `initial` times, in any order.

    Or a later turn of an opening, after some rounds `before`.
    """
    seen = np.zeros(len(labels), np.int64)
    for at, arm in enumerate(actions[: initial * len(labels)].tolist()):
        seen[arm] += 1
        if seen[arm] > initial:
            raise InferenceError(
                f'the rule pulls every arm {_times(initial)} first, and "{labels[arm]}" comes again before all '
                f"{len(labels)} have been pulled.",
                round=before + at + 1,
                remedy="Another rule made this log, it begins in mid-run, or rounds are missing.",
            )
