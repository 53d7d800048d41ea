"""Which algorithm suits a problem and a budget."""

from __future__ import annotations

from spaql.problems import Problem

_FEW_STEPS = 20_000
"""With fewer steps than this, PlanTree is the better choice."""
_MANY_STEPS = 100_000
"""With more steps than this, TreeSearch is the better choice."""
CHOSEN = (
    "The plant is compiled and declares set-points: training with --algo treesearch, which searches "
    "on it for a PI or PID controller, and adds to that."
)


def default_algorithm(problem: Problem) -> str:
    """Return the algorithm that a problem is trained with if none is named."""
    return "treesearch" if problem.dynamics is not None and problem.setpoints else "plantree"


def recommended(algo: str, steps: int | None, problem: Problem) -> str:
    """Return the advice to use another algorithm for a number of steps, if there is a better one."""
    if steps is None or algo not in ("treesearch", "plantree"):
        return ""
    if default_algorithm(problem) == "treesearch":
        return (
            "The plant is compiled and declares set-points: --algo treesearch searches on it for a PI or PID "
            "controller, and needs no learned plant."
            if algo == "plantree"
            else ""
        )
    if algo == "treesearch" and steps < _FEW_STEPS:
        return (
            f"TreeSearch plays whole episodes to compare controllers, and {steps:,} steps are few for that: "
            "--algo plantree learns the plant, and needs fewer steps."
        )
    if algo == "plantree" and steps > _MANY_STEPS:
        return (
            f"PlanTree is made for simulators whose steps are few or slow. Of {steps:,} steps it learns from "
            "50,000, and TreeSearch spends the rest on its tree; --algo treesearch searches from the start."
        )
    return ""
