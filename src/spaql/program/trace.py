"""From Python functions to tapes, so that the equations of a plant are written once.

The plain Python function (behind `numba.njit`, if it was compiled) is run once for every path through its
conditions, with symbols for numbers. It is given a copy of its globals and closure, in which `math`, `numpy`,
`min`, `max`, `float`, `int` and the functions that it calls know symbols. An `if` on a symbol asks for the
truth of a comparison; if the ranges of the inputs do not settle it, both answers are followed. What would
never reach a symbol (a caught error, an identity, text, a list that Numba makes one of integers) is refused
before, by the instructions of the function, with the line.
"""

from __future__ import annotations

import dis
import linecache
import math
import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from spaql.errors import SettingError
from spaql.program.arrays import captured
from spaql.program.evaluate import Interpreter
from spaql.program.ir import Program
from spaql.program.recorder import RECORDERS, Decision, LostPathError, NotTracedError, Range, Recorder
from spaql.program.shims import BUILTINS, FUNCTIONS, known_attribute, unknown_function
from spaql.program.symbols import Symbol, lifted
from spaql.program.tape import DecisionTree, Tape, tape_arrays

_KNOWN = frozenset(
    """
    CACHE CALL CALL_FUNCTION_EX CALL_KW COMPARE_OP COPY COPY_FREE_VARS END_FOR EXTENDED_ARG FOR_ITER GET_ITER
    KW_NAMES MAKE_CELL MAKE_FUNCTION NOP NOT_TAKEN POP_ITER POP_TOP PRECALL PUSH_NULL RERAISE RESUME SWAP
    BINARY_OP BINARY_SLICE BINARY_SUBSCR STORE_SLICE STORE_SUBSCR UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE
    BUILD_LIST BUILD_SLICE BUILD_TUPLE LIST_APPEND LIST_EXTEND LIST_TO_TUPLE UNPACK_EX UNPACK_SEQUENCE
    JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP
    POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE
    LOAD_ASSERTION_ERROR LOAD_ATTR LOAD_CLOSURE LOAD_COMMON_CONSTANT LOAD_CONST LOAD_DEREF LOAD_FAST
    LOAD_FAST_AND_CLEAR LOAD_FAST_BORROW LOAD_FAST_BORROW_LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST
    LOAD_GLOBAL LOAD_METHOD LOAD_SMALL_INT STORE_DEREF STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST
    RAISE_VARARGS TO_BOOL RETURN_CONST RETURN_VALUE SET_FUNCTION_ATTRIBUTE
    """.split()  # noqa: SIM905
)
"""Instructions of Python 3.11 to 3.14. A version with others refuses more, until they are added."""
_OPERATORS = frozenset(("+", "-", "*", "/", "//", "%", "**", "@", "&", "|", "^", "[]"))
_INTRINSICS = frozenset(("INTRINSIC_UNARY_POSITIVE", "INTRINSIC_LIST_TO_TUPLE"))
_CALLED: Mapping[str, str] = {
    "BEFORE_WITH": "a with block",
    "BUILD_MAP": "a dict",
    "BUILD_SET": "a set",
    "BUILD_STRING": "a number written as text",
    "CONTAINS_OP": "`in`: compare with `==`, joined by `or`",
    "DELETE_FAST": "del",
    "DELETE_SUBSCR": "del",
    "FORMAT_SIMPLE": "a number written as text",
    "FORMAT_VALUE": "a number written as text",
    "FORMAT_WITH_SPEC": "a number written as text",
    "IMPORT_NAME": "an import within the function",
    "IS_OP": "`is`: compare with `==`",
    "PUSH_EXC_INFO": "try: write a condition",
    "RETURN_GENERATOR": "a generator: write a loop",
    "STORE_ATTR": "an attribute that is set",
    "STORE_GLOBAL": "a global variable that is set",
    "UNARY_INVERT": "`~`: write `not`",
}
"""What is refused, by its instruction."""


def globals_read(function: types.FunctionType, builtins: Mapping[str, Any]) -> set[str]:
    """Return the global names that a function reads; one that does what is not modelled is refused."""
    stores = None
    lists = 0
    line = 0
    used = set[str]()
    for code, instruction in _instructions(function.__code__):
        name = _plain(instruction.opname)
        line = (instruction.positions and instruction.positions.lineno) or line
        if what := _refused(name, instruction):
            thing, colon, advice = what.partition(":")
            raise refusal(f"{thing} is not traced{colon}{advice}", code, line)
        if name == "LOAD_GLOBAL":
            used.add(instruction.argval)
            if instruction.argval not in builtins and instruction.argval not in function.__globals__:
                raise refusal(f"{instruction.argval} is not traced", code, line)
        if name.startswith("STORE_SUBSCR") or name == "STORE_SLICE":
            stores = code, line
        lists += name == "BUILD_LIST"
        lists -= name == "LIST_TO_TUPLE" or instruction.argrepr == "INTRINSIC_LIST_TO_TUPLE"  # (*a, b)
    if stores is not None and lists:
        # Numba makes a list of whole numbers one that holds no other.
        raise refusal(
            "a function that sets elements makes lists: write tuples, as np.array((1.0, 2.0))", *stores
        )
    return used


def plain_function(function: Any) -> types.FunctionType:
    """Return the Python function; one that Numba compiles to something else is refused."""
    plain = function
    if isinstance(function, Dispatcher):
        plain = function.py_func
        options = function.targetoptions
        refused = [name for name in ("fastmath", "parallel") if options.get(name)]
        refused += ["locals"] if function.locals else []
        refused += [] if getattr(function, "_can_compile", True) else ["a signature"]
        if refused:
            raise NotTracedError(f"{plain.__name__} is compiled with {', '.join(refused)}: leave that out")
    if not isinstance(plain, types.FunctionType):
        raise NotTracedError(f"{function!r} is not a Python function: write it as one")
    return plain


def without_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that refuses to take or return lists, whose elements it might set."""

    def checked(*arguments: Any, **named: Any) -> Any:
        result = function(*arguments, **named)
        if _has_list((arguments, tuple(named.values()), result)):
            raise NotTracedError("a function takes or returns a list: write a tuple")
        return result

    return checked


def _has_list(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, tuple) and any(map(_has_list, value)))


def _instructions(code: types.CodeType) -> Iterator[tuple[types.CodeType, dis.Instruction]]:
    """Yield the instructions of a function and of those that are defined in it."""
    for instruction in dis.get_instructions(code):
        yield code, instruction
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)


def _plain(opname: str) -> str:
    """Return the name of an instruction; of jumps, Python 3.11 names the direction."""
    return opname.replace("POP_JUMP_FORWARD_IF", "POP_JUMP_IF").replace("POP_JUMP_BACKWARD_IF", "POP_JUMP_IF")


def _refused(name: str, instruction: dis.Instruction) -> str:
    """Return what an instruction does that is not modelled; empty if it is modelled."""
    if name == "BINARY_OP":
        operator = instruction.argrepr.removesuffix("=")
        return "" if operator in _OPERATORS else f"`{operator}`"
    if name == "CALL_INTRINSIC_1":
        return "" if instruction.argrepr in _INTRINSICS else _CALLED["RETURN_GENERATOR"]
    return "" if name in _KNOWN else _CALLED.get(name, name)


def refusal(message: str, code: types.CodeType, line: int) -> NotTracedError:
    """Return a refusal with a place."""
    return NotTracedError(message, code.co_filename, line or code.co_firstlineno)


def place(file: str, line: int) -> str:
    """Return a place in a source as it is named in refusals."""
    text = linecache.getline(file, line).strip()
    return f" at {os.path.basename(file)}, line {line}" + (f" (`{text}`)" if text else "")


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
