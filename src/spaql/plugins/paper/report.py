"""The report on the paper: its claims, tables and figures next to our results, as Markdown and HTML."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from spaql.archive import write_atomically
from spaql.plugins.paper.claims import Claim, judge, short_runs
from spaql.plugins.paper.criteria import VERDICTS
from spaql.plugins.paper.evidence import Study, early_returns
from spaql.plugins.paper.figures import FIGURES, paper_figures
from spaql.plugins.paper.study import FULL, Size
from spaql.plugins.paper.tables import measure, rows
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.table import as_html, write_table
from spaql.tables import markdown

_TITLE = "Control with adaptive Q-learning, measured again"
_JUDGED = (
    "Every claim of the paper's abstract, results and conclusions is judged. Each has a "
    "criterion, the same for all claims of its kind and for every study. Criteria were not chosen blindly: "
    "the final results of a first study, with the authors' rules, were known at that time; its returns at "
    "equal numbers of samples were not. "
    "*Seen* is the paper's measure, the best or last evaluation; parentheses hold 95 % intervals. A claim "
    "*agrees* if all its parts hold, and *in part* if some do; it *does not agree* if none holds and one is "
    "contradicted, and else the data *cannot tell*."
)

_TOO_SMALL = (
    "**This is the quick version**: so few agents and iterations show that every stage works, and cannot "
    "judge the paper."
)

_RULES = {
    "authors": "",
    "text": "**The algorithms follow the paper's text literally** (`--rules text`). The published figures "
    "were made with the authors' code, which differs from it: the page on each algorithm says where.",
}
"""A paragraph on rules that are not the default."""


def write_report(scaling: RunStore, long: RunStore, size: Size, out: Path, command: str) -> list[Claim]:
    """Write tables, figures and the report of the paper's studies; return the judged claims.

    Under `out`: `tables/results.md`, `.csv` and `.tex`, the same of `claims`; `figures` and `data` of every
    figure; `report.md`, and `report.html`, which needs no other file.
    """
    lines = measure(long, size)
    claims = judge(Study(short_runs(scaling), lines, early_returns(long)))
    tables = {"results": rows(lines, size.rules), "claims": [_cells(claim) for claim in claims]}
    for name, cells in tables.items():
        write_table(cells, out / "tables", name)
    paper_figures(scaling, long, size, out)
    text = _text(tables, claims, size, command)
    write_atomically(out / "report.md", text.encode())
    write_atomically(out / "report.html", as_html(_TITLE, text, out).encode())
    return claims


def _cells(claim: Claim) -> dict[str, str]:
    return {name: value.replace("|", "/") for name, value in dataclasses.asdict(claim).items()}


def _text(tables: dict[str, list[dict[str, str]]], claims: Sequence[Claim], size: Size, command: str) -> str:
    counts = Counter(claim.verdict for claim in claims)
    judged = ", ".join(f"{counts[verdict]} {verdict!r}" for verdict in VERDICTS)
    figures = [f"![{caption}](figures/{name}.svg)\n\n*{caption}*" for name, (_, caption) in FIGURES.items()]
    return "\n\n".join(
        [
            f"# {_TITLE}",
            "Araújo, Figueiredo and Ayala Botto published AQL, SPAQL and SPAQL-TS on Pendulum and CartPole "
            "in 2020. This report repeats all their studies, and shows our results next to the published "
            "ones.",
            f"Made by `{command}`: {size.seeds} agents each; {size.scaling_iterations} iterations in the "
            f"study of xi, {size.iterations:,} in the long runs; the same seeds end in the same bytes. "
            f"*Fresh* returns are means over {size.fresh_episodes} new episodes of the agent that training "
            "returned. "
            "*Best or last seen* is what the paper reports: for SPAQL and SPAQL-TS the best of all "
            "evaluations, which is biased upwards, for AQL and TRPO the last one. ± is Student's 95 % "
            "interval over agents; in published results it is 1.96 standard errors.",
            *([_RULES[size.rules]] if _RULES[size.rules] else []),
            *([_TOO_SMALL] if size.seeds < FULL.seeds else []),
            f"## Claims\n\n{_JUDGED} Of {len(claims)} claims: {judged}.",
            markdown(tables["claims"]),
            "## Results",
            markdown(tables["results"]),
            "## Figures",
            *figures,
        ]
    )
