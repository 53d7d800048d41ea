"""`spaql page`: a page of a controller to play with."""

from __future__ import annotations

from pathlib import Path

import click

from spaql.cli.arguments import read_to_play, run_argument
from spaql.cli.command import command
from spaql.cli.report import PATH, Report


@command("the name of the file", short_help="Write a web page to play with: tree, map and moving plant.")
@run_argument
@click.option("--out", type=PATH, default=Path("page.html"), help="file to write")
def page(run: Path, out: Path) -> Report:
    """Write a web page of the controller in RUN: its tree, its map, and the plant that it moves.

    The page is one file, which needs no network. Drag the state, a threshold or a gain, and see what changes;
    an edited controller can be downloaded, and saved with `spaql edit --tree`.

    \b
    Examples:
      spaql page runs/swing-up
      spaql page runs/oven --out oven.html
    """
    from spaql.archive import write_atomically
    from spaql.plugins.page.card import policy_card

    write_atomically(out, policy_card(run, read_to_play(run)).encode())
    return Report({"file": str(out)}, str(out))
