"""Populations: the measure counts what holds, the same seed gives the same rows, and every measure can be recorded."""

import json
from dataclasses import fields

import numpy as np
import polars as pl
import pytest

from unbandit.calibration import population
from unbandit.calibration.calibrate import MEASURES
from unbandit.calibration.measure import MET, MISSED
from unbandit.calibration.population import PopulationCell, Populations, PopulationTrials, population_metrics
from unbandit.calibration.record import encode

CELL = PopulationCell("softmax", 4, 2, 20, 2)


def test_an_experiment_is_made_and_read():
    trials = PopulationTrials((CELL,), 1, particles=10)
    first, again = (trials.rows(trials.tasks[1]) for _ in range(2))
    assert first.equals(again)
    assert first["run"].to_list() == [1]
    assert first["parameter"].to_list() == ["temperature"]
    assert first["failure"].null_count() == 1
    assert 0 <= first["people"][0] <= 1
    assert first["squared"][0] > 0
    assert first["flagged"].null_count() == 0
    short = PopulationTrials((PopulationCell("softmax", 4, 2, 3, 1),), 1, particles=10)  # too few rounds to compare
    assert short.rows(short.tasks[0])["flagged"].to_list() == [None]


def test_a_refusal_is_kept(monkeypatch):
    monkeypatch.setattr(population, "CENTRES", {"softmax:temperature=0.1": {"temperature": (0.1, 0.2)}})
    trials = PopulationTrials((PopulationCell("softmax:temperature=0.1", 2, 2, 5, 1),), 1)
    rows = trials.rows(trials.tasks[0])
    assert "nothing is left to estimate" in rows["failure"][0]


def test_metrics_count_what_holds():
    cell, runs = PopulationCell("softmax", 60, 2, 100, 40), 40
    rows = pl.DataFrame(
        {
            "run": range(runs), "parameter": ["temperature"] * runs, "centre": [True] * 38 + [False] * 2,
            "spread": [True] * 20 + [False] * 20, "flagged": [True] * 8 + [False] * 32, "people": [0.95, 0.96] * 20,
            "squared": np.linspace(0.9, 1.1, runs), "squared_alone": np.linspace(3.6, 4.4, runs),
            "failure": [None] * runs,
        },
        schema_overrides={"failure": pl.String},
    )  # fmt: skip
    found = population_metrics(cell, rows)
    assert (found.centres["temperature"].held, found.centres["temperature"].runs) == (38, 40)
    assert found.errors["temperature"].value == pytest.approx(0.5)
    verdicts = {each.key: each.scores[0].verdict for each in Populations().criteria([found])}
    assert verdicts["population, spread"] == verdicts["population, check"] == MISSED
    assert found.flagged is not None
    assert (found.flagged.held, found.flagged.runs) == (8, 40)
    assert verdicts["population, people"] == verdicts["population, pooling"] == MET
    some = population_metrics(cell, rows.with_columns(flagged=pl.when(pl.col("run") < 10).then("flagged")))
    assert some.flagged is not None
    assert (some.flagged.held, some.flagged.runs, some.answered.runs) == (8, 10, 40)
    none = population_metrics(cell, rows.with_columns(flagged=pl.lit(None, pl.Boolean)))
    assert none.flagged is None
    assert "population, check" not in {each.key for each in Populations().criteria([none])}
    json.dumps([encode(getattr(found, each.name)) for each in fields(found)[1:]], allow_nan=False)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
def test_every_measure_can_be_recorded(measure):
    assert fields(measure.metrics_type)[0].name in ("cell", "setting", "trial", "timing")
