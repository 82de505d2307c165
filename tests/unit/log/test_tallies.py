"""What is read of demonstrations for closed forms, against plain Python, whatever their number, type and length."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import reference_counts, reference_epochs, reference_switching

from unbandit import ActionLog, ParameterError
from unbandit.log import tallies

TYPES = [np.uint8, np.uint16, np.int8, np.int64]


@st.composite
def several(draw, most_arms=17):
    arms = draw(st.integers(2, most_arms))
    runs = st.lists(st.integers(0, arms - 1), max_size=70)
    return arms, draw(st.lists(runs, min_size=1, max_size=4))


def log_of(arms, runs, kind=np.uint8):
    offsets = np.cumsum([0, *map(len, runs)])
    codes = np.array([arm for run in runs for arm in run], kind)
    return ActionLog.from_codes(codes, range(arms), offsets=offsets)


def check(found, runs, arms, need):
    """Hold what was read against the references."""
    for which, run in enumerate(runs):
        pulls, first, last = reference_counts(run, arms)
        assert found.pulls[which].tolist() == pulls
        assert found.first[which].tolist() == first
        assert found.last[which].tolist() == last
        if need == "switching":
            rounds, own, of_best = reference_switching(run, arms)
            best = max(range(arms), key=run.count)
            rounds[best] = last[best]
            assert found.rounds[which].tolist() == rounds
            assert found.own[which].tolist() == own
            assert found.of_best[which].tolist() == of_best
        if need == "epochs":
            passed, broken, broken_arm = reference_epochs(run, arms)
            assert found.passed[which].tolist() == passed
            assert (found.broken[which], found.broken_arm[which]) == (broken, broken_arm)


@pytest.mark.parametrize("need", ["counts", "switching", "epochs"])
@given(several(), st.sampled_from(TYPES))
def test_what_is_read_is_what_plain_python_reads(need, drawn, kind):
    arms, runs = drawn
    check(log_of(arms, runs, kind).tallied(need), runs, arms, need)


@pytest.mark.parametrize("need", ["counts", "switching", "epochs"])
def test_what_was_counted_before_is_not_counted_again_and_says_the_same(need):
    runs = [[0, 1, 2, 0, 0, 1, 0, 2], [2, 1, 0, 0], [1]]
    log = log_of(3, runs)
    before = log.pulls
    for other in ("switching", "epochs", "counts"):
        log.tallied(other)
    found = log.tallied(need)
    check(found, runs, 3, need)
    assert found.pulls is before
    assert log.tallied(need) is found
    assert log.last is found.last
    assert found.own is not None or need != "switching"
    assert found.passed is not None or need != "epochs"


@pytest.mark.parametrize(("arms", "kind"), [(3, np.uint8), (3, np.uint16), (15, np.uint8), (16, np.uint8)])
@pytest.mark.parametrize("need", ["counts", "switching", "epochs"])
def test_blocks_on_threads_read_what_one_does(monkeypatch, arms, kind, need):
    random = np.random.default_rng(arms)
    runs = [random.integers(0, arms, length).tolist() for length in random.integers(0, 50, 60)]
    monkeypatch.setattr(tallies, "BLOCK", 100)
    assert len(tallies._blocks(log_of(arms, runs).offsets)) > 10
    check(log_of(arms, runs, kind).tallied(need), runs, arms, need)


def test_counters_of_four_bits_do_not_run_over():
    codes = np.repeat(np.arange(15, dtype=np.uint8), 500)
    log = ActionLog.from_codes(codes, range(15))
    assert log.pulls.tolist() == [[500] * 15]
    assert log.last.tolist() == [[500 * (arm + 1) for arm in range(15)]]
    assert log.tallied("switching").rounds[0].tolist() == [500, *[0] * 14]


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("need", ["counts", "switching", "epochs"])
def test_codes_of_no_arm_are_refused_before_anything_is_read_by_them(kind, need):
    for wrong in (2, 100):
        log = ActionLog.from_codes(np.array([0, 1, wrong, 0], kind), ["A", "B"])
        with pytest.raises(ParameterError, match="expected codes from 0 to 1, one for each arm; got others"):
            log.tallied(need)


def test_what_was_read_cannot_be_changed_and_goes_along_in_a_pickle():
    log = log_of(3, [[0, 1, 2, 0]])
    found = log.tallied("switching")
    for array in (found.pulls, found.first, found.last, found.own, found.of_best, found.rounds):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 7
    assert pickle.loads(pickle.dumps(log)).tallied("switching").rounds.tolist() == found.rounds.tolist()


def test_a_table_of_counts_has_counts_alone():
    log = ActionLog.from_counts({"A": 3, "B": 1})
    assert log.tallied("counts").pulls.tolist() == [[3, 1]]
    assert not log.tallied("counts").last.any()
    with pytest.raises(ParameterError, match="switching: expected a log with rounds; this one holds counts"):
        log.tallied("switching")
    with pytest.raises(ParameterError, match="last: expected a log with rounds"):
        _ = log.last
