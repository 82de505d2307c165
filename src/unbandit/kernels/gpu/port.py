"""Functions of the CPU's kernels carried over to the GPU, and arithmetic and the normal quantile's table there.

On the CPU, functions find each other through numba's overloads. Here a function is copied with every function of ours
that it calls, and in the copy `index_value` simply is the rule's formula. Only what a GPU computes faster by other
instructions is written again, and gives the same bits. It has no 64-bit integer unit, so Philox multiplies 32-bit
words. It converts integers slowly, and the threads of a warp wait for each other's loops, so the quantile's tail is
found from the bits of a number. And 1/n is divided once, for mean and width.

The part of the quantile's table that nearly every draw reads lies in each block's shared memory, with the coefficients
of one power side by side, so that the threads of a warp, which read different rows, seldom want the same memory bank.
Rows of one sign stand for both. The rest, a few draws in a thousand, is read from global memory.
"""

import inspect
import math
from collections.abc import Mapping
from types import FunctionType
from typing import Any

import numpy as np
from numba import config, cuda, types
from numpy.typing import NDArray

from unbandit.kernels import bandit, formula, rng
from unbandit.kernels.formula import Formula, meaning
from unbandit.kernels.rng import QUANTILE_TABLE, WEYL_0, WEYL_1, Word

Formulas = tuple[tuple[str, Formula], ...]
"""A rule's formulas by the names of their seams (`kernels.formula.meaning`), hashable."""

SIMULATED = bool(config.ENABLE_CUDASIM)  # whether numba simulates a GPU, in plain Python (`NUMBA_ENABLE_CUDASIM=1`)

config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # a few runs cannot keep a GPU busy: no warning

LIBRARIES = ("numba", "numpy", "math", "builtins")


def ported(function: Any, meanings: Mapping[Any, Any]) -> Any:
    """Return a copy of a function, of the CPU's kernels or of a rule's file, that GPU kernels can call.

    `meanings` replaces functions that mean something else on the GPU: see `meanings_of`.
    """
    return _copied(meanings.get(function, function), meanings, {})


def formulas_of(parameters: Any) -> Formulas:
    """Return the formulas behind a rule's parameters."""
    return tuple(sorted(meaning(parameters).items()))


def meanings_of(formulas: Formulas) -> dict[Any, Any]:
    """Return what functions mean on the GPU: a rule's formulas, and arithmetic that is fast there."""
    fast = {
        rng.philox: philox_on_gpu,
        rng.normal_from_word: normal_on_gpu,
        bandit.inverse_of: inverse_on_gpu,
        formula.power_width: power_width_on_gpu,
    }
    return {getattr(formula, seam): fast.get(own, own) for seam, own in formulas} | fast


def _copied(function: Any, meanings: Mapping[Any, Any], made: dict[Any, Any]) -> Any:
    """Copy a function once for all its callers."""
    if function in made:
        return made[function]
    if not inspect.isfunction(function):  # made for the GPU alone
        return function
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        if _is_ours(names.get(name)):
            names[name] = _copied(meanings.get(names[name], names[name]), meanings, made)
    copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    made[function] = copy if SIMULATED else cuda.jit(device=True)(copy)
    return made[function]


def _is_ours(meant: Any) -> bool:
    """Return whether a function must be carried over; the GPU's compiler knows those of libraries."""
    return inspect.isfunction(meant) and (meant.__module__ or "").partition(".")[0] not in LIBRARIES


def kernel(function: Any) -> Any:
    """Compile a loop for the GPU."""
    return cuda.jit(function)


POWERS = 8
ALL_NEAR = 768  # rows of three levels: with eight numbers each they fill the 48 KB that every GPU gives a block
MOST_NEAR = 512  # rows of two levels, for kernels that need shared memory for other things too


def one_sided() -> NDArray[np.float64]:
    """Return the table for positive numbers alone, transposed: (powers, levels times segments)."""
    rows = QUANTILE_TABLE.reshape(-1, 2, 256, POWERS)[:, 0].reshape(-1, POWERS)
    return np.ascontiguousarray(rows.T)


def bring_near(near: Any, far: Any, thread: int, threads: int) -> None:
    """Copy the rows that are read most, each thread of a block a part of them; then the block must synchronise."""
    for at in range(thread, near.size, threads):
        power, row = at // near.shape[1], at % near.shape[1]
        near[power, row] = far[power, row]


_MULTIPLIER_0, _MULTIPLIER_1 = np.uint32(rng.MULTIPLIER_0), np.uint32(rng.MULTIPLIER_1)
_LOW_32, _SHIFT_32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_TWO, _LOW_53, _UNIT_53 = np.uint64(2), np.uint64((1 << 53) - 1), 2.0**-53
_EXACT = 0x43300000  # the high word of 2^52, to whose low word a small integer is added exactly

if SIMULATED:

    def lowest_bit(word: Any) -> int:
        """Return the place of the lowest bit that is set."""
        return (int(word) & -int(word)).bit_length() - 1

    def _wide_product(first: Any, second: Any) -> Any:
        return np.uint64(first) * np.uint64(second)

    def _high_word(value: float) -> int:
        return int(np.float64(value).view(np.uint64)) >> 32

    def _with_high_word(value: float, high: int) -> Any:
        low = int(np.float64(value).view(np.uint64)) & 0xFFFFFFFF
        return np.uint64(int(high) << 32 | low).view(np.float64)

    def _exactly(count: Any) -> float:
        return float(count)

    def inverse_on_gpu(inverse: Any, pulls: Word) -> Any:
        """Return 1/n."""
        return 1.0 / np.float64(np.int64(pulls))

    def power_width_on_gpu(parameters: Any, pulls: Any) -> Any:
        """Return a width that is computed at every pull."""
        return parameters.factor * math.sqrt(parameters.growth / np.float64(np.int64(pulls)))

else:
    from llvmlite import ir
    from numba.cuda import libdevice
    from numba.cuda.extending import intrinsic

    def _instruction(text: str, constraints: str, signature: Any) -> Any:
        """Return a signature, and what emits one instruction that NVIDIA's PTX has and numba does not offer."""

        def generate(context, builder, signature, values):  # type: ignore[no-untyped-def]
            kinds = [context.get_value_type(kind) for kind in signature.args]
            function = ir.FunctionType(context.get_value_type(signature.return_type), kinds)
            return builder.call(ir.InlineAsm(function, text, constraints), values)

        return signature, generate

    @intrinsic
    def _wide_product(context, first, second):  # type: ignore[no-untyped-def]
        return _instruction("mul.wide.u32 $0, $1, $2;", "=l,r,r", types.uint64(types.uint32, types.uint32))

    @intrinsic
    def _about_inverse(context, value):  # type: ignore[no-untyped-def]
        return _instruction("rcp.approx.ftz.f64 $0, $1;", "=d,d", types.float64(types.float64))

    @intrinsic
    def _about_inverse_root(context, value):  # type: ignore[no-untyped-def]
        return _instruction("rsqrt.approx.ftz.f64 $0, $1;", "=d,d", types.float64(types.float64))

    @cuda.jit(device=True)
    def lowest_bit(word):  # type: ignore[no-untyped-def]
        """Return the place of the lowest bit that is set."""
        return libdevice.ffsll(np.int64(word)) - 1

    @cuda.jit(device=True)
    def _high_word(value):  # type: ignore[no-untyped-def]
        return libdevice.double2hiint(value)

    @cuda.jit(device=True)
    def _with_high_word(value, high):  # type: ignore[no-untyped-def]
        return libdevice.hiloint2double(np.int32(high), libdevice.double2loint(value))

    @cuda.jit(device=True)
    def _exactly(count):  # type: ignore[no-untyped-def]
        return libdevice.hiloint2double(np.int32(_EXACT), np.int32(count)) - 4503599627370496.0

    @cuda.jit(device=True)
    def inverse_on_gpu(inverse, pulls):  # type: ignore[no-untyped-def]
        """Return 1/n, correctly rounded as a division is."""
        n = np.float64(np.uint32(pulls))
        about: Any = _about_inverse(n)  # type: ignore[call-arg]
        error = libdevice.fma(-n, about, 1.0)
        about = libdevice.fma(about, libdevice.fma(error, error, error), about)
        return libdevice.fma(about, libdevice.fma(-n, about, 1.0), about)

    @cuda.jit(device=True)
    def power_width_on_gpu(parameters, pulls):  # type: ignore[no-untyped-def]
        """Return a width, with the quotient and its root correctly rounded."""
        n, growth = np.float64(np.uint32(pulls)), parameters.growth
        part = inverse_on_gpu(parameters, pulls)
        share = growth * part
        share = libdevice.fma(libdevice.fma(-share, n, growth), part, share)
        about: Any = _about_inverse_root(share)  # type: ignore[call-arg]
        error = libdevice.fma(share, -(about * about), 1.0)
        about = libdevice.fma(libdevice.fma(error, 0.375, 0.5), about * error, about)
        root = share * about
        root = libdevice.fma(libdevice.fma(-root, root, share), 0.5 * about, root)
        return parameters.factor * root if growth > 0.0 else 0.0


def philox_on_gpu(
    counter_0: Word, counter_1: Word, counter_2: Word, counter_3: Word, key_0: Word, key_1: Word
) -> tuple[Word, Word]:
    """Return what `rng.philox` returns."""
    first, second, third, last = np.uint32(counter_0), np.uint32(counter_1), np.uint32(counter_2), np.uint32(counter_3)
    for _ in range(10):
        product_0, product_1 = _wide_product(first, _MULTIPLIER_0), _wide_product(third, _MULTIPLIER_1)
        first = np.uint32(np.uint32(product_1 >> _SHIFT_32) ^ second ^ np.uint32(key_0))
        third = np.uint32(np.uint32(product_0 >> _SHIFT_32) ^ last ^ np.uint32(key_1))
        second, last = np.uint32(product_1 & _LOW_32), np.uint32(product_0 & _LOW_32)
        key_0, key_1 = (key_0 + WEYL_0) & _LOW_32, (key_1 + WEYL_1) & _LOW_32
    return (np.uint64(first) << _SHIFT_32) | np.uint64(second), (np.uint64(third) << _SHIFT_32) | np.uint64(last)


def normal_on_gpu(word: Word, table: Any) -> float:
    """Return what `rng.normal_from_word` returns."""
    near, far = table
    high = np.uint32(word >> _SHIFT_32)
    t = np.float64(np.int64((word >> _TWO) & _LOW_53)) * _UNIT_53
    at = np.uint32((high >> np.uint32(23)) & np.uint32(255))
    if at < 16:  # in the tail: the probability times 16^level lies in [16, 256)
        scaled = _exactly(at) + (1.0 - t)
        top = np.int32(_high_word(scaled))
        level = np.int32((1030 - (top >> 20)) >> 2)
        top = np.int32(top + (level << 22))
        segment = np.int32(((top & 0xFFFFF) | 0x100000) >> (1043 - (top >> 20)))
        t = _exactly(segment + 1) - _with_high_word(scaled, top)
        at = np.uint32((level << 8) | segment)
    if at < near.shape[1]:
        c0, c1, c2, c3 = near[0, at], near[1, at], near[2, at], near[3, at]
        c4, c5, c6, c7 = near[4, at], near[5, at], near[6, at], near[7, at]
    else:
        c0, c1, c2, c3 = far[0, at], far[1, at], far[2, at], far[3, at]
        c4, c5, c6, c7 = far[4, at], far[5, at], far[6, at], far[7, at]
    square = t * t
    low = (c0 + c1 * t) + (c2 + c3 * t) * square
    upper = (c4 + c5 * t) + (c6 + c7 * t) * square
    value = low + upper * (square * square)
    return -value if high >> np.uint32(31) else value
