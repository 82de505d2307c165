"""Safety: who may ask, from where, how much and for how long; and the headers of every response."""

import asyncio
import hmac
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from unbandit.web.jobs import Limits
from unbandit.web.pages import failure
from unbandit.web.problems import BUSY, CROSS_SITE, NO_TOKEN, SLOW, STRANGE_HOST, Problem, Refusal, too_large

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

UPLOADS = ("/look", "/estimate")  # the addresses that take files
MOST_FORM_BYTES = 1024**2  # size of any other form


OWN_HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True)
class AccessPolicy:
    """Who may open the page."""

    hosts: frozenset[str] | None = OWN_HOSTS  # names under which it answers; None for any, safe only with a token
    token: str | None = None  # that a visitor must present


def show(problem: Problem) -> Response:
    """Return the page that says why something cannot be done."""
    return HTMLResponse(failure(problem), status_code=problem.status)


def guard(app: ASGIApp, policy: AccessPolicy, limits: Limits) -> ASGIApp:
    """Wrap an application in the access policy, the limits and the headers."""
    arriving = Arriving(limits.waiting)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = _refusal(scope, policy)
        if refused is not None:
            await refused(scope, receive, send_with_headers)
            return
        body = LimitedBody(scope, receive, limits, arriving)
        try:
            await app(scope, body, send_with_headers)
        finally:
            arriving.size -= body.held

    return answer


def _refusal(scope: Scope, policy: AccessPolicy) -> Response | None:
    """Return the response if the request may not pass: a refusal, or the redirect that sets the token's cookie."""
    headers = Headers(scope=scope)
    host = headers.get("host", "")
    if policy.hosts is not None and _without_port(host) not in policy.hosts:
        return show(STRANGE_HOST)
    if scope["method"] not in ("GET", "HEAD") and not _same_origin(headers, host):
        return show(CROSS_SITE)
    if policy.token is None:
        return None
    query = dict(parse_qsl(scope.get("query_string", b"").decode("latin-1")))
    if _same(query.pop("token", ""), policy.token):
        rest = f"?{urlencode(query)}" if query else ""
        response = RedirectResponse("/" + scope["path"].lstrip("/") + rest, status_code=303)
        response.set_cookie(COOKIE, policy.token, httponly=True, samesite="lax", path="/")
        return response
    cookie = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
    return None if _same(cookie, policy.token) else show(NO_TOKEN)


def _without_port(host: str) -> str:
    name, colon, port = host.lower().rpartition(":")
    return name if colon and port.isdigit() else host.lower()


def _same_origin(headers: Headers, host: str) -> bool:
    """Whether a request comes from a page of ours; programs other than browsers send no such headers and may pass."""
    site = headers.get("sec-fetch-site")
    if site is not None and site not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


@dataclass
class Arriving:
    """Bytes of all requests that are held at once, of those that have come: an announcement holds nothing."""

    most: int
    size: int = 0


class LimitedBody:
    """Body of a request; reading it raises if it is too large or too slow, or if too much is being sent by all.

    A body that is too large is read to its end and dropped, as long as time allows: a browser shows our response only
    after it has sent everything. `held` is the number of bytes of it that were counted in `arriving`.
    """

    def __init__(self, scope: Scope, receive: Receive, limits: Limits, arriving: Arriving) -> None:
        self._receive, self._too_large = receive, too_large(limits.upload)
        self._limits, self._arriving, self.held = limits, arriving, 0
        self._most = limits.upload * 4 // 3 + MOST_FORM_BYTES if scope.get("path") in UPLOADS else MOST_FORM_BYTES
        announced = Headers(scope=scope).get("content-length", "")
        self._large = announced.isdigit() and int(announced) > self._most
        self._begun = asyncio.get_running_loop().time()
        self._got, self._whole = 0, False

    async def __call__(self) -> Message:
        """Return the next part."""
        while not self._whole:
            try:
                async with asyncio.timeout_at(self._until()):
                    message = await self._receive()
            except TimeoutError:
                raise Refusal(self._too_large if self._large else SLOW) from None
            if message["type"] != "http.request":
                return message
            self._got += len(message.get("body", b""))
            self._large = self._large or self._got > self._most
            self._whole = not message.get("more_body", False)
            if not self._large:
                self._hold(len(message.get("body", b"")))
                return message
            if self._whole:
                raise Refusal(self._too_large)
        return await self._receive()

    def _until(self) -> float:
        """Return when the next part must be here: soon, and as early as the rate demands of all parts together."""
        limits = self._limits
        earned = min(self._got / limits.upload_rate + limits.upload_pause, limits.upload_seconds)
        return min(self._begun + earned, asyncio.get_running_loop().time() + limits.upload_pause)

    def _hold(self, size: int) -> None:
        if self._arriving.size + size > self._arriving.most:
            raise Refusal(BUSY)
        self._arriving.size += size
        self.held += size
