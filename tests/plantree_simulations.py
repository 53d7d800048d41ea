"""Plants learned from samples of systems with known equations, and games in them."""

from collections.abc import Callable

import numpy as np
from gymnasium.spaces import Box, Discrete, Space

from spaql.algorithms.plantree.learned_plant import CAUTIOUS, draw_samples, fit_plant
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale
from spaql.kernels.plantree.controllers import ControllerTree
from spaql.kernels.plantree.pwa_model import PlantEnsemble
from spaql.kernels.plantree.rollout import Simulation

Step = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, float]]


def remember(
    step: Step, states: np.ndarray, actions: np.ndarray, ended: np.ndarray | None = None
) -> ReplayMemory:
    """A memory of steps from given states."""
    memory = ReplayMemory(states.shape[1], actions.shape[1])
    memory.begin()
    for i, (s, u) in enumerate(zip(states, actions, strict=True)):
        after, reward = step(s, u)
        memory.add(s, u, reward, after, ended=bool(ended[i]) if ended is not None else False)
    return memory


def everything(memory: ReplayMemory, code: ActionCode) -> tuple[Scale, PlantEnsemble]:
    """The one plant of all samples."""
    scale = Scale.of(memory)
    return scale, fit_plant(memory, scale, code, [np.arange(len(memory))], squares=False, margin=CAUTIOUS)


def double_integrator(rng: np.random.Generator) -> Simulation:
    """Forty starts of one plant, with quadratic cost."""
    return game_of(Box(-1.0, 1.0, (1,)), rng, plants=1, price=0.0, ends=False)


def game_of(
    space: Space, rng: np.random.Generator, *, plants: int = 2, price: float = 0.3, ends: bool = True
) -> Simulation:
    """A double integrator that is pushed by the first number of the action, or by the action's index less 1.

    It may end where the product of place and speed is large, which no box says.
    """

    def step(s: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, float]:
        push = code.raw(u) - 1 if isinstance(space, Discrete) else u[0]
        return np.array([s[0] + 0.1 * s[1], s[1] + 0.1 * push]), -float(s @ s + 0.1 * u @ u)

    code = ActionCode(space)
    states = rng.uniform(-1, 1, (3000, 2))
    listed = code.tried()[rng.integers(len(code.tried()), size=3000)]
    actions = listed if code.listed else rng.uniform(-1, 1, listed.shape)
    ended = np.prod(states, axis=1) > 0.1 if ends else None
    memory = remember(step, states, actions, ended)
    scale = Scale.of(memory)
    samples = draw_samples(len(memory), plants, rng)
    plant = fit_plant(memory, scale, code, samples, squares=True, margin=CAUTIOUS)
    starts = scale.z(rng.uniform(-0.5, 0.5, (40, 2)))
    actions = code.inputs(code.tried(), squares=True)
    return Simulation(plant, actions, starts, np.arange(40) % plants, 60, price)


def four_leaves(space: Space, rng: np.random.Generator) -> ControllerTree:
    """A poor tree of four rules."""
    laws = (
        rng.permutation(np.array([0.0, 1.0, 2.0, 1.0, 0.0, 2.0, 1.0]))[:, np.newaxis, np.newaxis]
        if isinstance(space, Discrete)
        else rng.normal(0, 0.3, (7, space.shape[0], 3))
    )
    feature = np.array([0, 1, 1, -1, -1, -1, -1])
    return ControllerTree(feature, np.zeros(7), np.array([1, 3, 5, 0, 0, 0, 0]), laws)
