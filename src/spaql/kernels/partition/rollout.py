"""Episodes of training and of evaluation with a partition, for compiled plants."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from spaql.kernels.jit import call, call_with_three, njit_in_place, njit_no_inline
from spaql.kernels.numerics import Floats, Ints, Rng
from spaql.kernels.partition.balls import Balls, new_found, room_for, search
from spaql.kernels.partition.equations import draw, greedy
from spaql.kernels.partition.lookup import Flat, central_actions, find_leaf, flatten
from spaql.kernels.partition.standardise import (
    ActionMap,
    StateMap,
    are_finite,
    coordinates_to,
    raw_action,
    standardise_to,
)
from spaql.kernels.partition.update import UpdateRules, choose_from, learn_from, write_last
from spaql.kernels.plant import Addresses


class Task(NamedTuple):
    """A compiled plant, and the maps between its numbers and the standard ones."""

    plant: Addresses
    n_state: int
    state_map: StateMap
    thresholds: Floats
    """Those of `state_map` that are known (see `flatten`)."""
    action_map: ActionMap
    reward_low: float
    reward_high: float


@njit_no_inline
def train(
    task: Task,
    balls: Balls,
    time_variant: bool,
    rules: UpdateRules,
    rng: Rng,
    last: Floats,
) -> tuple[int, int, bool]:
    """Learn from an episode; returns its steps, its splits, and whether all numbers were finite.

    If not, the last observation and reward are in `last`.
    """
    dims = balls.action_sizes.shape[0]
    n_seen = last.shape[0] - 1
    plant = task.plant
    state_map = task.state_map
    state = np.empty(task.n_state)
    outcome = np.empty(2)
    observation = np.empty(n_seen)
    here = np.empty(n_seen)
    there = np.empty(n_seen)
    fixed = np.empty(n_seen, np.int64)
    sizes = np.empty(dims, np.int64)
    uniforms = np.empty(1 + dims)
    action = np.empty(dims)
    call(plant.start, rng, state)
    call(plant.look, state, observation)
    if not are_finite(observation):
        write_last(observation, 0.0, last)
        return 0, 0, False
    standardise_to(state_map, observation, here)
    coordinates_to(here, fixed)
    found = new_found(room_for(balls, rules.horizon), dims)
    count = search(balls, 0, fixed, found)
    splits = 0
    for taken in range(1, rules.horizon + 1):
        for j in range(1 + dims):
            uniforms[j] = rng.random()
        ball, depth = choose_from(balls, found, count, rules, uniforms, action, sizes)
        for j in range(dims):
            action[j] = raw_action(task.action_map, j, action[j])
        call_with_three(plant.step, state, action, outcome)
        call(plant.look, state, observation)
        reward = outcome[0]
        terminated = outcome[1] != 0.0
        learned = (reward - task.reward_low) / (task.reward_high - task.reward_low)
        if not math.isfinite(learned) or not are_finite(observation):
            write_last(observation, reward, last)
            return taken, splits, False
        standardise_to(state_map, observation, there)
        coordinates_to(there, fixed)
        root = taken if time_variant else 0
        highest = 0.0
        if root < rules.horizon:
            count = search(balls, root, fixed, found)
            highest = balls.q[found.ball[greedy(balls, found, count)]]
        if learn_from(balls, rules, ball, depth, sizes, here, learned, highest):
            splits += 1
            if root < rules.horizon:  # the ball that was split may be one of the relevant ones
                count = search(balls, root, fixed, found)
        if terminated:
            return taken, splits, True
        here, there = there, here
    return rules.horizon, splits, True


class RolloutRoom(NamedTuple):
    """Scratch arrays of `rollouts`, which allocates nothing: then nothing counts references."""

    states: Floats
    observation: Floats
    raw: Floats
    outcome: Floats
    middles: Floats
    running: Ints


@njit_in_place
def rollouts(
    task: Task,
    flat: Flat,
    time_variant: bool,
    action_sizes: Ints,
    horizon: int,
    drawn: bool,
    rng: Rng,
    room: RolloutRoom,
    returns: Floats,
    lengths: Ints,
    starts: Floats,
    last: Floats,
) -> int:
    """Run episodes of a flattened policy in lockstep, so that the processor can overlap their steps.

    Returns the episode with a number that is not finite, whose last observation and reward are then in
    `last`, or -1.
    """
    n = returns.shape[0]
    dims = action_sizes.shape[0]
    n_seen = last.shape[0] - 1
    plant = task.plant
    states, observation, raw, outcome, middles, running = room
    bad = -1
    for k in range(n):
        call(plant.start, rng, states[k])
    for k in range(n):
        call(plant.look, states[k], observation)
        for j in range(n_seen):
            starts[k, j] = observation[j]
        running[k] = k
        returns[k] = 0.0
        lengths[k] = horizon
    for taken in range(horizon):
        still = 0
        for k in range(n):
            i = running[k]
            call(plant.look, states[i], observation)
            leaf = find_leaf(flat, taken if time_variant else 0, observation, n_seen)
            for j in range(dims):
                raw[j] = middles[leaf, j]
                if drawn and flat.size[leaf, j] > 1:
                    low = flat.low[leaf, j]
                    size = flat.size[leaf, j]
                    raw[j] = raw_action(task.action_map, j, draw(action_sizes[j], low, size, rng.random()))
            call_with_three(plant.step, states[i], raw, outcome)
            reward = outcome[0]
            terminated = outcome[1] != 0.0
            finite_check = 0.0  # becomes NaN if a number is not finite: one test per step
            for j in range(n_seen):
                finite_check += observation[j] - observation[j]
            returns[i] += reward + finite_check
            if terminated or not math.isfinite(returns[i]):
                lengths[i] = taken + 1
                if bad < 0 and not math.isfinite(returns[i]):
                    bad = i
                    lengths[i] = taken + (1 if finite_check == 0.0 else 0)
                    write_last(observation, reward, last)
            else:
                running[still] = i
                still += 1
        n = still
        if n == 0:
            break
    return bad


@njit_no_inline
def iterate(
    task: Task,
    balls: Balls,
    trees: int,
    time_variant: bool,
    rules: UpdateRules,
    trained: bool,
    drawn: bool,
    rng: Rng,
    returns: Floats,
    lengths: Ints,
    starts: Floats,
    last: Floats,
) -> tuple[int, int, bool, int]:
    """Train for an episode, if wanted, and evaluate.

    Returns the steps, the splits, whether all numbers of the training were finite, and the episode of the
    evaluation with one that was not, or -1. The observation and reward at fault are in `last`.
    """
    steps = 0
    splits = 0
    sound = True
    bad = -1
    if trained:
        steps, splits, sound = train(task, balls, time_variant, rules, rng, last)
    if sound:
        flat = flatten(balls, trees, task.state_map, task.thresholds)
        sizes = balls.action_sizes
        room = RolloutRoom(
            np.empty((returns.shape[0], task.n_state)),
            np.empty(last.shape[0] - 1),
            np.empty(sizes.shape[0]),
            np.empty(2),
            central_actions(flat, sizes, task.action_map),
            np.empty(returns.shape[0], np.int64),
        )
        bad = rollouts(
            task, flat, time_variant, sizes, rules.horizon, drawn, rng, room, returns, lengths, starts, last
        )
    return steps, splits, sound, bad
