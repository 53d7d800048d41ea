"""The closed loop of a compiled plant and a controller, compiled once for all of them.

It plays every start with every candidate controller of one structure, side by side, so that the processor can
overlap episodes; one candidate is an evaluation, and a trace is a record of the first one.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from spaql.kernels.controller import (
    ACTIONS,
    DISCRETE,
    LEAF,
    OBSERVATIONS,
    REMEMBERS,
    WIDTH,
    Arrays,
    Numbers,
    act,
    reset_memory,
)
from spaql.kernels.jit import njit_in_place, njit_inlined
from spaql.kernels.numerics import Bools, Floats, Ints
from spaql.kernels.plant import advance, look


class Played(NamedTuple):
    """Episodes of each candidate (rows) from each start (columns)."""

    returns: Floats
    """-infinity where a reward or an observation was not finite."""
    lengths: Ints
    movement: Floats
    """Sum of the changes of the action: in shares of its range, or how often a discrete one changed."""
    switches: Floats
    """How often the leaf of a controller with memory changed while no set-point did; 0 for others."""
    terminated: Bools
    trace: Floats
    """Starts × (steps + 1) × (observation, features, action, reward, state) of the first candidate; NaN after
    the end, where the last row has the last observation and state."""


class Room(NamedTuple):
    """Scratch arrays of `run`, which allocates nothing: then nothing counts references."""

    running: Ints
    states: Floats
    outcome: Floats
    memories: Floats
    x: Floats
    work: Floats
    action: Floats
    before: Floats
    goals: Floats


@njit_inlined
def _begin(arrays: Arrays, starts: Floats, room: Room, played: Played, c: int) -> None:
    """Set every episode of a candidate to its start."""
    for i in range(starts.shape[0]):
        for j in range(starts.shape[1]):
            room.states[i, j] = starts[i, j]
        reset_memory(arrays, room.memories[i])
        room.running[i] = i
        played.returns[c, i] = 0.0
        played.movement[c, i] = 0.0
        played.switches[c, i] = 0.0
        played.lengths[c, i] = 0
        played.terminated[c, i] = False


@njit_inlined
def _add_movement(arrays: Arrays, room: Room, played: Played, c: int, i: int, taken: int) -> None:
    """Add the change of the action since the last step, and keep the action for the next one."""
    for k in range(arrays.shape[ACTIONS]):
        if taken > 0:
            change = abs(room.action[k] - room.before[i, k])
            if arrays.shape[DISCRETE] == 0:
                played.movement[c, i] += change / arrays.limit[WIDTH, k]
            elif change > 0.0:
                played.movement[c, i] += 1.0
        room.before[i, k] = room.action[k]


@njit_inlined
def _trace(room: Room, played: Played, i: int, row: int, width: int, n_actions: int) -> None:
    """Record the first numbers of x and the state of an episode."""
    for j in range(width):
        played.trace[i, row, j] = room.x[j]
    first = room.x.shape[0] + n_actions + 1
    for j in range(room.states.shape[1]):
        played.trace[i, row, first + j] = room.states[i, j]


@njit_in_place
def run(
    plant: Any,
    arrays: Arrays,
    constants: Floats,
    weights: Floats,
    setpoints: Ints,
    starts: Floats,
    horizon: int,
    room: Room,
    played: Played,
) -> int:
    """Play every start with every candidate; returns the steps."""
    n_seen = arrays.shape[OBSERVATIONS]
    n_actions = arrays.shape[ACTIONS]
    remembers = arrays.shape[REMEMBERS] > 0
    width = room.x.shape[0]
    spent = 0
    for c in range(constants.shape[0]):
        numbers = Numbers(constants[c], weights[c])
        traced = played.trace.shape[1] - 1 if c == 0 else 0
        _begin(arrays, starts, room, played, c)
        active = starts.shape[0]
        for taken in range(horizon):
            still = 0
            for slot in range(active):
                i = room.running[slot]
                look(plant, room.states[i], room.x)
                finite_check = 0.0  # becomes NaN if an observation is not finite: one test per step
                for j in range(n_seen):
                    finite_check += room.x[j] - room.x[j]
                steady = taken > 0
                for g in range(setpoints.shape[0]):
                    steady = steady and room.x[setpoints[g]] == room.goals[i, g]
                    room.goals[i, g] = room.x[setpoints[g]]
                held = int(room.memories[i, LEAF])
                leaf = act(arrays, numbers, room.memories[i], room.x, room.work, room.action)
                if remembers and steady and leaf != held:
                    played.switches[c, i] += 1.0
                _add_movement(arrays, room, played, c, i, taken)
                if taken < traced:
                    _trace(room, played, i, taken, width, n_actions)
                advance(plant, room.states[i], room.action, room.outcome)
                if taken < traced:  # the plant may have rounded the action
                    for k in range(n_actions):
                        played.trace[i, taken, width + k] = room.action[k]
                    played.trace[i, taken, width + n_actions] = room.outcome[0]
                played.returns[c, i] += room.outcome[0] + finite_check
                played.lengths[c, i] = taken + 1
                ended = room.outcome[1] != 0.0
                played.terminated[c, i] = ended
                if not math.isfinite(played.returns[c, i]):
                    played.returns[c, i] = -np.inf
                    ended = True
                if taken < traced and (ended or taken + 1 == horizon):
                    look(plant, room.states[i], room.x)
                    _trace(room, played, i, taken + 1, n_seen, n_actions)
                if not ended:
                    room.running[still] = i
                    still += 1
            spent += active
            active = still
            if active == 0:
                break
    return spent
