"""Learned plants: affine laws of motion in cells of the state space, to read and to simulate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

from spaql.controllers.wording import number_text, rule_lines
from spaql.errors import BadEnvironmentError, SettingError
from spaql.formatting import counted
from spaql.kernels.plantree.raw_model import RawPlant, find_cells, predict_all
from spaql.spaces import action_names, observation_names

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class PlantPrediction(NamedTuple):
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

    def predict(self, observations: Any, actions: Any) -> PlantPrediction:
        """Return the predicted step for one observation and action, or for a batch of both.

        Actions are cut to the bounds of a Box.
        """
        single = np.shape(observations) == self.observation_space.shape
        states = self._batch(observations)
        nexts, rewards, ends = predict_all(self.plant, states, self.inputs_of(actions, len(states)))
        rewards = rewards + ends * (self.plant.rewards[2] - rewards)
        prediction = PlantPrediction(nexts, rewards, ends)
        return PlantPrediction(*(part[0] for part in prediction)) if single else prediction

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

    def __repr__(self) -> str:
        return f"PlantModel({self.name}, {counted(self.n_cells, 'cell')}, {counted(self.steps, 'step')})"

    def __str__(self) -> str:
        return text(self)


class PlantEnv(gymnasium.Env[Any, Any]):
    """A learned plant as an environment, without a time limit.

    Episodes begin at recorded starts, and terminate where recorded ones did. Observations are cut to their
    space.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(self, model: PlantModel) -> None:
        self.model = model
        self.observation_space = model.observation_space
        self.action_space = model.action_space
        self.state = model.starts[0].copy()
        """The state of the plant in double precision; it may be set."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[Any], dict[str, Any]]:
        """Start an episode at one of the recorded starts."""
        super().reset(seed=seed)
        self.state = self.model.starts[int(self.np_random.integers(len(self.model.starts)))].copy()
        return self._observed(), {}

    def step(self, action: Any) -> tuple[NDArray[Any], float, bool, bool, dict[str, Any]]:
        """Take a step; termination is random where its predicted probability is neither 0 nor 1."""
        model = self.model
        space = self.model.observation_space
        state = np.asarray(self.state, np.float64).reshape(1, -1)
        nexts, rewards, chances = predict_all(model.plant, state, model.inputs_of(action, 1))
        self.state = np.clip(nexts[0], space.low, space.high, dtype=np.float64)
        terminated = bool(self.np_random.random() < chances[0])
        reward = float(model.plant.rewards[2] if terminated else rewards[0])
        return self._observed(), reward, terminated, False, {}

    def _observed(self) -> NDArray[Any]:
        return np.asarray(self.state, self.observation_space.dtype)


def simulator(model: PlantModel) -> gymnasium.Env[Any, Any]:
    """Return a Gymnasium environment of a learned plant.

    Its spaces and time limit are those of the environment from which the plant was learned.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> model = agent.learn(total_timesteps=600, progress_bar=False).model
    >>> learner = spaql.SPAQL(simulator(model), rollouts=2, seed=0).learn(iterations=2, progress_bar=False)
    >>> learner.problem.horizon
    200
    """
    return TimeLimit(PlantEnv(model), model.horizon)


class _Ends(NamedTuple):
    """The termination tree, in the form that is printed."""

    feature: Ints
    threshold: Floats
    left: Ints
    right: Ints


def text(model: PlantModel, digits: int | None = 3) -> str:
    """Return a learned plant as rules: the law of each cell, and where episodes terminate.

    Parameters
    ----------
    model
        The plant.
    digits
        Significant digits of numbers. Terms that are smaller, over all recorded observations, than the last
        digit of the range of the result are left out. With None, every number is written in full.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.PlanTree("Pendulum-v1", seed=0, effort=0.02)
    >>> model = agent.learn(total_timesteps=600, progress_bar=False).model
    >>> text(model).count("next speed [rad/s] = ") == model.n_cells
    True
    """
    plant = model.plant

    def cell(node: int) -> list[str]:
        return law_lines(model, int(plant.cell[node]), digits)

    size = counted(model.n_cells, "cell")
    steps = counted(model.steps, "step")
    lines = [f"# {model.name}: {size}, learned from {steps}"]
    lines += rule_lines(plant, model.observations, digits, cell)
    return "\n".join([*lines, "", *end_lines(model, digits)])


def law_lines(model: PlantModel, cell: int, digits: int | None = 3) -> list[str]:
    """Return the law of a cell, given by its number from 0, one line per result."""
    results = [*(f"next {name}" for name in model.observations), "reward"]
    lines = [f"# cell {cell + 1}, {counted(int(model.samples[cell]), 'step')}"]
    for k, name in enumerate(results):
        terms = _terms(model, cell, k, digits)
        lines.append(f"{name} = {_sum(float(model.plant.law[cell, k, 0]), terms, digits)}")
    return lines


def end_lines(model: PlantModel, digits: int | None = 3) -> Iterator[str]:
    """Yield the lines of the termination tree."""
    plant = model.plant
    names = [*(f"next {name}" for name in model.observations), "score"]
    if not plant.end_chance.any():
        yield "# no episode was seen to end before its time was up"
        return
    yield "# where an episode ends"
    if len(plant.end_score):
        yield f"score = {_score(model, digits)}"
    tree = _Ends(plant.end_feature, plant.end_threshold, plant.end_left, plant.end_right)
    reward = number_text(float(plant.rewards[2]), digits)

    def leaf(node: int) -> list[str]:
        chance = float(plant.end_chance[node])
        if chance == 0.0:
            return ["it goes on"]
        likely = "" if chance == 1.0 else f" with chance {number_text(chance, digits)}"
        return [f"it ends{likely}, with reward {reward}"]

    yield from rule_lines(tree, names, digits, leaf)


def _terms(model: PlantModel, cell: int, k: int, digits: int | None) -> list[tuple[float, str]]:
    """Return the coefficients of a result, each with its variable, without negligible ones."""
    law = model.plant.law[cell, k, 1:]
    word = "if" if isinstance(model.action_space, Discrete) else "*"
    names = [*(f"* {name}" for name in model.observations), *(f"{word} {name}" for name in model.inputs)]
    named = [(float(value), name) for value, name in zip(law, names, strict=True) if value != 0.0]
    if digits is None:
        return named
    spread = [*np.ptp(model.seen, axis=0), model.plant.rewards[1] - model.plant.rewards[0]]
    least = 0.5 * 10.0**-digits * spread[k]
    adds = np.abs(law) * _largest(model)
    kept = {name for name, added in zip(names, adds, strict=True) if added > least}
    return [(value, name) for value, name in named if name in kept]


def _largest(model: PlantModel) -> Floats:
    """Return the largest recorded magnitude of each observation and input."""
    states = np.abs(model.seen).max(axis=0)
    if isinstance(model.action_space, Discrete):
        return np.concatenate([states, np.ones(len(model.inputs))])
    bound = np.maximum(np.abs(model.action_space.low), np.abs(model.action_space.high)).ravel()
    return np.concatenate([states, bound, bound.astype(np.float64) ** 2])


def _sum(offset: float, terms: Sequence[tuple[float, str]], digits: int | None) -> str:
    written = number_text(offset, digits)
    for value, name in terms:
        written += f" {'-' if value < 0 else '+'} {number_text(abs(value), digits)} {name}"
    return written


def _score(model: PlantModel, digits: int | None) -> str:
    names = [f"next {name}" for name in model.observations]
    first, second = np.triu_indices(model.dims)
    products = [f"* {names[i]} * {names[j]}" for i, j in zip(first, second, strict=True)]
    weights = model.plant.end_score.tolist()
    of = [*(f"* {name}" for name in names), *products]
    terms = [(w, what) for w, what in zip(weights[1:], of, strict=True) if w != 0.0]
    return _sum(weights[0], terms, digits)
