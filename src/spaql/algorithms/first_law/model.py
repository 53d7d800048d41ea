"""An affine model of a plant with the shape of its reward, and the regulators and searched laws of both."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spaql.algorithms.replay import ReplayMemory
from spaql.kernels.affine_model import DISTANCE, PLANES, QUADRATIC, SCORES, play_laws, regulator
from spaql.kernels.numerics import Bools, Floats, Rng, mean, moments, principal_axes, weighted_sum
from spaql.kernels.plantree.pwa_model import fit_cell
from spaql.kernels.treesearch.cma import ask, new_distribution, population_size, tell

_RIDGE = 1e-7
"""Of least squares, for each sample."""
_EQUAL = 1e-9
_STILL = 0.95
"""An observation that moves by less in this share of the steps stands still: set-points, measured loads."""
_SAMPLES_EACH = 3
"""Samples for each weight of a quadratic reward, at least."""
_PLANES = (2, 4)
"""Planes of a reward."""
_TRIES = 4
"""How often they are begun anew."""
_ROUNDS = 15
"""How often they are moved, at most."""
_MOST = 800
"""The samples by which they are fitted, at most."""
_EXACT = 1e-3
"""A reward of which a smaller share is unexplained needs no planes."""
_IDLE = 1e-6
"""A reward that depends on observations by less than this share is one of actions."""
_LONG = 200
"""The most steps ahead of a regulator."""
_EPISODES = 24
"""Episodes of a search in the model."""
_STEPS = 60
"""Steps of such an episode, at most."""
_GENERATIONS = 40
"""Generations of the search."""
_FIRST_STEP = 0.15
"""The first step of its distribution."""


class Reward(NamedTuple):
    """The shape of a reward, in `[observation, 1, action]` before the step or after it."""

    after: bool
    shape: int
    form: Floats
    """A quadratic form, or planes."""
    cost: Floats
    """A quadratic form of what is lost to the best reward."""
    best: float
    unexplained: float
    """The share of the variance that is left."""


@dataclass(frozen=True, eq=False)
class AffineModel:
    """Standardised next observations and rewards as functions of `[observation, 1, action]`."""

    kind: int
    """Of laws (see the kernels)."""
    horizon: int
    centre: Floats
    scale: Floats
    inputs: Floats
    """Of each sample."""
    nexts: Floats
    motion: Floats
    """The weights of the inputs in each next observation."""
    errors: Floats
    """Of predictions of the next observations."""
    moves: Bools
    """Which observations do not stand still."""
    reward: Reward

    @classmethod
    def fit(
        cls, memory: ReplayMemory, actions: Floats, kind: int, horizon: int, rng: Rng
    ) -> AffineModel | None:
        """Return the model of the steps of a memory, but for those that end an episode: their rewards differ.

        None if steps are too few, or rewards do not depend on the observations.
        """
        going = ~memory.ended
        states = memory.states[going]
        rewards = memory.rewards[going]
        width = states.shape[1] + 1 + actions.shape[1]
        if len(states) < _SAMPLES_EACH * width * (width + 1) / 2 or rewards.min() == rewards.max():
            return None
        centre, deviation = moments(states)
        scale = np.where(deviation > _EQUAL * (1.0 + np.abs(centre)), deviation, 1.0)
        before = (states - centre) / scale
        nexts = (memory.nexts[going] - centre) / scale
        ones = np.ones((len(states), 1))
        inputs = np.concatenate([before, ones, actions[going]], axis=1)
        moves = (np.abs(nexts - before) >= _EQUAL).mean(axis=0) > 1.0 - _STILL
        motion = motion_of(inputs, before, nexts, moves)
        errors = np.where(moves, nexts - weighted_sum(inputs[:, np.newaxis], motion), 0.0)
        views = [(False, inputs), (True, np.concatenate([nexts, ones, actions[going]], axis=1))]
        reward = _reward_of(views, rewards, rng)
        costs = reward.cost.diagonal()
        if costs[: states.shape[1]].max() < _IDLE * np.abs(costs).max():
            return None
        return cls(kind, horizon, centre, scale, inputs, nexts, motion, errors, moves, reward)

    @property
    def states(self) -> int:
        """Length of an observation."""
        return len(self.centre)

    def regulator(self, motion: Floats, price: float) -> Floats:
        """Return a law: of discounted LQR, or the greedy scores of its cost-to-go.

        The price of the square of an action is in shares of the cost of the observations.
        """
        n = self.states
        width = len(motion)
        model = np.zeros((width, n + 1))
        model[:, :n] = motion
        model[n, n] = 1.0
        move = np.eye(width)
        if self.reward.after:
            move[: n + 1] = model.T
        cost = _product(_product(move.T.copy(), self.reward.cost), move)
        kept = [j for j in range(width) if j != n]
        cost[np.ix_(kept, kept)] = _positive(cost[np.ix_(kept, kept)])
        size = max(math.fsum(cost.diagonal()[:n].tolist()), 1e-9)
        values = np.empty((width, width))
        gains = np.empty((width - n - 1, n + 1))
        discount = 1.0 - 1.0 / max(self.horizon, 20)
        regulator(model, cost, discount, price * size, min(self.horizon, _LONG), values, gains)
        if self.kind == SCORES:
            scores = -2.0 * values[n + 1 :, : n + 1]
            scores[:, n] -= values.diagonal()[n + 1 :]
            return scores
        return -gains

    def searched(self, laws: list[Floats], starts: Floats, levels: int, rng: Rng) -> list[Floats]:
        """Return laws by their returns in the model, after the best one improved there by CMA-ES.

        The model costs no steps.
        """
        starts = (starts[rng.integers(len(starts), size=_EPISODES)] - self.centre) / self.scale
        both = np.concatenate([self.inputs[:, : self.states], self.nexts])
        low = both.min(axis=0)
        high = both.max(axis=0)
        gap = (high - low) / 2
        reward = self.reward
        steps = min(self.horizon, _STEPS)

        def returns(candidates: Floats) -> Floats:
            noise = self.errors[rng.integers(len(self.errors), size=(steps, _EPISODES))]
            values = np.empty(len(candidates))
            play_laws(
                self.kind,
                max(levels - 1, 1) / 2,
                candidates,
                starts,
                noise,
                self.motion,
                low - gap,
                high + gap,
                reward.after,
                reward.shape,
                reward.form,
                reward.best,
                values,
            )
            return np.nan_to_num(values, nan=-1e290, neginf=-1e290)

        order = np.argsort(-returns(np.array(laws)), kind="stable")
        laws = [laws[i] for i in order]
        first = laws[0]
        size = max(float(np.abs(first).max()), 1e-6) if self.kind == SCORES else 1.0
        mean_law = first.ravel() / size
        distribution = new_distribution(mean_law, np.ones(len(mean_law)), _FIRST_STEP)
        vectors = np.empty((population_size(len(mean_law)), len(mean_law)))
        for _ in range(_GENERATIONS):
            ask(distribution, rng, vectors)
            tell(distribution, vectors, returns(size * vectors.reshape(-1, *first.shape)))
        pair = np.array([first, size * distribution.mean.reshape(first.shape)])
        if int(np.argmax(returns(pair))):
            laws.insert(0, pair[1])
        return laws

    def raw(self, law: Floats) -> tuple[Floats, Floats]:
        """Return the gains and the offsets of a law of raw observations."""
        gains = law[:, :-1] / self.scale
        return gains, law[:, -1] - weighted_sum(gains, self.centre)


def motion_of(inputs: Floats, before: Floats, nexts: Floats, moves: Bools) -> Floats:
    """Return the weights of the inputs in the next observations, by least squares."""
    motion = _least_squares(inputs, nexts - before)
    motion[:, ~moves] = 0.0
    places = np.arange(before.shape[1])
    motion[places, places] += 1.0
    return motion


def _least_squares(inputs: Floats, outputs: Floats) -> Floats:
    """Return the weights with the least squared errors, added in a fixed order."""
    count = len(inputs)
    weights = np.zeros((inputs.shape[1], outputs.shape[1]))
    rows = np.arange(count)
    fit_cell(
        np.ascontiguousarray(inputs),
        np.ascontiguousarray(outputs),
        rows,
        0,
        count,
        _RIDGE * count,
        np.zeros_like(weights),
        weights,
    )
    return weights


def _reward_of(views: list[tuple[bool, Floats]], rewards: Floats, rng: Rng) -> Reward:
    """Return the shape that explains most: a quadratic form, its root, or the least of some planes."""
    best = float(rewards.max())
    found: list[Reward] = []
    for shape in (QUADRATIC, DISTANCE):
        lost = (best - rewards) ** (1 + (shape == DISTANCE))
        for after, inputs in views:
            form, left = _quadratic_form(inputs, -lost)
            found.append(Reward(after, shape, form, -form, best, left / _variance(lost)))
    if min(reward.unexplained for reward in found) > _EXACT:
        for count in _PLANES:
            for after, inputs in views:
                planes, left = _least_of_planes(inputs, rewards, count, rng)
                cost = np.zeros((inputs.shape[1],) * 2)
                for k in range(count):
                    for j in range(k):
                        gap = planes[k] - planes[j]
                        cost += gap[:, np.newaxis] * gap
                found.append(Reward(after, PLANES, planes, cost, best, left / _variance(rewards)))
    return min(found, key=lambda reward: reward.unexplained)


def _variance(values: Floats) -> float:
    off = values - mean(values)
    return max(mean(off * off), 1e-300)


def _quadratic_form(inputs: Floats, values: Floats) -> tuple[Floats, float]:
    """Return the symmetric form nearest to some values, and the variance of its errors."""
    width = inputs.shape[1]
    i, j = np.triu_indices(width)
    products = inputs[:, i] * inputs[:, j]
    weights = _least_squares(products, values[:, np.newaxis])[:, 0]
    form = np.zeros((width, width))
    form[i, j] = weights / 2
    return form + form.T, _variance(values - weighted_sum(products, weights))


def _least_of_planes(inputs: Floats, rewards: Floats, count: int, rng: Rng) -> tuple[Floats, float]:
    """Return the planes whose least is nearest to some rewards, and the variance of its errors.

    Each plane is fitted to the samples at which it is the least, in turns.
    """
    if len(inputs) > _MOST:
        chosen = rng.permutation(len(inputs))[:_MOST]
        inputs = inputs[chosen]
        rewards = rewards[chosen]
    best = math.inf
    planes = np.zeros((count, inputs.shape[1]))
    for _ in range(_TRIES):
        centres = inputs[rng.integers(len(inputs), size=count)]
        distances = ((inputs[:, np.newaxis] - centres) ** 2).cumsum(axis=2)[:, :, -1]
        part = distances.argmin(axis=1)
        tried = np.zeros_like(planes)
        for _ in range(_ROUNDS):
            for k in range(count):
                own = part == k
                if own.sum() > inputs.shape[1]:
                    tried[k] = _least_squares(inputs[own], rewards[own, np.newaxis])[:, 0]
            values = weighted_sum(inputs[:, np.newaxis], tried.T)
            before = part
            part = values.argmin(axis=1)
            if np.array_equal(before, part):
                break
        left = _variance(rewards - values.min(axis=1))
        if left < best:
            best = left
            planes = tried
    return planes, best


def _product(a: Floats, b: Floats) -> Floats:
    """Return a matrix product, added in a fixed order."""
    return weighted_sum(a[:, np.newaxis, :], b)


def _positive(matrix: Floats) -> Floats:
    """Return a symmetric matrix without its negative curvatures."""
    rotated = (matrix + matrix.T) / 2
    axes = np.empty(matrix.shape)
    principal_axes(rotated, axes)
    curvature = np.maximum(rotated.diagonal(), 0.0)
    return _product(axes.T * curvature, axes)
