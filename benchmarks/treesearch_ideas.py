"""What each idea of TreeSearch is worth: the search without it, on five seeds.

    python benchmarks/treesearch_ideas.py --seeds 7100-7104

Ideas are switched off by replacing a constant or a method: none is an option.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

import spaql
from spaql.algorithms.treesearch import learner, search
from spaql.algorithms.treesearch.evaluator import DIGITS, Evaluator
from spaql.algorithms.treesearch.search import Search

PROBLEMS = {
    "CartPole-v1": 10**6,
    "MountainCarContinuous-v0": 10**7,
    "Acrobot-v1": 10**7,
    "Pendulum-v1": 10**7,
}
EPISODES = 1000


def fixed_starts(self: Evaluator, rng: np.random.Generator, n: int) -> Any:
    """Return the same starts in every generation."""
    return self.starts(np.random.default_rng(0), n)


def always(self: Search, racer: Any) -> None:
    """Replace the incumbent by the last tree."""
    self.incumbent, self.judgement = racer.found, self.evaluator.judge(racer.found)
    self.digits, self.was_given = DIGITS, False


def kept(self: Search, runner: Any, rng: np.random.Generator) -> None:
    """Advance with the starts of the first judgement."""
    starts = self.evaluator.starts

    def same(rng: np.random.Generator, n: int) -> Any:
        return starts(np.random.default_rng(1) if n == self._judged_starts else rng, n)

    with patch.object(self.evaluator, "starts", same):
        ADVANCE(self, runner, rng)


def one_racer(self: Search, rng: np.random.Generator) -> list[Any]:
    """Return a racer of one leaf, with laws of 0."""
    return [self._random(1, True, rng)]


ADVANCE = Search.advance
IDEAS: dict[str, list[Any]] = {
    "everything": [],
    "no race: one random tree": [(Search, "_random_racers", one_racer)],
    "no trees of constants": [(search, "_SWITCHES", ())],
    "no mirror": [(learner, "mirror_of", lambda *rest: (None, 0))],
    "scales of all episodes": [(learner, "_better_half", lambda played: [seen for _, seen in played])],
    "the same starts in every judgement": [(Search, "advance", kept)],
    "the same starts in every generation": [(Evaluator, "mixed_starts", fixed_starts)],
    "the last tree instead of the incumbent": [(Search, "_compare", always)],
    "no hard starts": [
        (Evaluator, "begin_hard_starts", lambda self, rng: None),
        (Evaluator, "keep_hardest", lambda self, *rest: None),
    ],
    "no growth": [(search, "GROW", search.POLISH)],
    "no pattern search": [(search, "PATTERN", search.REFINE)],
    "nothing is removed": [(search, "simplify", lambda evaluator, tree, *rest, **more: tree)],
}


@contextmanager
def without(changes: list[Any]) -> Iterator[None]:
    """Replace constants and methods for a while."""
    patches = [patch.object(*change) for change in changes]
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", default="7100-7104")
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    given = parser.parse_args()
    first, last = (int(part) for part in given.seeds.split("-"))
    problems = given.problems.split(",")
    print(f"| | {' | '.join(problems)} |\n|---|{'---|' * len(problems)}")
    for idea, changes in IDEAS.items():
        cells = []
        for env in problems:
            means, worst, numbers = [], [], []
            for seed in range(first, last + 1):
                with without(changes):
                    agent = spaql.TreeSearch(env, seed=seed).learn(PROBLEMS[env], progress_bar=False)
                fresh = spaql.evaluate(agent, episodes=EPISODES, seed=10**6 + seed)
                means.append(fresh.mean)
                worst.append(fresh.returns.min())
                numbers.append(agent.policy.n_numbers)
            cells.append(
                f"{np.mean(means):.1f}, worst seed {min(means):.1f}, worst start {min(worst):.0f}, "
                f"{np.mean(numbers):.0f} numbers"
            )
        print(f"| {idea} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
