"""Connections of visitors: how many there may be, and how long one may do nothing; on top of uvicorn's protocol.

uvicorn waits for ever for the first request of a connection, and asyncio writes a traceback for every connection that
it has no file descriptor left for. So a connection that is silent for too long is closed; where there are too many,
the one that has kept us waiting for longest makes room for the next, be it silent or slow to send a file; and the
console gets one line for all that broke.
"""

import asyncio
import socket
from functools import partial
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from unbandit import checks
from unbandit.web.jobs import Limits
from unbandit.web.problems import Console

SECONDS_OF_SILENCE = 20.0  # that a visitor may neither finish a request nor take an answer at the least rate
LOOKS = 4  # at a connection within that time

MOST_AT_ONCE = 256  # connections, where there are file descriptors for them
ACCEPTED_AT_ONCE = 8  # connections that are accepted before those that are too many are closed
BACKLOG = 128  # connections that the system holds until they are accepted
FILES_OF_OUR_OWN, FILES_PER_WORKER = 64, 4  # file descriptors that the page needs besides connections
MAKES_ROOM = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


def most_connections() -> int:
    """Return how many connections there may be: each upload may need a second file descriptor for its file."""
    try:
        import resource
    except ImportError:
        return MOST_AT_ONCE
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return MOST_AT_ONCE
    left = files - FILES_OF_OUR_OWN - FILES_PER_WORKER * (checks.threads() + 2)
    return max(8, min(MOST_AT_ONCE, left // 2))


class VisitorConnection(H11Protocol):
    """A connection that is closed when it is silent for too long, and makes room for others while it waits."""

    most = most_connections()

    def __init__(self, *arguments: Any, limits: Limits, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._least_rate = limits.upload_rate  # bytes per second, either way

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, in place of the one that has been waiting for longest if there are too many."""
        super().connection_made(transport)
        self._active = self._heard = self._asked = self.loop.time()
        self._received, self._unsent = 0, 0
        self._next_look = self.loop.call_later(SECONDS_OF_SILENCE / LOOKS, self._look)
        opened = [each for each in self.connections if isinstance(each, VisitorConnection) and each._is_open()]
        if len(opened) > self.most:
            waiting = [each for each in opened if (each._waits() or each._uploads()) and each is not self]
            min(waiting, key=VisitorConnection._waiting_since, default=self)._make_room()

    def data_received(self, data: bytes) -> None:
        """Take what a visitor sends, and count it for the request that it belongs to."""
        before, self._heard = self.cycle, self.loop.time()
        super().data_received(data)
        if self.cycle is not before:
            self._asked, self._received = self._heard, 0
        self._received += len(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop looking at it."""
        self._next_look.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Begin to wait for the next request."""
        self._active = self.loop.time()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP, unless an answer has begun; whoever works on one must not send it any more."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()

    def _is_open(self) -> bool:
        return not self.transport.is_closing()

    def _waits(self) -> bool:
        """Return whether no request is being worked on."""
        return self.cycle is None or self.cycle.response_complete

    def _uploads(self) -> bool:
        """Return whether the rest of a request is still to come."""
        return not self._waits() and self.cycle.more_body

    def _waiting_since(self) -> float:
        """Return since when we wait for the visitor; whoever sends a file slowly kept us waiting for most of it."""
        if self._waits():
            return self._active
        return min(self._heard, self._asked + self._received / self._least_rate)

    def _make_room(self) -> None:
        """Close the connection; a visitor who was sending something gets a status, if it can be said at once."""
        if self._uploads() and not self.cycle.response_started and not self.transport.get_write_buffer_size():
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self.transport.write(MAKES_ROOM)
            self.transport.close()
        else:
            self.transport.abort()

    def _look(self) -> None:
        """Close the connection if too little came of it for too long; what is taken of an answer earns time."""
        unsent, now = self.transport.get_write_buffer_size(), self.loop.time()
        if not unsent and (self._unsent or not self._waits()):  # it has taken the answer, or waits for us
            self._active = now
        elif unsent < self._unsent:
            self._active = min(now, self._active + (self._unsent - unsent) / self._least_rate)
        self._unsent = unsent
        if now - self._active >= SECONDS_OF_SILENCE:
            self.transport.abort()
        else:
            self._next_look = self.loop.call_later(SECONDS_OF_SILENCE / LOOKS, self._look)


class PageServer(uvicorn.Server):
    """uvicorn's server for connections with these limits."""

    def __init__(self, app: Any, limits: Limits | None = None) -> None:
        connection: Any = partial(VisitorConnection, limits=limits or Limits())
        config = uvicorn.Config(
            app, http=connection, loop="asyncio", ws="none", backlog=ACCEPTED_AT_ONCE,
            log_level="critical", access_log=False, server_header=False, timeout_keep_alive=10,
            timeout_graceful_shutdown=3,
        )  # fmt: skip
        super().__init__(config)
        self._console = Console()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen; what fails outside of requests is said in a line, from time to time."""
        asyncio.get_running_loop().set_exception_handler(self._report)
        await super().startup(sockets)
        for listening in sockets or ():
            listening.listen(BACKLOG)

    def _report(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        reason = f" ({type(error).__name__}: {error})" if error is not None else ""
        self._console.say(f"unbandit: {context.get('message', 'a connection failed')}{reason}"[:300])
