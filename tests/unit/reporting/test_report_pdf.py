"""The report on paper, where a browser is installed; one sentence where none is."""

from __future__ import annotations

import stat
import sys

import made
import pytest

import unbandit as ub
from unbandit.reporting import pdf


def test_none_is_installed(monkeypatch, tmp_path):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    monkeypatch.setattr(pdf, "PLACES", {})
    with pytest.raises(ub.ParameterError, match=r"expected an installed browser .* apt install chromium"):
        pdf.write_pdf("<p>x</p>", tmp_path / "x.pdf")
    assert list(tmp_path.iterdir()) == []


def test_the_first_that_is_found_is_taken(monkeypatch, tmp_path):
    monkeypatch.setattr(pdf.shutil, "which", lambda name: "/opt/edge" if name == "msedge" else None)
    assert pdf.find_browser() == "/opt/edge"
    hidden = tmp_path / "Google Chrome"
    hidden.write_text("")
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    monkeypatch.setattr(pdf, "PLACES", {sys.platform: (str(tmp_path / "not there"), str(hidden))})
    assert pdf.find_browser() == str(hidden)


@pytest.fixture
def fake(monkeypatch, tmp_path):
    """Return a function that puts a script in the browser's place."""
    if sys.platform == "win32":
        pytest.skip("a shell script stands in for the browser")

    def put(script):
        program = tmp_path / "browser"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(pdf, "find_browser", lambda: str(program))

    return put


def test_a_browser_that_fails_leaves_nothing_behind(fake, tmp_path):
    (tmp_path / "x.pdf").write_text("old")
    fake("echo 'no display' >&2; exit 1")
    with pytest.raises(ub.OutputError, match=r"x\.pdf: could not be printed by .*\(no display\)"):
        pdf.write_pdf("<p>x</p>", tmp_path / "x.pdf")
    assert (tmp_path / "x.pdf").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["browser", "x.pdf"]


def test_a_browser_that_hangs_is_given_up(fake, tmp_path):
    fake("exec sleep 60")
    with pytest.raises(ub.OutputError, match="did not end within"):
        pdf.write_pdf("<p>x</p>", tmp_path / "x.pdf", seconds=0.5)


def test_without_a_sandbox_only_where_there_is_none(fake, tmp_path, monkeypatch):
    said = tmp_path / "said"
    monkeypatch.setattr(pdf.os, "geteuid", lambda: 1_000, raising=False)
    fake(f"""
echo "$*" >> {said}
case "$*" in
  *--no-sandbox*) for word in "$@"; do case $word in --print-to-pdf=*) echo pdf > "${{word#*=}}";; esac; done;;
  *) echo "No usable sandbox!" >&2; exit 1;;
esac""")
    pdf.write_pdf("<p>x</p>", tmp_path / "x.pdf")
    assert (tmp_path / "x.pdf").read_text() == "pdf\n"
    assert [("--no-sandbox" in line) for line in said.read_text().splitlines()] == [False, True]


def test_a_report_is_printed(tmp_path):
    try:
        pdf.find_browser()
    except ub.ParameterError as error:
        pytest.skip(str(error))
    pdf.write_pdf(made.report_of("nasty names").html, tmp_path / "report.pdf")
    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") + printed.count(b"/Type /Page/") >= 2
    assert b"/JavaScript" not in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.pdf"]
