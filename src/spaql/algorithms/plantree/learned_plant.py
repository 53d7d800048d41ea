"""The learned plant in raw units, fitted to all samples."""

from __future__ import annotations

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.algorithms.mirrors.mirror import Mirror
from spaql.algorithms.plantree.dynamics import CAUTIOUS, fit_plant
from spaql.algorithms.replay.encoding import ActionCode, Scale
from spaql.algorithms.replay.exact_sums import weighted_sum
from spaql.algorithms.replay.memory import Floats, Memory
from spaql.errors import SettingError
from spaql.kernels.plantree.pwa_model import Ints, Plant, find_all
from spaql.kernels.plantree.raw_model import RawPlant
from spaql.learned_plants import PlantModel
from spaql.problems import Problem
from spaql.simulate import Episode

_HELD_OUT = 5
"""Every fifth episode is held out."""


def fit_model(memory: Memory, code: ActionCode, problem: Problem, mirror: Mirror | None = None) -> PlantModel:
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
    order = as_printed(plant)
    return PlantModel(
        name=problem.name,
        plant=raw_plant(plant, scale, code, order, memory.states),
        observation_space=problem.states.space,
        action_space=code.space,
        horizon=problem.horizon,
        samples=np.bincount(nodes, minlength=len(plant.feature))[order],
        starts=starts,
        seen=np.stack([both.min(axis=0), both.max(axis=0)]),
        steps=steps,
        observations=problem.states.names,
        actions=problem.actions.names,
    )


def hold_out(
    memory: Memory, code: ActionCode, problem: Problem, mirror: Mirror | None = None
) -> tuple[PlantModel, list[Episode]]:
    """Return a plant fitted to four fifths of the episodes, and the other episodes."""
    episodes = np.arange(len(memory.begins))
    kept = episodes % _HELD_OUT == _HELD_OUT - 1
    if not kept.any():
        raise SettingError(
            f"Fewer than {_HELD_OUT} episodes were played, too few to hold some out: train longer."
        )
    return fit_model(memory.only(~kept), code, problem, mirror), episodes_of(memory.only(kept), code)


def episodes_of(memory: Memory, code: ActionCode) -> list[Episode]:
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


def as_printed(plant: Plant) -> Ints:
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


def raw_plant(plant: Plant, scale: Scale, code: ActionCode, order: Ints, states: Floats) -> RawPlant:
    """Return a plant of one member, fitted to states, in raw units, with its cells in an order.

    The standardisation is absorbed in its parameters.
    """
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


def _raw_cuts(plant: Plant, scale: Scale, states: Floats) -> Floats:
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
