"""Connections that say nothing or nonsense, or take no answer: each ends by itself, and others are served."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress

import pytest

pytest.importorskip("uvicorn", reason="the web page needs the extra web")

from unbandit.web import connections
from unbandit.web.connections import PageServer, VisitorConnection
from unbandit.web.jobs import Limits
from unbandit.web.problems import Console

LARGE = 30_000_000  # bytes of an answer that no socket holds
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def application(scope, receive, send):
    """Answer with a few bytes, with many, or only after the request has come whole."""
    assert scope["type"] == "http"
    if scope["path"] == "/upload":
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.disconnect":
            return
    if scope["path"] == "/later":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})
        await receive()
        await asyncio.sleep(0.3)
    else:
        await send({"type": "http.response.start", "status": 200, "headers": []})
    body = bytes(LARGE) if scope["path"] == "/large" else b"hello"
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def limits():
    return Limits()


@pytest.fixture
def port(monkeypatch, limits):
    monkeypatch.setattr(connections, "SECONDS_OF_SILENCE", 0.6)
    monkeypatch.setattr(VisitorConnection, "most", 5)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = PageServer(application, limits)
        server.config.lifespan = "off"
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield listening.getsockname()[1]
        server.should_exit = True
        thread.join()


@contextmanager
def visitor(port):
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connected:
        yield connected


def is_closed(connected, seconds=5.0):
    """Return whether the other end closes a connection; what it sends is dropped."""
    connected.settimeout(seconds)
    try:
        while connected.recv(1 << 20):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


@pytest.mark.parametrize("before", [b"", GET], ids=["first request", "second request"])
@pytest.mark.parametrize("dribble", [b"", b"G"], ids=["silent", "slow"])
def test_a_request_that_does_not_come_ends_its_connection(port, before, dribble):
    with visitor(port) as connected:
        connected.sendall(before)
        begun = time.monotonic()
        connected.settimeout(0.05)
        with suppress(BrokenPipeError, ConnectionResetError):
            while time.monotonic() - begun < 5:
                connected.sendall(dribble or b"")
                with suppress(TimeoutError):
                    if not connected.recv(1 << 16):
                        break
        assert 0.3 < time.monotonic() - begun < 4


def test_a_body_that_nobody_waits_for_ends_its_connection(port):
    with visitor(port) as connected:
        connected.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        begun = time.monotonic()
        with suppress(OSError):  # a reset or a broken pipe
            while time.monotonic() - begun < 5:
                connected.sendall(b"x")
                time.sleep(0.05)
        assert time.monotonic() - begun < 5


def test_whoever_takes_a_long_answer_slowly_gets_it_and_whoever_takes_none_does_not(port):
    with visitor(port) as slow, visitor(port) as stuck:
        for connected in (slow, stuck):
            connected.sendall(GET.replace(b"/ ", b"/large ", 1))
        got, begun = 0, time.monotonic()
        while got < LARGE and time.monotonic() - begun < 30:
            got += len(slow.recv(1_000_000))
            time.sleep(0.02)
        assert got >= LARGE
        assert time.monotonic() - begun > 0.6  # longer than anyone may be silent
        assert is_closed(stuck)


@pytest.mark.parametrize("limits", [Limits(upload_rate=1e9)])
def test_whoever_takes_a_long_answer_more_slowly_than_the_least_rate_does_not_get_it(port):
    with visitor(port) as slow:
        slow.sendall(GET.replace(b"/ ", b"/large ", 1))
        got, begun = 0, time.monotonic()
        with suppress(ConnectionError):
            while time.monotonic() - begun < 30 and (part := slow.recv(100_000)):
                got += len(part)
                time.sleep(0.02)
        assert 0 < got < LARGE
        assert time.monotonic() - begun > 0.6


def test_too_many_connections_make_room_for_the_next(port):
    with ExitStack() as opened:
        silent = [opened.enter_context(visitor(port)) for _ in range(20)]
        for _ in range(3):
            with visitor(port) as connected:
                connected.sendall(GET)
                assert connected.recv(1 << 16).startswith(b"HTTP/1.1 200")
        assert sum(is_closed(each, 0.01) for each in silent) >= 15


UPLOAD = b"POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n"


def test_slow_uploads_make_room_and_quick_ones_stay(port):
    with ExitStack() as opened:
        quick = opened.enter_context(visitor(port))
        quick.sendall(UPLOAD)
        slow = []
        for _ in range(20):
            slow.append(opened.enter_context(visitor(port)))
            slow[-1].sendall(UPLOAD + b"12345")
            time.sleep(0.01)
            quick.sendall(bytes(4_500))
            time.sleep(0.01)
        with visitor(port) as connected:
            connected.sendall(GET)
            assert connected.recv(1 << 16).startswith(b"HTTP/1.1 200")
        answers = [each.recv(1 << 16) for each in slow[:15]]
        assert all(each.startswith(b"HTTP/1.1 408") for each in answers)
        quick.sendall(bytes(10_000))
        assert quick.recv(1 << 16).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", [b"/later", b"/"])
def test_nonsense_in_the_middle_of_an_answer_leaves_no_traceback(port, path, capfd):
    head = b"POST " + path + b" HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with visitor(port) as connected:
        connected.sendall(head)
        time.sleep(0.1)
        connected.sendall(b"no chunk at all\r\n")
        assert is_closed(connected)
    with visitor(port) as connected:
        connected.sendall(b"no HTTP at all\r\n\r\n")
        assert connected.recv(1 << 16).startswith(b"HTTP/1.1 400")
    time.sleep(0.5)  # until the application is done
    assert capfd.readouterr().err == ""


def test_the_console_is_not_filled(capfd):
    console = Console(pause=0.2)
    for number in range(1_000):
        console.say(f"line {number}")
    time.sleep(0.25)
    console.show(ValueError("the last"))
    shown = capfd.readouterr().err.splitlines()
    assert shown == ["line 0", "unbandit: 999 more were left out.", "ValueError: the last"]


def test_the_console_obeys_no_cell(capfd):
    try:
        raise ValueError("\x1b[2Jcell\r\u202e")
    except ValueError as error:
        Console().show(error)
    shown = capfd.readouterr().err.splitlines()
    assert shown[0] == "Traceback (most recent call last):"
    assert shown[-1] == r"ValueError: \x1b[2Jcell\r\u202e"


def test_what_fails_outside_of_requests_is_one_line(capfd):
    server = PageServer(application)
    for _ in range(100):
        server._report(
            None, {"message": "socket.accept() out of system resource", "exception": OSError(24, "Too many")}
        )
    assert capfd.readouterr().err == "unbandit: socket.accept() out of system resource (OSError: [Errno 24] Too many)\n"
