"""What a posterior answers, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import InferenceError, LogError, NotIdentifiable, ParameterError
from unbandit.inference import clouds, parse_prior, usual_prior
from unbandit.inference.clouds import particles_for
from unbandit.inference.filter import log_mean

RULE = ub.Softmax(temperature=0.3)
INSTANCE = ub.Instance([1.0, 0.5, 0.0], 0.5, arms="ABC")


@pytest.fixture(scope="module")
def log():
    return RULE.demonstrate(INSTANCE, 300, seed=2)


@pytest.fixture(scope="module")
def found(log):
    return ub.posterior(log, RULE, sigma=0.5, particles=300, seed=3)


def test_answers_are_about_the_draws(found):
    assert found.means.shape == (4, 1000, 3)
    assert found.probability_best.sum() == pytest.approx(1)
    assert (found.gaps.min(axis=-1) == 0).all()
    assert found.beats("A", "C") > found.beats("A", "C", by=0.5) > found.beats("C", "A")
    assert found.beats("A", "A") == 1
    low, high = found.interval(0.8)
    wide_low, wide_high = found.interval(0.99)
    assert (wide_low < low).all()
    assert (high < wide_high).all()
    assert found.to_frame()["arm"].to_list()[0] == "A"
    assert "best A" in repr(found)


def test_threads_do_not_change_a_draw(log, found):
    again = ub.posterior(log, RULE, sigma=0.5, particles=300, seed=3, threads=1)
    assert np.array_equal(again.means, found.means)
    other = ub.posterior(log, RULE, sigma=0.5, particles=300, seed=4)
    assert not np.array_equal(other.means, found.means)


def test_the_path_ends_where_the_sums_do(log, found):
    assert found.path.shape == (100, 3, 3)
    assert found.path_rounds[-1] == 300
    assert np.isnan(found.path[0]).any()  # in the first round one arm was pulled
    assert (found.path[-1, :, 0] < found.path[-1, :, 2]).all()
    figure = found.plot()
    assert figure.axes[0].get_ylabel() == "hidden sample mean"


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
def test_surprise_sums_up_to_the_evidence(log, found):
    """To that by each cloud, or, where clouds see the whole log, about: a small cloud that does not gives it."""
    assert found.surprise.size == 300
    assert found.surprise.sum() == pytest.approx(found.evidences.mean(), abs=1.0)
    forwards = ub.posterior(log, "epsilon-greedy:epsilon=0.1", sigma=0.5, particles=50)
    assert forwards.surprise.sum() == pytest.approx(forwards.evidences.mean(), abs=1e-6)


def test_netcdf_is_read_as_chains_and_draws(found, tmp_path):
    xarray = pytest.importorskip("xarray")
    found.to_netcdf(tmp_path / "draws.nc")
    with xarray.open_dataset(tmp_path / "draws.nc", group="posterior", engine="h5netcdf") as read:
        assert read["mean"].dims == ("chain", "draw", "arm")
        assert np.array_equal(read["mean"].values, found.means)
        assert read["arm"].values.tolist() == ["A", "B", "C"]
    with xarray.open_dataset(tmp_path / "draws.nc", group="observed_data", engine="h5netcdf") as read:
        assert read["pulls"].values.tolist() == found.pulls.tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["draws.nc"]


def test_an_anchor_settles_the_level(log):
    free = ub.posterior(log, RULE, sigma=0.5, particles=300)
    held = ub.posterior(log, RULE, sigma=0.5, particles=300, anchor={"B": 0.5})
    assert (held.draws[:, 1] == 0.5).all()
    assert held.draws[:, 0].std() < 0.5 * free.draws[:, 0].std()
    best = ub.posterior(log, RULE, sigma=0.5, particles=300, best_mean=1.0)
    assert (best.draws.max(axis=1) == 1.0).all()


def test_known_rewards_settle_it_too(log):
    rewards = np.full(300, np.nan)
    rewards[40:80] = 1.0 + 0.5 * np.random.default_rng(0).standard_normal(40)
    told = ub.ActionLog.from_actions([log.actions.tolist()], arms=[0, 1, 2], rewards=[rewards])
    found = ub.posterior(told, RULE, sigma=0.5, particles=500)
    assert found.draws.std(axis=0)[log.pulls[0].argmax()] < 0.3


@pytest.mark.parametrize(
    ("rule", "actions", "text"),
    [
        ("ucb", "ABACBC", 'round 3: the rule pulls every arm once first, and "A" comes again before all 3'),
        ("sae", "ABACBC", 'round 3: the rule pulls every arm once first, and "A" comes again'),
        ("ucb:initial=2", "ABCABBAC", 'round 6: the rule pulls every arm 2 times first, and "B" comes again'),
    ],
)
def test_an_impossible_record_is_refused_with_its_round(rule, actions, text):
    with pytest.raises(InferenceError, match=f"^{text}"):
        ub.posterior(ub.ActionLog.from_actions(actions, arms="ABC"), rule, sigma=1.0, particles=20)


def test_an_elimination_rule_does_not_come_back():
    record = ub.ActionLog.from_actions("ABC" * 5 + "AB" * 3 + "C" + "AB")
    with pytest.raises(InferenceError, match=r'^round 22: arm "C" is pulled again after its turn had passed'):
        ub.posterior(record, "sae", sigma=1.0, particles=20)


def test_an_arm_dropped_where_no_test_is_made():
    record = ub.ActionLog.from_actions("ABC" * 5 + "AB" * 5)
    with pytest.raises(InferenceError, match=r'^round 18: arm "C" was dropped after 5 pulls, where phased'):
        ub.posterior(record, "phased", sigma=1.0, particles=20)


def test_a_batch_that_changes_its_mind():
    record = ub.ActionLog.from_actions("AB" + "AAB" + "AAA")
    with pytest.raises(InferenceError, match=r"^round 5: a rule that decides every 3 rounds"):
        ub.posterior(record, "ucb:batch=3", sigma=1.0, particles=20)


def test_all_particles_dead():
    """All but greedy, rewards of 0 and 1: B is pulled three times only if it gave a 1 and A did not; A never again."""
    record = ub.ActionLog.from_actions("ABBBA")
    with pytest.raises(InferenceError, match=r"^round \d: none of 20 particles explains the log so far under ucb"):
        ub.posterior(record, "ucb:scale=1e-9", bernoulli=True, particles=20)


REFUSED = [
    ({"prior": "normal:deviation=0"}, ParameterError, "prior: deviation: expected a positive number; got 0"),
    ({"prior": "normal:width=1"}, ParameterError, "prior: expected mean and deviation"),
    ({"prior": "cauchy"}, ParameterError, "prior: expected normal or beta"),
    ({"prior": "beta"}, ParameterError, "expected a normal prior for normal rewards"),
    ({"sigma": 1.0, "bernoulli": True}, ParameterError, "Bernoulli rewards have no sigma"),
    ({"particles": 0}, ParameterError, "particles: expected a whole number"),
    ({"pool": True}, ParameterError, "pool: expected two demonstrations of one instance or more"),
    ({"best_mean": 1.0, "anchor": {"A": 1.0}}, ParameterError, "best_mean or anchor, not both"),
    ({"rule": "uniform"}, NotIdentifiable, "its choices do not depend on rewards"),
]


@pytest.mark.parametrize(("options", "kind", "text"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_cannot_be_is_refused(log, options, kind, text):
    given = {"rule": RULE, "sigma": 0.5} | options
    if "bernoulli" in options:
        given["sigma"] = 1.0
    with pytest.raises(kind, match=text):
        ub.posterior(log, **given)


def test_records_that_say_too_little():
    with pytest.raises(NotIdentifiable, match="2 rounds for 3 arms"):
        ub.posterior(ub.ActionLog.from_actions("AB", arms="ABC"), "ucb", sigma=1.0)
    with pytest.raises(NotIdentifiable, match="without their order"):
        ub.posterior(ub.ActionLog.from_counts({"A": 5, "B": 2}), "ucb", sigma=1.0)
    several = RULE.demonstrate(INSTANCE, 30, runs=2)
    with pytest.raises(ParameterError, match="the log has 2 demonstrations"):
        ub.posterior(several, RULE, sigma=0.5)
    odd = ub.ActionLog.from_actions([[0, 1, 0]], rewards=[[0.5, None, None]])
    with pytest.raises(LogError, match=r"expected rewards of 0 and 1 .* got 0[.]5 in round 1[.] Correct it, or leave"):
        ub.posterior(odd, "klucb")
    typo = ub.ActionLog.from_actions([[0, 1, 0], [1, 0, 1]], rewards=[[0, 1, None], [1, 7, 9]])
    with pytest.raises(LogError, match='got 7 in round 2 of demonstration "2", the first of 2 others'):
        ub.posterior(typo, "thompson:noise=bernoulli", bernoulli=True, pool=True)


def test_priors_are_read_as_written():
    for prior in (ub.NormalPrior(1, 2), ub.BetaPrior(3, 0.5)):
        assert parse_prior(str(prior)) == prior
    with pytest.raises(ParameterError, match=r"^prior: mean: expected a finite number; got 'x'"):
        parse_prior("normal:mean=x")
    assert usual_prior(ub.Bernoulli(), 0.3) == ub.BetaPrior()
    assert usual_prior(ub.Gaussian(3.0), 7.0) == ub.NormalPrior(7.0, 6.0)


def test_a_longer_record_has_fewer_particles():
    assert [particles_for(steps) for steps in (500, 5_000, 10**6)] == [3000, 300, 250]


def test_clouds_that_differ_have_a_large_error():
    value, error = log_mean(np.array([-100.0, -10.0]))
    assert value == pytest.approx(-10 - np.log(2))
    assert error > 10


def test_estimates_by_the_posterior(log):
    answer = ub.estimate(log, RULE, sigma=0.5, particles=300, seed=1)
    assert (answer.method, answer.seed, answer.best) == ("posterior", 1, ("A",))
    assert answer["A"].verdict == "best"
    assert answer["A"].gap == 0
    assert answer["A"].gap_low is None
    assert answer["C"].gap_low < 1.0 < answer["C"].gap_high
    assert {"prior", "evidence", "level-from-prior"} <= {notice.code for notice in answer.notes}
    both = ub.estimate(RULE.demonstrate(INSTANCE, 100, runs=2, seed=1), RULE, sigma=0.5, particles=100, pool=True)
    assert both.demonstrations == ("1, 2",)
    with pytest.raises(ParameterError, match="prior: expected only with method"):
        ub.estimate(log, "ucb", sigma=0.5, prior="normal")
    with pytest.raises(NotIdentifiable, match="it judged best"):
        ub.estimate(ub.ExploreThenCommit(explore=3).demonstrate(INSTANCE, 60), "explore-then-commit:explore=3",
                    sigma=0.5, method="posterior", particles=100)  # fmt: skip


def test_a_bootstrap_of_the_posterior(log):
    short = ub.ActionLog.from_codes(np.ascontiguousarray(log.actions[:60]), log.arms)
    answer = ub.estimate(short, RULE, sigma=0.5, method="bootstrap", resamples=100, particles=50, anchor={"A": 1.0})
    assert answer.method == "bootstrap"
    assert answer["C"].gap_low < answer["C"].gap_high
    assert any(notice.code == "bootstrap" for notice in answer.notes)


def test_a_record_may_be_the_beginning_of_a_longer_run(log):
    short = ub.ActionLog.from_codes(np.ascontiguousarray(log.actions[:60]), log.arms)
    assert ub.posterior(short, RULE, sigma=0.5, horizon=300, particles=50).horizon == 300


def test_clouds_that_too_few_particles_explain_are_sent_again_with_more(monkeypatch):
    rule = ub.KLUCB()
    log = rule.demonstrate(ub.Instance([0.7, 0.6, 0.3], ub.Bernoulli()), 200, seed=0)
    monkeypatch.setattr(clouds, "particles_for", lambda *steps: 4)
    asked = {"bernoulli": True, "check": False, "seed": 1}
    with pytest.raises(InferenceError, match="16 particles"):
        ub.posterior(log, rule, particles=16, **asked)
    assert ub.posterior(log, rule, **asked).particles == 64
    with pytest.raises(InferenceError, match="the rule pulls every arm once first"):
        ub.posterior(ub.ActionLog.from_actions([[0, 0, 1, 2, 1]]), rule, **asked)
