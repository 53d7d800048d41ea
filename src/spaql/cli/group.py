"""The group of commands: each is loaded when it is used, and errors are handled in one place."""

from __future__ import annotations

import faulthandler
import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import Any, TextIO

import click

from spaql.cli.command import ALL, HelpAll
from spaql.cli.report import say
from spaql.errors import SettingError, SpaqlError, SpaqlWarning, nearest
from spaql.languages import on_terminal

FAILED, INTERRUPTED, BROKEN_PIPE = 1, 130, 141
"""Exit codes in addition to 0 and click's 2; the last two are 128 plus the signal's number, as in a shell."""

GROUP = "spaql.commands"
"""The entry points by which a package declares commands, each a `click.Command`, under their names."""
_OTHERS = "Commands of other packages"
"""The heading of the commands that no section names."""
_SUMMARY = 200
"""Largest number of characters of the summary of a declared command in the help."""
_MORE = """\b
More commands, and exit codes:  spaql --help-all
Options and examples:           spaql COMMAND --help"""


class Commands(HelpAll, click.Group):
    """The commands that packages declare in a group of entry points; each is loaded when it is used."""

    has_more = False

    def __init__(self, *args: Any, declared: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._group = declared

    @cached_property
    def _declared(self) -> list[str]:
        """The declared names, read once when first needed."""
        from spaql.entry_points import declared_names  # imports much that most commands do not need

        return declared_names(self._group)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return self._declared

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, loading its module; if it cannot be loaded, running it says so."""
        if name not in self._declared:
            return None
        try:
            return _loaded(self._group, name)
        except SettingError as error:
            return _Unloadable(name, error)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the requested command, or fail, suggesting the command that was probably meant."""
        name = args[0]
        if not name.startswith("-") and name not in (known := self.list_commands(ctx)):
            ctx.fail(f"There is no command {name!r}: {nearest(name, known)}")
        return super().resolve_command(ctx, args)


class LazyGroup(Commands):
    """All commands of the program, in sections; `--help` and completion import only what is declared.

    Sections have the summaries of the commands of this package. The summary of a declared command is its own.
    """

    has_more = True

    def __init__(
        self, *args: Any, sections: dict[str, dict[str, str]], common: Sequence[str], **kwargs: Any
    ) -> None:
        super().__init__(*args, declared=GROUP, **kwargs)
        self._sections = sections
        self._common = common
        self._own = [name for rows in sections.values() for name, summary in rows.items() if summary]

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command; characters that stdout or stderr cannot encode are escaped."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        if not args and kwargs.get("args") is None and sys.stderr is not None:  # the command of the process
            faulthandler.enable()
        return super().main(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(dict.fromkeys([*self._own, *self._declared]))

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Return a command, loading its module."""
        if name not in self._own:
            return super().get_command(ctx, name)
        file = name.replace("-", "_")
        command: click.Command = getattr(import_module(f"spaql.cli.{file}"), file)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common commands, or all of them, with their summaries."""
        known = self.list_commands(ctx)
        shown = known if ctx.meta.get(ALL) else [name for name in self._common if name in known]
        listed = {name for rows in self._sections.values() for name in rows}
        others = {name: "" for name in known if name not in listed}
        for section, rows in {**self._sections, _OTHERS: others}.items():
            texts = [(name.ljust(8), self._summary(ctx, name)) for name in rows if name in shown]
            if texts:
                with formatter.section(section):
                    formatter.write_dl(texts)

    def _summary(self, ctx: click.Context, name: str) -> str:
        if name in self._own:
            return next(rows[name] for rows in self._sections.values() if name in rows)
        command = self.get_command(ctx, name)
        return command.get_short_help_str(_SUMMARY) if command is not None else ""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the exit codes, or how to see them and all commands."""
        if ctx.meta.get(ALL):
            super().format_epilog(ctx, formatter)
        else:
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(_MORE)

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


def _loaded(group: str, name: str) -> click.Command:
    """Return a command that one package declares."""
    from spaql.entry_points import find_declared, load_declared, origin_of

    entry = find_declared(group, name)
    assert entry is not None
    command = load_declared(entry)
    if not isinstance(command, click.Command):
        raise SettingError(f"{origin_of(entry)} is not a click.Command.")
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
