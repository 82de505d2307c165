"""Help, version, and the lists of what there is."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import shell

import unbandit as package

refused, script, unbandit = shell.refused, shell.script, shell.unbandit

COMMANDS = [
    "demo",
    "estimate",
    "identify",
    "simulate",
    "study",
    "plan",
    "leak",
    "reproduce",
    "calibrate",
    "demonstrators",
    "datasets",
]


def test_help_names_every_command(unbandit):
    done = unbandit("--help")
    assert (done.code, done.err) == (0, "")
    assert all(f"\n  {command} " in done.out for command in COMMANDS)
    assert unbandit("-h").out == done.out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(unbandit, command):
    done = unbandit(command, "--help")
    assert (done.code, done.err) == (0, "")
    assert f"Example:  unbandit {command}" in done.out


def test_version(unbandit):
    assert unbandit("--version").out == f"unbandit {package.__version__}\n"


def test_without_a_command_help_is_shown(unbandit):
    done = unbandit()
    assert "Usage: unbandit" in done.out + done.err


def test_the_installed_script_answers(script):
    done = script("--version")
    assert (done.returncode, done.stdout) == (0, f"unbandit {package.__version__}\n")


@pytest.mark.parametrize("arguments", [["--help"], ["estimate", "--help"], ["--version"]])
def test_help_imports_nothing_heavy(arguments):
    code = (
        "import sys\n"
        "from unbandit.cli import main\n"
        f"sys.argv = ['unbandit', *{arguments}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = ['scipy', 'numba', 'polars', 'matplotlib', 'numpy']\n"
        "print('HEAVY', [name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


def test_demonstrators_are_listed_by_plain_names_with_what_they_do_below(unbandit):
    done = unbandit("demonstrators")
    assert done.code == 0
    *lines, empty, hint = done.out.splitlines()
    named, below = lines[::2], lines[1::2]
    every = package.rules() | package.linear_rules()
    assert [line.split()[0] for line in named] == list(every)
    assert (empty, hint.split()[-1]) == ("", "ucb")
    assert [line.strip() for line in below] == [rule.summary() for rule in every.values()]
    columns = {line.index(rule.title) for line, rule in zip(named, every.values(), strict=True)}
    assert columns == {len(line) - len(line.lstrip()) for line in below}  # one column
    assert len(columns) == 1
    (sampling,) = (line for line in named if line.startswith("thompson"))
    assert sampling.endswith("Thompson sampling (also: ts, thompson-sampling)")


def test_rules_answer_to_the_names_that_people_know(unbandit, refused):
    for alias, name in {
        "ts": "thompson",
        "Q_Learning": "learning-softmax",
        "even-dar": "successive-elimination",
    }.items():
        assert unbandit("demonstrators", alias).out.split()[0] == name
    assert 'Did you mean "thompson-sampling"?' in refused(2, "demonstrators", "tompson-sampling")


def test_demonstrators_that_are_named_show_their_parameters(unbandit, refused):
    done = unbandit("demonstrators", "ucb", "sae")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines() if not line.startswith(" ")] == ["ucb", "sae"]
    assert all(done.out.count(f"\n  {key}: ") == 2 for key in ("alpha", "scale", "sigma", "batch"))
    assert "  alpha: exponent of the regret, in [0, 1); 0 means ln T (default 0.25)" in done.out
    assert "RULE: expected one of" in refused(2, "demonstrators", "ucbb")


def test_demonstrators_as_json(unbandit):
    listed = json.loads(unbandit("demonstrators", "--json").out)
    assert set(listed) == set(package.rules() | package.linear_rules())
    assert {"alpha", "scale", "sigma"} <= set(listed["ucb"]["parameters"])
    assert (listed["softmax"]["title"], listed["softmax"]["aliases"]) == ("Softmax (Boltzmann) choice", ["boltzmann"])
    assert list(json.loads(unbandit("demonstrators", "sae", "--json").out)) == ["sae"]


def test_datasets_are_listed(unbandit):
    done = unbandit("datasets")
    assert done.code == 0
    names = [line.split()[0] for line in done.out.splitlines()]
    assert names == list(package.datasets.names())
    assert json.loads(unbandit("datasets", "--json").out) == package.datasets.names()


@pytest.mark.parametrize(
    "arguments",
    [
        ["estimat"],
        ["--nothing"],
        ["estimate"],
        ["estimate", "log.csv"],
        ["estimate", "log.csv", "--rule"],
        ["estimate", "log.csv", "--rule", "ucb", "--nothing"],
        ["estimate", "log.csv", "--rule", "ucb", "--level", "high"],
        ["simulate", "two-armed", "--rule", "ucb"],
        ["simulate", "two-armed", "--rule", "ucb", "--horizon", "ten"],
        ["demo", "--horizon", "1.5"],
        ["datasets", "battery"],
    ],
    ids=" ".join,
)
def test_usage_errors_end_with_2(refused, arguments):
    refused(2, *arguments)


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "unbandit", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"unbandit {package.__version__}\n")
