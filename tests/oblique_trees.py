"""Trees drawn by Hypothesis whose rules compare sums of observations, with laws of any kind."""

import numpy as np
from gymnasium.spaces import Box, Discrete
from hypothesis import strategies as st

from spaql.controllers import Controller, Laws
from spaql.controllers.rules import Nodes

DIMS = 3
ROWS = 4
ACTIONS = 3
START = 5
KINDS = ("choices", "constants", "laws", "switching")
WEIGHTS = st.sampled_from([0.0, 1.0, -1.0, 0.5, 0.1, -3.7, 1 / 3])
NUMBERS = st.sampled_from([-1.0, 0.0, 0.1 + 0.2, 0.5, -0.7])


@st.composite
def oblique_trees(
    draw: st.DrawFn, kinds: tuple[str, ...] = KINDS, sums: int = 2, bound: float = 2.0
) -> Controller:
    """Draw a tree over three numbers and up to some sums of them; few numbers, so that cuts repeat."""
    weights = st.lists(WEIGHTS, min_size=DIMS, max_size=DIMS).filter(any)
    combinations = np.array(draw(st.lists(weights, max_size=sums))).reshape(-1, DIMS)
    nodes = Nodes()
    width = DIMS + len(combinations)

    def grow(depth: int) -> int:
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            return nodes.leaf(draw(st.integers(0, ROWS - 1)))
        j = draw(st.integers(0, width - 1))
        cut = draw(NUMBERS)
        return nodes.rule(j, cut, grow(depth - 1), grow(depth - 1))

    root = grow(4)
    laws, actions = _laws(draw, draw(st.sampled_from(kinds)))
    return Controller(
        **nodes.arrays(root),
        laws=laws,
        observation_space=Box(-bound, bound, (DIMS,), np.float64),
        action_space=actions,
        combinations=combinations,
    )


def _laws(draw: st.DrawFn, kind: str) -> tuple[Laws | np.ndarray, Box | Discrete]:
    def array(of: st.SearchStrategy[float], *shape: int) -> np.ndarray:
        size = int(np.prod(shape))
        return np.array(draw(st.lists(of, min_size=size, max_size=size))).reshape(shape)

    box = Box(-1.0, 1.0, (1,), np.float64)
    listed = Discrete(ACTIONS, start=START)
    if kind == "choices":
        return START + np.arange(ROWS) % ACTIONS, listed
    if kind == "constants":
        return array(NUMBERS, ROWS, 1), box
    if kind == "laws":
        return Laws(array(WEIGHTS, ROWS, 1, DIMS), array(NUMBERS, ROWS, 1)), box
    gain = array(WEIGHTS, ROWS, ACTIONS, DIMS)
    offset = array(NUMBERS, ROWS, ACTIONS)
    never = array(st.booleans(), ROWS, ACTIONS)
    never[:, draw(st.integers(0, ACTIONS - 1))] = False
    gain[never] = 0.0
    offset[never] = -np.inf
    alone = never.sum(axis=1) == ACTIONS - 1
    gain[alone] = 0.0
    return Laws(gain, offset), listed


def points(n: int = 300, seed: int = 0) -> np.ndarray:
    """Return observations: of a coarse grid, on which sums meet thresholds, and others."""
    rng = np.random.default_rng(seed)
    axis = [-9.0, -1.0, np.nextafter(0.0, -1.0), 0.0, 0.25, 0.1 + 0.2, np.nextafter(0.5, 0.0), 0.5, 1.0, 9.0]
    far = np.array([[np.inf, -np.inf, np.inf], [-np.inf, np.inf, -np.inf], [1e308, -1e308, 1e308]])
    return np.concatenate([rng.choice(axis, (n, DIMS)), rng.uniform(-2, 2, (n, DIMS)), far])
