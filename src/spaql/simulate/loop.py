"""The closed loop: of a compiled plant and a controller, and of any policy and environments side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import gymnasium
import numpy as np
from numpy.typing import NDArray

from spaql.controllers import Policy
from spaql.controllers.policy import Rng
from spaql.kernels.closed_loop import Played, Room, run
from spaql.kernels.controller import ACTIONS, MEMORY, OBSERVATIONS, Arrays, ControllerArrays
from spaql.kernels.numerics import Floats, Ints
from spaql.kernels.plant import Plant
from spaql.problems.guard import Guard, GuardedEnv
from spaql.simulate.returns import Episode


class LoopTrace(NamedTuple):
    """Episodes, step by step: starts × steps × values; NaN after the end."""

    x: Floats
    """Observations and features; the last observation of an episode is one more, without features."""
    actions: Floats
    rewards: Floats
    states: Floats
    """Before each step, and after the last."""

    @classmethod
    def of(cls, played: Played, arrays: Arrays) -> LoopTrace:
        """Return the parts of a trace."""
        width = int(arrays.shape[OBSERVATIONS]) + len(arrays.feature)
        last = width + int(arrays.shape[ACTIONS])
        trace = played.trace
        return cls(
            trace[:, :, :width], trace[:, :-1, width:last], trace[:, :-1, last], trace[:, :, last + 1 :]
        )


def play_structure(
    plant: Any,
    arrays: Arrays,
    constants: Floats,
    weights: Floats,
    starts: Floats,
    horizon: int,
    *,
    setpoints: Ints | None = None,
    traced: int = 0,
) -> tuple[Played, int]:
    """Play every start with each of several controllers of one structure; returns the steps, too.

    The plant is of a kind that kernels know (see `spaql.kernels.plant`). The first `traced` steps of the
    first controller are recorded.
    """
    n = len(starts)
    shape = len(constants), n
    n_actions = int(arrays.shape[ACTIONS])
    width = int(arrays.shape[OBSERVATIONS]) + len(arrays.feature)
    goals = np.empty(0, np.int64) if setpoints is None else setpoints
    room = Room(
        np.empty(n, np.int64),
        np.empty(starts.shape),
        np.empty(2),
        np.empty((n, int(arrays.shape[MEMORY]))),
        np.empty(width),
        np.empty(2 * n_actions + width),
        np.empty(n_actions),
        np.empty((n, n_actions)),
        np.empty((n, len(goals))),
    )
    traced_shape = (n, traced + 1, width + n_actions + 1 + starts.shape[1]) if traced else (0, 1, 0)
    played = Played(
        np.empty(shape),
        np.empty(shape, np.int64),
        np.empty(shape),
        np.empty(shape),
        np.empty(shape, np.bool_),
        np.full(traced_shape, np.nan),
    )
    steps = run(
        plant,
        arrays,
        constants,
        weights,
        goals,
        np.ascontiguousarray(starts),
        horizon,
        room,
        played,
    )
    return played, steps


def play_one(
    plant: Plant, controller: ControllerArrays, starts: Floats, horizon: int, *, traced: bool = False
) -> tuple[Played, int]:
    """Play every start with a controller; returns the steps, too."""
    arrays, numbers = controller
    constants = numbers.constant[np.newaxis]
    weights = numbers.weight[np.newaxis]
    return play_structure(
        plant.addresses, arrays, constants, weights, starts, horizon, traced=horizon if traced else 0
    )


Bools = NDArray[np.bool_]


class Rows(Protocol):
    """Environments, one a row."""

    def step(self, actions: Any, running: Bools) -> tuple[Any, Floats, Bools, Bools]:
        """Step the running ones; returns observations, rewards, which terminated and which were truncated."""


class Step(NamedTuple):
    """A step of episodes that are played side by side."""

    running: Bools
    """Which episodes made it: what follows is nothing in the others."""
    actions: NDArray[Any]
    observations: Any
    """After it."""
    rewards: Floats
    terminated: Bools
    truncated: Bools


def play_rows(policy: Policy, rows: Rows, observations: Any, horizon: int, rng: Rng | None) -> Iterator[Step]:
    """Play episodes from their first observations until all have ended; actions are drawn if rng is given."""
    n = len(observations)
    playing = policy.for_episodes(n)
    running = np.ones(n, np.bool_)
    for taken in range(horizon):
        actions = np.asarray(playing.act(observations, np.full(n, taken), rng))
        observations, rewards, terminated, truncated = rows.step(actions, running)
        yield Step(running, actions, observations, rewards, terminated, truncated)
        running = running & ~(terminated | truncated)
        if not running.any():
            return


def episodes_of(first: Any, played: Iterable[Step], starts: Floats | None = None) -> list[Episode]:
    """Return the episodes of steps, from their first observations."""
    n = len(first)
    observations = [np.array(first, np.float64).reshape(n, -1)]
    actions = []
    rewards = []
    lengths = np.zeros(n, np.int64)
    terminated = np.zeros(n, np.bool_)
    for step in played:
        observations.append(np.array(step.observations, np.float64).reshape(n, -1))
        actions.append(step.actions.copy())
        rewards.append(step.rewards)
        lengths += step.running
        terminated |= step.running & step.terminated
    observed, done, gained = map(np.array, (observations, actions, rewards))
    return [
        Episode(
            observed[: length + 1, i],
            done[:length, i],
            gained[:length, i],
            bool(terminated[i]),
            None if starts is None else starts[i],
        )
        for i, length in enumerate(lengths)
    ]


class PlantRows:
    """A compiled plant, for a policy that its closed loop does not read."""

    def __init__(self, plant: Plant, states: Floats) -> None:
        self._plant = plant
        self.states = np.array(states, np.float64)
        self.first = self.observations()
        """The first observations."""

    def observations(self) -> Any:
        """Return the present observations, in single precision."""
        return self._plant.observe(self.states).astype(np.float32)

    def step(self, actions: Any, running: Bools) -> tuple[Any, Floats, Bools, Bools]:
        """Step the running ones; returns observations, rewards, which terminated and which were truncated."""
        raw = np.array(actions, np.float64).reshape(len(running), -1)
        observations, rewards, terminated = self._plant.step_rows(running, raw, self.states)
        return observations.astype(np.float32), rewards, terminated, np.zeros(len(running), np.bool_)


class GuardedPlantRows(PlantRows):
    """A compiled plant whose observations and rewards are checked."""

    def __init__(self, plant: Plant, states: Floats, guard: Guard) -> None:
        super().__init__(plant, states)
        n = len(states)
        self.guard = guard
        guard.check(self.first, np.ones(n, np.bool_), np.zeros(n, np.bool_))

    def step(self, actions: Any, running: Bools) -> tuple[Any, Floats, Bools, Bools]:
        """Step the running ones; returns observations, rewards, which terminated and which were truncated."""
        self.guard.step += 1
        observations, rewards, terminated, truncated = super().step(actions, running)
        self.guard.check_step(observations, rewards, running, terminated)
        return observations, rewards, terminated, truncated


class EnvironmentRows:
    """Gymnasium environments as they are."""

    def __init__(self, environments: Sequence[gymnasium.Env[Any, Any]], first: Any) -> None:
        self._environments = environments
        self._observations = np.array(first)

    def step(self, actions: Any, running: Bools) -> tuple[Any, Floats, Bools, Bools]:
        """Step the running ones; returns observations, rewards, which terminated and which were truncated."""
        n = len(running)
        self._observations = self._observations.copy()
        rewards = np.zeros(n)
        terminated = np.zeros(n, np.bool_)
        truncated = np.zeros(n, np.bool_)
        for i in np.flatnonzero(running).tolist():
            env = self._environments[i]
            self._observations[i], rewards[i], terminated[i], truncated[i], _ = env.step(actions[i])
        return self._observations, rewards, terminated, truncated


class GuardedRow:
    """One guarded environment."""

    def __init__(self, env: GuardedEnv) -> None:
        self._env = env

    def step(self, actions: Any, running: Bools) -> tuple[Any, Floats, Bools, Bools]:
        """Step it; returns its observation, reward, and whether it terminated and was truncated."""
        observation, reward, terminated, truncated = self._env.step(actions[0])
        return (
            np.asarray(observation)[np.newaxis],
            np.array([reward]),
            np.array([terminated]),
            np.array([truncated]),
        )
