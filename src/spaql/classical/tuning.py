"""Tuning of textbook controllers on the simulator that a learned one was trained on."""

from __future__ import annotations

from gymnasium.spaces import Discrete

from spaql.classical.lqr import tuned_lqr
from spaql.classical.pid import tuned_pid
from spaql.classical.search import Simulator, Tuned
from spaql.errors import SettingError, nearest
from spaql.problems import Problem
from spaql.values import whole_number

METHODS = ("pid", "lqr")
"""The controllers that can be tuned."""


def check_method(method: str) -> None:
    """Refuse the name of a controller that there is not."""
    if method not in METHODS:
        raise SettingError(f"There is no classical controller {method!r}: {nearest(method, METHODS)}")


def tune(problem: Problem, method: str, *, steps: int = 200_000, seed: int = 0) -> Tuned:
    """Return a PID controller or a linear regulator for a problem, tuned for its return by CMA-ES.

    Parameters
    ----------
    problem
        The problem; give that of a perturbed plant to tune for it (see `spaql.problems.perturbed`).
    method
        `pid`: a PID controller for each set-point, with anti-windup and a filtered derivative; its numbers
        are Kp, Ti, Td, the time constant of the filter, and a bias. `lqr`: a linear regulator of the
        linearised plant, with and without integral action, of which the better one is returned; the weights
        are tuned. A pole that falls from its rest gets energy pumping, with the regulator near the top.
    steps
        Simulator steps for it; a little more are made only if one generation needs more.
    seed
        Of the search and its episodes.

    Examples
    --------
    >>> from spaql import make_problem
    >>> oven = tune(make_problem("spaql/Oven-v0"), "pid", steps=40_000)
    >>> oven.name, oven.numbers, oven.steps <= 40_000
    ('pid', 5, True)
    """
    steps = whole_number("steps", steps, least=1)
    check_method(method)
    if isinstance(problem.actions.space, Discrete):
        raise SettingError(f"{method} needs actions with a range, and those of {problem.name} are a list.")
    simulator = Simulator(problem, seed)
    return (tuned_pid if method == "pid" else tuned_lqr)(problem, simulator, steps)
