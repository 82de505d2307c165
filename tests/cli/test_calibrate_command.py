"""`unbandit calibrate`: the table of what is to be reached, and the page behind it."""

from __future__ import annotations

from pathlib import Path

import shell

from unbandit.calibration.calibrate import MEASURES

refused, unbandit = shell.refused, shell.unbandit


def test_the_table_is_printed_and_the_page_written(unbandit):
    done = unbandit("calibrate", "closed-forms", "--rule", "ucb", "--runs", 4, "-o", "look", "--threads", 1)
    assert done.code == 0
    assert "even means: coverage" in done.out
    assert "93% to 97%" in done.out
    assert done.out.endswith("Every figure: look/figures.csv\nThe page: look/calibration.md\n")
    text = Path("look/calibration.md").read_text(encoding="utf-8")
    assert "Measured by unbandit" in text
    assert "| `ucb:alpha=0.25,scale=1.414` |" in text
    assert Path("look/calibration.png").read_bytes().startswith(b"\x89PNG")
    before = Path("look/figures.csv").read_bytes()
    again = unbandit("calibrate", "closed-forms", "--rule", "ucb", "--runs", 4, "-o", "look", "--threads", 1)
    assert (again.out, Path("look/figures.csv").read_bytes()) == (done.out, before)
    Path("look/calibration.md").unlink()
    assert unbandit("calibrate", "page", "-o", "look").out == done.out
    assert Path("look/calibration.md").read_text(encoding="utf-8") == text
    assert text.count("**not measured**") == len(MEASURES) - 1


def test_what_is_wrong_ends_with_its_code(unbandit, refused):
    assert 'Did you mean "posterior"?' in refused(2, "calibrate", "posteriors")
    assert "rule: expected one of ucb, " in refused(2, "calibrate", "--rule", "lottery")
    assert "nothing: expected a folder that holds a measure" in refused(2, "calibrate", "page", "-o", "nothing")
    assert not Path("nothing").exists()
    assert "runs: expected a whole number from 2" in refused(2, "calibrate", "--runs", 1)
    unbandit("calibrate", "closed-forms", "--rule", "sae", "--runs", 2, "-o", "look", "--threads", 1)
    said = refused(3, "calibrate", "closed-forms", "--rule", "sae", "--runs", 3, "-o", "look")
    assert "it has another study (cells: the folder has sae:alpha=0.25" in said
    assert "with other runs)" in said
