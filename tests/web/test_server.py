"""`unbandit serve` as people start it: where it is, who may come in, and that it ends when it is told to."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import pytest

from unbandit.web import server

PROGRAM = (sys.executable, "-c", "from unbandit.cli import main; main()", "serve", "--no-open")


@contextmanager
def served(*options, files=None):
    """Start the page and wait until it says where it is; give the process, the address and what it said.

    `files` is how many files and connections the process may have open.
    """
    limit = None if files is None else lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    server = subprocess.Popen(
        [*PROGRAM, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=limit,
    )  # fmt: skip
    said = ""
    try:
        while not (found := re.search(r"unbandit is at (http://\S+)", said)):
            line = server.stdout.readline()
            assert line, server.stderr.read()
            said += line
        yield server, re.sub(r"//[^:/]+:", "//127.0.0.1:", found[1]), said
    finally:
        server.kill()
        server.communicate()


def children_of(process):
    """Return the processes that a process started, and theirs."""
    listed = subprocess.run(["ps", "-eo", "pid=,sid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    return [pid for pid, session in pairs if session == process and pid != process]


def gone(pids, seconds=120.0):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if not any(os.path.exists(f"/proc/{pid}/exe") for pid in pids):  # noqa: PTH110
            return True
        time.sleep(0.05)
    return False


def wait_for_children(server):
    until = time.monotonic() + 120
    while len(children := children_of(server.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.1)
    return children


def begin_to_send(address):
    """Connect, and send the beginning of a file."""
    port = int(address.rstrip("/").rsplit(":", 1)[1])
    visitor = socket.create_connection(("127.0.0.1", port))
    head = f"POST /look HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 100000\r\n"
    visitor.sendall((head + "Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n").encode())
    return visitor


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_it_ends_with_all_its_processes_however_it_is_stopped_in_the_middle_of_a_request_too(how):
    with served("--port", "0") as (server, address, _):
        assert urllib.request.urlopen(address).status == 200
        with begin_to_send(address):
            children = wait_for_children(server)
            assert children
            server.send_signal(how)
            server.wait(120)
        assert gone(children)
        if how != signal.SIGKILL:
            assert "Traceback" not in server.stderr.read()


@pytest.mark.parametrize("wanted", [True, False])
def test_the_browser_opens_by_itself_unless_told_otherwise(monkeypatch, wanted):
    opened, said = [], []
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    server._announce(SimpleNamespace(started=True, should_exit=False), "http://here/", wanted, said.append)
    assert opened == (["http://here/"] if wanted else [])
    assert said[0] == "unbandit is at http://here/"


def test_a_port_that_is_taken_is_named_with_what_helps():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = subprocess.run([*PROGRAM, "--port", str(port)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"--port: {port} is taken" in done.stderr
    assert "--port 0" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--port", "70000"), "--port: expected a number from 0 to 65535"),
        (("--host", "no.such.host.invalid"), "--host: expected an address of this computer"),
        (("--max-upload", "0"), "--max-upload: expected a number above 0"),
    ],
)
def test_an_option_that_does_not_fit_is_named(options, words):
    done = subprocess.run([*PROGRAM, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert words in done.stderr


def test_other_computers_need_the_key_and_the_one_who_starts_it_is_warned():
    with served("--host", "0.0.0.0", "--port", "0") as (_, address, said):
        assert "warning: 0.0.0.0 lets other computers in" in said
        bare = address.partition("?")[0]
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(bare)
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        assert opener.open(address).status == 200
        assert opener.open(bare + "simulate").status == 200


@pytest.fixture(scope="module")
def page():
    with served("--port", "0", "--max-upload", "1") as (_, address, _):
        yield address


def test_a_file_much_too_large_gets_its_page_not_a_broken_connection(page):
    with pytest.raises(urllib.error.HTTPError, match="413") as refused:
        sent(page, bytes(40_000_000))
    assert "too large" in refused.value.read().decode()


def sent(address, data, boundary="x"):
    """Send a file to be looked at, and return the status and the page."""
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="log"; filename="log.csv"\r\n\r\n'.encode()
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    body = head + data + f"\r\n--{boundary}--\r\n".encode()
    with urllib.request.urlopen(urllib.request.Request(address + "look", body, kind), timeout=120) as response:
        return response.status, response.read().decode()


def test_fifty_at_once_are_answered_while_others_dawdle(page):
    with ExitStack() as opened:
        for _ in range(20):  # visitors who begin to send a file, and do not go on
            opened.enter_context(begin_to_send(page))
        files = [b"arm\nA\nB\n" + f"C{number}\n".encode() * 1_000 for number in range(50)]
        with ThreadPoolExecutor(50) as visitors:
            answers = list(visitors.map(lambda data: sent(page, data), files))
    assert [status for status, _ in answers] == [200] * 50
    for number, (_, text) in enumerate(answers):  # each got the answer to what was sent
        assert f"C{number}<" in text.replace("</", "<")


def test_two_hundred_silent_connections_neither_silence_the_page_nor_fill_the_console():
    with served("--port", "0", files=150) as (server, address, _), ExitStack() as opened:
        port = int(address.rstrip("/").rsplit(":", 1)[1])
        for _ in range(200):
            opened.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        for _ in range(5):
            assert urllib.request.urlopen(address, timeout=30).status == 200
        server.send_signal(signal.SIGINT)
        server.wait(120)
        assert server.stderr.read() == ""


def was_told(connection):
    """Return whether a visitor that made room got a status; it gets none if nothing of it had been read by then."""
    connection.settimeout(10)
    try:
        return connection.recv(1 << 16).startswith(b"HTTP/1.1 408")
    except ConnectionResetError:
        return False


def test_two_hundred_slow_uploads_neither_silence_the_page_nor_fill_the_console():
    with served("--port", "0", files=150) as (server, address, _), ExitStack() as opened:
        slow = [opened.enter_context(begin_to_send(address)) for _ in range(200)]
        begun = time.monotonic()
        for _ in range(5):
            assert urllib.request.urlopen(address, timeout=30).status == 200
        assert time.monotonic() - begun < 10
        status, text = sent(address, b"arm\nA\nB\n")  # a file that comes at once is read meanwhile
        assert status == 200
        assert "log.csv" in text
        assert any(was_told(each) for each in slow[:100])  # these made room
        server.send_signal(signal.SIGINT)
        server.wait(120)
        assert server.stderr.read() == ""


def test_without_its_parts_the_page_names_what_to_install():
    hidden = "import sys; sys.modules['uvicorn'] = None; from unbandit.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", hidden, "serve"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "pip install '.[web]'" in done.stderr
    assert "Traceback" not in done.stderr
