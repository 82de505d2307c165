"""The notebooks are stored without outputs, and run from beginning to end."""

from __future__ import annotations

import json
import os

import nbclient
import nbformat
import pytest
from documents_shown import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_all_are_there():
    assert [notebook.stem for notebook in NOTEBOOKS] == ["features", "tutorial", "your-own-log"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert [cell for cell in cells if cell["outputs"] or cell["execution_count"]] == []
    assert set(stored["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the notebooks' own machinery
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONWARNINGS", "error::unbandit.errors.AssumptionWarning")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    (tmp_path / "work").mkdir()
    nbclient.NotebookClient(
        notebook, timeout=300, resources={"metadata": {"path": os.fspath(tmp_path / "work")}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    drawn = [cell for cell in notebook.cells if "mystnb" in cell.metadata]
    assert len(pictures) == len(drawn) >= 3, "expected every picture to have an alternative text"
    assert any("text/html" in output.get("data", {}) for output in outputs)
    (report,) = (tmp_path / "work").glob("*.html")
    assert report.stat().st_size > 10_000
