"""Prediction errors of a learned plant against recorded episodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spaql.agents.registry import PlanTree
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.learned_plants import PlantModel
from spaql.simulate import Episode, record

Floats = NDArray[np.float64]
REWARD = "reward, summed"
_NOTHING = 1e-6
"""Relative errors below this count as rounding."""


@dataclass(frozen=True, eq=False)
class PredictionErrors:
    """Errors of a plant, one row per number of steps ahead and one column per predicted quantity.

    From every step of every episode the plant is rolled out over so many steps, with the recorded actions,
    from the recorded observation.
    """

    on: str
    """Description of the episodes."""
    names: tuple[str, ...]
    """Names of the columns: the numbers of an observation, then the sum of the rewards."""
    steps: tuple[int, ...]
    counts: tuple[int, ...]
    """The number of predictions for each number of steps ahead."""
    error: Floats
    """The root mean squared error, in units; NaN without a prediction."""
    median: Floats
    """The median absolute error, in units."""
    relative: Floats
    """The error divided by the standard deviation of the recorded quantity; NaN where that is 0."""
    ends: tuple[int, int, int]
    """Terminations recorded, those of them predicted one step ahead, and those predicted falsely."""

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
        there, predicted, false_alarms = self.ends
        lines.append(
            f"terminations: {predicted:,} of {there:,} predicted, {false_alarms:,} predicted falsely"
        )
        return "\n".join(lines)


def prediction_errors(
    model: PlantModel, episodes: Sequence[Episode], *, steps: Sequence[int] = (1, 50), on: str = ""
) -> PredictionErrors:
    """Return the prediction errors of a plant for episodes to which it was not fitted.

    Parameters
    ----------
    model
        The plant.
    episodes
        Recorded episodes.
    steps
        Numbers of steps ahead.
    on
        Description of the episodes.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> model = agent.learn(total_timesteps=600, progress_bar=False).model
    >>> from spaql.simulate import Episode
    >>> still = Episode(np.tile([1.0, 0.0, 0.0], (60, 1)), np.zeros((59, 1)), np.zeros(59), False)
    >>> prediction_errors(model, [still]).counts
    (59, 10)
    """
    if not episodes:
        raise SettingError("episodes is empty, and must hold at least one.")
    if any(n < 1 for n in steps):
        raise SettingError(f"steps is {tuple(steps)}, and must be numbers of 1 or more.")
    observations = np.concatenate([episode.observations for episode in episodes])
    rows = []
    for n in steps:
        pairs = [_ahead_in(model, episode, n) for episode in episodes]
        predicted, real = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
        absolute = np.abs(predicted - real)
        spread = np.append(observations.std(axis=0), real[:, -1].std() if len(real) else 0.0)
        error = np.sqrt(np.mean(absolute**2, axis=0)) if len(real) else np.full(len(spread), np.nan)
        median = np.median(absolute, axis=0) if len(real) else error
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
    """Return, from every step, predicted and recorded observations n steps later with the sum of rewards."""
    count = len(episode.rewards) - n + 1
    if count < 1:
        nothing = np.zeros((0, model.dims + 1))
        return nothing, nothing
    state = episode.observations[:count]
    rewards = np.zeros(count)
    for i in range(n):
        predicted = model.predict(state, episode.actions[i : i + count])
        state = predicted.observations
        rewards = rewards + predicted.rewards
    summed = np.cumsum(np.append(0.0, episode.rewards))
    real = np.column_stack([episode.observations[n:], summed[n:] - summed[:-n]])
    return np.column_stack([state, rewards]), real


def _ends(model: PlantModel, episodes: Sequence[Episode]) -> tuple[int, int, int]:
    there = predicted = false_alarms = 0
    for episode in episodes:
        ends = model.predict(episode.observations[:-1], episode.actions).ends > 0.5
        there += episode.terminated
        predicted += episode.terminated and bool(ends[-1])
        false_alarms += int(ends[:-1].sum()) + (not episode.terminated and bool(ends[-1]))
    return there, predicted, false_alarms


def _share(relative: float) -> str:
    if np.isnan(relative):
        return "-"
    if relative < _NOTHING:
        return "0 %"
    return f"{100 * relative:.2g} %" if relative < 0.1 else f"{100 * relative:,.0f} %"


def model_errors(
    agent: PlanTree, *, held_out: bool = False, episodes: int = 20, seed: int = 0
) -> PredictionErrors:
    """Return prediction errors of a learned plant 1 and 50 steps ahead, on episodes not used to fit it.

    Parameters
    ----------
    agent
        A trained agent.
    held_out
        Fit a plant to four fifths of the agent's training episodes and test it on the others, without a step
        in the environment. By default the plant is tested on fresh episodes of the agent's controller.
    episodes
        Number of fresh episodes.
    seed
        Seed of the fresh episodes.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> agent = agent.learn(total_timesteps=600, progress_bar=False)
    >>> errors = model_errors(agent, episodes=2)
    >>> errors.on, errors.counts
    ('2 fresh episodes of the controller, 400 steps', (400, 302))
    """
    if held_out:
        model, others = agent.hold_out()
        steps = sum(episode.length for episode in others)
        on = f"{counted(len(others), 'episode')} held out while learning, {counted(steps, 'step')}"
        return prediction_errors(model, others, on=on)
    if episodes < 1:
        raise SettingError(f"episodes is {episodes}, and must be at least 1.")
    fresh = record(agent.conclude(), agent.problem, range(seed, seed + episodes))
    steps = sum(episode.length for episode in fresh)
    on = f"{counted(episodes, 'fresh episode')} of the controller, {counted(steps, 'step')}"
    return prediction_errors(agent.model, fresh, on=on)
