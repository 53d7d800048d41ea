"""A command: what it reports, as text or as JSON, and its help, which shows the common options first."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from typing import Any

import click

from spaql.cli.report import Report, others_on_stderr, say, without_infinities
from spaql.errors import SettingError

ALL = "--help-all"
"""The option, and the key of the context, for the help with everything."""


def _show_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


class HelpAll(click.Command):
    """A command or group with --help, which shows what is common, and --help-all."""

    has_more = True
    """Whether --help-all shows more than --help."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return all parameters."""
        more = click.Option(
            [ALL],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            hidden=not self.has_more,
            callback=_show_all,
            help="Show everything and exit.",
        )
        return [*super().get_params(ctx), more]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the options; for one that does not exist, suggest the nearest alone."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            near = get_close_matches(error.option_name, error.possibilities or [], 1)
            raise click.NoSuchOption(error.option_name, possibilities=near, ctx=error.ctx) from error


class Command(HelpAll):
    """A command whose less common options are listed under headings, by --help-all alone."""

    def __init__(self, *args: Any, more: Mapping[str, Sequence[str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._headings = {name: title for title, names in more.items() for name in names}
        self.has_more = bool(more)

    def heading(self, option: click.Parameter) -> str:
        """Return the heading of a less common option, or nothing."""
        return self._headings.get(option.name or "", "")

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common options, then the others, or how many there are."""
        sections: dict[str, list[tuple[str, str]]] = {"": []}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)) is not None:
                sections.setdefault(self.heading(param), []).append(record)
        others = sum(map(len, sections.values())) - len(sections[""])
        for title, records in sections.items():
            if not title or ctx.meta.get(ALL):
                with formatter.section(title or "Options"):
                    formatter.write_dl(records)
        if others and not ctx.meta.get(ALL):
            formatter.write_paragraph()
            formatter.write_text(f"{others} more options: {ctx.command_path} {ALL}")


def command(
    prints: str,
    *,
    cls: type[Command] = Command,
    more: Mapping[str, Sequence[str]] | None = None,
    **kwargs: Any,
) -> Callable[[Callable[..., Report]], Command]:
    """Return a decorator that makes a command of a function which returns a `Report`.

    The option --json prints only the data on stdout: what that is, is said by `prints`. The less common
    options are named in `more`, by the headings under which --help-all lists them.
    """

    def decorate(function: Callable[..., Report]) -> Command:
        @functools.wraps(function)
        def reporting(*, as_json: bool, **values: Any) -> None:
            with others_on_stderr() if as_json else nullcontext(), _naming_options():
                report = function(**values)
                content = report.data if as_json else report.text
                content = content() if callable(content) else content
            shown = json.dumps(without_infinities(content), allow_nan=False) if as_json else content
            say(shown, nl=not shown.endswith("\n"))
            if report.code:
                raise click.exceptions.Exit(report.code)

        made = click.command(cls=cls, more=more or {}, **kwargs)(reporting)
        made.params.append(click.Option(["--json", "as_json"], is_flag=True, help=f"print {prints} as JSON"))
        return made

    return decorate


@contextmanager
def _naming_options() -> Iterator[None]:
    """Name the option in an error on the value of a parameter."""
    try:
        yield
    except SettingError as error:
        name, verb, rest = str(error).partition(" is ")
        params = click.get_current_context().command.params
        option = next((param.opts[0] for param in params if param.name == name), name)
        raise SettingError(f"{option}{verb}{rest}", settings=error.settings) from error
