"""Caption contest 559: 5,012 captions, chosen by a production system, from final pull counts alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unbandit import ActionLog, estimate

FILE = Path(__file__).parents[3] / "shared" / "data" / "caption_559.csv"
RULE = "lilucb:reward_range=2,delta=0.05"


@pytest.fixture(scope="module")
def captions():
    if not FILE.exists():
        pytest.skip(f"the contest's file is not part of this project, and there is none at {FILE}")
    return pl.read_csv(FILE).filter(pl.col("algorithm") == "LilUCB").with_columns(pl.col("arm").cast(pl.String))


@pytest.fixture(scope="module")
def found(captions):
    """Return every caption's hidden sample mean, and its estimated gap, in one order."""
    answer = estimate(ActionLog.from_frame(captions.select("arm", "pulls")), RULE, method="counts", sigma=0.5)
    hidden = dict(zip(captions["arm"], captions["mean"], strict=True))
    means = np.array([hidden[arm] for arm in answer.arms])
    return means, answer.gaps[0], answer.arms.index(answer.best[0])


def test_every_caption_is_estimated(captions, found):
    _, gaps, _ = found
    assert captions.height == gaps.size == 5_012
    assert int(captions["pulls"].sum()) == 249_306
    assert not np.isnan(gaps).any()


def test_gaps_are_those_of_the_hidden_sample_means(found):
    means, gaps, best = found
    assert np.median(np.abs(gaps - (means[best] - means))) <= 0.005
    assert np.corrcoef(gaps, -means)[0, 1] >= 0.997


def test_one_known_caption_gives_all_means(captions, found):
    means, _, _ = found
    log = ActionLog.from_frame(captions.select("arm", "pulls"))
    often = captions.sort("pulls", descending=True).row(10, named=True)
    answer = estimate(log, RULE, method="counts", sigma=0.5, anchor={often["arm"]: often["mean"]})
    assert np.median(np.abs(answer.columns.mean[0] - means)) <= 0.005
