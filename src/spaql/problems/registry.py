"""Environments by name: the known names, making one, and errors for unknown names."""

import difflib
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, find_highest_version, get_env_id, parse_env_id

from spaql.entry_points import declared, find_declared
from spaql.errors import BadEnvironmentError, MissingExtraError, SpaqlError, SpaqlWarning
from spaql.problems.user_errors import describe_error, place_of


@dataclass(frozen=True, kw_only=True)
class Preset:
    """The paper's settings of a problem."""

    env: str
    horizon: int
    levels: int | None = None
    squash: Mapping[int, float] = field(default_factory=dict)
    reward_range: tuple[float, float] = (0.0, 1.0)
    summary: str


_HIGHEST_COST = math.pi**2 + 0.1 * 8**2 + 0.001 * 2**2
"""The highest cost of a step of Pendulum."""

PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "pendulum": Preset(
            env="Pendulum-v1", horizon=200, summary="swing a pendulum up, torque in [-2, 2] Nm"
        ),
        "pendulum-scaled": Preset(
            env="Pendulum-v1",
            horizon=200,
            reward_range=(-_HIGHEST_COST, 0.0),
            summary="the same, learning from rewards that are scaled to [0, 1]",
        ),
        "pendulum5": Preset(
            env="Pendulum-v1",
            horizon=200,
            levels=5,
            summary="pendulum with the torques -2, -1, 0, 1, 2 Nm",
        ),
        # phi_m squashes the velocities: m = 1/240 s/m for the cart, 1/21 s/rad for the pole.
        "cartpole200": Preset(
            env="CartPole-v1",
            horizon=200,
            squash=MappingProxyType({1: 240.0, 3: 21.0}),
            summary="balance a pole for 200 steps, pushing the cart left or right",
        ),
    }
)


PLANTS = "spaql.plants"
"""The entry points by which a package declares environments of files, each under the suffix of the files.

What is declared is the id of a Gymnasium environment, which its module registers, and which takes the file as
the option of that name, and a cost and constraints as the options `cost` and `constraints`.
"""


def environment_names() -> list[str]:
    """Return the known names: presets, then the ids registered in Gymnasium, each in its newest version."""
    newest: dict[str, EnvSpec] = {}
    for spec in gymnasium.registry.values():
        family = f"{spec.namespace}/{spec.name}"
        if family not in newest or (spec.version or 0) > (newest[family].version or 0):
            newest[family] = spec
    compiled_versions = {f"spaql/{name}" for name in gymnasium.registry}
    return [*PRESETS, *sorted({spec.id for spec in newest.values()} - compiled_versions)]


def check_environment(env: str) -> None:
    """Refuse a name that is neither a preset, nor the id of an environment, nor a file of a plant."""
    if env not in PRESETS and plant_of_file(env) is None:
        spec_of(env)


def plant_of_file(env: str) -> EntryPoint | None:
    """Return what declares the environment of a file, by its suffix; None if it is no such file."""
    suffix = re.search(r"\.(\w+)$", env)
    return None if suffix is None else find_declared(PLANTS, suffix[1])


def file_option(env: str | None) -> str | None:
    """Return the option that names the file of a plant, None for an environment that runs no file."""
    module = (env or "").rpartition(":")[0]
    return next((entry.name for entry in declared(PLANTS) if entry.module == module), None)


def spec_of(env: str) -> EnvSpec:
    """Return the spec of an environment; `module:id` imports the module first, as in `gymnasium.make`."""
    with _explained(env):
        return gymnasium.spec(_name_in_module(env))


def resolved_id(env: str) -> str:
    """Return the id that `gymnasium.make` makes: an id without a version gets the newest one, with a warning.

    The module of `module:id` is imported.
    """
    with _explained(env):
        name = _name_in_module(env)
        namespace, family, version = parse_env_id(name)
        newest = find_highest_version(namespace, family)
    if version is not None or newest is None:
        return env
    resolved = env.removesuffix(name) + get_env_id(namespace, family, newest)
    warnings.warn(
        f"{env} has no version: {resolved} is used, as by gymnasium.make.", SpaqlWarning, stacklevel=2
    )
    return resolved


def _name_in_module(env: str) -> str:
    """Return the id without its module, after importing that."""
    if re.match(r"[A-Za-z]:[/\\]", env) and ":" not in env[2:]:
        raise BadEnvironmentError(
            f"{env} is a path, and no environment: give an id, module:id, or the file of an FMU (.fmu)."
        )
    module, _, name = env.rpartition(":")
    if re.search(r"[/\\]|\.py$", module):
        file = re.split(r"[/\\]", module)[-1]
        written = f"{file.removesuffix('.py')}:{name}"
        raise BadEnvironmentError(
            f"Write {written}, in the folder of {file}: a module is wanted, not a file."
        )
    if module:
        import_module(module)
    return name


def make_named(env: str, horizon: int | None, options: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Return a new environment of an id."""
    limit = {} if horizon is None else {"max_episode_steps": horizon}
    with _explained(env):
        return gymnasium.make(env, disable_env_checker=True, **limit, **options)


@contextmanager
def _explained(env: str) -> Iterator[None]:
    try:
        yield
    except SpaqlError:
        raise
    except Exception as error:
        cannot = f"Gymnasium cannot make {env!r}: "
        module = env.rpartition(":")[0]
        if isinstance(error, gymnasium.error.UnregisteredEnv):
            raise BadEnvironmentError(cannot + _meant(env, error)) from error
        if extra := re.search(r"gymnasium\[(box2d|classic-control|mujoco)\]", str(error)):
            raise MissingExtraError(
                f"{cannot}it needs the extra {extra[1]}: pip install 'spaql[{extra[1]}]'."
            ) from error
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            advice = f"{error}. Run this in the folder of {error.name}.py, or install its package."
            raise BadEnvironmentError(cannot + advice) from error
        if isinstance(error, gymnasium.error.Error):
            raise BadEnvironmentError(f"{cannot}{error}") from error
        raise BadEnvironmentError(("" if place_of(error) else cannot) + describe_error(error)) from error


def _meant(env: str, error: gymnasium.error.UnregisteredEnv) -> str:
    """Return advice for an environment that is not registered, with the name probably meant."""
    module, colon, name = env.rpartition(":")
    for file in sorted(Path.cwd().glob("*.py")) if not module else ():
        if re.search(f"[\"']{re.escape(name)}[\"']", file.read_text(encoding="utf-8", errors="ignore")):
            return f"did you mean {file.stem}:{name}?"
    if near := _nearest_id(name):
        return f"did you mean {module}{colon}{near}?"
    if module:
        return (
            f"{module} registers no {name}: make spaql.Dynamics of this id in it, or gymnasium.register it."
        )
    return f"{error} (Presets beside Gymnasium's ids: {', '.join(PRESETS)}.)"


def _nearest_id(name: str) -> str | None:
    """Return the known name that was probably meant; a preset has no version."""
    family = _family(name)
    families = {
        _family(known): known
        for known in environment_names()
        if known not in PRESETS or family == name.lower()
    }
    near = difflib.get_close_matches(family, families, 1)
    return families[near[0]] if near else None


def _family(name: str) -> str:
    """Return a name in lower case, without its version."""
    return re.sub(r"-v\d+$", "", name.lower())
