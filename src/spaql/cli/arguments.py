"""Arguments that several commands share: what they are completed by, and what was probably meant."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from spaql.cli.report import read_numbers
from spaql.errors import nearest

if TYPE_CHECKING:
    from spaql.experiments import Summary
    from spaql.policy import RuleTree
    from spaql.training import Agent, Controller


run_argument = click.argument("run", type=click.Path(path_type=Path))
"""A run folder or a model file."""
workers_option = click.option(
    "--workers", type=int, help="processes on this machine  [default: one for every core]"
)
ray_option = click.option("--ray", metavar="ADDRESS", help="a Ray cluster instead: HOST:PORT, auto, or local")
quiet_option = click.option("--quiet", is_flag=True, help="show no progress")


def refuse_failed(summary: Summary) -> None:
    """End the command, with the first of the errors, if runs of a study failed that it cannot do without."""
    if summary.failed:
        run_id, error = next(iter(summary.failed.items()))
        raise click.ClickException(f"{len(summary.failed)} runs failed, {run_id} for one: {error}")


def read_to_play(run: Path) -> Agent | Controller:
    """Read an agent or a controller that is to be run: first import the module that its environment names."""
    from spaql.problems import check_environment
    from spaql.training import read

    source = read(run)
    if source.problem.env is not None and ":" in source.problem.env:
        check_environment(source.problem.env)
        source = read(run)
    return source


def read_action(tree: RuleTree, given: str) -> int | str | list[float]:
    """Read an action as it is given on the command line: the number or name of one of a list, or numbers."""
    from gymnasium.spaces import Box

    if isinstance(tree.action_space, Box):
        return read_numbers(given)
    return int(given) if given.isdecimal() else given


class Choice(click.Choice[str]):
    """One of some words; for another, the nearest is named."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse what is none of the words."""
        if value not in self.choices:
            self.fail(f"{value!r} is not one of them: {nearest(value, self.choices)}", param, ctx)
        return super().convert(value, param, ctx)


def complete_environment(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """List the environments whose names begin so, the paper's setups first."""
    from spaql.problems import PRESETS, environment_names

    return [
        CompletionItem(name, help=PRESETS[name].summary if name in PRESETS else None)
        for name in environment_names()
        if name.lower().startswith(incomplete.lower())
    ]


def complete_environment_or_run(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """List environments; where there is none, let the shell list files."""
    found = complete_environment(ctx, param, incomplete) if incomplete else []
    return found or [CompletionItem(incomplete, type="file")]
