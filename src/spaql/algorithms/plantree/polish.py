"""Polish: make a controller smaller and better inside the learned plants, at every size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.plantree.exact_sums import mean
from spaql.algorithms.plantree.memory import Floats
from spaql.kernels.plantree.controllers import Controller, count_leaves, tidy
from spaql.kernels.plantree.local_search import polish, prune
from spaql.kernels.plantree.rollout import Game, play_all

SIZES = (16, 10, 6, 4, 3, 2)
"""Leaves at which a controller is polished on its way down."""
_SMALL = 8
"""From this size down, two ways to prune are tried."""
_WORK = 8_000_000
"""Numbers of a state that a polish predicts in learned plants."""
_STARTS, _PRUNING = 200, 100
"""Starts of a polish, half of them those furthest below the best return seen from there; and of a prune."""


class Workshop:
    """Where controllers are polished: many starts, of which each polish takes some."""

    def __init__(self, game: Game, effort: float, rng: np.random.Generator) -> None:
        self.game = game
        self.effort = effort
        self._rng = rng
        self._best = np.full(len(game.starts), -np.inf)

    def returns(self, tree: Controller) -> Floats:
        """Give the return from every start."""
        found = play_all(self.game, tree)
        self._best = np.maximum(self._best, found)
        return found

    def polished(self, tree: Controller, work: float = _WORK) -> Controller:
        """Give a polished copy of a controller; hard starts are drawn anew halfway."""
        tree = tidy(tree)
        steps = int(self.effort * work / self.game.starts.shape[1])
        for _ in range(2):
            polish(self._some(self.returns(tree)), tree, steps // 2, self._rng)
        return tree

    def descend(self, tree: Controller) -> Iterator[Controller]:
        """Give polished controllers, each smaller than the last."""
        leaves = count_leaves(tree)
        first = True
        for size in SIZES:
            if leaves <= size and not first and leaves <= SIZES[min(SIZES.index(size) + 1, len(SIZES) - 1)]:
                continue
            if leaves > size:
                tree = self._pruned(tree, size)
            tree = self.polished(tree)
            leaves, first = count_leaves(tree), False
            yield tree

    def _pruned(self, tree: Controller, size: int) -> Controller:
        """Prune to a size; for a small one in two ways, of which the better goes on."""
        found: list[tuple[float, Controller]] = []
        for skip in range(2 if size <= _SMALL else 1):
            one, leaves = tidy(tree), count_leaves(tree)
            game, begun = self._any(), leaves
            while leaves > size:
                some = max(1, (leaves - size + 1) // 2) if leaves - size > 2 else 1
                removed = prune(game, one, some, skip if leaves == begun else 0)
                if removed == 0:
                    break
                leaves -= removed
            if leaves > size and found:
                continue
            if size <= _SMALL:
                one = self.polished(one, _WORK / 4)
            found.append((mean(self.returns(one)), one))
        return max(found, key=lambda pair: pair[0])[1]

    def _some(self, returns: Floats) -> Game:
        """Take starts: half of them furthest below the best that was seen there, the others at random."""
        count = min(_STARTS, len(returns))
        hard = np.argsort(returns - self._best, kind="stable")[: count // 2]
        others = self._rng.permutation(len(returns))[: count - len(hard)]
        return self._of(np.concatenate([hard, others]))

    def _any(self) -> Game:
        return self._of(self._rng.permutation(len(self.game.starts))[:_PRUNING])

    def _of(self, chosen: NDArray[np.int64]) -> Game:
        chosen = self._rng.permutation(chosen)
        return self.game._replace(starts=self.game.starts[chosen], member=self.game.member[chosen])
