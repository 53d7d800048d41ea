"""The episodes by which one of several agents is selected."""

from __future__ import annotations

from typing import TYPE_CHECKING

from spaql.simulate import Evaluation, Purpose, fresh_episodes
from spaql.simulate.batches import TOGETHER

if TYPE_CHECKING:
    from spaql.agents.agent import Agent


def select(agent: Agent, *, episodes: int, seed: int) -> Evaluation:
    """Run the episodes by which an agent is selected; none of them is one of `spaql.evaluate`.

    Agents of the same problem start each episode in the same state, so that their returns can be compared in
    pairs. Compiled code draws the starts and the actions of a partition from one stream, so each episode has
    its own stream there.
    """
    policy = agent.conclude()
    problem = agent.problem
    drawn_alike = problem.dynamics is not None and policy.draws
    together = 1 if drawn_alike else TOGETHER
    return fresh_episodes(policy, problem, episodes, seed, Purpose.TRY_SELECTION, together=together)
