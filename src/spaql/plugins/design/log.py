"""The stage of a design from a log of the plant, without a simulator."""

from __future__ import annotations

from functools import partial
from typing import Any

from spaql.agents import Agent, fit, load
from spaql.errors import SettingError
from spaql.figures.html import code, paragraphs
from spaql.formatting import with_interval
from spaql.plugins.design.stages import RUN, Result, Stages
from spaql.problems.plant_hash import file_hash

_PREDICTED = (
    "The predicted return is that of plants fitted to the log without some of its episodes, from starts like "
    "those of the log; it was not measured on the plant."
)


def fit_stage(log: str, stages: Stages, options: dict[str, Any]) -> Agent:
    """Fit a controller to a log, and return its agent."""
    stages.run("train", {**options, **file_hash(log)}, partial(_fitted, log, stages, options))
    agent = load(stages.folder / RUN)
    assert isinstance(agent, Agent)
    return agent


def _fitted(log: str, stages: Stages, options: dict[str, Any]) -> Result:
    fitted = fit(log, **options)
    if fitted.agent is None:
        raise SettingError(f"The log supports no controller: {' '.join(fitted.reasons)} Log more data.")
    fitted.save(stages.folder / RUN)
    line = f"{fitted.verdict}; predicted return {with_interval(fitted.predicted, fitted.half)}"
    html = code(str(fitted)) + paragraphs(_PREDICTED)
    conclusion = f"By the log alone: {line}; the return on the plant is not known."
    return Result(line, html, conclusion, files=tuple(stages.controller))
