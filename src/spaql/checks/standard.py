"""Checks of the standardisation of observations and actions, and of compiled plants."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Discrete

from spaql.agents.problem_file import problem_from, problem_to
from spaql.archive import dumps, loads
from spaql.checks.episodes import ProblemCase
from spaql.checks.report import fail, skip


def standard_observations_use_the_cube(case: ProblemCase) -> None:
    """Every number uses a fair part of its range in the cube, so that a partition can resolve its values."""
    spread = np.ptp(case.standard, axis=0)
    seen = np.array([np.asarray(x, np.float64).ravel() for x in case.observations])
    for j in np.flatnonzero((spread < 1e-4) & (np.ptp(seen, axis=0) > 0)):
        fail(f"Number {j} uses {spread[j] / 2:.1g} of its range: give tighter bounds, or squash it.")


def the_reference_can_be_reached(case: ProblemCase) -> None:
    """The reference is an observation: it lies in the observation space."""
    if case.problem.reference is None:
        skip("The problem has no reference.")
    space = case.problem.states.space
    reference = np.array(case.problem.reference)
    inside = isinstance(space, Discrete) or np.all((space.low <= reference) & (reference <= space.high))
    if not inside or not np.isfinite(reference).all():
        fail(f"{reference} is not in {space}.")


def the_problem_can_be_saved(case: ProblemCase) -> None:
    """The problem is unchanged when it is saved and loaded."""
    document = loads(dumps(*problem_to(case.problem)))
    again = problem_from(document.data, document.arrays)
    if dumps(*problem_to(again)) != dumps(*problem_to(case.problem)):
        fail("Its description differs.")


def the_compiled_plant_is_the_written_one(case: ProblemCase) -> None:
    """Compiled dynamics return the same as their functions in plain Python."""
    dynamics = case.problem.dynamics
    if dynamics is None:
        skip("There are no compiled dynamics.")
    start, play, observe = dynamics.functions
    rng = np.random.default_rng(0)
    one = np.ones(1, np.bool_)
    for _ in range(20):
        state = tuple(float(x) for x in start(rng))
        action = case.actions.sample()
        given = np.array(action, np.float64).reshape(1, -1)
        played = int(action) if isinstance(case.problem.actions.space, Discrete) else given[0].copy()
        written, reward, terminated = play(state, played)
        states = np.array([state])
        seen, rewards, ended = dynamics.plant.step_rows(one, given, states)
        pairs = ((states[0], written), (seen[0], np.float32(observe(written))), (rewards[0], reward))
        same = all(np.allclose(a, b, rtol=1e-6, atol=1e-9) for a, b in pairs) and ended[0] == terminated
        if not same:
            fail(
                f"From {state} with {action}: {states[0]} and {rewards[0]} compiled, but {written} and "
                f"{reward} in Python."
            )
