"""The ladder: from the plainest controller with memory to one that does the job, and no further.

P, PD, PI and PID controllers are raced, in position and velocity form, and the linear regulator of the plant
is tried. The best of each form is given all that the problem declares, and loses again what does not pay: a
kind of feature that stays gains more than 1 %, and wins a paired test. Leaves are added by the same rule.
Each structure that was tried is a rung. All rungs are evaluated from the same starts, by which one is chosen
(see `choose`) and which are printed. A pole that is to be swung up begins with energy pumping and a regulator
at the top instead, by few numbers, before all numbers are searched.
"""

from __future__ import annotations

from typing import Any

from spaql.algorithms.treesearch.evaluator import DIGITS, Evaluator
from spaql.algorithms.treesearch.ladder.block import Block, Usual
from spaql.algorithms.treesearch.ladder.rungs import Rung
from spaql.algorithms.treesearch.ladder.structures import Meaning, Structure
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.controllers import Controller
from spaql.problems import Dynamics
from spaql.problems.disturbances import Perturbation
from spaql.problems.perturbed import perturbed
from spaql.problems.setpoint_steps import SetpointSteps, with_setpoint_steps
from spaql.simulate import Phase

RACE = 0.2
ALL = 0.55
REMOVE = 0.75
LEAVES = 0.8
POLISH = 0.86
TERMS = 0.94
"""The shares of the budget at which the stages end; the rest is for the numbers that are left, and digits."""
BEFORE_CHOICE = ("measure", "swing_up", "race", "all", "remove", "leaves", "choose")
"""The stages before a rung is chosen."""


class Ladder:
    """The state of a search for a controller with memory."""

    def __init__(self, settings: TreeSearchSettings, evaluator: Evaluator, meaning: Meaning) -> None:
        self.settings = settings
        self.evaluator = evaluator
        self.meaning = meaning
        evaluator.keeps_hard_starts = False  # see `_search`
        plant = meaning.problem.dynamics
        self.design: Dynamics | Perturbation | None = None
        """The plant to design for, if it is not the plant itself: one whose set-points step, and a perturbed
        one unless the design is to be nominal; of a learned plant, how it is perturbed."""
        self.setpoint_steps: SetpointSteps | None = None
        """How set-points step in the episodes of the search."""
        self.uncounted = 0
        """Simulator steps that were made before the first iteration."""
        if plant is not None:
            goals = [r for _, r in meaning.problem.setpoint_places]
            self.setpoint_steps, self.uncounted = with_setpoint_steps(plant, goals, meaning.problem.horizon)
            stepped = self.setpoint_steps.plant if self.setpoint_steps else None
            self.design = stepped if settings.nominal else perturbed(stepped or plant)
        self.budget = 0
        self.spent = 0
        self.stage = "measure"
        self.usual = Usual({})
        """Usual magnitudes of features, and the operating point."""
        self.racers: list[tuple[Structure, Racer]] = []
        self.round = 0
        self.turn = 0
        self.rungs: list[Rung] = []
        self.best = 0
        """The rung that would be returned."""
        self.digits = DIGITS
        self.first_return = 0.0
        """Median return of random controllers."""

    @property
    def incumbent(self) -> Rung | None:
        """The best rung so far."""
        return self.rungs[self.best] if self.rungs else None

    @property
    def controller(self) -> Controller:
        """The best controller so far; before the first, an idle one."""
        if not self.rungs:
            block = self.block(Structure(*self.meaning.plain[0]))
            return block.controller(block.one_law())
        rung = self.rungs[self.best]
        return self.block(rung.structure).controller(rung.tree, self.digits)

    def rows(self) -> list[dict[str, Any]]:
        """Return what a person wants to know of each rung, the plainest first; the best is marked.

        Measures of the plant's own episodes are None before the choice.
        """
        rows = [rung.row() | {"chosen": i == self.best} for i, rung in enumerate(self.rungs)]
        return sorted(rows, key=lambda row: (row["leaves"], row["numbers"]))

    def notes(self) -> list[str]:
        """Return, in sentences, how the episodes of the design differ from the plant's own, and its start."""
        notes = list[str]()
        meaning = self.meaning
        if self.setpoint_steps is not None:
            first, end = self.setpoint_steps.begins
            notes.append(
                f"Set-points step in half of the training episodes, between samples {first} and {end}, to "
                "those of another start. Evaluations are of the plant's own episodes, without such a step."
            )
        if self.usual.action:
            held = ", ".join(
                f"{n} = {x:.3g}" for n, x in zip(meaning.actions, self.usual.action, strict=True)
            )
            notes.append(f"The search began at the operating point: {held}.")
        plant = meaning.problem.dynamics
        if plant is not None and self.usual.action and (plant.disturbances.delay[1] or plant.rate_limit):
            ends = zip(meaning.actions, plant.disturbances.low, plant.disturbances.high, strict=True)
            resting = [f"{n} at {a if a > 0 else b:.3g}" for n, a, b in ends if a > 0 or b < 0]
            if resting:
                notes.append(
                    "Before the first action the actuator rests at the end of its range next to 0 "
                    f"({', '.join(resting)}), and not at the operating point: declare the action as a "
                    "deviation from it if that is not meant."
                )
        return notes

    def plan(self, budget: int) -> None:
        """Begin a search of so many steps, or go on from the best rung of a ladder that has been climbed."""
        self.budget = budget
        self.spent = 0
        self.round = 0
        self.turn = 0
        self.stage = "measure"
        if self.rungs:
            self.stage = "polish" if len(self.evaluator.judging_starts) else "choose"
        self.racers = []
        if self.rungs:
            rung = self.rungs[self.best]
            self.racers = [(rung.structure, Racer.of(rung.tree, step=0.3))]

    def begin_at(self, other: Ladder) -> None:
        """Begin at the best rung of a ladder that was climbed in another form of the plant."""
        rung = other.rungs[other.best]
        self.rungs = [rung]
        self.best = 0
        self.usual = other.usual
        self.evaluator.span = other.evaluator.span
        self.first_return = other.first_return

    def count_steps(self, steps: int) -> None:
        """Count steps of the plant that are not of an episode."""
        assert self.evaluator.runner is not None
        self.evaluator.runner.interactions.add(Phase.SEARCH, steps)
        self.evaluator.steps += steps

    def block(self, structure: Structure) -> Block:
        """Return the block of a structure."""
        return Block.of(self.meaning, structure, self.usual)

    def use(self, structure: Structure) -> Block:
        """Return the block of a structure, and let the evaluator play with it."""
        block = self.block(structure)
        self.evaluator.frame = block.frame
        self.evaluator.units = block.units
        return block
