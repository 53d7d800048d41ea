"""The stages of a ladder, and the comparison of two ladders."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spaql.algorithms.treesearch.evaluator import DIGITS
from spaql.algorithms.treesearch.ladder.finish import finish, polish, remove_terms, spend_rest
from spaql.algorithms.treesearch.ladder.judging import climb, judged
from spaql.algorithms.treesearch.ladder.race import measure, race, swing_up
from spaql.algorithms.treesearch.ladder.selection import add_all, choose_rung, cut_law, remove_kinds
from spaql.algorithms.treesearch.ladder.state import Ladder
from spaql.algorithms.treesearch.trees import Rng
from spaql.simulate import EpisodeRunner

STAGES: Mapping[str, Callable[[Ladder, Rng], None]] = {
    "measure": measure,
    "swing_up": swing_up,
    "race": race,
    "all": add_all,
    "remove": remove_kinds,
    "leaves": cut_law,
    "choose": choose_rung,
    "polish": polish,
    "terms": remove_terms,
    "last": finish,
    "done": spend_rest,
}
"""What an iteration does in each stage; a stage lasts for some iterations, and names the next one."""

PHASES: Mapping[str, str] = {
    "measure": "first episodes",
    "swing_up": "race of swing-ups",
    "race": "race of P, PI, PID and others",
    "all": "trying all features",
    "remove": "removing features",
    "leaves": "adding leaves",
    "choose": "choosing a structure",
    "polish": "polishing",
    "terms": "removing terms",
    "last": "rounding",
    "done": "polishing",
}
"""The stages in words."""


def advance(ladder: Ladder, runner: EpisodeRunner, rng: Rng) -> None:
    """Search for a part of the budget."""
    evaluator = ladder.evaluator
    evaluator.runner = runner
    evaluator.steps = 0
    evaluator.plant = ladder.design
    evaluator.check_starts()
    STAGES[ladder.stage](ladder, rng)
    ladder.spent += evaluator.steps
    evaluator.runner = None


def consider(ladder: Ladder, other: Ladder, runner: EpisodeRunner) -> None:
    """Judge the best controller of another ladder in this one's plant; it may be the best here, too."""
    evaluator = ladder.evaluator
    rung = other.rungs[other.best]
    evaluator.runner = runner
    evaluator.plant = ladder.design
    tree = ladder.block(rung.structure).like(rung.tree, other.block(rung.structure))
    best = ladder.rungs[ladder.best]
    climb(ladder, judged(ladder, rung.structure, tree))
    if ladder.rungs[ladder.best] is not best:
        ladder.digits = DIGITS
    evaluator.runner = None
