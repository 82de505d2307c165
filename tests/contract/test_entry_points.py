"""A rule from somebody else's package is found through an entry point; one that is broken harms nobody."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = '''
"""A rule of another package: win, stay; lose, shift."""

from typing import ClassVar

from pydantic import Field
from unbandit import RandomisedRule


class WinStay(RandomisedRule):
    """Stay with the arm that last gave more than a threshold, most of the time."""

    name: ClassVar[str] = "win-stay"
    columns: ClassVar[int] = 2
    threshold: float = Field(0.5, description="reward that counts as a win")
    slip: float = Field(0.1, gt=0, lt=1, description="probability of any arm")

    @staticmethod
    def probability(parameters, pulls, memory, round, arm):
        winners = 0
        for other in range(pulls.size):
            winners += memory[other, 1] > 0.0
        kept = 1.0 / pulls.size if winners == 0 else 1.0 if memory[arm, 1] > 0.0 else 0.0
        return parameters.slip / pulls.size + (1.0 - parameters.slip) * kept

    @staticmethod
    def learn(parameters, pulls, memory, round, arm, reward):
        memory[:, 1] = 0.0
        memory[arm, 1] = 1.0 if reward > parameters.threshold else 0.0
'''
INDEX = '''
from typing import ClassVar

import numpy as np
from unbandit import AdditiveIndexRule


class Bonus(AdditiveIndexRule):
    """Add a bonus that falls with the square root of the pulls."""

    name: ClassVar[str] = "bonus"
    size: float = 1.0

    def width(self, pulls, horizon):
        return self.size / np.sqrt(pulls)
'''
THIEF = '''
from typing import ClassVar
from unbandit import UCB


class Other(UCB):
    """Take a name that is given."""

    name: ClassVar[str] = "ucb"
    mine: float = 1.0
'''


def package(folder: Path, name: str, **modules: str) -> None:
    """Lay a package out as an installer would: its modules, and metadata that name them as entry points."""
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    metadata = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "\n".join(f"{module} = {module}" for module in modules)
    (metadata / "entry_points.txt").write_text(f"[unbandit.demonstrators]\n{lines}\n")


@pytest.fixture
def unbandit(tmp_path):
    """Return a way to call the program, in a process of its own that finds the packages laid out beside it."""

    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(tmp_path), "COLUMNS": "200"}
        program = [sys.executable, "-c", "from unbandit.cli import main; main()", *arguments]
        return subprocess.run(program, env=environment, cwd=tmp_path, capture_output=True, text=True)

    return call


def test_rules_of_another_package_are_listed_simulated_and_estimated(tmp_path, unbandit):
    package(tmp_path, "rules-of-mine", winning=MODULE, bonuses=INDEX)
    listed = unbandit("demonstrators")
    assert listed.returncode == 0, listed.stderr
    assert "win-stay" in listed.stdout
    assert "Stay with the arm that last gave more than a threshold" in listed.stdout
    assert "reward that counts as a win" in unbandit("demonstrators", "win-stay").stdout
    for rule, method in (("win-stay:slip=0.2", "naive"), ("bonus:size=2", "switching")):
        log = str(tmp_path / f"{method}.csv")
        given = ["--means", "1,0.5,0", "--horizon", "400", "--seed", "1"]
        simulated = unbandit("simulate", "--rule", rule, *given, "-o", log)
        assert simulated.returncode == 0, simulated.stderr
        assert len(Path(log).read_text().splitlines()) >= 400
        estimated = unbandit("estimate", log, "--rule", rule, "--sigma", "1", "--method", method)
        assert estimated.returncode == 0, estimated.stderr


def test_a_broken_package_is_named_and_left_out(tmp_path, unbandit):
    package(tmp_path, "broken-rules", shattered="import nothing_of_that_name\n")
    package(tmp_path, "rules-of-mine", winning=MODULE)
    listed = unbandit("demonstrators")
    assert listed.returncode == 0, listed.stderr
    assert 'The rules of the package "broken-rules" (shattered) are left out' in listed.stderr
    assert "No module named 'nothing_of_that_name'" in listed.stderr
    assert "win-stay" in listed.stdout
    assert "ucb" in listed.stdout


def test_a_package_cannot_take_a_name_that_is_given(tmp_path, unbandit):
    package(tmp_path, "thief", stolen=THIEF)
    listed = unbandit("demonstrators", "ucb")
    assert listed.returncode == 0, listed.stderr
    assert 'The rule "ucb" of the package "thief" is left out' in listed.stderr
    assert "alpha" in listed.stdout
    assert "mine" not in listed.stdout
