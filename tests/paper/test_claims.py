"""Claims: what the interval of a statistic decides, and how numbers are written."""

from __future__ import annotations

import math

import pytest

from unbandit.paper.claims import FAILS, HOLDS, UNTESTED, Claim, counted, every, interval, number, written
from unbandit.study.monte_carlo import Measured, computed, share

NARROW = Measured(1.0, 0.01, 20)
WIDE = Measured(1.0, 10.0, 20)
NOTHING = Measured(math.nan, math.nan, 20)


def below(value, limit):
    claim = Claim.below("", "", value, limit)
    return claim.verdict, claim.because


def above(value, limit):
    claim = Claim.above("", "", value, limit)
    return claim.verdict, claim.because


def within(value, low, high):
    claim = Claim.within("", "", value, (low, high))
    return claim.verdict, claim.because


@pytest.mark.parametrize(
    ("decide", "limit", "verdict"),
    [(below, 2.0, HOLDS), (below, 0.5, FAILS), (below, 1.0, UNTESTED),
     (above, 0.5, HOLDS), (above, 2.0, FAILS), (above, 1.0, UNTESTED)],
)  # fmt: skip
def test_a_limit_decides_by_the_whole_interval(decide, limit, verdict):
    assert decide(NARROW, limit)[0] == verdict
    assert decide(WIDE, limit) == (UNTESTED, "the interval reaches both sides: more runs are needed")


@pytest.mark.parametrize(
    ("limits", "verdict"),
    [((0.5, 1.5), HOLDS), ((1.5, 2.0), FAILS), ((-2.0, 0.5), FAILS), ((1.0, 2.0), UNTESTED), ((0.99, 1.01), UNTESTED)],
)
def test_two_limits_decide_by_the_whole_interval(limits, verdict):
    assert within(NARROW, *limits)[0] == verdict
    assert within(WIDE, *limits)[0] == UNTESTED


def test_without_a_number_nothing_is_decided():
    for decided in (below(NOTHING, 0.0), above(NOTHING, 0.0), within(NOTHING, 0.0, 1.0)):
        assert decided == (UNTESTED, "there is nothing to measure: too few runs gave an estimate")
    assert (written(NOTHING), interval(NOTHING)) == ("-", "-")


def test_what_was_simulated_needs_an_error():
    """Twenty groups that all gave the same do not make it certain; a computed value is, and a share is exact."""
    same = Measured(0.0, 0.0, 20)
    for decided in (below(same, 1.0), above(same, -1.0), within(same, -1.0, 1.0)):
        assert decided[0] == UNTESTED
        assert "leaves its error unknown" in decided[1]
    assert below(computed(0.0), 1.0) == (HOLDS, "the value lies below 1")
    assert below(computed(1.0), 1.0) == (UNTESTED, "the value is 1")
    assert below(share(0, 2), 0.5)[0] == UNTESTED
    assert below(share(0, 100), 0.5) == (HOLDS, "the whole interval lies below 0.5")
    assert above(share(100, 100), 0.5)[0] == HOLDS


def test_a_claim_about_several_is_as_good_as_the_worst():
    holds, fails, open_ = (HOLDS, "a"), (FAILS, "b"), (UNTESTED, "c")
    assert every([holds, holds]) == (HOLDS, "a")
    assert every([])[0] == UNTESTED
    assert every([holds, open_]) == (UNTESTED, "c")
    assert every([holds, open_, fails]) == (FAILS, "b")


def test_only_known_verdicts():
    with pytest.raises(ValueError, match="expected one of holds, does not hold, cannot be tested; got 'perhaps'"):
        Claim("x", "y", None, "perhaps", "z")


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [(-1.2496, 0.0312, "−1.250 ± 0.031"), (0.0081234, 0.00051, "0.00812 ± 0.00051"), (12345.6, 78.9, "12,346 ± 79"),
     (0.5, 0.0, "0.5"), (0.5, math.nan, "0.5"), (1000.0, 1e-9, "1,000 ± 1e−09"),
     (0.3, 1e-9, "0.3 ± 1e−09"), (-0.001, 0.25, "0.00 ± 0.25")],
)  # fmt: skip
def test_a_value_is_written_with_its_error(value, error, text):
    assert written(Measured(value, error, 20)) == text


def test_numbers_and_counts_in_words():
    assert [number(value) for value in (-0.5, 1.0, 1234.5, 0.000123456, 0.0)] == ["−0.5", "1", "1,234", "0.000123", "0"]
    assert interval(Measured(0.0, 1.0, 20)) == "−2.1 to 2.1"
    assert [counted(verdict, 1) for verdict in (HOLDS, FAILS)] == ["1 holds", "1 does not hold"]
    assert [counted(verdict, 0) for verdict in (FAILS, UNTESTED)] == ["0 do not hold", "0 cannot be tested"]
