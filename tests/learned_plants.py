"""Agents that know a plant from random steps, and have not searched for a controller."""

from functools import cache

import gymnasium
import numpy as np
from gymnasium.spaces import Box

import spaql

ENVIRONMENTS = ["CartPole-v1", "Pendulum-v1", "Acrobot-v1"]


class Affine(gymnasium.Env):
    """A stable plant that is one affine law."""

    observation_space = Box(-100.0, 100.0, (2,), np.float64)
    action_space = Box(-2.0, 4.0, (1,), np.float64)
    a = np.array([[0.9, 0.2], [-0.1, 0.95]])
    b = np.array([0.1, 0.3])
    c = np.array([0.5, 0.0])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.s = self.np_random.normal(2.0, 3.0, 2)
        return self.s.copy(), {}

    def step(self, u):
        reward = float(self.s @ [1.0, -2.0] + 3.0 * u[0] + 7.0)
        self.s = self.a @ self.s + self.b * u[0] + self.c
        return self.s.copy(), reward, False, False, {}


class Low(gymnasium.Wrapper):
    """Acrobot whose goal is low."""

    def step(self, action):
        observation, _, _, truncated, info = super().step(action)
        c1, s1, c2, s2 = observation[:4]
        ended = bool(-c1 - (c1 * c2 - s1 * s2) > -1.3)
        return observation, 0.0 if ended else -1.0, ended, truncated, info


def experienced(env: object, steps: int = 3000, episode: int = 60) -> spaql.PlanTree:
    """An agent that remembers random steps."""
    more = {"horizon": episode} if isinstance(env, gymnasium.Env) else {}
    agent = spaql.PlanTree(env, seed=0, mirror="off", **more)
    memory = agent._learner.memory
    code = agent._learner.code
    rng = np.random.default_rng(0)
    plant = agent.problem.make()
    ended = True
    taken = 0
    while len(memory) < steps:
        if ended or taken == episode:
            state, _ = plant.reset(seed=len(memory))
            memory.begin()
            taken = 0
        if taken % 3 == 0:
            action = code.tried()[rng.integers(len(code.tried()))]
            if not code.listed:
                action = rng.uniform(-1.0, 1.0, action.shape)
        raw = code.raw(action)
        after, reward, ended, _, _ = plant.step(raw)
        memory.add(state, code.standard(np.asarray(raw)[np.newaxis])[0], reward, after, ended=ended)
        state = after
        taken = taken + 1
    return agent


@cache
def known(name: str) -> spaql.PlanTree:
    """The agent of an environment, which tests leave as it is."""
    if name == "affine":
        return experienced(Affine())
    if name == "Acrobot-v1":  # random episodes hardly ever end there
        return experienced(Low(gymnasium.make(name).unwrapped), episode=200)
    return experienced(name)


def some_steps(agent: spaql.PlanTree, count: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """States that were met and others around them, and actions."""
    rng = np.random.default_rng(1)
    memory = agent._learner.memory
    space = agent.problem.actions.space
    states = memory.states[rng.integers(len(memory), size=count)]
    states = states + rng.normal(0.0, 0.5, states.shape) * memory.states.std(axis=0)
    if agent._learner.code.listed:
        return states, space.start + rng.integers(0, int(space.n), count)
    return states, rng.uniform(space.low, space.high, (count, *space.shape))
