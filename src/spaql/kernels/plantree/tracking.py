"""Rollouts of candidate controllers with memory in a learned plant that follows set-points."""

import math
from typing import NamedTuple

import numpy as np

from spaql.kernels.controller import (
    ACTIONS,
    HIGH,
    LEAF,
    LOW,
    MEMORY,
    OBSERVATIONS,
    RESET,
    WIDTH,
    Arrays,
    Numbers,
    act,
    reset_memory,
)
from spaql.kernels.jit import njit, njit_no_inline
from spaql.kernels.plantree.pwa_model import Floats, Ints
from spaql.kernels.plantree.raw_model import RawPlant, end_chance, find
from spaql.kernels.plantree.rollout import NEGLIGIBLE

EPISODE, NOISE, SHIFT, GAINS = 0, 1, 2, 3
"""Columns of a start: the recorded episode, the first row of the noise, the samples by which dead time
differs, and from there on the gain of each actuator."""


class TrackedPlant(NamedTuple):
    """A learned plant, and what happened in recorded episodes besides the actions.

    A state has the numbers of an observation that are no set-points, then differences of these and the last
    actions. In an episode the set-points are those of a recorded one, and to every prediction the error is
    added that was made there: loads and noise are played again.
    """

    raw: RawPlant
    """Its outputs are all numbers of a state, of which those after the observation are not used."""
    source: Ints
    """For each number of a state of which number it is the difference, or from `lagged` on the value before;
    -1 and below for an action."""
    lagged: int
    """Where the last actions begin in a state."""
    low: Floats
    """The range of predictions."""
    high: Floats
    reward: Floats
    """Weights of the terms of a reward (see `reward_terms`)."""
    place: Ints
    """For each number of an observation its place in a state; -1 and below for a set-point."""
    output: Ints
    """The place in a state of the number that follows each set-point."""
    begin: Ints
    """The first row of each recorded episode, and one more for the end."""
    first: Floats
    """The state at the start of each recorded episode."""
    setpoint: Floats
    """The set-points before each recorded step."""
    error: Floats
    """The error of the prediction of each recorded step."""
    noise: Floats
    """Sensor noise, one row for a sample."""


@njit
def reward_terms(
    state: Floats, error: Floats, action: Floats, before: Floats, predicted: int, terms: Floats
) -> None:
    """Write the terms of a reward: 1, then numbers, errors, actions and their changes, and their squares.

    Of errors and changes these are magnitudes.
    """
    terms[0] = 1.0
    at = 1
    for j in range(predicted):
        terms[at] = state[j]
        terms[at + 1] = state[j] * state[j]
        at += 2
    for j in range(error.shape[0]):
        terms[at] = abs(error[j])
        terms[at + 1] = error[j] * error[j]
        at += 2
    for k in range(action.shape[0]):
        change = action[k] - before[k]
        terms[at] = action[k]
        terms[at + 1] = action[k] * action[k]
        terms[at + 2] = abs(change)
        terms[at + 3] = change * change
        at += 4


@njit_no_inline
def reward_rows(states: Floats, errors: Floats, actions: Floats, before: Floats) -> Floats:
    """Return the terms of the rewards of steps, one per row."""
    predicted = states.shape[1]
    terms = np.empty((states.shape[0], 1 + 2 * predicted + 2 * errors.shape[1] + 4 * actions.shape[1]))
    for i in range(states.shape[0]):
        reward_terms(states[i], errors[i], actions[i], before[i], predicted, terms[i])
    return terms


@njit
def _shift(source: Ints, lagged: int, sent: Floats, state: Floats) -> None:
    """Shift the last actions of a state by a sample; the oldest are last."""
    for j in range(state.shape[0] - 1, lagged - 1, -1):
        state[j] = state[source[j]] if source[j] >= 0 else sent[-1 - source[j]]


@njit_no_inline
def play_tracking(
    plant: TrackedPlant,
    arrays: Arrays,
    constants: Floats,
    weights: Floats,
    columns: Ints,
    starts: Floats,
    horizon: int,
    returns: Floats,
    movement: Floats,
    switches: Floats,
    visited: Floats,
) -> tuple[int, int]:
    """Play every start with each candidate, as the closed loop does with compiled plants."""
    dims, predicted, goals = plant.source.shape[0], plant.low.shape[0], plant.setpoint.shape[1]
    n_actions, spent, kept = arrays.shape[ACTIONS], 0, 0
    x = np.empty(arrays.shape[OBSERVATIONS] + arrays.feature.shape[0])
    work, action = np.empty(2 * n_actions + x.shape[0]), np.empty(n_actions)
    memory = np.empty(arrays.shape[MEMORY])
    low, high, start, width = arrays.limit[LOW], arrays.limit[HIGH], arrays.limit[RESET], arrays.limit[WIDTH]
    before, sent, waiting = np.empty(n_actions), np.empty(n_actions), np.empty(n_actions)
    state, after, error = np.empty(dims), np.empty(plant.lagged), np.empty(goals)
    terms = np.empty(plant.reward.shape[0])
    for c in range(constants.shape[0]):
        numbers = Numbers(constants[c], weights[c])
        for i in range(starts.shape[0]):
            episode, noisy, shift = int(starts[i, EPISODE]), int(starts[i, NOISE]), int(starts[i, SHIFT])
            first, end = plant.begin[episode], plant.begin[episode + 1]
            for j in range(dims):
                state[j] = plant.first[episode, j]
            for k in range(n_actions):
                before[k] = start[k]
                waiting[k] = start[k]
            reset_memory(arrays, memory)
            total, moved, switched, alive = 0.0, 0.0, 0.0, 1.0
            for taken in range(horizon):
                row = min(first + taken, end - 1)
                held, steady = int(memory[LEAF]), taken > 0
                for j in range(plant.place.shape[0]):
                    at = plant.place[j]
                    if at >= 0:
                        noise = plant.noise[(noisy + taken) % plant.noise.shape[0], at]
                        x[j] = state[at] + noise
                    else:
                        goal = plant.setpoint[row, -1 - at]
                        steady = steady and x[j] == goal
                        x[j] = goal
                leaf = act(arrays, numbers, memory, x, work, action)
                if steady and leaf != held:
                    switched += 1.0
                if c == 0 and kept < visited.shape[0]:
                    for j in range(columns.shape[0]):
                        visited[kept, j] = x[columns[j]]
                    kept += 1
                for k in range(n_actions):
                    if taken > 0:
                        moved += abs(action[k] - before[k]) / width[k]
                    u = action[k] * starts[i, GAINS + k]
                    sent[k] = min(max(u, low[k]), high[k])
                    if shift > 0:
                        sent[k], waiting[k] = waiting[k], sent[k]
                if shift < 0:
                    _shift(plant.source, plant.lagged, sent, state)
                law = plant.raw.law[find(plant.raw, state)]
                for m in range(predicted):
                    value = law[m, 0]
                    for j in range(dims):
                        value += law[m, 1 + j] * state[j]
                    for k in range(n_actions):
                        value += law[m, 1 + dims + k] * sent[k]
                        value += law[m, 1 + dims + n_actions + k] * sent[k] * sent[k]
                    if first + taken < end:
                        value += plant.error[row, m]
                    after[m] = min(max(value, plant.low[m]), plant.high[m])
                if shift >= 0:
                    _shift(plant.source, plant.lagged, sent, state)
                for j in range(predicted, plant.lagged):
                    after[j] = after[plant.source[j]] - state[plant.source[j]]
                for j in range(plant.lagged):
                    state[j] = after[j]
                for g in range(goals):
                    error[g] = plant.setpoint[min(row + 1, end - 1), g] - state[plant.output[g]]
                reward_terms(state, error, action, before, predicted, terms)
                reward, chance = 0.0, end_chance(plant.raw, state)
                for j in range(terms.shape[0]):
                    reward += plant.reward[j] * terms[j]
                total += alive * ((1.0 - chance) * reward + chance * plant.raw.rewards[2])
                alive *= 1.0 - chance
                for k in range(n_actions):
                    before[k] = action[k]
                spent += 1
                if not math.isfinite(total):
                    total = -np.inf
                if alive < NEGLIGIBLE or total == -np.inf:
                    break
            returns[c, i] = total
            movement[c, i] = moved
            switches[c, i] = switched
    return spent, kept
