"""Rewards of consecutive pulls of an arm, drawn in batches, and the running minima of the index that follow.

The generator and the quantile of `rng` run on vectors of eight numbers, written in LLVM's own vector types, which it
turns into the registers that a processor has (AVX-512, AVX2, NEON, SSE). Each step is done for many numbers before the
next one, since a processor sees only a few hundred instructions ahead: first the words of a batch, then their places in
the quantile's table, then its polynomials. LLVM's vectoriser would fetch the coefficients one by one; here a row of the
table, eight coefficients, is one load, and rows are transposed on the way. Every step is that of `philox` and
`normal_from_word`, in the same order and without fused operations: the bits are the same.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.extending import intrinsic, overload

from unbandit.kernels.bandit import REWARDS, Bandit, inverse_of, reward, reward_from_word
from unbandit.kernels.compile import BORROWING, INLINED, Numbers, Words, borrowing, called, inlined
from unbandit.kernels.formula import index_value, is_additive
from unbandit.kernels.rng import MULTIPLIER_0, MULTIPLIER_1, WEYL_0, WEYL_1

WIDTH = 8
BLOCK = 2 * WIDTH  # a block of the generator serves two pulls
SLOTS = 4 if get_host_cpu_features().get("avx512f") else 1  # blocks of pulls in a batch: more need many registers
BATCH = SLOTS * BLOCK
WORDS, ROWS, PLACES, REST = 0, BATCH, 2 * BATCH, 3 * BATCH  # where a batch is worked out in its room
ROOM = REST + BLOCK + BLOCK * WIDTH  # numbers
ZERO, ONE, TWO, SIXTEEN = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(BLOCK)
STRIDE = SIXTEEN + ONE  # numbers per arm that are drawn ahead
EIGHT, FULL, SIZE = np.uint64(WIDTH), np.uint64(SLOTS), np.uint64(BATCH)
AT_REST, AT_MINIMA = np.uint64(REST), np.uint64(REST + BLOCK)  # in `draw_first`: sums and lows; the running minima

_INTEGER, _FLOAT, _PLACE = ir.IntType(64), ir.DoubleType(), ir.IntType(32)
_INTEGERS, _FLOATS = ir.VectorType(_INTEGER, WIDTH), ir.VectorType(_FLOAT, WIDTH)


def _each(value: float, kind: Any = _INTEGERS) -> Any:
    """Return a vector of equal constants."""
    return ir.Constant(kind, [ir.Constant(kind.element, value)] * kind.count)


def _shuffle(builder: Any, left: Any, right: Any, places: list[int]) -> Any:
    """Return the elements at `places` of two vectors, laid one after the other."""
    mask = ir.Constant(ir.VectorType(_PLACE, len(places)), [ir.Constant(_PLACE, place) for place in places])
    return builder.shuffle_vector(left, right, mask)


def _spread(builder: Any, value: Any, kind: Any = _INTEGERS) -> Any:
    """Return a vector of one number."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, value, ir.Constant(_PLACE, 0))
    return _shuffle(builder, first, nothing, [0] * kind.count)


def _joined(builder: Any, vectors: list[Any]) -> Any:
    """Return vectors, laid one after the other, as one."""
    while len(vectors) > 1:
        places, pairs = list(range(2 * vectors[0].type.count)), zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [_shuffle(builder, one, other, places) for one, other in pairs]
    return vectors[0]


def _address(builder: Any, data: Any, at: Any, place: int, kind: Any) -> Any:
    """Return the address of a vector in an array: `place` numbers behind number `at`."""
    return builder.bitcast(builder.gep(data, [builder.add(at, ir.Constant(_INTEGER, place))]), kind.as_pointer())


def _data(context: Any, builder: Any, signature: Any, arguments: Any, place: int) -> Any:
    """Return where the numbers of an argument, an array, begin."""
    return context.make_array(signature.args[place])(context, builder, arguments[place]).data


def _philox_vectors(builder: Any, counters: list[Any], keys: list[Any]) -> tuple[Any, Any]:
    """Return the two words of each block, as `rng.philox` computes them."""
    kind = counters[0].type
    low, shift = _each(0xFFFFFFFF, kind), _each(32, kind)
    counter_0, counter_1, counter_2, counter_3 = (builder.and_(counter, low) for counter in counters)
    key_0, key_1 = (builder.and_(key, low) for key in keys)
    for _ in range(10):
        product_0 = builder.mul(_each(int(MULTIPLIER_0), kind), counter_0)
        product_1 = builder.mul(_each(int(MULTIPLIER_1), kind), counter_2)
        counter_0 = builder.xor(builder.xor(builder.lshr(product_1, shift), counter_1), key_0)
        counter_1 = builder.and_(product_1, low)
        counter_2 = builder.xor(builder.xor(builder.lshr(product_0, shift), counter_3), key_1)
        counter_3 = builder.and_(product_0, low)
        key_0 = builder.and_(builder.add(key_0, _each(int(WEYL_0), kind)), low)
        key_1 = builder.and_(builder.add(key_1, _each(int(WEYL_1), kind)), low)
    first = builder.or_(builder.shl(counter_0, shift), counter_1)
    return first, builder.or_(builder.shl(counter_2, shift), counter_3)


_LANES = ir.Constant(_INTEGERS, [ir.Constant(_INTEGER, lane) for lane in range(WIDTH)])


def _generate_words(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_fill_words`: of each slot, the first words of `WIDTH` blocks and then the second ones.

    A slot has consecutive blocks of one arm, from a pull on; or, `across` arms, one block of consecutive arms.
    """
    arms, pulls, fixed, across, _ = arguments
    slots, room = signature.args[0].count, _data(context, builder, signature, arguments, 4)
    of_arm, of_block = (builder.select(across, *lanes) for lanes in ((_LANES, _each(0)), (_each(0), _LANES)))
    parts: tuple[list[Any], list[Any]] = ([], [])
    for slot in range(slots):
        arm, pull = (builder.extract_value(given, slot) for given in (arms, pulls))
        block = builder.lshr(pull, ir.Constant(_INTEGER, 1))
        parts[0].append(builder.add(_spread(builder, block), of_block))
        parts[1].append(builder.add(_spread(builder, arm), of_arm))
    blocks, arms = (_joined(builder, part) for part in parts)  # together: one slot would wait for each of its steps
    run, stream, *keys = (_spread(builder, builder.extract_value(fixed, place), arms.type) for place in range(4))
    for half, words in enumerate(_philox_vectors(builder, [blocks, arms, run, stream], keys)):
        for slot in range(slots):
            vector = _shuffle(builder, words, words, list(range(slot * WIDTH, (slot + 1) * WIDTH)))
            start = ir.Constant(_INTEGER, WORDS + slot * BLOCK)
            builder.store(vector, _address(builder, room, start, half * WIDTH, _INTEGERS), align=8)
    return context.get_dummy_value()


def _rows_and_places(builder: Any, word: Any) -> tuple[Any, Any]:
    """Return where the rows of the quantile's table begin in which words lie, and the places within the rows.

    Those in the lowest 16 segments are cut 16 times as fine, as often as it takes, which the exponent shows. A segment
    and what is left of it, in units of 2^-53, are one whole number, which is rounded when it becomes a float.
    """
    low = _each((1 << 53) - 1)
    bits = builder.lshr(word, _each(2))
    within = builder.fmul(builder.sitofp(builder.and_(bits, low), _FLOATS), _each(2.0**-53, _FLOATS))
    whole = builder.add(builder.xor(builder.and_(bits, _each((1 << 61) - 1)), low), _each(1))
    scaled = builder.bitcast(builder.sitofp(whole, _FLOATS), _INTEGERS)
    level = builder.lshr(builder.sub(_each(1023 + 7 + 53), builder.lshr(scaled, _each(52))), _each(2))
    scaled = builder.add(scaled, builder.shl(level, _each(54)))  # times 16^level
    scaled = builder.bitcast(builder.sub(scaled, _each(53 << 52)), _FLOATS)  # times 2^-53
    finer = builder.fptosi(scaled, _INTEGERS)
    place = builder.fsub(builder.fadd(builder.sitofp(finer, _FLOATS), _each(1.0, _FLOATS)), scaled)
    in_tail = builder.icmp_unsigned("==", builder.and_(word, _each(15 << 59)), _each(0))
    in_level = builder.add(builder.shl(level, _each(12)), builder.shl(finer, _each(3)))
    row = builder.select(in_tail, in_level, builder.and_(builder.lshr(word, _each(52)), _each(255 << 3)))
    return row, builder.select(in_tail, place, within)


def _generate_places(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_fill_places`: rows and places of the words of the slot that begins at `at`."""
    room, (at, _) = _data(context, builder, signature, arguments, 1), arguments
    for place in (0, WIDTH):
        word = builder.load(_address(builder, room, at, WORDS + place, _INTEGERS), align=8)
        rows, places = _rows_and_places(builder, word)
        builder.store(rows, _address(builder, room, at, ROWS + place, _INTEGERS), align=8)
        builder.store(places, _address(builder, room, at, PLACES + place, _FLOATS), align=8)
    return context.get_dummy_value()


def _normals(builder: Any, table: Any, room: Any, at: Any, place: int) -> Any:
    """Return the normals of `WIDTH` words, as `rng.normal_from_word` does.

    Of two numbers' rows the even and the odd coefficients are taken apart; `even + odd t` needs no more. The four
    results of each number, then two, are combined likewise, until numbers are where they belong.
    """
    sums = []
    for lane in range(0, WIDTH, 2):
        rows = (builder.load(_address(builder, room, at, ROWS + place + one, _INTEGER)) for one in (lane, lane + 1))
        one, other = (
            builder.load(builder.bitcast(builder.gep(table, [row]), _FLOATS.as_pointer()), align=8) for row in rows
        )
        even, odd = (
            _shuffle(builder, one, other, [power + line for power in range(first, WIDTH, 2) for line in (0, WIDTH)])
            for first in (0, 1)
        )
        two = builder.load(_address(builder, room, at, PLACES + place + lane, ir.VectorType(_FLOAT, 2)), align=8)
        sums.append(builder.fadd(even, builder.fmul(odd, _shuffle(builder, two, two, [0, 1] * (WIDTH // 2)))))
    places = builder.load(_address(builder, room, at, PLACES + place, _FLOATS), align=8)
    square = builder.fmul(places, places)
    firsts, seconds = [0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]
    halves = []
    for half in (0, 1):
        even, odd = (_shuffle(builder, sums[2 * half], sums[2 * half + 1], pairs) for pairs in (firsts, seconds))
        by = _shuffle(builder, square, square, [4 * half + lane for lane in (0, 1, 0, 1, 2, 3, 2, 3)])
        halves.append(builder.fadd(even, builder.fmul(odd, by)))
    low, high = (_shuffle(builder, halves[0], halves[1], pairs) for pairs in (firsts, seconds))
    value = builder.bitcast(builder.fadd(low, builder.fmul(high, builder.fmul(square, square))), _INTEGERS)
    word = builder.load(_address(builder, room, at, WORDS + place, _INTEGERS), align=8)
    return builder.bitcast(builder.xor(value, builder.and_(word, _each(1 << 63))), _FLOATS)


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


def _generate_rewards(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_fill_rewards`: the rewards of the slot at `at`, in turn, in place of its places."""
    table, room = (_data(context, builder, signature, arguments, place) for place in (0, 1))
    _, _, at, moments = arguments
    mean, sigma = (_spread(builder, builder.extract_value(moments, place), _FLOATS) for place in (0, 1))
    first, second = (
        builder.fadd(mean, builder.fmul(sigma, _normals(builder, table, room, at, place))) for place in (0, WIDTH)
    )
    for half in (0, WIDTH):
        in_turn = [(half + place) // 2 + WIDTH * (place % 2) for place in range(WIDTH)]
        vector = _shuffle(builder, first, second, in_turn)
        builder.store(vector, _address(builder, room, at, PLACES + half, _FLOATS), align=8)
    return context.get_dummy_value()


def _generate_word(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_word_at`: one word of a batch. (A view of the room would have its references counted.)"""
    room = _data(context, builder, signature, arguments, 0)
    return builder.load(_address(builder, room, arguments[1], WORDS, _INTEGER), align=8)


def _generate_side_by_side(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_pull_side_by_side`: pull `WIDTH` arms twice; return whether a minimum is above a level.

    Their words and places are in the slot that begins at `at`. `scalars` has the deviation, the level, and `1/n` and
    `C(n)` after each pull. The room has the sums and the running minima; from `to` on it gets the latter after
    each pull.
    """
    table, means, room = (_data(context, builder, signature, arguments, place) for place in (0, 1, 4))
    _, _, arm, scalars, _, at, to = arguments
    mean = builder.load(_address(builder, means, arm, 0, _FLOATS), align=8)
    sigma, level, *factors = (_spread(builder, builder.extract_value(scalars, place), _FLOATS) for place in range(6))
    sums, lows = (_address(builder, room, ir.Constant(_INTEGER, REST), place, _FLOATS) for place in (0, WIDTH))
    total, lowest = builder.load(sums, align=8), builder.load(lows, align=8)
    for place, inverse, width in zip((0, WIDTH), factors[::2], factors[1::2], strict=True):
        normals = _normals(builder, table, room, at, place)
        total = builder.fadd(total, builder.fadd(mean, builder.fmul(sigma, normals)))
        index = builder.fadd(builder.fmul(total, inverse), width)
        lowest = builder.select(builder.fcmp_ordered("<", index, lowest), index, lowest)
        builder.store(lowest, _address(builder, room, to, place, _FLOATS), align=8)
    builder.store(total, sums, align=8)
    builder.store(lowest, lows, align=8)
    above = builder.bitcast(builder.fcmp_ordered(">", lowest, level), ir.IntType(WIDTH))
    return builder.icmp_unsigned("!=", above, ir.Constant(ir.IntType(WIDTH), 0))


def _generate_layout(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_lay_out`: `BLOCK` rows of `WIDTH` numbers in `room`, from `at` on, to columns in `out`.

    The first column begins at `place`, and each other `STRIDE` numbers after the one before it.
    """
    room, out = (_data(context, builder, signature, arguments, place) for place in (0, 2))
    _, at, _, place = arguments
    for half in range(0, BLOCK, WIDTH):
        rows = [
            builder.load(_address(builder, room, at, row * WIDTH, _FLOATS), align=8)
            for row in range(half, half + WIDTH)
        ]
        for lane, column in enumerate(_transposed(builder, rows)):
            builder.store(column, _address(builder, out, place, lane * int(STRIDE) + half, _FLOATS), align=8)
    return context.get_dummy_value()


_WORD, _SCALARS = types.uint64, types.UniTuple(types.float64, 6)


def _typed_words(typing: Any, arms: Any, pulls: Any, fixed: Any, across: Any, room: Any) -> Any:
    return types.void(arms, pulls, types.UniTuple(_WORD, 4), types.boolean, room), _generate_words


def _typed_places(typing: Any, at: Any, room: Any) -> Any:
    return types.void(_WORD, room), _generate_places


def _typed_rewards(typing: Any, table: Any, room: Any, at: Any, moments: Any) -> Any:
    return types.void(table, room, _WORD, types.UniTuple(types.float64, 2)), _generate_rewards


def _typed_word(typing: Any, room: Any, at: Any) -> Any:
    return _WORD(room, _WORD), _generate_word


def _typed_side_by_side(
    typing: Any, table: Any, means: Any, arm: Any, scalars: Any, room: Any, at: Any, to: Any
) -> Any:
    return types.boolean(table, means, _WORD, _SCALARS, room, _WORD, _WORD), _generate_side_by_side


def _typed_layout(typing: Any, room: Any, at: Any, out: Any, place: Any) -> Any:
    return types.void(room, _WORD, out, _WORD), _generate_layout


_fill_words: Any = intrinsic(_typed_words)
_fill_places: Any = intrinsic(_typed_places)
_fill_rewards: Any = intrinsic(_typed_rewards)
_word_at: Any = intrinsic(_typed_word)
_pull_side_by_side: Any = intrinsic(_typed_side_by_side)
_lay_out: Any = intrinsic(_typed_layout)

Slots = tuple[np.uint64, ...]


@inlined
def series(first: np.uint64, step: np.uint64) -> Slots:
    """Return a number for each slot of a batch."""
    return (first, first + step, first + TWO * step, first + (TWO + ONE) * step)[:SLOTS]


@called
def _prepare(arms: Slots, pulls: Slots, fixed: Slots, across: bool, normal: bool, room: Numbers) -> None:
    """Fill in the words of some slots and, for normal rewards, their places in the quantile's table."""
    _fill_words(arms, pulls, fixed, across, room)
    if normal:
        for slot in range(np.uint64(len(arms))):
            _fill_places(slot * SIXTEEN, room)


def prepare_rewards(bandit: Bandit, run: np.uint64, arms: Slots, pulls: Slots, room: Numbers) -> None:
    """Begin to draw one slot or `SLOTS`: for each, `BLOCK` pulls of an arm, from an even one on (counted from 0).

    An arm that there is not is a slot that is not needed.
    """
    for slot in range(len(arms)):
        for place in range(BLOCK if arms[slot] < bandit.means.size else 0):
            pull = pulls[slot] + np.uint64(place)
            room[PLACES + slot * BLOCK + place] = reward(bandit, run, arms[slot], pull)


@overload(prepare_rewards, strict=False, jit_options=BORROWING)
def _compiled_preparation(*_: Any) -> Any:
    def prepare(bandit: Bandit, run: np.uint64, arms: Slots, pulls: Slots, room: Numbers) -> None:
        _prepare(arms, pulls, (run, REWARDS, bandit.key[0], bandit.key[1]), False, not bandit.bernoulli, room)

    return prepare


def finish_rewards(bandit: Bandit, arm: np.uint64, slot: np.uint64, room: Numbers) -> None:
    """Finish the rewards of a slot: they are in the room from `PLACES + BLOCK slot` on. Plain Python has drawn them."""


@overload(finish_rewards, strict=False, jit_options=BORROWING)
def _compiled_finish(*_: Any) -> Any:
    def finish(bandit: Bandit, arm: np.uint64, slot: np.uint64, room: Numbers) -> None:
        at, mean, sigma = slot * SIXTEEN, bandit.means[arm], bandit.sigma
        start = at + SIZE + SIZE
        if bandit.bernoulli:
            for pull in range(SIXTEEN):
                word = _word_at(room, at + (pull & ONE) * EIGHT + (pull >> ONE))
                room[start + pull] = reward_from_word(word, mean, sigma, True, bandit.table)
        else:
            _fill_rewards(bandit.table, room, at, (mean, sigma))

    return finish


def _generate_count(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Write the code of `_count_in_vectors`: how many of `BLOCK` numbers are above a level, or at it if ties count."""
    _, start, level, ties = arguments
    wide, bits = ir.VectorType(_FLOAT, BLOCK), ir.IntType(BLOCK)
    data = _data(context, builder, signature, arguments, 0)
    block = builder.load(_address(builder, data, start, 0, wide), align=8)
    limit = _spread(builder, level, wide)
    above, least = (builder.bitcast(builder.fcmp_ordered(kind, block, limit), bits) for kind in (">", ">="))
    return builder.zext(builder.ctpop(builder.select(ties, least, above)), _INTEGER)


def _typed_count(typing: Any, numbers: Any, start: Any, level: Any, ties: Any) -> Any:
    return types.uint64(numbers, _WORD, types.float64, types.boolean), _generate_count


_count_in_vectors: Any = intrinsic(_typed_count)


def count_above(numbers: Numbers, start: np.uint64, level: float, ties: bool) -> np.uint64:
    """Count those of `BLOCK` numbers from `start` on that are above a level, or at it if `ties` count."""
    block = numbers[int(start) : int(start) + BLOCK]
    return np.uint64(np.count_nonzero(block >= level if ties else block > level))


@overload(count_above, strict=False, jit_options=BORROWING)
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
    room: Numbers  # for a batch of rewards


@called
def new_ahead(arms: int, stride: np.uint64) -> Ahead:
    """Return room for the pulls of all arms that are drawn ahead; `draw_first` may write infinity behind them."""
    minima, room = np.empty((arms + 1) * np.int64(stride)), np.empty(ROOM + WIDTH)
    start = -np.int64(room.ctypes.data) % 64 // 8  # vectors are lines of the cache
    return Ahead(np.empty(arms, np.uint64), np.empty(arms), minima, room[start : start + ROOM])


@borrowing
def forget_ahead(ahead: Ahead) -> None:
    """Begin a run: before its first pull an arm's running minimum is infinite, as if a block had ended."""
    for arm in range(ahead.ends.size):
        ahead.ends[arm], ahead.totals[arm] = ZERO, 0.0
    for place in range(ahead.minima.size):
        ahead.minima[place] = np.inf


@borrowing
def draw_block(
    bandit: Bandit, parameters: Any, arm: np.uint64, slot: np.uint64, minimum: float, ahead: Ahead, start: np.uint64
) -> float:
    """Draw the 16 pulls of an arm in a slot; write its running minima from `start` on, and return the last.

    `minimum` is that before them.
    """
    finish_rewards(bandit, arm, slot, ahead.room)
    n, total, horizon = ahead.ends[arm], ahead.totals[arm], np.uint64(bandit.horizon)
    place = SIZE + SIZE + slot * SIXTEEN
    stop = start + min(SIXTEEN, horizon - min(n, horizon))  # no formula is for more pulls
    for at in range(start, stop):
        n += ONE
        total += ahead.room[place]
        place += ONE
        index = index_value(parameters, total * inverse_of(bandit.inverse, n), n, ONE)
        minimum = index if index < minimum else minimum
        ahead.minima[at] = minimum
    for at in range(stop, start + SIXTEEN):
        ahead.minima[at] = minimum
    ahead.ends[arm] += SIXTEEN
    ahead.totals[arm] = total
    return minimum


@borrowing
def prepare_next(bandit: Bandit, run: np.uint64, arm: np.uint64, ahead: Ahead) -> None:
    """Begin to draw an arm's next `SLOTS` blocks."""
    prepare_rewards(bandit, run, series(arm, ZERO), series(ahead.ends[arm], SIXTEEN), ahead.room)


@borrowing
def next_block(bandit: Bandit, parameters: Any, arm: np.uint64, slot: np.uint64, ahead: Ahead) -> None:
    """Draw an arm's next 16 pulls, which are in a slot, in place of the 16 before."""
    start = arm * STRIDE + ONE
    minimum = ahead.minima[start + SIXTEEN - ONE]
    ahead.minima[start - ONE] = minimum
    draw_block(bandit, parameters, arm, slot, minimum, ahead, start)


@borrowing
def draw_ahead(bandit: Bandit, parameters: Any, run: np.uint64, arm: np.uint64, ahead: Ahead) -> None:
    """Draw an arm's next 16 pulls, alone."""
    prepare_rewards(bandit, run, (arm,), (ahead.ends[arm],), ahead.room)
    next_block(bandit, parameters, arm, ZERO, ahead)


def _has_widths(parameters: Any) -> bool:
    """Return whether compiled loops have an index that is the sample mean plus `C(n)`."""
    return False


@overload(_has_widths, strict=False, jit_options=INLINED)
def _compiled_widths(parameters: Any) -> Any:
    additive = is_additive(parameters)
    return lambda parameters: additive


@called
def draw_first(bandit: Bandit, parameters: Any, run: np.uint64, level: float, ahead: Ahead) -> None:
    """Draw the first pulls of all arms, `WIDTH` of them side by side, until their running minima are at most `level`.

    At most 16 pulls are drawn; what is not drawn of a block is infinite, at its beginning. The last few arms, and those
    whose rewards or index take another form, have to be drawn one by one.
    """
    room, last = ahead.room, np.uint64(bandit.means.size) // EIGHT * EIGHT
    if bandit.horizon < BLOCK or bandit.bernoulli or not _has_widths(parameters):
        last = ZERO
    for first_arm in range(ZERO, last, EIGHT):
        for place in range(BLOCK):
            room[AT_REST + np.uint64(place)] = 0.0 if place < WIDTH else np.inf
        pulls, slot, above = ZERO, FULL, True
        while above and pulls < SIXTEEN:
            if slot == FULL:
                arms, key = series(first_arm, ZERO), bandit.key
                _prepare(arms, series(pulls, TWO), (run, REWARDS, key[0], key[1]), True, True, room)
                slot = ZERO
            n, later = pulls + ONE, pulls + TWO
            widths = index_value(parameters, 0.0, n, ONE), index_value(parameters, 0.0, later, ONE)
            inverses = inverse_of(bandit.inverse, n), inverse_of(bandit.inverse, later)
            scalars = (bandit.sigma, level, inverses[0], widths[0], inverses[1], widths[1])
            to = AT_MINIMA + pulls * EIGHT
            above = _pull_side_by_side(bandit.table, bandit.means, first_arm, scalars, room, slot * SIXTEEN, to)
            pulls, slot = later, slot + ONE
        for place in range(AT_MINIMA + pulls * EIGHT, np.uint64(ROOM)):
            room[place] = np.inf
        for lane in range(EIGHT):
            ahead.ends[first_arm + lane], ahead.totals[first_arm + lane] = pulls, room[AT_REST + lane]
        _lay_out(room, AT_MINIMA, ahead.minima, (first_arm + ONE) * STRIDE - pulls)
