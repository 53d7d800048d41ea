"""Compiled plants: a few functions of arrays, which kernels call by their addresses.

Disturbances, dead time and noise are already part of the functions: they extend the state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numba.np.unsafe.ndarray import to_fixed_tuple

from spaql.kernels.jit import (
    ENABLED,
    FLOATS,
    GENERATOR,
    Pointer,
    as_array,
    call,
    call_with_three,
    njit_in_place,
    njit_inlined,
    pointer_to,
)
from spaql.kernels.numerics import Bools, Floats, Rng

Function = Callable[..., Any]

if ENABLED:
    as_tuple: Any = to_fixed_tuple
else:

    def as_tuple(row: Floats, length: int) -> tuple[float, ...]:
        """Return an array as a tuple."""
        return tuple(row)


class Addresses(NamedTuple):
    """A plant as kernels call it."""

    start: int
    """`start(rng, state)` draws a state."""
    look: int
    """`look(state, observation)`."""
    step: int
    """`step(state, action, outcome)` replaces the state, and writes the reward and whether the episode
    ended."""


KINDS: dict[type, tuple[Function, Function]] = {}
"""Kinds of plants, which are named tuples: how one is observed, and how it is stepped."""


def look(plant: Any, state: Floats, observation: Floats) -> None:
    """Write the observation of a state of any kind of plant."""
    KINDS[type(plant)][0](plant, state, observation)


def advance(plant: Any, state: Floats, action: Floats, outcome: Floats) -> None:
    """Make a step: replace the state, and write the reward and whether the episode ended."""
    KINDS[type(plant)][1](plant, state, action, outcome)


@overload(look, inline="always", strict=False)
def _look(plant: Any, state: Any, observation: Any) -> Any:
    kernel = KINDS[plant.instance_class][0]
    return lambda plant, state, observation: kernel(plant, state, observation)


@overload(advance, inline="always", strict=False)
def _advance(plant: Any, state: Any, action: Any, outcome: Any) -> Any:
    kernel = KINDS[plant.instance_class][1]
    return lambda plant, state, action, outcome: kernel(plant, state, action, outcome)


@njit_inlined
def _look_by_address(plant: Addresses, state: Floats, observation: Floats) -> None:
    call(plant.look, state, observation)


@njit_inlined
def _step_by_address(plant: Addresses, state: Floats, action: Floats, outcome: Floats) -> None:
    call_with_three(plant.step, state, action, outcome)


KINDS[Addresses] = _look_by_address, _step_by_address


@dataclass(frozen=True)
class Plant:
    """The functions of a plant, compiled."""

    start: Pointer
    look: Pointer
    step: Pointer
    n_state: int
    n_seen: int

    @cached_property
    def addresses(self) -> Addresses:
        """The plant as kernels call it."""
        return Addresses(self.start.address, self.look.address, self.step.address)

    def draw(self, n: int, rng: Rng) -> Floats:
        """Draw states in which episodes start, one per row."""
        states = np.empty((n, self.n_state))
        self.begin(np.ones(n, np.bool_), rng, states)
        return states

    def begin(self, which: Bools, rng: Rng, states: Floats) -> None:
        """Replace some states by those in which episodes start."""
        draw_rows(self.addresses, which, rng, states)

    def observe(self, states: Floats) -> Floats:
        """Return the observations of states, one per row."""
        observations = np.empty((len(states), self.n_seen))
        look_rows(self.addresses, np.ascontiguousarray(states), observations)
        return observations

    def step_rows(self, which: Bools, actions: Floats, states: Floats) -> tuple[Floats, Floats, Bools]:
        """Replace some states by the next ones; returns observations, rewards, and which episodes ended.

        Actions may be rounded to single precision in place.
        """
        outcomes = np.zeros((len(states), 2))
        observations = np.empty((len(states), self.n_seen))
        rows = np.ascontiguousarray(states)
        step_rows(self.addresses, which, np.ascontiguousarray(actions), rows, outcomes, observations)
        if rows is not states:
            states[:] = rows
        return observations, outcomes[:, 0], outcomes[:, 1] != 0.0


def compile_plant(
    start: Function,
    step: Function,
    observe: Function,
    *,
    n_state: int,
    n_seen: int,
    n_actions: int,
    depends_on: str,
    cached: bool,
) -> Plant:
    """Compile a plant: `start(rng)`, `step(state, action)` and `observe(state)` of tuples.

    There are `n_actions` components of an action; 0 for discrete ones. Observations and actions are rounded
    to single precision, as in Gymnasium's spaces. `depends_on` must change when the functions do; where that
    cannot be known, they must not be `cached`.
    """

    def begin(rng: Rng, state: Any) -> None:
        for j, value in enumerate(start(rng)):
            state[j] = value

    def look(state: Any, observation: Any) -> None:
        for j, value in enumerate(observe(as_tuple(as_array(state, (n_state,)), n_state))):
            observation[j] = np.float64(np.float32(value))

    def step_index(state: Any, action: Any, outcome: Any) -> None:
        after, reward, ended = step(as_tuple(as_array(state, (n_state,)), n_state), int(action[0]))
        for j, value in enumerate(after):
            state[j] = value
        outcome[0] = reward
        outcome[1] = 1.0 if ended else 0.0

    def step_numbers(state: Any, action: Any, outcome: Any) -> None:
        components = as_array(action, (n_actions,))
        for k in range(n_actions):
            components[k] = np.float64(np.float32(components[k]))
        after, reward, ended = step(as_tuple(as_array(state, (n_state,)), n_state), components)
        for j, value in enumerate(after):
            state[j] = value
        outcome[0] = reward
        outcome[1] = 1.0 if ended else 0.0

    def pointer(function: Function, *arguments: Any) -> Pointer:
        # Cached code is linked by name: the functions of different plants need different names.
        function.__qualname__ += f"_{depends_on[:16]}"
        return pointer_to(function, *arguments, depends_on=depends_on, cached=cached)

    return Plant(
        pointer(begin, GENERATOR, FLOATS),
        pointer(look, FLOATS, FLOATS),
        pointer(step_numbers if n_actions else step_index, FLOATS, FLOATS, FLOATS),
        n_state,
        n_seen,
    )


@njit_in_place
def draw_rows(plant: Addresses, which: Bools, rng: Rng, states: Floats) -> None:
    """Start an episode in some rows."""
    for i in range(which.shape[0]):
        if which[i]:
            call(plant.start, rng, states[i])


@njit_in_place
def look_rows(plant: Addresses, states: Floats, observations: Floats) -> None:
    """Write the observations of states."""
    for i in range(states.shape[0]):
        call(plant.look, states[i], observations[i])


@njit_in_place
def step_rows(
    plant: Addresses, which: Bools, actions: Floats, states: Floats, outcomes: Floats, observations: Floats
) -> None:
    """Make a step in some rows, and write the observations of all."""
    for i in range(which.shape[0]):
        if which[i]:
            call_with_three(plant.step, states[i], actions[i], outcomes[i])
        call(plant.look, states[i], observations[i])
