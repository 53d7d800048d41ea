"""The report of a design: one page of HTML that needs no other file, and its print."""

from __future__ import annotations

import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

from spaql.agents.run_folder import versions
from spaql.archive import write_atomically
from spaql.evaluation.plant_tables import equations_text, plant_cells, signal_cells
from spaql.figures.html import code, missing, page, paragraphs, table
from spaql.languages import in_html
from spaql.plugins.design.stages import Stages
from spaql.problems import Problem
from spaql.tables import html_table

_STYLE = Path(__file__).with_name("report.css")
_SECTIONS = {
    "train": "What was chosen",
    "plainer": "Why nothing plainer",
    "controller": "The controller",
    "evaluate": "Returns",
    "classical": "The classical controllers",
    "respond": "Step tests",
    "stress": "Worst cases",
    "prove": "What is proven",
    "export": "The C code",
    "check": "The check of the plant",
}
"""The sections between the task and the hashes, by their stages."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_BY_HAND = "open the report in a browser, and print it to a file"


def write_report(stages: Stages, problem: Problem, command: str) -> Path:
    """Write the report, and return its path."""
    sections = {"What was asked": _asked(problem)}
    for stage, section in _SECTIONS.items():
        done = stages.results.get(stage)
        sections[section] = missing(section, "not available from a log") if done is None else done.html
    sections["Identity"] = _identity(stages, problem, command)
    sections["Signatures"] = _signatures()
    body = (
        f"<section><h2>{i}. {section}</h2>{html}</section>"
        for i, (section, html) in enumerate(sections.items(), 1)
    )
    title = f"{problem.name}: design report"
    head = f"<header><h1>{in_html(title)}</h1>{paragraphs(stages.conclusion, kind='conclusion')}</header>"
    path = stages.folder / "report.html"
    write_atomically(path, page(title, _STYLE.read_text("utf-8"), head + "".join(body)).encode())
    return path


def _asked(problem: Problem) -> str:
    """Return the task: the plant with its disturbances, its signals, and its equations where it has some."""
    html = table(plant_cells(problem), kind="words") + table(signal_cells(problem), "Signals")
    if problem.dynamics is not None:
        html += f"<h3>Equations</h3>{code(equations_text(problem.dynamics))}"
    return html


def _identity(stages: Stages, problem: Problem, command: str) -> str:
    """Return the hashes of everything, the versions, and the command that makes it again."""
    hashes = dict(stages.results["controller"].digests)
    for result in stages.results.values():
        hashes |= stages.hashes(result)
    hashes |= {f"plant: {part}": digest for part, digest in problem.plant.items()}
    rows = [{"what": name, "SHA-256": digest} for name, digest in hashes.items()]
    used = ", ".join(f"{name} {version}" for name, version in versions().items())
    again = paragraphs(
        "In a new folder this command makes the same controller, if its training was not continued:"
    ) + code(command)
    return table(rows, kind="words") + paragraphs(f"Made with {used}.") + again


def _signatures() -> str:
    """Return the block to sign."""
    roles = ("Prepared by", "Reviewed by", "Approved by")
    rows = [{"": role, "name": "", "date": "", "signature": ""} for role in roles]
    asked = paragraphs("I have read this report. The controller may be used on this plant: yes / no.")
    return f'{asked}<div class="sign">{html_table(rows)}</div>'


def print_pdf(report: Path) -> str:
    """Print a report, and return the path of the PDF, or how to make it."""
    pdf = report.with_suffix(".pdf")
    pdf.unlink(missing_ok=True)
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        return f"no PDF, as there is no Chromium: {_BY_HAND}"
    # Root and many containers have no sandbox; the page is ours, has no scripts and loads nothing.
    options = ["--headless", "--no-pdf-header-footer", "--no-sandbox"]
    words = [browser, *options, f"--print-to-pdf={pdf.resolve()}", report.resolve().as_uri()]
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(words, capture_output=True, timeout=120)
    return str(pdf) if pdf.is_file() else f"no PDF, as {browser} has printed none: {_BY_HAND}"
