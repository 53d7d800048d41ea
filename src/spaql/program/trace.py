"""From Python functions to tapes, so that the equations of a plant are written once.

The plain Python function (behind `numba.njit`, if it was compiled) is run once for every path through its
conditions, with symbols for numbers. It is given a copy of its globals and closure, in which `math`, `numpy`,
`min`, `max`, `float`, `int` and the functions that it calls know symbols. An `if` on a symbol asks for the
truth of a comparison; if the ranges of the inputs do not settle it, both answers are followed.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from spaql.errors import SettingError
from spaql.program.arrays import captured
from spaql.program.evaluate import Interpreter
from spaql.program.ir import Program
from spaql.program.reading import globals_read, place, plain_function, without_lists
from spaql.program.recorder import RECORDERS, Decision, LostPathError, NotTracedError, Range, Recorder
from spaql.program.shims import BUILTINS, FUNCTIONS, known_attribute, unknown_function
from spaql.program.symbols import Symbol, lifted
from spaql.program.tape import DecisionTree, Tape, tape_arrays

_LIMITS = ((12, 400), (3, 4096))
"""How often one condition in the source is decided on one path, and how many paths there may be, in two
attempts; a path that repeats a condition more often may return anything (a loop that wraps an angle)."""

_ALL = ((math.inf, 4096),)
"""For a program, in which one condition of the interpreter stands for all."""
ANYWHERE = (-math.inf, math.inf)

Call = Callable[[list[Symbol]], tuple[Sequence[Any], Any]]
Path = tuple[list[Decision], tuple[int, ...], bool]


def for_each_path(function: Callable[..., Any]) -> Callable[..., Any]:
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
            items = tuple(known(item) for item in value)
            return items if type(value) is tuple else type(value)(*items)
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
    for cell, original in zip(cells, plain.__closure__ or (), strict=True):
        cell.cell_contents = known(original.cell_contents)
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


def tape_of(program: Program, parts: Mapping[str, Program] = MappingProxyType({})) -> Tape:
    """Return the tape of a program without state, and of the programs that it calls, by name.

    Examples
    --------
    >>> from spaql.program.ir import Assign, Compare, If, Name, Number
    >>> above = If(Compare(">", Name("x"), Number(1.0)), (Assign("y", Number(1.0)),))
    >>> tape_of(Program(("x",), ("y",), (), (), (), (Assign("y", Name("x")), above)))
    Tape(2 operations, 2 paths)
    """
    if program.state:
        raise SettingError("This program has a state, and only one without is a tape.")

    def call(x: list[Symbol]) -> tuple[Sequence[Any], Any]:
        return _Symbolic(program, parts)(x), False

    return trace(call, [ANYWHERE] * len(program.inputs), len(program.outputs), "the program", _ALL)


class _Symbolic(Interpreter):
    """A program that is run with symbols for numbers."""

    def computed(self, function: Callable[..., Any], *values: Any) -> Any:
        """Return the value of a function or an operator."""
        if any(isinstance(x, Symbol) for x in values):
            written = isinstance(function, types.FunctionType)
            function = for_each_path(function) if written else FUNCTIONS.get(id(function), function)
        return function(*values)


def trace(
    call: Call,
    ranges: Sequence[Range],
    outputs: int,
    what: str,
    limits: Sequence[tuple[float, int]] = _LIMITS,
) -> Tape:
    """Return the tape of a function of numbers in ranges, which returns its outputs and a flag.

    Raises `SettingError` if it does something that cannot be traced, with the line and what to write instead.
    """
    for turns, most in limits:
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
        f"Cannot trace {what}: it has more than {most} paths through its conditions. Use fewer "
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
            rows = (recorder.row("unknown"),) * outputs
            ended = False
        if len(rows) != outputs:
            raise NotTracedError(f"{len(rows)} numbers are returned, and {outputs} are expected")
        decided = recorder.decided
        paths.append((list(decided), rows, ended))
        answers = [answer for _, answer, _ in decided]
        for n, (_, _, settled) in enumerate(decided):
            if n >= len(plan) and not settled:
                waiting.append([*answers[:n], not answers[n]])
        if len(paths) + len(waiting) > most:
            return None
    return paths


def _refusal(error: Exception, what: str) -> str:
    """Return what cannot be traced, with the line of the user's source."""
    where = ""
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        if frame.f_globals.get("__builtins__") is BUILTINS:
            where = place(frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    if isinstance(error, NotTracedError) and error.file:
        where = place(error.file, error.line)
    reason = error if isinstance(error, NotTracedError) else f"{type(error).__name__}: {error}"
    return f"Cannot trace {what}{where}: {reason}."


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
