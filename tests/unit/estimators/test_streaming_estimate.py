"""An estimate kept up to date: at every moment the estimate of everything so far; its snapshots."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import unbandit as ub
from unbandit import StreamingEstimate

RULES = ["ucb:alpha=0.25", "sae:alpha=0,scale=0.5", "ucb1", "phased", "lilucb"]


def played(rule, horizon=600, seed=3):
    instance = ub.Instance([1.0, 0.7, 0.4, 0.1], 1.0, ["d", "b", "a", "c"])
    return ub.parse_rule(rule).demonstrate(instance, horizon, seed=seed)


def same(ours, theirs):
    of_rows, of_columns = ours.to_dict(), theirs.to_dict()
    of_columns.pop("demonstration_column", None)  # rows that are given one by one have none
    assert of_rows == of_columns


@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
@pytest.mark.parametrize("rule", RULES)
def test_every_moment_equals_the_estimate_of_everything_so_far(rule):
    log = played(rule)
    streaming = StreamingEstimate(rule, arms=log.arms, sigma=1.0, best_mean=1.0)
    done = 0
    for size in (1, 2, 1, 6, 90, 200, 300):
        streaming.update(log.actions[done : done + size])
        done += size
        so_far = ub.ActionLog.from_codes(log.actions[:done], log.arms)
        same(streaming.estimate(), ub.estimate(so_far, rule, sigma=1.0, best_mean=1.0))


@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
@pytest.mark.parametrize(
    "options", [{}, {"method": "counts"}, {"method": "naive"}, {"pool": True}, {"scale": "unknown"}]
)
def test_several_demonstrations_side_by_side(options):
    logs = {name: played("ucb:alpha=0.25", seed=seed) for name, seed in (("x", 1), ("y", 2))}
    streaming = StreamingEstimate("ucb:alpha=0.25", sigma=None if "scale" in options else 1.0, **options)
    for start in range(0, 600, 150):
        for name, log in logs.items():
            streaming.update([log.arms[code] for code in log.actions[start : start + 150]], name)
    rows = [(name, log.arms[code]) for name, log in logs.items() for code in log.actions]
    whole = ub.ActionLog.from_frame(pl.DataFrame(rows, schema=["demonstration", "arm"], orient="row"))
    same(streaming.estimate(), ub.estimate(whole, streaming.rule, **streaming.options))


@pytest.mark.filterwarnings("ignore::unbandit.AssumptionWarning")
@pytest.mark.parametrize("rule", RULES[:2])
def test_a_snapshot_goes_on_where_it_was(tmp_path, rule):
    log, path = played(rule), tmp_path / "state"
    first = StreamingEstimate(rule, snapshot=path, sigma=1.0, anchor={"d": 1.0})
    first.update([log.arms[code] for code in log.actions[:250]])
    first.save()
    for second in (StreamingEstimate.load(path), StreamingEstimate(rule, snapshot=path, sigma=1.0, anchor={"d": 1.0})):
        second.update([log.arms[code] for code in log.actions[250:]])
        labels = [log.arms[code] for code in log.actions]
        same(second.estimate(), ub.estimate(labels, rule, sigma=1.0, anchor={"d": 1.0}))
    assert StreamingEstimate.load(path).log.lengths.tolist() == [250]


def test_a_damaged_snapshot_is_refused_with_the_remedy(tmp_path):
    path = tmp_path / "state"
    streaming = StreamingEstimate("ucb", sigma=1.0)
    streaming.update(["A", "B"])
    streaming.save(path)
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[: len(whole) // 2], whole[:-9] + b"x" + whole[-8:], whole[:60]):
        path.write_bytes(damaged)
        with pytest.raises(ub.ResumeError, match=r"its checksum does not fit, so it is damaged\. Remove it"):
            StreamingEstimate.load(path)
    for other, said in (
        (b"arm\nA\n", "another kind of file"),
        (whole.replace(b"snapshot 1", b"snapshot 2"), "version 2"),
    ):
        path.write_bytes(other)
        with pytest.raises(ub.ResumeError, match=said):
            StreamingEstimate.load(path)
    with pytest.raises(ub.ResumeError, match="No such file"):
        StreamingEstimate.load(tmp_path / "nothing")


def test_a_snapshot_of_something_else_is_refused(tmp_path):
    path = tmp_path / "state"
    streaming = StreamingEstimate("ucb", sigma=1.0)
    streaming.update(["A", "B"])
    streaming.save(path)
    with pytest.raises(ub.ResumeError, match="for a rule that eliminates and arms as they come; got one for an index"):
        StreamingEstimate("sae", snapshot=path)
    with pytest.raises(ub.ResumeError, match="3 arms listed; got one for an index rule and arms as they come"):
        StreamingEstimate("ucb", arms="ABC", snapshot=path)


def test_a_snapshot_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "state"
    streaming = StreamingEstimate("ucb", sigma=1.0)
    streaming.update(["A", "B"])
    streaming.save(path)
    before = path.read_bytes()

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(ub.OutputError, match="No space left on device"):
        streaming.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["state"]


def test_what_needs_rounds_is_refused_at_once():
    with pytest.raises(ub.ParameterError, match="method: posterior looks at rounds one by one"):
        StreamingEstimate("thompson")
    with pytest.raises(ub.ParameterError, match="method: bootstrap looks at rounds"):
        StreamingEstimate("ucb", method="bootstrap")
    with pytest.raises(ub.ParameterError, match="expected a file to write the snapshot to"):
        StreamingEstimate("ucb").save()


def test_more_arms_can_be_listed_than_numbers_have_come():
    streaming = StreamingEstimate("ucb", arms=range(10))
    streaming.update([0, 1, 0])
    assert streaming.log.pulls.tolist() == [[2, 1, *[0] * 8]]


def test_numbers_go_on_from_a_snapshot_that_knows_more_arms(tmp_path):
    streaming = StreamingEstimate("ucb")
    streaming.update([str(arm) for arm in range(10)])
    streaming.save(tmp_path / "state")
    again = StreamingEstimate.load(tmp_path / "state")
    again.update([0, 1])
    assert again.log.pulls.tolist() == [[2, 2, *[1] * 8]]


@pytest.mark.parametrize("known", [{"best_mean": np.int64(1)}, {"anchor": {np.str_("d"): np.float32(1)}}])
def test_numbers_of_numpy_may_stand_among_the_options(tmp_path, known):
    log, path = played("ucb:alpha=0.25"), tmp_path / "state"
    options = {"sigma": np.float32(1), "level": np.float64(0.9), "pool": np.bool_(False), **known}
    streaming = StreamingEstimate("ucb:alpha=0.25", **options)
    streaming.update([log.arms[code] for code in log.actions])
    streaming.save(path)
    assert StreamingEstimate.load(path).options == streaming.options
    same(StreamingEstimate.load(path).estimate(), ub.estimate(log, "ucb:alpha=0.25", **options))
