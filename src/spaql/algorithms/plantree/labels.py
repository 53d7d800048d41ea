"""Labels of look-ahead in the states that a controller reaches."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.plantree.planning import Plan
from spaql.algorithms.replay.memory import Floats
from spaql.kernels.plantree.controllers import ControllerTree, controls
from spaql.kernels.plantree.pwa_model import move
from spaql.kernels.plantree.rollout import Simulation


def label_rollouts(
    plan: Plan, simulation: Simulation, tree: ControllerTree | None, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Roll out a tree, or look-ahead itself; returns states, and the value of every action there.

    As many episodes run in parallel as are needed if each lasts until the horizon; where one ends, another
    starts.
    """
    episodes = max(1, count // simulation.steps)
    length = -(-count // episodes)
    states = np.empty((episodes, length, simulation.starts.shape[1]))
    action_values = []
    z = states[:, 0].copy()
    chance = np.zeros(episodes)
    age = np.full(episodes, simulation.steps)
    root = np.zeros(episodes, np.int64)
    for step in range(length):
        over = (age == simulation.steps) | (rng.random(episodes) < chance)
        z[over] = simulation.starts[rng.integers(len(simulation.starts), size=episodes)][over]
        root[over] = simulation.plant.roots[rng.integers(len(simulation.plant.roots), size=episodes)][over]
        age[over] = 0
        states[:, step] = z
        if tree is None:
            action_values.append(plan.values_of(z))
            actions = simulation.actions[action_values[-1].argmax(axis=1)]
        else:
            actions = controls(tree, z, simulation.actions)
        move(simulation.plant, root, z, actions, chance)
        age += 1
    # One episode after the other: successive states share cells, which then stay in the processor's cache.
    reached = states.reshape(episodes * length, -1)
    q = (
        plan.values_of(reached)
        if tree is not None
        else np.stack(action_values, axis=1).reshape(len(reached), -1)
    )
    return reached[:count], q[:count]
