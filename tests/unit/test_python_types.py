"""Values of the wrong type: each is refused by one of our errors, with a remedy, and never by an error of a library."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import unbandit as ub
from unbandit.errors import UnbanditError

LOG = ub.ActionLog.from_actions([0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0])
RULE = "ucb:alpha=0.25"


def frame(**columns: Any) -> ub.ActionLog:
    return ub.ActionLog.from_frame(pl.DataFrame({"arm": ["A", "B"]} | columns))


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "sigma as text": (lambda: ub.estimate(LOG, RULE, sigma="0.5"), "without quotes"),  # type: ignore[arg-type]
    "horizon as text": (lambda: ub.estimate(LOG, RULE, horizon="12"), "without quotes"),  # type: ignore[arg-type]
    "bernoulli as text": (lambda: ub.estimate(LOG, RULE, bernoulli="no"), "True or False"),  # type: ignore[arg-type]
    "pool as text": (lambda: ub.estimate(LOG, RULE, pool="no"), "True or False"),  # type: ignore[arg-type]
    "an anchor as a list": (lambda: ub.estimate(LOG, RULE, anchor=[1]), '{"B": 0.4}'),  # type: ignore[arg-type]
    "a number as a rule": (lambda: ub.estimate(LOG, 3), "UCB(alpha=0.25)"),  # type: ignore[arg-type]
    "no rule": (lambda: ub.posterior(LOG, None, sigma=1), "UCB(alpha=0.25)"),  # type: ignore[arg-type]
    "a class as a rule": (lambda: ub.estimate(LOG, ub.UCB), "the class UCB"),  # type: ignore[arg-type]
    "a parameter without its name": (lambda: ub.UCB(0.25), "the names being"),
    "rule before log": (lambda: ub.estimate(ub.UCB(alpha=0.25), LOG), "The log comes before"),  # type: ignore[arg-type]
    "a rule as a log": (lambda: ub.estimate(ub.UCB(alpha=0.25), RULE), "The log comes first"),
    "candidates as a number": (lambda: ub.identify(LOG, 3), "ucb,thompson"),  # type: ignore[arg-type]
    "no path": (lambda: ub.ActionLog.read(None), "from_frame"),  # type: ignore[arg-type]
    "a path in bytes": (lambda: ub.ActionLog.read(b"log.csv"), "got bytes"),  # type: ignore[arg-type]
    "a list with no path": (lambda: ub.ActionLog.read(["log.csv", None]), "got NoneType"),  # type: ignore[list-item]
    "nothing to scan": (lambda: ub.ActionLog.scan(3), "got int"),  # type: ignore[arg-type]
    "text as bytes": (lambda: ub.ActionLog.from_bytes("arm"), "as bytes; got str"),  # type: ignore[arg-type]
    "no counts": (lambda: ub.ActionLog.from_counts(3), '{"A": 70, "B": 30}'),  # type: ignore[arg-type]
    "counts without arms": (lambda: ub.ActionLog.from_counts([1, 2]), '{"A": 70, "B": 30}'),  # type: ignore[list-item]
    "codes that are no integers": (lambda: ub.ActionLog.from_codes(np.array([0.5]), "AB"), "array of integers"),
    "arms that are no list": (lambda: ub.ActionLog.from_actions("AB", arms=3), "List every arm"),  # type: ignore[arg-type]
    "columns as text": (lambda: frame().from_frame(pl.DataFrame(), columns="arm"), '{"arm": "picked"}'),  # type: ignore[arg-type]
    "pandas' missing value": (lambda: ub.ActionLog.from_actions(["A", pd.NA, "B"]), "Fill it in"),
    "the same in a frame": (lambda: ub.ActionLog.from_frame(pd.DataFrame({"arm": ["A", pd.NA]})), "Fill it in"),
    "durations as arms": (lambda: frame(arm=[timedelta(1), timedelta(2)]), "Convert it to text"),
    "durations as demonstrations": (lambda: frame(demonstration=[timedelta(1)] * 2), "Convert it to text"),
    "objects as demonstrations": (lambda: frame(demonstration=pl.Series([object()] * 2, dtype=pl.Object)), "Convert"),
    "a Decimal that is no number": (lambda: ub.ActionLog.from_actions([Decimal("NaN"), Decimal(1)]), "Fill it in"),
    "an endless Decimal": (lambda: ub.ActionLog.from_actions([Decimal(1), Decimal("Infinity")]), "no name for one"),
    "counts of no number": (lambda: ub.ActionLog.from_counts({"A": Decimal("NaN"), "B": Decimal(1)}), "Fill it in"),
    "rounds of 128 bits": (lambda: frame(round=pl.Series([1 << 100, 1], dtype=pl.Int128)), "Correct it"),
    "endless rewards": (lambda: ub.ActionLog.from_actions("AB", rewards=[10**400, 1]), "Put None there"),
}


@pytest.mark.parametrize(("call", "words"), REFUSED.values(), ids=REFUSED)
def test_a_value_of_the_wrong_type_is_refused(
    call: Callable[[], object], words: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UnbanditError) as caught:
        call()
    assert words in str(caught.value)
    assert caught.value.remedy
    assert capfd.readouterr() == ("", "")  # a panic of polars would be printed


def test_types_that_only_look_odd_are_read() -> None:
    wide = pl.Series([7, 1 << 100], dtype=pl.Int128)
    assert frame(arm=wide).arms == ("7", str(1 << 100))
    assert frame(arm=pl.Series([7, 8], dtype=pl.UInt128)).arms == ("7", "8")
    assert frame(demonstration=wide).demonstrations == ("7", str(1 << 100))
    assert ub.ActionLog.from_actions("AB", rewards=[pd.NA, Decimal("0.5")]).rewards.tolist()[1] == 0.5  # type: ignore[union-attr]
    assert ub.ActionLog.from_bytes(bytearray(b"arm\nA\nB\n")).arms == ("A", "B")  # type: ignore[arg-type]
