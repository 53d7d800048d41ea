"""Options that several commands share, declared once; a command receives a group as one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from spaql.cli.report import PATH, named, names, numbers

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
    options = {name: _PROBLEM_OPTIONS[name] for name in names}
    return lambda command: _grouped(command, "described", options, _problem_arguments)


def _problem_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `spaql.make_problem` that the options stand for."""
    if "gymnasium" in arguments:
        arguments["compiled"] = not arguments.pop("gymnasium")
    if "ray" in arguments:
        arguments["parallel"] = arguments.pop("ray") or arguments["parallel"]
    return arguments


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Return set-points by the name of the observation that is to follow each."""
    return dict(named(value, "speed=target") for value in values)


LOG_OPTIONS: dict[str, Decorator] = {
    "action_range": click.option(
        "--action-range",
        metavar="LOW,HIGH",
        callback=numbers,
        help="lowest and highest value of the action  [default: discrete actions 0, 1, ...]",
    ),
    "extrapolate": click.option(
        "--extrapolate",
        is_flag=True,
        help="allow all of --action-range, not only the part that occurs in the log",
    ),
    "reward": click.option("--reward", metavar="EXPRESSION", help="reward of a step, instead of a cost"),
    "end": click.option(
        "--end",
        metavar="EXPRESSION",
        help='condition that ends an episode, such as "abs(angle) > 0.2"  [default: none]',
    ),
    "episode": click.option("--episode", metavar="NAME", help="column that changes where an episode begins"),
    "time": click.option(
        "--time", metavar="NAME", help="column of times, from which missing rows are detected"
    ),
    "setpoints": click.option(
        "--setpoint",
        "setpoints",
        metavar="NAME=NAME",
        multiple=True,
        callback=_pairs,
        help="an observation and the set-point it is to follow; may be repeated",
    ),
}
"""The options that describe a log, besides its columns, in the order of the help."""


def log_options(*, required: bool) -> Decorator:
    """Return a decorator that adds the options which describe a log.

    The command receives them as `logged`, which are keyword arguments of `spaql.fit`.
    """
    columns = {
        "observations": "columns of the observations",
        "action": "column of the action, or columns of its components",
    }
    options = {
        name: click.option(f"--{name}", metavar="NAME,...", callback=names, required=required, help=text)
        for name, text in columns.items()
    }
    return lambda command: _grouped(command, "logged", options | LOG_OPTIONS)


def _grouped(
    command: Command,
    group: str,
    options: Mapping[str, Decorator],
    arguments: Callable[[dict[str, Any]], dict[str, Any]] = dict,
) -> Command:
    """Add options to a command, which receives their values as one argument."""

    @functools.wraps(command)
    def with_group(**values: Any) -> Any:
        given = arguments({name: values.pop(name) for name in options})
        return command(**values, **{group: given})

    for add in reversed([*options.values()]):  # click collects parameters from the last to the first
        add(with_group)
    return with_group
