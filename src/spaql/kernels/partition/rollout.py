"""Whole episodes in compiled code, for compiled dynamics."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numba.np.unsafe.ndarray import to_fixed_tuple
from numpy.typing import NDArray

from spaql.kernels.jit import ENABLED, njit
from spaql.kernels.partition.actions import ActionMap, raw_action
from spaql.kernels.partition.balls import Balls, new_found, room_for, search
from spaql.kernels.partition.equations import draw, greedy
from spaql.kernels.partition.lookup import Flat, find_leaf, flatten
from spaql.kernels.partition.lookup_batch import central_actions
from spaql.kernels.partition.standardise import StateMap, are_finite, coordinates_to, standardise_to
from spaql.kernels.partition.update import Journal, Rules, choose_from, learn_from, write_last
from spaql.kernels.treesearch.controllers import controller_loop
from spaql.kernels.treesearch.rollout import candidate_loop

if ENABLED:
    as_tuple: Any = to_fixed_tuple
else:

    def as_tuple(row: NDArray[np.float64], length: int) -> tuple[float, ...]:
        """Return the first numbers of an array as a tuple."""
        return tuple(row)


Kernel = Callable[..., Any]


class Loops(NamedTuple):
    """The loops that are compiled for one set of dynamics."""

    iterate: Callable[..., tuple[int, int, bool, int]]
    reset: Callable[..., None]
    step: Callable[..., None]
    observe: Callable[..., None]
    play_candidates: Callable[..., tuple[int, int]]
    play_controllers: Callable[..., tuple[int, int]]


@dataclass(frozen=True)
class _CompiledDynamics:
    """Compiled dynamics, and how to compile loops for them; the sizes are constants to the compiler."""

    start: Kernel
    look: Kernel
    """Write the observation of a state to an array."""
    play: Kernel
    """Make a step with a raw action."""
    n_state: int
    n_seen: int
    compiled: Callable[[Kernel], Any]


def compile_loops(
    start: Kernel,
    step: Kernel,
    observe: Kernel,
    *,
    n_state: int,
    n_seen: int,
    discrete: bool,
    depends_on: str,
    cached: bool,
) -> Loops:
    """Compile the loops for dynamics: `start(rng)`, `step(state, action)` and `observe(state)`.

    Everything else that they call is shared with Python. `depends_on` must change when the dynamics do;
    where that cannot be known, the loops must not be `cached`.
    """

    def compiled(function: Kernel) -> Any:
        # Cached code is linked by name: the loops of different dynamics need different names.
        function.__qualname__ += f"_{depends_on[:16]}"
        return njit(function, depends_on=depends_on, cached=cached, inline=False)

    def inlined(function: Kernel) -> Any:
        return njit(function, depends_on=depends_on, cached=cached)

    look, play = _look(observe, inlined), _play(step, discrete, inlined)
    dynamics = _CompiledDynamics(start, look, play, n_state, n_seen, compiled)
    iterate = _iterate(_train(dynamics), _rollouts(dynamics), compiled)
    return Loops(
        iterate,
        _reset(dynamics),
        _step(dynamics),
        _observe(dynamics),
        candidate_loop(dynamics, as_tuple),
        controller_loop(dynamics, as_tuple),
    )


# Observations and actions are rounded to single precision, as in Gymnasium's spaces.


def _look(observe: Kernel, inlined: Callable[[Kernel], Any]) -> Kernel:
    @inlined
    def look(state: Any, observation: NDArray[np.float64]) -> None:
        for j, x in enumerate(observe(state)):
            observation[j] = np.float64(np.float32(x))

    return cast(Kernel, look)


def _play(step: Kernel, discrete: bool, inlined: Callable[[Kernel], Any]) -> Kernel:
    def play_index(state: Any, raw: NDArray[np.float64]) -> Any:
        return step(state, int(raw[0]))

    def play_numbers(state: Any, raw: NDArray[np.float64]) -> Any:
        for j in range(raw.shape[0]):
            raw[j] = np.float64(np.float32(raw[j]))
        return step(state, raw)

    return cast(Kernel, inlined(play_index if discrete else play_numbers))


def _train(dynamics: _CompiledDynamics) -> Kernel:
    start, look, play, n_seen = dynamics.start, dynamics.look, dynamics.play, dynamics.n_seen

    @dynamics.compiled
    def train(
        balls: Balls,
        journal: Journal,
        time_variant: bool,
        rules: Rules,
        state_map: StateMap,
        action_map: ActionMap,
        reward_low: float,
        reward_high: float,
        rng: np.random.Generator,
        last: NDArray[np.float64],
    ) -> tuple[int, int, bool]:
        """Learn from an episode; returns its steps, its splits, and whether all numbers were finite.

        If not, the last observation and reward are in `last`.
        """
        dims = balls.action_sizes.shape[0]
        observation, here, there = np.empty(n_seen), np.empty(n_seen), np.empty(n_seen)
        fixed, sizes = np.empty(n_seen, np.int64), np.empty(dims, np.int64)
        uniforms, action = np.empty(1 + dims), np.empty(dims)
        journal[0, 0] = 0.0
        state = start(rng)
        look(state, observation)
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
                action[j] = raw_action(action_map, j, action[j])
            state, reward, terminated = play(state, action)
            look(state, observation)
            learned = (reward - reward_low) / (reward_high - reward_low)
            if not math.isfinite(learned) or not are_finite(observation):
                write_last(observation, reward, last)
                return taken, splits, False
            standardise_to(state_map, observation, there)
            coordinates_to(there, fixed)
            root = taken if time_variant else 0
            highest = 0.0
            if root < rules.horizon and not (terminated and rules.terminal_is_zero):
                count = search(balls, root, fixed, found)
                highest = balls.q[found.ball[greedy(balls, found, count)]]
            if learn_from(balls, journal, rules, ball, depth, sizes, here, learned, highest):
                splits += 1
                if root < rules.horizon:  # the ball that was split may be one of the relevant ones
                    count = search(balls, root, fixed, found)
            if terminated:
                return taken, splits, True
            here, there = there, here
        return rules.horizon, splits, True

    return cast(Kernel, train)


def _rollouts(dynamics: _CompiledDynamics) -> Kernel:
    start, look, play, n_seen = dynamics.start, dynamics.look, dynamics.play, dynamics.n_seen

    @dynamics.compiled
    def rollouts(
        flat: Flat,
        time_variant: bool,
        action_sizes: NDArray[np.int64],
        action_map: ActionMap,
        horizon: int,
        drawn: bool,
        rng: np.random.Generator,
        returns: NDArray[np.float64],
        lengths: NDArray[np.int64],
        starts: NDArray[np.float64],
        last: NDArray[np.float64],
    ) -> int:
        """Run episodes of a flattened policy in lockstep, so that the processor can overlap their steps.

        Returns the episode with a number that is not finite, whose last observation and reward are then in
        `last`, or -1.
        """
        n, dims = returns.shape[0], action_sizes.shape[0]
        observation, raw = np.empty(n_seen), np.empty(dims)
        middles = central_actions(flat, action_sizes, action_map)
        states = [start(rng) for _ in range(n)]
        running, bad = np.empty(n, np.int64), -1
        for k in range(n):
            look(states[k], observation)
            for j in range(n_seen):
                starts[k, j] = observation[j]
            running[k] = k
            returns[k] = 0.0
            lengths[k] = horizon
        for taken in range(horizon):
            still = 0
            for k in range(n):
                i = running[k]
                state = states[i]
                look(state, observation)
                leaf = find_leaf(flat, taken if time_variant else 0, observation, n_seen)
                for j in range(dims):
                    raw[j] = middles[leaf, j]
                    if drawn and flat.size[leaf, j] > 1:
                        low, size = flat.low[leaf, j], flat.size[leaf, j]
                        raw[j] = raw_action(action_map, j, draw(action_sizes[j], low, size, rng.random()))
                states[i], reward, terminated = play(state, raw)
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

    return cast(Kernel, rollouts)


def _iterate(train: Kernel, rollouts: Kernel, compiled: Callable[[Kernel], Any]) -> Kernel:
    @compiled
    def iterate(
        balls: Balls,
        journal: Journal,
        trees: int,
        time_variant: bool,
        rules: Rules,
        state_map: StateMap,
        known_thresholds: NDArray[np.float64],
        action_map: ActionMap,
        reward_low: float,
        reward_high: float,
        trained: bool,
        drawn: bool,
        rng: np.random.Generator,
        returns: NDArray[np.float64],
        lengths: NDArray[np.int64],
        starts: NDArray[np.float64],
        last: NDArray[np.float64],
    ) -> tuple[int, int, bool, int]:
        """Train for an episode, if wanted, and evaluate.

        Returns the steps, the splits, whether all numbers of the training were finite, and the episode of the
        evaluation with one that was not, or -1. The observation and reward at fault are in `last`.
        """
        steps, splits, sound, bad = 0, 0, True, -1
        if trained:
            steps, splits, sound = train(
                balls, journal, time_variant, rules, state_map, action_map, reward_low, reward_high, rng, last
            )
        if sound:
            flat = flatten(balls, trees, state_map, known_thresholds)
            sizes, horizon = balls.action_sizes, rules.horizon
            bad = rollouts(
                flat, time_variant, sizes, action_map, horizon, drawn, rng, returns, lengths, starts, last
            )
        return steps, splits, sound, bad

    return cast(Kernel, iterate)


def _reset(dynamics: _CompiledDynamics) -> Kernel:
    start, look = dynamics.start, dynamics.look

    @dynamics.compiled
    def reset(
        which: NDArray[np.bool_],
        rng: np.random.Generator,
        states: NDArray[np.float64],
        observations: NDArray[np.float64],
    ) -> None:
        """Start an episode in some rows."""
        for i in range(which.shape[0]):
            if which[i]:
                state = start(rng)
                look(state, observations[i])
                for j, x in enumerate(state):
                    states[i, j] = x

    return cast(Kernel, reset)


def _step(dynamics: _CompiledDynamics) -> Kernel:
    look, play, n_state = dynamics.look, dynamics.play, dynamics.n_state

    @dynamics.compiled
    def step_rows(
        which: NDArray[np.bool_],
        actions: NDArray[np.float64],
        states: NDArray[np.float64],
        observations: NDArray[np.float64],
        rewards: NDArray[np.float64],
        terminated: NDArray[np.bool_],
    ) -> None:
        """Make a step in some rows."""
        for i in range(which.shape[0]):
            if which[i]:
                state, rewards[i], terminated[i] = play(as_tuple(states[i], n_state), actions[i])
                look(state, observations[i])
                for j, x in enumerate(state):
                    states[i, j] = x

    return cast(Kernel, step_rows)


def _observe(dynamics: _CompiledDynamics) -> Kernel:
    look, n_state = dynamics.look, dynamics.n_state

    @dynamics.compiled
    def observe_rows(states: NDArray[np.float64], observations: NDArray[np.float64]) -> None:
        """Write the observations of states."""
        for i in range(states.shape[0]):
            look(as_tuple(states[i], n_state), observations[i])

    return cast(Kernel, observe_rows)
