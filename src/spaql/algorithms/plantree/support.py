"""Rollouts that measure what the data support: exact costs, and the shares of steps that leave the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from gymnasium.spaces import Discrete

from spaql.algorithms.plantree.learned_plant import CAUTIOUS, fit_plant
from spaql.algorithms.plantree.rule_trees import from_rules
from spaql.algorithms.replay import LARGEST, ActionCode, ReplayMemory, Scale
from spaql.controllers import Controller
from spaql.errors import SettingError
from spaql.kernels.numerics import Bools, Floats, Ints, Rng
from spaql.kernels.plantree.controllers import controls
from spaql.kernels.plantree.pwa_model import PlantEnsemble, find_all, move

_NEAR = 100
"""Most rows of a region of states: in it, an action is near to the others."""
_MARGIN = 0.5
"""Share of the range of the actions of a region by which it may be exceeded."""
_EQUAL = 1e-6
CLIPPED = 0.05
"""Standard deviations of the states by which a prediction must be cut to count as clipped."""
_DRAWN = 5
"""Fewest held-out errors of a cell that are drawn from; below, those of all cells are."""
Reward = Callable[[Floats, Floats, Floats, Bools], Floats]
Ends = Callable[[Floats], Bools]


class TriedActions:
    """The ranges of the logged actions, in all and in regions of states with about as many rows each.

    Cells of a learned plant are no such regions: a plant with one law for all states has one cell.
    """

    def __init__(self, z: Floats, inputs: Floats, listed: bool) -> None:
        """Take standardised states, and actions as inputs of a plant without squares."""
        self._listed = listed
        self._all = (inputs.min(axis=0), inputs.max(axis=0))
        self._regions = _regions(z)
        region = self._find(z)
        count = len(self._regions[0])
        self._low, self._high = np.full((2, count, inputs.shape[1]), np.inf)
        np.minimum.at(self._low, region, inputs)
        self._high = -self._high
        np.maximum.at(self._high, region, inputs)

    def _find(self, z: Floats) -> Ints:
        return find_all(*self._regions, 0, np.ascontiguousarray(z))

    def untried(self, inputs: Floats) -> Bools:
        """Return which actions are outside those that were tried anywhere."""
        low, high = self._all
        some = inputs[:, : len(low)]
        return np.asarray(((some < low - _EQUAL) | (some > high + _EQUAL)).any(axis=1))

    def unseen(self, z: Floats, inputs: Floats) -> Bools:
        """Return which actions are outside those that were tried near the state, with a margin."""
        region = self._find(z)
        low = self._low[region]
        high = self._high[region]
        some = inputs[:, : low.shape[1]]
        # One-hot, 1 was never seen, or it was all that was seen.
        wide = 0.0 if self._listed else _MARGIN * (high - low) + _EQUAL
        return np.asarray(((some < low - wide) | (some > high + wide)).any(axis=1))


def _regions(z: Floats) -> tuple[Ints, Floats, Ints]:
    """Return a tree that halves states at the median of their widest range: features, thresholds, children.

    The second child of a node comes after its first.
    """
    feature = [-1]
    threshold = [0.0]
    left = [-1]
    waiting = [(0, np.arange(len(z)))]
    while waiting:
        node, rows = waiting.pop()
        j = int(np.ptp(z[rows], axis=0).argmax())
        middle = np.sort(z[rows, j])[len(rows) // 2]
        below = z[rows, j] < middle
        if len(rows) <= _NEAR or not below.any():
            continue
        feature[node] = j
        threshold[node] = float(middle)
        left[node] = len(feature)
        waiting += [(len(feature), rows[below]), (len(feature) + 1, rows[~below])]
        feature += [-1, -1]
        threshold += [0.0, 0.0]
        left += [-1, -1]
    return np.array(feature), np.array(threshold), np.array(left)


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


class TestPlant:
    """A plant fitted to a memory, in which controllers are rolled out with exact costs and ends."""

    __test__ = False  # not a test of pytest's

    def __init__(self, memory: ReplayMemory, code: ActionCode, reward: Reward, ends: Ends) -> None:
        self.code = code
        self.scale = Scale.of(memory)
        self._reward = reward
        self._ends = ends
        self._held = (memory.nexts == memory.states).all(axis=0)  # set-points, which a cut must not move
        rows = [np.arange(len(memory))]
        self._plant: PlantEnsemble = fit_plant(memory, self.scale, code, rows, squares=True, margin=CAUTIOUS)
        self._inputs = code.inputs(code.tried(), squares=True)
        z = self.scale.z(memory.states)
        self._tried = TriedActions(z, code.inputs(memory.actions, squares=False), code.listed)

    def _find(self, z: Floats) -> Ints:
        plant = self._plant
        return find_all(plant.feature, plant.threshold, plant.left, 0, np.ascontiguousarray(z))

    def _predict(self, z: Floats, inputs: Floats) -> tuple[Floats, Floats]:
        """Return the next states, and by how much each was cut."""
        after = np.array(z, order="C")
        chance, cut = np.empty((2, len(z)))
        move(self._plant, np.zeros(len(z), np.int64), after, inputs, chance, cut)
        after[:, self._held] = z[:, self._held]
        return after, cut

    def errors(self, memory: ReplayMemory) -> tuple[Ints, Floats]:
        """Return the cell and the error of the prediction of every step of another memory."""
        z = self.scale.z(memory.states)
        after, _ = self._predict(z, self.code.inputs(memory.actions, squares=True))
        return self._find(z), self.scale.z(memory.nexts) - after

    def roll(
        self,
        rules: Controller,
        starts: Floats,
        steps: int,
        errors: tuple[Ints, Floats] | None = None,
        rng: Rng | None = None,
    ) -> ModelEpisodes:
        """Roll out a controller, as `to_rules` makes it, from raw starts.

        Errors of predictions (see `errors`), if given, are drawn and added.
        """
        tree = from_rules(rules, self.scale, self.code)
        z = self.scale.z(starts)
        noise = None if errors is None or rng is None else _Errors(*errors, len(self._plant.feature), rng)
        going = np.ones(len(z), np.bool_)
        returns = np.zeros(len(z))
        strange = np.zeros(len(z), np.bool_)
        played = clipped = unseen = untried = 0
        for _ in range(steps):
            inputs = controls(tree, np.ascontiguousarray(z), self._inputs)
            after, cut = self._predict(z, inputs)
            if noise is not None:
                after = after + noise.draw(self._find(z))
            raw, raw_after = (each * self.scale.deviation + self.scale.mean for each in (z, after))
            ended = self._ends(raw_after)
            reward = self._reward(raw, self._raw_actions(inputs), raw_after, ended)
            _check_finite(reward, raw, going)
            returns[going] += reward[going]
            is_unseen = going & self._tried.unseen(z, inputs)
            strange |= is_unseen
            played += int(going.sum())
            clipped += int((going & (cut > CLIPPED)).sum())
            unseen += int(is_unseen.sum())
            untried += int((going & self._tried.untried(inputs)).sum())
            going = going & ~ended
            z = after
            if not going.any():
                break
        return ModelEpisodes(
            returns=returns,
            length=played / len(starts),
            clipped=clipped / played,
            unseen=unseen / played,
            unseen_episodes=float(strange.mean()),
            untried=untried / played,
        )

    def _raw_actions(self, inputs: Floats) -> Floats:
        if isinstance(self.code.space, Discrete):
            number = np.where(inputs.any(axis=1), inputs.argmax(axis=1) + 1, 0)
            return np.asarray(number[:, np.newaxis] + float(self.code.space.start))
        return np.asarray(self.code.middle + self.code.half * inputs[:, : self.code.numbers])


def _check_finite(reward: Floats, states: Floats, going: Bools) -> None:
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

    def __init__(self, cell: Ints, error: Floats, count: int, rng: Rng) -> None:
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
