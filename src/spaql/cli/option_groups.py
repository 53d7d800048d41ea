"""Options that several commands share, declared once; a command receives a group as one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from spaql.cli.report import PATH, names, numbers

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def _read_config(ctx: click.Context, param: click.Parameter, file: Path | None) -> dict[str, Any] | None:
    """Return the content of a TOML file."""
    if file is None:
        return None
    import tomllib

    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise click.BadParameter(f"{file} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.BadParameter(f"{file} is not valid TOML: {error}.") from error


constraint_option = click.option(
    "--constraint",
    "constraints",
    metavar="EXPR",
    multiple=True,
    help="constraint that should hold after each step: episodes that violate it are counted; may be repeated",
)

_PROBLEM_OPTIONS: dict[str, Decorator] = {
    "options": click.option(
        "--config",
        "options",
        metavar="FILE",
        type=PATH,
        callback=_read_config,
        help="TOML file with the options of ENV: for an FMU its inputs, outputs, set-points, cost and so on",
    ),
    "horizon": click.option(
        "--horizon", type=int, help="steps in an episode  [default: the environment's limit]"
    ),
    "levels": click.option(
        "--levels", type=int, help="discretise every component of a Box action into n levels"
    ),
    "reference": click.option(
        "--reference",
        metavar="X,Y,...",
        callback=numbers,
        help="reference observation (spaql-ts), in raw units, such as 0,0,0,0  [default: known for "
        "CartPole and Pendulum]",
    ),
    "observation_names": click.option(
        "--names",
        "observation_names",
        metavar="NAME,...",
        callback=names,
        help='names of the observations, with their units, such as "angle [rad],speed [rad/s]"',
    ),
    "action_names": click.option(
        "--action-names",
        metavar="NAME,...",
        callback=names,
        help='names of the discrete actions, or of the components of an action, such as "force [N]"',
    ),
    "cost": click.option(
        "--cost", metavar="EXPR", help='cost of a step, instead of the reward, such as "angle**2 + u**2"'
    ),
    "constraints": constraint_option,
    "gymnasium": click.option(
        "--gymnasium", is_flag=True, help="step the Gymnasium environment, not its compiled twin"
    ),
    "parallel": click.option(
        "--parallel", is_flag=True, help="step each environment in its own process: for slow simulators"
    ),
    "ray": click.option(
        "--ray",
        metavar="ADDRESS",
        help="run the episodes of treesearch on Ray: HOST:PORT, auto, or local",
    ),
}
"""The options that describe a problem, in the order of the help."""


def problem_options(*wanted: str) -> Decorator:
    """Return a decorator that adds options which describe a problem: all of them, or those that are named.

    The command receives them as `described`, which are keyword arguments of `spaql.make_problem`.
    """
    names = wanted or tuple(_PROBLEM_OPTIONS)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def with_problem(**values: Any) -> Any:
            described = _problem_arguments({name: values.pop(name) for name in names})
            return command(**values, described=described)

        for name in reversed(names):  # click collects parameters from the last to the first
            _PROBLEM_OPTIONS[name](with_problem)
        return with_problem

    return decorate


def _problem_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `spaql.make_problem` that the options stand for."""
    if "gymnasium" in arguments:
        arguments["compiled"] = not arguments.pop("gymnasium")
    if "ray" in arguments:
        arguments["parallel"] = arguments.pop("ray") or arguments["parallel"]
    return arguments
