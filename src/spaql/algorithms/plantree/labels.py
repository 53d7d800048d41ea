"""What look-ahead would do in states that a controller comes to."""

from __future__ import annotations

import numpy as np

from spaql.algorithms.plantree.memory import Floats
from spaql.algorithms.plantree.planning import Plan
from spaql.kernels.plantree.controllers import Controller, controls
from spaql.kernels.plantree.pwa_model import move
from spaql.kernels.plantree.rollout import Game


def lessons(
    plan: Plan, game: Game, tree: Controller | None, count: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Play in the game by a tree, or by look-ahead itself; returns states, and what actions are worth there.

    As many episodes are played side by side as are needed if each lasts until the horizon; where one ends,
    another begins.
    """
    together = max(1, count // game.steps)
    length = -(-count // together)
    states, worth = np.empty((together, length, game.starts.shape[1])), []
    z, chance, age = states[:, 0].copy(), np.zeros(together), np.full(together, game.steps)
    root = np.zeros(together, np.int64)
    for step in range(length):
        over = (age == game.steps) | (rng.random(together) < chance)
        z[over] = game.starts[rng.integers(len(game.starts), size=together)][over]
        root[over] = game.plant.roots[rng.integers(len(game.plant.roots), size=together)][over]
        age[over] = 0
        states[:, step] = z
        if tree is None:
            worth.append(plan.values_of(z))
            actions = game.actions[worth[-1].argmax(axis=1)]
        else:
            actions = controls(tree, z, game.actions)
        move(game.plant, root, z, actions, chance)
        age += 1
    # One episode after the other: neighbours share cells, which then stay in the cache.
    met = states.reshape(together * length, -1)
    q = plan.values_of(met) if tree is not None else np.stack(worth, axis=1).reshape(len(met), -1)
    return met[:count], q[:count]
