"""What stress tests found, as rows of cells for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spaql.training.robustness import RobustnessRow
from spaql.training.stress import StressTest

Cells = list[dict[str, str]]
MEASURES_MEAN = (
    "effort: the squared action, summed over time. switches: how often the action changes in a unit of time. "
    "chattering: the mean change of the action from one step to the next."
)


def worst_cells(result: StressTest, k: int) -> Cells:
    """Write the k worst starts, a row each."""
    rows = []
    for rank, episode in enumerate(result.worst(k), 1):
        start = {name: f"{x:.3f}" for name, x in zip(result.names, episode.start, strict=True)}
        rows.append({"": f"{rank}", "return": f"{episode.total:.1f}", "steps": f"{episode.length}", **start})
    return rows


def measure_cells(result: StressTest) -> Cells:
    """Write the measures of the closed loop, a row each."""

    def shown(value: float) -> str:
        return "never" if value == math.inf else "" if math.isnan(value) else f"{value:.3g}"

    return [
        {
            "measure": name.replace("_", " "),
            "median": shown(middle),
            "worst": shown(highest),
            "unit": result.units[name],
        }
        for name, (middle, highest) in result.summary.items()
    ]


def robustness_cells(rows: Sequence[RobustnessRow]) -> Cells:
    """Write the rows of a robustness table; the first one is nominal."""
    return [
        {
            "change": row.change,
            "return": f"{row.mean:.1f} ± {row.ci95:.1f}",
            "worst": f"{row.worst:.1f}",
            "against nominal": f"{row.difference:+.1f} ± {row.difference_ci95:.1f}" if i else "",
        }
        for i, row in enumerate(rows)
    ]
