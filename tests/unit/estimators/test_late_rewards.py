"""Late rewards: what an index rule knew is read as plain Python reads it, and what cannot be read says so."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import unbandit as ub
from unbandit.demonstrators import elimination
from unbandit.demonstrators.delay import RandomDelay
from unbandit.estimators.procedures import compare
from unbandit.log.growth import GrowingLog
from unbandit.log.tallies import LookRule, tally, with_looks

LATE = "ucb:alpha=0.25,delay=20"
INSTANCE = ub.Instance([0.2, 1.0, 0.6], 0.5)


@pytest.fixture(scope="module")
def log():
    return ub.parse_rule(LATE).demonstrate(INSTANCE, 2_000, seed=4)


def looks_in_python(actions, arms, opening, batch, delay):
    """Read off the definition, one decision at a time."""
    best = max(range(arms), key=actions.count)
    end = max(t for t, arm in enumerate(actions) if arm == best)

    def known(t):
        return actions[: max(t - (t - opening) % batch - delay, 0)]

    found = [[0] * 6 for _ in range(arms)]
    for arm in range(arms):
        if end >= opening:
            found[arm][3:] = known(end).count(arm), known(end).count(best), end - (end - opening) % batch + 1
        turns = [t for t in range(opening, len(actions)) if actions[t] == arm and arm != best]
        returns, earlier = [t for t in turns if t > end], [t for t in turns if t < end]
        if returns:
            t = returns[0]
        elif earlier:
            last = known(earlier[-1]).count(arm)
            t = next(t for t in earlier if known(t).count(arm) == last)
        else:
            continue
        found[arm][:3] = known(t).count(arm), known(t).count(best), t - (t - opening) % batch + 1
    return found


@pytest.mark.parametrize(("delay", "batch"), [(1, 1), (20, 1), (7, 4), (60, 10)])
def test_what_was_known_is_counted_as_in_plain_python(delay, batch):
    rule = ub.UCB(alpha=0.25, delay=delay, batch=batch)
    for horizon in (40, 400):
        for seed in range(4):
            played = rule.demonstrate(INSTANCE, horizon, seed=seed).actions
            opening = 3 + delay
            counted = tally(played, np.array([0, horizon]), 3, "switching")
            found = with_looks(counted, played, np.array([0, horizon]), LookRule(1, batch, delay))
            assert found.looks[0, :, :6].tolist() == looks_in_python(played.tolist(), 3, opening, batch, delay)


def test_epochs_that_were_tested_are_those_whose_rewards_had_arrived():
    pulls = np.array([[12, 5, 9, 12], [3, 3, 1, 40]])
    for delay in (1, 6, 25):
        for row in pulls:
            ends = np.array([np.minimum(row, epoch).sum() for epoch in range(int(row.max()) + 1)])
            expected = [max((e for e in range(n + 1) if ends[e] <= ends[n] - delay), default=0) for n in row]
            assert elimination.tested_epochs(row[None], row[None], delay)[0].tolist() == expected


def test_intervals_are_the_same_from_a_log_and_from_a_simulation(log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ub.AssumptionWarning)
        late = ub.estimate(log, LATE, sigma=0.5, check=False)
        prompt = ub.estimate(log, "ucb:alpha=0.25", sigma=0.5, check=False)
    tallies = ub.parse_rule(LATE).evidence(INSTANCE, 2_000, seed=4)
    again = compare(tallies, ub.parse_rule(LATE), "bracket", 2_000, noise=INSTANCE.noise)
    assert np.array_equal(late.columns.gap, again.gap, equal_nan=True)
    assert not np.array_equal(late.columns.gap, prompt.columns.gap)
    assert (late.columns.gap_low[0] < INSTANCE.gaps)[[0, 2]].all()
    assert (INSTANCE.gaps < late.columns.gap_high[0])[[0, 2]].all()


def test_the_check_simulates_late_rewards(log):
    assert ub.estimate(log, LATE, sigma=0.5, check=True).check.verdict == "fits"
    with pytest.warns(ub.AssumptionWarning, match="does not look like one"):
        assert ub.estimate(log, "ucb:alpha=0.25", sigma=0.5, check=True).check.verdict == "does not fit"


@pytest.mark.parametrize("method", ["switching", "counts"])
def test_methods_that_count_all_pulls_refuse_a_delay(log, method):
    with pytest.raises(ub.NotIdentifiable, match=f"with a delay of 20 rounds .* method {method}"):
        ub.estimate(log, LATE, sigma=0.5, method=method)


@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
@pytest.mark.parametrize("rule", [LATE, "ucb:alpha=0.25,delay=7,batch=4,initial=2"])
def test_a_log_gives_the_same_numbers_read_at_once_scanned_or_followed(tmp_path, rule):
    log = ub.parse_rule(rule).demonstrate(INSTANCE, 300, runs=3, seed=4)
    shuffled = np.random.default_rng(3).permutation(np.repeat(np.arange(3), 300))  # rows of all, mixed
    place = {which: iter(log.demonstration(which).tolist()) for which in range(3)}
    rows = [(f"d{which}", str(next(place[which]))) for which in shuffled.tolist()]
    (tmp_path / "log.csv").write_text("demonstration,arm\n" + "".join(f"{name},{arm}\n" for name, arm in rows))
    whole = ub.estimate(ub.ActionLog.read(tmp_path / "log.csv"), rule, sigma=0.5)
    assert np.isfinite(whole.columns.gap).sum() > 3  # there is something to compare
    scanned = ub.estimate(ub.ActionLog.scan(tmp_path / "log.csv"), rule, sigma=0.5)
    streaming = ub.StreamingEstimate(rule, sigma=0.5, snapshot=tmp_path / "state")
    for at, (name, arm) in enumerate(rows):
        streaming.update([arm], name)
        if at == 500:
            streaming.save()
            streaming = ub.StreamingEstimate(rule, sigma=0.5, snapshot=tmp_path / "state")
    for other in (scanned, streaming.estimate()):
        assert other.demonstrations == whole.demonstrations
        assert np.array_equal(other.columns.gap, whole.columns.gap, equal_nan=True)
        assert np.array_equal(other.columns.gap_low, whole.columns.gap_low, equal_nan=True)
        assert np.array_equal(other.columns.verdict, whole.columns.verdict)


@given(data=st.data())
def test_what_was_known_is_carried_on_for_whichever_arm_comes_first(data):
    """Any actions, also ones that no such rule plays: at every moment the same as all rounds so far read at once."""
    rule = LookRule(*(data.draw(st.integers(low, 4)) for low in (1, 1, 1)))
    growing, rows = GrowingLog(list("abc"), looks=rule), {"x": "", "y": ""}
    for _ in range(data.draw(st.integers(1, 6))):
        name = data.draw(st.sampled_from("xy"))
        rows[name] += "".join(data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=30)))
        added = rows[name][int(growing.lengths[growing.demonstrations.index(name)]) if name in _names(growing) else 0 :]
        growing.update(list(added), name)
        growing = GrowingLog.restored(*growing.state())
        for which, each in enumerate(growing.demonstrations):
            codes = ub.ActionLog.from_actions(rows[each], arms=list("abc"))
            expected = codes.with_looks(codes.tallied("switching"), rule).looks[0]
            found = growing.with_looks(growing.tallied("switching"), rule).looks[which]
            assert found.tolist() == expected.tolist()


def _names(log):
    return log.demonstrations if len(log) else ()


def test_what_a_growing_log_cannot_carry_on_says_so(tmp_path):
    streaming = ub.StreamingEstimate("ucb:alpha=0.25,delay=3", sigma=0.5, snapshot=tmp_path / "state")
    streaming.update(list("ABABAAB"))
    streaming.save()
    with pytest.raises(ub.LogError, match="expected all arms in the opening"):
        streaming.update(["C"])
    assert streaming.log.arms == ("A", "B")
    with pytest.raises(ub.ResumeError, match=r"with initial=1, batch=1, delay=4 .* delay=3"):
        ub.StreamingEstimate("ucb:alpha=0.25,delay=4", sigma=0.5, snapshot=tmp_path / "state")
    with pytest.raises(ub.ParameterError, match="expected a shorter delay or fewer demonstrations"):
        ub.StreamingEstimate("ucb:alpha=0.25,delay=1000000000", sigma=0.5).update(["A"])
    with pytest.raises(ub.ParameterError, match="carried on here"):
        ub.estimate(streaming.log, "ucb:alpha=0.25,delay=4", sigma=0.5)


def test_parts_of_a_run_refuse_a_delay(log):
    with pytest.raises(ub.NotIdentifiable, match="begins in mid-run, and which rewards"):
        ub.estimate(log, LATE, sigma=0.5, starting_pulls={"0": 30, "1": 30, "2": 30})
    with pytest.raises(ub.NotIdentifiable, match="an arm went before a reward of it was known"):
        ub.estimate(ub.ActionLog.from_actions("ABABAAAAAAAA"), "sae:alpha=0.1,delay=40", sigma=0.5)


@pytest.mark.parametrize("text", ["epsilon-greedy:delay=6", "ucb:delay=6"])
def test_a_record_that_did_not_wait_in_turn_is_refused_by_the_posterior(text):
    record = ub.ActionLog.from_actions("ABBBABABAB")
    with pytest.raises(ub.InferenceError, match="in turn until a reward of each is known"):
        ub.posterior(record, text, sigma=0.5)


@pytest.mark.parametrize(
    ("actions", "text", "why"),
    [
        ("ABBAAABABAB", "ucb:delay=4,ties=random", "round 6: .* before all 2 have been"),
        ("ABBAABAABA", "ucb:delay=4,ties=random,batch=2", 'round 10: .* would have stayed with arm "B"'),
    ],
)
def test_where_ties_are_broken_at_random_every_turn_has_its_own_order(actions, text, why):
    with pytest.raises(ub.InferenceError, match=why):
        ub.posterior(ub.ActionLog.from_actions(actions), text, sigma=0.5)


def test_the_posterior_of_an_index_rule_knows_what_was_known(log):
    record = ub.ActionLog.from_codes(np.ascontiguousarray(log.demonstration(0)[:400]), log.arms)
    found = ub.estimate(record, LATE, horizon=2_000, sigma=0.5, method="posterior", particles=200, seed=1, check=True)
    assert found.check.verdict == "fits"
    for arm, gap in (("0", 0.8), ("2", 0.4)):
        assert found[arm].gap_low < gap < found[arm].gap_high


def test_decisions_that_no_late_reward_explains_are_refused():
    record = ub.ActionLog.from_actions("ABCABCABCBC")  # B before C and C before B, with no reward of either in between
    with pytest.raises(ub.InferenceError, match="none of 50 particles explains"):
        ub.posterior(record, "ucb:delay=6", sigma=0.5, particles=50)


def test_a_delay_that_the_opening_contradicts_does_not_fit():
    log = ub.UCB(alpha=0.25, delay=20).demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5), 1_000, seed=1)
    with pytest.warns(ub.AssumptionWarning, match="pulls arms in turn until a reward of each is known"):
        answer = ub.estimate(log, ub.UCB(alpha=0.25, delay=900), sigma=0.5, check=True)
    assert answer.check.verdict == "does not fit"


# Random delays

BY_CHANCE = "ucb:alpha=0.25,delay=geometric:20"


@pytest.fixture(scope="module")
def log_by_chance():
    return ub.parse_rule(BY_CHANCE).demonstrate(INSTANCE, 2_000, seed=4)


@pytest.mark.parametrize("delay", ["geometric:20", "uniform:5-30"])
@pytest.mark.parametrize("ties", ["lowest", "random"])
def test_what_is_expected_to_be_known_is_summed_as_in_plain_python(delay, ties):
    rule = ub.UCB(alpha=0.25, delay=delay, ties=ties)
    below = rule.delay.cumulative.tolist()
    for seed in range(3):
        log = rule.demonstrate(INSTANCE, 400, seed=seed)
        actions, best = log.actions.tolist(), int(log.pulls[0].argmax())
        end = max(t for t, arm in enumerate(actions) if arm == best)
        turns = [actions[t - t % 3 : t] for t in range(400)]
        opening = next(
            t for t, arm in enumerate(actions) if arm in turns[t] or (ties == "lowest" and arm != actions[t % 3])
        )

        def known(t, arm, actions=actions):
            chances = [below[min(t - 1 - s, len(below) - 1)] for s in range(t) if actions[s] == arm]
            deviation = sum(chance * (1 - chance) for chance in chances) ** 0.5
            return [max(math.floor(sum(chances) + 0.5 + add), 1) for add in (0, -deviation, deviation)]

        found = log.with_looks(log.tallied("switching"), rule.look_rule()).looks[0]
        for arm in set(range(3)) - {best}:
            begun = [t for t in range(opening, 400) if actions[t] == arm and (t == opening or actions[t - 1] != arm)]
            earlier, returns = [t for t in begun if t < end], [t for t in begun if t > end]
            t = returns[0] if returns else earlier[-1]
            assert found[arm, [0, 6, 7]].tolist() == known(t, arm)
            assert found[arm, [1, 8, 9]].tolist() == known(t, best)
            assert found[arm, 2:6].tolist() == [t + 1, known(end, arm)[0], known(end, best)[0], end + 1]


def test_random_delays_are_inverted_simulated_and_checked(log_by_chance):
    answer = ub.estimate(log_by_chance, BY_CHANCE, sigma=0.5, check=True)
    assert answer.check.verdict == "fits"
    again = ub.estimate(log_by_chance, BY_CHANCE, sigma=0.5, method="bootstrap", resamples=100, seed=1, check=False)
    for found in (answer, again):
        assert (found.columns.gap_low[0] < INSTANCE.gaps)[[0, 2]].all()
        assert (INSTANCE.gaps < found.columns.gap_high[0])[[0, 2]].all()


def test_not_knowing_what_was_known_makes_intervals_longer(log_by_chance):
    tallies = log_by_chance.tallied("switching")
    hidden = log_by_chance.with_looks(tallies, ub.parse_rule(BY_CHANCE).look_rule())
    certain = replace(hidden, looks=np.where(np.arange(10) < 6, hidden.looks, 0))
    spread = [compare(each, ub.parse_rule(BY_CHANCE), "bracket", 2_000, noise=INSTANCE.noise).numbers[-1, 0]
              for each in (hidden, certain)]  # fmt: skip
    assert (spread[0] >= spread[1])[[0, 2]].all()
    assert (spread[0] > spread[1])[[0, 2]].any()


@pytest.mark.parametrize("delay", ["geometric:10", "poisson:12", "uniform:4-30"])
def test_an_elimination_is_read_between_the_epochs_that_may_have_been_tested_then(delay):
    """Against simulations of the arrivals: which epochs became ready between the ends of the arm's last two."""
    rng, random = np.random.default_rng(3), RandomDelay.read(delay)
    pulls = np.array([[60, 25, 60]])
    first, last = elimination.expected_tests(pulls, np.array([[False, True, False]]), random)
    ends = np.minimum(pulls[0][None, :], np.arange(61)[:, None]).sum(axis=1)  # rounds over after each epoch
    delays = np.searchsorted(random.cumulative, rng.random((40_000, ends[25])), side="right")
    known = np.maximum.accumulate(np.arange(ends[25]) + 1 + delays, axis=1)[:, ends[1:26] - 1]  # when, by epoch
    tested_then, tested_now = (known <= ends[24]).sum(axis=1), (known <= ends[25]).sum(axis=1)
    some = tested_now > tested_then
    begun = tested_then[some] + 1
    tested = np.concatenate([np.arange(a + 1, b + 1) for a, b in zip(tested_then[some], tested_now[some], strict=True)])
    assert abs(first[0, 1] - np.quantile(begun, 0.04)) <= 1
    assert abs(last[0, 1] - np.quantile(tested, 0.96)) <= 1
    assert first[0, 0] == last[0, 2] == 0


def test_what_random_delays_hide_is_refused_with_the_reason(log_by_chance, tmp_path):
    log_by_chance.write(tmp_path / "log.csv")
    assert ub.estimate(tmp_path / "log.csv", BY_CHANCE, sigma=0.5, check=False).best  # a file is read, not scanned
    with pytest.raises(ub.NotIdentifiable, match="scanned or followed does not keep them"):
        ub.estimate(ub.ActionLog.scan(tmp_path / "log.csv"), BY_CHANCE, sigma=0.5)
    with pytest.raises(ub.NotIdentifiable, match="scanned or followed does not keep them"):
        ub.StreamingEstimate(BY_CHANCE, sigma=0.5)
    with pytest.raises(ub.NotIdentifiable, match="where batches begin"):
        ub.estimate(log_by_chance, f"{BY_CHANCE},batch=5", sigma=0.5)
    for rule in (BY_CHANCE, "sae:delay=poisson:20"):
        with pytest.raises(ub.NotIdentifiable, match=r"chooses at random .* \(delay=20\)"):
            ub.posterior(log_by_chance, rule, sigma=0.5)
    with pytest.raises(ub.NotIdentifiable, match="an arm went before a reward of it was known"):
        ub.estimate(ub.ActionLog.from_actions("ABABAAAAAAAA"), "sae:alpha=0.1,delay=uniform:40-50", sigma=0.5)
