"""What was proven, refuted and left undecided."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.formatting import duration
from spaql.verify.replay import Counterexample
from spaql.verify.statement import Statement, box_text

PROVEN = 0
REFUTED = 1
UNDECIDED = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """The result of `spaql.verify`."""

    plant: str
    statement: Statement
    names: tuple[str, ...]
    """Of the state variables that matter."""
    left_out: tuple[str, ...]
    """Numbers of the state that nothing in the statement depends on."""
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    proven: float
    """Share of the statement's starts."""
    refuted: float
    undecided: float
    counterexample: Counterexample | None
    longest: int | None
    """Steps that suffice from every state that is proven, if the statement has a number of steps."""
    seconds: float
    """Of processor time, without compilation where kernels are cached."""
    finished: bool
    """Whether the search ended before the time was up."""
    status: NDArray[np.int8]
    """Of each cell: 0 proven, 1 refuted, 2 undecided; an axis for each number that matters."""
    times: NDArray[np.int32]
    """Steps that suffice from each cell; -1 where not proven."""
    turning: tuple[str, ...] = ()
    """Angles, of which it holds up to whole turns."""
    disturbed: str = ""
    """The disturbances that it holds for, in words."""
    delayed: bool = False
    """Whether every action comes a step late."""
    fingerprint: str = ""
    """Of the tree and the plant that it is about."""
    remarks: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The statement in words, with the angles of which it holds up to whole turns."""
        return self.statement.sentence(self.turning)

    def as_data(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        counterexample = self.counterexample
        return {
            "plant": self.plant,
            "statement": self.sentence,
            "proven": self.proven,
            "refuted": self.refuted,
            "undecided": self.undecided,
            "seconds": self.seconds,
            "finished": self.finished,
            "longest": self.longest,
            "counterexample": None if counterexample is None else list(counterexample.start),
            "why": None if counterexample is None else counterexample.why,
            "step": None if counterexample is None else counterexample.step,
            "numbers": list(self.names),
            "left_out": list(self.left_out),
            "remarks": list(self.remarks),
        }

    @property
    def text(self) -> str:
        """One sentence for each of proven, refuted and undecided."""
        where = box_text(self.statement.starts, wider=False)
        steps = f" At most {self.longest:,} steps are needed." if self.longest else ""
        lines = [
            f"{self.plant}, from {where}{self.disturbed}: {self.sentence}.",
            f"Proven from {percent(self.proven)} of these states.{steps} Refuted: {percent(self.refuted)}. "
            f"Undecided: {percent(self.undecided)}. {duration(self.seconds)} of processor time.",
        ]
        if self.counterexample is not None:
            start = ", ".join(f"{x:.6g}" for x in self.counterexample.start)
            why = f"{self.counterexample.why} (step {self.counterexample.step:,})"
            lines.append(f"Counterexample: from the state {start}, {why}.")
        return "\n".join([*lines, *self.remarks])

    def __str__(self) -> str:
        return self.text

    def coarser(self, most: int) -> Verdict:
        """Return the verdict with at most `most` cells, each with the worst of those it stands for.

        The shares stay those of the fine cells.
        """
        status = self.status
        times = self.times
        while status.size > most and all(side % 2 == 0 for side in status.shape):
            halves = [2] * status.ndim
            status = worst_status(status, halves)
            times = worst_times(times, halves)
        return dataclasses.replace(self, status=status, times=times, details={})


def worst_status(status: NDArray[np.int8], by: Sequence[int]) -> NDArray[np.int8]:
    """Return for blocks of cells refuted where any is, else undecided where any is, else proven.

    Examples
    --------
    >>> worst_status(np.array([[0, 0, 1, 2]], np.int8), [1, 2]).tolist()
    [[0, 1]]
    """
    blocks, inner = _blocks(status, by)
    undecided = np.where(np.any(blocks == UNDECIDED, axis=inner), UNDECIDED, PROVEN)
    return np.where(np.any(blocks == REFUTED, axis=inner), REFUTED, undecided).astype(np.int8)


def worst_times(times: NDArray[np.int32], by: Sequence[int]) -> NDArray[np.int32]:
    """Return the most steps of blocks of cells, -1 where any is not proven."""
    blocks, inner = _blocks(times, by)
    return np.where(blocks.min(axis=inner) < 0, -1, blocks.max(axis=inner)).astype(np.int32)


def _blocks(cells: NDArray[Any], by: Sequence[int]) -> tuple[NDArray[Any], tuple[int, ...]]:
    """Return cells with an axis for the blocks and one for what is in them, by turns."""
    shape = [size for side, width in zip(cells.shape, by, strict=True) for size in (side // width, width)]
    return cells.reshape(shape), tuple(range(1, 2 * cells.ndim, 2))


def percent(share: float) -> str:
    """Return a share as a percentage, rounded so that only all is 100 % and only none is 0 %.

    Examples
    --------
    >>> percent(1.0), percent(0.99999), percent(0.967), percent(0.0001), percent(0.0)
    ('100 %', '99.99 %', '96.70 %', '0.01 %', '0 %')
    """
    if share in (0.0, 1.0):
        return f"{100 * share:.0f} %"
    return f"{min(max(math.floor(share * 10_000) / 100, 0.01), 99.99):.2f} %"
