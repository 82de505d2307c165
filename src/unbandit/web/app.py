"""The page as an ASGI application: its addresses, and the handler of each."""

import asyncio
import math
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from unbandit.demonstrators import Demonstrator
from unbandit.demonstrators.base import rule_or_family
from unbandit.errors import OutputError, UnbanditError
from unbandit.estimators.arguments import draws
from unbandit.reporting import stylesheet as report_stylesheet
from unbandit.reporting.pdf import installed_browser, write_pdf
from unbandit.web import pages, problems
from unbandit.web.examples import EXAMPLES
from unbandit.web.fields import collect
from unbandit.web.forms import (
    ANY_RULE,
    KNOWN,
    MORE,
    ReadAs,
    missing_mean,
    read_columns,
    read_context_options,
    read_linear_rule,
    read_options,
    read_rule,
    read_simulation,
    rule_with_form,
)
from unbandit.web.jobs import Download, Job, JobQueue, Limits
from unbandit.web.preview import Upload, clean_name
from unbandit.web.problems import BROKEN, Console, Refusal, problem_of
from unbandit.web.safety import UPLOADS, AccessPolicy, guard, show

WAIT_SECONDS = 0.9  # time to wait for a job before the visitor is shown its progress

PDF, PRINT_SECONDS = "report.pdf", 60.0

MOST_FIELDS, LONGEST_FIELD = 2_000, 100_000

MOST_QUICK_BYTES = 8 * 1024**2  # size of a log that is certain to be read in a moment

OPTIONS = frozenset(field.name for field in (*KNOWN, *MORE))
"""Options of an estimate that have a field of their name."""

GO_BACK = {"cache-control": "private, no-cache"}
"""For pages that the browser may keep, with the file in their form, so that the visitor can go back to them."""


EXPLAINED = (Refusal, UnbanditError, HTTPException, ClientDisconnect, Exception)
"""Exceptions that are answered with a page."""


def create_app(limits: Limits | None = None, policy: AccessPolicy | None = None, workers: int | None = None) -> ASGIApp:
    """Return the page as an ASGI application; its worker processes start and end with it.

    By default only this computer may open it.
    """
    bounds = limits or Limits()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.queue, app.state.printer = JobQueue(bounds, workers), asyncio.Lock()  # one browser at a time
        try:
            yield
        finally:
            await asyncio.to_thread(app.state.queue.close)

    app = Starlette(
        routes=[
            Route("/", _home),
            Route("/look", _preview, methods=["GET", "POST"]),
            Route("/estimate", _estimate, methods=["POST"]),
            Route("/simulate", _simulate, methods=["GET", "POST"]),
            Route("/rules/{name:path}", _rule),
            Route("/jobs/{id}", _job),
            Route("/jobs/{id}/state", _state),
            Route("/jobs/{id}/cancel", _cancel, methods=["POST"]),
            Route("/jobs/{id}/forget", _forget, methods=["POST"]),
            Route("/jobs/{id}/files/{name}", _file),
            Route("/report.css", _text(report_stylesheet(), "text/css"), methods=["GET"]),
            Route("/site.css", _text(pages.stylesheet(), "text/css"), methods=["GET"]),
            Route("/page.js", _text(pages.static("page.js"), "text/javascript"), methods=["GET"]),
            Route("/icon.svg", _text(pages.static("icon.svg"), "image/svg+xml"), methods=["GET"]),
        ],
        exception_handlers=dict.fromkeys(EXPLAINED, _explain),
        lifespan=lifespan,
    )
    app.state.limits, app.state.console = bounds, Console()
    return guard(app, policy or AccessPolicy(), bounds)


async def _home(request: Request) -> Response:
    return HTMLResponse(pages.home(EXAMPLES.values(), request.app.state.limits))


async def _preview(request: Request) -> Response:
    if request.method == "GET":
        example = EXAMPLES.get(request.query_params.get("example", ""))
        if example is None:
            raise Refusal(problems.NO_PAGE)
        return await _show_preview(request, Upload.of_example(example), example.form, {})
    form, upload = await _read_upload(request)
    return await _show_preview(request, upload, form, {})


async def _estimate(request: Request) -> Response:
    form, upload = await _read_upload(request)
    errors: dict[str, str] = {}
    reading = collect(errors, read_columns, form) or ReadAs()
    if form.get("contexts") == "on":
        return await _estimate_contexts(request, upload, form, reading, errors)
    rule = collect(errors, read_rule, form)
    options = collect(errors, read_options, form) or {}
    people = options.pop("population", False)
    if people and rule is None and "rule" not in errors:
        errors["rule"] = "Expected a rule for people, whose numbers are to be found; got none."
    if rule is not None and not errors and not people:
        errors |= missing_mean(rule, options)
    if errors:
        return await _show_preview(request, upload, form, errors)
    if people:
        work: tuple[Any, ...] = ("population", upload, reading, rule, options)
        title = f"The people of {upload.name}"
    elif form.get("rule") == ANY_RULE:
        work = ("survey", upload, reading, options)
        title = f"Which rules fit {upload.name}?"
    elif rule is None:
        work = ("identify", upload, reading, options)
        title = f"Which rule made {upload.name}?"
    else:
        work = ("estimate", upload, reading, rule, options)
        title = f"Estimate from {upload.name}"
    quick = not people and _quick(rule, options) and upload.weight <= MOST_QUICK_BYTES
    job = _queue(request).submit(title, *work, weight=upload.weight, quick=quick)
    await _wait(job, WAIT_SECONDS)
    if job.over.is_set() and job.problem is not None and job.problem.parameter in OPTIONS:  # only the log shows it
        _queue(request).forget(job)
        return await _show_preview(request, upload, form, {job.problem.parameter: job.problem.at_field})
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


async def _estimate_contexts(
    request: Request, upload: Upload, form: Mapping[str, str], reading: ReadAs, errors: dict[str, str]
) -> Response:
    if not reading.features:
        errors["features"] = "Expected the columns by which the learner chose; got none. Choose at least one."
    any_rule = form.get("rule") == ANY_RULE
    rule = None if any_rule else collect(errors, read_linear_rule, form)
    options = collect(errors, read_context_options, form)
    if errors or options is None:
        return await _show_preview(request, upload, form, errors)
    work = ("survey", upload, reading, options) if any_rule else ("contexts", upload, reading, rule, options)
    title = f"Which rules fit {upload.name}?" if any_rule else f"Estimate from {upload.name}"
    return await _started(request, _queue(request).submit(title, *work, weight=upload.weight))


async def _simulate(request: Request) -> Response:
    if request.method == "GET":
        return HTMLResponse(pages.simulate({}, {}), headers=GO_BACK)
    form, _ = await _read_request(request)
    errors: dict[str, str] = {}
    simulation = collect(errors, read_simulation, form)
    if simulation is None:
        return HTMLResponse(pages.simulate(form, errors), status_code=422, headers=GO_BACK)
    quick = _quick(simulation.rule, {}) and simulation.horizon <= 100_000
    return await _started(request, _queue(request).submit(simulation.title, "simulate", simulation, quick=quick))


async def _rule(request: Request) -> Response:
    found = rule_with_form(request.path_params["name"])
    if found is None:
        raise Refusal(problems.NO_PAGE)
    return HTMLResponse(pages.rule(*found))


async def _job(request: Request) -> Response:
    job = _find_job(request)
    if not job.over.is_set():
        return HTMLResponse(pages.progress(job.id, _queue(request).progress(job)))
    if job.problem is not None:
        return HTMLResponse(pages.failure(job.problem, job.id), status_code=job.problem.status)
    return HTMLResponse(pages.answer(job.id, job.result, can_print=installed_browser() is not None))


async def _state(request: Request) -> Response:
    job = _queue(request).find(request.path_params["id"])
    if job is None:
        return JSONResponse({"state": "gone"}, status_code=404)
    seen = _queue(request).progress(job)
    shown = {name: getattr(seen, name) for name in ("state", "stage", "share", "ahead")}
    return JSONResponse(shown | {"seconds": round(seen.seconds, 1)})


async def _cancel(request: Request) -> Response:
    job = _find_job(request)
    _queue(request).cancel(job)
    await _wait(job, 5.0)
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


async def _forget(request: Request) -> Response:
    if job := _queue(request).find(request.path_params["id"]):
        _queue(request).forget(job)
    return RedirectResponse("/", status_code=303)


async def _file(request: Request) -> Response:
    files = {each.name: each for each in getattr(_find_job(request).result, "downloads", ())}
    name = request.path_params["name"]
    asked = await _printed(request, files["report.html"]) if name == PDF and "report.html" in files else files.get(name)
    if asked is None:
        raise Refusal(problems.GONE)
    shown = {"content-disposition": f"attachment; filename*=utf-8''{quote(asked.name)}"}
    return Response(asked.data, media_type=asked.media_type, headers=shown)


async def _printed(request: Request, report: Download) -> Download:
    """Print a report by an installed browser, which the memory of a worker process would not suffice for."""
    if installed_browser() is None:
        raise Refusal(problems.NO_BROWSER)

    def write() -> bytes:
        with tempfile.TemporaryDirectory(prefix="unbandit-") as folder:
            write_pdf(report.data.decode(), path := Path(folder) / PDF, PRINT_SECONDS)
            return path.read_bytes()

    async with request.app.state.printer:
        try:
            return Download(PDF, "Report (PDF)", "application/pdf", await asyncio.to_thread(write))
        except OutputError as error:
            request.app.state.console.say(f"unbandit: {error}")
            raise Refusal(problems.NOT_PRINTED) from None


def _text(text: str, media_type: str) -> ASGIApp:
    """Return an endpoint for a static text: a response is an application too."""
    return Response(text, media_type=media_type, headers={"cache-control": "no-cache"})


def _queue(request: Request) -> JobQueue:
    jobs: JobQueue = request.app.state.queue
    return jobs


def _find_job(request: Request) -> Job:
    job = _queue(request).find(request.path_params["id"])
    if job is None:
        raise Refusal(problems.GONE)
    return job


async def _read_request(request: Request) -> tuple[dict[str, str], Upload | None]:
    """Read a form: its fields, and the log that was sent with it, if any."""
    limits: Limits = request.app.state.limits
    brings = request.headers.get("content-type", "").startswith("multipart/") and request.url.path in UPLOADS
    most = limits.upload * 4 // 3 + 1024 if brings else LONGEST_FIELD
    async with request.form(max_files=1, max_fields=MOST_FIELDS, max_part_size=most) as sent:
        fields = {key: value for key, value in sent.multi_items() if isinstance(value, str)}
        file = sent.get("log")
        if isinstance(file, UploadFile) and file.filename:
            if (file.size or 0) > limits.upload:
                raise Refusal(problems.too_large(limits.upload))
            data = await file.read()
            return fields, Upload(clean_name(file.filename), data=data) if data else None
    if example := EXAMPLES.get(fields.get("example", "")):
        return fields, Upload.of_example(example)
    if fields.get("carried"):
        return fields, Upload(clean_name(fields.get("carried_name", "")), carried=fields.pop("carried"))
    return fields, None


async def _read_upload(request: Request) -> tuple[dict[str, str], Upload]:
    """Read a form that needs a log."""
    form, upload = await _read_request(request)
    if upload is None:
        raise Refusal(problems.NO_FILE)
    return form, upload


async def _show_preview(request: Request, upload: Upload, form: Mapping[str, str], errors: dict[str, str]) -> Response:
    """Show what was understood of a log, and the form below it."""
    reading = collect(errors, read_columns, form) or ReadAs()
    job = _queue(request).submit(f"Reading {upload.name}", "preview", upload, reading, weight=upload.weight, quick=True)
    await _wait(job, math.inf)
    if job.problem is not None:
        return show(job.problem)
    seen, status = job.result, 422 if errors or job.result.problem else 200
    _queue(request).forget(job)
    return HTMLResponse(pages.preview(seen, form, errors), status, headers=GO_BACK)


async def _started(request: Request, job: Job) -> Response:
    """Wait a moment, as most jobs are done by then, and redirect to the page of the job."""
    await _wait(job, WAIT_SECONDS)
    return RedirectResponse(f"/jobs/{job.id}", status_code=303)


async def _wait(job: Job, seconds: float) -> None:
    """Wait until a job is over, but not longer than `seconds`; other requests are answered meanwhile."""
    pause, until = 0.005, asyncio.get_running_loop().time() + seconds
    while not job.over.is_set() and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(pause)
        pause = min(1.2 * pause, 0.05)


def _quick(rule: str | None, options: Mapping[str, Any]) -> bool:
    """Whether an estimate is certain to be quick: an equation, no draws, nothing to fit."""
    assumed = None if rule is None else rule_or_family(rule)
    simulates = not {"starting_pulls", "kept", "availability", "windows"}.isdisjoint(options)
    return isinstance(assumed, Demonstrator) and not simulates and not draws(options.get("method"), assumed)


async def _explain(request: Request, error: Exception) -> Response:
    """Show why a request failed."""
    if isinstance(error, ClientDisconnect):
        return Response(status_code=400)
    if isinstance(error, HTTPException):
        if error.status_code == 405:
            return RedirectResponse("/", status_code=303)
        return show(problems.NO_PAGE if error.status_code == 404 else problems.BAD_FORM)
    problem = problem_of(error)
    if problem is BROKEN:
        request.app.state.console.show(error)
    return show(problem)
