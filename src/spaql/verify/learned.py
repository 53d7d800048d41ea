"""Learned plants as tapes: what is proven of them is about the plant that was learned, not the real one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from spaql.formatting import counted
from spaql.kernels.plantree.raw_model import predict_all
from spaql.learned_plants import PlantModel
from spaql.problems.tapes import whole_action
from spaql.program.recorder import RECORDERS, Recorder
from spaql.program.shims import BUILTINS, clip
from spaql.program.symbols import Symbol, apply, lifted
from spaql.program.tape import DecisionTree, Tape, tape_arrays

State = tuple[float, ...]


@dataclass(frozen=True, eq=False)
class LearnedPlant:
    """A learned plant, as the closed loop takes it: the state is the observation.

    The learned plant terminates with a probability. As a failure, a termination counts where it is possible;
    as the goal, only where it is certain.
    """

    model: PlantModel
    reference: State | None = None
    certain: bool = False
    """Whether an episode has terminated only where that is certain."""

    @property
    def id(self) -> str:
        """The name of the problem that it was learned from."""
        return self.model.name

    @property
    def text(self) -> str:
        """From what it was learned."""
        model = self.model
        return f"{counted(model.n_cells, 'cell')} fitted to {counted(model.steps, 'recorded step')}"

    @property
    def horizon(self) -> int:
        """Steps of an episode."""
        return self.model.horizon

    @property
    def state_dims(self) -> int:
        """How many numbers a state has."""
        return self.model.dims

    @cached_property
    def observations(self) -> Mapping[str, tuple[float, float]]:
        """The bounds of each component of an observation; where they are infinite, what was seen."""
        space, (low, high) = self.model.observation_space, self.model.seen
        ends = np.stack([space.low.ravel(), space.high.ravel()]).astype(np.float64)
        pad = 0.05 * np.maximum(high - low, 1e-3)
        ends = np.where(np.abs(ends) < 1e30, ends, np.stack([low - pad, high + pad]))
        return {name: (float(a), float(b)) for name, a, b in zip(self.model.observations, *ends, strict=True)}

    @property
    def actions(self) -> tuple[str, ...] | Mapping[str, tuple[float, float]]:
        """The names of the actions; or the range of each component of an action."""
        space = self.model.action_space
        if not isinstance(space, Box):
            return self.model.actions
        ends = space.low.ravel().tolist(), space.high.ravel().tolist()
        return {name: (low, high) for name, low, high in zip(self.model.actions, *ends, strict=True)}

    def start(self, rng: np.random.Generator) -> State:
        """Return one of the recorded starts."""
        row = self.model.starts[int(rng.integers(len(self.model.starts)))]
        return tuple(row.tolist())

    def observe(self, state: State) -> State:
        """Return the state."""
        return state

    def step(self, state: State, action: Any) -> tuple[State, float, bool]:
        """Return the next state, the reward, and whether the episode may have terminated."""
        model = self.model
        space = self.model.observation_space
        after, rewards, ends = predict_all(
            model.plant, np.array([state], np.float64), model.inputs_of(action, 1)
        )
        ended = ends[0] >= 1.0 if self.certain else ends[0] > 0.0
        inside = np.clip(after[0], space.low.ravel(), space.high.ravel(), dtype=np.float64)
        return tuple(inside.tolist()), float(rewards[0]), bool(ended)

    def tapes(self, *, delayed: bool = False) -> tuple[Tape, Tape]:
        """Return the tapes of the step and of the observation.

        With `delayed`, the action that waits is among the state variables, as in `trace_step`.
        """
        n = self.state_dims
        listed = not isinstance(self.actions, Mapping)
        wide = 1 if listed else len(self.actions)
        inputs = n + wide * (1 + delayed)
        recorder = Recorder([(-math.inf, math.inf)] * inputs, 0)
        RECORDERS.append(recorder)
        try:
            x = [Symbol(recorder.row("input", first=i)) for i in range(inputs)]
            waits = tuple(symbol.row for symbol in x[n + wide :])
            tree = self._cells(0, x[:n], self._inputs(x[n : n + wide], delayed), waits)
            observed = tuple(symbol.row for symbol in x[:n]), False
        finally:
            RECORDERS.pop()
        return (
            Tape(tape_arrays(recorder.rows, recorder.tables, tree), inputs),
            Tape(tape_arrays(recorder.rows, [], observed), n),
        )

    def _inputs(self, action: list[Symbol], delayed: bool) -> list[Symbol]:
        """Return the inputs of laws: components of an action and their squares, or one for each action."""
        space = self.model.action_space
        if isinstance(space, Box):
            ends = space.low.ravel().tolist(), space.high.ravel().tolist()
            cut = [clip(u, a, b) for u, a, b in zip(action, *ends, strict=True)]
            return [*cut, *(apply("square", u) for u in cut)]
        count = int(space.n)
        first = float(space.start)
        chosen = whole_action(action[0] - first, count) + first if delayed else action[0]
        points = [first + k for k in range(count)]
        rows = []
        for k in range(count):  # exact at whole numbers, and a discrete action is one
            table = RECORDERS[-1].table(points, np.eye(count)[k].tolist()) if count > 1 else None
            rows.append(
                lifted(1.0) if table is None else Symbol(RECORDERS[-1].row("interp", chosen.row, table))
            )
        return rows

    def _cells(self, node: int, state: list[Symbol], inputs: list[Symbol], waits: tuple[int, ...]) -> Any:
        """Return the decision tree of the step, from a node of the tree of cells on."""
        plant = self.model.plant
        if plant.feature[node] < 0:
            return self._ends(0, *self._after(int(plant.cell[node]), state, inputs), waits)
        test = state[plant.feature[node]].row, lifted(float(plant.threshold[node])).row
        sides = (self._cells(int(side[node]), state, inputs, waits) for side in (plant.left, plant.right))
        return (("<", *test), *sides)

    def _after(self, cell: int, state: list[Symbol], inputs: list[Symbol]) -> tuple[list[Symbol], Symbol]:
        """Return the next state by the law of a cell, cut to its box, and the score of termination."""
        plant = self.model.plant
        n = self.state_dims
        after = []
        for k in range(n):
            value: Any = float(plant.law[cell, k, 0])
            for weight, x in zip(plant.law[cell, k, 1:].tolist(), [*state, *inputs], strict=True):
                value = value + weight * x if weight != 0.0 else value
            after.append(lifted(value))
        for k in range(n):
            along: Any = 0.0
            for j in range(n):
                part = (after[j] - float(plant.centre[cell, j])) / float(plant.scale[j])
                along = along + float(plant.axes[cell, k, j]) * part
            over = BUILTINS["max"](along - float(plant.high[cell, k]), 0.0)
            under = BUILTINS["min"](along - float(plant.low[cell, k]), 0.0)
            for j in range(n):
                weight = float(plant.axes[cell, k, j])
                if weight != 0.0:
                    after[j] = after[j] - (over + under) * weight * float(plant.scale[j])
        return after, self._score(after)

    def _score(self, after: list[Symbol]) -> Symbol:
        weights = self.model.plant.end_score.tolist()
        n = self.state_dims
        if not weights:
            return lifted(0.0)
        score: Any = weights[0]
        term = 1 + n
        for i in range(n):
            score = score + weights[1 + i] * after[i]
            for j in range(i, n):
                score = score + (weights[term] * after[i]) * after[j]
                term += 1
        return lifted(score)

    def _ends(self, node: int, after: list[Symbol], score: Symbol, waits: tuple[int, ...]) -> DecisionTree:
        """Return the decision tree of termination, whose leaves are next states within the space."""
        plant = self.model.plant
        space = self.model.observation_space
        look = int(plant.end_feature[node])
        if look >= 0:
            number = score if look == self.state_dims else after[look]
            test = number.row, lifted(float(plant.end_threshold[node])).row
            yes, no = (
                self._ends(int(side[node]), after, score, waits) for side in (plant.end_left, plant.end_right)
            )
            return yes if yes == no else (("<", *test), yes, no)
        rows = []
        ends = (space.low.ravel().tolist(), space.high.ravel().tolist())
        for x, low, high in zip(after, *ends, strict=True):
            inside = BUILTINS["max"](x, low) if low > -math.inf else x
            rows.append((BUILTINS["min"](inside, high) if high < math.inf else inside).row)
        chance = float(plant.end_chance[node])
        return (*rows, *waits), chance >= 1.0 if self.certain else chance > 0.0
