"""From a plant's Python functions to tapes, without the user writing anything twice.

The plain Python function (behind `numba.njit`, if it was compiled) is run once for every path through its
conditions, with symbols for numbers. It is given a copy of its globals and closure, in which `math`, `numpy`,
`min`, `max`, `float`, `int` and the functions that it calls know symbols. An `if` on a symbol asks for the
truth of a comparison; if the ranges of the inputs do not settle it, both answers are followed.
"""

from __future__ import annotations

import math
import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from spaql.errors import SettingError
from spaql.problems import Dynamics
from spaql.verify.arrays import Array, captured
from spaql.verify.reading import globals_read, place, plain_function, without_lists
from spaql.verify.shims import BUILTINS, FUNCTIONS, known_attribute, unknown_function
from spaql.verify.symbols import (
    RECORDERS,
    Decision,
    LostPathError,
    NotTracedError,
    Range,
    Recorder,
    Symbol,
    lifted,
    made,
)
from spaql.verify.tape import DecisionTree, Tape, tape_arrays

_PACKAGE = os.path.dirname(__file__) + os.sep
_LIMITS = ((12, 400), (3, 4096))
"""How often one condition in the source is decided on one path, and how many paths there may be, in two
attempts; a path that repeats a condition more often may return anything (a loop that wraps an angle)."""
_ANYWHERE = (-math.inf, math.inf)

Call = Callable[[list[Symbol]], tuple[Sequence[Any], Any]]
Path = tuple[list[Decision], tuple[int, ...], bool]


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
    listed = not isinstance(dynamics.actions, Mapping)
    n, wide = dynamics.state_dims, 1 if listed else len(dynamics.actions)
    if listed:
        actions: list[Range] = [(0.0, float(len(dynamics.actions) - 1))]
    else:
        actions = [_ANYWHERE] * wide
    if dynamics.disturbances.is_needed:
        raise SettingError(
            f"{dynamics.id} declares {_declared(dynamics)}, and a proof needs a next state that follows from "
            "the state and the action. Write the plant without that, and give verify bounds instead: noise "
            "of observations, pushes of the state, a late action."
        )
    step = _for_each_path(dynamics.nominal_functions[1] if dynamics.parameters else dynamics.step)

    def call(x: list[Symbol]) -> tuple[Sequence[Any], Any]:
        used = x[n : n + wide]
        action = _action(used, listed)
        if delayed and listed:
            action = whole_action(action, len(dynamics.actions))
        after, _, ended = step(tuple(x[:n]), action)
        return (*after, *x[n + wide :]), ended

    ranges = [_ANYWHERE] * n + [_ANYWHERE] * (wide * delayed) + actions
    return _traced(call, ranges, n + delayed * wide, f"the step of {dynamics.id}")


def _declared(dynamics: Dynamics) -> str:
    """Return the names of the disturbances that a plant declares."""
    found = dynamics.disturbances
    kinds = {
        "noise": any(found.noise),
        "dead time": found.delay[1] > 0,
        "a rate limit": found.limits_rate,
        "loads": bool(found.loads),
        "uncertain gains": bool(found.gain),
        "ranges of parameters": found.draws_parameters,
        "random numbers in its step": "rng" in found.extras,
    }
    return ", ".join(kind for kind, is_so in kinds.items() if is_so)


def whole_action(waiting: Symbol, count: int) -> Symbol:
    """Return the action of a list that is nearest to a number."""
    low, high = BUILTINS["max"], BUILTINS["min"]
    return Symbol(made("floor", high(low(waiting + 0.5, 0.0), count - 0.5)).row, "whole")


def trace_observe(dynamics: Dynamics) -> Tape:
    """Trace the observation of a plant's state.

    Examples
    --------
    >>> from spaql.problems.classic import find_dynamics
    >>> trace_observe(find_dynamics("Pendulum-v1"))
    Tape(4 operations, 1 paths)
    """
    observe = _for_each_path(dynamics.observe)
    ranges = [_ANYWHERE] * dynamics.state_dims
    what = f"the observation of {dynamics.id}"
    return _traced(lambda x: (observe(tuple(x)), False), ranges, len(dynamics.observations), what)


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
    listed = not isinstance(dynamics.actions, Mapping)
    wide = 1 if listed else len(dynamics.actions)
    n = dynamics.state_dims if simulated else dynamics.plant_dims
    if not simulated and "rng" in dynamics.disturbances.extras:
        raise SettingError(f"The step of {dynamics.id} draws random numbers: it is traced as simulated only.")
    functions = dynamics.functions if simulated else dynamics.nominal_functions
    _, step, observe = map(_for_each_path, functions)

    def call(x: list[Symbol]) -> tuple[Sequence[Any], Any]:
        action = _action(x[n:], listed)
        after, reward, ended = step(tuple(x[:n]), action)
        return (*after, reward), ended

    state: list[Range] = [_ANYWHERE] * n
    actions: list[Range] = [(0.0, len(dynamics.actions) - 1.0)] if listed else [_ANYWHERE] * wide
    return (
        _traced(call, state + actions, n + 1, f"the step of {dynamics.id}"),
        _traced(
            lambda x: (observe(tuple(x)), False),
            state,
            len(dynamics.observations),
            f"the observation of {dynamics.id}",
        ),
    )


def _action(given: Sequence[Symbol], listed: bool) -> Any:
    """Return the action as a function takes it: the number of one in a list, or an array."""
    if listed:
        return Symbol(given[0].row, "whole")
    values = np.empty(len(given), object)
    values[:] = [Symbol(u.row, "double") for u in given]
    return Array(values)


def _for_each_path(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function as one that knows symbols, made anew for each path.

    Constants in single precision are rows of a path.
    """
    return lambda *given: _rebound(function, {})(*given)


def _rebound(function: Callable[..., Any], done: dict[int, Any]) -> Callable[..., Any]:
    """Return the plain Python function with globals and a closure that know symbols."""
    plain = plain_function(function)
    if id(plain) in done:
        rebound: Callable[..., Any] = done[id(plain)]
        return rebound
    names: dict[str, Any] = {**BUILTINS, "__builtins__": BUILTINS}
    used = globals_read(plain, BUILTINS)
    cells = tuple(types.CellType() for _ in plain.__closure__ or ())
    copy = types.FunctionType(plain.__code__, names, plain.__name__, None, cells or None)
    done[id(plain)] = without_lists(copy)

    def known(value: Any) -> Any:
        """Return what stands for something from outside of the function."""
        if isinstance(value, types.ModuleType):
            return _Module(value, known)
        if id(value) in FUNCTIONS:
            return FUNCTIONS[id(value)]
        if hasattr(value, "py_func") or isinstance(value, types.FunctionType):
            return _rebound(value, done)
        if isinstance(value, tuple):
            found = tuple(known(one) for one in value)
            return found if type(value) is tuple else type(value)(*found)
        if isinstance(value, np.ndarray):
            return captured(value)
        if isinstance(value, np.float32):
            return lifted(value)
        if isinstance(value, bool | int | float | str | np.int64 | np.bool_ | None):
            return value
        if callable(value):
            raise unknown_function(getattr(value, "__name__", repr(value)))
        raise NotTracedError(f"a {type(value).__name__} is used: pass its numbers, or a tuple of them")

    copy.__defaults__ = known(plain.__defaults__)
    copy.__kwdefaults__ = plain.__kwdefaults__ and {k: known(v) for k, v in plain.__kwdefaults__.items()}
    names |= {k: known(v) for k, v in plain.__globals__.items() if k in used}
    for cell, given in zip(cells, plain.__closure__ or (), strict=True):
        cell.cell_contents = known(given.cell_contents)
    traced: Callable[..., Any] = done[id(plain)]
    return traced


class _Module:
    """A module of which functions and constants are known when they are used."""

    def __init__(self, module: types.ModuleType, known: Callable[[Any], Any]) -> None:
        self._module = module
        self._known = known

    def __getattr__(self, name: str) -> Any:
        if self._module in (math, np):
            return known_attribute(self._module, name)
        return self._known(getattr(self._module, name))


def _traced(call: Call, ranges: Sequence[Range], outputs: int, what: str) -> Tape:
    for turns, most in _LIMITS:
        recorder = Recorder(ranges, turns)
        RECORDERS.append(recorder)
        try:
            paths = _all_paths(recorder, call, len(ranges), outputs, most)
        except Exception as error:
            raise SettingError(_refusal(error, what)) from error
        finally:
            RECORDERS.pop()
        if paths is not None:
            lost = (recorder.row("unknown"),) * outputs, False
            tree = _decision_tree(paths, 0, lost)
            return Tape(tape_arrays(recorder.rows, recorder.tables, tree), len(ranges), recorder.draws)
    raise SettingError(
        f"Cannot trace {what}: it has more than {_LIMITS[-1][1]} paths through its conditions. Use fewer "
        "conditions on the state, or min, max and np.interp in their place."
    )


def _all_paths(recorder: Recorder, call: Call, inputs: int, outputs: int, most: int) -> list[Path] | None:
    """Return the conditions and results of all paths, or None if there are too many."""
    paths: list[Path] = []
    waiting: list[list[bool]] = [[]]
    while waiting:
        plan = waiting.pop()
        recorder.begin(plan)
        symbols = [Symbol(recorder.row("input", first=i)) for i in range(inputs)]
        try:
            with np.errstate(all="ignore"):  # products of arrays of symbols set flags of the processor
                results, flag = call(symbols)
            ended = bool(flag)
            rows = tuple(lifted(x).row for x in results)
        except LostPathError:
            rows, ended = (recorder.row("unknown"),) * outputs, False
        if len(rows) != outputs:
            raise NotTracedError(f"{len(rows)} numbers are returned, and {outputs} are expected")
        decided = recorder.decided
        paths.append((list(decided), rows, ended))
        for n, (_, given, settled) in enumerate(decided):
            if n >= len(plan) and not settled:
                waiting.append([answer for _, answer, _ in decided[:n]] + [not given])
        if len(paths) + len(waiting) > most:
            return None
    return paths


def _refusal(error: Exception, what: str) -> str:
    """Return what cannot be traced, with the line of the user's source."""
    where = ""
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_PACKAGE):
            where = place(file, trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(error, NotTracedError) and error.file:
        where = place(error.file, error.line)
    said = error if isinstance(error, NotTracedError) else f"{type(error).__name__}: {error}"
    return f"Cannot trace {what}{where}: {said}."


def _decision_tree(paths: list[Path], depth: int, lost: DecisionTree) -> DecisionTree:
    """Return the decision tree of paths; a condition whose sides are equal is left out.

    What follows from the other answer to a settled condition is lost.
    """
    decided, rows, ended = paths[0]
    if len(decided) == depth:
        return rows, ended
    condition = decided[depth][0]
    sides = ([p for p in paths if p[0][depth][1] is answer] for answer in (True, False))
    yes, no = (_decision_tree(side, depth + 1, lost) if side else lost for side in sides)
    return yes if yes == no else (condition, yes, no)
