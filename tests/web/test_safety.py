"""Who may come in, from where, and how much they may bring."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from unbandit.web.app import create_app
from unbandit.web.jobs import Limits
from unbandit.web.problems import Refusal
from unbandit.web.safety import COOKIE, AccessPolicy, Arriving, LimitedBody

HERE = "http://127.0.0.1:8350"


@pytest.fixture(scope="module")
def token_client():
    app = create_app(Limits(), AccessPolicy(hosts=None, token="a-long-secret"), workers=1)
    with TestClient(app, base_url="http://192.168.0.7:8350", raise_server_exceptions=False) as opened:
        yield opened


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8350", ""])
def test_a_strange_host_is_refused(client, host):
    response = client.get("/", headers={"host": host})
    assert response.status_code == 403
    assert "content-security-policy" in response.headers


@pytest.mark.parametrize("host", ["127.0.0.1:8350", "localhost:8350", "localhost", "[::1]:8350"])
def test_this_computer_is_known_by_its_names(client, host):
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://[x"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("address", ["/look", "/estimate", "/simulate", "/jobs/x/cancel", "/jobs/x/forget"])
def test_what_another_site_sends_is_refused(client, address, headers):
    response = client.post(address, data={"rule": "ucb"}, headers=headers)
    assert response.status_code == 403
    assert "another page" in response.text


@pytest.mark.parametrize("headers", [{"origin": HERE, "sec-fetch-site": "same-origin"}, {}])
def test_what_our_page_or_a_program_sends_is_taken(client, headers):
    assert client.post("/look", data={"rule": "ucb"}, headers=headers).status_code == 422


def test_a_token_is_asked_for_and_kept(token_client):
    assert token_client.get("/").status_code == 403
    assert token_client.get("/?token=wrong").status_code == 403
    assert token_client.get("/", headers={"cookie": f"{COOKIE}=wrong"}).status_code == 403
    assert token_client.post("/simulate", data={}).status_code == 403
    token_client.cookies.clear()
    entered = token_client.get("/simulate?token=a-long-secret", follow_redirects=False)
    assert entered.status_code == 303
    assert entered.headers["location"] == "/simulate"
    kept = entered.headers["set-cookie"].lower()
    assert "httponly" in kept
    assert "samesite=lax" in kept
    assert token_client.get("/").status_code == 200
    token_client.cookies.clear()
    odd = {"cookie": f"a b=1; bad,name=2; {COOKIE}=a-long-secret"}
    assert token_client.get("/", headers=odd).status_code == 200
    away = token_client.get("http://192.168.0.7:8350//evil.example/?token=a-long-secret", follow_redirects=False)
    assert away.headers["location"] == "/evil.example/"
    token_client.get("/?token=a-long-secret")
    assert "a-long-secret" not in token_client.get("/").text


def received(messages, limits, headers=(), path="/look", arriving=None):
    """Read a request that comes in parts; return how many bytes were handed on."""
    parts = iter(messages)

    async def receive():
        part = next(parts)
        if isinstance(part, float):
            await asyncio.sleep(part)
            part = next(parts)
        return part

    async def read():
        scope = {"type": "http", "path": path, "headers": list(headers)}
        body = LimitedBody(scope, receive, limits, arriving or Arriving(limits.waiting))
        total = 0
        while True:
            message = await body()
            total += len(message.get("body", b""))
            if not message.get("more_body"):
                return total

    with ThreadPoolExecutor(1) as thread:  # a browser test may have left an event loop in this one
        return thread.submit(asyncio.run, read()).result()


def part(size, more=True):
    return {"type": "http.request", "body": bytes(size), "more_body": more}


SMALL = Limits(upload=3_000_000, upload_seconds=0.2)


def test_what_fits_is_handed_on():
    assert received([part(1_000_000), part(2_000_000), part(0, more=False)], SMALL) == 3_000_000


def test_what_is_too_large_is_read_to_its_end_and_not_handed_on():
    with pytest.raises(Refusal, match="too large"):
        received([part(1_000_000)] * 100 + [part(0, more=False)], SMALL)


def test_what_says_that_it_is_too_large_is_not_handed_on_at_all():
    with pytest.raises(Refusal, match="too large"):
        received([part(10, more=False)], SMALL, [(b"content-length", b"2000000000")])


def test_only_addresses_that_take_files_take_much():
    with pytest.raises(Refusal, match="too large"):
        received([part(1_000_000), part(1_000_000, more=False)], SMALL, path="/simulate")


def test_what_comes_too_slowly_is_given_up():
    with pytest.raises(Refusal, match="did not arrive"):
        received([part(10), 5.0, part(10, more=False)], SMALL)


DRIBBLE = Limits(upload_rate=100_000.0, upload_pause=0.2)


def test_what_comes_byte_by_byte_is_given_up_long_before_its_time_is_over():
    begun = time.monotonic()
    with pytest.raises(Refusal, match="did not arrive"):
        received([0.02, part(5)] * 1_000 + [part(0, more=False)], DRIBBLE, [(b"content-length", b"100000")])
    assert time.monotonic() - begun < 2


def test_what_comes_slowly_but_steadily_is_handed_on():
    steady = [0.01, part(10_000)] * 10 + [part(0, more=False)]  # ten times as fast as it must, for busy machines
    assert received(steady, DRIBBLE) == 100_000


def test_a_pause_ends_also_what_came_quickly():
    with pytest.raises(Refusal, match="did not arrive"):
        received([part(3_000_000), 5.0, part(10, more=False)], DRIBBLE)


def test_an_announcement_takes_no_room_and_what_comes_does():
    announced = [(b"content-length", b"50000000")]
    arriving = Arriving(1_000_000, size=900_000)
    assert received([part(50_000), part(0, more=False)], Limits(), announced, arriving=arriving) == 50_000
    assert arriving.size == 950_000
    with pytest.raises(Refusal, match="Too much"):
        received([part(60_000), part(0, more=False)], Limits(), announced, arriving=arriving)
