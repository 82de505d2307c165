"""Run the benchmark: `python -m bench [--quick] [--only NAME]`."""

from bench.one_core import keep_to_one_core

if __name__ == "__main__":
    keep_to_one_core()  # before anything is imported that starts threads

import argparse
import sys
from collections.abc import Sequence

from bench import (
    contexts,
    contexts_rivals,
    counting,
    estimation,
    memory,
    reading,
    reproducing,
    showing,
    simulation,
    starting,
)
from bench.report import Row, cores, opening, tables
from bench.setting import FULL, QUICK

PARTS = {
    "counting": counting.compare,
    "estimation": estimation.compare,
    "reading": reading.compare,
    "memory": memory.compare,
    "starting": starting.compare,
    "reproducing": reproducing.compare,
    "showing": showing.compare,
    "contexts": contexts.compare,
}

RIVALS = {"contexts-rivals": contexts_rivals.CELLS, "contexts-rivals-all": contexts_rivals.EVERY_CELL}


def tell(rows: Sequence[Row]) -> None:
    """Show what is measured at once, so that a later failure does not lose it."""
    for row in rows:
        print(f"{row.work}: {row.ours}, against {row.compared_with or 'nothing'}: {row.ratio}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Print the benchmark table as Markdown.")
    parser.add_argument("--quick", action="store_true", help="a few seconds of work, to see that everything runs")
    parser.add_argument("--only", choices=["simulation", *PARTS, *RIVALS], help="run one part alone")
    options = parser.parse_args(arguments)
    effort = QUICK if options.quick else FULL
    if options.only in RIVALS:  # errors, not times: apart from the rest
        print(contexts_rivals.table(effort, RIVALS[options.only]))
        return
    rows, rates = simulation.compare(effort) if options.only in (None, "simulation") else ([], "")
    tell(rows)
    for name, compare in PARTS.items():
        if options.only in (None, name):
            found = compare(effort)
            tell(found)
            rows = [*rows, *found]
    print("\n\n".join(part for part in (opening(cores(), options.quick), tables(rows), rates) if part))


if __name__ == "__main__":
    main()
