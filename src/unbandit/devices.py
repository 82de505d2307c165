"""Where simulations run: the CPU, or a GPU if there is one.

A GPU gives the same answers, and promises its own bits alone: what it computed is not mixed with what a CPU did.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from unbandit.errors import MissingExtra, ParameterError

__all__ = [
    "DEVICES",
    "LONGEST",
    "WORTH",
    "Device",
    "check_length",
    "checked_device",
    "gpu_name",
    "settled",
    "why_no_gpu",
    "within_memory",
]

Device = Literal["cpu", "cuda"]
DEVICES = ("cpu", "cuda")

WORTH = 5_000_000_000
"""Rounds from which on a GPU is taken where nobody says which device: below, compiling for it takes longer."""


LONGEST = 2**31 - 1
"""The most rounds of a demonstration on a GPU, whose counts are 32-bit numbers."""


def check_length(horizon: int) -> None:
    """Refuse a demonstration that is too long for a GPU."""
    if horizon > LONGEST:
        raise ParameterError(
            f"expected at most 2^31 - 1 rounds on a GPU; got {horizon:,}. Take device cpu.", parameter="horizon"
        )


def checked_device(device: str) -> Device:
    """Check the name of a device; of a GPU also that there is one.

    Examples
    --------
    >>> checked_device("cpu")
    'cpu'
    >>> checked_device("gpu")
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: device: expected one of cpu, cuda; got "gpu".
    """
    if device not in DEVICES:
        raise ParameterError(f'expected one of {", ".join(DEVICES)}; got "{device}".', parameter="device")
    if device == "cpu":
        return "cpu"
    if not _installed():
        raise MissingExtra("device cuda", "gpu")
    reason = why_no_gpu()
    if reason is not None:
        raise ParameterError(
            f"expected a GPU that CUDA can use; {reason}. Take device cpu, or leave it out.", parameter="device"
        )
    return "cuda"


@contextmanager
def within_memory() -> Iterator[None]:
    """Say in one sentence that a GPU has too little memory for what is asked of it."""
    try:
        yield
    except MemoryError as error:
        raise ParameterError(f"{error}. Take device cpu, or another GPU.", parameter="device") from error


def settled(device: str, rounds: int) -> tuple[Device, str | None]:
    """Settle which device does so many rounds, where `auto` leaves it open; and what is to be said of it, if anything.

    Examples
    --------
    >>> settled("auto", 1_000)
    ('cpu', None)
    """
    if device not in (*DEVICES, "auto"):
        raise ParameterError(f'expected one of auto, {", ".join(DEVICES)}; got "{device}".', parameter="device")
    if device != "auto":
        return checked_device(device), None
    if rounds < WORTH or not _installed() or why_no_gpu() is not None:
        return "cpu", None
    said = f"Simulating on {gpu_name()}, which gives the same answers in its own bits; --device cpu for the CPU's."
    return "cuda", said


def _installed() -> bool:
    return find_spec("numba_cuda") is not None


@cache
def why_no_gpu() -> str | None:
    """Return in words why no GPU can be used; None if one can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what numba deprecates in others, or thinks of so small a kernel
            from numba import cuda

            if not cuda.is_available():
                error = cuda.cuda_error()
                return f"CUDA says: {_line(error)}" if error is not None else "found no driver, or none that fits"
            if len(list(cuda.gpus)) == 0:
                return "found none"
            _touched(cuda)
    except Exception as error:  # drivers fail in many ways, each with an exception of its own
        return f"CUDA says: {_line(error)}"
    return None


def _touched(cuda: Any) -> None:
    """Have the GPU do something, for a driver that does not fit the compiler shows only then."""

    def touch(cells: Any) -> None:
        cells[0] = 1

    cells = cuda.device_array(1, "int32")
    cuda.jit(touch)[1, 1](cells)
    cells.copy_to_host()


def gpu_name() -> str:
    """Return the name of the GPU in use."""
    from numba import cuda

    name = getattr(cuda.get_current_device(), "name", "a simulated GPU")
    return name.decode() if isinstance(name, bytes) else str(name)


def _line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return (lines[-1] if lines else type(error).__name__).rstrip(".")
