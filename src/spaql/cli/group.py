"""The group of commands: each is loaded when it is used, and errors are handled in one place."""

from __future__ import annotations

import io
import math
import os
import sys
import warnings
from importlib import import_module
from typing import Any, TextIO

import click

from spaql.cli.report import say
from spaql.cli.sudden_end import explain_sudden_end
from spaql.errors import SpaqlError, SpaqlWarning, nearest
from spaql.languages import on_terminal

FAILED, INTERRUPTED, BROKEN_PIPE = 1, 130, 141
"""Exit codes besides 0 and click's 2; the last two are 128 plus the signal's number, as in a shell."""

_METAVARS = {"integer": "N", "float": "X"}
"""Short metavars for numbers, which leave the help more room."""


class _WholeNumber(click.types.IntParamType):
    """A whole number; the error for another notation shows how to write it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            try:
                meant = float(str(value).replace(",", "").replace(" ", ""))
            except ValueError:
                meant = math.nan
            if not meant.is_integer():
                raise
            self.fail(f"{value!r} is not written as a whole number: give {meant:.0f}.", param, ctx)


_WHOLE_NUMBER = _WholeNumber()


class LazyGroup(click.Group):
    """Commands by name, in sections: `--help` and completion need not import what a command needs."""

    def __init__(self, *args: Any, sections: dict[str, dict[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = sections
        self._names = [name for commands in sections.values() for name in commands]

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; characters that stdout or stderr cannot encode are escaped."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        if not args and kwargs.get("args") is None:  # this is the command of the process
            explain_sudden_end()
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return self._names

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, loading its module."""
        if name not in self._names:
            return None
        file = name.replace("-", "_")
        command: click.Command = getattr(import_module(f"spaql.cli.{file}"), file)
        _prepare(command, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the requested command, or fail with the one probably meant."""
        if args[0] not in self._names and not args[0].startswith("-"):
            ctx.fail(f"There is no command {args[0]!r}: {nearest(args[0], self._names)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section with their summaries."""
        width = max(map(len, self._names))
        for section, commands in self._sections.items():
            with formatter.section(section):
                formatter.write_dl([(f"{name:{width}}", does) for name, does in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the requested command; errors end it with a message and an exit code."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except click.NoSuchOption as error:
            nearest_one = list(error.possibilities or [])[:1]
            raise click.NoSuchOption(error.option_name, possibilities=nearest_one, ctx=error.ctx) from None
        except SpaqlError as error:
            raise click.ClickException(on_terminal(f"{error}{_options_for(error)}")) from error
        except KeyboardInterrupt:
            say("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Otherwise Python would report at exit that the rest cannot be written either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(BROKEN_PIPE) from None
        except OSError as error:
            where = f": {error.filename}" if error.filename else ""
            raise click.ClickException(on_terminal(f"{error.strerror or error}{where}")) from error


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show the message alone of a warning that is for the user, with its place in the code of any other."""
    if issubclass(category, SpaqlWarning):
        say(f"Warning: {message}", err=True)
    else:
        say(warnings.formatwarning(message, category, filename, lineno), nl=False, err=True)


def _prepare(command: click.Command, name: str) -> None:
    """Name the environment variables of a command's options, and of those of its own commands."""
    for option in _options(command):
        option.envvar = f"SPAQL_{name}_{option.opts[0].lstrip('-')}".replace("-", "_").upper()
        option.type = _WHOLE_NUMBER if option.type is click.INT else option.type
        option.metavar = option.metavar or _METAVARS.get(option.type.name if not option.is_flag else "")
    command.epilog = command.epilog or _environment_note(command)
    for own, below in command.commands.items() if isinstance(command, click.Group) else ():
        _prepare(below, f"{name}_{own}")


def _options_for(error: SpaqlError) -> str:
    """Return the options for the settings that an error asks for."""
    options = [f"--{name.replace('_', '-')} {value}" for name, value in error.settings.items()]
    return f" On the command line: {' and '.join(options)}." if options else ""


def _options(command: click.Command) -> list[click.Option]:
    return [param for param in command.params if isinstance(param, click.Option)]


def _environment_note(command: click.Command) -> str | None:
    """Return a note on options from environment variables, with one that takes a value as example."""
    options = [option for option in _options(command) if not option.is_flag]
    if not options:
        return None
    option = next((candidate for candidate in options if candidate.default is not None), options[0])
    return f"Environment: {option.envvar} stands for {option.opts[0]}, and so on."
