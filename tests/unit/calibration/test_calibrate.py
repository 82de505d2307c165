"""The whole of it at a very small size: everything in one folder, left and taken up again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl
import pytest

from unbandit import OutputError, ParameterError, ResumeError
from unbandit.calibration import calibrate, closed_forms, misfits, read_calibration, record, settings, speed
from unbandit.calibration.calibrate import MEASURES as EVERY
from unbandit.calibration.calibrate import _rule_name
from unbandit.calibration.settings import Sizes
from unbandit.calibration.speed import TimingCell, Timings, TimingTrials
from unbandit.contexts import known_linear_rules
from unbandit.demonstrators.base import rules

PAPER_CELLS = closed_forms.paper_cells
SMALL = {"runs": 3, "particles": 20, "clouds": 2, "rules": ["ucb", "uniform"]}


@pytest.fixture(autouse=True)
def few_rounds(monkeypatch):
    """Play short records, in few cells, and identify among few rules."""
    monkeypatch.setattr(settings, "ARMS", (2, 3))
    monkeypatch.setattr(settings, "HORIZONS", (40,))
    monkeypatch.setattr(settings, "USUAL_CELL", (2, 40))
    monkeypatch.setattr(settings, "FAMILIES", ("ucb", "uniform"))
    monkeypatch.setattr(settings, "FAMILY_CELLS", ((2, 40),))
    monkeypatch.setattr(settings, "USUAL", ())
    monkeypatch.setattr(settings, "FAMILY_CANDIDATES", ("ucb:alpha=0.25", "uniform"))
    monkeypatch.setattr(closed_forms, "CELLS", dict.fromkeys(closed_forms.CELLS, ((2, 60, 500),)))
    monkeypatch.setattr(closed_forms, "paper_cells", lambda name: [replace(next(PAPER_CELLS(name)), horizon=80)])
    for size in ("SMALL", "USUAL", "LARGE"):
        monkeypatch.setattr(misfits, size, (2, 40))
        monkeypatch.setattr(speed, size.replace("SMALL", "MANY_ARMS"), (2, 40))
    monkeypatch.setattr(misfits, "TWISTS", ("batches of 5",))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


MEASURES = ("closed-forms", "posterior", "sampler", "identify", "check")


@cache
def measured(measures: tuple[str, ...]) -> dict[str, bytes]:
    """Return what a folder holds after some measures: of several tests, one measures."""
    with tempfile.TemporaryDirectory() as folder:
        calibrate(folder, **SMALL, measures=measures, threads=1)
        return contents(Path(folder))


def unpacked(measures: tuple[str, ...], folder: Path) -> Path:
    for name, content in measured(measures).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def test_everything_is_measured_and_written(tmp_path):
    measures = MEASURES
    done = read_calibration(unpacked(measures, tmp_path / "new"))
    names = {each.measure.name: len(each.metrics) for each in done.found}
    assert names == {
        "closed-forms": 8, "posterior": 2, "sampler": 1, "identify": 2, "check": 6, "logs": 0, "fit": 0,
        "population": 0, "contexts": 0, "timing": 0,
    }  # fmt: skip
    assert "| **not measured** |" in done.page.read_text(encoding="utf-8")
    table = pl.read_csv(tmp_path / "new" / "figures.csv")
    assert set(table["figures"]) == {criterion.key for criterion in done.criteria}
    quoted = pl.read_csv(tmp_path / "new" / "coverage.csv")
    assert quoted.height == 0  # three runs, and particles that users do not get
    before = contents(tmp_path / "new")
    assert {name.split("/")[0] for name in before} == {
        *measures, "figures.csv", "coverage.csv", "measured.jsonl", "calibration.md", "calibration.png"
    }  # fmt: skip
    (tmp_path / "new" / "calibration.md").unlink()
    read_calibration(tmp_path / "new").write()
    assert contents(tmp_path / "new") == before

    victims = [name for name in before if name.startswith(("identify/uniform/parts", "posterior/ucb-alpha-0.25/parts"))]
    assert len(victims) > 2
    (tmp_path / "new" / "measured.jsonl").unlink()
    for name in victims:
        (tmp_path / "new" / name).unlink()
    unfinished = {each.measure.name: each.unfinished for each in read_calibration(tmp_path / "new").found}
    assert (unfinished["identify"], unfinished["posterior"], unfinished["check"]) == (1, 2, 0)
    again = calibrate(tmp_path / "new", **SMALL, measures=["identify", "posterior"], threads=2)
    assert contents(tmp_path / "new") == before
    assert again.figures.equals(done.figures)


def test_the_record_stands_for_parts_that_are_elsewhere(tmp_path):
    """Every measure comes back from its lines as it was; a cell measured anew replaces its line."""
    done = calibrate(unpacked(MEASURES, tmp_path / "parts"), **SMALL, measures=["timing"], threads=1)
    (tmp_path / "record").mkdir()
    lines = (tmp_path / "parts" / "measured.jsonl").read_text(encoding="utf-8")
    (tmp_path / "record" / "measured.jsonl").write_text(lines, encoding="utf-8")
    read_calibration(tmp_path / "record").write()
    for name in ("calibration.md", "coverage.csv", "figures.csv", "measured.jsonl"):
        assert (tmp_path / "record" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name
    assert "nan" not in lines.lower().replace("unbandit", "")

    again = calibrate(tmp_path / "record", **SMALL | {"seed": 2}, measures=["posterior"], threads=1)
    changed = [
        old.measure.name for old, new in zip(done.found, again.found, strict=True) if [*old.lines] != [*new.lines]
    ]
    assert changed == ["posterior"]
    fewer = calibrate(tmp_path / "record", **SMALL | {"runs": 2, "rules": ["uniform"]}, measures=["check"], threads=1)
    assert [*fewer.found[4].lines] == [*done.found[4].lines]  # three runs say more than two


@pytest.mark.parametrize(
    ("line", "problem"),
    [("not JSON", "line 2: "), ('{"measure": "posterior"}', "line 2: .*cell"), ('{"version": 3}', "line 2: .*measure")],
)
def test_a_record_that_cannot_be_read_is_refused(tmp_path, line, problem):
    unpacked(("posterior",), tmp_path)
    (tmp_path / "measured.jsonl").write_text(f"\n{line}\n", encoding="utf-8")
    with pytest.raises(ResumeError, match=problem):
        read_calibration(tmp_path)


def test_lines_of_other_versions_and_cells_are_left_out(tmp_path):
    unpacked(("posterior",), tmp_path)
    kept, other = [json.loads(line) for line in (tmp_path / "measured.jsonl").read_text(encoding="utf-8").splitlines()]
    other["cell"]["arms"] = 77
    lines = [json.dumps(line) for line in (kept, other, kept | {"version": "0.3.0"})]
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "measured.jsonl").write_text("\n".join(lines), encoding="utf-8")
    found = read_calibration(tmp_path / "new").found[1]
    assert len(found.cells) == 1
    assert found.left_out == [
        "1 line of measured.jsonl of cells that this version does not measure",
        "1 line of measured.jsonl measured by unbandit 0.3.0",
    ]


def test_only_enough_runs_of_what_users_get_are_quoted(tmp_path, monkeypatch):
    def quotable(name: str, fewest: int, **sizes) -> int:
        monkeypatch.setattr(record, "FEWEST_QUOTED", fewest)
        calibrate(tmp_path / name, measures=["posterior"], rules=["uniform", "ucb"], runs=3, threads=1, **sizes)
        found = read_calibration(tmp_path / name).found[1]
        return sum(each.quotable for each in found.cells)

    assert record.FEWEST_QUOTED == 100
    assert [quotable("usual", fewest) for fewest in (3, 4)] == [2, 0]
    assert quotable("few", 3, particles=20) == quotable("clouds", 3, clouds=2) == 0


def test_a_folder_without_a_measure_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"nothing: expected a folder that holds a measure; this one has none"):
        read_calibration(tmp_path / "nothing").write()
    assert not (tmp_path / "nothing").exists()


def test_one_measure_of_one_rule(tmp_path):
    done = calibrate(tmp_path, measures=["closed-forms"], rules=["sae"], runs=2, seed=7, threads=1)
    assert [len(each.metrics) for each in done.found] == [9, *[0] * (len(done.found) - 1)]
    folders = {path.name for path in (tmp_path / "closed-forms").iterdir()}
    assert folders == {"sae-alpha-0.25", "sae-alpha-0.25-scale-0.4"}
    (tmp_path / "measured.jsonl").unlink()
    study = tmp_path / "closed-forms" / "sae-alpha-0.25" / "study.json"
    saved = json.loads(study.read_text(encoding="utf-8"))
    for changed, why in (
        ({"version": "0.3.0"}, "measured by unbandit 0.3.0"),
        ({"cells": [{**saved["cells"][0], "arms": 77}]}, "other cells than this version measures"),
        ({"cells": 3}, "cannot be read"),
    ):
        study.write_text(json.dumps(saved | changed), encoding="utf-8")
        first = read_calibration(tmp_path).found[0]
        assert why in first.left_out[0]
        assert len(first.metrics) == 4  # of the other folder
    study.write_text(json.dumps(saved | {"code": "0123"}), encoding="utf-8")
    with pytest.raises(ResumeError, match="expected a part of this study"):  # parts carry the digest of their study
        read_calibration(tmp_path)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            {"measures": ["posteriors"]},
            'check, logs, fit, population, contexts, timing; got "posteriors". Did you mean',
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
    calibrate(tmp_path, measures=["closed-forms"], rules=["sae"], runs=2, threads=1)
    before = contents(tmp_path)
    with pytest.raises(ResumeError, match=r"cells: the folder has sae.* with other runs"):
        calibrate(tmp_path, rules=["sae"], runs=3, measures=["closed-forms", "posterior"])
    assert contents(tmp_path) == before
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"expected a folder; got a file|Not a directory"):
        calibrate(tmp_path / "file", measures=["closed-forms"], rules=["sae"], runs=2, threads=1)


def test_a_posterior_is_timed():
    trials = TimingTrials((TimingCell("ucb:alpha=0.25", 3, 50, 2, 2.0),))
    found = Timings().metrics(trials.cells[0], trials.rows(trials.tasks[0]))
    assert 0 < found.seconds < 30
    assert found.memory > 1e7 or found.memory != found.memory
    cells = {(cell.text, cell.most_seconds) for _, work in Timings().trials(settings.Sizes()) for cell in work.cells}
    assert {
        ("ucb:alpha=0.25", 2.0),
        ("thompson:noise=bernoulli", 5.0),
        ("ucb:alpha=0.25", 60.0),
        ("exp3", 10.0),
    } <= cells
    assert ("sae:alpha=0.25", 2.0) in cells
    named = [cell for name, work in Timings().trials(settings.Sizes()) if " on identify" in name for cell in work.cells]
    assert {cell.most_seconds for cell in named} == {10.0}
    assert len(named) == len({cell.described["name"] for cell in named}) > 5
    short = TimingTrials((TimingCell("uniform", 2, 30, 1, 10.0, identify=True),))
    assert 0 < Timings().metrics(short.cells[0], short.rows(short.tasks[0])).seconds < 60
    few = TimingTrials((TimingCell("softmax", 2, 20, 1, 10.0, people=3),))
    assert 0 < Timings().metrics(few.cells[0], few.rows(few.tasks[0])).seconds < 60


PROGRAM = "from unbandit.cli import main; main()"


def test_control_c_does_not_wait_for_a_posterior(tmp_path):
    asked = ["calibrate", "timing", "posterior", "--rule", "ucb", "-o", "look", "--threads", "2"]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    with subprocess.Popen([sys.executable, "-c", PROGRAM, *asked], cwd=tmp_path, **piped) as run:
        until = time.monotonic() + 120
        while not list(tmp_path.glob("look/timing/*/parts")) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(3)  # now processes are at work: the large record takes half a minute
        os.killpg(run.pid, signal.SIGINT)
        began = time.monotonic()
        _, error = run.communicate(timeout=60)
    assert time.monotonic() - began < 5  # a second on an idle machine
    assert run.returncode == 130
    assert "Stopped. Results so far are kept in look. Run the same command to resume." in error
    assert error.count("\n") == 1, error  # nothing of killed processes and of tasks that waited


def test_every_measure_has_rules_that_can_be_asked_for():
    """Rules of some cells were not among them, so that a calibration left these cells out or ended at once."""
    names = {_rule_name(text) for measure in EVERY.values() for text, _ in measure.trials(Sizes())}
    assert {"ucb", "lin-softmax", "lin-epsilon-greedy", "linucb", "learning-softmax"} <= names
    assert names <= {*rules(), *known_linear_rules}
