"""The leaves of a tree as rows: each form says what the tree does."""

import csv
import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from hypothesis import given, settings

import spaql
from oblique_trees import oblique_trees
from oblique_trees import points as observations
from spaql.controllers import Controller, Laws, dot, table, table_csv, table_latex, table_markdown
from spaql.tables import latex, markdown
from uncompiled import examples

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


def from_csv(tree: Controller, text: str, batch: np.ndarray) -> np.ndarray:
    """Control by nothing but the text of a table."""
    rows = list(csv.DictReader(io.StringIO(text)))
    ends = np.array(
        [
            [[float(row[f"{name} {end}"]) for name in tree.observations] for end in ("low", "high")]
            for row in rows
        ]
    )
    inside = ((ends[:, 0] <= batch[:, None]) & (batch[:, None] < ends[:, 1])).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    given = []
    for x, i in zip(batch, inside.argmax(axis=1), strict=True):
        row = rows[i]
        if isinstance(tree.action_space, Discrete):
            given.append(int(row["action"]))
            assert row["name"] == tree.actions[int(row["action"]) - int(tree.action_space.start)]
        elif not tree.laws.constant.all():
            u = float(row["u [N] offset"])
            for name, value in zip(tree.observations, x, strict=True):
                u += float(row[f"u [N] gain of {name}"]) * value
            given.append([min(max(u, float(row["u [N] least"])), float(row["u [N] most"]))])
        else:
            given.append([float(row[name]) for name in tree.actions])
    return np.array(given)


def test_csv_is_the_controller(tree: Controller) -> None:
    batch = points(tree)
    assert (from_csv(tree, table_csv(tree), batch) == tree.act(batch)).all()


def test_csv_of_laws_is_the_controller() -> None:
    batch = points(laws())
    given = from_csv(laws(), table_csv(laws()), batch)
    assert (given.astype(np.float32) == laws().act(batch)).all()


def test_rows_are_the_printed_leaves(tree: Controller) -> None:
    rows = table_markdown(tree, digits=None).splitlines()
    assert len(rows) - 2 == len(table(tree)) == tree.n_leaves
    printed = [line.strip() for line in str(tree).splitlines() if not line.endswith(":")]
    assert [row.split(" | ")[-1].removesuffix(" |") for row in rows[2:]] == printed


def test_intervals_read_as_people_write_them() -> None:
    level = Controller(
        feature=np.array([0, -1, 0, -1, -1]),
        threshold=np.array([0.25, 0.0, 0.3125, 0.0, 0.0]),
        left=np.array([1, -1, 3, -1, -1]),
        right=np.array([2, -1, 4, -1, -1]),
        leaf=np.array([-1, 0, -1, 1, 0]),
        laws=[0, 1],
        observation_space=Box(-1.0, 1.0, (2,)),
        action_space=Discrete(2),
        observations=("level [m]", "inflow"),
        actions=("close", "open"),
    )
    assert table_markdown(level) == (
        "| level [m] | inflow | action |\n| --- | --- | --- |\n"
        "| < 0.25 |  | close |\n| 0.25 … 0.312 |  | open |\n| ≥ 0.312 |  | close |\n"
    )
    assert r"0.25 \ldots{} 0.312 &  & open \\" in table_latex(level)


def test_cells_are_escaped() -> None:
    assert r"a \| b" in markdown([{"x": "a | b"}])
    cells = latex([{"[x_1] 50 %": r"a & b \ {c} < 1"}])
    assert r"{[x\_1] 50 \%} \\" in cells
    assert r"a \& b \textbackslash{} \{c\} $<$ 1 \\" in cells


def test_a_tree_of_one_leaf() -> None:
    agent = spaql.SPAQL("cartpole200", seed=0)
    one = spaql.controller_of(agent)
    assert one.n_leaves == 1
    assert len(table_csv(one).splitlines()) == 2
    assert dot(one).count("label") == 1


def test_graphs_name_every_rule_once(tree: Controller) -> None:
    text = dot(tree, digits=None)
    rules = int((tree.feature >= 0).sum())
    assert len(re.findall(r"^  n\d+ \[label", text, re.MULTILINE)) == rules
    assert text.count(" -> ") == 2 * rules
    assert text.count("label=yes") == text.count("label=no") == rules
    for name, threshold in zip(tree.feature, tree.threshold, strict=True):
        assert (
            name < 0 or f"{tree.observations[name]} < {0.0 if abs(threshold) < 1e-300 else threshold}" in text
        )


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not installed")
def test_graphviz_draws_them(tree: Controller) -> None:
    for one in (tree, laws()):
        drawn = subprocess.run(["dot", "-Tsvg"], input=dot(one), capture_output=True, text=True, check=True)
        assert drawn.stderr == ""
        assert drawn.stdout.count('class="edge"') == 2 * int((one.feature >= 0).sum())


def from_sums(tree: Controller, text: str, batch: np.ndarray) -> np.ndarray:
    """Control by the text of a table of scores, where sums are columns like observations."""
    rows = list(csv.DictReader(io.StringIO(text)))
    names = table(tree).names()
    low, high = (
        np.array([[float(row[f"{name} {end}"]) for name in names] for row in rows]) for end in ("low", "high")
    )
    numbers = tree.numbers(batch)
    inside = ((low <= numbers[:, None]) & (numbers[:, None] < high)).all(axis=2)
    assert (inside.sum(axis=1) == 1).all()
    given = []
    for x, i in zip(batch.tolist(), inside.argmax(axis=1), strict=True):
        if tree.laws.constant[table(tree).leaf].all():
            given.append(int(rows[i]["action"]))
            continue
        scores = []
        for action in tree.actions:
            score = float(rows[i][f"{action} offset"])
            for name, value in zip(tree.observations, x, strict=True):
                score += float(rows[i][f"{action} gain of {name}"]) * value
            scores.append(score)
        given.append(int(tree.action_space.start) + int(np.argmax(scores)))
    return np.array(given)


@given(tree=oblique_trees(("switching",)))
@settings(max_examples=examples(60))
def test_csv_of_sums_and_scores_is_the_controller(tree: Controller) -> None:
    batch = observations(40)[:-3]
    assert np.array_equal(from_sums(tree, table_csv(tree), batch), tree.act(batch))


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
    lines = table_markdown(switching(), digits=2).splitlines()
    name = "level [m] - 0.33 * inflow"
    assert lines[0] == f"| level [m] | inflow | {name} | {name} (2) | action |"
    assert lines[3] == "|  |  | ≥ 0.25 | < 0.5 | open if level [m] - 0.5 * inflow > 0.12 else close |"
    assert len(lines) == 5


def test_graphs_write_sums_out() -> None:
    graph = dot(switching())
    assert 'n0 [label="level [m] - 0.333 * inflow < 0.25"];' in graph
    assert '[label="open if level [m] - 0.5 * inflow > 0.125 else close"' in graph
