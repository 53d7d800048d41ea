"""Environments by name: the known names, making one, and errors for unknown names."""

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from spaql.errors import BadEnvironmentError, MissingExtraError, SpaqlError
from spaql.problems.presets import PRESETS
from spaql.problems.user_errors import describe_error, place_of


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
    if env not in PRESETS and not is_model_file(env) and not is_fmu(env):
        spec_of(env)


def is_model_file(env: str) -> bool:
    """Return whether a name is that of a model file, which holds a learned plant."""
    return env.endswith(".spaql")


def is_fmu(env: str) -> bool:
    """Return whether a name is that of an FMU."""
    return env.endswith(".fmu")


def spec_of(env: str) -> EnvSpec:
    """Return the spec of an environment; `module:id` imports the module first, as in `gymnasium.make`."""
    if re.match(r"[A-Za-z]:[/\\]", env) and ":" not in env[2:]:
        raise BadEnvironmentError(
            f"{env} is a path, and no environment: give an id, module:id, or the file of a learned plant "
            "(.spaql) or of an FMU (.fmu)."
        )
    module, _, name = env.rpartition(":")
    if re.search(r"[/\\]|\.py$", module):
        file = re.split(r"[/\\]", module)[-1]
        written = f"{file.removesuffix('.py')}:{name}"
        raise BadEnvironmentError(
            f"Write {written}, in the folder of {file}: a module is wanted, not a file."
        )
    with _explained(env):
        if module:
            import_module(module)
        return gymnasium.spec(name)


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
        if extra := re.search(r"gymnasium\[(box2d|classic-control)\]", str(error)):
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
    known = {re.sub(r"-v\d+$", "", one): one for one in environment_names()}  # all end alike
    if near := difflib.get_close_matches(re.sub(r"-v\d+$", "", name), known, 1):
        return f"did you mean {module}{colon}{known[near[0]]}?"
    if module:
        return (
            f"{module} registers no {name}: make spaql.Dynamics of this id in it, or gymnasium.register it."
        )
    return f"{error} (Presets beside Gymnasium's ids: {', '.join(PRESETS)}.)"
