"""Results of stress tests as rows of tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spaql.evaluation.robustness import RobustnessRow
from spaql.evaluation.stress import StressTest
from spaql.formatting import number, places, with_interval
from spaql.tables import TextTable


def worst_cells(result: StressTest, k: int) -> TextTable:
    """Return the k worst starts, one row each."""
    rows = []
    for rank, episode in enumerate(result.worst(k), 1):
        start = {name: f"{x:.3f}" for name, x in zip(result.names, episode.start, strict=True)}
        rows.append(
            {
                "": f"{rank}",
                "return": number(episode.total, result.digits),
                "steps": f"{episode.length}",
                **start,
            }
        )
    return rows


def robustness_cells(rows: Sequence[RobustnessRow]) -> TextTable:
    """Return the rows of a robustness table; the first one is nominal."""
    return [
        {
            "change": row.change,
            "return": with_interval(row.mean, row.ci95),
            "worst": number(row.worst, places(row.mean, row.ci95)),
            "against nominal": _signed(row.difference, row.difference_ci95) if i else "",
        }
        for i, row in enumerate(rows)
    ]


def _signed(difference: float, half: float) -> str:
    """Return a difference with its sign and interval."""
    return f"{'+' if math.copysign(1, difference) > 0 else ''}{with_interval(difference, half)}"
