"""Guards for environments: invalid observations and rewards are refused, with step and value.

An observation beyond its declared range is played as it is, and said (see `Guard.beyond`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SpaqlError
from spaql.formatting import process_end
from spaql.kernels.partition.standardise import misfit
from spaql.problems.user_errors import message_of, place_of
from spaql.spaces import observation_names, space_bounds

MARGIN = 0.1
"""Part of its range by which an observation may lie out of bounds, because of noise. The last observation of
an episode is not compared with the bounds: leaving them often ends the episode."""
Floats = NDArray[np.float64]
_NUMBERS = "fiub"
"""Kinds of NumPy's types that are real numbers."""
_END = 5.0
"""Seconds to wait for the end of a process whose pipe is closed."""
_CRASHED = "the cause is in its code, or in a library that it uses, which crashed or ended the process"


class Guard:
    """Refuses invalid observations and rewards of a problem, naming the step and the value.

    The first observation beyond the bounds of a Box is kept; beyond those of a Discrete space it is refused.

    Parameters
    ----------
    name
        Of the environment, for messages.
    space
        Of the observations.
    episode
        What the steps belong to, for messages.
    names
        Of the observations, with their units, if they are known.
    """

    def __init__(
        self, name: str, space: gymnasium.Space[Any], episode: str, names: tuple[str, ...] = ()
    ) -> None:
        self.name = name
        self.episode = episode
        self.shape = space.shape or ()
        self._type = np.dtype(space.dtype)
        whole = "iub" if self._type.kind in "iub" else _NUMBERS
        self.kinds = "iu" if isinstance(space, Discrete) else whole
        assert isinstance(space, Box | Discrete)
        low, high = space_bounds(space)
        self._bounds = low, high
        if not isinstance(space, Discrete):
            with np.errstate(all="ignore"):
                margin = np.nan_to_num(MARGIN * (high - low), nan=np.inf, posinf=np.inf)
                low = low - margin
                high = high + margin
        self._low = low
        self._high = high
        self._names = observation_names(space, names)
        self._listed = isinstance(space, Discrete)
        self.step = 0
        """Of the episodes that were begun last."""
        self.beyond = ""
        """The first observation that left its declared range, as text."""

    def refusal(self, what: str, episode: int | None = None) -> BadEnvironmentError:
        """Return the error for an invalid result, with the step."""
        number = "" if episode is None else f" (number {episode})"
        return BadEnvironmentError(f"At step {self.step} of {self.episode}{number}, {self.name} {what}.")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Convert exceptions of an environment into errors that name the step."""
        try:
            yield
        except SpaqlError:
            raise
        except Exception as error:
            place = place_of(error)
            raise self.refusal(f"raised {message_of(error)}" + (f" ({place})" if place else "")) from error

    def check(self, observations: Any, running: NDArray[np.bool_], ended: NDArray[np.bool_]) -> None:
        """Refuse invalid observations in a batch, one per row; only those of running episodes count."""
        with self.explained():
            array = np.asarray(observations)
        if array.shape != (len(running), *self.shape):
            raise self.refusal(f"gave an observation of the shape {array.shape[1:]}, not {self.shape}")
        if array.dtype.kind not in self.kinds:
            what = f"gave an observation of the type {array.dtype}: {array[0]}"
            if array.dtype.kind == "f":
                what += f". Its space is one of {self._type}: make it one of floating-point numbers"
            raise self.refusal(what)
        batch = np.ascontiguousarray(array, np.float64).reshape(len(running), -1)
        if misfit(batch, self._low, self._high, running, ended) >= 0:
            self._judge(array, batch, running, ended)

    def check_step(
        self, observations: Any, rewards: Floats, running: NDArray[np.bool_], ended: NDArray[np.bool_]
    ) -> None:
        """Refuse invalid rewards and observations of a step."""
        bad = running & ~np.isfinite(rewards)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise self.refusal(f"gave the reward {rewards[row]}", row if len(running) > 1 else None)
        self.check(observations, running, ended)

    def _judge(
        self, array: NDArray[Any], batch: Floats, running: NDArray[np.bool_], ended: NDArray[np.bool_]
    ) -> None:
        """Refuse observations that are not finite or not in a list; note the first one beyond bounds."""
        beyond = (batch < self._low) | (batch > self._high)
        left = beyond & (running & ~ended)[:, np.newaxis]
        bad = ~np.isfinite(batch) & running[:, np.newaxis]
        bad = bad | left if self._listed else bad
        if bad.any():
            row, j = (int(index) for index in np.argwhere(bad)[0])
            x = batch[row, j]
            wrong = "holds NaN" if math.isnan(x) else "is infinite" if math.isinf(x) else "is out of bounds"
            what = f"gave an observation that {wrong} in number {j}: {array[row]}"
            raise self.refusal(what, None if len(running) == 1 else row)
        if left.any() and not self.beyond:
            row, j = (int(index) for index in np.argwhere(left)[0])
            low, high = (float(end[j]) for end in self._bounds)
            self.beyond = (
                f"{self._names[j]} was {batch[row, j]:.4g}, beyond its declared range of {low:g} to {high:g}"
            )

    def check_reward(self, reward: Any) -> float:
        """Return a reward; anything but a finite number is refused."""
        if np.ndim(reward) != 0 or np.asarray(reward).dtype.kind not in _NUMBERS:
            raise self.refusal(f"gave {reward!r} where a reward, one number, should be")
        if not math.isfinite(reward):
            raise self.refusal(f"gave the reward {float(reward)}")
        return float(reward)

    def check_flag(self, flag: Any, name: str) -> bool:
        """Return a flag; anything but true or false is refused."""
        if not isinstance(flag, bool | np.bool_ | int | np.integer):
            raise self.refusal(f"gave {flag!r} where {name}, true or false, should be")
        return bool(flag)


_RUNNING = np.ones(1, np.bool_)
_NOT_ENDED = np.zeros(1, np.bool_)


class GuardedEnv:
    """One guarded environment."""

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        guard: Guard,
        spaces: tuple[gymnasium.Space[Any], gymnasium.Space[Any]],
    ) -> None:
        self.guard = guard
        self._spaces = spaces
        self._env = make()

    def reset(self, seed: int) -> Any:
        """Start an episode; return the observation."""
        guard = self.guard
        guard.step = 0
        with guard.explained():
            observation, _ = self._env.reset(seed=seed)
            spaces = self._env.observation_space, self._env.action_space
        for was, now in zip(self._spaces, spaces, strict=True):
            if now is not was and now != was:
                raise guard.refusal(f"changed a space from {was} to {now}")
        guard.check([observation], _RUNNING, _NOT_ENDED)
        return observation

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        """Make a step; return the observation, the reward, and whether it terminated or was truncated."""
        guard = self.guard
        guard.step += 1
        with guard.explained():
            result = self._env.step(action)
        reward = guard.check_reward(result[1])
        terminated = guard.check_flag(result[2], "terminated")
        truncated = guard.check_flag(result[3], "truncated")
        guard.check([result[0]], _RUNNING, np.array([terminated]))
        return result[0], reward, terminated, truncated

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


class GuardedVectorEnv:
    """Guarded environments that are stepped together."""

    def __init__(self, env: VectorEnv[Any, Any, Any], guard: Guard) -> None:
        self._env = env
        self.guard = guard
        self._everywhere = np.ones(env.num_envs, np.bool_)
        self._sound = True
        self.info: dict[str, Any] = {}
        """Of the last step."""

    def reset(self, seed: int) -> Any:
        """Start an episode in each; return the observations."""
        self.guard.step = 0
        with self._guarded():
            observations, _ = self._env.reset(seed=seed)
        self.guard.check(observations, self._everywhere, ~self._everywhere)
        return observations

    def step(
        self, actions: Any, running: NDArray[np.bool_]
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Make a step in each; results of those that are not running are ignored."""
        guard = self.guard
        guard.step += 1
        with self._guarded():
            observations, raw_rewards, terminated, truncated, self.info = self._env.step(actions)
            # Some environments return JAX arrays.
            rewards = np.asarray(raw_rewards, np.float64).reshape(len(running))
            terminated = np.asarray(terminated, np.bool_)
            truncated = np.asarray(truncated, np.bool_)
        guard.check_step(observations, rewards, running, terminated)
        return observations, rewards, terminated, truncated

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            with self.guard.explained():
                if not isinstance(self._env, AsyncVectorEnv):
                    yield
                    return
                with warnings.catch_warnings():
                    # Gymnasium warns of an error in a process before it raises it.
                    warnings.filterwarnings("ignore", ".*ERROR: ")
                    try:
                        yield
                    except (EOFError, ConnectionError) as error:
                        raise self.guard.refusal(_process_ended(self._env)) from error
        except BadEnvironmentError:
            self._sound = False
            raise

    def close(self) -> None:
        """Close the environments; failed processes, which may hang, are killed."""
        if isinstance(self._env, AsyncVectorEnv) and not self._sound:
            # Its own `close` would wait for the step that failed.
            for process, pipe in zip(self._env.processes, self._env.parent_pipes, strict=True):
                process.kill()
                process.join()
                if pipe is not None:
                    pipe.close()
            self._env.closed = True
        else:
            self._env.close()


def _process_ended(env: AsyncVectorEnv) -> str:
    """Return how the first process of an environment ended, of which its pipe says only that it did."""
    ended = wait([process.sentinel for process in env.processes], _END)
    process = next((process for process in env.processes if process.sentinel in ended), env.processes[0])
    process.join(_END)
    how = "" if process.exitcode is None else f" ({process_end(process.exitcode)})"
    return f"ended its process{how}: {_CRASHED}"


def in_processes(make: Callable[[], gymnasium.Env[Any, Any]], n: int) -> AsyncVectorEnv:
    """Return n environments in separate processes."""
    try:
        return AsyncVectorEnv([make] * n, autoreset_mode=AutoresetMode.NEXT_STEP)
    except (EOFError, ConnectionError) as error:
        raise BadEnvironmentError(
            f"The environment ended its process when it was made: {_CRASHED}."
        ) from error
