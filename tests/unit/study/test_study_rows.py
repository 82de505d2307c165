"""What a task yields is what a patient user would get: one run after the other, simulated, kept, estimated."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import unbandit
from unbandit.instance import Bernoulli, Instance
from unbandit.study import Study
from unbandit.study.rows import rows
from unbandit.tape import Tape

GAUSSIAN = Instance([0.2, 1.0, 0.7, 0.7], 0.4, arms=["a", "b", "c", "d"], name="gaussian")
TIED = Instance([0.5, 0.9, 0.9], Bernoulli(), name="tied")
MANY = Instance(np.linspace(0, 1, 70), 0.3, name="many")
ESTIMATORS = ("switching", "counts", "naive:constant=0.5")


def one_by_one(study: Study, instance: Instance, cell: int) -> pl.DataFrame:
    """Build a cell's rows from public parts: reorder, demonstrate, estimate."""
    faced, found = study.cells[cell], []
    for estimator in study.estimators:
        for run in range(study.runs):
            order = Tape(faced.seed).orders([run], len(instance))[0]
            shuffled = instance.reordered(order)
            log = faced.rule.demonstrate(shuffled, faced.horizon, seed=faced.seed, first_run=run)
            noise = {"bernoulli": True} if isinstance(instance.noise, Bernoulli) else {"sigma": instance.sigma}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", unbandit.AssumptionWarning)
                answer = unbandit.estimate(
                    log, faced.rule, method=estimator.method, constant=estimator.constant, best_mean=instance.best_mean,
                    level=study.level, **noise,
                )  # fmt: skip
            gap = dict(zip(instance.arms, instance.gaps.tolist(), strict=True))
            pulls = {row.arm: row.pulls for row in answer}
            most = max(shuffled.arms, key=lambda arm: pulls[arm])  # the first of those tied
            for arm in instance.arms:
                row = answer[arm]
                found.append(
                    {
                        "instance": instance.name,
                        "rule": str(faced.rule),
                        "horizon": faced.horizon,
                        "estimator": str(estimator),
                        "run": run,
                        "arm": arm,
                        "position": shuffled.arms.index(arm),
                        "pulls": row.pulls,
                        "gap": gap[arm],
                        "estimate": row.gap,
                        "low": row.gap_low,
                        "high": row.gap_high,
                        "verdict": row.verdict,
                        "regret": sum(pulls[name] * gap[name] for name in pulls),
                        "found": len(answer.best) == 1 and gap[answer.best[0]] == 0,
                        "most_pulled_is_best": gap[most] == 0,
                    }
                )
    return pl.DataFrame(
        found, schema_overrides={"position": pl.Int32} | dict.fromkeys(("estimate", "low", "high"), pl.Float64)
    )


@pytest.mark.parametrize("instance", [GAUSSIAN, TIED, MANY], ids=lambda instance: instance.name)
@pytest.mark.parametrize("rule", ["ucb:alpha=0.25,scale=0.5", "ucb:ties=random", "sae:alpha=0.1,scale=0.3", "sae"])
@pytest.mark.parametrize("horizon", [60, 90, 400])
def test_rows_are_what_the_public_functions_give(instance, rule, horizon):
    study = Study(instance, rule, horizon, runs=5, seed=3, estimators=ESTIMATORS, level=0.9)
    (task,) = study.tasks
    assert_frame_equal(rows(study, task), one_by_one(study, instance, 0), rel_tol=1e-12, abs_tol=1e-12)


def test_every_order_of_the_arms_comes_up():
    study = Study(GAUSSIAN, "ucb", 20, runs=400)
    found = rows(study, study.tasks[0])
    orders = found.group_by("run", maintain_order=True).agg("position")["position"].to_list()
    assert len({tuple(order) for order in orders}) == 24
    # how often the best arm stands first: 1 in 4, within four standard errors of 400 runs
    first = found.filter(pl.col("arm") == "b", pl.col("position") == 0).height / 400
    assert abs(first - 0.25) < 4 * np.sqrt(0.25 * 0.75 / 400)


def test_blocks_of_runs_do_not_change_a_run():
    study = Study("two-armed", "ucb", 60_000, runs=400)
    assert len(study.tasks) == 2
    whole = pl.concat([rows(study, task) for task in study.tasks])
    again = Study("two-armed", "ucb", 60_000, runs=100)
    assert_frame_equal(rows(again, again.tasks[0]), whole.head(200))


def test_unresolved_runs_count_as_not_found():
    study = Study(Instance([0.5, 0.5001], 1.0), "sae", 500, runs=10)
    found = rows(study, study.tasks[0])
    assert not found["found"].any()
    assert set(found["verdict"]) == {"bounded"}
    assert found["estimate"].is_null().all()
    assert 0 < found["most_pulled_is_best"].sum() < 20
