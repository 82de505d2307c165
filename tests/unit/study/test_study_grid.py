"""What a study is: its cells, their seeds, its tasks, and what it refuses."""

from __future__ import annotations

import dataclasses
import pickle
import re
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbandit import (
    SAE,
    UCB,
    Bernoulli,
    Demonstrator,
    Instance,
    NotIdentifiable,
    ParameterError,
    datasets,
)
from unbandit.demonstrators.base import known_rules
from unbandit.study import Estimator, ShrinkingGap, Study, spaced, taskgrid
from unbandit.study.rows import rows
from unbandit.study.taskgrid import TASK_ROUNDS, TASK_ROWS, Tasks, runs_per_task

GRID = {
    "instances": ["two-armed", "linear", ShrinkingGap(0.5)],
    "rules": ["ucb:alpha=0.25", SAE()],
    "horizons": [500, 1_000],
    "runs": 100,
}


@dataclass(frozen=True)
class Fading:
    """A family of a user's own."""

    factor: float = 1.0
    name: str = "fading"

    def __call__(self, horizon: int) -> Instance:
        return Instance([1.0, 1.0 - self.factor / np.log(horizon)], 0.5)


def test_cells_are_the_product_in_the_order_given():
    cells = Study(**GRID).cells
    assert [(cell.instance_name, cell.rule.name, cell.horizon) for cell in cells] == [
        (instance, rule, horizon)
        for instance in ("two-armed", "linear", "shrinking-gap beta=0.5")
        for rule in ("ucb", "sae")
        for horizon in (500, 1_000)
    ]
    assert len(cells[4].instance) == 4
    assert cells[-1].instance.gaps.max() == pytest.approx(1_000**-0.5)
    assert cells[-2].instance.gaps.max() == pytest.approx(500**-0.5)


def test_a_cells_seed_depends_on_the_cell_alone():
    whole = Study(**GRID)
    assert len({cell.seed for cell in whole.cells}) == len(whole.cells)
    alone = Study("linear", "sae", 1_000, runs=7, estimators=["naive"], level=0.5)
    (same,) = [c for c in whole.cells if (c.instance_name, c.rule.name, c.horizon) == ("linear", "sae", 1_000)]
    assert alone.cells[0].seed == same.seed
    assert dataclasses.replace(alone, seed=2).cells[0].seed != same.seed
    faced = datasets.load("linear")
    renamed = Instance(faced.means, faced.noise, faced.arms, "other")
    noisier = Instance(faced.means, 0.6, faced.arms, "linear")
    shifted = Instance(faced.means + 1, faced.noise, faced.arms, "linear")
    for other in (renamed, noisier, shifted):
        assert dataclasses.replace(alone, instances=[other]).cells[0].seed != same.seed
    nearly = Instance(np.nextafter(faced.means, 2), faced.noise, faced.arms, "linear")
    assert dataclasses.replace(alone, instances=[nearly]).cells[0].seed == same.seed


def test_a_cells_seed_is_the_same_in_every_version():
    # pinned: another number here means that every study's numbers change
    assert Study("two-armed", "ucb", 500, runs=2).cells[0].seed == 6725853492423288520
    assert all(0 <= cell.seed < 2**64 for cell in Study(**GRID).cells)


@given(
    st.lists(st.tuples(st.integers(1, 10**8), st.integers(1, 10**6)), min_size=1, max_size=6),
    st.integers(2, 400),
)
def test_tasks_hold_every_run_of_every_cell_once(cells, runs):
    sizes = [(horizon, runs_per_task(horizon, rows)) for horizon, rows in cells]
    tasks = Tasks(sizes, runs)
    seen = [[] for _ in cells]
    for at, task in enumerate(tasks):
        assert task.number == at
        count = task.last_run - task.first_run
        horizon, rows = cells[task.cell]
        assert task.rounds == count * horizon
        assert count == 1 or (task.rounds <= TASK_ROUNDS and count * rows <= TASK_ROWS)
        seen[task.cell] += range(task.first_run, task.last_run)
    assert seen == [list(range(runs))] * len(cells)
    assert tasks[:] == list(tasks)
    assert tasks[-1] == tasks[len(tasks) - 1]
    with pytest.raises(IndexError):
        _ = tasks[len(tasks)]


def test_the_size_of_a_task_does_not_depend_on_the_runs():
    few, many = (Study("two-armed", "ucb", 10_000, runs=runs) for runs in (5_000, 50_000))
    assert few.tasks[0] == many.tasks[0]
    assert few.tasks[0].last_run == 2_000


def test_a_huge_study_is_quick_to_plan():
    began = time.perf_counter()
    study = Study(["two-armed"], ["ucb"], [1_000_000], runs=2**32 - 1)
    assert len(study.tasks) == -(-(2**32 - 1) // 20)
    assert study.tasks[-1].last_run == 2**32 - 1
    assert study.rounds == 1_000_000 * (2**32 - 1)
    assert time.perf_counter() - began < 1


def test_many_arms_make_small_tasks():
    study = Study("gene", "ucb", 1_000, runs=100, estimators=["switching", "naive"])
    assert study.tasks[0].last_run == TASK_ROWS // (2 * 12_979)


def test_equal_grids_are_equal_studies():
    study = Study(**GRID)
    again = Study(
        [datasets.two_armed(), datasets.linear(), ShrinkingGap(0.5)],
        [UCB(alpha=0.25), "sae:alpha=0.25"], np.array([500, 1_000]), np.int64(100), 1, [Estimator("bracket")],
    )  # fmt: skip
    assert study == again
    assert hash(study) == hash(again)
    assert len({study, again}) == 1
    assert study != dataclasses.replace(study, runs=101)
    assert study != "study"


def test_a_study_pickles():
    study = Study(**GRID, estimators=["naive:constant=0.75"])
    _ = study.cells, study.tasks
    again = pickle.loads(pickle.dumps(study))
    assert again == study
    assert [cell.seed for cell in again.cells] == [cell.seed for cell in study.cells]


def test_single_things_need_no_list():
    assert Study("two-armed", "ucb", 500, 10) == Study(["two-armed"], ["ucb"], [500], 10)
    assert Study(datasets.two_armed(), UCB(), 500, 10, estimators="counts").estimators == (Estimator("counts"),)
    assert Study(ShrinkingGap(0.1), UCB(), 500, 10).cells[0].instance_name == "shrinking-gap beta=0.1"


def test_the_identity_names_all_that_matters():
    study = Study([*GRID["instances"], "gene", Instance([0.2, 0.1], Bernoulli(), "AB", "coins")], *["ucb", 500, 100])
    said = study.identity
    assert said["schema"] == "unbandit.study/2"
    assert (said["polars"], len(said["code"])) == (pl.__version__, 12)
    two, linear, shrinking, gene, coins = said["instances"]
    assert two["means"] == [1.0, 0.5]
    assert linear["arms"] == list("0123")
    assert shrinking == {
        "name": "shrinking-gap beta=0.5", "family": "shrinking-gap", "beta": 0.5, "bernoulli": False,
    }  # fmt: skip
    assert (gene["arms"], len(gene["sha256"])) == (12_979, 64)
    assert "means" not in gene
    assert coins == {"name": "coins", "noise": "Bernoulli()", "arms": ["A", "B"], "means": [0.2, 0.1]}
    for change in ({"runs": 101}, {"seed": 2}, {"level": 0.9}, {"estimators": "counts"}, {"horizons": [501]}):
        assert dataclasses.replace(study, **change) != study


def test_of_many_arms_every_bit_counts():
    gene = datasets.load("gene")
    nearly = Instance(np.nextafter(gene.means, 2), gene.noise, gene.arms, gene.name)
    one, other = (Study(instance, "ucb", 500, 10) for instance in (gene, nearly))
    assert one != other
    assert one.digest != other.digest
    assert one.cells[0].seed == other.cells[0].seed


def test_a_gap_that_shrinks_between_two_coins():
    family = ShrinkingGap(0.05, bernoulli=True)
    assert family.name == "shrinking-gap beta=0.05 Bernoulli"
    assert ShrinkingGap(0.05).name == "shrinking-gap beta=0.05"
    coins = family(1_000)
    gap = 1_000**-0.05
    assert isinstance(coins.noise, Bernoulli)
    assert coins.means.tolist() == [0.5 + gap / 2, 0.5 - gap / 2]
    study = Study([family, ShrinkingGap(0.05)], "ucb", [500, 1_000], 10)
    assert [said["bernoulli"] for said in study.identity["instances"]] == [True, False]
    assert len({cell.seed for cell in study.cells}) == 4
    with pytest.raises(ParameterError, match="bernoulli: expected True or False; got 'yes'"):
        ShrinkingGap(0.05, "yes")


def test_a_family_that_only_looks_like_ours_is_known_by_what_it_gives():
    class Wider(ShrinkingGap):
        def __call__(self, horizon: int) -> Instance:
            return Instance([1.0, 0.0])

    wider = Study(Wider(0.5), "ucb", 500, 10)
    assert wider != Study(ShrinkingGap(0.5), "ucb", 500, 10)
    assert wider.identity["instances"][0]["members"][0]["means"] == [1.0, 0.0]


def test_a_rule_that_an_estimator_cannot_read_is_refused_at_once():
    for method in ("switching", "counts"):
        with pytest.raises(NotIdentifiable, match=f"epsilon-greedy: the rule draws its arms .* method {method}"):
            Study("two-armed", ["ucb", "epsilon-greedy"], 500, 10, estimators=["naive", method])
    study = Study("two-armed", "epsilon-greedy", 50, 3, estimators="naive")
    assert rows(study, study.tasks[0]).height == 6


def test_the_code_that_decides_the_numbers_is_known(monkeypatch, tmp_path):
    study = Study("two-armed", "ucb", 500, 10)
    assert study.identity["code"] == taskgrid.code()
    home = tmp_path / "unbandit"
    for name in taskgrid.DECIDING:
        there = Path(taskgrid.__file__).parents[1] / name
        (shutil.copytree if there.is_dir() else shutil.copy)(there, _made(home / name))
    monkeypatch.setattr(taskgrid, "__file__", str(_made(home / "study" / "taskgrid.py")))
    digest = taskgrid.code.__wrapped__
    assert digest() == taskgrid.code()
    (home / "kernels" / "notes.txt").write_text("no source")
    assert digest() == taskgrid.code()
    folders = (home / "kernels", home / "estimators")
    for path in (home / "tape.py", home / "study" / "rows.py", *(next(each.glob("*.py")) for each in folders)):
        before = digest()
        with path.open("a") as file:
            file.write("#")
        assert digest() != before


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_a_family_of_ones_own_is_known_by_what_it_gives():
    study = Study(Fading(), "ucb", [100, 1_000], 10)
    assert [member["name"] for member in study.identity["instances"][0]["members"]] == ["100", "1000"]
    assert study == Study(Fading(1.0), "ucb", [100, 1_000], 10)
    assert study != Study(Fading(0.9), "ucb", [100, 1_000], 10)


def test_a_rule_of_ones_own_is_known_by_its_file():
    before = dict(known_rules)
    try:

        class Mine(UCB):
            """Do as UCB does."""

            name = "mine"

        study = Study("two-armed", [Mine(), "ucb"], 500, 10)
        mine, ucb = study.identity["rules"]
        assert mine.startswith("mine:alpha=0.25,")
        assert "(source " in mine
        assert "source" not in ucb
    finally:
        known_rules.clear()
        known_rules.update(before)
    assert issubclass(Mine, Demonstrator)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"instances": []}, "instances: expected one or more; got none"),
        ({"rules": ()}, "rules: expected one or more"),
        ({"horizons": []}, "horizons: expected one or more"),
        ({"estimators": []}, "estimators: expected one or more"),
        ({"instances": ["two-armed", "two-armed"]}, 'instances: expected each once; got "two-armed" twice. Give one'),
        ({"instances": [Instance([1, 0]), Instance([1, 0.5])]}, 'got "custom" twice'),
        ({"instances": "two-arms"}, 'data set: expected one of .*; got "two-arms". Did you mean "two-armed"'),
        ({"instances": [3]}, "instances: expected an Instance, the name of a data set, or a callable with a name"),
        ({"instances": [Instance([1, 0], name="")]}, "instances: expected a name for each"),
        ({"instances": [lambda horizon: None]}, "instances: expected an Instance"),
        ({"rules": ["ucb", UCB()]}, "rules: expected each once"),
        ({"rules": ["ucbb"]}, 'rule: expected one of .*; got "ucbb"'),
        ({"rules": [3]}, "rules: expected demonstrators or their texts; got 3"),
        ({"horizons": [500, 500]}, 'horizons: expected each once; got "500" twice'),
        ({"horizons": [0]}, "horizons: expected a whole number from 1"),
        ({"horizons": [500.0]}, "horizons: expected a whole number"),
        ({"horizons": [2**32]}, "horizons: expected a whole number"),
        ({"runs": 1}, r"runs: expected a whole number from 2 to 2\^32 - 1; got 1"),
        ({"runs": 2**32}, "runs: expected"),
        ({"runs": True}, "runs: expected"),
        ({"runs": 2.0}, "runs: expected"),
        ({"seed": -1}, "seed: expected a whole number from 0"),
        ({"seed": 2**64}, "seed: expected"),
        ({"estimators": ["switch"]}, 'estimator: expected one of bracket, switching, counts, naive; got "switch"'),
        ({"estimators": ["naive", "naive"]}, "estimators: expected each once"),
        ({"estimators": [3]}, "estimator: expected a text"),
        ({"level": 0}, "level: expected a number between 0 and 1; got 0"),
        ({"level": 1.0}, "level: expected"),
        ({"level": float("nan")}, "level: expected"),
        ({"level": "high"}, "level: expected"),
    ],
    ids=lambda value: re.sub(" at 0x.*", "", str(value))[:50] if isinstance(value, dict) else "",
)  # fmt: skip
def test_what_is_refused(change, said):
    with pytest.raises(ParameterError, match=said):
        Study(**(GRID | change))


def test_a_family_that_gives_no_instance_is_refused():
    class Nothing:
        name = "nothing"

        def __call__(self, horizon):
            return horizon

    with pytest.raises(ParameterError, match="expected nothing to return an Instance; got 500"):
        Study([Nothing()], "ucb", 500, 10)
    with pytest.raises(ParameterError, match="beta"):
        ShrinkingGap(-1)


def test_a_horizon_shorter_than_the_arms_is_allowed():
    assert len(Study("linear", "ucb", 2, 10).tasks) == 1


@pytest.mark.parametrize(
    ("text", "method", "constant", "written"),
    [
        ("switching", "switching", None, "switching"),
        (" Counts ", "counts", None, "counts"),
        ("naive", "naive", None, "naive"),
        ("naive : constant = 1", "naive", 1.0, "naive:constant=1.0"),
        ("naive:constant=0.75", "naive", 0.75, "naive:constant=0.75"),
    ],
)
def test_estimators_are_read_and_written(text, method, constant, written):
    (found,) = Study("two-armed", "ucb", 500, 10, estimators=[text]).estimators
    assert (found.method, found.constant, str(found)) == (method, constant, written)


@pytest.mark.parametrize(
    "text",
    ["", "naive:", "naive:constant", "naive:constant=x", "naive:constant=-1", "naive:constant=inf", "naive:c=1",
     "counts:constant=1", "naive:constant=0"],
)  # fmt: skip
def test_estimators_that_are_refused(text):
    with pytest.raises(ParameterError, match="estimator: "):
        Study("two-armed", "ucb", 500, 10, estimators=[text])


def test_spaced_numbers():
    assert spaced(500, 5_000, 10) == (500, 646, 834, 1077, 1391, 1797, 2321, 2997, 3871, 5000)
    assert spaced(500, 1_000, 3, "linear") == (500, 750, 1_000)
    for wrong in ((500, 500, 2), (500, 400, 2), (500, 600, 1), (1, 3, 10), (0, 3, 2), (1.5, 3, 2)):
        with pytest.raises(ParameterError):
            spaced(*wrong)
    with pytest.raises(ParameterError, match='spacing: expected log or linear; got "square"'):
        spaced(500, 1_000, 3, "square")
