"""The functions of a plant with what disturbs it.

The state of the plant is extended by what a disturbance has to remember, so that all loops over a plant,
compiled or not, remain as they are. The action takes this way: noise, range, gain of the actuator, range,
rate limit, dead time, load.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.kernels.draws import draws_of, normal_at, step_key, uniform_at, with_number
from spaql.kernels.jit import callable_by_kernels
from spaql.problems.disturbances import EXTRAS, Disturbances, Functions


def disturbed(declared: Disturbances, functions: Functions, n_plain: int) -> Functions:
    """Return the functions of a plant with its disturbances; its states are extended by what these remember.

    The numbers of a state are those of the plant, the last actions (the newest first), gains, dead time, the
    step at which each load begins and its size, parameters, the key of the episode, its steps, and the state
    of the plant at the step before if observations are late.

    Parameters
    ----------
    declared
        The disturbances.
    functions
        `start`, `step` and `observe` of the plant, all compiled or all not.
    n_plain
        Length of a state of the plant.
    """
    start, step, observe = functions
    if not declared.is_needed:
        return start, with_constants(step, declared), observe
    at = _places(declared, n_plain)
    calls = _call(declared, step, at)
    new_step = _step(declared, calls, at) if declared.low else _listed_step(declared, calls, at)
    return _start(declared, start, at.end - n_plain), new_step, _observe(declared, observe, at)


def with_constants(step: Callable[..., Any], declared: Disturbances) -> Callable[..., Any]:
    """Return a step of the state and the action alone, where nothing is drawn."""
    if not declared.extras:
        return step
    constants = tuple(low for low, _ in declared.parameters)

    def step_of_constants(state: Any, action: Any) -> Any:
        return step(state, action, constants)

    return step_of_constants


@dataclass(frozen=True)
class _Places:
    """Where the parts of an extended state begin."""

    line: int
    gains: int
    delay: int
    loads: int
    parameters: int
    key: int
    count: int
    before: int
    end: int


def _places(declared: Disturbances, n_plain: int) -> _Places:
    n = max(1, len(declared.low))
    sizes = (
        n_plain,
        n * max(declared.delay[1], int(declared.limits_rate)),
        n if declared.gain else 0,
        int(declared.delay[0] < declared.delay[1]),
        2 * len(declared.loads),
        len(declared.parameters) if declared.draws_parameters else 0,
        1,
        1,
        n_plain if declared.late_observations else 0,
    )
    return _Places(*accumulate(sizes))


def copy_common(
    source: Disturbances,
    states: NDArray[np.float64],
    target: Disturbances,
    rows: NDArray[np.float64],
    n_plain: int,
) -> None:
    """Copy what two plants have in common from extended states of one to those of the other, in place.

    That is the state of the plant, and of what is drawn for an episode: loads, the key of the noise, and
    gains, dead time and parameters that have the same range in both.
    """
    rows[:, :n_plain] = states[:, :n_plain]
    if not (source.is_needed and target.is_needed):
        return
    there = _places(source, n_plain)
    here = _places(target, n_plain)
    rows[:, here.key] = states[:, there.key]
    if source.loads == target.loads:
        rows[:, here.loads : here.parameters] = states[:, there.loads : there.parameters]
    if source.gain == target.gain:
        rows[:, here.gains : here.delay] = states[:, there.gains : there.delay]
    if source.delay == target.delay:
        rows[:, here.delay : here.loads] = states[:, there.delay : there.loads]
    if source.draws_parameters and target.draws_parameters:
        for j, (own, other) in enumerate(zip(source.parameters, target.parameters, strict=True)):
            if own == other:
                rows[:, here.parameters + j] = states[:, there.parameters + j]


# The functions below are compiled: sizes and ranges are constants of a closure, and an empty tuple, which
# Numba cannot index, is replaced by one that is never read.


def _start(declared: Disturbances, start: Callable[..., Any], more_dims: int) -> Callable[..., Any]:
    """Draw, in this order, the state of the plant, loads, gains, dead time, parameters and the key."""
    at = _places(declared, 0)
    loads = declared.loads or ((0, 0.0, 0, 1),)
    n_loads = len(declared.loads)
    ranges = declared.parameters or ((0.0, 0.0),)
    n_ranges = at.key - at.parameters
    resting = tuple(min(max(0.0, a), b) for a, b in zip(declared.low, declared.high, strict=True)) or (0.0,)
    n = len(resting)
    spread = declared.gain
    least, most = declared.delay
    blank = (0.0,) * more_dims
    at_gains = at.gains
    at_delay = at.delay
    at_loads = at.loads
    at_parameters = at.parameters
    at_key = at.key

    def disturbed_start(rng: np.random.Generator) -> Any:
        plain = start(rng)
        more = blank
        for j in range(at_gains):
            more = with_number(more, j, resting[j % n])
        for j in range(n_loads):
            more = with_number(more, at_loads + 2 * j, float(rng.integers(loads[j][2], loads[j][3])))
            more = with_number(more, at_loads + 2 * j + 1, rng.uniform(-loads[j][1], loads[j][1]))
        for j in range(at_gains, at_delay):
            more = with_number(more, j, rng.uniform(1.0 - spread, 1.0 + spread))
        for j in range(at_delay, at_loads):
            more = with_number(more, j, float(rng.integers(least, most + 1)))
        for j in range(n_ranges):
            more = with_number(more, at_parameters + j, rng.uniform(ranges[j][0], ranges[j][1]))
        return plain + with_number(more, at_key, rng.random())

    return disturbed_start


def _call(declared: Disturbances, step: Callable[..., Any], at: _Places) -> Callable[..., Any]:
    """Return a function of an extended state that calls `step` with all that it takes."""
    n_plain = at.line
    first = at.parameters
    end = at.key
    key = at.key
    constants = tuple(low for low, _ in declared.parameters)

    def drawn(state: Any) -> Any:
        return state[first:end]

    def constant(state: Any) -> Any:
        return constants

    parameters = callable_by_kernels(drawn if declared.draws_parameters else constant)

    def call(state: Any, action: Any) -> Any:
        return step(state[:n_plain], action)

    def call_with_parameters(state: Any, action: Any) -> Any:
        return step(state[:n_plain], action, parameters(state))

    def call_with_rng(state: Any, action: Any) -> Any:
        draws = draws_of(state[key], state[key + 1])
        return step(state[:n_plain], action, draws)

    def call_with_both(state: Any, action: Any) -> Any:
        draws = draws_of(state[key], state[key + 1])
        return step(state[:n_plain], action, parameters(state), draws)

    chosen: dict[tuple[str, ...], Callable[..., Any]] = {
        (): call,
        ("parameters",): call_with_parameters,
        ("rng",): call_with_rng,
        EXTRAS: call_with_both,
    }
    called = callable_by_kernels(chosen[declared.extras])

    def call_in_double(state: Any, action: Any) -> Any:
        after, reward, terminated = called(state, action)
        numbers = state[:n_plain]
        for j in range(n_plain):
            numbers = with_number(numbers, j, after[j])  # Numba's float(x) leaves single precision as it is
        return numbers, reward, terminated

    return callable_by_kernels(call_in_double)


def _step(declared: Disturbances, call: Callable[..., Any], at: _Places) -> Callable[..., Any]:
    """Return a step for actions with a range, with noise on them; the action is left as it was given."""
    low = declared.low
    high = declared.high
    rate = declared.rate
    n = len(low)
    n_loads = len(declared.loads)
    most = declared.delay[1]
    blank = (0.0,) * n
    loads = tuple(number for number, *_ in declared.loads) or (0,)
    noise = declared.action_noise
    n_seen = len(declared.noise)  # the first draws of a step are those of its observation
    limited = declared.limits_rate
    has_gain = at.delay > at.gains
    draws_delay = at.loads > at.delay
    n_plain = at.line
    at_gains = at.gains
    at_delay = at.delay
    at_loads = at.loads
    key = at.key
    count = at.count
    n_line = at_gains - n_plain
    n_before = at.end - at.before

    def noisy(state: Any, j: Any, x: Any) -> Any:
        return x + noise[j] * normal_at(step_key(state[key], state[count]), n_seen + j)

    def as_given(state: Any, j: Any, x: Any) -> Any:
        return x

    received = callable_by_kernels(noisy if any(noise) else as_given)  # what a step names is traced

    def disturbed_step(state: Any, action: Any) -> Any:
        asked = blank
        sent = blank
        for j in range(n):
            asked = with_number(asked, j, action[j])
            x = min(max(received(state, j, action[j]), low[j]), high[j])
            if has_gain:
                x = min(max(x * state[at_gains + j], low[j]), high[j])
            if limited:
                x = min(max(x, state[n_plain + j] - rate[j]), state[n_plain + j] + rate[j])
            sent = with_number(sent, j, x)
        line = sent + state[n_plain:at_gains]
        delay = int(state[at_delay]) if draws_delay else most
        for j in range(n):
            action[j] = line[delay * n + j]
        for j in range(n_loads):
            if state[count] >= state[at_loads + 2 * j]:
                action[loads[j]] += state[at_loads + 2 * j + 1]
        after, reward, terminated = call(state, action)
        for j in range(n):
            action[j] = asked[j]
        rest = (*state[at_gains:count], state[count] + 1.0)
        return after + line[:n_line] + rest + state[:n_before], reward, terminated

    return disturbed_step


def _listed_step(declared: Disturbances, call: Callable[..., Any], at: _Places) -> Callable[..., Any]:
    """Return a step for discrete actions, some replaced by random ones.

    Before the first one has passed the dead time, it is the first.
    """
    most = declared.delay[1]
    draws_delay = at.loads > at.delay
    n_plain = at.line
    at_gains = at.gains
    at_delay = at.delay
    key = at.key
    count = at.count
    n_line = at_gains - n_plain
    n_before = at.end - at.before
    replaced = declared.action_noise
    n = len(replaced)
    n_seen = len(declared.noise)  # the first draws of a step are those of its observation

    def noisy(state: Any, action: Any) -> Any:
        now = step_key(state[key], state[count])
        if uniform_at(now, 2 * n_seen) < replaced[int(action)]:
            return float(int(n * uniform_at(now, 2 * n_seen + 1)))
        return float(action)

    def as_given(state: Any, action: Any) -> Any:
        return float(action)

    received = callable_by_kernels(noisy if any(replaced) else as_given)  # what a step names is traced

    def disturbed_step(state: Any, action: Any) -> Any:
        line = (received(state, action), *state[n_plain:at_gains])
        delay = int(state[at_delay]) if draws_delay else most
        after, reward, terminated = call(state, int(line[delay]))
        rest = (*state[at_gains:count], state[count] + 1.0)
        return after + line[:n_line] + rest + state[:n_before], reward, terminated

    return disturbed_step


def _observe(declared: Disturbances, observe: Callable[..., Any], at: _Places) -> Callable[..., Any]:
    std = declared.noise
    most = declared.most_noise
    n = len(std)
    n_plain = at.line
    key = at.key
    before = at.before

    def observe_now(state: Any) -> Any:
        return observe(state[:n_plain])

    def observe_late(state: Any) -> Any:
        if state[key + 1] == 0.0:
            return observe(state[:n_plain])
        return observe(state[before:])

    plain_observe = callable_by_kernels(observe_late if declared.late_observations else observe_now)

    def noisy_observe(state: Any) -> Any:
        observation = plain_observe(state)
        now = step_key(state[key], state[key + 1])
        for j in range(n):
            if std[j] > 0.0:
                noise = std[j] * normal_at(now, j)
                observation = with_number(observation, j, observation[j] + min(max(noise, -most[j]), most[j]))
        return observation

    return noisy_observe if any(std) else plain_observe
