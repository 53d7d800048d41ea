"""The part of a policy card on what `spaql verify` proved, refuted and left undecided."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from spaql.agents import Agent, Design
from spaql.agents.agent_file import verdict_file
from spaql.errors import SpaqlError
from spaql.figures.drawing import svg
from spaql.figures.verdicts import compute_verdict
from spaql.languages import in_html
from spaql.verify.stored import verdict_about
from spaql.verify.verdict import Verdict


def verdict_section(path: Path, source: Agent | Design) -> Iterator[str]:
    """Yield the last verdict about a controller, and nothing if it was not verified.

    A verdict about another controller, or about other equations of the plant, is not shown.
    """
    try:
        verdict = verdict_about(verdict_file(path), source)
    except SpaqlError as error:
        yield f"<h2>What is proven</h2><p>No verdict is shown. {in_html(str(error))}</p>"
        return
    if verdict is None:
        return
    first, *rest = verdict.text.split("\n")
    yield f'<div class="sides"><div><h2>What is proven</h2><p>{in_html(first)}</p>'
    yield "".join(f"<p>{in_html(line)}</p>" for line in rest)
    if not verdict.finished:
        yield "<p>The time was up before the search had ended: this is the answer until then.</p>"
    yield f"</div>{_map(verdict)}</div>"


def _map(verdict: Verdict) -> str:
    """Return the map, where there is one and it can be drawn."""
    if find_spec("matplotlib") is None or verdict.status.ndim < 2 or verdict.status.size == 1:
        return ""
    return f"<div>{svg(compute_verdict(verdict))}</div>"
