"""Figures of a log, from a hundred rounds to ten million."""

from __future__ import annotations

import time

import numpy as np
import pytest
from figure_tools import drawn, words

from unbandit import SAE, UCB, ActionLog, Instance, ParameterError, plots, switching_rounds
from unbandit.plots import parts
from unbandit.plots.log import binned

KINDS = ["timeline", "pulls"]


def played(arms, rounds):
    """Return a log without simulating it: every arm once, then mostly the first ones."""
    codes = (arms * np.random.default_rng(1).random(rounds) ** 3).astype(np.uint16)
    codes[:arms] = np.arange(arms)
    return ActionLog.from_codes(codes, [str(arm) for arm in range(arms)])


def image(figure):
    """Return the shades of a timeline: (rows, columns), 0 for white."""
    (picture,) = figure.axes[0].images
    return 255 - np.asarray(picture.get_array())[..., 0].astype(int)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actions", ["A", "AB", "ABABAA", "AB" * 150 + "A" * 400])
def test_short_records_can_be_drawn(kind, actions):
    figure = ActionLog.from_actions(list(actions), arms="ABC").plot(kind)
    drawn(figure)
    assert set(actions) <= set(words(figure))


def test_of_a_short_record_every_round_is_a_column():
    figure = ActionLog.from_actions(list("BABBBA")).plot()
    assert words(figure)[:4] == ["B", "4", "A", "2"]
    assert (image(figure) > 0).astype(int).tolist() == [[1, 0, 1, 1, 1, 0], [0, 1, 0, 0, 0, 1]]
    assert "one column per round" in words(figure)


def test_a_single_pull_shows_in_any_stretch_and_shades_deepen_with_pulls():
    codes = np.zeros(1_000_000, np.uint8)
    codes[500_000] = 1
    codes[100_000:100_050] = 2
    log = ActionLog.from_codes(codes, ["most", "once", "some"])
    figure = log.plot()
    most, some, once = image(figure)
    assert most.size == 400
    assert np.flatnonzero(once).tolist() == [200]
    assert np.flatnonzero(some).tolist() == [40]
    assert 0 < once[200] < some[40] < most[0] == most.max()
    assert "all 2,500 rounds of a column" in words(figure)


def test_each_of_several_demonstrations_has_a_panel_with_its_shares():
    log = ActionLog.from_actions([list("AB" * 10), list("A" * 20), list("B" * 10 + "A" * 10)])
    figure = plots.choice_shares(log)
    drawn(figure)
    assert [axes.get_title() for axes in figure.axes] == ["1", "2", "3"]
    by_panel = [[line.get_ydata().tolist() for line in axes.lines] for axes in figure.axes]
    assert by_panel[0] == [[0.5] * 10, [0.5] * 10]
    assert by_panel[1] == [[1.0] * 10, [0.0] * 10]
    assert by_panel[2][0] == [0.0] * 5 + [1.0] * 5
    with plots.narrow():
        assert plots.choice_shares(log).get_size_inches()[0] < figure.get_size_inches()[0]


def test_of_many_demonstrations_and_arms_some_are_drawn():
    log = ActionLog.from_actions([[arm for arm in "ABCDEFGHIJ" for _ in range(2)]] * 60)
    figure = plots.choice_shares(log)
    assert len(figure.axes) == 24
    assert [figure.axes[at].get_title() for at in (0, -1)] == ["1", "60"]
    assert {len(axes.lines) for axes in figure.axes} == {8}
    with pytest.raises(ParameterError, match="choice_shares"):
        plots.choice_shares(ActionLog.from_counts({"A": 3, "B": 1}))


@pytest.mark.parametrize("kind", KINDS)
def test_ten_million_rounds_take_well_under_a_second(kind):
    log = played(6, 10_000_000)
    rounds = switching_rounds(log, "ucb:alpha=0.25") if kind == "pulls" else None
    log.plot(kind, switching=rounds)
    start = time.process_time()
    text = plots.svg(log.plot(kind, switching=rounds))
    assert time.process_time() - start < 2  # some tenths of a second on a machine with nothing else to do
    assert len(text) < 60_000


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("arms", [2, 40, 41, 224, 3_000])
def test_few_arms_and_many(kind, arms):
    log = played(arms, 20 * arms)
    figure = log.plot(kind)
    assert len(drawn(figure)) < 120_000
    assert figure.get_figheight() < 12
    assert log.arms[int(log.pulls[0].argmax())] in words(figure)


def test_of_many_arms_the_least_pulled_share_a_row():
    log = played(224, 5_000)
    figure = log.plot()
    assert "185 other arms" in words(figure)
    assert len(image(figure)) == 40
    pulls = np.sort(log.pulls[0])[::-1]
    assert f"{pulls[39:].sum():,}" in words(figure)
    assert "other arms" not in " ".join(words(played(40, 500).plot()))
    assert "40 of 216 other arms" in words(log.plot("pulls"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_counts_is_refused_kindly(kind):
    with pytest.raises(ParameterError, match="expected a log with rounds; this one holds counts"):
        ActionLog.from_counts({"A": 7, "B": 3}).plot(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_one_of_several_demonstrations_is_drawn_by_name(kind):
    offsets = np.array([0, 5, 8, 8])
    log = ActionLog.from_codes(
        np.array([0, 0, 0, 1, 0, 1, 1, 0], np.uint8), ["A", "B"], offsets=offsets, demonstrations=["x", "y", "none"]
    )
    assert 'demonstration "x", 1 of 3' in words(log.plot(kind))
    assert 'demonstration "y", 2 of 3' in words(log.plot(kind, demonstration="y"))
    with pytest.raises(ParameterError, match="expected one of x, y, none"):
        log.plot(kind, demonstration="z")
    with pytest.raises(ParameterError, match='demonstration "none" has none'):
        log.plot(kind, demonstration="none")


def test_an_unknown_kind_is_refused():
    with pytest.raises(ParameterError, match="kind: expected one of timeline, pulls"):
        ActionLog.from_actions("ABA").plot("pie")


@pytest.mark.parametrize("rule", [UCB(alpha=0.25), SAE(alpha=0.25, scale=0.3)], ids=str)
@pytest.mark.parametrize("horizon", [200, 30_000])
def test_switching_rounds_are_marked_on_the_curves(rule, horizon):
    log = rule.demonstrate(Instance([1.0, 0.5, 0.0]), horizon, seed=4)
    rounds = switching_rounds(log, rule)
    figure = log.plot("pulls", switching=rounds)
    (marks,) = [line for line in figure.axes[0].lines if line.get_marker() == "o"]
    codes = log.demonstration(0)
    expected = {(at, int((codes[:at] == log.arms.index(arm)).sum())) for arm, at in rounds.items()}
    assert expected
    assert {tuple(place) for place in marks.get_xydata().astype(int).tolist()} == expected
    assert "switching round" in words(figure)
    assert "switching round" not in words(log.plot("pulls"))


def test_curves_end_at_the_counts():
    log = UCB().demonstrate(Instance([1.0, 0.5, 0.0]), 5_000, seed=4)
    ends = [int(line.get_ydata()[-1]) for line in log.plot("pulls").axes[0].lines[:3]]
    assert ends == sorted(log.pulls[0].tolist(), reverse=True)


def test_binning_counts_every_round_once():
    generator = np.random.default_rng(1)
    codes = generator.integers(0, 7, 1_003)
    order = np.argsort(-np.bincount(codes))[:3]
    edges, counts = binned(codes, order, 7, 50)
    assert (edges[0], edges[-1], counts.shape) == (0, 1_003, (50, 4))
    assert (counts.sum(axis=1) == np.diff(edges)).all()
    assert counts.sum(axis=0)[:3].tolist() == np.bincount(codes)[order].tolist()
    assert counts.sum() == codes.size


def test_an_arm_has_the_same_line_in_every_figure():
    log = ActionLog.from_actions([list("ACCCBCCB"), list("CABCCCCC")], arms="ABC")
    axes = plots.cumulative_pulls(log).axes[0]
    by_pulls = [line.get_color() for line in axes.get_lines()[:3]]
    assert by_pulls == [parts.LINES[at].colour for at in (2, 1, 0)]  # C, B, A: in the order of their pulls
    shares = plots.choice_shares(log).axes[0]
    assert [line.get_color() for line in shares.get_lines()] == [parts.LINES[at].colour for at in (2, 1, 0)]
    assert parts.lines_of([11, 3], 12) == parts.LINES[:2]
