"""The parts of a policy card on set-points: the ladder, the loop beside a PID controller, and a step test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from spaql.agents import Agent, Design, PlanTree, TreeSearch
from spaql.evaluation.beside import beside, steps_of
from spaql.evaluation.conditions import CONDITION_TEXTS
from spaql.evaluation.control_tables import (
    LADDER_MEANS,
    LEARNED_MEANS,
    MEASURES_MEAN,
    ladder_cells,
    lags_text,
    loop_tables,
    return_cells,
)
from spaql.evaluation.step_test import has_step_test
from spaql.figures.drawing import svg
from spaql.figures.response import compute_response
from spaql.languages import in_html
from spaql.tables import html_table


def control_section(source: Agent | Design, episodes: int, seed: int) -> Iterator[str]:
    """Yield the section of a controller whose problem declares set-points; a refused rival is named."""
    options: dict[str, Any] = {"steps": steps_of(source), "seed": seed}
    comparison = beside(source, methods=["pid"], episodes=episodes, **options)
    rows = comparison.rows
    yield '<div class="sides"><div><h2>As control</h2>'
    if len(rows) > 1:
        for condition, judged in comparison.conditions.items():
            yield f"<p>On {CONDITION_TEXTS[condition]}</p>"
            yield f'<div class="scroll">{html_table(return_cells(judged))}</div>'
    refused = [f"There is no PID controller beside it. {why}" for why in comparison.refused.values()]
    lines = [comparison.verdict, *refused, *(row.law for row in rows)]
    yield from (f"<p>{in_html(line)}</p>" for line in lines if line)
    for title, cells in loop_tables(rows, CONDITION_TEXTS[next(iter(comparison.conditions))]):
        yield f'<p>{in_html(title)}</p><div class="scroll">{html_table(cells)}</div>'
    yield f"<p>{in_html(MEASURES_MEAN)}</p></div>"
    if has_step_test(source.problem):
        yield f"<div>{svg(compute_response(source, beside=['pid'], **options))}</div>"
    yield "</div>"


def ladder_section(source: Agent | Design) -> Iterator[str]:
    """Yield the ladder of a run that climbed one: the structures that were tried."""
    rungs = source.ladder if isinstance(source, TreeSearch | PlanTree) else []
    if rungs:
        yield f'<h2>The ladder</h2><div class="scroll">{html_table(ladder_cells(rungs))}</div>'
        notes = source.design_notes if isinstance(source, TreeSearch) else []
        yield from (f"<p>{in_html(line)}</p>" for line in (LADDER_MEANS, *notes))
        if isinstance(source, PlanTree) and source.lags is not None:
            yield f"<p>{in_html(f'{LEARNED_MEANS} {lags_text(source.lags)}')}</p>"
