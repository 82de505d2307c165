"""These tests need a GPU, or numba's simulation of one: `NUMBA_ENABLE_CUDASIM=1`, as `make test` has it."""

from __future__ import annotations

import os

import pytest

from unbandit import devices

SIMULATED = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"


def pytest_collection_modifyitems(items):
    reason = None if SIMULATED else devices.why_no_gpu()
    if reason is not None:
        for item in items:
            if "tests/gpu/" in str(item.path).replace(os.sep, "/"):
                item.add_marker(pytest.mark.skip(reason=f"there is no GPU: {reason}"))


@pytest.fixture
def size():
    """Return horizon and runs: a simulated GPU is slow."""
    return (24, 2) if SIMULATED else (700, 2_000)
