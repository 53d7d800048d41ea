"""`spaql study`: the commands for studies, which this plugin and others declare."""

from __future__ import annotations

import click

from spaql.cli.group import Commands


@click.group(cls=Commands, declared="spaql.commands.study")
def study() -> None:
    """Run studies, summarise them, and compare with other algorithms.

    \b
    Examples:
      spaql study run study.toml --workers 8 --out studies/first
      spaql study results studies/first
      spaql study compare --quick --out compare-quick
    """
