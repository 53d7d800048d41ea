"""An algorithm to be checked: trained and untrained agents, in sound and in faulty environments."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spaql.agents import Agent
from spaql.problems import EnvironmentLike, Problem, make_problem

_ITERATIONS = 4
_ROLLOUTS = 3
_EFFORT = 0.02


class AgentCase:
    """A kind of agent with its settings and a problem."""

    def __init__(
        self, kind: type[Agent], problem: Problem, settings: dict[str, Any], seed: int, folder: Path
    ) -> None:
        self.kind = kind
        self.problem = problem
        self.settings = settings
        self.seed = seed
        self.folder = folder

    @classmethod
    @contextmanager
    def of(cls, agent: type[Agent] | Agent, env: EnvironmentLike) -> Iterator[AgentCase]:
        """Yield a case, with a temporary folder."""
        with tempfile.TemporaryDirectory() as folder:
            if isinstance(agent, type):
                yield cls(agent, make_problem(env), _quick(agent), 0, Path(folder))
            else:
                settings = dataclasses.asdict(agent.settings) | _quick(type(agent))
                yield cls(type(agent), agent.problem, settings, agent.seed, Path(folder))

    @property
    def numeric(self) -> str:
        """The name of a numeric setting."""
        settings = dataclasses.fields(self.kind.learner_type.settings_type)
        return next(item.name for item in settings if type(item.default) in (int, float))

    def make(self, problem: Problem | None = None, **changes: Any) -> Agent:
        """Return a new agent."""
        settings = {"seed": self.seed, **self.settings, **changes}
        return self.kind(problem or self.problem, **settings)

    def train(self, iterations: int = _ITERATIONS, **changes: Any) -> Agent:
        """Return a new, trained agent."""
        return self.make(**changes).learn(iterations=iterations, progress_bar=False)

    @cached_property
    def trained(self) -> Agent:
        """A trained agent that checks share and do not modify."""
        return self.train()

    def bytes_of(self, agent: Agent) -> bytes:
        """Return the bytes of an agent's file."""
        path = self.folder / "bytes.spaql"
        agent.save(path)
        return path.read_bytes()

    @cached_property
    def observations(self) -> NDArray[Any]:
        """Observations from all over the space, of its type."""
        space = self.problem.states.space
        rng = np.random.default_rng(0)
        if not isinstance(space, Box):
            return rng.integers(int(space.start), int(space.start) + int(space.n), 50)
        bounded = np.abs(space.high.astype(np.float64) - space.low) < 1e30
        low, high = (np.where(bounded, end, x) for end, x in ((space.low, -3.0), (space.high, 3.0)))
        return rng.uniform(low, high, (50, *space.shape)).astype(space.dtype)

    def act(self, agent: Agent, observations: Any) -> Any:
        """Return an agent's deterministic actions."""
        return agent.predict(observations, deterministic=True)[0]

    def faulty_problem(self, spoil: Callable[[tuple[Any, ...]], Any]) -> tuple[Problem, list[bool]]:
        """Return the problem with an environment whose third step can be corrupted, and the switch for it."""
        switch = [False]
        faulty = FaultyEnv(self.problem.make, spoil, switch)
        return dataclasses.replace(self.problem, env=None, dynamics=None, template=faulty), switch


def _quick(kind: type[Agent]) -> dict[str, Any]:
    """Return settings for a short training."""
    known = {item.name for item in dataclasses.fields(kind.learner_type.settings_type)}
    return {name: value for name, value in (("rollouts", _ROLLOUTS), ("effort", _EFFORT)) if name in known}


class FaultyEnv(gymnasium.Env[Any, Any]):
    """An environment whose third step is corrupted while the switch is on."""

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        spoil: Callable[[tuple[Any, ...]], Any],
        switch: list[bool],
    ) -> None:
        self._make = make
        self._spoil = spoil
        self._switch = switch
        self._env = make()
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space
        self._steps = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> FaultyEnv:
        return FaultyEnv(self._make, self._spoil, self._switch)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode."""
        self._steps = 0
        return self._env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        """Take a step."""
        self._steps += 1
        answer = self._env.step(action)
        return self._spoil(answer) if self._switch[0] and self._steps == 3 else answer

    def close(self) -> None:
        """Close the environment."""
        self._env.close()
