"""Everything that can go wrong, as one tree.

::

    UnbanditError
    ├── LogError            (ValueError)   the contents of a record: path, row, column, value
    ├── DescriptionError    (ValueError)   the contents of a study's description: path, place, key, value
    ├── ParameterError      (ValueError)   a parameter of a rule, an instance or a command
    ├── NotIdentifiable                    the record cannot tell, and why
    ├── InferenceError                     the record could tell, but the computation broke down
    ├── OutputError         (OSError)      a file could not be written; nothing was changed
    ├── ResumeError                        a folder of results does not fit the work asked for
    ├── ClusterError        (OSError)      a cluster cannot be reached, was lost, or has workers that do not fit
    └── MissingExtra        (ImportError)  an optional dependency; names the pip command
    AssumptionWarning       (UserWarning)  an answer was given on an assumption worth reading

A message is one sentence: what was expected, what came, what to do.
"""

from __future__ import annotations

__all__ = [
    "AssumptionWarning",
    "ClusterError",
    "DescriptionError",
    "InferenceError",
    "LogError",
    "MissingExtra",
    "NotIdentifiable",
    "OutputError",
    "ParameterError",
    "ResumeError",
    "UnbanditError",
]


class UnbanditError(Exception):
    """Stand above every error that this package raises on purpose."""


class LogError(UnbanditError, ValueError):
    """Refuse the contents of a record, and say where and why.

    Parameters
    ----------
    message
        What was expected, what came, what to do.
    path, row, column, value
        Where it is. Rows are the data rows of a table, counted from 1.
    line
        The line of a text file that the row stands in, the header being line 1.

    Examples
    --------
    >>> print(LogError('expected a whole number; got "x".', path="log.csv", row=7, line=8, column="round", value="x"))
    log.csv row 7 (line 8), column "round": expected a whole number; got "x".
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        row: int | None = None,
        line: int | None = None,
        column: str | None = None,
        value: object = None,
    ) -> None:
        self.message, self.path, self.row, self.line = message, path, row, line
        self.column, self.value = column, value
        super().__init__(message)

    def __str__(self) -> str:
        row = f"row {self.row}" if self.row is not None else ""
        if self.line is not None:
            row += f" (line {self.line})"
        place = " ".join(part for part in (self.path, row) if part)
        if self.column is not None:
            place = f'{place}, column "{self.column}"' if place else f'column "{self.column}"'
        return f"{place}: {self.message}" if place else self.message


class DescriptionError(UnbanditError, ValueError):
    """Refuse the file that describes a study, and say where and why.

    Parameters
    ----------
    message
        What was expected, what came, what to do.
    path, place, key, value
        Where it is: the file, the table in it, its key, and what stands there.

    Examples
    --------
    >>> print(DescriptionError("expected a number; got 'x'.", path="study.toml", place="instance 2", key="beta"))
    study.toml: instance 2: beta: expected a number; got 'x'.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        place: str | None = None,
        key: str | None = None,
        value: object = None,
    ) -> None:
        self.message, self.path, self.place, self.key, self.value = message, path, place, key, value
        super().__init__(message)

    def __str__(self) -> str:
        return ": ".join(part for part in (self.path, self.place, self.key, self.message) if part)


class ParameterError(UnbanditError, ValueError):
    """Refuse a parameter of a rule, an instance or a command."""


class NotIdentifiable(UnbanditError):
    """Say that the record cannot tell, and why."""


class InferenceError(UnbanditError):
    """Say that the computation broke down on a record that could tell."""


class OutputError(UnbanditError, OSError):
    """Say that a file could not be written; what stood there before still stands."""


class ResumeError(UnbanditError):
    """Say that a folder of results does not fit the work asked for."""


class ClusterError(UnbanditError, OSError):
    """Say that a cluster cannot be reached, was lost, or has workers that do not fit; what is done is kept."""


class MissingExtra(UnbanditError, ImportError):
    """Name the pip command that installs an optional dependency.

    Examples
    --------
    >>> print(MissingExtra("the web page", "web"))
    the web page needs an optional part of unbandit. Install it with: pip install "unbandit[web]"
    """

    def __init__(self, purpose: str, extra: str) -> None:
        super().__init__(
            f'{purpose} needs an optional part of unbandit. Install it with: pip install "unbandit[{extra}]"'
        )


class AssumptionWarning(UserWarning):
    """Tell that an answer rests on an assumption worth reading."""
