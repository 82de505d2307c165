import numpy as np
import pytest

from unbandit.datasets import battery, lifetimes, protocols
from unbandit.errors import ParameterError

REGIMES = ("low", "medium", "high")


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
        (["a", "b"], "expected protocol numbers from 0 to 223; got a"),
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
    with pytest.raises(ParameterError, match='regime: expected "low", "medium" or "high"; got \'hot\''):
        battery("hot")
    for seed in (-1, 1.5, "x"):
        with pytest.raises(ParameterError, match="seed: expected a whole number from 0 up; got"):
            battery(arms=20, seed=seed)
