"""Help, version, and the lists of what there is."""

from __future__ import annotations

import json
import os
import re
import shlex
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


def test_summaries_fit_their_line(unbandit):
    lines = unbandit("--help").out.partition("Commands:")[2].splitlines()
    assert len(lines) > 12
    assert not [line for line in lines if line.endswith("...") or len(line) > 80]


@pytest.mark.parametrize("command", COMMANDS)
def test_types_of_python_are_not_shown_and_examples_can_be_copied(unbandit, command):
    text = unbandit(command, "--help").out
    assert not [word for word in ("<str>", "<int>", "<float>", "<list", "{LOG}") if word in text]
    assert re.findall(r"(--[\w-]+) TEXT", text) in ([], ["--title"])
    (example,) = re.findall(r"Example:  ((?:.*\\\n)*.*)\n", text)
    assert shlex.split(example.replace("\\\n", " "))[:2] == ["unbandit", command]
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("80", 80), ("300", 102)])
def test_help_follows_the_width_of_the_terminal(unbandit, monkeypatch, columns, widest):
    monkeypatch.setenv("COLUMNS", columns)
    lines = unbandit("posterior", "--help").out.splitlines()
    assert widest - 20 < max(map(len, lines)) <= widest


def test_options_stand_in_groups_the_most_needed_first(unbandit):
    text = unbandit("estimate", "--help").out
    places = [text.index(f"\n{name}:\n") for name in ("What you know", "Input", "Method", "Output", "Following")]
    assert places == sorted(places)
    assert "\nOptions:\n" not in text
    assert text.index("--rule RULE") < text.index("--sigma NUMBER") < text.index("--columns") < text.index("--level")


def test_options_of_a_command_without_a_log_say_what_is_simulated(unbandit):
    text = unbandit("simulate", "--help").out
    assert "What you know" not in text
    assert (
        text.index("What to simulate:") < text.index("--means 1") < text.index("Output:") < text.index("--truth FILE")
    )
    reading = unbandit("report", "--help").out
    assert reading.index("What you know:") < reading.index("--truth FILE") < reading.index("Output:")


def test_a_whole_number_may_have_an_exponent(unbandit, refused, tmp_path):
    asked = ("simulate", "two-armed", "--rule", "ucb", "--horizon")
    assert unbandit(*asked, "1e2", "--seed=2e0", "-o", tmp_path / "a.csv").code == 0
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 101
    refused(2, *asked, "1.5e0", "-o", tmp_path / "b.csv")


def test_quiet_prints_no_note_and_verbose_prints_all(unbandit, tmp_path):
    log = tmp_path / "log.csv"
    unbandit("simulate", "two-armed", "--rule", "ucb", "--horizon", "300", "-o", log)
    asked = ("estimate", log, "--rule", "ucb", "--sigma", "1", "--no-check", "--columns", "arm=arm")
    plain, quiet, loud = (unbandit(*asked, *more) for more in ((), ("-q",), ("--verbose",)))
    assert plain.out == quiet.out == loud.out
    assert "Theorem 2" not in plain.err
    assert "Theorem 2" in loud.err
    assert quiet.err == ""
    assert "Theorem 2" in unbandit(*asked, "--json").out


COMPLETED = {
    "--rule uc": {"ucb", "ucb1", "ucbv", "ucb-tuned"},
    "--rule ucb:al": {"ucb:alpha="},
    "--rule ucb:alpha=0.5,s": {"ucb:alpha=0.5,scale=", "ucb:alpha=0.5,sigma="},
    "--rule eg": {"egreedy"},
    "--rule q": {"q-learning"},
    "--rule ucb1:f": {"ucb1:fit"},
    "--rule uniform:f": set(),
    "--rule q-learning:r": {"q-learning:rate="},
    "--rule nobody:al": set(),
    "--columns arm=c": {"arm=choice"},
    "--features x": {"x1", "x2"},
}


@pytest.mark.parametrize("line", COMPLETED)
def test_the_shell_completes_rules_parameters_and_columns(line, tmp_path):
    log = tmp_path / "log.csv"
    log.write_text("choice,x1,x2\nA,1,2\nB,1,2\n")
    known = {name: value for name, value in os.environ.items() if not name.startswith("COMP_")}
    call = [sys.executable, "-m", "unbandit"]
    fish = {"_UNBANDIT_COMPLETE": "complete_fish", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    words = f"unbandit estimate {log} {line}"
    done = subprocess.run(call, env=known | fish | {"_TYPER_COMPLETE_ARGS": words}, capture_output=True, text=True)
    assert set(done.stdout.split()) == COMPLETED[line]
    split = re.sub("([:=])", r" \1 ", words).split()  # as bash does it
    bash = {"_UNBANDIT_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(split), "COMP_CWORD": str(len(split) - 1)}
    done = subprocess.run(call, env=known | bash, capture_output=True, text=True)
    assert set(done.stdout.split()) == {re.split("[:=]", each, maxsplit=line.count(":") + line.count("="))[-1]
                                        for each in COMPLETED[line]}  # fmt: skip


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_shown_for_the_shell_that_is_named(unbandit, refused, shell):
    done = unbandit("--show-completion", shell)
    assert (done.code, f"complete_{shell}" in done.out) == (0, True)
    assert unbandit(f"--show-completion={shell}").out == done.out
    assert "expected one of bash, zsh, fish" in refused(2, "--show-completion", "tcsh")


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
