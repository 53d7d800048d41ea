"""Watching environments: what they give that is no observation or reward is refused, with step and value."""

from __future__ import annotations

import math
import multiprocessing
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Discrete
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from numpy.typing import NDArray

from spaql.errors import BadEnvironmentError, SpaqlError
from spaql.kernels.partition.standardise import misfit
from spaql.problems.user_errors import place_of, words_of

MARGIN = 0.1
"""Of the range of a number that it may lie out of bounds: noise carries numbers over the edge, and the last
observation of an episode, which is not held against bounds at all, often tells that it was left."""
_NUMBERS = "fiub"
"""Kinds of NumPy's types that are real numbers."""
_OLD_API = "That is the API of the old Gym: return"
_RESET = f"not an observation and a dictionary. {_OLD_API} (observation, info) from reset"


class OutOfBoundsError(BadEnvironmentError):
    """An observation that its space does not hold; its message says all that there is to say."""


class Guard:
    """Refuses observations and rewards of a problem that cannot be, naming the step and the value.

    Parameters
    ----------
    name
        Of the environment, for people.
    space
        Of the observations.
    episode
        What the steps are of, for people.
    """

    def __init__(self, name: str, space: gymnasium.Space[Any], episode: str) -> None:
        self.name, self.episode = name, episode
        self.shape = space.shape or ()
        self._type = np.dtype(space.dtype)
        whole = "iub" if self._type.kind in "iub" else _NUMBERS
        self.kinds = "iu" if isinstance(space, Discrete) else whole
        if isinstance(space, Discrete):
            first = float(space.start)
            low, high = np.array([first]), np.array([first + float(space.n) - 1.0])
        else:
            assert isinstance(space, gymnasium.spaces.Box)
            low, high = space.low.astype(np.float64), space.high.astype(np.float64)
        self._bounds = low.ravel(), high.ravel()
        if not isinstance(space, Discrete):
            with np.errstate(all="ignore"):
                margin = np.nan_to_num(MARGIN * (high - low), nan=np.inf, posinf=np.inf)
                low, high = low - margin, high + margin
        self._low, self._high = low.ravel(), high.ravel()
        self.step = 0

    def refusal(self, what: str, episode: int | None = None) -> BadEnvironmentError:
        """Say that something cannot be, where it happened."""
        number = "" if episode is None else f" (number {episode})"
        return BadEnvironmentError(f"At step {self.step} of {self.episode}{number}, {self.name} {what}.")

    @contextmanager
    def explained(self) -> Iterator[None]:
        """Turn what an environment raises into an error that names the step."""
        try:
            yield
        except multiprocessing.TimeoutError as error:
            raise self.refusal("took longer than its time limit for a step (step_timeout)") from error
        except SpaqlError:
            raise
        except Exception as error:
            place = place_of(error)
            what = f"raised {words_of(error)}" + (f" ({place})" if place else "")
            if "expected 5, got 4" in str(error):
                what += f". {_OLD_API} (observation, reward, terminated, truncated, info) from step"
            raise self.refusal(what) from error

    def check(self, observations: Any, running: NDArray[np.bool_], ended: NDArray[np.bool_]) -> None:
        """Refuse a batch of observations, one a row, of which those of running episodes count."""
        single = len(running) == 1
        with self.explained():
            array = np.asarray(observations)
        if array.shape != (len(running), *self.shape):
            raise self.refusal(f"gave an observation of the shape {array.shape[1:]}, not {self.shape}")
        if array.dtype.kind not in self.kinds:
            what = f"gave an observation of the type {array.dtype}: {array[0]}"
            if array.dtype.kind == "f":
                what += f". {_real_numbers(self._type)}"
            raise self.refusal(what)
        batch = np.ascontiguousarray(array, np.float64).reshape(len(running), -1)
        found = misfit(batch, self._low, self._high, running, ended)
        if found >= 0:
            row, j = divmod(found, batch.shape[1])
            x = batch[row, j]
            wrong = "holds NaN" if math.isnan(x) else "is infinite" if math.isinf(x) else "is out of bounds"
            what = f"gave an observation that {wrong} in number {j}: {array[row]}"
            if math.isfinite(x):
                low, high = (bounds[j] for bounds in self._bounds)
                what += f". The bounds are {low:g} and {high:g}: widen the observation space, or stay within"
            refusal = self.refusal(what, None if single else row)
            raise OutOfBoundsError(str(refusal)) if math.isfinite(x) else refusal

    def check_reward(self, reward: Any) -> float:
        """Refuse what is no finite number."""
        if np.ndim(reward) != 0 or np.asarray(reward).dtype.kind not in _NUMBERS:
            raise self.refusal(f"gave {reward!r} where a reward, one number, should be")
        if not math.isfinite(reward):
            raise self.refusal(f"gave the reward {float(reward)}")
        return float(reward)

    def check_flag(self, flag: Any, name: str) -> bool:
        """Refuse what is neither true nor false."""
        if not isinstance(flag, bool | np.bool_ | int | np.integer):
            raise self.refusal(f"gave {flag!r} where {name}, true or false, should be")
        return bool(flag)


_HERE = np.ones(1, np.bool_)
_NOT_ENDED = np.zeros(1, np.bool_)


class GuardedEnv:
    """One environment, watched; in a process of its own if its steps have a time limit."""

    def __init__(
        self,
        make: Callable[[], gymnasium.Env[Any, Any]],
        guard: Guard,
        spaces: tuple[gymnasium.Space[Any], gymnasium.Space[Any]],
        step_timeout: float | None = None,
    ) -> None:
        self._guard, self._spaces = guard, spaces
        self._apart = None if step_timeout is None else GuardedVectorEnv(apart(make, 1), guard, step_timeout)
        self._env = make() if self._apart is None else None

    def reset(self, seed: int) -> Any:
        """Begin an episode; gives the observation."""
        guard = self._guard
        if self._apart is not None:
            return self._apart.reset(seed)[0]
        assert self._env is not None
        guard.step = 0
        with guard.explained():
            result = self._env.reset(seed=seed)
            spaces = self._env.observation_space, self._env.action_space
        if not isinstance(result, tuple) or len(result) != 2:
            raise guard.refusal(f"returned {result!r} from reset, {_RESET}")
        for was, now in zip(self._spaces, spaces, strict=True):
            if now is not was and now != was:
                raise guard.refusal(f"changed a space from {was} to {now}")
        guard.check([result[0]], _HERE, _NOT_ENDED)
        return result[0]

    def step(self, action: Any) -> tuple[Any, float, bool, bool]:
        """Make a step; gives the observation, the reward, and whether it terminated or was truncated."""
        guard = self._guard
        if self._apart is not None:
            observations, rewards, *ends = self._apart.step([action], _HERE)
            return observations[0], float(rewards[0]), bool(ends[0][0]), bool(ends[1][0])
        assert self._env is not None
        guard.step += 1
        with guard.explained():
            result = self._env.step(action)
        reward = guard.check_reward(result[1])
        terminated, truncated = (
            guard.check_flag(result[2], "terminated"),
            guard.check_flag(result[3], "truncated"),
        )
        guard.check([result[0]], _HERE, np.array([terminated]))
        return result[0], reward, terminated, truncated

    def close(self) -> None:
        """Close the environment, or end its process."""
        if self._apart is not None:
            self._apart.close()
        elif self._env is not None:
            self._env.close()


class Answering(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One of many environments: what vector environments stumble over is named here.

    They raise on the result of a reset that is no pair, and on real numbers for a space of whole ones.
    """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Begin an episode."""
        result = self.env.reset(seed=seed, options=options)
        if not isinstance(result, tuple) or len(result) != 2:
            raise TypeError(f"{result!r} from reset is {_RESET}")
        self._check_type(result[0])
        return result

    def step(self, action: Any) -> Any:
        """Make a step."""
        result = self.env.step(action)
        self._check_type(result[0])
        return result

    def _check_type(self, observation: Any) -> None:
        kind = np.dtype(self.observation_space.dtype)
        if kind.kind in "iub" and isinstance(observation, np.ndarray) and observation.dtype.kind == "f":
            raise TypeError(f"an observation of the type {observation.dtype}. {_real_numbers(kind)}")


class GuardedVectorEnv:
    """Environments that are stepped together, watched."""

    def __init__(
        self, env: VectorEnv[Any, Any, Any], guard: Guard, step_timeout: float | None = None
    ) -> None:
        self._env, self.guard, self._step_timeout = env, guard, step_timeout
        self._everywhere = np.ones(env.num_envs, np.bool_)
        self._sound = True

    def reset(self, seed: int) -> Any:
        """Begin an episode in each; gives the observations."""
        self.guard.step = 0
        with self._watched():
            if self._step_timeout is None:
                observations, _ = self._env.reset(seed=seed)
            else:
                self._env.reset_async(seed=seed)  # type: ignore[attr-defined]
                observations, _ = self._env.reset_wait(self._step_timeout)  # type: ignore[attr-defined]
        self.guard.check(observations, self._everywhere, ~self._everywhere)
        return observations

    def step(
        self, actions: Any, running: NDArray[np.bool_]
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_]]:
        """Make a step in each; what those that are not running give counts for nothing."""
        guard = self.guard
        guard.step += 1
        with self._watched():
            if self._step_timeout is None:
                result = self._env.step(actions)
            else:
                self._env.step_async(actions)  # type: ignore[attr-defined]
                result = self._env.step_wait(self._step_timeout)  # type: ignore[attr-defined]
            observations, given, terminated, truncated, _ = result
            # Some give JAX's arrays.
            rewards = np.asarray(given, np.float64).reshape(len(running))
            terminated, truncated = np.asarray(terminated, np.bool_), np.asarray(truncated, np.bool_)
        bad = running & ~np.isfinite(rewards)
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise guard.refusal(f"gave the reward {rewards[row]}", row if len(running) > 1 else None)
        guard.check(observations, running, terminated)
        return observations, rewards, terminated, truncated

    @contextmanager
    def _watched(self) -> Iterator[None]:
        try:
            with self.guard.explained(), warnings.catch_warnings():
                # Gymnasium warns of an error in a process before it raises it.
                warnings.filterwarnings("ignore", ".*ERROR: ")
                yield
        except BadEnvironmentError:
            self._sound = False
            raise

    def close(self) -> None:
        """Close the environments; processes that failed, and may hang, are killed."""
        if isinstance(self._env, AsyncVectorEnv) and not self._sound:
            for process in self._env.processes:
                process.kill()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._env.close(terminate=True)
        else:
            self._env.close()


def _real_numbers(kind: np.dtype[Any]) -> str:
    return f"Its space is one of {kind}: make it one of floating-point numbers"


def apart(make: Callable[[], gymnasium.Env[Any, Any]], n: int) -> AsyncVectorEnv:
    """Make n environments in processes of their own."""
    return AsyncVectorEnv([make] * n, autoreset_mode=AutoresetMode.NEXT_STEP)
