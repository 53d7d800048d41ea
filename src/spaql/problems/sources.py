"""The source of a problem's environments: an id with options, or an object to copy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gymnasium
from gymnasium.wrappers import NormalizeObservation, NormalizeReward, TimeLimit

from spaql.entry_points import load_declared
from spaql.errors import SettingError
from spaql.problems.classic import find_dynamics
from spaql.problems.dynamics import Dynamics
from spaql.problems.layers import copied, layers, time_limit, warn_of_lost_changes
from spaql.problems.meaning import meaning_of
from spaql.problems.presets import PRESETS, Preset
from spaql.problems.registry import declared_plant, is_model_file, make_named, plant_of_file, resolved_id
from spaql.problems.stage_cost import ConstraintLike, constraints_of

Environment = gymnasium.Env[Any, Any]
LEARNED = "spaql.learned_plants:spaql/LearnedPlant-v0"
"""The id of the environment that runs the model file of a learned plant."""


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


def file_option(env: str | None) -> str | None:
    """Return the option that names the file of a plant, None for an environment that runs no file."""
    if env is None or ":" not in env:
        return None
    return "model" if env == LEARNED else declared_plant(env)


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
    if is_model_file(env):
        return EnvironmentSource(env, LEARNED, {"model": env, **(options or {})}, None, None), None
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
