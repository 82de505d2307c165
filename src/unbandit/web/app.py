"""The page's addresses, and what stands behind each."""

from __future__ import annotations

import asyncio
import math
import sys
import traceback
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from unbandit.demonstrators import parse_rule
from unbandit.errors import UnbanditError
from unbandit.estimators.request import draws
from unbandit.reporting import stylesheet as report_stylesheet
from unbandit.web import pages
from unbandit.web.carrying import cleaned
from unbandit.web.desk import Desk, Full
from unbandit.web.examples import EXAMPLES
from unbandit.web.forms import FieldErrors, read_columns, read_options, read_rule, read_simulation
from unbandit.web.jobs import Job
from unbandit.web.looking import Brought
from unbandit.web.model import Limits, Problem
from unbandit.web.safety import UPLOADS, Doors, TooLarge, TooSlow, guarded
from unbandit.web.wording import BROKEN, problem_of

__all__ = ["create_app"]

PATIENCE = 0.9
"""Seconds to wait for work before the visitor is shown that it goes on."""

MOST_FIELDS, LONGEST_FIELD = 2_000, 100_000

LIGHT = 8 * 1024**2
"""Bytes of a log that is surely read in a moment."""

GO_BACK = {"cache-control": "private, no-cache"}
"""For pages that the browser keeps, with the file that they carry, so that one can go back and ask otherwise."""

FULL = Problem(
    "Too many are asking at once", "There is no room for another piece of work just now.", "Try again in a minute.", 503
)
GONE = Problem(
    "This answer is no longer here",
    "Answers are kept for a short while only, and not at all once the page was stopped or they were forgotten.",
    "Ask again.",
    404,
)
SLOW = Problem("The file did not arrive", "It took too long to be sent.", "Try again, or take a smaller file.", 408)
NOTHING = Problem(
    "There is no file", "Nothing was chosen, or the file is empty.", "Choose a file, or try an example.", 422
)
BAD_FORM = Problem("The form did not arrive whole", "What was sent could not be read.", "Go back and try again.", 400)
NOWHERE = Problem("There is nothing here", "No page has this address.", "", 404)


def create_app(limits: Limits | None = None, doors: Doors | None = None, workers: int | None = None) -> ASGIApp:
    """Return the page as an application for any ASGI server; its processes begin with it and end with it.

    Parameters
    ----------
    limits
        How much one visitor may ask for.
    doors
        Who may come in; by default this computer alone.
    workers
        How many processes do the work.
    """
    bounds = limits or Limits()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.desk = Desk(bounds, workers)
        try:
            yield
        finally:
            await asyncio.to_thread(app.state.desk.close)

    app = Starlette(
        routes=[
            Route("/", _home),
            Route("/look", _look, methods=["GET", "POST"]),
            Route("/estimate", _estimate, methods=["POST"]),
            Route("/simulate", _simulate, methods=["GET", "POST"]),
            Route("/jobs/{id}", _job),
            Route("/jobs/{id}/state", _state),
            Route("/jobs/{id}/cancel", _cancel, methods=["POST"]),
            Route("/jobs/{id}/forget", _forget, methods=["POST"]),
            Route("/jobs/{id}/files/{name}", _file),
            Route("/report.css", _text(report_stylesheet, "text/css")),
            Route("/site.css", _text(pages.stylesheet, "text/css")),
            Route("/page.js", _text(pages.script, "text/javascript")),
            Route("/icon.svg", _text(pages.icon, "image/svg+xml")),
        ],
        exception_handlers={
            TooLarge: _too_large, TooSlow: _too_slow, Full: _full, UnbanditError: _refused, HTTPException: _http,
            ClientDisconnect: _gone_away, Exception: _broken,
        },
        lifespan=lifespan,
    )  # fmt: skip
    app.state.limits = bounds
    return guarded(app, doors or Doors(), bounds, pages.failure)


async def _home(request: Request) -> Response:
    return HTMLResponse(pages.home(EXAMPLES, request.app.state.limits))


async def _look(request: Request) -> Response:
    if request.method == "GET":
        name = request.query_params.get("example", "")
        form = next((dict(each.form) for each in EXAMPLES if each.name == name), None)
        if form is None:
            return _show(NOWHERE)
        return await _looked(request, _example(name), form, {})
    form, brought = await _received(request)
    return _show(NOTHING) if brought is None else await _looked(request, brought, form, {})


async def _estimate(request: Request) -> Response:
    form, brought = await _received(request)
    if brought is None:
        return _show(NOTHING)
    errors: dict[str, str] = {}
    columns, arms = _read(read_columns, form, errors) or (None, None)
    rule = _read(read_rule, form, errors)
    options = _read(read_options, form, errors)
    if errors:
        return await _looked(request, brought, form, errors)
    if rule is None:
        work: tuple[Any, ...] = ("identify", brought, columns, arms, options)
        title = f"Which rule made {brought.name}?"
    else:
        work = ("estimate", brought, columns, arms, rule, options)
        title = f"Estimate from {brought.name}"
    quick = _quick(rule, options) and brought.weight <= LIGHT
    return await _started(request, _desk(request).submit(title, *work, weight=brought.weight, quick=quick))


async def _simulate(request: Request) -> Response:
    if request.method == "GET":
        return HTMLResponse(pages.simulate({}, {}), headers=GO_BACK)
    form, _ = await _received(request)
    errors: dict[str, str] = {}
    simulation = _read(read_simulation, form, errors)
    if errors or simulation is None:
        return HTMLResponse(pages.simulate(form, errors), status_code=422, headers=GO_BACK)
    quick = _quick(simulation.rule, {}) and simulation.horizon <= 100_000
    return await _started(request, _desk(request).submit(simulation.title, "simulate", simulation, quick=quick))


async def _job(request: Request) -> Response:
    job = _found(request)
    if job is None:
        return _show(GONE)
    if not job.over.is_set():
        return HTMLResponse(pages.waiting(job.id, _desk(request).progress(job)))
    if job.problem is not None:
        return HTMLResponse(pages.failure(job.problem, job.id), status_code=job.problem.status)
    return HTMLResponse(pages.answer(job.id, job.result))


async def _state(request: Request) -> Response:
    job = _found(request)
    if job is None:
        return JSONResponse({"state": "gone"}, status_code=404)
    seen = _desk(request).progress(job)
    return JSONResponse(
        {"state": seen.state, "stage": seen.stage, "share": seen.share, "seconds": round(seen.seconds, 1),
         "ahead": seen.ahead}
    )  # fmt: skip


async def _cancel(request: Request) -> Response:
    job = _found(request)
    if job is None:
        return _show(GONE)
    _desk(request).cancel(job)
    await _over(job, 5.0)
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


async def _forget(request: Request) -> Response:
    job = _found(request)
    if job is not None:
        _desk(request).forget(job)
    return RedirectResponse("/", status_code=303)


async def _file(request: Request) -> Response:
    job = _found(request)
    files = {each.name: each for each in getattr(job.result, "downloads", ())} if job is not None else {}
    asked = files.get(request.path_params["name"])
    if asked is None:
        return _show(GONE)
    shown = {"content-disposition": f"attachment; filename*=utf-8''{quote(asked.name)}"}
    return Response(asked.data, media_type=asked.media_type, headers=shown)


def _text(make: Any, media_type: str) -> Any:
    """Return what serves a text of our own, made once."""
    text = make()

    async def serve(request: Request) -> Response:
        return Response(text, media_type=media_type, headers={"cache-control": "no-cache"})

    return serve


def _desk(request: Request) -> Desk:
    desk: Desk = request.app.state.desk
    return desk


def _found(request: Request) -> Job | None:
    return _desk(request).find(request.path_params["id"])


def _example(name: str) -> Brought:
    title = next((each.title for each in EXAMPLES if each.name == name), name)
    return Brought(name=f"{title} (an example)", example=name)


async def _received(request: Request) -> tuple[dict[str, str], Brought | None]:
    """Read a form: its fields, and the log that it brings, if it does."""
    limits: Limits = request.app.state.limits
    brings = request.headers.get("content-type", "").startswith("multipart/") and request.url.path in UPLOADS
    most = limits.upload * 4 // 3 + 1024 if brings else LONGEST_FIELD
    async with request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=most) as sent:
        fields = {key: value for key, value in sent.multi_items() if isinstance(value, str)}
        file = sent.get("log")
        if isinstance(file, UploadFile) and file.filename:
            if (file.size or 0) > limits.upload:
                raise TooLarge
            data = await file.read()
            return fields, Brought(cleaned(file.filename), data=data) if data else None
    if any(fields.get("example") == each.name for each in EXAMPLES):
        return fields, _example(fields["example"])
    if fields.get("carried"):
        return fields, Brought(cleaned(fields.get("carried_name", "")), carried=fields.pop("carried"))
    return fields, None


async def _looked(request: Request, brought: Brought, form: Mapping[str, str], errors: dict[str, str]) -> Response:
    """Show what was understood of a log, with the form below it."""
    columns, arms = _read(read_columns, form, errors) or (None, None)
    job = _desk(request).submit(
        f"Reading {brought.name}", "look", brought, columns, arms, weight=brought.weight, quick=True
    )
    await _over(job, math.inf)
    if job.problem is not None:
        return _show(job.problem)
    seen, status = job.result, 422 if errors or job.result.problem else 200
    _desk(request).forget(job)
    return HTMLResponse(pages.look(seen, form, errors, request.app.state.limits), status, headers=GO_BACK)


async def _started(request: Request, job: Job) -> Response:
    """Wait a moment, for most work is done in one, and send the visitor to where the answer is or will be."""
    await _over(job, PATIENCE)
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


async def _over(job: Job, seconds: float) -> None:
    """Wait until a piece of work is over, but no longer than so; meanwhile others are answered."""
    pause, until = 0.005, asyncio.get_running_loop().time() + seconds
    while not job.over.is_set() and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(pause)
        pause = min(1.2 * pause, 0.05)


def _read(reader: Any, form: Mapping[str, str], errors: dict[str, str]) -> Any:
    """Read a part of a form; what is wrong is gathered."""
    try:
        return reader(form)
    except FieldErrors as wrong:
        errors.update(wrong.errors)
        return None


def _quick(rule: str | None, options: Mapping[str, Any]) -> bool:
    """Tell whether an estimate surely takes a moment only: an equation, no draws."""
    return rule is not None and not draws(options.get("method"), parse_rule(rule))


def _show(problem: Problem) -> Response:
    return HTMLResponse(pages.failure(problem), status_code=problem.status)


async def _too_large(request: Request, error: Exception) -> Response:
    limit = request.app.state.limits.upload // 1024**2
    return _show(
        Problem(
            "This file is too large for the page",
            f"A file may have up to {limit:,} MB here.",
            "Pack it with gzip or write it as Parquet, or use the command line, which has no such limit.",
            413,
        )
    )


async def _too_slow(request: Request, error: Exception) -> Response:
    return _show(SLOW)


async def _full(request: Request, error: Exception) -> Response:
    return _show(FULL)


async def _refused(request: Request, error: Exception) -> Response:
    return _show(problem_of(error))


async def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    if status == 405:
        return RedirectResponse("/", status_code=303)
    return _show(NOWHERE if status == 404 else BAD_FORM)


async def _gone_away(request: Request, error: Exception) -> Response:
    return Response(status_code=400)


async def _broken(request: Request, error: Exception) -> Response:
    traceback.print_exception(error, file=sys.stderr)
    return _show(BROKEN)
