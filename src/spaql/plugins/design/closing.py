"""The last stages of a design, of any controller: its text and picture, the proof, and the C code."""

from __future__ import annotations

from functools import partial

from spaql.agents import Agent
from spaql.cli.export import equivalence_text, provenance
from spaql.cli.verify import store
from spaql.controllers import controller_of, text
from spaql.errors import ContradictedProofError, SpaqlError
from spaql.export import c
from spaql.export.targets import hashes_of
from spaql.figures import compute_tree, compute_verdict
from spaql.figures.html import code, items, missing, paragraphs, picture, size_text
from spaql.plugins.design.stages import RUN, Result, Stages
from spaql.verify import verify
from spaql.verify.verdict import percent

_ASSUMED = (
    "The equations are taken as they are: nothing is proven of the real plant.",
    "There is no noise, dead time, load or change of a parameter, unless the statement names it.",
    "The controller is its program in double precision, with observations and actions in single precision; "
    "the equations are in exact arithmetic.",
    "sin, exp and so on of the machine are exact to 4 units in the last place; +, -, *, / and roots follow "
    "IEEE 754.",
    "The prover is tested, and not itself proven.",
)


def close(agent: Agent, stages: Stages, seconds: float) -> None:
    """Show, prove and export a trained controller."""
    inputs = stages.controller
    stages.run("controller", inputs, partial(_shown, agent))
    stages.run("prove", inputs | {"seconds": str(seconds)}, partial(_proven, agent, stages, seconds))
    stages.run("export", inputs, partial(_exported, agent, stages))


def _shown(agent: Agent) -> Result:
    controller = controller_of(agent)
    html = code(text(controller, 4)) + paragraphs("Rounded to four digits; controller.c has all of them.")
    if controller.n_leaves > 1:
        html += picture("The picture of the tree", lambda: compute_tree(controller, title="The controller"))
    return Result(size_text(controller), html, digests=hashes_of(controller, agent.problem))


def _proven(agent: Agent, stages: Stages, seconds: float) -> Result:
    try:
        verdict = verify(agent, seconds=seconds)
    except ContradictedProofError:
        raise
    except SpaqlError as error:
        return _refused("Nothing is proven", error)
    html = paragraphs(*verdict.text.split("\n")) + store(verdict, stages.folder / RUN)
    if not verdict.finished:
        html += paragraphs(f"The time of {seconds:g} s was up before the search had ended.")
    if verdict.status.ndim > 1 and verdict.status.size > 1:
        html += picture("The map of proven states", lambda: compute_verdict(verdict))
    line = f"proven from {percent(verdict.proven)} of the states, refuted {percent(verdict.refuted)}"
    return Result(line, html + "<h3>What the proof assumes</h3>" + items(_ASSUMED))


def _exported(agent: Agent, stages: Stages) -> Result:
    try:
        result = c(agent, stages.folder / "controller.c", provenance=provenance(agent))
    except SpaqlError as error:
        return _refused("There is no C code", error)
    line = f"{', '.join(result.files)}: equal at {sum(result.points.values()):,} points"
    return Result(line, code(equivalence_text(result)), files=tuple(result.files))


def _refused(what: str, error: SpaqlError) -> Result:
    return Result(f"refused: {str(error).partition('. ')[0]}", missing(what, error))
