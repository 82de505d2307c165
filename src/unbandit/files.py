"""Files written whole or not at all, and a lock on a folder.

By hand because no library does it in few lines: a temporary name in the same folder, flushed to disk, with the
user's file mode, and renamed; and a lock that leaves no file behind and ends with the process.
"""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from unbandit.errors import OutputError, ResumeError


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
            raise ResumeError(
                f"{folder}: another run is working in this folder. Wait until it ends, or stop it."
            ) from None
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP):  # a file system without locks
                raise
        yield
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process forked in the meantime must not keep it
        os.close(handle)
