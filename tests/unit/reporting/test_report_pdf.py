"""The report on paper, where a browser is installed; one sentence where none is."""

from __future__ import annotations

import re
import stat
import sys
import zlib

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


def needs_a_browser():
    try:
        pdf.find_browser()
    except ub.ParameterError as error:
        pytest.skip(str(error))


def pages(printed):
    return len(re.findall(rb"/Type\s*/Page\b", printed))


def test_a_report_is_printed(tmp_path):
    needs_a_browser()
    assert made.report_of("nasty names").write(tmp_path / "report.pdf") == tmp_path / "report.pdf"
    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF")
    assert pages(printed) >= 2
    assert b"/JavaScript" not in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.pdf"]


def test_pages_have_numbers(tmp_path):
    """Fewer texts are printed without the rule that numbers the pages."""
    needs_a_browser()
    html, texts = made.report_of("gaps").html, []
    for page in (html, re.sub(r"@bottom-right \{[^}]*\}", "", html)):
        pdf.write_pdf(page, tmp_path / "x.pdf")
        streams = re.findall(rb"stream\r?\n(.*?)endstream", (tmp_path / "x.pdf").read_bytes(), re.DOTALL)
        inflated = b"".join(zlib.decompress(each) for each in streams if each[:1] == b"x")
        texts.append(len(re.findall(rb"\bT[jJ]\b", inflated)))
    assert texts[0] - texts[1] >= pages((tmp_path / "x.pdf").read_bytes()) >= 2


@pytest.mark.parametrize(
    ("kind", "paper"),
    [("long names", "A4"), ("long names", "letter"), ("sensitivity", "letter"), ("several", "letter")],
)
def test_a_short_report_is_one_page(tmp_path, kind, paper):
    needs_a_browser()
    arms = [f"A very long name of an arm that says everything about it, number {at}" for at in range(30)]
    codes = [*range(30), *(at for many in range(1, 30) for at in (0,) * 5 + (many,)), *(0,) * 200]
    log = ub.ActionLog.from_codes([codes] * (20 if kind == "several" else 1), arms)
    title = "A title that is so long that it needs two lines of the page in all probability, or even more than two"
    truth = None if kind == "several" else dict.fromkeys(arms, 0.5)
    report = ub.report(
        log, "ucb:alpha=0.25", best_mean=1.0, sigma=0.2, check=False, short=True, truth=truth, title=title,
        author="Ada", date="May 2026", unit="cycles=1208", sensitivity=kind == "sensitivity",
    )  # fmt: skip
    pdf.write_pdf(report.html, tmp_path / "x.pdf", paper=paper)
    assert pages((tmp_path / "x.pdf").read_bytes()) == 1
    assert ("20 arms are left out here" in report.main) is (kind != "several")
