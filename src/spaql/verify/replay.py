"""Playing a closed loop by the plant's own functions: the test of a counterexample."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from spaql.controllers import Controller
from spaql.problems import Dynamics
from spaql.verify.statement import Statement

_AFTER = 200
"""Steps after the limit in which a state may leave a target where it has to stay."""


@dataclass(frozen=True)
class Counterexample:
    """A start from which a statement is false, as played by the plant's own functions."""

    start: tuple[float, ...]
    """The state."""
    step: int
    """The step at which it shows."""
    state: tuple[float, ...]
    """The state at that step."""
    why: str


def played(
    dynamics: Dynamics, tree: Controller, start: Sequence[float], *, delayed: bool = False
) -> Iterator[tuple[tuple[float, ...], bool]]:
    """Yield the states of an episode and whether it has terminated, the start first, for ever.

    Observations and actions are in single precision, as in Gymnasium. After a termination the plant goes on.
    """
    for state, ended, _ in played_with_actions(dynamics, tree, start, delayed=delayed):
        yield state, ended


def played_with_actions(
    dynamics: Dynamics, tree: Controller, start: Sequence[float], *, delayed: bool = False
) -> Iterator[tuple[tuple[float, ...], bool, tuple[float, ...]]]:
    """Yield states and terminations as `played` does, with the action that is applied in each state.

    The functions are those that are simulated: compiled, 0 / 0 is NaN and no error. The last state is
    one whose observation is NaN, or whose step raises an error.
    """
    _, step, observe = dynamics.compiled_functions
    n = dynamics.state_dims
    listed = not isinstance(dynamics.actions, Mapping)
    first = float(getattr(tree.action_space, "start", 0.0))
    state = tuple(float(x) for x in start)
    ended = False
    while True:
        observation = np.array(observe(state[:n]), np.float32)
        if np.isnan(observation).any():
            yield state, ended, ()
            return
        action = np.asarray(tree.act(observation[np.newaxis])[0], np.float64).ravel()
        applied = np.array(state[n:]) if delayed else action
        if delayed and listed:
            applied = first + np.clip(np.floor(applied - first + 0.5), 0.0, len(dynamics.actions) - 1.0)
        yield state, ended, tuple(applied.tolist())
        try:
            after, _, ended = step(state[:n], int(applied[0]) if listed else applied)
        except Exception:  # whatever a user's function raises
            return
        state = (*after, *(action.tolist() if delayed else ()))


def refutes(
    dynamics: Dynamics,
    tree: Controller,
    statement: Statement,
    names: Sequence[str],
    start: Sequence[float],
    period: Sequence[float],
    *,
    steps: int,
    delayed: bool = False,
) -> Counterexample | None:
    """Play a start, and return what refutes the statement, or None if nothing does in some steps.

    Nothing does either where Python refuses what the compiled plant computes, such as the root of -1.
    """
    limit = statement.within if statement.reaches else None
    last = limit + _AFTER if limit is not None else statement.within or steps
    first = tuple(float(x) for x in start)
    k = 0
    state = first
    for k, (state, ended) in enumerate(played(dynamics, tree, start, delayed=delayed)):
        if statement.termination == "failure" and ended:
            return Counterexample(first, k, state, "it terminates")
        if statement.termination == "goal" and ended:
            return None
        if name := _outside(statement.allowed, names, state, period):
            return Counterexample(first, k, state, f"{name} leaves what is allowed")
        if limit is not None and k >= limit:
            if statement.termination == "goal":
                return Counterexample(first, k, state, f"it has not terminated in {limit:,} steps")
            assert statement.target is not None
            if name := _outside(statement.target, names, state, period):
                return Counterexample(first, k, state, f"{name} is not in the target after {k:,} steps")
            if not statement.stays:
                return None
        elif statement.target is not None and not statement.stays:
            reached = not _outside(statement.target, names, state, period)
            if reached:
                return None
        if k >= last:
            return None
    return Counterexample(first, k, state, "an observation is NaN, or its step raises an error")


def _outside(
    box: Mapping[str, tuple[float, float]],
    names: Sequence[str],
    state: Sequence[float],
    period: Sequence[float],
) -> str:
    """Return the name of a number that is outside of a box, empty if none is."""
    for name, (low, high) in box.items():
        j = list(names).index(name)
        x = state[j]
        if period[j] > 0.0 and math.isfinite(x):
            x -= math.floor((x - 0.5 * (low + high)) / period[j] + 0.5) * period[j]
        if not low <= x <= high:
            return name
    return ""
