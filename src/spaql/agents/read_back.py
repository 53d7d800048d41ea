"""Reading back what was written: a file must act as what was to be saved does."""

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
"""Episodes that are played before and after a run is written."""
_ROWS = 30
_STEPS = 10
"""Observations of the space that are compared: rows, each of which is an episode of some steps."""


class _Saved(Protocol):
    @property
    def policy(self) -> Policy:
        """What acts."""

    @property
    def problem(self) -> Problem:
        """What it is for."""


def read_back(saved: _Saved, loaded: _Saved, *, episodes: int = 0) -> None:
    """Raise `ArchiveError` unless what a file holds acts as what was saved does, to the last bit.

    Parameters
    ----------
    saved
        An agent or controller. One that has no policy yet is not compared.
    loaded
        What its file holds.
    episodes
        How many to play with each, from the same starts: the actions at the observations on the way, and the
        returns, must be equal. They are not played in an environment that was given as an object, which a
        file cannot hold; where the environment fails, only actions are compared.
    """
    try:
        ours = saved.policy
    except SettingError:  # training was stopped before there was one
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
    except Exception:  # an environment that fails tells nothing about the file
        return
    shape = saved.problem.states.space.shape or ()
    for episode in before:
        visited = episode.observations[:-1].astype(saved.problem.states.space.dtype)
        _compare(ours, theirs, visited.reshape(-1, 1, *shape))
    totals = _totals(before)
    again = _totals(_played(theirs, loaded.problem, episodes))
    # Nor does one that does not repeat itself for a seed.
    if again != totals and _totals(_played(ours, saved.problem, episodes)) == totals:
        raise ArchiveError(
            f"The file that was written returns {again}, and what was to be saved {totals} in the same "
            f"episodes. {_ADVICE}"
        )


_ADVICE = "This is a fault of spaql: please report it, keep the file for that, and do not use it."


def _compare(ours: Policy, theirs: Policy, observations: Sequence[NDArray[Any]] | NDArray[Any]) -> None:
    """Compare the actions along episodes side by side: steps × episodes × components."""
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
                f"The file that was written does not act as what was to be saved: at {batch[row].tolist()} "
                f"it returns {actions[row].tolist()}, not {wanted[row].tolist()}. {_ADVICE}"
            )


def _played(policy: Policy, problem: Problem, episodes: int) -> list[Episode]:
    if problem.dynamics is not None:
        return list(play(policy, problem, problem.dynamics.draw(episodes, np.random.default_rng(0))))
    return record(policy, problem, range(episodes))


def _totals(episodes: list[Episode]) -> list[float]:
    return [episode.total for episode in episodes]
