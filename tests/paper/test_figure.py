"""Every figure in the registry: it draws, has rows behind it, and gives a verdict on every claim."""

from __future__ import annotations

import importlib
import io
import math
import re

import matplotlib as mpl
import polars as pl
import pytest
from matplotlib.image import imread

from unbandit.errors import ParameterError
from unbandit.paper.claims import VERDICTS
from unbandit.paper.figure import FILES, chosen_figures, figures
from unbandit.paper.panels import STYLE

SLOW = {"linear-learners"}  # tests/paper/test_linear_learners.py has less of it
NAMES = list(figures())


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.thorough) if name in SLOW else name for name in NAMES])
def made(request, small):
    (made,) = small(request.param).made
    return made


def test_it_is_drawn_in_two_formats(made):
    png, svg, _ = made.files
    image = imread(io.BytesIO(png.read_bytes()), "png")
    assert 300 < image.shape[0] < 6_000
    assert 300 < image.shape[1] < 3_000
    assert image[..., :3].std() > 0.01  # something is on it
    text = svg.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "nan" not in re.findall(r"\bnan\b", text)


def test_it_has_rows_behind_it(made):
    table = pl.read_parquet(made.files[2])
    assert table.height > 0
    assert len(set(table.columns)) == table.width


def test_every_claim_has_a_verdict_and_its_reason(made):
    assert made.claims or made.figure.name.startswith("gene")
    for claim in made.claims:
        assert claim.verdict in VERDICTS
        assert claim.because
        assert claim.says
        assert claim.statistic
        if claim.measured is not None and claim.verdict != VERDICTS[2]:
            assert math.isfinite(claim.measured.low)
            assert math.isfinite(claim.measured.high)
    assert len({(claim.says, claim.statistic) for claim in made.claims}) == len(made.claims)


def test_it_is_described(made):
    figure = made.figure
    assert re.fullmatch(r"[a-z0-9-]+", figure.name)
    for text in (figure.title, figure.section, figure.caption, figure.alt):
        assert text.strip() == text
        assert text
    assert figure.caption.endswith(".")


def test_drawing_leaves_the_callers_style_alone(small):
    small("sketch-tradeoff")
    assert mpl.rcParams["font.size"] != STYLE["font.size"]


def test_names_are_unique_and_the_larger_figures_come_last():
    listed = [figure.name for file in FILES for figure in importlib.import_module(f"unbandit.paper.{file}").FIGURES]
    assert sorted(listed) == sorted(NAMES)
    larger = [(figure.beyond, figure.full_only) for figure in figures().values()]
    assert larger == sorted(larger)


def test_figures_are_chosen_by_name_in_the_order_of_the_page():
    assert [figure.name for figure in chosen_figures(list(reversed(NAMES)))] == NAMES
    assert all(not figure.full_only for figure in chosen_figures())
    beyond = [figure.name for figure in chosen_figures(beyond=True)]
    assert beyond == ["linear-learners"]
    assert [figure.name for figure in chosen_figures(full=True)] + beyond == NAMES


def test_an_unknown_name_lists_those_there_are():
    with pytest.raises(ParameterError, match=r"got \"sketch-tradeof\"\. Did you mean \"sketch-tradeoff\"\?") as refused:
        chosen_figures(["sketch-tradeof"])
    assert all(name in str(refused.value) for name in NAMES)
    with pytest.raises(ParameterError, match=r'got "x"\.$'):
        chosen_figures(["x"])
