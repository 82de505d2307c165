"""What the fuzzers share: damage to bytes, ugly text logs, and how many files are tried on how many cores.

`make test` tries a few files and `make fuzz` many (`FUZZ_FILES`). A file follows from its number and `FUZZ_SEED`.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

Trial = Callable[[int], tuple[str, str]]
"""Tries one file, by its number; returns what came of it (`same`, `refused`, `different` ...) and the file in words."""

_STRETCH = 250  # files that a process tries before it fetches more


def files(few: int) -> int:
    """Return how many files to try: `few`, or twice as many as the environment says, since text is soon read."""
    many = os.environ.get("FUZZ_FILES")
    return few if many is None else 2 * int(many)


def generator(number: int) -> random.Random:
    """Return the random numbers that a file is made of."""
    return random.Random(int(os.environ.get("FUZZ_SEED", "15")) * 1_000_000_007 + number)


def outcomes(trial: Trial, count: int) -> tuple[Counter[str], dict[str, list[str]]]:
    """Try files 0 to `count` - 1, on all cores if they are many; return how often what came, and examples of each."""
    stretches = [(trial, at, min(at + _STRETCH, count)) for at in range(0, count, _STRETCH)]
    if count <= 20 * _STRETCH:
        found = [pair for stretch in stretches for pair in _tried(*stretch)]
    else:
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
            futures = [pool.submit(_tried, *stretch) for stretch in stretches]
            found = [pair for future in futures for pair in future.result()]
    examples: dict[str, list[str]] = {}
    for outcome, file in found:
        examples.setdefault(outcome, []).append(file)
    return Counter(outcome for outcome, _ in found), {outcome: some[:5] for outcome, some in examples.items()}


def _tried(trial: Trial, start: int, stop: int) -> list[tuple[str, str]]:
    return [trial(number) for number in range(start, stop)]


def damaged(rng: random.Random, data: bytes, times: int = 1) -> bytes:
    """Damage bytes without regard for what they mean: set, flip, insert, delete, repeat, swap or cut off some."""
    for _ in range(times):
        at, other = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
        begin, end = min(at, other), max(at, other)
        few = rng.randrange(1, 9)
        match rng.randrange(7):
            case 0:
                data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
            case 1 if at < len(data):
                data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
            case 2:
                data = data[:at] + rng.randbytes(few) + data[at:]
            case 3:
                data = data[:at] + data[at + few :]
            case 4:
                data = data[:at] + data[at : at + few] + data[at:]
            case 5:
                data = data[:begin] + data[begin + few : end] + data[begin : begin + few] + data[end:]
            case _:
                data = data[:at]
    return data


TOKENS = [
    *(b'"', b'""', b'"""', b",", b";", b"\t", b"\r", b"\n", b"\r\n", b"\n\n", b"\r\r\n", b"\n\r", b'"\n', b'",', b',"'),
    *(b'"\r\n', b' "', b'" ', b"'", b"\\", b'\\"', b"\0", b"\xff", b"\xc3", b"\xc3\xa9", b"\xe9", b"\xef\xbb\xbf"),
    *(b" ", b"\xc2\xa0", b"\x0b", b"\x0c", b"\x1b[31m", b"\x1c", b"\xc2\x85", b"\xe2\x80\xa8", b"#", b"=", b"NA", b"-"),
    *(b"", b"0", b",,", b'""""', b'"a""b"', b'"a\nb"', b'"a\rb"', b'"a,b"', b"e\xcc\x81", b"\xef\xbf\xbd", b"x" * 300),
]
"""What is put into text: everything that means something to some parser of tables."""

LABELS = [
    *(
        "A",
        "B",
        "C",
        "1",
        "2",
        "007",
        "3.0",
        "1e3",
        "red",
        "arm 7",
        "caf\u00e9",
        "cafe\u0301",
        "\u4e2d",
        "true",
        "nan-2",
    ),
    *(
        '5"',
        '"5"',
        'say "hi"',
        "a,b",
        "a;b",
        "a\tb",
        "two\nlines",
        "two\r\nlines",
        "old\rline",
        " padded ",
        "it's",
        "=",
    ),
    *("#1", "\u00a0x", "x" * 90, '"', '""', ",", "\\", "\n"),
]
NAMES = ["demonstration", "round", "arm", "reward", "note", "x", "a b", "weight", "", '"', "n,o", "p;q", "Arm2", "z\nz"]


def text_log(rng: random.Random) -> tuple[bytes, bool]:
    """Write a log as some program might: any separator, quoting and line break, and labels as people have them.

    Return also whether it must be read: whatever has to be quoted is, and only one separator makes it a table.
    """
    separator = rng.choice(",,,;\t")
    line_break = rng.choice(["\n", "\n", "\n", "\r\n", "\r\n", "\r"])
    quoting = rng.choice(["none", "needed", "needed", "all", "some"])
    others = rng.sample([name for name in NAMES if name != "arm"], rng.randrange(5))
    names = ["arm", *others]
    rng.shuffle(names)
    usable = [label for label in LABELS if line_break != "\r" or "\n" not in label]  # one line break or the other
    names = [name for name in names if line_break != "\r" or "\n" not in name]
    labels = rng.sample(usable, rng.randrange(2, 6))
    blank = rng.choice([0.0, 0.0, 0.2])

    def cell(name: str, row: int) -> str:
        if name in ("round", "demonstration"):
            return str(row // 7 if name == "demonstration" else row % 7 + 1 if "demonstration" in names else row + 1)
        if name == "reward":
            return rng.choice(["", "1", "0.5"])
        return "" if name != "arm" and rng.random() < blank else rng.choice(labels)

    def written(text: str) -> str:
        needs = any(mark in text for mark in (separator, '"', "\n", "\r"))
        quoted = quoting == "all" or (quoting == "some" and rng.random() < 0.5) or (quoting != "none" and needs)
        if quoted:
            return '"' + text.replace('"', '""') + '"'
        return text.replace(separator, "_").replace("\n", "_").replace("\r", "_")

    rows = rng.choice([1, 2, 3, 5, 8, 13, 40])
    table = [names, *([cell(name, row) for name in names] for row in range(rows))]
    text = line_break.join(separator.join(map(written, row)) for row in table)
    before, after = rng.choice(["", "", "\ufeff"]), rng.choice([line_break, line_break, "", 3 * line_break])
    must_be_read = (
        quoting != "none" and not {"n,o", "p;q"} & set(names) and not {"a,b", "a;b", "a\tb", ","} & set(labels)
    )
    return (before + line_break * rng.choice([0, 0, 0, 2]) + text + after).encode(), must_be_read


def damaged_text(rng: random.Random, data: bytes) -> bytes:
    """Damage a text log as programs and people do: marks added, removed and doubled, lines changed, other encodings."""
    for _ in range(rng.choice([0, 1, 1, 2, 4])):
        at = rng.randrange(len(data) + 1)
        lines = data.split(b"\n")
        line = rng.randrange(len(lines))
        match rng.randrange(9):
            case 0 | 1 | 2:
                data = data[:at] + rng.choice(TOKENS) + data[at:]
            case 3:
                data = data[:at] + rng.choice(TOKENS) + data[at + 1 :]
            case 4:
                marks = [at for at, byte in enumerate(data) if byte in b'",;\t\r\n'] or [0]
                at = rng.choice(marks)
                data = data[:at] + rng.choice([b"", data[at : at + 1] * 2]) + data[at + 1 :]
            case 5:
                data = b"\n".join(
                    [*lines[:line], *rng.choice([[], [b""], lines[line : line + 1] * 2]), *lines[line + 1 :]]
                )
            case 6:
                lines[line] += rng.choice([b",", b",x", b";", b"\t", b"\r", b'"', b" ", b",,"])
                data = b"\n".join(lines)
            case 7:
                data = damaged(rng, data)
            case _ if rng.random() < 0.2:
                with_marks = rng.choice(["utf-16", "latin-1", "utf-8-sig", "cp1252"])
                data = data.decode("utf-8", "replace").encode(with_marks, "replace")
            case _:
                data = data.replace(b"\n", b"\r\n") if rng.random() < 0.5 else data.replace(b"\r", b"")
    return data
