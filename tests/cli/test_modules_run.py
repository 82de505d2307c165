"""How many of our modules one plain estimate runs: a reader can follow the command through them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import unbandit as ub

MOST_COMPILED = 50  # by the first estimate: to predict decisions, and to simulate the rule
MOST_MODULES = 39  # an answer, its words, arguments, rule and check, how it is waited for, its options; 11 read the log

# Counts the modules of ours in which a function is called while no module of ours is being imported. A class body and a
# module's own code are no function calls; Numba shows its compiled functions as frames without globals.
PROGRAM = """
import inspect, json, sys
from pathlib import Path

import unbandit

root, stack, ran = str(Path(unbandit.__file__).parent), [], set()

def watch(frame, event, _):
    code = frame.f_code
    if event not in ("call", "return") or not code.co_filename.startswith(root):
        return
    if code.co_name == "<module>":
        stack.append(code) if event == "call" else stack.pop()
    elif event == "call" and not stack and code.co_flags & inspect.CO_NEWLOCALS and "__name__" in frame.f_globals:
        ran.add(code.co_filename[len(root) + 1:])

from unbandit.cli import main
sys.argv = ["unbandit", *sys.argv[1:]]
sys.setprofile(watch)
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
finally:
    sys.setprofile(None)
print(json.dumps(sorted(ran)), file=sys.stderr)
"""


def modules_run(*arguments: str, cwd: object) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True, cwd=cwd
    )
    assert "best" in done.stdout
    return json.loads(done.stderr.splitlines()[-1])


def test_an_estimate_runs_few_modules(tmp_path):
    log = ub.UCB(alpha=0.25).demonstrate(ub.Instance([1.0, 0.5, 0.2], 0.5), 500, seed=1)
    log.write(tmp_path / "log.csv")
    asked = ("estimate", "log.csv", "--rule", "ucb:alpha=0.25", "--best-mean", "1")
    ub.estimate(log, "ucb:alpha=0.25", best_mean=1.0, sigma=1.0)  # compiles kernels, which runs some of their modules
    ran = [name for name in modules_run(*asked, cwd=tmp_path) if not name.startswith("kernels/")]  # compiled or not
    assert len(ran) <= MOST_MODULES, "\n".join(ran)
    assert sum(name.startswith("cli/") for name in ran) <= 7, ran


# Counts what numba compiles, also inside of other compilations, with no kernel kept from before.
COMPILING = """
import sys
from numba.core.compiler import CompilerBase

compile_core, compiled = CompilerBase._compile_core, []

def counted(self):
    compiled.append(self.state.func_id.func_qualname)
    return compile_core(self)

CompilerBase._compile_core = counted
from unbandit.cli import main
sys.argv = ["unbandit", *sys.argv[1:]]
try:
    main()
finally:
    print(json.dumps(compiled), file=sys.stderr)
"""


@pytest.mark.processes
def test_the_first_estimate_compiles_few_functions(tmp_path):
    log = ub.UCB1().demonstrate(ub.Instance([1.0, 0.5, 0.2], 0.5), 500, seed=1)
    log.write(tmp_path / "log.csv")
    environment = {key: value for key, value in os.environ.items() if key != "UNBANDIT_CHECK"}
    done = subprocess.run(
        [sys.executable, "-c", f"import json{COMPILING}", "estimate", "log.csv", "--rule", "ucb1", "--sigma", "0.5"],
        capture_output=True, text=True, check=True, cwd=tmp_path,
        env=environment | {"NUMBA_CACHE_DIR": str(tmp_path / "empty")},
    )  # fmt: skip
    compiled = json.loads(done.stderr.splitlines()[-1])
    assert "predict_decisions" in compiled  # the check was made
    assert "compare_index" not in compiled
    assert len(compiled) <= MOST_COMPILED, "\n".join(compiled)
