"""The learned plant: affine laws of motion in cells of the state space."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from spaql import archive
from spaql.errors import ArchiveError, BadEnvironmentError, SettingError
from spaql.formatting import counted
from spaql.kernels.plantree.raw_model import RawPlant, find_cells, predict_all
from spaql.learned_plants.plant_file import plant_from, plant_to
from spaql.learned_plants.text import text
from spaql.spaces import action_names, count_actions, observation_names

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
_MOST = 2**31
"""Bound on the steps of an episode."""


class Prediction(NamedTuple):
    """Predicted steps, one per row."""

    observations: Floats
    """The next observations."""
    rewards: Floats
    """The expected rewards over termination and continuation."""
    ends: Floats
    """The probabilities that the episode terminates."""


@dataclass(frozen=True, eq=False)
class PlantModel:
    """A learned, piecewise-affine plant, in raw units.

    A binary tree cuts the state space into cells. In each cell the next observation and the reward are
    affine in the observation and in inputs from the action: the numbers of a Box and their squares, or a
    one-hot Discrete action. A prediction is cut to the range of the cell's recorded next observations along
    their principal axes; a second tree, over next observations, predicts termination. A PlanTree agent has
    one as `agent.model`.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> model = agent.learn(total_timesteps=600, progress_bar=False).model
    >>> prediction = model.predict([1.0, 0.0, 0.0], [2.0])
    >>> prediction.observations.shape, float(prediction.ends)
    ((3,), 0.0)
    """

    name: str
    """Name of the problem from which it was learned."""
    plant: RawPlant
    observation_space: Box
    action_space: Box | Discrete
    horizon: int
    """Steps of an episode."""
    samples: Ints
    """The number of steps to which each cell was fitted, without those that ended an episode."""
    starts: Floats
    """The first observations of episodes, one per row."""
    seen: Floats
    """The lowest and the highest recorded value of each number of an observation: two rows."""
    steps: int
    """The number of steps from which it was learned."""
    observations: tuple[str, ...] = ()
    """Names of the numbers of an observation, with their units."""
    actions: tuple[str, ...] = ()
    """Names of the Discrete actions, or of the numbers of an action, with their units."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "observations", observation_names(self.observation_space, self.observations))
        object.__setattr__(self, "actions", action_names(self.action_space, self.actions))
        for array in (*self.plant, self.samples, self.starts, self.seen):
            array.setflags(write=False)
        self._check()

    @property
    def dims(self) -> int:
        """How many numbers an observation has."""
        return int(np.prod(self.observation_space.shape))

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.samples)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the laws' inputs: the numbers of an action and their squares, or Discrete actions."""
        if isinstance(self.action_space, Discrete):
            return self.actions
        return (*self.actions, *(f"{name}²" for name in self.actions))

    def predict(self, observations: Any, actions: Any) -> Prediction:
        """Return the predicted step for one observation and action, or for a batch of both.

        Actions are cut to the bounds of a Box.
        """
        single = np.shape(observations) == self.observation_space.shape
        states = self._batch(observations)
        nexts, rewards, ends = predict_all(self.plant, states, self.inputs_of(actions, len(states)))
        rewards = rewards + ends * (self.plant.rewards[2] - rewards)
        prediction = Prediction(nexts, rewards, ends)
        return Prediction(*(part[0] for part in prediction)) if single else prediction

    def find(self, observations: Any) -> Ints:
        """Return the cell of each row of observations; cells are numbered from 0 in printed order."""
        return find_cells(self.plant, self._batch(observations))

    def box(self, cell: int) -> tuple[Floats, Floats]:
        """Return the bounds `low <= observation < high` of a cell."""
        low = np.full(self.dims, -np.inf)
        high = np.full(self.dims, np.inf)
        node = int(np.flatnonzero(self.plant.cell == cell)[0])
        while node:
            parent, is_left = self._parents[node]
            j = self.plant.feature[parent]
            cut = self.plant.threshold[parent]
            if is_left:
                high[j] = min(high[j], cut)
            else:
                low[j] = max(low[j], cut)
            node = parent
        return low, high

    @cached_property
    def _parents(self) -> dict[int, tuple[int, bool]]:
        parents = {}
        for node in np.flatnonzero(self.plant.feature >= 0).tolist():
            parents[int(self.plant.left[node])] = (node, True)
            parents[int(self.plant.right[node])] = (node, False)
        return parents

    def _batch(self, observations: Any) -> Floats:
        # A copy: the kernels would be compiled anew for a read-only array.
        array = np.array(observations, np.float64)
        if array.size % self.dims:
            raise SettingError(
                f"The observations have the shape {array.shape}, and must be (rows of) {self.dims} numbers."
            )
        batch = array.reshape(-1, self.dims)
        if np.isnan(batch).any():
            row = int(np.flatnonzero(np.isnan(batch).any(axis=1))[0])
            raise BadEnvironmentError(f"Observation {row} of the batch holds NaN: {batch[row]}.")
        return batch

    def inputs_of(self, actions: Any, count: int) -> Floats:
        """Return the inputs of the laws for so many actions, one per row."""
        space = self.action_space
        if isinstance(space, Discrete):
            number = np.asarray(actions, np.int64).reshape(-1) - int(space.start)
            if len(number) != count or np.any((number < 0) | (number >= space.n)):
                raise SettingError(f"There must be an action of {space} for each of {count} observations.")
            return np.eye(int(space.n))[number]
        u = np.asarray(actions, np.float64)
        if u.size != count * len(self.actions) or np.isnan(u).any():
            raise SettingError(
                f"There must be {len(self.actions)} numbers of an action for each of {count} observations."
            )
        u = u.reshape(count, -1)
        u = np.clip(u, space.low.ravel(), space.high.ravel())
        return np.concatenate([u, u**2], axis=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a plant file, from which `load` returns an equal plant."""
        archive.save(path, *plant_to(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PlantModel:
        """Read the file of a plant; no code in it is ever run."""
        return cls.from_document(archive.load(path))

    @classmethod
    def from_document(cls, document: archive.Document) -> PlantModel:
        """Build the plant that a file holds."""
        if document.data.get("kind") != "plant":
            raise ArchiveError(
                f"The file holds {document.data.get('kind')!r}, not a plant: read it with spaql.load."
            )
        return plant_from(document, cls)

    def _check(self) -> None:
        """Raise if the arrays do not form a plant, so that every prediction terminates."""
        plant = self.plant
        dims = self.dims
        cells = self.n_cells
        check_tree(plant.feature, plant.threshold, plant.left, plant.right, dims)
        leaf = plant.feature < 0
        fits = plant.cell.shape == leaf.shape and leaf.sum() == cells
        if not fits or not np.array_equal(np.sort(plant.cell[leaf]), np.arange(cells)):
            raise SettingError("The cells of the plant do not match the leaves of its tree.")
        outputs = dims + 1
        inputs = len(self.inputs)
        score = 1 + dims + dims * (dims + 1) // 2
        shapes = {
            "law": (cells, outputs, 1 + dims + inputs),
            "centre": (cells, dims),
            "axes": (cells, dims, dims),
            "low": (cells, dims),
            "high": (cells, dims),
            "scale": (dims,),
            "rewards": (3,),
            "end_chance": plant.end_feature.shape,
            "end_score": (score,) if len(plant.end_score) else (0,),
        }
        for name, shape in shapes.items():
            array = getattr(plant, name)
            if array.shape != shape or not np.isfinite(array).all():
                raise SettingError(f"{name} of the plant must be finite numbers of the shape {shape}.")
        ranges = (
            np.all(plant.scale > 0)
            and np.all(plant.low <= plant.high)
            and plant.rewards[0] <= plant.rewards[1]
            and np.all((plant.end_chance >= 0) & (plant.end_chance <= 1))
        )
        looked_at = dims + (1 if len(plant.end_score) else 0)
        check_tree(plant.end_feature, plant.end_threshold, plant.end_left, plant.end_right, looked_at)
        if not ranges or self.samples.shape != (cells,) or np.any(self.samples < 0):
            raise SettingError(
                "The plant has a scale, a range, a probability or a sample count out of bounds."
            )
        if self.starts.ndim != 2 or self.starts.shape[1:] != (dims,) or not len(self.starts):
            raise SettingError(f"starts must be one or more rows of {dims} numbers.")
        if self.seen.shape != (2, dims) or not all(np.isfinite(x).all() for x in (self.starts, self.seen)):
            raise SettingError(f"starts and seen must be finite, and seen two rows of {dims} numbers.")
        if not 1 <= self.horizon <= _MOST or self.steps < 0:
            raise SettingError(
                f"horizon is {self.horizon} and steps is {self.steps}, and they must be at least 1 and 0."
            )
        if len(self.observations) != dims or len(self.actions) != count_actions(self.action_space):
            raise SettingError("Every number of an observation, and every action, must have a name.")

    def __repr__(self) -> str:
        return f"PlantModel({self.name}, {counted(self.n_cells, 'cell')}, {counted(self.steps, 'step')})"

    def __str__(self) -> str:
        return text(self)


def check_tree(feature: Ints, threshold: Floats, left: Ints, right: Ints, looked_at: int) -> None:
    """Raise if arrays do not form a tree over so many numbers, so that every look-up terminates."""
    count = len(feature)
    if count < 1 or any(array.shape != (count,) for array in (feature, threshold, left, right)):
        raise SettingError("The arrays of a tree must have one row for each of one or more nodes.")
    if np.any(feature >= looked_at) or not np.isfinite(threshold).all():
        raise SettingError(f"A tree must test numbers 0 to {looked_at - 1} with finite thresholds.")
    if not archive.is_tree(left, right, feature >= 0):
        raise SettingError("The children of a node come after it, and all but the first are of exactly one.")
