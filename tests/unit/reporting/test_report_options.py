"""What a report can be told: title, names, sensitivity, a short form; and that its headline and its tables agree."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from dataclasses import replace

import numpy as np
import pytest

import unbandit as ub
from unbandit.errors import ParameterError
from unbandit.estimators.posterior import posterior_row
from unbandit.reporting import figures
from unbandit.reporting.figures import FigureData
from unbandit.reporting.provenance import LogSource, without_folders
from unbandit.reporting.sentence import settled

LOG = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
CLOSE = list("AB" + "AB" * 20 + "A" * 3)
MANY = ub.ActionLog.from_actions([list("AB" + "AAAB" * 20 + "A" * 118), CLOSE, list("AB" + "ABBB" * 20 + "B" * 118)])
OPTIONS = {"sigma": 0.2, "check": False}


def posterior(chances: list[float]) -> ub.Posterior:
    """Make draws in which each arm is the best as often as said."""
    draws, arms = 1_000, len(chances)
    best = np.repeat(np.arange(arms), np.round(np.array(chances) * draws).astype(int))
    means = np.zeros((1, draws, arms))
    means[0, np.arange(draws), best] = 1.0
    return ub.Posterior(
        "ucb", ub.NormalPrior(), ub.Gaussian(1.0), 10, tuple("ABCDEF"[:arms]), np.ones(arms, np.int64), means, -1.0,
        0.1, np.array([-1.0]), 10.0, 20, lambda: np.zeros(10), np.empty(0, np.int64), np.empty((0, arms, 3)),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("chances", "verdict", "may_be_best"),
    [
        ([0.96, 0.04], "best", "A"),
        ([0.942, 0.058], "open", "AB"),
        ([0.857, 0.049, 0.048, 0.046], "open", "ABC"),
        ([0.4, 0.35, 0.25], "open", "ABC"),
    ],
)
def test_verdicts_of_posteriors_have_one_rule(chances: list[float], verdict: str, may_be_best: str) -> None:
    _, codes, candidates = posterior_row(posterior(chances), 0.95)
    assert ("best" if 0 in codes.tolist() else "open") == verdict
    assert "".join(arm for arm, one in zip("ABCDEF", candidates, strict=False) if one) == may_be_best


def test_headline_chips_and_shares_count_the_same() -> None:
    made = ub.report(MANY, "ucb", **OPTIONS)
    decided = int(settled(made.answer).sum())
    assert 0 < decided < 3
    assert f"{decided} best" in re.sub(r"<[^>]*>", "", made.html)
    assert f"{3 - decided} demonstration" in made.html
    assert sum(int(row[1]) for row in together(made)[1:]) == 3
    assert made.html.count("no clear best arm") == 3 - decided


def together(made: ub.Report) -> list[list[str]]:
    """Return the cells of the table of all demonstrations together, headings first."""
    table = made.main.partition('id="report-together"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.DOTALL)
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", row)] for row in rows]


def as_number(cell: str) -> float:
    return float(cell.replace(",", "").replace("−", "-"))


@pytest.mark.parametrize(("runs", "reach", "ends"), [(7, "lowest to highest", (0, 1)), (12, "quartiles", (0.25, 0.75))])
def test_one_table_has_every_arm_over_all_demonstrations(runs: int, reach: str, ends: tuple[float, float]) -> None:
    instance = ub.Instance([1.0, 0.7, 0.4, 0.0], noise=0.5, arms=list("ABCD"))
    log = ub.UCB(alpha=0.25).demonstrate(instance, 500, runs=runs, seed=1)
    made = ub.report(log, "ucb:alpha=0.25", **OPTIONS | {"sigma": 0.5}, unit="cycles=1208")
    headings, *rows = together(made)
    assert headings == ["arm", "best in", "share", "median gap (cycles)", reach, "estimated"]
    assert [row[0] for row in rows[:4]] == list("ABCD")
    assert rows[0][3:] == ["0", "the same", "0"]
    summary = {row["arm"]: row["median_gap"] for row in made.answer.summary().to_dicts()}
    for row in rows[1:4]:
        gaps = made.answer.gaps[:, "ABCD".index(row[0])]
        assert as_number(row[3]) == pytest.approx(summary[row[0]], abs=0.5)
        assert [as_number(end) for end in row[4].split(" to ")] == pytest.approx(np.quantile(gaps, ends), abs=0.5)
        assert row[5] == str(runs)


def test_arms_over_all_demonstrations_may_be_bounded_unseen_or_left_out() -> None:
    log = ub.ActionLog.from_actions([["A"], ["B"]], arms=list("ABC"))
    made = ub.report(log, "ucb", **OPTIONS)
    assert "unseen" in together(made)[0]
    assert together(made)[-1][0] in {"C", "(open)"}
    many = [str(arm) for arm in range(60)]
    log = ub.ActionLog.from_actions([many, many[::-1]])
    assert "60 arms</caption>" in ub.report(log, "ucb", **OPTIONS).main
    assert 'id="report-together"' not in ub.report(LOG, "ucb", **OPTIONS).main


def test_a_title_an_author_a_date_and_names_are_shown() -> None:
    told = {"title": "Charging <fast>", "author": "Ada", "date": "May 2026", "names": {"A": "Slow start"}}
    made = ub.report(LOG, "ucb", **OPTIONS, **told, anchor={"A": 1.0})
    assert made.title == "Charging <fast>"
    assert "<h1>Charging &lt;fast&gt;</h1>" in made.html
    assert "Ada, May 2026" in made.html
    assert '"Slow start" is the better one, worth 1;' in made.sentence
    for wrong in ({"Z": "none"}, {"A": "B"}, {"A": " "}):
        with pytest.raises(ParameterError):
            ub.report(LOG, "ucb", **OPTIONS, names=wrong)


def test_a_value_that_was_given_has_no_interval_and_decimals_are_equal() -> None:
    made = ub.report(LOG, "ucb", **OPTIONS, best_mean=1.0)
    table = made.html.partition('<table class="arms">')[2].partition("</table>")[0]
    assert "1.000 to 1.000" not in table
    amounts = re.findall(r'<td class="amount">−?\d+\.(\d+)</td>', table)
    assert len(amounts) >= 3
    assert len(set(map(len, amounts))) == 1


def test_a_short_report_has_one_figure_and_no_glossary() -> None:
    whole, short = (ub.report(LOG, "ucb", **OPTIONS, short=short).html for short in (False, True))
    assert (short.count("<figure>"), whole.count("<figure>") > 1) == (1, True)
    assert "report-glossary" in whole
    assert "report-glossary" not in short


def test_bars_of_all_demonstrations_have_one_rounded_axis() -> None:
    html = ub.report(MANY, "ucb", **OPTIONS).main
    ends = set(re.findall(r'class="ends"><span>(.*?)</span>.*?<span>([^<]*)</span></span>', html))
    assert len(ends) == 1
    assert all(len(end.strip("−")) <= 4 for pair in ends for end in pair)


def test_what_theorem_2_promises_is_left_to_json() -> None:
    made = ub.report(LOG, "ucb:alpha=0.25", **OPTIONS)
    assert "short-horizon" in {note.code for note in made.answer.notes}
    assert "guarantee" not in made.main


def test_the_table_of_several_demonstrations_names_the_quantity_and_has_texts_to_the_left() -> None:
    table = ub.report(MANY, "ucb", **OPTIONS, sensitivity=True).main.partition('id="report-sensitivity"')[2]
    head = table.partition("</thead>")[0]
    assert '<th scope="col">demonstration</th><th scope="col">arm</th><th scope="col" class="amount">gap</th>' in head
    assert "gap with one of the rule" in head


def test_sensitivity_is_one_table() -> None:
    html = ub.report(LOG, "ucb:alpha=0.25", **OPTIONS, sensitivity=True).html
    table = html.partition('id="report-sensitivity"')[2].partition("</table>")[0]
    assert re.findall(r"<th scope=\"col\"[^>]*>([^<]*)", table)[2:] == [
        "alpha=0.2", "alpha=0.3", "scale=1.131", "scale=1.697",
    ]  # fmt: skip
    with pytest.raises(ParameterError, match="has no number that could be off"):
        ub.report(LOG, "klucb", best_mean=0.9, check=False, sensitivity=True)


def test_no_folder_of_this_computer_is_shown() -> None:
    words = ["unbandit", "report", "/home/ada/secret/log.csv", "--rule", "ucb", "-o", "out/report.html"]
    assert without_folders(words) == "unbandit report log.csv --rule ucb -o report.html"
    made = ub.report(LOG, "ucb", **OPTIONS, source=LogSource("/home/ada/secret/log.csv", "00", 3))
    assert "secret" not in made.html
    assert "log.csv" in made.html


def test_a_unit_is_everywhere() -> None:
    plain = ub.report(LOG, "ucb", **OPTIONS, best_mean=1.0, truth={"B": 0.5}, windows=2)
    made = ub.report(LOG, "ucb", **OPTIONS, best_mean=1.0, truth={"B": 0.5}, windows=2, unit="cycles=1208")
    assert '"A" is the better one, worth 1,208 cycles; "B" is worth' in made.sentence
    value = 1208 * plain.answer["B"].mean
    assert made.answer["B"].mean == pytest.approx(value)
    assert f'<td class="amount">{value:.0f}</td>' in made.main
    assert '<td class="amount">604</td>' in made.main  # the truth
    assert '<th scope="col" class="amount">mean (cycles)</th>' in made.main
    assert "The best arm&#39;s mean is 1 (1,208 cycles), as was given." in made.main
    assert "standard deviation of 0.2 (241.6 cycles), as was given." in made.main
    assert "unit=&#39;cycles=1208&#39;" in made.main
    figures = [b64decode(code).decode() for code in re.findall(r"data:image/svg\+xml;base64,([^\"]+)", made.main)]
    assert len(figures) >= 5
    drawn = [re.findall(r">([^<]*, in cycles)<", svg) for svg in figures]
    assert [len(found) for found in drawn if found] == [1] * 10  # five figures, each for a page and for a phone
    said = json.loads(made.answer.to_json())
    assert said["unit"] == {"name": "cycles", "factor": 1208.0}
    assert said["notes"][0]["message"] == "Values are in cycles: those of the rule's rewards times 1,208."
    again = ub.Estimate.from_json(made.answer.to_json())
    assert (again.unit, again.to_json()) == (made.answer.unit, made.answer.to_json())


def test_draws_are_in_the_unit_too() -> None:
    given = posterior([0.9, 0.1])
    answer = replace(ub.report(LOG, "ucb", **OPTIONS, unit=("mV", 1000)).answer, posteriors=(given,))
    drawn = figures._densities(FigureData(LOG, ub.UCB(), {}, answer, "gap", answer.ranked(), {}))
    assert '"A": 95% between 0 and 1,000' in drawn.alt
    assert "gap to the best arm, in mV" in b64decode(drawn.address.partition(",")[2]).decode()


@pytest.mark.parametrize(
    "unit", ["cycles", "cycles=0", "cycles=-3", "=3", " =3", "cycles=x", "cycles=inf", "a\nb=2", "x" * 30 + "=2", 3.0,
             ("cycles", 0), ("cycles", "3"), (2.0, "cycles"), ""],
)  # fmt: skip
def test_a_unit_that_is_none_is_refused(unit: object) -> None:
    with pytest.raises(ParameterError, match="expected a name of at most 24 characters and a positive number"):
        ub.report(LOG, "ucb", **OPTIONS, unit=unit)


def test_ratios_have_no_unit_and_units_do_not_add_up() -> None:
    with pytest.raises(ParameterError, match="ratios have no unit"):
        ub.report(LOG, "ucb", check=False, scale="unknown", unit="cycles=2")
    with pytest.raises(ParameterError, match="in cycles=2 already"):
        ub.report(LOG, "ucb", **OPTIONS, unit="cycles=2").answer.in_unit("days=3")


def test_words_with_a_slash_that_are_no_files_stay(tmp_path) -> None:
    words = [
        "unbandit",
        "report",
        f"{tmp_path}/log.csv",
        "--title",
        "A/B test",
        "--unit",
        "km/h=3.6",
        f"--output={tmp_path}/r.html",
    ]
    assert without_folders(words) == "unbandit report log.csv --title 'A/B test' --unit km/h=3.6 --output=r.html"


def test_names_have_the_anchor_of_the_log_in_the_command() -> None:
    report = ub.report(LOG, "ucb", **OPTIONS | {"anchor": {"A": 1.0}}, names={"A": " Slow start"})
    assert "names={" in report.html
    assert "&#39;A&#39;: 1.0" in report.html
