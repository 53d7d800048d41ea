"""A state machine on Partition, beside a model that is a plain list of boxes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from nightly import thorough
from spaql import archive
from spaql.kernels.partition.equations import update
from spaql.partition import Partition

INTERVAL = Partition.INTERVAL
STEPS_WANTED = thorough(20_000)
steps_taken = 0


@dataclass(frozen=True)
class Box:
    """A leaf of the model: bounds of the states, and the actions of each dimension as (low, size)."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    actions: tuple[tuple[int, int], ...]
    q: float
    visits: int

    def holds(self, state: list[float], action: list[float], sizes: list[int]) -> bool:
        inside = all(
            lo <= x < hi or x == hi == 1.0 for lo, x, hi in zip(self.low, state, self.high, strict=True)
        )
        for (first, size), a, whole in zip(self.actions, action, sizes, strict=True):
            if whole == INTERVAL:
                bottom, top = (edge / 2**31 - 1.0 for edge in (first, first + size))
                inside = inside and (bottom <= a < top or a == top == 1.0)
            else:
                inside = inside and first <= a < first + size
        return inside

    def children(self) -> list[Box]:
        boxes = [self]
        for j in range(len(self.low)):
            middle = (self.low[j] + self.high[j]) / 2
            boxes = [
                replace(box, low=swap(box.low, j, lo), high=swap(box.high, j, hi))
                for box in boxes
                for lo, hi in ((box.low[j], middle), (middle, box.high[j]))
            ]
        for j, (first, size) in enumerate(self.actions):
            if size > 1:
                half = size // 2
                boxes = [
                    replace(box, actions=swap(box.actions, j, part))
                    for box in boxes
                    for part in ((first, half), (first + half, size - half))
                ]
        return boxes


def swap(values: tuple, j: int, value) -> tuple:
    return (*values[:j], value, *values[j + 1 :])


points = st.one_of(
    st.sampled_from([-1.0, -0.5, -0.25, 0.0, 0.25, 0.5, 1.0, -1e-300, 1 - 2**-53]),
    st.floats(-1.0, 1.0, allow_nan=False),
)


class PartitionMachine(RuleBasedStateMachine):
    @initialize(
        state_dims=st.integers(1, 3),
        sizes=st.lists(st.sampled_from([1, 2, 3, 5, INTERVAL]), min_size=1, max_size=2),
    )
    def begin(self, state_dims: int, sizes: list[int]) -> None:
        self.sizes = sizes
        self.partition = Partition(state_dims, sizes, q=200.0)
        root = Box((-1.0,) * state_dims, (1.0,) * state_dims, tuple((0, s) for s in sizes), 200.0, 0)
        self.model = [root]
        self.kept = (self.partition.copy(), list(self.model))

    def pair(self, data: st.DataObject) -> tuple[list[float], list[float]]:
        state = [data.draw(points) for _ in range(self.partition.state_dims)]
        action = [
            data.draw(points) if size == INTERVAL else data.draw(st.integers(0, size - 1))
            for size in self.sizes
        ]
        return state, action

    def leaf(self, state: list[float], action: list[float]) -> int:
        held_by = [i for i, box in enumerate(self.model) if box.holds(state, action, self.sizes)]
        assert len(held_by) == 1
        return held_by[0]

    @rule(data=st.data(), reward=st.floats(-16, 1))
    def visit(self, data: st.DataObject, reward: float) -> None:
        state, action = self.pair(data)
        i = self.leaf(state, action)
        ball = self.partition.locate(state, action)
        update(self.partition.balls, ball, reward, 10.0, 200, 4.0)
        visits = self.model[i].visits + 1
        alpha = 201 / (200 + visits)
        q = (1 - alpha) * self.model[i].q + alpha * (reward + 10.0 + 4.0 / visits**0.5)
        self.model[i] = replace(self.model[i], q=q, visits=visits)

    @rule(data=st.data())
    def split(self, data: st.DataObject) -> None:
        state, action = self.pair(data)
        i = self.leaf(state, action)
        if len(self.model) < 400:
            self.partition.split(state, action)
            self.model[i : i + 1] = self.model[i].children()

    @rule(data=st.data())
    def relevant(self, data: st.DataObject) -> None:
        state, _ = self.pair(data)
        found = self.partition.relevant(state)
        mine = {
            tuple(zip(low, size, strict=True))
            for low, size in zip(found.action_low.tolist(), found.action_size.tolist(), strict=True)
        }
        theirs = {
            box.actions
            for box in self.model
            if box.holds(
                state,
                [representative(part, s) for part, s in zip(box.actions, self.sizes, strict=True)],
                self.sizes,
            )
        }
        assert mine == theirs
        assert len(found.ball) == len(theirs)

    @rule()
    def copy(self) -> None:
        self.kept = (self.partition.copy(), list(self.model))

    @rule()
    def reset(self) -> None:
        partition, model = self.kept
        self.partition = partition.copy()
        self.model = list(model)

    @rule()
    def save_and_load(self) -> None:
        before = self.partition.digest()
        document = archive.loads(archive.dumps({}, self.partition.arrays()))
        self.partition = Partition.from_arrays(document.arrays)
        assert self.partition.digest() == before

    @invariant()
    def leaves_tile_the_cube_as_in_the_model(self) -> None:
        global steps_taken
        if not hasattr(self, "partition"):
            return
        steps_taken += 1
        leaves = self.partition.leaves()
        assert self.partition.arms == len(leaves.ball) == len(self.model)
        mine = {
            (tuple(low), tuple(high), tuple(zip(first, size, strict=True))): (q, visits)
            for low, high, first, size, q, visits in zip(
                leaves.state_low.tolist(),
                leaves.state_high.tolist(),
                leaves.action_low.tolist(),
                leaves.action_size.tolist(),
                self.partition.balls.q[leaves.ball].tolist(),
                self.partition.balls.visits[leaves.ball].tolist(),
                strict=True,
            )
        }
        assert mine == {(b.low, b.high, b.actions): (b.q, b.visits) for b in self.model}
        volume = np.prod(leaves.state_high - leaves.state_low, axis=1)
        share = np.prod(leaves.action_size / np.array(self.sizes), axis=1)
        assert np.isclose((volume * share).sum(), 2.0**self.partition.state_dims)


def representative(part: tuple[int, int], whole: int) -> float:
    return part[0] / 2**31 - 1.0 if whole == INTERVAL else part[0]


@pytest.mark.usefixtures("untraced")
def test_partition_machine() -> None:
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(
        PartitionMachine,
        settings=settings(
            max_examples=thorough(500),
            stateful_step_count=60,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert steps_taken >= STEPS_WANTED, steps_taken
