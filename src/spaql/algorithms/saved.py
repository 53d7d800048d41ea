"""Parts of saved learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import typed
from spaql.errors import ArchiveError

Arrays = dict[str, NDArray[Any]]
Data = Mapping[str, Any]
State = tuple[dict[str, Any], Arrays]
"""Plain data, and arrays."""


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays of a part under the names that they have in the whole."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def part(arrays: Arrays, prefix: str) -> Arrays:
    """Return the arrays of a part under their own names: the inverse of `prefixed`."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def require(what: str, *conditions: Any) -> None:
    """Raise unless what a file holds fits together, and fits its problem."""
    if not all(conditions):
        raise ArchiveError(f"The {what} in the file does not fit together, or does not fit its problem.")


def restored(
    arrays: Arrays,
    name: str,
    shape: tuple[int | None, ...] | None = None,
    kind: Any = np.float64,
) -> NDArray[Any]:
    """Return a copy of an array; raises unless it is finite, and has the type and the shape.

    A length of None is any, and so is a shape of None.
    """
    array = typed(arrays[name], kind)
    fits = shape is None or (
        len(shape) == array.ndim and all(n in (None, m) for n, m in zip(shape, array.shape, strict=True))
    )
    if not fits or not np.isfinite(array).all():
        raise ArchiveError(f"The file has {name} of the wrong shape, or that are not finite numbers.")
    return np.array(array, order="C")
