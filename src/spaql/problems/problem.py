"""A problem: how to make an environment, and how to standardise its observations and actions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

from spaql.entry_points import Pictured
from spaql.errors import BadEnvironmentError
from spaql.problems.classic import find_dynamics
from spaql.problems.dynamics import Dynamics
from spaql.problems.environment import DisturbedEnv, declares_cost
from spaql.problems.guard import in_processes
from spaql.problems.plant_hash import PlantHash, equations_hash, file_hash, warn_of_change
from spaql.problems.registry import file_option, make_named, spec_of
from spaql.problems.sources import limited_copy
from spaql.problems.stage_cost import Constraint, StageCost, StageCostEnv
from spaql.spaces import StandardActions, StandardStates

Environment = gymnasium.Env[Any, Any]


@dataclass(frozen=True, kw_only=True)
class Problem(Pictured):
    """An environment with a horizon, a standard space and, for regulators, a reference.

    Made by `make_problem`. The policy learned on it contains `states` and `actions`, so it maps raw
    observations to raw actions on its own.
    """

    name: str
    env: str | None
    """The environment's id, or None for an environment that was given as an object."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment."""
    horizon: int
    states: StandardStates
    actions: StandardActions
    reference: tuple[float, ...] | None = None
    """The observation that a regulator is to reach, in raw units."""
    reward_range: tuple[float, float] = (0.0, 1.0)
    """Rewards to learn from are mapped from this range to [0, 1]; returns stay raw."""
    dynamics: Dynamics | None = None
    """Compiled dynamics for training and evaluation, instead of the environment."""
    setpoints: Mapping[str, str] = field(default_factory=dict)
    """Which observed number is to follow which observed set-point, by name."""
    angles: tuple[str, ...] = ()
    """Observations that are angles in radians; or `x`, of which cos(x) and sin(x) are observed."""
    sample_time: float | None = None
    """Seconds between two actions, if known."""
    interactions: int = 0
    """Environment steps spent on measuring unbounded dimensions."""
    parallel: bool | str = False
    """Whether to step the environments of an evaluation in separate processes: for slow simulators. If it is
    the address of a Ray cluster, the episodes of a search are played there."""
    stage_cost: StageCost | None = None
    """Cost and constraints that were given for an environment that declares none, as expressions."""
    constraints: tuple[Constraint, ...] = ()
    """All that evaluations count, those that the plant declares included."""
    disturbances: Mapping[str, Any] = field(default_factory=dict)
    """Disturbances of an environment that declares none, as `DisturbedEnv` takes them."""
    plant: PlantHash = field(default_factory=dict)
    """Hashes of the plant that it was made from, as a model file keeps them."""
    log: Mapping[str, Any] | None = None
    """How it was made from a log, as plain data, for a problem without an environment (see `spaql.fit`)."""
    template: Environment | None = field(default=None, repr=False, compare=False)
    """A copy of the environment that was given as an object."""

    def __repr__(self) -> str:
        seen = ", ".join(self.states.labels)
        done = ", ".join(self.actions.labels)
        return f"Problem({self.name}: {seen} -> {done}, {self.horizon:,} steps)"

    @property
    def setpoint_places(self) -> list[tuple[int, int]]:
        """The places in an observation of each number that has a set-point, and of its set-point."""
        names = self.states.labels
        return [(names.index(number), names.index(goal)) for number, goal in self.setpoints.items()]

    @property
    def runs_on(self) -> str:
        """What is trained and evaluated on, as text.

        Examples
        --------
        >>> import spaql
        >>> spaql.make_problem("Pendulum-v1").runs_on
        'the compiled dynamics spaql/Pendulum-v1'
        >>> spaql.make_problem("Pendulum-v1", compiled=False).runs_on
        "gymnasium.make('Pendulum-v1')"
        >>> spaql.make_problem(gymnasium.make("Pendulum-v1")).runs_on.partition(" (")[0]
        'copies of the PendulumEnv that was given'
        """
        return self._runs_on + ("" if self.stage_cost is None else f", with {self.stage_cost}")

    @property
    def _runs_on(self) -> str:
        if self.dynamics is not None:
            return f"the compiled dynamics {self.dynamics.id}"
        if self.template is not None:
            plant = self.template.unwrapped
            copies = f"copies of the {type(plant).__name__} that was given"
            if plant.spec is None or find_dynamics(plant.spec.id) is None:
                return copies
            return f'{copies} ("{plant.spec.id}" as an id trains on compiled dynamics, which is faster)'
        if self.env is None and self.log is not None:
            return "no environment: it was made from a log"
        if self.env is None:
            return "an environment that was given as an object, and is to be given again"
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"gymnasium.make({self.env!r}{options})"

    def make(self) -> Environment:
        """Return a new environment that truncates episodes at the horizon."""
        env = self._make()
        if self.stage_cost is not None and not declares_cost(env):
            env = StageCostEnv(env, self.stage_cost)
        return DisturbedEnv(env, **self.disturbances) if self.disturbances else env

    def _make(self) -> Environment:
        if self.template is not None:
            return limited_copy(self.template, self.horizon)
        if self.env is None and self.log is not None:
            raise BadEnvironmentError(
                "This policy was fitted to a log, so there is no environment to run it in: give one with the "
                "same observations and actions.",
                settings={"env": "ID"},
            )
        if self.env is None:
            raise BadEnvironmentError(
                "This policy was trained on an environment given as an object, which a model file cannot "
                "hold: pass it again, as in spaql.load(path, env=...)."
            )
        env = make_named(self.env, self.horizon, self.options)
        self._compare()
        return env

    @property
    def plant_now(self) -> PlantHash:
        """Hashes of the plant as it is now, where no environment has to be made for it; empty otherwise."""
        if (option := file_option(self.env)) is not None:
            return file_hash(str(self.options.get(option)))
        dynamics = None if self.env is None or self.options else find_dynamics(self.env)
        return {} if dynamics is None else equations_hash(dynamics)

    def _compare(self) -> None:
        """Warn once if the plant is not the one that this was made from.

        Compiled dynamics and files are compared when a model file is read.
        """
        as_made = self.dynamics is not None and self.dynamics.is_registered
        if self.plant and not as_made and "_compared" not in vars(self) and file_option(self.env) is None:
            object.__setattr__(self, "_compared", True)
            warn_of_change(self.name, self.plant, self.plant_now, stacklevel=4)

    def make_vector(self, n: int) -> VectorEnv[Any, Any, Any]:
        """Return n environments that are stepped together: Gymnasium's vector environment if it has one."""
        if self.parallel:
            return in_processes(self.make, n)
        plain = self.template is None and not (self.options or self.stage_cost or self.disturbances)
        if plain and self.env is not None and _has_vector_form(self.env):
            return gymnasium.make_vec(self.env, n, max_episode_steps=self.horizon)
        return SyncVectorEnv([self.make] * n, autoreset_mode=AutoresetMode.NEXT_STEP)

    def learning_reward(self, reward: float) -> float:
        """Return the reward that the algorithm learns from."""
        low, high = self.reward_range
        return (reward - low) / (high - low)


def _has_vector_form(env: str) -> bool:
    """Return whether Gymnasium has a vector environment of an id that is equivalent to many single ones."""
    return spec_of(env).vector_entry_point is not None


EnvironmentLike = str | Environment | Dynamics | Problem
