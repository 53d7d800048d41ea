"""Controllers drawn at random: thresholds that repeat or lie side by side, bounds that may be infinite.

Weights and gains of sums and scores are partly small binary fractions, so that ties do occur.
"""

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.controllers import Controller, Laws

ROWS = 6


def random_tree(
    rng: np.random.Generator,
    dims: int,
    leaves: int,
    kind: str = "choices",
    fresh: float = 0.6,
    sums: int = 0,
) -> Controller:
    """Split random leaves until there are enough; kinds are choices, constants, laws and switching laws.

    Some thresholds are fresh ones, others come from a small pool, wherever they fall. With sums, half of the
    cuts are oblique.
    """
    scale = 10.0 ** rng.integers(-3, 4, dims)
    pool = np.sort(rng.normal(size=(dims, 12)) * scale[:, None], axis=1)
    pool[:, 1] = np.nextafter(pool[:, 0], np.inf)
    pool[:, 2:5] = pool[:, 2:5].astype(np.float32)
    pool[:, 5] = np.round(pool[:, 5], 2)
    pool[:, 6] = rng.choice([0.0, -0.0, 5e-324, np.inf, -np.inf], dims)
    combinations = _fractions(rng, (sums, dims)) if sums else np.empty((0, dims))
    combinations[~combinations.any(axis=1), 0] = 0.5
    feature = [-1]
    threshold = [0.0]
    left = [-1]
    right = [-1]
    boxes = [(0, np.full(dims, -4 * scale.max()), np.full(dims, 4 * scale.max()))]
    while len(boxes) < leaves:
        place = int(rng.integers(len(boxes)))
        node, low, high = boxes[place]
        below = high.copy()
        above = low.copy()
        if sums and rng.random() < 0.5:
            j = dims + int(rng.integers(sums))
            t = float(combinations[j - dims] @ rng.uniform(low, high))
            t = (
                t
                if rng.random() < fresh
                else float(rng.choice([round(t, 1), np.float32(t), 0.0, np.inf, -np.inf]))
            )
        else:
            j = int(rng.integers(dims))
            t = float(rng.uniform(low[j], high[j]) if rng.random() < fresh else rng.choice(pool[j]))
            below[j] = above[j] = np.clip(t, low[j], high[j]) + 0.0
        feature[node], threshold[node], left[node], right[node] = j, t, len(feature), len(feature) + 1
        boxes[place] = (left[node], low, below)
        boxes.append((right[node], above, high))
        for column, value in ((feature, -1), (threshold, 0.0), (left, -1), (right, -1)):
            column += [value, value]
    leaf = np.where(np.array(feature) < 0, rng.integers(ROWS, size=len(feature)), -1)
    bound = np.where(rng.random(dims) < 0.5, np.inf, 2 * scale)
    laws, actions = _laws(rng, dims, kind)
    return Controller(
        feature=np.array(feature),
        threshold=np.array(threshold),
        left=np.array(left),
        right=np.array(right),
        leaf=leaf,
        laws=laws,
        observation_space=Box(-bound, bound, dtype=np.float64),
        action_space=actions,
        combinations=combinations,
    )


def _fractions(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Draw numbers, a part of which are 0 or small binary fractions."""
    simple = rng.choice([-2.0, -1.0, -0.5, 0.0, 0.0, 0.25, 0.5, 1.0], shape)
    return np.where(rng.random((shape[0], *[1] * (len(shape) - 1))) < 0.5, simple, rng.normal(size=shape))


def _laws(rng: np.random.Generator, dims: int, kind: str) -> tuple:
    if kind == "choices":
        return np.arange(ROWS) + 3, Discrete(ROWS, start=3)
    if kind == "switching laws":
        return _scores(rng, dims), Discrete(ROWS, start=3)
    actions = Box(-3.0, 3.0, (2,), np.float64)
    if kind == "constants":
        return rng.uniform(-3, 3, (ROWS, 2)), actions
    gain = rng.normal(size=(ROWS, 2, dims)) * (rng.random((ROWS, 2, dims)) < 0.7)
    return Laws(gain, rng.normal(size=(ROWS, 2))), actions


def _scores(rng: np.random.Generator, dims: int) -> Laws:
    """Draw laws of which some have equal scores, some never take some actions, and one takes only one."""
    gain = _fractions(rng, (ROWS, ROWS, dims))
    offset = _fractions(rng, (ROWS, ROWS))
    gain[1, 2] = gain[1, 4]
    offset[1, 2] = offset[1, 4]
    never = rng.random((ROWS, ROWS)) < 0.4
    never[:, 5] &= ~never[:, :5].all(axis=1)
    never[0] = np.arange(ROWS) != 3
    gain[never] = 0.0
    offset[never] = -np.inf
    gain[0] = 0.0
    return Laws(gain, offset)
