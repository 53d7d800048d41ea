"""What was proven, refuted and left undecided."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.verify.replay import Counterexample
from spaql.verify.statement import Statement, box_text

PROVEN, REFUTED, UNDECIDED = 0, 1, 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Verdict:
    """The result of `spaql.verify`."""

    plant: str
    statement: Statement
    names: tuple[str, ...]
    """Of the numbers of the state that matter."""
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
    disturbed: str = ""
    """The disturbances that it holds for, in words."""
    remarks: tuple[str, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """One sentence for each of proven, refuted and undecided."""
        where = box_text(self.statement.starts)
        steps = f" At most {self.longest:,} steps are needed." if self.longest else ""
        lines = [
            f"{self.plant}, from {where}{self.disturbed}: {self.statement.text}.",
            f"Proven from {percent(self.proven)} of these states.{steps} Refuted: {percent(self.refuted)}. "
            f"Undecided: {percent(self.undecided)}. {self.seconds:.1f} s of processor time.",
        ]
        if self.counterexample is not None:
            found = self.counterexample
            start = ", ".join(f"{x:.6g}" for x in found.start)
            lines.append(f"Counterexample: from the state {start}, {found.why} (step {found.step:,}).")
        return "\n".join([*lines, *self.remarks])

    def __str__(self) -> str:
        return self.text


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
