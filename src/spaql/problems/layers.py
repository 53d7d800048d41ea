"""The layers of an environment, and copies of one that the user passed as an object."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from typing import Any

import gymnasium
from gymnasium.utils import EzPickle
from gymnasium.wrappers import TimeLimit

from spaql.errors import BadEnvironmentError, SettingError, SpaqlWarning
from spaql.problems.user_errors import message_of

Environment = gymnasium.Env[Any, Any]


def layers(env: Environment) -> Iterator[Environment]:
    """Yield the layers of an environment from the outermost wrapper to the environment itself."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env


def time_limit(env: Environment) -> int | None:
    """Return the fewest steps after which a wrapper of an environment truncates an episode, if any does.

    Examples
    --------
    >>> time_limit(gymnasium.wrappers.TimeLimit(gymnasium.make("MountainCar-v0"), 77))
    77
    """
    limits = (layer._max_episode_steps for layer in layers(env) if isinstance(layer, TimeLimit))
    return min(limits, default=None)


def copied(env: Environment) -> Environment:
    """Return a copy of an environment, with everything that was changed on it.

    Examples
    --------
    >>> env = gymnasium.make("Pendulum-v1")
    >>> env.unwrapped.max_torque = 0.5
    >>> copied(env).unwrapped.max_torque
    0.5
    """
    for layer in layers(env):
        for name, value in vars(layer).items():
            if callable(value) and callable(getattr(type(layer), name, None)):
                raise _refusal(env, f"its {name} was replaced, and a copy would call that of the original")
    try:
        return copy.deepcopy(env)
    except SettingError:  # it refuses copies, and says what to do instead
        raise
    except Exception as error:
        raise _refusal(env, message_of(error)) from error


def warn_of_lost_changes(env: Environment) -> None:
    """Warn if copies of an environment are made by its constructor, as those of a simulator in C++."""
    for layer in layers(env):
        if isinstance(layer, EzPickle):
            warnings.warn(
                f"A copy of {type(layer).__name__} is made by its constructor, without what was changed on "
                "the object later: give its id, or the changes as arguments.",
                SpaqlWarning,
                stacklevel=4,
            )


def _refusal(env: Environment, why: str) -> BadEnvironmentError:
    spec = env.unwrapped.spec
    id_will_do = "" if spec is None else f"give {spec.id!r} instead if that is what is meant; otherwise "
    return BadEnvironmentError(
        f"Training and evaluation need copies of the {type(env.unwrapped).__name__} that was given, and it "
        f"cannot be copied ({why}): {id_will_do}write a function that makes it, register that by "
        "gymnasium.register('Mine-v0', entry_point=function), and give 'Mine-v0'."
    )
