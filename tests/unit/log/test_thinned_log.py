"""Logs that miss rounds: brackets where numbers show it, mixtures where every round was kept with one probability."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit import (
    SAE,
    UCB,
    UCB1,
    ActionLog,
    Bernoulli,
    Instance,
    LogError,
    NotIdentifiable,
    ParameterError,
    estimate,
    identify,
    posterior,
)
from unbandit.estimators.hidden_rounds import COMPLETIONS, _completed, _quantile
from unbandit.estimators.stream import StreamingEstimate
from unbandit.log.growth import GrowingLog
from unbandit.log.partial import PartialLog, ThinnedLog, read_or_scan, thinned

ARMS = ("a", "b", "c", "d")
INSTANCE = Instance([1.0, 0.7, 0.5, 0.0], 0.5, ARMS)
RULES = [UCB(alpha=0.25), UCB1(), SAE(alpha=0.25, scale=0.4)]

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")


def thin(rule, kept, seed=1, rounds=3_000):
    """Return the rows that are left of a run, and their rounds."""
    log = rule.demonstrate(INSTANCE, rounds, seed=seed)
    numbers = np.flatnonzero(np.random.default_rng(seed).random(rounds) < kept) + 1
    return ActionLog.from_codes(log.actions[numbers - 1], ARMS), numbers


def written(rows, numbers, path):
    text = [f"{number},{ARMS[code]}" for number, code in zip(numbers, rows.actions, strict=True)]
    path.write_text("\n".join(["round,arm", *text, ""]))
    return path


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_thinned_log_says_nearly_what_the_whole_one_does(rule):
    whole = estimate(rule.demonstrate(INSTANCE, 3_000, seed=1), rule, sigma=0.5, check=False)
    rows, numbers = thin(rule, 0.8)
    for found in (
        estimate(rows, rule, sigma=0.5, kept=0.8, check=False),
        estimate(ThinnedLog(rows, None, numbers), rule, sigma=0.5, kept=0.8, check=False),
    ):
        assert found.best == whole.best
        assert {"thinned"} <= {notice.code for notice in found.notes}
        assert "order-broken" not in {notice.code for notice in found.warnings}
        for one in found:
            other = whole[one.arm]
            assert (one.verdict, one.pulls) == (other.verdict, rows.pulls[0, ARMS.index(one.arm)])
            if one.verdict == "estimated":
                assert one.gap_low < other.gap < one.gap_high
                assert one.gap_low < one.gap < one.gap_high
                assert one.gap_high - one.gap_low > 0.9 * (other.gap_high - other.gap_low)


@pytest.mark.parametrize("noise", [{"bernoulli": True}, {"sigma": 0.5}, {}], ids=str)
def test_the_centre_of_a_thinned_log_is_that_of_the_whole_one_whatever_is_known_of_the_noise(noise):
    rule, instance = UCB1(exploration=0.5), Instance([0.7, 0.55, 0.45, 0.3], Bernoulli(), ARMS)
    log = rule.demonstrate(instance, 3_000, seed=2)
    rows = ActionLog.from_codes(log.actions[np.random.default_rng(2).random(3_000) < 0.9], ARMS)
    whole, found = (
        estimate(each, rule, check=False, **noise, **asked) for each, asked in ((log, {}), (rows, {"kept": 0.9}))
    )
    for one in found:
        other = whole[one.arm]
        if other.verdict == "estimated":
            assert one.gap == pytest.approx(other.gap, rel=0.15)
            assert (one.gap_low > 0) == (other.gap_low > 0)


def test_no_arm_is_certainly_best_where_all_other_intervals_reach_0():
    log = UCB1(exploration=0.5).demonstrate(Instance([0.6, 0.58, 0.57], 0.5), 400, seed=1)
    rows = ActionLog.from_codes(log.actions[np.random.default_rng(1).random(400) < 0.9], log.arms)
    clear, _ = thin(UCB1(), 0.8)
    for each, asked, said in ((log, {}, True), (rows, {"kept": 0.9}, True), (clear, {"kept": 0.8}, False)):
        found = estimate(each, UCB1(exploration=0.5 if said else 2.0), sigma=0.5, check=False, **asked)
        assert all(one.gap_low <= 0 for one in found if one.verdict == "estimated") == said
        assert [note.arm for note in found.notes if note.code == "open-best"] == list(found.best) * said


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_holes_give_brackets_that_hold_the_answer_of_the_whole_log(rule, tmp_path):
    whole = estimate(rule.demonstrate(INSTANCE, 3_000, seed=1), rule, sigma=0.5, check=False)
    for kept in (0.998, 0.8):
        rows, numbers = thin(rule, kept)
        numbers[0] = 1
        found = estimate(written(rows, numbers, tmp_path / "log.csv"), rule, sigma=0.5, check=False)
        assert "missing-rounds" in {notice.code for notice in found.notes}
        assert found.best == whole.best
        for one in found:
            other = whole[one.arm]
            if one.verdict != "best":
                assert one.gap_low < other.gap < one.gap_high
                assert one.gap_low <= max(other.gap_low, 0.0) + 0.02
    assert {one.verdict for one in found} == {"best", "bounded"}  # a fifth of all rounds leaves no point


def test_a_bracket_takes_in_every_arm_that_missing_rounds_can_be_of():
    rule, generator = UCB(alpha=0.25), np.random.default_rng(3)
    log = rule.demonstrate(INSTANCE, 1_500, seed=3)
    for arm in range(1, 4):  # rounds are lost only where one arm was pulled: the worst case for it
        own = np.flatnonzero(log.actions == arm)
        lost = generator.choice(own[1:], own.size // 2, replace=False)
        numbers = np.setdiff1d(np.arange(1, 1_501), lost + 1)
        rows = ActionLog.from_codes(log.actions[numbers - 1], ARMS)
        found = estimate(ThinnedLog(rows, None, numbers), rule, sigma=0.5, check=False)
        whole = estimate(log, rule, sigma=0.5, check=False)
        assert found[ARMS[arm]].gap_low < whole[ARMS[arm]].gap < found[ARMS[arm]].gap_high


def test_read_scanned_and_followed_give_the_same_numbers(tmp_path):
    for rule in (UCB(alpha=0.25), SAE(alpha=0.25, scale=0.4)):
        rows, _ = thin(rule, 0.7)
        labels = [ARMS[code] for code in rows.actions]
        path = tmp_path / "rows.csv"
        path.write_text("\n".join(["arm", *labels, ""]))
        growing = GrowingLog(ARMS)
        for at in range(0, len(labels), 7):
            growing.update(labels[at : at + 7])
        asked = {"sigma": 0.5, "kept": 0.7, "check": False}
        found = [estimate(each, rule, **asked) for each in (rows, ActionLog.scan(path, arms=ARMS), growing)]
        streaming = StreamingEstimate(rule, arms=ARMS, sigma=0.5, kept=0.7, snapshot=tmp_path / rule.name)
        streaming.update(labels)
        streaming.save()
        found += [streaming.estimate(), StreamingEstimate.load(tmp_path / rule.name).estimate()]
        for each in found[1:]:
            assert each.to_dict()["arms"] == found[0].to_dict()["arms"]


def test_completions_are_of_runs_that_could_have_been_thinned_to_the_log():
    rule, kept = UCB(alpha=0.25), 0.4
    rows, numbers = thin(rule, kept)
    log = ThinnedLog(rows, kept, numbers)
    seen = log.tallied("switching").part(0, 1)
    drawn = _completed(log, seen, 0, rule)
    assert drawn.pulls.shape == (COMPLETIONS, 4)
    assert (drawn.pulls >= seen.pulls).all()
    assert (drawn.pulls.sum(axis=1) == numbers[-1]).all()
    assert (drawn.own[:, 1:] >= seen.own[:, 1:]).all()
    assert (drawn.of_best[:, 1:] <= drawn.pulls[:, :1]).all()
    own = rows.pulls[0, 3]  # the mean and variance of a negative binomial variable, within five standard errors
    missing, expected = drawn.pulls[:, 3] - own, (own - 0.5) * (1 - kept) / kept
    assert abs(missing.mean() - expected) < 5 * np.sqrt(expected / kept / COMPLETIONS)


def test_quantiles_of_a_mixture():
    generator = np.random.default_rng(1)
    centres, deviations = generator.normal(0, 2, (20, 3)), generator.uniform(0.1, 2, (20, 3))
    drawn = centres + deviations * generator.standard_normal((20_000, 20, 3))
    for z, share in ((-1.96, 0.025), (1.0, 0.8413)):
        expected = np.quantile(drawn.reshape(-1, 3), share, axis=0)
        assert np.allclose(_quantile(centres, deviations, z)[0], expected, atol=0.03)


def test_simulations_hide_rounds_as_the_log_does():
    rule = UCB(alpha=0.25)
    rows, numbers = thin(rule, 0.6, rounds=2_000)
    runs = np.tile(np.arange(2_000), (3, 1)) % 4
    same = ThinnedLog(rows, 0.6, numbers)
    assert (same.rows_of(0, runs) == (numbers - 1) % 4).all()
    assert same.like(0, runs).numbers.tolist() == [*numbers, *numbers, *numbers]
    log = thinned(rows, 0.6)
    shown = log.rows_of(0, np.tile(np.arange(log.lengths[0]), (3, 1)))
    assert shown.shape == (3, rows.lengths[0])
    assert (shown[0] != shown[1]).any()
    for log in (rows, ThinnedLog(rows, None, numbers)):
        plain = estimate(log, rule, sigma=0.5, kept=0.6, check=True)
        assert plain.check.verdict == "fits"
        again = estimate(log, rule, sigma=0.5, kept=0.6, method="bootstrap", resamples=100, seed=3, check=False)
        for one, other in zip(plain, again, strict=True):
            assert one.gap == other.gap
            if one.verdict == "estimated":
                assert 0.5 < (other.gap_high - other.gap_low) / (one.gap_high - one.gap_low) < 1.6
    at_random = ActionLog.from_codes(np.random.default_rng(1).integers(4, size=1_200), ARMS)
    assert estimate(at_random, rule, sigma=0.5, kept=0.6, check=True).check.verdict == "does not fit"


def test_a_log_that_shows_too_little_of_an_arm_is_not_checked():
    rare = ActionLog.from_actions("a" * 200 + "b" + "a" * 300 + "c" + "a" * 200, arms=ARMS)
    found = estimate(rare, "ucb1", sigma=0.5, kept=0.5, check=True)
    assert {row.arm: row.verdict for row in found}["b"] == "bounded"
    assert found.check.verdict == "not checked"


def test_what_a_probability_contradicts_or_needs_is_refused(tmp_path):
    rule = UCB(alpha=0.25)
    rows, numbers = thin(rule, 0.6)
    log = ThinnedLog(rows, None, numbers)
    with pytest.raises(ParameterError, match=r"kept: of .* rounds .* are here, a share of 0\.6.*; got 0.9"):
        estimate(log, rule, sigma=0.5, kept=0.9)
    for wrong in (0, 1, 1.5, "many"):
        with pytest.raises(ParameterError, match="kept: expected a number between 0 and 1"):
            estimate(rows, rule, kept=wrong)
    for options, said in (
        ({"method": "counts"}, "counts takes pull counts as they are"), ({"pool": True}, "does not average out"),
        ({"scale": "unknown"}, "no interval"), ({"starting_pulls": dict.fromkeys(ARMS, 9)}, "missing rounds|without"),
    ):  # fmt: skip
        with pytest.raises(ParameterError, match=said):
            estimate(log, rule, sigma=0.5, **options)
    with pytest.raises(ParameterError, match="without pulls before"):
        estimate(rows, rule, kept=0.6, starting_pulls=dict.fromkeys(ARMS, 9))
    with pytest.raises(ParameterError, match="one row per round"):
        estimate(ActionLog.from_counts({"a": 9, "b": 3}), rule, kept=0.6)
    with pytest.raises(NotIdentifiable, match="batches or with a delay"):
        estimate(log, UCB(alpha=0.25, batch=5), sigma=0.5)
    for ask in (
        lambda: estimate(rows, "exp3", kept=0.6, bernoulli=True), lambda: posterior(log, rule), lambda: identify(log),
        lambda: estimate(log, "softmax", method="bootstrap"),
    ):  # fmt: skip
        with pytest.raises(NotIdentifiable, match="misses rounds"):
            ask()
    with pytest.raises(LogError, match="rounds are missing, which leaves every gap open"):
        estimate(ThinnedLog(*_every_third(rows, numbers)), rule, sigma=0.5)
    late = written(*_every_third(rows, numbers, 50)[::2], tmp_path / "late.csv")
    assert isinstance(read_or_scan(late), PartialLog)
    with pytest.raises(LogError, match=r"opening is missing.* kept"):
        estimate(late, rule, sigma=0.5)


def _every_third(rows, numbers, start=0):
    return ActionLog.from_codes(rows.actions[start::3], ARMS), None, numbers[start::3]


def test_rounds_may_be_counted_from_0_and_a_horizon_limits_them(tmp_path):
    rows, numbers = thin(UCB(alpha=0.25), 0.8)
    numbers[0] = 1
    one = read_or_scan(written(rows, numbers, tmp_path / "one.csv"))
    zero = read_or_scan(written(rows, numbers - 1, tmp_path / "zero.csv"))
    assert one.numbers.tolist() == zero.numbers.tolist() == numbers.tolist()
    with pytest.raises(LogError, match="expected round"):  # whatever reads whole logs
        ActionLog.read(tmp_path / "one.csv")
    log = thinned(rows, 0.5, horizon=3_000)
    assert log.lengths.tolist() == [3_000]
    assert log.played(0, int(rows.lengths[0])) == 3_000
    assert estimate(rows, "ucb:alpha=0.25", sigma=0.5, kept=0.5, horizon=3_000, check=False).horizons == (3_000,)


def test_rounds_that_are_missing_in_blocks_were_not_lost_at_random(tmp_path):
    whole = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.6, 0.3, 0.0], 0.5), horizon=2_000, seed=1)
    numbers = np.arange(1, 2_001)
    random = np.random.default_rng(3).random(2_000) < 0.9
    for kept in (random & (numbers > 500), (numbers <= 20) | (numbers > 420)):
        rows = ActionLog.from_codes(whole.actions[kept], whole.arms)
        log = read_or_scan(written(rows, numbers[kept], tmp_path / "log.csv"))
        with pytest.raises(ParameterError, match="lost one by one") as refused:
            estimate(log, "ucb:alpha=0.25", sigma=0.5, kept=float(kept.mean()))
        assert ("in 1 hole where" in str(refused.value)) == (kept[:20].all() and kept[420:].all())
    with pytest.raises(ParameterError, match="expected at most 1,000,000,000"):
        thinned(whole, 1e-9)


def test_an_arm_seen_in_the_last_row_is_not_gone():
    """A hole just before the last row hides the best arm's turn, not that the other arm was pulled after it."""
    codes = np.tile([0, 1], 300)
    kept = np.ones(600, np.bool_)
    kept[597], kept[100:110] = False, False
    rows, numbers = ActionLog.from_codes(codes[kept], ("a", "b")), np.arange(1, 601)[kept]
    for order in (rows, ActionLog.from_codes(1 - codes[kept], ("a", "b"))):
        found = estimate(ThinnedLog(order, None, numbers), "sae", sigma=0.5, check=False)
        assert set(found.best) == {"a", "b"}
