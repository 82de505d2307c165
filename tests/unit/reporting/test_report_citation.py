"""How to cite is said once, and CITATION.cff agrees."""

from __future__ import annotations

from pathlib import Path

import made
import pytest

import unbandit
from unbandit.reporting import provenance

yaml = pytest.importorskip("yaml", reason="CITATION.cff is read with a YAML reader")
FILE = Path(__file__).parents[3] / "CITATION.cff"


@pytest.fixture(scope="module")
def cff():
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def test_the_package(cff):
    assert cff["version"] == unbandit.__version__
    assert str(cff["date-released"]) == provenance.RELEASED
    assert cff["license"] == "Apache-2.0"
    assert cff["abstract"] == provenance.ABOUT
    assert cff["authors"] == [{"name": provenance.AUTHORS}]


def test_the_paper(cff):
    said = cff["preferred-citation"]
    authors = tuple((author["family-names"], author["given-names"]) for author in said["authors"])
    assert authors == provenance.PAPER.authors
    assert said["title"] == provenance.PAPER.title
    assert said["collection-title"] == provenance.PAPER.venue
    assert said["year"] == provenance.PAPER.year
    assert said["identifiers"] == [{"type": "other", "value": provenance.PAPER.identifier}]


def test_both_are_in_the_report():
    page = " ".join(made.Outline(made.report_of("gaps").main).text)
    assert provenance.PAPER.title in page
    assert provenance.paper_entry() in page
    assert provenance.software_entry() in page
    assert "Vidya Muthukumar and Ashwin Pananjady" in page
