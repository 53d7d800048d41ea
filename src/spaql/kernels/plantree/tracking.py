"""Rollouts of candidate controllers with memory in a learned plant that follows set-points."""

from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import njit_inlined, njit_no_inline
from spaql.kernels.numerics import Floats, Ints
from spaql.kernels.plant import KINDS
from spaql.kernels.plantree.raw_model import RawPlant, end_chance, find
from spaql.kernels.plantree.rollout import NEGLIGIBLE

EPISODE, NOISE, SHIFT, TAKEN, ALIVE, GAINS = range(6)
"""What a state holds after its numbers: the recorded episode, the first row of the noise, the samples by
which dead time differs, the steps taken, and the probability that the episode goes on. Then come the gain of
each actuator, the last action and the one that waits. A start has these numbers up to the gains."""


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
    action_low: Floats
    """The range of the actions that reach the plant."""
    action_high: Floats
    room: tuple[Floats, Floats, Floats, Floats]
    """Scratch arrays of a step: for a state, an action, errors, and terms of a reward."""


@njit_inlined
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


@njit_inlined
def _shift(source: Ints, lagged: int, sent: Floats, state: Floats) -> None:
    """Shift the last actions of a state by a sample; the oldest are last."""
    for j in range(source.shape[0] - 1, lagged - 1, -1):
        state[j] = state[source[j]] if source[j] >= 0 else sent[-1 - source[j]]


@njit_inlined
def look_tracked(plant: TrackedPlant, state: Floats, observation: Floats) -> None:
    """Write the observation: the state with noise, and the recorded set-points."""
    at = plant.source.shape[0]
    episode = int(state[at + EPISODE])
    taken = int(state[at + TAKEN])
    row = min(plant.begin[episode] + taken, plant.begin[episode + 1] - 1)
    noise = (int(state[at + NOISE]) + taken) % plant.noise.shape[0]
    for j in range(plant.place.shape[0]):
        place = plant.place[j]
        observation[j] = (
            state[place] + plant.noise[noise, place] if place >= 0 else plant.setpoint[row, -1 - place]
        )


@njit_inlined
def step_tracked(plant: TrackedPlant, state: Floats, action: Floats, outcome: Floats) -> None:
    """Make a step; the reward is the expected one of an episode that may have ended before."""
    dims = plant.source.shape[0]
    predicted = plant.low.shape[0]
    goals = plant.setpoint.shape[1]
    n_actions = action.shape[0]
    after, sent, error, terms = plant.room
    more = state[dims:]
    gains = more[GAINS:]
    before = more[GAINS + n_actions :]
    waiting = more[GAINS + 2 * n_actions :]
    episode = int(more[EPISODE])
    shift = int(more[SHIFT])
    taken = int(more[TAKEN])
    first = plant.begin[episode]
    end = plant.begin[episode + 1]
    row = min(first + taken, end - 1)
    for k in range(n_actions):
        sent[k] = min(max(action[k] * gains[k], plant.action_low[k]), plant.action_high[k])
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
    reward = 0.0
    chance = end_chance(plant.raw, state[:dims])
    for j in range(terms.shape[0]):
        reward += plant.reward[j] * terms[j]
    outcome[0] = more[ALIVE] * ((1.0 - chance) * reward + chance * plant.raw.rewards[2])
    more[ALIVE] *= 1.0 - chance
    outcome[1] = 1.0 if more[ALIVE] < NEGLIGIBLE else 0.0
    more[TAKEN] += 1.0
    for k in range(n_actions):
        before[k] = action[k]


KINDS[TrackedPlant] = look_tracked, step_tracked
