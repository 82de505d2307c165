"""The same record with one of the rule's numbers changed."""

from __future__ import annotations

import re
import warnings
from dataclasses import replace

import polars as pl
import pytest

from unbandit import (
    SAE,
    UCB,
    ActionLog,
    Bernoulli,
    Instance,
    LearningSoftmax,
    ParameterError,
    Softmax,
    estimate,
    parse_rule,
    sensitivity,
)
from unbandit.demonstrators import IndexRule
from unbandit.demonstrators.base import known_rules
from unbandit.estimators.variants import sensitivity_rows
from unbandit.fit import FittedNumber

LOG = ActionLog.from_actions(list("AB" + "A" * 8 + "BBB" + "A"))


@pytest.mark.parametrize("rule", [UCB(alpha=0.25, scale=1.0), SAE(alpha=0.25, scale=1.0)], ids=lambda rule: rule.name)
def test_each_is_the_estimate_with_the_rule_changed(rule):
    log = LOG if rule.name == "ucb" else ActionLog.from_actions(list("ABABAA"))
    found = sensitivity(log, rule, sigma=1.0, best_mean=1.0)
    changes = {"alpha=0.2": {"alpha": 0.2}, "alpha=0.3": {"alpha": 0.3}, "scale=0.8": {"scale": 0.8}}
    changes |= {"scale=1.2": {"scale": 1.2}}
    assert list(found) == list(changes)
    for label, change in changes.items():
        changed = type(rule)(**({"alpha": 0.25, "scale": 1.0} | change))
        assert found[label]["B"].gap == pytest.approx(estimate(log, changed, sigma=1.0)["B"].gap)


def test_cells_of_the_table_have_as_many_decimals():
    answer = estimate(LOG, UCB(alpha=0.25, scale=1.0), sigma=1.0)
    headings, rows = sensitivity_rows(answer, sensitivity(LOG, UCB(alpha=0.25, scale=1.0), sigma=1.0))
    assert headings == ["arm", "gap", "alpha=0.2", "alpha=0.3", "scale=0.8", "scale=1.2"]
    numbers = re.findall(r"\d+\.?\d*", " ".join(cell for row in rows for cell in row[1:]))
    assert len(numbers) == 5 + 5 * 3
    assert len({len(each.partition(".")[2]) for each in numbers}) == 1


def test_the_scale_multiplies_the_gaps_and_leaves_the_intervals_as_long():
    given = {"sigma": 1.0, "method": "switching"}
    usual, found = estimate(LOG, "ucb:scale=1", **given)["B"], sensitivity(LOG, "ucb:scale=1", **given)
    for label, share in (("scale=0.8", 0.8), ("scale=1.2", 1.2)):
        row = found[label]["B"]
        assert row.gap == pytest.approx(share * usual.gap)
        assert row.gap - row.gap_low == pytest.approx(usual.gap - usual.gap_low)


def test_where_the_rule_has_a_sigma_it_is_varied_and_the_noise_is_not():
    found = sensitivity(LOG, "ucb:sigma=0.2")
    assert list(found) == ["alpha=0.2", "alpha=0.3", "sigma=0.16", "sigma=0.24"]
    assert {answer.sigma for answer in found.values()} == {0.2}


def test_it_does_not_say_the_warnings_again():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = sensitivity(LOG, "ucb")
    assert all(answer.warnings[0].code == "sigma-assumed" for answer in found.values())


def test_alpha_stays_below_1():
    assert "alpha=0.999" in sensitivity(LOG, "ucb:alpha=0.9", sigma=1.0)


def test_bernoulli_stays_bernoulli():
    assert {answer.sigma for answer in sensitivity(LOG, "ucb:sigma=0.2", bernoulli=True).values()} == {None}


def test_a_sigma_of_0_is_refused_here_too():
    with pytest.raises(ParameterError, match="sigma: expected a positive number"):
        sensitivity(LOG, "ucb:sigma=0.2", sigma=0.0)


VARIED = {
    "ucb1": ["exploration=1", "exploration=4"],
    "moss": ["scale=0.5", "scale=2"],
    "ucb-tuned": ["exploration=0.5", "exploration=2"],
    "even-dar:sigma=0.4": ["sigma=0.2", "sigma=0.8"],
    "klucb:noise=gaussian": ["sigma=0.25", "sigma=1"],
    "sliding-window-ucb:window=9": ["exploration=0.25", "exploration=1", "window=4", "window=18"],
}


@pytest.mark.parametrize("rule", VARIED)
def test_other_numbers_are_halved_and_doubled(rule):
    given = {"bernoulli": True} if rule == "ucb-tuned" else {"sigma": 1.0}
    given |= {"best_mean": 0.9} if rule == "ucb-tuned" else {}
    found = sensitivity(LOG, rule, **given)
    assert list(found) == VARIED[rule]
    assert {answer.sigma for answer in found.values()} == {given.get("sigma")}
    number, value = VARIED[rule][0].split("=")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = estimate(LOG, parse_rule(rule).model_copy(update={number: float(value)}), **given, check=False)
    assert found[VARIED[rule][0]]["B"].gap == alone["B"].gap


def test_a_number_stays_within_its_limits():
    log = LearningSoftmax(rate=0.8).demonstrate(Instance([0.7, 0.4], Bernoulli()), 40, seed=1)
    given = {"bernoulli": True, "particles": 50}
    found = sensitivity(log, "q-learning:rate=0.8,temperature=0.2", **given)
    assert list(found) == ["rate=0.4", "rate=1", "temperature=0.1", "temperature=0.4"]


def test_a_sigma_that_nobody_gave_is_not_varied_alone():
    with pytest.raises(ParameterError, match="sigma is the number of klucb that can be off, and it is not given"):
        sensitivity(LOG, "klucb:noise=gaussian")


def test_fitted_numbers_take_the_ends_of_their_interval():
    fitted = FittedNumber("exploration", 2.0, 1.5, 3.0, "evidence")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = replace(estimate(LOG, "ucb1:exploration=2", sigma=1.0, check=False), fitted=(fitted,))
    found = sensitivity(LOG, "ucb1:exploration=fit", answer=answer, sigma=1.0)
    assert list(found) == ["exploration=1.5", "exploration=3"]
    together = replace(answer, fitted=(replace(fitted, parameter="scale sqrt(ln T)"),))
    with pytest.raises(ParameterError, match="shows several numbers only together"):
        sensitivity(LOG, "ucb1:exploration=fit", answer=together, sigma=1.0)


def test_a_rule_without_a_number_is_refused():
    with pytest.raises(ParameterError, match=r"klucb.* has no number that could be off"):
        sensitivity(LOG, "klucb", best_mean=0.9)


def test_a_rule_of_ones_own_without_numbers_is_refused():
    class Plain(IndexRule):
        """Pull something."""

        name = "plain"

    try:
        with pytest.raises(ParameterError, match="has no number that could be off"):
            sensitivity(LOG, Plain(), sigma=1.0)
    finally:
        del known_rules["plain"]


def test_variants_of_drawn_means_are_compared_in_gaps():
    log = Softmax(temperature=0.2).demonstrate(Instance([1.0, 0.5, 0.0], 0.5), 200, seed=1)
    found = sensitivity(log, "softmax:temperature=0.2", sigma=0.5, particles=100, check=False)
    assert found.quantity == "gap"  # the level of the means is the prior's
    table, best = found.summary(), found.answer.best[0]
    assert table.row(by_predicate=pl.col("arm") == best)[1] == 0
    assert table[table.columns[1]].to_list() == sorted(table[table.columns[1]].to_list())
