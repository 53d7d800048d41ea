"""The checks of an algorithm: what a learner of the user's own may get wrong."""

from __future__ import annotations

import copy
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
from spaql.agents.agent_file import load
from spaql.checks.report import CheckReport, Requirement, fail, global_seed, run_all
from spaql.controllers import Policy
from spaql.errors import BadEnvironmentError, SettingError
from spaql.evaluation import evaluate
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

    def act(self, agent: Agent | Policy, observations: Any) -> Any:
        """Return the deterministic actions of an agent or a policy."""
        return agent.predict(observations, deterministic=True)[0]

    def reloaded(self, agent: Agent) -> Agent:
        """Return an agent as its file holds it."""
        agent.save(self.folder / "saved.spaql")
        loaded: Agent = load(self.folder / "saved.spaql", env=self.problem)
        return loaded

    def faulty_problem(self) -> tuple[Problem, list[bool]]:
        """Return the problem with an environment whose third step can be made to raise, and the switch."""
        switch = [False]
        faulty = FaultyEnv(self.problem.make, switch)
        return dataclasses.replace(self.problem, env=None, dynamics=None, template=faulty), switch


def _quick(kind: type[Agent]) -> dict[str, Any]:
    """Return settings for a short training."""
    known = {item.name for item in dataclasses.fields(kind.learner_type.settings_type)}
    return {name: value for name, value in (("rollouts", _ROLLOUTS), ("effort", _EFFORT)) if name in known}


class FaultyEnv(gymnasium.Env[Any, Any]):
    """An environment whose third step raises while the switch is on."""

    def __init__(self, make: Callable[[], gymnasium.Env[Any, Any]], switch: list[bool]) -> None:
        self._make = make
        self._switch = switch
        self._env = make()
        self.observation_space = self._env.observation_space
        self.action_space = self._env.action_space
        self._steps = 0

    def __deepcopy__(self, memo: dict[int, Any]) -> FaultyEnv:
        return FaultyEnv(self._make, self._switch)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode."""
        self._steps = 0
        return self._env.reset(seed=seed, options=options)

    def step(self, action: Any) -> Any:
        """Take a step."""
        self._steps += 1
        if self._switch[0] and self._steps == 3:
            raise RuntimeError("the simulator has diverged")
        return self._env.step(action)

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


def check_agent(agent: type[Agent] | Agent, env: EnvironmentLike = "cartpole200") -> CheckReport:
    """Return a report of checks of what users of an algorithm rely on.

    About twenty agents are trained, for a few iterations each.

    Parameters
    ----------
    agent
        A class of agents, or an agent whose settings and problem are used; it is not modified.
    env
        The problem for a class of agents.

    Examples
    --------
    >>> import spaql
    >>> report = check_agent(spaql.SPAQL)
    >>> bool(report), report["the same seed gives the same bytes"].outcome
    (True, 'passed')
    """
    kind = agent if isinstance(agent, type) else type(agent)
    with AgentCase.of(agent, env) as case:
        return run_all(f"{kind.__name__} on {case.problem.name}", AGENT_CHECKS, case)


def actions_are_in_their_space(case: AgentCase) -> None:
    """Policies, trained or not, return actions of the action space, also for infinite observations."""
    _check_actions(case, case.make().policy, case.observations)
    _check_actions(case, case.trained, case.observations)
    space = case.problem.states.space
    if isinstance(space, Box):
        far = np.array([np.full(space.shape, x) for x in (np.inf, -np.inf, 1e30, -1e30, 0.0)], np.float64)
        _check_actions(case, case.trained, far)


def a_batch_is_as_its_observations(case: AgentCase) -> None:
    """Deterministic actions are the same for a batch and for its observations one by one."""
    together = case.act(case.trained, case.observations)
    alone = [case.act(case.trained, x) for x in case.observations]
    for i, (a, b) in enumerate(zip(together, alone, strict=True)):
        if not np.array_equal(a, b):
            fail(f"The action for {case.observations[i]} is {b} alone and {a} in a batch.")


def acting_teaches_nothing(case: AgentCase) -> None:
    """An agent does not change when it acts, and two evaluations with one seed have the same returns."""
    agent = case.train(1)
    before = case.bytes_of(agent)
    agent.predict(case.observations)
    first, second = (evaluate(agent, episodes=3, seed=5).returns.tolist() for _ in range(2))
    if first != second:
        fail(f"Two evaluations returned {first}, then {second}.")
    if case.bytes_of(agent) != before:
        fail("Its file would differ.")


def a_loaded_agent_is_as_it_was_saved(case: AgentCase) -> None:
    """A loaded agent returns the actions of the one that was saved, and is saved as the same bytes."""
    loaded = case.reloaded(case.trained)
    if not np.array_equal(*(case.act(agent, case.observations) for agent in (loaded, case.trained))):
        fail("The actions differ.")
    if case.bytes_of(loaded) != case.bytes_of(case.trained):
        fail("The files differ.")


def training_goes_on_to_the_same_bytes(case: AgentCase) -> None:
    """Interrupted and resumed training ends in the same bytes as training without a break."""
    half = case.make().learn(
        iterations=4, callback=lambda agent, row: row["iteration"] < 2, progress_bar=False
    )
    resumed = case.reloaded(half).learn(iterations=2, progress_bar=False)
    if case.bytes_of(resumed) != case.bytes_of(case.train(4)):
        fail("They differ.")


def a_copy_is_independent(case: AgentCase) -> None:
    """A deep copy equals the agent, and the agent does not change when the copy learns."""
    agent = case.train(2)
    before = case.bytes_of(agent)
    copied = copy.deepcopy(agent)
    if case.bytes_of(copied) != before:
        fail("It differs from the agent.")
    copied.learn(iterations=2, progress_bar=False)
    if case.bytes_of(agent) != before:
        fail("The agent changed when its copy learned.")


def the_same_seed_gives_the_same_bytes(case: AgentCase) -> None:
    """Two agents of one seed end in the same bytes, whatever the state of global random generators."""
    files = []
    for outside in (1, 2):
        with global_seed(outside):
            files.append(case.bytes_of(case.train()))
    if files[0] != files[1]:
        fail("They differ: draw from the generator in the arguments.")


def the_history_is_sound(case: AgentCase) -> None:
    """All values of the history are finite, the best return never falls, and every iteration adds steps."""
    history = case.trained.history
    for name in history.columns:
        if not np.isfinite(history[name]).all():
            fail(f"{name} holds {history[name].tolist()}.")
    if np.any(np.diff(history["best_return"]) < 0):
        fail(f"The best return is {history['best_return'].tolist()}.")
    steps = np.diff(history["training_steps"])
    interactions = np.diff(history["interactions"])
    longest = case.problem.horizon if case.kind.learner_type.iteration_is == "episode" else np.inf
    if not (np.all(steps > 0) and np.all(steps <= longest) and np.all(interactions >= steps)):
        fail(f"Training steps and interactions increase by {steps.tolist()} and {interactions.tolist()}.")


def settings_out_of_range_are_refused(case: AgentCase) -> None:
    """Settings that are out of range or not numbers raise `SettingError`."""
    for value in (-1, "many", float("nan")):
        changes: dict[str, Any] = {case.numeric: value}
        try:
            case.make(**changes)
        except SettingError:
            continue
        fail(f"{case.numeric}={value!r} was accepted.")


def a_world_that_raises_teaches_nothing(case: AgentCase) -> None:
    """An environment that raises ends training with `BadEnvironmentError`, and the agent does not change."""
    problem, switch = case.faulty_problem()
    agent = case.make(problem).learn(iterations=2, progress_bar=False)
    before = case.bytes_of(agent)
    switch[0] = True
    try:
        agent.learn(iterations=2, progress_bar=False)
    except BadEnvironmentError as error:
        if "step" not in str(error):
            fail(f"The error does not name the step: {error}")
    else:
        fail("It was learned from.")
    if case.bytes_of(agent) != before:
        fail("The agent has changed.")
    switch[0] = False
    agent.learn(iterations=1, progress_bar=False)


def _check_actions(case: AgentCase, agent: Agent | Policy, observations: Any) -> None:
    actions = case.act(agent, observations)
    if len(actions) != len(observations):
        fail(f"{len(actions)} actions for {len(observations)} observations.")
    for action in actions:
        if not case.problem.actions.space.contains(action):
            fail(f"{action!r} is not in {case.problem.actions.space}.")


AGENT_CHECKS: tuple[Requirement[AgentCase], ...] = tuple(
    Requirement(function)
    for function in (
        actions_are_in_their_space,
        a_batch_is_as_its_observations,
        acting_teaches_nothing,
        a_loaded_agent_is_as_it_was_saved,
        training_goes_on_to_the_same_bytes,
        a_copy_is_independent,
        the_same_seed_gives_the_same_bytes,
        the_history_is_sound,
        settings_out_of_range_are_refused,
        a_world_that_raises_teaches_nothing,
    )
)
