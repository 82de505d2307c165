"""`unbandit posterior`: the posterior of every arm's mean."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typer import Option

from unbandit.cli import options
from unbandit.cli.options import log_name, read_anchor, read_names, read_pairs
from unbandit.errors import LogError, ParameterError

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure
    from rich.console import Console
    from rich.table import Table

    from unbandit.inference import Posterior


def posterior(
    log: options.Log,
    rule: options.Rule,
    prior: options.Prior = None,
    sigma: options.Sigma = None,
    bernoulli: options.BernoulliRewards = False,
    best_mean: options.BestMean = None,
    anchor: options.Anchor = None,
    pair: str = Option(None, "--pair", metavar="A,B", help="Also the probability that arm A beats arm B."),
    by: float = Option(0.0, "--by", help="With --pair: by at least this much."),
    pool: options.Pool = False,
    horizon: options.Horizon = None,
    level: options.Level = 0.95,
    particles: int = Option(None, "--particles", help="Per cloud, of four clouds; by default 250 to 4,000."),
    draws: int = Option(1_000, "--draws", help="Per cloud."),
    seed: options.Seed = 0,
    threads: options.Threads = None,
    arms: options.Arms = None,
    columns: options.Columns = None,
    as_json: options.Json = False,
    output: str = Option(None, "--output", "-o", help="A table, .json, a picture, or .nc for ArviZ."),
) -> None:
    """Draw from the posterior of every arm's mean, given the actions and any rewards in the log.

    The answer has the probability that each arm is the best, and intervals of every mean and gap. -o writes a table
    (.csv, .parquet), .json, a picture of the hidden sample means over the rounds (.png, .svg), or a netCDF file for
    ArviZ (.nc).

    Example:  unbandit posterior log.csv --rule thompson:sigma=0.5 --sigma 0.5 --pair A,B -o draws.nc
    """
    from unbandit.cli.output import PICTURES, announce_compilation, check_output, console, deliver
    from unbandit.demonstrators import parse_rule
    from unbandit.estimators.posterior import posterior as infer
    from unbandit.log import ActionLog

    assumed = parse_rule(rule)
    check_output(output, *PICTURES, ".json", ".nc")
    pairs = [] if pair is None else [_read_pair(pair)]
    announce_compilation()
    with console(error=True).status("Filtering"):
        record = ActionLog.read(log, columns=read_pairs("columns", columns), arms=read_names("arms", arms))
        try:
            found = infer(
                record, assumed, prior=prior, sigma=sigma, bernoulli=bernoulli, best_mean=best_mean,
                anchor=read_anchor(anchor), horizon=horizon, pool=pool, particles=particles, draws=draws, seed=seed,
                threads=threads,
            )  # fmt: skip
        except LogError as error:
            raise error.at(path=log_name(log)) from None
    beaten = [(first, second, found.beats(first, second, by)) for first, second in pairs]
    answer = _PosteriorAnswer(found, level, beaten, by, seed)
    deliver(answer, output, as_json, answer.print)


def _read_pair(text: str) -> tuple[str, str]:
    first, comma, second = (part.strip() for part in text.partition(","))
    if not (first and comma and second):
        raise ParameterError(f'expected two arms, as in A,B; got "{text}".', parameter="pair", value=text)
    return first, second


@dataclass(frozen=True)
class _PosteriorAnswer:
    """Posterior with the level, the pairs and the seed that were asked for."""

    found: Posterior
    level: float
    beaten: list[tuple[str, str, float]]
    by: float
    seed: int

    @property
    def frame(self) -> polars.DataFrame:
        """Return one row per arm."""
        return self.found.frame(self.level)

    def plot(self) -> Figure:
        """Return the hidden sample means over the rounds."""
        return self.found.plot()

    def to_netcdf(self, path: str) -> None:
        """Write the draws."""
        self.found.to_netcdf(path)

    def to_json(self) -> str:
        """Return the JSON text."""
        found = self.found
        answer: dict[str, Any] = {
            "schema": "unbandit.posterior/1", "rule": found.rule, "prior": str(found.prior), "sigma": found.sigma,
            "horizon": found.horizon, "level": self.level, "seed": self.seed, "log_evidence": found.log_evidence,
            "log_evidence_error": found.log_evidence_error, "particles": found.particles,
            "effective_size": found.effective_size,
            "pairs": [
                {"arm": first, "other": second, "by": self.by, "probability": p} for first, second, p in self.beaten
            ],
            "warnings": [{"code": notice.code, "message": notice.message} for notice in found.warnings],
            "arms": self.frame.to_dicts(),
        }  # fmt: skip
        return json.dumps(answer, indent=2, allow_nan=False)

    def print(self, out: Console) -> None:
        """Print the table and what goes with it."""
        from unbandit.cli.output import print_notices

        found, by = self.found, self.by
        out.print(f"{found.rule}, prior {found.prior}, {self.level * 100:g}% intervals", style="bold")
        out.print(posterior_table(found, self.level))
        for first, second, chance in self.beaten:
            out.print(f'P("{first}" beats "{second}"' + (f" by {by:g} or more" if by else "") + f") = {chance:.3f}")
        out.print(
            f"log evidence {found.log_evidence:.1f} ± {found.log_evidence_error:.1f}; 4 clouds of {found.particles:,} "
            f"particles, smallest effective size {found.effective_size:.0f}"
        )
        print_notices(found.warnings)


def posterior_table(found: Posterior, level: float) -> Table:
    """Return the arms, best first."""
    from unbandit.cli.output import NUMBER, TEXT, WORD, new_table

    columns = (("pulls", NUMBER), ("P(best)", NUMBER), ("mean", NUMBER), ("interval", WORD), ("gap", NUMBER))
    table = new_table(("arm", TEXT), *columns, ("interval", WORD))
    for row in found.frame(level).iter_rows(named=True):
        table.add_row(
            row["arm"], f"{row['pulls']:,}", f"{row['probability_best']:.3f}", f"{row['mean']:.4g}",
            f"{row['mean_low']:.4g} to {row['mean_high']:.4g}", f"{row['gap']:.4g}",
            f"{row['gap_low']:.4g} to {row['gap_high']:.4g}",
        )  # fmt: skip
    return table
