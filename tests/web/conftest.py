"""The page as an application, with its processes, for all tests of this folder."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the web page needs the extra web")

from starlette.testclient import TestClient

from unbandit.web.app import create_app
from unbandit.web.jobs import Limits

LIMITS = Limits(upload=3_000_000, unpacked=20_000_000, rows=200_000, seconds=600)

HERE = "http://127.0.0.1:8350"


@pytest.fixture(scope="session")
def client():
    app = create_app(LIMITS, workers=2)
    with TestClient(app, base_url=HERE, raise_server_exceptions=False) as opened:
        yield opened
