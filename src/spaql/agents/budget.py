"""The budget of a training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spaql.agents.tries import SELECTION_EPISODES
from spaql.errors import SettingError
from spaql.values import whole_number

if TYPE_CHECKING:
    from spaql.agents.agent import Agent


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The length of a training, the interval of checkpoints, and the number of selection episodes."""

    total_timesteps: int | None = None
    iterations: int | None = None
    checkpoint_every: int = 100
    selection_episodes: int = SELECTION_EPISODES

    def __post_init__(self) -> None:
        if (self.iterations is None) == (self.total_timesteps is None):
            raise SettingError("Give either iterations or total_timesteps.")
        counted = "iterations" if self.total_timesteps is None else "total_timesteps"
        for name in (counted, "checkpoint_every", "selection_episodes"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), 1))

    def left(self, agent: Agent) -> tuple[int | None, int | None]:
        """Return the remaining time steps or iterations, whichever the budget counts."""
        return (
            self.total_timesteps and max(0, self.total_timesteps - agent.training_steps),
            self.iterations and max(0, self.iterations - agent.iterations),
        )
