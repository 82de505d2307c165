"""The report of a log whose rule nobody knows: what is possible, what is ruled out, and what is certain in any case."""

from __future__ import annotations

import re
from base64 import b64decode
from functools import cache

import made
import numpy as np
import pytest

import unbandit as ub
from unbandit.reporting import identification_report

CANDIDATES = "sae:alpha=0,ucb:alpha=0.25,uniform,phased:alpha=0.25"


def elimination_log(runs: int = 1) -> ub.ActionLog:
    return ub.SAE(alpha=0).demonstrate(ub.Instance([1.0, 0.0, 0.5], 0.5, arms=list("ABC")), 300, runs=runs, seed=1)


@cache
def settled():
    return identification_report(elimination_log(), CANDIDATES, sigma=0.5)


def test_it_says_which_rule_it_was_and_what_the_arms_were_worth():
    page = settled()
    assert page.answer.verdict == "identified"
    assert page.sentence.startswith(
        "The most probable rule is sae:alpha=0: probability above 0.999 if one of the candidates made this log. "
        "The log does not show"
    )
    outline = made.Outline(page.html)
    text = " ".join(outline.text)
    for heading in ("Which rules are possible", "Every arm, best first", "What is ruled out, and why"):
        assert heading in text
    assert "times less probable under it than under sae:alpha=0." in page.main.partition('id="report-ruled-out"')[2]
    assert "uniform" not in page.main.partition('id="report-candidates"')[2].partition("</table>")[0]
    assert page.main.count("<figure>") == 4
    assert "nats" not in text


def test_where_the_log_says_nothing_of_values_the_choices_are_left():
    log = ub.Uniform().demonstrate(ub.Instance([1.0, 0.0, 0.5], 0.5, arms=list("ABC")), 200, seed=1)
    page = identification_report(log, CANDIDATES, sigma=0.5)
    assert page.answer.winner == "uniform"
    assert "It shows nothing of what the arms were worth. What is certain are the choices: " in page.sentence
    assert "Every arm, best first" not in page.main
    assert "What is certain: the choices" in page.main
    assert page.main.count("<figure>") == 1


def test_where_no_candidate_is_possible_it_says_so_and_still_gives_the_choices():
    log = ub.ActionLog.from_actions("AABAAABACAABBA", arms=list("ABC"))
    page = identification_report(log, "sae:alpha=0,ucb:alpha=0.25", sigma=0.5)
    assert page.answer is None
    assert page.sentence.startswith("No rule that was tried can have made this log. What is certain are the choices: ")
    assert "None of 2 candidates can have made this log." in page.main
    assert "Which rules are possible" not in page.main


def test_where_no_candidate_fits_it_says_which_is_least_bad_and_what_the_log_shows():
    actions = "ABCD" + ("A" * 20 + "B" * 10 + "C" * 10 + "D" * 10) * 3
    page = identification_report(ub.ActionLog.from_actions(actions), "uniform,sae", sigma=0.5)
    section = page.main.partition('id="report-misfit"')[2].partition("</section>")[0]
    assert page.answer.verdict == "none fits"
    assert "uniform is the most probable of them (p &lt; 0.0001)." in section
    assert "<li>After the opening an arm stays for a multiple of 10 rounds." in section
    assert "Every arm, best first" not in page.main


def test_counts_without_order_show_no_rule():
    page = identification_report(ub.ActionLog.from_counts({"A": 9, "B": 3}), sigma=1.0)
    assert page.answer is None
    assert "only the order shows the rule" in page.main
    assert page.sentence.startswith("This log does not show which rule made it. ")
    assert "75%" in page.sentence


def test_every_one_of_several_demonstrations_has_a_table():
    page = identification_report(elimination_log(2), CANDIDATES, sigma=0.5)
    assert page.main.count('<h3 id="report-table-') == 2
    assert page.main.count('<table class="arms">') == 3


def test_a_report_says_whose_values_it_has(monkeypatch):
    monkeypatch.setattr("unbandit.reporting.identification.MOST_VALUED", 3)
    page = identification_report(elimination_log(4), "sae:alpha=0", sigma=0.5)
    assert "The first 3 of 4 demonstrations together" in page.main
    assert "The first 3 of 4 demonstrations: " in page.sentence


def test_one_table_has_the_demonstrations_together():
    page, alone = identification_report(elimination_log(6), "sae:alpha=0", sigma=0.5), settled()
    assert "All demonstrations together" in page.main
    assert "The tables of 1 more demonstration are left out here" in page.main
    assert re.search("In [0-6] of 6 demonstrations", page.sentence)
    short = identification_report(elimination_log(2), "sae:alpha=0", sigma=0.5, short=True)
    assert "All demonstrations together" in short.main
    assert short.main.count('<table class="arms">') == 1
    table = page.main.partition('id="report-together"')[2].partition("</table>")[0]
    rows = [re.sub(r"<[^>]*>", " ", row).split() for row in re.findall(r"<tr>(.*?)</tr>", table)]
    best = [np.argmax(page.answer.demonstration_values(at).probability_best) for at in range(6)]
    counted = {row[0]: int(row[1]) for row in rows[1:]}
    assert sum(counted.values()) == 6
    assert counted["A"] <= best.count(0)
    assert counted["A"] > 0
    assert "demonstrations together" not in alone.main


def test_names_and_a_short_page():
    page = identification_report(
        elimination_log(), CANDIDATES, sigma=0.5, names={"A": "<b>first</b>"}, short=True, title="Mine", author="Me"
    )
    assert page.title == "Mine"
    assert "&lt;b&gt;first&lt;/b&gt;" in page.main
    assert "<b>first" not in page.main
    assert "How to cite" not in page.main


def test_values_and_figures_are_in_a_unit():
    log = ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.0, 0.5], 0.5, arms=list("ABC")), 300, seed=1)
    plain, page = (identification_report(log, "ucb:alpha=0.25", sigma=0.5, unit=unit) for unit in (None, "cycles=1208"))
    worth, in_cycles = (re.search(r"worth ([0-9.,]+) (?:cycles )?less", each.sentence)[1] for each in (plain, page))
    assert float(in_cycles) == pytest.approx(1208 * float(worth), rel=0.005)
    assert f"worth {in_cycles} cycles less" in page.sentence
    assert '<th scope="col" class="amount">gap (cycles)</th>' in page.main
    gaps, in_table = (
        [float(cell.replace(",", "")) for cell in re.findall(r'amount">([0-9.,]+)</td>\n<td class="reach">', each.main)]
        for each in (plain, page)
    )
    assert in_table == pytest.approx([1208 * gap for gap in gaps], abs=1.2)
    assert max(in_table) > 100
    figures = [b64decode(code).decode() for code in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page.main)]
    assert sum("in cycles" in svg for svg in figures) == 4  # values and their densities, for a page and for a phone
    assert "a standard deviation of 0.5 (604 cycles)." in page.main
    assert "Values are in cycles: those of the rule&#39;s rewards times 1,208." in page.main
    assert "unit=&#39;cycles=1208&#39;" in page.main
    assert page.answer.to_dict() == plain.answer.to_dict()
    assert "compared." not in page.main  # one rule alone


def test_wrong_arguments_are_refused():
    with pytest.raises(ub.errors.ParameterError, match="level"):
        identification_report(elimination_log(), level=95)
    with pytest.raises(ub.errors.ParameterError, match="short"):
        identification_report(elimination_log(), short="no")
    with pytest.raises(ub.errors.ParameterError, match="unit"):
        identification_report(elimination_log(), unit="cycles")
