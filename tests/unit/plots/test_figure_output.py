"""Figures as bytes, whatever the names; and the settings that are left alone."""

from __future__ import annotations

import html
import threading
import time
import warnings

import matplotlib as mpl
import numpy as np
import pytest
from figure_tools import FOUR, ODD_NAMES, answered, drawn

from unbandit import UCB, ActionLog, Instance, OutputError, learning_curve, plots, switching_moment, switching_rounds

RULE = "ucb:alpha=0.25,scale=1"


def every_picture(log):
    """Draw all that a log with an order can be drawn as."""
    result, truth = answered(log), dict.fromkeys(log.arms, 0.1)
    yield result.plot(truth=truth)
    yield result.plot("errors", truth=truth)
    yield log.plot()
    yield log.plot("pulls", switching=switching_rounds(log, RULE))
    yield switching_moment(log, RULE, estimate=result).plot()
    yield learning_curve(log, RULE, sigma=1.0).plot(truth=truth)


@pytest.mark.parametrize("name", ODD_NAMES, ids=ascii)
def test_names_are_only_names(name):
    actions = np.array(list("AB" + "AAAB" * 10 + "A" * 40)) == "B"
    log = ActionLog.from_codes(actions.astype(np.uint8), ["other", name])
    for figure in every_picture(log):
        written = drawn(figure)
        shown = html.unescape(written)
        assert shown.startswith("<?xml")
        assert "<script>alert" not in written
        if len(name) <= 18 and name.isprintable() and name.strip():
            assert name in shown


@pytest.mark.parametrize("name", ["$x$", "\\alpha", "a_b^c", "<b>"])
def test_a_saved_picture_shows_the_name_as_it_is(name, tmp_path):
    path = tmp_path / "picture.svg"
    plots.save(answered(ActionLog.from_counts({name: 90, "other": 40})).plot(), path)
    assert f">{name}<" in html.unescape(path.read_text(encoding="utf-8"))


def test_a_long_name_is_cut():
    text = plots.svg(answered(ActionLog.from_counts({"x" * 100_000: 90, "other": 40})).plot())
    assert "x" * 23 + "…" in text
    assert "x" * 24 not in text
    assert len(text) < 50_000


def test_equal_figures_give_equal_bytes(tmp_path):
    log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5, 0.0]), 2_000, seed=1)
    for first, second in zip(every_picture(log), every_picture(log), strict=True):
        assert plots.svg(first) == plots.svg(second)
        assert plots.png(first) == plots.png(second)
    for kind in ("png", "svg"):
        paths = [tmp_path / f"{which}.{kind}" for which in "ab"]
        for path in paths:
            plots.save(answered(FOUR).plot(), path)
        assert paths[0].read_bytes() == paths[1].read_bytes()
    assert len(list(tmp_path.iterdir())) == 4


def test_an_svg_refers_to_nothing_outside():
    text = plots.svg(UCB().demonstrate(Instance([1.0, 0.0]), 500).plot())
    addresses = {part.split('"')[0] for part in text.split("http")[1:]}
    assert all("w3.org" in address for address in addresses)
    assert "<script" not in text


def test_a_figure_that_cannot_be_written_leaves_nothing(tmp_path):
    with pytest.raises(OutputError, match="could not be written"):
        plots.save(answered(FOUR).plot(), tmp_path / "missing" / "picture.png")
    assert list(tmp_path.iterdir()) == []


def test_drawing_leaves_the_users_style_alone():
    log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5]), 1_000, seed=1)
    before, filters = dict(mpl.rcParams), list(warnings.filters)
    for figure in every_picture(log):
        drawn(figure)
    assert dict(mpl.rcParams) == before
    assert warnings.filters == filters


def test_the_users_style_leaves_the_drawing_alone():
    usual = plots.svg(answered(FOUR).plot())
    with mpl.rc_context({"figure.facecolor": "black", "text.color": "white", "axes.facecolor": "black"}):
        assert plots.svg(answered(FOUR).plot()) == usual


def test_pictures_are_drawn_from_several_threads():
    log = UCB(alpha=0.25).demonstrate(Instance([1.0, 0.5]), 1_000, seed=1)
    usual, found = plots.svg(log.plot()), []
    threads = [threading.Thread(target=lambda: found.append(plots.svg(log.plot()))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [usual] * 6


def test_a_page_full_of_pictures_is_drawn_in_good_time():
    log = UCB(alpha=0.25).demonstrate(Instance(np.linspace(1, 0, 12)), 100_000, seed=1)
    sum(len(plots.svg(figure)) for figure in every_picture(log))
    start = time.process_time()
    sizes = [len(plots.svg(figure)) for figure in every_picture(log)]
    assert time.process_time() - start < 2  # about half a second: less than a tenth each
    assert max(sizes) < 80_000
