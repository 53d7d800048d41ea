"""The phase of play: in the last part of the budget, controllers play in turns."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from spaql.algorithms.replay.encoding import ActionCode
from spaql.algorithms.replay.memory import Floats
from spaql.controllers import Controller

TURNS = 4
"""Turns in which a controller plays. Before every other turn candidates are searched for, and before each
turn one is chosen."""


class Span(NamedTuple):
    """A budget: its unit ("steps" or "episodes"), and where it begins and ends."""

    unit: str
    first: int
    last: int

    def turn(self, spent: int, own_share: float) -> int:
        """Return the turn in which controllers play; 0 before the first."""
        own = math.floor(own_share * (self.last - self.first))
        return sum(spent >= self.last - own + own * turn // TURNS for turn in range(TURNS))


class Player(Protocol):
    """A controller that may play, and what it has played."""

    @property
    def controller(self) -> Controller:
        """The controller."""

    def add_episode(self, start: Floats, total: float) -> None:
        """Keep the start and the return of a whole episode that it has played."""


class Play:
    """An episode of a controller."""

    def __init__(self, player: Player, code: ActionCode) -> None:
        self.player = player
        self._code = code
        self._policy = player.controller.for_episodes(1)

    def act(self, state: Floats) -> tuple[Any, Floats]:
        """Return the next action, as the environment and as the memory has it."""
        raw = self._policy.act(state[np.newaxis], np.zeros(1, np.int64), None)[0]
        return raw, self._code.standard(np.asarray(raw)[np.newaxis])[0]
