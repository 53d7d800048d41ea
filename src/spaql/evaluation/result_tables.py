"""Results of evaluations as rows of tables."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spaql.evaluation.beside import Judged
from spaql.evaluation.control import BAND
from spaql.evaluation.robustness import RobustnessRow
from spaql.evaluation.stress import StressTest
from spaql.formatting import duration, number, places, with_interval
from spaql.tables import TextTable

MEASURES_MEAN = (
    "Medians over responses of rise time (10 to 90 % of a step), overshoot and settling time (within "
    f"{100 * BAND:.0f} % of the step, or three standard deviations of the noise); means of the steady-state "
    "error (last tenth) and of the integral of the absolute error (IAE). Movement: mean change between two "
    "samples, relative to the range."
)
LADDER_MEANS = (
    "Structures that were tried, all evaluated from the same starts. The chosen one (>) is the "
    "simplest on which no larger one improves by more than 1 % of the score per kind of feature and leaf, "
    "and by a paired test. The score is the return minus the price of movement and of switches between "
    "leaves, with more weight on the worst quarter. Score, return and worst are from training episodes, on "
    "perturbed plants unless the design is nominal; the other columns are from the plant's own episodes. "
    "Switches are counted per episode, between leaves, while no set-point changes."
)


LEARNED_MEANS = (
    "The plant is the learned plant: these returns are predictions, and its steps are not interactions."
)


def lags_text(lags: Sequence[str]) -> str:
    """Return the sentence on the state of a learned plant, by its lags (see `PlanTree.lags`)."""
    return (
        f"The state of the learned plant: the observation{''.join(f', {lag}' for lag in lags) or ' allag'}."
    )


def ladder_cells(rungs: Sequence[Mapping[str, Any]]) -> TextTable:
    """Return the structures that a ladder tried (see `TreeSearch.ladder` and `PlanTree.ladder`)."""
    return [
        {
            "structure": ("> " if row["chosen"] else "  ") + row["structure"],
            "score": f"{row['score']:.4g}",
            "return": f"{row['return']:.4g}",
            "worst": f"{row['worst']:.4g}",
            "nominal": _cell(row["nominal"], ".4g"),
            "steady-state error": _cell(row["error at rest"], ".2g"),
            "movement": "" if row["movement"] is None else f"{100 * row['movement']:.2g} %",
            "switches": _cell(row["switches"], ".2g"),
            "leaves": str(row["leaves"]),
            "parameters": str(row["numbers"]),
        }
        for row in rungs
    ]


def _cell(value: float | None, digits: str) -> str:
    """Return a number, or nothing where it was not measured."""
    return "" if value is None else f"{value:{digits}}"


def return_cells(rows: Sequence[Judged]) -> TextTable:
    """Return the returns of controllers, with differences from the first."""
    first = rows[0].evaluation
    digits = places(first.mean, first.ci95)
    return [
        {
            "controller": row.name,
            "return": with_interval(row.evaluation.mean, row.evaluation.ci95),
            "worst": number(float(row.evaluation.returns.min()), digits),
            "breaking": _breaking(row),
            "difference": with_interval(row.difference, row.difference_ci95) if row.steps else "",
            "parameters": f"{row.numbers}" if row.steps else "",
            "tuned with": f"{row.steps:,} steps" if row.steps else "",
        }
        for row in rows
    ]


def _breaking(row: Judged) -> str:
    """Return how many episodes violate a constraint."""
    broken = row.evaluation.broken
    return "" if broken is None else f"{int(broken.any(axis=1).sum()):,} of {len(broken):,}"


def loop_tables(rows: Sequence[Judged], where: str) -> Iterator[tuple[str, TextTable]]:
    """Yield tables of the measures of closed loops, with their titles."""
    first = rows[0]
    for j, tracking in enumerate(first.control.tracking):
        yield f"{tracking.name} to {tracking.setpoint}, in episodes of {where}", tracking_cells(rows, j)
    for k, actuator in enumerate(first.control.actuators):
        yield actuator.name, actuator_cells(rows, k)


def tracking_cells(rows: Sequence[Judged], index: int) -> TextTable:
    """Return how well controllers follow one set-point."""
    cells = []
    for row in rows:
        tracking = row.control.tracking[index]
        time = row.control.time_unit
        cells.append(
            {
                "controller": row.name,
                "rise": _time(tracking.rise_time, time),
                "overshoot": _share(tracking.overshoot),
                "settling": _time(tracking.settling_time, time),
                "settled": _share(tracking.settled),
                "steady-state error": _value(tracking.error_at_rest, tracking.unit),
                "worst": _value(tracking.worst_error_at_rest, tracking.unit),
                "IAE": _value(tracking.integral_of_absolute_error, f"{tracking.unit} {time}".strip()),
            }
        )
    return cells


def actuator_cells(rows: Sequence[Judged], index: int) -> TextTable:
    """Return how controllers use one actuator."""
    cells = []
    for row in rows:
        actuator = row.control.actuators[index]
        cells.append(
            {
                "controller": row.name,
                "movement": _share(actuator.movement, 2),
                "total variation": f"{actuator.total_variation:.3g}",
                "reversals": f"{actuator.reversals:.2g} / {row.control.time_unit.removesuffix('s') or 's'}",
                "at a limit": _share(actuator.at_limit),
            }
        )
    return cells


def _time(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return "never" if value == math.inf else ""
    return duration(value) if unit == "s" else f"{value:.3g} {unit}"


def _share(value: float, digits: int = 1) -> str:
    return "" if math.isnan(value) else f"{100 * value:.{digits}f} %"


def _value(value: float, unit: str) -> str:
    return "" if math.isnan(value) else f"{value:.3g} {unit}".rstrip()


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
