"""Parts as bytes, with a checksum of their own: a part that was cut or altered on its way or on the disk is found out.

A part is a Parquet file whose footer carries, beside whose it is, the SHA-256 of the whole file, taken with zeros in
the checksum's own place. So there is one file a part, equal rows give equal bytes, and not a bit of it can change
unseen. Checking costs little more than reading: 1.5 gigabytes a second and core, where it was measured.

Where parts are kept: a folder of this machine or, by its address, any place that fsspec knows.

Both promise the same: a file is there whole or not at all, and while somebody holds the place nobody else does. How
the second promise is kept differs, see `Local` and `object_store.Remote`.

Places elsewhere: shared file systems and object stores, through fsspec.

An object store puts an object whole or not at all; any other file system gets a file under another name first, and
renames it.

None of them has a lock that ends with the process that holds it, so a *lease* stands in for one: an object with the
name of its holder, who writes it anew every few seconds. Who finds one watches it. If it changes, its holder lives, and
the newcomer is refused; if it stays the same for half a minute, its holder is gone, and the newcomer takes it. No clock
is compared with another. What a lease cannot do: a holder that was cut off for longer than that and comes back does not
know at once that it lost the place, and of two that take a lease in the same moment both may believe for a second that
they have it, where the store cannot create an object exclusively. In those moments two may write the same part. That
is harmless, for a part depends on the study alone: both write the same bytes.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import re
import socket
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

import polars as pl

from unbandit.errors import MissingExtra, OutputError, ParameterError, ResumeError, UnbanditError
from unbandit.files import locked, written_whole

DIGEST = "unbandit.sha256"
"""The name under which a part carries its checksum."""


_BLANK = b"0" * 64


_PLACE = DIGEST.encode() + b"\x18\x40"  # as the footer has it: the name, then a text of 64 bytes


def sealed(rows: pl.DataFrame, marks: Mapping[str, str]) -> bytes:
    """Return rows as a Parquet file with some marks, and its checksum among them.

    Examples
    --------
    >>> data = sealed(pl.DataFrame({"pulls": [3, 5]}), {"whose": "mine"})
    >>> marks_of(data)["whose"], marks_of(data[:-1] + b"?"), marks_of(data.replace(b"mine", b"hers"))
    ('mine', None, None)
    """
    file = io.BytesIO()
    rows.write_parquet(file, metadata={**marks, DIGEST: _BLANK.decode()})
    data = file.getvalue()
    at = data.rindex(_PLACE + _BLANK) + len(_PLACE)
    return data[:at] + hashlib.sha256(data).hexdigest().encode() + data[at + len(_BLANK) :]


def marks_of(data: bytes) -> dict[str, str] | None:
    """Return what a file carries beside its rows; nothing, if it is not as it was written.

    A Parquet file without a checksum gives its marks: other hands wrote it, and whose it is, it does not say.
    """
    try:
        marks = pl.read_parquet_metadata(io.BytesIO(data))
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    said = marks.get(DIGEST)
    if said is None:
        return marks
    at = data.rfind(_PLACE + said.encode())
    if at < 0:
        return None
    at += len(_PLACE)
    state = hashlib.sha256(memoryview(data)[:at])
    state.update(_BLANK)
    state.update(memoryview(data)[at + len(_BLANK) :])
    return marks if state.hexdigest() == said else None


LEFTOVER = re.compile(r"\.(study\.json|summary\.csv|\d+\.parquet)\..*\.part")
"""The names under which files are written before they are whole; a kill leaves them behind."""


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")  # two letters: C:// is a disk


class Storage(Protocol):
    """Stand for a place of files; their names are relative to it, with "/" between folder and file."""

    @property
    def path(self) -> Path | str:
        """Return the place: a path, or an address."""

    def where(self, name: str = "") -> str:
        """Return the place, or a file in it, as people would write it."""

    def make(self, folder: str = "") -> None:
        """Make the place, or a folder in it, if it is not there."""

    def names(self, folder: str = "") -> list[str]:
        """Return what is in the place, or in a folder of it; nothing if it is not there."""

    def exists(self, name: str) -> bool:
        """Return whether a file is there."""

    def read(self, name: str) -> bytes:
        """Return what is in a file."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all."""

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""

    def held(self) -> AbstractContextManager[None]:
        """Keep everybody else out of the place meanwhile."""


class Local:
    """Keep files in a folder of this machine, or one that it sees as its own.

    Files are written under another name and renamed. Who holds the folder has the system's lock on it, which ends with
    the process.

    Examples
    --------
    >>> import tempfile
    >>> place = Local(Path(tempfile.mkdtemp()))
    >>> place.write("a.txt", b"whole")
    >>> place.names(), place.read("a.txt")
    (['a.txt'], b'whole')
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def where(self, name: str = "") -> str:
        """Return the folder, or a file in it."""
        return os.fspath(self.path / name)

    def make(self, folder: str = "") -> None:
        """Make the folder."""
        (self.path / folder).mkdir(parents=not folder, exist_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """Return what is in the folder, or in one below."""
        place = self.path / folder
        if place.is_file():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(place))
        try:
            return [item.name for item in place.iterdir()]
        except FileNotFoundError:
            return []

    def exists(self, name: str) -> bool:
        """Return whether a file is there."""
        return (self.path / name).exists()

    def read(self, name: str) -> bytes:
        """Return what is in a file."""
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Write a file under another name, and rename it."""
        with written_whole(self.path / name) as temporary:
            temporary.write_bytes(data)

    def remove(self, name: str) -> None:
        """Remove a file."""
        (self.path / name).unlink(missing_ok=True)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock of the folder."""
        with locked(self.path):
            yield


def is_address(path: str | os.PathLike[str]) -> bool:
    """Return whether a text is the address of a place elsewhere, not a path of this machine.

    Examples
    --------
    >>> is_address("s3://bucket/results"), is_address("results"), is_address("C://results"), is_address("file:///results")
    (True, False, False, False)
    """
    text = os.fspath(path)
    return isinstance(path, str) and bool(_ADDRESS.match(text)) and urlsplit(text).scheme not in ("file", "local")


def storage_at(path: str | os.PathLike[str]) -> Storage:
    """Return the place that a path, or an address such as ``s3://bucket/results``, stands for.

    Examples
    --------
    >>> storage_at("results").where("study.json"), storage_at("file:///results").where("study.json")
    ('results/study.json', '/results/study.json')
    """
    text = os.fspath(path)
    if is_address(path):
        from unbandit.study.storage import Remote

        return Remote(text)
    if isinstance(path, str) and _ADDRESS.match(text):  # file:// names a folder of this machine
        parts = urlsplit(text)
        return Local(Path(unquote(parts.path if not parts.netloc else f"{parts.netloc}{parts.path}")))
    return Local(Path(text))


STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "hf", "memory"})
"""Those that put objects whole or not at all, and move them by copying."""


LEASE = ".study.lease"


BEAT = 5.0
"""Seconds after which the holder of a place writes its lease anew."""


PATIENCE = 30.0
"""Seconds after which a lease that does not change is nobody's."""


SETTLING = 1.0
"""Seconds after which the last of several that took a lease in the same moment has won."""


class Remote:
    """Keep files at an address that fsspec knows.

    Parameters
    ----------
    address
        Such as ``s3://bucket/results`` or ``memory://results``.

    Examples
    --------
    >>> place = Remote("memory://doctest/results")
    >>> place.write("parts/a.txt", b"whole")
    >>> place.names("parts"), place.read("parts/a.txt"), place.where("parts/a.txt")
    (['a.txt'], b'whole', 'memory://doctest/results/parts/a.txt')
    """

    def __init__(self, address: str) -> None:
        self.path = address.rstrip("/")
        self._files, self._root = _open_store(address)
        protocol = self._files.protocol
        self._protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self._renames = not self._protocols & STORES and _has_its_own(self._files, "mv")

    @property
    def only_here(self) -> bool:
        """Return whether no other process sees the place."""
        return "memory" in self._protocols

    def where(self, name: str = "") -> str:
        """Return the address, or that of a file."""
        return f"{self.path}/{name}" if name else self.path

    def _full(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def make(self, folder: str = "") -> None:
        """Make the folder, where there are folders."""
        if not self._protocols & STORES:
            with _speaking():
                self._files.makedirs(self._full(folder), exist_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """Return what is in the place, or in a folder of it."""
        place = self._full(folder)
        with _speaking():
            self._files.invalidate_cache()
            try:
                found = self._files.ls(place, detail=False)
            except FileNotFoundError:
                return []
        kept = [str(each).rstrip("/").rpartition("/")[2] for each in found]
        if len(found) == 1 and str(found[0]).strip("/") == place.strip("/") and self._is_file(place):
            raise FileExistsError(17, "File exists", self.where(folder))
        own = place.rstrip("/").rpartition("/")[2]  # some stores list a folder's own marker
        return [
            name
            for name, each in zip(kept, found, strict=True)
            if name and name != LEASE and not (name == own and str(each).strip("/") == place.strip("/"))
        ]

    def _is_file(self, place: str) -> bool:
        with _speaking():
            return bool(self._files.info(place).get("type") == "file")

    def exists(self, name: str) -> bool:
        """Return whether a file is there."""
        with _speaking():
            self._files.invalidate_cache()
            try:
                self._files.info(self._full(name))
            except FileNotFoundError:
                return False
        return True

    def read(self, name: str) -> bytes:
        """Return what is in a file."""
        with _speaking():
            return bytes(self._files.cat_file(self._full(name)))

    def write(self, name: str, data: bytes) -> None:
        """Put a file whole: at once, or under another name that is then changed."""
        target = self._full(name)
        folder, _, last = target.rpartition("/")
        temporary = f"{folder}/.{last}.{uuid.uuid4().hex[:8]}.part" if self._renames else target
        try:
            with _speaking():
                self._files.pipe_file(temporary, data)
                if self._renames:
                    self._files.mv(temporary, target)
        except OSError as error:
            if self._renames:
                with suppress(Exception):
                    self._files.rm_file(temporary)
            said = f"{self.where(name)}: could not be written: {error.strerror or error}. Nothing was changed."
            raise OutputError(said) from error

    def remove(self, name: str) -> None:
        """Remove a file."""
        with _speaking(), suppress(FileNotFoundError):
            self._files.rm_file(self._full(name))

    def create(self, name: str, data: bytes) -> bool:
        """Write a file that is not there yet, and return whether it was so: where the store can tell."""
        try:
            with _speaking():
                self._files.pipe_file(self._full(name), data, mode="create")
        except FileExistsError:
            return False
        return True

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lease of the place."""
        with Lease(self, BEAT, PATIENCE, SETTLING).held():
            yield


class Lease:
    """Hold a place by an object that its holder writes anew again and again.

    Parameters
    ----------
    place
        Which.
    beat, patience, settling
        Seconds: between two writings, until an unchanged lease is nobody's, until a new one is ours.
    """

    def __init__(self, place: Remote, beat: float, patience: float, settling: float) -> None:
        self._place, self._beat, self._patience, self._settling = place, beat, patience, settling
        self._holder = {"token": uuid.uuid4().hex, "host": socket.gethostname(), "pid": os.getpid(), "boot": _boot()}
        self._beats, self._over = 0, threading.Event()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Take the lease, beat meanwhile, and give it back."""
        self._take()
        heart = threading.Thread(target=self._keep, name="lease", daemon=True)
        heart.start()
        try:
            yield
        finally:
            self._over.set()
            heart.join()
            with suppress(OSError):  # what cannot be removed is nobody's soon
                if self._is_ours(self._found()):
                    self._place.remove(LEASE)

    def _take(self) -> None:
        if not self._place.create(LEASE, self._said()):
            self._watch()
            self._place.write(LEASE, self._said())
        self._over.wait(self._settling)
        found = self._found()
        if not self._is_ours(found):
            self._refuse(found)

    def _watch(self) -> None:
        """Return when the lease that is there is nobody's; refuse as soon as it is seen to be somebody's."""
        first, waited = self._found(), 0.0
        while first and not _dead(first) and waited < self._patience:
            self._over.wait(step := min(self._beat / 4, self._patience))
            waited += step
            now = self._found()
            if now and now != first:
                self._refuse(now)
            if not now:
                return

    def _keep(self) -> None:
        """Write the lease anew until it is given back, or is another's."""
        while not self._over.wait(self._beat):
            with suppress(OSError):  # it may be written the next time
                if not self._is_ours(self._found()):
                    return
                self._beats += 1
                self._place.write(LEASE, self._said())

    def _said(self) -> bytes:
        return json.dumps(self._holder | {"beats": self._beats}).encode()

    def _found(self) -> dict[str, Any]:
        try:
            found = json.loads(self._place.read(LEASE))
        except FileNotFoundError:
            return {}
        except ValueError:
            return {"host": "an unknown machine"}
        return found if isinstance(found, dict) else {}

    def _is_ours(self, found: dict[str, Any]) -> bool:
        return found.get("token") == self._holder["token"]

    def _refuse(self, found: dict[str, Any]) -> None:
        who = f"process {found.get('pid', '?')} on {found.get('host', 'another machine')}"
        raise ResumeError(
            f"{self._place.path}: another run is at work in this folder ({who}). Wait until it ends, or stop it."
        )


def _open_store(address: str) -> tuple[Any, str]:
    """Return the file system behind an address, and the path in it."""
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
    except ImportError:
        raise MissingExtra(f"{address}: a folder elsewhere", "remote") from None
    try:
        files, root = url_to_fs(address)
    except ImportError as error:  # fsspec says which package reads such addresses
        raise OutputError(
            f"{address}: could not be used: {_first_line(error)}. Install it, or take another folder."
        ) from error
    except Exception as error:
        raise ParameterError(f"{address}: expected an address that fsspec knows; {_first_line(error)}.") from error
    root = str(root).rstrip("/")
    if not root:
        raise ParameterError(f"{address}: expected a place below, such as {address.rstrip('/')}/results.")
    return files, root


def _has_its_own(files: Any, name: str) -> bool:
    plain = import_module("fsspec").AbstractFileSystem
    return getattr(type(files), name, None) is not getattr(plain, name)


@contextmanager
def _speaking() -> Iterator[None]:
    """Let whatever a store raises be an error of the system: they have errors of many kinds."""
    try:
        yield
    except (OSError, UnbanditError):
        raise
    except Exception as error:
        raise OSError(_first_line(error)) from error


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _dead(found: dict[str, Any]) -> bool:
    """Return whether the holder was a process of this machine that is no more."""
    if (found.get("host"), found.get("boot")) != (socket.gethostname(), _boot()) or not found.get("boot"):
        return False
    try:
        os.kill(int(found["pid"]), 0)
    except ProcessLookupError:
        return True
    except (OSError, KeyError, ValueError, TypeError):
        return False
    return False


def _boot() -> str:
    """Return a name of this machine's present start, where the system has one."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
