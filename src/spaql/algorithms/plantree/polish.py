"""Local search: make a controller smaller and better by rollouts in learned plants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spaql.kernels.numerics import Floats, Ints, Rng, mean
from spaql.kernels.plantree.controllers import ControllerTree, count_leaves, tidy
from spaql.kernels.plantree.rollout import Simulation, play_all, polish, prune

SIZES = (16, 10, 6, 4, 3, 2)
"""Numbers of leaves at which a controller is polished."""
_SMALL = 8
"""Up to this size, two ways to prune are tried."""
_WORK = 8_000_000
"""Budget of a polish: steps in learned plants times the dimension of the state."""
_STARTS = 200
"""Starts of a polish, half of them those furthest below the best return from there so far."""
_PRUNING = 100
"""Starts of a prune."""


class LocalSearch:
    """Local search of controllers in a simulation; each polish uses a sample of its starts."""

    def __init__(self, simulation: Simulation, effort: float, rng: Rng) -> None:
        self.simulation = simulation
        self.effort = effort
        self._rng = rng
        self._best = np.full(len(simulation.starts), -np.inf)

    def returns(self, tree: ControllerTree) -> Floats:
        """Return the return of a controller from every start."""
        returns = play_all(self.simulation, tree)
        self._best = np.maximum(self._best, returns)
        return returns

    def polished(self, tree: ControllerTree, work: float = _WORK) -> ControllerTree:
        """Return a polished copy of a controller; hard starts are resampled halfway."""
        tree = tidy(tree)
        steps = int(self.effort * work / self.simulation.starts.shape[1])
        for _ in range(2):
            polish(self._some(self.returns(tree)), tree, steps // 2, self._rng)
        return tree

    def descend(self, tree: ControllerTree, last: int) -> Iterator[ControllerTree]:
        """Yield polished controllers, each smaller than the one before, down to a last size."""
        leaves = count_leaves(tree)
        first = True
        sizes = SIZES if last in SIZES else (*SIZES, last)
        for size in sizes:
            if leaves <= size and not first and leaves <= sizes[min(sizes.index(size) + 1, len(sizes) - 1)]:
                continue
            if leaves > size:
                tree = self._pruned(tree, size)
            tree = self.polished(tree)
            leaves = count_leaves(tree)
            first = False
            yield tree

    def _pruned(self, tree: ControllerTree, size: int) -> ControllerTree:
        """Return the controller pruned to a size; for a small size the better of two prunings."""
        pruned: list[tuple[float, ControllerTree]] = []
        for skip in range(2 if size <= _SMALL else 1):
            smaller = tidy(tree)
            leaves = count_leaves(tree)
            simulation = self._any()
            begun = leaves
            while leaves > size:
                some = max(1, (leaves - size + 1) // 2) if leaves - size > 2 else 1
                removed = prune(simulation, smaller, some, skip if leaves == begun else 0)
                if removed == 0:
                    break
                leaves -= removed
            if leaves > size and pruned:
                continue
            if size <= _SMALL:
                smaller = self.polished(smaller, _WORK / 4)
            pruned.append((mean(self.returns(smaller)), smaller))
        return max(pruned, key=lambda pair: pair[0])[1]

    def _some(self, returns: Floats) -> Simulation:
        """Return a sample of the starts: half of them furthest below their best return, the others random."""
        count = min(_STARTS, len(returns))
        hard = np.argsort(returns - self._best, kind="stable")[: count // 2]
        others = self._rng.permutation(len(returns))[: count - len(hard)]
        return self._of(np.concatenate([hard, others]))

    def _any(self) -> Simulation:
        return self._of(self._rng.permutation(len(self.simulation.starts))[:_PRUNING])

    def _of(self, chosen: Ints) -> Simulation:
        chosen = self._rng.permutation(chosen)
        return self.simulation._replace(
            starts=self.simulation.starts[chosen], member=self.simulation.member[chosen]
        )
