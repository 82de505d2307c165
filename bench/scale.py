"""Run the benchmark of large work: `python -m bench.scale [--quick] [--only NAME]`.

Every part runs in a process of its own, so that one part's memory, threads or failure is not another's. Those that are
about one core are kept to one; a cluster and large files have all of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from bench.one_core import keep_to_one_core
from bench.report import HEADINGS, WARNING, Row, cores, machine, markdown, versions

ONE_CORE = ("skipping", "genes", "growth")
PARTS = ("skipping", "genes", "large_logs", "many_logs", "clusters", "growth")
"""The modules of this folder, each with `compare(effort)`, in the order in which their rows are told."""

PACKAGES = ("unbandit", "numpy", "numba", "polars", "ray", "distributed")


def measure(part: str, quick: bool, path: Path) -> None:
    """Run one part in this process, and write its rows, or in a line what is missing, as JSON."""
    if part in ONE_CORE:
        keep_to_one_core()  # before anything is imported that starts threads
    found: dict[str, object] = {}
    try:
        compare = import_module(f"bench.{part}").compare
        from bench.setting import FULL, QUICK

        found["rows"] = [asdict(row) for row in compare(QUICK if quick else FULL)]
    except ImportError as missing:
        found["missing"] = str(missing).splitlines()[0]
    path.write_text(json.dumps(found), encoding="utf-8")


def rows_of(part: str, quick: bool) -> tuple[list[Row], str]:
    """Have a part measured in a process of its own; return its rows, and what stood in their way if anything did."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        command = [sys.executable, "-m", "bench.scale", "--part", part, "--into", str(path)]
        done = subprocess.run([*command, *(["--quick"] if quick else [])], stdout=sys.stderr, check=False)
        if done.returncode != 0 or not path.exists():
            return [], f"{part}: stopped with exit code {done.returncode}."
        found = json.loads(path.read_text(encoding="utf-8"))
    if "missing" in found:
        return [], f"{part}: not measured; {found['missing']}."
    return [Row(**row) for row in found["rows"]], ""


def tell(rows: Sequence[Row]) -> None:
    """Show what is measured at once, so that a later failure does not lose it."""
    for row in rows:
        print(f"{row.work}: {row.ours}, against {row.compared_with or 'nothing'}: {row.ratio}", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description="Print the rows of large work.")
    parser.add_argument("--quick", action="store_true", help="a little work, to see that everything runs")
    parser.add_argument("--only", choices=PARTS, help="run one part alone")
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("--into", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part is not None:
        measure(options.part, options.quick, options.into)
        return
    rows, troubles = [], []
    for part in PARTS:
        if options.only in (None, part):
            found, trouble = rows_of(part, options.quick)
            tell(found)
            rows += found
            troubles += [trouble] if trouble else []
    said = (
        f"{WARNING if options.quick else ''}Printed by `make bench-scale` on {machine(f'{cores()} cores')}, "
        f"{versions(PACKAGES)}. Rows about one demonstration, genes and growth keep to one core; the others have all."
    )
    print("\n\n".join([said, markdown(HEADINGS, [row.cells() for row in rows]), *troubles]))
    if troubles:
        sys.exit(1)


if __name__ == "__main__":
    main()
