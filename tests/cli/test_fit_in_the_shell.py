"""`fit` in the place of a rule's number, as a user types it."""

from __future__ import annotations

import json

import pytest
import shell

import unbandit as ub

unbandit = shell.unbandit


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    ub.EpsilonGreedy(epsilon=0.2).demonstrate(ub.Instance([1.0, 0.5, 0.0], 0.5, arms="ABC"), 200, seed=4).write(path)
    return path


@pytest.mark.parametrize("command", ["estimate", "posterior"])
def test_json_has_what_was_fitted(unbandit, log, command):
    done = unbandit(command, log, "--rule", "egreedy:epsilon=fit", "--sigma", "0.5", "--particles", "50", "--json")
    assert done.code == 0, done.err
    answer = json.loads(done.out)
    (fitted,) = answer["fitted"]
    assert list(fitted) == ["parameter", "value", "low", "high", "method"]
    assert fitted["low"] < 0.2 < fitted["high"]
    assert answer["rule"].startswith("epsilon-greedy:epsilon=0.")


def test_people_are_told(unbandit, log):
    done = unbandit("posterior", log, "--rule", "egreedy:fit", "--sigma", "0.5", "--particles", "50")
    assert "note: Fitted from the log (evidence, by a particle filter): epsilon = 0." in done.err


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("estimate", "log.csv", "--rule", "sae:fit"), 4, "leaves one number per arm"),
        (
            ("estimate", "log.csv", "--rule", "ucb:scale=fit,delay=fit"),
            4,
            "delay is not fitted beside scale",
        ),
        (("estimate", "log.csv", "--rule", "ucb:fit", "--follow"), 2, "whose numbers are all known"),
        (("plan", "--rule", "ucb:fit", "--means", "1,0.5", "--within", "0.1"), 2, "whose numbers are all known"),
    ],
)
def test_what_is_refused(unbandit, log, arguments, code, text):
    done = unbandit(*arguments)
    assert (done.code, text in done.err) == (code, True), done.err
