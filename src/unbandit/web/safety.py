"""What every answer carries and every request must pass: who may ask, from where, how much, and for how long."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unbandit.web.model import Limits, Problem

__all__ = ["HEADERS", "OWN", "UPLOADS", "Doors", "TooLarge", "TooSlow", "guarded"]

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}

COOKIE = "unbandit-token"

UPLOADS = ("/look", "/estimate")
"""The addresses that take files; nothing large is sent anywhere else."""

FORM = 1024**2
"""Bytes that any other form may have."""

Show = Callable[[Problem], str]


class TooLarge(Exception):
    """Say that a request is larger than allowed; the rest of it was read and thrown away."""


class TooSlow(Exception):
    """Say that a request took too long to arrive."""


OWN = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True)
class Doors:
    """Say who may come in.

    Attributes
    ----------
    hosts
        The names that this computer may be called by; None for any, which only a token makes safe.
    token
        What a visitor must bring, if anything.
    """

    hosts: frozenset[str] | None = OWN
    token: str | None = None


STRANGE_HOST = Problem(
    "This address is not known here",
    "The page answers only under the address that it printed when it was started.",
    "Open that address.",
    403,
)
CROSS_SITE = Problem(
    "This was sent from another page",
    "Another website tried to send something to this one, and was refused.",
    "Begin again from this page itself.",
    403,
)
NO_TOKEN = Problem(
    "A key is needed",
    "This page was opened to other computers, so it asks for the key in the address that was printed when it started.",
    "Open the whole address, with everything after the question mark.",
    403,
)
BUSY = Problem(
    "Too much is being sent at once", "Other visitors are sending large files just now.", "Try again in a minute.", 503
)


def guarded(app: ASGIApp, doors: Doors, limits: Limits, show: Show) -> ASGIApp:
    """Put the doors, the limits and the headers around an application."""

    arriving = 0

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal arriving
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        measured = _Measured(scope, receive, limits)
        refused = _at_the_door(scope, doors, show)
        if refused is None and measured.expected and arriving + measured.expected > limits.waiting:
            refused = _page(BUSY, show)
        if refused is not None:
            await refused(scope, receive, send_with_headers)
            return
        arriving += measured.expected
        try:
            await app(scope, measured, send_with_headers)
        finally:
            arriving -= measured.expected

    return answer


def _at_the_door(scope: Scope, doors: Doors, show: Show) -> Response | None:
    """Return the refusal, or the way in, if the request may not simply pass."""
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if doors.hosts is not None and _without_port(host) not in doors.hosts:
        return _page(STRANGE_HOST, show)
    if scope["method"] not in ("GET", "HEAD") and not _from_here(headers, host):
        return _page(CROSS_SITE, show)
    if doors.token is None:
        return None
    query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
    if _same(query.pop("token", ""), doors.token):
        rest = f"?{urlencode(query)}" if query else ""
        response = RedirectResponse("/" + scope["path"].lstrip("/") + rest, status_code=303)
        response.set_cookie(COOKIE, doors.token, httponly=True, samesite="lax", path="/")
        return response
    return None if _same(_cookie(headers), doors.token) else _page(NO_TOKEN, show)


def _page(problem: Problem, show: Show) -> Response:
    return HTMLResponse(show(problem), status_code=problem.status)


def _without_port(host: str) -> str:
    """Return a host's name.

    Examples
    --------
    >>> _without_port("localhost:80"), _without_port("[::1]:80"), _without_port("127.0.0.1")
    ('localhost', '[::1]', '127.0.0.1')
    """
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()


def _from_here(headers: Headers, host: str) -> bool:
    """Tell whether something sent comes from a page of ours; programs that are no browsers say nothing, and may."""
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _cookie(headers: Headers) -> str:
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


class _Measured:
    """Receive a request, and give up on one that is too large or too slow.

    What is too large is read to its end and thrown away, as long as time allows: a browser shows our page only after
    it could send all it wanted.

    Attributes
    ----------
    expected
        Bytes that will be kept for a while: as many as are announced, or else as many as are allowed.
    """

    def __init__(self, scope: Scope, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._most = limits.upload * 4 // 3 + FORM if scope.get("path") in UPLOADS else FORM
        headers = Headers(scope=scope)
        said = headers.get("content-length", "")
        self._large = said.isdigit() and int(said) > self._most
        kept = int(said) if said.isdigit() else self._most if "transfer-encoding" in headers else 0
        self.expected = 0 if self._large else kept
        self._until = asyncio.get_running_loop().time() + limits.upload_seconds
        self._got, self._whole = 0, False

    async def __call__(self) -> Message:
        while not self._whole:
            try:
                async with asyncio.timeout_at(self._until):
                    message = await self._receive()
            except TimeoutError:
                raise (TooLarge if self._large else TooSlow) from None
            if message["type"] != "http.request":
                return message
            self._got += len(message.get("body", b""))
            self._large = self._large or self._got > self._most
            self._whole = not message.get("more_body", False)
            if not self._large:
                return message
            if self._whole:
                raise TooLarge
        return await self._receive()
