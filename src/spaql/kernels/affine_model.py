"""An affine model of a plant, for a first law: its linear regulator, and episodes of laws in the model.

Observations are standardised, and actions are in [-1, 1], or one-hot. A row of a law is `[gains, offset]`.
"""

import math

import numpy as np

from spaql.kernels.jit import njit_no_inline
from spaql.kernels.numerics import Floats, solve

RANGE, LEVELS, SCORES = 0, 1, 2
"""Kinds of laws: of a range of actions; the same, rounded to equidistant levels; scores of actions."""
QUADRATIC, DISTANCE, PLANES = 0, 1, 2
"""Shapes of a reward: a quadratic form, the root of one, the least of several planes."""


@njit_no_inline
def regulator(
    model: Floats, cost: Floats, discount: float, price: float, steps: int, values: Floats, gains: Floats
) -> None:
    """Write the cost-to-go of an observation and an action, by steps of the Riccati recursion, and the gains.

    `model` maps `[observation, 1, action]` to `[next observation, 1]`, by columns; `cost` and `values` are
    quadratic forms of `[observation, 1, action]`. The price is that of the square of an action. The best
    action is -gains times `[observation, 1]`.
    """
    inputs, states = model.shape
    actions = inputs - states
    future = np.zeros((states, states))
    moved = np.empty((states, inputs))
    block = np.empty((actions, actions))
    lower = np.empty((actions, actions))
    for _ in range(steps):
        for i in range(states):
            for j in range(inputs):
                total = 0.0
                for k in range(states):
                    total += future[i, k] * model[j, k]
                moved[i, j] = total
        for i in range(inputs):
            for j in range(inputs):
                total = 0.0
                for k in range(states):
                    total += model[i, k] * moved[k, j]
                values[i, j] = cost[i, j] + discount * total
        for i in range(actions):
            values[states + i, states + i] += price
            for j in range(actions):
                block[i, j] = values[states + i, states + j]
            for j in range(states):
                gains[i, j] = values[states + i, j]
        solve(block, 0.0, gains, lower)
        for i in range(states):
            for j in range(i + 1):
                total = values[i, j]
                for k in range(actions):
                    total -= values[states + k, i] * gains[k, j]
                future[i, j] = total
                future[j, i] = total


@njit_no_inline
def play_laws(
    kind: int,
    steps_between: float,
    laws: Floats,
    starts: Floats,
    noise: Floats,
    motion: Floats,
    low: Floats,
    high: Floats,
    after: bool,
    shape: int,
    form: Floats,
    best: float,
    returns: Floats,
) -> None:
    """Write the mean return of each law in the model, from each start, with noise by step and start.

    `motion` maps `[observation, 1, action]` to the next observation, by columns, which is kept between `low`
    and `high`. `form` is the quadratic form of the reward, or its planes, in the observation before the step
    or `after` it; `best` is its highest value. Of a law of levels half the steps between them are given.
    """
    inputs, states = motion.shape
    actions = inputs - states - 1
    x = np.empty(inputs)
    moved = np.empty(states)
    for law in range(laws.shape[0]):
        returns[law] = 0.0
        for start in range(starts.shape[0]):
            for j in range(states):
                x[j] = starts[start, j]
            x[states] = 1.0
            for step in range(noise.shape[0]):
                highest = 0
                for i in range(actions):
                    total = 0.0
                    for j in range(states + 1):
                        total += laws[law, i, j] * x[j]
                    x[states + 1 + i] = total
                    if total > x[states + 1 + highest]:
                        highest = i
                for i in range(actions):
                    if kind == SCORES:
                        x[states + 1 + i] = 1.0 if i == highest else 0.0
                    else:
                        action = min(max(x[states + 1 + i], -1.0), 1.0)
                        if kind == LEVELS:
                            action = math.floor((action + 1.0) * steps_between + 0.5) / steps_between - 1.0
                        x[states + 1 + i] = action
                for j in range(states):
                    total = noise[step, start, j]
                    for i in range(inputs):
                        total += x[i] * motion[i, j]
                    moved[j] = min(max(total, low[j]), high[j])
                if after:
                    for j in range(states):
                        x[j] = moved[j]
                reward = math.inf
                if shape == PLANES:
                    for plane in range(form.shape[0]):
                        total = 0.0
                        for i in range(inputs):
                            total += form[plane, i] * x[i]
                        reward = min(reward, total)
                else:
                    total = 0.0
                    for i in range(inputs):
                        for j in range(inputs):
                            total += x[i] * form[i, j] * x[j]
                    reward = best + total if shape == QUADRATIC else best - math.sqrt(max(-total, 0.0))
                returns[law] += reward / starts.shape[0]
                for j in range(states):
                    x[j] = moved[j]
