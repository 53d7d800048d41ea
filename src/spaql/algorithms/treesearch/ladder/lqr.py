"""The linear regulator of a plant as the law of a controller with memory, for the search to begin with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from spaql.algorithms.rule_learners import ago, without_units
from spaql.algorithms.treesearch.ladder.block import Block
from spaql.algorithms.treesearch.ladder.structures import (
    ANGLE,
    ERROR,
    INTEGRAL,
    LAST,
    LONGEST,
    OTHERS,
    SETPOINTS,
    SQUARE,
    PlantSignals,
    Pole,
    Structure,
)
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.classical import LinearPlant, augmented, falling_rate, pole_of, riccati_gains
from spaql.controllers.controller import POSITION
from spaql.kernels.numerics import Floats
from spaql.kernels.treesearch.cma import new_distribution
from spaql.values import rounded

_DIGITS = 4
"""Significant digits of the gains: those of LAPACK differ in their last bits from version to version."""
_LARGEST = 12.0
"""Logarithms of weights are within this."""


def lqr_structure(signals: PlantSignals, plant: LinearPlant) -> Structure:
    """Return the structure of a regulator with integral action, about the rest of the present set-points."""
    kinds = [ERROR, INTEGRAL, SETPOINTS]
    kinds += [OTHERS] * bool(signals.others) + [LAST] * bool(plant.delay)
    return Structure(POSITION, ()).with_kinds(kinds)


def lqr_racer(block: Block, plant: LinearPlant) -> Racer:
    """Return a racer that searches the weights of the regulator: of its numbers, actions and integrals."""
    n = len(plant.a) + plant.b.shape[1] + len(plant.outputs)

    def laws(vectors: Floats) -> Floats:
        weights = np.exp(np.clip(vectors, -_LARGEST, _LARGEST))
        return np.array([lqr_law(block, plant, row).vector for row in weights])

    return Racer(block.one_law(), new_distribution(np.zeros(n), np.ones(n), 1.0), laws=laws)


def regulator_gains(block: Block, plant: LinearPlant, weights: Floats) -> Floats:
    """Return the gains for weights of numbers, actions and integrals, each of its usual size."""
    signals = block.signals
    n, m = plant.b.shape
    k = len(plant.outputs)
    slow = signals.problem.horizon * signals.sample_time / 10
    line = np.full(plant.delay * m, np.inf)
    sizes = np.concatenate([plant.scale, line, plant.scale[list(plant.outputs)] * slow])
    of = np.concatenate([weights[:n], np.ones(len(line)), weights[n + m :]])
    a, b = augmented(plant, k, signals.sample_time)
    return riccati_gains(
        a, b, np.diag(of / sizes**2 + 1e-9), np.diag(weights[n : n + m] / block.units.action_scale**2)
    )


def lqr_law(block: Block, plant: LinearPlant, weights: Floats) -> CandidateTree:
    """Return the regulator of some weights as a law over features."""
    signals = block.signals
    k = regulator_gains(block, plant, weights)
    names = without_units(signals.observations)
    actions = without_units(signals.actions)
    n = len(plant.a)
    line = plant.delay * len(actions)
    raw: dict[str, Floats] = {}
    of_rest = plant.rest_slope[:n], plant.rest_slope[n:]
    moved = of_rest[1] + k[:, :n] @ of_rest[0]  # what the law adds for a set-point, besides its error
    constant = plant.rest_action + k[:, :n] @ plant.rest
    for j in range(plant.delay):
        part = k[:, n + j * len(actions) : n + (j + 1) * len(actions)]
        moved = moved + part @ of_rest[1]
        constant = constant + part @ plant.rest_action
        if j < LONGEST:
            for i, action in enumerate(actions):
                raw[f"{action} {ago(j + 1)}"] = -part[:, i]
    for j, at in enumerate(plant.numbers):
        raw[names[at[0]]] = -k[:, j]
    for i, (output, setpoint, of) in enumerate(signals.pairs):
        place = next(j for j in plant.outputs if names[plant.numbers[j][0]] == output)
        raw[f"error{of}"] = k[:, place]
        raw[f"integral{of}"] = -k[:, n + line + plant.outputs.index(place)]
        raw[setpoint] = moved[:, i] - k[:, place]
    constant = constant - moved @ plant.rest_goals
    return _with_gains(block, raw, constant)


def swing_up_racer(block: Block, pole: Pole) -> Racer:
    """Return a racer that searches a swing-up by few numbers.

    They are the weights of the regulator at the top, the strength of energy pumping and the rate that its
    energy is computed with, gains of the other numbers while it pumps, and the cosine and speed at which the
    regulator begins.
    """
    n = sum(pole.plant.b.shape)
    names = [feature.name for feature in block.features]
    others = [1 + names.index(name) for name in pole.others]
    square, cosine = (names.index(name) for name in (SQUARE, pole.cosine))
    rate = falling_rate(block.signals.problem, pole.plant)
    curvature = 0.1 / rate**2 * block.units.scale[square] / block.units.scale[cosine]

    def tree(vector: Floats) -> CandidateTree:
        weights = np.exp(np.clip(vector[:n], -_LARGEST, _LARGEST))
        strength, faster, nearer, curve = vector[n : n + 4].tolist()
        top = float(np.clip(0.8 + 0.1 * nearer, -0.9, 0.99))
        swing_up = block.with_cut(pole_law(block, pole.plant, weights), top)
        numbers = swing_up.numbers.copy()
        below = int(swing_up.left[0])
        numbers[0, :, 1 + square] = curvature * curve
        numbers[below] = np.exp(strength) * pumping_law(block, pole, rate * np.exp(0.2 * faster)).numbers[0]
        numbers[below][:, others] += 0.3 * vector[n + 4 :]
        return replace(swing_up, numbers=numbers)

    size = n + 4 + len(others)
    return Racer(
        tree(np.zeros(size)),
        new_distribution(np.zeros(size), np.ones(size), 1.0),
        laws=lambda vectors: np.array([tree(vector).vector for vector in vectors]),
    )


def pole_law(block: Block, plant: LinearPlant, weights: Floats) -> CandidateTree:
    """Return the regulator of a pole at the top as a law over features."""
    k = regulator_gains(block, plant, weights)
    names = without_units(block.signals.observations)
    raw = {ANGLE if len(at) > 1 else names[at[0]]: -k[:, j] for j, at in enumerate(plant.numbers)}
    return _with_gains(block, raw, np.zeros(len(k)))


def pumping_law(block: Block, pole: Pole, rate: float) -> CandidateTree:
    """Return energy pumping (see `SwingUpPolicy`) as a law over products of the pole's speed and cosine.

    The action that brings a pole up faster is of the sign by which it turns a pole at the top.
    """
    half = block.units.action_scale
    strength = np.sign(pole.plant.b[pole_of(pole.plant)[1]]) * half / rate
    swing = f"{pole.speed} * {pole.cosine}"
    raw = {
        swing: strength,
        f"{swing} * {pole.cosine}": -strength,
        f"{swing} * {SQUARE}": -strength / (2 * rate**2),
    }
    return _with_gains(block, raw, np.zeros(len(half)))


def _with_gains(block: Block, raw: dict[str, Floats], constant: Floats) -> CandidateTree:
    """Return a law with gains by the names of features, and a constant, in raw units."""
    tree = block.one_law()
    units = block.units
    half = units.action_scale
    numbers = tree.numbers.copy()
    constant = constant - units.action_centre
    for j, feature in enumerate(block.features):
        gains = raw.get(feature.name, np.zeros(len(half)))
        constant = constant + gains * units.centre[j]
        numbers[0, :, 1 + j] = rounded(gains * units.scale[j] / half, _DIGITS)
    numbers[0, :, 0] = rounded(constant / half, _DIGITS)
    return replace(tree, numbers=numbers)
