"""The report of a population: names of arms, and values in a unit."""

from __future__ import annotations

import re
import warnings
from functools import cache

import pytest

import unbandit as ub
from unbandit.errors import ParameterError
from unbandit.reporting import population_report

RULE = "softmax:temperature=fit"


@cache
def people() -> ub.ActionLog:
    return ub.Softmax(temperature=0.3).demonstrate(ub.Instance([1.0, 0.2], 0.5, arms=["A", "B"]), 60, runs=3, seed=1)


def arms_of(page) -> list[list[str]]:
    table = page.main.partition('id="report-arms"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table)
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def report(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return population_report(people(), RULE, sigma=0.5, particles=100, check=False, **options)


def test_arms_have_names_and_their_values_a_unit():
    plain, page = report(), report(names={"A": "Slow <start>"}, unit="cycles=1208")
    (_, first, second), (headings, *rows) = arms_of(plain), arms_of(page)
    assert headings == ["arm", "best for a participant", "value (cycles)", "lowest to highest", "pulls"]
    assert {row[0] for row in rows} == {"Slow &lt;start&gt;", "B"}
    mean = page.answer.arm_summary["mean"].to_list()
    assert [float(row[2].replace(",", "").replace("−", "-")) for row in rows] == pytest.approx(
        [1208 * value for value in mean], abs=0.51
    )
    assert [float(row[2].replace("−", "-")) for row in (first, second)] == pytest.approx(mean, abs=0.051)
    assert 'arm "Slow <start>" is the best' in page.sentence
    assert "sigma 0.5 (604 cycles)" in page.main
    assert "Values of arms are in cycles: those of the rule&#39;s rewards times 1,208." in page.main
    assert "names={" in page.main
    assert "unit=&#39;cycles=1208&#39;" in page.main

    def population(page):
        return page.main.partition('id="report-population"')[2].partition("</table>")[0]

    assert population(page) == population(plain)


def test_a_population_with_known_rewards_does_not_call_them_hidden():
    assert "No rewards were used." in report().main
    assert "The log does not contain it" in report().main
    log = people()
    rewards = [*[0.5] * (log.actions.size - 1), None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for known, said in ((rewards, "179 of the 180 rewards are known"), ([0.5] * 180, "All rewards are known")):
            each = ub.ActionLog.from_codes(log.actions.reshape(3, 60), log.arms, rewards=known)
            page = population_report(each, RULE, sigma=0.5, particles=100, check=False)
            assert f"{said}, and were used." in page.main
            assert "does not contain it" not in page.main


def test_numbers_of_a_parameter_have_the_same_decimals():
    page = report()
    value, ends = re.search(r"is ([\d.]+) \(95% interval ([\d.]+ to [\d.]+)\)", page.sentence).groups()
    assert len({len(number.partition(".")[2]) for number in (value, *ends.split(" to "))}) == 1
    assert all(f'<td class="amount wraps">{number}</td>' in page.main for number in (value, ends))
    assert page.main.count("Table of participants: ") == 1  # a table for each parameter


def test_names_and_units_that_are_none_are_refused():
    for wrong in ({"names": {"Z": "none"}}, {"names": {"A": "B"}}, {"unit": "cycles"}):
        with pytest.raises(ParameterError):
            report(**wrong)
