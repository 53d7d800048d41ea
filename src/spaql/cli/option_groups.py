"""Options that several commands share, declared once; a command receives a group of them as one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from spaql.cli.report import PATH, names, numbers

Command = Callable[..., Any]
Decorator = Callable[[Command], Command]


def options_as(argument: str, options: Sequence[Decorator], combine: Callable[..., Any] = dict) -> Decorator:
    """Return a decorator that adds options to a command, which receives one argument in place of them.

    Its value is what `combine` returns for the values of the options, by name.
    """

    def decorate(command: Command) -> Command:
        added: list[click.Parameter] = []

        @functools.wraps(command)
        def combined(**values: Any) -> Any:
            own = {option.name: values.pop(option.name) for option in added if option.name is not None}
            return command(**values, **{argument: combine(**own)})

        parameters = vars(combined).setdefault("__click_params__", [])
        before = len(parameters)
        for option in reversed(options):  # click collects parameters from the last to the first
            option(combined)
        added += parameters[before:]
        return combined

    return decorate


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
        raise click.BadParameter(f"{file} is no TOML: {error}.") from error


_CONSTRAINT_OPTIONS: dict[str, Decorator] = {
    "hard": click.option(
        "--constraint",
        "hard",
        metavar="EXPR",
        multiple=True,
        help="that is to hold after each step: episodes that break it are counted; may be repeated",
    ),
    "soft": click.option(
        "--soft-constraint",
        "soft",
        metavar="EXPR PRICE",
        type=(str, float),
        multiple=True,
        help="the same, and a step that breaks it costs PRICE; may be repeated",
    ),
}
constraint_options = options_as(
    "constraints", [*_CONSTRAINT_OPTIONS.values()], lambda hard, soft: [*hard, *soft]
)
"""Decorator for a command that takes `constraints`: expressions, and pairs of an expression and a price."""

_PROBLEM_OPTIONS: dict[str, Decorator] = {
    "options": click.option(
        "--config",
        "options",
        metavar="FILE",
        type=PATH,
        callback=_read_config,
        help="TOML file with the options of ENV: of an FMU its inputs, outputs, set-points, cost and so on",
    ),
    "horizon": click.option(
        "--horizon", type=int, help="steps of an episode  [default: the environment's limit]"
    ),
    "levels": click.option(
        "--levels", type=int, help="cut every dimension of a Box of actions into this many levels"
    ),
    "reference": click.option(
        "--reference",
        metavar="X,Y,...",
        callback=numbers,
        help="observation to regulate to (spaql-ts), in raw units, such as 0,0,0,0  [default: known for "
        "CartPole and Pendulum]",
    ),
    "observation_names": click.option(
        "--names",
        "observation_names",
        metavar="NAME,...",
        callback=names,
        help='of the observations, with their units, such as "angle [rad],speed [rad/s]"',
    ),
    "action_names": click.option(
        "--action-names",
        metavar="NAME,...",
        callback=names,
        help='of the discrete actions, or of the components of an action, such as "force [N]"',
    ),
    "cost": click.option(
        "--cost", metavar="EXPR", help='of a step, in place of the reward, such as "angle**2 + u**2"'
    ),
    **_CONSTRAINT_OPTIONS,
    "gymnasium": click.option(
        "--gymnasium", is_flag=True, help="step the Gymnasium environment, not its compiled twin"
    ),
    "parallel": click.option(
        "--parallel", is_flag=True, help="step each environment in its own process: for slow simulators"
    ),
    "ray": click.option(
        "--ray",
        metavar="ADDRESS",
        help="play the episodes of treesearch on Ray: HOST:PORT, auto, or local",
    ),
}
"""The options that describe a problem, in the order of the help."""


def problem_options(*wanted: str) -> Decorator:
    """Return a decorator that adds options which describe a problem: all of them, or those that are named.

    The command receives them as `described`, which are keyword arguments of `spaql.make_problem`.
    """
    options = [_PROBLEM_OPTIONS[name] for name in wanted or _PROBLEM_OPTIONS]
    return options_as("described", options, _problem_arguments)


def _problem_arguments(**arguments: Any) -> dict[str, Any]:
    """Return the arguments of `spaql.make_problem` that the options stand for."""
    if "gymnasium" in arguments:
        arguments["compiled"] = not arguments.pop("gymnasium")
    if "hard" in arguments:
        arguments["constraints"] = [*arguments.pop("hard"), *arguments.pop("soft")]
    if "ray" in arguments:
        arguments["parallel"] = arguments.pop("ray") or arguments["parallel"]
    return arguments
