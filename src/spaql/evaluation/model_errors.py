"""Prediction errors of an agent's learned plant."""

from __future__ import annotations

from spaql.agents.registry import PlanTree
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.learned_plants import PredictionErrors, prediction_errors
from spaql.simulate import record


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
