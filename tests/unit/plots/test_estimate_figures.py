"""Figures of an estimate: every verdict, few arms and many, and errors against the truth."""

from __future__ import annotations

import numpy as np
import pytest
from figure_tools import FOUR, answered, drawn, words
from matplotlib.text import Text

from unbandit import UCB, ActionLog, Instance, ParameterError, datasets, parse_rule, plots
from unbandit.plots import PALETTE, arms_with_intervals, shown_quantity


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"best_mean": 1.0},
        {"anchor": {"B": 0.0}},
        {"scale": "unknown"},
        {"method": "counts"},
        {"method": "naive"},
        {"rule": "sae"},
        {"rule": "sae", "best_mean": 1.0},
    ],
    ids=str,
)
def test_every_verdict_and_quantity_can_be_drawn(options):
    result = answered(FOUR, **options)
    figure = result.plot()
    drawn(figure)
    assert set(result.arms) <= set(words(figure))


@pytest.mark.parametrize("actions", ["AB", "ABA", "ABABAB", "ABAB" + "A" * 5, "A"])
@pytest.mark.parametrize("rule", ["ucb", "sae"])
@pytest.mark.parametrize("best_mean", [None, 1.0])
def test_a_record_that_tells_little_can_be_drawn(actions, rule, best_mean):
    figure = answered(ActionLog.from_actions(list(actions), arms="AB"), rule, best_mean=best_mean).plot()
    drawn(figure)
    assert {"A", "B"} <= set(words(figure))


@pytest.mark.parametrize("arms", [2, 20, 200])
def test_few_arms_and_many(arms):
    rule, instance = "ucb:scale=0.5", datasets.linear(arms)
    log = parse_rule(rule).demonstrate(instance, 10 * arms, seed=1)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))
    result = answered(log, rule, best_mean=1.0)
    figure = arms_with_intervals(result, truth=truth, unit=100.0, label="score")
    assert len(drawn(figure)) < 150_000
    (axes,) = figure.axes
    assert axes.get_xlabel() == "score"
    assert {"truth (hidden)", "best", "pulls"} <= set(words(figure))
    ranked = [row.arm for row in result.ranked()]
    assert sum(arm in words(figure) for arm in ranked) >= min(arms, 40)
    assert {ranked[0], ranked[-1]} <= set(words(figure))
    assert figure.get_figheight() < 12


def test_the_axis_says_what_it_shows():
    for options, name, quantity in (
        ({}, "gap to the best arm", "gap"),
        ({"best_mean": 1.0}, "value", "mean"),
        ({"scale": "unknown"}, "ratio of gaps", "ratio"),
    ):
        result = answered(FOUR, **options)
        assert result.plot().axes[0].get_xlabel() == name
        assert shown_quantity(result) == quantity


def test_arms_stand_best_first_from_the_top():
    figure = answered(FOUR).plot()
    assert [word for word in words(figure) if word in "ABCD"] == list("ABCD")
    low, high = figure.axes[0].get_ylim()
    assert low > high


def test_the_key_names_each_verdict_drawn_once():
    shown = words(answered(FOUR).plot())
    assert [shown.count(verdict) for verdict in ("best", "estimated", "bounded", "never pulled")] == [1, 1, 1, 1]
    active = words(answered(ActionLog.from_actions(list("ABABAB")), "sae").plot())
    assert "bounded" in active
    assert not {"best", "estimated"} & set(active)
    assert set(PALETTE) == {"best", "estimated", "bounded", "unseen", "truth"}


def test_points_and_intervals_stand_where_the_numbers_are():
    result = answered(FOUR, best_mean=1.0)
    lines = [line.get_xydata() for line in result.plot().axes[0].lines]
    places = {(round(x, 9), y) for line in lines for x, y in line if np.isfinite(x)}
    row = result["B"]
    for value in (row.mean, row.mean_low, row.mean_high):
        assert (round(value, 9), 1) in places
    assert (1.0, 0) in places


def test_a_bound_points_to_the_edge_where_the_value_may_be():
    result = answered(FOUR)
    axes = result.plot().axes[0]
    edge = axes.get_xlim()[1]
    (arrow,) = [line for line in axes.lines if line.get_marker() == ">"]
    assert arrow.get_xydata().tolist() == [[edge, 2]]
    assert result["C"].gap_low < edge


def test_of_several_demonstrations_one_is_drawn_and_named():
    result = answered(ActionLog.from_actions([list("ABABAA"), list("BABBBB")]))
    first, second = words(result.plot()), words(result.plot(demonstration="2"))
    assert [word for word in first if word in "AB"] == ["A", "B"]
    assert [word for word in second if word in "AB"] == ["B", "A"]
    assert 'demonstration "1", 1 of 2' in first
    assert 'demonstration "2", 2 of 2' in second
    with pytest.raises(ParameterError, match='demonstration: expected one of 1, 2; got "3"'):
        result.plot(demonstration="3")


def test_an_unknown_kind_is_refused():
    with pytest.raises(ParameterError, match="kind: expected one of arms, errors"):
        answered(FOUR).plot("pie")


def test_intervals_that_hold_the_truth_are_told_from_those_that_do_not():
    instance = Instance([1.0, 0.7, 0.4, 0.0])
    log = UCB(alpha=0.25).demonstrate(instance, 5_000, seed=3)
    result = answered(log, "ucb:alpha=0.25", best_mean=1.0)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))
    truth["3"] = result["3"].mean_high + 0.1
    held = sum(result[arm].mean_low <= truth[arm] <= result[arm].mean_high for arm in "12")
    figure = plots.errors(result, truth)
    drawn(figure)
    shown = words(figure)
    assert f"{held} of 3 hold the truth" in shown
    assert f"{3 - held} of 3 do not" in shown
    assert "0" not in shown[: shown.index("pulls")]  # the best arm's mean was given: there is nothing to compare
    (missed,) = [line for line in figure.axes[0].lines if line.get_marker() == "X"]
    assert missed.get_xdata()[-1] == pytest.approx(result["3"].mean - truth["3"])


def test_a_bound_that_is_kept_holds_the_truth():
    result = answered(FOUR)
    low = result["C"].gap_low
    assert "2 of 2 hold the truth" in words(plots.errors(result, {"B": result["B"].gap, "C": low + 1}))
    assert "1 of 2 do not" in words(plots.errors(result, {"B": result["B"].gap, "C": low - 1}))


def test_true_means_are_drawn_as_gaps_where_gaps_are_shown():
    result, means = answered(FOUR), {"A": 0.6, "B": 0.9, "C": 0.2, "D": 0.5}
    ranked = [row.arm for row in result.ranked()]

    def marks(answer):
        (line,) = [line for line in answer.plot(truth=means).axes[0].lines if line.get_color() == PALETTE["truth"]]
        return line.get_xdata()

    assert marks(result) == pytest.approx([0.9 - means[arm] for arm in ranked])
    assert sorted(marks(answered(FOUR, best_mean=1.0))) == pytest.approx(sorted(means.values()))
    with pytest.raises(ParameterError, match=r'truth: expected the mean of every arm.*got none of "A"'):
        result.plot(truth={"B": 0.9})


def test_estimates_without_an_interval_have_errors_too():
    figure = answered(FOUR, method="naive").plot("errors", truth={"A": 1.5, "B": 1.0, "C": 0.5, "D": 0.0})
    drawn(figure)
    assert "without an interval" in words(figure)


def test_values_are_shown_in_their_unit():
    result = answered(FOUR, best_mean=1.0)
    figure = result.plot("errors", truth={"B": 0.0}, unit=1_000.0, label="cycles")
    assert figure.axes[0].get_xlabel() == "cycles"
    points = np.concatenate([line.get_xdata() for line in figure.axes[0].lines if line.get_marker() == "o"])
    assert np.isclose(points, 1_000 * result["B"].mean).any()


@pytest.mark.parametrize("truth", [{}, {"A": 1.0}, {"D": 1.0}, {"X": 1.0}])
def test_a_truth_that_concerns_no_estimate_is_refused(truth):
    with pytest.raises(ParameterError, match="truth: expected the true value of some arm"):
        plots.errors(answered(FOUR), truth)


def test_errors_need_the_truth():
    with pytest.raises(ParameterError, match="truth: expected"):
        answered(FOUR).plot("errors")


KEYS = {"best", "estimated", "bounded", "truth (hidden)", "3 of 3 hold the truth", "3 of 3 do not"}


def test_figures_for_a_phone_are_narrow_and_nothing_leaves_them():
    names = ["A name of many words", "another of them", "C" * 60, "D"]
    log = ActionLog.from_codes([*range(4), *(0, 0, 0, 1, 2) * 30, *(0,) * 200], names)
    answer = answered(log, best_mean=1.0)
    truth = dict(zip(names, (1.0, 0.8, 0.6, 0.1), strict=True))
    makers = [
        lambda: plots.arms_with_intervals(answer.in_unit("milliseconds=1000"), truth=truth),
        lambda: plots.errors(answer.in_unit("milliseconds=1000"), truth),
        lambda: plots.timeline(log),
        lambda: plots.cumulative_pulls(log, switching={names[1]: 100}),
        lambda: plots.hidden_paths(np.array([1, 1_000]), np.ones((2, 4, 3)), names, "the rule's hidden averages"),
    ]
    for draw in makers:
        with plots.narrow():
            figure = draw()
        assert figure.get_size_inches()[0] == 3.6
        box, needed = plots.whole_height(figure), figure.get_tightbbox()
        key = [text.get_window_extent() for text in figure.findobj(Text) if text.get_text() in KEYS]
        heading = [text.get_window_extent() for text in figure.findobj(Text) if text.get_text() == "pulls"]
        assert not any(one.overlaps(other) for one in key for other in heading)
        assert needed.x0 >= 0
        assert needed.x1 <= 3.6
        assert box.y0 <= needed.y0
        assert needed.y1 <= box.y1
    assert draw().get_size_inches()[0] == 7.2


def extents(figure, *said):
    figure.draw_without_rendering()
    return [text.get_window_extent() for text in figure.findobj(Text) if text.get_text().startswith(said)]


def test_a_long_key_goes_on_in_the_next_row_and_the_figure_grows():
    names = [f"a rather long name {at}" for at in range(8)]
    runs = UCB(alpha=0.25).demonstrate(Instance(np.linspace(1.0, 0.0, 8), 0.5), 300, runs=3, seed=1)
    log = ActionLog.from_codes(runs.actions, names, offsets=runs.offsets)
    figure = plots.demonstrations(answered(log))
    (interval,), (best,), key = (extents(figure, each) for each in ("95% interval", "best", "a rather long name"))
    needed = figure.get_tightbbox()
    assert needed.x1 <= figure.get_size_inches()[0]
    assert needed.y1 <= figure.get_size_inches()[1]
    assert not any(each.overlaps(best) for each in (interval, *key))


def test_what_is_written_below_small_axes_does_not_overlap():
    from matplotlib.figure import Figure

    log = UCB(alpha=0.25).demonstrate(Instance((1.0, 0.5), 0.5), 300, runs=2, seed=1)
    figure = Figure(figsize=(9, 3), layout="constrained")
    for axes in figure.subplots(1, 3):
        answered(log).plot(ax=axes)
    for label, which in zip(extents(figure, "gap to"), extents(figure, '"1", 1 of 2'), strict=True):
        assert not label.overlaps(which)
