"""A release: one version everywhere, the recipe's dependencies are the package's, and a tool that refuses."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import shell

import unbandit
from unbandit import __version__

yaml = pytest.importorskip("yaml", reason="recipe and workflow are read with a YAML reader")

run_command = shell.unbandit
ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
CONDA_NAMES = {"matplotlib": "matplotlib-base"}  # where conda calls a package otherwise


@pytest.fixture(scope="module")
def recipe():
    return yaml.safe_load((ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def workflow():
    return yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))


def split(requirement: str) -> tuple[str, str]:
    name, bound = re.fullmatch(r"([\w-]+)\s*(.*)", requirement).groups()
    return CONDA_NAMES.get(name, name), bound


def test_the_recipe_has_the_dependencies_of_the_package(recipe):
    python, *others = recipe["requirements"]["run"]
    assert dict(map(split, others)) == dict(map(split, PROJECT["dependencies"]))
    assert (
        python.replace("${{ python_min }}", recipe["context"]["python_min"]) == f"python {PROJECT['requires-python']}"
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(map(split, project["build-system"]["requires"])) <= set(map(split, recipe["requirements"]["host"][1:]))


def test_the_recipe_is_of_this_package(recipe):
    assert recipe["context"]["version"] == __version__
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
    (entry,) = recipe["build"]["python"]["entry_points"]
    assert entry == f"unbandit = {PROJECT['scripts']['unbandit']}"


def test_the_workflow_publishes_what_it_tested_without_a_password():
    text = WORKFLOW.read_text(encoding="utf-8")
    jobs = workflow()["jobs"]
    assert workflow()[True] == {"push": {"tags": ["v*"]}}  # YAML reads "on" as true
    assert (jobs["test"]["needs"], jobs["publish"]["needs"]) == ("build", "test")
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text
    classified = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    assert jobs["test"]["strategy"]["matrix"]["python"] == classified


def test_the_workflow_names_what_there_is():
    steps = [step for job in workflow()["jobs"].values() for step in job["steps"]]
    commands = "\n".join(step.get("run", "") for step in steps)
    assert set(re.findall(r"\[(\w+)\]", commands)) <= set(PROJECT["optional-dependencies"])
    (tests, expression) = re.search(r"pytest (.*?) -n auto -m \"(.*?)\"", commands).groups()
    assert all((ROOT / folder).is_dir() for folder in tests.split())
    pytest_options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]
    markers = {text.partition(":")[0] for text in pytest_options["ini_options"]["markers"]}
    assert set(re.findall(r"not (\w+)", expression)) <= markers
    assert any(each.startswith("pytest-xdist") for each in PROJECT["optional-dependencies"]["dev"])
    assert " src" not in commands  # tests copy files from there
    for script in re.findall(r"python (\S+\.py)", commands):
        assert (ROOT / script).is_file()


def test_the_recipe_tries_commands_that_there_are(recipe, run_command):
    commands = [line.split() for test in recipe["tests"] if "script" in test for line in test["script"]]
    assert len(commands) >= 2
    for program, *options in commands:
        assert program in PROJECT["scripts"]
        assert run_command(*options).code == 0


def test_the_tool_refuses_what_is_not_ready(tool, tmp_path):
    for name in ("src/unbandit/_version.py", *tool.PLACES):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text(f"# Changelog\n\n## {__version__} (unreleased)\n\n- New.\n")
    assert tool.problems(tmp_path) == [f'CHANGELOG.md has "{__version__} (unreleased)"; expected "{__version__}"']
    changes.write_text(f"# Changelog\n\n## {__version__}\n\n- New.\n")
    assert tool.problems(tmp_path, f"v{__version__}") == []
    assert tool.problems(tmp_path, "v0.0.1") == [
        f"the tag is v0.0.1; expected v{__version__}, the version of the package"
    ]


def test_the_page_for_r_calls_what_there_is():
    text = (ROOT / "docs" / "r.md").read_text(encoding="utf-8")
    called = re.findall(r"ub\$(\w+)(?:\$(\w+))?", text)
    assert len(called) >= 4
    for name, method in called:
        assert hasattr(getattr(unbandit, name), method) if method else hasattr(unbandit, name)
    log = unbandit.ActionLog.from_actions("AB" + "AAAB" * 20 + "A" * 118)
    answer = unbandit.report(log, "ucb", sigma=0.2, check=False).answer
    (columns,) = set(re.findall(r'c\(("arm", "gap"[^)]*)\)', text))
    assert set(re.findall(r"\w+", columns)) <= set(answer.to_frame().columns) & set(answer.to_dict()["arms"][0])
    assert {"check", "warnings", "arms"} <= set(answer.to_dict())
