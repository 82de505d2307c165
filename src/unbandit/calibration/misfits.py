"""The check on simulated records: how often it flags the rule that made a record, and how often another one.

Besides the rules themselves there are records that no rule of this package makes: a best arm that drifts, elimination
with other widths, rewards that scatter more or less than assumed. Between two index rules with normal rewards, nothing
can be better than the most powerful test: the ratio of the probabilities that they give to the record. It knows the two
rules, and what the means were drawn from or the means themselves; but it must be right at any size of the gaps, as a
check must that is told no size. How often it distinguishes the two bounds what any check can reach.
"""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from unbandit.calibration.measure import FALSE_ALARMS, MISSED, Criterion, Measure, Score, judge, percent
from unbandit.calibration.settings import NOISE, NORMAL, CellTrials, Sizes, seed_of, short
from unbandit.demonstrators import IndexRule, RandomisedRule, Uniform, parse_rule
from unbandit.errors import InferenceError, NotIdentifiable
from unbandit.estimators import estimate
from unbandit.estimators.coverage import SIGMA
from unbandit.estimators.procedures import quantile
from unbandit.fit import Check
from unbandit.inference import infer
from unbandit.inference.check import AnsweredMeans, check_log
from unbandit.inference.decisions import predict
from unbandit.inference.predictive import ALARM
from unbandit.inference.predictive import DRIFT as MOVED
from unbandit.inference.prior import NormalPrior
from unbandit.instance import Bernoulli, Gaussian, Instance, Noise
from unbandit.log import ActionLog
from unbandit.study.monte_carlo import Measured, Share, share
from unbandit.study.taskgrid import Task

Floats = NDArray[np.float64]

UCB, UCB1, MOSS, KLUCB = "ucb:alpha=0.25", "ucb1", "moss", f"klucb:noise=gaussian,sigma={SIGMA}"
LILUCB, SAE, PHASED, EVEN_DAR = "lilucb", "sae:alpha=0.25", "phased:alpha=0.25", "Even-Dar elimination"
UCB1_CLICKS: Final = "ucb1 on 0 and 1"
BERNOULLI_READ: Final = (UCB1_CLICKS, "klucb", "ucbv")

RIGHT: Final = (UCB, UCB1, MOSS, KLUCB, LILUCB, SAE, PHASED, *BERNOULLI_READ)
"""Every rule with a closed form."""

PAIRED: Final = (UCB, UCB1, MOSS, KLUCB)  # read as each other
WITH_EVIDENCE: Final = (*PAIRED, LILUCB)  # between which the most powerful test is made
AT_RANDOM: Final = ("epsilon-greedy:epsilon=0.1", "softmax:temperature=0.2", f"thompson:sigma={SIGMA}", "uniform")
READ_AT_RANDOM: Final = AT_RANDOM[:-1]  # nothing can be read off uniform choices
TAKEN_FOR_RANDOM: Final = (UCB, UCB1, MOSS, "uniform")  # whose logs are read as if a learner had chosen at random
MISNUMBERED: Final = {
    "epsilon-greedy:epsilon=0.1": ("epsilon-greedy:epsilon=0.3", "epsilon-greedy:epsilon=0.033"),
    "softmax:temperature=0.2": ("softmax:temperature=0.6", "softmax:temperature=0.067"),
    f"thompson:sigma={SIGMA}": (f"thompson:sigma={3 * SIGMA}", f"thompson:sigma={SIGMA / 3:.3f}"),
}
"""Rules that choose at random, each read as itself with three times its number and a third of it."""

TAKEN_FOR_CLICKS: Final = ("klucb", "ucbv", "epsilon-greedy:epsilon=0.1", "uniform")  # read as `UCB1_CLICKS`
SCATTER: Final = {"sigma half": 0.5, "sigma double": 2.0}
DRIFT: Final = "drift"
DRIFTED: Final = "drifted"  # the verdict of a check that warns of drift alone
REFUSED: Final = "refused"  # the verdict on a record that ends in an error: its rule cannot have made it
TWISTS: Final = ("batches of 5", "batches of 20", DRIFT, *SCATTER)

SMALL, USUAL, LARGE = (2, 500), (4, 2_000), (10, 5_000)  # arms and rounds
RUNS = 300
RIGHT_DESIGNS: Final = ("random", "even", "random", "even", "near")  # of the means, in turn
OTHER_DESIGNS: Final = ("random", "even")
NEAR = 0.05  # within which nearly equal means are
LEVEL = 0.01  # of the most powerful test
EVIDENCE_PARTICLES = 80
SIZES: Final = (0.25, 1.0, 4.0, 16.0)  # of the means' variance, as it may be under the assumed rule
KNOWN_MEANS: Final = NormalPrior(0.0, 1e-4)  # around what is known
FEWEST = 10  # records, for a bound
CLEAR_LEAD = 0.3  # of the best arm; a drift by less can hardly be seen
CONFIDENCE = 0.05  # risk of Even-Dar elimination
SECONDS = 0.4  # about, of an arm of a record that is checked

ONE_NUMBER = (
    "Even-Dar elimination and `sae` both play the active arms in turn and drop arms one by one, so a log is one "
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
    def read_at_random(self) -> bool:
        """Return whether they are checked against a rule that chooses at random."""
        return isinstance(parse_rule(rule_text(self.read)), RandomisedRule)

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
        name = f"{self.made} as {self.read} {self.twist}".rstrip()
        return {
            "name": f"{name}, {self.arms} arms, {self.horizon} rounds", "made": self.made, "read": self.read,
            "twist": self.twist, "arms": self.arms, "horizon": self.horizon, "runs": self.runs,
        }  # fmt: skip

    def seed(self, seed: int) -> int:
        """Derive a seed from what is played: the same records are read by every rule."""
        return seed_of(seed, self.made, self.arms, self.horizon, self.twist, self.designs)


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
        *(cell(rule, rule, USUAL, FALSE_ALARMS) for rule in READ_AT_RANDOM),
        *(cell(made, read, USUAL, 0.95) for read in READ_AT_RANDOM for made in TAKEN_FOR_RANDOM),
        *(cell(made, UCB1_CLICKS, USUAL, 0.95) for made in TAKEN_FOR_CLICKS),
        *(cell(made, read, USUAL, 0.95) for made, reads in MISNUMBERED.items() for read in reads),
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
    if cell.twist == DRIFT:
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
    """Check a record as `estimate` does."""
    known: dict[str, Any] = {"bernoulli": True} if isinstance(cell.noise, Bernoulli) else {"sigma": SIGMA}
    rule = parse_rule(rule_text(cell.read))
    if cell.read_at_random:
        return estimate(log, rule, check=True, horizon=cell.horizon, **known).check
    if not getattr(rule, "shifts", True):
        known["best_mean"] = best_mean
    answer = estimate(log, rule, check=False, horizon=cell.horizon, **known)
    numbers = answer.columns
    low, high = numbers.gap_low[0], numbers.gap_high[0]
    found = AnsweredMeans(numbers.gap[0], low, high, quantile(answer.level), numbers.mean[0])
    used = parse_rule(answer.rule).for_arms(cell.arms)
    return check_log(log, used, cell.noise, [cell.horizon], lambda _: found, threads=1)


def log_ratio(cell: CheckCell, log: ActionLog, means: Floats, design: str) -> float | None:
    """Return by how much a record is more probable as it was made than under the assumed rule, as a logarithm.

    Random means have their prior. Even ones are known to the one who made the record, and so is a drift. Under the
    assumed rule the means are normal, of several sizes in turn. None where this is not computed.
    """
    if cell.read_at_random or cell.read in BERNOULLI_READ:
        return None
    even, at_random = design == "even", cell.made in AT_RANDOM
    possible = cell.made in WITH_EVIDENCE and (
        not cell.twist or cell.twist in SCATTER or (even and cell.twist == DRIFT)
    )
    if cell.right or cell.arms > USUAL[0] or not (possible or (at_random and not even)):
        return None
    made, read, own = parse_rule(cell.made), parse_rule(cell.read), -math.inf
    assert isinstance(read, IndexRule)
    with suppress(InferenceError):  # the particles of the very rule that made it find no way
        if isinstance(made, IndexRule):
            best = int(means.argmax())
            drift = (best, float(np.sort(means)[-2] - means[best])) if cell.twist == DRIFT else None
            noise = Gaussian(SIGMA * SCATTER.get(cell.twist, 1.0))
            prior, known = (KNOWN_MEANS, means) if even else (NORMAL, None)
            given = log, made, noise, prior, cell.horizon, EVIDENCE_PARTICLES
            own = predict(*given, drift=drift, widths=(1.0,), means=known, evidence_only=True).log_evidence
        elif isinstance(made, Uniform):
            own = -cell.horizon * math.log(cell.arms)
        else:
            sized = made.for_arms(cell.arms)
            own = infer(log, sized, NORMAL, NOISE, [cell.horizon], clouds=4, seed=1, threads=1).log_evidence
    if own == -math.inf:
        return None
    try:
        given = log, read, NOISE, NORMAL, cell.horizon, EVIDENCE_PARTICLES
        other = predict(*given, widths=SIZES, evidence_only=True).log_evidence
    except InferenceError:  # it cannot have made such a record
        other = -math.inf
    return own - other


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
                verdict, reason, p_value = verdict_of(found), found.reason, found.p_value
            except (InferenceError, NotIdentifiable) as refusal:  # the rule cannot have made the record
                verdict, reason, p_value = REFUSED, str(refusal), None
            texts = (described_design(cell, means, design), verdict, reason)
            ratio = log_ratio(cell, log, means, design) if run % 4 < 2 else None  # half of them are enough for a bound
            rows.append((task.cell, run, *texts, p_value, ratio))
        schema = {
            **dict.fromkeys(("cell", "run"), pl.Int64),
            **dict.fromkeys(("design", "verdict", "reason"), pl.String),
            **dict.fromkeys(("p_value", "log_ratio"), pl.Float64),
        }
        return pl.DataFrame(rows, schema=schema, orient="row")


def verdict_of(check: Check) -> str:
    """Return a check's verdict, or that it warns of drift alone."""
    warned = any(each.name == MOVED and each.tail <= ALARM for each in check.statistics)
    return DRIFTED if check.verdict == "fits" and warned else check.verdict


def described_design(cell: CheckCell, means: Floats, design: str) -> str:
    """Return what a design is called; of random means that drift, also whether the best arm's lead is clear."""
    if cell.twist != DRIFT or design != "random":
        return design
    return f"random, lead {'from' if np.diff(np.sort(means))[-1] >= CLEAR_LEAD else 'below'} {CLEAR_LEAD:g}"


@dataclass(frozen=True)
class CheckMetrics:
    """How often the check flags the records of one cell."""

    cell: CheckCell
    flagged: Share
    by_design: dict[str, Share]
    unchecked: int  # records without a verdict, which count as not flagged
    bounds: dict[str, Measured]  # how often the most powerful test flags records of a design, at most

    @property
    def beyond_any_test(self) -> bool:
        """Return whether no test reaches the goal, even if it flags all records of designs without a bound."""
        most = 1.0
        for design, bound in self.bounds.items():
            most -= self.by_design[design].runs / self.flagged.runs * max(0.0, 1.0 - bound.value - 2 * bound.error)
        return not self.cell.right and most < self.cell.goal


def check_metrics(cell: CheckCell, rows: pl.DataFrame) -> CheckMetrics:
    """Return the metrics of a cell."""
    flags, designs = rows["verdict"].is_in(("does not fit", DRIFTED, REFUSED)), dict.fromkeys(rows["design"].to_list())
    parts = {
        design: share(float(flags.filter(rows["design"] == design).sum()), float((rows["design"] == design).sum()))
        for design in designs
    }
    ratios = {design: rows.filter(design=design)["log_ratio"].drop_nulls().to_numpy() for design in designs}
    bounds = {design: power_bound(own) for design, own in ratios.items() if own.size >= FEWEST}
    flagged = share(float(flags.sum()), float(rows.height))
    return CheckMetrics(cell, flagged, parts, int((rows["verdict"] == "not checked").sum()), bounds)


def power_bound(ratios: Floats) -> Measured:
    """Return the power of the most powerful test at 1%, from `ln P(record | made) - ln P(record | read)` of records.

    The records are those of `made`. Under `read`, records beyond a limit are as probable as the average of `e^-ratio`
    over the records of `made` beyond it.
    """
    folds = np.arange(ratios.size) % 20

    def power(kept: Floats) -> float:
        ordered = np.sort(kept)[::-1]
        alarms = np.cumsum(np.exp(-np.clip(ordered, -500, 500))) / kept.size
        powers = np.arange(1, kept.size + 1) / kept.size
        return float(np.interp(LEVEL, np.append(0.0, alarms), np.append(0.0, powers)))

    value, count = power(ratios), min(20, ratios.size)
    replicates = np.array([power(ratios[folds != fold]) for fold in range(count)])
    return Measured(value, float(np.sqrt((1 - 1 / count) * ((replicates - value) ** 2).sum())), count)


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
            _flagged(each, f"{_size(each)}, {_means(design)}", held, judged=False)
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
        scores, bounds = [], []
        for each in wrong:
            scores.append(_flagged(each, _size(each), each.flagged, judged=not each.beyond_any_test))
            for design, held in each.by_design.items():
                scores.append(_flagged(each, f"{_size(each)}, {_means(design)}", held, judged=False))
            for design, bound in each.bounds.items():
                column = f"{_size(each)}, {_means(design)}"
                bounds.append(Score(cell_name(each.cell), column, bound, percent(bound), None))
        goal = "at least 95%; 80% at K=2, T=500 and for `lilucb` as `ucb`, 90% for Even-Dar elimination"
        note = (
            "Every other run has means from N(0, 1), the others have even means, from 1 to 0. A log counts as flagged "
            "too if it is refused, because the rule cannot have made it. Where no test reaches "
            "that share, by the next table, a cell is not judged. "
            f"`{DRIFT}`: the best arm falls by its lead over the second best, evenly over the log; a lead below "
            f"{CLEAR_LEAD:g} is less than {CLEAR_LEAD / SIGMA:g} standard deviations of a reward. "
            "`sigma half`, `sigma double`: rewards scatter half or twice as much as assumed."
        )
        about, rows = "check: flagged when read as another rule", "made by, read as"
        criteria.append(Criterion("check, other rules", about, goal, note, rows, scores=scores))
        note = (
            "The most powerful test knows the two rules and the noise, and asks at 1% which of the two it was. It "
            "knows that random means are from N(0, 1), and even means (with a drift) one by one. Under the assumed "
            "rule the means may also be half as large, or 2 or 4 times as large, since nobody tells a check their "
            "size. No check can flag more; one that also looks for other rules, and does not know the means, flags "
            "less."
        )
        about = "the most that any check at 1% can flag"
        if bounds:
            criteria.append(Criterion("check, bound", about, "no goal: a bound", note, rows, scores=bounds))
    return criteria


def _size(each: CheckMetrics) -> str:
    return f"K={each.cell.arms}, T={each.cell.horizon:,}"


def _means(design: str) -> str:
    """Return a design as tables name it: `random means, lead from 0.3`."""
    kind, comma, rest = design.partition(",")
    return f"{kind} means{comma}{rest}"


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
    metrics_type = CheckMetrics
    metrics = staticmethod(check_metrics)
    criteria = staticmethod(check_criteria)

    def trials(self, sizes: Sizes) -> Iterator[tuple[str, CheckTrials]]:
        cells = check_cells(sizes.runs)
        for text in dict.fromkeys(cell.read for cell in cells):
            yield text, CheckTrials(tuple(cell for cell in cells if cell.read == text), sizes.seed)

    def remarks(self, metrics: Sequence[CheckMetrics], criteria: Sequence[Criterion]) -> Iterator[str]:
        """Say why one goal is out of reach, where it is missed."""
        missed = {score.row for each in criteria for score in each.scores if score.verdict == MISSED}
        if f"{EVEN_DAR} as {short(SAE)}" in missed:
            yield from ("", ONE_NUMBER)
