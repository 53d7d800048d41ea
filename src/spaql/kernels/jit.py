"""The one door to Numba: every kernel is compiled by `njit` from this module."""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import IndexDataCacheFile

Function = TypeVar("Function", bound=Callable[..., Any])


def sources_stamp(folder: Path) -> str:
    """Hash the names and contents of all Python sources in a folder.

    Examples
    --------
    >>> len(sources_stamp(Path(__file__).parent))
    64
    """
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


_STAMP = sources_stamp(Path(__file__).parent)


def njit(function: Function) -> Function:
    """Compile a kernel: cached on disk, with the GIL released.

    Numba's cache notices an edit in a kernel's own file only, so a kernel inlined from
    another module would go on as it was yesterday. Here the cache is valid for the sources of
    all kernels together.
    """
    compiled: Any = numba.njit(nogil=True, error_model="numpy")(function)
    if compiled is function:  # NUMBA_DISABLE_JIT is set
        return function
    with suppress(RuntimeError):  # no folder to cache in is writable: compile anew in every process
        compiled.enable_caching()
        cache = compiled._cache
        cache._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            cache_path=cache.cache_path,
            filename_base=cache._impl.filename_base,
            source_stamp=_STAMP,
        )
    return cast(Function, compiled)
