"""The check on simulated records: how often it flags the rule that made a record, and how often another one.

Besides the rules themselves there are records that no rule of this package makes: a best arm that drifts, elimination
with other widths, rewards that scatter more or less than assumed. Between two index rules with normal rewards, nothing
can be better than the most powerful test: the ratio of the probabilities that they give to the record, with the means'
true prior. How often that one tells them apart bounds what any check can reach. And no test at 1% can flag a single
record that the assumed rule makes with a probability above 1%.
"""

import hashlib
import json
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.calibration.measure import MISSED, Criterion, Measure, Score, judge, percent
from unbandit.calibration.settings import NOISE, NORMAL, CellTrials, Sizes, short
from unbandit.demonstrators import IndexRule, parse_rule
from unbandit.errors import InferenceError, UnbanditError
from unbandit.estimators import estimate
from unbandit.estimators.coverage import SIGMA
from unbandit.estimators.procedures import quantile
from unbandit.fit import Check
from unbandit.inference.check import AnsweredMeans, check_log
from unbandit.inference.decisions import predict
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.log import ActionLog
from unbandit.study.monte_carlo import Measured, Share, share
from unbandit.study.taskgrid import Task

Floats = NDArray[np.float64]

UCB, UCB1, MOSS, KLUCB = "ucb:alpha=0.25", "ucb1", "moss", f"klucb:noise=gaussian,sigma={SIGMA}"
LILUCB, SAE, PHASED, EVEN_DAR = "lilucb", "sae:alpha=0.25", "phased:alpha=0.25", "Even-Dar elimination"
BERNOULLI_READ: Final = ("ucb1 on 0 and 1", "klucb", "ucbv")

RIGHT: Final = (UCB, UCB1, MOSS, KLUCB, LILUCB, SAE, PHASED, *BERNOULLI_READ)
"""Every rule with a closed form."""

PAIRED: Final = (UCB, UCB1, MOSS, KLUCB)  # read as each other
WITH_EVIDENCE: Final = (*PAIRED, LILUCB)  # between which the most powerful test is made
AT_RANDOM: Final = ("epsilon-greedy:epsilon=0.1", "softmax:temperature=0.2", f"thompson:sigma={SIGMA}", "uniform")
SCATTER: Final = {"sigma half": 0.5, "sigma double": 2.0}
TWISTS: Final = ("batches of 5", "batches of 20", "drift", *SCATTER)
EVIDENCES: Final = (*WITH_EVIDENCE, *SCATTER)  # of rules, and of the one that made a record with other rewards

SMALL, USUAL, LARGE = (2, 500), (4, 2_000), (10, 5_000)  # arms and rounds
RUNS = 300
RIGHT_DESIGNS: Final = ("random", "even", "random", "even", "near")  # of the means, in turn
OTHER_DESIGNS: Final = ("random", "even")
NEAR = 0.05  # within which nearly equal means are
FALSE_ALARMS = 0.02  # of records of the right rule, at most
LEVEL = 0.01  # of the most powerful test
EVIDENCE_PARTICLES = 80
FEWEST = 10  # records of either rule, for a bound
CONFIDENCE = 0.05  # risk of Even-Dar elimination
SECONDS = 0.4  # about, of an arm of a record that is checked

ONE_NUMBER = (
    "Even-Dar elimination and `sae` both play the active arms in turn and drop arms one by one, so a record is one "
    "number per arm: after how many pulls it went. Whatever that number is, there is a gap at which the assumed rule "
    "drops the arm just then, and nothing is left over that could be compared: only who knows the gaps beforehand "
    "could distinguish the two."
)


@dataclass(frozen=True)
class CheckCell:
    """Records that one rule made, and the rule that they are checked against."""

    made: str
    read: str
    arms: int
    horizon: int
    runs: int
    goal: float  # share to be flagged: at most where the rule is right, at least otherwise
    twist: str = ""  # how the records differ from the rule's own

    @property
    def right(self) -> bool:
        """Return whether the records are the rule's own."""
        return self.made == self.read and not self.twist

    @property
    def noise(self) -> Noise:
        """Return the noise that is assumed."""
        return Bernoulli() if self.read in BERNOULLI_READ else NOISE

    @property
    def designs(self) -> tuple[str, ...]:
        """Return the designs of means that runs take in turn."""
        return RIGHT_DESIGNS if self.right else OTHER_DESIGNS

    @property
    def described(self) -> dict[str, object]:
        """Return all that determines what is played and read, as plain values."""
        name = f"{self.made} as {self.read} {self.twist}".rstrip()
        return {
            "name": f"{name}, {self.arms} arms, {self.horizon} rounds", "made": self.made, "read": self.read,
            "twist": self.twist, "arms": self.arms, "horizon": self.horizon, "runs": self.runs,
        }  # fmt: skip

    def seed(self, seed: int) -> int:
        """Derive a seed from what is played: the same records are read by every rule."""
        text = json.dumps([seed, self.made, self.arms, self.horizon, self.twist, self.designs])
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def check_cells(runs: int | None = None) -> tuple[CheckCell, ...]:
    """Return every cell; `runs` replaces the number of runs of each."""
    number = RUNS if runs is None else runs

    def cell(made: str, read: str, size: tuple[int, int], goal: float, twist: str = "") -> CheckCell:
        return CheckCell(made, read, *size, number, goal, twist)

    return (
        *(cell(rule, rule, size, FALSE_ALARMS) for rule in RIGHT for size in (SMALL, USUAL, LARGE)),
        *(
            cell(made, read, size, goal)
            for read in PAIRED
            for made in PAIRED
            for size, goal in ((SMALL, 0.80), (USUAL, 0.95))
            if made != read
        ),
        cell(LILUCB, UCB, USUAL, 0.80),
        *(cell(made, UCB1, USUAL, 0.95) for made in AT_RANDOM),
        cell(EVEN_DAR, SAE, USUAL, 0.90),
        *(cell(rule, rule, USUAL, 0.95, twist) for rule in PAIRED for twist in TWISTS),
    )


def rule_text(text: str) -> str:
    """Return the text of a rule by which a cell names it."""
    return text.partition(" on ")[0]


def play_cell(cell: CheckCell, seed: int, run: int) -> tuple[ActionLog, Floats, str]:
    """Play one run; return its log, the means and their design."""
    own, design = cell.seed(seed), cell.designs[run % len(cell.designs)]
    generator = np.random.default_rng([own, run])
    bernoulli = isinstance(cell.noise, Bernoulli)
    if design == "even":
        means = np.linspace(*((0.9, 0.1) if bernoulli else (1.0, 0.0)), cell.arms)
    elif design == "near":
        means = generator.uniform(0.0, NEAR, cell.arms) + 0.5 * bernoulli
    else:
        means = generator.random(cell.arms) if bernoulli else generator.standard_normal(cell.arms)
    means = generator.permutation(means)
    labels = [str(arm) for arm in range(cell.arms)]
    if cell.made == EVEN_DAR:
        return ActionLog.from_codes(even_dar(means, SIGMA, cell.horizon, generator), labels), means, design
    rule = parse_rule(rule_text(cell.made)).for_arms(cell.arms)
    if cell.twist == "drift":
        assert isinstance(rule, IndexRule)
        return ActionLog.from_codes(drifting(rule, means, SIGMA, cell.horizon, generator), labels), means, design
    if cell.twist.startswith("batches"):
        rule = rule.model_copy(update={"batch": int(cell.twist.rpartition(" ")[2])})
    factor = SCATTER.get(cell.twist, 1.0)
    instance = Instance(means, Bernoulli() if bernoulli else Gaussian(SIGMA * factor))
    return rule.demonstrate(instance, cell.horizon, seed=own, first_run=run, threads=1), means, design


def drifting(
    rule: IndexRule, means: Floats, sigma: float, horizon: int, generator: np.random.Generator
) -> NDArray[np.int64]:  # fmt: skip
    """Play an index rule while the best arm falls steadily, over the whole log by its gap to the second best."""
    arms, best = means.size, int(means.argmax())
    fall = (means[best] - np.sort(means)[-2]) / horizon
    pulls, sums, actions = np.zeros(arms, np.int64), np.zeros(arms), np.empty(horizon, np.int64)
    for round in range(horizon):
        arm = round
        if round >= arms:
            numbers = zip((sums / pulls).tolist(), pulls.tolist(), strict=True)
            arm = int(np.argmax([rule.index(mean, number, round + 1, horizon) for mean, number in numbers]))
        sums[arm] += means[arm] - fall * round * (arm == best) + sigma * generator.standard_normal()
        pulls[arm] += 1
        actions[round] = arm
    return actions


def even_dar(means: Floats, sigma: float, horizon: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Play successive elimination as Even-Dar, Mannor and Mansour have it, for any standard deviation.

    Active arms take turns. After `n` of each, an arm goes whose sample mean is below the largest by twice
    `sigma sqrt(2 ln(4 K n^2 / delta) / n)`.
    """
    arms, active, played = means.size, np.arange(means.size), 0
    sums, actions, pulls = np.zeros(arms), [], 0
    while played < horizon:
        sums[active] += means[active] + sigma * generator.standard_normal(active.size)
        actions.append(active)
        played, pulls = played + active.size, pulls + 1
        width = 2 * sigma * math.sqrt(2 * math.log(4 * arms * pulls**2 / CONFIDENCE) / pulls)
        active = active[sums[active] > sums[active].max() - width * pulls]
    return np.concatenate(actions)[:horizon].astype(np.int64)


def checked_record(cell: CheckCell, log: ActionLog, best_mean: float) -> Check:
    """Check a record as `estimate` does, on one thread."""
    known: dict[str, Any] = {"bernoulli": True} if isinstance(cell.noise, Bernoulli) else {"sigma": SIGMA}
    rule = parse_rule(rule_text(cell.read))
    if not getattr(rule, "shifts", True):
        known["best_mean"] = best_mean
    answer = estimate(log, rule, check=False, horizon=cell.horizon, **known)
    numbers = answer.columns
    low, high = numbers.gap_low[0], numbers.gap_high[0]
    found = AnsweredMeans(numbers.gap[0], low, high, quantile(answer.level), numbers.mean[0])
    used = parse_rule(answer.rule).for_arms(cell.arms)
    return check_log(log, used, cell.noise, [cell.horizon], lambda _: found, threads=1)


def log_evidences(cell: CheckCell, log: ActionLog) -> dict[str, float]:
    """Return the log probability of a record under rules, for means from the prior that they were drawn from.

    For a record of one of these rules under all of them, and under itself with other rewards; for one with other
    rewards, or of a rule that chooses at random, only under what the bound of its cell needs.
    """
    if cell.made in AT_RANDOM:
        asked = {cell.read: (cell.read, 1.0)}
    elif cell.twist in SCATTER:
        asked = {cell.made: (cell.made, 1.0), cell.twist: (cell.made, SCATTER[cell.twist])}
    elif cell.right and cell.made in WITH_EVIDENCE:
        asked = {text: (text, 1.0) for text in WITH_EVIDENCE}
        asked |= {twist: (cell.made, factor) for twist, factor in SCATTER.items()}
    else:
        return {}
    found = {}
    for name, (text, factor) in asked.items():
        rule = parse_rule(text)
        assert isinstance(rule, IndexRule)
        noise, found[name] = Gaussian(SIGMA * factor), -math.inf
        with suppress(InferenceError):  # it cannot have made such a record
            predicted = predict(log, rule, noise, NORMAL, cell.horizon, EVIDENCE_PARTICLES, widths=(1.0,))
            found[name] = predicted.log_evidence
    return found


@dataclass(frozen=True, eq=False)
class CheckTrials(CellTrials):
    """All runs of some cells; one row per record, with the check's verdict."""

    cells: tuple[CheckCell, ...]
    measure: ClassVar[str] = "check"
    deciding: ClassVar[tuple[str, ...]] = (
        *("kernels", "demonstrators", "inference", "estimators", "log", "fit.py", "tape.py", "instance.py"),
        "calibration/misfits.py",
    )
    rounds_of_a_task: ClassVar[int] = 8_000

    def seconds(self, cell: CheckCell) -> float:
        """Return about how long a run takes."""
        return SECONDS * cell.arms

    def rows(self, task: Task) -> pl.DataFrame:
        """Play the runs of a task and check each."""
        cell, rows = self.cells[task.cell], []
        for run in range(task.first_run, task.last_run):
            log, means, design = play_cell(cell, self.seed, run)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = checked_record(cell, log, float(means.max()))
            except UnbanditError as refusal:  # no answer is no confident wrong one, but no verdict either
                found = Check("not checked", reason=str(refusal))
            evidences = log_evidences(cell, log) if design == "random" and cell.arms <= USUAL[0] else {}
            texts = (design, found.verdict, found.reason)
            rows.append((task.cell, run, *texts, found.p_value, *map(evidences.get, EVIDENCES)))
        schema = {
            **dict.fromkeys(("cell", "run"), pl.Int64),
            **dict.fromkeys(("design", "verdict", "reason"), pl.String),
            **dict.fromkeys(("p_value", *EVIDENCES), pl.Float64),
        }
        return pl.DataFrame(rows, schema=schema, orient="row")


@dataclass(frozen=True)
class CheckMetrics:
    """How often the check flags the records of one cell."""

    cell: CheckCell
    flagged: Share
    by_design: dict[str, Share]
    unchecked: int  # records without a verdict, which count as not flagged
    evidences: Floats  # (records with random means, `EVIDENCES`); NaN where there is none
    bound: Measured | None = None  # how often the most powerful test flags a record with random means, at most

    @property
    def beyond_any_test(self) -> bool:
        """Return whether no test reaches the goal, even if it flags all records whose means are even."""
        random = self.by_design.get("random")
        if self.bound is None or random is None:
            return False
        rest = 1 - random.runs / self.flagged.runs
        most = rest + (1 - rest) * (self.bound.value + 2 * self.bound.error)
        return not self.cell.right and most < self.cell.goal


def check_metrics(cell: CheckCell, rows: pl.DataFrame) -> CheckMetrics:
    """Return the metrics of a cell."""
    flags = rows["verdict"] == "does not fit"
    parts = {
        design: share(float(flags.filter(rows["design"] == design).sum()), float((rows["design"] == design).sum()))
        for design in dict.fromkeys(rows["design"].to_list())
    }
    evidences = rows.filter(design="random").select(pl.col(EVIDENCES).fill_null(math.nan)).to_numpy()
    flagged = share(float(flags.sum()), float(rows.height))
    return CheckMetrics(cell, flagged, parts, int((rows["verdict"] == "not checked").sum()), evidences)


def power_bound(made: Floats, read: Floats) -> Measured:
    """Return the power of the most powerful test of one rule against another, at 1%.

    `made` and `read` are `ln P(record | made) - ln P(record | read)` of records of either rule. A record of both
    together came from `made` with probability `1 / (1 + e^-ratio)`; weighted so, all records show how often the ratio
    exceeds a limit under either rule, and far more precisely than those of one.
    """
    ratios, number = np.concatenate([made, read]), made.size + read.size
    folds = np.arange(number) % 20

    def power(kept: NDArray[np.bool_]) -> float:
        ordered = np.sort(ratios[kept])[::-1]
        odds = kept[made.size :].sum() / kept[: made.size].sum()  # of records of either rule, as many as there are
        of_made = 1 / (1 + odds * np.exp(-np.clip(ordered, -500, 500)))
        alarms = np.cumsum(1 - of_made) / max(float((1 - of_made).sum()), 1e-300)
        powers = np.cumsum(of_made) / of_made.sum()
        return float(np.interp(LEVEL, np.append(0.0, alarms), np.append(0.0, powers)))

    value = power(np.full(number, True))
    replicates = np.array([power(folds != fold) for fold in range(20)])
    return Measured(value, float(np.sqrt(0.95 * ((replicates - value) ** 2).sum())), 20)


def with_bounds(cells: Sequence[CheckMetrics]) -> Iterator[CheckMetrics]:
    """Yield the metrics, those of records that another rule made with what the most powerful test reaches."""
    right = {(each.cell.made, each.cell.arms): each.evidences for each in cells if each.cell.right}
    for each in cells:
        cell, bound = each.cell, None
        if cell.made in AT_RANDOM:
            own = each.evidences[:, EVIDENCES.index(cell.read)]
            own = own[~np.isnan(own)]
            bound = _possible(own) if own.size else None
        elif not cell.right and cell.made in WITH_EVIDENCE and (not cell.twist or cell.twist in SCATTER):
            columns = [EVIDENCES.index(cell.twist or cell.made), EVIDENCES.index(cell.read)]
            made = each.evidences if cell.twist else right.get((cell.made, cell.arms), np.zeros((0, len(EVIDENCES))))
            read = right.get((cell.read, cell.arms), np.zeros((0, len(EVIDENCES))))
            ratios = _ratios(made[:, columns], 0), _ratios(read[:, columns], 1)
            if min(each.size for each in ratios) >= FEWEST:
                bound = power_bound(*ratios)
        yield replace(each, bound=bound)


def _ratios(evidences: Floats, own: int) -> Floats:
    """Return `ln P(record | made) - ln P(record | read)` of records of one of the two rules, whose column is `own`.

    A record that the other rule cannot have made has an infinite one, and every test flags it or passes it rightly.
    Left out are records without evidences: NaN, or where the particles of the very rule that made them found no way.
    """
    known = np.isfinite(evidences[:, own]) & ~np.isnan(evidences).any(axis=1)
    return np.asarray(evidences[known, 0] - evidences[known, 1])


def _possible(log_evidences: Floats) -> Measured:
    """Return the share of records that a test at 1% may flag: those with a smaller probability under the rule."""
    return share(float((log_evidences <= math.log(LEVEL)).sum()), float(log_evidences.size))


def cell_name(cell: CheckCell) -> str:
    """Return the row of a cell in tables."""
    made = cell.made if cell.made == EVEN_DAR else short(cell.made)
    return made if cell.right else f"{made}, {cell.twist}" if cell.twist else f"{made} as {short(cell.read)}"


def check_criteria(cells: Sequence[CheckMetrics]) -> list[Criterion]:
    """Return the criteria of the check with their scores: where the rule is right, and where it is not."""
    right, wrong = ([each for each in cells if each.cell.right == is_right] for is_right in (True, False))
    criteria = []
    if right:
        scores = [_flagged(each, _size(each), each.flagged, judged=True) for each in right]
        scores += [_together(right, size) for size in dict.fromkeys(map(_size, right))]
        scores += [
            _flagged(each, f"{_size(each)}, {design} means", held, judged=False)
            for each in right
            for design, held in each.by_design.items()
            if design == "near"
        ]
        note = (
            "Two runs in five have means from N(0, 1) (rewards of 0 and 1: uniform from 0 to 1), two have even means, "
            "from 1 to 0 (0.9 to 0.1), one has means that differ by at most 0.05; these have a column of their own."
        )
        goal = f"at most {100 * FALSE_ALARMS:g}%"
        criteria.append(Criterion("check, right rule", "check: right rule flagged", goal, note, scores=scores))
    if wrong:
        scores = []
        for each in wrong:
            scores.append(_flagged(each, _size(each), each.flagged, judged=not each.beyond_any_test))
            for design, held in each.by_design.items():
                scores.append(_flagged(each, f"{_size(each)}, {design} means", held, judged=False))
            if each.bound is not None:
                column = f"{_size(each)}, random means: most powerful test"
                scores.append(Score(cell_name(each.cell), column, each.bound, percent(each.bound), None))
        goal = "at least 95%; 80% at K=2, T=500 and for `lilucb` as `ucb`, 90% for Even-Dar elimination"
        note = (
            "Every other run has means from N(0, 1), the others have even means, from 1 to 0. The most powerful test "
            "knows both rules, the noise and what the means were drawn from, and asks at 1% which of the two it was: "
            "no check can flag more. Of a rule that chooses at random the column has the share of records that "
            "`ucb1` makes with a probability of at most 1%: no test at 1% can flag the others. Where no test reaches "
            "the goal, even if it flagged every record with even means, there is no mark. "
            "`drift`: the best arm falls by its gap to the second best, evenly over the log. "
            "`sigma half`, `sigma double`: rewards scatter half or twice as much as assumed."
        )
        about = "check: flagged when read as another rule"
        criteria.append(Criterion("check, other rules", about, goal, note, "made by, read as", scores=scores))
    return criteria


def _size(each: CheckMetrics) -> str:
    return f"K={each.cell.arms}, T={each.cell.horizon:,}"


def _flagged(each: CheckMetrics, column: str, held: Share, *, judged: bool) -> Score:
    """Return the score of a share of flagged records."""
    text = percent(held) + (f", {each.unchecked} not checked" if judged and each.unchecked else "")
    at_most, at_least = (each.cell.goal, 0.0) if each.cell.right else (1.0, each.cell.goal)
    return Score(cell_name(each.cell), column, held, text, judge(held, at_least, at_most) if judged else None)


def _together(right: Sequence[CheckMetrics], size: str) -> Score:
    """Return the score of all rules of one size together."""
    own = [each.flagged for each in right if _size(each) == size]
    held = share(sum(each.held for each in own), sum(each.runs for each in own))
    return Score("all together", size, held, percent(held), judge(held, 0.0, FALSE_ALARMS))


class Misfits(Measure):
    """How often the check flags the right rule, and wrong ones."""

    name = "check"
    title = "Whether the rule fits"
    about = "how often the check flags the rule that made a log, and how often another one"

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, CheckTrials]]:
        """Yield the cells of each rule that records are checked against."""
        for text in RIGHT:
            yield text, CheckTrials(tuple(cell for cell in check_cells(sizes.runs) if cell.read == text), sizes.seed)

    def metrics(self, cell: CheckCell, rows: pl.DataFrame) -> CheckMetrics:
        """Return the metrics of one cell."""
        return check_metrics(cell, rows)

    def criteria(self, metrics: Sequence[CheckMetrics]) -> list[Criterion]:
        """Return the criteria with their scores, and with what the most powerful test reaches."""
        return check_criteria([*with_bounds(metrics)])

    def remarks(self, metrics: Sequence[CheckMetrics], criteria: Sequence[Criterion]) -> Iterator[str]:
        """Say why one goal is out of reach, where it is missed."""
        missed = {score.row for each in criteria for score in each.scores if score.verdict == MISSED}
        if f"{EVEN_DAR} as {short(SAE)}" in missed:
            yield from ("", ONE_NUMBER)
