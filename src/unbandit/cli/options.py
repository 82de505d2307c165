"""Options that several commands share, and what reads them: lists of arms, `key=value`, instances, devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer import Argument, Option

from unbandit import checks
from unbandit.cli import completion
from unbandit.errors import ParameterError, UnbanditError, option

if TYPE_CHECKING:
    from unbandit.demonstrators import Demonstrator
    from unbandit.demonstrators.family import RuleFamily
    from unbandit.instance import Instance
    from unbandit.log import ActionLog

# The log and its rule

Log = Annotated[str, Argument(metavar="LOG", help="The log, or - for standard input.", show_default=False)]
Logs = Annotated[
    list[str],
    Argument(metavar="LOG", help="The log: files, a folder, a pattern, or - for standard input.", show_default=False),
]
Rule = Annotated[
    str,
    Option(
        "--rule", help="The rule that made the choices: name:key=value,... (see unbandit demonstrators).",
        autocompletion=completion.rules,
    ),
]  # fmt: skip
OptionalRule = Annotated[
    str | None,
    Option(
        "--rule", help="The rule that made the choices. Without it, the report lists which rules are possible.",
        autocompletion=completion.rules,
    ),
]  # fmt: skip
Candidates = Annotated[
    str | None,
    Option(
        "--candidates", metavar="A,B:key=value,...", help="Rules to try; by default all that suit this kind of log.",
        autocompletion=completion.candidates,
    ),
]  # fmt: skip
Arms = Annotated[str | None, Option("--arms", metavar="A,B,C", help="All arms, including those never pulled.")]
Columns = Annotated[
    str | None,
    Option(
        "--columns",
        metavar="arm=...,round=...",
        help="Which column plays which role.",
        autocompletion=completion.columns,
    ),
]
Sheet = Annotated[str | None, Option("--sheet", metavar="NAME", help="Sheet of a spreadsheet; default the first.")]
NoHeader = Annotated[bool, Option("--no-header", help="The first row is data; columns are named 1, 2, ...")]
Duplicates = Annotated[
    str | None,
    Option("--duplicates", help="If several rows of counts have the same arm: refuse (default), separate or add."),
]
Blank = Annotated[
    str | None,
    Option("--blank", help="Rows without a choice: refuse (default), or skip if no choice was made."),
]
Horizon = Annotated[
    int | None, Option("--horizon", help="Planned rounds of the whole run, if the log covers only its beginning.")
]
StartingPulls = Annotated[
    str | None,
    Option(
        "--starting-pulls",
        metavar="FILE",
        help="For a log that begins in mid-run: every arm's earlier pulls (columns arm, pulls).",
    ),
]
Kept = Annotated[float | None, Option("--kept", help="If rounds are missing at random: the share that was kept.")]
Windows = Annotated[int | None, Option("--windows", help="Also split the log into this many parts and look for drift.")]
Availability = Annotated[
    str | None,
    Option(
        "--availability",
        metavar="FILE",
        help="When arms could be pulled, if not always (columns arm, first, last: rounds or times).",
    ),
]
Features = Annotated[
    str | None,
    Option(
        "--features",
        metavar="X1,X2",
        help="Columns with features of the arms, for rules such as linucb and lints.",
        autocompletion=completion.features,
    ),
]
Demonstration = Annotated[
    str | None, Option("--demonstration", metavar="NAME", help="Use only this one of several demonstrations.")
]
Pool = Annotated[
    bool, Option("--pool", help="Combine all demonstrations; they have the same arms with the same values.")
]

# What is known about the rewards

Sigma = Annotated[float | None, Option("--sigma", help="Standard deviation of one reward.")]
BernoulliRewards = Annotated[bool, Option("--bernoulli", help="Rewards were 0 or 1.")]
BestMean = Annotated[
    float | None, Option("--best-mean", help="The best arm's mean, if known: gives means instead of gaps.")
]
Anchor = Annotated[
    list[str] | None,
    Option(
        "--anchor",
        metavar="ARM=VALUE",
        help="Alternative to --best-mean: the mean of one known arm. With counts, may be repeated.",
    ),
]
Prior = Annotated[
    str | None,
    Option("--prior", help="Prior of the posterior: normal:mean=0,deviation=1 or beta:successes=1,failures=1."),
]
Particles = Annotated[
    int | None, Option("--particles", help="Particles per cloud of the posterior; chosen automatically by default.")
]

# How it is computed

Method = Annotated[
    str | None,
    Option(
        "--method",
        help="bracket, switching, posterior, counts, naive or bootstrap; chosen automatically by default.",
        autocompletion=completion.methods,
    ),
]
Scale = Annotated[str, Option("--scale", help="unknown: the scale of the width is unknown; report ratios of gaps.")]
Reference = Annotated[str | None, Option("--reference", metavar="ARM", help="The arm whose gap counts as 1 in ratios.")]
Constant = Annotated[float | None, Option("--constant", help="Constant of the naive estimator.")]
Resamples = Annotated[int | None, Option("--resamples", help="Simulations of the bootstrap; default 1,000.")]
Level = Annotated[float, Option("--level", help="Level of the intervals.")]
OptionalSeed = Annotated[
    int | None, Option("--seed", help="Seed, for methods that draw random numbers; recorded in the JSON.")
]
Seed = Annotated[int, Option("--seed", help="Seed; the same seed gives the same result.")]
Threads = Annotated[
    int | None, Option("--threads", help="Number of threads; default one per core. Results do not depend on it.")
]
Device = Annotated[
    str, Option("--device", help="cpu, cuda (a GPU), or auto: a GPU if there is one and the work is large enough.")
]

NoCheck = Annotated[bool, Option("--no-check", help="Do not check whether the rule fits the log.")]
Strict = Annotated[
    bool,
    Option("--strict", help="Exit with code 4 if the rule does not fit the log or is in doubt (0 if not checked)."),
]

# Where the answer goes

Json = Annotated[bool, Option("--json", help="Print JSON.")]
Output = Annotated[
    str | None, Option("--output", "-o", help="Write a picture (.png, .svg), a table (.csv ...) or .json.")
]

# An instance: a data set by name, or means

InstanceName = Annotated[
    str | None,
    Argument(metavar="INSTANCE", help="A data set by name.", show_default=False, autocompletion=completion.instances),
]
Means = Annotated[str | None, Option("--means", metavar="1,0.5,...", help="The arms' means, instead of a data set.")]
MeansSigma = Annotated[
    float | None, Option("--sigma", help="With --means: standard deviation of one reward (default 1).")
]
MeansBernoulli = Annotated[bool, Option("--bernoulli", help="With --means: rewards are 0 or 1.")]
InstanceArms = Annotated[
    str | None,
    Option("--arms", metavar="N|A,B", help="Number of arms to take from the data set or, with --means, their names."),
]

# Who does the work of a study

Executor = Annotated[
    str, Option("--executor", metavar="NAME", help="threads, ray or dask; results do not depend on it.")
]
Address = Annotated[
    str | None,
    Option(
        "--address",
        metavar="HEAD",
        help="Address of a cluster's head; by default, a cluster is started on this machine.",
    ),
]
Wait = Annotated[float, Option("--wait", metavar="SECONDS", help="How long to wait for the cluster's head to answer.")]

ESTIMATE_OPTIONS = (
    "method", "best_mean", "scale", "reference", "horizon", "level", "sigma", "bernoulli", "constant", "pool",
    "resamples", "prior", "particles",
)  # fmt: skip
"""Options of `estimate` that are passed on as they are."""

LAYOUT = ("columns", "arms", "sheet", "no_header", "blank")
"""Options of how a log is read, in the order in which `read_layout` takes them."""


class EstimateCommand(NamedTuple):
    """What `estimate` and `report` were asked, checked as far as possible without the log."""

    logs: list[str]  # paths, or "-"
    rule: Demonstrator | RuleFamily
    options: dict[str, Any]  # of `unbandit.estimate`
    reading: dict[str, Any]  # of `ActionLog.read`

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> EstimateCommand:
        """Read a command's parameters by name; a seed reaches the estimator only if it draws."""
        from unbandit.demonstrators.base import rule_or_family
        from unbandit.estimators.arguments import draws

        rule = rule_or_family(given["rule"])
        options = {name: given[name] for name in ESTIMATE_OPTIONS} | {"anchor": checks.anchors(given["anchor"])}
        for name in ("starting_pulls", "kept", "availability"):
            if given.get(name) is not None:
                options[name] = given[name]
        options["check"] = read_check(given["no_check"], given["strict"])
        if draws(given["method"], rule):
            options["seed"] = given["seed"]
        reading = read_layout(*(given[name] for name in LAYOUT)) | {"duplicates": given["duplicates"]}
        return cls(given["logs"], rule, options, reading)

    @property
    def log(self) -> str:
        """Return the path of the log where only one is allowed."""
        return only_log(self.logs)


def only_log(logs: Sequence[str]) -> str:
    """Return the path of the log where only one is allowed: a file, a folder, a pattern or "-"."""
    if len(logs) > 1:
        refusal = f"expected one file, or a folder; got {len(logs)}: {', '.join(logs[:3])} ..."
        remedy = "Put them in a folder, or quote a pattern that they match."
        raise ParameterError(refusal, parameter="LOG", remedy=remedy)
    return logs[0]


def read_check(no_check: bool, strict: bool) -> bool | None:
    """Return whether to check the rule; None for the default."""
    if no_check and strict:
        raise ParameterError(f"expected without {option('no_check')}; leave one of them out.", parameter="strict")
    return False if no_check else True if strict else None


def log_name(path: str, *others: str) -> str:
    """Return what messages call a log."""
    more = f" and {len(others)} more" if others else ""
    return ("standard input" if path == "-" else path) + more


def read_log(
    path: str, columns: str | None, arms: str | None, sheet: str | None, no_header: bool, blank: str | None = None
) -> ActionLog:
    """Read a log, with the names of columns and arms and the layout as they were given."""
    from unbandit.log import ActionLog

    return ActionLog.read(path, **read_layout(columns, arms, sheet, no_header, blank))


def read_layout(
    columns: str | None, arms: str | None, sheet: str | None, no_header: bool, blank: str | None = None
) -> dict[str, Any]:
    """Return the options of `ActionLog.read` that say how a log is laid out."""
    named = {"columns": read_columns(columns), "arms": read_arms(arms)}
    return named | {"sheet": sheet, "header": not no_header} | ({} if blank is None else {"blank": blank})


def _comma_list(text: str) -> list[str]:
    """Split at commas; a part with a comma in it is put in double quotes."""
    import csv

    try:
        return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), [])]
    except csv.Error as error:
        raise ParameterError(f'expected names between commas; got "{text}" ({error}).', value=text) from None


def read_arms(text: str | None) -> list[str] | None:
    """Read `A,"B, large",C`."""
    return None if text is None else read_names(text, "arms")


def read_names(text: str | None, parameter: str) -> list[str]:
    """Read `A,"B, large",C`, given as an option."""
    names = _comma_list(text or "")
    if not all(names) or not names:
        refusal = f'expected names between commas, as in A,B,C; got "{text or ""}".'
        raise ParameterError(refusal, parameter=parameter, value=text)
    return names


def read_columns(text: str | None) -> dict[str, str] | None:
    """Read `key=value,"key=value, with a comma"`."""
    if text is None:
        return None
    pairs = {}
    for part in _comma_list(text):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals):
            raise ParameterError(f'expected key=value,key=value; got "{part}".', parameter="columns", value=part)
        if key in pairs:
            remedy = "Join several columns of demonstrations by a plus sign: demonstration=subject+block."
            text = f'expected each role once; got "{key}" twice.'
            raise ParameterError(text, parameter="columns", value=part, remedy=remedy)
        pairs[key] = value
    return pairs


def read_instance(
    command: str, name: str | None, means: str | None, sigma: float | None, bernoulli: bool, arms: str | None
) -> Instance:
    """Return the instance that a command's options describe: a data set by name, or means."""
    from unbandit import datasets
    from unbandit.instance import Bernoulli, Gaussian, Instance

    if (name is None) == (means is None):
        text = f"{command}: expected either a data set or {option('means')}. Example: unbandit {command} two-armed ..."
        raise ParameterError(text)
    if means is not None:
        if bernoulli and sigma is not None:
            raise ParameterError("Bernoulli rewards have no sigma; leave one of the two out.", parameter="sigma")
        noise = Bernoulli() if bernoulli else Gaussian(1.0 if sigma is None else sigma)
        try:
            numbers = [float(part) for part in means.split(",")]
        except ValueError:
            refusal = f'expected numbers between commas, as in 1,0.5; got "{means}".'
            raise ParameterError(refusal, parameter="means", value=means) from None
        return Instance(numbers, noise, read_arms(arms))
    assert name is not None
    if set(name) <= set("0123456789.,-+e") and any(map(str.isdecimal, name)):
        refusal = f'expected the name of a data set; got "{name}". For means write {option("means", name)}.'
        raise ParameterError(refusal, parameter="INSTANCE", value=name)
    if sigma is not None or bernoulli:
        refusal = f"a data set has its own noise; use these options only with {option('means')}."
        raise ParameterError(refusal, parameter="sigma, bernoulli")
    if arms is None:
        return datasets.load(name)
    parts = arms.split(",")
    if not all(part.strip().isdigit() for part in parts):
        refusal = f'expected how many arms of the data set, or their numbers; got "{arms}".'
        raise ParameterError(refusal, parameter="arms", value=arms)
    chosen = [int(part) for part in parts]
    return datasets.load(name, arms=chosen[0] if len(chosen) == 1 else chosen)


def choose_device(device: str, rounds: int) -> str:
    """Choose the device for this many rounds, and say so if it was left open and a GPU is chosen."""
    from unbandit import devices

    chosen, notice = devices.choose_device(device, rounds)
    if notice is not None:
        typer.echo(notice, err=True)
    return chosen


def folder_device(folder: str, description: str, device: str, executor: str) -> str:
    """Return the device of a folder's earlier results, if none was asked for: both must be the same.

    `description` is the file in which the folder describes itself. A cluster starts on its CPUs: the GPUs of its
    workers cannot be seen from here.
    """
    earlier = folder_setting(folder, description, "device", ("cpu", "cuda")) if device == "auto" else None
    return earlier or ("cpu" if device == "auto" and executor != "threads" else device)


def folder_setting(folder: str, description: str, key: str, known: tuple[str, ...]) -> str | None:
    """Return a value from the file in which a folder describes itself; None if there is none that is known."""
    import json

    from unbandit.study.storage import storage_at

    try:
        value = json.loads(storage_at(folder).read(description)).get(key)
    except (OSError, ValueError, AttributeError, RecursionError, UnbanditError):
        return None  # the command that uses the folder says what is wrong with it
    return value if value in known else None
