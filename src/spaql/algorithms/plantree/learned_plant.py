"""The learned plant: cells with an affine law of motion and a box of next states each; also in raw units."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.replay import ActionCode, ReplayMemory, Scale, regressors
from spaql.errors import SettingError
from spaql.kernels.numerics import Floats, Ints, Rng, mean, moments, weighted_sum
from spaql.kernels.plantree.pwa_model import PlantEnsemble, cell_boxes, find_all, grow_motion
from spaql.kernels.plantree.raw_model import RawPlant
from spaql.kernels.plantree.termination import fit_termination
from spaql.learned_plants import PlantModel
from spaql.problems import Problem
from spaql.simulate import Episode

LEAST = 30
"""Fewest samples of a cell."""
EXACT = 1e-5
"""A cell is not cut if its scaled squared error is below this."""
RIDGE = 0.01
CAUTIOUS = 0.5
"""The margin around the states seen, of a plant for the final plan."""
BOLD = 1.0
"""The same of a plant for exploration, in which unknown states are reachable."""
_FAR = 1e9
_PART = 0.95
"""Share of the samples to which a member of the ensemble is fitted."""
_HELD_OUT = 5
"""Every fifth episode is held out."""


def fit_plant(
    memory: ReplayMemory,
    scale: Scale,
    code: ActionCode,
    samples: list[Ints],
    *,
    squares: bool,
    margin: float,
    least: int = LEAST,
) -> PlantEnsemble:
    """Return a plant with one tree of cells for each list of samples, which are rows of the memory.

    Cells have at least `least` samples. Predictions of a cell are cut to the range of its next states, plus a
    margin as a share of that. Steps that end an episode are used for the termination tree only, because their
    reward differs.
    """
    z = scale.z(memory.states)
    after = scale.z(memory.nexts)
    x = regressors(z, code.inputs(memory.actions, squares=squares))
    y = np.concatenate([after - z, memory.rewards[:, np.newaxis]], axis=1)
    going = ~memory.ended
    spread = moments(y[going])[1] + 1e-9
    dims = z.shape[1]
    trees = []
    for rows in samples:
        kept = rows[going[rows]]
        feature, threshold, left, law = grow_motion(x[kept], y[kept] / spread, dims, least, EXACT, RIDGE)
        law = np.ascontiguousarray((law * spread).transpose(0, 2, 1))
        law[:, np.arange(dims), 1 + np.arange(dims)] += 1.0  # from the change of a state to the next state
        boxes = _boxes(find_all(feature, threshold, left, 0, z), len(feature), after, margin)
        trees.append((feature, threshold, left, law, *boxes))
    roots = np.cumsum([0, *(len(tree[0]) for tree in trees[:-1])])
    shifted = [(tree[0], tree[1], tree[2] + root, *tree[3:]) for tree, root in zip(trees, roots, strict=True)]
    joined = [np.concatenate(parts) for parts in zip(*shifted, strict=True)]
    rewards = memory.rewards
    ended = memory.ended
    known = memory.known_ends
    last = mean(rewards[ended]) if ended.any() else known.reward if known is not None else 0.0
    seen = np.array([rewards.min(), rewards.max(), last])
    if known is not None:
        after = np.concatenate([after, scale.z(known.points)])
        ended = np.concatenate([ended, known.ended])
    return PlantEnsemble._make([roots, *joined, seen, *fit_termination(after, ended)])


def _boxes(cells: Ints, count: int, after: Floats, margin: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, for every cell, the mean of its next states, their principal axes, and the range along each."""
    dims = after.shape[1]
    size = np.zeros(count, np.int64)
    centre = np.zeros((count, dims))
    axes = np.zeros((count, dims, dims))
    low = np.zeros((count, dims))
    high = np.zeros((count, dims))
    cell_boxes(cells, after, size, centre, axes, low, high)
    seen = (size > 0)[:, np.newaxis]
    wide = margin * (high - low)
    return centre, axes, np.where(seen, low - wide, -_FAR), np.where(seen, high + wide, _FAR)


def draw_samples(count: int, members: int, rng: Rng) -> list[Ints]:
    """Draw the samples of an ensemble: all for the first member, a large part for each other."""
    part = max(1, int(_PART * count))
    return [np.arange(count), *(np.sort(rng.permutation(count)[:part]) for _ in range(members - 1))]


def fit_model(
    memory: ReplayMemory, code: ActionCode, problem: Problem, mirror: Mirror | None = None
) -> PlantModel:
    """Return the plant fitted to all samples, and to their mirror images; the fit is deterministic."""
    if not len(memory) or memory.ended.all():
        raise SettingError("The memory has no step to fit a plant to: call learn first.")
    steps = len(memory)
    starts = memory.states[memory.begins]
    if mirror is not None:
        memory = mirror.memory(memory)
    scale = Scale.of(memory)
    plant = fit_plant(memory, scale, code, [np.arange(len(memory))], squares=True, margin=CAUTIOUS)
    assert isinstance(problem.states.space, Box)
    going = ~memory.ended
    nodes = find_all(plant.feature, plant.threshold, plant.left, 0, scale.z(memory.states[going]))
    both = np.concatenate([memory.states, memory.nexts])
    raw = raw_plant(plant, scale, code, memory.states)
    return PlantModel(
        name=problem.name,
        plant=raw,
        observation_space=problem.states.space,
        action_space=code.space,
        horizon=problem.horizon,
        samples=np.bincount(raw.cell[nodes], minlength=len(raw.law)),
        starts=starts,
        seen=np.stack([both.min(axis=0), both.max(axis=0)]),
        steps=steps,
        observations=problem.states.names,
        actions=problem.actions.names,
    )


def hold_out(
    memory: ReplayMemory, code: ActionCode, problem: Problem, mirror: Mirror | None = None
) -> tuple[PlantModel, list[Episode]]:
    """Return a plant fitted to four fifths of the episodes, and the other episodes."""
    episodes = np.arange(len(memory.begins))
    kept = episodes % _HELD_OUT == _HELD_OUT - 1
    if not kept.any():
        raise SettingError(
            f"Fewer than {_HELD_OUT} episodes were played, too few to hold some out: train longer."
        )
    return fit_model(memory.only(~kept), code, problem, mirror), episodes_of(memory.only(kept), code)


def episodes_of(memory: ReplayMemory, code: ActionCode) -> list[Episode]:
    """Return the episodes of a memory."""
    episodes = np.arange(len(memory.begins))
    return [
        Episode(
            np.concatenate([part.states, part.nexts[-1:]]),
            np.array([code.raw(action) for action in part.actions]),
            part.rewards,
            bool(part.ended[-1]),
        )
        for part in (memory.only(episodes == i) for i in episodes)
    ]


def _as_printed(plant: PlantEnsemble) -> Ints:
    """Return the leaves in the order in which rules are printed."""
    found = []
    waiting = [0]
    while waiting:
        node = waiting.pop()
        if plant.feature[node] < 0:
            found.append(node)
        else:
            waiting += [int(plant.left[node]) + 1, int(plant.left[node])]
    return np.array(found)


def raw_plant(plant: PlantEnsemble, scale: Scale, code: ActionCode, states: Floats) -> RawPlant:
    """Return a plant of one member, fitted to states, in raw units, with its cells as they are printed.

    The standardisation is absorbed in its parameters.
    """
    order = _as_printed(plant)
    inner = plant.feature >= 0
    cell = np.full(len(inner), -1)
    cell[order] = np.arange(len(order))
    ends = plant.end_feature >= 0
    return RawPlant(
        feature=plant.feature,
        threshold=_raw_cuts(plant, scale, states),
        left=np.where(inner, plant.left, -1),
        right=np.where(inner, plant.left + 1, -1),
        cell=cell,
        law=_raw_laws(plant.law[order], scale, code),
        centre=plant.centre[order] * scale.deviation + scale.mean,
        axes=plant.axes[order],
        low=plant.low[order],
        high=plant.high[order],
        scale=scale.deviation,
        rewards=plant.rewards,
        end_feature=plant.end_feature,
        end_threshold=_raw_ends(plant.end_feature, plant.end_threshold, scale),
        end_left=np.where(ends, plant.end_left, -1),
        end_right=np.where(ends, plant.end_left + 1, -1),
        end_chance=plant.end_chance,
        end_score=_raw_score(plant.end_score, scale),
    )


def _raw_cuts(plant: PlantEnsemble, scale: Scale, states: Floats) -> Floats:
    """Return the thresholds of the cells in raw units; each is a number of one of the states, to the bit."""
    z = scale.z(states)
    found = np.zeros(len(plant.feature))
    for node in np.flatnonzero(plant.feature >= 0):
        j = plant.feature[node]
        found[node] = states[z[:, j] >= plant.threshold[node], j].min()
    return found


def _raw_ends(feature: Ints, threshold: Floats, scale: Scale) -> Floats:
    """Return the thresholds of the termination tree in raw units; that of the score does not change."""
    seen = (feature >= 0) & (feature < len(scale.mean))
    column = np.where(seen, feature, 0)
    return np.where(seen, threshold * scale.deviation[column] + scale.mean[column], threshold)


def _raw_laws(law: Floats, scale: Scale, code: ActionCode) -> Floats:
    """Return laws on [1, z, action] for z' and the reward as laws on [1, s, inputs] for s' and the reward."""
    dims = len(scale.mean)
    offset = law[:, :, 0]
    gain = law[:, :, 1 : 1 + dims] / scale.deviation
    action = law[:, :, 1 + dims :]
    offset = offset - weighted_sum(gain, scale.mean)
    if isinstance(code.space, Discrete):  # the offset is that of the first action
        action = np.concatenate([np.zeros_like(action[:, :, :1]), action], axis=2)
    else:  # a = (u - middle) / half, and its square
        linear = action[:, :, : code.numbers] / code.half
        square = action[:, :, code.numbers :] / (code.half * code.half)
        offset = offset - weighted_sum(linear, code.middle) + weighted_sum(square, code.middle * code.middle)
        action = np.concatenate([linear - 2.0 * code.middle * square, square], axis=2)
    raw = np.concatenate([offset[:, :, np.newaxis], gain, action], axis=2)
    raw[:, :dims] *= scale.deviation[:, np.newaxis]
    raw[:, :dims, 0] += scale.mean
    return raw


def _raw_score(score: Floats, scale: Scale) -> Floats:
    """Return the weights of 1, z and z z' as those of 1, s and s s'."""
    if not len(score):
        return score
    mean = scale.mean
    deviation = scale.deviation
    dims = len(mean)
    first, second = np.triu_indices(dims)
    linear = score[1 : 1 + dims] / deviation
    square = score[1 + dims :] / (deviation[first] * deviation[second])
    offset = score[0] - weighted_sum(linear, mean) + weighted_sum(square, mean[first] * mean[second])
    np.subtract.at(linear, first, square * mean[second])
    np.subtract.at(linear, second, square * mean[first])
    return np.concatenate([[offset], linear, square])
