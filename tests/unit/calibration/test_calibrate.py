"""The whole of it at a very small size: everything in one folder, left and taken up again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from unbandit import OutputError, ParameterError, ResumeError
from unbandit.calibration import calibrate, closed_forms, metrics, misfits, settings
from unbandit.calibration.metrics import Timing, timed, timings

PAPER_CELLS = closed_forms.paper_cells
AGAINST = ("against the procedures", "against naive")
SMALL = {"runs": 3, "particles": 20, "rules": ["ucb", "uniform"]}


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """Play short records, the same cells in a twentieth of the rounds, and identify among few rules."""
    cells = tuple((arms, horizon // 20, runs) for arms, horizon, runs in settings.CELLS)
    monkeypatch.setattr(settings, "CELLS", cells)
    monkeypatch.setattr(closed_forms, "CELLS", dict.fromkeys(closed_forms.CELLS, ((2, 60, 500),)))
    monkeypatch.setattr(closed_forms, "paper_cells", lambda name: [replace(next(PAPER_CELLS(name)), horizon=80)])
    monkeypatch.setattr(settings, "IDENTIFY_CELL", (2, 40, 100))
    monkeypatch.setattr(settings, "CANDIDATES", ("ucb:alpha=0.25", "uniform"))
    for size in ("SMALL", "USUAL", "LARGE"):
        monkeypatch.setattr(misfits, size, (2, 40))
    monkeypatch.setattr(misfits, "TWISTS", ("batches of 5",))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_everything_is_measured_and_written(tmp_path):
    done = calibrate(tmp_path / "new", **SMALL, threads=1)
    keys = [criterion.key for criterion in done.criteria]
    assert [key for key in keys if " means, " not in key] == [
        "coverage", "lowest arm", "ranks", "gap coverage", "oracle", "naive", "identify, right", "identify, wrong",
        "check, right rule", "check, other rules",
    ]  # fmt: skip
    assert keys[:4] == [f"random means, {key}" for key in ("coverage", "bounds", *AGAINST)]
    assert [key for key in keys if key.startswith("near means")][:2] == ["near means, coverage", "near means, not told"]
    assert keys[13:16] == [f"paper means, {key}" for key in ("coverage", *AGAINST)]
    assert [(each.setting.rule.name, each.setting.arms, each.runs) for each in done.posteriors] == [
        ("ucb", arms, 3) for arms in (2, 2, 4, 10, 10)
    ]
    designs = [each.cell.design for each in done.closed_forms]
    assert designs == ["random", "even", "even", "near", "paper", "random", "even", "near"]  # Gaussian, Bernoulli
    assert [each.setting.rule.name for each in done.identified] == ["ucb", "uniform"]
    assert done.asked == "unbandit calibrate --rule ucb --rule uniform --runs 3 --particles 20"
    assert done.page.read_text().startswith("# How far the answers can be trusted\n")
    table = pl.read_csv(tmp_path / "new" / "figures.csv")
    assert set(table["goal"]) == {criterion.key for criterion in done.criteria}
    before = contents(tmp_path / "new")
    assert {name.split("/")[0] for name in before} == {
        "posterior", "closed-forms", "identify", "check", "figures.csv", "calibration.md"
    }  # fmt: skip

    victims = [name for name in before if name.endswith("00001.parquet") or name.startswith("identify/uniform/parts")]
    assert len(victims) > 3
    for name in victims:
        (tmp_path / "new" / name).unlink()
    again = calibrate(tmp_path / "new", **SMALL, threads=2)
    assert contents(tmp_path / "new") == before
    assert again.figures.equals(done.figures)


def test_one_measure_of_one_rule(tmp_path):
    done = calibrate(tmp_path, kinds=["closed-forms"], rules=["sae"], runs=2, seed=7)
    assert (done.posteriors, done.identified, len(done.closed_forms)) == ([], [], 9)
    assert done.asked == "unbandit calibrate closed-forms --rule sae --runs 2 --seed 7"
    folders = {path.name for path in (tmp_path / "closed-forms").iterdir()}
    assert folders == {"sae-alpha-0.25", "sae-alpha-0.25-scale-0.4"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"kinds": ["posteriors"]},
            'kind: expected one of closed-forms, posterior, identify, check; got "posteriors". Did',
        ),
        ({"rules": ["thomson"]}, 'got "thomson". Did you mean "thompson"?'),
        ({"runs": 1}, "runs: expected a whole number from 2"),
        ({"particles": 0}, "particles: expected a whole number from 1"),
        ({"clouds": 0}, "clouds: expected a whole number from 1"),
        ({"threads": 0}, "threads: expected a whole number from 1"),
        ({"seed": -1}, "seed: expected a whole number from 0"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_before_anything_is_written(tmp_path, wrong, said):
    with pytest.raises(ParameterError) as refused:
        calibrate(tmp_path / "new", **(SMALL | wrong))
    assert said in str(refused.value)
    assert not (tmp_path / "new").exists()


def test_another_calibration_in_the_folder_is_refused(tmp_path):
    calibrate(tmp_path, kinds=["closed-forms"], rules=["sae"], runs=2)
    before = contents(tmp_path)
    with pytest.raises(ResumeError, match=r"cells: the folder has sae.* with other runs"):
        calibrate(tmp_path, rules=["sae"], runs=3, kinds=["closed-forms", "posterior"])
    assert contents(tmp_path) == before
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"expected a folder; got a file|Not a directory"):
        calibrate(tmp_path / "file", kinds=["closed-forms"], rules=["sae"], runs=2)


def test_a_posterior_is_timed_in_a_process_of_its_own(monkeypatch):
    found = timed(Timing("ucb:alpha=0.25", 3, 50, most_seconds=2.0))
    assert 0 < found.seconds < 30
    assert found.memory > 1e7 or found.memory != found.memory
    monkeypatch.setattr(metrics, "USUAL_RECORD", (2, 30))
    asked = {(each.text, each.arms, each.most_seconds) for each in timings()}
    assert ("ucb:alpha=0.25", 2, 2.0) in asked
    assert ("thompson:noise=bernoulli", 2, 5.0) in asked
    assert ("ucb:alpha=0.25", 224, 60.0) in asked
    assert not any(text.startswith("sae") for text, _, _ in asked)
