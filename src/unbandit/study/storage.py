"""Where parts are stored: a local folder or an address that fsspec supports; a file is there whole or not at all.

A local folder is locked. Remote storage has no lock that ends with its process, and needs none: two runs of a study
write the same bytes, and `study.json` is created exclusively, so a second study is refused.

The footer of each part, a Parquet file, holds the SHA-256 of the whole file, computed with zeros in its own place. By
hand because Parquet's own checksums leave out the footer; checking costs little more than reading (1.5 GB/s per core).
"""

import errno
import hashlib
import io
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import polars as pl

from unbandit.errors import MissingExtra, OutputError, ParameterError, UnbanditError, first_line
from unbandit.files import locked, written_whole
from unbandit.log.parquet import ParquetLayout, UnreadableParquet, without_panic_text

CHECKSUM = "unbandit.sha256"  # the metadata key of a part's checksum

LEFTOVER = re.compile(r"\.(study\.json|summary\.csv|\d+\.parquet)\..*\.part")
"""Temporary names of files that are being written; a killed process leaves them behind."""

OBJECT_STORES = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "oss", "oci", "hf", "memory"})
"""Protocols that write an object whole or not at all, and rename by copying."""

_BLANK = b"0" * 64
_CHECKSUM_FIELD = CHECKSUM.encode() + b"\x18\x40"  # in the Parquet footer: the key, then a text of 64 bytes
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z][A-Za-z0-9+.-]+)*://")  # two letters: C:// is a disk


def write_checked(rows: pl.DataFrame, metadata: Mapping[str, str]) -> bytes:
    """Return rows as a Parquet file with some metadata, among them its checksum."""
    file = io.BytesIO()
    rows.write_parquet(file, metadata={**metadata, CHECKSUM: _BLANK.decode()})
    data = file.getvalue()
    start = data.rindex(_CHECKSUM_FIELD + _BLANK) + len(_CHECKSUM_FIELD)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[start + len(_BLANK) :]


def read_checked_metadata(data: bytes) -> dict[str, str] | None:
    """Return the metadata of a Parquet file, or None if it is not as it was written.

    A Parquet file without a checksum returns its metadata: another program wrote it.
    """
    try:
        with without_panic_text():
            ParquetLayout(data)
            metadata = pl.read_parquet_metadata(io.BytesIO(data))
    except (UnreadableParquet, OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    checksum = metadata.get(CHECKSUM)
    if checksum is None:
        return metadata
    start = data.rfind(_CHECKSUM_FIELD + checksum.encode())
    if start < 0:
        return None
    start += len(_CHECKSUM_FIELD)
    state = hashlib.sha256(memoryview(data)[:start])
    state.update(_BLANK)
    state.update(memoryview(data)[start + len(_BLANK) :])
    return metadata if state.hexdigest() == checksum else None


class LocalStorage:
    """A folder on this machine; names are relative to it, with "/" between folder and file."""

    only_this_process = False  # another process sees it, too

    def __init__(self, path: Path) -> None:
        self.path = path

    def where(self, name: str = "") -> str:
        """Return the folder, or a file in it, as users write it."""
        return os.fspath(self.path / name)

    def make(self, folder: str = "") -> None:
        """Create the folder, or one below it, if it does not exist."""
        (self.path / folder).mkdir(parents=not folder, exist_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """Return the names in the folder, or in one below it; none if it does not exist."""
        place = self.path / folder
        if place.is_file():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(place))
        try:
            return [item.name for item in place.iterdir()]
        except FileNotFoundError:
            return []

    def read(self, name: str) -> bytes:
        """Return the contents of a file."""
        return (self.path / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all."""
        with written_whole(self.path / name) as temporary:
            temporary.write_bytes(data)

    def create(self, name: str, data: bytes) -> None:
        """Write a file unless it exists; the lock keeps others from creating it in between."""
        if not (self.path / name).exists():
            self.write(name, data)

    def remove(self, name: str) -> None:
        """Remove a file, if it exists."""
        (self.path / name).unlink(missing_ok=True)

    def lock(self) -> AbstractContextManager[None]:
        """Hold the system's lock on the folder, which ends with the process."""
        return locked(self.path)


class RemoteStorage:
    """An address that fsspec supports, with the methods of `LocalStorage`: an object store, or another file system."""

    def __init__(self, address: str) -> None:
        self.path = address.rstrip("/")
        self._files, self._root = _open_file_system(address)
        protocol = self._files.protocol
        protocols = {protocol} if isinstance(protocol, str) else set(protocol)
        self.only_this_process = "memory" in protocols
        self._has_folders = not protocols & OBJECT_STORES
        plain = import_module("fsspec").AbstractFileSystem
        self._renames = self._has_folders and type(self._files).mv is not plain.mv

    def where(self, name: str = "") -> str:
        """Return the address, or that of a file."""
        return f"{self.path}/{name}" if name else self.path

    def _full(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def make(self, folder: str = "") -> None:
        """Create the folder, where there are folders."""
        if self._has_folders:
            with _os_errors():
                self._files.makedirs(self._full(folder), exist_ok=True)

    def names(self, folder: str = "") -> list[str]:
        """Return the names at the address, or in a folder below it."""
        place = self._full(folder).strip("/")
        with _os_errors():
            self._files.invalidate_cache()
            try:
                entries = [str(entry).strip("/") for entry in self._files.ls(self._full(folder), detail=False)]
            except FileNotFoundError:
                return []
            if entries == [place] and self._files.info(self._full(folder)).get("type") == "file":
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), self.where(folder))
        return [entry.rpartition("/")[2] for entry in entries if entry != place]  # some stores list the folder itself

    def read(self, name: str) -> bytes:
        """Return the contents of a file."""
        with _os_errors():
            return bytes(self._files.cat_file(self._full(name)))

    def write(self, name: str, data: bytes) -> None:
        """Write a file at once on an object store, elsewhere under a temporary name that is then renamed."""
        try:
            with _os_errors():
                try:
                    self._write(self._full(name), data)
                except FileNotFoundError:  # another run of the study has finished and removed our temporary file
                    self._write(self._full(name), data)
        except OSError as error:
            text = f"{self.where(name)}: could not be written: {error.strerror or error}. Nothing was changed."
            raise OutputError(text) from error

    def _write(self, target: str, data: bytes) -> None:
        if not self._renames:
            self._files.pipe_file(target, data)
            return
        folder, _, last = target.rpartition("/")
        temporary = f"{folder}/.{last}.{uuid.uuid4().hex[:8]}.part"
        try:
            self._files.pipe_file(temporary, data)
            self._files.mv(temporary, target)
        except BaseException:
            with suppress(Exception):
                self._files.rm_file(temporary)
            raise

    def create(self, name: str, data: bytes) -> None:
        """Write a file unless it exists: exclusively on an object store; elsewhere the last of two at once wins."""
        with _os_errors(), suppress(FileExistsError):
            if not self._renames:
                self._files.pipe_file(self._full(name), data, mode="create")
            elif not self._files.exists(self._full(name)):
                self._write(self._full(name), data)

    def remove(self, name: str) -> None:
        """Remove a file."""
        with _os_errors(), suppress(FileNotFoundError):
            self._files.rm_file(self._full(name))

    def lock(self) -> AbstractContextManager[None]:
        """Lock nothing: two runs of one study write the same bytes."""
        return nullcontext()


Storage = LocalStorage | RemoteStorage


def is_address(path: str | os.PathLike[str]) -> bool:
    """Return whether a text is the address of remote storage rather than a path on this machine."""
    text = os.fspath(path)
    return isinstance(path, str) and bool(_ADDRESS.match(text)) and urlsplit(text).scheme not in ("file", "local")


def storage_at(path: str | os.PathLike[str]) -> Storage:
    """Return the storage at a path or an address; `file://` is a folder on this machine."""
    text = os.fspath(path)
    if is_address(path):
        return RemoteStorage(text)
    if isinstance(path, str) and _ADDRESS.match(text):
        parts = urlsplit(text)
        return LocalStorage(Path(unquote(parts.path if not parts.netloc else f"{parts.netloc}{parts.path}")))
    return LocalStorage(Path(text))


def _open_file_system(address: str) -> tuple[Any, str]:
    """Return the file system behind an address, and the path in it."""
    try:
        url_to_fs = import_module("fsspec.core").url_to_fs
    except ImportError:
        raise MissingExtra(f"{address}: remote storage", "remote") from None
    try:
        files, root = url_to_fs(address)
    except ImportError as error:  # fsspec names the package that supports such addresses
        raise OutputError(f"{address}: could not be used: {first_line(error)}.", remedy="Install it.") from error
    except Exception as error:  # each file system refuses an address in its own way
        raise ParameterError(f"{address}: expected an address that fsspec supports; {first_line(error)}.") from error
    root = str(root).rstrip("/")
    if not root:
        raise ParameterError(f"{address}: expected a folder below it, such as {address.rstrip('/')}/results.")
    return files, root


@contextmanager
def _os_errors() -> Iterator[None]:
    """Turn whatever a file system raises into an OSError: each has its own errors."""
    try:
        yield
    except (OSError, UnbanditError):
        raise
    except Exception as error:
        raise OSError(first_line(error)) from error
