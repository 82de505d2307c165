"""A new demonstrator is one file: these tests write such files, import them, and see them at work."""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import pickle
import subprocess
import sys
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
from reference import reference_index, simulated, switching_read

from unbandit.demonstrators import AdditiveIndexRule, IndexRule, parse_rule, rules
from unbandit.errors import NotIdentifiable
from unbandit.estimators import estimate
from unbandit.instance import Bernoulli, Instance
from unbandit.kernels.compile import digest_of
from unbandit.kernels.formula import _files_behind

ADDITIVE = '''
from typing import ClassVar
import numpy as np
from unbandit.demonstrators import AdditiveIndexRule

class ToyAdditive(AdditiveIndexRule):
    """Add a bonus that falls with the square root of the pulls."""

    name: ClassVar[str] = "toy-additive"
    bonus: float = 1.0

    def width(self, pulls, horizon):
        return self.bonus / np.sqrt(pulls)
'''
FORMULA = '''
import math
from typing import ClassVar
from unbandit.demonstrators import IndexRule

class ToyFormula(IndexRule):
    """Add a bonus that grows with the mean: no width will do."""

    name: ClassVar[str] = "toy-formula"
    bonus: float = 1.0

    @staticmethod
    def formula(parameters, mean, pulls, round):
        return mean + parameters.bonus * math.sqrt(1.0 + mean * mean) / pulls
'''
GROWING = '''
import math
from typing import ClassVar
from unbandit.demonstrators import IndexRule

class ToyGrowing(IndexRule):
    """Let idle arms' indices grow with the round, as UCB1 does."""

    name: ClassVar[str] = "toy-growing"
    uses_round: ClassVar[bool] = True

    @staticmethod
    def formula(parameters, mean, pulls, round):
        return mean + math.sqrt(2.0 * math.log(round) / pulls)
'''
FILES = {"toy-additive": ADDITIVE, "toy-formula": FORMULA, "toy-growing": GROWING}
INSTANCES = {
    "Gaussian": Instance([0.1, 1.0, 0.5, 0.7], 0.5),
    "Bernoulli": Instance([0.5, 0.5, 0.2], Bernoulli()),
    "many arms": Instance(np.random.default_rng(0).random(70), 0.3),
}
every_toy = pytest.mark.parametrize("name", FILES)
every_instance = pytest.mark.parametrize("instance", INSTANCES.values(), ids=INSTANCES)


def import_file(path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def toys(tmp_path):
    """Write each toy as a file of its own, import it, and forget it afterwards; its rules go with the test."""
    for name, text in FILES.items():
        file = tmp_path / f"{name.replace('-', '_')}.py"
        file.write_text(text)
        import_file(file)
    yield
    for name in FILES:
        del sys.modules[name.replace("-", "_")]


@every_toy
def test_is_listed_parsed_and_written(name):
    assert name in rules()
    rule = parse_rule(name)
    assert (rule.name, rule.ties) == (name, "lowest")
    assert parse_rule(str(rule)) == rule
    assert type(rule).model_validate_json(rule.model_dump_json()) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert len(rule.summary().splitlines()) == 1


@every_toy
@every_instance
@pytest.mark.parametrize("ties", ["lowest", "random"])
def test_is_simulated_as_its_index_says(name, instance, ties):
    rule = parse_rule(f"{name}:ties={ties}")
    for run, played in enumerate(simulated(rule, instance, 150, 2, seed=4).tolist()):
        assert played == reference_index(rule, instance, 150, run, 4)


@pytest.mark.parametrize("name", ["toy-additive", "toy-formula"])
def test_reads_its_own_parameters(name):
    instance = INSTANCES["Gaussian"]
    for bonus in (0.1, 5.0):
        rule = parse_rule(f"{name}:bonus={bonus}")
        assert simulated(rule, instance, 150, seed=4)[0].tolist() == reference_index(rule, instance, 150, 0, 4)


@every_toy
@every_instance
def test_is_counted(name, instance):
    rule = parse_rule(name)
    counts = rule.evidence(instance, 500, runs=2, seed=3)
    for run, actions in enumerate(simulated(rule, instance, 500, 2, 3)):
        pulls, _, own, of_best = switching_read(actions, len(instance))
        for found, expected in ((counts.pulls, pulls), (counts.own, own), (counts.of_best, of_best)):
            assert np.array_equal(found[run], expected)


def test_an_additive_toy_is_estimated():
    # arm A: 1 + 8 pulls, arm B: 1 + 1; B's last pull that A follows is its second, in round 4, after 2 pulls of A.
    # The gap is bonus / sqrt(2) - bonus / sqrt(2) = 0 there; one round later A would have had 3 pulls.
    rule = parse_rule("toy-additive:bonus=2")
    answer = estimate(list("ABABAAAAAAA"), rule, sigma=1.0, level=0.9, method="switching")
    assert answer["B"].verdict == "estimated"
    assert answer["B"].gap == pytest.approx(2 / math.sqrt(2) - 2 / math.sqrt(2))
    answer = estimate(list("ABAABAAAAAA"), rule, sigma=1.0, method="switching")
    assert answer["B"].gap == pytest.approx(2 / math.sqrt(2) - 2 / math.sqrt(3))


def test_a_toy_formula_is_inverted_where_a_mean_is_known():
    # arm B has 2 pulls and A 3 at the switching round: m + sqrt(1 + m^2) / 2 = 1 + sqrt(2) / 3
    rule, level = parse_rule("toy-formula"), 1 + math.sqrt(2) / 3
    with pytest.raises(NotIdentifiable, match=r"toy-formula: .*best_mean"):
        estimate(list("ABAABAAAAAA"), rule, sigma=1.0)
    mean = estimate(list("ABAABAAAAAA"), rule, sigma=1.0, best_mean=1.0, method="switching")["B"].mean
    assert mean + math.sqrt(1 + mean**2) / 2 == pytest.approx(level, rel=1e-9)


def test_a_toy_that_grows_with_the_round_is_equated_at_the_round_after_the_switching_one():
    # B's switching round is 5: its second pull, after 3 of A. Before round 6 both have ln 6.
    answer = estimate(list("ABAABAAAAAA"), parse_rule("toy-growing"), sigma=1.0, best_mean=1.0, method="switching")["B"]
    assert answer.gap == pytest.approx(math.sqrt(2 * math.log(6)) * (1 / math.sqrt(2) - 1 / math.sqrt(3)), rel=1e-9)


@every_toy
def test_an_arm_never_pulled_comes_first(name):
    rule = parse_rule(name)
    assert rule.index(0.0, 0, 1, 10) == np.inf
    assert simulated(rule, INSTANCES["many arms"], 70)[0].tolist() == list(range(70))


PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import edited
from unbandit.instance import Instance
print(edited.Rule().demonstrate(Instance([1.0, 0.5, 0.2]), 60, seed=1).actions.tolist())
"""


def test_an_edited_formula_is_compiled_anew(tmp_path):
    """No stale kernel: in a new process, with the same folder of compiled kernels, the edit is what runs."""
    file = tmp_path / "edited.py"
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)

    def play(text: str) -> str:
        file.write_text(text)
        given = [sys.executable, "-B", "-c", PROGRAM, str(tmp_path)]
        return subprocess.run(given, env=environment, capture_output=True, text=True, check=True).stdout

    original = GROWING.replace("ToyGrowing", "Rule")
    first, edited, again = play(original), play(original.replace("2.0 *", "9.0 *")), play(original)
    assert first == again
    assert first != edited
    assert any((tmp_path / "cache").rglob("*.nbc"))  # kernels were indeed kept


def closed_over(factor):
    class Closed(IndexRule):
        """Hold a number that is no parameter."""

        uses_round: ClassVar[bool] = True

        @staticmethod
        def formula(parameters, mean, pulls, round):
            return mean + factor * math.sqrt(math.log(round) / pulls)

    return Closed()


def from_a_notebook(factor):
    """Define a rule as a notebook's cell does: no file stands behind it."""
    names = {"__name__": "__main__"}
    exec(compile(GROWING.replace("2.0 *", f"{factor} *"), "<cell>", "exec"), names)
    return names["ToyGrowing"]()


@pytest.mark.parametrize("made", [closed_over, from_a_notebook])
def test_rules_that_differ_in_a_number_alone_are_told_apart(made):
    instance, small, large = INSTANCES["Gaussian"], made(0.1), made(50.0)
    for rule in (small, large):
        assert simulated(rule, instance, 60, seed=1)[0].tolist() == reference_index(rule, instance, 60, 0, 1)
    assert small.index(0.0, 1, 10, 60) < large.index(0.0, 1, 10, 60)


def test_a_rule_without_a_formula_says_so():
    class NoFormula(IndexRule):
        """Decide nothing."""

    class NoWidth(AdditiveIndexRule):
        """Decide nothing."""

    with pytest.raises(TypeError, match="needs a formula"):
        NoFormula().index(0.0, 1, 1, 10)
    with pytest.raises(TypeError, match="abstract"):
        NoWidth()


def test_a_helper_in_another_file_is_part_of_the_formula(tmp_path, monkeypatch):
    """Editing it must change the marker by which the compiled kernel is found."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "toy_helper.py").write_text(
        "from numba.extending import register_jitable\n\n@register_jitable\ndef bonus(n):\n    return 1.0 / n\n"
    )
    (tmp_path / "toy_caller.py").write_text(
        "from toy_helper import bonus\n\ndef formula(parameters, mean, pulls, round):\n    return mean + bonus(pulls)\n"
    )
    formula = importlib.import_module("toy_caller").formula
    behind = _files_behind(formula, set())
    assert {file.name for file in behind} == {"toy_helper.py", "toy_caller.py"}
    before = digest_of(*sorted(behind))
    (tmp_path / "toy_helper.py").write_text("# edited\n")
    assert digest_of(*sorted(behind)) != before
