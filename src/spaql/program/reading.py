"""What of Python the tracer executes: the instructions of a function against those that are modelled.

The tracer runs a function with symbols for its numbers. What reaches a symbol is recorded or refused by it.
What would never reach one (a caught error, an identity, text, a list that Numba makes one of integers) is
refused here, before the function is run, with the line.
"""

from __future__ import annotations

import dis
import linecache
import os
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from numba.core.dispatcher import Dispatcher

from spaql.program.recorder import NotTracedError

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
