"""The battery figures: which protocols are chosen, what decides "everywhere", and that no run is left out."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

from unbandit.datasets import protocols
from unbandit.paper.battery import Battery, BatteryRegimes, four_protocols, three_at_random, twenty
from unbandit.paper.battery_landscape import BatteryLandscape, _decided, _middles, _simultaneous
from unbandit.paper.figure import Results, Size
from unbandit.study.curves import StudyCurves
from unbandit.study.monte_carlo import measured
from unbandit.study.rows import rows


def value(regime: str, arm: str) -> float:
    instance = twenty(regime)
    return float(instance.means[instance.arms.index(arm)])


def test_three_suboptimal_protocols_are_drawn_by_lot():
    high = twenty("high")
    three = three_at_random(high)
    assert len(set(three)) == 3
    assert high.best not in three
    assert three == three_at_random(twenty("high"))


@pytest.mark.parametrize("figure", [Battery(), BatteryRegimes(), BatteryLandscape("low")])
def test_the_seed_of_the_runs_does_not_change_the_protocols(figure):
    first, second = (figure.studies(Size(seed=seed)) for seed in (1, 2))
    for name, study in first.items():
        assert [each.arms for each in study.instances] == [each.arms for each in second[name].instances]
        assert study.seed != second[name].seed


def test_the_followed_protocol_is_the_one_that_changes_least_and_is_not_the_best():
    first, best, *others = four_protocols()
    assert best == twenty("high").best
    assert len({first, best, *others}) == 4
    differences = {arm: abs(value("low", arm) - value("high", arm)) for arm in twenty("high").arms}
    assert first == min(differences, key=differences.__getitem__)
    for regime in ("low", "high"):
        assert value(regime, first) < max(value(regime, arm) for arm in (best, *others))


def test_the_twenty_protocols_are_the_same_in_both_regimes():
    assert twenty("low").arms == twenty("high").arms


def test_every_protocol_has_a_square_of_its_own():
    middles = _middles()
    assert middles.shape == (protocols().height, 2)
    assert len({tuple(place) for place in middles.round(6).tolist()}) == protocols().height


class Finished:
    """Stand for a finished study, without a folder."""

    def __init__(self, study):
        self.study = study
        self.parts = [rows(study, task) for task in study.tasks]

    def curves(self) -> StudyCurves:
        return StudyCurves(self.study, self.parts)


def test_no_run_is_left_out_of_the_landscape():
    """The low regime's best protocol is seldom found: an error of the runs that find it would be another one."""
    figure = BatteryLandscape("low")
    finished = Finished(figure.studies(Size(runs=6))["all"])
    drawn = figure.table(Results(Size(runs=6), {"all": finished})).filter(pl.col("panel") == "a")
    all_runs = pl.concat(finished.parts).filter(
        (pl.col("rule") == str(figure.rules["5σ"])) & (pl.col("horizon") == 25_000)
    )
    assert not all_runs["most_pulled_is_best"].all()
    squared = (pl.col("estimate") - pl.col("gap")) ** 2
    by_hand = all_runs.group_by("arm", maintain_order=True).agg(squared.mean().sqrt() * 1_208)["estimate"]
    assert drawn["value"].to_numpy() == pytest.approx(by_hand.to_numpy())


def replicates(means: np.ndarray, error: float) -> np.ndarray:
    """Return replicates of which `measured` gives these means, each with this error; twenty folds."""
    scatter = np.resize([1.0, -1.0], 20)[:, None] * error / np.sqrt(19)
    made = np.concatenate([means[None], means + scatter])
    assert measured(made[:, np.isfinite(means)]).error == pytest.approx(error)
    return made


@pytest.mark.parametrize(
    ("means", "verdict"),
    [
        (np.full(223, -1.0), "holds"),
        (np.full(223, -0.5), "cannot be tested"),  # each falls significantly, but not all at once
        (np.where(np.arange(223) < 5, 0.5, -1.0), "cannot be tested"),  # some rise, by no more than chance may show
        (np.where(np.arange(223) < 1, 1.0, -1.0), "does not hold"),
        (np.where(np.arange(223) < 1, np.nan, -1.0), "cannot be tested"),  # one has too few estimates
    ],
)
def test_what_falls_everywhere_is_decided_by_intervals_that_are_right_all_at_once(means, verdict):
    """Student's t with 19 degrees of freedom: 2.09 standard errors for one interval, 4.59 for 223 of them."""
    found, because = _decided(replicates(means, 0.2))
    assert found == verdict
    assert because.startswith(
        f"{(means < 0).sum()} of 223 fall, {(means < -0.919).sum()} of them significantly; "
        f"{(means > 0.919).sum()} rise significantly"
    )


def test_intervals_of_all_protocols_are_as_wide_as_bonferroni_says():
    low, high = _simultaneous(replicates(np.zeros(223), 1.0))
    assert high == pytest.approx(-low)
    assert t.sf(high, 19) == pytest.approx(0.025 / 223)


def test_where_all_groups_of_runs_agree_nothing_is_known():
    assert _decided(np.full((21, 223), -1.0))[0] == "cannot be tested"


def test_nothing_can_be_said_of_no_protocols():
    assert _decided(np.full((21, 223), np.nan))[0] == "cannot be tested"


def test_what_is_computed_has_no_error():
    figure = BatteryRegimes()
    finished = Finished(figure.studies(Size(runs=2))["four"])
    ranges, gaps, _ = figure.claims(Results(Size(runs=2), {"four": finished}))
    for claim in (ranges, gaps):
        assert claim.verdict == "holds"
        assert claim.measured.low == claim.measured.high == claim.measured.value
