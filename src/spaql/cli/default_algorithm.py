"""Which algorithm suits a problem and a budget."""

from __future__ import annotations

from spaql.problems import Problem

DEFAULT_STEPS = 5_000
"""Training steps, except TreeSearch's."""
SEARCH_STEPS = 1_000_000
"""Training steps of TreeSearch."""
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


def suited_algorithm(problem: Problem, steps: int | None) -> str:
    """Return the algorithm that suits a problem and a number of steps, if that is given."""
    return "treesearch" if steps is not None and steps > _MANY_STEPS else default_algorithm(problem)


def default_steps(algo: str) -> int:
    """Return the default number of training steps of an algorithm."""
    return SEARCH_STEPS if algo == "treesearch" else DEFAULT_STEPS


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
