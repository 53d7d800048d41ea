"""The report of a design: one page of HTML that needs no other file, and its print."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from spaql.agents.run_folder import versions
from spaql.archive import write_atomically
from spaql.evaluation.plant_tables import equations_text, plant_cells, signal_cells
from spaql.figures.names import NAMES
from spaql.languages import in_html
from spaql.plugins.design.markup import code, missing, paragraphs, table
from spaql.plugins.design.stages import Stages
from spaql.problems import Problem
from spaql.tables import html_table

_STYLE = Path(__file__).with_name("report.css")
_NO_NETWORK = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_SECTIONS = {
    "What was chosen": ("train", "fit"),
    "Why nothing plainer": ("plainer",),
    "The controller": ("controller",),
    "Returns": ("evaluate",),
    "The classical controllers": ("classical",),
    "Step tests": ("respond",),
    "Worst cases": ("stress",),
    "What is proven": ("prove",),
    "The C code": ("export",),
    "The check of the plant": ("check",),
}
"""The sections between the task and the hashes, with their stages."""
_ASKED = "I have read this report. The controller may be used on the plant that it describes: yes / no."
_SIGNED = ("Prepared", "Reviewed", "Approved")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "msedge")
_BY_HAND = "open the report in a browser, and print it to a PDF file"
_SECONDS = 120
"""Time for a print."""


def write_report(stages: Stages, problem: Problem, conclusion: str, command: str) -> Path:
    """Write the report, and return its path."""
    name = in_html(NAMES.get(problem.name, problem.name))
    sections = {"What was asked": _asked(problem)}
    for title, names in _SECTIONS.items():
        done = [stages.results[stage].html for stage in names if stage in stages.results]
        sections[title] = "".join(done) if done else missing(title, "not available from a log")
    sections["Identity"] = _identity(stages, problem, command)
    sections["Signatures"] = _signatures()
    written = [(title, html) for title, html in sections.items() if html]
    body = (f"<section><h2>{i}. {title}</h2>{html}</section>" for i, (title, html) in enumerate(written, 1))
    page = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f'<meta http-equiv="Content-Security-Policy" content="{_NO_NETWORK}">'
        f"<title>{name}: design report</title><style>{_STYLE.read_text('utf-8')}</style></head><body>"
        f'<header><p>Design report</p><h1>{name}</h1><p class="conclusion">{in_html(conclusion)}</p></header>'
        f"{''.join(body)}</body></html>\n"
    )
    path = stages.folder / "report.html"
    write_atomically(path, page.encode())
    return path


def _asked(problem: Problem) -> str:
    """Return the task: the plant with its disturbances, its signals, and its equations where it has some."""
    html = table(plant_cells(problem), kind="words") + table(signal_cells(problem), "Signals")
    if problem.dynamics is not None:
        html += f"<h3>Equations</h3>{code(equations_text(problem.dynamics))}"
    return html


def _identity(stages: Stages, problem: Problem, command: str) -> str:
    """Return the hashes of everything, the versions, and the command that makes it again."""
    hashes = dict(stages.results["controller"].data)
    for result in stages.results.values():
        hashes |= stages.hashes(result)
    hashes |= {f"plant: {part}": digest for part, digest in problem.plant.items()}
    rows = [{"what": name, "SHA-256": digest} for name, digest in hashes.items()]
    used = [{"program": name, "version": version} for name, version in versions().items()]
    spent = [
        {"stage": name, "result": result.line, "time": f"{result.seconds:g} s"}
        for name, result in stages.results.items()
    ]
    again = paragraphs("This command makes it again, with the same bytes but for times:") + code(command)
    return "".join(table(cells, kind="words") for cells in (rows, used, spent)) + again


def _signatures() -> str:
    """Return the block to sign."""
    rows = [{"": f"{role} by", "name": "", "date": "", "signature": ""} for role in _SIGNED]
    return f'{paragraphs(_ASKED)}<div class="sign">{html_table(rows)}</div>'


def print_pdf(report: Path) -> str:
    """Print a report, and return the path of the PDF, or how to make it."""
    pdf = report.with_suffix(".pdf")
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    weasyprint = shutil.which("weasyprint")
    if browser is not None:
        words = [browser, "--headless", "--disable-gpu", "--no-pdf-header-footer"]
        words += ["--no-sandbox"] * (os.name == "posix" and os.geteuid() == 0)  # which root needs
        words += [f"--print-to-pdf={pdf.resolve()}", report.resolve().as_uri()]
    elif weasyprint is not None:
        words = [weasyprint, str(report), str(pdf)]
    else:
        return f"no PDF, which needs Chromium or WeasyPrint: {_BY_HAND}"
    pdf.unlink(missing_ok=True)
    try:
        subprocess.run(words, capture_output=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        return f"no PDF ({error}): {_BY_HAND}"
    return str(pdf) if pdf.is_file() else f"no PDF, {Path(words[0]).name} wrote none: {_BY_HAND}"
