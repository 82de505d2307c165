"""Caption contest 559: 5,012 captions, chosen by a production system, from final pull counts alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unbandit import ActionLog, estimate

FILE = Path(__file__).parents[3] / "shared" / "data" / "caption_559.csv"
RULE = "lilucb:reward_range=2,delta=0.05"

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")


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


def test_several_known_captions_agree_on_one_level(captions, found):
    # 20 captions from all over the table: the level is that of all, and the other means follow from it.
    means, _, _ = found
    log = ActionLog.from_frame(captions.select("arm", "pulls"))
    known = captions.sort("pulls").gather_every(captions.height // 20).select("arm", "mean").rows()
    answer = estimate(log, RULE, method="counts", sigma=0.5, anchor=dict(known))
    assert "common-level" in [notice.code for notice in answer.notes]
    assert np.median(np.abs(answer.columns.mean[0] - means)) <= 0.005


def test_a_caption_that_was_held_back_does_not_move_the_others(captions, found):
    # The most-shown caption is said to be 0.4 better than its count shows: from it alone all means are 0.4 too high.
    means, _, best = found
    log = ActionLog.from_frame(captions.select("arm", "pulls"))
    top = log.arms[best]
    known = dict(captions.sort("pulls").gather_every(captions.height // 8).select("arm", "mean").rows())
    alone = estimate(log, RULE, sigma=0.5, anchor={top: means[best] + 0.4})
    answer = estimate(log, RULE, sigma=0.5, anchor=known | {top: means[best] + 0.4})
    assert np.median(alone.columns.mean[0] - means) == pytest.approx(0.4, abs=0.01)
    assert np.median(np.abs(answer.columns.mean[0] - means)) <= 0.005
    assert np.median(np.abs(answer.columns.gap[0] - (means[best] + 0.4 - means))) <= 0.005
    assert [notice.arm for notice in answer.warnings if notice.code == "above-level"] == [top]
    (other,) = answer.alternatives.values()
    assert np.median(other.columns.mean[0] - means) == pytest.approx(0.4, abs=0.01)


def test_known_captions_show_a_wrong_range_of_ratings(captions):
    log = ActionLog.from_frame(captions.select("arm", "pulls"))
    known = dict(captions.sort("pulls").gather_every(captions.height // 100).select("arm", "mean").rows())
    answer = estimate(log, "lilucb:reward_range=1,delta=0.05", sigma=0.5, anchor=known)
    (notice,) = [notice for notice in answer.warnings if notice.code == "width-factor"]
    assert 1.9 < float(notice.message.split("fit a width ")[1].split()[0]) < 2.1
