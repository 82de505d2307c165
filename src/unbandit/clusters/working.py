"""What a cluster's workers call: a call in bytes, its outcome in bytes."""

from __future__ import annotations

import pickle

__all__ = ["work"]


def work(call: bytes) -> bytes:
    """Do a call and return ``("done", value)`` or ``("failed", error)``, pickled.

    Errors come back as values: what a cluster raises of itself is then always about the cluster.

    Examples
    --------
    >>> pickle.loads(work(pickle.dumps((divmod, (7, 2)))))
    ('done', (3, 1))
    >>> pickle.loads(work(pickle.dumps((divmod, (7, 0)))))
    ('failed', ZeroDivisionError('integer division or modulo by zero'))
    """
    try:
        function, arguments = pickle.loads(call)
        return pickle.dumps(("done", function(*arguments)))
    except Exception as error:  # the task's own: raised again where it was asked for
        return _failed(error)


def _failed(error: Exception) -> bytes:
    try:
        data = pickle.dumps(("failed", error))
        pickle.loads(data)
    except Exception:  # an error that does not travel
        data = pickle.dumps(("failed", RuntimeError(f"{type(error).__name__}: {error}")))
    return data
