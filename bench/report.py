"""The rows of the benchmark, and how they are written as Markdown."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from llvmlite import binding

PACKAGES = ("unbandit", "numpy", "numba", "polars", "river", "mabwiser", "pymab")


@dataclass(frozen=True)
class Row:
    """One line of the table: a ratio (or seconds, or megabytes) and what it is to reach."""

    work: str
    ours: str
    compared_with: str
    ratio: str
    reach: str = ""
    reached: bool | None = None

    @classmethod
    def at_least(cls, work: str, ours: str, compared_with: str, ratio: float, limit: float | None) -> Row:
        reach, reached = ("", None) if limit is None else (f"at least {limit:g}", ratio >= limit)
        return cls(work, ours, compared_with, number(ratio), reach, reached)

    @classmethod
    def at_most(cls, work: str, ours: str, compared_with: str, ratio: float, limit: float) -> Row:
        return cls(work, ours, compared_with, number(ratio), f"at most {limit:g}", ratio <= limit)

    @property
    def has_a_limit(self) -> bool:
        """Return whether it is held against nothing but a time or size that it is to stay below."""
        return self.compared_with.startswith("the limit of ")

    def cells(self) -> list[str]:
        return [self.work, self.ours, self.compared_with, self.ratio]


def tables(rows: Sequence[Row]) -> str:
    """Write ratios as one table, and as another, without our limits, what readers wait for."""
    ratios = markdown(HEADINGS, [row.cells() for row in rows if not row.has_a_limit])
    waits = [[row.work, row.ours] for row in rows if row.has_a_limit]
    return "\n\n".join([ratios, *([WAITS, markdown(("work", "takes"), waits)] if waits else [])])


WARNING = "**A quick run: the numbers mean nothing.**\n\n"

WAITS = """## How long people wait, and how much memory and disk it takes

On one core, if not said otherwise. Times are from the prompt to the last byte of the answer, or from the click. In a
first start every kernel that is needed is compiled; later starts find it on disk."""

HEADINGS = ("work", "unbandit", "compared with", "ratio")


def number(value: float) -> str:
    """Write three significant digits, or all the whole ones.

    >>> number(0.0123456), number(12.3456), number(12345.6)
    ('0.0123', '12.3', '12,346')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def rate(rounds_a_second: float) -> str:
    return f"{number(rounds_a_second / 1e6)} M rounds/s"


def seconds(value: float) -> str:
    return f"{number(value)} s" if value >= 1 else f"{number(1000 * value)} ms"


def markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "/") for cell in line) + " |" for line in lines)


def opening(all_cores: int, quick: bool) -> str:
    """Say on what machine and with what versions the numbers were measured."""
    return (
        f"# Benchmarks\n\n{WARNING if quick else ''}Printed by `make bench` on "
        f"{machine(f'{all_cores} cores, of which one was used')}, {versions(PACKAGES)}.\n\n"
        "Ratios are of the shortest of several interleaved times, all measured in one run. The bandit has means "
        "from 1 down to 0 in equal steps and unit variance; the rule is UCB with alpha 0.25 and scale √2."
    )


def machine(used: str) -> str:
    """Name the machine, its processor and Python's version."""
    python = ".".join(map(str, sys.version_info[:3]))
    return f"{platform.system()} {platform.machine()} ({_processor()}, {_vectors()}, {used}), Python {python}"


def _vectors() -> str:
    """Name the widest vectors that the processor has, as LLVM sees it."""
    has = {name for name, present in binding.get_host_cpu_features().items() if present}
    width = 512 if "avx512f" in has else 256 if "avx2" in has else 128
    return f"vectors of {width} bits"


def versions(packages: Sequence[str]) -> str:
    return ", ".join(f"{name} {_version(name)}" for name in packages)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _processor() -> str:
    try:
        lines = subprocess.run(["lscpu"], capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):  # not Linux
        lines = []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("Model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def cores() -> int:
    return os.cpu_count() or 1
