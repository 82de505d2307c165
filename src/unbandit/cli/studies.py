"""Commands that simulate much, in a folder that can be resumed: `unbandit study`, `reproduce` and `calibrate`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from unbandit.cli import options
from unbandit.cli import output as printer
from unbandit.cli.output import MOST_LINES, NUMBER, TEXT, WORD

if TYPE_CHECKING:
    import polars

    from unbandit.calibration import Calibration
    from unbandit.paper.figure import PaperFigure
    from unbandit.paper.page import Reproduction


def study(
    file: str = Argument(..., metavar="FILE", help="The study, a TOML file.", show_default=False),
    output: str = Option(
        ..., "--output", "-o", metavar="FOLDER", help="Folder where results are saved and resumed from."
    ),
    threads: options.Threads = None,
    executor: options.Executor = "threads",
    address: options.Address = None,
    wait: options.Wait = 20.0,
    runs: int = Option(None, "--runs", help="Runs per cell, overriding the file."),
    seed: int = Option(None, "--seed", help="Seed, overriding the file."),
    device: options.Device = "auto",
    keep: str = Option(None, "--keep", help="Keep rows of every run, or sums (small for any number of runs)."),
) -> None:
    """Simulate and estimate a grid of instances and rules.

    FILE is a TOML file such as this one:

    \b
      rules = ["ucb:alpha=0.25", "sae"]
      horizons = {from = 500, to = 5000, points = 4, spacing = "log"}
      runs = 100
      estimators = ["bracket", "switching", "naive:constant=0.75"]

    \b
      [[instances]]
      dataset = "two-armed"

    \b
      [[instances]]
      name = "close"
      means = [1.0, 0.9, 0.5]
      sigma = 0.5

    Rows are written to FOLDER/parts as Parquet, a table of errors to FOLDER/summary.csv and to the screen. If a study
    was stopped, for whatever reason, the same command resumes it. FOLDER may be an address that fsspec supports, such
    as s3://bucket/results. With --executor ray or dask a cluster does the work, and the bytes are the same.

    Example:  unbandit study study.toml -o results
    """
    from unbandit.progress import progress_on
    from unbandit.study import Study
    from unbandit.study.dispatch import choose_executor
    from unbandit.study.grid import KEPT
    from unbandit.study.results import ResultsFolder

    described = Study.read(file, runs=runs, seed=seed)
    choose_executor(executor, address=address, wait=wait, threads=threads)  # a wrong option is refused here
    device = options.folder_device(output, "study.json", device, executor)
    device = options.choose_device(device, described.rounds)
    kept = options.folder_setting(output, "study.json", "keep", KEPT)  # a folder is resumed as it began
    grid = described.on(device, keep=keep or kept)
    folder, err = ResultsFolder(output, grid), printer.console(error=True)
    printer.announce_compilation()

    def stopped() -> str:
        done, parts = len(folder.present()), len(grid.tasks)
        return f"Stopped: {done:,} of {parts:,} parts are kept in {output}. Run the same command to resume."

    with printer.resumable(stopped):
        result = grid.run(
            output, executor=executor, address=address, wait=wait, threads=threads, progress=progress_on(err),
            say=printer.say_on(err),
        )  # fmt: skip
        table = result.summary()
        folder.write_summary(table)
    _print_summary(str(grid).strip("<>"), table, folder.summary)
    typer.echo(f"{output}: {len(grid.tasks):,} parts, and summary.csv", err=True)


def _print_summary(title: str, summary: "polars.DataFrame", where: str) -> None:
    """Print a table per instance and estimator: arm by arm, or one line for all arms if there are very many."""
    import polars as pl

    from unbandit.study.curves import pool_arms

    out = printer.console()
    out.print(title, style="bold")
    worse = summary.filter(pl.col("gap") > 0)
    worse = worse if worse.height else summary  # all arms are equally good
    many = worse.height > MOST_LINES
    rows = pool_arms(worse) if many else worse
    order = [pl.col(name).cast(pl.Enum(rows[name].unique(maintain_order=True))) for name in ("instance", "estimator")]
    rows = rows.sort(*order, "horizon", maintain_order=True)
    by_arm = [] if many else [("arm", TEXT), ("gap", NUMBER)]
    numbers = printer.columns(NUMBER, "estimated", "RMSE", "coverage", "found", "regret")
    for names, part in rows.head(MOST_LINES).group_by("instance", "estimator", maintain_order=True):
        out.print(", ".join(map(str, names)))
        headings = [("horizon", NUMBER), ("rule", TEXT), *by_arm, *numbers]
        out.print(printer.new_table(headings, _summary_rows(part, arms=not many)))
    if rows.height > MOST_LINES:
        out.print(f"... and {rows.height - MOST_LINES:,} more lines.")
    if many:
        out.print(
            "Each line covers all arms but the best; the RMSE is the largest among arms estimated in nearly all runs."
        )
    out.print(f"Everything, arm by arm: {where}")


def _summary_rows(summary: "polars.DataFrame", *, arms: bool) -> Iterator[tuple[str, ...]]:
    """Yield the lines of one instance and estimator; four digits of a rule's numbers suffice here."""
    from unbandit.formatting import share, short_numbers, with_error

    for row in summary.iter_rows(named=True):
        yield (
            f"{row['horizon']:,}",
            short_numbers(row["rule"]),
            *((row["arm"], f"{row['gap']:.3g}") if arms else ()),
            share(row["estimated"], 3),
            with_error(row["rmse"], row["rmse_error"]),
            share(row["coverage"], 3),
            share(row["found"], 3),
            f"{row['regret']:.4g}",
        )


def reproduce(
    figures: Annotated[list[str] | None, Argument(metavar="PICTURE", help="Pictures to make; default all.")] = None,
    folder: str = Option("reproduction", "--output", "-o", metavar="FOLDER", help="Folder for all results."),
    runs: str = Option(
        None, "--runs", metavar="N|paper", help="Runs per picture; the default takes about a minute for all pictures."
    ),
    full: bool = Option(False, "--full", help="Go far beyond the paper: 100,000 runs, or ten times its own, and more."),
    beyond: bool = Option(False, "--beyond", help="Make pictures of questions that the paper does not ask instead."),
    seed: options.Seed = 1,
    device: options.Device = "auto",
    threads: options.Threads = None,
    executor: options.Executor = "threads",
    address: options.Address = None,
    wait: options.Wait = 20.0,
    listed: bool = Option(False, "--list", help="List the pictures and stop."),
) -> None:
    """Make the paper's figures and test its claims.

    PICTURES are names (see --list); without any, the command makes all those of the paper. By default each picture has
    a fixed number of runs, so that all of them take about a minute on two cores and decide most claims. --runs paper
    uses the paper's own numbers. Existing results in the folder are reused, so repeating the command resumes an
    interrupted run. A folder has one size and one seed, and its page shows the pictures of the last command.

    Example:  unbandit reproduce ucb battery-landscape -o reproduction
    """
    from unbandit.paper.figure import chosen_figures
    from unbandit.paper.figure import figures as known_figures
    from unbandit.paper.reproduce import reproduce as make
    from unbandit.progress import progress_on

    names = list(figures or ())
    if listed:
        chosen_figures(names)  # an unknown name is refused here too
        rows = ((each.name, each.title, each.section + _with_option(each)) for each in known_figures().values())
        printer.console().print(printer.new_table([("picture", WORD), ("title", {}), ("in the paper", {})], rows))
        return
    err = printer.console(error=True)
    device = options.folder_device(folder, "reproduction.json", device, executor)

    with printer.resumable(lambda: f"Stopped. Results so far are kept in {folder}. Run the same command to resume."):
        done = make(
            names, folder, runs=_number_or_word(runs), seed=seed, full=full, beyond=beyond, device=device,
            threads=threads, executor=executor, address=address, wait=wait, say=printer.say_on(err),
            progress=progress_on(err), ready=printer.announce_compilation,
            told=lambda made: err.print(f"{made.files[0]}, .svg, .parquet: {made.figure.title}", soft_wrap=True),
        )  # fmt: skip
    _print_claims(done)


def _number_or_word(runs: str | None) -> Any:
    """Return a number where the text is one; what it may be is checked with everything else."""
    return int(runs) if runs is not None and runs.lstrip("+-").isdecimal() else runs


def _with_option(figure: "PaperFigure") -> str:
    return " (with --full)" if figure.full_only else " (with --beyond)" if figure.beyond else ""


def _print_claims(done: "Reproduction") -> None:
    """Print the claims that do not hold, how many have each verdict, and where all of them are."""
    from unbandit.paper.claims import FAILS, counted, written

    out = printer.console()
    failing = [(made.figure.name, claim) for made in done.made for claim in made.claims if claim.verdict == FAILS]
    if failing:
        out.print("What does not hold:")
        headings = [("picture", WORD), ("claim", {"ratio": 2}), ("statistic", {"ratio": 3})]
        rows = (
            (
                name, f"(ours) {claim.says}" if claim.ours else claim.says, claim.statistic,
                "-" if claim.measured is None else written(claim.measured),
            )
            for name, claim in failing
        )  # fmt: skip
        out.print(printer.new_table([*headings, ("measured", NUMBER)], rows))
    for whose, verdicts in (("The paper's claims", done.verdicts), ("Additional questions", done.own_verdicts)):
        if any(verdicts.values()):
            out.print(f"{whose}: " + ", ".join(counted(verdict, count) for verdict, count in verdicts.items()))
    out.print(f"All claims: {done.listing}")
    out.print(f"The page: {done.page}")


def calibrate(
    measures: Annotated[
        list[str] | None, Argument(metavar="MEASURE", help="What to measure; default everything.")
    ] = None,
    folder: str = Option("calibration", "--output", "-o", metavar="FOLDER", help="Folder for all results."),
    rule: Annotated[list[str] | None, Option("--rule", metavar="NAME", help="Only this rule; may be repeated.")] = None,
    runs: int = Option(None, "--runs", help="Runs per cell, 2 or more; default 300 for most cells."),
    seed: options.Seed = 1,
    particles: int = Option(
        None, "--particles", help="Particles per cloud of a posterior; by default as in the other commands."
    ),
    clouds: int = Option(None, "--clouds", help="Clouds per posterior; by default as in the other commands."),
    threads: options.Threads = None,
) -> None:
    """Measure how often intervals contain the truth.

    Also measures how large errors are, and how often a rule is recognised or refused.

    MEASURES are closed-forms, posterior, sampler, identify, check, logs, fit, population, contexts and timing; the
    default is all of them, which takes days on one core. "page" measures nothing, and only rewrites the page from the
    results in FOLDER. Logs are simulated, so the truth behind them is known. Repeating the command resumes an
    interrupted run. All figures are written to FOLDER/figures.csv and, with explanations, to FOLDER/calibration.md.

    Example:  unbandit calibrate posterior --rule ucb --runs 50 -o look
    """
    from unbandit.calibration import calibrate as measure
    from unbandit.calibration import read_calibration
    from unbandit.progress import progress_on

    err = printer.console(error=True)
    if measures == ["page"]:
        done = read_calibration(folder)
        done.write()
    else:
        with printer.resumable(
            lambda: f"Stopped. Results so far are kept in {folder}. Run the same command to resume."
        ):
            done = measure(
                folder, measures=measures or (), rules=rule or (), runs=runs, seed=seed, particles=particles,
                clouds=clouds, threads=threads, progress=progress_on(err, "Measuring", rounds=False),
                say=printer.say_on(err), ready=printer.announce_compilation,
            )  # fmt: skip
    _print_criteria(done)


def _print_criteria(done: "Calibration") -> None:
    """Print each criterion beside what was measured, then every score that misses it."""
    from unbandit.calibration.measure import MISSED

    out = printer.console()
    headings = (("measure", 3), ("goal", 2), ("measured", 2), ("cells", 2))
    rows = ((each.measure, each.goal, each.span, each.counted) for each in done.criteria)
    out.print(printer.new_table([(name, {"ratio": share}) for name, share in headings], rows))
    missed = [
        (each.key, score.row, score.column, score.text)
        for each in done.criteria
        for score in each.scores
        if score.verdict == MISSED
    ]
    if missed:
        out.print("Missed:")
        out.print(printer.new_table(printer.columns(TEXT, "measure", "whose", "cell", "measured"), missed))
    out.print(f"Every figure: {done.folder / 'figures.csv'}")
    out.print(f"The page: {done.page}")
