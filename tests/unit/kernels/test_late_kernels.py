"""Kernels that have little to do run as plain Python, with the same results."""

from __future__ import annotations

import math

import numpy as np
import pytest

import unbandit as ub
from unbandit.estimators.procedures import Anchor, compare, intervals, needed
from unbandit.inference.steps import steps_of
from unbandit.kernels import comparison
from unbandit.kernels import intervals as intervals_of_gaps
from unbandit.kernels import tally as counts
from unbandit.kernels.compile import LateKernel, compiled_late
from unbandit.kernels.smc.decisions import index_offsets
from unbandit.log.tallies import tally

KERNELS = (
    comparison.compare_index, comparison.compare_elimination, comparison.compare_naive,
    intervals_of_gaps.fill_intervals, counts.tally_runs,
)  # fmt: skip
MEANS, NOISE = [0.9, 0.5, 0.2, 0.1, 0.05], ub.Gaussian(0.5)


def answers(rule, method):
    noise = ub.Bernoulli() if isinstance(rule, ub.KLUCB) else NOISE
    log = rule.demonstrate(ub.Instance(MEANS, noise=noise), 400, runs=3, seed=5)
    tallies = tally(log.actions, log.offsets, 5, needed(rule, method))
    found = compare(tallies, rule, method, 400, 1.0, Anchor(None, 0.9), noise, at_the_end=True)
    return [
        *tallies.counted,
        found.best,
        found.verdict,
        found.numbers,
        *intervals(found, noise, Anchor(None, 0.9), 2.0),
    ]


@pytest.mark.parametrize(
    ("rule", "method"),
    [(ub.UCB1(), "bracket"), (ub.UCB(alpha=0.25), "switching"), (ub.UCB(alpha=0.25), "counts"),
     (ub.SAE(alpha=0.25), "bracket"), (ub.UCB1(), "naive"), (ub.KLUCB(), "bracket"),
     (ub.BayesUCB(noise="gaussian", sigma=0.5), "bracket")],
)  # fmt: skip
def test_python_and_compiled_code_agree(rule, method, monkeypatch):
    def refuse(*arguments):
        pytest.fail("the compiled kernel answered")

    found = []
    for budget in (10**9, -1):
        with monkeypatch.context() as patched:
            for kernel in KERNELS:
                patched.setattr(kernel, "budget", budget)
                if budget > 0:
                    patched.setattr(kernel, "kernel", refuse)
            found.append(answers(rule, method))
    for plain, by_machine in zip(*found, strict=True):
        np.testing.assert_array_equal(plain, by_machine)
    assert np.isfinite(found[0][-1]).any() or method == "naive"


@pytest.mark.parametrize("rule", [ub.UCB1(), ub.BayesUCB(noise="gaussian", sigma=0.5)], ids=str)
def test_offsets_in_python_are_those_of_compiled_code(rule):
    actions = ub.UCB1().demonstrate(ub.Instance(MEANS, noise=NOISE), 200, seed=1).demonstration(0).astype(np.int64)
    steps, parameters = steps_of(actions, np.full(200, np.nan), tuple("abcde"), 1, 1), rule.parameters(1_000)
    plain, by_machine = np.zeros((200, 5)), np.zeros((200, 5))
    LateKernel(index_offsets.kernel, 1_000, index_offsets.plain).for_work(1_000)(parameters, steps, 5, plain)
    index_offsets(parameters, steps, 5, by_machine)
    np.testing.assert_array_equal(plain, by_machine)
    assert plain[-1].min() > 0


def test_a_kernel_is_compiled_once_its_work_is_used_up():
    @compiled_late(spared=10)
    def doubled(x):
        return 2 * x

    assert [doubled.for_work(5)(x) for x in (1, 2)] == [2, 4]
    assert not doubled.kernel.signatures
    assert doubled.for_work(1)(3) == 6
    assert doubled.kernel.signatures


def test_where_python_raises_an_error_compiled_code_answers():
    @compiled_late(spared=10)
    def inverse(x):
        return 1.0 / x

    assert inverse.for_work(1)(0.0) == math.inf
    assert inverse.kernel.signatures
