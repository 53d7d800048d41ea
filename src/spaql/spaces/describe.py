"""Gymnasium spaces as plain data, for the model file."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete

from spaql.errors import ArchiveError

_NUMBERS = ["float16", "float32", "float64"] + [f"{u}int{8 * n}" for u in ("", "u") for n in (1, 2, 4, 8)]
"""Types accepted for a Box; NumPy parses other names of types as expressions."""

_LARGEST = 2**53
"""Integers up to here are exact in double precision."""


def describe_space(space: Space[Any]) -> dict[str, Any]:
    """Return a Box or Discrete space as JSON-ready data.

    Examples
    --------
    >>> describe_space(Discrete(3))
    {'kind': 'discrete', 'n': 3, 'start': 0}
    """
    if isinstance(space, Discrete):
        return {"kind": "discrete", "n": int(space.n), "start": int(space.start)}
    assert isinstance(space, Box)
    return {
        "kind": "box",
        "low": [repr(float(x)) for x in space.low.ravel()],
        "high": [repr(float(x)) for x in space.high.ravel()],
        "shape": list(space.shape),
        "dtype": str(space.dtype),
    }


def space_from(description: Mapping[str, Any]) -> Box | Discrete:
    """Return the described space; raises `ArchiveError` if the description is invalid.

    Examples
    --------
    >>> space_from({"kind": "discrete", "n": 3, "start": 0})
    Discrete(3)
    """
    try:
        if description["kind"] == "discrete":
            n = int(description["n"])
            start = int(description["start"])
            if n + abs(start) > _LARGEST:
                raise ValueError(f"{n} numbers from {start} on")
            return Discrete(n, start=start)
        if description["kind"] != "box" or description["dtype"] not in _NUMBERS:
            raise ValueError(f"a {description['kind']} of {description['dtype']}")
        dtype = np.dtype(description["dtype"])
        shape = tuple(int(n) for n in description["shape"])
        low, high = (
            np.array([float(x) for x in description[name]]).astype(dtype).reshape(shape)
            for name in ("low", "high")
        )
        return Box(low, high, shape, dtype.type)
    except (KeyError, TypeError, ValueError, AssertionError, OverflowError) as error:
        raise ArchiveError(f"The file describes no space that spaql knows ({error}).") from error
