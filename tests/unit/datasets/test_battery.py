"""Battery protocols as arms, and the physics behind their lifetimes."""

import csv
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest

from unbandit.datasets import battery, lifetimes, protocols
from unbandit.datasets.battery import (
    REGIMES,
    charging_rates,
    conduction_matrix,
    heat_step,
    lifetimes_by_regime,
    temperatures,
)
from unbandit.errors import ParameterError

PUBLISHED = Path(__file__).parents[4] / "shared" / "data" / "battery_protocols.csv"

# Rows of the published table: protocol, CC1 to CC4, lifetimes in the low, medium and high regime.
ROWS = [
    (0, (3.6, 6.0, 5.6, 4.755), (922, 962, 974)),
    (1, (3.6, 7.0, 5.2, 4.537), (911, 945, 824)),
    (3, (4.0, 5.2, 5.6, 4.707), (932, 972, 1067)),
    (222, (8.0, 7.0, 5.2, 2.680), (901, 914, 593)),
    (223, (8.0, 7.0, 5.6, 2.585), (901, 912, 573)),
]


def test_protocols_fill_eighty_percent_in_ten_minutes():
    rates = charging_rates()
    assert rates.shape == (224, 4)
    assert len({tuple(row) for row in rates[:, :3].tolist()}) == 224
    assert (4.8, 4.8, 4.8) not in {tuple(row) for row in rates[:, :3].tolist()}
    assert (60 * 0.2 / rates).sum(axis=1) == pytest.approx(10.0)
    assert rates[:, 3].min() >= 0.1
    assert rates[:, 3].max() <= 4.81


def test_published_ranges():
    ranges = {name: (cycles.min(), cycles.max()) for name, cycles in lifetimes_by_regime().items()}
    assert ranges == {"low": (901, 962), "medium": (912, 982), "high": (573, 1208)}


@pytest.mark.parametrize(("protocol", "rates", "cycles"), ROWS)
def test_published_rows(protocol, rates, cycles):
    assert charging_rates()[protocol] == pytest.approx(rates, abs=5e-4)
    assert tuple(lifetimes_by_regime()[name][protocol] for name in ("low", "medium", "high")) == cycles


@pytest.mark.skipif(not PUBLISHED.exists(), reason=f"the published table is not at {PUBLISHED}")
def test_all_672_lifetimes_equal_the_published_table():
    with PUBLISHED.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["protocol"]) for row in rows] == list(range(224))
    published_rates = [[float(row[f"cc{step}"]) for step in (1, 2, 3, 4)] for row in rows]
    np.testing.assert_allclose(charging_rates(), published_rates, atol=5.01e-4)
    for name, cycles in lifetimes_by_regime().items():
        np.testing.assert_array_equal(cycles, [int(row[f"lifetime_{name}"]) for row in rows])


@pytest.mark.parametrize(("protocol", "rates", "cycles"), ROWS[:2] + ROWS[-1:])
def test_lifetimes_against_forty_digits(protocol, rates, cycles):
    """Work one protocol through by itself, in high precision, with fractions where the input is one."""
    with mpmath.workdps(40):
        mpf = mpmath.mpf
        first, second, third = (mpf(round(10 * rate)) / 10 for rate in rates[:3])
        fourth = mpf("0.2") / (mpf(1) / 6 - mpf("0.2") * (1 / first + 1 / second + 1 / third))
        history = _temperatures_in_high_precision([first, second, third, fourth])
        for name, expected in zip(("low", "medium", "high"), cycles, strict=True):
            prefactor, energy, unit, shortest = (mpf(str(value)) for value in REGIMES[name])
            damage = sum(
                prefactor * mpmath.exp(-energy / (mpf("8.617e-5") * node)) for step in history for node in step
            )
            assert int(mpmath.floor(1 / damage / unit)) + int(shortest) == expected
        ours = temperatures()[:, :, protocol]
        assert np.abs(ours - np.array(history, dtype=float)).max() < 1e-7


def _temperatures_in_high_precision(rates):
    mpf = mpmath.mpf
    dr, dt, k, h, ambient = mpf("0.001"), mpf(20), mpf("0.2"), mpf(10), mpf(30)
    diffusivity = k / (mpf(2362) * 1000)
    volume = mpmath.pi * mpf("0.009") ** 2 * mpf("0.065")
    now, clock, end, history = [ambient] * 12, mpf(0), mpf(0), []
    for rate in rates:
        current = mpf("1.1") * rate
        heat = current**2 * mpf("0.017") / volume
        end += 3600 * mpf("0.22") / current
        while clock < end - mpf("1e-30"):
            left, right = mpmath.zeros(12, 12), mpmath.zeros(12, 1)
            left[0, 0], left[0, 2] = 1, -1
            left[1, 1], left[1, 2], right[1] = 4 * dt, dr**2 - 4 * dt, dr**2 * (now[1] + dt * heat / k)
            for j in range(2, 11):
                r = (j - 1) * dr
                left[j, j] = 1 / (diffusivity * dt) + 2 / dr**2
                left[j, j + 1] = -(1 / dr**2 + 1 / (2 * r * dr))
                left[j, j - 1] = -(1 / dr**2 - 1 / (2 * r * dr))
                right[j] = now[j] / (diffusivity * dt) + heat / k
            left[11, 9], left[11, 10], left[11, 11], right[11] = k / (2 * dr), -h, -k / (2 * dr), -ambient * h
            now = list(mpmath.lu_solve(left, right))
            history.append(now)
            clock += dt
    assert len(history) == 30
    return history


def test_steady_warmth_agrees_with_the_formula_for_a_cylinder():
    # Heated evenly for ever, a cylinder is q R / (2 h) above ambient at its side, and q (R^2 - r^2) / (4 k) above that
    # at radius r: a parabola, which second differences follow exactly.
    heat, matrix = np.array([50_000.0]), conduction_matrix()
    now = np.full((12, 1), 30.0)
    for _ in range(5_000):
        now = heat_step(matrix, now, heat)
    side = now[10, 0]
    radii = 0.001 * np.arange(10)
    assert side == pytest.approx(30 + 50_000 * 0.009 / (2 * 10), rel=1e-9)
    assert now[1:11, 0] - side == pytest.approx(50_000 * (0.009**2 - radii**2) / (4 * 0.2), abs=1e-8)


def test_warmer_than_the_surroundings_and_hotter_inside():
    history = temperatures()
    assert history.shape == (30, 12, 224)
    assert (history[:, 1:11] > 30.0).all()
    assert (np.diff(history[:, 2:11], axis=1) < 0).all()
    assert math.isclose(history[5, 0, 7], history[5, 2, 7])


def test_tables_cannot_be_changed_by_a_caller():
    with pytest.raises(ValueError, match="read-only"):
        lifetimes_by_regime()["high"][0] = 1
    with pytest.raises(ValueError, match="read-only"):
        charging_rates()[0] = 1


def chosen(instance):
    names = battery().arms
    return [names.index(arm) for arm in instance.arms]


@pytest.mark.parametrize("regime", REGIMES)
def test_all_protocols(regime):
    instance = battery(regime)
    assert (len(instance), instance.name) == (224, f"battery-{regime}")
    assert instance.means == pytest.approx(lifetimes(regime) / 1208)
    assert instance.sigma == pytest.approx(164 / 1208)
    assert len(set(instance.arms)) == 224


def test_the_papers_normalised_figures():
    instance = battery("high")
    assert instance.means.min() == pytest.approx(0.474, abs=5e-4)
    assert instance.best_mean == 1.0
    assert instance.sigma**2 == pytest.approx(0.018, abs=5e-4)


def test_arms_are_named_by_their_rates():
    row = protocols().row(109, named=True)
    assert row["protocol"] == 109
    assert battery().best == battery().arms[109] == "-".join(f"{row[column]:.1f}" for column in ("cc1", "cc2", "cc3"))


@pytest.mark.parametrize("count", [2, 4, 20, 44])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_count_takes_one_from_each_bin(count, seed):
    instance = battery("high", arms=count, seed=seed)
    edges = np.histogram_bin_edges(lifetimes("high"), count)
    assert np.histogram(lifetimes("high")[chosen(instance)], edges)[0].tolist() == [1] * count


@pytest.mark.parametrize("count", [45, 60, 150, 223, 224])
def test_empty_bins_give_their_places_away(count):
    full = np.histogram(lifetimes("high"), count)[0] > 0
    assert not full.all()
    numbers = chosen(battery("high", arms=count))
    assert len(set(numbers)) == count
    filled = np.histogram(lifetimes("high")[numbers], np.histogram_bin_edges(lifetimes("high"), count))[0] > 0
    assert (filled == full).all()


def test_no_bin_is_empty_below_45():
    assert all((np.histogram(lifetimes("high"), count)[0] > 0).all() for count in range(2, 45))


def test_the_choice_is_the_same_in_every_regime():
    assert len({battery(regime, arms=20, seed=5).arms for regime in REGIMES}) == 1


def test_the_choice_depends_on_the_seed_alone():
    # The raw words behind the choice are fixed for all versions of NumPy, so it is written down here.
    assert chosen(battery("high", arms=4, seed=1)) == [20, 41, 185, 219]
    assert battery(arms=20, seed=1).arms != battery(arms=20, seed=2).arms
    before = np.random.get_state()[1].copy()
    battery(arms=20)
    assert (np.random.get_state()[1] == before).all()


def test_every_protocol_of_a_bin_has_its_chance():
    # The last of 20 bins holds four protocols, the best one among them: a fair draw takes it in 100 of 400 seeds,
    # give or take sqrt(400 * 1/4 * 3/4) = 8.7; five of those are allowed.
    lasts = [
        max(chosen(battery(arms=20, seed=seed)), key=lambda number: lifetimes("high")[number]) for seed in range(400)
    ]
    assert len(set(lasts)) == 4
    assert abs(lasts.count(109) - 100) < 44


def test_listed_protocols_keep_their_order():
    instance = battery("medium", arms=[223, 0, 109])
    assert chosen(instance) == [223, 0, 109]
    assert instance.means * 1208 == pytest.approx([912, 962, lifetimes("medium")[109]])
    assert battery(arms=np.array([5, 3])).arms == battery(arms=(5, 3)).arms


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (0, "expected a count from 2 to 224; got 0. Leave arms out to take all 224"),
        (1, "expected a count from 2 to 224; got 1"),
        (225, "expected a count from 2 to 224; got 225"),
        ([0, 224], "expected protocol numbers from 0 to 223; got 224"),
        ([0, -1], "expected protocol numbers from 0 to 223; got -1"),
        ([0, 1.5], "expected protocol numbers from 0 to 223; got 1.5"),
        (["a", "b"], "expected protocol numbers from 0 to 223; got 'a'"),
        ([3, 7, 3], "expected each protocol once; got 3 twice"),
        ([3], "expected two protocols or more; got 1"),
        ([], "expected two protocols or more; got 0"),
        ("20", "expected a count or a list of protocol numbers; got '20'"),
        (20.0, "expected a count or a list of protocol numbers; got 20.0"),
        (True, "expected a count or a list of protocol numbers; got True"),
    ],
)
def test_bad_arms_are_refused(arms, message):
    with pytest.raises(ParameterError, match=f"arms: {message}"):
        battery("high", arms=arms)


def test_other_bad_parameters_are_refused():
    with pytest.raises(ParameterError, match='regime: expected one of low, medium, high; got "hot"'):
        battery("hot")
    for seed in (-1, 1.5, "x"):
        with pytest.raises(ParameterError, match="seed: expected a whole number from 0 to"):
            battery(arms=20, seed=seed)
