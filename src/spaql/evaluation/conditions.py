"""The conditions in which a controller is evaluated: perturbed plants, and the nominal one."""

from __future__ import annotations

import dataclasses

from spaql.agents import Agent
from spaql.errors import SettingError
from spaql.evaluation.episodes import Playable
from spaql.policy.resolve import opened
from spaql.problems import Problem, perturbed

PERTURBED = "perturbed"
NOMINAL = "nominal"
CONDITION_TEXTS = {PERTURBED: "perturbed plants", NOMINAL: "the nominal plant"}
"""What is evaluated on in each condition, for people."""


def conditions_of(agent: Playable, problem: Problem) -> tuple[str, ...]:
    """Return the conditions to evaluate in, the one that a controller was designed for first.

    An agent knows how it was trained. Of a controller alone that is not known: it counts as designed for
    perturbed plants where TreeSearch would do so, with set-points or a declared perturbation. Without
    equations, and where nothing is declared, there is the nominal plant only.

    Examples
    --------
    >>> import spaql
    >>> oven = spaql.make_problem("spaql/Oven-v0")
    >>> conditions_of(spaql.RandomPolicy(oven.states, oven.actions), oven)
    ('perturbed', 'nominal')
    """
    source = opened(agent)
    plant = problem.dynamics
    if plant is None:
        return (NOMINAL,)
    declares = plant.perturbation is not None
    if isinstance(source, Agent):
        design = source.designed_for
    else:
        design = PERTURBED if declares or plant.setpoints else NOMINAL
    if design == PERTURBED:
        return (PERTURBED, NOMINAL)
    return (NOMINAL, PERTURBED) if declares or plant.declares_more else (NOMINAL,)


def in_condition(problem: Problem, condition: str) -> Problem:
    """Return a problem with its own plant, or with the perturbed one.

    Examples
    --------
    >>> import spaql
    >>> in_condition(spaql.make_problem("spaql/Oven-v0"), "perturbed").dynamics.gain
    0.2
    """
    if condition == NOMINAL:
        return problem
    if problem.dynamics is None:
        raise SettingError(f"Only compiled plants can be perturbed, and this runs on {problem.runs_on}.")
    plant = perturbed(problem.dynamics)
    return dataclasses.replace(problem, env=plant.id, dynamics=plant, plant={})
