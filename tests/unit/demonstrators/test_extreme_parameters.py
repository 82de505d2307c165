"""Parameters at the ends of what is allowed: an answer or a refusal of ours, never an error of arithmetic or memory."""

from __future__ import annotations

import pytest

import unbandit as ub

INSTANCE = ub.Instance([0.5, 0.1], 0.5)
LOG = ub.UCB(alpha=0.25).demonstrate(INSTANCE, 30, seed=1)

REFUSED = {
    "thompson:sigma=1e-300": "thompson: sigma: expected 1e-150 or more",
    "thompson:deviation=1e-300": "thompson: deviation: expected 1e-150 or more",
    "epsilon-greedy:initial=99999999999999999999999999": "initial: expected less than 4294967296",
    "softmax:batch=99999999999999999999999999": "batch: expected less than 4294967296",
    f"moss:arms={'9' * 400}": "arms: expected a finite number|arms: expected a number",
    "ucb:scale=1e308,alpha=0.99": "expected a finite width",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_no_computer_can_hold_is_refused(text: str) -> None:
    with pytest.raises(ub.ParameterError, match=REFUSED[text]):
        ub.parse_rule(text).demonstrate(INSTANCE, 30)
    with pytest.raises(ub.ParameterError, match=REFUSED[text]):
        ub.identify(LOG, [text, "uniform"], sigma=0.5, particles=50)


@pytest.mark.parametrize("text", ["ucb:initial=4294967295", "ucb:batch=4294967295"])
def test_what_a_record_cannot_show_is_no_error(text: str) -> None:
    assert ub.identify(LOG, [text, "uniform"], sigma=0.5, particles=50).winner == "uniform"
    assert len(ub.parse_rule(text).demonstrate(INSTANCE, 30)) == 1
