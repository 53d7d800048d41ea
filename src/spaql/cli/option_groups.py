"""Options that several commands share, declared once; a command receives a group as one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from spaql.cli.report import PATH, names
from spaql.cli.signatures import options_of

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


_MAKING = "problems/making.py:make_problem"
_PROBLEM_OPTIONS: dict[str, Decorator] = {
    "options": click.option(
        "--config",
        "options",
        metavar="FILE",
        type=PATH,
        callback=_read_config,
        help="TOML file with the options of ENV: for an FMU its inputs, outputs, set-points, cost and so on",
    ),
    **{name: options_of(_MAKING, name) for name in ("cost", "horizon", "levels", "reference")},
    "action_names": options_of(_MAKING, "action_names"),
    "constraints": options_of(_MAKING, constraint="constraints"),
    "observation_names": options_of(_MAKING, names="observation_names"),
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


_FIT = "agents/fitting.py:fit"
LOG_OPTIONS: dict[str, Decorator] = {
    **{name: options_of(_FIT, name) for name in ("action_range", "extrapolate", "reward", "end")},
    **{name: options_of(_FIT, name) for name in ("episode", "time")},
    "setpoints": options_of(_FIT, setpoint="setpoints"),
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
