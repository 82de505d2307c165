"""Logs whose arms arrive late or are withdrawn: each arm is read while it was there, or the answer says why not."""

import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from reference_available import reference_decisions, reference_hesitation, reference_looks

import unbandit as ub
from unbandit.cli.output import estimate_table
from unbandit.demonstrators import parse_rule
from unbandit.errors import LogError, ParameterError
from unbandit.estimators.arguments import told_availability
from unbandit.estimators.availability import said_of_table
from unbandit.estimators.stream import StreamingEstimate
from unbandit.inference.steps import check_decisions
from unbandit.kernels import availability as kernels
from unbandit.kernels.simulate_available import Spans
from unbandit.log import ActionLog
from unbandit.log.availability import ALWAYS, availability_of
from unbandit.reporting.sentence import sentence

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

INSTANCE = ub.Instance([0.2, 1.0, 0.6, 0.4], 0.5)
LATE = {"2": (301, None), "3": (601, None)}
TABLE = {**LATE, "0": (None, 1000)}


def estimate(log, rule, table, **options):
    return ub.estimate(log, rule, sigma=0.5, availability=table, **({"check": False} | options))


@pytest.mark.parametrize("method", ["bracket", "switching"])
@pytest.mark.parametrize("text", ["ucb:alpha=0.25", "ucb1", "moss", "lilucb", "sae:alpha=0.1,scale=0.4"])
def test_arms_that_were_always_there_are_read_as_ever(text, method):
    rule = parse_rule(text)
    log = rule.demonstrate(INSTANCE, 1_500, runs=10, seed=4)
    plain = ub.estimate(log, rule, sigma=0.5, check=False, method=method).columns
    told = estimate(log, rule, {"0": (1, 1_500)}, method=method).columns
    assert np.array_equal(plain.verdict, told.verdict)
    near = 1e-3 if "sae" in text else 1e-12  # how long an arm could have stayed is counted in whole epochs
    for name in ("gap", "gap_low", "gap_high"):
        np.testing.assert_allclose(getattr(told, name), getattr(plain, name), atol=near)


def test_a_late_arm_is_read_by_its_own_counts():
    rule = ub.UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 2_000, seed=3, availability=LATE)
    found, actions = estimate(log, rule, LATE, method="switching"), log.demonstration(0).tolist()
    assert found.best == ("1",)
    for arm in (0, 2, 3):
        own, of_best, _, _ = reference_hesitation(actions, arm, 1, 1, 2_000, 0)
        assert found[str(arm)].verdict == "estimated"
        width = rule.width(np.array([float(own), float(of_best)]), 2_000)
        assert found[str(arm)].gap == pytest.approx(width[0] - width[1])


@pytest.mark.parametrize("late", ["batch=20", "delay=30", "batch=10,delay=20"])
def test_batches_and_delays_are_read_where_arms_change(late):
    table, rule = {"1": (None, 2_500), "2": (801, None), "3": (1_501, None)}, parse_rule(f"ucb:alpha=0.25,{late}")
    held, several = [], 40
    for seed, means in enumerate(np.random.default_rng(4).uniform(0, 1, (several, 4))):
        log = rule.demonstrate(ub.Instance(means, 0.5), 4_000, seed=seed, availability=table)
        found = estimate(log, rule, table)
        assert not {"not-reconsidered", "availability-opening"} & {each.code for each in found.warnings}
        gaps = means[[0, 2, 3]].max() - means  # to the best arm that was there in the last round
        gaps[1] = means.max() - means[1]
        low, high = found.columns.gap_low[0], found.columns.gap_high[0]
        held += ((low <= gaps) & (gaps <= high))[found.columns.verdict[0] == 1].tolist()
    assert len(held) > several / 2
    assert np.mean(held) > 0.85  # 95%, with an error of about 4%


def random_log(seed):
    """Return a rule with a batch, a delay and an opening, its log, and when its arms came and went."""
    draws = np.random.default_rng([7, seed])
    batch, delay, initial = (int(draws.choice(each)) for each in ((1, 3, 20), (0, 4, 30), (1, 2)))
    ties = ("lowest", "random")[seed % 2]
    made = parse_rule(f"ucb:alpha=0.25,batch={batch},delay={delay},initial={initial},ties={ties}")
    table = {"1": (None, int(draws.integers(100, 600))), "2": (int(draws.integers(2, 500)), None)}
    table |= {"3": (int(draws.integers(2, 300)), int(draws.integers(350, 800)))}
    return made, table, made.demonstrate(ub.Instance(draws.uniform(0, 1, 4), 0.5), 900, seed=seed, availability=table)


def spans_of(table):
    return {int(arm): (first or 1, last or np.inf) for arm, (first, last) in table.items()}


def test_decisions_and_what_was_known_at_them_are_those_of_plain_python():
    compared, refused = 0, 0
    for seed in range(30):
        rule, table, log = random_log(seed)
        there, actions = availability_of(table, log.arms), log.demonstration(0).astype(np.int64)[:400]
        spans = Spans(there.first, there.last)
        if seed % 3 == 2:  # of another rule
            draws = np.random.default_rng(seed)
            at = draws.integers(0, actions.size, 3)
            actions[at] = (actions[at] + 1) % 4
        decided, broken = reference_decisions(
            actions.tolist(), spans_of(table), 4, rule.initial, rule.batch, rule.delay
        )  # fmt: skip
        pulls, known, look = (np.empty(size, np.int64) for size in (4, 4, actions.size))
        how = rule.initial, rule.batch, rule.delay
        found = kernels._decisions(actions, spans, *how, pulls, known, look)
        assert (look + 1).tolist() == decided
        assert found[0] == broken == kernels.first_contradiction(actions, spans, *how)[0]
        refused += broken > 0
        both = 60 + rule.delay
        for arm, other, since in ((0, 1, 0), (2, 0, 0), (3, 0, 200), (1, 3, 0)):
            known_then, _ = kernels._looks_against(
                actions, actions.size, arm, other, both, since, rule.delay, look
            )  # fmt: skip
            expected = reference_looks(actions.tolist(), decided, arm, other, both, since, rule.delay)
            assert tuple(known_then)[:6] == expected
            compared += min(expected) > 0
    assert compared > 20
    assert refused > 3


@pytest.mark.parametrize("seed", range(60))
def test_right_logs_with_batches_and_delays_are_never_refused(seed):
    rule, table, log = random_log(seed)
    check_decisions(log, rule, availability_of(table, log.arms))
    assert "availability-batch" not in {each.code for each in estimate(log, rule, table).warnings}


@pytest.mark.parametrize("method", ["bracket", "switching"])
def test_a_log_that_contradicts_a_batch_or_a_delay_does_not_fit(method):
    table, caught = {"2": (21, None)}, 0
    for seed in range(10):
        made = parse_rule("ucb:alpha=0.25,delay=10").demonstrate(INSTANCE, 400, seed=seed, availability=table)
        if method == "bracket":
            found = estimate(made, "ucb:alpha=0.25,delay=13", table, check=True)
            said = next(each for each in found.warnings if each.code == "availability-batch")
            assert (found.check.verdict, found.check.p_value) == ("does not fit", 0.0)
            assert f"Round {said.round:,}: a batch or an opening of" in found.check.reason
        rule = parse_rule("ucb:alpha=0.25,batch=20")
        log = rule.demonstrate(INSTANCE, 800, seed=seed, availability=table)
        decided, broken = reference_decisions(log.demonstration(0).tolist(), spans_of(table), 4, 1, 20, 0)
        assert broken == 0
        changed, actions = 410, log.demonstration(0).tolist()
        while decided[changed] == changed + 1 or decided[changed + 1] == changed + 2:  # at the ends of a batch
            changed += 1
        actions[changed] = (actions[changed] + 1) % 4
        found = estimate(ub.ActionLog.from_actions(actions, arms=range(4)), rule, table, method=method, check=True)
        assert (found.check.verdict, found.check.p_value) == ("does not fit", 0.0)
        assert f"Round {changed + 1:,}: a batch or an opening of" in found.check.reason
        caught += ("availability-batch", changed + 1) in {(each.code, each.round) for each in found.warnings}
    assert caught == 10


def test_a_contradiction_is_found_where_no_gap_is_known():
    rule, table = parse_rule("ucb:alpha=0.25,batch=20"), {"1": (21, None)}
    log = ub.ActionLog.from_actions([0] * 20 + [1] * 15 + [0, 1] * 3)
    found = estimate(log, rule, table, check=True)
    assert found.columns.verdict[0].tolist().count(1) == 0  # no gap is estimated
    assert (found.check.verdict, found.check.p_value) == ("does not fit", 0.0)
    right = ub.ActionLog.from_actions([0] * 20 + [1] * 21)
    assert estimate(right, rule, table, check=True).check.verdict == "not checked"


def test_an_arm_that_was_withdrawn_is_told_by_batches_too():
    rule = parse_rule("ucb:alpha=0.25,batch=20")
    log = rule.demonstrate(INSTANCE, 20_000, seed=3, availability={"0": (None, 700), "2": (301, None)})
    for method in ("bracket", "switching"):
        warnings = estimate(log, rule, {"2": (301, None)}, method=method).warnings
        assert ("not-reconsidered", "0") in {(each.code, each.arm) for each in warnings}


@pytest.mark.parametrize(
    ("text", "method"), [("batch=100", "switching"), ("batch=100", "bracket"), ("delay=30", "bracket")]
)
def test_arms_that_were_reconsidered_are_not_said_to_be_withdrawn(text, method):
    table, rule, estimated = {"2": (801, None)}, parse_rule(f"ucb:alpha=0.25,{text}"), 0
    for seed, means in enumerate(np.random.default_rng(4).uniform(0, 1, (60, 4))):
        log = rule.demonstrate(ub.Instance(means, 0.5), 4_000, seed=seed, availability=table)
        found = estimate(log, rule, table, method=method)
        assert "not-reconsidered" not in {each.code for each in found.warnings}
        estimated += int((found.columns.verdict == 1).sum())
    assert estimated > 100


def test_arms_that_are_always_there_are_read_so_in_batches_and_late():
    for late in ("batch=10", "delay=20", "batch=10,delay=20"):
        rule = parse_rule(f"ucb1:{late}")
        log = rule.demonstrate(INSTANCE, 3_000, seed=5)
        plain, told = ub.estimate(log, rule, sigma=0.5, check=False), estimate(log, rule, {"0": (1, 3_000)})
        assert np.allclose(plain.columns.gap, told.columns.gap, atol=0.01, equal_nan=True)
        assert estimate(log, rule, {"0": (1, 3_000)}, check=True).check.verdict == "fits"


def test_an_arm_that_was_withdrawn_is_read_before_that():
    rule = ub.UCB(alpha=0.25)
    table = {"0": (None, 400)}
    log = rule.demonstrate(INSTANCE, 3_000, seed=3, availability=table)
    found = estimate(log, rule, table, method="switching")
    own, of_best, _, _ = reference_hesitation(log.demonstration(0).tolist(), 0, 1, 1, 400, 0)
    width = rule.width(np.array([float(own), float(of_best)]), 3_000)
    assert found["0"].gap == pytest.approx(width[0] - width[1])
    # read as if it had been there to the end, it would look much worse
    assert ub.estimate(log, rule, sigma=0.5, check=False)["0"].gap_low > found["0"].gap


def test_gaps_are_to_the_best_arm_that_was_there():
    rule, table = ub.UCB(alpha=0.25), {"1": (None, 1_500)}
    log = rule.demonstrate(INSTANCE, 3_000, seed=3, availability=table)
    found = estimate(log, rule, table)
    assert found["1"].verdict == found["2"].verdict == "best"
    note = next(each.message for each in found.notes if each.code == "availability")
    assert '"1" to round 1,500' in note
    assert found["3"].verdict == "estimated"
    assert found["3"].gap_low < 0.2 < found["3"].gap_high  # to "2", not to "1"
    with_mean = estimate(log, rule, table, best_mean=0.6)
    assert with_mean["3"].mean == pytest.approx(0.6 - with_mean["3"].gap)
    assert with_mean["1"].mean is None


def test_a_late_arm_that_never_gave_way_leaves_open_which_is_best():
    rule, table = ub.UCB(alpha=0.25), {"1": (1_501, None)}
    log = rule.demonstrate(INSTANCE, 2_000, seed=3, availability=table)
    found = estimate(log, rule, table)
    assert found["1"].verdict == "bounded"  # 500 pulls in a row, and fewer than the arm before
    assert set(found.best) == {"1", "2"}
    assert any(each.code == "unresolved" for each in found.warnings)
    assert {found[arm].verdict for arm in "023"} == {"bounded"}
    longer = estimate(rule.demonstrate(INSTANCE, 4_000, seed=3, availability=table), rule, table)
    assert longer.best == ("1",)
    assert longer["2"].gap_low <= 0.4
    checked = estimate(log, rule, table, check=True).check  # nothing was withdrawn
    assert checked.reason == 'The gap of arm "2" has no bound, so there are no means to simulate at.'


def test_elimination_counts_every_arm_by_itself():
    rule = parse_rule("sae:alpha=0.1,scale=0.4")
    log = rule.demonstrate(INSTANCE, 3_000, seed=3, availability=TABLE)
    found = estimate(log, rule, TABLE, method="switching")
    assert found.best == ("1",)
    actions = log.demonstration(0)
    for arm in (2, 3):
        own = actions[actions == arm].size
        last = int(np.flatnonzero(actions == arm)[-1])
        of_best = int((actions[: last + 1] == 1).sum()) + (1 not in actions[last - 1 : last + 1])
        widths = rule.width(np.array([float(own), float(of_best)]), 3_000)
        assert found[str(arm)].gap == pytest.approx(widths.sum(), rel=0.01)


def test_an_arm_eliminated_by_one_that_was_withdrawn_is_not_known():
    rule, table = parse_rule("sae:alpha=0.1,scale=0.1"), {"1": (None, 150)}
    log = rule.demonstrate(INSTANCE, 152, seed=1, availability=table)  # all others are eliminated, and come back
    found = estimate(log, rule, table)
    assert found["1"].verdict == "best"
    assert {found[arm].verdict for arm in "023"} == {"bounded"}
    assert all(not each.code.startswith("availability-order") for each in found.warnings)
    strange = ub.ActionLog.from_actions([0, 1, 2, 3, 0, 1, 2, 3, 1, 1, 1, 1, 3, 3, 1])
    codes = {each.code for each in estimate(strange, rule, {"2": (1, 15)}).warnings}
    assert "availability-order" in codes


def test_a_known_noise_is_not_needed():
    rule = ub.UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 2_000, seed=3, availability=TABLE)
    with pytest.warns(ub.AssumptionWarning):
        found = ub.estimate(log, rule, availability=TABLE, check=False)
    assert found["2"].gap_low < 0.4 < found["2"].gap_high


def test_rules_that_need_a_mean_take_one():
    rule, instance = parse_rule("klucb"), ub.Instance([0.3, 0.8, 0.5], ub.Bernoulli())
    table = {"2": (301, None)}
    log = rule.demonstrate(instance, 2_000, seed=3, availability=table)
    with pytest.raises(ub.NotIdentifiable, match="one known mean"):
        ub.estimate(log, rule, availability=table, check=False)
    found = ub.estimate(log, rule, availability=table, best_mean=0.8, check=False)
    assert found["2"].mean_low < 0.5 < found["2"].mean_high


def test_what_cannot_be_read_so_says_why(tmp_path):
    rule = ub.UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 2_000, seed=3, availability=TABLE)
    with pytest.raises(ub.LogError, match=r'arm "0" is pulled in round .*, and its last round is 20'):
        estimate(log, rule, {"0": (None, 20)})
    with pytest.raises(ub.LogError, match='arm "2" is pulled in round 301, and its first round is 302'):
        estimate(log, rule, {"2": (302, None)})
    with pytest.raises(ub.NotIdentifiable, match="method counts does not know"):
        estimate(log, rule, TABLE, method="counts")
    with pytest.raises(ub.NotIdentifiable, match="counts have no rounds"):
        estimate(ub.ActionLog.from_counts({"a": 3, "b": 9}), rule, {"a": (2, None)})
    with pytest.raises(ub.ParameterError, match="pool"):
        estimate(rule.demonstrate(INSTANCE, 100, runs=2), rule, {}, pool=True)
    for late in ("sae:delay=5", "thompson:delay=5", "thompson:batch=5"):
        with pytest.raises(ub.NotIdentifiable, match="a batch or a delay"):
            estimate(log, late, TABLE)
    with pytest.raises(ub.NotIdentifiable, match="no posterior of a rule with a batch or a delay"):
        estimate(log, "ucb:alpha=0.25,batch=5", TABLE, method="posterior")
    with pytest.raises(ub.NotIdentifiable, match="random delays"):
        estimate(log, "ucb:alpha=0.25,delay=geometric:5", TABLE)
    with pytest.raises(ub.NotIdentifiable, match=r"method counts does not know .*posterior"):
        estimate(log, "thompson", TABLE, method="counts")
    with pytest.raises(ub.NotIdentifiable, match="draws its arms at random"):
        estimate(log, "thompson", TABLE, method="bracket")
    path = tmp_path / "log.csv"
    log.to_frame().write_csv(path)
    with pytest.raises(ub.NotIdentifiable, match="scanned or followed"):
        estimate(ub.ActionLog.scan(path), rule, TABLE)
    streaming = StreamingEstimate(rule, sigma=0.5, availability=TABLE)
    streaming.update(log.to_frame()["arm"].to_list())
    with pytest.raises(ub.NotIdentifiable, match="scanned or followed"):
        streaming.estimate()
    assert "availability-opening" in {each.code for each in estimate(log, rule, {"2": (101, None)}).warnings}
    assert np.array_equal(estimate(path, rule, TABLE).columns.gap, estimate(log, rule, TABLE).columns.gap)


def test_simulations_have_the_same_arms_in_the_same_rounds():
    rule = ub.UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 2_000, seed=3, availability=TABLE)
    found = estimate(log, rule, TABLE, check=True)
    assert found.check.verdict == "fits"
    again = estimate(log, rule, TABLE, method="bootstrap", resamples=200)
    for arm, gap in zip("023", (0.8, 0.4, 0.6), strict=True):
        assert again[arm].gap == found[arm].gap
        assert again[arm].gap_low < gap < again[arm].gap_high
    assert "availability" in {each.code for each in again.notes}


def test_another_rule_does_not_fit():
    made = parse_rule("epsilon-greedy:epsilon=0.2").demonstrate(INSTANCE, 2_000, seed=3, availability=TABLE)
    assert estimate(made, "ucb:alpha=0.25", TABLE, check=True).check.verdict == "does not fit"


def test_gaps_to_different_arms_are_not_simulated():
    rule, table = ub.UCB(alpha=0.25), {"1": (None, 1_500)}
    log = rule.demonstrate(INSTANCE, 3_000, seed=3, availability=table)
    assert estimate(log, rule, table, check=True).check.verdict == "fits"  # at means that decisions suggest
    late = {**table, "0": (50, None)}
    made = rule.demonstrate(INSTANCE, 3_000, seed=3, availability=late)
    assert estimate(made, rule, late, check=True).check.verdict == "not checked"
    with pytest.raises(ub.NotIdentifiable, match='arm "1" was the best until it was withdrawn, so there are no means'):
        estimate(log, rule, table, method="bootstrap", resamples=200)


def test_a_log_that_shows_it_is_told_of_the_option_and_of_a_table(tmp_path):
    rule = ub.UCB(alpha=0.25)
    log = rule.demonstrate(INSTANCE, 2_000, seed=3, availability=LATE)
    late = ub.estimate(log, rule, sigma=0.5, check=False)
    said = next(each.message for each in late.warnings if each.code == "late-arm")
    assert "give availability a table with the lines `arm,first,last`" in said
    (tmp_path / "arms.csv").write_text("".join(f"{line}\n" for line in re.findall("`([^`]*,[^`]*)`", said)))
    told = ub.estimate(log, rule, sigma=0.5, check=False, availability=tmp_path / "arms.csv")
    assert "late-arm" not in [each.code for each in told.warnings]
    log = rule.demonstrate(INSTANCE, 3_000, seed=3, availability={"0": (None, 400)})
    gone = ub.estimate(log, rule, sigma=0.5, check=False).warnings
    said = next(each for each in gone if each.code == "not-reconsidered")
    assert said.arm == "0"
    assert f"give availability a table with the lines `arm,first,last` and `0,,{said.round}`" in said.message


@pytest.mark.parametrize(("code", "limits"), [("late-arm", (300, None)), ("not-reconsidered", (None, 400))])
def test_of_several_demonstrations_the_table_is_for_the_one_that_shows_it(tmp_path, code, limits):
    rule = ub.UCB(alpha=0.25)
    whole = rule.demonstrate(INSTANCE, 3_000, seed=1)
    one = rule.demonstrate(INSTANCE, 3_000, seed=3, availability={"0": limits})
    codes, names = np.stack([log.demonstration(0) for log in (whole, one)]), ["0, new", "1", "2", "3"]
    log = ub.ActionLog.from_codes(codes, names, demonstrations=["x", "y"])
    (said,) = (each for each in ub.estimate(log, rule, sigma=0.5, check=False).warnings if each.code == code)
    assert said.demonstration == "y"
    assert 'add demonstration="y", and give availability a table' in said.message
    lines = re.findall("`([^`]*,[^`]*)`", said.message)
    assert lines[1].startswith('"0, new",')
    (tmp_path / "arms.csv").write_text("".join(f"{line}\n" for line in lines))
    given = {"sigma": 0.5, "check": False, "demonstration": "y"}
    assert code in [each.code for each in ub.estimate(log, rule, **given).warnings]
    told = ub.estimate(log, rule, availability=tmp_path / "arms.csv", **given)
    assert code not in [each.code for each in told.warnings]
    with pytest.raises(ub.LogError, match='arm "0, new" is pulled'):
        ub.estimate(log, rule, sigma=0.5, check=False, availability=tmp_path / "arms.csv")


def test_verdicts_ranks_and_the_sentence_name_the_same_arms():
    """Withdrawn while it was ahead, or before any test decided: such an arm may be the best, and has no rank."""
    for text, table in (("ucb:alpha=0.25", {"1": (None, 1_500)}), ("sae:alpha=0.25,scale=0.5", {"1": (None, 60)})):
        rule = parse_rule(text)
        log = rule.demonstrate(INSTANCE, 3_000, seed=3, availability=table)
        found = estimate(log, rule, table)
        assert found.best == ("1", "2")
        assert [row.arm for row in found.ranked()] == ["2", "3", "0", "1"]
        assert found.apart("1") == ("1",)
        assert found.to_dict()["apart"] == ["1"]
        said = sentence(found, found.ranked())
        assert said.startswith('Of the arms that stayed to the end "2" is')
        assert '; "1", withdrawn before, may be better; ' in said
        note = next(each.message for each in found.notes if each.code == "gap-to")
        assert '"1" was withdrawn before it fell behind, and may be better than all that stayed.' in note
        assert [str(cell) for cell in estimate_table(found, "1").columns[0].cells] == ["1", "2", "3", "-"]


def test_an_arm_that_led_for_a_while_and_stayed_is_not_named_as_best():
    rule, table = ub.UCB(alpha=0.25), {"0": (None, 400), "1": (801, None)}
    log = rule.demonstrate(INSTANCE, 4_000, seed=3, availability=table)
    found = estimate(log, rule, table)  # "2" led when "0" was withdrawn
    assert (found.best, found["1"].verdict, found["2"].verdict != "best") == (("1",), "best", True)
    assert found.apart("1") == ("0",)  # its gap is to "2"
    assert [row.arm for row in found.ranked()][-1] == "0"


def test_gaps_of_withdrawn_arms_that_are_to_the_same_arm_are_ranked():
    for text in ("ucb:alpha=0.25", "sae:alpha=0.25,scale=0.5"):
        rule, table = parse_rule(text), {"0": (None, 1_500)}
        found = estimate(rule.demonstrate(INSTANCE, 3_000, seed=3, availability=table), rule, table)
        assert (found.best, found.apart("1"), found.to_dict().get("apart")) == (("1",), (), None)


# Dates and times in place of rounds

STARTS = datetime(2026, 5, 1, tzinfo=UTC)


def timed(log, written):
    """Write a log with a row every 20 minutes, newest first, whose times are as `written`."""
    times = [written(STARTS + timedelta(minutes=20 * at)) for at in range(int(log.lengths[0]))]
    rows = [f"{time},{log.arms[arm]}" for time, arm in zip(times, log.demonstration(0).tolist(), strict=True)]
    return ActionLog.from_bytes("\n".join(["timestamp,arm", *reversed(rows)]).encode())


def zoned(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def local(time):
    return time.strftime("%Y-%m-%d %H:%M")


def american(time):
    return time.strftime("%m/%d/%Y %I:%M %p")


def day(time):
    return time.strftime("%Y-%m-%d")


def seconds(time):
    return int(time.timestamp())


@pytest.mark.parametrize(
    ("log_has", "table_has"),
    [
        (zoned, zoned),
        (zoned, seconds),
        (seconds, seconds),
        (local, local),
        (seconds, zoned),
        (zoned, datetime.astimezone),
        (american, american),
        (american, local),
    ],
)
def test_times_stand_for_the_rounds_that_the_log_has_then(log_has, table_has):
    rule, rounds = parse_rule("ucb1"), {"2": (301, None), "0": (None, 700)}
    log = rule.demonstrate(INSTANCE, 1_000, seed=3, availability=rounds)
    read = timed(log, log_has)
    if log_has is zoned and table_has is seconds:  # numbers are rounds, unless the log has such numbers
        with pytest.raises(LogError, match="and its first round is 1,777,"):
            estimate(read, rule, {"2": (table_has(STARTS + timedelta(minutes=20 * 300)), None)})
        return
    # between the times of rounds 300 and 301, and of 700 and 701
    bounds = [table_has(STARTS + timedelta(minutes=20 * at - 10)) for at in (300, 700)]
    found = estimate(read, rule, {"2": (bounds[0], None), "0": ("", bounds[1])})
    assert found.columns.gap.tolist() == estimate(log, rule, rounds).columns.gap.tolist()
    assert any('"0" to round 700, "2" from round 301.' in note.text for note in found.notes)


def test_a_date_is_its_whole_day_and_says_of_which_zone():
    spans = {"2": (73, None), "3": (None, 216)}
    log = parse_rule("ucb1").demonstrate(INSTANCE, 1_000, seed=3, availability=spans)
    table = {"2": ("2026-05-02", None), "3": (None, "2026-05-03"), "1": (None, "2027-01-01")}  # 72 rows a day
    found = told_availability(timed(log, local), table)
    assert (found.first.tolist(), found.last.tolist()) == ([1, 1, 73, 1], [ALWAYS, ALWAYS, ALWAYS, 216])
    assert not found.in_utc
    assert told_availability(timed(log, zoned), table).in_utc
    assert said_of_table(told_availability(timed(log, zoned), table)).message.endswith("Days are those of UTC.")
    assert told_availability(timed(log, day), table).first[2] == 73
    assert told_availability(timed(log, local), {"2": ("2026-04-30", None)}).first[2] == 1
    assert told_availability(timed(log, american), {"2": ("05/02/2026", None)}).first[2] == 73


@pytest.mark.parametrize(
    ("log_has", "table", "why"),
    [
        (local, {"2": ("2026-05-03", None), "0": (None, 700)}, "expected rounds throughout or times throughout"),
        (local, {"2": (zoned(STARTS), None)}, "those of the log are dates and times without a zone"),
        (zoned, {"2": (local(STARTS), None)}, "those of the log are dates and times with a zone"),
        (day, {"2": (local(STARTS), None)}, "those of the log are dates"),
        (local, {"2": ("03/05/2026", None)}, "or a time such as 2026-05-31"),
        (local, {"2": ("2026-05-03", "2026-05-02")}, "expected a first round up to the last"),
        (local, {"2": ("2026-05-03 00:00", "2026-05-02")}, "expected a first round up to the last"),
        (local, {"2": ("2026-05-01 00:01", "2026-05-01 00:02")}, "no round lies between"),
        (local, {"2": (None, "2026-04-02")}, "no round lies between"),
        (None, {"2": ("2026-05-03", None)}, "no times by which those of"),
    ],
)
def test_times_that_no_round_follows_from_are_refused(log_has, table, why):
    log = parse_rule("ucb1").demonstrate(INSTANCE, 1_000, seed=3)
    with pytest.raises(ParameterError, match=why):
        estimate(log if log_has is None else timed(log, log_has), "ucb1", table)


def test_times_of_several_demonstrations_are_refused_but_not_of_one_of_them():
    rows = "\n".join(f"2026-05-0{at % 7 + 1} 0{at // 7}:00,{run},{at % 2}" for run in "ab" for at in range(60))
    log = ActionLog.from_bytes(f"timestamp,demonstration,arm\n{rows}".encode())
    with pytest.raises(ParameterError, match="Of several demonstrations choose one"):
        told_availability(log, {"0": ("2026-05-01", None)})
    assert told_availability(log.select(1), {"0": ("2026-05-01", None)}).first.tolist() == [1, 1]


def test_the_times_of_rows_without_a_choice_are_left_out():
    data = b"timestamp,arm\n2026-05-01,A\n2026-05-02,\n2026-05-03,B\n"
    times = ActionLog.from_bytes(data, blank="skip").times
    assert times.form == "dates"
    assert np.diff(times.times).tolist() == [2 * 86_400 * 10**9]
