"""Compiled kernels are kept on disk, and never outlive their source."""

from __future__ import annotations

import math
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numba
import pytest
from numba.core import types
from numba.core.base import BaseContext
from numba.core.compiler import Flags
from numba.core.dispatcher import Dispatcher
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target

from unbandit.kernels import compile
from unbandit.kernels.compile import (
    cache_directory,
    can_be_trusted,
    compiled,
    digest_of,
    new_integers,
    new_marks,
    new_numbers,
    new_table,
)
from unbandit.kernels.rng import uniform_from_word
from unbandit.tape import Tape


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


def test_a_new_folder_is_for_us_alone(tmp_path):
    before = os.umask(0)
    try:
        assert can_be_trusted(tmp_path / "kernels")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "kernels").stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o1777])
def test_a_folder_that_others_can_write_is_not_used(tmp_path, mode):
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(mode)
    assert not can_be_trusted(folder)


@pytest.mark.parametrize(("mode", "trusted"), [(0o777, False), (0o1777, True), (0o755, True)])
def test_a_folder_that_others_could_replace_is_not_used(tmp_path, mode, trusted):
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(mode)
    assert can_be_trusted(above / "kernels") is trusted


def test_a_folder_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir(mode=0o700)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    assert not can_be_trusted(tmp_path / "kernels")


def test_a_link_to_a_folder_of_others_is_not_used(tmp_path):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o777)
    (tmp_path / "kernels").symlink_to(tmp_path / "theirs")
    assert not can_be_trusted(tmp_path / "kernels")


def test_without_a_home_the_folder_is_a_private_temporary_one(tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    (tmp_path / "no folder").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "no folder"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = cache_directory()
    assert folder.parent == tmp_path / f"unbandit-{os.getuid()}"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o777)
    assert cache_directory() is None


@pytest.mark.processes
def test_nothing_is_loaded_from_a_folder_that_others_can_write(tmp_path):
    program = "from unbandit.tape import Tape; print(Tape(1).words(0, 0, 1))"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "kept"), "TMPDIR": str(tmp_path)}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    run = tmp_path / "run"

    def compute():
        subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True)

    compute()
    (kept,) = (tmp_path / "kept").iterdir()
    for mode, is_loaded in ((0o700, True), (0o777, False)):
        for index in kept.rglob("*.nbi"):
            index.write_bytes(b"cos\nsystem\n(S'touch " + bytes(run) + b"'\ntR.")
        kept.chmod(mode)
        compute()
        assert run.exists() is is_loaded
        run.unlink(missing_ok=True)


def begun(program, cache):
    """Start a program with an empty folder for compiled kernels."""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="files are not locked on Windows")
def test_of_two_processes_that_need_a_kernel_one_compiles_it(tmp_path):
    program = (
        "from unbandit.kernels.rng import words as kernel; from unbandit.tape import Tape; "
        "Tape(1).words(0, 0, 1); print(sum(kernel.stats.cache_misses.values()))"
    )
    started = [begun(program, tmp_path) for _ in range(3)]
    assert sorted(process.communicate()[0].strip() for process in started) == ["0", "0", "1"]


@pytest.mark.processes
@pytest.mark.skipif(os.name == "nt", reason="the size of files is not limited on Windows")
def test_kernels_work_where_the_disk_is_full(tmp_path):
    program = (
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (4_096, 4_096)); "
        "from unbandit.tape import Tape; print(Tape(1).words(0, 0, 1))"
    )
    process = begun(program, tmp_path)
    assert process.communicate()[0].strip() == str(Tape(1).words(0, 0, 1))
    assert process.returncode == 0
    assert not [path for path in tmp_path.rglob("*.nbc") if path.stat().st_size]


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


def test_numba_is_given_back_as_it_was():
    owners = [(BaseContext, "get_abi_sizeof"), (Dispatcher, "compile"), (PostProcessor, "run"), (Flags, "values")]
    before = [getattr(owner, name) for owner, name in owners]
    with compile._in_less_time():
        assert all(getattr(*each) is not original for each, original in zip(owners, before, strict=True))
    assert [getattr(owner, name) for owner, name in owners] == before


def test_shortcuts_give_what_numba_gives():
    flags, context = Flags(), cpu_target.target_context
    flags.nrt = True
    kinds = [context.get_value_type(each) for each in (types.float64, types.Array(types.int64, 2, "C"))]
    plain = flags.values(), [context.get_abi_sizeof(each) for each in kinds]
    with compile._in_less_time():
        for _ in range(2):
            assert (flags.values(), [context.get_abi_sizeof(each) for each in kinds]) == plain


def test_only_functions_of_the_package_leave_passes_out():
    def doubled(number):
        return sum([2 * each for each in (number,)])  # a closure of its own, in some versions of Python

    assert compiled(doubled)(3) == 6
    assert len(_passes(compiled(doubled))) > len(_passes(compiled(uniform_from_word)))


def _passes(kernel):
    kernel.compile((types.uint64,))
    (times,) = (each["pipeline_times"] for each in kernel.get_metadata().values())
    return [name for pipeline in times.values() for name in pipeline]


def test_arrays_that_kernels_make_are_filled():
    @compiled
    def make():
        return new_numbers(2, 0.5), new_table(1, 2, math.inf), new_integers(2, -1), new_marks(2)

    for made in (make(), make.py_func()):
        assert [each.tolist() for each in made] == [[0.5, 0.5], [[math.inf, math.inf]], [-1, -1], [False, False]]
