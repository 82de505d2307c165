"""Write files whole or not at all, and keep others out of a folder meanwhile."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unbandit.errors import OutputError, ResumeError

__all__ = ["locked", "written_whole"]


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary name beside `path`, and rename it to `path` when the block ends well.

    When the block fails, for want of room on the disk or otherwise, `path` is as it was before.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with written_whole(folder / "a.txt") as temporary:
    ...     _ = temporary.write_text("whole")
    >>> (folder / "a.txt").read_text()
    'whole'
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
    except OSError as error:
        raise OutputError(f"{target}: could not be written: {error.strerror or error}. Nothing was changed.") from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    """Read the process's file mode mask (which the system only tells by setting it)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


_MASK = _umask()


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep everybody else out of a folder; the lock is the folder's own, and leaves no file behind."""
    try:
        import fcntl
    except ImportError:  # there is no such lock on this system
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ResumeError(
                f"{folder}: another run is at work in this folder. Wait until it ends, or stop it."
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP):  # a file system without locks
                raise
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process forked meanwhile must not go on holding it
        os.close(handle)
