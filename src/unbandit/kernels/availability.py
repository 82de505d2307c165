"""What demonstrations say about every arm where arms arrive late or are withdrawn.

An arm is read in the part of the record up to its last round, against the arm that the rule preferred there among those
that could be pulled then. Pulls that an opening forces are no decisions, and neither are those made before the other
arm had come. The formulas of one arm are those of `kernels.procedures` and `kernels.bracket`, with its own counts.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unbandit.kernels.bracket import Looks, bracket_delayed_arm, bracket_index_arm, gap_at_elimination, midpoint
from unbandit.kernels.comparison import surplus_at_the_end
from unbandit.kernels.compile import Integers, Marks, Numbers, called, compiled, inlined
from unbandit.kernels.formula import width_value
from unbandit.kernels.intervals import Verdicts, reward_deviation
from unbandit.kernels.procedures import (
    BEST,
    BEST_ARM,
    BOUNDED,
    ESTIMATED,
    UNSEEN,
    Assumptions,
    Compared,
    compare_index_arm,
    gap_and_slope,
    solve_equal_indices,
    without_comparison,
)
from unbandit.kernels.simulate_available import Spans, arm_to_open, is_there

NOBODY = -1


@called
def _unbounded() -> Compared:
    """Return the verdict on an arm of which nothing is known but that it was pulled."""
    nan = math.nan
    return Compared(BOUNDED, nan, 0.0, nan, nan, nan, nan, nan, 1.0, nan, nan)


@called
def _put(compared: Compared, arm: int, verdict: Verdicts, numbers: Numbers) -> None:
    verdict[arm] = compared.verdict
    for at, number in enumerate(compared[1:]):
        numbers[at, arm] = number


# Index rules


@called
def _preferred(
    actions: NDArray[Any], until: int, spans: Spans, opened: Integers, initial: int, pulls: Integers, latest: Integers
) -> tuple[int, int]:
    """Return the arm that the rule preferred up to a round, and the arm that it may not be better than; -1 for none.

    Of arms that could be pulled then it is the most-pulled one, unless an arm came later and the most-pulled one was
    never pulled again after that arm's opening: then the index of the later arm has been the larger one ever since. If
    it has fewer pulls than the other by then, it need not be better.
    """
    arms = pulls.size
    for arm in range(arms):
        pulls[arm] = latest[arm] = 0
    for t in range(until):
        pulls[actions[t]] += 1
        latest[actions[t]] = t + 1
    top = NOBODY
    for arm in range(arms):
        if is_there(spans, arm, until) and pulls[arm] > 0 and (top < 0 or pulls[arm] > pulls[top]):
            top = arm
    overtaken, changed = NOBODY, top >= 0
    while changed:
        changed = False
        for arm in range(arms):
            came = is_there(spans, arm, until) and pulls[arm] > initial and spans.first[arm] > 1
            if came and arm != top and latest[top] <= opened[arm] and opened[top] > 0 and latest[arm] > opened[top]:
                overtaken = top if overtaken < 0 else overtaken
                top, changed = arm, True
    doubted = overtaken >= 0 and pulls[top] < pulls[overtaken]
    return top, overtaken if doubted else NOBODY


@called
def _descended(
    rule: Any, assumed: Assumptions, best_mean: float, looks: Looks, most: int, compared: Compared
) -> Compared:
    """Read an arm that arrived late, and whose index came down from its opening to below the best arm's in one stretch.

    It did not wait for the best arm's index: before its last pull its own was larger, after it smaller. That is what a
    test shows of an arm that survives it, and fails the next (`gap_at_elimination`).
    """
    of_best = float(looks.best_before)
    before, slope = gap_and_slope(
        rule, assumed.shifts, best_mean, looks.own_before, looks.best_before, looks.decided
    )  # fmt: skip
    after, _ = gap_and_slope(rule, assumed.shifts, best_mean, looks.own, looks.best_after, looks.ended)
    unknown = assumed.sigma != assumed.sigma and best_mean != best_mean
    if not assumed.noise_known or unknown or not (before == before and after == after):
        return compared
    n, earlier = float(looks.own), float(looks.own_before)
    of_arm = reward_deviation(assumed, best_mean - midpoint(after, before), n)
    of_other = abs(slope) * reward_deviation(assumed, best_mean, float(most))
    variance = of_arm * of_arm / n + of_other * of_other / looks.best_after
    added = of_arm * of_arm / earlier + of_other * of_other / of_best - variance
    gap, middle, spread = gap_at_elimination(after, before, earlier, n, variance, max(added, 0.0))
    return Compared(ESTIMATED, gap, middle, middle, n, of_best, n, of_best, slope, math.nan, spread)


@called
def _against(
    actions: NDArray[Any], until: int, arm: int, other: int, opened: Integers, since: int, found: Integers
) -> None:
    """Count how an arm gave way to another up to a round.

    Fills in, of the arm's last pull before the other's last decision, its own count, the other's and the round, 0 where
    it was no decision between the two; the other's last count and the round of its last decision; the arm's last pull;
    and whether the arm was pulled in one stretch from its opening on. Decisions between the two come after the openings
    of both; those for the arm count from round `since + 1` on.
    """
    for at in range(found.size):
        found[at] = 0
    if opened[arm] == 0 or opened[other] == 0:
        return
    both = max(opened[arm], opened[other])
    count, of_other, decided, then, turns, stretch = 0, 0, 0, 0, 0, 0
    for t in range(until):
        if actions[t] == other:
            of_other += 1
            if t + 1 > both:
                turns += 1
                found[0], found[1], found[2], found[3], found[4] = count, then, decided, of_other, t + 1
                found[6] = stretch
        elif actions[t] == arm:
            count += 1
            found[5] = t + 1
            if t + 1 > max(both, since):
                decided, then, stretch = t + 1, of_other, 1 if turns == 0 else 0


@called
def _decisions(
    actions: NDArray[Any], spans: Spans, initial: int, batch: int, delay: int, pulls: Integers, known: Integers,
    look: Integers,
) -> tuple[int, int]:  # fmt: skip
    """Fill in the round of the decision that each round follows, counted from 0; -1 where an arm is opened.

    As `pull_available_index` decides: a new arm and the withdrawal of its arm end a batch. Returns the first round,
    counted from 1, in which no such rule pulls the arm of the record, and the arm whose turn it is; 0 where all may be.
    """
    left, broken, turn = 0, 0, np.int64(NOBODY)
    for arm in range(pulls.size):
        pulls[arm] = known[arm] = 0
    for t in range(actions.size):
        if t > delay:
            known[actions[t - 1 - delay]] += 1
        fewest, opened = arm_to_open(spans, pulls, known, initial, t + 1)
        due = np.int64(NOBODY)
        if opened >= 0:
            look[t], left = -1, 0
            due = opened if pulls[actions[t]] > fewest else due
        elif left > 0 and is_there(spans, np.int64(actions[t - 1]), t + 1):
            look[t], left = look[t - 1], left - 1
            due = np.int64(actions[t - 1]) if actions[t] != actions[t - 1] else due
        else:
            look[t], left = t, batch - 1
        if due >= 0 and broken == 0:
            broken, turn = t + 1, due
        pulls[actions[t]] += 1
    return broken, turn


@compiled
def first_contradiction(
    actions: NDArray[Any], spans: Spans, initial: int, batch: int, delay: int
) -> tuple[int, int]:  # fmt: skip
    """Return the first round that contradicts a batch, a delay or an opening, and the arm whose turn it is."""
    pulls, known = np.empty(spans.first.size, np.int64), np.empty(spans.first.size, np.int64)
    return _decisions(actions, spans, initial, batch, delay, pulls, known, np.empty(actions.size, np.int64))


@inlined
def _looks(own_before: int, best_before: int, decided: int, own: int, best_after: int, ended: int) -> Looks:
    """Return what was known at two decisions, delays being fixed."""
    return Looks(own_before, best_before, decided, own, best_after, ended, 0, 0, 0, 0)


@called
def _looks_against(
    actions: NDArray[Any], until: int, arm: int, other: int, both: int, since: int, delay: int, look: Integers
) -> tuple[Looks, bool]:
    """Return what was known when an arm gave way to another, and whether it was pulled in one stretch before that.

    As `looks_of_runs`, for the other arm in the place of the most-pulled one, after round `both`, by which both are
    open; decisions for the arm count from round `since + 1` on.
    """
    source, of_arm, of_other, turns = 0, 0, 0, 0
    own, met, decided, stretch = 0, 0, 0, False  # of the arm's last decision so far
    before, best_before, at, at_once = 0, 0, 0, False  # the same at the other's last
    after, best_after, ended = 0, 0, 0
    back = _looks(0, 0, 0, 0, 0, 0)
    for t in range(until):
        if look[t] < 0:
            continue
        while source < look[t] - delay:
            of_arm += 1 if actions[source] == arm else 0
            of_other += 1 if actions[source] == other else 0
            source += 1
        if t + 1 <= both:
            continue
        if actions[t] == other:
            turns += 1
            before, best_before, at, at_once = own, met, decided, stretch
            after, best_after, ended = of_arm, of_other, look[t] + 1
            back = _looks(0, 0, 0, 0, 0, 0)
        elif actions[t] == arm and t + 1 > since:
            if of_arm != own:
                own, met, decided, stretch = of_arm, of_other, look[t] + 1, turns == 0
            if back.decided == 0:
                back = _looks(of_arm, of_other, look[t] + 1, 0, 0, 0)
    if back.decided > 0 and ended > 0:
        return _looks(back.own_before, back.best_before, back.decided, after, best_after, ended), False
    return _looks(before, best_before, at, after, best_after, ended), at_once


@compiled
def compare_available_index(
    rule: Any, assumed: Assumptions, two_sided: bool, delay: int, codes: NDArray[Any], offsets: Integers, spans: Spans,
    best: Marks, verdict: Verdicts, numbers: Numbers, broken: Integers, at_the_end: Numbers, references: Integers,
) -> None:  # fmt: skip
    """Fill in what demonstrations of an index rule say about every arm's gap; see `compare_index`.

    `references` has the arm that each arm's gap is to: the best one of those that were there in its last round. Where
    an arm preferred since another was withdrawn is the other of a pair, hesitations before that withdrawal were not
    between the two, and do not count. `broken` has for each demonstration the first round that contradicts a batch or
    a delay, and the arm whose turn it is; 0 for none.
    """
    arms, initial = spans.first.size, assumed.initial
    opened, ends, found = np.empty(arms, np.int64), np.empty(arms, np.int64), np.empty(7, np.int64)
    pulls, latest, totals = np.empty(arms, np.int64), np.empty(arms, np.int64), np.empty(arms, np.int64)
    since, doubted = np.empty(arms, np.int64), np.empty(arms, np.int64)
    means, known, paced = np.empty(arms), np.empty(arms, np.int64), delay > 0 or assumed.batch > 1
    late = paced and (two_sided or delay > 0)
    for d in range(offsets.size - 1):
        actions = codes[offsets[d] : offsets[d + 1]]
        length, reference = actions.size, references[d]
        look = np.empty(length, np.int64)
        broken[d, 0] = broken[d, 1] = 0
        if paced:
            odd, turn = _decisions(actions, spans, initial, assumed.batch, delay, pulls, known, look)
            broken[d, 0], broken[d, 1] = odd, turn
        for arm in range(arms):
            opened[arm], totals[arm], best[d, arm], reference[arm], means[arm] = 0, 0, False, NOBODY, math.nan
            ends[arm] = min(spans.last[arm], length)
        for t in range(length):
            totals[actions[t]] += 1
            if totals[actions[t]] == initial:
                opened[actions[t]] = t + 1 + delay
        # --- in the order of their last rounds: the arm that each is held against ---
        fallen, until = 0, 0
        while until < length:
            following = length
            for arm in range(arms):
                if ends[arm] > until:
                    following = min(following, ends[arm])
            until = following
            top, rival = _preferred(actions, until, spans, opened, initial, pulls, latest)
            for arm in range(arms):
                if ends[arm] == until:
                    reference[arm], since[arm], doubted[arm] = top, fallen, rival
            if top >= 0:
                fallen = until if ends[top] == until and until < length else fallen
        for arm in range(arms):  # in its own last round it was preferred, or may be better than the one that was
            best[d, arm] = totals[arm] > 0 and (reference[arm] == arm or doubted[arm] == arm)
        # --- the means of these arms, as far as one that is known implies them ---
        anchor = assumed.anchor
        if anchor == BEST_ARM and top >= 0:
            means[top] = assumed.known_mean
        elif anchor >= 0 and reference[anchor] == anchor:
            means[anchor] = assumed.known_mean
        elif anchor >= 0 and reference[anchor] >= 0 and not assumed.shifts:
            against = reference[anchor]
            _against(actions, ends[anchor], anchor, against, opened, since[anchor], found)
            least = initial
            if late:
                both = max(opened[anchor], opened[against])
                seen, _ = _looks_against(actions, ends[anchor], anchor, against, both, since[anchor], delay, look)
                found[0], found[1], found[2], least = seen.own_before, seen.best_before, seen.decided - 1, 0
            if found[0] > least and found[1] > 0:
                implied = solve_equal_indices(rule, assumed.known_mean, found[0], found[1], found[2] + 1)
                means[reference[anchor]] = implied if math.isfinite(implied) else math.nan
        # --- every arm ---
        for arm in range(arms):
            other, further, count = reference[arm], math.nan, totals[arm]
            mean, rival = means[max(other, 0)], doubted[arm]
            if other < 0 or count == 0:
                compared = without_comparison(UNSEEN, math.nan)
            elif arm == other and rival < 0:
                compared = without_comparison(BEST, 0.0)
            elif arm == other:
                # --- it stayed ahead of the arm that was pulled more, up to its last pull ---
                n, n_rival = max(count - assumed.batch - delay, 1), totals[rival]
                above, slope = gap_and_slope(rule, assumed.shifts, mean, n, n_rival, ends[arm])
                compared = Compared(
                    BOUNDED, math.nan, 0.0, above, float(n), float(n_rival), float(n), float(n_rival), slope,
                    math.nan, math.nan,
                )  # fmt: skip
            else:
                _against(actions, ends[arm], arm, other, opened, since[arm], found)
                own, of_best, round, most, ended = found[0], found[1], found[2], found[3], found[4]
                newcomer = two_sided and spans.first[arm] > opened[other]
                if ended == 0:
                    compared = _unbounded()
                elif late:
                    both = max(opened[arm], opened[other])
                    looks, at_once = _looks_against(actions, ends[arm], arm, other, both, since[arm], delay, look)
                    compared = bracket_delayed_arm(rule, assumed, mean, count, most, looks)
                    if compared.verdict == ESTIMATED and newcomer and at_once:
                        compared = _descended(rule, assumed, mean, looks, most, compared)
                else:
                    over, after = found[5] < ended, ended + 1
                    if two_sided:
                        compared = bracket_index_arm(
                            rule, assumed, mean, count, own, of_best, round, most, after, over
                        )  # fmt: skip
                    else:
                        compared = compare_index_arm(
                            rule, assumed, mean, count, own, of_best, round, most, after, over
                        )  # fmt: skip
                    looks = _looks(own - 1, of_best, round, own, max(most - 1, of_best), ended)
                    if compared.verdict == ESTIMATED and newcomer and found[6] == 1 and count == own:
                        compared = _descended(rule, assumed, mean, looks, most, compared)
                    looks = _looks(own, of_best, round + 1, count, most, ended + 1)
                    if paced:  # at the decisions for whole batches
                        both = max(opened[arm], opened[other])
                        looks, _ = _looks_against(actions, ends[arm], arm, other, both, since[arm], delay, look)
                if ended > 0 and rival >= 0:  # against the other arm that may be best it is at least as much worse
                    compared = Compared(
                        BOUNDED, math.nan, compared.below, math.nan, compared.own, compared.other, math.nan,
                        math.nan, compared.slope, math.nan, math.nan,
                    )  # fmt: skip
                if compared.verdict == ESTIMATED and min(looks.own_before, looks.best_before, looks.decided) > 0:
                    gap, _ = gap_and_slope(rule, assumed.shifts, mean, looks.own, looks.best_after, looks.ended)
                    then = looks.own_before, looks.best_before, looks.decided
                    further = surplus_at_the_end(rule, assumed.shifts, mean, gap, *then)
            _put(compared, arm, verdict[d], numbers[:, d])
            if at_the_end.shape[0] > 0:
                at_the_end[d, arm] = further


# Elimination rules


@called
def _judge(
    rule: Any, assumed: Assumptions, two_sided: bool, arm: int, end: int, spans: Spans, pulls: Integers, gone: Marks,
    left: Marks, failed_at: Integers, failed: Integers, tested: Marks, survived: Integers, known: Marks,
) -> Compared:  # fmt: skip
    """Read off how an elimination rule had treated an arm by its last round.

    `failed` and `survived` have the pulls of all arms at the test that it failed and at the last that it survived, and
    `tested` and `known` which arms were in them; `left` marks arms that were withdrawn while they were active.
    """
    nan, arms, mine = math.nan, pulls.size, float(pulls[arm])
    if pulls[arm] == 0:
        return without_comparison(UNSEEN, nan)
    active, newcomers, hidden = 0, 0, False
    most, fewest, most_before, fewest_before = 0, 0, 0, 0
    for other in range(arms):
        if other == arm:
            continue
        stayed = tested[other] and not (gone[other] and failed_at[other] == failed_at[arm])
        hidden = hidden or (gone[arm] and stayed and left[other])
        if not (is_there(spans, other, end) and pulls[other] > 0 and not gone[other]):
            continue
        active += 1
        newcomers += 0 if stayed else 1
        if stayed and gone[arm]:
            most = max(most, failed[other])
            fewest = failed[other] if fewest == 0 else min(fewest, failed[other])
        if known[other]:
            most_before = max(most_before, survived[other])
            fewest_before = survived[other] if fewest_before == 0 else min(fewest_before, survived[other])
    if not gone[arm]:
        if active == 0:
            return without_comparison(BEST, 0.0)
        if fewest_before == 0:
            return _unbounded()
        n, other_n = float(survived[arm]), float(fewest_before)
        above = width_value(rule, np.uint64(survived[arm])) + width_value(rule, np.uint64(fewest_before))
        return Compared(BOUNDED, nan, 0.0, above, n, other_n, n, other_n, 1.0, nan, nan)
    if hidden or active == 0 or most == 0:
        return _unbounded()
    own_width, n_best = width_value(rule, np.uint64(failed[arm])), float(fewest)
    below = own_width + width_value(rule, np.uint64(most))
    if newcomers > 0 or fewest_before == 0:
        return Compared(BOUNDED, nan, below, nan, mine, n_best, mine, n_best, 1.0, nan, nan)
    earlier, best_before = float(survived[arm]), float(fewest_before)
    above = width_value(rule, np.uint64(survived[arm])) + width_value(rule, np.uint64(fewest_before))
    longer = (end - failed_at[arm]) // (active + 1)  # epochs that the arm could have stayed for
    cut = width_value(rule, np.uint64(failed[arm] + longer)) + width_value(rule, np.uint64(most + longer))
    if not two_sided and most == fewest:
        return Compared(ESTIMATED, below, below, below, mine, n_best, mine, n_best, 1.0, cut, nan)
    if not two_sided or not assumed.noise_known:
        middle = midpoint(below, above)
        return Compared(ESTIMATED, middle, below, above, mine, n_best, earlier, best_before, 1.0, cut, nan)
    best_mean = assumed.known_mean if assumed.anchor == BEST_ARM else nan
    of_arm = reward_deviation(assumed, best_mean - midpoint(below, above), mine)
    of_best = reward_deviation(assumed, best_mean, nan)
    variance = of_arm * of_arm / mine + of_best * of_best / n_best
    added = of_arm * of_arm / earlier + of_best * of_best / best_before - variance
    gap, middle, spread = gap_at_elimination(below, above, earlier, mine, variance, max(added, 0.0))
    return Compared(ESTIMATED, gap, middle, middle, mine, n_best, mine, n_best, 1.0, cut, spread)


@compiled
def compare_available_elimination(
    rule: Any, assumed: Assumptions, two_sided: bool, codes: NDArray[Any], offsets: Integers, spans: Spans,
    best: Marks, verdict: Verdicts, numbers: Numbers, broken: Integers,
) -> None:  # fmt: skip
    """Fill in what demonstrations of an elimination rule say about every arm's gap; see `compare_elimination`.

    Epochs are read as `simulate_available.eliminate_available` plays them. `broken` has for each demonstration the
    first round that no such rule explains, and its arm; 0 for none.
    """
    arms = spans.first.size
    shape = arms, arms
    failed, survived = np.empty(shape, np.int64), np.empty(shape, np.int64)
    tested, known = np.empty(shape, np.bool_), np.empty(shape, np.bool_)
    pulls, counts, failed_at = np.empty(arms, np.int64), np.empty(arms, np.int64), np.empty(arms, np.int64)
    members, ends = np.empty(arms, np.int64), np.empty(arms, np.int64)
    gone, left, field, judged, now = (
        np.empty(arms, np.bool_), np.empty(arms, np.bool_), np.empty(arms, np.bool_), np.empty(arms, np.bool_),
        np.empty(arms, np.bool_),
    )  # fmt: skip
    for d in range(offsets.size - 1):
        actions = codes[offsets[d] : offsets[d + 1]]
        length, t, test, fell = actions.size, 0, 0, False
        broken[d, 0] = broken[d, 1] = 0
        for arm in range(arms):
            pulls[arm] = counts[arm] = failed_at[arm] = 0
            gone[arm] = left[arm] = field[arm] = judged[arm] = best[d, arm] = False
            ends[arm] = min(spans.last[arm], length)
            for other in range(arms):
                failed[arm, other] = survived[arm, other] = 0
                tested[arm, other] = known[arm, other] = False
        while True:
            # --- arms whose last round has passed, and in the end all ---
            for arm in range(arms):
                now[arm] = False
                if judged[arm] or not (ends[arm] <= t and (spans.last[arm] < length or t == length)):
                    continue
                compared = _judge(
                    rule, assumed, two_sided, arm, ends[arm], spans, pulls, gone, left, failed_at, failed[arm],
                    tested[arm], survived[arm], known[arm],
                )  # fmt: skip
                _put(compared, arm, verdict[d], numbers[:, d])
                best[d, arm] = pulls[arm] > 0 and not gone[arm]
                judged[arm] = now[arm] = True
            for arm in range(arms):
                if now[arm]:
                    left[arm] = not gone[arm]
                    fell = fell or left[arm]
            if t == length:
                break
            # --- an epoch ---
            start, count = t, 0
            for arm in range(arms):
                now[arm] = False
                if is_there(spans, arm, t + 1) and not gone[arm]:
                    members[count] = arm
                    count += 1
            whole = True
            for position in range(count):
                arm = members[position]
                if t == length:
                    whole = False
                    break
                if spans.last[arm] <= t:
                    continue
                if actions[t] == arm:
                    if field[arm]:
                        for other in range(arms):
                            survived[arm, other], known[arm, other] = counts[other], field[other]
                    now[arm] = True
                    pulls[arm] += 1
                    t += 1
                elif field[arm]:  # its turn passed: it failed the last test
                    gone[arm], failed_at[arm] = True, test
                    for other in range(arms):
                        failed[arm, other], tested[arm, other] = counts[other], field[other]
                elif broken[d, 0] == 0:
                    broken[d, 0], broken[d, 1] = t + 1, arm
            if t > start:
                if whole:
                    test = t
                    for arm in range(arms):
                        counts[arm], field[arm] = pulls[arm], now[arm] and spans.last[arm] > t
                continue
            # --- nobody whose turn it was: all that were eliminated come back, or no such rule made it ---
            arm = np.int64(actions[t])
            if gone[arm] and (fell or count == 0):
                for other in range(arms):
                    gone[other] = field[other] = False
                    for each in range(arms):
                        known[other, each] = tested[other, each] = False
                fell = False
            else:
                if broken[d, 0] == 0:
                    broken[d, 0], broken[d, 1] = t + 1, arm
                pulls[arm] += 1
                t += 1
