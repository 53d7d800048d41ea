"""What to call the numbers of an observation and the actions, where nobody has named them."""

from collections.abc import Sequence

import numpy as np
from gymnasium.spaces import Box, Discrete


def observation_names(space: Box | Discrete, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Give the names of the numbers of an observation: those given, or x0, x1 and so on.

    Examples
    --------
    >>> observation_names(Box(-1.0, 1.0, (2,)))
    ('x0', 'x1')
    """
    return tuple(names) or tuple(f"x{j}" for j in range(int(np.prod(space.shape or (1,)))))


def count_actions(space: Box | Discrete) -> int:
    """Give how many actions of a list, or numbers of an action, there are to name.

    Examples
    --------
    >>> count_actions(Discrete(2, start=1)), count_actions(Box(-1.0, 1.0, (3,)))
    (2, 3)
    """
    return int(space.n) if isinstance(space, Discrete) else int(np.prod(space.shape))


def action_names(space: Box | Discrete, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Give the names of the actions of a list, or of the numbers of an action.

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
