"""Names of observations and actions, and spaces as plain data."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.spaces import Box, Discrete

from spaql.errors import ArchiveError, SettingError, nearest
from spaql.values import whole_number

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


def observation_names(space: Box | Discrete, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the numbers of an observation: those given, or x0, x1 and so on.

    Examples
    --------
    >>> observation_names(Box(-1.0, 1.0, (2,)))
    ('x0', 'x1')
    """
    return tuple(names) or tuple(f"x{j}" for j in range(int(np.prod(space.shape or (1,)))))


def count_actions(space: Box | Discrete) -> int:
    """Return the number of actions of a list, or the length of an action.

    Examples
    --------
    >>> count_actions(Discrete(2, start=1)), count_actions(Box(-1.0, 1.0, (3,)))
    (2, 3)
    """
    return int(space.n) if isinstance(space, Discrete) else int(np.prod(space.shape))


def action_names(space: Box | Discrete, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the actions of a list, or of the numbers of an action.

    Examples
    --------
    >>> action_names(Discrete(2, start=1)), action_names(Box(-1.0, 1.0, (2,)))
    (('action 1', 'action 2'), ('u0', 'u1'))
    """
    if names:
        return tuple(names)
    if isinstance(space, Discrete):
        return tuple(f"action {space.start + i}" for i in range(int(space.n)))
    return tuple(f"u{j}" for j in range(count_actions(space)))


def given_names(what: str, names: Sequence[str], n: int) -> tuple[str, ...]:
    """Return the user's names after a check: as many as needed, all different, each on one line.

    Examples
    --------
    >>> given_names("observation_names", ["position [m]", "speed [m/s]"], 2)
    ('position [m]', 'speed [m/s]')
    """
    own = (names,) if isinstance(names, str) else tuple(names)
    if len(own) != n:
        raise SettingError(f"{what} has {len(own)} names, and there are {n} to give.")
    check_names(what, own, blank=False)
    short = [split_unit(name.strip())[0] for name in own]
    if twice := sorted({name for name in short if short.count(name) > 1}):
        raise SettingError(f"{what} has {twice[0]!r} more than once: give each another name.")
    return tuple(name.strip() for name in own)


def check_names(what: str, names: Sequence[str], *, blank: bool = True) -> tuple[str, ...]:
    """Return names after a check that each is a text on one line, of printable characters.

    Without `blank` it has one that is no space, too.

    Examples
    --------
    >>> check_names("actions", ["push left", "push right"])
    ('push left', 'push right')
    """
    for name in names:
        if not isinstance(name, str) or not name.isprintable() or not (blank or name.strip()):
            shown = repr(name)[:80]
            raise SettingError(f"{what} has {shown}: a name is a text on one line, such as 'speed [m/s]'.")
    return tuple(names)


def stored_names(what: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of a file; raises `ArchiveError` for those that `check_names` refuses."""
    try:
        return check_names(what, names)
    except SettingError as error:
        raise ArchiveError(f"The file's {error}") from error


def find_observation(
    wanted: str | int, names: Sequence[str], more: Sequence[str] = (), what: str = "observation"
) -> int:
    """Return the number of an observation, given by its number or its name, with or without its unit.

    The error lists the names, those in `more` too, and calls what was wanted `what`.
    """
    if not isinstance(wanted, str):
        if 0 <= (number := whole_number(f"The number of an {what}", wanted)) < len(names):
            return number
    else:
        places = [i for i, name in enumerate(names) if wanted in (name, split_unit(name)[0])]
        if len(places) == 1:
            return places[0]
    guess = nearest(str(wanted), [*more, *(split_unit(name)[0] for name in names)])
    if not guess.endswith("?"):
        guess = f"there is {', '.join([*(f'{i} {name}' for i, name in enumerate(names)), *more])}."
    raise SettingError(f"There is no {what} {wanted!r}: {guess}")


def split_unit(name: str) -> tuple[str, str]:
    """Return a name and its unit separately.

    Examples
    --------
    >>> split_unit("pole speed [rad/s]"), split_unit("position")
    (('pole speed', 'rad/s'), ('position', ''))
    """
    match = re.fullmatch(r"(.+?) \[(.+)\]", name)
    return (match[1], match[2]) if match else (name, "")


def identifier(name: str) -> str:
    """Return the name of a column in expressions: without its unit, `_` for what is no letter or digit.

    Examples
    --------
    >>> identifier("pole angle [rad]"), identifier("2nd"), identifier("torque")
    ('pole_angle', '_2nd', 'torque')
    """
    plain = re.sub(r"\W", "_", split_unit(name)[0].strip())
    return f"_{plain}" if not plain or plain[0].isdigit() else plain
