"""Which pictures a log allows, and that their words are about this log."""

from __future__ import annotations

import re

import made
import pytest

import unbandit as ub

CLOSED = ["arms-drawn", "timeline", "pulls", "hesitation", "settling"]
EXPECTED = {
    "gaps": CLOSED,
    "means": ["arms-drawn", "errors", *CLOSED[1:]],
    "ratios": ["arms-drawn", "errors", "timeline", "pulls", "settling"],
    "counts": ["arms-drawn", "errors"],
    "naive": CLOSED,
    "bootstrap": CLOSED[:-1],
    "elimination, open": ["arms-drawn", "errors", *CLOSED[1:]],
    "elimination, settled": CLOSED,
    "randomised": ["arms-drawn", "errors", "timeline", "pulls", "densities", "paths"],
    "several": ["demonstrations-drawn", "shares-drawn", "arms-drawn", "errors", *CLOSED[1:]],
    "pooled": ["arms-drawn", "shares-drawn", "timeline", "pulls"],
    "shortest": ["arms-drawn"],
    "one round": ["arms-drawn"],
}


def pictures(report):
    return re.findall(r'<h3 id="report-([a-z-]+)">[^<]*</h3>\n<figure>', report.main)


def alts(report):
    return dict(zip(pictures(report), (image["alt"] for image in made.Outline(report.main).all("img")), strict=True))


@pytest.mark.parametrize("kind", EXPECTED)
def test_pictures_that_fit(kind):
    assert pictures(made.report_of(kind)) == EXPECTED[kind]


def test_alts_tell_what_is_seen_of_this_log():
    found = alts(made.report_of("means"))
    assert found["arms-drawn"].startswith("Chart of 4 arms, best first, each with its mean: 1 best, 3 estimated.")
    assert 'Topmost is "A" at 1. Lowest with a value is "D" at 0.2082 (' in found["arms-drawn"]
    assert '"A" was pulled most: 73% of all rounds' in found["timeline"]
    assert 'At the end "A" at 733, "B" at 177, "C" at 55 and the least-pulled arm at 35.' in found["pulls"]
    assert re.search(r'the latest in round \d+ \("B"\)', found["pulls"])
    assert 'one for "B" and one for "A": the index that the rule gave each' in found["hesitation"]
    assert re.search(r'"B" is put at [−\d.]+ after [\d,]+ rounds', found["settling"])
    assert re.search(r"\d of 3 intervals reach across zero", found["errors"])
    posterior = alts(made.report_of("randomised"))
    assert '"A": 95% between' in posterior["densities"]
    assert '"A" ends near' in posterior["paths"]


def truths_drawn(monkeypatch):
    """Let pictures be drawn, and keep the truth that each was given, with the axis that it was drawn on."""
    from unbandit import plots

    kept = {}

    def watched(name):
        draw = getattr(plots, name)

        def drawing(*given, truth=None, **options):
            figure = draw(*given, truth=truth, **options)
            axes = figure.axes[0]
            kept[name] = (truth, axes.get_ylabel() if name == "learning_curve" else axes.get_xlabel())
            return figure

        monkeypatch.setattr(plots, name, drawing)

    watched("arms_with_intervals")
    watched("learning_curve")
    return kept


def test_where_all_others_are_bounded_the_truth_is_in_means_like_the_axis(monkeypatch):
    kept = truths_drawn(monkeypatch)
    log = ub.ActionLog.from_actions("ABC" + "A" * 60)
    truth = {"A": 1.0, "B": 0.25, "C": 0.5}
    report = ub.report(log, "ucb", sigma=1.0, best_mean=1.0, truth=truth)
    assert {row.verdict for row in report.answer} == {"best", "bounded"}
    assert kept == {"arms_with_intervals": (truth, "value"), "learning_curve": (truth, "value")}
    assert '<th scope="col" class="amount">mean</th>' in report.main


def test_where_the_first_demonstration_has_no_means_there_is_no_error_to_draw(monkeypatch):
    kept = truths_drawn(monkeypatch)
    log = ub.ActionLog.from_actions([list("ABC" + "AABAAA" * 9 + "A" * 60), list("ABC" + "AAABC" * 12 + "A" * 90)])
    truth = {"A": 1.0, "B": 0.5, "C": 0.25}
    report = ub.report(log, "ucb", sigma=1.0, anchor={"C": 0.25}, truth=truth)
    assert [report.answer["B", name].mean is None for name in ("1", "2")] == [True, False]
    assert kept["arms_with_intervals"] == (truth, "value")
    assert not {"errors", "settling"} & set(pictures(report))


@pytest.mark.parametrize(
    ("rule", "options", "meet"),
    [
        ("ucb:alpha=0.25", {"method": "switching"}, True),
        ("sae:alpha=0.25", {"method": "switching"}, True),
        ("ucb:alpha=0.25,batch=10", {"method": "switching"}, False),
        ("ucb1:batch=7", {"method": "switching"}, False),
        ("phased", {"method": "switching"}, False),
        ("ucb:alpha=0.25", {}, False),
        ("ucb:alpha=0.25", {"method": "naive"}, False),
        ("ucb:alpha=0.25", {"method": "counts"}, False),
    ],
)
def test_curves_are_said_to_meet_only_where_they_do(rule, options, meet):
    instance = ub.Instance([1.0, 0.6, 0.2], 1.0, list("ABC"))
    report = ub.report(ub.parse_rule(rule).demonstrate(instance, 10_000, seed=2), rule, sigma=1.0, **options)
    assert ("they meet, at " in alts(report)["hesitation"]) is meet
    assert ("Where the curves meet" in report.main) is meet


def test_what_is_not_expected_is_not_swallowed(monkeypatch):
    from unbandit import plots

    def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(plots, "timeline", broken)
    with pytest.raises(ZeroDivisionError):
        ub.report(made.log_of(made.UCB, 100), made.UCB, sigma=0.5)


def test_pictures_of_many_arms_stay_small():
    instance = ub.datasets.battery("high", seed=1)
    rule = ub.UCB.variance_adjusted(alpha=0.25, sigma=instance.sigma)
    report = ub.report(rule.demonstrate(instance, 20_000, seed=1), rule, best_mean=1.0)
    assert len(instance.arms) == 224
    assert len(report.html) < 1_000_000


def test_a_bernoulli_rule_is_drawn_where_one_mean_is_known():
    instance = ub.Instance([0.7, 0.5, 0.3], noise=ub.Bernoulli(), arms=["red", "green", "blue"])
    report = ub.report(ub.KLUCB().demonstrate(instance, 1_000, seed=1), "klucb", anchor={"green": 0.5})
    assert "hesitation" in pictures(report)
    assert "Rewards are 0 or 1" in report.main
