"""Compile a kernel once, keep it on disk, and never reuse it after its source has changed.

Numba keeps a compiled function until *its own* file changes. Our kernels call functions of other files (the generator,
the quantile, a rule's formula), so an edit there would silently run outdated code. The cache folder is therefore named
after a digest of every file of this package and its subfolders; a rule's formula carries its own (see `formula`).

What is kept includes pickles, and loading a pickle runs whatever is in it. So the folder must be one that nobody else
can write to; where there is none, kernels are compiled in every process, and not kept.

Functions that kernels call are *parts*: they are typed and lowered once, whoever calls them, and LLVM optimises them
within the kernel alone. Numba would compile each of them to the end, again for every set of options of a caller.

Of processes that need the same kernel at the same time, one compiles it; the others wait, and load what it has kept.
"""

import gc
import hashlib
import os
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import register_jitable
from numpy.typing import NDArray

try:
    import fcntl
except ImportError:  # Windows: there, two processes may compile the same kernel
    fcntl = None

Function = TypeVar("Function", bound=Callable[..., Any])

Numbers = NDArray[np.float64]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]
Marks = NDArray[np.bool_]

_lock = threading.Lock()


# What numba has to do with our own functions, which enter no `with`; those with closures need its other passes too.
_PASSES = {
    "TranslateByteCode", "FixupArgs", "IRProcessing", "DeadBranchPrune", "GenericRewrites", "ReconstructSSA",
    "NopythonTypeInference", "PreLowerStripPhis", "IRLegalization", "AnnotateTypes", "NativeLowering",
    "NoPythonBackend",
}  # fmt: skip


def _compilers() -> tuple[Any, Any]:
    """Return the compilers of kernels and of parts.

    They use what numba keeps to itself, and may move in another version.
    """
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import PassManager, register_pass
    from numba.core.typed_passes import NativeLowering

    class PartLibrary(JITCodeLibrary):
        """The code of a function that is only called by kernels: linked into theirs, and never run by itself.

        Only code to be inlined is optimised before: again within the kernel, it is half as fast without.
        """

        is_inlined = False

        def finalize(self) -> None:
            for library in dict.fromkeys(self._linking_libraries):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            if self.is_inlined:
                self._optimize_final_module()
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class PartLowering(NativeLowering):
        _name = "part_lowering"

        def run_pass(self, state: Any) -> bool:
            state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
            state.library.is_inlined = state.flags.forceinline
            state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
            super().run_pass(state)
            name: Any = [].append  # numba knows functions by an address that Python could call
            state.targetctx.insert_user_function(name, state["cr"].fndesc, [state.library])
            state["cr"] = state["cr"]._replace(cfunc=name)
            return True

    class KernelCompiler(CompilerBase):
        lowering: Any = NativeLowering

        def define_pipelines(self) -> list[Any]:
            manager, function = PassManager("kernel"), self.state.func_id.func
            has_closures = any(isinstance(each, CodeType) for each in function.__code__.co_consts)
            takes_all = has_closures or not (function.__module__ or "").startswith("unbandit.")
            for each, text in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
                if each.__name__ in _PASSES or takes_all:
                    manager.add_pass(self.lowering if each is NativeLowering else each, text)
            manager.finalize()
            return [manager]

    class PartCompiler(KernelCompiler):
        lowering = PartLowering

    return KernelCompiler, PartCompiler


# Kernels and parts have the same options: what a function is compiled to depends on those of its callers too.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": True}
_IS_KNOWN = numba.version_info.short == (0, 68)  # another numba may link in another way: it compiles each part
_KERNEL, _PART = _compilers() if _IS_KNOWN else (None, None)
_COMPILED: dict[str, Any] = _OPTIONS | ({"pipeline_class": _KERNEL} if _KERNEL else {})
CALLED: dict[str, Any] = _OPTIONS | ({"no_cpython_wrapper": False, "pipeline_class": _PART} if _PART else {})
INLINED: dict[str, Any] = CALLED | {"forceinline": True}
BORROWING: dict[str, Any] = INLINED | {"_nrt": False}


def _shortcuts() -> list[tuple[Any, str, Any]]:
    """Return what numba does again and again while it compiles, and what gives the same in less time."""
    from numba.core import event, transforms
    from numba.core.base import BaseContext
    from numba.core.dispatcher import Dispatcher
    from numba.core.postproc import PostProcessor, VariableLifetime
    from numba.core.sigutils import normalize_signature
    from numba.core.targetconfig import TargetConfig

    size_of, compile_signature, process = BaseContext.get_abi_sizeof, Dispatcher.compile, PostProcessor.run
    sizes: dict[tuple[type, str], int] = {}
    defaults: dict[type, dict[str, Any]] = {}

    def get_abi_sizeof(self: Any, kind: Any) -> int:
        """Ask LLVM once for each type: it answers by compiling a module."""
        key = type(self), str(kind)
        if key not in sizes:
            sizes[key] = size_of(self, kind)
        return sizes[key]

    def compile_once(self: Any, signature: Any) -> Any:
        """Return what is compiled already before timers and locks are set up."""
        existing = self.overloads.get(tuple(normalize_signature(signature)[0]))
        return compile_signature(self, signature) if existing is None else existing.entry_point

    def values(self: Any) -> dict[str, Any]:
        """Return a compiler's options, which are compared whenever a function is looked up."""
        if type(self) not in defaults:
            defaults[type(self)] = {name: option.default for name, option in self.options.items()}
        return defaults[type(self)] | self._values

    def process_once(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        """Leave out, after most passes, which variables live in which block: only generators need it before the end."""
        code = self.func_ir
        if emit_dels or code.is_generator:
            process(self, emit_dels, extend_lifetimes)
        else:
            code.blocks, code.generator_info = transforms.canonicalize_cfg(code.blocks), None
            code.variable_lifetime = VariableLifetime(code.blocks)

    return [
        (BaseContext, "get_abi_sizeof", get_abi_sizeof), (Dispatcher, "compile", compile_once),
        (TargetConfig, "values", values), (PostProcessor, "run", process_once),
        (event, "install_timer", lambda *_: nullcontext()),
    ]  # fmt: skip


_SHORTCUTS = _shortcuts() if _IS_KNOWN else []


def digest_of(*files: Path, text: str = "") -> str:
    """Return a short digest of the contents of files, and of a text."""
    state = hashlib.sha256(text.encode())
    for file in files:
        state.update(file.read_bytes())
    return state.hexdigest()[:12]


def cache_directory() -> Path | None:
    """Return the folder in which this version's compiled kernels are kept; None if there is none to be trusted.

    It lies where the user keeps caches or else (in a container without a home) in a private temporary folder.
    """
    given = os.environ.get("NUMBA_CACHE_DIR")
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 (never raises)
    private = Path(tempfile.gettempdir()) / f"unbandit-{os.getuid() if hasattr(os, 'getuid') else 0}"
    sources = sorted(path for path in Path(__file__).parent.rglob("*.*") if path.suffix in {".py", ".npy"})
    name = f"kernels-{digest_of(*sources)}"
    base = Path(given).absolute() if given else Path(caches) / "unbandit"
    folders = [folder / name for folder in (base, private) if folder.is_absolute()]
    return next(filter(can_be_trusted, folders), None)


def compiled(function: Function) -> Function:
    """Compile `function` for the CPU on its first call, without the interpreter lock, and keep the result on disk."""
    with _lock:  # numba reads the folder from one global setting at decoration: set it, and restore it
        before = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(CACHE_DIRECTORY or "")
        try:
            kernel = numba.njit(cache=CACHE_DIRECTORY is not None, **_COMPILED)(function)
        finally:
            numba.config.CACHE_DIR = before
    if CACHE_DIRECTORY is not None:
        kernel.compile = _compile_alone(
            kernel.compile, CACHE_DIRECTORY / f"{function.__module__}.{function.__name__}.lock"
        )
    return cast(Function, kernel)


def _compile_alone(compile_kernel: Callable[[Any], Any], path: Path) -> Callable[[Any], Any]:
    """Make other processes wait while a kernel is compiled: what they then find on disk is loaded."""

    def compile_or_load(signature: Any) -> Any:
        # The lock of this process comes first: a thread that holds it may need this kernel for one that calls it.
        with global_compiler_lock, _locked(path), _in_less_time():
            try:
                return compile_kernel(signature)
            except OSError:  # a full disk: it was compiled and could not be kept
                return compile_kernel(signature)

    return compile_or_load


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file; without one (a disk that is full, or shared and without locks) go on."""
    if fcntl is None:
        yield
        return
    try:
        file = path.open("w")
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        yield
        return
    with file:
        yield


@contextmanager
def _in_less_time() -> Iterator[None]:
    """Take shortcuts, and look for garbage seldom: a compiler keeps most objects, and each look passes over them."""
    before, originals = gc.get_threshold(), [getattr(owner, name) for owner, name, _ in _SHORTCUTS]
    gc.set_threshold(200_000, *before[1:])
    for owner, name, shortcut in _SHORTCUTS:
        setattr(owner, name, shortcut)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        for (owner, name, _), original in zip(_SHORTCUTS, originals, strict=True):
            setattr(owner, name, original)


class LateKernel:
    """A kernel that is compiled only once it has much to do; until then it runs as plain Python, with the same results.

    Each has a number of units of work that take about as long in Python as the kernel takes to be loaded.
    """

    def __init__(self, kernel: Any, spared: int, plain: Callable[..., Any]) -> None:
        self.kernel, self.budget, self.plain = kernel, spared, plain

    def __call__(self, *arguments: Any) -> Any:
        """Call the compiled kernel."""
        return self.kernel(*arguments)

    def for_work(self, units: int) -> Callable[..., Any]:
        """Return how to call it for some units of work."""
        self.budget -= units
        return self._run_plain if self.budget >= 0 else self.kernel

    def _run_plain(self, *arguments: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                return self.plain(*map(_plain_record, arguments))
        except Exception:  # compiled code goes on with NaN or infinity, and takes records to functions of numba
            return self.kernel(*arguments)


class _PlainRecord:
    """The numbers of a record as Python's own, which are faster to read."""

    def __init__(self, record: np.record) -> None:
        self.dtype = record.dtype
        self.__dict__.update(zip(record.dtype.names or (), record.tolist(), strict=True))


def _plain_record(argument: Any) -> Any:
    return _PlainRecord(argument) if isinstance(argument, np.record) else argument


def compiled_late(spared: int, plain: Callable[..., Any] | None = None) -> Callable[[Callable[..., Any]], LateKernel]:
    """Compile a function once it has more than `spared` units of work; `plain` is a faster form of it in Python."""
    return lambda function: LateKernel(compiled(function), spared, plain or function)


def inlined(function: Function) -> Function:
    """Let compiled loops call `function`, always inlined; the function itself stays plain Python.

    Inlined by LLVM, which is fast: otherwise each call counts references to the arrays it passes.
    """
    return register_jitable(**INLINED)(function)


def borrowing(function: Function) -> Function:
    """Let compiled loops call `function` as one that is inlined, without counting references to arrays.

    It must not make arrays, nor return one. Where it branches, LLVM would not see that counting changes nothing.
    """
    return register_jitable(**BORROWING)(function)


def called(function: Function) -> Function:
    """Let compiled loops call a longer `function`: inlining it everywhere would take long to compile."""
    return register_jitable(**CALLED)(function)


@called
def new_numbers(size: int, value: float) -> Numbers:
    """Return an array of numbers, all alike; numba compiles `np.zeros` and its kin anew for every kernel and shape."""
    values = np.empty(size)
    for at in range(size):
        values[at] = value
    return values


@called
def new_table(rows: int, columns: int, value: float) -> Numbers:
    """Return a table of numbers, all alike."""
    values = np.empty((rows, columns))
    for row in range(rows):
        for column in range(columns):
            values[row, column] = value
    return values


@called
def new_integers(size: int, value: int) -> Integers:
    """Return an array of integers, all alike."""
    values = np.empty(size, np.int64)
    for at in range(size):
        values[at] = value
    return values


@called
def new_marks(size: int) -> Marks:
    """Return an array of marks, none of them set."""
    values = np.empty(size, np.bool_)
    for at in range(size):
        values[at] = False
    return values


def can_be_trusted(directory: Path) -> bool:
    """Make a folder if possible, for us alone; return whether we can write to it and nobody else could, or replace it.

    Whoever owns a folder above it could; so could anybody where it may be written by all and is not sticky, and the
    members of a group that may write, unless it is our own (which on most systems has one member).
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
        if not hasattr(os, "getuid"):  # a system without owners of this kind
            return True
        path = directory.resolve()
        own = path.stat()
        if own.st_uid != os.getuid() or own.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return False
        return all(_is_safe_above(folder.stat()) for folder in path.parents)
    except OSError:
        return False


def _is_safe_above(folder: os.stat_result) -> bool:
    if folder.st_uid not in (0, os.getuid()):
        return False
    if folder.st_mode & stat.S_ISVTX:  # sticky, as /tmp: everybody may add, and only owners replace
        return True
    by_group = folder.st_mode & stat.S_IWGRP and folder.st_gid not in (0, os.getgid())
    return not (folder.st_mode & stat.S_IWOTH or by_group)


CACHE_DIRECTORY = cache_directory()
