"""Which rule is meant where it is said what rewards are, and nothing of what the rule believes."""

import pytest

import unbandit as ub
from unbandit.demonstrators import parse_rule
from unbandit.estimators.arguments import guessed_numbers, meant_rule, reward_noise


def test_a_sampler_of_which_nothing_is_said_counts_successes():
    found, notices = meant_rule(parse_rule("thompson:batch=5"), True)
    assert found == ub.Thompson(noise="bernoulli", batch=5)
    assert [notice.code for notice in notices] == ["beta-priors"]


@pytest.mark.parametrize("text", ["thompson:noise=gaussian", "thompson:sigma=0.5", "thompson:noise=bernoulli", "ucb1"])
def test_what_was_said_stays(text):
    assert meant_rule(parse_rule(text), True) == (parse_rule(text), [])


def test_normal_rewards_change_nothing():
    assert meant_rule(ub.Thompson(), False) == (ub.Thompson(), [])


@pytest.mark.parametrize("name", ["thompson", "top-two-thompson"])
def test_a_sampler_knows_the_noise_that_is_said_of_the_rewards(name):
    found, notices = meant_rule(parse_rule(f"{name}:batch=5"), False, 0.2)
    assert found == parse_rule(f"{name}:batch=5,sigma=0.2")
    assert [notice.code for notice in notices] == ["sigma-shared"]
    own = parse_rule(f"{name}:sigma=1")
    assert meant_rule(own, False, 0.2) == (own, [])


@pytest.mark.parametrize("text", ["ucb1", "klucb:noise=gaussian", "ucb"])
def test_a_rule_with_a_width_of_its_own_keeps_it(text):
    assert meant_rule(parse_rule(text), False, 0.2) == (parse_rule(text), [])


def test_a_noise_that_nobody_gave_is_assumed_aloud():
    log = ub.Thompson(sigma=0.5).demonstrate(ub.Instance([0.7, 0.4], 0.5), 60, seed=1)
    with pytest.warns(ub.AssumptionWarning, match="sigma = 1"):
        ub.estimate(log, "thompson", particles=50)
    with pytest.warns(ub.AssumptionWarning, match="sigma = 1"):
        found = ub.posterior(log, "thompson", particles=50, clouds=1)
    assert "sigma-assumed" in [notice.code for notice in found.warnings]
    with pytest.raises(ub.ParameterError, match="sigma: expected a positive number"):
        ub.posterior(log, "thompson", sigma=-1.0)


def test_answers_say_so():
    log = ub.Thompson(noise="bernoulli").demonstrate(ub.Instance([0.7, 0.4], ub.Bernoulli()), 60, seed=1)
    found = ub.estimate(log, "thompson", bernoulli=True, particles=50)
    assert "noise=bernoulli" in found.rule
    assert "beta-priors" in [notice.code for notice in found.notes]
    found = ub.posterior(log, "thompson", bernoulli=True, particles=50, clouds=1)
    assert "noise=bernoulli" in found.rule
    assert ub.Posterior.from_json(found.to_json()).to_json() == found.to_json()  # the error of one cloud is not known


NORMAL, YES_OR_NO = ub.Gaussian(0.5), ub.Bernoulli()

GUESSED = {
    "q-learning": (
        YES_OR_NO,
        "No rate or temperature was given, so the defaults",
        'rule="learning-softmax:fit"',
    ),
    "q-learning:rate=0.3": (
        YES_OR_NO,
        "No temperature was given, so the default 0.2",
        'rule="learning-softmax:rate=0.3,fit"',
    ),
    "softmax": (NORMAL, "No temperature was given, so the default 0.1 was", 'rule="softmax:fit"'),
    "epsilon-greedy": (NORMAL, "No epsilon was given, so the default 0.1 was", 'rule="epsilon-greedy:fit"'),
    "exp3": (YES_OR_NO, "No mixing was given, so the default 0.1 was", 'rule="exp3:fit"'),
    "top-two": (NORMAL, "No sigma was given, so the default 1 was", 'rule="top-two-thompson:sigma=VALUE"'),
    "klucb:noise=gaussian": (
        ub.Gaussian(2.0),
        "No sigma was given, so the default 0.5",
        'rule="klucb:noise=gaussian,fit"',
    ),
    "even-dar": (
        ub.Gaussian(2.0),
        "No sigma was given, so the default 0.5",
        'rule="successive-elimination:sigma=VALUE"',
    ),
}


@pytest.mark.parametrize("text", GUESSED)
def test_a_number_that_nobody_gave_is_a_warning_with_the_way_to_fit_it(text):
    noise, numbers, remedy = GUESSED[text]
    (notice,) = guessed_numbers(parse_rule(text), noise, can_fit=True)
    assert notice.code == "default-taken"
    assert notice.message.startswith(numbers)
    assert remedy in notice.message
    (notice,) = guessed_numbers(parse_rule(text), noise, can_fit=False)
    assert "fit" not in notice.message.lower()
    assert "=VALUE" in notice.message


@pytest.mark.parametrize(
    ("text", "fits"), [("klucb:noise=gaussian,delay=20", False), ("softmax:delay=20", True), ("softmax:batch=5", True)]
)
def test_fitting_is_advised_only_where_it_is_not_refused(text, fits):
    rule = parse_rule(text)
    (notice,) = guessed_numbers(rule, ub.Gaussian(2.0), can_fit=True)
    assert ("from the log" in notice.message) == fits
    assert ("=VALUE" in notice.message) != fits
    log = rule.demonstrate(ub.Instance([0.5, 0.0], 2.0), 40, seed=1)
    if not fits:
        with pytest.raises(ub.NotIdentifiable, match="its rewards are late"):
            ub.estimate(log, "klucb:noise=gaussian,delay=20,fit", sigma=2.0)


@pytest.mark.parametrize("text", ["ucb1", "ucb", "moss", "lilucb", "q-learning:rate=0.1,temperature=0.2", "klucb"])
def test_standard_numbers_and_given_ones_are_none(text):
    assert guessed_numbers(parse_rule(text), NORMAL, can_fit=True) == []


@pytest.mark.parametrize("text", ["even-dar", "klucb:noise=gaussian"])
def test_a_rule_that_believes_in_the_noise_there_is_needs_no_warning(text):
    assert guessed_numbers(parse_rule(text), NORMAL, can_fit=True) == []
    noise, (assumed,) = reward_noise(parse_rule(text), None, bernoulli=False)
    assert noise == NORMAL  # one sigma for rule and rewards
    assert "sigma = 0.5" in assumed.message


def test_an_answer_warns_and_one_with_all_numbers_does_not():
    log = ub.LearningSoftmax(rate=0.3).demonstrate(ub.Instance([0.7, 0.4], YES_OR_NO), 60, seed=1)
    with pytest.warns(ub.errors.AssumptionWarning, match=r"No rate or temperature was given"):
        found = ub.estimate(log, "q-learning", bernoulli=True, particles=50, check=False)
    assert [notice.code for notice in found.warnings] == ["default-taken"]
    given = ub.estimate(log, "q-learning:rate=0.1,temperature=0.2", bernoulli=True, particles=50, check=False)
    assert given.warnings == ()
    assert given["0"].mean == found["0"].mean
