"""`population`: partial pooling over participants, what it says, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import unbandit as ub
from unbandit.errors import AssumptionWarning, InferenceError, NotIdentifiable, ParameterError
from unbandit.hierarchy.check import PREFERENCE, STAY, WIDTHS, WIN_STAY, habits, other_beliefs
from unbandit.hierarchy.levels import Hierarchy
from unbandit.hierarchy.likelihood import FreeParameter, Participant, node_grid, smallest_spreads
from unbandit.inference.prior import BetaPrior, NormalPrior, belief_of


def normal_tables(centres: np.ndarray, deviations: np.ndarray, parameters: list[FreeParameter]) -> Hierarchy:
    """Return participants whose likelihoods are normal, for which everything is known in closed form."""
    nodes = node_grid(parameters)
    grid = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1)
    around = grid[None] - centres.reshape(len(centres), *[1] * len(nodes), len(nodes))
    spread = deviations.reshape(len(centres), *[1] * len(nodes), 1)
    return Hierarchy(-0.5 * np.square(around / spread).sum(axis=-1), parameters)


@pytest.mark.parametrize("count", [1, 2])
def test_pooling_of_normal_likelihoods_is_that_of_the_closed_form(count):
    parameters = [FreeParameter("rate", "log odds", 1.0), FreeParameter("temperature", "logarithm", 1.0)][:count]
    generator = np.random.default_rng(3)
    people, deviation = 40, 0.6
    true = -0.7 + 0.5 * generator.standard_normal((people, count))
    seen = true + deviation * generator.standard_normal((people, count))
    draws = normal_tables(seen, np.full(people, deviation), parameters).draw(0)
    assert draws.effective_size > 1_000
    for axis in range(count):
        spread = draws.spread[:, axis].mean()
        shrunk = (seen[:, axis] * spread**2 + draws.centre[:, axis].mean() * deviation**2) / (spread**2 + deviation**2)
        assert np.abs(np.median(draws.people[:, :, axis], axis=0) - shrunk).max() < 0.12
        error = np.hypot(spread, deviation) / np.sqrt(people)
        assert draws.centre[:, axis].mean() == pytest.approx(seen[:, axis].mean(), abs=0.05)
        assert draws.centre[:, axis].std() == pytest.approx(error, rel=0.25)


def test_participants_who_are_alike_have_a_small_spread():
    parameters = [FreeParameter("temperature", "logarithm", 1.0)]
    draws = normal_tables(np.full((60, 1), -1.0), np.full(60, 0.3), parameters).draw(0)
    assert np.median(draws.spread) < 0.2
    assert draws.people.std(axis=0).max() < 0.3


def softmax_log(temperatures: list[float], rounds: int = 80, rewards: bool = False) -> ub.ActionLog:
    """Play softmax in plain Python: one participant per temperature, each with an own bandit of two arms."""
    generator = np.random.default_rng(5)
    choices, gained = [], []
    for temperature in temperatures:
        means, sums, pulls = generator.normal(size=2), np.zeros(2), np.zeros(2)
        for turn in range(rounds):
            scaled = sums / np.maximum(pulls, 1) / temperature
            weights = np.exp(scaled - scaled.max())
            arm = turn if turn < 2 else int(generator.choice(2, p=weights / weights.sum()))
            reward = means[arm] + 0.5 * generator.standard_normal()
            sums[arm] += reward
            pulls[arm] += 1
            choices.append(arm)
            gained.append(reward)
    shape = len(temperatures), rounds
    known = np.array(gained).reshape(shape) if rewards else None
    return ub.ActionLog.from_codes(np.array(choices).reshape(shape), ("A", "B"), rewards=known)


TEMPERATURES = np.exp(np.log(0.4) + 0.4 * np.random.default_rng(1).standard_normal(16)).tolist()


@pytest.fixture(scope="module")
def found() -> ub.Population:
    return ub.population(softmax_log(TEMPERATURES), "softmax", sigma=0.5, threads=2)


def test_the_population_is_found_and_participants_are_drawn_towards_it(found):
    (row,) = found.population
    assert row.parameter == "temperature"
    assert row.low < 0.4 < row.high
    assert 0 < row.shrinkage < 1
    pooled, alone = found.intervals(0), found.intervals(0, alone=True)
    assert np.log(pooled[1]).std() < np.log(alone[1]).std()
    errors = [np.square(np.log(each[1]) - np.log(TEMPERATURES)).mean() for each in (pooled, alone)]
    assert errors[0] < errors[1]
    inside = (pooled[0] < TEMPERATURES) & (pooled[2] > TEMPERATURES)
    assert inside.mean() > 0.75


def test_the_answer_comes_back_from_json(found):
    again = ub.Population.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert (repr(again), again.population, again.parameters) == (repr(found), found.population, found.parameters)
    assert again.to_frame().equals(found.to_frame())
    assert again.arm_summary.equals(found.arm_summary)
    np.testing.assert_array_equal(again.means, found.means)
    assert again.plot().axes
    with pytest.raises(ub.ParameterError, match=r"expected an answer with its draws.*Population\.to_json\(\)"):
        ub.Population.from_json(json.dumps(found.to_dict()))
    with pytest.raises(ub.ParameterError, match=r"got unbandit\.leak/1"):
        ub.Population.from_json('{"schema": "unbandit.leak/1"}')


def test_the_answer_as_tables_and_json(found):
    assert found.to_frame().height == 16
    assert found.to_frame().columns == [
        "participant", "rounds", "parameter", "value", "low", "high", "alone", "alone_low", "alone_high",
    ]  # fmt: skip
    assert found.values.height == 32
    answer = json.loads(found.to_json())
    assert answer["schema"] == "unbandit.population/1"
    assert [each["parameter"] for each in answer["population"]] == ["temperature"]
    first = answer["participants"][0]
    assert first["participant"] == "1"
    assert first["rounds"] == 80
    assert {row["arm"] for row in first["arms"]} == {"A", "B"}
    assert sum(row["probability_best"] for row in first["arms"]) == pytest.approx(1)
    assert "16 participants" in repr(found)


def test_the_same_seed_gives_the_same_answer_on_any_number_of_threads(found):
    again = ub.population(softmax_log(TEMPERATURES), "softmax", sigma=0.5, threads=1)
    assert again.to_json() == found.to_json()


def test_known_rewards_give_shorter_intervals(found):
    known = ub.population(softmax_log(TEMPERATURES, rewards=True), "softmax", threads=2)
    assert known.rewards_known
    assert "sigma-from-rewards" in [note.code for note in known.notes]
    assert "scale-from-prior" not in [note.code for note in known.notes]  # rewards show it
    assert known.noise.sigma == pytest.approx(0.5, rel=0.1)
    (row,), (hidden,) = known.population, found.population
    assert row.low < 0.4 < row.high
    assert np.log(row.high / row.low) < np.log(hidden.high / hidden.low)


@pytest.mark.parametrize("rewards", [True, False])
def test_the_right_rule_is_checked_and_fits(rewards):
    found = ub.population(softmax_log(TEMPERATURES, rewards=rewards), "softmax", sigma=0.5, threads=2, check=True)
    assert found.check.verdict == "fits"
    assert (found.check.checked, found.check.simulations > 700) == (16, True)
    (said,) = (note.message for note in found.notes if note.code == "fits")
    assert all(name in said for name in ("learning-softmax", PREFERENCE, STAY))
    assert (WIN_STAY in said) is rewards
    assert json.loads(found.to_json())["check"]["verdict"] == "fits"


def test_people_with_a_preference_who_learn_nothing_do_not_fit_a_rule_that_learns():
    generator = np.random.default_rng(8)
    likes = generator.uniform(0.1, 0.9, (12, 1))
    choices, rewards = (generator.random((12, 60)) < likes).astype(np.int64), generator.normal(size=(12, 60))
    log = ub.ActionLog.from_codes(choices, ("A", "B"), rewards=rewards)
    with pytest.warns(AssumptionWarning, match="do not look like those of softmax"):
        wrong = ub.population(log, "softmax:initial=0", threads=1, check=True)
    assert wrong.check.verdict == "does not fit"
    assert wrong.check.instead[0] == PREFERENCE
    assert wrong.warnings[0].code == "does-not-fit"
    quiet = ub.population(log, "softmax:initial=0", threads=1, check=False)
    assert quiet.check.verdict == "not checked"
    assert {"does-not-fit", "fits"}.isdisjoint(notice.code for notice in (*quiet.warnings, *quiet.notes))


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_the_right_rule_fits_people_who_share_a_bandit_whose_values_are_not_as_the_prior_says(monkeypatch):
    rule, bandit = ub.LearningSoftmax(rate=0.1, temperature=0.3), ub.Instance([0.0, 0.0], 0.5)
    log = rule.demonstrate(bandit, 30, runs=12, seed=1, threads=1)
    wide = {"prior": NormalPrior(0.0, 5.0), "sigma": 0.5, "particles": 20, "threads": 1, "check": True}
    assert ub.population(log, "q-learning:temperature=0.3", **wide).check.verdict == "fits"
    monkeypatch.setattr("unbandit.hierarchy.check.WIDTHS", (1.0,))
    assert ub.population(log, "q-learning:temperature=0.3", **wide).check.verdict == "does not fit"


def test_other_priors_are_narrower_and_wider_and_lie_where_the_values_do():
    centre = np.array([0.3, 0.9])
    normal = other_beliefs(belief_of(NormalPrior(1.0, 2.0), 2, ub.Gaussian(0.5), None), centre)
    assert [each.second[0] for each in normal[::2]] == pytest.approx([4 * width**2 for width in WIDTHS])
    assert {each.first[0] for each in normal} == {1.0, 0.3}
    betas = other_beliefs(belief_of(BetaPrior(2.0, 1.0), 2, ub.Bernoulli(), None), centre)
    for width, around, own in zip(WIDTHS, betas[::2], betas[1::2], strict=True):
        assert around.first / (around.first + around.second) == pytest.approx([2 / 3, 2 / 3])
        assert own.first / (own.first + own.second) == pytest.approx(centre)
        if width <= 1:
            assert around.first + around.second + 1 == pytest.approx(np.full(2, 4 / width**2))


@pytest.mark.parametrize("initial", [0, 1])
def test_habits_give_all_sequences_of_choices_together_a_probability_of_one(initial):
    rule, rounds = ub.Softmax(initial=initial), 6
    gained = np.random.default_rng(4).normal(size=(rounds, 2))
    total = dict.fromkeys((STAY, PREFERENCE, WIN_STAY), 0.0)
    for choices in product((0, 1), repeat=rounds):
        if initial and choices[:2] != (0, 1):
            continue
        rewards = gained[np.arange(rounds), choices][None]
        log = ub.ActionLog.from_codes(np.array([choices]), ("A", "B"), rewards=rewards)
        person = Participant(log, rule, (), None, rounds, 1, 0)
        for name, value in habits([person]).items():
            total[name] += np.exp(value)
    assert total == pytest.approx(dict.fromkeys(total, 1.0))


@pytest.mark.parametrize("rewards", [None, [[1.0, np.nan, 0.0, 1.0]]])
def test_habits_that_do_not_go_by_rewards_are_asked_without_them(rewards):
    rule = ub.Softmax(initial=0)
    log = ub.ActionLog.from_codes(np.array([[0, 1, 1, 0]]), ("A", "B"), rewards=rewards)
    assert set(habits([Participant(log, rule, (), None, 4, 1, 0)])) == {PREFERENCE, STAY}


def test_likelihoods_that_say_nothing_have_the_evidence_of_certainty():
    parameters = [FreeParameter("rate", "log odds", 1.0), FreeParameter("temperature", "logarithm", 1.0)]
    tables = np.full((5, *(nodes.size for nodes in node_grid(parameters))), -3.0)
    evidence = Hierarchy(tables, parameters).log_evidence(0)
    resolved = sum(np.log(2 * norm.sf(least)) for least in smallest_spreads(parameters))  # other spreads are left out
    assert evidence == pytest.approx(-15.0 + resolved, abs=0.05)


def test_participants_with_few_rounds_are_kept():
    log = softmax_log(TEMPERATURES[:4])
    parts = [log.demonstration(at)[: 80 if at else 4].tolist() for at in range(4)]
    short = ub.ActionLog.from_actions([[("A", "B")[arm] for arm in each] for each in parts])
    with pytest.warns(AssumptionWarning, match="4 participants"):
        found = ub.population(short, "softmax", sigma=0.5)
    assert found.rounds.tolist() == [4, 80, 80, 80]
    wide = np.log(found.intervals(0)[2] / found.intervals(0)[0])
    assert wide[0] == wide.max()
    assert {"near-chance", "population-alone"} & {note.code for note in found.notes}


def test_what_is_refused():
    log = softmax_log(TEMPERATURES[:3], rounds=20)
    with pytest.raises(NotIdentifiable, match="one participant"):
        ub.population(log.select(0), "softmax", sigma=0.5)
    with pytest.raises(NotIdentifiable, match="the rule is deterministic"):
        ub.population(log, "ucb:alpha=0.25", sigma=0.5)
    with pytest.raises(NotIdentifiable, match="nothing is left"):
        ub.population(log, "softmax:temperature=0.3", sigma=0.5)
    with pytest.raises(ParameterError, match="own, shared"):
        ub.population(log, "softmax", sigma=0.5, values="mine")
    with pytest.raises(NotIdentifiable, match="order"):
        ub.population(ub.ActionLog.from_counts({"A": 5, "B": 3}), "softmax", sigma=0.5)


def test_a_log_that_the_rule_cannot_have_made_names_the_participant():
    log = ub.ActionLog.from_actions([["A", "B", "A", "A"], ["A", "A", "B", "A"]])
    with pytest.raises(InferenceError, match='participant "2"'):
        ub.population(log, "softmax", sigma=0.5)


def test_without_sigma_hidden_rewards_are_assumed_to_scatter_by_one():
    with pytest.warns(AssumptionWarning) as caught:
        ub.population(softmax_log(TEMPERATURES[:2], rounds=10), "softmax")
    assert any("sigma = 1" in str(each.message) for each in caught)


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_known_rewards_say_where_the_values_lie():
    """Rewards of 50 and 60, and no prior given: an arm that somebody never chose may be the better one."""
    random, rows = np.random.default_rng(1), []
    for person in range(12):
        arms = ["A"] * 19 + (["B"] if person else ["A"])
        rows += [(person, at, arm, (50 if arm == "A" else 60) + 5 * random.normal()) for at, arm in enumerate(arms)]
    frame = pl.DataFrame(rows, schema=["subject", "trial", "arm", "reward"], orient="row")
    found = ub.population(frame, "learning-softmax:rate=0.5", particles=16, threads=1)
    assert "prior" in {notice.code for notice in found.notes}
    assert 45 < found.prior.mean < 60
    alone = found.probability_best[0]
    assert 0.1 < alone[1] < 0.9  # the first participant never chose B


def test_the_figure_names_every_participant(found):
    text = ub.plots.svg(found.plot())
    assert "population" in text
    assert "shrinkage" in text
    assert all(f">{name}<" in text for name in found.participants)


def populated(found: ub.Population, spread: float, slope: float) -> ub.Population:
    """Return a population of normal participants with this spread, whose pooled values are so steep in those alone."""
    generator = np.random.default_rng(2)
    people = spread * generator.standard_normal((len(found.participants), 1))
    draws = normal_tables(people, np.full(len(people), 0.25), list(found.parameters)).draw(0)
    return replace(found, draws=replace(draws, people=slope * draws.alone))


def test_a_spread_that_is_not_resolved_is_a_bound(found):
    (alike,) = populated(found, 0.0, 0.5).population
    assert (alike.spread, alike.spread_low, alike.spread_verdict) == (None, 0.0, "bounded")
    assert alike.said_of_spread == ("-", f"below {alike.spread_high:.2g}")
    assert 0.1 < alike.spread_high < 0.5
    (different,) = populated(found, 1.0, 0.5).population
    assert different.spread_verdict == "estimated"
    assert 0.5 < different.spread_low < different.spread < different.spread_high
    said = json.loads(populated(found, 0.0, 0.5).to_json())["population"][0]
    assert (said["spread"], said["spread_verdict"]) == (None, "bounded")
    populated(found, 0.0, 0.5).plot()


def test_where_rewards_are_hidden_the_prior_settles_how_large_temperatures_are(found):
    (said,) = (note.message for note in found.notes if note.code == "scale-from-prior")
    assert "in units of the temperature" in said


def test_shrinkage_lies_between_none_and_all(found):
    for slope, shrinkage in ((1.2, 0.0), (0.25, 0.75), (-0.1, 1.0)):
        (row,) = populated(found, 0.5, slope).population
        assert row.shrinkage == pytest.approx(shrinkage)


# Shared values


def shared_log(people: int, rounds: int, gap: float, rewards: bool = False, apart: float = 0.0) -> ub.ActionLog:
    """Play softmax in plain Python: all participants have the same two arms, or such that are some way apart."""
    generator = np.random.default_rng(6)
    choices, gained = np.zeros((people, rounds), np.int64), np.zeros((people, rounds))
    for person in range(people):
        temperature, sums, pulls = 0.4 * np.exp(0.4 * generator.standard_normal()), np.zeros(2), np.zeros(2)
        means = np.array([gap, -gap]) / 2 + apart * (-1) ** person
        for turn in range(rounds):
            weights = np.exp(sums / np.maximum(pulls, 1) / temperature)
            arm = turn if turn < 2 else int(generator.random() > weights[0] / weights.sum())
            reward = means[arm] + 0.5 * generator.standard_normal()
            sums[arm] += reward
            pulls[arm] += 1
            choices[person, turn], gained[person, turn] = arm, reward
    return ub.ActionLog.from_codes(choices, ("A", "B"), rewards=gained if rewards else None)


def test_shared_values_follow_from_known_rewards_and_parameters_are_as_before():
    log = shared_log(6, 40, 0.6, rewards=True)
    with pytest.warns(AssumptionWarning, match="6 participants"):
        own = ub.population(log, "softmax", sigma=0.5, threads=1)
    with pytest.warns(AssumptionWarning, match="6 participants"):
        found = ub.population(log, "softmax", sigma=0.5, values="shared", threads=1)
    assert found.population == own.population
    assert log.rewards is not None
    assert log.actions is not None
    prior = own.prior
    assert isinstance(prior, NormalPrior)
    for at in range(2):
        rewards = log.rewards[log.actions == at]
        precision = rewards.size / 0.25 + 1 / prior.deviation**2
        mean = (rewards.sum() / 0.25 + prior.mean / prior.deviation**2) / precision
        assert found.means[0, at, 1] == pytest.approx(mean, abs=0.005)
        assert np.diff(found.means[3, at, ::2])[0] == pytest.approx(2 * 1.96 / np.sqrt(precision), rel=0.06)
    assert any("share a bandit" in note.message for note in found.notes)
    assert found.arm_summary.columns == ["arm", "pulls", "probability_best", "mean", "mean_low", "mean_high"]
    again = ub.Population.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.shared
    assert again.arm_summary.equals(found.arm_summary)
    assert json.loads(found.to_json())["values"] == "shared"


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
@pytest.mark.parametrize(("apart", "said"), [(0.0, []), (0.4, ["values-differ"])])
def test_rewards_may_contradict_that_values_are_shared(apart, said):
    log = shared_log(12, 60, 0.6, rewards=True, apart=apart)
    found = ub.population(log, "softmax", values="shared", threads=1, check=False)
    assert [each.code for each in found.warnings if each.code == "values-differ"] == said


@pytest.mark.parametrize("rule", ["softmax", "learning-softmax", "epsilon-greedy"])
def test_shared_values_are_refused_where_rewards_are_hidden(rule):
    with pytest.raises(NotIdentifiable, match="Hidden values of the arms that participants share") as refused:
        ub.population(shared_log(3, 10, 0.6), rule, values="shared", sigma=0.5)
    assert "Where the log holds every reward" in str(refused.value)


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_the_check_simulates_everybody_with_the_same_values_and_notices_people_who_learn_nothing():
    log = shared_log(8, 30, 0.6, rewards=True)
    found = ub.population(log, "softmax", sigma=0.5, values="shared", threads=2, check=True)
    assert found.check.verdict == "fits"
    assert found.check.checked == 8
    generator = np.random.default_rng(8)
    likes = generator.uniform(0.1, 0.9, (12, 1))
    rewards = generator.normal(size=(12, 60))
    log = ub.ActionLog.from_codes((generator.random((12, 60)) < likes).astype(np.int64), ("A", "B"), rewards=rewards)
    wrong = ub.population(log, "softmax:initial=0", values="shared", threads=1, check=True)
    assert wrong.check.verdict == "does not fit"
