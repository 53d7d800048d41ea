"""`spaql paper`: every study, table and figure of the paper."""

from __future__ import annotations

import json
import time
from pathlib import Path

import click

from spaql.experiments import RunStore, sweep
from spaql.experiments.paper import FULL, QUICK, long_runs, scaling_runs, trpo_runs
from spaql.figures.paper import paper_figures
from spaql.figures.report import write_report

_STAGES = {"scaling": "the study of xi", "long": "the long runs", "trpo": "TRPO", "report": "the report"}


@click.command()
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("paper"), show_default=True, help="folder"
)
@click.option("--quick", is_flag=True, help="3 agents and short runs: through every stage in two minutes")
@click.option(
    "--trpo",
    is_flag=True,
    help="also TRPO, which takes longer than all else (pip install 'spaql[baselines]')",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="a stage (scaling, long, trpo, report) or a figure; may be repeated",
)
@click.option("--workers", type=int, help="processes on this machine  [default: one for every core]")
@click.option("--ray", metavar="ADDRESS", help="a Ray cluster instead: HOST:PORT, auto, or local")
@click.option("--json", "as_json", is_flag=True, help="print the claims as JSON")
@click.option("--quiet", is_flag=True, help="show no progress")
def paper(
    out: Path,
    quick: bool,
    trpo: bool,
    only: tuple[str, ...],
    workers: int | None,
    ray: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Reproduce "Control with adaptive Q-learning": every study, table and figure, and a report.

    Needs the extra `paper`: pip install "spaql[paper]".

    It may be stopped at any time; the same command goes on with what is missing.

    \b
    Examples:
      spaql paper --quick --out paper-quick
      spaql paper --out paper
      spaql paper --out paper --trpo
      spaql paper --out paper --only 07-curves-cartpole
    """
    size = QUICK if quick else FULL
    scaling, long = RunStore(out / "runs" / "scaling"), RunStore(out / "runs" / "long")
    stages = {"scaling": (scaling, scaling_runs(size)), "long": (long, long_runs(size))}
    if trpo or "trpo" in only:
        stages["trpo"] = (long, trpo_runs(size))
    began = time.perf_counter()
    for name, (store, runs) in stages.items():
        if only and name not in only:
            continue
        if not quiet:
            click.echo(f"{_STAGES[name]}: {len(runs):,} runs", err=True)
        summary = sweep(runs, store.root, workers=workers, ray=ray, progress_bar=not quiet)
        if summary.failed:
            run_id, error = next(iter(summary.failed.items()))
            raise click.ClickException(f"{len(summary.failed)} runs failed, {run_id} for one: {error}")
    figures = [name for name in only if name not in _STAGES]
    if figures:
        paths = paper_figures(scaling, long, size, out, figures)
        click.echo("\n".join(str(path) for path in paths))
        return
    if only and "report" not in only:
        return
    command = " ".join(["spaql paper", *(["--quick"] if quick else []), *(["--trpo"] if trpo else [])])
    claims = write_report(scaling, long, size, out, command)
    seconds = time.perf_counter() - began
    if as_json:
        click.echo(json.dumps({"seconds": seconds, "claims": [vars(claim) for claim in claims]}))
        return
    for claim in claims:
        click.echo(f"{claim.verdict:15} {claim.claim}\n{'':15} published: {claim.published}")
        click.echo(f"{'':15} measured:  {claim.measured}")
    if quick:
        click.echo("\nThe quick version cannot judge the paper: it only goes through every stage.")
    click.echo(f"\n{seconds:,.0f} s. Open {out / 'report.html'}")
