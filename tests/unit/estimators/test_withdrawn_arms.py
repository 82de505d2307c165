"""Arms that a rule of chance is not likely to have left for good: a warning that asks whether they were withdrawn."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest
from reference_posterior import exact_posterior

import unbandit as ub
from unbandit.errors import Notice
from unbandit.estimators.check import STANDS, UNRELIABLE, withdrawn_arms
from unbandit.estimators.procedures import Anchor
from unbandit.fit import Check, not_checked
from unbandit.inference import rivals
from unbandit.inference.prior import usual_prior
from unbandit.inference.rivals import MOST_SILENT, Silence, longest_silences, withdrawals

INSTANCE, RULE = ub.Instance([1.0, 0.8, 0.4, 0.7], 0.5, ("A", "B", "C", "D")), "softmax:temperature=0.2"
GAUSSIAN, GONE, FITS = ub.Gaussian(0.5), {"B": (None, 150)}, Check("fits", 1.0, 399)

pytestmark = pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")


def made(text: str = RULE, seed: int = 8, rounds: int = 400, **options: object) -> ub.ActionLog:
    return ub.parse_rule(text).demonstrate(INSTANCE, rounds, seed=seed, **options)


def warned(
    log: ub.ActionLog, text: str = RULE, check: Check = FITS, anchor: Anchor | None = None,
    **told: object,
) -> list[Notice]:  # fmt: skip
    """Ask without the posteriors, whose evidence is then computed."""
    request = SimpleNamespace(
        log=log, rule=ub.parse_rule(text).for_arms(4), noise=GAUSSIAN, availability=told.get("availability"),
        anchor=anchor, horizons=log.lengths,
    )  # fmt: skip
    return withdrawn_arms(request, check, [SimpleNamespace(prior=usual_prior(GAUSSIAN, None), log_evidence=None)])


def test_an_arm_that_was_withdrawn_is_named_with_its_round_and_a_table(tmp_path):
    log = made(availability=GONE)
    last = int(np.flatnonzero(log.demonstration(0) == 1)[-1]) + 1
    answer = ub.estimate(log, RULE, sigma=0.5, check=True, particles=100)
    (notice,) = (each for each in answer.warnings if each.code == "perhaps-withdrawn")
    assert (notice.arm, notice.round, notice.demonstration, notice.count) == ("B", last, None, None)
    assert notice.code in UNRELIABLE  # with --strict the command ends with 4
    assert re.search(r"never pulled after round \d+\. Under the rule assumed, the log is about 10\^\d", notice.message)
    fits = [each.text for each in answer.notes if each.code == "fits"]
    assert all(each.endswith(STANDS) for each in fits)
    (tmp_path / "arms.csv").write_text("".join(f"{line}\n" for line in re.findall("`([^`]*,[^`]*)`", notice.message)))
    assert f"`B,,{last}`" in notice.message
    told = ub.estimate(log, RULE, sigma=0.5, check=False, particles=100, availability=tmp_path / "arms.csv")
    assert told.to_dict()["warnings"] == []
    found = ub.posterior(log, RULE, sigma=0.5, particles=100, check=True)
    assert ("perhaps-withdrawn", "B") in [(each.code, each.arm) for each in found.warnings]


@pytest.mark.parametrize("text", ["thompson:sigma=0.5", RULE, "epsilon-greedy:epsilon=0.1"])
def test_arms_of_rules_that_choose_at_random_are_asked_about(text):
    assert warned(made(text), text) == []
    (notice,) = warned(made(text, rounds=600, availability={"A": (None, 200)}), text)
    assert notice.arm == "A"


def test_others_are_not_asked_about():
    gone = made(availability=GONE)
    slow = ub.ActionLog.from_codes(np.repeat(gone.demonstration(0), 5), INSTANCE.arms)
    assert warned(slow, f"{RULE},batch=5") == []  # its choices among fewer arms are not known
    assert warned(gone, "ucb1") == []
    assert warned(gone, availability="told") == []
    assert warned(gone, check=not_checked("No check was asked for.")) == []


def test_a_silence_is_weighed_as_in_plain_python(monkeypatch):
    """Of two arms the one that is left is chosen with probability 1."""
    monkeypatch.setattr(rivals, "FEWEST_NATS", 0.0)
    rule, actions = ub.parse_rule("thompson:noise=bernoulli").for_arms(2), [0, 1, 1, 1, 1, 0, 0, 0, 0]
    log, prior = ub.ActionLog.from_codes(np.array(actions), ["a", "b"]), ub.BetaPrior()
    whole, before = (exact_posterior(rule, [each], 2, (1.0, 1.0), 9)[0] for each in (actions, actions[:5]))
    for own in (None, whole):
        (found,) = withdrawals(log, rule, ub.Bernoulli(), prior, 9, 1, 1, own=own)
        assert found[:3] == (1, 4, 5)
        assert found.nats == pytest.approx(before - whole, abs=0.1)


def test_the_more_arms_and_demonstrations_the_more_it_takes():
    silence = Silence(0, 10, 100, 8.0)
    assert (silence.is_odd(4), silence.is_odd(10), silence.is_odd(4, 2)) == (True, False, False)


def test_few_arms_are_asked_about_and_none_that_was_pulled_last():
    actions = np.concatenate([np.tile(np.arange(6), 20), np.full(400, 5)])
    found = longest_silences(actions, 8)  # two were never pulled
    assert len(found) == MOST_SILENT
    assert {each.arm for each in found} < set(range(5))
    assert longest_silences(np.tile(np.arange(4), 50), 4) == []


def test_of_several_demonstrations_the_clearest_is_named_and_all_are_counted():
    plays = [made(seed=seed, availability=GONE if seed else None).demonstration(0).tolist() for seed in (0, 8, 11)]
    log = ub.ActionLog.from_actions([[INSTANCE.arms[code] for code in play] for play in plays], arms=INSTANCE.arms)
    (notice,) = warned(log)
    assert (notice.arm, notice.count) == ("B", 2)
    assert notice.demonstration in ("2", "3")
    assert notice.message.startswith('In 2 of 3 demonstrations an arm is left too soon. Arm "B" is never pulled after')


def test_a_known_mean_is_known_in_both_readings():
    (plain,), (anchored,) = (warned(made(availability=GONE), anchor=each) for each in (None, Anchor(0, 1.0)))
    assert (plain.arm, plain.round) == (anchored.arm, anchored.round)
