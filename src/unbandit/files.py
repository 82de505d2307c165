"""Files written whole or not at all, tables among them, and a lock on a folder.

By hand because no library does it in few lines: a temporary name in the same folder, flushed to disk, with the
user's file mode, and renamed; and a lock that leaves no file behind and ends with the process.
"""

import errno
import gzip
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from unbandit.errors import OutputError, ParameterError, ResumeError, first_line

if TYPE_CHECKING:
    import polars as pl

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".parquet": "", ".csv.gz": ",", ".tsv.gz": "\t"}


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path next to `path`, and rename it to `path` when the block succeeds.

    When the block fails, because the disk is full or otherwise, `path` is as it was before.
    """
    target = Path(path)
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        yield temporary
        with temporary.open("rb+") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o666 & ~_MASK)
        temporary.replace(target)
    except OutputError:  # it already says what went wrong
        raise
    except OSError as error:
        raise OutputError(f"{target}: could not be written: {error.strerror or error}. Nothing was changed.") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Read the process's file mode mask, which the system only returns when it is set."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


_MASK = _umask()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a lock on a folder itself; another process, or another lock in this one, is refused."""
    try:
        import fcntl
    except ImportError:  # this system has no such lock
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = f"{folder}: another run is working in this folder. Wait until it ends, or stop it."
            raise ResumeError(text) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP):  # a file system without locks
                raise
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process forked in the meantime must not keep it
        os.close(handle)


def _ending(path: str | os.PathLike[str]) -> str | None:
    name = Path(path).name.lower()
    return next((ending for ending in _SEPARATORS if name.endswith(ending)), None)


def check_name(path: str | os.PathLike[str], also: Sequence[str] = (), parameter: str = "path") -> None:
    """Refuse a file name of no known format, before any work is done; `also` are formats that others write.

    >>> check_name("log.xlsx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    unbandit.errors.ParameterError: path: expected a name that ends in .csv, ...; got "log.xlsx".
    """
    name = os.fspath(path)
    if _ending(path) is None:
        text = f'expected a name that ends in {", ".join((*_SEPARATORS, *also))}; got "{name}".'
        raise ParameterError(text, parameter=parameter, value=name)


def write_table(make: "Callable[[], pl.DataFrame]", path: str | os.PathLike[str]) -> Path:
    """Write the table that `make` gives, and return the path; it is not made for a name of no known format.

    >>> import tempfile, polars as pl
    >>> path = Path(tempfile.mkdtemp()) / "pulls.tsv"
    >>> write_table(lambda: pl.DataFrame({"arm": ["A"], "pulls": [3]}), path).read_text()
    'arm\\tpulls\\nA\\t3\\n'
    """
    import polars as pl  # here, since the help of the command line needs none

    check_name(path)
    ending, frame = _ending(path) or "", make()
    with written_whole(path) as temporary, temporary.open("wb") as file:
        try:
            if ending == ".parquet":
                frame.write_parquet(file)
            elif ending.endswith(".gz"):
                # Without name and time inside, equal tables give equal files.
                with gzip.GzipFile("", "wb", compresslevel=6, fileobj=file, mtime=0) as packed:
                    frame.write_csv(cast(IO[bytes], packed), separator=_SEPARATORS[ending])
            else:
                frame.write_csv(file, separator=_SEPARATORS[ending])
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            # The only thing that can fail here is the disk, whatever polars calls it.
            raise OSError(first_line(error)) from error
    return Path(path)
