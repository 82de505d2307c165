"""`unbandit demo`: the whole story on the battery instance."""

import shutil
import sys
from pathlib import Path

from typer import Option

from unbandit.cli import output as printer
from unbandit.errors import OutputError, option, phrase, shell_option


def demo(
    folder: str = Option("demo", "--folder", help="Folder for the report, the pictures and the log."),
    seed: int = Option(7, "--seed", help="Seed of the simulated experiment."),
    horizon: int = Option(5_000, "--horizon", help="Number of tests in the experiment."),
) -> None:
    """Run an example, and compare the answer with the truth.

    A UCB experiment searches for the best of 20 charging protocols. All that is kept is which protocol was tested when.

    Example:  unbandit demo
    """
    from unbandit import datasets
    from unbandit.datasets.battery import LONGEST_LIFETIME
    from unbandit.demonstrators import UCB
    from unbandit.estimators import estimate
    from unbandit.plots import arms_with_intervals, save
    from unbandit.reporting import LogSource, report

    instance = datasets.load("battery-high", arms=20)
    rule = UCB.variance_adjusted(alpha=0.25, sigma=instance.sigma)
    with printer.working("Simulating"):
        log = rule.demonstrate(instance, horizon, seed=seed)
    with printer.answering():
        answer = estimate(log, rule, best_mean=instance.best_mean)
    truth = dict(zip(instance.arms, instance.means.tolist(), strict=True))

    out = printer.console()
    out.print(
        f"A UCB experiment tested 20 charging protocols {horizon:,} times, searching for the longest battery life.\n"
        f"Its rewards are hidden. All we see is which protocol was tested when:"
    )
    shown = [instance.arms[code] for code in log.demonstration(0)[:6]]
    out.print("  " + ", ".join(shown) + ", ...\n")
    out.print("From that alone, every protocol's lifetime in cycles, next to the hidden truth:")
    table = printer.estimate_table(
        answer, "1", truth=truth, unit=LONGEST_LIFETIME, value="lifetime", digits=0, narrow=True
    )
    out.print(table)
    rows = [row for row in answer if row.mean_low is not None and row.mean_high is not None]
    held = sum(row.mean_low <= truth[row.arm] <= row.mean_high for row in rows)
    out.print(f"{held} of {len(rows)} intervals ({answer.level:.0%}) contain the true lifetime.")
    found = answer.best == (instance.best,)
    out.print(f"The best protocol, {instance.best}, was {'found' if found else 'not found'}.")
    for notice in answer.warnings:
        out.print(f"warning: {phrase(notice.text, shell_option)}")

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = f"Choose another with {option('folder')}."
        raise OutputError(f"{folder}: could not be created: {error.strerror}.", remedy=remedy) from error
    place = Path(folder)
    figure = arms_with_intervals(answer, truth=truth, unit=LONGEST_LIFETIME, label="lifetime, in cycles")
    for name in ("lifetimes.png", "lifetimes.svg"):
        save(figure, place / name)
    log.write(place / "log.csv")
    printer.write_truth(instance, place / "truth.csv")
    asked = f"{place / 'log.csv'} --rule {rule} --best-mean 1"
    with printer.working("Writing the report"):
        report(
            log, rule, source=LogSource.of_file(place / "log.csv"), truth=truth, audience=shell_option,
            command=f"unbandit report log.csv --rule {rule} --best-mean 1 --truth truth.csv "
            f"--unit cycles={LONGEST_LIFETIME} -o report.html",
            best_mean=instance.best_mean, unit=("cycles", LONGEST_LIFETIME),
        ).write(place / "report.html")  # fmt: skip
    written = ["lifetimes.png", "lifetimes.svg", "log.csv", "truth.csv", "report.html"]
    out.print("Written: " + ", ".join(str(place / name) for name in written))
    command = "unbandit" if shutil.which("unbandit") else sys.argv[0]
    out.print(f"Try it on the log:  {command} estimate {asked}")
    out.print(f"Read everything in one report, in any browser:  {place / 'report.html'}")
