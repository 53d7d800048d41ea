"""Reading a file back: the policy that it contains must act as the one that was saved."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Policy
from spaql.errors import ArchiveError, SettingError
from spaql.problems import Problem
from spaql.simulate.episode import Episode
from spaql.simulate.play import play, record

EPISODES = 3
"""Number of episodes that are run before and after a run is written."""
_ROWS = 30
_STEPS = 10
"""Observations that are compared: rows, each of which is an episode of some steps."""


class _Saved(Protocol):
    @property
    def policy(self) -> Policy:
        """The policy."""

    @property
    def problem(self) -> Problem:
        """The problem it is for."""


def read_back(saved: _Saved, loaded: _Saved, *, episodes: int = 0) -> None:
    """Raise `ArchiveError` unless the content of a file acts as the saved agent does, to the last bit.

    Parameters
    ----------
    saved
        An agent or controller. An agent without a policy is not compared.
    loaded
        The content of its file.
    episodes
        Number of episodes of each, from the same starts: the actions at the observations on the way, and the
        returns, must be equal. No episodes are run in an environment that was given as an object, which a
        file cannot contain; if the environment fails, only actions are compared.
    """
    try:
        ours = saved.policy
    except SettingError:  # training was stopped before there was a policy
        return
    theirs = loaded.policy
    space = copy.deepcopy(saved.problem.states.space)
    space.seed(0)
    steps = min(_STEPS, saved.problem.horizon)
    _compare(ours, theirs, [np.array([space.sample() for _ in range(_ROWS)]) for _ in range(steps)])
    if not episodes or saved.problem.env is None:
        return
    try:
        before = _played(ours, saved.problem, episodes)
    except Exception:  # an environment that fails says nothing about the file
        return
    shape = saved.problem.states.space.shape or ()
    for episode in before:
        visited = episode.observations[:-1].astype(saved.problem.states.space.dtype)
        _compare(ours, theirs, visited.reshape(-1, 1, *shape))
    totals = _totals(before)
    again = _totals(_played(theirs, loaded.problem, episodes))
    # Nor does an environment that does not repeat itself for a seed.
    if again != totals and _totals(_played(ours, saved.problem, episodes)) == totals:
        raise ArchiveError(
            f"The written file has the returns {again}, and the saved agent {totals} in the same "
            f"episodes. {_ADVICE}"
        )


_ADVICE = "This is a bug in spaql: please report it with the file, and do not use the file."


def _compare(ours: Policy, theirs: Policy, observations: Sequence[NDArray[Any]] | NDArray[Any]) -> None:
    """Compare the actions along parallel episodes: steps × episodes × components."""
    rows = len(observations[0])
    playing = ours.for_episodes(rows)
    reading = theirs.for_episodes(rows)
    for step, batch in enumerate(observations):
        steps = np.full(rows, step)
        wanted = np.asarray(playing.act(batch, steps, None))
        actions = np.asarray(reading.act(batch, steps, None))
        if not np.array_equal(wanted, actions):
            differs = (wanted != actions).reshape(rows, -1).any(axis=1)
            row = int(np.flatnonzero(differs)[0])
            raise ArchiveError(
                f"The written file does not act as the saved agent: at {batch[row].tolist()} "
                f"it returns {actions[row].tolist()}, not {wanted[row].tolist()}. {_ADVICE}"
            )


def _played(policy: Policy, problem: Problem, episodes: int) -> list[Episode]:
    if problem.dynamics is not None:
        return list(play(policy, problem, problem.dynamics.draw(episodes, np.random.default_rng(0))))
    return record(policy, problem, range(episodes))


def _totals(episodes: list[Episode]) -> list[float]:
    return [episode.total for episode in episodes]
