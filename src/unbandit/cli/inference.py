"""Commands that filter a log: `unbandit posterior`, `unbandit identify` and `unbandit population`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, cast

import typer
from typer import Option

from unbandit import checks, formatting
from unbandit.cli import options
from unbandit.cli import output as printer
from unbandit.cli.command import identify_line
from unbandit.cli.output import NUMBER, RULE, TEXT, WORD
from unbandit.errors import MISREAD, ParameterError, option, phrase, shell_option
from unbandit.formatting import by_reason, counted, listed, short_numbers, shown, times
from unbandit.tables import aligned, same_decimals

WIDEST_REASON = 50  # why a rule does not fit, in its line of a table

if TYPE_CHECKING:
    import polars
    from rich.console import Console
    from rich.table import Table

    from unbandit.hierarchy import Population
    from unbandit.identification import Identification
    from unbandit.identification.evidence import Contender
    from unbandit.inference import Posterior
    from unbandit.progress import StageLine


def posterior(
    log: options.Log,
    rule: options.Rule,
    prior: options.Prior = None,
    sigma: options.Sigma = None,
    bernoulli: options.BernoulliRewards = False,
    best_mean: options.BestMean = None,
    anchor: options.Anchor = None,
    pair: str = Option(None, "--pair", metavar="A,B", help="Also report the probability that arm A beats arm B."),
    by: float = Option(0.0, "--by", help="With --pair: by at least this much."),
    pool: options.Pool = False,
    demonstration: options.Demonstration = None,
    horizon: options.Horizon = None,
    starting_pulls: options.StartingPulls = None,
    kept: options.Kept = None,
    availability: options.Availability = None,
    level: options.Level = 0.95,
    particles: int = Option(None, "--particles", help="Particles per cloud (four clouds); by default 250 to 4,000."),
    draws: int = Option(1_000, "--draws", help="Draws per cloud."),
    seed: options.Seed = 0,
    threads: options.Threads = None,
    no_check: options.NoCheck = False,
    strict: options.Strict = False,
    arms: options.Arms = None,
    columns: options.Columns = None,
    sheet: options.Sheet = None,
    no_header: options.NoHeader = False,
    blank: options.Blank = None,
    as_json: options.Json = False,
    output: str = Option(None, "--output", "-o", help="Write a table, .json, a picture, or .nc for ArviZ."),
) -> None:
    """Draw from the posterior of every arm's mean.

    Uses the actions, and any rewards in the log. The answer has the probability that each arm is the best, and
    intervals for every mean and gap. -o writes a table (.csv, .parquet), .json, a picture of the hidden sample means
    over the rounds (.png, .svg), or a netCDF file for ArviZ (.nc).

    Example:  unbandit posterior log.csv --rule thompson:sigma=0.5 --sigma 0.5 --pair A,B -o draws.nc
    """
    from unbandit.demonstrators.base import parse_rule, rule_or_family
    from unbandit.estimators.api import posterior as infer
    from unbandit.estimators.arguments import one_demonstration, shows_part
    from unbandit.estimators.check import said_of, unless_fitted
    from unbandit.fit import fitted_notice
    from unbandit.log.partial import ThinnedLog, part_of, read_or_scan, without_counts

    assumed = rule_or_family(rule)
    printer.check_output(output, *printer.PICTURES, ".json", ".nc")
    rivals = _read_pair(pair)
    if by and not rivals:
        raise ParameterError("expected only with --pair; leave it out, or give two arms.", parameter="by", value=by)
    with printer.working("Reading the rounds"):
        whole = read_or_scan(log, **options.read_layout(columns, arms, sheet, no_header, blank), scan=False)
        with printer.answering(options.log_name(log)):
            record = one_demonstration(whole, demonstration, "posterior")
            found = infer(
                record, assumed, prior=prior, sigma=sigma, bernoulli=bernoulli, best_mean=best_mean,
                anchor=checks.anchors(anchor), horizon=horizon, pool=pool, particles=particles, draws=draws,
                seed=seed, threads=threads, starting_pulls=starting_pulls, kept=kept, availability=availability,
                check=options.read_check(no_check, strict),
            )  # fmt: skip
    seen = without_counts(part_of(record, starting_pulls, kept, horizon))
    reading = seen.said(bracketed=False) if isinstance(seen, ThinnedLog) else seen.reading
    reading = [each for each in reading if each.code not in MISREAD]  # the answer has these
    for label in (label for rival in rivals for label in rival):
        checks.position("pair", label, found.arms)
    beaten = [
        {"arm": one, "other": other, "by": by, "probability": found.beats(one, other, by)} for one, other in rivals
    ]

    def as_dict() -> dict[str, Any]:
        more = {"seed": seed, "pairs": beaten, "notes": [each.to_dict(shell_option) for each in reading]}
        return found.to_dict(shell_option, level) | more

    if not printer.deliver(found, output, as_json, table=lambda: found.to_frame(level), as_dict=as_dict):
        printer.insist(found.check, strict, found.warnings)
        return
    out = printer.console()
    warnings = printer.print_misfit(found.warnings)
    out.print(f"{short_numbers(found.rule)}, prior {found.prior}, {level * 100:g}% intervals", style="bold")
    out.print(_posterior_table(found, level))
    margin = f" by {by:g} or more" if by else ""
    for row in beaten:
        out.print(f'P("{row["arm"]}" beats "{row["other"]}"{margin}) = {row["probability"]:.3f}')
    out.print(
        f"log evidence {found.log_evidence:.1f} ± {found.log_evidence_error:.1f}; 4 clouds of {found.particles:,} "
        f"particles, smallest effective size {found.effective_size:.0f}"
    )
    used = parse_rule(found.rule)
    _, checked = said_of(found.check, used, can_fit=availability is None and not shows_part(seen))
    checked = unless_fitted(checked, type(used), found.fitted)
    said = [fitted_notice(found.fitted, 0.95)] if found.fitted else []
    printer.print_notices(warnings, [*checked, *said, *reading])
    printer.insist(found.check, strict, found.warnings)


def _read_pair(text: str | None) -> list[tuple[str, str]]:
    if text is None:
        return []
    first, comma, second = (part.strip() for part in text.partition(","))
    if not (first and comma and second):
        raise ParameterError(f'expected two arms, as in A,B; got "{text}".', parameter="pair", value=text)
    return [(first, second)]


def _posterior_table(found: "Posterior", level: float) -> "Table":
    return _value_table({"": found.to_frame(level)}, levels=("mean", "gap"))


def check(
    context: typer.Context,
    log: options.Log,
    candidates: options.Candidates = None,
    sigma: float = Option(None, "--sigma", help="Standard deviation of one reward (default 1, with a warning)."),
    bernoulli: options.BernoulliRewards = False,
    best_mean: options.BestMean = None,
    horizon: options.Horizon = None,
    level: options.Level = 0.95,
    availability: options.Availability = None,
    demonstration: options.Demonstration = None,
    arms: options.Arms = None,
    columns: options.Columns = None,
    features: options.Features = None,
    prior: str = Option(
        None, "--prior", help="With --features: prior of every coefficient, such as normal:deviation=1."
    ),
    sheet: options.Sheet = None,
    no_header: options.NoHeader = False,
    blank: options.Blank = None,
    seed: options.Seed = 0,
    as_json: options.Json = False,
    output: str = Option(None, "--output", "-o", help="Write the table (.csv, .tsv, .parquet) or .json."),
) -> None:
    """Find the rules that fit a log.

    Run this first if you do not know where a log comes from. It tries every rule with a closed form, shows its
    estimate, and tests whether it fits. Unknown parameters are chosen from a grid: those that make the log most
    probable. Rules that choose at random are left out; unbandit identify compares these too. A rule does not fit if its
    p-value is 0.01 or less.

    With --features it tries every rule that chooses by features, with the parameter that makes the log most probable.

    Example:  unbandit check log.csv --sigma 0.5
    """
    from unbandit import identification
    from unbandit.cli import contexts
    from unbandit.log.rewards import are_binary

    printer.check_output(output, ".json")
    if prior is not None and features is None:
        raise ParameterError(f"expected only with {option('features')}; leave it out.", parameter="prior")
    read: Callable[[], Any] = partial(options.read_log, log, columns, arms, sheet, no_header, blank)
    read = read if features is None else contexts.reader(context.params, [log])
    deviation = None if prior is None else contexts.prior_deviation(prior)
    with printer.working("Reading") as status:
        record = read()
        with printer.answering(options.log_name(log)):
            found = identification.check(
                record, candidates, sigma=sigma, bernoulli=bernoulli, horizon=horizon, best_mean=best_mean,
                level=level, seed=seed, demonstration=demonstration, availability=availability, prior=deviation,
                progress=status.update,
            )  # fmt: skip

    notes = [each.to_dict(shell_option) for each in record.reading]
    if not printer.deliver(found, output, as_json, as_dict=lambda: found.to_dict(shell_option) | {"notes": notes}):
        return
    out = printer.console()
    verdict = found.answer()
    out.print(f"{verdict[0].upper()}{verdict[1:]}.", style="bold")
    shown = "best arm" if features is None else "direction known to"
    headings = [("rule", RULE), ("verdict", WORD), ("p-value", NUMBER), (shown, TEXT), ("why", TEXT)]
    rows, reasons = [], []
    for row, said in zip(found.rows, found.to_frame().to_dicts(), strict=True):
        why, name = phrase(row.check.brief, shell_option), short_numbers(said["rule"])
        if len(why) > WIDEST_REASON and not row.check.unusual:  # below the table, once for all rules that share it
            reasons.append((name.partition(":")[0], why))
            why = "see below"
        chance = row.check.chance.removeprefix("p ").removeprefix("= ")
        rows.append((name, said["verdict"], chance, row.shown or "-", why))
    out.print(printer.new_table(headings, rows))
    for names, why in by_reason(reasons).items():
        out.print(f"{names}: {why[0].lower()}{why[1:]}.", soft_wrap=True)
    out.print(
        "p-value: an upper limit on how often logs made by the rule look as unusual as this one. At "
        f"{found.threshold:g} or less the rule does not fit.",
        soft_wrap=True,
    )
    if found.not_tried:
        out.print(
            f"Not tried, because they choose at random or reveal no values: {', '.join(found.not_tried)}. "
            f"To compare these too, run: {identify_line(log, context.params)}",
            soft_wrap=True,
        )
    if features is None and 1 < len(found.fitting) < len(found.rows):
        names = ",".join(row.name for row in found.fitting)
        out.print(
            "Several rules fit. To see how probable each is, "
            f"run: {identify_line(log, context.params)} --candidates {names}",
            soft_wrap=True,
        )
    if any(each.code == "perhaps-people" for each in found.warnings):
        known = context.params | {"bernoulli": bernoulli or are_binary(cast(Any, record).rewards)}
        people = identify_line(log, known, "population")
        out.print(f"If people made the choices, run: {people} --rule learning-softmax", soft_wrap=True)
    new = [each for each in found.warnings if each.code != "none-fits" or not found.not_tried]  # not yet said above
    printer.print_notices(new, record.reading)


def identify(
    context: typer.Context,
    log: options.Log,
    candidates: options.Candidates = None,
    sigma: float = Option(None, "--sigma", help="Standard deviation of one reward (default 1, with a warning)."),
    bernoulli: options.BernoulliRewards = False,
    prior: str = Option(None, "--prior", help="Prior of every arm's mean, such as normal:mean=0,deviation=1."),
    availability: options.Availability = None,
    demonstration: options.Demonstration = None,
    horizon: options.Horizon = None,
    particles: int = Option(
        None, "--particles", help="Particles per cloud in the last comparison; chosen automatically by default."
    ),
    values: bool = Option(False, "--values", hidden=True, help="The arms' values are always shown."),
    level: float = Option(0.95, "--level", help="Level of the intervals."),
    arms: options.Arms = None,
    columns: options.Columns = None,
    sheet: options.Sheet = None,
    no_header: options.NoHeader = False,
    blank: options.Blank = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    as_json: options.Json = False,
    output: options.Output = None,
) -> None:
    """Find the rule that made a log, and the values of its arms.

    LOG is read as in unbandit estimate; the order of its rounds must be known. A candidate with parameters is used as
    given. For a bare name, unknown parameters are searched and averaged over; ucb:alpha=0|0.25 lists the values to
    try. The answer is a rule, or the rules that the log cannot distinguish, and the values of the arms averaged over
    what is still possible, with intervals that include the uncertainty about the rule and its parameters. If no
    candidate fits the log, no values are shown and the exit code is 4.

    Example:  unbandit identify log.csv --candidates ucb,sae:alpha=0.25,thompson,uniform --sigma 0.5
    """
    from unbandit import checks, identification

    checks.level(level)
    printer.check_output(output, *printer.PICTURES, ".json")
    with printer.working("Reading") as status:
        record = options.read_log(log, columns, arms, sheet, no_header, blank)
        with printer.answering(options.log_name(log)):
            answer = identification.identify(
                record, candidates, prior=prior, sigma=sigma, bernoulli=bernoulli, horizon=horizon,
                particles=particles, seed=seed, threads=threads, demonstration=demonstration,
                availability=availability, progress=status.update,
            )  # fmt: skip
            in_json = as_json or (output is not None and output.lower().endswith(".json"))
            most = None if in_json else 0 if output else max(printer.MOST_LINES // len(answer.question.log.arms), 1)
            tables = _value_tables(answer, level, most, status)
            shown_all = len(tables) == len(answer.question.log)
            notes = [each for each in answer.notes if not shown_all or each.code != "values-by-demonstration"]
            answer = replace(answer, notes=(*record.reading, *notes))

    def as_dict() -> dict[str, Any]:
        more = {name: None if each is None else each.to_dicts() for name, each in tables.items()}
        return answer.to_dict(shell_option, level) | ({"values_by_demonstration": more} if more else {})

    if not printer.deliver(answer, output, as_json, as_dict=as_dict):
        printer.insist(answer.check, answer.verdict == "none fits")
        return
    out = printer.console()
    if values:
        typer.echo("note: --values is no longer needed: values are always shown.", err=True)
    _print_answer(out, answer, level, tables)
    printer.print_notices(answer.warnings, answer.notes, answer.question.log.noun)
    if answer.verdict == "none fits" and log != "-":
        typer.echo(f"Next: {identify_line(log, context.params, 'check')}", err=True)
    printer.insist(answer.check, answer.verdict == "none fits")


def _value_tables(
    answer: "Identification", level: float, most: int | None, status: "StageLine"
) -> "dict[str, polars.DataFrame | None]":
    """Return the arms' values in each of several demonstrations, or in the first, by name; empty if there are none."""
    log = answer.question.log
    tables: dict[str, polars.DataFrame | None] = {}
    if len(log) == 1 or answer.verdict == "none fits":
        return {}
    for which, name in enumerate(log.demonstrations[:most]):
        status.update(f"Values of {log.noun} {which + 1:,} of {len(log):,}")
        tables[name] = answer.value_table(level, demonstration=which)
    return tables


def _print_answer(
    out: "Console", answer: "Identification", level: float, tables: "Mapping[str, polars.DataFrame | None]"
) -> None:
    """Print the verdict, the candidates, whether they fit, the arms' values, and the most surprising rounds."""
    from unbandit.instance import Bernoulli

    asked = answer.question
    rewards = (
        "rewards of 0 and 1" if isinstance(asked.noise, Bernoulli) else f"rewards with sigma {asked.noise.sigma:g}"
    )
    verdict = answer.answer()
    out.print(f"{verdict[0].upper()}{verdict[1:]}.", style="bold")
    headings = [
        ("candidate", RULE), ("probability", NUMBER), ("times less probable", NUMBER), ("fits", WORD),
        ("parameters, 95% interval", TEXT),
    ]  # fmt: skip
    possible = [each for each in answer.candidates if each.possible]
    out.print(printer.new_table(headings, map(partial(_candidate, answer), possible)))
    if asked.alone:
        out.print(f"Assumed: {rewards}, prior {asked.prior}.")
    else:
        out.print(
            "Times less probable: how many times smaller the probability of this log is than under the first "
            "candidate.",
            soft_wrap=True,
        )
        out.print(f"Assumed: all candidates equally likely beforehand, {rewards}, prior {asked.prior}.", soft_wrap=True)
    reasons = (
        (short_numbers(each.name), phrase(each.reason, shell_option)) for each in answer.candidates if each.reason
    )
    for names, reason in by_reason(reasons).items():
        out.print(f"{names}: {reason}")
    table = answer.value_table(level)
    if table is not None:
        assert answer.values is not None
        rule = short_numbers(answer.values.rule)
        out.print(f"\nWhat the arms were worth under {rule}, {level * 100:g}% intervals", style="bold")
        out.print(_value_table({"": table}))
    known, noun = {name: values for name, values in tables.items() if values is not None}, asked.log.noun
    if known:
        rule = short_numbers(" or ".join(answer.averaged))
        out.print(f"\nWhat the arms were worth under {rule}, {level * 100:g}% intervals", style="bold")
        out.print(_value_table(known, noun))
    if silent := [name for name in tables if name not in known]:
        out.print(f"Without values, because the log says next to nothing about them: {listed(silent)}.")
    if tables and (left := len(asked.log) - len(tables)):
        out.print(
            f"... and {counted(left, f'more {noun}')}: --json has the values of all, --demonstration NAME has those of "
            "one.",
            soft_wrap=True,
        )
    if answer.surprises:
        several = len(asked.log) > 1
        rounds = (
            f"{row.round:,} (arm {shown(row.arm)}{f', {noun} {shown(row.demonstration)}' if several else ''}, "
            f"{_odds(row.log_probability)})"
            for row in answer.surprises
        )
        out.print(f"Most surprising rounds under {answer.leading.name}: {', '.join(rounds)}.")


def _value_table(
    tables: "Mapping[str, polars.DataFrame]", noun: str = "", levels: Sequence[str] = ("gap", "mean")
) -> "Table":
    """Return the arms' values, best first; of several demonstrations one below the other, each named once."""
    first = next(iter(tables.values()))
    levels = [name for name in levels if name in first.columns]
    headings = [(noun, TEXT)] if noun else []
    headings += [("arm", TEXT), ("pulls", NUMBER), ("P(best)", NUMBER)]
    for name in levels:
        headings += [(name, NUMBER), ("interval", WORD)]
    columns = {name: (name, f"{name}_low", f"{name}_high") for name in levels}
    write = {
        name: same_decimals([each for table in tables.values() for part in parts for each in table[part]])
        for name, parts in columns.items()
    }
    rows = []
    for at, row, name in ((at, row, name) for name, table in tables.items() for at, row in enumerate(table.to_dicts())):
        named = [name if at == 0 else ""] if noun else []
        numbers = []
        for level, parts in columns.items():
            value, low, high = (write[level](row[part]) for part in parts)
            numbers += [value, "" if low == high else f"{low} to {high}"]
        rows.append((*named, row["arm"], f"{row['pulls']:,}", f"{row['probability_best']:.3f}", *numbers))
    return printer.new_table(headings, rows)


def _candidate(answer: "Identification", candidate: "Contender") -> tuple[str, ...]:
    """Return a candidate's line of the table."""
    from unbandit.identification.values import said_of_parameters

    check = candidate.check
    fits = {"fits": f"fits, {check.chance}", "does not fit": f"no, {check.chance}"}.get(check.verdict, "")
    behind = answer.leading.evidence.value - candidate.evidence.value
    without = answer.question.alone or answer.verdict == "none fits"  # a probability among rules of which none fits
    return (
        short_numbers(candidate.name),
        "-" if without else formatting.probability(candidate.probability),
        "-" if candidate is answer.leading or behind < 0 else times(behind),
        fits,
        said_of_parameters(candidate),
    )


def _odds(log_probability: float) -> str:
    """Write a probability, however small, as one in so many."""
    return f"1 in {times(-log_probability)}"


def population(
    log: options.Log,
    rule: options.Rule,
    values: str = Option(
        "own", "--values", help="Arms' values: own to each participant, or shared by all (needs known rewards)."
    ),
    prior: options.Prior = None,
    sigma: options.Sigma = None,
    bernoulli: options.BernoulliRewards = False,
    horizon: options.Horizon = None,
    level: options.Level = 0.95,
    particles: int = Option(None, "--particles", help="Particles per cloud; default 40, or more if clouds differ."),
    no_check: options.NoCheck = False,
    strict: options.Strict = False,
    arms: options.Arms = None,
    columns: options.Columns = None,
    sheet: options.Sheet = None,
    no_header: options.NoHeader = False,
    blank: options.Blank = None,
    seed: options.Seed = 0,
    threads: options.Threads = None,
    as_json: options.Json = False,
    output: str = Option(None, "--output", "-o", help="Write a forest plot (.png, .svg), a table (.csv ...) or .json."),
) -> None:
    """Fit a rule's parameters for many participants together.

    The answer describes the population and each participant in it.

    LOG has one demonstration per participant (a column subject, participant, user ...). Parameters that you leave out
    of --rule may differ between participants: rate and temperature of q-learning, the temperature of softmax, epsilon
    of epsilon-greedy, sigma of thompson. Participants are partially pooled: one whose choices carry little information
    is drawn towards the others. Rewards in the log are used; hidden rewards are integrated out. --json also has every
    participant's arms.

    Example:  unbandit population choices.csv --rule q-learning --bernoulli -o forest.png
    """
    from unbandit import hierarchy
    from unbandit.hierarchy.likelihood import rule_of_people

    assumed = rule_of_people(rule)
    printer.check_output(output, *printer.PICTURES, ".json")
    with printer.working("Reading"):
        record = options.read_log(log, columns, arms, sheet, no_header, blank)
        with printer.answering(options.log_name(log)):
            found = hierarchy.population(
                record, assumed, values=cast("Literal['own', 'shared']", values), prior=prior, sigma=sigma,
                bernoulli=bernoulli, horizon=horizon, level=level, particles=particles, seed=seed, threads=threads,
                check=options.read_check(no_check, strict),
            )  # fmt: skip
            found = replace(found, notes=(*record.reading, *found.notes))

    if printer.deliver(found, output, as_json, as_dict=lambda: found.to_dict(shell_option)):
        printer.print_notices(found.warnings)
        _print_population(found)
        printer.print_notices([], found.notes)
    printer.insist(found.check, strict, found.warnings)


def _arm_table(found: "Population") -> "Table":
    """Return the arms over all participants."""
    ends = ("mean_low", "mean_high") if found.shared else ("mean_lowest", "mean_highest")
    reach = f"{found.level * 100:g}% interval" if found.shared else "lowest to highest"
    headings = [("arm", TEXT), ("pulls", NUMBER), ("P(best)", NUMBER), ("mean", NUMBER), (reach, WORD)]
    rows, arms = [], found.arm_summary.head(printer.MOST_LINES).to_dicts()
    write = same_decimals(row[name] for row in arms for name in ("mean", *ends))
    for row in arms:
        cells = ["-", "-", "-"]
        if row["mean"] is not None:
            cells[1:] = [write(row["mean"]), f"{write(row[ends[0]])} to {write(row[ends[1]])}"]
        if row["probability_best"] is not None:
            cells[0] = f"{row['probability_best']:.2f}"
        rows.append((row["arm"], f"{row['pulls']:,}", *cells))
    return printer.new_table(headings, rows)


def _print_population(found: "Population") -> None:
    """Print the population's parameters, and those of the participants."""
    out = printer.console()
    ends = f"{found.level * 100:g}% interval"
    people = counted(len(found.participants), "participant")
    out.print(f"{short_numbers(found.rule)}, {people}, {counted(int(found.rounds.sum()), 'choice')}", style="bold")
    headings = [("typical participant", TEXT), ("value", NUMBER), (ends, WORD), ("two thirds of them", WORD)]
    headings += [("shrinkage", NUMBER)]
    rows = []
    for one in found.population:
        value, low, high = aligned((one.value, one.low, one.high))
        rows.append((one.parameter, value, f"{low} to {high}", one.said_of_two_thirds, f"{one.shrinkage:.0%}"))
    out.print(printer.new_table(headings, rows))
    out.print(
        "The last range contains two thirds of the participants: those within one spread of the typical one.",
        soft_wrap=True,
    )
    spreads = [(each, *each.said_of_spread) for each in found.population]
    said = (
        f"{each.parameter} {reach if each.spread is None else f'{spread} ({reach})'} of its {each.scale}"
        for each, spread, reach in spreads
    )
    out.print(f"Spread: {'; '.join(said)}.", soft_wrap=True)
    out.print(_arm_table(found))
    said_of_best = (
        "P(best): the probability that the arm is the best one. All participants share its mean."
        if found.shared
        else "P(best): the probability that the arm is a participant's best one. It and the mean are averaged over "
        "participants; --json has the arms of each."
    )
    out.print(said_of_best, soft_wrap=True)
    headings = [("participant", TEXT), ("rounds", NUMBER)]
    for each in found.parameters:
        headings += [(each.name, NUMBER), (ends, WORD), ("alone", NUMBER)]
    pooled = [found.intervals(at) for at in range(len(found.parameters))]
    alone = [found.intervals(at, alone=True)[1] for at in range(len(found.parameters))]
    lines, shown = [], slice(printer.MOST_LINES)
    write = [same_decimals([*values[1, shown], *single[shown]]) for values, single in zip(pooled, alone, strict=True)]
    for person, name in enumerate(found.participants[shown]):
        cells = [name, f"{found.rounds[person]:,}"]
        for at in range(len(found.parameters)):
            low, value, high = pooled[at][:, person]
            cells += [write[at](value), f"{write[at](low)} to {write[at](high)}", write[at](alone[at][person])]
        lines.append(cells)
    out.print(printer.new_table(headings, lines))
    printer.say_left_out(out, len(found.participants), "participants")
