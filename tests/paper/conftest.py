"""Every figure there is, made once, at a tiny size."""

from __future__ import annotations

import pytest

from unbandit.paper import contexts
from unbandit.paper.figure import Size, figures
from unbandit.paper.page import Reproduction
from unbandit.paper.reproduce import reproduce

RUNS = 4

REPEATED = {"battery-landscape-low", "battery-landscape-medium", "gene-all", "sae-bernoulli", "ucb-bernoulli"}
"""Figures that are drawn as others are, of more data: `make test-thorough` makes them."""


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Return a function that makes a figure from four runs; the second time it is there."""
    folder, kept = tmp_path_factory.mktemp("paper") / "small", {}
    contexts.HORIZON, contexts.PARTICLES = 30, 40  # a posterior takes longer than a study of four runs

    def make(name: str) -> Reproduction:
        if name not in kept:
            kept[name] = reproduce([name], folder, runs=RUNS)
        return kept[name]

    return make


@pytest.fixture(scope="session")
def tiny(small):
    """Return the reproduction of nearly all figures, those beyond the paper too, from four runs each."""
    each = [small(name) for name in figures() if name not in REPEATED]
    command = f"unbandit reproduce --runs {RUNS} --full"
    parts = sum(one.parts for one in each)
    made = [one.made[0] for one in each]
    return Reproduction(each[0].folder, Size(runs=RUNS, full=True), command, "", parts=parts, made=made)
