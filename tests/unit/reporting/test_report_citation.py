"""How to cite is said once, and CITATION.cff agrees."""

from __future__ import annotations

from pathlib import Path

import made
import pytest

import unbandit
from unbandit.reporting import citing

yaml = pytest.importorskip("yaml", reason="CITATION.cff is read with a YAML reader")
FILE = Path(__file__).parents[3] / "CITATION.cff"


@pytest.fixture(scope="module")
def cff():
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def test_the_package(cff):
    assert cff["version"] == unbandit.__version__
    assert str(cff["date-released"]) == citing.RELEASED
    assert cff["license"] == citing.LICENCE
    assert cff["abstract"] == citing.ABOUT
    assert cff["authors"] == [{"name": citing.AUTHORS}]


def test_the_paper(cff):
    said = cff["preferred-citation"]
    assert tuple((author["family-names"], author["given-names"]) for author in said["authors"]) == citing.PAPER.authors
    assert said["title"] == citing.PAPER.title
    assert said["collection-title"] == citing.PAPER.venue
    assert said["year"] == citing.PAPER.year
    assert said["identifiers"] == [{"type": "other", "value": citing.PAPER.identifier}]


def test_both_are_in_the_report():
    page = " ".join(made.Outline(made.report_of("gaps").main).text)
    assert citing.PAPER.title in page
    assert citing.paper() in page
    assert citing.software() in page
    assert "Vidya Muthukumar and Ashwin Pananjady" in page
