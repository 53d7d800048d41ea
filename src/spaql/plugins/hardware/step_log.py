"""The log of a plant: a row for every sample, written as it comes."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from spaql.errors import SettingError

Row = dict[str, object]


class StepLog:
    """A CSV file that holds every sample at any time, also if the process is killed.

    What was played upon an observation is known only with the next one, and an observation may come late: the
    rows since the last observation are written again, in place, at every change. None becomes shorter.
    """

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str]) -> None:
        self.path = Path(path)
        self._columns = tuple(columns)
        if twice := [name for name in self._columns if self._columns.count(name) > 1]:
            raise SettingError(f"The log would have two columns {twice[0]!r}: rename one.")
        if not self.path.exists():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(self._text([dict(zip(columns, columns, strict=True))]), encoding="utf-8")
        self._file = self.path.open("r+b", buffering=0)
        self._open: dict[int, Row] = {}
        self._end, self.episode = self._read()

    def _read(self) -> tuple[int, int]:
        """Return where to go on, and the number of the last episode, of a log that may have rows already."""
        head = self._file.readline().decode("utf-8", "replace")
        if head != self._text([dict(zip(self._columns, self._columns, strict=True))]):
            self._file.close()
            raise SettingError(f"{self.path} is there already, with other columns: name another file.")
        end = len(head.encode())
        last = b""
        number = self._columns.index("episode")
        for line in self._file:
            if line.endswith(b"\n"):  # the rest of a line that a power failure has cut is written over
                end = end + len(line)
                last = line
        self._file.truncate(end)
        cells = next(csv.reader([last.decode("utf-8")]), [])
        return end, int(cells[number]) if cells else -1

    def begin(self) -> None:
        """Begin an episode."""
        self._close_rows(None)
        self.episode += 1

    def write(self, rows: Mapping[int, Row], final: int | None = None) -> None:
        """Add cells to the rows of samples, new ones or those since the last final one.

        Rows of samples before `final` are not changed any more.
        """
        for sample, cells in rows.items():
            if sample in self._open or sample > max(self._open, default=-1):
                self._open.setdefault(sample, {"episode": self.episode, "sample": sample}).update(cells)
        self._file.seek(self._end)
        self._file.write(self._text([self._open[i] for i in sorted(self._open)]).encode())
        if final is not None:
            self._close_rows(final)

    def _close_rows(self, before: int | None) -> None:
        """Leave rows before a sample, or all, as they are."""
        for sample in sorted(self._open):
            if before is None or sample < before:
                self._end += len(self._text([self._open.pop(sample)]).encode())

    def _text(self, rows: Sequence[Row]) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([[row.get(name, "") for name in self._columns] for row in rows])
        return text.getvalue()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
