"""Which algorithm suits a problem and a budget."""

from __future__ import annotations

from spaql.problems import Problem

_FEW_STEPS = 20_000
"""With fewer steps than this, PlanTree is the better choice."""
_MANY_STEPS = 100_000
"""With more steps than this, TreeSearch is the better choice."""
CHOSEN = (
    "The plant is compiled and declares set-points: training with --algo treesearch, which tunes "
    "a PI or PID controller on it and extends it."
)


def default_algorithm(problem: Problem) -> str:
    """Return the default algorithm for a problem."""
    return "treesearch" if problem.dynamics is not None and problem.setpoints else "plantree"


def recommended(algo: str, steps: int | None, problem: Problem) -> str:
    """Return the advice to use another algorithm for a number of steps, if there is a better one."""
    if steps is None or algo not in ("treesearch", "plantree"):
        return ""
    if default_algorithm(problem) == "treesearch":
        return (
            "The plant is compiled and declares set-points: --algo treesearch tunes a PI or PID "
            "controller on it, and needs no learned plant."
            if algo == "plantree"
            else ""
        )
    if algo == "treesearch" and steps < _FEW_STEPS:
        return (
            f"TreeSearch compares controllers by whole episodes, for which {steps:,} steps are few: "
            "--algo plantree learns the plant and needs fewer steps."
        )
    if algo == "plantree" and steps > _MANY_STEPS:
        return (
            f"PlanTree is designed for few or slow simulator steps. Of {steps:,} steps it learns from "
            "50,000, and TreeSearch improves its tree in the rest; --algo treesearch searches from the start."
        )
    return ""
