"""Places elsewhere: shared file systems and object stores, through fsspec.

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

import json
import os
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from unbandit.errors import MissingExtra, OutputError, ParameterError, ResumeError, UnbanditError

__all__ = ["Lease", "Remote"]

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
        self._files, self._root = _opened(address)
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


def _opened(address: str) -> tuple[Any, str]:
    """Return the file system behind an address, and the path in it."""
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
    except ImportError:
        raise MissingExtra(f"{address}: a folder elsewhere", "remote") from None
    try:
        files, root = url_to_fs(address)
    except ImportError as error:  # fsspec says which package reads such addresses
        raise OutputError(
            f"{address}: could not be used: {_line(error)}. Install it, or take another folder."
        ) from error
    except Exception as error:
        raise ParameterError(f"{address}: expected an address that fsspec knows; {_line(error)}.") from error
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
        raise OSError(_line(error)) from error


def _line(error: Exception) -> str:
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
