"""The record of one episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.formatting import counted, number, places, short

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Episode:
    """The observations, actions and rewards of an episode.

    Examples
    --------
    >>> Episode(np.zeros((3, 2)), np.array([0, 1]), np.array([-1.0, -2.0]), terminated=True)
    Episode(2 steps from [0, 0], return -3.0, terminated)
    """

    observations: Floats
    """Before each action and after the last, one per row."""
    actions: NDArray[Any]
    """As the environment took them, one per row."""
    rewards: Floats
    terminated: bool
    """Whether the episode terminated, and was not truncated by the horizon."""
    state: Floats | None = None
    """The initial state of the plant, if it was chosen."""

    def __repr__(self) -> str:
        steps = counted(self.length, "step")
        ended = ", terminated" if self.terminated else ""
        total = number(self.total, places(self.total))
        return f"Episode({steps} from {short(self.start)}, return {total}{ended})"

    @property
    def start(self) -> Floats:
        """The initial state of the plant if it was chosen, otherwise the first observation."""
        return self.observations[0] if self.state is None else self.state

    @property
    def length(self) -> int:
        """Number of steps."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return; rewards are added in order, so that it is the same for every version of NumPy."""
        return float(sum(self.rewards.tolist()))

    @property
    def action_rows(self) -> Floats:
        """The actions as floats, one row per step."""
        return np.asarray(self.actions, np.float64).reshape(self.length, -1)
