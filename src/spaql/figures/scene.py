"""What maps of a policy are computed from: the policy, its episodes, two axes, and all other observations."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql.agents import PlanTree
from spaql.controllers import Controller, PartitionPolicy, Policy
from spaql.controllers.build import tree_number
from spaql.controllers.policy import opened, policy_of
from spaql.errors import SettingError
from spaql.evaluation.episodes import Evaluable, Playable
from spaql.figures.style import NAMES
from spaql.formatting import counted
from spaql.problems import EnvironmentLike, Problem, make_problem
from spaql.simulate import Episode, record
from spaql.spaces import action_names, find_observation, observation_names, split_unit


@dataclass(frozen=True, eq=False)
class Scene:
    """A policy with all data that its pictures need."""

    title: str
    policy: Policy
    observation_space: Box | Discrete
    action_space: Box | Discrete
    observations: tuple[str, ...]
    actions: tuple[str, ...]
    step: int
    """The time step at which a policy that depends on it is shown."""
    played: tuple[Episode, ...]
    horizon: int | None = None
    """Of the problem; None without one."""

    @cached_property
    def states(self) -> list[NDArray[np.float64]]:
        """The states of each episode, one a row: the numbers that axes have names for, then the memory."""
        return [self._states(episode.observations) for episode in self.played]

    def _states(self, observations: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.hstack(self.policy.moments(observations.astype(np.float64)))

    @cached_property
    def visited(self) -> NDArray[np.float64] | None:
        """The states of all episodes, one a row; None if none were played."""
        return np.concatenate(self.states) if self.played else None

    @property
    def blank(self) -> NDArray[np.float64]:
        """A state before anything is known of it, as a row."""
        return self._states(np.zeros((1, self._observed)))

    def free(self, placed: Collection[int]) -> list[int]:
        """Return the observations that are to be given besides the numbers that are placed."""
        return [j for j in range(self._observed) if j not in placed]

    @property
    def _observed(self) -> int:
        return int(np.prod(self.observation_space.shape or (1,)))

    @property
    def axis_space(self) -> Box | Discrete:
        """The range of the numbers that axes have names for: that of features is not known."""
        more = len(self.observations) - self._observed
        if not more or isinstance(self.observation_space, Discrete):
            return self.observation_space
        free = np.full(more, np.inf)
        low = np.append(self.observation_space.low, -free)
        return Box(low, np.append(self.observation_space.high, free), dtype=np.float64)

    def act(self, batch: NDArray[np.float64], placed: Collection[int] = ()) -> NDArray[np.float64]:
        """Return the actions for rows of states: indices of discrete actions, or rows of numbers.

        The features of a controller are computed from its observations and memory, but for those that were
        `placed`: on an axis, or fixed.
        """
        if isinstance(self.policy, Controller):
            known, memory = np.split(batch, [len(self.observations)], axis=1)
            if not self.policy.remembers:
                memory = self.policy.new_memory(len(batch))
            x, _, actions = self.policy.arrays.sample(known[:, : self._observed], memory.copy())
            features = [j for j in placed if j >= self._observed]
            x[:, features] = known[:, features]
            return self.policy.arrays.decide(x, memory) if features else actions
        shape = self.observation_space.shape or ()
        steps = np.full(len(batch), self.step, np.int64)
        actions = np.asarray(self.policy.act(batch.reshape(-1, *shape), steps, None))
        if isinstance(self.action_space, Discrete):
            return actions.astype(np.float64) - float(self.action_space.start)
        return actions.astype(np.float64).reshape(len(batch), -1)


def set_scene(
    agent: Playable,
    env: EnvironmentLike | None,
    *,
    step: int | None,
    episodes: int,
    seed: int,
) -> Scene:
    """Return the scene of an agent, policy, tree or file, with deterministic episodes if it has a problem.

    What was fitted to a log has the episodes of the log instead.
    """
    source = opened(agent)
    policy, problem = _parts(source, env)
    if not isinstance(policy.observation_space, Box | Discrete) or not isinstance(
        policy.action_space, Box | Discrete
    ):
        raise SettingError("Pictures are of policies with a Box or a list of observations and of actions.")
    number = step or 0
    if isinstance(policy, PartitionPolicy):
        number = tree_number(policy, step)
    observed = policy.known or (problem.states.names if problem else ())
    acted = policy.named_actions or (problem.actions.names if problem else ())
    if problem is not None and problem.env is None and problem.log is not None:
        played = source.logged_episodes() if isinstance(source, PlanTree) else []
    else:
        played = [] if problem is None else record(policy, problem, range(seed, seed + episodes))
    return Scene(
        "Policy" if problem is None else NAMES.get(problem.name, problem.name),
        policy,
        policy.observation_space,
        policy.action_space,
        observation_names(policy.observation_space, observed),
        action_names(policy.action_space, acted),
        number,
        tuple(played),
        None if problem is None else problem.horizon,
    )


def _parts(source: Evaluable | Policy, env: EnvironmentLike | None) -> tuple[Policy, Problem | None]:
    own = None if isinstance(source, Policy) else source.problem
    return policy_of(source), own if env is None else make_problem(env)


def partition_policy(policy: Policy, what: str) -> PartitionPolicy:
    """Return a policy, if it is that of a partition; `what` only that has is named in the error."""
    if not isinstance(policy, PartitionPolicy):
        raise SettingError(
            f"Only the policy of a partition has {what}, and this is a {type(policy).__name__}."
        )
    return policy


Floats = NDArray[np.float64]

_MARGIN = 0.1
"""Margin beyond either end, as a share of the range of the visited states."""
_MOST = 0.5
"""Share of an observation's range that must be visited for the whole range to be shown."""
_AVERAGED = 64
"""The number of states that a map is averaged over, at most."""


@dataclass(frozen=True)
class Axis:
    """An observation or feature along an axis; or an angle in rad, of which cosine and sine are observed."""

    label: str
    """Its name, with the unit in brackets."""
    low: float
    high: float
    places: tuple[int, ...]
    """Its index; of an angle those of its cosine and its sine."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise SettingError(
                f"The axis of {self.label} goes from {self.low:g} to {self.high:g}: give two numbers, the "
                "lower one first."
            )

    @property
    def turns(self) -> bool:
        """Whether it is an angle, whose ends are the same place."""
        return len(self.places) > 1

    def put(self, at: Floats) -> Mapping[int, Floats]:
        """Return the values of observations, by their index, at places along the axis.

        Examples
        --------
        >>> Axis("angle [rad]", -math.pi, math.pi, (1, 0)).put(np.zeros(1))
        {1: array([1.]), 0: array([0.])}
        """
        values = (np.cos(at), np.sin(at)) if self.turns else (at,)
        return dict(zip(self.places, values, strict=True))

    def read(self, observations: Floats) -> Floats:
        """Return the places of observations, one per row."""
        values = [observations[:, place] for place in self.places]
        return np.arctan2(values[1], values[0]) if self.turns else values[0]


def find_axis(
    wanted: str | int,
    names: Sequence[str],
    space: Box | Discrete,
    visited: Floats | None,
    limits: tuple[float, float] | None = None,
) -> Axis:
    """Return the axis of an observation, by name or number.

    A name may leave out its unit. Where there are both `cos(angle)` and `sin(angle)`, `angle` is an axis as
    well. Without limits an axis covers the visited states; or the bounds of the space, if the states cover
    half of them or there are none.
    """
    pair = [f"{function}({wanted})" for function in ("cos", "sin")]
    if wanted not in [split_unit(name)[0] for name in names] and all(name in names for name in pair):
        places = names.index(pair[0]), names.index(pair[1])
        return Axis(f"{wanted} [rad]", *(limits or (-math.pi, math.pi)), places)
    index = find_observation(wanted, names, angles(names))
    low, high = limits or _limits(index, space, visited)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise SettingError(
            f"{names[index]} has no bounds: give its limits, or an environment to play episodes in."
        )
    return Axis(names[index], low, high, (index,))


def angles(names: Sequence[str]) -> list[str]:
    """Return the angles that are observed by their cosine and sine.

    Examples
    --------
    >>> angles(["cos(angle)", "sin(angle)", "speed [rad/s]"])
    ['angle']
    """
    cosines = [name[4:-1] for name in names if name.startswith("cos(") and name.endswith(")")]
    return [name for name in cosines if f"sin({name})" in names]


def _limits(index: int, space: Box | Discrete, visited: Floats | None) -> tuple[float, float]:
    if isinstance(space, Discrete):
        return float(space.start) - 0.5, float(space.start + space.n) - 0.5
    low = float(space.low[index])
    high = float(space.high[index])
    if visited is None:
        return low, high
    least = float(visited[:, index].min())
    most = float(visited[:, index].max())
    if most - least >= _MOST * (high - low):
        return low, high
    room = _MARGIN * (most - least) or 1.0
    return max(low, least - room), min(high, most + room)


@dataclass(frozen=True, eq=False)
class Plane:
    """The plane of a map: its axes, and the states from which all other observations are taken."""

    x: Axis
    y: Axis
    states: Floats
    fixed: str
    """A description of how the other observations are fixed."""
    placed: frozenset[int] = frozenset()
    """The numbers on an axis, or fixed."""

    def grid(self, state: Floats, n: int) -> Floats:
        """Return the observations at the centres of n × n places, row by row from the lowest y."""
        at_x, at_y = (
            axis.low + (np.arange(n) + 0.5) / n * (axis.high - axis.low) for axis in (self.x, self.y)
        )
        rows = np.tile(state, (n * n, 1))
        for axis, places in ((self.x, np.tile(at_x, n)), (self.y, np.repeat(at_y, n))):
            for index, values in axis.put(places).items():
                rows[:, index] = values
        return rows


def lay_out(
    scene: Scene,
    axes: tuple[str | int, str | int],
    limits: tuple[tuple[float, float] | None, tuple[float, float] | None],
    at: Mapping[str | int, float],
    *,
    averaged: bool = True,
) -> Plane:
    """Return the axes and the states of a map; without averaging there is one state, the median."""
    names = scene.observations
    visited = scene.visited
    x, y = (
        find_axis(wanted, names, scene.axis_space, visited, ends)
        for wanted, ends in zip(axes, limits, strict=True)
    )
    laid = [set(axis.put(np.zeros(1))) for axis in (x, y)]
    if laid[0] & laid[1]:
        raise SettingError(f"Both axes are {x.label}: give two different ones.")
    fixed = {find_observation(name, names): float(value) for name, value in at.items()}
    if both := [names[j] for j in fixed if j in laid[0] | laid[1]]:
        raise SettingError(f"{both[0]} is on an axis and cannot be fixed as well: leave out one of the two.")
    placed = laid[0] | laid[1] | fixed.keys()
    free = scene.free(placed)
    if free and visited is None:
        raise SettingError(
            f"{names[free[0]]} is neither on an axis nor fixed: give it in at, or an environment to play "
            "episodes in."
        )
    states = scene.blank
    if (free or scene.policy.remembers) and visited is not None:
        states = visited[np.unique(np.linspace(0, len(visited) - 1, _AVERAGED).astype(np.int64))]
        if not averaged:
            states = np.median(visited, axis=0, keepdims=True)
            fixed |= {j: float(states[0, j]) for j in free}
            free = []
    for j, value in fixed.items():
        states[:, j] = value
    parts = [_fixed(names[j], value) for j, value in fixed.items()]
    if len(states) > 1:
        others = ", ".join([*(split_unit(names[j])[0] for j in free), *["memory"] * scene.policy.remembers])
        parts.append(
            f"{others} averaged over {counted(len(states), 'state')} of "
            f"{counted(len(scene.played), 'episode')}"
        )
    return Plane(x, y, states, "; ".join(parts), frozenset(placed))


def _fixed(name: str, value: float) -> str:
    plain, unit = split_unit(name)
    return f"{plain} {f'{value:.3g}'.replace('-', '−')} {unit}".rstrip()
