"""The stages of a design for a plant in which episodes can be run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from spaql.agents import Agent, agent_type
from spaql.agents.budget import Budget
from spaql.agents.problem_file import problem_to
from spaql.agents.run_folder import resumed, save_run
from spaql.agents.train_tries import TRIES_FOLDER, train_in, train_tries
from spaql.checks import PROBLEM_CHECKS, check_problem
from spaql.classical import METHODS, Tuned
from spaql.cli.default_algorithm import default_steps, suited_algorithm
from spaql.cli.interrupt import StopOnInterrupt
from spaql.controllers import controller_of
from spaql.errors import SettingError
from spaql.evaluation import evaluate
from spaql.evaluation.beside import TUNING_STEPS, tuned_methods
from spaql.evaluation.conditions import CONDITION_TEXTS, conditions_of, in_condition
from spaql.formatting import with_interval
from spaql.plugins.design.evidence import Evidence
from spaql.plugins.design.markup import items, paragraphs, size_text
from spaql.plugins.design.stages import RUN, Result, Stages
from spaql.problems import Problem, make_problem
from spaql.workers import cores

_RULE = (
    "The algorithm is that of `spaql train` for this plant and budget: TreeSearch for a compiled plant with "
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
    def budget(self) -> Budget:
        """The budget of a training."""
        steps = default_steps(self.untrained.learner_type.name) if self.steps is None else self.steps
        return Budget(total_timesteps=steps)

    @property
    def tuning_steps(self) -> int:
        """Steps to tune a classical controller: those of the training, and more where they are cheap."""
        steps = self.budget.total_timesteps or 0
        return steps if self.problem.dynamics is None else max(steps, TUNING_STEPS)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """The conditions of evaluations, first that of the design."""
        return conditions_of(self.untrained, self.problem)

    @cached_property
    def tuned(self) -> tuple[list[Tuned], dict[str, str]]:
        """The classical controllers, and why others could not be built."""
        where = in_condition(self.problem, self.conditions[0])
        return tuned_methods(where, METHODS, steps=self.tuning_steps, seed=self.seed)

    def carry_out(self) -> Agent:
        """Run the stages, and return the trained agent."""
        run = self.stages.run
        task = {"problem": problem_to(self.problem)[0], "seed": self.seed}
        tuning = task | {"steps": self.tuning_steps, "episodes": self.episodes}
        run("check", task, self._check)
        run("classical", tuning, self._classical)
        training = {"algo": self.untrained.learner_type.name, "budget": self.budget, "tries": self.tries}
        run("train", task | training, self._train)
        agent = resumed(self.untrained, self.stages.folder / RUN, same_seed=self.tries == 1)
        evidence = Evidence(agent, self.conditions, lambda: self.tuned, self.episodes, self.seed + 1)
        for work in (evidence.evaluate, evidence.plainer, evidence.stress, evidence.respond):
            run(work.__name__, tuning | self.stages.controller, work)
        return agent

    def _check(self) -> Result:
        """Check the plant; refuse one that lacks what every algorithm relies on."""
        report = check_problem(self.plant, **self.described)
        needed = {check.name for check in PROBLEM_CHECKS if check.needed}
        faults = [f"{finding.promise} {finding.why}" for finding in report.failed]
        if any(finding.name in needed for finding in report.failed):
            raise SettingError(f"{self.problem.name} cannot be trained on: {' '.join(faults)}")
        line = str(report).splitlines()[-1]
        return Result(line, paragraphs(f"{line}.", *faults))

    def _classical(self) -> Result:
        tuned, refused = self.tuned
        where = in_condition(self.problem, self.conditions[0])
        shown = [f"no {name}" for name in refused]
        laws = [f"No {name}: {why}" for name, why in refused.items()]
        for rival in tuned:
            fresh = evaluate(rival.policy, where, episodes=self.episodes, seed=self.seed + 1)
            shown.append(f"{rival.name} {with_interval(fresh.mean, fresh.ci95)}")
            laws.append(f"{rival.name}: {rival.text}; tuned with {rival.steps:,} steps")
        return Result(f"{', '.join(shown)} on {CONDITION_TEXTS[self.conditions[0]]}", items(laws))

    def _train(self) -> Result:
        """Train, or continue a training; Ctrl-C ends it after an iteration, and all is saved."""
        agent = self.untrained
        folder = self.stages.folder / RUN
        if self.tries > 1:
            workers = min(self.tries, cores())
            train_tries(agent, self.budget, folder / TRIES_FOLDER, tries=self.tries, workers=workers)
            save_run(agent, folder)
        else:
            with StopOnInterrupt() as interrupt:
                show = not self.stages.quiet
                agent = train_in(folder, agent, self.budget, interrupt, progress_bar=show)
            if interrupt.pressed:
                raise KeyboardInterrupt
        steps = int(agent.history.last()["interactions"])
        size = size_text(controller_of(agent))
        line = f"{size}, by {agent.learner_type.name} with {steps:,} simulator steps"
        told = f"{line}, seed {agent.seed}, budget {self.budget.total_timesteps:,} steps"
        told += f" in each of {self.tries} tries." if self.tries > 1 else "."
        return Result(line, paragraphs(told, _RULE), files=tuple(self.stages.controller))
