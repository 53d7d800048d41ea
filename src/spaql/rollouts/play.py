"""Episodes of a policy, recorded step by step: from chosen states, or as the environment begins them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import Any, Protocol

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.kernels.controller import ControllerArrays
from spaql.policy import Policy, RandomPolicy
from spaql.policy.policy import Rng
from spaql.problems import Dynamics, Problem
from spaql.problems.environment import DynamicsEnv
from spaql.rollouts.episode import Episode, Floats
from spaql.simulate.loop import Trace, play_one

StateSetter = Callable[[gymnasium.Env[Any, Any], Floats], Any]
"""Sets the state of an environment after a reset, and returns the first observation."""

_TOGETHER = 500
"""Episodes that are run, and held in memory, in one batch."""


def play(
    policy: Policy, problem: Problem, starts: Floats, set_state: StateSetter | None = None
) -> Iterator[Episode]:
    """Yield an episode from each start, in their order, with deterministic actions.

    Parameters
    ----------
    policy
        The policy.
    problem
        The problem; its compiled dynamics are used if it has them.
    starts
        States of the plant, one per row. What disturbs the plant is drawn from a fixed seed, unless the
        states hold it (see `spaql.Dynamics`).
    set_state
        Sets the state of an environment; by default `unwrapped.state`.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> (episode,) = play(agent.policy, agent.problem, np.zeros((1, 4)))
    >>> episode.observations[0].tolist(), episode.terminated, episode.length == episode.total
    ([0.0, 0.0, 0.0, 0.0], True, True)
    """
    rows: _Rows
    begun = starts
    n = min(len(starts), _TOGETHER)
    if problem.dynamics is not None and set_state is None:
        rows = _CompiledRows(problem.dynamics)
        begun = problem.dynamics.simulated(starts, np.random.default_rng(0))
    else:
        rows = _EnvironmentRows(problem, n, set_state or set_classic_state)
    with closing(rows):
        for first in range(0, len(starts), _TOGETHER):
            batch = starts[first : first + _TOGETHER]
            states = begun[first : first + _TOGETHER]
            if isinstance(rows, _CompiledRows) and policy.arrays is not None:
                yield from _traced(policy.arrays, policy, problem, states, batch)
            else:
                yield from _play_together(policy, problem, rows.begin(states), rows, None, batch)


def returns_from(policy: Policy, problem: Problem, states: Floats) -> tuple[Floats, int]:
    """Return the return of an episode from each simulated state, all side by side, and the steps of all.

    A return that is not finite ends its episode. The problem must have compiled dynamics.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> returns, steps = returns_from(agent.policy, agent.problem, np.zeros((3, 4)))
    >>> bool(returns.sum() == steps)
    True
    """
    assert problem.dynamics is not None
    if policy.arrays is not None:
        played, steps = play_one(problem.dynamics.plant, policy.arrays, states, problem.horizon)
        return played.returns[0], steps
    rows, n = _CompiledRows(problem.dynamics), len(states)
    seen, policy = rows.begin(states), policy.for_episodes(n)
    returns, rewards, spent = np.zeros(n), np.zeros(n), 0
    terminated, running = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    for step in range(problem.horizon):
        rewards[:] = 0.0
        rows.step(policy.act(seen, np.full(n, step), None), running, seen, rewards, terminated)
        spent += int(running.sum())
        returns += np.where(running, rewards, 0.0)
        running &= ~terminated & np.isfinite(returns)
        if not running.any():
            break
    return returns, spent


def record(policy: Policy, problem: Problem, seeds: Iterable[int], rng: Rng | None = None) -> list[Episode]:
    """Return an episode in Gymnasium's environment for each seed; without `rng` actions are deterministic."""
    with closing(_EnvironmentRows(problem, 1, set_classic_state)) as rows:
        return [
            episode
            for seed in seeds
            for episode in _play_together(policy, problem, rows.reset(seed), rows, rng)
        ]


def record_random(problem: Problem, n: int, rng: Rng) -> list[Episode]:
    """Return episodes of random actions: of the compiled dynamics, side by side, or in the environment.

    Examples
    --------
    >>> import spaql
    >>> episodes = record_random(spaql.make_problem("CartPole-v1"), 3, np.random.default_rng(0))
    >>> len(episodes), all(episode.terminated for episode in episodes)
    (3, True)
    """
    policy = RandomPolicy(problem.states, problem.actions)
    if problem.dynamics is None:
        return record(policy, problem, rng.integers(1 << 31, size=n).tolist(), rng)
    return record_compiled(policy, problem, problem.dynamics.draw(n, rng), rng)


def record_compiled(
    policy: Policy, problem: Problem, states: Floats, rng: Rng | None = None
) -> list[Episode]:
    """Return an episode of the compiled dynamics from each simulated state, all side by side."""
    assert problem.dynamics is not None
    if policy.arrays is not None and (rng is None or not policy.draws):
        return list(_traced(policy.arrays, policy, problem, states))
    rows = _CompiledRows(problem.dynamics)
    return list(_play_together(policy, problem, rows.begin(states), rows, rng))


def _traced(
    controller: ControllerArrays,
    policy: Policy,
    problem: Problem,
    states: Floats,
    starts: Floats | None = None,
) -> Iterator[Episode]:
    """Yield one episode from each simulated state."""
    assert problem.dynamics is not None
    plant = problem.dynamics.plant
    space = policy.action_space
    for first in range(0, len(states), _TOGETHER):
        some = states[first : first + _TOGETHER]
        played, _ = play_one(plant, controller, some, problem.horizon, traced=True)
        trace = Trace.of(played, controller.arrays)
        for i, length in enumerate(played.lengths[0].tolist()):
            done = trace.actions[i, :length]
            yield Episode(
                trace.x[i, : length + 1, : plant.n_seen],
                done[:, 0].astype(np.int64) + int(space.start)
                if isinstance(space, Discrete)
                else done.reshape(-1, *(space.shape or ())).astype(space.dtype),
                trace.rewards[i, :length],
                bool(played.terminated[0, i]),
                None if starts is None else starts[first + i],
            )


def _play_together(
    policy: Policy,
    problem: Problem,
    seen: NDArray[Any],
    rows: _Rows,
    rng: Rng | None,
    states: Floats | None = None,
) -> Iterator[Episode]:
    """Return one episode per row, after the first observations `seen`."""
    n = len(seen)
    playing = policy.for_episodes(n)
    observations, actions = [seen.reshape(n, -1).astype(np.float64)], []
    rewards: list[Floats] = []
    lengths = np.zeros(n, np.int64)
    terminated, running = np.zeros(n, np.bool_), np.ones(n, np.bool_)
    for step in range(problem.horizon):
        played = np.asarray(playing.act(seen, np.full(n, step), rng))
        rewards.append(np.zeros(n))
        truncated = rows.step(played, running, seen, rewards[-1], terminated)
        actions.append(played.copy())
        observations.append(seen.reshape(n, -1).astype(np.float64))
        lengths += running
        running &= ~(terminated | truncated)
        if not running.any():
            break
    all_observations, all_actions, all_rewards = map(np.array, (observations, actions, rewards))
    for i, length in enumerate(lengths):
        yield Episode(
            all_observations[: length + 1, i],
            all_actions[:length, i],
            all_rewards[:length, i],
            bool(terminated[i]),
            None if states is None else states[i],
        )


class _Rows(Protocol):
    """Plants that are stepped in lockstep, one per row."""

    def begin(self, states: Floats) -> NDArray[Any]:
        """Set the states of the plants; returns the observations."""

    def step(
        self,
        actions: Any,
        running: NDArray[np.bool_],
        seen: NDArray[Any],
        rewards: Floats,
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        """Step the running episodes, and write the results; returns which are truncated."""

    def close(self) -> None:
        """Free resources."""


class _CompiledRows:
    """Compiled dynamics."""

    def __init__(self, dynamics: Dynamics) -> None:
        self._dynamics = dynamics

    def begin(self, states: Floats) -> NDArray[Any]:
        if states.shape[1] != self._dynamics.state_dims:
            _check_size(self._dynamics.id, self._dynamics.plant_dims, states.shape[1])
        self._states = np.array(states, np.float64)
        return self._dynamics.plant.observe(self._states).astype(np.float32)

    def step(
        self,
        actions: Any,
        running: NDArray[np.bool_],
        seen: NDArray[Any],
        rewards: Floats,
        terminated: NDArray[np.bool_],
    ) -> NDArray[np.bool_]:
        raw = np.array(actions, np.float64).reshape(len(running), -1)
        seen[:], found, ended = self._dynamics.plant.step_rows(running, raw, self._states)
        rewards[running] = found[running]
        terminated[running] = ended[running]
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

    def reset(self, seed: int) -> NDArray[Any]:
        """Reset the first environment with a seed; returns its observation in a batch of one."""
        return np.array(self._environments[0].reset(seed=seed)[0])[None]

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
        raise SettingError(f"A start has {given} numbers, and must have {has}, as a state of {name}.")


def set_classic_state(env: gymnasium.Env[Any, Any], state: Floats) -> Any:
    """Set the attribute `state` of an environment, as in classic control; returns the observation."""
    plant: Any = env.unwrapped
    what_to_do = (
        "give Bench(set_state=...), a function of an environment and a state that sets it and returns the "
        "first observation."
    )
    name = type(plant).__name__
    try:
        held = np.asarray(plant.state, np.float64)
    except (AttributeError, TypeError, ValueError) as error:
        raise SettingError(f"{name} has no numeric attribute `state` to set: {what_to_do}") from error
    if not isinstance(plant, DynamicsEnv) or state.size != plant.dynamics.plant_dims:
        _check_size(name, held.size, state.size)
    if env.observation_space != plant.observation_space:
        raise SettingError(f"A wrapper of {name} changes its observations: {what_to_do}")
    plant.state = np.array(state)
    for look in ("_get_obs", "_get_ob"):
        if hasattr(plant, look):
            return getattr(plant, look)()
    if state.shape != plant.observation_space.shape:
        raise SettingError(f"The observation of a state of {name} is not known: {what_to_do}")
    return state.astype(plant.observation_space.dtype)
