"""A sample of an episode: what was observed, and what the controller remembered."""

from __future__ import annotations

from typing import NamedTuple

from spaql.errors import SettingError
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.kernels.controller import Floats
from spaql.simulate import record


class Moment(NamedTuple):
    """An observation, and the state of `predict` at it."""

    observation: Floats
    state: tuple[Floats] | None


def moment_of(agent: Playable, episode: int, step: int | None = None) -> Moment:
    """Return a sample of the episode of a seed, played with deterministic actions.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> moment_of(agent, episode=0, step=3).observation.shape
    (4,)
    """
    policy, problem = policy_and_problem(agent, None)
    played = record(policy, problem, [episode])[0]
    step = step or 0
    if not 0 <= step < played.length:
        raise SettingError(f"The episode has the samples 0 to {played.length - 1}: there is no {step}.")
    observations = played.observations[: step + 1]
    state = (policy.moments(observations).memory[-1:],) if policy.remembers else None
    return Moment(observations[-1], state)
