"""`unbandit demo`: the whole story, in seconds."""

from __future__ import annotations

import re

import pytest
import shell

from unbandit import ActionLog

refused, unbandit = shell.refused, shell.unbandit


def test_the_story_is_told_and_drawn(unbandit, tmp_path):
    done = unbandit("demo", "--folder", "here/pictures")
    assert (done.code, "warning" in done.err) == (0, False)
    folder = tmp_path / "here" / "pictures"
    files = ["lifetimes.png", "lifetimes.svg", "log.csv", "report.html", "truth.csv"]
    assert sorted(path.name for path in folder.iterdir()) == files
    assert (folder / "lifetimes.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "lifetimes.svg").read_text().startswith("<?xml")
    log = ActionLog.read(folder / "log.csv")
    assert (len(log.arms), log.lengths.tolist()) == (20, [5_000])
    held, all_of_them = map(
        int, re.search(r"(\d+) of (\d+) intervals \(95%\) contain the true lifetime", done.out).groups()
    )
    assert all_of_them == 19
    assert held >= 15  # 18 are expected; a binomial of 19 at 95% is below 15 once in 2,000 times
    assert "The best protocol, 6.0-4.4-4.4, was found." in done.out
    assert sum(line.strip().endswith(("yes", "no")) for line in done.out.splitlines()) == all_of_them
    assert done.out.strip().splitlines()[-1].endswith("here/pictures/report.html")
    told = (folder / "report.html").read_text()
    assert "--unit cycles=1208" in told
    assert ">mean (cycles)<" in told
    assert f"{held} of {all_of_them} intervals hold the true value" in told


def test_the_commands_it_names_work(unbandit, tmp_path, monkeypatch):
    said = unbandit("demo", "--folder", "d", "--horizon", "2000").out
    proposed = next(line for line in said.splitlines() if line.startswith("Try it"))
    done = unbandit(*proposed.split("unbandit ", 1)[1].split())
    assert done.code == 0
    assert done.out.count("estimated") + done.out.count("bounded") == 19
    report = tmp_path / "d" / "report.html"
    before = report.read_text()
    command = re.search(r"<dt>command</dt><dd><code>unbandit (.*?)</code>", before)[1]
    report.unlink()
    monkeypatch.chdir(tmp_path / "d")  # the command names files, not folders
    assert unbandit(*command.split()).code == 0
    assert report.read_text() == before


def test_the_same_seed_gives_the_same_files(unbandit, tmp_path):
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        assert unbandit("demo", "--folder", folder, "--seed", seed, "--horizon", "500").code == 0
    for name in ("lifetimes.png", "lifetimes.svg", "log.csv"):
        a, b, c = ((tmp_path / folder / name).read_bytes() for folder in "abc")
        assert a == b != c


@pytest.mark.parametrize("horizon", [1, 10])
def test_a_short_story_is_still_told(unbandit, horizon):
    done = unbandit("demo", "--folder", "[x]", "--horizon", horizon)
    assert done.code == 0
    assert "Written: [x]/lifetimes.png" in done.out
    assert "AssumptionWarning" not in done.err


def test_what_cannot_be_done(unbandit, refused, tmp_path):
    refused(2, "demo", "--horizon", "0")
    (tmp_path / "file").write_text("")
    done = unbandit("demo", "--folder", "file", "--horizon", "100")
    assert done.code == 3
    assert "file: could not be created: File exists. Choose another with --folder." in done.err
