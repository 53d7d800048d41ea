"""`spaql paper`: every study, table and figure of the paper."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from spaql.cli.arguments import Choice, quiet_option
from spaql.cli.command import command
from spaql.cli.report import Report, say
from spaql.errors import SettingError, nearest, require
from spaql.formatting import duration
from spaql.plugins.sweeps.options import ray_option, refuse_failed, workers_option

if TYPE_CHECKING:
    from spaql.plugins.paper.claims import Claim

_STAGES = {"scaling": "the study of xi", "long": "the long runs", "trpo": "TRPO", "report": "the report"}


@command(
    "the claims, or the names of the files,",
    short_help="Reproduce the paper: studies, tables, figures and a report.",
)
@click.option(
    "--rules",
    type=Choice(["authors", "text"]),
    default="authors",
    show_default=True,
    help="where they differ: the code of the paper's authors, or its text read literally",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="folder  [default: paper; paper-text with --rules text]"
)
@click.option("--quick", is_flag=True, help="3 agents and short runs: through every stage in a minute or two")
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
@workers_option
@ray_option
@quiet_option
def paper(
    rules: str,
    out: Path | None,
    quick: bool,
    trpo: bool,
    only: tuple[str, ...],
    workers: int | None,
    ray: str | None,
    quiet: bool,
) -> Report:
    """Reproduce "Control with adaptive Q-learning": every study, table and figure, and a report.

    Needs the extra `paper`: pip install "spaql[paper]".

    It may be stopped at any time; the same command goes on with what is missing. A folder holds the studies
    of one rule set.

    \b
    Examples:
      spaql paper --quick --out paper-quick
      spaql paper --out paper
      spaql paper --out paper --trpo
      spaql paper --rules text --out paper-text
      spaql paper --out paper --only 07-curves-cartpole
    """
    from spaql.plugins.paper.figures import FIGURES, paper_figures
    from spaql.plugins.paper.report import write_report
    from spaql.plugins.paper.study import FULL, QUICK, long_runs, scaling_runs, trpo_runs
    from spaql.plugins.sweeps.store import RunStore
    from spaql.plugins.sweeps.sweeps import sweep

    for name in only:
        if name not in (known := [*_STAGES, *FIGURES]):
            raise SettingError(f"There is no stage or figure {name!r}: {nearest(name, known)}")
    size = dataclasses.replace(QUICK if quick else FULL, rules=rules)
    out = out or Path("paper" if rules == "authors" else f"paper-{rules}")
    scaling = RunStore(out / "runs" / "scaling")
    long = RunStore(out / "runs" / "long")
    stages = {"scaling": (scaling, scaling_runs(size)), "long": (long, long_runs(size))}
    if trpo or "trpo" in only:
        stages["trpo"] = (long, trpo_runs(size))
    for store, runs in stages.values():
        store.missing(runs)  # refuses runs of other rules, also in a stage that is not requested
    figures = [name for name in only if name not in _STAGES]
    reported = not only or "report" in only
    if figures or reported:
        require("The report", "plot", "stats")
    if ray is None and "trpo" in stages and (not only or "trpo" in only):
        require("TRPO", "baselines")
    began = time.perf_counter()
    for name, (store, runs) in stages.items():
        if only and name not in only:
            continue
        if not quiet:
            say(f"{_STAGES[name]}: {len(runs):,} runs", err=True)
        refuse_failed(sweep(runs, store.root, workers=workers, ray=ray, progress_bar=not quiet))
    files = paper_figures(scaling, long, size, out, figures) if figures else []
    claims: list[Claim] = []
    if reported:
        flags = {"--quick": quick, "--trpo": trpo, f"--rules {rules}": rules != "authors"}
        command = " ".join(["spaql paper", *(flag for flag, given in flags.items() if given)])
        claims = write_report(scaling, long, size, out, command)
        files.append(out / "report.html")
    seconds = time.perf_counter() - began
    data: dict[str, Any] = {
        "seconds": seconds,
        "rules": rules,
        "files": [str(file) for file in files],
        "claims": [vars(claim) for claim in claims],
    }
    return Report(data, _text(claims, files, seconds, quick, rules))


def _text(claims: list[Claim], files: list[Path], seconds: float, quick: bool, rules: str = "authors") -> str:
    if not claims:
        return "\n".join(map(str, files)) or duration(seconds)
    lines = []
    if quick:
        lines.append("The quick version cannot judge the paper: it only goes through every stage.\n")
    if rules != "authors":
        lines.append(f"By the rules of the paper's {rules}:\n")
    for claim in claims:
        lines.append(f"{claim.verdict:15} {claim.claim} ({claim.where})")
        for what in ("published", "criterion", "measured"):
            lines.append(f"{'':15} {what + ':':10} {getattr(claim, what)}")
    lines.append(f"\n{duration(seconds)}. Open {files[-1]}")
    return "\n".join(lines)
