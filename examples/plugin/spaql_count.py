"""A command: `spaql count FILE ...` prints how much there is to read in each controller."""

from __future__ import annotations

import click

from spaql.cli.command import command
from spaql.cli.report import Report


@command("the leaves and parameters", short_help="Count the leaves and parameters of controllers.")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False))
def count(files: tuple[str, ...]) -> Report:
    """Count the leaves and parameters of controllers."""
    import spaql  # late, so that help and completion stay quick
    from spaql.formatting import counted

    rows = []
    for file in files:
        controller = spaql.controller_of(file)
        leaves = controller.n_leaves
        parameters = controller.n_numbers
        rows.append({"file": file, "leaves": leaves, "parameters": parameters})
    lines = [
        f"{row['file']}: {counted(row['leaves'], 'leaf')}, {counted(row['parameters'], 'parameter')}"
        for row in rows
    ]
    return Report({"controllers": rows}, "\n".join(lines))
