"""A study from a TOML file: what may stand there, and what is said about what may not."""

from __future__ import annotations

import pickle

import pytest

from unbandit import Bernoulli, DescriptionError, Gaussian, Instance, ParameterError, datasets
from unbandit.study import ShrinkingGap, Study

HEAD = 'rules = ["ucb:alpha=0.25"]\nhorizons = [500, 1000]\nruns = 100\n'
TWO = '[[instances]]\ndataset = "two-armed"\n'


@pytest.fixture
def read(tmp_path):
    def reading(text: str | bytes, **options: int) -> Study:
        path = tmp_path / "study.toml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return Study.read(path, **options)

    return reading


def test_1e2_is_a_whole_number(read):
    assert read(HEAD.replace("[500, 1000]", "[5e2, 1e3]").replace("100", "1e2") + TWO) == read(HEAD + TWO)


def test_everything_that_may_stand_there(read):
    study = read(
        """
        rules = ["ucb:alpha=0.25", "sae"]
        horizons = {from = 500, to = 5000, points = 4, spacing = "log"}
        runs = 30
        seed = 5
        estimators = ["switching", "naive:constant=0.75"]
        level = 0.9

        [[instances]]
        dataset = "two-armed"

        [[instances]]
        dataset = "battery-high"
        arms = 20

        [[instances]]
        dataset = "gene"
        arms = [1, 6490, 12979]
        name = "three genes"

        [[instances]]
        dataset = "shrinking-gap"
        beta = 0.05

        [[instances]]
        dataset = "shrinking-gap"
        beta = 0.05
        bernoulli = true

        [[instances]]
        name = "coins"
        means = [0.9, 0.1]
        bernoulli = true
        arms = ["gold", "lead"]

        [[instances]]
        means = [1, 0.5, 0.25]
        sigma = 2
        """
    )
    assert study == Study(
        [
            "two-armed",
            datasets.battery("high", 20),
            Instance((three := datasets.gene([1, 6490, 12979])).means, three.noise, three.arms, "three genes"),
            ShrinkingGap(0.05),
            ShrinkingGap(0.05, bernoulli=True),
            Instance([0.9, 0.1], Bernoulli(), ["gold", "lead"], "coins"),
            Instance([1.0, 0.5, 0.25], Gaussian(2.0)),
        ],
        ["ucb:alpha=0.25", "sae"],
        [500, 1077, 2321, 5000],
        runs=30,
        seed=5,
        estimators=["switching", "naive:constant=0.75"],
        level=0.9,
    )


def test_what_is_left_out_is_as_in_python(read):
    assert read(HEAD + TWO) == Study(["two-armed"], ["ucb:alpha=0.25"], [500, 1000], 100)
    assert read('instances = ["two-armed", "linear"]\n' + HEAD) == Study(
        ["two-armed", "linear"], ["ucb:alpha=0.25"], [500, 1000], 100
    )
    assert read(b"\xef\xbb\xbf" + (HEAD + TWO).encode()) == read(HEAD + TWO)  # as some editors save it


def test_runs_and_seed_can_be_given_beside_the_file(read):
    assert read(HEAD + TWO, runs=7, seed=3) == Study("two-armed", "ucb:alpha=0.25", [500, 1000], 7, seed=3)
    assert read(HEAD.replace("runs = 100", "") + TWO, runs=7).runs == 7
    with pytest.raises(ParameterError, match=r"^runs: expected a whole number from 2"):
        read(HEAD + TWO, runs=1)
    with pytest.raises(ParameterError, match=r"^seed: expected"):
        read(HEAD + TWO, seed=-1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "instances: expected a list of data sets, or tables under [[instances]]; there is no such key. Add it."),
        (HEAD, "instances: expected a list"),
        ("instances = []\n" + HEAD, "instances: expected a list of data sets, or tables under [[instances]]; got []."),
        (HEAD.replace("runs = 100", "") + TWO, "runs: expected a whole number, as in runs = 100; there is no such key"),
        (HEAD.replace("= 100", "= 1") + TWO, "runs: expected a whole number from 2 to 2^32 - 1; got 1"),
        (HEAD.replace("= 100", "= 100.5") + TWO, "runs: expected a whole number, as in runs = 100; got 100.5."),
        (HEAD.replace("= 100", '= "many"') + TWO, "runs: expected a whole number, as in runs = 100; got 'many'."),
        (HEAD.replace("= 100", "= true") + TWO, "runs: expected a whole number, as in runs = 100; got True."),
        ("run = 1\n" + HEAD + TWO, 'expected keys among instances, rules, horizons, runs, seed, estimators, level; got '
         '"run". Did you mean "runs"?'),
        (HEAD + TWO + "seed = 3\n", 'instance 1: expected keys among dataset, name, arms, beta, means, sigma, bernoulli'
         '; got "seed". Put it before the first [[instances]]'),
        (HEAD + TWO + "arm = 3\n", 'got "arm". Did you mean "arms"?'),
        (HEAD + TWO.replace("[[", "[").replace("]]", "]"), "Write [[instances]], with two brackets."),
        ("instances = [3]\n" + HEAD, "instance 1: expected the name of a data set or a table; got 3."),
        (HEAD + TWO + TWO, 'instances: expected each once; got "two-armed" twice. Give one of them another name.'),
        (HEAD + '[[instances]]\ndataset = "two"\n', 'instance 1: dataset: expected one of two-armed, '),
        (HEAD + TWO + "arms = 3\n", 'instance 1: arms: expected none or 2 for "two-armed"; got 3.'),
        (HEAD + TWO + "arms = 1.5\n", "instance 1: arms: expected how many arms"),
        (HEAD + TWO + "beta = 0.5\n", "instance 1: beta: expected only with"),
        (HEAD + TWO + "sigma = 1\n", "instance 1: sigma, bernoulli: a data set has its own noise"),
        (HEAD + TWO + "means = [1, 0]\n", "instance 1: expected dataset or means, one of the two."),
        (HEAD + '[[instances]]\nname = "x"\n', "instance 1: expected dataset or means"),
        (HEAD + '[[instances]]\ndataset = "shrinking-gap"\n', "instance 1: beta: expected with shrinking-gap"),
        (HEAD + '[[instances]]\ndataset = "shrinking-gap"\nbeta = -1\n', "instance 1: beta: expected a number from 0"),
        (HEAD + '[[instances]]\ndataset = "shrinking-gap"\nbeta = 1\narms = 2\n', "instance 1: arms, name: "),
        (HEAD + '[[instances]]\ndataset = "shrinking-gap"\nbeta = 1\nsigma = 2\n', "instance 1: sigma: shrinking"),
        (HEAD + "[[instances]]\nmeans = [1]\n", "instance 1: means: expected a list of two numbers or more"),
        (HEAD + '[[instances]]\nmeans = [1, "x"]\n', "instance 1: means: expected a list of numbers"),
        (HEAD + "[[instances]]\nmeans = [1, 0]\nsigma = 0\n", "instance 1: sigma: expected a positive number; got 0"),
        (HEAD + "[[instances]]\nmeans = [1, 0]\nsigma = 1\nbernoulli = true\n", "instance 1: sigma: Bernoulli rewards"),
        (HEAD + "[[instances]]\nmeans = [2, 0]\nbernoulli = true\n", "instance 1: means: expected probabilities"),
        (HEAD + "[[instances]]\nmeans = [1, 0]\narms = 2\n", "instance 1: arms: expected the arms' names"),
        (HEAD + "[[instances]]\nmeans = [1, 0]\nbeta = 2\n", "instance 1: beta: expected only with"),
        (HEAD.replace("ucb", "ucbb") + TWO, 'rules: expected one of '),
        (HEAD.replace("0.25", "2,x=3") + TWO, "rules: ucb: "),
        (HEAD.replace('["ucb:alpha=0.25"]', '"ucb"') + TWO, "rules: expected a list of rules, as in"),
        (HEAD.replace("[500, 1000]", "500") + TWO, "horizons: expected a list of whole numbers, or {from = 500"),
        (HEAD.replace("[500, 1000]", "[500, 0]") + TWO, "horizons: expected a whole number from 1"),
        (HEAD.replace("[500, 1000]", "{from = 5}") + TWO, "horizons: to: expected a whole number, as in to = 5000; "),
        (HEAD.replace("[500, 1000]", "{from = 5, to = 6, points = 10}") + TWO, "horizons: points: expected at most"),
        (HEAD.replace("[500, 1000]", '{from = 5, to = 60, points = 3, spacing = "x"}') + TWO,
         'horizons: spacing: expected "log" or "linear"; got \'x\'.'),
        (HEAD.replace("[500, 1000]", "{from = 5, till = 9}") + TWO, 'horizons: expected keys among from, to, points'),
        ('estimators = ["best"]\n' + HEAD + TWO, "estimators: expected one of bracket, switching, counts, naive"),
        ("level = 95\n" + HEAD + TWO, "level: expected a number between 0 and 1; got 95"),
        ("level = 0.9\nlevel = 0.8\n" + HEAD + TWO, "expected a TOML file; got a mistake in it: Cannot overwrite"),
        ("rules = ucb\n" + TWO, "(at line 1, column 9)"),
        ("x = " + 5_000 * "[", "nested too deeply"),
        ("a" + ".a" * 1_500 + " = 1", "nested too deeply"),
        (HEAD + "[[instances]]\nmeans" + ".a" * 990 + " = 1", "nested too deeply"),
        ("[rules" + ".a" * 1_500 + "]\nb = 1", "nested too deeply"),
        (HEAD.replace("= 100", "= " + 200 * "[" + 200 * "]") + TWO, "nested too deeply"),
        (HEAD.replace("= 100", "= " + 150 * "{a = " + "1" + 150 * "}") + TWO, "nested too deeply"),
        (b"rules = '\xe9'", "bytes that are not UTF-8. Save it as UTF-8."),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else value[:50].replace("\n", " "),
)  # fmt: skip
def test_what_is_said_about_what_may_not(read, tmp_path, text, said):
    with pytest.raises(DescriptionError) as refused:
        read(text)
    assert not isinstance(refused.value, ParameterError)  # it is the file that is wrong, not the call
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 'study.toml'}: ")
    assert said in message
    assert message.endswith((".", "?"))
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "place", "key", "value"),
    [
        (HEAD.replace("= 100", "= 1") + TWO, None, "runs", 1),
        (HEAD.replace("= 100", "= 100.5") + TWO, None, "runs", 100.5),
        (HEAD + TWO + "arms = 3\n", "instance 1", "arms", 3),
        (HEAD + TWO + '[[instances]]\ndataset = "two"\n', "instance 2", "dataset", "two"),
        (HEAD + '[[instances]]\ndataset = "shrinking-gap"\n', "instance 1", "beta", None),
        (HEAD.replace("ucb", "ucbb") + TWO, None, "rules", "ucbb:alpha=0.25"),
        ('estimators = ["naive:constant=0"]\n' + HEAD + TWO, None, "estimators", "naive:constant=0"),
        (HEAD.replace("[500, 1000]", "{from = 5, to = 6, points = 10}") + TWO, "horizons", "points", 10),
        (HEAD + TWO + "seed = 3\n", "instance 1", None, 3),
    ],
)
def test_where_it_stands_can_be_asked(read, tmp_path, text, place, key, value):
    with pytest.raises(DescriptionError) as refused:
        read(text)
    error = pickle.loads(pickle.dumps(refused.value))
    assert (error.path, error.table, error.key, error.value) == (str(tmp_path / "study.toml"), place, key, value)
    assert str(error) == str(refused.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(DescriptionError, match=r"none\.toml: expected a TOML file; it could not be read: No such file"):
        Study.read(tmp_path / "none.toml")
    with pytest.raises(DescriptionError, match="could not be read: Is a directory"):
        Study.read(tmp_path)
