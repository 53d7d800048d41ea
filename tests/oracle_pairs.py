"""Which ball of a partition is which ball of the oracle's, and whether they are equal bit for bit."""

from typing import Any

import numpy as np

from oracle import Ball, Choices, Partition
from spaql.partition import Partition as FastPartition


def place(ball: Ball) -> tuple[Any, ...]:
    """Where the oracle's ball lies: centre and radius of each side, or its remaining actions."""
    return (
        tuple((side.centre, side.radius) for side in ball.states),
        tuple(
            side.actions if isinstance(side, Choices) else (side.centre, side.radius) for side in ball.actions
        ),
    )


def places(partition: FastPartition, tree: int, first: int = 0) -> dict[tuple[Any, ...], int]:
    """Where the unsplit balls of a tree lie, from an index on."""
    leaves = partition.leaves(tree)
    new = leaves.ball >= first
    centre = (leaves.state_low[new] + leaves.state_high[new]) / 2
    radius = (leaves.state_high[new] - leaves.state_low[new]) / 2
    sides = []
    for size, low, width in zip(
        partition.balls.action_sizes, leaves.action_low[new].T, leaves.action_size[new].T, strict=True
    ):
        if size == FastPartition.INTERVAL:
            unit = FastPartition.INTERVAL / 2
            half = width / (2 * unit)
            sides.append(list(zip(low / unit - 1 + half, half, strict=True)))
        else:
            sides.append([tuple(range(a, a + m)) for a, m in zip(low, width, strict=True)])
    states = [tuple(zip(*row, strict=True)) for row in zip(centre.tolist(), radius.tolist(), strict=True)]
    keys = zip(states, zip(*sides, strict=True), strict=True)
    return dict(zip(keys, leaves.ball[new].tolist(), strict=True))


def same_number(x: float, y: float) -> bool:
    """Whether two floats are equal bit for bit."""
    return float(x).hex() == float(y).hex()


class Pairs:
    """Which ball of a partition is which ball of the oracle's."""

    def __init__(self, partition: FastPartition, slow: list[Partition]) -> None:
        self.partition = partition
        self.slow = slow
        self.twin: dict[int, Ball] = {}
        for tree, peer in enumerate(slow):
            self.add(tree, peer.arms)

    def add(self, tree: int, balls: list[Ball], first: int = 0) -> None:
        """Pair the unsplit balls of a tree, from an index on, with these, all of them."""
        index = places(self.partition, tree, first)
        expected = {place(ball): ball for ball in balls}
        assert index.keys() == expected.keys()
        assert len(index) == len(balls)
        self.twin |= {i: expected[key] for key, i in index.items()}

    def split(self, tree: int, ball: int, children: list[Ball]) -> None:
        """Pair the children of a ball."""
        self.add(tree, children, self.partition.n_balls - len(children))
        del self.twin[ball]

    def check_ball(self, index: int, ball: Ball) -> None:
        assert same_number(self.partition.balls.q[index], ball.q)
        assert self.partition.balls.visits[index] == ball.visits

    def check_sizes(self) -> None:
        assert self.partition.arms == sum(len(peer.arms) for peer in self.slow) == len(self.twin)
        assert self.partition.n_balls == sum(len(peer.balls) for peer in self.slow)

    def check(self) -> None:
        """Compare everything."""
        self.check_sizes()
        indices = list(self.twin)
        q = self.partition.balls.q[indices]
        visits = self.partition.balls.visits[indices]
        assert q.tobytes() == np.array([ball.q for ball in self.twin.values()]).tobytes()
        assert visits.tolist() == [ball.visits for ball in self.twin.values()]
