"""Checks of the actions of an agent."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.checks.agent_case import AgentCase
from spaql.checks.report import fail, skip
from spaql.controllers import controller_of
from spaql.errors import BadEnvironmentError, SpaqlError


def an_untrained_agent_acts(case: AgentCase) -> None:
    """An untrained agent returns actions of the action space."""
    _in_space(case, case.make().predict(case.observations)[0])


def one_observation_gives_one_action(case: AgentCase) -> None:
    """For one observation, one action of the action space is returned, of its type."""
    space = case.problem.actions.space
    action, _ = case.trained.predict(case.observations[0], deterministic=True)
    if not space.contains(action):
        fail(f"It is {action!r}, not in {space}.")
    if isinstance(space, Box) and np.asarray(action).dtype != space.dtype:
        fail(f"It is of the type {np.asarray(action).dtype}, not {space.dtype}.")


def a_batch_gives_a_row_each(case: AgentCase) -> None:
    """For a batch of observations, one action of the action space is returned for each."""
    actions, _ = case.trained.predict(case.observations)
    if len(actions) != len(case.observations):
        fail(f"{len(actions)} actions for {len(case.observations)} observations.")
    _in_space(case, actions)


def an_empty_batch_gives_nothing(case: AgentCase) -> None:
    """For no observations, no actions are returned."""
    actions = case.act(case.trained, case.observations[:0])
    if len(actions):
        fail(f"It returned {actions!r}.")


def a_batch_is_as_its_observations(case: AgentCase) -> None:
    """Deterministic actions are the same for a batch and for its observations one by one."""
    together = case.act(case.trained, case.observations)
    alone = [case.act(case.trained, x) for x in case.observations]
    for i, (a, b) in enumerate(zip(together, alone, strict=True)):
        if not np.array_equal(a, b):
            fail(f"The action for {case.observations[i]} is {b} alone and {a} in a batch.")


def the_order_of_a_batch_does_not_matter(case: AgentCase) -> None:
    """Deterministic actions do not depend on the other observations of a batch."""
    forth = case.act(case.trained, case.observations)
    back = case.act(case.trained, case.observations[::-1])
    if not np.array_equal(forth, back[::-1]):
        fail("The actions differ for the reversed batch.")


def actions_repeat(case: AgentCase) -> None:
    """Deterministic actions are the same at every call."""
    first, second = (case.act(case.trained, case.observations) for _ in range(2))
    if not np.array_equal(first, second):
        fail("Two calls returned different actions.")


def observations_are_left_alone(case: AgentCase) -> None:
    """Observations may be read-only, and are not modified."""
    read_only = case.observations.copy()
    read_only.setflags(write=False)
    case.trained.predict(read_only)
    writable = case.observations.copy()
    case.trained.predict(writable)
    if not np.array_equal(writable, read_only):
        fail("They were modified.")


def lists_and_doubles_are_observations(case: AgentCase) -> None:
    """The action is the same for an observation as a list, or in double precision."""
    if isinstance(case.problem.states.space, Discrete):
        skip("Observations are numbers of a list.")
    x = case.observations[0]
    expected = case.act(case.trained, x)
    for form in (x.tolist(), x.astype(np.float64), np.asfortranarray(np.stack([x, x]))[0]):
        if not np.array_equal(case.act(case.trained, form), expected):
            fail(f"It differs for a {type(form).__name__}.")


def far_observations_are_given_actions(case: AgentCase) -> None:
    """Actions for observations far out of bounds, including infinite ones, are in the action space."""
    space = case.problem.states.space
    if isinstance(space, Discrete):
        skip("Observations are numbers of a list.")
    far = np.array([np.full(space.shape, x) for x in (np.inf, -np.inf, 1e30, -1e30, 0.0)], np.float64)
    _in_space(case, case.act(case.trained, far))


def nan_is_refused(case: AgentCase) -> None:
    """An observation that holds NaN raises `BadEnvironmentError`."""
    if isinstance(case.problem.states.space, Discrete):
        skip("Observations are numbers of a list.")
    batch = case.observations.copy()
    batch[1] = np.nan
    _refused(lambda: case.act(case.trained, batch), BadEnvironmentError)


def other_shapes_are_refused(case: AgentCase) -> None:
    """An observation of another shape raises an error of spaql."""
    dims = case.problem.states.dims
    for shape in ((2 * dims + 1,), (3, 2 * dims), (2, 2, dims)):
        _refused(lambda shape=shape: case.act(case.trained, np.zeros(shape)), SpaqlError)


def acting_teaches_nothing(case: AgentCase) -> None:
    """An agent does not change when it acts."""
    agent = case.train(1)
    before = case.bytes_of(agent)
    agent.predict(case.observations)
    agent.policy.act(case.observations, np.zeros(len(case.observations), np.int64), None)
    if case.bytes_of(agent) != before:
        fail("Its file would differ.")


def the_policy_acts_as_the_agent(case: AgentCase) -> None:
    """The policy returns the actions of the agent."""
    steps = np.zeros(len(case.observations), np.int64)
    policy = case.trained.policy.act(case.observations, steps, None)
    if not np.array_equal(policy, case.act(case.trained, case.observations)):
        fail("They differ.")


def rules_are_the_policy(case: AgentCase) -> None:
    """The controller that is made of a policy returns its actions."""
    policy = case.trained.policy
    if policy.arrays is None:
        skip(f"A {type(policy).__name__} is no tree of rules.")
    if isinstance(case.problem.states.space, Discrete):
        skip("Observations are numbers of a list.")
    tree = controller_of(case.trained, 0 if policy.time_variant else None)
    actions = policy.act(case.observations, np.zeros(len(case.observations), np.int64), None)
    if not np.array_equal(tree.act(case.observations), actions):
        fail("They differ.")


def _in_space(case: AgentCase, actions: Any) -> None:
    space = case.problem.actions.space
    for action in actions:
        if not space.contains(action):
            fail(f"{action!r} is not in {space}.")


def _refused(call: Any, kind: type[SpaqlError]) -> None:
    try:
        answer = call()
    except kind:
        return
    except Exception as error:
        fail(f"It raised {type(error).__name__}: {error}.")
    fail(f"It returned {answer!r}.")


ACTING = (
    an_untrained_agent_acts,
    one_observation_gives_one_action,
    a_batch_gives_a_row_each,
    an_empty_batch_gives_nothing,
    a_batch_is_as_its_observations,
    the_order_of_a_batch_does_not_matter,
    actions_repeat,
    observations_are_left_alone,
    lists_and_doubles_are_observations,
    far_observations_are_given_actions,
    nan_is_refused,
    other_shapes_are_refused,
    acting_teaches_nothing,
    the_policy_acts_as_the_agent,
    rules_are_the_policy,
)
