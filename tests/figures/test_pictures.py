"""Pictures of policies: their records say what the policy does, and all of it can be seen."""

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import spaql
from spaql import SettingError
from spaql.controllers import Controller, Laws
from spaql.evaluation import size_curve
from spaql.figures import (
    MapRecord,
    TreeRecord,
    compute_map,
    compute_tree,
    draw,
    save_as,
    svg,
)
from spaql.figures.drawing import read, write
from spaql.figures.scene import find_axis
from spaql.figures.style import choice_colours, number_ticks

pytest.importorskip("matplotlib")

N = 12


@pytest.fixture(scope="module")
def cart() -> spaql.Agent:
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    return agent.learn(iterations=100, progress_bar=False)


@pytest.fixture(scope="module")
def pendulum() -> spaql.Agent:
    return spaql.SPAQL("pendulum5", rollouts=5, seed=1).learn(iterations=100, progress_bar=False)


def places(record: MapRecord) -> list[tuple[int, int, float, float]]:
    """Row, column, and the middle of every place of a map."""
    n = len(record.values)
    return [
        (
            row,
            column,
            record.x.low + (column + 0.5) * (record.x.high - record.x.low) / n,
            record.y.low + (row + 0.5) * (record.y.high - record.y.low) / n,
        )
        for row in range(n)
        for column in range(n)
    ]


def test_a_map_shows_what_the_policy_predicts(cart: spaql.Agent) -> None:
    record = compute_map(cart, 2, "cart speed", at={"cart position": 0.3, 3: -0.2}, resolution=N)
    assert (record.x.label, record.y.label) == ("pole angle [rad]", "cart speed [m/s]")
    for row, column, x, y in places(record):
        action, _ = cart.predict([0.3, y, x, -0.2], deterministic=True)
        assert record.values[row][column] == action
    assert record.choices == ("push left", "push right")
    assert not record.share
    assert record.note == "With cart position 0.3 m; pole speed −0.2 rad/s."


def test_the_map_of_a_tree_is_that_of_its_policy(pendulum: spaql.Agent) -> None:
    record = compute_map(pendulum, "angle", "speed", y_limits=(-8, 8), resolution=N)
    tree = compute_map(spaql.controller_of(pendulum), "angle", "speed", y_limits=(-8, 8), resolution=N)
    assert tree.values == record.values
    for row, column, x, y in places(record):
        action, _ = pendulum.predict([math.cos(x), math.sin(x), y], deterministic=True)
        assert record.values[row][column] == action[0]
    assert (record.x.low, record.x.high, record.x.turns) == (-math.pi, math.pi, True)
    assert (record.label, record.low, record.high) == ("torque [Nm]", -2.0, 2.0)


def test_what_is_not_fixed_is_averaged_over_visited_states(cart: spaql.Agent) -> None:
    record = compute_map(cart, 0, 2, episodes=3, seed=5, resolution=6)
    env = cart.problem.make()
    seen = []
    for seed in (5, 6, 7):
        observation, _ = env.reset(seed=seed)
        ended = False
        seen.append(observation)
        while not ended:
            action, _ = cart.predict(observation, deterministic=True)
            observation, _, terminated, truncated, _ = env.step(action)
            seen.append(observation)
            ended = terminated or truncated
    env.close()
    visited = np.array(seen, np.float64)
    states = visited[np.unique(np.linspace(0, len(visited) - 1, 64).astype(int))]
    assert record.x.low == pytest.approx(1.1 * visited[:, 0].min() - 0.1 * visited[:, 0].max())
    for row, column, x, y in places(record):
        rows = states.copy()
        rows[:, 0] = x
        rows[:, 2] = y
        actions, _ = cart.predict(rows, deterministic=True)
        counts = np.bincount(actions, minlength=2)
        assert record.share[row][column] == counts.max() / len(states)
        assert record.values[row][column] == counts.argmax()


def test_the_value_is_the_highest_q(pendulum: spaql.Agent) -> None:
    record = compute_map(pendulum, "angle", "speed", shows="value", resolution=N)
    policy = pendulum.policy
    assert isinstance(policy, spaql.PartitionPolicy)
    balls = policy.partition.balls
    for row, column, x, y in places(record):
        state = policy.states.standardise([math.cos(x), math.sin(x), y])
        found = policy.partition.relevant(state).ball
        assert record.values[row][column] == balls.q[found].max()


def test_balls_tile_the_plane_for_each_action(cart: spaql.Agent) -> None:
    at = {1: 0.1, 3: -0.1}
    record = compute_map(
        cart, 0, 2, at=at, x_limits=(-4.8, 4.8), y_limits=(-0.4, 0.4), shows="balls", resolution=N
    )
    policy = cart.policy
    assert isinstance(policy, spaql.PartitionPolicy)
    seen = set()
    for _, _, x, y in places(record):
        standard = policy.states.standardise([x, 0.1, y, -0.1])
        holding = {
            (b.width, b.height)
            for b in record.balls
            if b.x <= x < b.x + b.width and b.y <= y < b.y + b.height
        }
        assert len(holding) == len(set(policy.partition.relevant(standard).depth.tolist()))
        seen |= holding
    assert len(seen) > 2
    assert all(b.x >= -4.8 and b.x + b.width <= 4.8 + 1e-9 for b in record.balls)


def test_trails_are_episodes(pendulum: spaql.Agent) -> None:
    record = compute_map(pendulum, "angle", "speed", episodes=2, seed=3, resolution=N, shows="phase")
    assert len(record.trails) == 2
    for seed, trail in zip((3, 4), record.trails, strict=True):
        env = pendulum.problem.make()
        observation, _ = env.reset(seed=seed)
        total = 0.0
        seen = [observation]
        ended = False
        while not ended:
            action, _ = pendulum.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total += float(reward)
            seen.append(observation)
            ended = terminated or truncated
        env.close()
        x = [place for piece in trail.pieces for place in piece.x]
        y = [place for piece in trail.pieces for place in piece.y]
        np.testing.assert_allclose(x, [math.atan2(s, c) for c, s, _ in seen])
        np.testing.assert_allclose(y, [speed for *_, speed in seen])
        assert trail.total == total
        assert all(abs(np.diff(piece.x)).max(initial=0) < math.pi for piece in trail.pieces)


def test_an_axis_shows_all_of_a_range_that_is_mostly_visited() -> None:
    space = Box(np.array([0.0, -9.0]), np.array([1.0, 9.0]), dtype=np.float64)
    names = ("level", "speed")
    visited = np.array([[0.2, -1.0], [0.9, 1.0]])
    level, speed = (find_axis(name, names, space, visited) for name in names)
    assert (level.low, level.high) == (0.0, 1.0)
    assert (speed.low, speed.high) == (pytest.approx(-1.2), pytest.approx(1.2))


@pytest.mark.parametrize(
    ("ticks", "shown"),
    [
        ([194.0, 194.5, 195.0], ["194.0", "194.5", "195.0"]),
        ([194.25, 194.5], ["194.25", "194.50"]),
        ([-2000.0, -1000.0, 0.0], ["−2,000", "−1,000", "0"]),
    ],
)
def test_ticks_are_told_apart(ticks: list[float], shown: list[str]) -> None:
    assert number_ticks().format_ticks(ticks) == shown


def test_a_map_of_values_says_where_they_are_none(pendulum: spaql.Agent) -> None:
    cart = spaql.SPAQL("cartpole200", rollouts=5, seed=1).learn(iterations=20, progress_bar=False)
    record = compute_map(cart, "pole angle", "pole speed", shows="value", resolution=N)
    assert record.title == "CartPole, 200 steps: reward of one step and bonus, not values"
    assert "V = min(H, max Q) is 200 in every state" in record.note
    assert record.low >= 200
    elsewhere = compute_map(pendulum, "angle", "speed", shows="value", resolution=N)
    assert elsewhere.title == "Pendulum, 5 torques: the highest Q"
    assert not elsewhere.note


def test_time_variant_policies_are_shown_at_a_step() -> None:
    agent = spaql.AQL("cartpole200", scaling=1, rollouts=2, seed=0).learn(iterations=60, progress_bar=False)
    with pytest.raises(SettingError, match="depends on the time step"):
        compute_map(agent, 0, 2)
    at = {1: 0.0, 3: 0.0}
    record = compute_map(agent, 0, 2, at=at, step=3, resolution=N)
    rows = np.array([[x, 0.0, y, 0.0] for _, _, x, y in places(record)])
    wanted = agent.policy.act(rows, np.full(len(rows), 3), None)
    assert np.ravel(record.values).tolist() == wanted.tolist()


def chain(leaves: int) -> Controller:
    """A tree whose questions stand one behind the other, with long names: the hardest to lay out."""
    n = leaves - 1
    return Controller(
        feature=np.array([*([0] * n), -1, -1]),
        threshold=np.array([*(-(np.arange(n) + 1.0) / 7), 0.0, 0.0]),
        left=np.array([*range(1, n), n, -1, -1]),
        right=np.array([*([n + 1] * n), -1, -1]),
        leaf=np.array([*([-1] * n), 0, 1]),
        laws=[0, 1],
        observation_space=Box(-1.0, 1.0, (1,)),
        action_space=Discrete(2),
        observations=("level of the x-th upper reservoir [m]",),
        actions=("close", "open the valve as far as it goes"),
    )


def check_layout(record: TreeRecord) -> None:
    """Every text within its page, apart from every other text and every other box."""
    figure = draw(record)
    figure.draw_without_rendering()
    (ax,) = figure.axes
    page = figure.bbox.expanded(1.001, 1.001)
    texts = [text.get_window_extent() for text in ax.texts]
    assert all(page.contains(*box.min) and page.contains(*box.max) for box in texts)
    assert not any(a.overlaps(b) for i, a in enumerate(texts) for b in texts[:i])
    boxes = [patch.get_window_extent() for patch in ax.patches]
    assert len(boxes) == len(record.nodes)
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    for box in boxes:
        assert sum(box.overlaps(text) for text in texts) == 1


def test_a_drawn_tree_reads_as_it_decides(cart: spaql.Agent) -> None:
    tree = spaql.controller_of(cart)
    assert 16 < tree.n_leaves <= 64
    record = compute_tree(tree, digits=17)
    nodes = record.nodes
    assert [n.text for n in nodes if n.colour] == [
        line.strip() for line in str(tree).splitlines() if not line.endswith(":")
    ]
    assert len({n.colour for n in nodes}) == 3  # questions, and two actions
    for x in np.random.default_rng(0).normal(0, [1, 50, 0.2, 5], (500, 4)):
        at = 0
        while not nodes[at].colour:
            name, bound = nodes[at].text.replace("−", "-").split("\n< ")
            (column,) = [i for i, full in enumerate(tree.observations) if full.startswith(name + " [")]
            answer = "yes" if x[column] < float(bound.split()[0]) else "no"
            (at,) = [i for i, node in enumerate(nodes) if (node.parent, node.answer) == (at, answer)]
        assert nodes[at].text == tree.actions[int(tree.predict(x)[0])]
    check_layout(record)


@pytest.mark.parametrize("leaves", [1, 2, pytest.param(64, marks=pytest.mark.long)])
def test_trees_of_any_shape_are_laid_out(leaves: int) -> None:
    if leaves == 1:
        check_layout(compute_tree(spaql.controller_of(spaql.SPAQL("cartpole200", seed=0))))
        return
    record = compute_tree(chain(leaves))
    assert "x-th" in record.nodes[0].text
    check_layout(record)


def test_constants_and_large_trees(pendulum: spaql.Agent) -> None:
    curve = size_curve(pendulum, episodes=5, rounds=1)
    check_layout(compute_tree([one.tree for one in curve if one.tree.n_leaves <= 64][-1]))
    with pytest.raises(SettingError, match="65 leaves, and a drawing takes 64"):
        compute_tree(chain(65))


def switching() -> Controller:
    """A rule on a sum, an action, and switching laws of three actions and of two."""
    never = -np.inf
    gain = np.array([[[0, 0], [0, 0], [0, 0]], [[1, 0], [0, 0], [-1, 0.5]], [[0, 0], [0, 0], [2, 0.1]]])
    return Controller(
        feature=[2, -1, 0, -1, -1],
        threshold=[-0.5, 0, 0.25, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 2],
        laws=Laws(gain, np.array([[never, 0, never], [0, 0.3, 0.25], [0.4, never, 0]])),
        observation_space=Box(-1.0, 1.0, (2,)),
        action_space=Discrete(3),
        observations=("position [m]", "speed [m/s]"),
        actions=("left", "none", "right"),
        combinations=[[1.0, -0.5]],
    )


def test_sums_and_switching_laws_are_drawn() -> None:
    record = compute_tree(switching())
    assert [node.text for node in record.nodes] == [
        "position - 0.5 * speed\n< −0.5",
        "none",
        "position\n< 0.25 m",
        "highest of left: position, none: 0.3,\nright: 0.25 - position + 0.5 * speed",
        "right if 2 * position + 0.1 * speed > 0.4\nelse left",
    ]
    # An action has its colour, and laws are grey.
    assert record.nodes[1].colour == tuple(choice_colours(3)[1].tolist())
    assert record.nodes[3].colour == record.nodes[4].colour == (0.9, 0.9, 0.9)
    check_layout(record)


def test_records_are_data_and_pictures_are_text(cart: spaql.Agent, tmp_path: Path) -> None:
    for record in (
        compute_tree(chain(6)),
        compute_map(cart, "pole angle", "pole speed", resolution=N),
        compute_map(cart, 0, 2, resolution=N, shows="balls"),
        compute_map(cart, 2, 3, resolution=N, shows="phase"),
    ):
        write(record, tmp_path / "record.json")
        again = read(tmp_path / "record.json")
        assert again == record
        text = svg(again)
        assert ET.fromstring(text).tag.endswith("svg")
        assert text == svg(record)
    for suffix, start in (("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")):
        save_as(compute_tree(chain(6)), tmp_path / f"tree.{suffix}")
        assert (tmp_path / f"tree.{suffix}").read_bytes().startswith(start)


def test_legends_and_labels_hide_nothing(cart: spaql.Agent, pendulum: spaql.Agent) -> None:
    for record in (
        compute_map(cart, "pole angle", "pole speed", resolution=N),
        compute_map(pendulum, "angle", "speed", episodes=1, resolution=N, shows="phase"),
        compute_map(cart, "pole angle", "pole speed", shows="value", resolution=N),
    ):
        figure = draw(record)
        figure.draw_without_rendering()
        ax, *bars = figure.axes
        assert ax.get_xlabel() == record.x.label
        for other in (*bars, *figure.legends):
            assert not other.get_window_extent().overlaps(ax.get_window_extent())
        assert bars or [text.get_text() for text in figure.legends[0].get_texts()] == list(record.choices)


def test_what_cannot_be_shown_is_said(cart: spaql.Agent, pendulum: spaql.Agent, tmp_path: Path) -> None:
    tree = spaql.controller_of(cart)
    with pytest.raises(SettingError, match=r"no observation 'pole'.*3 pole speed"):
        compute_map(cart, "pole", 1)
    with pytest.raises(SettingError, match=r"no observation 'angel': did you mean angle\?"):
        compute_map(pendulum, "angel", "speed")
    with pytest.raises(SettingError, match=r"pole speed \[rad/s\] is on an axis and cannot be fixed"):
        compute_map(cart, 2, 3, at={"pole speed": 0.0})
    with pytest.raises(SettingError, match="two different"):
        compute_map(cart, 1, "cart speed")
    with pytest.raises(SettingError, match="no bounds: give its limits"):
        compute_map(tree, 0, 1)
    with pytest.raises(SettingError, match="neither on an axis nor fixed"):
        compute_map(tree, 0, 2)
    with pytest.raises(SettingError, match="lower one first"):
        compute_map(cart, 0, 2, x_limits=(1, -1))
    with pytest.raises(SettingError, match="Only the policy of a partition"):
        compute_map(tree, 0, 2, "cartpole200", shows="value")
    with pytest.raises(SettingError, match="not an angle"):
        compute_map(pendulum, "angle", "speed", shows="balls")
    with pytest.raises(SettingError, match="shows action, value, and not"):
        compute_map(cart, 0, 2, shows="q")
    with pytest.raises(SettingError, match="An action has 1 numbers"):
        compute_map(pendulum, "angle", "speed", action=1)
    with pytest.raises(SettingError, match="give an environment"):
        compute_map(tree, 0, 2, shows="phase")
    with pytest.raises(SettingError, match=r"\.svg, \.pdf or \.png"):
        save_as(compute_tree(tree), tmp_path / "tree.gif")
