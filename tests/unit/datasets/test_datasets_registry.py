import pytest

from unbandit import datasets
from unbandit.errors import ParameterError


@pytest.mark.parametrize("name", datasets.names())
def test_every_name_builds_an_instance_of_that_name(name):
    assert datasets.load(name).name == name


def test_every_name_has_one_line():
    assert list(datasets.names()) == ["two-armed", "linear", "battery-low", "battery-medium", "battery-high", "gene"]
    assert all(line and "\n" not in line for line in datasets.names().values())


def test_the_described_ranges_are_true():
    for regime in ("low", "medium", "high"):
        cycles = datasets.lifetimes(regime)
        assert f"lifetimes {cycles.min()} to {cycles.max()} cycles" in datasets.names()[f"battery-{regime}"]


def test_arms_and_seed_are_handed_on():
    assert len(datasets.load("linear")) == 4
    assert len(datasets.load("linear", arms=7)) == 7
    assert len(datasets.load("two-armed", arms=2)) == 2
    assert datasets.load("battery-low", arms=20, seed=9).arms == datasets.battery("high", arms=20, seed=9).arms
    assert datasets.load("gene", arms=[5, 2]).arms == ("5", "2")


@pytest.mark.parametrize(
    ("name", "near"),
    [("battery_high", "battery-high"), ("Gene", "gene"), ("two_arms", "two-armed"), ("linear-4", "linear")],
)
def test_a_misspelt_name_is_corrected(name, near):
    with pytest.raises(ParameterError, match=f'expected one of two-armed, .*; got "{name}". Did you mean "{near}"'):
        datasets.load(name)


def test_a_strange_name_is_answered_with_the_list():
    with pytest.raises(ParameterError, match=r'battery-high, gene; got "zzz"\. Take one of these'):
        datasets.load("zzz")


@pytest.mark.parametrize(("name", "arms"), [("two-armed", 3), ("two-armed", [0, 1]), ("linear", 1), ("linear", [0, 1])])
def test_bad_arms_are_refused(name, arms):
    with pytest.raises(ParameterError, match="arms: expected"):
        datasets.load(name, arms=arms)


def test_public_names_exist():
    assert all(callable(getattr(datasets, name)) for name in datasets.__all__)
