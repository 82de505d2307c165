"""Posteriors of randomised rules of which rounds are hidden: held against counting every way to complete a log."""

import itertools

import numpy as np
import pytest
from reference_hidden import PlainFilter
from reference_posterior import exact_posterior

import unbandit as ub
from unbandit.demonstrators import parse_rule
from unbandit.errors import InferenceError, NotIdentifiable, ParameterError
from unbandit.inference import infer
from unbandit.inference.clouds import LookAhead
from unbandit.inference.filter import new_cloud
from unbandit.inference.hidden import HiddenRun, default_particles, infer_hidden
from unbandit.inference.prior import belief_of
from unbandit.kernels.smc.cloud import NONE
from unbandit.kernels.smc.hidden import filter_hidden
from unbandit.log.partial import PartialLog, ThinnedLog

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")

PRIOR, BERNOULLI = ub.BetaPrior(1.5, 1.0), ub.Bernoulli()
NORMAL, NOISE, INSTANCE = ub.NormalPrior(0.0, 1.0), ub.Gaussian(0.5), ub.Instance([0.2, 1.0, 0.6], 0.5)


def thinned_log(rule, horizon, hidden, seed=3, kept=0.8, numbered=True, instance=INSTANCE):
    """Return a log without the rounds `hidden`, from 1, and all its actions."""
    whole = rule.demonstrate(instance, horizon, seed=seed).demonstration(0)
    seen = np.setdiff1d(np.arange(1, horizon + 1), hidden)
    rows = ub.ActionLog.from_codes(np.ascontiguousarray(whole[seen - 1]), instance.arms)
    return ThinnedLog(rows, kept, seen if numbered else None), whole.tolist()


@pytest.mark.parametrize(
    "text", ["thompson:sigma=0.5", "softmax:temperature=0.3", "learning-softmax:rate=0.4,temperature=0.4"]
)
def test_evidence_and_means_are_those_of_counting_every_completion(text):
    rule, hidden = parse_rule(text).for_arms(3), (2, 5)
    log, actions = thinned_log(rule, 7, hidden, instance=ub.Instance([0.7, 0.4, 0.6], BERNOULLI))
    evidences, means = [], []
    for arms in itertools.product(range(3), repeat=len(hidden)):
        completed = list(actions)
        for round, arm in zip(hidden, arms, strict=True):
            completed[round - 1] = arm
        if rule.initial and completed[:3] != [0, 1, 2]:
            continue  # the rule opens with these
        evidence, mean = exact_posterior(rule, [completed], 3, (1.5, 1.0), 7)
        evidences.append(np.exp(evidence))
        means.append(mean)
    total = float(np.sum(evidences))
    found = infer_hidden(log, 0, rule, PRIOR, BERNOULLI, 7, particles=20_000, seed=1)
    assert abs(found.log_evidence - np.log(total)) < 0.02 + 4 * found.log_evidence_error
    assert np.allclose(found.draws.mean(axis=0), np.average(means, axis=0, weights=evidences), atol=0.02)


TWINS = {
    # rule, rewards, hidden rounds, rounds before the log begins
    "thompson:sigma=0.5": (NOISE, (3, 4, 9, 15), 0),
    "softmax:temperature=0.3": (BERNOULLI, (4, 8, 9, 10), 0),
    "softmax:temperature=0.2,initial=2": (BERNOULLI, (), 9),
    "learning-softmax:rate=0.4,temperature=0.3": (BERNOULLI, (), 8),
    "epsilon-greedy:epsilon=0.2": (BERNOULLI, (5, 6, 14), 0),
    "epsilon-greedy:epsilon=0.2,initial=0": (NOISE, (12, 13), 7),
}


@pytest.mark.parametrize("text", TWINS)
def test_the_kernel_does_what_plain_python_does(text):
    noise, hidden, start = TWINS[text]
    rule, horizon, number = parse_rule(text).for_arms(3), 20, 40
    whole = rule.demonstrate(ub.Instance([0.2, 0.9, 0.6], noise), horizon, seed=3).demonstration(0).astype(np.int64)
    opening = rule.initial * 3
    arms = whole.copy()
    arms[[round - 1 for round in hidden]] = NONE
    arms[opening:start] = NONE
    arms[:opening] = np.arange(opening) % 3
    left = np.bincount(whole[opening:start], minlength=3)
    belief = belief_of(PRIOR if noise == BERNOULLI else NORMAL, 3, noise, None)
    cloud = new_cloud(belief, np.zeros((number, 3)), np.zeros(3), horizon, np.zeros(0, np.int64), 5, 2)
    memories, pulls = np.zeros((number, 3, rule.columns)), np.zeros((number, 3), np.int64)
    tries = 1 if rule.smooth else 2 if belief.bernoulli else 4
    parameters = rule.parameters(horizon)
    filter_hidden(
        parameters, arms, opening, np.tile(left, (number, 1)), cloud, memories, pulls, tries, False, False
    )  # fmt: skip
    twin = PlainFilter(rule, parameters, belief, cloud.rng, tries)
    particles, increments = twin.run(arms.tolist(), opening, left.tolist(), number)
    assert pulls.tolist() == [each.pulls.tolist() for each in particles]  # the same hidden arms
    np.testing.assert_allclose(memories, [each.memory for each in particles], rtol=0, atol=1e-9)
    np.testing.assert_allclose(cloud.log_weights, [each.log_weight for each in particles], rtol=0, atol=1e-9)
    np.testing.assert_allclose(cloud.increments, increments, rtol=0, atol=1e-9)
    assert (cloud.effective_size < number / 2).any() or not text.startswith("thompson")  # this one is resampled


@pytest.mark.parametrize("counts", [True, False])
@pytest.mark.parametrize("text", ["softmax:temperature=0.3", "epsilon-greedy:epsilon=0.3", "epsilon-greedy:initial=0"])
def test_a_start_in_mid_run_is_read_as_by_counting_every_way_to_it(text, counts):
    rule, start, instance = parse_rule(text).for_arms(3), 4, ub.Instance([0.7, 0.4, 0.6], BERNOULLI)
    whole = rule.demonstrate(instance, 7, seed=5).demonstration(0)
    before = np.bincount(whole[:start], minlength=3)
    evidences, means = [], []
    for arms in itertools.product(range(3), repeat=start):
        if counts and not np.array_equal(np.bincount(arms, minlength=3), before):
            continue
        if not rule.initial or arms[:3] == (0, 1, 2):
            evidence, mean = exact_posterior(rule, [[*arms, *whole[start:].tolist()]], 3, (1.5, 1.0), 7)
            evidences.append(np.exp(evidence))
            means.append(mean)
    rows = ub.ActionLog.from_codes(np.ascontiguousarray(whole[start:]), instance.arms)
    log = PartialLog(rows, before[None]) if counts else ThinnedLog(rows, None, np.arange(start + 1, 8))
    found = infer_hidden(log, 0, rule, PRIOR, BERNOULLI, 7, particles=20_000, seed=1)
    assert abs(found.log_evidence - np.log(np.sum(evidences))) < 0.02 + 4 * found.log_evidence_error
    assert np.allclose(found.draws.mean(axis=0), np.average(means, axis=0, weights=evidences), atol=0.02)


def test_a_start_in_mid_run_with_its_counts_in_estimate_and_posterior():
    rule = ub.Thompson(sigma=0.5)
    whole = rule.demonstrate(INSTANCE, 150, seed=2).demonstration(0)
    rows = ub.ActionLog.from_codes(np.ascontiguousarray(whole[30:]), INSTANCE.arms)
    before = dict(zip(INSTANCE.arms, np.bincount(whole[:30], minlength=3).tolist(), strict=True))
    given = {"sigma": 0.5, "prior": NORMAL, "particles": 300, "seed": 4, "starting_pulls": before}
    found = ub.estimate(rows, rule, check=True, **given)
    assert found.check.verdict == "fits"
    assert found.columns.pulls[0].tolist() == np.bincount(whole, minlength=3).tolist()
    same = ub.posterior(rows, rule, **given)
    assert same.means.tolist() == found.posteriors[0].means.tolist()
    whole_log = ub.posterior(ub.ActionLog.from_codes(whole, INSTANCE.arms), rule, sigma=0.5, prior=NORMAL, seed=4)
    gaps = [(each.draws - each.draws[:, [1]]).mean(axis=0) for each in (same, whole_log)]
    assert np.abs(gaps[0] - gaps[1]).max() < 0.3
    with pytest.raises(ParameterError, match="begins in mid-run"):
        ub.posterior(rows, rule, best_mean=1.0, **given)
    with pytest.raises(ParameterError, match="drawn for each demonstration by itself") as refusal:
        ub.posterior(rows, rule, pool=True, **given)
    assert refusal.value.parameter == "pool"
    numbered = PartialLog(rows, None, np.arange(31, 151))
    without = ub.estimate(numbered, rule, **{**given, "starting_pulls": None})
    said = next(each for each in without.notes if each.code == "begins-late")
    assert "starting_pulls" in said.message
    assert "missing-at-random" not in {each.code for each in without.warnings}


@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        ("exp3:mixing=0.1", {"bernoulli": True}, "divides rewards"),
        ("softmax:temperature=0.3,batch=5", {"sigma": 0.5}, "in batches"),
        ("softmax:temperature=0.3,delay=5", {"sigma": 0.5}, "with a delay"),
        ("ucb:alpha=0.25", {"sigma": 0.5, "method": "posterior"}, "deterministic rule"),
        ("softmax:temperature=fit", {"sigma": 0.5}, "are hidden"),
        ("softmax:temperature=0.3,opening=random", {"sigma": 0.5}, "nothing shows which arms they opened"),
    ],
)
def test_what_of_a_start_in_mid_run_cannot_be_read_is_refused(text, options, why):
    rows = ub.ActionLog.from_actions([0, 1, 2] * 5 + [1] * 25)
    with pytest.raises(NotIdentifiable, match=why):
        ub.estimate(rows, text, starting_pulls={"0": 5, "1": 9, "2": 6}, **options)


def test_rewards_that_are_known_after_a_start_in_mid_run_are_refused():
    text = "arm,reward\n0,0.5\n" + "1,\n2,\n0,\n" * 10
    rows = ub.ActionLog.from_bytes(text.encode())
    with pytest.raises(NotIdentifiable, match="some rewards are known"):
        ub.estimate(rows, "softmax:temperature=0.3", sigma=0.5, starting_pulls={"0": 5, "1": 9, "2": 6})


def test_a_start_of_which_most_is_hidden_is_refused():
    rows = ub.ActionLog.from_actions([0, 1, 2] * 5 + [1] * 25)
    with pytest.raises(NotIdentifiable, match=r"40 of 100 rounds .* at least 50%"):
        ub.posterior(rows, "softmax:temperature=0.3", sigma=0.5, starting_pulls={"0": 20, "1": 20, "2": 20})


def test_clouds_that_do_not_agree_get_more_particles(monkeypatch):
    rule = ub.Softmax(temperature=0.3)
    log, _ = thinned_log(rule, 60, [7, 20, 21])
    given = (log, 0, rule, NORMAL, NOISE, 60)
    usual = infer_hidden(*given, seed=1).particles
    monkeypatch.setattr("unbandit.inference.hidden.UNSETTLED", 0.0)
    assert infer_hidden(*given, seed=1).particles == 4 * usual
    assert infer_hidden(*given, seed=1, particles=50).particles == 50  # a number that was asked for stays


def test_counts_that_the_opening_contradicts_are_refused():
    rows = ub.ActionLog.from_actions([0, 1, 2] * 5 + [1] * 25)
    with pytest.raises(InferenceError, match=r'of arm "2" only 1 came before'):
        ub.posterior(rows, "softmax:initial=2,temperature=0.3", sigma=0.5, starting_pulls={"0": 5, "1": 9, "2": 1})


def test_without_a_hidden_round_it_is_the_posterior_of_the_whole_log():
    rule = ub.Thompson(sigma=0.5)
    log, _ = thinned_log(rule, 80, [])
    whole = infer(log.rows, rule, NORMAL, NOISE, [80], particles=2_000, seed=2, look_ahead=LookAhead())
    found = infer_hidden(log, 0, rule.for_arms(3), NORMAL, NOISE, 80, particles=2_000, seed=2)
    assert abs(found.log_evidence - whole.log_evidence) < 0.1 + 4 * found.log_evidence_error
    deviation = whole.draws.std(axis=0)
    assert (np.abs(found.draws.mean(axis=0) - whole.draws.mean(axis=0)) < 0.25 * deviation).all()


def test_hidden_rounds_make_less_certain():
    rule, hidden = ub.Thompson(sigma=0.5), np.arange(10, 100, 3)
    log, _ = thinned_log(rule, 120, hidden)
    found = ub.estimate(log, rule, sigma=0.5, prior=NORMAL, seed=1, check=False)
    whole = infer_hidden(thinned_log(rule, 120, [])[0], 0, rule.for_arms(3), NORMAL, NOISE, 120, seed=1)
    lengths = np.diff(np.quantile(found.posteriors[0].gaps.reshape(-1, 3), [0.025, 0.975], axis=0), axis=0)
    assert lengths.sum() > np.diff(whole.interval(gaps=True), axis=0).sum()
    again = ub.estimate(log, rule, sigma=0.5, prior=NORMAL, seed=1, check=False)
    assert np.array_equal(found.columns.gap, again.columns.gap)  # the same seed gives the same answer


def test_rounds_without_numbers_are_placed_anew_in_every_cloud_and_fit_the_opening():
    rule = parse_rule("softmax:temperature=0.3,initial=2").for_arms(3)
    log, _ = thinned_log(rule, 60, [2, 5, 9, 31, 40], numbered=False, kept=0.9)
    run = HiddenRun(log, 0, rule, belief_of(NORMAL, 3, NOISE, None), 60, 10, 1)
    first, second = run.arms_of(0), run.arms_of(1)
    assert not np.array_equal(first, second)
    for arms in (first, second):
        assert arms[:6].tolist() == [0, 1, 2, 0, 1, 2]
        assert np.sum(arms[6:] == -1) > 0
    other = ub.ActionLog.from_actions([1, 1, 1, 1, 0, 2] + [0] * 30)
    wrong = HiddenRun(ThinnedLog(other, 0.99), 0, rule, run.belief, 60, 10, 1)
    with pytest.raises(InferenceError, match="opens with"):
        wrong.arms_of(0)
    numbered = HiddenRun(ThinnedLog(other, 0.9, np.arange(1, 37)), 0, rule, run.belief, 60, 10, 1)
    with pytest.raises(InferenceError, match="opens with arm"):
        numbered.arms_of(0)


def test_holes_that_nobody_explains_are_warned_of():
    log, _ = thinned_log(ub.Thompson(sigma=0.5), 60, [7, 20, 21], kept=None)
    found = ub.estimate(log, ub.Thompson(sigma=0.5), sigma=0.5, particles=200, check=False)
    assert "missing-at-random" in {each.code for each in found.warnings}
    said = next(each for each in found.notes if each.code == "missing-rounds")
    assert "bracket" not in said.message


@pytest.mark.parametrize(
    ("text", "method", "kept", "why"),
    [
        ("thompson:sigma=0.5", "posterior", 0.05, "at least 10% of all rounds"),
        ("exp3:mixing=0.1", None, 0.8, "divides rewards"),
        ("ucb:alpha=0.25", "posterior", 0.8, "deterministic rule.*`estimate` reads it"),
        ("sw-ucb:window=20", "posterior", 0.8, "deterministic rule.*Give the whole run"),
        ("sw-ucb:window=20", None, 0.8, "misses rounds"),
        ("ucb:delay=5", "posterior", 0.8, "deterministic rule.*Give the whole run"),
        ("uniform", None, 0.8, "do not depend on rewards"),
        ("thompson:sigma=0.5,initial=1,opening=random", None, 0.8, "opening=random"),
    ],
)
def test_what_it_cannot_read_is_refused(text, method, kept, why):
    rule, rows = parse_rule(text), ub.ActionLog.from_actions([0, 1, 2] * 5 + [1] * 25)
    noise = {"bernoulli": True} if rule.bernoulli_only else {"sigma": 0.5}
    with pytest.raises(NotIdentifiable, match=why):
        ub.estimate(rows, rule, method=method, kept=kept, **noise)


def test_a_known_best_mean_is_refused():
    rows = ub.ActionLog.from_actions([0, 1, 2] * 5 + [1] * 25)
    with pytest.raises(ParameterError, match="misses rounds"):
        ub.estimate(rows, ub.Thompson(sigma=0.5), sigma=0.5, best_mean=1.0, kept=0.8)


def test_posterior_takes_what_was_kept():
    rule = ub.Thompson(sigma=0.5)
    log, _ = thinned_log(rule, 60, [2, 5, 9, 31, 40], numbered=False, kept=0.9)
    given = {"sigma": 0.5, "particles": 60, "seed": 4}
    found = ub.posterior(log.rows, rule, kept=0.9, clouds=2, draws=50, **given)
    assert found.means.shape == (2, 50, 3)
    assert found.pulls.tolist() == log.pulls[0].tolist()
    same = ub.estimate(log.rows, rule, kept=0.9, **given).posteriors[0]
    assert ub.posterior(log.rows, rule, kept=0.9, **given).means.tolist() == same.means.tolist()
    with pytest.raises(NotIdentifiable, match="deterministic rule"):
        ub.posterior(log.rows, "ucb", kept=0.9, sigma=0.5)
    with pytest.raises(NotIdentifiable, match="rounds are missing"):
        ub.posterior(log.rows, "thompson:sigma=fit", kept=0.9, sigma=0.5)


def test_a_horizon_beyond_the_log_changes_nothing_of_a_rule_without_one():
    rule = ub.Thompson(sigma=0.5)
    log, _ = thinned_log(rule, 60, [2, 5, 9, 31, 40], numbered=False, kept=0.9)
    given = {"sigma": 0.5, "kept": 0.9, "particles": 60, "clouds": 2, "draws": 50}
    near, far = (ub.posterior(log.rows, rule, horizon=horizon, **given).means for horizon in (None, 3_000))
    assert near.tolist() == far.tolist()


@pytest.mark.parametrize(("initial", "arms"), [(1, 20), (2, 8)])
def test_rows_are_placed_where_the_opening_lets_them(initial, arms):
    rule = ub.Softmax(temperature=0.3, initial=initial)
    instance = ub.Instance(np.linspace(1, 0, arms), 0.5)
    for seed in range(5):
        whole = rule.demonstrate(instance, 80, seed=seed).demonstration(0)
        rows = whole[np.random.default_rng(seed).random(80) < 0.8]
        log = ThinnedLog(ub.ActionLog.from_codes(np.ascontiguousarray(rows), instance.arms), 0.8)
        run = HiddenRun(log, 0, rule, belief_of(NORMAL, arms, NOISE, None), 80, 10, seed)
        places = run.rounds(0)
        assert (np.diff(places) > 0).all()
        early = places < initial * arms
        assert (rows[early] == places[early] % arms).all()


def test_openings_are_drawn_as_by_trying_all_places():
    rule, kept, arms = ub.Softmax(temperature=0.3, initial=2), 0.6, 2
    rows = ub.ActionLog.from_codes(np.array([0, 1, 0, 1, 1], np.uint8), ("A", "B"))
    run = HiddenRun(ThinnedLog(rows, kept), 0, rule, belief_of(NORMAL, arms, NOISE, None), 50, 10, 1)
    found = np.array([np.sum(run.rounds(cloud) < 4) for cloud in range(2_000)])
    generator, tried = np.random.default_rng(1), []
    while len(tried) < 2_000:
        places = np.cumsum(generator.geometric(kept, 5)) - 1
        early = places < 4
        if np.array_equal(np.array([0, 1, 0, 1, 1])[early], places[early] % 2):
            tried.append(early.sum())
    shares = [np.bincount(each, minlength=5) / 2_000 for each in (found, tried)]
    np.testing.assert_allclose(*shares, atol=0.05)


def test_rows_that_are_scanned_are_refused(tmp_path):
    log, _ = thinned_log(ub.Thompson(sigma=0.5), 60, [7, 20, 21], numbered=False)
    log.rows.to_frame().select("arm").write_csv(tmp_path / "log.csv")
    with pytest.raises(ParameterError, match="expected a log in memory"):
        ub.posterior(ub.ActionLog.scan(tmp_path / "log.csv"), ub.Thompson(sigma=0.5), kept=0.9)


def test_of_several_demonstrations_with_missing_rounds_one_is_read():
    rule = parse_rule("softmax:temperature=0.3")
    runs = rule.demonstrate(INSTANCE, 40, runs=2, seed=1)
    seen = np.setdiff1d(np.arange(1, 41), (7, 21, 30))
    rows = [np.ascontiguousarray(runs.demonstration(which)[seen - 1]) for which in range(2)]
    both = ThinnedLog(ub.ActionLog.from_codes(np.stack(rows), INSTANCE.arms), None, np.tile(seen, 2))
    alone = ThinnedLog(ub.ActionLog.from_codes(rows[1], INSTANCE.arms), None, seen)
    options = {"sigma": 0.5, "particles": 100, "check": False}
    chosen = ub.posterior(both, rule, demonstration=both.demonstrations[1], **options)
    assert chosen.means.tolist() == ub.posterior(alone, rule, **options).means.tolist()


def test_beta_draws_have_few_particles_so_that_an_answer_takes_minutes_and_not_hours():
    normal, beta = ub.Thompson(sigma=0.5), ub.Thompson(noise="bernoulli")
    assert default_particles(normal, 1_500, begun=True) == 4 * default_particles(normal, 1_500, begun=False)
    assert default_particles(beta, 1_500, begun=True) == 400
    assert default_particles(beta, 50_000, begun=True) == 100
