"""The source of a problem's environments: an id with options, or an object to copy."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.utils import EzPickle
from gymnasium.wrappers import NormalizeObservation, NormalizeReward, TimeLimit

from spaql.entry_points import load_declared
from spaql.errors import BadEnvironmentError, SettingError, SpaqlWarning
from spaql.problems.classic import find_dynamics
from spaql.problems.dynamics import Dynamics
from spaql.problems.meaning import meaning_of
from spaql.problems.registry import PRESETS, Preset, make_named, plant_of_file, resolved_id
from spaql.problems.stage_cost import ConstraintLike, constraints_of
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


@dataclass(frozen=True)
class EnvironmentSource:
    """An id with options, or an object to copy."""

    name: str
    env: str | None
    options: Mapping[str, Any]
    template: Environment | None
    dynamics: Dynamics | None

    def probe(self, horizon: int | None) -> Environment:
        """Return an environment to inspect; without a horizon, the template itself."""
        if self.template is not None:
            return self.template if horizon is None else limited_copy(self.template, horizon)
        assert self.env is not None
        return make_named(self.env, horizon, self.options)

    @contextmanager
    def opened(self, horizon: int | None) -> Iterator[Environment]:
        """Yield an environment to inspect, and close it then, unless it is the template."""
        probe = self.probe(horizon)
        try:
            yield probe
        finally:
            if probe is not self.template:
                probe.close()

    def horizon(self, asked: int | None, probe: Environment) -> int:
        """Return the steps of an episode: the requested number, or else the environment's own limit."""
        kept = None if self.template is None else time_limit(self.template)
        if asked is not None and kept is not None and asked > kept:
            raise SettingError(
                f"The horizon of {asked} steps cannot be reached: the {self.name} that was given truncates "
                f"episodes after {kept}. Give it a longer time limit, or a horizon of at most {kept}."
            )
        declared = probe.spec.max_episode_steps if probe.spec is not None else None
        horizon = asked or time_limit(probe) or declared or meaning_of(probe).horizon
        if horizon is None:
            raise SettingError(
                f"{self.name} sets no limit to an episode: give a horizon, the steps of one.",
                settings={"horizon": "N"},
            )
        return horizon


def limited_copy(env: Environment, horizon: int) -> Environment:
    """Return a copy of an environment that truncates episodes at the horizon."""
    return TimeLimit(copied(env), horizon)


def find_source(env: Any, options: Mapping[str, Any] | None) -> tuple[EnvironmentSource, Preset | None]:
    """Return the source of what was given, and its preset if it has one."""
    if options and not isinstance(env, str):
        raise SettingError("Options are for environments that are given by their id: this one is made.")
    if isinstance(env, Dynamics):
        if not env.is_registered:
            raise SettingError(
                f"Something else has been registered as {env.id} since this plant was made: give each plant "
                "an id of its own."
            )
        return EnvironmentSource(env.id, env.id, {}, None, env), None
    if isinstance(env, str):
        return _of_name(env, options)
    if not isinstance(env, gymnasium.Env):
        raise SettingError(
            f"{env!r} is no environment: give an id, a Gymnasium environment (not its class, a function, or "
            "a vector of several) or spaql.Dynamics."
        )
    warn_of_lost_changes(env)
    return EnvironmentSource(type(env.unwrapped).__name__, None, {}, copied(env), None), None


def _of_name(env: str, options: Mapping[str, Any] | None) -> tuple[EnvironmentSource, Preset | None]:
    if (entry := plant_of_file(env)) is not None:
        env_id = f"{entry.module}:{load_declared(entry)}"
        return EnvironmentSource(env, env_id, {entry.name: env, **(options or {})}, None, None), None
    preset = PRESETS.get(env)
    env_id = preset.env if preset else resolved_id(env)  # a module that is imported may define dynamics
    name = env if preset else env_id
    dynamics = None if options else find_dynamics(env_id)
    return EnvironmentSource(name, env_id, dict(options or {}), None, dynamics), preset


def with_cost_option(
    options: Mapping[str, Any], cost: str | None, constraints: Iterable[ConstraintLike]
) -> dict[str, Any]:
    """Return the options of a plant in a file with a cost and constraints, which it charges itself."""
    data = [constraint.as_data for constraint in constraints_of(constraints)] or None
    more = {name: x for name, x in (("cost", cost), ("constraints", data)) if x is not None}
    if twice := [name for name in more if name in options]:
        raise SettingError(f"{twice[0]} is given twice: in the options of the plant, and beside them.")
    return {**options, **more}


def refuse_running_statistics(env: Environment) -> None:
    """Refuse wrappers whose running statistics would differ between the copies of an environment."""
    for layer in layers(env):
        if isinstance(layer, NormalizeObservation | NormalizeReward) and layer.update_running_mean:
            raise SettingError(
                f"{type(layer).__name__} changes its statistics at every step, in each copy of the "
                "environment separately: leave it out, since spaql standardises observations by itself, or "
                "set its update_running_mean to False."
            )
