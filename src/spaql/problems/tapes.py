"""The functions of plants as tapes: steps and observations, for proofs and for pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spaql.errors import SettingError
from spaql.problems.dynamics import Dynamics
from spaql.program.arrays import Array
from spaql.program.recorder import Range
from spaql.program.shims import clip
from spaql.program.symbols import Symbol, apply
from spaql.program.tape import Tape
from spaql.program.trace import ANYWHERE, for_each_path, trace


def trace_step(dynamics: Dynamics, *, delayed: bool = False) -> Tape:
    """Trace the step of a plant; the inputs are its state and the action, the outputs the next state.

    With `delayed`, the action that waits is more numbers of the state: each step applies it, and the given
    action waits for the next one. Of a list of actions, the one nearest to the number that waits is applied.

    Raises
    ------
    SettingError
        If it does something that cannot be traced, with the line and what to write instead, or if the plant
        declares disturbances.

    Examples
    --------
    >>> from spaql.problems.classic import find_dynamics
    >>> trace_step(find_dynamics("MountainCar-v0"))
    Tape(25 operations, 3 paths)
    """
    n = dynamics.state_dims
    actions = _action_ranges(dynamics)
    wide = len(actions)
    if dynamics.disturbances.is_needed:
        raise SettingError(
            f"{dynamics.id} declares disturbances, such as noise, dead time, loads or ranges of parameters, "
            "and a proof needs a next state that follows from the state and the action. Write the plant "
            "without them, and give verify bounds instead: noise of observations, pushes of the state, a "
            "late action."
        )
    step = for_each_path(dynamics.nominal_functions[1] if dynamics.parameters else dynamics.step)

    def call(x: list[Symbol]) -> tuple[Sequence[Any], Any]:
        used = x[n : n + wide]
        action = _action(used, dynamics)
        if delayed and not isinstance(dynamics.actions, Mapping):
            action = whole_action(action, len(dynamics.actions))
        after, _, ended = step(tuple(x[:n]), action)
        return (*after, *x[n + wide :]), ended

    ranges = [ANYWHERE] * n + [ANYWHERE] * (wide * delayed) + actions
    return trace(call, ranges, n + delayed * wide, f"the step of {dynamics.id}")


def whole_action(waiting: Symbol, count: int) -> Symbol:
    """Return the action of a list that is nearest to a number."""
    return Symbol(apply("floor", clip(waiting + 0.5, 0.0, count - 0.5)).row, "whole")


def trace_observe(dynamics: Dynamics) -> Tape:
    """Trace the observation of a plant's state.

    Examples
    --------
    >>> from spaql.problems.classic import find_dynamics
    >>> trace_observe(find_dynamics("Pendulum-v1"))
    Tape(4 operations, 1 paths)
    """
    return _observed(dynamics, for_each_path(dynamics.observe), dynamics.state_dims)


def _observed(dynamics: Dynamics, observe: Callable[..., Any], n: int) -> Tape:
    what = f"the observation of {dynamics.id}"
    return trace(lambda x: (observe(tuple(x)), False), [ANYWHERE] * n, len(dynamics.observations), what)


def trace_nominal(dynamics: Dynamics, *, simulated: bool = False) -> tuple[Tape, Tape]:
    """Trace the step of a plant with its reward, and its observation, both without disturbances.

    The outputs of the step are the next state and the reward. Parameters are in the middle of their ranges.
    With `simulated`, the plant is traced as it is simulated: its state is longer, with the actions that wait
    and loads. What `step` draws follows the action: two inputs for each draw (see `Tape.draws`). Noise of
    observations cannot be traced.

    Examples
    --------
    >>> from spaql.problems.classic import find_dynamics
    >>> trace_nominal(find_dynamics("Pendulum-v1"))
    (Tape(41 operations, 1 paths), Tape(4 operations, 1 paths))
    """
    n = dynamics.state_dims if simulated else dynamics.plant_dims
    if not simulated and "rng" in dynamics.disturbances.extras:
        raise SettingError(f"The step of {dynamics.id} draws random numbers: it is traced as simulated only.")
    functions = dynamics.functions if simulated else dynamics.nominal_functions
    _, step, observe = map(for_each_path, functions)

    def call(x: list[Symbol]) -> tuple[Sequence[Any], Any]:
        action = _action(x[n:], dynamics)
        after, reward, ended = step(tuple(x[:n]), action)
        return (*after, reward), ended

    ranges = [ANYWHERE] * n + _action_ranges(dynamics)
    tape = trace(call, ranges, n + 1, f"the step of {dynamics.id}")
    return tape, _observed(dynamics, observe, n)


def _action_ranges(dynamics: Dynamics) -> list[Range]:
    """Return the range of the number of an action of a list, or of each number of an action."""
    count = len(dynamics.actions)
    return [ANYWHERE] * count if isinstance(dynamics.actions, Mapping) else [(0.0, count - 1.0)]


def _action(inputs: Sequence[Symbol], dynamics: Dynamics) -> Any:
    """Return the action as a function takes it: the number of one in a list, or an array."""
    if not isinstance(dynamics.actions, Mapping):
        return Symbol(inputs[0].row, "whole")
    values = np.empty(len(inputs), object)
    values[:] = [Symbol(u.row, "double") for u in inputs]
    return Array(values)
