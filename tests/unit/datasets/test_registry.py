import pytest

from unbandit import datasets
from unbandit.datasets import linear, shrinking_gap, two_armed
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
    with pytest.raises(ParameterError, match=r'battery-high, gene; got "zzz"\.'):
        datasets.load("zzz")


@pytest.mark.parametrize(("name", "arms"), [("two-armed", 3), ("two-armed", [0, 1]), ("linear", 1), ("linear", [0, 1])])
def test_bad_arms_are_refused(name, arms):
    with pytest.raises(ParameterError, match="arms: expected"):
        datasets.load(name, arms=arms)


def test_public_names_exist():
    assert all(callable(getattr(datasets, name)) for name in datasets.__all__)


def test_two_armed():
    instance = two_armed()
    assert instance.means.tolist() == [1.0, 0.5]
    assert (instance.sigma, instance.name, instance.arms) == (1.0, "two-armed", ("0", "1"))


def test_linear_is_the_papers_four_armed_instance():
    instance = linear()
    assert instance.means == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert (instance.sigma**2, instance.name, instance.best) == (0.25, "linear", "0")


@pytest.mark.parametrize("arms", [2, 3, 224])
def test_linear_ends_at_one_and_zero(arms):
    instance = linear(arms)
    assert len(instance) == arms
    assert (instance.means[0], instance.means[-1]) == (1.0, 0.0)


@pytest.mark.parametrize(("horizon", "beta", "gap"), [(10_000, 0.5, 0.01), (5000, 0.05, 5000**-0.05), (500, 0, 1.0)])
def test_shrinking_gap(horizon, beta, gap):
    instance = shrinking_gap(horizon, beta)
    assert instance.gaps == pytest.approx([0.0, gap])
    assert (instance.sigma, instance.best_mean, instance.name) == (1.0, 1.0, "shrinking-gap")


@pytest.mark.parametrize("arms", [1, 0, -3, 2.0, "4", True, [0, 1]])
def test_linear_refuses_bad_counts(arms):
    with pytest.raises(ParameterError, match="arms: expected a count of 2 or more; got"):
        linear(arms)


@pytest.mark.parametrize(
    ("horizon", "beta", "message"),
    [
        (0, 0.5, "horizon: expected"),
        (float("nan"), 0.5, "horizon: expected"),
        (100, -0.1, "beta: expected a number from 0 up"),
        (10**6, 5.0, "beta: expected a gap that a mean near 1 can show; got 1e-30 .* smaller beta"),
    ],
)
def test_shrinking_gap_refuses_what_it_cannot_build(horizon, beta, message):
    with pytest.raises(ParameterError, match=message):
        shrinking_gap(horizon, beta)
