"""Policies, from raw observations to raw actions: what evaluation and export know; and what has a policy."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from spaql.entry_points import Pictured
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.kernels.controller import ControllerArrays
from spaql.kernels.numerics import Floats
from spaql.kernels.partition.balls import INTERVAL
from spaql.spaces import StandardActions, StandardStates, environment_actions

if TYPE_CHECKING:
    from spaql.controllers.controller import Controller


Rng = np.random.Generator


class Moments(NamedTuple):
    """What is known at each observation of an episode, one row each."""

    known: NDArray[np.float64]
    """The observation, and the features that a controller computes."""
    memory: NDArray[np.float64]
    """What a controller remembers before the sample; of other policies without columns."""


class Policy(Pictured, ABC):
    """A map from raw observations to raw actions."""

    observation_space: Space[Any]
    action_space: Space[Any]
    time_variant: bool = False
    """Whether the action depends on the time step."""
    sample_time: float | None = None
    """Seconds between samples, of a controller with memory."""
    read: NDArray[np.float64] | None = None
    """What rules and laws read in the last sample, if it plays episodes and that is not the observation."""
    draws: bool = False
    """Whether it draws actions, if it is given a generator."""

    def __repr__(self) -> str:
        size, word = self.size
        return f"{type(self).__name__}({'' if size is None else counted(size, word)})"

    @property
    def known(self) -> tuple[str, ...]:
        """Names of the observations, and of the features that are computed; empty if there are none."""
        return ()

    @property
    def named_actions(self) -> tuple[str, ...]:
        """Names of the discrete actions, or of the components of an action; empty if there are none."""
        return ()

    @property
    def size(self) -> tuple[int | None, str]:
        """How large it is, and the unit of that: leaves or arms; None if that is not known."""
        return None, ""

    @property
    def remembers(self) -> bool:
        """Whether its actions depend on what it has observed before."""
        return False

    @property
    def arrays(self) -> ControllerArrays | None:
        """The controller as the closed loop reads it; None for a policy that is no such controller."""
        return None

    @abstractmethod
    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions.

        Parameters
        ----------
        observations
            Raw observations, one per row.
        steps
            The time step of each, counted from 0.
        rng
            Generator for policies that draw actions; with None, actions are deterministic.
        """

    def for_episodes(self, n: int) -> Policy:
        """Return the policy that plays n new episodes, one a row of every batch: itself if it has no memory.

        Whoever plays episodes calls the `act` of what is returned, once a step, with all rows.
        """
        return self

    def moments(self, observations: NDArray[np.float64]) -> Moments:
        """Return what is known at each observation of an episode."""
        return Moments(observations, np.empty((len(observations), 0)))

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
        *,
        rng: Rng | None = None,
    ) -> tuple[Any, tuple[NDArray[Any], ...] | None]:
        """Return the action for one observation or a batch of them, and the next state.

        The signature is Stable-Baselines3's. The state is the time step of a time-variant policy, the memory
        of a controller that has one, and None for every other policy; an `episode_start` resets it.
        """
        batch, single = self._batch(observation)
        steps = np.zeros(len(batch), np.int64) if state is None else state[0]
        if episode_start is not None:
            steps = np.where(episode_start, 0, steps)
        if deterministic:
            rng = None
        elif rng is None:
            rng = np.random.default_rng()
        actions = self.act(batch, steps, rng)
        return (actions[0] if single else actions), ((steps + 1,) if self.time_variant else None)

    def _batch(self, observation: Any) -> tuple[NDArray[Any], bool]:
        """Return observations as a batch, and whether there was only one, without a batch."""
        shape = self.observation_space.shape or ()
        array = np.asarray(observation)
        single = array.shape == shape
        if (not single and array.shape[1:] != shape) or array.ndim > 1 + len(shape):
            raise SettingError(
                f"An observation has the shape {shape}, and a batch of them (n, ...): this is {array.shape}."
            )
        return array.reshape(-1, *shape), single


class RandomPolicy(Policy):
    """Draw every action uniformly, whatever the observation: the lower baseline for a policy."""

    def __init__(self, states: StandardStates, actions: StandardActions) -> None:
        self.actions = actions
        self.observation_space = states.space
        self.action_space = actions.space

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        rng = rng or np.random.default_rng(0)
        uniforms = rng.random((len(steps), self.actions.dims))
        sizes = np.array(self.actions.sizes)
        return self.actions.restore(
            np.where(sizes == INTERVAL, 2.0 * uniforms - 1.0, np.floor(uniforms * sizes))
        )


class RecordingPolicy(Policy):
    """Act as the policy does, and record observations and actions."""

    def __init__(self, policy: Policy) -> None:
        self.observation_space = policy.observation_space
        self.action_space = policy.action_space
        self.time_variant = policy.time_variant
        self._policy = policy
        self._observed: list[NDArray[np.float64]] = []
        self._done: list[NDArray[np.float64]] = []
        self._read: list[NDArray[np.float64]] = []

    def for_episodes(self, n: int) -> Policy:
        """Return the policy that plays n new episodes; it shares the record with this one."""
        playing = copy.copy(self)
        playing._policy = self._policy.for_episodes(n)
        return playing

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        self._observed.append(np.array(observations, np.float64).reshape(len(steps), -1))
        actions = self._policy.act(observations, steps, rng)
        read = self._policy.read
        self._read.append(self._observed[-1] if read is None else read)
        self._done.append(np.array(actions, np.float64).reshape(len(steps), -1))
        return actions

    @property
    def played(self) -> NDArray[np.float64]:
        """The recorded actions, one per row."""
        return np.concatenate(self._done)

    @property
    def visited(self) -> NDArray[np.float64]:
        """The recorded observations, one per row."""
        return np.concatenate(self._observed)

    @property
    def inputs(self) -> NDArray[np.float64]:
        """What the rules and laws of a controller read, one row for each recorded observation."""
        return np.concatenate(self._read)

    def episodes(self, lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Return the observations of every episode of an evaluation, given the lengths of the episodes.

        Environments are stepped together until the last episode ends; observations after the end of each
        episode are left out.
        """
        return _by_episode(self._observed, lengths)

    def episodes_of_actions(self, lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
        """Return the actions of every episode of an evaluation, one per row."""
        return _by_episode(self._done, lengths)


def _by_episode(calls: list[NDArray[np.float64]], lengths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """Return what was recorded in calls, which have a row for each episode of a batch, by episode."""
    episodes: list[NDArray[np.float64]] = []
    call = 0
    while len(episodes) < len(lengths):
        together = lengths[len(episodes) : len(episodes) + len(calls[call])]
        batch = calls[call : call + int(together.max())]
        episodes += [np.array([rows[i] for rows in batch[:n]]) for i, n in enumerate(together.tolist())]
        call += len(batch)
    return episodes


class Decisions(NamedTuple):
    """What a controller computed from a batch of observations: one row each."""

    inputs: Floats
    wish: Floats
    """What the laws asked for, before any limit."""
    action: Floats
    """Of discrete actions the number, from 0 on."""


class Playing(Policy):
    """A controller with the memory of the episodes that it plays."""

    def __init__(self, controller: Controller, memory: Floats) -> None:
        self.observation_space = controller.observation_space
        self.action_space = controller.action_space
        self._controller = controller
        self._memory = memory

    def act(self, observations: NDArray[Any], steps: NDArray[np.int64], rng: Rng | None) -> Any:
        """Return a batch of raw actions."""
        sample = self._controller.sample(observations, self._memory)
        self.read = sample.inputs
        return environment_actions(self.action_space, sample.action)


class HasPolicy(Protocol):
    """An agent, a controller, or anything else with a policy."""

    @property
    def policy(self) -> Policy:
        """The policy to use."""


PathLike = str | os.PathLike[str]
Source = Policy | HasPolicy | PathLike
"""A policy, such as a controller; an agent or design; or the path of a run folder or agent file."""


_readers: list[Callable[[PathLike], Any]] = []


def register_reader(read: Callable[[PathLike], Any]) -> None:
    """Register the function that reads files; it belongs to the agents, a layer above."""
    _readers[:] = [read]


def opened(source: Any) -> Any:
    """Return what a run folder or file holds, given by its path; anything else is returned as it is."""
    if not isinstance(source, str | os.PathLike):
        return source
    if not _readers:
        raise SettingError("To read a file, import spaql.agents first, or use spaql.load.")
    return _readers[0](source)


def policy_of(source: Source) -> Policy:
    """Return the policy of what a function was given.

    An agent whose training was stopped makes its policy first (see `spaql.Agent.conclude`).

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQL("cartpole200", seed=0)
    >>> policy_of(agent) is agent.policy is policy_of(agent.policy)
    True
    """
    owner = opened(source)
    if isinstance(owner, Policy):
        return owner
    conclude = getattr(owner, "conclude", None)
    policy = owner.policy if conclude is None else conclude()
    if not isinstance(policy, Policy):
        raise SettingError(f"{type(owner).__name__} has no policy of spaql: {type(policy).__name__} is none.")
    return policy
