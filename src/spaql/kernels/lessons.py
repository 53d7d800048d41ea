"""What look-ahead would do in states that a controller comes to, for PlanTree."""

import numpy as np

from spaql.kernels.cells import Cells, look_ahead
from spaql.kernels.controllers import Controller, control, find_rule
from spaql.kernels.games import Game
from spaql.kernels.jit import njit_apart
from spaql.kernels.plants import Floats, Plant, predict


@njit_apart
def value_actions(
    plant: Plant,
    cells: Cells,
    value: Floats,
    actions: Floats,
    gamma: float,
    z: Floats,
) -> Floats:
    """Value every action at every state by look-ahead, unknown cells left out."""
    q = np.empty((z.shape[0], actions.shape[0]))
    for i in range(z.shape[0]):
        look_ahead(plant, cells, value, actions, False, gamma, z[i], q[i])
    return q


@njit_apart
def lessons(
    plant: Plant,
    cells: Cells,
    value: Floats,
    actions: Floats,
    gamma: float,
    game: Game,
    tree: Controller,
    follow_tree: bool,
    count: int,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Play in the game by a tree, or by look-ahead itself; gives states and what actions are worth there."""
    dims = game.starts.shape[1]
    z, q = np.empty((count, dims)), np.empty((count, actions.shape[0]))
    plants, room = game.plant, np.empty(dims + 1)
    state, action = np.empty(dims), np.empty(game.actions.shape[1])
    i = 0
    while i < count:
        start = rng.integers(0, game.starts.shape[0])
        root = game.plant.roots[rng.integers(0, game.plant.roots.shape[0])]
        state[:] = game.starts[start]
        for _ in range(game.steps):
            z[i] = state
            look_ahead(plant, cells, value, actions, False, gamma, state, q[i])
            if follow_tree:
                control(tree, find_rule(tree, state), state, game.actions, action)
            else:
                action[:] = game.actions[np.argmax(q[i])]
            i += 1
            chance = predict(plants, root, state, action, state, room)
            if i == count or rng.random() < chance:
                break
    return z, q
