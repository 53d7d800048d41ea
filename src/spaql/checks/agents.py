"""The checks of an algorithm: what a learner of the user's own may get wrong."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete

from spaql.agents import Agent
from spaql.agents.agent_file import load_agent
from spaql.checks.agent_case import AgentCase
from spaql.checks.episodes import global_generators, global_seed
from spaql.checks.report import CheckReport, Requirement, fail, run_all, skip
from spaql.errors import BadEnvironmentError, SettingError
from spaql.evaluation import evaluate
from spaql.problems import EnvironmentLike


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


def an_untrained_policy_acts(case: AgentCase) -> None:
    """The policy of an untrained agent returns actions of the action space."""
    _in_space(case, case.make().policy.predict(case.observations)[0])


def a_batch_gives_a_row_each(case: AgentCase) -> None:
    """For a batch of observations, one action of the action space is returned for each."""
    actions, _ = case.trained.predict(case.observations)
    if len(actions) != len(case.observations):
        fail(f"{len(actions)} actions for {len(case.observations)} observations.")
    _in_space(case, actions)


def a_batch_is_as_its_observations(case: AgentCase) -> None:
    """Deterministic actions are the same for a batch and for its observations one by one."""
    together = case.act(case.trained, case.observations)
    alone = [case.act(case.trained, x) for x in case.observations]
    for i, (a, b) in enumerate(zip(together, alone, strict=True)):
        if not np.array_equal(a, b):
            fail(f"The action for {case.observations[i]} is {b} alone and {a} in a batch.")


def far_observations_are_given_actions(case: AgentCase) -> None:
    """Actions for observations far out of bounds, including infinite ones, are in the action space."""
    space = case.problem.states.space
    if isinstance(space, Discrete):
        skip("Observations are numbers of a list.")
    far = np.array([np.full(space.shape, x) for x in (np.inf, -np.inf, 1e30, -1e30, 0.0)], np.float64)
    _in_space(case, case.act(case.trained, far))


def acting_teaches_nothing(case: AgentCase) -> None:
    """An agent does not change when it acts."""
    agent = case.train(1)
    before = case.bytes_of(agent)
    agent.predict(case.observations)
    agent.policy.act(case.observations, np.zeros(len(case.observations), np.int64), None)
    if case.bytes_of(agent) != before:
        fail("Its file would differ.")


def a_loaded_agent_acts_as_before(case: AgentCase) -> None:
    """A loaded agent returns the actions of the one that was saved."""
    loaded = _reloaded(case)
    if not np.array_equal(*(case.act(agent, case.observations) for agent in (loaded, case.trained))):
        fail("They differ.")


def saving_again_gives_the_same_bytes(case: AgentCase) -> None:
    """Saving a loaded agent writes the same file."""
    if case.bytes_of(_reloaded(case)) != case.bytes_of(case.trained):
        fail("The files differ.")


def training_goes_on_to_the_same_bytes(case: AgentCase) -> None:
    """Interrupted and resumed training ends in the same bytes as training without a break."""
    half = case.make().learn(
        iterations=4, callback=lambda agent, row: row["iteration"] < 2, progress_bar=False
    )
    half.save(case.folder / "half.spaql")
    resumed = load_agent(case.folder / "half.spaql", env=case.problem).learn(iterations=2, progress_bar=False)
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
        fail("They differ.")


def learning_leaves_global_generators_alone(case: AgentCase) -> None:
    """Neither Python's nor NumPy's global random generator is used."""
    before = global_generators()
    case.train(2)
    if global_generators() != before:
        fail("One of them was used: draw from the generator in the arguments.")


def the_history_counts_steps(case: AgentCase) -> None:
    """Training steps increase with every iteration, and interactions by as much or more."""
    history = case.trained.history
    steps = np.diff(history["training_steps"])
    interactions = np.diff(history["interactions"])
    longest = case.problem.horizon if case.kind.learner_type.iteration_is == "episode" else np.inf
    if not (np.all(steps > 0) and np.all(steps <= longest) and np.all(interactions >= steps)):
        fail(f"They increase by {steps.tolist()} and {interactions.tolist()}.")


def the_history_is_finite(case: AgentCase) -> None:
    """Every number of the history is finite, and the best return never falls."""
    history = case.trained.history
    for name in history.columns:
        if not np.isfinite(history[name]).all():
            fail(f"{name} holds {history[name].tolist()}.")
    if np.any(np.diff(history["best_return"]) < 0):
        fail(f"The best return is {history['best_return'].tolist()}.")


def settings_out_of_range_are_refused(case: AgentCase) -> None:
    """Settings that are out of range or not numbers raise `SettingError`."""
    for value in (-1, "many", float("nan")):
        changes: dict[str, Any] = {case.numeric: value}
        try:
            case.make(**changes)
        except SettingError:
            continue
        fail(f"{case.numeric}={value!r} was accepted.")


def evaluations_repeat(case: AgentCase) -> None:
    """Two evaluations with one seed have the same returns, and do not change the agent."""
    before = case.bytes_of(case.trained)
    first, second = (evaluate(case.trained, episodes=3, seed=5).returns.tolist() for _ in range(2))
    if first != second:
        fail(f"They returned {first}, then {second}.")
    if case.bytes_of(case.trained) != before:
        fail("The agent has changed.")


def a_world_that_raises_teaches_nothing(case: AgentCase) -> None:
    """An environment that raises ends training with `BadEnvironmentError`, and the agent does not change."""

    def boom(answer: tuple[Any, ...]) -> Any:
        raise RuntimeError("the simulator has diverged")

    problem, switch = case.faulty_problem(boom)
    agent = case.make(problem).learn(iterations=2, progress_bar=False)
    before = case.bytes_of(agent)
    switch[0] = True
    try:
        agent.learn(iterations=2, progress_bar=False)
    except BadEnvironmentError as error:
        if "step" not in str(error):
            fail(f"The error does not name the step: {error}")
    except Exception as error:
        fail(f"It raised {type(error).__name__}: {error}.")
    else:
        fail("It was learned from.")
    if case.bytes_of(agent) != before:
        fail("The agent has changed.")
    switch[0] = False
    agent.learn(iterations=1, progress_bar=False)


def large_rewards_leave_a_sound_agent(case: AgentCase) -> None:
    """A reward of 1e308 is learned from or raises; either way the agent acts, and can be saved."""
    problem, switch = case.faulty_problem(lambda answer: (answer[0], 1e308, *answer[2:]))
    agent = case.make(problem).learn(iterations=1, progress_bar=False)
    switch[0] = True
    with contextlib.suppress(BadEnvironmentError):
        agent.learn(iterations=2, progress_bar=False)
    case.act(agent, case.observations)
    agent.save(case.folder / "large.spaql")
    type(agent).load(case.folder / "large.spaql", env=problem)


def _in_space(case: AgentCase, actions: Any) -> None:
    space = case.problem.actions.space
    for action in actions:
        if not space.contains(action):
            fail(f"{action!r} is not in {space}.")


def _reloaded(case: AgentCase) -> Agent:
    case.trained.save(case.folder / "saved.spaql")
    return load_agent(case.folder / "saved.spaql", env=case.problem)


AGENT_CHECKS: tuple[Requirement[AgentCase], ...] = tuple(
    Requirement(function)
    for function in (
        an_untrained_policy_acts,
        a_batch_gives_a_row_each,
        a_batch_is_as_its_observations,
        far_observations_are_given_actions,
        acting_teaches_nothing,
        a_loaded_agent_acts_as_before,
        saving_again_gives_the_same_bytes,
        training_goes_on_to_the_same_bytes,
        a_copy_is_independent,
        the_same_seed_gives_the_same_bytes,
        learning_leaves_global_generators_alone,
        the_history_counts_steps,
        the_history_is_finite,
        settings_out_of_range_are_refused,
        evaluations_repeat,
        a_world_that_raises_teaches_nothing,
        large_rewards_leave_a_sound_agent,
    )
)
