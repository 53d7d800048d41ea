"""The next experiment on a logged plant: where to go, and a signal that excites it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.algorithms.plantree.next_experiment import Place
from spaql.archive import write_together
from spaql.errors import SettingError
from spaql.problems import Problem
from spaql.tables import comma_separated
from spaql.values import whole_number

VISIT_FILE, EXCITATION_FILE = "visit.csv", "excitation.csv"
"""The files of an experiment."""
_LONGEST_HOLD = 0.1
"""Longest time for which a level is held, as a share of the horizon."""


@dataclass(frozen=True, eq=False)
class NextExperiment:
    """What to log next, so that the data support a better controller, or support this one better."""

    problem: Problem
    actions: tuple[str, ...]
    """Columns of the actions in the log."""
    places: tuple[Place, ...]
    """States and actions to visit, in order of importance; none if the data suffice."""

    def visit(self) -> list[dict[str, str | float]]:
        """Return the table of states and actions to visit, a row for each."""
        rows: list[dict[str, str | float]] = []
        for place in self.places:
            row: dict[str, str | float] = {"why": place.why, "share of steps": place.share}
            row |= {"logged rows": place.rows}
            row |= dict(zip(self.problem.states.names, place.observations, strict=True))
            row |= {f"lowest {name}": value for name, value in zip(self.actions, place.low, strict=True)}
            row |= {f"highest {name}": value for name, value in zip(self.actions, place.high, strict=True)}
            rows.append(row)
        return rows

    def excitation(
        self, *, amplitude: float = 0.3, episodes: int = 5, seed: int = 0
    ) -> list[dict[str, float | None]]:
        """Return a signal of random steps to play while the plant runs under the controller it has now.

        Levels are held for 1 step up to a tenth of the horizon, short times as often as long ones. Of a Box,
        the signal is added to the action, and the sum is to be limited to the action range. Of a list, it
        replaces the action where it is not None.

        Parameters
        ----------
        amplitude
            The largest level, as a share of half the range of the controller's actions; of a list, the share
            of levels that replace the action.
        episodes
            Number of episodes, each as long as the horizon.
        seed
            Of the levels and times.
        """
        if not 0.0 < amplitude <= 1.0:
            raise SettingError(f"amplitude is {amplitude}, and must be above 0 and at most 1.")
        episodes = whole_number("episodes", episodes, least=1)
        rng = np.random.default_rng(whole_number("seed", seed, least=0))
        steps = self.problem.horizon
        rows: list[dict[str, float | None]] = []
        for episode in range(episodes):
            levels = [self._levels(j, amplitude, rng) for j in range(len(self.actions))]
            for step in range(steps):
                row: dict[str, float | None] = {"episode": episode, "step": step}
                if self.problem.sample_time is not None:
                    row["time"] = step * self.problem.sample_time
                for name, level in zip(self.actions, levels, strict=True):
                    value = float(level[step])
                    row[f"{self._verb} {name}"] = None if np.isnan(value) else value
                rows.append(row)
        return rows

    @property
    def _verb(self) -> str:
        return "added to" if isinstance(self.problem.actions.space, Box) else "instead of"

    def _levels(self, j: int, amplitude: float, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return the levels of one action for an episode; NaN where the controller acts by itself."""
        space = self.problem.actions.space
        steps = self.problem.horizon
        longest = max(1.0, _LONGEST_HOLD * steps)
        levels = np.empty(steps)
        first = 0
        while first < steps:
            hold = int(np.exp(rng.uniform(0.0, np.log(longest + 1.0))))
            draw, other = rng.random(2)
            if isinstance(space, Box):
                half = (float(space.high.ravel()[j]) - float(space.low.ravel()[j])) / 2
                levels[first : first + hold] = amplitude * half * (2 * draw - 1)
            else:
                number = float(space.start + int(other * space.n))
                levels[first : first + hold] = number if draw < amplitude else np.nan
            first += hold
        return levels

    def save(
        self, folder: str | Path, *, amplitude: float = 0.3, episodes: int = 5, seed: int = 0
    ) -> tuple[Path, ...]:
        """Write `visit.csv`, if there is anything to visit, and `excitation.csv`; return their names."""
        files = {Path(folder) / VISIT_FILE: as_cells(self.visit())} if self.places else {}
        signal = self.excitation(amplitude=amplitude, episodes=episodes, seed=seed)
        files[Path(folder) / EXCITATION_FILE] = as_cells(signal)
        write_together({file: comma_separated(cells).encode() for file, cells in files.items()})
        return tuple(files)


def as_cells(rows: Sequence[Mapping[str, str | float | None]]) -> list[dict[str, str]]:
    """Return the rows of a table as text, with six digits."""
    return [
        {
            name: "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
            for name, value in row.items()
        }
        for row in rows
    ]
