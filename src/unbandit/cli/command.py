"""What all commands have in common: options in groups, numbers such as 1e4, --quiet and --verbose."""

import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from unbandit import errors
from unbandit.checks import nearest
from unbandit.cli import completion
from unbandit.cli.options import LAYOUT
from unbandit.errors import printable
from unbandit.formatting import joined

UsageError: Any = typer.BadParameter.__base__  # of typer itself, or of click, as the version has it

GROUPS: dict[str, tuple[str, ...]] = {
    "What you know": (
        "rule", "means", "theta", "sigma", "bernoulli", "best-mean", "anchor", "horizon", "within", "runs", "scale",
        "prior", "starting-pulls", "kept", "availability", "pool", "demonstration", "candidates", "values", "longest",
        "points", "full", "beyond", "list",
    ),
    "Input": (
        "columns", "arms", "sheet", "no-header", "blank", "duplicates", "contexts", "features", "predict", "population",
        "truth",
    ),
    "Method": (
        "method", "level", "pair", "by", "windows", "sensitivity", "no-check", "strict", "reference", "constant",
        "resamples", "particles", "clouds", "draws", "draw", "seed", "executor", "address", "wait", "threads", "device",
    ),
    "Output": (
        "output", "folder", "keep", "json", "counts", "pdf", "paper", "title", "author", "date", "unit", "names",
        "short", "truth", "quiet", "verbose", "help",
    ),
    "Following": ("follow", "every", "snapshot", "until-idle"),
}  # fmt: skip
"""Headings of the help, and the options under each, the most needed first; other options stand before them all."""

WITHOUT_A_LOG = {"What you know": "What to simulate", "Input": "What to simulate"}
"""What headings are called in the help of a command that reads no log."""

METAVARS = {
    "rule": "RULE", "prior": "PRIOR", "output": "FILE", "method": "METHOD", "scale": "known|unknown",
    "reference": "ARM", "device": "DEVICE", "best_mean": "VALUE", "level": "SHARE", "kept": "SHARE",
    "values": "own|shared", "blank": "refuse|skip", "duplicates": "CHOICE", "draw": "every|needed", "keep": "rows|sums",
    "truth": "FILE", "pdf": "FILE", "folder": "FOLDER", "host": "ADDRESS",
}  # fmt: skip
TYPES = {"int": "N", "float": "NUMBER", "str": "TEXT"}

WHOLE = re.compile(r"[+-]?\d+(\.\d*)?[eE]\+?\d+")
LARGEST_EXPONENT = 18

LOUDNESS = {"--quiet": -1, "-q": -1, "--verbose": 1, "-v": 1}
FLAGS = {
    "quiet": ("-q, --quiet", "Hide progress and notes; still print warnings."),
    "verbose": ("-v, --verbose", "Print all notes, including those most readers can skip."),
}
"""Options that every command has, with their help."""

READ = ("log", "logs", "truth", "names", "starting_pulls", "availability", "predict", "contexts")
WRITTEN = ("output", "pdf")
"""Parameters that name files which a command reads, and which it writes."""

SYNONYMS = {
    "horizon": "rounds iterations steps trials length",
    "longest": "rounds iterations steps trials horizon",
    "sigma": "noise sd std stdev stddev standard-deviation",
    "output": "out file outfile output-file save csv html to",
    "level": "confidence confidence-level credibility ci",
    "rule": "algorithm algo policy strategy agent learner bandit demonstrator model",
    "runs": "repetitions replications replicates repeats reps simulations",
    "best-mean": "best mean best-value maximum",
    "bernoulli": "binary binomial clicks conversions",
    "seed": "random-seed random-state rng",
    "threads": "cores workers jobs processes cpus n-jobs",
    "device": "gpu cuda cpu",
    "columns": "column col arm action choice reward rewards round time timestamp subject participant subjects",
    "demonstration": "subject participant run person",
    "population": "hierarchical participants subjects people",
    "features": "context contexts covariates",
    "candidates": "rule rules algorithm algorithms policy policies",
    "draws": "samples", "resamples": "bootstrap samples", "particles": "samples",
    "sheet": "tab worksheet sheet-name", "blank": "missing na", "no-header": "headerless header",
    "json": "format", "title": "name", "names": "labels", "paper": "paper-size format", "short": "brief one-page",
    "no-open": "no-browser", "max-upload": "upload-limit",
}  # fmt: skip
"""Options, each with what people type in its place."""

COMMAND_SYNONYMS = {
    "estimate": "fit infer recover run analyze analyse values", "identify": "which compare select",
    "serve": "web app ui gui page", "demonstrators": "rules algorithms policies list", "simulate": "generate sim",
    "check": "test diagnose validate",
    "report": "summary html", "population": "hierarchical participants", "plan": "power design", "reproduce": "paper",
}  # fmt: skip
"""Commands, likewise."""

_verbosity: ContextVar[int] = ContextVar("verbosity", default=0)


def verbosity() -> int:
    """Return how much the command that runs is to say: -1 with --quiet, 1 with --verbose, else 0."""
    return _verbosity.get()


def identify_line(log: str, known: Mapping[str, Any], command: str = "identify") -> str:
    """Return the command that looks for the rule, with how the log is read and what is known of the rewards.

    >>> identify_line("my log.csv", {"bernoulli": True}), identify_line("log.csv", {"sigma": 0.5, "no_header": True})
    ("unbandit identify 'my log.csv' --bernoulli", 'unbandit identify log.csv --no-header --sigma 0.5')
    """
    sigma, words = known.get("sigma"), ["unbandit", command, log]
    of_one = () if command == "population" else ("demonstration", "availability", "horizon")
    for name in (*LAYOUT, *of_one):
        if (value := known.get(name)) not in (None, False):
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    words += ["--bernoulli"] if known.get("bernoulli") else ["--sigma", f"{sigma:g}"] if sigma is not None else []
    return shlex.join(words)


ABOUT_GAPS = ("plan", "leak")


class Commands(TyperGroup):
    """The commands; one that there is not is answered with the one that is probably meant."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before the command."""
        completion.shell_asked_for(ctx, args)
        return list(super().parse_args(ctx, args))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the arguments name, and what is left of these."""
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            meant = [name for name, words in COMMAND_SYNONYMS.items() if args[0].lower() in words.split()]
            error.message += "".join(f" Did you mean '{name}'?" for name in meant)
            raise


class GroupedCommand(TyperCommand):
    """A command whose help has options in groups, which reads 1e4 as a number, and refuses an option given twice."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        for parameter in self.params:
            if parameter.metavar is None and not getattr(parameter, "is_flag", False):
                parameter.metavar = METAVARS.get(str(parameter.name), TYPES.get(_type_name(parameter)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse repeated options, write whole numbers such as 1e4 in full, and parse."""
        end = args.index("--") if "--" in args else len(args)
        _verbosity.set(max(-1, min(1, sum(LOUDNESS.get(each, 0) for each in args[:end]))))
        args = [each for at, each in enumerate(args) if at >= end or each not in LOUDNESS]
        given = [each.partition("=")[0] for each in args[: args.index("--") if "--" in args else None]]
        for parameter in self.params:
            takes_one = isinstance(parameter, TyperOption) and not (parameter.multiple or parameter.is_flag)
            places = [at for at, name in enumerate(given) if takes_one and name in parameter.opts]
            if len(places) > 1:
                text = f"expected only once; got it {len(places)} times."
                remedy = "Give everything in one option, separated by commas." if parameter.name == "columns" else None
                raise errors.ParameterError(text, parameter=parameter.name, count=len(places), remedy=remedy)
            whole, number = (_type_name(parameter) == kind for kind in ("int", "float"))
            for at in places if whole or number or str(parameter.metavar).startswith("N|") else ():
                name, equals, value = args[at].partition("=")
                if equals:
                    args[at] = f"{name}={_in_full(value)}"
                elif at + 1 < len(args):
                    args[at + 1] = value = _in_full(args[at + 1])
                if (whole or number) and value and not value.startswith("--"):
                    (_check_whole if whole else _check_number)(str(parameter.name), _in_full(value))
        told = list(args)  # which parsing uses up
        try:
            rest = super().parse_args(ctx, args)
        except UsageError as error:
            if self.name in ABOUT_GAPS:
                _refuse_without_gaps(told)
            if hasattr(error, "possibilities"):  # an option that there is not
                error.possibilities, short = None, str(error.option_name)
                error.message = self._unknown(next((each for each in given if each.startswith(short)), short), ctx)
            missing: Any = getattr(error, "param", None)
            if type(error).__name__ != "MissingParameter" or not isinstance(missing, TyperOption):
                raise
            raise self._missing(missing, ctx.params) from None
        _check_apart(ctx.params)
        return list(rest)

    def _unknown(self, given: str, ctx: Any) -> str:
        """Return the refusal of an option that the command does not have, with what is probably meant.

        That is another option, or another command that has this one.
        """
        word = given.lstrip("-").lower().replace("_", "-")
        known = [name.removeprefix("--") for each in self.params for name in each.opts if name.startswith("--")]
        meant = [f"--{name}" for name, words in SYNONYMS.items() if name in known and word in words.split()]
        if not meant and "rule" in known and word.replace("-", "_") in completion.parameters():
            meant = [f"--rule NAME:{word.replace('-', '_')}=..."]
        commands = getattr(getattr(ctx.parent, "command", None), "commands", {})
        others = [name for name, other in commands.items() if any(f"--{word}" in each.opts for each in other.params)]
        if not meant and others and word not in known:
            named = joined(others if len(others) <= 3 else [*others[:2], "others"])
            have = f"command {named} has" if len(others) == 1 else f"commands {named} have"
            return f"No such option: {printable(given)}. The {have} it."
        if not meant and (near := nearest(word, known)) is not None:
            meant = [f"--{near}"]
        return f"No such option: {printable(given)}." + (f" Did you mean {' or '.join(meant)}?" if meant else "")

    def _missing(self, option: TyperOption, given: Mapping[str, Any]) -> errors.ParameterError:
        """Return the refusal of a command without an option that it needs: what to do, and a complete example."""
        (example,) = re.findall(r"Example:\s+(.*)", self.help or "")
        log = given.get("log") or given.get("logs")
        if option.name != "rule":
            text = f"missing. {(option.help or '').rstrip('.')}."
        elif given.get("features") is not None:
            text = "missing. Name the rule that made the choices: linucb, lints, lin-epsilon-greedy or lin-softmax."
        elif log is None:
            text = "missing. Name the rule that chooses; for the list of rules run: unbandit demonstrators."
        else:
            name = log if isinstance(log, str) else log[0]
            text = (
                "missing. Name the rule that made the choices; for the list of rules run: unbandit demonstrators. "
                f"If you do not know the rule, run: {identify_line(name, given)}."
            )
        return errors.ParameterError(text, parameter=option.name, remedy=f"Example: {example}")

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return `[OPTIONS] LOG...`, without braces around what is needed."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write the docstring; examples, and what follows a backspace, are lines that can be copied.

        A long example continues on the next line after a backslash, as the shell reads it.
        """
        for paragraph in (self.help or "").split("\n\n"):
            formatter.write_paragraph()
            lines = paragraph.strip().splitlines()
            if lines and lines[0].startswith("Example:"):
                formatter.write("".join(f"  {line}\n" for line in _continued(paragraph, formatter.width - 2)))
            elif lines and lines[0].strip() == "\b":
                formatter.write("".join(f"  {line.rstrip()}\n" for line in lines[1:]))
            else:
                with formatter.indentation():
                    formatter.write_text(" ".join(paragraph.split()))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options under their headings."""
        records = dict(FLAGS)
        arguments = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                arguments.append((parameter.metavar or str(parameter.name).upper(), record[1]))
            else:
                records[max(parameter.opts, key=len).lstrip("-")] = record
        grouped = {name for names in GROUPS.values() for name in names}
        sections = {"Arguments": arguments, "Options": [each for name, each in records.items() if name not in grouped]}
        reads_log = any(each.name in ("log", "logs") for each in self.params)
        headings = {} if reads_log else WITHOUT_A_LOG
        for group, names in GROUPS.items():
            later = () if reads_log or group == "Output" else GROUPS["Output"]  # the truth is read, or written
            rows = [records.pop(name) for name in names if name in records and name not in later]
            sections.setdefault(headings.get(group, group), []).extend(rows)
        for heading, rows in sections.items():
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _continued(example: str, width: int) -> list[str]:
    """Break an example before an option, where it is too long for a line.

    >>> _continued("Example:  unbandit simulate linear --rule ucb1 --horizon 2000 -o log.csv", 60)
    ['Example:  unbandit simulate linear --rule ucb1 \\\\', '            --horizon 2000 -o log.csv']
    """
    lines: list[str] = []
    for part in re.split(r"\s+(?=-)", example.strip()):  # an option with its value
        if lines and len(lines[-1]) + len(part) + 3 <= width:
            lines[-1] += f" {part}"
        else:
            lines.append(f"{'':12}{part}" if lines else part)
    return [*(f"{line} \\" for line in lines[:-1]), lines[-1]]


def _refuse_without_gaps(args: list[str]) -> None:
    """Refuse a rule that chooses by features, of which a command about gaps lacks more than the option it asks for."""
    from unbandit.demonstrators.base import linear_rules
    from unbandit.demonstrators.rule import by_any_name
    from unbandit.planning import rule_of_arms

    for at, given in enumerate(args):
        name, equals, value = given.partition("=")
        rule = value if equals else "".join(args[at + 1 : at + 2])
        if name == "--rule" and by_any_name(rule.partition(":")[0].strip(), linear_rules()) is not None:
            rule_of_arms(rule)


def _check_apart(given: Mapping[str, Any]) -> None:
    """Refuse to write over a file that the command reads."""
    names = [name for name in READ if name != "truth" or "log" in given or "logs" in given]
    paths = [path for name in names for path in _listed(given.get(name))]
    for name in WRITTEN:
        if given.get(name) is not None and _is_read(Path(given[name]), paths):
            text = f'expected another file; got "{given[name]}", which this command reads.'
            raise errors.ParameterError(text, parameter=name, value=given[name])


def check_written(target: Path, given: Mapping[str, Any]) -> None:
    """Refuse a file beside the output that is one of those read."""
    paths = [path for name in READ for path in _listed(given.get(name))]
    if _is_read(target, paths):
        text = f'the table beside it would be "{target}", which this command reads.'
        raise errors.ParameterError(text, parameter="output", value=str(target), remedy="Give the report another name.")


def _listed(value: Any) -> Sequence[str]:
    return [value] if isinstance(value, str) else value or ()


def _is_read(target: Path, paths: Sequence[str]) -> bool:
    """Return whether a file that exists is among those that some paths name: files, patterns, or folders of logs."""
    from unbandit.log.sources import files_of

    for path in paths:
        with suppress(OSError, errors.UnbanditError):  # what cannot be looked at is refused when it is read
            for each in files_of(path) if target.is_file() else ():
                with suppress(OSError):  # of a link that leads nowhere
                    if target.samefile(each.path):
                        return True
    return False


def _type_name(parameter: Any) -> str:
    """Return the name of a parameter's type, by whichever interface this version of typer has."""
    if hasattr(parameter, "bare_type"):
        return str(parameter.bare_type())
    return {"integer": "int", "text": "str"}.get(parameter.type.name, str(parameter.type.name))


def _check_whole(name: str, text: str) -> None:
    """Refuse what is no whole number in words that say what was given."""
    with suppress(ValueError):
        int(text)
        return
    digits = re.sub(r"[,.' ]", "", text)
    remedy = f"Write {digits}, without separators." if digits.isdecimal() and re.search(r"[,' ]", text) else None
    raise errors.ParameterError(
        f'expected a whole number; got "{printable(text)}".', parameter=name, value=text, remedy=remedy
    )


def _check_number(name: str, text: str) -> None:
    """Refuse what is no number in words that say what was given."""
    with suppress(ValueError):
        float(text)
        return
    remedy = f"Write {text.replace(',', '.')}, with a point." if re.fullmatch(r"[+-]?\d*,\d+", text) else None
    raise errors.ParameterError(
        f'expected a number; got "{printable(text)}".', parameter=name, value=text, remedy=remedy
    )


def _in_full(text: str) -> str:
    """Write a whole number such as 1e4 in full; anything else is left to the parser.

    >>> _in_full("1e4"), _in_full("2.5e3"), _in_full("1.5e0"), _in_full("many")
    ('10000', '2500', '1.5e0', 'many')
    """
    from decimal import Decimal

    if not WHOLE.fullmatch(text) or int(text.lower().partition("e")[2]) > LARGEST_EXPONENT:
        return text
    number = Decimal(text)
    return str(int(number)) if number == int(number) else text
