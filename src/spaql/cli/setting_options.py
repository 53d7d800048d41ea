"""The settings of every algorithm as options of `spaql train`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import click

from spaql.agents import Agent, agent_type, agent_types
from spaql.cli.arguments import Choice
from spaql.cli.command import Command
from spaql.errors import SettingError

SHIPPED = {name: agent for name, agent in agent_types().items() if agent.__module__.startswith("spaql.")}
"""The algorithms that come with spaql."""
_OWN_SETTINGS = "spaql.own_settings"
"""Key of the context for the options of the user's own algorithm."""


class _SettingOption(click.Option):
    """An option for a setting that some algorithms have."""

    def __init__(self, *args: Any, algorithms: list[str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.algorithms = algorithms


class TrainCommand(Command):
    """A command whose help lists the settings of the algorithms under their names.

    The user's own algorithm is imported before the options are read, and adds its settings to them.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Import the algorithm before parsing."""
        algorithms = [after for option, after in itertools.pairwise(args) if option == "--algo"]
        algorithms += [arg.removeprefix("--algo=") for arg in args if arg.startswith("--algo=")]
        if algorithms and ":" in algorithms[0]:
            ctx.meta[_OWN_SETTINGS] = _options_of({algorithms[0]: agent_type(algorithms[0])})
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters; for settings of one name, the option of the shipped algorithms."""
        params = super().get_params(ctx)
        known = {param.name for param in params}
        return params + [option for option in ctx.meta.get(_OWN_SETTINGS, ()) if option.name not in known]

    def heading(self, option: click.Parameter) -> str:
        """Return the algorithms that have a setting, or the heading of another option."""
        if isinstance(option, _SettingOption):
            return f"Settings of {', '.join(option.algorithms)}"
        return super().heading(option)


def setting_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add an option for every setting of every shipped algorithm to the command."""
    # Where click's own decorators collect parameters, in reverse order.
    vars(command).setdefault("__click_params__", []).extend(reversed(_options_of(SHIPPED)))
    return command


def _options_of(agents: Mapping[str, type[Agent]]) -> list[click.Option]:
    """Return an option for every setting of some algorithms."""
    owners: dict[str, list[str]] = {}
    fields: dict[str, tuple[dataclasses.Field[Any], Any]] = {}
    for name, agent in agents.items():
        settings = agent.learner_type.settings_type
        hints = get_type_hints(settings)
        for field in dataclasses.fields(settings):
            owners.setdefault(field.name, []).append(name)
            fields[field.name] = field, hints[field.name]
    return [
        _SettingOption(
            [f"--{name.replace('_', '-')}"],
            algorithms=owners[name],
            type=Choice(get_args(hint)) if get_origin(hint) is Literal else hint,
            **({"is_flag": True, "default": None} if hint is bool else {}),
            help=f"{field.metadata.get('help', '')}  [default: {field.default}]",
        )
        for name, (field, hint) in fields.items()
    ]


def own_settings(algo: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that were given; refuse a setting of other algorithms, naming them."""
    asked = {name: value for name, value in settings.items() if value is not None}
    own = {field.name for field in dataclasses.fields(agent_type(algo).learner_type.settings_type)}
    for param in click.get_current_context().command.params:
        if isinstance(param, _SettingOption) and param.name in asked and param.name not in own:
            raise SettingError(
                f"{algo} has no setting {param.name!r}: leave out {param.opts[0]}, or give --algo "
                f"{' or '.join(param.algorithms)}."
            )
    return asked
