"""Compiled kernels are kept on disk, and never outlive their source."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

from unbandit.kernels import compile
from unbandit.kernels.compile import cache_directory, compiled, digest_of


def test_the_digest_follows_the_contents(tmp_path):
    file = tmp_path / "kernel.py"
    file.write_text("x = 1")
    before = digest_of(file)
    file.write_text("x = 2")
    assert digest_of(file) != before
    file.write_text("x = 1")
    assert digest_of(file) == before


@pytest.mark.parametrize("changed", ["rng.py", "gpu/port.py", "normal_quantile.npy"])
def test_the_folder_is_named_after_every_file_of_the_room(tmp_path, monkeypatch, changed):
    room = tmp_path / "kernels"
    shutil.copytree(Path(compile.__file__).parent, room, ignore=shutil.ignore_patterns("__pycache__"))
    original = cache_directory().name
    monkeypatch.setattr(compile, "__file__", str(room / "compile.py"))
    assert cache_directory().name == original
    (room / changed).write_bytes((room / changed).read_bytes() + b"\n")
    assert cache_directory().name != original


def test_the_folder_lies_where_the_user_keeps_caches(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_directory().parent == tmp_path / "unbandit"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert cache_directory().parent == tmp_path / "numba"


def test_the_setting_of_numba_is_given_back():
    before = numba.config.CACHE_DIR
    compiled(lambda x: x)
    assert before == numba.config.CACHE_DIR


@pytest.mark.processes
def test_kernels_work_where_nothing_can_be_written(tmp_path):
    forbidden = tmp_path / "a file, not a folder"
    forbidden.touch()
    program = "from unbandit.tape import Tape; print(Tape(1).words(0, 0, 1))"
    environment = {"XDG_CACHE_HOME": str(forbidden), "HOME": str(forbidden), "PATH": ""}
    answer = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip().isdigit()
