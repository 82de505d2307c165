"""A record beside simulations of a rule, in a few statistics.

Arms are compared by rank, the most-pulled first: which arm it is, the simulations know from the record. All statistics
together are judged by the one furthest from the simulated ones, in their standard deviations. How far out the furthest
one of a record lies is itself simulated, so looking at many statistics raises no more false alarms.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unbandit.fit import Statistic, Wording
from unbandit.formatting import ordinal

MOST_RANKS = 5  # with more arms than this, not all ranks are compared
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)  # of the record, at which pulls are compared

Values = Mapping[str, NDArray[np.float64]]  # each statistic's values, one per run


def statistics_of(actions: NDArray[np.integer], arms: int) -> Values:
    """Return the statistics of simulated or observed actions (runs x rounds)."""
    runs, length = actions.shape
    changes = actions[:, 1:] != actions[:, :-1]
    switches = changes.sum(axis=1).astype(np.float64)
    starts = np.ones(actions.shape, np.bool_)
    starts[:, 1:] = changes
    row, at = np.nonzero(starts)
    lengths = np.diff(at, append=length)
    ends = np.flatnonzero(np.append(row[1:] != row[:-1], True))
    lengths[ends] = length - at[ends]
    values = {
        "switches": switches,
        "switches, later half": changes[:, length // 2 :].sum(axis=1).astype(np.float64),
        "longest run": np.maximum.reduceat(lengths, np.append(0, ends[:-1] + 1)).astype(np.float64),
        "runs of one pull": np.bincount(row, weights=lengths == 1, minlength=runs),
        "mean log run": np.bincount(row, weights=np.log(lengths), minlength=runs) / (switches + 1),
    }
    first = np.arange(runs)[:, None] * arms
    pulls = np.zeros((len(SHARES), runs, arms))
    start = 0
    for which, stop in enumerate(_parts(length)):
        counted = np.bincount((actions[:, start:stop] + first).reshape(-1), minlength=runs * arms).reshape(runs, arms)
        pulls[which] = counted if which == 0 else pulls[which - 1] + counted
        start = max(start, stop)
    order = np.argsort(-pulls[-1], axis=1, kind="stable")
    visits = np.bincount(row * arms + actions[row, at], minlength=runs * arms).reshape(runs, arms)
    for rank in _ranks(arms):
        own = order[:, rank, None]
        for which, rounds in enumerate(_parts(length)):
            values[_pulls_name(rank, rounds, length)] = np.take_along_axis(pulls[which], own, axis=1)[:, 0]
        values[f"runs, rank {rank + 1}"] = np.take_along_axis(visits, own, axis=1)[:, 0].astype(np.float64)
    return values


def _ranks(arms: int) -> Sequence[int]:
    return range(arms) if arms <= MOST_RANKS else (0, 1, 2, arms // 2, arms - 1)


def _parts(length: int) -> list[int]:
    """Return after how many rounds pulls are compared."""
    return [max(1, round(share * length)) for share in SHARES]


def _pulls_name(rank: int, rounds: int, length: int) -> str:
    return f"pulls, rank {rank + 1}" + ("" if rounds == length else f", first {rounds:,} rounds")


def wordings(arms: int, length: int) -> Mapping[str, Wording]:
    """Return how each statistic is said."""
    last, once = "with this rule it would last", "this rule would do so"
    found = {
        "switches": Wording("switches between arms", "The log switches arms", "this rule would switch"),
        "switches, later half": Wording(
            "switches in the later half", "In its later half the log switches arms", "this rule would switch"
        ),
        "longest run": Wording(
            "longest stay with one arm, in rounds", "The longest stay with one arm lasts", last, "round"
        ),
        "runs of one pull": Wording("stays of a single round", "The log leaves an arm after a single round", once),
        "mean log run": Wording(
            "typical stay with one arm, in rounds", "A typical stay with one arm lasts", last, "round", logarithm=True
        ),
    }
    for rank in _ranks(arms):
        arm = "least-pulled arm" if rank == arms - 1 else f"{ordinal(rank + 1)} most-pulled arm"
        arm = "most-pulled arm" if rank == 0 else arm
        for rounds in _parts(length):
            where = "" if rounds == length else f" in the first {rounds:,} rounds"
            found[_pulls_name(rank, rounds, length)] = Wording(
                f"pulls of the {arm}{where}", f"The {arm} has", "this rule would give it", "pull", where
            )
        found[f"runs, rank {rank + 1}"] = Wording(
            f"turns to the {arm}", f"The log turns to the {arm}", "this rule would turn to it"
        )
    return found


def compare(
    observed: Values, simulated: Values, words: Mapping[str, Wording] | None = None
) -> tuple[tuple[Statistic, ...], float | None]:
    """Return each statistic, the furthest first, and the probability that a simulated record lies as far out.

    None where no statistic differs between the record and the simulations, so that nothing is compared.
    """
    names, number = list(simulated), len(next(iter(simulated.values())))
    own = np.array([float(observed[name][0]) for name in names])
    others = np.column_stack([simulated[name] for name in names])
    # counts are skewed: they are compared as logarithms; the record is one of all, where the rule is right
    together = np.log1p(np.vstack([own, others]))
    centre, spread = together.mean(axis=0), together.std(axis=0)
    spread[np.ptp(together, axis=0) == 0] = 0.0  # the deviation of equal numbers is rounded, and not quite 0
    with np.errstate(divide="ignore", invalid="ignore"):
        far = np.abs(together - centre) / spread
    far[:, spread == 0] = 0.0
    furthest = far.max(axis=1)
    probability = float((furthest >= furthest[0] * (1 - 1e-9)).sum() / (number + 1)) if spread.any() else None
    tails = (1 + np.minimum((others <= own).sum(axis=0), (others >= own).sum(axis=0))) / (number + 1)
    low, median, high = np.quantile(others, (0.025, 0.5, 0.975), axis=0)
    columns = np.column_stack([own, low, median, high, np.minimum(1.0, 2 * tails), far[0]]).tolist()
    said = words or {}
    statistics = [
        replace(Statistic(name, *values), wording=said.get(name)) for name, values in zip(names, columns, strict=True)
    ]
    return tuple(sorted(statistics, key=lambda each: -each.distance)), probability
