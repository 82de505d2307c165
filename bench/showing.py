"""Reports and the web page: how long people wait for what they see."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench.one_core import THREAD_SETTINGS
from bench.report import Row, cores, number, seconds
from bench.setting import RULE, SIGMA, Effort, instance_of
from bench.timing import best_seconds

ARMS = 20
REPORT, SIZE = 5.0, 2e6
FIRST_PAGE, UPLOAD = 0.1, 1.0
AT_ONCE = 50
BOUNDARY = "a-line-between-the-parts"


def compare(effort: Effort) -> list[Row]:
    return [*_report(effort), *_pages(effort)]


def _log(folder: Path, rounds: int) -> Path:
    path = folder / f"log-{rounds}.csv"
    RULE.demonstrate(instance_of(ARMS), rounds, seed=1).write(path)
    return path


def _program() -> Path:
    return Path(sys.executable).parent / "unbandit"


def _report(effort: Effort) -> list[Row]:
    """Time the command from the prompt to the file, on the one core that the benchmark keeps to."""
    rounds = effort.of(1_000_000, at_least=1_000)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = _log(folder, rounds)
        command = [_program(), "report", path.name, "--rule", str(RULE), "--best-mean", "1", "--sigma", str(SIGMA)]
        make = partial(subprocess.run, [*command, "-o", "report.html"], check=True, capture_output=True, cwd=folder)
        took = best_seconds({"report": make}, min(effort.repeats, 3))["report"]
        size = (folder / "report.html").stat().st_size
    title = f"`unbandit report` of a CSV of {rounds:,} rows, K={ARMS}, on one core"
    return [
        Row.at_most(f"{title}: time", seconds(took), f"the limit of {REPORT:g} s", took / REPORT, 1),
        Row.at_most(f"{title}: size", f"{number(size / 1e6)} MB", "the limit of 2 MB", size / SIZE, 1),
    ]


def _pages(effort: Effort) -> list[Row]:
    """Time the page, which has all cores, as a visitor does: from the click to the last byte."""
    rounds = effort.of(100_000, at_least=1_000)
    many = effort.of(AT_ONCE, at_least=4)
    with tempfile.TemporaryDirectory() as name, _served() as address:
        data = _log(Path(name), rounds).read_bytes()
        first = best_seconds({"first": partial(_get, address)}, effort.repeats)["first"]
        upload = best_seconds({"upload": partial(_answer, address, data)}, effort.repeats)["upload"]
        begun = time.perf_counter()
        with ThreadPoolExecutor(many) as visitors:
            failed = sum(not done for done in visitors.map(lambda _: _succeeds(address, data), range(many)))
        each = (time.perf_counter() - begun) / many
    title = f"`unbandit serve` on {cores()} cores"
    one, together = f"{title}: report of an upload of {rounds:,} rows", f"{title}: {many} such uploads at once"
    return [
        Row.at_most(f"{title}: first page", seconds(first), f"the limit of {FIRST_PAGE:g} s", first / FIRST_PAGE, 1),
        Row.at_most(one, seconds(upload), f"the limit of {UPLOAD:g} s", upload / UPLOAD, 1),
        Row(f"{together}, time of each", seconds(each), "one alone", number(each / upload)),
        Row(f"{together}, failed", str(failed), "all", number(failed / many), "0", failed == 0),
    ]


@contextmanager
def _served() -> Iterator[str]:
    """Start the page on all cores, wait until its processes have warmed up, and stop it afterwards."""
    everything = {key: value for key, value in os.environ.items() if key not in THREAD_SETTINGS}
    command = [_program(), "serve", "--no-open", "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=everything, preexec_fn=_all_cores)
    try:
        assert server.stdout is not None
        found = re.search(r"http://\S+/", server.stdout.readline())
        assert found is not None, "the page did not start"
        for _ in range(8):
            _answer(found[0], b"arm\nA\nB\n" + b"A\n" * 50)
        yield found[0]
    finally:
        server.terminate()
        server.wait()


def _all_cores() -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, range(cores()))


def _get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=300) as response:
        return str(response.read().decode())


def _answer(address: str, data: bytes) -> str:
    """Send a log with a rule, and wait for the report."""
    fields = {"rule": "ucb", "ucb.alpha": "0.25", "best_mean": "1", "sigma": "1"}
    parts = [f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'.encode()
             for key, value in fields.items()]  # fmt: skip
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="log"; filename="log.csv"\r\n\r\n'.encode()
    body = b"".join([*parts, head, data, f"\r\n--{BOUNDARY}--\r\n".encode()])
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    with urllib.request.urlopen(urllib.request.Request(address + "estimate", body, kind), timeout=300) as response:
        page, where = response.read().decode(), response.url
    while "/files/report.html" not in page:  # still at work
        time.sleep(0.05)
        page = _get(where)
    return str(page)


def _succeeds(address: str, data: bytes) -> bool:
    try:
        return "/files/report.html" in _answer(address, data)
    except OSError:
        return False
