"""Write an answer as a table, as JSON or as a picture, as the file's name says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from unbandit.errors import OutputError, ParameterError

if TYPE_CHECKING:
    import polars
    from matplotlib.figure import Figure

__all__ = ["Answer", "check_folder", "check_output", "write_answer"]

PICTURES = (".png", ".svg")


class Answer(Protocol):
    """Stand for anything that is a table, JSON and a picture."""

    @property
    def frame(self) -> polars.DataFrame:
        """Return the table."""

    def to_json(self) -> str:
        """Return the JSON text."""

    def plot(self) -> Figure:
        """Return the picture."""


def check_folder(path: str) -> None:
    """Refuse a place that is not there before the work is done, and before anything is written."""
    if not Path(path).absolute().parent.is_dir():
        raise OutputError(f"{path}: could not be written: its folder is not there. Make the folder first.")


def check_output(output: str | None) -> None:
    """Refuse a name of no known format, or a folder that is not there."""
    from unbandit.log.writing import check_name

    if output is None:
        return
    if not output.lower().endswith((*PICTURES, ".json")):
        try:
            check_name(output)
        except ParameterError as error:
            also = ", ".join((*PICTURES, ".json"))
            raise ParameterError(
                f"{str(error).removeprefix('path: ').rstrip('.')} (or {also}).", parameter="output"
            ) from None
    check_folder(output)


def write_answer(answer: Answer, output: str) -> None:
    """Write the table, the JSON or the picture; whole, or not at all."""
    from unbandit.files import written_whole
    from unbandit.log.writing import write_table

    name = output.lower()
    if name.endswith(PICTURES):
        from unbandit.plots import save

        save(answer.plot(), output)
    elif name.endswith(".json"):
        with written_whole(output) as temporary:
            temporary.write_text(answer.to_json() + "\n", encoding="utf-8")
    else:
        write_table(lambda: answer.frame, output)
