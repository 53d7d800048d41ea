"""How far what a model says is from what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.plants.plant import Floats, PlantModel
from spaql.rollouts import Episode

REWARD = "reward, summed"
_NOTHING = 1e-6
"""A relative error below this is rounding."""


@dataclass(frozen=True, eq=False)
class PredictionErrors:
    """Errors of a model, a row for each number of steps ahead and a column for each thing told.

    The model starts from what was observed, is given the actions that were played, and goes on from its own
    predictions, over so many steps from every step of every episode.
    """

    on: str
    """What it was judged on, for people."""
    names: tuple[str, ...]
    """Of the columns: the numbers of an observation, then the sum of the rewards."""
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    """Predictions for each number of steps: those that an episode was long enough for."""
    error: Floats
    """The root of the mean squared error, in units; NaN where there is no prediction."""
    median: Floats
    """The median of the absolute error, in units."""
    relative: Floats
    """The error, divided by the standard deviation of what was to be told; NaN where that is 0."""
    ends: tuple[int, int, int]
    """Ends of episodes that there were, those of them that were told a step ahead, and those told wrongly."""

    def __str__(self) -> str:
        width = max(map(len, self.names))
        head = "".join(
            f"{counted(n, 'step') + ' (RMS)':>16}{'median':>10}{'relative':>10}" for n in self.steps
        )
        lines = [self.on, " " * width + head]
        for j, name in enumerate(self.names):
            cells = (
                f"{self.error[i, j]:>16.3g}{self.median[i, j]:>10.3g}{_share(self.relative[i, j]):>10}"
                for i in range(len(self.steps))
            )
            lines.append(f"{name:<{width}}" + "".join(cells))
        there, told, wrongly = self.ends
        lines.append(f"ends of episodes: {told:,} of {there:,} told, {wrongly:,} told where there was none")
        return "\n".join(lines)


def prediction_errors(
    model: PlantModel, episodes: Sequence[Episode], *, steps: Sequence[int] = (1, 50), on: str = ""
) -> PredictionErrors:
    """Hold a model against episodes that it was not fitted to.

    Parameters
    ----------
    model
        What is judged.
    episodes
        What happened.
    steps
        How many steps ahead.
    on
        Where the episodes come from, for people.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> model = agent.learn(total_timesteps=600, progress_bar=False).model
    >>> from spaql.rollouts import Episode
    >>> still = Episode(np.tile([1.0, 0.0, 0.0], (60, 1)), np.zeros((59, 1)), np.zeros(59), False)
    >>> prediction_errors(model, [still]).counts
    (59, 10)
    """
    if not episodes:
        raise SettingError("A model is judged by episodes: give one at least.")
    if any(n < 1 for n in steps):
        raise SettingError("Give how many steps are looked ahead: 1 or more.")
    seen = np.concatenate([one.observations for one in episodes])
    rows = []
    for n in steps:
        pairs = [_ahead_in(model, episode, n) for episode in episodes]
        told, real = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        missed = np.abs(told - real)
        spread = np.append(seen.std(axis=0), real[:, -1].std() if len(real) else 0.0)
        error = np.sqrt(np.mean(missed**2, axis=0)) if len(real) else np.full(len(spread), np.nan)
        median = np.median(missed, axis=0) if len(real) else error
        relative = np.divide(error, spread, out=np.full(len(spread), np.nan), where=spread > 0)
        rows.append((len(real), error, median, relative))
    counts, errors, medians, relatives = zip(*rows, strict=True)
    return PredictionErrors(
        on,
        (*model.observations, REWARD),
        tuple(steps),
        counts,
        np.array(errors),
        np.array(medians),
        np.array(relatives),
        _ends(model, episodes),
    )


def _ahead_in(model: PlantModel, episode: Episode, n: int) -> tuple[Floats, Floats]:
    """Tell, from every step of an episode, the observation n steps later and the rewards until there."""
    count = len(episode.rewards) - n + 1
    if count < 1:
        nothing = np.zeros((0, model.dims + 1))
        return nothing, nothing
    state, rewards = episode.observations[:count], np.zeros(count)
    for i in range(n):
        told = model.predict(state, episode.actions[i : i + count])
        state, rewards = told.observations, rewards + told.rewards
    summed = np.cumsum(np.append(0.0, episode.rewards))
    real = np.column_stack([episode.observations[n:], summed[n:] - summed[:-n]])
    return np.column_stack([state, rewards]), real


def _ends(model: PlantModel, episodes: Sequence[Episode]) -> tuple[int, int, int]:
    there = told = wrongly = 0
    for episode in episodes:
        ends = model.predict(episode.observations[:-1], episode.actions).ends > 0.5
        there += episode.terminated
        told += episode.terminated and bool(ends[-1])
        wrongly += int(ends[:-1].sum()) + (not episode.terminated and bool(ends[-1]))
    return there, told, wrongly


def _share(relative: float) -> str:
    if np.isnan(relative):
        return "-"
    if relative < _NOTHING:
        return "0 %"
    return f"{100 * relative:.2g} %" if relative < 0.1 else f"{100 * relative:,.0f} %"
