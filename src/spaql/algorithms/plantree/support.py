"""Rollouts that measure what the data support: exact costs, and the share of steps that leave the data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.algorithms.plantree.dynamics import CAUTIOUS, fit_plant
from spaql.algorithms.plantree.rule_trees import from_rules
from spaql.algorithms.plantree.tried_actions import TriedActions
from spaql.algorithms.replay.encoding import ActionCode, Scale
from spaql.algorithms.replay.memory import LARGEST, Floats, Memory
from spaql.controllers import Controller
from spaql.errors import SettingError
from spaql.kernels.plantree.controllers import controls
from spaql.kernels.plantree.pwa_model import Ints, Plant, find_all

CLIPPED = 0.05
"""Standard deviations of the states by which a prediction must be cut to count as clipped."""
_DRAWN = 5
"""Fewest held-out errors of a cell that are drawn from; below, those of all cells are."""

Reward = Callable[[Floats, Floats, Floats, NDArray[np.bool_]], Floats]
Ends = Callable[[Floats], NDArray[np.bool_]]


@dataclass(frozen=True, eq=False)
class ModelEpisodes:
    """Episodes in a learned plant, one per start."""

    returns: Floats
    length: float
    """The mean number of steps."""
    clipped: float
    """Share of the steps whose prediction was cut to the range of the data by more than `CLIPPED`."""
    unseen: float
    """Share of the steps with an action outside the range of those logged near that state."""
    unseen_episodes: float
    """Share of the episodes with such a step."""
    untried: float
    """Share of the steps with an action outside the range of those logged anywhere."""


class ModelStep(NamedTuple):
    """One step of many episodes in a learned plant, one row per episode."""

    going: NDArray[np.bool_]
    """Whether the episode had not ended before."""
    states: Floats
    rewards: Floats
    clipped: NDArray[np.bool_]
    unseen: NDArray[np.bool_]
    untried: NDArray[np.bool_]


class TestPlant:
    """A plant fitted to a memory, in which controllers are rolled out with exact costs and ends."""

    __test__ = False  # not a test of pytest's

    def __init__(self, memory: Memory, code: ActionCode, reward: Reward, ends: Ends) -> None:
        self.code = code
        self.scale = Scale.of(memory)
        self._reward = reward
        self._ends = ends
        self._held = (memory.nexts == memory.states).all(axis=0)  # set-points, which a cut must not move
        rows = [np.arange(len(memory))]
        self._plant: Plant = fit_plant(memory, self.scale, code, rows, squares=True, margin=CAUTIOUS)
        self._inputs = code.inputs(code.tried(), squares=True)
        z = self.scale.z(memory.states)
        self._tried = TriedActions(z, code.inputs(memory.actions, squares=False), code.listed)

    def _find(self, z: Floats) -> Ints:
        plant = self._plant
        return find_all(plant.feature, plant.threshold, plant.left, 0, np.ascontiguousarray(z))

    def _predict(self, z: Floats, inputs: Floats, cell: Ints) -> tuple[Floats, Floats]:
        """Return the next states, and by how much each was cut; sums are added in a fixed order."""
        plant = self._plant
        dims = z.shape[1]
        after = plant.law[cell, :dims, 0]
        for j, column in enumerate(np.concatenate([z, inputs], axis=1).T):
            after = after + plant.law[cell, :dims, 1 + j] * column[:, np.newaxis]
        axes = plant.axes[cell]
        away = after - plant.centre[cell]
        along = np.zeros_like(after)
        for j in range(dims):
            along = along + axes[:, :, j] * away[:, [j]]
        over = along - np.clip(along, plant.low[cell], plant.high[cell])
        for k in range(dims):
            after = after - over[:, [k]] * axes[:, k]
        after[:, self._held] = z[:, self._held]
        return after, np.abs(over).max(axis=1)

    def errors(self, memory: Memory) -> tuple[Ints, Floats]:
        """Return the cell and the error of the prediction of every step of another memory."""
        z = self.scale.z(memory.states)
        cell = self._find(z)
        after, _ = self._predict(z, self.code.inputs(memory.actions, squares=True), cell)
        return cell, self.scale.z(memory.nexts) - after

    def roll(
        self,
        rules: Controller,
        starts: Floats,
        steps: int,
        errors: tuple[Ints, Floats] | None = None,
        rng: np.random.Generator | None = None,
    ) -> ModelEpisodes:
        """Roll out a controller, as `to_rules` makes it, from raw starts.

        Errors of predictions (see `errors`), if given, are drawn and added.
        """
        returns = np.zeros(len(starts))
        strange = np.zeros(len(starts), np.bool_)
        played = clipped = unseen = untried = 0
        for step in self.steps(rules, starts, steps, errors, rng):
            going = step.going
            returns[going] += step.rewards[going]
            played += int(going.sum())
            clipped += int((going & step.clipped).sum())
            strange |= going & step.unseen
            unseen += int((going & step.unseen).sum())
            untried += int((going & step.untried).sum())
        return ModelEpisodes(
            returns=returns,
            length=played / len(starts),
            clipped=clipped / played,
            unseen=unseen / played,
            unseen_episodes=float(strange.mean()),
            untried=untried / played,
        )

    def steps(
        self,
        rules: Controller,
        starts: Floats,
        steps: int,
        errors: tuple[Ints, Floats] | None = None,
        rng: np.random.Generator | None = None,
    ) -> Iterator[ModelStep]:
        """Yield the steps of all episodes of `roll`, until each has ended."""
        tree = from_rules(rules, self.scale, self.code)
        z = self.scale.z(starts)
        noise = None if errors is None or rng is None else _Errors(*errors, len(self._plant.feature), rng)
        going = np.ones(len(z), np.bool_)
        for _ in range(steps):
            inputs = controls(tree, np.ascontiguousarray(z), self._inputs)
            cell = self._find(z)
            after, cut = self._predict(z, inputs, cell)
            if noise is not None:
                after = after + noise.draw(cell)
            raw, raw_after = (each * self.scale.deviation + self.scale.mean for each in (z, after))
            ended = self._ends(raw_after)
            reward = self._reward(raw, self._raw_actions(inputs), raw_after, ended)
            _check_finite(reward, raw, going)
            unseen = self._tried.unseen(z, inputs)
            untried = self._tried.untried(inputs)
            yield ModelStep(going, raw, reward, cut > CLIPPED, unseen, untried)
            going = going & ~ended
            z = after
            if not going.any():
                break

    def _raw_actions(self, inputs: Floats) -> Floats:
        if isinstance(self.code.space, Discrete):
            number = np.where(inputs.any(axis=1), inputs.argmax(axis=1) + 1, 0)
            return np.asarray(number[:, np.newaxis] + float(self.code.space.start))
        return np.asarray(self.code.middle + self.code.half * inputs[:, : self.code.numbers])


def _check_finite(reward: Floats, states: Floats, going: NDArray[np.bool_]) -> None:
    """Raise if the reward of a step in the learned plant is not finite."""
    wrong = np.flatnonzero(going & ~(np.abs(reward) <= LARGEST))
    if len(wrong):
        state = ", ".join(f"{value:.6g}" for value in states[wrong[0]])
        raise SettingError(
            f"The cost or reward of a step from the observation {state} is {reward[wrong[0]]}: the learned "
            "plant predicts such states, so it must be finite there, too. Limit its arguments, for example "
            "with max, abs or clip."
        )


class _Errors:
    """Errors of predictions by cell, to be drawn from."""

    def __init__(self, cell: Ints, error: Floats, count: int, rng: np.random.Generator) -> None:
        order = np.argsort(cell, kind="stable")
        self._errors = error[order]
        self._rng = rng
        size = np.bincount(cell, minlength=count)
        first = np.cumsum(size) - size
        few = size < _DRAWN
        self._first = np.where(few, 0, first)
        self._size = np.where(few, len(error), size)

    def draw(self, cell: Ints) -> Floats:
        """Return one error for each cell."""
        chosen = (self._rng.random(len(cell)) * self._size[cell]).astype(np.int64)
        return np.asarray(self._errors[self._first[cell] + chosen])
