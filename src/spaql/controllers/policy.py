"""The interface that evaluation, interpretation, export and baselines depend on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from gymnasium import Space
from numpy.typing import NDArray

from spaql.entry_points import Pictured
from spaql.errors import SettingError
from spaql.formatting import counted
from spaql.kernels.controller import ControllerArrays

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
