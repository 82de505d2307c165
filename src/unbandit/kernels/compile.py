"""Compile a kernel once, keep it on disk, and never reuse it after its source has changed.

Numba keeps a compiled function until *its own* file changes. Our kernels call functions of other files (the generator,
the quantile, a rule's formula), so an edit there would silently run outdated code. The cache folder is therefore named
after a digest of every file of this package and its subfolders; a rule's formula carries its own (see `formula`).
"""

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., Any])

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Marks = NDArray[np.bool_]

_lock = threading.Lock()


def digest_of(*files: Path, text: str = "") -> str:
    """Return a short digest of the contents of files, and of a text."""
    state = hashlib.sha256(text.encode())
    for file in files:
        state.update(file.read_bytes())
    return state.hexdigest()[:12]


def cache_directory() -> Path:
    """Return the folder in which this version's compiled kernels are kept."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(given) if given else Path(os.environ.get("XDG_CACHE_HOME") or _home() / ".cache") / "unbandit"
    sources = sorted(path for path in Path(__file__).parent.rglob("*.*") if path.suffix in {".py", ".npy"})
    return base / f"kernels-{digest_of(*sources)}"


def compiled(function: Function) -> Function:
    """Compile `function` for the CPU on its first call, without the interpreter lock, and keep the result on disk."""
    with _lock:  # numba reads the folder from one global setting at decoration: set it, and restore it
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(CACHE_DIRECTORY)
        try:
            return cast(Function, numba.njit(cache=_WRITABLE, nogil=True, error_model="numpy")(function))
        finally:
            numba.config.CACHE_DIR = before


def inlined(function: Function) -> Function:
    """Let compiled loops call `function`, always inlined; the function itself stays plain Python.

    Inlined by LLVM, which is fast: otherwise each call counts references to the arrays it passes.
    """
    return register_jitable(forceinline=True, error_model="numpy")(function)


def called(function: Function) -> Function:
    """Let compiled loops call a longer `function`: inlining it everywhere would take long to compile."""
    return register_jitable(error_model="numpy")(function)


def _home() -> Path:
    """Return the user's home, or where there is none (in a container) the temporary folder."""
    try:
        return Path.home()
    except RuntimeError:
        return Path(tempfile.gettempdir())


def _can_be_written(directory: Path) -> bool:
    """Make the folder if possible; otherwise kernels are compiled in every process, and not kept."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return True
    except OSError:
        return False


CACHE_DIRECTORY = cache_directory()
_WRITABLE = _can_be_written(CACHE_DIRECTORY)
