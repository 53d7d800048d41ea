"""The leaves of a tree as rows: each form says what the tree does."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings

import spaql
from nightly import thorough
from oblique_trees import oblique_trees
from oblique_trees import points as observations
from spaql.controllers import Controller, Laws, table
from spaql.controllers.text import leaf_text
from spaql.tables import latex, markdown

AGENTS = {
    "cartpole200": lambda: spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1),
    "pendulum5": lambda: spaql.SPAQL("pendulum5", rollouts=5, seed=1),
}


@pytest.fixture(scope="module", params=AGENTS)
def tree(request: pytest.FixtureRequest) -> Controller:
    return spaql.controller_of(AGENTS[request.param]().learn(iterations=100, progress_bar=False), effort=1000)


def laws() -> Controller:
    """A tree of laws, whose names hold what the forms must escape."""
    return Controller(
        feature=np.array([0, 1, -1, -1, -1]),
        threshold=np.array([0.1 + 0.2, -1 / 3, 0.0, 0.0, 0.0]),
        left=np.array([1, 2, -1, -1, -1]),
        right=np.array([4, 3, -1, -1, -1]),
        leaf=np.array([-1, -1, 0, 1, 0]),
        laws=Laws([[[1 / 3, 0.0]], [[0.0, -2.0]]], [[0.0], [0.1]]),
        observation_space=Box(-1.0, 1.0, (2,)),
        action_space=Box(-2.0, 1.0, (1,)),
        observations=('a "quoted" | x_1 [50 %]', "[b & c], \\d"),
        actions=("u [N]",),
    )


def points(tree: Controller) -> np.ndarray:
    """Random observations, and those on every threshold and next to it."""
    rng = np.random.default_rng(0)
    rows = table(tree)
    found = []
    for j in range(tree.dims):
        edges = np.unique(np.concatenate([rows.low[:, j], rows.high[:, j], [0.0]]))
        edges = edges[np.isfinite(edges)]
        found.append(rng.choice(np.concatenate([edges, np.nextafter(edges, -9e9), edges + 0.01]), 3000))
    return np.concatenate([np.stack(found, axis=1), rng.normal(size=(3000, tree.dims))])


def decided(tree: Controller, batch: np.ndarray) -> np.ndarray:
    """The laws that the rows of a table lead to."""
    rows = table(tree)
    numbers = tree.numbers(batch)
    inside = ((rows.low <= numbers[:, None]) & (numbers[:, None] < rows.high)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    return rows.leaf[inside.argmax(axis=1)]


def test_rows_are_the_controller(tree: Controller) -> None:
    for controller in (tree, laws()):
        batch = points(controller)
        assert np.array_equal(decided(controller, batch), controller.find(batch))


def test_rows_are_the_printed_leaves(tree: Controller) -> None:
    rows = table(tree)
    assert len(rows) == tree.n_leaves
    printed = [line.strip() for line in str(tree).splitlines() if not line.endswith(":")]
    assert [leaf_text(tree, row) for row in rows.leaf.tolist()] == printed


def test_cells_are_escaped() -> None:
    assert r"a \| b" in markdown([{"x": "a | b"}])
    cells = latex([{"[x_1] 50 %": r"a & b \ {c} < 1"}])
    assert r"{[x\_1] 50 \%} \\" in cells
    assert r"a \& b \textbackslash{} \{c\} $<$ 1 \\" in cells


def test_a_tree_of_one_leaf() -> None:
    agent = spaql.SPAQL("cartpole200", seed=0)
    one = spaql.controller_of(agent)
    assert one.n_leaves == 1
    assert len(table(one)) == 1


@given(tree=oblique_trees(("switching",)))
@settings(max_examples=thorough(60))
def test_rows_of_sums_are_the_controller(tree: Controller) -> None:
    batch = observations(40)[:-3]
    assert np.array_equal(decided(tree, batch), tree.find(batch))


def switching() -> Controller:
    """Two sums, which read the same if rounded."""
    return Controller(
        feature=[2, -1, 3, -1, -1],
        threshold=[0.25, 0, 0.5, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 0],
        laws=Laws(
            [[[0.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, -0.5]]],
            [[0.0, -np.inf], [0.125, 0.0]],
        ),
        observation_space=Box(-1.0, 1.0, (2,)),
        action_space=Discrete(2),
        observations=("level [m]", "inflow"),
        actions=("close", "open"),
        combinations=[[1.0, -1 / 3], [1.0, -0.3333]],
    )


def test_sums_that_read_the_same_are_columns_of_their_own() -> None:
    rows = table(switching())
    name = "level [m] - 0.33 * inflow"
    assert rows.names(2) == ["level [m]", "inflow", name, f"{name} (2)"]
    assert rows.low[:, 2:].tolist() == [[-np.inf, -np.inf], [0.25, -np.inf], [0.25, 0.5]]
    assert rows.high[:, 2:].tolist() == [[0.25, np.inf], [np.inf, 0.5], [np.inf, np.inf]]
