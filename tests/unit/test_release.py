"""A release: one version everywhere, the recipe's dependencies are the package's, and a tool that refuses."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import shell

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


def test_the_builder_of_conda_packages_reads_the_recipe(recipe):
    builder = pytest.importorskip("rattler_build", reason="needs: pip install py-rattler-build")
    text = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
    (variant,) = builder.Stage0Recipe.from_yaml(text).render(builder.VariantConfig())
    rendered = variant.recipe.to_dict()
    assert rendered["package"] == {"name": "unbandit", "version": __version__}
    assert rendered["requirements"]["run"][0] == f"python {PROJECT['requires-python']}"
    with pytest.raises(builder.RattlerBuildError, match="noarch"):
        builder.Stage0Recipe.from_yaml(text.replace("noarch: python", "noarch: snake"))


def test_the_workflow_is_one_of_github(tmp_path):
    checker = pytest.importorskip("check_jsonschema", reason="needs: pip install check-jsonschema")
    schema = ["--quiet", "--builtin-schema", "vendor.github-workflows"]
    wrong = tmp_path / "release.yml"
    wrong.write_text(WORKFLOW.read_text(encoding="utf-8").replace("runs-on:", "run-on:"), encoding="utf-8")
    for path, code in ((WORKFLOW, 0), (wrong, 1)):
        with pytest.raises(SystemExit) as ended:
            checker.main([*schema, str(path)])
        assert ended.value.code == code


def test_the_source_distribution_has_every_file_of_the_repository():
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is not a clone of the repository")
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    kept = {line.partition("/")[0] for line in listed.splitlines()}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert kept - set(build["targets"]["sdist"]["include"]) == {".gitignore", "pyproject.toml"}  # always there


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
