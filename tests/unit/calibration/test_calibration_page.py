"""From figures to verdicts, and to a page that says all of them."""

from __future__ import annotations

import math
import re
from types import SimpleNamespace

import numpy as np
import pytest

from unbandit import SAE, UCB, EpsilonGreedy, Gaussian, Thompson, parse_rule
from unbandit.calibration.closed_forms import ClosedFormCell, ClosedFormMetrics, ClosedForms
from unbandit.calibration.identify import Identify, IdentifyMetrics
from unbandit.calibration.measure import MET, MISSED, OPEN, UNKNOWN, Criterion, Measure, Score, judge, percent
from unbandit.calibration.page import coverage_chart, page
from unbandit.calibration.posterior import PosteriorMetrics, Posteriors, Sampler, SamplerMetrics
from unbandit.calibration.record import Findings, MeasuredCell
from unbandit.calibration.settings import TrialSetting
from unbandit.calibration.speed import TimingCell, TimingMetrics, Timings
from unbandit.study.monte_carlo import Measured, computed, share

NOTHING = Measured(np.nan, np.nan, 0)


def cell(
    rule=None, *, coverage=0.95, chance=0.5, spread=0.1, evidence=0.1, naive=0.2, failed=0, arms=4
) -> PosteriorMetrics:
    setting = TrialSetting(rule or UCB(), arms, 2_000, 500)
    return PosteriorMetrics(
        setting, 500, failed, failed, Measured(coverage, 0.005, 500), Measured(0.97, 0.005, 500), chance,
        Measured(spread, 0.005, 20), Measured(evidence, 0.01, 500), Measured(0.4, 0.02, 20), Measured(naive, 0.01, 20),
    )  # fmt: skip


def verdicts(measure: Measure, metrics) -> dict[str, list[str | None]]:
    return {criterion.key: [score.verdict for score in criterion.scores] for criterion in measure.criteria(metrics)}


def found(measure: Measure, metrics, **settings) -> Findings:
    """Return findings as if a folder held them."""
    trials, cell = SimpleNamespace(identity={"seed": 1, "code": "abc", **settings}), SimpleNamespace(runs=500)
    return Findings(measure, [MeasuredCell(trials, cell, each) for each in metrics])


def test_limits_of_the_posterior():
    cells = [
        cell(),
        cell(coverage=0.925, spread=0.205, naive=1.01, chance=0.006),
        cell(coverage=0.985, spread=0.3, naive=1.5, chance=1e-4),
    ]
    judged = verdicts(Posteriors(), cells)
    assert judged["posterior, means"] == [MET, OPEN, MISSED]
    assert judged["spread between clouds"] == [MET, OPEN, MISSED]
    assert judged["posterior, against naive"] == [MET, OPEN, MISSED]
    assert judged["posterior, means by rule"] == [MET]  # averaged over all of them
    far = [cell(coverage=0.88), cell(coverage=0.9, arms=2), cell(Thompson(sigma=0.5))]
    assert verdicts(Posteriors(), far)["posterior, means by rule"] == [MISSED, MET]
    assert [Posteriors().criteria(own)[3].counted for own in (cells[:1], cells)] == ["none missed", "1 missed"]
    assert judged["ranks"] == [None, None, MISSED]  # 0.006 of three is 0.012, and a large p-value proves nothing
    assert judged["posterior, gaps"] == [MET, MET, MET]  # 97%: more than 95% is no fault
    assert judged["information kept"] == [None] * 3


def test_only_rules_that_choose_at_random_have_a_goal_for_the_evidence():
    rules = (UCB(), Thompson(sigma=0.5), EpsilonGreedy(), SAE())
    assert verdicts(Posteriors(), [cell(rule, evidence=0.4) for rule in rules])["log evidence"] == [
        None, MISSED, MISSED, None
    ]  # fmt: skip
    long = [
        SamplerMetrics(TrialSetting(rule, 4, 2_000, 60), Measured(ratio, 0.01, 20), Measured(off, 0.02, 20))
        for rule, ratio, off in ((UCB(), 1.0, 0.5), (Thompson(), 1.02, 0.1), (Thompson(), 1.2, 0.5))
    ]
    assert verdicts(Sampler(), long) == {
        "against a long run": [MET, OPEN, MISSED], "log evidence against a long run": [None, MET, MISSED]
    }  # fmt: skip


def test_runs_without_a_posterior_are_shown_and_count():
    cells = [cell(failed=5), cell(failed=6, arms=2)]
    assert verdicts(Posteriors(), cells)["posterior, means"] == [MET, MISSED]
    text = page([found(Posteriors(), cells)])
    assert "95.0 ± 0.5% (5 of 500 failed) |" in text
    assert "95.0 ± 0.5% (6 of 500 failed) ✗" in text
    assert "### Where the tool warns or gives up" in text
    assert [(row.arms, row.quantity) for row in Posteriors().coverages(cells)] == [(4, "mean"), (4, "gap")]


def closed(
    design="random", *, rule="ucb:alpha=0.25", arms=4, horizon=2_000, value=None, **changed
) -> ClosedFormMetrics:
    """Return the metrics of a cell, all goals reached unless something is changed."""
    paper = {"means": (1.0, 0.5), "label": "two arms"} if design == "paper" else {}
    cell = ClosedFormCell(design, parse_rule(rule), arms, horizon, 500, Gaussian(0.5), **paper)
    numbers = {
        "coverage": 0.95, "unwarned": 0.95, "procedures": 0.95, "bounded": 0.99, "reach_zero": 0.1,
        "against_procedures": 0.6, "against_naive": 0.3, "against_seen": 1.1, "naive_against_seen": 3.0,
    }  # fmt: skip
    counts = {"intervals": 900, "bounds": 900, "pull_counts": 4, "unwarned_runs": 500}
    measured = {name: Measured(changed.get(name, value), 0.004, 20) for name, value in numbers.items()}
    return ClosedFormMetrics(cell, **measured, **{name: changed.get(name, count) for name, count in counts.items()})


def test_limits_of_the_closed_forms():
    cells = [closed(), closed(coverage=0.965, bounded=0.925), closed(coverage=0.98, bounds=19)]
    judged = verdicts(ClosedForms(), cells)
    assert judged["random means, coverage"] == [MET, OPEN, MISSED]
    assert judged["random means, bounds"] == [MET, OPEN, UNKNOWN]
    assert judged["random means, against naive"] == [MET] * 3
    near = [
        closed("near", coverage=0.98),
        closed("near", coverage=0.999, unwarned=0.8),
        closed("near", unwarned_runs=4),
    ]
    judged = verdicts(ClosedForms(), near)
    assert judged["near means, coverage"] == [MET, MISSED, MET]  # no cell above 99%
    assert judged["near means, not told"] == [MET, MISSED, UNKNOWN]


def test_only_some_cells_have_a_goal_against_the_procedures():
    many = [("random", "ucb:alpha=0.25", 4, 2_000), ("random", "ucb:alpha=0.25", 2, 500), ("random", "ucb1", 4, 2_000),
            ("even", "ucb:alpha=0.25", 4, 2_000), ("paper", "ucb:alpha=0.25", 2, 500)]  # fmt: skip
    cells = [closed(design, rule=rule, arms=arms, horizon=horizon, against_procedures=0.7)
             for design, rule, arms, horizon in many]  # fmt: skip
    judged = verdicts(ClosedForms(), cells)
    assert judged["random means, against the procedures"] == [MISSED, None, None]
    assert judged["even means, against the procedures"] == [None]
    assert judged["paper means, against the procedures"] == [MET]
    worse = [closed("paper", arms=2, against_procedures=each) for each in (1.047, 1.06)]
    assert verdicts(ClosedForms(), worse)["paper means, against the procedures"] == [OPEN, MISSED]


def test_a_goal_is_met_only_where_the_runs_decide():
    value = Measured(0.95, 0.012, 20)
    assert [judge(value, low, high) for low, high in ((0.9, 1), (0.93, 1), (0.97, 1), (0.98, 1))] == [
        MET, OPEN, OPEN, MISSED
    ]  # fmt: skip
    assert judge(share(12, 12), 0.7, 1.0) == MET
    assert judge(share(12, 12), 0.93, 1.0) == OPEN  # an exact interval: from 73.5%
    assert judge(Measured(0.95, math.nan, 1), 0.0, 1.0) == OPEN  # one run has no error
    assert judge(computed(0.3), high=0.2) == MISSED
    assert judge(Measured(math.nan, math.nan, 0), 0.0) == UNKNOWN
    assert percent(share(2, 200)) == "1.0% (0.1 to 3.6)"


def test_cells_that_miss_a_goal_are_listed_with_what_explains_them():
    text = page([found(ClosedForms(), [closed(), closed(rule="moss", against_naive=1.2, naive_against_seen=0.77)])])
    assert "### Closed forms outside, and why" in text
    (line,) = [line for line in text.splitlines() if line.startswith("| random means, against naive | `moss")]
    assert line == (
        "| random means, against naive | `moss:scale=1` | K=4, T=2,000 | 1.200 ± 0.004 | 4 | 10.0 ± 0.4% | "
        "1.100 ± 0.004 | 0.770 ± 0.004 |"
    )
    assert "outside, and why" not in page([found(ClosedForms(), [closed()])])


def test_limits_of_names():
    named = [
        IdentifyMetrics(
            TrialSetting(rule, arms, 1_500, 1_000), *(share(each, 1_000) for each in shares), taken_for, share(95, 100)
        )
        for rule, arms, shares, taken_for in (
            (UCB(), 2, (900, 5, 95), {"sae": 1}),
            (SAE(), 2, (800, 5, 195), {}),
            (UCB(), 5, (600, 100, 300), {"none of them": 10}),
        )
    ]
    judged = verdicts(Identify(), named)
    assert judged["identify, right"] == [None, None, MET, None, MISSED]
    assert judged["identify, wrong"] == [None, None, MET, None, MISSED]
    text = page([found(Identify(), named)])
    assert "`ucb` (K=5, T=1,500) was taken for none of them 10 times." in text
    assert "| `all together` | 85.0" in text


def test_limits_of_time():
    timed = [
        TimingMetrics(TimingCell("ucb:alpha=0.25", 4, 5_000, 3, 2.0), 1.5, 3e8),
        TimingMetrics(TimingCell("thompson", 4, 5_000, 3, 5.0), 5.5, 3e8),
        TimingMetrics(TimingCell("ucb:alpha=0.25", 224, 25_000, 1, 60.0, 2e9), 30.0, 2.5e9),
        TimingMetrics(TimingCell("ucb:alpha=0.25", 4, 2_000, 3, 10.0, identify=True), 12.0, 3e8),
        TimingMetrics(TimingCell("softmax", 2, 100, 1, 120.0, 1e9, people=100), 119.0, 1.1e9),
        TimingMetrics(TimingCell("linucb:alpha=1", 10, 10_000, 1, 60.0, 1e9, features=20), 34.0, 0.4e9),
    ]
    assert verdicts(Timings(), timed) == {
        "time": [MET, MISSED, MET, MISSED],
        "time of identify": [MISSED],
        "time of population": [MET, MISSED],
        "time of contexts": [MET, MET],
    }


def test_the_page_holds_every_figure_and_says_with_which_settings():
    metrics = [cell(), cell(SAE(), coverage=0.8)]
    everything = [
        found(ClosedForms(), [closed()]),
        found(Posteriors(), metrics, particles=None, clouds=4),
        found(Sampler(), [SamplerMetrics(TrialSetting(UCB(), 4, 2_000, 60), NOTHING, NOTHING)], particles=20, clouds=2),
    ]
    text = page(everything, "chart.png")
    assert text.startswith("# How far the answers can be trusted\n\n![")
    assert "](chart.png)" in text
    assert "Measured by unbandit" in text
    assert "| 500 | as users get them: default particles, 4 clouds | 1 |" in text
    assert "| 500 | 20 particles, 2 clouds | 1 |" in text
    assert "| `ucb:alpha=0.25,scale=1.414` | 95.0 ± 0.5% |" in text
    assert "| `sae:alpha=0.25,scale=1.414` | 80.0 ± 0.5% ✗ |" in text
    assert "80.0 ± 0.5% to 95.0 ± 0.5% | **1 of 2** |" in text
    assert "Nominal 95%; taken as right: 93% to 97%, averaged over arms." in text
    assert "abc" not in text  # which code measured it stands in the record
    assert not re.search(r"\bgoals?\b|✓", text)
    assert "nan" not in text.lower().replace("unbandit", "")
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith(" |")


def test_what_was_not_measured_is_said_to_be_missing():
    old = Findings(Posteriors(), left_out=["posterior/ucb: measured by unbandit 0.3.0"])
    half = Findings(Sampler(), unfinished=3)
    text = page([old, half, Findings(Identify())])
    assert text.count("**not measured**") == 3
    assert "posterior/ucb: measured by unbandit 0.3.0" in text
    assert "3 cells unfinished" in text
    assert "Not measured yet: how often `identify` names" in text
    assert "To measure it: `unbandit calibrate identify`." in text
    assert "## In short" not in text


def test_nothing_measured_is_nothing_said():
    setting = TrialSetting(UCB(), 4, 2_000, 500)
    nothing = PosteriorMetrics(setting, 500, 500, 0, *[NOTHING] * 2, math.nan, *[NOTHING] * 4)
    judged = verdicts(Posteriors(), [nothing])
    assert judged["posterior, means"] == [MISSED]  # every run failed
    assert judged["posterior, gaps"] == [UNKNOWN]
    assert judged["ranks"] == [None]
    assert list(Posteriors().coverages([nothing])) == []
    assert Posteriors().criteria([nothing])[3].counted == UNKNOWN
    text = page([found(Posteriors(), [nothing]), found(ClosedForms(), [closed("even")])])
    assert "over that of Procedures 1 and 2.\n" in text
    assert "that the actions keep. Neither right nor wrong: a property of the rule.\n" in text
    assert "no goal" not in text


def test_the_chart_has_a_row_for_every_rule_and_averages_its_cells():
    scores = [Score("ucb", str(at), Measured(value, 0.01, 20), "", None) for at, value in enumerate((0.90, 0.96))]
    few = [Score("exp3", "0", NOTHING, "", None), Score("moss", "0", share(94, 100), "", None)]
    charted = [
        Criterion("a", "", "", charted="means", scores=scores),
        Criterion("b", "", "", charted="gaps", scores=few),
    ]
    figure = coverage_chart([*charted, Criterion("c", "", "", scores=[Score("sae", "", share(1, 2), "", None)])])
    texts = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert [name for name in texts if name] == ["ucb", "exp3", "moss", "means", "gaps"]  # rules, then what dots are
    (dot,) = [line for line in figure.axes[0].lines if list(line.get_xdata()) == [pytest.approx(0.93)]]
    (bar,) = [line for line in figure.axes[0].lines if len(line.get_xdata()) == 2 and line.get_linewidth() == 1.6
              and line.get_color() == dot.get_color()]  # fmt: skip
    assert np.ptp(bar.get_xdata()) == pytest.approx(2 * 2.093 * 0.01 / np.sqrt(2), rel=1e-4)  # Student's t of 20 groups
    assert coverage_chart([Criterion("c", "", "", scores=scores)]) is None
