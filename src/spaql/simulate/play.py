"""Episodes of a policy, recorded step by step: from chosen states, or as the environment begins them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from typing import Any

import gymnasium
import numpy as np

from spaql.controllers import Policy, RandomPolicy
from spaql.controllers.policy import Rng
from spaql.errors import SettingError
from spaql.kernels.closed_loop import Played
from spaql.kernels.controller import OBSERVATIONS, ControllerArrays
from spaql.problems import Problem
from spaql.problems.environment import DynamicsEnv
from spaql.simulate.loop import EnvironmentRows, LoopTrace, PlantRows, episodes_of, play_one, play_rows
from spaql.simulate.returns import Episode, Floats
from spaql.spaces import environment_actions

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
    if problem.dynamics is not None and set_state is None:
        if starts.shape[1] != problem.dynamics.state_dims:
            _check_size(problem.dynamics.id, problem.dynamics.plant_dims, starts.shape[1])
        states = problem.dynamics.simulated(starts, np.random.default_rng(0))
        yield from _in_plant(policy, problem, states, None, starts)
        return
    environments = [problem.make() for _ in range(min(len(starts), _TOGETHER))]
    with ExitStack() as stack:
        for env in environments:
            stack.callback(env.close)
        for first in range(0, len(starts), _TOGETHER):
            batch = starts[first : first + _TOGETHER]
            first_observations = []
            for i, state in enumerate(batch):
                environments[i].reset(seed=i)
                first_observations.append(
                    np.asarray((set_state or set_classic_state)(environments[i], state))
                )
            begun = np.array(first_observations)
            played = play_rows(policy, EnvironmentRows(environments, begun), begun, problem.horizon, None)
            yield from episodes_of(begun, played, batch)


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
        played, spent = play_one(problem.dynamics.plant, policy.arrays, states, problem.horizon)
        return played.returns[0], spent
    rows = PlantRows(problem.dynamics.plant, states)
    returns = np.zeros(len(states))
    spent = 0
    for step in play_rows(policy, rows, rows.first, problem.horizon, None):
        returns += np.where(step.running, step.rewards, 0.0)
        spent += int(step.running.sum())
    return returns, spent


def record(policy: Policy, problem: Problem, seeds: Iterable[int], rng: Rng | None = None) -> list[Episode]:
    """Return an episode in Gymnasium's environment for each seed; without `rng` actions are deterministic."""
    episodes: list[Episode] = []
    with closing(problem.make()) as env:
        for seed in seeds:
            first = np.array(env.reset(seed=seed)[0])[np.newaxis]
            episodes += episodes_of(
                first, play_rows(policy, EnvironmentRows([env], first), first, problem.horizon, rng)
            )
    return episodes


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
    return list(_in_plant(policy, problem, states, rng))


def _in_plant(
    policy: Policy, problem: Problem, states: Floats, rng: Rng | None, starts: Floats | None = None
) -> Iterator[Episode]:
    """Yield an episode of the compiled dynamics from each simulated state."""
    assert problem.dynamics is not None
    plant = problem.dynamics.plant
    for first in range(0, len(states), _TOGETHER):
        some = slice(first, first + _TOGETHER)
        begun = None if starts is None else starts[some]
        if (rng is None or not policy.draws) and policy.arrays is not None:
            played, _ = play_one(plant, policy.arrays, states[some], problem.horizon, traced=True)
            yield from _traced(played, policy.arrays, policy.action_space, begun)
        else:
            rows = PlantRows(plant, states[some])
            played_rows = play_rows(policy, rows, rows.first, problem.horizon, rng)
            yield from episodes_of(rows.first, played_rows, begun)


def _traced(
    played: Played, controller: ControllerArrays, space: gymnasium.Space[Any], starts: Floats | None
) -> Iterator[Episode]:
    """Yield the episodes of a trace."""
    trace = LoopTrace.of(played, controller.arrays)
    n_seen = int(controller.arrays.shape[OBSERVATIONS])
    for i, length in enumerate(played.lengths[0].tolist()):
        yield Episode(
            trace.x[i, : length + 1, :n_seen],
            environment_actions(space, trace.actions[i, :length]),
            trace.rewards[i, :length],
            bool(played.terminated[0, i]),
            None if starts is None else starts[i],
        )


def _check_size(name: str, has: int, size: int) -> None:
    if has != size:
        raise SettingError(f"A start has {size} numbers, and must have {has}, as a state of {name}.")


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


def check_sample_time(policy: Policy, problem: Problem) -> None:
    """Refuse a controller that samples at another rate than the plant, if both are known."""
    own = policy.sample_time
    if own is not None and problem.sample_time is not None and own != problem.sample_time:
        raise SettingError(
            f"The controller takes a sample every {own:g} s, and {problem.name} makes a step every "
            f"{problem.sample_time:g} s."
        )
