"""Where simulations run: the CPU, or a GPU if there is one.

A GPU gives the same answers, but only its own bits are reproducible: its results are never mixed with a CPU's.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from unbandit import checks
from unbandit.errors import MissingExtra, ParameterError, option

Device = Literal["cpu", "cuda"]
DEVICES = ("cpu", "cuda")

ROUNDS_WORTH_A_GPU = 5_000_000_000
"""From this many rounds on `auto` takes a GPU; below, compiling for it takes longer than it saves."""

MOST_GPU_ROUNDS = 2**31 - 1  # the longest demonstration on a GPU, whose counts are 32-bit numbers


def check_length(horizon: int) -> None:
    """Refuse a demonstration that is too long for a GPU."""
    if horizon > MOST_GPU_ROUNDS:
        text = f"expected at most 2^31 - 1 rounds on a GPU; got {horizon:,}."
        raise ParameterError(text, parameter="horizon", value=horizon, remedy=f"Take {option('device', 'cpu')}.")


def checked_device(device: str) -> Device:
    """Check the name of a device, and for a GPU also that there is one."""
    if _known(device, DEVICES) == "cpu":
        return "cpu"
    if not _installed():
        raise MissingExtra("device cuda", "gpu")
    reason = why_no_gpu()
    if reason is not None:
        text = f"expected a GPU that CUDA can use; {reason}."
        raise ParameterError(text, parameter="device", remedy=f"Take {option('device', 'cpu')}, or leave it out.")
    return "cuda"


@contextmanager
def within_memory() -> Iterator[None]:
    """Turn a GPU's lack of memory into one sentence."""
    try:
        yield
    except MemoryError as error:
        raise ParameterError(
            f"{error}.", parameter="device", remedy=f"Take {option('device', 'cpu')}, or another GPU."
        ) from error


def choose_device(device: str, rounds: int) -> tuple[Device, str | None]:
    """Choose the device for a number of rounds, where `auto` leaves it open; and a sentence if that is a GPU."""
    if _known(device, ("auto", *DEVICES)) != "auto":
        return checked_device(device), None
    if rounds < ROUNDS_WORTH_A_GPU or not _installed() or why_no_gpu() is not None:
        return "cpu", None
    return "cuda", f"Simulating on {gpu_name()}: the same answers, in its own bits. Take device cpu for the CPU's bits."


def _known(device: str, devices: tuple[str, ...]) -> str:
    if not isinstance(device, str) or device not in devices:  # without "did you mean": for "gpu" it would suggest "cpu"
        got = f'"{device}"' if isinstance(device, str) else checks.brief(device)
        raise ParameterError(f"expected one of {', '.join(devices)}; got {got}.", parameter="device", value=device)
    return device


def _installed() -> bool:
    return find_spec("numba_cuda") is not None


@cache
def why_no_gpu() -> str | None:
    """Return why no GPU can be used; None if one can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba's own deprecations, and its advice on so small a kernel
            from numba import cuda

            if not cuda.is_available():
                error = cuda.cuda_error()
                return f"CUDA says: {_last_line(error)}" if error is not None else "found no driver, or none that fits"
            if len(list(cuda.gpus)) == 0:
                return "found none"
            _run_something(cuda)
    except Exception as error:  # drivers fail in many ways, each with its own exception
        return f"CUDA says: {_last_line(error)}"
    return None


def _run_something(cuda: Any) -> None:
    """Run a kernel: a driver that does not match the compiler fails only then."""

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


def _last_line(error: object) -> str:
    lines = str(error).strip().splitlines()
    return (lines[-1] if lines else type(error).__name__).rstrip(".")
