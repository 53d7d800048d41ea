"""Checks of learning: it is repeatable, counts its steps, and survives faulty environments."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from spaql.agents import Agent
from spaql.checks.agent_case import ITERATIONS, AgentCase
from spaql.checks.episodes import global_generators, global_seed
from spaql.checks.report import fail
from spaql.errors import BadEnvironmentError, SettingError
from spaql.evaluation import evaluate


def the_same_seed_gives_the_same_bytes(case: AgentCase) -> None:
    """Two agents of one seed end in the same bytes, whatever the state of global random generators."""
    found = []
    for outside in (1, 2):
        with global_seed(outside):
            found.append(case.bytes_of(case.train()))
    if found[0] != found[1]:
        fail("They differ.")


def learning_leaves_global_generators_alone(case: AgentCase) -> None:
    """Neither Python's nor NumPy's global random generator is used."""
    before = global_generators()
    case.train(2)
    if global_generators() != before:
        fail("One of them was used: draw from the generator in the arguments.")


def the_history_counts_iterations(case: AgentCase) -> None:
    """The history has a row for each iteration, and one for the untrained agent if that is evaluated."""
    rows = case.trained.history["iteration"].tolist()
    if rows != list(range(case.first_row, ITERATIONS + 1)):
        fail(f"Its rows are {rows}.")


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


def time_steps_are_kept_to(case: AgentCase) -> None:
    """With `total_timesteps`, training ends in the iteration in which they are reached."""
    agent = case.make().learn(total_timesteps=30, progress_bar=False)
    steps = [0, *agent.history["training_steps"].tolist()]
    if not steps[-2] < 30 <= steps[-1]:
        fail(f"The steps were {steps}.")


def a_callback_stops_it(case: AgentCase) -> None:
    """A callback sees every row, and training ends when it returns False."""
    seen: list[float] = []

    def stop_after_three(agent: Agent, row: dict[str, float]) -> bool:
        seen.append(row["iteration"])
        return len(seen) < 3

    case.make().learn(iterations=20, callback=stop_after_three, progress_bar=False)
    if seen != [case.first_row + i for i in range(3)]:
        fail(f"It saw {seen}.")


def unknown_settings_are_refused(case: AgentCase) -> None:
    """An unknown setting raises `SettingError`."""
    try:
        case.make(no_such_setting=1)
    except SettingError:
        return
    fail("It was accepted.")


def settings_out_of_range_are_refused(case: AgentCase) -> None:
    """Settings that are out of range or not numbers raise `SettingError`."""
    for value in (-1, "many", float("nan")):
        changes: dict[str, Any] = {case.numeric: value}
        try:
            case.make(**changes)
        except SettingError:
            continue
        fail(f"{case.numeric}={value!r} was accepted.")


def settings_are_frozen(case: AgentCase) -> None:
    """The settings of an agent cannot be changed."""
    settings = case.trained.settings
    try:
        setattr(settings, case.numeric, 7)
    except dataclasses.FrozenInstanceError:
        return
    fail("They were.")


def evaluations_repeat(case: AgentCase) -> None:
    """Two evaluations with one seed have the same returns, and do not change the agent."""
    before = case.bytes_of(case.trained)
    first, second = (evaluate(case.trained, episodes=3, seed=5).returns.tolist() for _ in range(2))
    if first != second:
        fail(f"They returned {first}, then {second}.")
    if case.bytes_of(case.trained) != before:
        fail("The agent has changed.")


def nan_in_an_observation_teaches_nothing(case: AgentCase) -> None:
    """An observation of NaN ends training with `BadEnvironmentError`, and the agent does not change."""
    spoiled = np.full(case.problem.states.space.shape or (), np.nan)
    _teaches_nothing(case, lambda answer: (spoiled, *answer[1:]))


def a_reward_of_nan_teaches_nothing(case: AgentCase) -> None:
    """A reward of NaN ends training with `BadEnvironmentError`, and the agent does not change."""
    _teaches_nothing(case, lambda answer: (answer[0], float("nan"), *answer[2:]))


def an_infinite_reward_teaches_nothing(case: AgentCase) -> None:
    """An infinite reward ends training with `BadEnvironmentError`, and the agent does not change."""
    _teaches_nothing(case, lambda answer: (answer[0], -np.inf, *answer[2:]))


def a_shape_that_changes_teaches_nothing(case: AgentCase) -> None:
    """A new shape of observations ends training with `BadEnvironmentError`, and the agent does not change."""
    spoiled = np.zeros((case.problem.states.dims + 1,))
    _teaches_nothing(case, lambda answer: (spoiled, *answer[1:]))


def a_world_that_raises_teaches_nothing(case: AgentCase) -> None:
    """An environment that raises ends training with `BadEnvironmentError`, and the agent does not change."""

    def boom(answer: tuple[Any, ...]) -> Any:
        raise RuntimeError("the simulator has diverged")

    _teaches_nothing(case, boom)


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


def _teaches_nothing(case: AgentCase, spoil: Callable[[tuple[Any, ...]], Any]) -> None:
    problem, switch = case.faulty_problem(spoil)
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


LEARNING = (
    the_same_seed_gives_the_same_bytes,
    learning_leaves_global_generators_alone,
    the_history_counts_iterations,
    the_history_counts_steps,
    the_history_is_finite,
    time_steps_are_kept_to,
    a_callback_stops_it,
    unknown_settings_are_refused,
    settings_out_of_range_are_refused,
    settings_are_frozen,
    evaluations_repeat,
    nan_in_an_observation_teaches_nothing,
    a_reward_of_nan_teaches_nothing,
    an_infinite_reward_teaches_nothing,
    a_shape_that_changes_teaches_nothing,
    a_world_that_raises_teaches_nothing,
    large_rewards_leave_a_sound_agent,
)
