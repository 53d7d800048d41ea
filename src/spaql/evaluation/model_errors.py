"""How far the learned plant of an agent is from the real one."""

from __future__ import annotations

from spaql.agents.registry import PlanTree
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.plants import PredictionErrors, prediction_errors
from spaql.rollouts import record


def model_errors(
    agent: PlanTree, *, held_out: bool = False, episodes: int = 20, seed: int = 0
) -> PredictionErrors:
    """Hold the learned plant of an agent against what it was not fitted to, 1 and 50 steps ahead.

    Parameters
    ----------
    agent
        Which has learned.
    held_out
        Judge a model of four fifths of the agent's episodes by the others: all that it did to learn, and no
        step in the environment. By default its model is judged by fresh episodes of its controller.
    episodes, seed
        Of the fresh episodes; the same seed gives the same ones.

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
        steps = sum(one.length for one in others)
        on = f"{counted(len(others), 'episode')} held out while learning, {counted(steps, 'step')}"
        return prediction_errors(model, others, on=on)
    if episodes < 1:
        raise SettingError("A model is judged by one episode at least.")
    fresh = record(agent.conclude(), agent.problem, range(seed, seed + episodes))
    steps = sum(one.length for one in fresh)
    on = f"{counted(episodes, 'fresh episode')} of the controller, {counted(steps, 'step')}"
    return prediction_errors(agent.model, fresh, on=on)
