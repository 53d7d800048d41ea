"""`spaql study run`: execute the runs of a study that are missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import quiet_option
from spaql.cli.command import command
from spaql.cli.group import FAILED, INTERRUPTED
from spaql.cli.report import Report, say
from spaql.cli.signatures import options_of
from spaql.formatting import duration

if TYPE_CHECKING:
    from spaql.plugins.sweeps.sweeps import Summary


@command("the summary", short_help="Execute the runs of a study, here or on a Ray cluster.")
@click.argument("study", type=click.Path(path_type=Path))
@click.option("--out", type=click.Path(path_type=Path), help="folder of the runs  [default: studies/STUDY]")
@options_of("plugins/sweeps/sweeps.py:sweep", "workers", "ray", "checkpoint_every")
@quiet_option
def run(study: Path, out: Path | None, quiet: bool, **options: Any) -> Report:
    """Execute the runs of STUDY, a TOML file, that are missing in a folder.

    It may be stopped, or killed, at any time: the same command goes on with what is missing, and ends in
    the same bytes. Several may work on one folder at once.

    \b
    A study:
      problems = ["cartpole200"]
      algorithms = ["spaql", "spaql-ts"]
      seeds = 4
      iterations = 150
      rollouts = 20
      [grid]
      scaling = [0.4, 20]

    The budget of a run is iterations, total_timesteps (training steps) or total_interactions (all steps).

    \b
    Examples:
      spaql study run study.toml --workers 8 --out studies/first
      spaql study run study.toml --ray auto --out /shared/studies/first
    """
    from spaql.plugins.sweeps.study import read_study
    from spaql.plugins.sweeps.sweeps import sweep

    folder = out or Path("studies") / study.stem
    runs = read_study(study)
    try:
        summary = sweep(runs, folder, progress_bar=not quiet, **options)
    except KeyboardInterrupt:
        say(f"Interrupted: the same command goes on with what is missing in {folder}.", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    code = FAILED if summary.failed else 0
    return Report({"folder": str(folder), **dataclasses.asdict(summary)}, _text(summary, folder), code)


def _text(summary: Summary, folder: Path) -> str:
    done = summary.finished_before + summary.finished + summary.finished_elsewhere
    parts = [f"{summary.finished:,} now"]
    if summary.finished_before:
        parts.append(f"{summary.finished_before:,} before")
    if summary.finished_elsewhere:
        parts.append(f"{summary.finished_elsewhere:,} by another driver")
    lines = [
        f"{done:,} of {summary.runs:,} runs finished ({', '.join(parts)}) in {duration(summary.seconds)}, "
        f"{summary.interactions:,} interactions"
    ]
    for run_id, error in summary.failed.items():
        lines.append(f"failed: {run_id}: {error.strip().splitlines()[-1]}")
    if summary.failed:
        lines.append(f"The same command tries them again; {folder / 'summary.json'} has the full errors.")
    lines += ["", f"Next: spaql study results {folder}", f"      spaql draw {folder} curves"]
    return "\n".join(lines)
