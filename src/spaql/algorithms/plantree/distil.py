"""Distillation of look-ahead into trees, by dataset aggregation (DAgger)."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.plantree.explore import Plan
from spaql.algorithms.replay import ActionCode
from spaql.kernels.numerics import Floats, Rng, mean
from spaql.kernels.plantree.controllers import ControllerTree, controls, grow_choices, grow_laws
from spaql.kernels.plantree.pwa_model import move
from spaql.kernels.plantree.rollout import Simulation

_LABELLED = 3000
"""Labelled states: of the memory, and of each round in the learned plants."""
_ROUNDS = 3
_DAGGER_LEAVES = 32
"""Leaves of the trees that are rolled out in the learned plants."""
_DAGGER_LABELS = 1
"""Their kind of labels (see `_votes`): the best action, or for a Box weighted labels."""


def label_rollouts(
    plan: Plan, simulation: Simulation, tree: ControllerTree | None, count: int, rng: Rng
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
    chance, cut = np.zeros((2, episodes))
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
        move(simulation.plant, root, z, actions, chance, cut)
        age += 1
    # One episode after the other: successive states share cells, which then stay in the processor's cache.
    reached = states.reshape(episodes * length, -1)
    q = (
        plan.values_of(reached)
        if tree is not None
        else np.stack(action_values, axis=1).reshape(len(reached), -1)
    )
    return reached[:count], q[:count]


def label(
    plan: Plan, simulation: Simulation, code: ActionCode, states: Floats, rng: Rng
) -> tuple[Floats, Floats]:
    """Return states of the memory and states that trees reach, with the value of every action there."""
    sample = states[rng.permutation(len(states))[:_LABELLED]]
    z = sample
    q = plan.values_of(sample)
    tree = _grow(code, z, q, _DAGGER_LEAVES, _DAGGER_LABELS)
    for around in range(_ROUNDS):
        reached, values = label_rollouts(plan, simulation, tree if around else None, _LABELLED, rng)
        z = np.concatenate([z, reached])
        q = np.concatenate([q, values])
        if around < _ROUNDS - 1:
            tree = _grow(code, z, q, _DAGGER_LEAVES, _DAGGER_LABELS)
    return z, q


def distil(code: ActionCode, z: Floats, q: Floats, leaves: int) -> list[ControllerTree]:
    """Return controllers fitted to the values of actions, one for each kind of labels."""
    return [_grow(code, z, q, leaves, way) for way in range(3 if code.listed else 2)]


def _grow(code: ActionCode, z: Floats, q: Floats, leaves: int, way: int) -> ControllerTree:
    if code.listed:
        return grow_choices(z, _votes(q, way), leaves)
    u = code.tried()[q.argmax(axis=1)]
    weight = np.sqrt(np.ptp(q, axis=1)) if way else np.ones(len(z))
    return grow_laws(z, u, weight / (mean(weight) + 1e-12), leaves)


def _votes(q: Floats, way: int) -> Floats:
    """Return the votes for each action: minus the regret, which is best, or minus the root of the regret."""
    loss = q.max(axis=1, keepdims=True) - q
    if way == 1:
        return np.asarray(np.arange(q.shape[1]) == q.argmax(axis=1)[:, np.newaxis], np.float64)
    return np.asarray(-np.sqrt(loss) if way else -loss)
