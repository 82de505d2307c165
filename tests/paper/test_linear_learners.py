"""The picture of learners with features: what its claims say of runs whose answers are known."""

from __future__ import annotations

import numpy as np
import pytest

from unbandit.paper import contexts
from unbandit.paper.claims import FAILS, HOLDS, UNTESTED
from unbandit.paper.contexts import Learners, learner_claims
from unbandit.paper.reproduce import reproduce

STRENGTHS = (0.25, 0.5, 1.0, 2.0)


def learners(regret_power, error_power, name="linucb", noise=0.02, height=1.0):
    """Return forty runs whose means follow powers of the strength, with a little scatter."""
    generator, along = np.random.default_rng(1), np.array(STRENGTHS)
    scatter = np.exp(noise * generator.standard_normal((3, 40, along.size)))
    powers = (regret_power, error_power, error_power / 2)
    regret, error, angle = (along**power * each for power, each in zip(powers, scatter, strict=True))
    return Learners(name, "α", STRENGTHS, regret, height * error, angle)


def verdicts(ucb, thompson):
    return [(claim.says, claim.verdict, claim.measured.value) for claim in learner_claims(ucb, thompson)]


def test_exploration_that_costs_and_helps():
    found = verdicts(learners(1.0, -1.0), learners(1.0, -1.0, "lints", height=3.0))
    assert [verdict for _, verdict, _ in found] == [HOLDS] * 13
    values = [value for _, _, value in found]
    assert values[0] == pytest.approx(1, abs=0.05)  # regret
    assert values[4] == pytest.approx(-1, abs=0.05)  # error against regret
    assert values[-1] == pytest.approx(3, abs=0.2)  # at equal regret


def test_exploration_that_costs_nothing_and_leaves_nothing():
    found = {says: verdict for says, verdict, _ in verdicts(learners(-1.0, 1.0), learners(-1.0, 1.0, "lints"))}
    assert found["(a) more exploration pays more regret (linucb)"] == FAILS
    assert found["(b) more exploration leaves a smaller error (lints)"] == FAILS
    assert found["(d) more exploration shows the direction better (linucb)"] == FAILS
    assert found["(c) at equal regret linucb leaves a smaller error than lints"] == UNTESTED


def test_runs_that_scatter_decide_nothing_and_refused_logs_are_left_out():
    noisy = learners(0.0, 0.0, noise=1.5)
    found = [verdict for says, verdict, _ in verdicts(noisy, noisy) if says.startswith("(d)")]
    assert found == [UNTESTED, UNTESTED]
    holes = learners(1.0, -1.0)
    holes.error[:10, 0] = np.nan
    assert holes.answered.tolist() == [0.75, 1.0, 1.0, 1.0]
    assert np.isfinite(holes.means(holes.error)).all()


def test_the_picture_has_a_table_and_claims_of_ours(small):
    made = small("linear-learners").made[0]
    assert all(claim.ours for claim in made.claims)
    assert len(made.claims) == 13
    assert made.figure.beyond
    text = small("linear-learners").page.read_text(encoding="utf-8")
    assert "<h1>Beyond the paper</h1>" in text


def test_learners_are_played_on_as_many_threads_as_were_asked_for(tmp_path, monkeypatch):
    counts = []

    def in_threads(work, places, count):
        counts.append(count)
        return [(1.0 + run + at, 2.0 + run + at, 3.0 + run) for run, at in places]

    monkeypatch.setattr(contexts.checks, "in_threads", in_threads)
    reproduce(["linear-learners"], tmp_path, runs=4, threads=3)
    assert counts == [3, 3]
