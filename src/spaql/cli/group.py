"""The group of commands: each is loaded when it is used, and errors are handled in one place."""

from __future__ import annotations

import faulthandler
import io
import os
import sys
import warnings
from functools import cached_property
from importlib import import_module
from typing import Any, TextIO

import click

from spaql.cli.report import say
from spaql.errors import SettingError, SpaqlError, SpaqlWarning, nearest
from spaql.languages import on_terminal

FAILED, INTERRUPTED, BROKEN_PIPE = 1, 130, 141
"""Exit codes in addition to 0 and click's 2; the last two are 128 plus the signal's number, as in a shell."""

GROUP = "spaql.commands"
"""The entry points by which a package declares commands, each a `click.Command`, under their names."""
STUDIES = "Run, compare and reproduce studies"
"""The section of the help for the commands of spaql's own plugins."""
_OTHERS = "Of other packages"
"""The section for the commands that other packages declare."""
_SUMMARY = 200
"""Largest number of characters of the summary of a plugin's command in the help."""


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
        if not args and kwargs.get("args") is None and sys.stderr is not None:  # the command of the process
            faulthandler.enable()
        return super().main(*args, **kwargs)

    @cached_property
    def _plugins(self) -> list[str]:
        """The commands that installed packages declare, read once when first needed."""
        from spaql.entry_points import declared_names  # imports much that most commands do not need

        return [name for name in declared_names(GROUP) if name not in self._names]

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands, in the order of the help."""
        return [*self._names, *self._plugins]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, loading its module."""
        if name in self._names:
            file = name.replace("-", "_")
            command: click.Command = getattr(import_module(f"spaql.cli.{file}"), file)
            return command
        return _of_plugin(name) if name in self._plugins else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the requested command, or fail, suggesting the command that was probably meant."""
        name = args[0]
        if not name.startswith("-") and name not in self._names and name not in self._plugins:
            ctx.fail(f"There is no command {name!r}: {nearest(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands of each section with their summaries, then those of plugins."""
        width = max(map(len, self.list_commands(ctx)))
        sections = dict(self._sections)
        for name in self._plugins:
            command = _of_plugin(name)
            is_own = getattr(command.callback, "__module__", "").startswith("spaql.")
            section = STUDIES if is_own else _OTHERS
            sections[section] = sections.get(section, {}) | {name: command.get_short_help_str(_SUMMARY)}
        for section, commands in sections.items():
            if not commands:
                continue
            with formatter.section(section):
                formatter.write_dl([(f"{name:{width}}", does) for name, does in commands.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the requested command; errors end it with a message and an exit code."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
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


def _of_plugin(name: str) -> click.Command:
    """Return a command that one package declares; if it cannot be loaded, running it says so."""
    from spaql.entry_points import find_declared, load_declared, origin_of

    try:
        entry = find_declared(GROUP, name)
        assert entry is not None
        command = load_declared(entry)
        if not isinstance(command, click.Command):
            raise SettingError(f"{origin_of(entry)} is not a click.Command.")
    except SettingError as error:
        return _Unloadable(name, error)
    return command


class _Unloadable(click.Command):
    """A command of a plugin that cannot be loaded, which takes any arguments and fails with the reason."""

    def __init__(self, name: str, error: SettingError) -> None:
        super().__init__(name, short_help=str(error), add_help_option=False)
        self._error = error

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take any arguments."""
        return []

    def invoke(self, ctx: click.Context) -> Any:
        """Fail."""
        raise self._error


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show only the message of a warning for the user; show any other warning with its place in the code."""
    if issubclass(category, SpaqlWarning):
        say(f"Warning: {message}", err=True)
    else:
        say(warnings.formatwarning(message, category, filename, lineno), nl=False, err=True)


def _options_for(error: SpaqlError) -> str:
    """Return the options for the settings that an error asks for."""
    options = [f"--{name.replace('_', '-')} {value}" for name, value in error.settings.items()]
    return f" On the command line: {' and '.join(options)}." if options else ""
