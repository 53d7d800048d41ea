"""The search: a race of random trees, growth of the winner, and a finish that makes it better and plainer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from spaql.algorithms.treesearch.anew import begin_anew
from spaql.algorithms.treesearch.growth import grow
from spaql.algorithms.treesearch.judging import n_judging_starts
from spaql.algorithms.treesearch.race import begin, polish, race
from spaql.algorithms.treesearch.refinement import make_plainer, pattern, refine, sharpen, spend_rest
from spaql.algorithms.treesearch.search_state import SearchState
from spaql.algorithms.treesearch.trees import Rng
from spaql.simulate import EpisodeRunner

STAGES: Mapping[str, Callable[[SearchState, Rng], None]] = {
    "measure": begin,
    "race": race,
    "polish": polish,
    "anew": begin_anew,
    "sharpen": sharpen,
    "grow": grow,
    "refine": refine,
    "pattern": pattern,
    "simplify": make_plainer,
    "done": spend_rest,
}
"""What an iteration does in each stage; a stage lasts for some iterations, and names the next one."""
PHASES: Mapping[str, str] = {
    "measure": "first episodes",
    "race": "race of random trees",
    "polish": "polishing the best",
    "anew": "a second race",
    "sharpen": "polishing the law",
    "grow": "growing the tree",
    "refine": "refining",
    "pattern": "refining",
    "simplify": "simplifying",
    "done": "refining",
}
"""The stages in words."""
_WITHOUT_WORST = ("measure", "race", "polish", "anew", "sharpen", "grow")
"""The stages in which neither the worst starts count, nor the movement of actions: they find a structure."""


def advance(search: SearchState, runner: EpisodeRunner, rng: Rng) -> None:
    """Search for a part of the budget."""
    evaluator = search.evaluator
    evaluator.runner = runner
    evaluator.steps = 0
    evaluator.check_starts()
    evaluator.weighs_worst = search.stage not in _WITHOUT_WORST
    if search.stage != "done":  # nor is a tree chosen by starts that it has been chosen by before
        evaluator.judging_starts = evaluator.starts(rng, n_judging_starts(search))
    STAGES[search.stage](search, rng)
    search.spent += evaluator.steps
    evaluator.runner = None
