"""Work is done, refused, cancelled, cut off and forgotten, and nobody waits for somebody else's."""

from __future__ import annotations

import multiprocessing
import os
import time
from types import SimpleNamespace

import pytest

from unbandit.web.jobs import JobQueue, JobStages, Limits, run_jobs
from unbandit.web.problems import Refusal

PATIENCE = 900.0
"""Seconds until something that should happen is missed: long, since a busy machine is no mistake of ours."""

LIMITS = Limits(seconds=PATIENCE, memory=3 * 1024**3, jobs=50)


def opened(limits=LIMITS, workers=2):
    return JobQueue(limits, workers, tasks="slow_tasks")


@pytest.fixture(scope="module")
def jobs():
    made = opened()
    yield made
    made.close()


def outcome(job, seconds=PATIENCE):
    assert job.over.wait(seconds), "the work did not end"
    return job


def running(jobs, job, seconds=PATIENCE):
    until = time.monotonic() + seconds
    while jobs.progress(job).state != "running":
        assert time.monotonic() < until, "the work did not begin"
        time.sleep(0.02)


def test_work_is_done_and_what_was_brought_is_let_go(jobs):
    job = outcome(jobs.submit("an echo", "echo", "hello"))
    assert (job.result, job.problem, job.arguments) == ("hello", None, ())
    assert jobs.progress(job).state == "done"
    assert jobs.find(job.id) is job


def test_an_error_of_ours_is_said_in_the_words_of_the_page(jobs):
    job = outcome(jobs.submit("a refusal", "refuse"))
    assert job.problem.status == 422
    assert job.problem.message == 'log.csv row 3: expected an arm; got "x". Add it with the field "All arms".'


def test_no_word_of_an_unexpected_error_reaches_the_page(capfd):
    made = opened(workers=1)
    try:
        job = outcome(made.submit("a mistake", "break"))
    finally:
        made.close()
    assert job.problem.status == 500
    assert "secret" not in repr(job.problem)
    assert "secret of the inside" in capfd.readouterr().err


def test_progress_is_told(jobs):
    job = jobs.submit("a long sleep", "sleep", 600)
    until = time.monotonic() + PATIENCE
    while jobs.progress(job).stage != "Sleeping" and time.monotonic() < until:
        time.sleep(0.02)
    seen = jobs.progress(job)
    jobs.cancel(job)
    assert (seen.state, seen.stage, seen.share, seen.title) == ("running", "Sleeping", 0.25, "a long sleep")
    assert outcome(jobs.submit("a nap", "sleep", 0.01)).result == "slept"


def test_work_is_cancelled_in_the_middle_and_its_process_replaced(jobs):
    job = jobs.submit("a long sleep", "sleep", 600)
    running(jobs, job)
    jobs.cancel(job)
    outcome(job)
    assert jobs.progress(job).state == "cancelled"
    assert outcome(jobs.submit("an echo", "echo", 1)).result == 1


def test_quick_work_does_not_wait_for_slow_work(jobs):
    slow = [jobs.submit("a long sleep", "sleep", 600) for _ in range(3)]
    try:
        running(jobs, slow[0])
        assert outcome(jobs.submit("an echo", "echo", 2, quick=True)).result == 2
        assert jobs.progress(slow[2]).ahead == 1
    finally:
        for job in slow:
            jobs.cancel(job)


def test_a_process_that_dies_is_replaced(jobs):
    assert outcome(jobs.submit("a death", "die")).problem.status == 507
    assert outcome(jobs.submit("an echo", "echo", 3)).result == 3


def test_memory_has_a_limit(jobs):
    assert outcome(jobs.submit("a flood", "fill")).problem.status == 507
    assert outcome(jobs.submit("an echo", "echo", 4)).result == 4


def test_what_cannot_come_back_is_a_mistake_of_ours_and_the_next_one_is_served():
    made = opened(workers=1)
    try:
        assert outcome(made.submit("a riddle", "riddle")).problem.status == 500
        assert outcome(made.submit("an echo", "echo", 10)).result == 10
    finally:
        made.close()


def test_what_waits_may_weigh_so_much_and_no_more():
    small = opened(Limits(waiting=1_000, memory=LIMITS.memory), workers=1)
    try:
        running(small, small.submit("a long sleep", "sleep", 600, weight=5_000))
        time.sleep(0.2)  # its bytes are elsewhere by now
        waits = small.submit("an echo", "echo", 1, weight=900)
        with pytest.raises(Refusal, match="Too many are asking at once"):
            small.submit("an echo", "echo", 2, weight=200)
        small.forget(waits)
        small.submit("an echo", "echo", 3, weight=200)
    finally:
        small.close()


def test_time_has_a_limit():
    short = opened(Limits(seconds=0.5, memory=LIMITS.memory), workers=1)
    try:
        job = outcome(short.submit("a long sleep", "sleep", 600))
        assert job.problem.title == "That took too long"
    finally:
        short.close()


def test_there_is_room_for_so_many_and_no_more():
    small = opened(Limits(jobs=2, memory=LIMITS.memory), workers=1)
    try:
        jobs = [small.submit("a long sleep", "sleep", 600) for _ in range(2)]
        with pytest.raises(Refusal, match="Too many are asking at once"):
            small.submit("one more", "echo", 5)
        for job in jobs:
            small.forget(job)
            outcome(job)
        assert small.find(jobs[0].id) is None
        assert outcome(small.submit("an echo", "echo", 6)).result == 6
    finally:
        small.close()


def test_answers_are_kept_for_a_while():
    short = opened(Limits(kept_seconds=60, memory=LIMITS.memory), workers=1)
    try:
        job = outcome(short.submit("an echo", "echo", 7))
        assert short.find(job.id) is job
        job.ended -= 61
        assert short.find(job.id) is None
    finally:
        short.close()


def test_of_too_many_answers_the_oldest_go():
    small = opened(Limits(kept_bytes=2_500, memory=LIMITS.memory), workers=1)
    try:
        jobs = [outcome(small.submit("a file", "large", 1_000)) for _ in range(3)]
        assert small.find(jobs[2].id) is jobs[2]
        assert small.find(jobs[0].id) is None
    finally:
        small.close()


def test_closing_stops_the_processes_and_what_they_do():
    made = opened(workers=1)
    process = outcome(made.submit("who", "process")).result
    job, behind = made.submit("a long sleep", "sleep", 600), made.submit("an echo", "echo", 8)
    running(made, job)
    made.close()
    for each in (job, behind):
        assert outcome(each).problem.title == "The page was closed"
    with pytest.raises(Refusal, match="Too many are asking at once"):
        made.submit("too late", "echo", 9)
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


def test_the_page_is_told_how_far_a_stage_is():
    sent = []
    stages = JobStages(SimpleNamespace(send=sent.append))
    stages.report("Reading the file", None)
    stages.show("Reading the rounds", 0.25, 30.0)
    stages.show("Reading the rounds", 0.25, 30.0)  # the same again is not sent
    stages.report("Estimating", 0.05)
    stages.show("Reading the rounds", 0.5, None)
    assert sent == [
        ("stage", "Reading the file", None),
        ("stage", "Reading the rounds: 25%, about 30 s left", 0.25),
        ("stage", "Estimating", 0.05),
        ("stage", "Reading the rounds: 50%", 0.05),  # the bar is that of the whole job
    ]


def test_a_worker_whose_page_ended_while_it_started_ends_quietly(capfd):
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=run_jobs, args=(theirs, Limits(), "slow_tasks"), daemon=True)
    process.start()
    pipe.close()
    theirs.close()
    process.join(120)
    assert process.exitcode == 0
    assert capfd.readouterr().err == ""
