"""A simulation as the second tab asks for it: arms whose worth is known, a rule, and how long it plays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import ascii_uppercase

from unbandit import datasets
from unbandit.demonstrators import parse_rule
from unbandit.errors import ParameterError
from unbandit.instance import Bernoulli, Gaussian, Instance
from unbandit.web.fields import Field, FieldErrors, quoted, read_fields
from unbandit.web.rule_forms import read_rule

__all__ = ["DATASET", "FIRST", "MOST_ARMS", "MOST_ROUNDS", "OWN", "RUN", "Simulation", "read_simulation"]

MOST_ARMS = 1_000
MOST_ROUNDS = 1_000_000

FIRST = {
    "source": "dataset",
    "dataset": "battery-high",
    "arms": "12",
    "means": "1, 0.7, 0.4, 0",
    "noise": "gaussian",
    "rule": "ucb",
    "ucb.alpha": "0.25",
    "ucb.sigma": "0.14",
}
"""What stands in the form at first: it gives an answer worth looking at."""

DATASET = (
    Field("dataset", "Which one", "Its arms, and what they are worth.", kind="choice"),
    Field(
        "arms",
        "Arms, at most",
        "How many of its arms take part. Left blank, all of them.",
        kind="whole",
        at_least=2,
        at_most=MOST_ARMS,
    ),
)
OWN = (
    Field("means", "What each arm is worth", "One number an arm, with commas between them: 1, 0.5, 0."),
    Field(
        "sigma",
        "Noise of a reward",
        "How far a single result strays from its arm's average: the standard deviation.",
        kind="number",
        usual="0.5",
        above=0,
    ),
)
RUN = (
    Field(
        "horizon",
        "Rounds",
        f"How often the rule chooses an arm; {MOST_ROUNDS:,} at most.",
        kind="whole",
        usual="5000",
        at_least=1,
        at_most=MOST_ROUNDS,
    ),
    Field(
        "seed",
        "Seed",
        "Decides the luck of the draw: the same seed gives the same rounds again.",
        kind="whole",
        usual="7",
        at_least=0,
        below=2**63,
    ),
)


@dataclass(frozen=True)
class Simulation:
    """Hold what is to be simulated.

    Attributes
    ----------
    rule
        As the shell takes it.
    horizon, seed
        Rounds, and the luck of the draw.
    dataset, arms
        The data set by its name and how many of its arms; None where means were given, or all arms are meant.
    means, sigma
        Instead of a data set: what each arm is worth, and the noise of a reward; None for rewards of 0 and 1.
    """

    rule: str
    horizon: int
    seed: int
    dataset: str | None = None
    arms: int | None = None
    means: tuple[float, ...] = ()
    sigma: float | None = None

    @property
    def title(self) -> str:
        """Return what it is, for people."""
        where = self.dataset if self.dataset is not None else f"{len(self.means):,} arms"
        return f"{self.rule} on {where}, {self.horizon:,} rounds"

    @property
    def command(self) -> str:
        """Return the command that makes the same log.

        Examples
        --------
        >>> Simulation("ucb:alpha=0.25", 500, 1, means=(1.0, 0.5), sigma=0.5).command
        'unbandit simulate --means 1,0.5 --arms A,B --sigma 0.5 --rule ucb:alpha=0.25 --horizon 500 --seed 1 -o log.csv'
        """
        if self.dataset is not None:
            faced = self.dataset + ("" if self.arms is None else f" --arms {self.arms}")
        else:
            noise = "--bernoulli" if self.sigma is None else f"--sigma {self.sigma}"
            means = ",".join(f"{mean!r}".removesuffix(".0") for mean in self.means)
            faced = f"--means {means} --arms {','.join(_names(len(self.means)))} {noise}"
        return f"unbandit simulate {faced} --rule {self.rule} --horizon {self.horizon} --seed {self.seed} -o log.csv"

    def instance(self) -> Instance:
        """Return the arms that the rule faces."""
        if self.dataset is not None:
            return datasets.load(self.dataset, arms=self.arms)
        noise = Bernoulli() if self.sigma is None else Gaussian(self.sigma)
        return Instance(self.means, noise, _names(len(self.means)))


def _names(arms: int) -> list[str]:
    """Name the arms by letters, or by numbers where there are too many."""
    return list(ascii_uppercase[:arms]) if arms <= len(ascii_uppercase) else [str(at + 1) for at in range(arms)]


def read_simulation(form: Mapping[str, str]) -> Simulation:
    """Return what is to be simulated.

    Examples
    --------
    >>> asked = read_simulation({"rule": "ucb", "dataset": "linear", "arms": "3", "horizon": "500", "seed": "1"})
    >>> asked.instance()
    <Instance linear: 3 arms, means 0 to 1, Gaussian(sigma=0.5)>
    """
    errors: dict[str, str] = {}
    rule = _rule(form, errors)
    values, wrong = read_fields(RUN, {"horizon": "", **form})
    errors |= wrong
    if "horizon" not in values and "horizon" not in errors:
        errors["horizon"] = "Expected a number of rounds; got none."
    simulated = Simulation(rule, values.get("horizon", 1), values.get("seed", 0))
    parts = _own(form, errors) if form.get("source", "dataset") == "means" else _dataset(form, errors)
    if errors or parts is None:
        raise FieldErrors(errors)
    simulated = Simulation(rule, simulated.horizon, simulated.seed, **parts)  # type: ignore[arg-type]
    _check(simulated)
    return simulated


def _rule(form: Mapping[str, str], errors: dict[str, str]) -> str:
    """Read the rule; one must be chosen."""
    try:
        rule = read_rule(form)
    except FieldErrors as error:
        errors |= error.errors
        return ""
    if rule is None:
        errors["rule"] = "Expected a rule to play; choose one."
    return rule or ""


def _dataset(form: Mapping[str, str], errors: dict[str, str]) -> dict[str, object] | None:
    """Read the data set and how many of its arms: as many as there are, where that is fewer."""
    name = form.get("dataset", "").strip()
    values, wrong = read_fields(DATASET[1:], form)
    errors |= wrong
    if name not in datasets.names():
        errors["dataset"] = f"Expected one of the data sets; got {quoted(name)}."
    if errors.keys() & {"dataset", "arms"}:
        return None
    wanted = values.get("arms")
    try:
        if wanted is not None:
            datasets.load(name, arms=wanted)
    except ParameterError:
        wanted = None
    if wanted is None:
        there = len(datasets.load(name))
        most = values.get("arms", MOST_ARMS)
        if there > most:
            errors["arms"] = f"Expected a number from 2 to {MOST_ARMS:,}: this data set has {there:,} arms."
            return None
    return {"dataset": name, "arms": wanted}


def _own(form: Mapping[str, str], errors: dict[str, str]) -> dict[str, object] | None:
    """Read means and noise."""
    bernoulli = form.get("noise") == "bernoulli"
    values, wrong = ({}, {}) if bernoulli else read_fields(OWN[1:], form)
    errors |= wrong
    text = form.get("means", "").strip()
    try:
        if len(text) > 40 * MOST_ARMS:
            raise ValueError
        means = tuple(float(part) for part in text.replace(";", ",").rstrip(",").split(","))
    except ValueError:
        errors["means"] = f"Expected numbers with commas between them, as in 1, 0.5, 0; got {quoted(text)}."
        return None
    if not 2 <= len(means) <= MOST_ARMS:
        errors["means"] = f"Expected 2 to {MOST_ARMS:,} numbers; got {len(means):,}."
    sigma = None if bernoulli else values.get("sigma", 1.0)
    if not errors.keys() & {"means", "sigma"}:
        try:
            Instance(means, Bernoulli() if sigma is None else Gaussian(sigma))
        except ParameterError as error:
            said = str(error).removeprefix("means: ")
            errors["means"] = said[:1].upper() + said[1:]
    return {"means": means, "sigma": sigma}


def _check(simulated: Simulation) -> None:
    """Refuse what could only fail later: rewards that the rule cannot take, fewer rounds than arms."""
    rule, instance = parse_rule(simulated.rule), simulated.instance()
    if rule.bernoulli_only and not isinstance(instance.noise, Bernoulli):
        raise FieldErrors(
            {
                "rule": f"Expected rewards of 0 or 1, for which {simulated.rule} is made; give the arms' chances "
                "yourself and choose such rewards, or take another rule."
            }
        )
    if simulated.horizon < len(instance):
        raise FieldErrors(
            {"horizon": f"Expected {len(instance):,} rounds or more, one an arm; got {simulated.horizon:,}."}
        )
