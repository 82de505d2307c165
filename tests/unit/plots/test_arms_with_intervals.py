"""The picture of an answer: every verdict, few arms and many, odd names."""

from __future__ import annotations

import html
import io
import warnings

import pytest
from matplotlib.figure import Figure

from unbandit import ActionLog, AssumptionWarning, OutputError, datasets, estimate, parse_rule
from unbandit.plots import PALETTE, arms_with_intervals, save

PNG = b"\x89PNG\r\n\x1a\n"
FOUR = ActionLog.from_actions(list("ABC" + "A" * 8 + "BBB" + "A"), arms="ABCD")


def answered(log, rule="ucb:alpha=0.25,scale=1", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return estimate(log, rule, **({"sigma": 1.0} | options))


def saved(figure, kind="png"):
    assert isinstance(figure, Figure)
    written = io.BytesIO()
    figure.savefig(written, format=kind)
    return written.getvalue()


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
    assert saved(answered(FOUR, **options).plot()).startswith(PNG)


@pytest.mark.parametrize("actions", ["AB", "ABA", "ABABAB", "ABAB" + "A" * 5, "A"])
@pytest.mark.parametrize("rule", ["ucb", "sae"])
@pytest.mark.parametrize("best_mean", [None, 1.0])
def test_a_record_that_tells_little_can_be_drawn(actions, rule, best_mean):
    result = answered(ActionLog.from_actions(list(actions), arms="AB"), rule, best_mean=best_mean)
    assert saved(result.plot()).startswith(PNG)


@pytest.mark.parametrize("arms", [2, 20, 200])
def test_few_arms_and_many(arms):
    rule, instance = "ucb:scale=0.5", datasets.linear(arms)
    log = parse_rule(rule).demonstrate(instance, 10 * arms, seed=1)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))
    figure = arms_with_intervals(answered(log, rule, best_mean=1.0), truth=truth, unit=100.0, label="score")
    assert saved(figure).startswith(PNG)
    (axes,) = figure.axes
    assert axes.get_xlabel() == "score"
    assert len(axes.get_yticklabels()) == min(arms, 40)
    assert "truth (hidden)" in [text.get_text() for text in axes.get_legend().get_texts()]


@pytest.mark.parametrize(
    "name", ["$", "$x$", "$\\frac{", "a$b", "µ–ñ é", "_", "^{", "\\alpha", "%", "&", "{}", "<b>", "x" * 300, "a\nb"]
)
def test_names_are_only_names(name, tmp_path):
    log = ActionLog.from_counts({name: 9, "other": 4})
    path = tmp_path / "picture.svg"
    save(answered(log).plot(), path)
    shown = html.unescape(path.read_text(encoding="utf-8"))
    assert shown.startswith("<?xml")
    if len(name) <= 24 and "\n" not in name:
        assert f">{name}<" in shown


def test_equal_figures_give_equal_files(tmp_path):
    for kind in ("png", "svg"):
        paths = [tmp_path / f"{which}.{kind}" for which in "ab"]
        for path in paths:
            save(answered(FOUR).plot(), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
    assert len(list(tmp_path.iterdir())) == 4


def test_a_figure_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(OutputError, match="could not be written"):
        save(answered(FOUR).plot(), tmp_path / "missing" / "picture.png")
    assert list(tmp_path.iterdir()) == []


def test_the_axis_says_what_it_shows():
    assert answered(FOUR).plot().axes[0].get_xlabel() == "gap"
    assert answered(FOUR, best_mean=1.0).plot().axes[0].get_xlabel() == "value"
    assert answered(FOUR, scale="unknown").plot().axes[0].get_xlabel() == "ratio"


def test_arms_stand_best_first_from_the_top():
    axes = answered(FOUR).plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == list("ABCD")
    low, high = axes.get_ylim()
    assert low > high


def test_the_legend_names_each_verdict_drawn_once():
    legend = answered(FOUR).plot().axes[0].get_legend()
    assert sorted(text.get_text() for text in legend.get_texts()) == ["best", "bounded", "estimated"]
    active = answered(ActionLog.from_actions(list("ABABAB")), "sae").plot().axes[0].get_legend()
    assert [text.get_text() for text in active.get_texts()] == ["bounded"]
    assert set(PALETTE) == {"best", "estimated", "bounded", "unseen", "truth"}


def test_of_several_demonstrations_the_first_is_drawn():
    log = ActionLog.from_actions([list("ABABAA"), list("BABBBB")])
    axes = answered(log).plot().axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["A", "B"]


def test_drawing_leaves_the_users_style_alone():
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    saved(answered(FOUR).plot())
    assert dict(mpl.rcParams) == before
