"""The stages of a design for a plant in which episodes can be run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spaql.agents import Agent, PlanTree, TreeSearch, agent_type
from spaql.agents.problem_file import problem_to
from spaql.agents.run_folder import resumed, save_run
from spaql.agents.training_loop import Budget
from spaql.agents.tries import TRIES_FOLDER, train_in, train_tries
from spaql.checks import check_problem
from spaql.classical import METHODS, Tuned
from spaql.cli.default_algorithm import default_steps, suited_algorithm
from spaql.cli.evaluate import evaluation_text
from spaql.cli.interrupt import StopOnInterrupt
from spaql.cli.stress import stress_text
from spaql.controllers import controller_of
from spaql.errors import SettingError
from spaql.evaluation import (
    ClassicalComparison,
    PlainControllers,
    beside,
    evaluate,
    plain_controllers,
    robustness,
    size_curve,
    stress,
)
from spaql.evaluation.beside import TUNING_STEPS, failure, tuned_methods
from spaql.evaluation.conditions import CONDITION_TEXTS, NOMINAL, PERTURBED, conditions_of, in_condition
from spaql.evaluation.result_tables import (
    LADDER_MEANS,
    LEARNED_MEANS,
    MEASURES_MEAN,
    ladder_cells,
    loop_tables,
    return_cells,
    robustness_cells,
)
from spaql.evaluation.size_curve import as_good, size_cells
from spaql.evaluation.step_test import has_step_test
from spaql.evaluation.stress import known_bench
from spaql.figures import compute_response
from spaql.figures.html import attempted, code, items, missing, paragraphs, picture, size_text, table
from spaql.formatting import counted, with_interval
from spaql.plugins.design.stages import RUN, Result, Stages
from spaql.problems import Problem, make_problem
from spaql.workers import cores

_RETURNS_MEAN = (
    "“this” is the controller of this report; ± is a 95 % interval. A difference is the return minus that of "
    "“this” in the same episodes."
)
_RULE = (
    "The algorithm is that of spaql train for this plant and budget: TreeSearch for a compiled plant with "
    "set-points, and for more than 100,000 steps; PlanTree otherwise."
)


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """The design of a controller for a plant in which episodes can be run."""

    stages: Stages
    plant: str
    described: dict[str, Any]
    """Options of `spaql.make_problem`."""
    steps: int | None
    seed: int
    tries: int
    episodes: int

    @cached_property
    def problem(self) -> Problem:
        """The problem."""
        return make_problem(self.plant, measured=False, **self.described)

    @cached_property
    def untrained(self) -> Agent:
        """The agent before its training."""
        return agent_type(suited_algorithm(self.problem, self.steps))(self.problem, seed=self.seed)

    @property
    def budget(self) -> int:
        """Training steps."""
        return default_steps(self.untrained.learner_type.name) if self.steps is None else self.steps

    @property
    def tuning_steps(self) -> int:
        """Steps to tune a classical controller: those of the training, and more where they are cheap."""
        return self.budget if self.problem.dynamics is None else max(self.budget, TUNING_STEPS)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of evaluations, first that of the design."""
        return conditions_of(self.untrained, self.problem)

    @cached_property
    def tuned(self) -> tuple[list[Tuned], dict[str, str]]:
        """The classical controllers, and why others could not be built."""
        where = in_condition(self.problem, self.conditions[0])
        return tuned_methods(where, METHODS, steps=self.tuning_steps, seed=self.seed)

    @cached_property
    def agent(self) -> Agent:
        """The trained agent."""
        return resumed(self.untrained, self.stages.folder / RUN, same_seed=self.tries == 1)

    @property
    def counts(self) -> dict[str, Any]:
        """The number of fresh episodes, and their seed."""
        return {"episodes": self.episodes, "seed": self.seed + 1}

    def carry_out(self) -> Agent:
        """Run the stages, and return the trained agent."""
        run = self.stages.run
        task = {"problem": problem_to(self.problem)[0], "seed": self.seed}
        tuning = task | {"steps": self.tuning_steps, "episodes": self.episodes}
        run("check", task, self._check)
        run("classical", tuning, self._classical)
        training = {"algo": self.untrained.learner_type.name, "budget": self.budget, "tries": self.tries}
        run("train", task | training, self._train)
        for work in (self.evaluate, self.plainer, self.stress, self.respond):
            run(work.__name__, tuning | self.stages.controller, work)
        return self.agent

    def _check(self) -> Result:
        report = check_problem(self.plant, **self.described)
        if not report:
            faults = [f"{finding.promise} {finding.why}" for finding in report.failed]
            raise SettingError(f"{self.problem.name} does not meet its contract: {' '.join(faults)}")
        line = str(report).splitlines()[-1]
        return Result(line, paragraphs(f"{line}."))

    def _classical(self) -> Result:
        tuned, refused = self.tuned
        where = in_condition(self.problem, self.conditions[0])
        shown = [f"no {name}" for name in refused]
        laws = [f"No {name}: {why}" for name, why in refused.items()]
        for rival in tuned:
            fresh = evaluate(rival.policy, where, **self.counts)
            shown.append(f"{rival.name} {with_interval(fresh.mean, fresh.ci95)}")
            laws.append(f"{rival.name}: {rival.text}; tuned with {rival.steps:,} steps")
        return Result(f"{', '.join(shown)} on {CONDITION_TEXTS[self.conditions[0]]}", items(laws))

    def _train(self) -> Result:
        """Train, or continue a training; Ctrl-C ends it after an iteration, and all is saved."""
        agent = self.untrained
        folder = self.stages.folder / RUN
        budget = Budget(total_timesteps=self.budget)
        if self.tries > 1:
            workers = min(self.tries, cores())
            train_tries(agent, budget, folder / TRIES_FOLDER, tries=self.tries, workers=workers)
            save_run(agent, folder)
        else:
            with StopOnInterrupt() as interrupt:
                show = not self.stages.quiet
                agent = train_in(folder, agent, budget, interrupt, progress_bar=show)
            if interrupt.pressed:
                raise KeyboardInterrupt
        spent = f"{int(agent.history.last()['interactions']):,} simulator steps"
        line = f"{size_text(controller_of(agent))}, by {agent.learner_type.name} with {spent}"
        asked = f"seed {agent.seed}, {counted(self.tries, 'try')} of {self.budget:,} steps"
        return Result(line, paragraphs(f"{line}; {asked}.", _RULE), files=tuple(self.stages.controller))

    def evaluate(self) -> Result:
        """Compare it with classical, random and constant controllers."""
        tuned, _ = self.tuned
        compared = beside(self.agent, methods=tuned, conditions=self.conditions, **self.counts)
        plain = plain_controllers(self.agent, seed=self.seed + 1)
        html = paragraphs(_RETURNS_MEAN, kind="note")
        for name, rows in compared.conditions.items():
            where = CONDITION_TEXTS[name]
            cells = return_cells(rows)
            if name == NOMINAL:
                cells += [dict.fromkeys(cells[0], "") | row for row in plain.cells]
            html += table(cells, f"Returns of {counted(self.episodes, 'fresh episode')} on {where}")
        if PERTURBED not in compared.conditions:
            html += missing("Perturbed plants", "none are declared, or the plant has no equations")
        for title, cells in loop_tables(compared.rows, CONDITION_TEXTS[self.conditions[0]]):
            html += table(cells, title)
        if self.agent.problem.setpoints:
            html += paragraphs(MEASURES_MEAN, kind="note")
        own = compared.rows[0].evaluation
        line = f"{with_interval(own.mean, own.ci95)} on {CONDITION_TEXTS[self.conditions[0]]}"
        return Result(line, html, _conclusion(self.agent, compared, plain))

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
        episodes = min(20, self.episodes) if agent.problem.dynamics is None else self.episodes
        curve = size_curve(agent, episodes=episodes, seed=self.seed + 1)
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
        fresh = evaluate(self.agent, **self.counts)
        rows = robustness(self.agent, **self.counts)
        html = code(evaluation_text(fresh)) + attempted("The test of starts all over the space", self._starts)
        html += table(robustness_cells(rows), "Changed plants, one change at a time")
        least = min(rows, key=lambda row: row.mean)
        return Result(f"worst change: {least.change}, {with_interval(least.mean, least.ci95)}", html)

    def _starts(self) -> str:
        bench = known_bench(self.agent.problem)
        return code(stress_text(stress(self.agent, bench=bench, seed=self.seed + 1), bench, 5))

    def respond(self) -> Result:
        """Draw the responses to a step of each set-point and to a load."""
        if not has_step_test(self.problem):
            none = "none is possible: it needs equations, and set-points among their state variables"
            return Result(none, missing("Step tests", none))
        tuned, _ = self.tuned
        response = picture("The step test", lambda: compute_response(self.agent, beside=tuned))
        return Result("steps of the set-points, and a load", response)


def _conclusion(agent: Agent, compared: ClassicalComparison, plain: PlainControllers) -> str:
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
