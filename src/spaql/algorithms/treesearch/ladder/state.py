"""The ladder: from the plainest controller with memory to one that does the job, and no further.

P, PD, PI and PID controllers are raced, in position and velocity form, and the linear regulator of the plant
is tried. The best of each form is given all that the problem declares, and loses again what does not pay: a
kind of feature that stays gains more than 1 %, and wins a paired test. Leaves are added by the same rule.
Each structure that was tried is a rung. All rungs are evaluated from the same starts, by which one is chosen
(see `choose`) and which are printed. A pole that is to be swung up begins with energy pumping and a regulator
at the top instead, by few numbers, before all numbers are searched.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from spaql.algorithms.saved import Arrays, Data, State, part, prefixed, require, restored
from spaql.algorithms.treesearch.evaluator import DIGITS, CandidateEvaluator
from spaql.algorithms.treesearch.ladder.block import Block, Usual
from spaql.algorithms.treesearch.ladder.rungs import Nominal, Rung, choose
from spaql.algorithms.treesearch.ladder.structures import ORDER, PlantSignals, Structure
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.settings import TreeSearchSettings
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.archive import number
from spaql.controllers import Controller
from spaql.kernels.numerics import Floats
from spaql.problems import Dynamics
from spaql.problems.disturbances import Perturbation
from spaql.problems.variants import SetpointSteps, perturbed, with_setpoint_steps
from spaql.simulate import Phase

BEFORE_CHOICE = ("measure", "swing_up", "race", "all", "remove", "leaves", "choose")
"""The stages before a rung is chosen."""
_AFTER_CHOICE = ("polish", "terms", "last", "done")


FEWEST_JUDGED = 30
"""The fewest starts of a judgement."""
_MOST_JUDGED = 200
"""The most."""
_RESTED = 16
"""Episodes by which the error in steady state is measured."""


class Ladder:
    """The state of a search for a controller with memory."""

    def __init__(
        self, settings: TreeSearchSettings, evaluator: CandidateEvaluator, signals: PlantSignals
    ) -> None:
        self.settings = settings
        self.evaluator = evaluator
        self.signals = signals
        evaluator.keeps_hard_starts = False  # see `_search`
        plant = signals.problem.dynamics
        self.design: Dynamics | Perturbation | None = None
        """The plant to design for, if it is not the plant itself: one whose set-points step, and a perturbed
        one unless the design is to be nominal; of a learned plant, how it is perturbed."""
        self.setpoint_steps: SetpointSteps | None = None
        """How set-points step in the episodes of the search."""
        self.uncounted = 0
        """Simulator steps that were made before the first iteration."""
        if plant is not None:
            goals = [r for _, r in signals.problem.setpoint_places]
            self.setpoint_steps, self.uncounted = with_setpoint_steps(plant, goals, signals.problem.horizon)
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
    def chosen(self) -> Rung:
        """The best rung so far, of some."""
        return self.rungs[self.best]

    @property
    def mean_return(self) -> float:
        """Of the best rung, or of random controllers."""
        return self.chosen.mean if self.rungs else self.first_return

    @property
    def size(self) -> dict[str, int]:
        """Leaves and numbers of the best controller."""
        if not self.rungs:
            return {"leaves": 0, "numbers": 0}
        return {"leaves": self.chosen.tree.n_leaves, "numbers": self.chosen.parameters}

    @property
    def controller(self) -> Controller:
        """The best controller so far; before the first, an idle one."""
        if not self.rungs:
            block = self.block(Structure(*self.signals.plain[0]))
            return block.controller(block.one_law())
        rung = self.chosen
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
        signals = self.signals
        if self.setpoint_steps is not None:
            first, end = self.setpoint_steps.begins
            notes.append(
                f"Set-points step in half of the training episodes, between samples {first} and {end}, to "
                "those of another start. Evaluations are of the plant's own episodes, without such a step."
            )
        if self.usual.action:
            held = ", ".join(
                f"{n} = {x:.3g}" for n, x in zip(signals.actions, self.usual.action, strict=True)
            )
            notes.append(f"The search began at the operating point: {held}.")
        plant = signals.problem.dynamics
        if plant is not None and self.usual.action and (plant.disturbances.delay[1] or plant.rate_limit):
            ends = zip(signals.actions, plant.disturbances.low, plant.disturbances.high, strict=True)
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
            rung = self.chosen
            self.racers = [(rung.structure, Racer.of(rung.tree, step=0.3))]

    def begin_at(self, other: Ladder) -> None:
        """Begin at the best rung of a ladder that was climbed in another form of the plant."""
        rung = other.chosen
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
        return Block.of(self.signals, structure, self.usual)

    def use(self, structure: Structure) -> Block:
        """Return the block of a structure, and let the evaluator play with it."""
        block = self.block(structure)
        self.evaluator.frame = block.frame
        self.evaluator.units = block.units
        return block

    def judge(self, structure: Structure, tree: CandidateTree) -> Rung:
        """Judge a controller: on the plant to design for, from the common starts, and on the plant itself."""
        block = self.use(structure)
        evaluator = self.evaluator
        played = evaluator.play(tree, evaluator.judging_starts, Phase.OWN_PLAY, digits=DIGITS)
        return Rung(
            structure,
            tree,
            block.parameters(tree),
            played.returns[0],
            played.changes[0],
            evaluator.price,
            self.settings.worst_weight,
            None if self.stage in BEFORE_CHOICE else self.nominal_of(block, tree),
        )

    def climb(self, rung: Rung) -> None:
        """Add a rung, or replace the one with its structure and as many leaves if it is better."""
        alike = [i for i, other in enumerate(self.rungs) if other.is_like(rung)]
        if not alike:
            self.rungs.append(rung)
        elif rung.score > self.rungs[alike[0]].score:
            self.rungs[alike[0]] = rung
        self.best = choose(self.rungs)

    def replace_best(self, rung: Rung) -> None:
        """Replace the best rung by the same structure with better numbers."""
        if rung.score >= self.chosen.score:
            self.rungs[self.best] = rung
            self.digits = DIGITS
            self.best = choose(self.rungs)

    def nominal_of(self, block: Block, tree: CandidateTree) -> Nominal:
        """Return the measures of a rung in the plant's own episodes."""
        evaluator = self.evaluator
        horizon = self.signals.problem.horizon
        evaluator.plant = None
        starts = evaluator.starts(np.random.default_rng(0), _RESTED)
        played = evaluator.play(tree, starts, Phase.OWN_PLAY, visited=_RESTED * horizon)
        evaluator.plant = self.design
        errors = [j for j, feature in enumerate(block.features) if feature.name in self.signals.errors]
        return Nominal(
            math.fsum(played.returns[0].tolist()) / _RESTED,
            _rest_error(played.visited[:, errors], horizon),
            math.fsum(played.movement[0].tolist()) / max(1, played.steps),
            math.fsum(played.switches[0].tolist()) / _RESTED,
        )

    def affordable_starts(self, judgements: int) -> int:
        """Return the number of starts from which n judgements take a tenth of the budget."""
        return int(0.1 * self.budget / (judgements * self.evaluator.length))

    def n_judging_starts(self, judgements: int) -> int:
        """Return the number of starts of each of n judgements."""
        return min(max(self.affordable_starts(judgements), FEWEST_JUDGED), _MOST_JUDGED)

    def state(self) -> State:
        """Return everything that is needed to go on."""
        lengths, arrays = self.evaluator.state()
        data = {name: getattr(self, name) for name in ("budget", "spent", "stage", "round", "turn", "digits")}
        data |= {"first_return": self.first_return, "best": self.best, "sizes": dict(self.usual.sizes)}
        data |= lengths
        data["racers"] = [[structure.form, list(structure.kinds)] for structure, _ in self.racers]
        data["rungs"] = [
            {
                "form": rung.structure.form,
                "kinds": list(rung.structure.kinds),
                "nominal": None if rung.nominal is None else rung.nominal._asdict(),
                "price": rung.price,
                "worst_weight": rung.worst_weight,
            }
            for rung in self.rungs
        ]
        if not len(arrays["hard"]):
            arrays = {"judging_starts": arrays["judging_starts"]}
        for name in ("observation", "action"):
            arrays[f"operating.{name}"] = np.array(getattr(self.usual, name))
        for i, (_, racer) in enumerate(self.racers):
            arrays |= prefixed(f"racer.{i}", racer.arrays())
        for i, rung in enumerate(self.rungs):
            evaluated = {"returns": rung.returns, "changes": rung.changes}
            arrays |= prefixed(f"rung.{i}", rung.tree.arrays() | evaluated)
        return data, arrays

    def restore(self, data: Data, arrays: Arrays) -> None:
        """Restore the result of `state`."""
        for name in ("budget", "spent", "round", "turn", "digits", "best"):
            setattr(self, name, number(data, name, 0, whole=True))
        self.first_return = number(data, "first_return")
        self.stage = str(data["stage"])
        sizes = {str(name): float(number(data["sizes"], name, 0)) for name in data["sizes"]}
        point = [
            restored(arrays, f"operating.{name}", (None,)).tolist() for name in ("observation", "action")
        ]
        self.usual = Usual(sizes, *map(tuple, point))
        known = (len(self.signals.observations), len(self.signals.actions))
        require("ladder", (len(point[0]), len(point[1])) in ((0, 0), known))
        self.evaluator.restore(data, arrays)
        self.racers = []
        for i, (form, kinds) in enumerate(data["racers"]):
            block = self._restored_block(form, kinds)
            racer = Racer.from_arrays(part(arrays, f"racer.{i}"), block.one_law())
            self.racers.append((block.structure, racer))
        self.rungs = [
            self._restored_rung(rung, part(arrays, f"rung.{i}")) for i, rung in enumerate(data["rungs"])
        ]
        require(
            "ladder",
            self.stage in (*BEFORE_CHOICE, *_AFTER_CHOICE),
            self.best < max(1, len(self.rungs)),
            self.stage != "race" or self.racers,
            self.stage in BEFORE_CHOICE or all(rung.nominal is not None for rung in self.rungs),
        )

    def _restored_block(self, form: Any, kinds: Any) -> Block:
        require("ladder", form in self.signals.more, set(kinds) <= set(ORDER))
        return self.block(Structure(form, tuple(kinds)))

    def _restored_rung(self, data: Data, arrays: Arrays) -> Rung:
        block = self._restored_block(data["form"], data["kinds"])
        tree = CandidateTree.from_arrays(arrays, block.one_law())
        returns = restored(arrays, "returns", (len(self.evaluator.judging_starts) or None,))
        changes = restored(arrays, "changes", returns.shape)
        require("ladder", len(returns))
        measures = data["nominal"]
        nominal = measures and Nominal(*(number(measures, name) for name in Nominal._fields))
        price, worst_weight = (number(data, name) for name in ("price", "worst_weight"))
        size = block.parameters(tree)
        return Rung(block.structure, tree, size, returns, changes, price, worst_weight, nominal)


def _rest_error(errors: Floats, horizon: int) -> float:
    """Return the largest mean error of the last quarter of an episode."""
    largest = 0.0
    last = max(1, horizon // 4)
    for begin in range(0, len(errors), horizon):
        rows = errors[begin : begin + horizon][-last:]
        means = np.abs([math.fsum(rows[:, j].tolist()) / len(rows) for j in range(rows.shape[1])])
        largest = max(largest, float(means.max()))
    return largest
