"""Coverage of intervals from logs that miss rounds; `unbandit calibrate logs` measures it on more and longer ones."""

import numpy as np
import pytest

from unbandit import ActionLog, Instance, estimate
from unbandit.demonstrators import parse_rule

RUNS, ARMS, ROUNDS = 100, 4, 2_000


@pytest.mark.filterwarnings("ignore::unbandit.errors.AssumptionWarning")
@pytest.mark.parametrize("kept", [0.8, 0.1])
@pytest.mark.parametrize("text", ["ucb:alpha=0.25", "ucb1", "sae:alpha=0.25,scale=0.4"])
def test_intervals_hold_whatever_share_of_rounds_was_kept(text, kept):
    rule, held, bounds = parse_rule(text), [], []
    for run in range(RUNS):
        generator = np.random.default_rng([run, 5])
        means = generator.normal(size=ARMS)
        log = rule.demonstrate(Instance(means, 0.5), ROUNDS, seed=run)
        rows = ActionLog.from_codes(log.actions[generator.random(ROUNDS) < kept], log.arms)
        for arm in estimate(rows, rule, sigma=0.5, kept=kept, check=False):
            gap = means.max() - means[int(arm.arm)]
            low, high = (np.nan if end is None else end for end in (arm.gap_low, arm.gap_high))
            if arm.verdict in ("estimated", "bounded"):
                (held if arm.verdict == "estimated" else bounds).append(not (low > gap or gap > high))
    assert len(held) > 100  # 95% within three standard errors, which are at most 2.2%
    assert np.mean(held) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(held))
    assert not bounds or np.mean(bounds) > 0.9
