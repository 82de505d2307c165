"""What all answers share: tables, pandas, JSON and back, HTML for notebooks, figures within figures."""

from __future__ import annotations

import builtins
import inspect
import math
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest

import unbandit as ub
from unbandit.contexts.result import ContextEstimate, OfferedArm
from unbandit.errors import Notice, ParameterError
from unbandit.fit import Check, Statistic
from unbandit.tables import Tabular, aligned

LOG = ub.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
TWO = ub.ActionLog.from_actions([list("AB" + "AAAB" * 20 + "A" * 118), list("AB" + "ABBB" * 20 + "B" * 118)])
with pytest.warns(ub.AssumptionWarning, match="still active"):
    UNDECIDED = ub.estimate(ub.ActionLog.from_actions([["A", "B"] * 30] * 2), "sae", sigma=1.0, check=False)
ANSWER = ub.estimate(LOG, "ucb", sigma=1.0, best_mean=1.0, check=False)
MANY = ub.estimate(TWO, "ucb", sigma=1.0, check=False)
RANDOM = np.random.default_rng(1)
MEANS = RANDOM.normal([1.0, 0.4], 0.1, size=(2, 20, 2))
DRAWS = ub.Posterior(
    "ucb:alpha=0.25", ub.NormalPrior(), ub.Gaussian(1.0), 200, ("A", "B"), np.array([179, 21]), MEANS, -40.0, 0.5,
    np.array([-40.2, -39.8]), 30.0, 50, lambda: np.zeros(200), np.array([1, 100, 200]), RANDOM.normal(size=(3, 2, 3)),
)  # fmt: skip
CHECK = Check("fits", 0.25, 399, statistics=(Statistic("switches", 40, 30.0, 38.0, 47.0, 0.6),))
CURVE = ub.learning_curve(LOG, "ucb", sigma=1.0, points=3)
MOMENT = ub.switching_moment(LOG, "ucb", sigma=1.0)
LINEAR = ub.ContextLog.from_arrays(RANDOM.normal(size=(40, 3, 2)), [1] * 40)
COEFFICIENTS = ub.ContextPosterior(
    "linucb:alpha=1.0", 0.5, 1.0, 0.95, (("x1", None), ("x2", None)), ("0", "1", "2"), 40, MEANS,
    MEANS.mean(axis=(0, 1)), np.diag([0.01, 0.01]), -30.0, 0.3, 20.0, 50,
)  # fmt: skip
OFFERS = (OfferedArm("1", 9, 7, 0.8, 0.7, 0.9), OfferedArm("0", 9, 2, 0.2, 0.1, 0.3))
CONTEXTS = ContextEstimate({"1": COEFFICIENTS}, {"1": OFFERS}, {"1": {"1": 0.8, "0": 0.2}})
VARIANTS = ub.sensitivity(LOG, "ucb1", sigma=1.0)
SEVERAL = ub.sensitivity(TWO, "ucb1", sigma=1.0)
PARTS = ub.stretches(LOG, "ucb", sigma=1.0, windows=2)
INSTANCE = ub.Instance([1.0, 0.5], arms="AB")
STREAM = ub.StreamingEstimate("ucb", arms="AB", sigma=1.0)
STREAM.update(list("AB" + "AAAB" * 20 + "A" * 118))
TABLES: dict[str, Tabular] = {
    "log": LOG, "logs": TWO, "offers": LINEAR, "estimate": ANSWER, "estimates": MANY, "posterior": DRAWS,
    "check": CHECK, "curve": CURVE, "moment": MOMENT, "contexts": CONTEXTS, "coefficients": COEFFICIENTS,
    "variants": VARIANTS, "variants of several": SEVERAL, "stretches": PARTS, "instance": INSTANCE, "stream": STREAM,
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_every_answer_is_a_table_of_either_library_and_html(name: str) -> None:
    table = TABLES[name]
    frame, short = table.to_frame(), table.summary()
    assert isinstance(frame, pl.DataFrame)
    assert frame.height > 0
    assert 0 < short.height <= frame.height
    other = table.to_pandas()
    assert isinstance(other, pd.DataFrame)
    assert list(other.columns) == frame.columns
    html = table._repr_html_()
    assert html.startswith("<div class='unbandit-answer'>")
    rows = len(MANY) if name == "estimates" else short.height  # an estimate shows its rows with bars
    assert html.count("<tr>") == min(rows, 40) + 1
    assert "nan" not in html
    assert len(repr(table)) < 200
    assert any(letter.isdigit() for letter in repr(table))


def test_scanned_logs_and_studies_are_tables(tmp_path: Any) -> None:
    for log in (LOG, TWO):
        scanned = ub.ActionLog.scan(log.write(tmp_path / "log.csv"))
        assert scanned.to_frame().equals(log.summary())
        assert scanned._repr_html_().count("<tr>") == log.summary().height + 1
    result = ub.Study("two-armed", "ucb", [100, 200], runs=2).run(tmp_path / "study")
    assert result.to_frame().height == 2 * 2 * 2
    assert 0 < result.summary().height <= result.to_frame().height
    assert "<StudyResult: 2 tasks" in repr(result)
    assert "StudyResult: 2 tasks" in result._repr_html_()


def test_an_instance_and_a_stream_say_their_numbers() -> None:
    assert INSTANCE.to_frame().rows() == [("A", 1.0, 0.0), ("B", 0.5, 0.5)]
    known = ub.estimate(LOG, "ucb", sigma=1.0, check=False)
    assert STREAM.to_frame().equals(known.to_frame())
    assert repr(STREAM) == "<StreamingEstimate: 200 rounds, 2 arms, ucb:alpha=0.25,scale=1.414>"


def test_a_sensitivity_is_a_mapping_and_one_table() -> None:
    assert list(VARIANTS) == ["exploration=1", "exploration=4"]
    assert dict(VARIANTS) == VARIANTS.variants
    short = VARIANTS.summary()
    assert short.columns == ["arm", "as assumed", *VARIANTS]
    assert short["arm"].to_list() == ["A", "B"]  # the best arm first
    assert short["exploration=4"][1] == VARIANTS["exploration=4"]["B"].gap
    assert short["as assumed"][1] == ub.estimate(LOG, "ucb1", sigma=1.0, check=False)["B"].gap
    assert (
        VARIANTS.to_frame().filter(variant="exploration=1").drop("variant").equals(VARIANTS["exploration=1"].to_frame())
    )
    assert SEVERAL.summary().columns[:2] == ["demonstration", "arm"]
    assert SEVERAL.summary().height == 4
    with pytest.raises(ub.ParameterError, match="this JSON has none"):
        ub.Sensitivity.from_json(ANSWER.to_json())
    assert ub.Estimate.from_json(VARIANTS.to_json()).to_frame().equals(VARIANTS.answer.to_frame())


def test_names_in_html_are_escaped() -> None:
    log = ub.ActionLog.from_actions(["<script>", "B", "B"])
    assert "<script>" not in log._repr_html_()
    assert "&lt;script&gt;" in log._repr_html_()


def test_the_old_name_of_the_table_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match=r"Estimate.frame is now Estimate.to_frame\(\)"):
        assert ANSWER.frame.equals(ANSWER.to_frame())
    with pytest.warns(DeprecationWarning, match=r"Posterior.to_frame\(\)"):
        assert DRAWS.frame(0.5).equals(DRAWS.to_frame(0.5))  # type: ignore[operator]


def test_a_missing_library_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name in ("pandas", "arviz"):
            raise ImportError(name)
        return usual(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ub.MissingExtra, match=r"'\.\[pandas\]'"):
        ANSWER.to_pandas()
    with pytest.raises(ub.MissingExtra, match=r"'\.\[arviz\]'"):
        DRAWS.to_arviz()


def test_arviz_gets_chains_draws_and_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the interface of ArviZ, and with that of version 1, which is xarray's."""
    pytest.importorskip("xarray")
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(InferenceData=dict))  # type: ignore[arg-type]
    groups = DRAWS.to_arviz()
    assert set(groups) == {"posterior", "sample_stats", "observed_data"}
    assert dict(groups["posterior"]["mean"].sizes) == {"chain": 2, "draw": 20, "arm": 2}
    np.testing.assert_array_equal(groups["posterior"]["gap"].sel(arm="B"), DRAWS.gaps[:, :, 1])
    monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace())  # type: ignore[arg-type]
    assert DRAWS.to_arviz()["posterior"]["mean"].shape == (2, 20, 2)


def test_arviz_itself_reads_the_draws() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ArviZ, about its next version
        arviz = pytest.importorskip("arviz", reason="ArviZ is not installed: pip install '.[arviz]'")
        table = arviz.summary(DRAWS.to_arviz(), var_names=["mean"])
    assert list(table.index) == ["mean[A]", "mean[B]"]
    np.testing.assert_allclose(table["mean"].astype(float), MEANS.mean(axis=(0, 1)), atol=0.01)


def test_arviz_1_reads_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the package that ArviZ 1 reads with, which older versions of Python have too."""
    base = pytest.importorskip("arviz_base", reason="arviz-base is not installed: pip install arviz-base")
    monkeypatch.setitem(sys.modules, "arviz", base)
    draws = base.extract(DRAWS.to_arviz(), var_names="mean")
    np.testing.assert_array_equal(draws.sel(arm="B"), MEANS[:, :, 1].reshape(-1))


@pytest.mark.parametrize("answer", [ANSWER, MANY, UNDECIDED], ids=["one", "several", "undecided"])
def test_an_estimate_comes_back_from_json(answer: ub.Estimate) -> None:
    again = ub.Estimate.from_json(answer.to_json())
    assert again.to_json() == answer.to_json()
    assert again.best_by_demonstration == tuple(answer.best_by_demonstration)
    assert again.to_frame().equals(answer.to_frame())
    assert again.means.shape == again.gaps.shape == (len(answer.demonstrations), len(answer.arms))


def test_a_check_comes_back_from_json() -> None:
    again = Check.from_json(CHECK.to_json())
    assert (again.to_json(), again.to_dict()) == (CHECK.to_json(), CHECK.to_dict())
    for text in ("{}", "[]", "no JSON", CHECK.to_json().replace("p_value", "chance")):
        with pytest.raises(ub.ParameterError, match="expected JSON"):
            Check.from_json(text)


def test_a_posterior_comes_back_from_json_with_its_draws() -> None:
    again = ub.Posterior.from_json(DRAWS.to_json())
    assert again.to_json() == DRAWS.to_json()
    np.testing.assert_array_equal(again.means, DRAWS.means)


def test_coefficients_come_back_from_json_with_their_draws() -> None:
    checked = replace(COEFFICIENTS, check=CHECK, notices=(Notice("fits", "It fits."),), log_evidence_error=math.nan)
    again = ub.ContextPosterior.from_json(checked.to_json())
    assert again.to_json() == checked.to_json()
    np.testing.assert_array_equal(again.coefficients, COEFFICIENTS.coefficients)
    assert again.verdicts == COEFFICIENTS.verdicts
    assert again.names == COEFFICIENTS.names
    with pytest.raises(ParameterError, match=r"got unbandit\.posterior/1"):
        ub.ContextPosterior.from_json(DRAWS.to_json())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no JSON", "this is no JSON"),
        ("[1]", "got another document"),
        ('{"schema": "unbandit.leak/1"}', "got unbandit.leak/1"),
        ('{"schema": "unbandit.posterior/1", "arms": []}', "this JSON has none"),
    ],
)
def test_json_of_something_else_is_refused(text: str, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        ub.Posterior.from_json(text)


def test_what_is_written_is_where_write_says(tmp_path: Any) -> None:
    assert LOG.write(tmp_path / "log.csv") == tmp_path / "log.csv"
    assert LINEAR.write(str(tmp_path / "offers.parquet")).exists()
    pytest.importorskip("h5netcdf")
    assert DRAWS.to_netcdf(tmp_path / "draws.nc").exists()


FIGURES = {
    "arms": lambda ax: ANSWER.plot(ax=ax),
    "errors": lambda ax: ANSWER.plot("errors", truth={"A": 1.0, "B": 0.5}, ax=ax),
    "timeline": lambda ax: TWO.plot(ax=ax),
    "pulls": lambda ax: LOG.plot("pulls", ax=ax),
    "paths": lambda ax: DRAWS.plot(ax=ax),
    "densities": lambda ax: DRAWS.plot("densities", ax=ax),
    "curve": lambda ax: CURVE.plot(ax=ax),
    "moment": lambda ax: MOMENT.plot(ax=ax),
    "variants": lambda ax: VARIANTS.plot(ax=ax),
}


def test_figures_compose_into_subplots() -> None:
    figure, grid = plt.subplots(3, 3, figsize=(20, 12), layout="constrained")
    for (name, draw), axes in zip(FIGURES.items(), grid.flat, strict=True):
        assert draw(axes) is axes, name
        assert axes.figure is figure
        assert axes.lines or axes.images, name
    figure.canvas.draw()
    boxes = [axes.get_tightbbox() for axes in grid.flat]
    inside = figure.bbox.padded(2)
    assert all(inside.contains(box.x0, box.y0) and inside.contains(box.x1, box.y1) for box in boxes)
    plt.close(figure)


def test_what_is_no_axes_is_refused() -> None:
    for wrong in ("here", plt.Figure(), []):
        with pytest.raises(ParameterError, match="expected the axes to draw into"):
            ANSWER.plot(ax=wrong)  # type: ignore[arg-type]
    figure, grid = plt.subplots(1, 2)
    with pytest.raises(ParameterError, match="expected at most 1; got 2 axes"):
        ANSWER.plot(ax=grid)
    plt.close(figure)


def test_a_column_of_numbers_has_equal_decimals() -> None:
    assert aligned([1.0, 0.25, None]) == ["1.000", "0.250", ""]
    assert aligned([3, 12_000]) == ["3", "12,000"]
    assert aligned([float("nan"), 1e-5]) == ["", "0.00001000"]


@pytest.mark.parametrize("name", [*ub.rules(), *ub.linear_rules()])
def test_a_rule_shows_its_own_parameters_first_and_nothing_of_pydantic(name: str) -> None:
    rule = ub.parse_rule(name)
    names = list(inspect.signature(type(rule)).parameters)
    assert set(names) == set(type(rule).model_fields)
    shared = [at for at, each in enumerate(names) if each in ("initial", "batch", "delay")]
    own = [at for at, each in enumerate(names) if each in inspect.get_annotations(type(rule))]
    assert not own or not shared or max(own) < max(shared)
    listed = dir(rule)
    assert not [each for each in listed if each.startswith("model_") or each in ("copy", "json", "parse_obj", "schema")]
    assert {*names, "demonstrate", "name"} <= set(listed)
    assert eval(repr(rule), {type(rule).__name__: type(rule)}) == rule
    assert rule._repr_html_().count("<tr>") == len(names) + 1


def test_a_rule_is_written_briefly() -> None:
    assert repr(ub.UCB(alpha=0.5, scale=1.0)) == "UCB(alpha=0.5, scale=1.0)"
    assert repr(ub.UCB(alpha=0.5, scale=1.0, batch=3)) == "UCB(alpha=0.5, scale=1.0, batch=3)"
