"""The conditions of an evaluation: nominal, perturbed and disturbed plants."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import ArrayLike

from spaql.agents import Agent
from spaql.controllers import Policy, RecordingPolicy
from spaql.controllers.policy import opened
from spaql.errors import SettingError
from spaql.evaluation.episodes import Playable, evaluate
from spaql.problems import Problem, perturbed
from spaql.problems.variants import derived_id, paired_states
from spaql.simulate import Evaluation
from spaql.simulate.batches import fresh_states
from spaql.simulate.play import play
from spaql.simulate.seeds import Purpose, generator
from spaql.spaces import count_actions

PERTURBED = "perturbed"
NOMINAL = "nominal"
CONDITION_TEXTS = {PERTURBED: "perturbed plants", NOMINAL: "the nominal plant"}
"""The plants of each condition, for people."""


def conditions_of(agent: Playable, problem: Problem) -> tuple[str, ...]:
    """Return the conditions to evaluate in, beginning with the one for which a controller was designed.

    An agent knows how it was trained. A controller alone does not: it counts as designed for
    perturbed plants where TreeSearch would train on them: with set-points or a declared perturbation. Without
    equations, and if nothing is declared, only the nominal plant is available.

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
    """Return a problem with its nominal plant, or with perturbed plants.

    Examples
    --------
    >>> import spaql
    >>> in_condition(spaql.make_problem("spaql/Oven-v0"), "perturbed").dynamics.gain
    0.2
    """
    if condition == NOMINAL:
        return problem
    if problem.dynamics is None:
        raise SettingError(f"Only compiled plants can be perturbed, and this one runs on {problem.runs_on}.")
    plant = perturbed(problem.dynamics)
    return dataclasses.replace(problem, env=plant.id, dynamics=plant, plant={})


def disturbed(
    problem: Problem, *, noise: ArrayLike = 0.0, action_noise: ArrayLike = 0.0, late: bool = False
) -> Problem:
    """Return a problem with more noise on observations and actions, or with delayed observations.

    Parameters
    ----------
    problem
        The problem.
    noise
        Standard deviation of the noise on each component of an observation.
    action_noise
        Standard deviation of the noise on each component of an action; for discrete actions, the probability
        that a random action replaces the chosen one.
    late
        Whether observations are delayed by one step.

    Examples
    --------
    >>> import spaql
    >>> disturbed(spaql.make_problem("spaql/Oven-v0"), noise=0.4).dynamics.noise
    {'temperature [°C]': 0.4, 'set-point [°C]': 0.4}
    """
    sensors = np.broadcast_to(noise, problem.states.dims)
    actuators = np.broadcast_to(action_noise, count_actions(problem.actions.space))
    plant = problem.dynamics
    if plant is None:
        changes = {
            "noise": dict(enumerate(sensors.tolist())),
            "action_noise": dict(enumerate(actuators.tolist())),
            "late_observations": late,
        }
        return dataclasses.replace(problem, disturbances=changes)
    if not (sensors.any() or actuators.any() or late):
        return problem
    own = plant.disturbances
    probability = own.action_noise + (1.0 - np.array(own.action_noise)) * actuators
    actuators = np.hypot(own.action_noise, actuators) if own.low else probability
    more = {
        "noise": dict(zip(plant.observations, np.hypot(own.noise, sensors).tolist(), strict=True)),
        "action_noise": dict(zip(plant.actions, actuators.tolist(), strict=True)),
        "late_observations": own.late_observations or late,
    }
    noisier = dataclasses.replace(plant, id=derived_id(plant, "disturbed", more), **more)  # type: ignore[arg-type]
    return dataclasses.replace(problem, env=noisier.id, dynamics=noisier, plant={})


def paired_episodes(
    policy: Policy, nominal: Problem, where: Problem, *, episodes: int, seed: int
) -> Evaluation:
    """Return episodes with deterministic actions on a changed plant, with the starts of the nominal plant.

    If both are compiled, loads and noise are also the same.
    """
    if nominal.dynamics is None or where.dynamics is None:
        return evaluate(policy, where, episodes=episodes, seed=seed, deterministic=True)
    # The starts of a partition policy would differ from those of the policies that wrap it.
    states = fresh_states(RecordingPolicy(policy), nominal, episodes, seed)
    rng = generator(seed, Purpose.DISTURBANCE, 2)
    starts = paired_states(nominal.dynamics, states, where.dynamics, rng)
    played = list(play(policy, where, starts))
    return Evaluation(
        np.array([episode.total for episode in played]),
        np.array([episode.length for episode in played]),
        np.array([episode.observations[0] for episode in played]),
    )
