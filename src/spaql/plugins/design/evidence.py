"""What episodes show of a trained controller: returns, smaller trees, worst cases, responses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spaql.agents import Agent, PlanTree, TreeSearch
from spaql.classical import Tuned
from spaql.cli.evaluate import evaluation_text
from spaql.cli.stress import stress_text
from spaql.controllers import controller_of
from spaql.evaluation import (
    Comparison,
    PlainControllers,
    beside,
    evaluate,
    plain_controllers,
    robustness,
    size_curve,
    stress,
)
from spaql.evaluation.conditions import CONDITION_TEXTS, NOMINAL, PERTURBED
from spaql.evaluation.control_tables import (
    LADDER_MEANS,
    LEARNED_MEANS,
    MEASURES_MEAN,
    ladder_cells,
    loop_tables,
    return_cells,
)
from spaql.evaluation.plain_controllers import failure
from spaql.evaluation.size_curve import as_good, size_cells
from spaql.evaluation.stress import known_bench
from spaql.evaluation.stress_tables import robustness_cells
from spaql.figures import compute_response
from spaql.formatting import counted, with_interval
from spaql.plugins.design.markup import attempted, code, missing, paragraphs, picture, size_text, table
from spaql.plugins.design.stages import Result

_FEW = 20
"""Episodes of each smaller tree where the plant is not compiled."""
_RETURNS_MEAN = (
    "“this” is the controller of this report; ± is a 95 % interval. A difference is the return minus that of "
    "“this” in the same episodes."
)
_UNPERTURBED = "the plant declares nothing that varies, or is not given as equations"


@dataclass(frozen=True)
class Evidence:
    """What is shown of a trained controller, by stages."""

    agent: Agent
    conditions: tuple[str, ...]
    tuned: Callable[[], tuple[list[Tuned], dict[str, str]]]
    """Returns the classical controllers, and why others could not be built."""
    episodes: int
    seed: int

    def evaluate(self) -> Result:
        """Compare it with classical, random and constant controllers."""
        tuned, _ = self.tuned()
        compared = beside(
            self.agent,
            methods=tuned,
            conditions=self.conditions,
            episodes=self.episodes,
            seed=self.seed,
        )
        plain = plain_controllers(self.agent, seed=self.seed)
        html = paragraphs(_RETURNS_MEAN, kind="note")
        shown = []
        for name, rows in compared.conditions.items():
            where = CONDITION_TEXTS[name]
            cells = return_cells(rows)
            if name == NOMINAL:
                cells += [dict.fromkeys(cells[0], "") | row for row in plain.cells]
            html += table(cells, f"Returns of {counted(self.episodes, 'fresh episode')} on {where}")
            own = rows[0].evaluation
            shown.append(f"{with_interval(own.mean, own.ci95)} on {where}")
        if PERTURBED not in compared.conditions:
            html += missing("Perturbed plants", _UNPERTURBED)
        for title, cells in loop_tables(compared.rows, CONDITION_TEXTS[self.conditions[0]]):
            html += table(cells, title)
        if self.agent.problem.setpoints:
            html += paragraphs(MEASURES_MEAN, kind="note")
        conclusion = {"conclusion": _conclusion(self.agent, compared, plain)}
        return Result(f"return {', '.join(shown)}", html, conclusion)

    def plainer(self) -> Result:
        """Return why nothing plainer was chosen: the rungs of the ladder, or the curve of sizes."""
        agent = self.agent
        rungs = agent.ladder if isinstance(agent, TreeSearch | PlanTree) else []
        if rungs:
            notes = agent.design_notes if isinstance(agent, TreeSearch) else [LEARNED_MEANS]
            html = table(ladder_cells(rungs)) + paragraphs(LADDER_MEANS, *notes, kind="note")
            return Result(f"{counted(len(rungs), 'structure')} tried", html)
        if controller_of(agent).n_leaves == 1:
            line = "it is one law, and no tree is smaller"
            return Result(line, paragraphs(f"The controller has one leaf: {line}."))
        episodes = min(_FEW, self.episodes) if agent.problem.dynamics is None else self.episodes
        curve = size_curve(agent, episodes=episodes, seed=self.seed)
        enough = as_good(curve)
        line = f"a tree of {counted(enough.tree.n_leaves, 'leaf')} is not significantly worse"
        if enough is curve[-1]:
            line = "no smaller tree that was found is as good"
        told = (
            "Smaller trees were fitted to the actions of the controller, which is the last, and evaluated in "
            f"the same {counted(episodes, 'fresh episode')}: {line}."
        )
        return Result(line, table(size_cells(curve)) + paragraphs(told))

    def stress(self) -> Result:
        """Look for the worst: starts all over the state space, and changed plants."""
        fresh = evaluate(self.agent, episodes=self.episodes, seed=self.seed)
        rows = robustness(self.agent, episodes=self.episodes, seed=self.seed)
        html = code(evaluation_text(fresh)) + attempted("The test of starts all over the space", self._starts)
        html += table(robustness_cells(rows), "Changed plants, one change at a time")
        least = min(rows, key=lambda row: row.mean)
        return Result(f"worst change: {least.change}, {with_interval(least.mean, least.ci95)}", html)

    def _starts(self) -> str:
        bench = known_bench(self.agent.problem)
        return code(stress_text(stress(self.agent, bench=bench, seed=self.seed), bench, 5))

    def respond(self) -> Result:
        """Draw the responses to a step of each set-point and to a load."""
        if not self.agent.problem.setpoints:
            return Result("none: the plant declares no set-points", "")
        tuned, _ = self.tuned()
        html = picture("The step test", lambda: compute_response(self.agent, beside=tuned))
        return Result("steps of the set-points" if "<svg" in html else "none is possible", html)


def _conclusion(agent: Agent, compared: Comparison, plain: PlainControllers) -> str:
    """Return the sentence with which the report begins."""
    fresh = compared.conditions[NOMINAL][0].evaluation
    verdict = failure(agent, fresh, plain) or compared.verdict
    if verdict and not verdict.startswith("Compared"):
        return verdict
    this = f"The learned controller ({size_text(controller_of(agent))})"
    if verdict:
        return f"{this}, c{verdict[1:]}"
    returned = with_interval(fresh.mean, fresh.ci95)
    return f"{this} returns {returned}, compared with {plain.text}; no PID or LQR is defined for this plant."
