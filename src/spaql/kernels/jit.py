"""Compilation by Numba: the `njit` of this module, which compiles every kernel."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from llvmlite.binding import parse_bitcode
from numba import carray  # type: ignore[attr-defined]
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, CompileResult, DefaultPassBuilder
from numba.core.errors import NumbaError as NumbaError
from numba.core.errors import TypingError
from numba.core.types import unliteral
from numba.extending import intrinsic, register_jitable

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


class _StampedCache(FunctionCache):
    """A cache on disk that is valid for a stamp.

    Numba's own is invalidated by an edit of the kernel's file only, not by one of a kernel that is inlined
    from another module; and it never finds a closure again.
    """

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            cache_path=self.cache_path,
            filename_base=f"{self._impl.filename_base}-{stamp[:16]}",
            source_stamp=stamp,
        )

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple())


class _LinkedCode(JITCodeLibrary):
    """Code for the kernels that call it, which is optimised and made executable as a part of them only.

    Numba does both for every function, with all that it calls: once more for each level of calls.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()  # type: ignore[no-untyped-call]
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return that there is none."""
        return 0

    @property
    def codegen(self) -> "_LinkedCode":
        """Where `set_env` is called."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Set nothing: that is done for the kernels that it is linked into."""

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        """Return what the cache holds, from which `load` makes it again."""
        return self.name, self._get_module_for_linking().as_bitcode()  # type: ignore[no-untyped-call]

    @classmethod
    def load(cls, codegen: Any, name: str, bitcode: bytes) -> "_LinkedCode":
        """Return code from the cache."""
        code = cls(codegen, name)
        code._final_module = parse_bitcode(bitcode)
        code._finalize_final_module()
        return code


class _LinkedCompiler(CompilerBase):
    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = _LinkedCode(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        return [DefaultPassBuilder.define_nopython_pipeline(state)]  # type: ignore[no-untyped-call]


class _LinkedImpl(CompileResultCacheImpl):
    def rebuild(self, target_context: Any, payload: tuple[Any, ...]) -> Any:
        code, descriptor, env, signature, objectmode, lifted, annotation, reload_init, envs = payload
        library = _LinkedCode.load(target_context.codegen(), *code)
        result = cast(Any, CompileResult)
        return result(
            target_context=target_context,
            typing_context=target_context.typing_context,
            library=library,
            environment=env,
            entry_point=target_context.get_executable(library, descriptor, env),
            fndesc=descriptor,
            type_annotation=annotation,
            signature=signature,
            objectmode=objectmode,
            lifted=lifted,
            typing_error=None,
            call_helper=None,
            metadata=None,
            reload_init=reload_init,
            referenced_envs=envs,
        )


class _LinkedCache(_StampedCache):
    _impl_class = _LinkedImpl  # type: ignore[assignment]


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
    stamp = _stamp(depends_on)
    options: dict[str, Any] = {"forceinline": inline, "_nrt": not in_place}
    compiled = _dispatcher(function, _StampedCache if cached else None, stamp, options)
    options |= {"no_cpython_wrapper": True, "pipeline_class": _LinkedCompiler}
    inner = _dispatcher(function, _LinkedCache if cached else None, stamp[::-1], options)
    _call_from_kernels(compiled, inner)
    return cast(Function, compiled)


def _stamp(depends_on: str) -> str:
    return hashlib.sha256((STAMP + depends_on).encode()).hexdigest()


def _dispatcher(
    function: Callable[..., Any], cache: type[_StampedCache] | None, stamp: str, options: dict[str, Any]
) -> Any:
    jit: Any = numba.njit
    compiled = jit(nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options)(function)
    if cache is not None:
        with suppress(RuntimeError):  # no cache folder is writable: compile anew in every process
            compiled._cache = cache(function, stamp)
    return compiled


def cache_by(compiled: Any, depends_on: str, *, cached: bool) -> None:
    """Cache a function of the user's, which Numba caches by its own file, by all that it depends on.

    What was loaded from Numba's cache is dropped: it may be from before an edit of another file.
    """
    compiled._cache = NullCache()
    if cached:
        with suppress(RuntimeError):
            compiled._cache = _StampedCache(compiled.py_func, _stamp(depends_on))
    if compiled.stats.cache_hits:
        compiled._make_finalizer()()
        compiled._reset_overloads()


def _call_from_kernels(compiled: Any, inner: Any) -> None:
    """Let other kernels call a second compilation that Python cannot call.

    The wrapper for calls from Python takes as long to compile as a small kernel, and most kernels are called
    by others only. Nor is the second compilation repeated for every constant argument, as Numba would do. A
    kernel that Python has called is compiled already, and is used for both.
    """
    dispatcher = type(compiled)
    plain = cast(Any, unliteral)

    def serves(types: tuple[Any, ...]) -> Any:
        return compiled if types in compiled.overloads else inner

    def call_template(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        types = tuple(plain(one) for one in args)
        named = {name: plain(one) for name, one in kws.items()}
        return dispatcher.get_call_template(serves(types), types, named)

    def overload(types: tuple[Any, ...]) -> Any:
        return dispatcher.get_overload(serves(types), types)

    compiled.get_call_template = call_template
    compiled.get_overload = overload


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


def cache_folder() -> Path | None:
    """Return the cache folder of the kernels of this package, or None if none is writable.

    Examples
    --------
    >>> cache_folder() is None or cache_folder().is_absolute()
    True
    """
    try:
        return Path(_StampedCache(njit_no_inline, STAMP).cache_path)
    except RuntimeError:
        return None


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
    options = {"no_cpython_wrapper": True}
    compiled = _dispatcher(function, _StampedCache if cached else None, _stamp(depends_on), options)
    compiled.compile(arguments)
    code = compiled.overloads[arguments]
    return Pointer(compiled, code.library.get_pointer_to_function(code.fndesc.llvm_func_name))


@dataclass(frozen=True)
class Pointer:
    """A compiled function and its address, which is valid while this object lives."""

    function: Any
    address: Any


def _typed(address: Any, *arguments: Any) -> Any:
    """Return the signature of a call by address, and how to make it."""
    for one in arguments:
        if one not in (_CONTIGUOUS, GENERATOR):
            raise TypingError(f"A function at an address takes contiguous arrays of floats, not {one}.")
    passed = tuple(FLOATS if one == _CONTIGUOUS else one for one in arguments)

    def call(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(numba.types.none, passed).as_pointer()
        function = builder.inttoptr(values[0], kind)
        given = [
            context.make_array(one)(context, builder, value).data if one == _CONTIGUOUS else value
            for one, value in zip(arguments, values[1:], strict=True)
        ]
        status, _ = convention.call_function(builder, function, numba.types.none, passed, given)
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return numba.types.none(address, *arguments), call


if ENABLED:
    as_array: Any = carray
    """An array of a shape from what a function gets."""

    def _call(typing_context: Any, address: Any, one: Any, two: Any) -> Any:
        return _typed(address, one, two)

    def _call_with_three(typing_context: Any, address: Any, one: Any, two: Any, three: Any) -> Any:
        return _typed(address, one, two, three)

    call: Any = intrinsic(_call)
    """Call the function at an address with two arguments."""
    call_with_three: Any = intrinsic(_call_with_three)
    """Call the function at an address with three arguments."""

else:

    def as_array(array: Any, shape: tuple[int, ...]) -> Any:
        """Return the array."""
        return array

    def call(address: Callable[..., None], one: Any, two: Any) -> None:
        """Call a function with two arguments."""
        address(one, two)

    def call_with_three(address: Callable[..., None], one: Any, two: Any, three: Any) -> None:
        """Call a function with three arguments."""
        address(one, two, three)
