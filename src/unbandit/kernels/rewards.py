"""Rewards of consecutive pulls of an arm, drawn 16 at a time, and the running minima of the index that follow.

The generator and the quantile of `rng` run on vectors of eight numbers, written in LLVM's own vector types, which it
turns into the registers that a processor has (AVX-512, AVX2, NEON, SSE). Its vectoriser would fetch the quantile's
coefficients one by one; here a row of the table, eight coefficients, is one load, and eight rows are transposed. Every
step is that of `philox` and `normal_from_word`, in the same order and without fused operations: the bits are the same.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from unbandit.kernels.bandit import REWARDS, Bandit, inverse_of, reward, reward_from_word
from unbandit.kernels.compile import INLINED, Numbers, Words, called, inlined
from unbandit.kernels.formula import index_value, is_additive
from unbandit.kernels.rng import philox

WIDTH = 8
BLOCK = 2 * WIDTH  # a block of the generator serves two pulls
ZERO, ONE, TWO, SIXTEEN = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(BLOCK)
STRIDE = SIXTEEN + ONE  # numbers per arm that are drawn ahead
EIGHT, FIRST_ROOM = np.uint64(WIDTH), BLOCK + BLOCK * WIDTH  # `draw_first`: arms, and numbers that it works with

_INTEGER, _FLOAT, _PLACE = ir.IntType(64), ir.DoubleType(), ir.IntType(32)
_INTEGERS, _FLOATS = ir.VectorType(_INTEGER, WIDTH), ir.VectorType(_FLOAT, WIDTH)


def _each(value: float, kind: Any = _INTEGERS) -> Any:
    """Return a vector of equal constants."""
    return ir.Constant(kind, [ir.Constant(kind.element, value)] * WIDTH)


def _shuffle(builder: Any, left: Any, right: Any, places: list[int]) -> Any:
    """Return the elements at `places` of two vectors, laid one after the other."""
    mask = ir.Constant(ir.VectorType(_PLACE, len(places)), [ir.Constant(_PLACE, place) for place in places])
    return builder.shuffle_vector(left, right, mask)


def _spread(builder: Any, value: Any, kind: Any = _INTEGERS) -> Any:
    """Return a vector of one number."""
    nothing = ir.Constant(kind, ir.Undefined)
    return _shuffle(builder, builder.insert_element(nothing, value, ir.Constant(_PLACE, 0)), nothing, [0] * WIDTH)


def _philox_vectors(builder: Any, counter_0: Any, fixed: list[Any]) -> tuple[Any, Any]:
    """Return the two words of each block, as `rng.philox` computes them."""
    counter_1, counter_2, counter_3, key_0, key_1 = fixed
    low, shift = _each(0xFFFFFFFF), _each(32)
    for _ in range(10):
        product_0 = builder.mul(_each(0xD2511F53), counter_0)
        product_1 = builder.mul(_each(0xCD9E8D57), counter_2)
        counter_0 = builder.xor(builder.xor(builder.lshr(product_1, shift), counter_1), key_0)
        counter_1 = builder.and_(product_1, low)
        counter_2 = builder.xor(builder.xor(builder.lshr(product_0, shift), counter_3), key_1)
        counter_3 = builder.and_(product_0, low)
        key_0 = builder.and_(builder.add(key_0, _each(0x9E3779B9)), low)
        key_1 = builder.and_(builder.add(key_1, _each(0xBB67AE85)), low)
    first = builder.or_(builder.shl(counter_0, shift), counter_1)
    return first, builder.or_(builder.shl(counter_2, shift), counter_3)


def _rows_and_places(builder: Any, word: Any) -> tuple[Any, Any]:
    """Return the rows of the quantile's table that words lie in, without the sign, and the places within them.

    Those in the lowest 16 segments are cut 16 times as fine, as often as it takes, which the exponent shows.
    """
    one = _each(1.0, _FLOATS)
    segment = builder.and_(builder.lshr(word, _each(55)), _each(255))
    within = builder.sitofp(builder.and_(builder.lshr(word, _each(2)), _each((1 << 53) - 1)), _FLOATS)
    within = builder.fmul(within, _each(2.0**-53, _FLOATS))
    scaled = builder.bitcast(builder.fadd(builder.sitofp(segment, _FLOATS), builder.fsub(one, within)), _INTEGERS)
    level = builder.lshr(builder.sub(_each(1023 + 7), builder.lshr(scaled, _each(52))), _each(2))
    scaled = builder.bitcast(builder.add(scaled, builder.shl(level, _each(54))), _FLOATS)  # times 16^level
    finer = builder.fptosi(scaled, _INTEGERS)
    place = builder.fsub(builder.fadd(builder.sitofp(finer, _FLOATS), one), scaled)
    in_tail = builder.icmp_unsigned("<", segment, _each(16))
    row = builder.select(in_tail, builder.add(builder.shl(level, _each(9)), finer), segment)
    return row, builder.select(in_tail, place, within)


def _coefficients(builder: Any, table: Any, rows: Any) -> list[Any]:
    """Load a row of eight coefficients for each number; transpose them."""
    lines = []
    for lane in range(WIDTH):
        offset = builder.shl(builder.extract_element(rows, ir.Constant(_PLACE, lane)), ir.Constant(_INTEGER, 3))
        line = builder.bitcast(builder.gep(table, [offset]), _FLOATS.as_pointer())
        lines.append(builder.load(line, align=8))
    return _transposed(builder, lines)


def _transposed(builder: Any, lines: list[Any]) -> list[Any]:
    """Transpose `WIDTH` vectors: pairs, then pairs of pairs, then halves."""
    for size in (1, 2, 4):
        turned = list(lines)
        for lane in range(WIDTH):
            if lane & size == 0:
                even = [place + (WIDTH - size if place & size else 0) for place in range(WIDTH)]
                one, other = lines[lane], lines[lane + size]
                turned[lane] = _shuffle(builder, one, other, even)
                turned[lane + size] = _shuffle(builder, one, other, [place + size for place in even])
        lines = turned
    return lines


def _normals(builder: Any, table: Any, word: Any) -> Any:
    """Turn words into standard normals, as `rng.normal_from_word` does."""
    rows, place = _rows_and_places(builder, word)
    c0, c1, c2, c3, c4, c5, c6, c7 = _coefficients(builder, table, rows)
    square = builder.fmul(place, place)

    def pair(even: Any, odd: Any, by: Any) -> Any:
        return builder.fadd(even, builder.fmul(odd, by))

    low = pair(pair(c0, c1, place), pair(c2, c3, place), square)
    high = pair(pair(c4, c5, place), pair(c6, c7, place), square)
    value = builder.bitcast(pair(low, high, builder.fmul(square, square)), _INTEGERS)
    return builder.bitcast(builder.xor(value, builder.and_(word, _each(1 << 63))), _FLOATS)


def _two_vectors(
    context: Any, builder: Any, table: tuple[Any, Any], counters: list[Any], moments: list[Any]
) -> list[Any]:
    """Return the rewards from the first word of each block, and those from the second."""
    kind, value = table
    coefficients = context.make_array(kind)(context, builder, value).data
    first, *rest = (builder.and_(counter, _each(0xFFFFFFFF)) for counter in counters)
    mean, sigma = moments
    return [
        builder.fadd(mean, builder.fmul(sigma, _normals(builder, coefficients, word)))
        for word in _philox_vectors(builder, first, rest)
    ]


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Return the address of a vector in an array of numbers."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), _FLOATS.as_pointer())


_LANES = ir.Constant(_INTEGERS, [ir.Constant(_INTEGER, lane) for lane in range(WIDTH)])


def _generate_rewards(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_fill_normal`: `BLOCK` normal rewards to `out[at]` and behind it.

    The first argument is the number of the generator's first block; `fixed` has the other counters and the key, and
    `moments` the mean and the deviation.
    """
    block, fixed, table, moments, out, at = arguments
    others = [_spread(builder, builder.extract_value(fixed, place)) for place in range(5)]
    counters = [builder.add(_spread(builder, block), _LANES), *others]
    spread = [_spread(builder, builder.extract_value(moments, place), _FLOATS) for place in (0, 1)]
    even, odd = _two_vectors(context, builder, (signature.args[2], table), counters, spread)
    for half in (0, WIDTH // 2):
        in_turn = [lane + WIDTH * word for lane in range(half, half + WIDTH // 2) for word in (0, 1)]
        address = builder.add(at, ir.Constant(_INTEGER, 2 * half))
        vector = _shuffle(builder, even, odd, in_turn)
        builder.store(vector, _place(context, builder, signature.args[4], out, address), align=8)
    return context.get_dummy_value()


def _typed_rewards(typing: Any, block: Any, fixed: Any, table: Any, moments: Any, out: Any, at: Any) -> Any:
    five, two = types.UniTuple(types.uint64, 5), types.UniTuple(types.float64, 2)
    return types.void(types.uint64, five, table, two, out, types.uint64), _generate_rewards


def _generate_side_by_side(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_pull_side_by_side`: pull `WIDTH` arms twice; return whether a minimum is above a level.

    `fixed` has the number of the generator's block, the first arm, the other counters and the key; `scalars` the
    deviation, the level, and `1/n` and `C(n)` after each pull. `room` begins with the sums and the running minima; from
    `at` on it gets the running minima after each pull.
    """
    fixed, table, means, scalars, room, at = arguments
    block, arm, *others = (_spread(builder, builder.extract_value(fixed, place)) for place in range(6))
    mean = builder.load(_place(context, builder, signature.args[2], means, builder.extract_value(fixed, 1)), align=8)
    sigma, level, *factors = (_spread(builder, builder.extract_value(scalars, place), _FLOATS) for place in range(6))
    first, second = (ir.Constant(_INTEGER, place) for place in (0, WIDTH))
    sums, lows = (_place(context, builder, signature.args[4], room, place) for place in (first, second))
    total, lowest = builder.load(sums, align=8), builder.load(lows, align=8)
    counters = [block, builder.add(arm, _LANES), *others]
    rewards = _two_vectors(context, builder, (signature.args[1], table), counters, [mean, sigma])
    for vector, inverse, width, row in zip(rewards, factors[::2], factors[1::2], (first, second), strict=True):
        total = builder.fadd(total, vector)
        index = builder.fadd(builder.fmul(total, inverse), width)
        lowest = builder.select(builder.fcmp_ordered("<", index, lowest), index, lowest)
        builder.store(lowest, _place(context, builder, signature.args[4], room, builder.add(at, row)), align=8)
    builder.store(total, sums, align=8)
    builder.store(lowest, lows, align=8)
    above = builder.bitcast(builder.fcmp_ordered(">", lowest, level), ir.IntType(WIDTH))
    return builder.icmp_unsigned("!=", above, ir.Constant(ir.IntType(WIDTH), 0))


def _typed_side_by_side(typing: Any, fixed: Any, table: Any, means: Any, scalars: Any, room: Any, at: Any) -> Any:
    words, numbers = types.UniTuple(types.uint64, 6), types.UniTuple(types.float64, 6)
    return types.boolean(words, table, means, numbers, room, types.uint64), _generate_side_by_side


def _generate_layout(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_lay_out`: `BLOCK` rows of `WIDTH` numbers in `room`, from `at` on, to columns in `out`.

    The first column begins at `place`, and each other `STRIDE` numbers after the one before it.
    """
    room, at, out, place = arguments
    for half in range(0, BLOCK, WIDTH):
        rows = []
        for row in range(half, half + WIDTH):
            source = builder.add(at, ir.Constant(_INTEGER, row * WIDTH))
            rows.append(builder.load(_place(context, builder, signature.args[0], room, source), align=8))
        for lane, column in enumerate(_transposed(builder, rows)):
            target = builder.add(place, ir.Constant(_INTEGER, lane * int(STRIDE) + half))
            builder.store(column, _place(context, builder, signature.args[2], out, target), align=8)
    return context.get_dummy_value()


def _typed_layout(typing: Any, room: Any, at: Any, out: Any, place: Any) -> Any:
    return types.void(room, types.uint64, out, types.uint64), _generate_layout


_lay_out: Any = intrinsic(_typed_layout)
_pull_side_by_side: Any = intrinsic(_typed_side_by_side)
_fill_normal: Any = intrinsic(_typed_rewards)


def draw_rewards(bandit: Bandit, run: np.uint64, arm: np.uint64, pull: np.uint64, out: Numbers, at: np.uint64) -> None:
    """Write the rewards of `BLOCK` pulls of an arm, from pull `pull` on, to `out[at]` and behind it.

    Pulls are counted from 0, and the first is even. Compiled loops draw normal rewards in vectors.
    """
    for place in range(SIXTEEN):
        out[at + place] = reward(bandit, run, arm, pull + place)


def _draw_in_vectors(
    bandit: Bandit, run: np.uint64, arm: np.uint64, pull: np.uint64, out: Numbers, at: np.uint64
) -> None:
    mean, (key_low, key_high) = bandit.means[arm], bandit.key
    if bandit.bernoulli:
        for block in range(np.uint64(WIDTH)):
            first, second = philox((pull >> ONE) + block, arm, run, REWARDS, key_low, key_high)
            out[at + TWO * block] = reward_from_word(first, mean, bandit.sigma, True, bandit.table)
            out[at + TWO * block + ONE] = reward_from_word(second, mean, bandit.sigma, True, bandit.table)
    else:
        fixed = (arm, run, REWARDS, key_low, key_high)
        _fill_normal(pull >> ONE, fixed, bandit.table, (mean, bandit.sigma), out, at)


@overload(draw_rewards, strict=False, jit_options=INLINED)
def _compiled_draw(*_: Any) -> Any:
    return _draw_in_vectors


def _generate_count(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_count_in_vectors`: how many of `BLOCK` numbers are above a level, or at it if ties count."""
    numbers, start, level, ties = arguments
    wide, bits = ir.VectorType(_FLOAT, BLOCK), ir.IntType(BLOCK)
    data = context.make_array(signature.args[0])(context, builder, numbers).data
    block = builder.load(builder.bitcast(builder.gep(data, [start]), wide.as_pointer()), align=8)
    limit = builder.insert_element(ir.Constant(wide, ir.Undefined), level, ir.Constant(_PLACE, 0))
    limit = _shuffle(builder, limit, limit, [0] * BLOCK)
    above, least = (builder.bitcast(builder.fcmp_ordered(kind, block, limit), bits) for kind in (">", ">="))
    return builder.zext(builder.ctpop(builder.select(ties, least, above)), _INTEGER)


def _typed_count(typing: Any, numbers: Any, start: Any, level: Any, ties: Any) -> Any:
    return types.uint64(numbers, types.uint64, types.float64, types.boolean), _generate_count


_count_in_vectors: Any = intrinsic(_typed_count)


def count_above(numbers: Numbers, start: np.uint64, level: float, ties: bool) -> np.uint64:
    """Count those of `BLOCK` numbers from `start` on that are above a level, or at it if `ties` count."""
    block = numbers[int(start) : int(start) + BLOCK]
    return np.uint64(np.count_nonzero(block >= level if ties else block > level))


@overload(count_above, strict=False, jit_options=INLINED)
def _compiled_count(numbers: Any, start: Any, level: Any, ties: Any) -> Any:
    return lambda numbers, start, level, ties: _count_in_vectors(numbers, start, level, ties)


class Ahead(NamedTuple):
    """The pulls of each arm that are drawn ahead, a block of them at a time.

    From place `STRIDE arm` on, `minima` has the arm's running minimum of the index before its block, and then after
    each pull of the block.
    """

    ends: Words  # pulls drawn, per arm
    totals: Numbers  # the sum of their rewards
    minima: Numbers


@called
def new_ahead(arms: int) -> Ahead:
    """Return room for the pulls of all arms that are drawn ahead; `draw_first` may write infinity behind them."""
    return Ahead(np.empty(arms, np.uint64), np.empty(arms), np.empty((arms + 1) * np.int64(STRIDE)))


@inlined
def forget_ahead(ahead: Ahead) -> None:
    """Begin a run: before its first pull an arm's running minimum is infinite, as if a block had ended."""
    for arm in range(ahead.ends.size):
        ahead.ends[arm], ahead.totals[arm] = ZERO, 0.0
    for place in range(ahead.minima.size):
        ahead.minima[place] = np.inf


@inlined
def draw_ahead(bandit: Bandit, parameters: Any, run: np.uint64, arm: np.uint64, ahead: Ahead) -> None:
    """Draw an arm's next 16 pulls."""
    start, n, total = arm * STRIDE + ONE, ahead.ends[arm], ahead.totals[arm]
    minimum = ahead.minima[start + SIXTEEN - ONE]
    ahead.minima[start - ONE] = minimum
    draw_rewards(bandit, run, arm, n, ahead.minima, start)
    stop = start + min(SIXTEEN, np.uint64(bandit.horizon) - n)  # no formula is for more pulls
    for place in range(start, stop):
        n += ONE
        total += ahead.minima[place]
        index = index_value(parameters, total * inverse_of(bandit.inverse, n), n, ONE)
        minimum = index if index < minimum else minimum
        ahead.minima[place] = minimum
    for place in range(stop, start + SIXTEEN):
        ahead.minima[place] = minimum
    ahead.ends[arm] += SIXTEEN
    ahead.totals[arm] = total


def _has_widths(parameters: Any) -> bool:
    """Return whether compiled loops have an index that is the sample mean plus `C(n)`."""
    return False


@overload(_has_widths, strict=False, jit_options=INLINED)
def _compiled_widths(parameters: Any) -> Any:
    additive = is_additive(parameters)
    return lambda parameters: additive


@called
def draw_first(bandit: Bandit, parameters: Any, run: np.uint64, level: float, ahead: Ahead, room: Numbers) -> None:
    """Draw the first pulls of all arms, `WIDTH` of them side by side, until their running minima are at most `level`.

    At most 16 pulls are drawn; what is not drawn of a block is infinite, at its beginning. The last few arms, and those
    whose rewards or index take another form, have to be drawn one by one. `room` is for `FIRST_ROOM` numbers.
    """
    last = np.uint64(bandit.means.size) // EIGHT * EIGHT
    if bandit.horizon < BLOCK or bandit.bernoulli or not _has_widths(parameters):
        last = ZERO
    for first_arm in range(ZERO, last, EIGHT):
        for place in range(BLOCK):
            room[place] = 0.0 if place < WIDTH else np.inf
        pulls, above = ZERO, True
        while above and pulls < SIXTEEN:
            n, later = pulls + ONE, pulls + TWO
            fixed = (pulls >> ONE, first_arm, run, REWARDS, bandit.key[0], bandit.key[1])
            widths = index_value(parameters, 0.0, n, ONE), index_value(parameters, 0.0, later, ONE)
            inverses = inverse_of(bandit.inverse, n), inverse_of(bandit.inverse, later)
            scalars = (bandit.sigma, level, inverses[0], widths[0], inverses[1], widths[1])
            above = _pull_side_by_side(fixed, bandit.table, bandit.means, scalars, room, SIXTEEN + pulls * EIGHT)
            pulls = later
        for place in range(SIXTEEN + pulls * EIGHT, np.uint64(FIRST_ROOM)):
            room[place] = np.inf
        for lane in range(EIGHT):
            ahead.ends[first_arm + lane], ahead.totals[first_arm + lane] = pulls, room[lane]
        _lay_out(room, SIXTEEN, ahead.minima, (first_arm + ONE) * STRIDE - pulls)
