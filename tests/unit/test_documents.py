"""What the README and the contributors' guide show is run as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import unbandit
from unbandit.cli.app import app
from unbandit.demonstrators.base import known_rules

ROOT = Path(__file__).parents[2]


def blocks(name: str, language: str = "python") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)


def test_the_readme_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (shown,) = blocks("README.md")
    names: dict[str, object] = {}
    exec(shown, names)
    assert names["result"].best == ("6.0-4.4-4.4",)
    assert (tmp_path / "arms.png").stat().st_size > 10_000


def test_the_guides_rules_work():
    before = dict(known_rules)
    bonus, use, logarithmic = blocks("CONTRIBUTING.md")
    names = {"__name__": __name__, "unbandit": unbandit, "instance": unbandit.Instance([1.0, 0.5, 0.2])}
    try:
        exec(bonus, names)
        exec(use, names)
        assert {"bonus", "sae", "ucb"} <= set(unbandit.rules())
        exec("import math\nfrom unbandit.demonstrators.index import IndexRule\n" + logarithmic, names)
        rule = names["Logarithmic"]()
        log = rule.demonstrate(names["instance"], horizon=200)
        with pytest.raises(unbandit.NotIdentifiable, match="logarithmic"):
            unbandit.estimate(log, rule, sigma=1.0)
    finally:
        known_rules.clear()
        known_rules.update(before)


def test_the_guide_to_studies_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (described,) = blocks("docs/studies.md", "toml")
    Path("study.toml").write_text(described, encoding="utf-8")
    unbandit.Study.read("study.toml", runs=2).run("results")
    reading, *others = blocks("docs/studies.md")
    names: dict[str, object] = {}
    exec(reading, names)
    assert set(names["errors"]["instance"]) == {"two-armed", "twenty protocols", "close", "shrinking-gap beta=0.05"}
    for shown in others:
        exec(shown, names)
    assert names["table"].height == 2 * 3 * 2 * (2 + 3)
    assert -1.5 < names["falls"].value < 0
    assert capsys.readouterr().out.startswith("the error falls as T to the power of -")
    assert names["again"].summary().equals(names["table"])


def test_the_guide_to_planning_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for shown in blocks("docs/planning.md"):
        exec(shown, names)
    assert "rounds, theory says" in capsys.readouterr().out
    assert (tmp_path / "plan.png").stat().st_size > 10_000
    assert names["given"].total > 100 > names["hidden"].total == 0


def test_the_commands_of_the_guide_to_planning_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "planning.md").read_text(encoding="utf-8")
    commands = re.findall(r"^unbandit (.*)$", text, re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        done = CliRunner().invoke(app, [*command.split(), "--runs", "10"])
        assert done.exit_code == 0, done.output
    assert (tmp_path / "plan.png").exists()
    assert (tmp_path / "leak.png").exists()


@pytest.mark.parametrize(
    "name",
    ["README.md", "CONTRIBUTING.md", *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md")))],
)
def test_what_is_linked_is_there(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_the_plan_names_files_that_exist():
    plan = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)`", plan))
    assert named
    assert [file for file in sorted(named) if not (ROOT / "src" / "unbandit" / file).exists()] == []


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")  # the guide says which comes
def test_the_guide_to_real_systems_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    making, reading = blocks("docs/real-systems.md")
    names: dict[str, object] = {}
    exec(making, names)
    commands = re.findall(r"^unbandit (.*)$", "".join(blocks("docs/real-systems.md", "sh")), re.MULTILINE)
    assert len(commands) == 2
    for command in commands:
        done = CliRunner().invoke(app, shlex.split(command))
        assert done.exit_code == 0, done.output
    exec(reading, names)
    assert np.median(np.abs(names["errors"])) < 0.08
    assert names["correlation"] > 0.8
    means = pl.read_csv("means.csv").sort("arm")["mean"].to_numpy()
    assert np.median(np.abs(means - pl.read_csv("worth.csv").sort("caption")["mean"].to_numpy())) < 0.08
    assert capsys.readouterr().out.startswith("median error 0.0")
