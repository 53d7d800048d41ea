"""Kernels for other kernels, compiled once, and a cache that sees edits: all that is private in Numba.

Numba optimises every kernel, makes it executable and wraps it for Python, and optimises it again as a part of
each kernel that calls it; and its cache sees edits of the kernel's own file only. What is here compiles what
kernels call as a part of these alone. From an empty cache, 5,000 steps of TreeSearch on CartPole then take
19 s of processor time in place of 25 s, and five iterations of SPAQL-TS 18 s in place of 31 s.

It uses what Numba does not document: the option `_nrt`, `_cache`, `get_call_template` and `get_overload` of a
dispatcher, `FunctionCache` and `IndexDataCacheFile` of `numba.core.caching`, and `JITCodeLibrary`,
`CompilerBase` and `DefaultPassBuilder` of its compiler. Versions other than `TESTED` compile kernels as
`numba.njit` does, with the same results.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.types import unliteral

TESTED = ("0.61", "0.62", "0.63", "0.64", "0.65", "0.66", "0.67", "0.68")
"""Versions of Numba with which all of this was tested."""
IS_TESTED: bool = ".".join(numba.__version__.split(".")[:2]) in TESTED


def compiled(function: Callable[..., Any], stamp: str | None, **options: Any) -> Any:
    """Compile a function that is cached by a stamp; without one, in every process.

    Versions of Numba that were not tested cache by the function's file, in place of the stamp.
    """
    jit: Any = numba.njit
    dispatcher = jit(nogil=True, error_model="numpy", **options)(function)
    with suppress(RuntimeError):  # no cache folder is writable: compile anew in every process
        if stamp is not None and IS_TESTED:
            dispatcher._cache = _StampedCache(function, stamp)
        elif stamp is not None:
            dispatcher.enable_caching()
    return dispatcher


def compiled_kernel(function: Callable[..., Any], stamp: str | None, *, inline: bool, in_place: bool) -> Any:
    """Compile a kernel: once for Python, and once for all kernels that call it; each only if it is called.

    With `inline`, it is inlined where it is called. With `in_place`, references to arrays are not counted.
    """
    if not IS_TESTED:
        return compiled(function, stamp)
    options: dict[str, Any] = {"forceinline": inline, "_nrt": not in_place, "no_cfunc_wrapper": True}
    kernel = compiled(function, stamp, **options)
    linked = compiled(function, None, no_cpython_wrapper=True, pipeline_class=_LinkedCompiler, **options)
    dispatcher = type(kernel)
    plain = cast(Any, unliteral)

    def serving(types: tuple[Any, ...]) -> Any:
        """Return what is compiled for other kernels; what Python has called is used for both."""
        return kernel if types in kernel.overloads else linked

    def call_template(args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        # Numba would compile it once more for every constant argument.
        types = tuple(plain(type_) for type_ in args)
        named = {name: plain(type_) for name, type_ in kws.items()}
        return dispatcher.get_call_template(serving(types), types, named)

    def overload(types: tuple[Any, ...]) -> Any:
        return dispatcher.get_overload(serving(types), types)

    kernel.get_call_template = call_template
    kernel.get_overload = overload
    return kernel


def recache(dispatcher: Any, stamp: str | None) -> None:
    """Cache a compiled function by a stamp, or not at all, in place of by its file.

    What was loaded from Numba's cache is dropped: it may be from before an edit of another file.
    """
    if not IS_TESTED:
        return
    dispatcher._cache = NullCache()
    if stamp is not None:
        with suppress(RuntimeError):
            dispatcher._cache = _StampedCache(dispatcher.py_func, stamp)
    if dispatcher.stats.cache_hits:
        dispatcher._make_finalizer()()
        dispatcher._reset_overloads()


class _StampedCache(FunctionCache):
    """A cache on disk that is valid for a stamp; by it, closures are found again, too."""

    def __init__(self, function: Callable[..., Any], stamp: str) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            cache_path=self.cache_path,
            filename_base=f"{self._impl.filename_base}-{stamp[:16]}",
            source_stamp=stamp,
        )

    def _index_key(self, sig: Any, codegen: Any) -> tuple[Any, ...]:
        return (sig, codegen.magic_tuple())


class _LinkedCompiler(CompilerBase):
    """Compiles a kernel into code for the kernels that call it."""

    def define_pipelines(self) -> list[Any]:
        state = self.state
        state.library = _LinkedCode(state.targetctx.codegen(), state.func_id.func_qualname)  # type: ignore[no-untyped-call]
        return [DefaultPassBuilder.define_nopython_pipeline(state)]  # type: ignore[no-untyped-call]


class _LinkedCode(JITCodeLibrary):
    """Code that is optimised and made executable as a part of the kernels that call it only."""

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
