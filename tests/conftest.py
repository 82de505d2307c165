"""Settings, markers and groups that all tests share.

pytest puts this folder on the import path because this file stands in it, so tests can import `reference`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the first example may compile a kernel. Derandomised: a red test is red for everyone.
settings.register_profile(
    "unbandit",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("unbandit")

TESTS = Path(__file__).parent

MARKED = {
    "statistical/": "statistical",
    "paper/": "statistical",
    "unit/calibration/": "statistical",
    "unit/inference/test_exact.py": "statistical",
    "unit/inference/test_gaussian.py": "statistical",
    "unit/kernels/test_largest.py": "statistical",
    "cluster/": "cluster",
    "browser/": "browser",
    "docs/": "docs",
    "contract/test_entry_points.py": "processes",
    "contract/test_seam.py": "processes",
    "cli/test_follow_command.py": "processes",
    "cli/test_refusals.py": "processes",
    "cli/test_report_command.py": "processes",
    "cli/test_reproduce_command.py": "processes",
    "cli/test_study_command.py": "processes",
    "web/test_server.py": "processes",
}
"""Tests that carry a marker, by the start of their path: `make test-fast` leaves them out."""

TOGETHER = {
    "cluster/": "cluster",
    "browser/": "browser",
    "gpu/": "gpu",
    "paper/test_figure.py": "figures",
    "paper/test_page.py": "figures",
    "unit/calibration/": "calibration",
    "web/test_app.py": "page",
    "web/test_safety.py": "page",
}
"""Tests that share what is slow to set up, so that one worker runs them all; the others go file by file."""

FIRST = (
    "contract/test_rules.py",
    "unit/inference",
    "paper/test_figure.py",
    "paper/test_page.py",
    "unit/identification",
    "unit/kernels",
    "unit/calibration",
    "paper",
    "cluster",
    "docs",
    "browser",
    "web",
    "statistical",
    "cli",
)
"""What to begin with. Workers take groups in turn, and kernels are kept on disk: neighbours in this list need different
ones (simulations, then filters, and so on), so that two workers with an empty cache do not compile the same kernel."""


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of the same name, and would otherwise come first
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their folder, group them for workers, and put what takes longest first."""
    for item in items:
        place = _place(item)
        for start, marker in MARKED.items():
            if place.startswith(start):
                item.add_marker(marker)
        item.add_marker(pytest.mark.xdist_group(_group(place)))
    items.sort(key=lambda item: _order(_place(item)))  # stable: otherwise as collected


def _place(item: pytest.Item) -> str:
    """Return the file of a test, relative to this folder; that of a doctest begins with `src/`."""
    if item.path.is_relative_to(TESTS):
        return item.path.relative_to(TESTS).as_posix()
    return item.path.relative_to(TESTS.parent).as_posix()


def _group(place: str) -> str:
    return next((group for start, group in TOGETHER.items() if place.startswith(start)), place)


def _order(place: str) -> int:
    return next((at for at, first in enumerate(FIRST) if place.startswith(first)), len(FIRST))
