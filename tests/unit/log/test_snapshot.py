"""Snapshots that somebody made up: the checksum fits, and what is in them does not."""

from __future__ import annotations

import hashlib
import io
import json

import numpy as np
import pytest

from unbandit.errors import ResumeError
from unbandit.estimators.stream import StreamingEstimate
from unbandit.log.follower import Follower
from unbandit.log.growth import GrowingLog
from unbandit.log.snapshot import read_snapshot, write_snapshot

ACTIONS = list("ABCABCABABAABAABAA")


@pytest.fixture(params=["ucb", "ucb:delay=2,batch=2", "sae", "counts"])
def snapshot(request, tmp_path):
    """Return the path of a snapshot, and its words and arrays."""
    path = tmp_path / "state"
    rule, options = ("ucb", {"method": "counts"}) if request.param == "counts" else (request.param, {})
    streaming = StreamingEstimate(rule, sigma=1.0, **options)
    streaming.update(ACTIONS, "x")
    streaming.update(ACTIONS[3:9], "y")
    streaming.save(path)
    return path, *read_snapshot(path)


def signed(path, data):
    path.write_bytes(b"unbandit snapshot 1 " + hashlib.sha256(data).hexdigest().encode() + b"\n" + data)


def refused(path, match="its parts do not fit together"):
    with pytest.raises(ResumeError, match=match):
        StreamingEstimate.load(path)


def test_what_was_written_is_read(snapshot):
    path, words, arrays = snapshot
    write_snapshot(path, words, arrays)
    assert StreamingEstimate.load(path).log.lengths.tolist() == [18, 6]


def test_no_number_of_an_array_may_be_out_of_range(snapshot):
    path, words, arrays = snapshot
    for name, array in arrays.items():
        for value in (-(2**63), -2, 1 << 40, 2**63 - 1):
            forged = array.copy()
            forged.flat[-1] = value
            write_snapshot(path, words, arrays | {name: forged})
            refused(path)


@pytest.mark.parametrize("change", ["shape", "type", "missing", "more"])
def test_arrays_must_be_those_of_the_log(snapshot, change):
    path, words, arrays = snapshot
    for name in arrays:
        forged = dict(arrays)
        if change == "shape":
            forged[name] = arrays[name][:-1]
        elif change == "type":
            forged[name] = arrays[name].astype(np.float64)
        elif change == "missing":
            del forged[name]
        else:
            forged["other"] = arrays[name]
        write_snapshot(path, words, forged)
        refused(path)


@pytest.mark.parametrize(
    "change",
    [
        {"rule": 3},
        {"more": 1},
        {"position": {"path": "x"}},
        {"options": []},
        {"log": {"need": "switching"}},
    ],
    ids=str,
)
def test_words_must_be_those_of_a_snapshot(snapshot, change):
    path, words, arrays = snapshot
    write_snapshot(path, words | change, arrays)
    refused(path)


def test_labels_must_be_those_of_the_arrays(snapshot):
    path, words, arrays = snapshot
    for labels in (
        {"arms": ["A", "B"]},
        {"arms": ["A", "A", "B"]},
        {"demonstrations": ["x"]},
        {"expected": ["A", "B", "D"]},
    ):
        write_snapshot(path, words | {"log": words["log"] | labels}, arrays)
        refused(path)
    write_snapshot(path, words | {"options": {"snapshot": "other"}}, arrays)
    refused(path, "expected options of estimate; got 'snapshot'")


def test_two_rings_are_refused_since_nobody_would_get_out_of_them(tmp_path):
    streaming, path = StreamingEstimate("sae", sigma=1.0), tmp_path / "state"
    streaming.update(list("ABCDABCD"))
    streaming.save(path)
    words, arrays = read_snapshot(path)
    assert arrays["following"].tolist() == [[1, 2, 3, 0]]
    forged = {"following": np.array([[1, 0, 3, 2]]), "preceding": np.array([[1, 0, 3, 2]])}
    write_snapshot(path, words, arrays | forged)
    refused(path)


@pytest.mark.parametrize("kind", ["no archive", "one array", "pickle", "compressed", "deep"])
def test_the_archive_must_be_one_of_ours(snapshot, kind):
    path, words, arrays = snapshot
    held = io.BytesIO()
    said = {"said": np.frombuffer(json.dumps(words).encode(), np.uint8)}
    parts = {f"array {name}": array for name, array in arrays.items()}
    if kind == "no archive":
        held.write(b"PK\x03\x04 no archive")
    elif kind == "one array":
        np.save(held, arrays["lengths"])
    elif kind == "pickle":
        np.savez(held, **said, **parts | {"array lengths": np.array([print], dtype=object)})
    elif kind == "compressed":
        np.savez_compressed(held, **said, **parts)
    else:
        np.savez(held, said=np.frombuffer(b"[" * 100_000, np.uint8), **parts)
    signed(path, held.getvalue())
    refused(path)


@pytest.mark.parametrize("name", ["/etc/passwd", "logs/../../secret", "other/1.csv"])
def test_a_snapshot_cannot_name_files_outside_of_the_log(tmp_path, name):
    read = {"offset": 0, "rows": 0, "lines": 0, "first": "", "latest": ""}
    position = {"path": "logs", "columns": {}, "rounds": None, "files": {name: {"keys": {}, "read": read}}}
    with pytest.raises(ResumeError, match="it names another file"):
        Follower("logs", GrowingLog(), None, position)


def test_a_snapshot_knows_whether_there_was_a_header(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("A\nB\n")
    follower = Follower(path, GrowingLog(), header=False)
    assert sum(follower.news()) == 2
    position = follower.position()
    assert Follower(path, GrowingLog(), None, position, header=False).position() == position | {"rounds": None}
    with pytest.raises(ResumeError, match="and the header that the snapshot was made of"):
        Follower(path, GrowingLog(), None, position)


def test_a_snapshot_without_the_first_times_is_resumed_again_and_again(tmp_path):
    path, state, rows = tmp_path / "log.csv", tmp_path / "state", ["1700000001,x,A", "1700000001,y,A"]
    for second in (2, 3, 4):
        path.write_text("timestamp,user,arm\n" + "".join(f"{row}\n" for row in rows))
        streaming = StreamingEstimate("ucb", sigma=1.0, snapshot=state)
        follower = Follower(path, streaming.log, None, streaming.position)
        assert sum(follower.news()) == (2 if second == 2 else 1)
        streaming.position = follower.position() | ({"coarse": None} if second == 2 else {})
        streaming.save()
        rows.append(f"170000000{second},x,B")
    assert StreamingEstimate.load(state).log.lengths.tolist() == [3, 1]


@pytest.mark.parametrize("rule", ["ucb", "sae"])
def test_whatever_a_log_comes_to_is_read_again(tmp_path, rule):
    chance, path = np.random.default_rng(5), tmp_path / "state"
    for number in range(150):
        arms = "ABCDE" if number % 2 else None
        streaming = StreamingEstimate(rule, arms=arms, sigma=1.0)
        for _ in range(int(chance.integers(0, 6))):
            active = chance.permutation(list("ABCDE"))[: chance.integers(1, 6)]
            turns = np.tile(active, 4) if chance.random() < 0.7 else chance.choice(active, 7)
            streaming.update(turns[: chance.integers(0, turns.size)].tolist(), str(chance.integers(0, 3)))
        streaming.save(path)
        assert StreamingEstimate.load(path).log.state()[0] == streaming.log.state()[0]
