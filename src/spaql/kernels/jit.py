"""Compilation by Numba: the `njit` of this module, which compiles every kernel."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba import carray  # type: ignore[attr-defined]
from numba.core.errors import NumbaError as NumbaError
from numba.core.errors import TypingError
from numba.extending import intrinsic, register_jitable

from spaql.kernels.linking import IS_TESTED, compiled, compiled_kernel, recache

Function = TypeVar("Function", bound=Callable[..., Any])
Fields = tuple[Any, ...]
"""A named tuple as a plain tuple, which Numba converts from Python in half the time: it matters for a kernel
that is called at every step."""
ENABLED: bool = not numba.config.DISABLE_JIT  # type: ignore[attr-defined]


def sources_stamp(folder: Path) -> str:
    """Return a hash of the names and contents of all Python sources in a folder and below.

    Examples
    --------
    >>> len(sources_stamp(Path(__file__).parent))
    64
    """
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


STAMP = sources_stamp(Path(__file__).parent)
"""Hash of the kernels of this package."""


def njit(
    function: Function,
    *,
    depends_on: str = "",
    cached: bool = True,
    inline: bool = True,
    in_place: bool = False,
) -> Function:
    """Compile a kernel that is cached on disk and releases the GIL.

    Parameters
    ----------
    function
        The kernel.
    depends_on
        A hash of the code that is compiled into it besides the kernels of this package, such as a user's
        dynamics.
    cached
        Keep it on disk; otherwise it is compiled in every process.
    inline
        Inline it in the kernels that call it. A call costs two atomic operations for every array argument,
        more than the work of most kernels.
    in_place
        It allocates no array, nor does any kernel that it calls, and references are not counted.
    """
    if not ENABLED:
        return function
    kernel = compiled_kernel(function, _stamp(depends_on, cached=cached), inline=inline, in_place=in_place)
    return cast(Function, kernel)


def _stamp(depends_on: str, *, cached: bool) -> str | None:
    """Return what a cached function is valid for, None for one that is not cached.

    Versions of Numba that were not tested see edits of its own file only.
    """
    if not cached or (depends_on and not IS_TESTED):
        return None
    return hashlib.sha256((STAMP + depends_on).encode()).hexdigest()


def cache_by(dispatcher: Any, depends_on: str, *, cached: bool) -> None:
    """Cache a function of the user's, which Numba caches by its own file, by all that it depends on."""
    recache(dispatcher, _stamp(depends_on, cached=cached))


def njit_no_inline(function: Function) -> Function:
    """Compile a kernel that is too large to be inlined."""
    return njit(function, inline=False)


def njit_inlined(function: Function) -> Function:
    """Compile a kernel that allocates nothing, and inline it in those that call it."""
    return njit(function, in_place=True)


def njit_in_place(function: Function) -> Function:
    """Compile a kernel that allocates nothing and is not inlined."""
    return njit(function, inline=False, in_place=True)


def callable_by_kernels(function: Function) -> Function:
    """Let kernels call a function that is not compiled when Python calls it."""
    return register_jitable(error_model="numpy")(function) if ENABLED else function


FLOATS = numba.types.CPointer(numba.types.float64)  # type: ignore[no-untyped-call]
"""An array of floats, as a function gets it that is called by its address."""
GENERATOR = numba.types.NumPyRandomGeneratorType("NumPyRandomGeneratorType")
_CONTIGUOUS = numba.types.float64[::1]


def pointer_to(function: Callable[..., None], *arguments: Any, depends_on: str, cached: bool) -> "Pointer":
    """Compile a function of arguments of these types, which kernels call by its address.

    The kernels are compiled once for all such functions, and exceptions reach whoever called the kernel.
    """
    if not ENABLED:
        return Pointer(function, function)
    stamp = _stamp(depends_on, cached=cached)
    dispatcher = compiled(function, stamp, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    dispatcher.compile(arguments)
    code = dispatcher.overloads[arguments]
    return Pointer(dispatcher, code.library.get_pointer_to_function(code.fndesc.llvm_func_name))


@dataclass(frozen=True)
class Pointer:
    """A compiled function and its address, which is valid while this object lives."""

    function: Any
    address: Any


def _typed(address: Any, *arguments: Any) -> Any:
    """Return the signature of a call by address, and how to make it."""
    for argument in arguments:
        if argument not in (_CONTIGUOUS, GENERATOR):
            raise TypingError(f"A function at an address takes contiguous arrays of floats, not {argument}.")
    passed = tuple(FLOATS if argument == _CONTIGUOUS else argument for argument in arguments)

    def call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(numba.types.none, passed).as_pointer()
        function = builder.inttoptr(values[0], kind)
        parameters = [
            context.make_array(argument)(context, builder, value).data if argument == _CONTIGUOUS else value
            for argument, value in zip(arguments, values[1:], strict=True)
        ]
        status, _ = convention.call_function(builder, function, numba.types.none, passed, parameters)
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return numba.types.none(address, *arguments), call


if ENABLED:
    as_array: Any = carray
    """An array of a shape from what a function gets."""

    def _call(typing_context: Any, address: Any, first: Any, second: Any) -> Any:
        return _typed(address, first, second)

    def _call_with_three(typing_context: Any, address: Any, first: Any, second: Any, third: Any) -> Any:
        return _typed(address, first, second, third)

    call: Any = intrinsic(_call)
    """Call the function at an address with two arguments."""
    call_with_three: Any = intrinsic(_call_with_three)
    """Call the function at an address with three arguments."""

else:

    def as_array(array: Any, shape: tuple[int, ...]) -> Any:
        """Return the array."""
        return array

    def call(address: Callable[..., None], first: Any, second: Any) -> None:
        """Call a function with two arguments."""
        address(first, second)

    def call_with_three(address: Callable[..., None], first: Any, second: Any, third: Any) -> None:
        """Call a function with three arguments."""
        address(first, second, third)
