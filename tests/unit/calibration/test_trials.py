"""Trials: what is played depends on the setting, the seed and the run alone, and so do the bytes of the rows."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from unbandit import KLUCB, SAE, UCB, Bernoulli, Gaussian, InferenceError, ParameterError, ResumeError, Tape
from unbandit.calibration import posterior
from unbandit.calibration.identify import (
    CANNOT_TELL,
    RIGHT,
    WRONG,
    ForeignSetting,
    Identify,
    IdentifyTrials,
    drawn_rule,
    reordered,
    row_of,
)
from unbandit.calibration.posterior import LONG, Posteriors, PosteriorTrials, Sampler, SamplerTrials
from unbandit.calibration.settings import BERNOULLI, BETA, FAMILY_CELLS, GAUSSIAN, Sizes, TrialSetting
from unbandit.calibration.trials import play
from unbandit.demonstrators import parse_rule
from unbandit.inference import infer
from unbandit.study.dispatch import run, run_task
from unbandit.study.monte_carlo import RANKS
from unbandit.study.results import Result

SETTINGS = (
    TrialSetting(UCB(), arms=3, horizon=120, runs=5),
    TrialSetting(SAE(scale=0.2), arms=4, horizon=12_000, runs=3),
    TrialSetting(KLUCB(), arms=2, horizon=60, runs=2, prior=BETA, noise=Bernoulli()),
)
WORK = PosteriorTrials(SETTINGS, particles=20, clouds=2, draws=60)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    return run(WORK, tmp_path_factory.mktemp("trials"), threads=1)


@pytest.fixture(scope="module")
def rows(done) -> pl.DataFrame:
    return Result(WORK, done).scan().collect()


def test_a_trial_holds_the_truth_behind_its_record():
    setting = SETTINGS[0]
    trial = play(setting, seed=1, run=3)
    actions, tape = trial.log.demonstration(0), Tape(setting.seed(1))
    pulls, sums = np.zeros(3, int), np.zeros(3)
    for arm in actions.tolist():
        pulls[arm] += 1
        sums[arm] += tape.reward(trial.instance, 3, arm, pulls[arm])
    assert trial.log.pulls[0].tolist() == pulls.tolist()
    np.testing.assert_allclose(trial.sums, sums)
    assert trial.seed not in (1, setting.seed(1))


def test_a_trial_depends_on_setting_seed_and_run_alone():
    few, many = (TrialSetting(UCB(), 3, 120, runs) for runs in (5, 50))
    one, again, other = play(few, 1, 4), play(many, 1, 4), play(few, 1, 3)
    assert np.array_equal(one.instance.means, again.instance.means)
    assert np.array_equal(one.log.actions, again.log.actions)
    assert one.seed == again.seed != other.seed
    assert not np.array_equal(one.instance.means, other.instance.means)
    assert not np.array_equal(one.instance.means, play(few, 2, 4).instance.means)


def test_means_come_from_the_prior():
    means = np.concatenate([play(SETTINGS[0], 1, run).instance.means for run in range(200)])
    assert abs(means.mean()) < 4 / np.sqrt(600)
    assert abs(means.std() - 1) < 4 / np.sqrt(1_200)
    coins = np.concatenate([play(SETTINGS[2], 1, run).instance.means for run in range(200)])
    assert abs(coins.mean() - 0.5) < 4 * np.sqrt(1 / 12 / 400)


def test_rows_hold_every_run_and_arm(rows):
    assert rows.height == 5 * 3 + 3 * 4 + 2 * 2
    assert rows.n_unique(["rule", "arms", "horizon", "run", "arm"]) == rows.height
    pulled = rows.group_by("rule", "arms", "horizon", "run").agg(pl.col("pulls").sum())
    assert (pulled["pulls"] == pulled["horizon"]).all()
    assert rows["failure"].null_count() == rows.height
    assert rows.drop("failure", "warnings").null_count().sum_horizontal().item() == 0
    assert rows["rank"].is_between(0, RANKS).all()
    assert (rows["mean_low"] <= rows["mean_estimate"]).all()
    assert (rows["gap_low"] >= 0).all()
    chance = rows.group_by("rule", "run").agg(pl.col("probability_best").sum())
    assert chance["probability_best"].round(9).unique().to_list() == [1.0]
    assert (rows.group_by("rule", "run").agg(pl.col("gap").min())["gap"] == 0).all()


def test_rows_are_those_of_the_posterior_itself(rows):
    setting, trial = SETTINGS[0], play(SETTINGS[0], 1, 2)
    size = {"particles": 20, "clouds": 2, "draws": 60}
    found = infer(trial.log, UCB(), setting.prior, setting.noise, [120], **size, seed=trial.seed)
    own = rows.filter(rule=str(UCB()), run=2)
    np.testing.assert_array_equal(own["mean_estimate"], found.draws.mean(axis=0))
    np.testing.assert_array_equal(np.array([own["gap_low"], own["gap_high"]]), found.interval(0.95, gaps=True))
    assert set(own["log_evidence"]) == {found.log_evidence}
    np.testing.assert_array_equal(own["between"], found.means.mean(axis=1).std(axis=0, ddof=1))
    assert own["naive_gap"].min() == 0  # the most-pulled arm
    least = own.sort("pulls").row(0, named=True)
    assert least["naive_gap"] == pytest.approx(np.sqrt(2) * 0.5 * np.sqrt(np.log(120) / least["pulls"]))


def test_threads_do_not_change_a_byte(done, tmp_path):
    run(WORK, tmp_path, threads=2)
    assert contents(tmp_path) == contents(done)


def test_stopped_it_goes_on_to_the_same_bytes(done, tmp_path, monkeypatch):
    class Stopped:
        calls = 0

        def __call__(self, *given, **options):
            self.calls += 1
            if self.calls > 6:
                raise KeyboardInterrupt
            return real(*given, **options)

    real = posterior.infer_by_conventions
    monkeypatch.setattr(posterior, "infer_by_conventions", Stopped())
    with pytest.raises(KeyboardInterrupt):
        run(WORK, tmp_path, threads=1)
    monkeypatch.undo()
    kept = len(list((tmp_path / "parts").glob("*.parquet")))
    assert 0 < kept < len(WORK.tasks)
    run(WORK, tmp_path, threads=1)
    assert contents(tmp_path) == contents(done)


def test_a_run_without_a_posterior_is_recorded(tmp_path, monkeypatch):
    def failing(log, *given, **options):
        if log.pulls[0, 0] % 2:
            raise InferenceError("round 7: none of 20 particles explains the log.")
        return real(log, *given, **options)

    real = posterior.infer_by_conventions
    monkeypatch.setattr(posterior, "infer_by_conventions", failing)
    rows = Result(WORK, run(WORK, tmp_path, threads=1)).scan().collect()
    failed = rows.filter(pl.col("failure").is_not_null())
    assert 0 < failed.height < rows.height
    assert set(failed["failure"]) == {"round 7: none of 20 particles explains the log."}
    assert failed["mean_low"].null_count() == failed["rank"].null_count() == failed.height
    assert failed.select("mean", "gap", "pulls", "informed_deviation").null_count().sum_horizontal().item() == 0
    assert rows.height == 31


def test_a_task_can_be_done_anywhere(done, tmp_path):
    (tmp_path / "parts").mkdir()
    again = pickle.loads(pickle.dumps(WORK))
    assert again == WORK
    assert run_task(again, 1, tmp_path).rounds == WORK.tasks[1].rounds
    assert (tmp_path / "parts" / "00001.parquet").read_bytes() == (done / "parts" / "00001.parquet").read_bytes()


def test_another_calibration_is_refused(done):
    for other, said in (
        (PosteriorTrials(SETTINGS, 1, 30, 2, draws=60), "particles: the folder has 20, asked for 30"),
        (PosteriorTrials(SETTINGS[:1], 1, 20, 2, draws=60), "asked for no other"),
        (PosteriorTrials(SETTINGS, 2, 20, 2, draws=60), "seed: the folder has 1, asked for 2"),
    ):
        with pytest.raises(ResumeError, match=said):
            run(other, done)
    with pytest.raises(ParameterError, match="seed"):
        PosteriorTrials(SETTINGS, seed=-1)


def test_every_cell_of_every_rule_is_there():
    by_rule = dict(Posteriors().trials(Sizes()))
    assert set(by_rule) == {*GAUSSIAN, *BERNOULLI}
    assert {parse_rule(text).name for text in by_rule} == {
        "ucb", "ucb1", "klucb", "lilucb", "moss", "ucbv", "sae", "phased", "thompson", "epsilon-greedy", "softmax",
        "learning-softmax", "exp3",
    }  # fmt: skip
    for work in by_rule.values():
        assert {(cell.arms, cell.horizon) for cell in work.cells} == {
            (arms, horizon) for arms in (2, 4, 10) for horizon in (500, 2_000, 5_000)
        }
        assert all(cell.runs >= 300 for cell in work.cells)
        assert not any(cell.rule.bernoulli_only and cell.sigma is not None for cell in work.cells)
        assert (work.particles, work.clouds, work.draws) == (None, 4, 1_000)  # what users get
    few = dict(Posteriors().trials(Sizes(runs=2, seed=3, particles=9, clouds=1)))["ucb1"]
    assert (few.cells[0].runs, few.seed, few.particles, few.clouds) == (2, 3, 9, 1)


def test_what_takes_longest_is_known_beforehand():
    work = dict(Posteriors().trials(Sizes()))["ucb1"]
    by_run = {
        work.cells[task.cell].arms: work.cost(task) / (task.last_run - task.first_run)
        for task in work.tasks
        if work.cells[task.cell].horizon == 2_000
    }
    assert by_run[2] < by_run[4] < by_run[10]
    assert by_run[10] == pytest.approx(5 * by_run[2])


def test_a_long_run_is_made_of_the_same_records(monkeypatch):
    asked = []

    def watched(log, *given, **options):
        asked.append((log.actions.tolist(), options["particles"], options["seed"]))
        return real(log, *given, **options)

    real = posterior.infer_by_conventions
    monkeypatch.setattr(posterior, "infer_by_conventions", watched)
    work = SamplerTrials((TrialSetting(UCB(), 3, 120, 3),), particles=20, clouds=2, draws=60)
    rows = pl.concat([work.rows(task) for task in work.tasks])
    assert asked[0][0] == asked[1][0] == play(work.cells[0], 1, 0).log.actions.tolist()
    assert [particles for _, particles, _ in asked] == [20, 20 * LONG] * 3
    assert asked[0][2] != asked[1][2]
    found = Sampler().metrics(work.cells[0], rows)
    own, long = (((rows[name] - rows["gap"]) ** 2).sum() for name in ("gap_estimate", "long_gap"))
    assert found.against_long.value == pytest.approx(np.sqrt(own / long))
    off = rows.group_by("run").first().select((pl.col("log_evidence") - pl.col("long_log_evidence")) ** 2).to_series()
    assert found.evidence_off.value == pytest.approx(np.sqrt(off.mean()))


def test_a_rule_as_other_programs_play_it_opens_arms_in_an_order_of_its_own_and_keeps_what_was_given():
    own = ForeignSetting(parse_rule("ucb1:ties=random"), 5, 60, 4, BETA, Bernoulli(), "random ties")
    assert drawn_rule(own.rule, own.noise, np.random.default_rng(1)).ties == "random"
    assert own.seed(1) != TrialSetting(own.rule, 5, 60, 4, BETA, Bernoulli()).seed(1)
    assert (row_of(own), own.described["way"]) == ("ucb1, random ties", "random ties")
    plain = play(TrialSetting(UCB(), 5, 60, 4), 1, 0)
    order = np.array([3, 0, 4, 1, 2])
    renamed = reordered(plain, order)
    assert renamed.log.demonstration(0)[:5].tolist() == order.tolist()
    for arm, name in enumerate(order):
        assert renamed.instance.means[name] == plain.instance.means[arm]
        assert renamed.log.pulls[0][name] == plain.log.pulls[0][arm]
        assert renamed.sums[name] == plain.sums[arm]


def test_usual_parameters_are_played_as_they_are_and_other_ones_are_drawn(monkeypatch):
    every = dict(Identify().trials(Sizes(runs=2)))
    usual = {name: work for name, work in every.items() if name.endswith("on usual parameters")}
    assert {name.partition(" ")[0] for name in usual} == {name for name in every if " on " not in name}
    work = usual["learning-softmax on usual parameters"]
    assert work.cells[0].seed(1) != every["learning-softmax"].cells[0].seed(1)
    monkeypatch.setattr(IdentifyTrials, "one", lambda self, trial: {"played": [str(trial.setting.rule)]})
    monkeypatch.setattr(IdentifyTrials, "columns", {"played": pl.String})
    few = replace(work, cells=[replace(work.cells[0], horizon=40)])
    assert set(few.rows(few.tasks[0])["played"]) == {str(work.cells[0].rule)}
    drawn = [drawn_rule(work.cells[0].rule, Gaussian(0.5), np.random.default_rng(each)).rate for each in range(50)]
    assert 0.05 <= min(drawn) < 0.07
    assert 0.6 < max(drawn) <= 0.9


def test_logs_of_other_programs_are_measured_with_the_rules():
    every = Identify().trials(Sizes(runs=2))
    named = {name: work for name, work in every if " on " in name and not name.endswith("usual parameters")}
    assert set(named) == {
        "ucb1 on random ties", "ucb1 on random opening", "epsilon-greedy on first arm at random"
    }  # fmt: skip
    cells = [cell for work in named.values() for cell in work.cells]
    assert len({cell.described["name"] for cell in cells}) == len(cells) == 3 * len(FAMILY_CELLS)
    few = replace(named["ucb1 on random opening"], cells=[replace(cells[2], horizon=40)], among=("ucb1", "uniform"))
    first, again = (few.rows(few.tasks[0]) for _ in range(2))
    assert first.equals(again)
    assert set(first["outcome"]) <= {RIGHT, WRONG, CANNOT_TELL}
