"""Parts of saved learners."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import typed
from spaql.errors import ArchiveError

Arrays = dict[str, NDArray[Any]]


def prefixed(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Return the arrays of a part under the names that they have in the whole."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def part(arrays: Mapping[str, NDArray[Any]], prefix: str) -> Arrays:
    """Return the arrays of a part under their own names: the inverse of `prefixed`."""
    start = f"{prefix}."
    return {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}


def finite(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.float64]:
    """Return an array of the state of a search; raises if some of it is not finite."""
    array = typed(arrays[name], np.float64)
    if not np.isfinite(array).all():
        raise ArchiveError(f"The search in the file has {name} that are not finite numbers.")
    return np.array(array, order="C")
