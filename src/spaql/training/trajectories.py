"""Episodes from chosen starts, kept whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.policy import Policy
from spaql.problems import Dynamics, Problem
from spaql.words import counted, number, places, short

Floats = NDArray[np.float64]
StateSetter = Callable[[gymnasium.Env[Any, Any], Floats], Any]
"""Brings an environment that was reset into a state, and gives the first observation."""

_TOGETHER = 500
"""Episodes that are run, and kept in memory, together."""


@dataclass(frozen=True)
class Trajectory:
    """One episode."""

    start: Floats
    """The state in which it began."""
    observations: Floats
    """Before each action and after the last, one a row."""
    actions: Floats
    """In raw units, one a row."""
    rewards: Floats
    terminated: bool
    """Whether the environment ended it, and not the horizon."""

    def __repr__(self) -> str:
        steps, ended = counted(self.length, "step"), ", terminated" if self.terminated else ""
        total = number(self.total, places(self.total))
        return f"Trajectory({steps} from {short(self.start)}, return {total}{ended})"

    @property
    def length(self) -> int:
        """Steps taken."""
        return len(self.rewards)

    @property
    def total(self) -> float:
        """The return."""
        return float(self.rewards.sum())


def play(
    policy: Policy, problem: Problem, starts: Floats, set_state: StateSetter | None = None
) -> Iterator[Trajectory]:
    """Play an episode from each start, in their order, without drawing actions.

    Parameters
    ----------
    policy
        What plays.
    problem
        Where; in compiled dynamics, if it has them.
    starts
        States of the plant, one a row.
    set_state
        Brings an environment into a state; by default its `unwrapped.state` is set.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> (episode,) = play(agent.policy, agent.problem, np.zeros((1, 4)))
    >>> episode.observations[0].tolist(), episode.terminated, episode.length == episode.total
    ([0.0, 0.0, 0.0, 0.0], True, True)
    """
    rows: _Rows
    n = min(len(starts), _TOGETHER)
    if problem.dynamics is not None and set_state is None:
        rows = _CompiledRows(problem.dynamics)
    else:
        rows = _EnvironmentRows(problem, n, set_state or set_classic_state)
    with closing(rows):
        for first in range(0, len(starts), _TOGETHER):
            yield from _play_together(policy, problem, starts[first : first + _TOGETHER], rows)


def _play_together(policy: Policy, problem: Problem, starts: Floats, rows: _Rows) -> Iterator[Trajectory]:
    n, horizon = len(starts), problem.horizon
    seen = rows.begin(starts)
    observations = np.zeros((horizon + 1, n, problem.states.dims))
    actions = np.zeros((horizon, n, problem.actions.dims))
    rewards = np.zeros((horizon, n))
    lengths = np.zeros(n, np.int64)
    terminated, running = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    observations[0] = seen.reshape(n, -1)
    for step in range(horizon):
        played = policy.act(seen, np.full(n, step), None)
        actions[step] = np.asarray(played).reshape(n, -1)
        truncated = rows.step(played, running, seen, rewards[step], terminated)
        observations[step + 1] = seen.reshape(n, -1)
        lengths += running
        running &= ~(terminated | truncated)
        if not running.any():
            break
    for i, length in enumerate(lengths):
        yield Trajectory(
            starts[i],
            observations[: length + 1, i],
            actions[:length, i],
            rewards[:length, i],
            bool(terminated[i]),
        )


class _Rows(Protocol):
    """Plants that are stepped together, each in a state of its own."""

    def begin(self, states: Floats) -> NDArray[Any]:
        """Bring the plants into states; gives the observations."""

    def step(
        self,
        actions: Any,
        running: NDArray[np.bool_],
        seen: NDArray[Any],
        rewards: Floats,
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Make a step where the episode is running, and write what comes of it; tells which are truncated."""

    def close(self) -> None:
        """Free what is held."""


class _CompiledRows:
    """Compiled dynamics."""

    def __init__(self, dynamics: Dynamics) -> None:
        self._dynamics = dynamics

    def begin(self, states: Floats) -> NDArray[Any]:
        _check_size(self._dynamics.id, self._dynamics.state_dims, states.shape[1])
        self._states = np.array(states, np.float64)
        self._observations = np.zeros((len(states), len(self._dynamics.observations)))
        self._dynamics.loops.observe(self._states, self._observations)
        return self._observations.astype(np.float32)

    def step(
        self,
        actions: Any,
        running: NDArray[np.bool_],
        seen: NDArray[Any],
        rewards: Floats,
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        raw = np.array(actions, np.float64).reshape(len(running), -1)
        self._dynamics.loops.step(running, raw, self._states, self._observations, rewards, terminated)
        seen[:] = self._observations
        return np.zeros(len(running), np.bool_)

    def close(self) -> None:
        pass


class _EnvironmentRows:
    """Gymnasium environments."""

    def __init__(self, problem: Problem, n: int, set_state: StateSetter) -> None:
        self._environments = [problem.make() for _ in range(n)]
        self._set_state = set_state

    def begin(self, states: Floats) -> NDArray[Any]:
        rows = []
        for i, state in enumerate(states):
            self._environments[i].reset(seed=i)
            rows.append(np.asarray(self._set_state(self._environments[i], state)))
        return np.array(rows)

    def step(
        self,
        actions: Any,
        running: NDArray[np.bool_],
        seen: NDArray[Any],
        rewards: Floats,
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        truncated = np.zeros(len(running), np.bool_)
        for i in np.flatnonzero(running):
            seen[i], rewards[i], terminated[i], truncated[i], _ = self._environments[i].step(actions[i])
        return truncated

    def close(self) -> None:
        for env in self._environments:
            env.close()


def _check_size(name: str, has: int, given: int) -> None:
    if has != given:
        raise SettingError(f"A state of {name} has {has} numbers, and a start with {given} was given.")


def set_classic_state(env: gymnasium.Env[Any, Any], state: Floats) -> Any:
    """Set the state of an environment that keeps it as `state`, as those of classic control do."""
    plant: Any = env.unwrapped
    what_to_do = (
        "give Bench(set_state=...), a function of an environment and a state that sets it and returns the "
        "first observation."
    )
    name = type(plant).__name__
    try:
        held = np.asarray(plant.state, np.float64)
    except (AttributeError, TypeError, ValueError) as error:
        raise SettingError(f"{name} has no `state` of numbers that could be set: {what_to_do}") from error
    _check_size(name, held.size, state.size)
    if env.observation_space != plant.observation_space:
        raise SettingError(f"A wrapper of {name} changes what is observed: {what_to_do}")
    plant.state = np.array(state)
    for look in ("_get_obs", "_get_ob"):
        if hasattr(plant, look):
            return getattr(plant, look)()
    if state.shape != plant.observation_space.shape:
        raise SettingError(f"What {name} observes of its state is not known: {what_to_do}")
    return state.astype(plant.observation_space.dtype)
