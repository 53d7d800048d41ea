"""A sample of an episode: what was observed, and what the controller remembered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from spaql.errors import SettingError
from spaql.evaluation.episodes import Playable, policy_and_problem
from spaql.kernels.controller import Floats
from spaql.simulate import Episode, record


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
    played = record(policy, problem, [episode])
    observations = played[0].observations[: checked_sample(played, step) + 1]
    state = (policy.moments(observations).memory[-1:],) if policy.remembers else None
    return Moment(observations[-1], state)


def checked_sample(played: Sequence[Episode], step: int | None) -> int:
    """Return the number of a sample of the first episode, the first by default; raises if there is none."""
    if not played:
        raise SettingError("A moment is one of an episode: give an environment to play it in.")
    last = played[0].length - 1
    step = step or 0
    if not 0 <= step <= last:
        raise SettingError(f"The episode has the samples 0 to {last}: there is no {step}.")
    return step
