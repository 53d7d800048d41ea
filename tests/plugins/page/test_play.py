"""The interactive page, in a real browser: controller and plant are those of Python, and drags do things."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box, Discrete

import spaql
from browser import Page
from spaql.cli import main
from spaql.controllers import Controller, Laws, locked
from spaql.controllers.mirrored import folded
from spaql.export import controller_from_json
from spaql.plugins.page.card import policy_card
from spaql.plugins.page.play import STYLE, Play, compute_play, play_section
from spaql.plugins.page.play_plant import PagePlant
from spaql.simulate import play

POINTS = 100_000


def tree_of(laws, actions, seed=0):
    """A tree over three observations: rules on one number, and on a sum of two."""
    rng = np.random.default_rng(seed)
    return Controller(
        feature=[0, 3, -1, -1, 2, -1, -1],
        threshold=[0.1, rng.normal() / 3, 0, 0, -0.3, 0, 0],
        left=[1, 2, -1, -1, 5, -1, -1],
        right=[4, 3, -1, -1, 6, -1, -1],
        leaf=[-1, -1, 0, 1, -1, 2, 3],
        laws=laws,
        observation_space=Box(-1.0, 1.0, (3,), np.float32),
        action_space=actions,
        observations=("cos(angle)", "sin(angle)", "speed [rad/s]"),
        combinations=[[0.0, 0.3, -1.7]],
    )


def trees():
    """A tree with each kind of laws, for the spaces of Pendulum and for lists of actions."""
    rng = np.random.default_rng(1)
    offset = rng.normal(size=(4, 3))
    gain = rng.normal(size=(4, 3, 3)) * (rng.random((4, 3, 3)) < 0.7)
    offset[1, 1] = -np.inf
    gain[1, 1] = 0.0
    torque = Box(-2.0, 2.0, (1,), np.float32)
    return {
        "laws": tree_of(Laws(gain[:, :1] * 3, rng.normal(size=(4, 1))), torque),
        "constants": tree_of(rng.uniform(-2, 2, (4, 1)), torque),
        "choices": tree_of([2, 0, 1, 2], Discrete(3)),
        "switching": tree_of(Laws(gain, offset), Discrete(3)),
    }


def observations(tree):
    """Points all over the space, and of every rule both sides of its boundary and the boundary itself."""
    rng = np.random.default_rng(2)
    points = rng.uniform(-1.5, 1.5, (POINTS, 3))
    sides = []
    for node in np.flatnonzero(tree.feature >= 0):
        j = int(tree.feature[node])
        cut = float(tree.threshold[node])
        some = rng.uniform(-1.5, 1.5, (100, 3))
        if j < 3:
            some[:, j] = cut
        else:
            some[:, 2] = (cut - 0.3 * some[:, 1]) / -1.7
            j = 2
        for toward in (-np.inf, np.inf):
            sides.append(np.where(np.arange(3) == j, np.nextafter(some, toward), some))
        sides.append(some)
    for weights, level in planes(tree):  # on which two scores are equal, or a law reaches its bound
        some = rng.uniform(-1.5, 1.5, (100, 3))
        j = int(np.argmax(np.abs(weights)))
        others = np.delete(np.arange(3), j)
        some[:, j] = (level - some[:, others] @ weights[others]) / weights[j]
        for toward in (-np.inf, np.inf):
            sides.append(np.where(np.arange(3) == j, np.nextafter(some, toward), some))
        sides.append(some)
    return np.concatenate([points, *sides])


def planes(tree):
    """Return weights and level of each plane within leaves at which what their laws do changes."""
    found = []
    for gain, offset in zip(tree.laws.gain, tree.laws.offset, strict=True):
        if tree.discrete:
            taken = np.flatnonzero(offset > -np.inf)
            pairs = [(a, b) for a in taken for b in taken if a < b]
            found += [(gain[a] - gain[b], offset[b] - offset[a]) for a, b in pairs]
        else:
            found += [(gain[0], end - offset[0]) for end in (-2.0, 2.0)]
    return [(weights, level) for weights, level in found if np.any(weights)]


def controller_page(tree, path: Path) -> Path:
    """Write a page whose plant does not move: only its controller matters."""
    plant = PagePlant(
        "",
        "({step: (s) => [...s, 0, 1], observe: (s) => s})",
        ("a", "b", "c"),
        (False,) * 3,
        np.zeros((1, 3)),
    )
    ends = np.full(3, 1.5)
    made = Play(tree, plant, "test", 10, 0.05, "", -ends, ends, (0, 1))
    path.write_text(
        f"<!doctype html><meta charset=utf-8><style>{STYLE.read_text()}</style>{play_section(made)}"
    )
    return path


@pytest.mark.parametrize("kind", ["laws", "constants", "choices", "switching"])
def test_the_controller_is_the_policy_at_all_points_and_boundaries(
    page: Page, kind: str, tmp_path: Path
) -> None:
    tree = trees()[kind]
    page.open(controller_page(tree, tmp_path / "page.html"))
    points = observations(tree)
    found = page.run(
        f"{json.dumps(points.tolist())}.map((seen) => [...spaqlPage.act(seen), spaqlPage.find(seen)])"
    )
    acted = np.array(found)
    np.testing.assert_array_equal(acted[:, 0], np.asarray(tree.act(points), np.float64).ravel())
    numbers = {1: 2, 2: 3, 3: 5, 4: 6}  # of leaves, in printed order: their nodes
    np.testing.assert_array_equal([numbers[int(k)] for k in acted[:, 1]], tree.find_nodes(points))
    assert page.errors == []


RUNS = {
    "CartPole-v1": lambda: spaql.TreeSearch("CartPole-v1", seed=0, max_leaves=4),
    "Pendulum-v1": lambda: spaql.TreeSearch("Pendulum-v1", seed=0, max_leaves=4),
    "Acrobot-v1": lambda: spaql.TreeSearch("Acrobot-v1", seed=0),
    "MountainCarContinuous-v0": lambda: spaql.TreeSearch("MountainCarContinuous-v0", seed=0),
    "spaql/CartPoleSwingUp-v0": lambda: spaql.PlanTree("spaql/CartPoleSwingUp-v0", seed=0, effort=0.01),
}


@pytest.fixture(scope="module")
def swing_up(tmp_path_factory):
    """A run of Pendulum, and its page."""
    folder = tmp_path_factory.mktemp("run")
    agent = RUNS["Pendulum-v1"]().learn(200_000, progress_bar=False)
    agent.save(folder / "policy.spaql")
    (folder / "page.html").write_text(policy_card(folder, agent, episodes=20))
    return folder


@pytest.mark.parametrize("name", list(RUNS))
def test_the_plant_runs_as_in_python(page: Page, name: str, tmp_path: Path) -> None:
    """Sines and cosines may differ in the last bit between the two, so a few steps are compared."""
    agent = RUNS[name]().learn(600 if "SwingUp" in name else 20_000, progress_bar=False)
    agent.save(tmp_path / "policy.spaql")
    (tmp_path / "page.html").write_text(policy_card(tmp_path / "policy.spaql", agent, episodes=2))
    page.open(tmp_path / "page.html")
    assert page.errors == []
    dynamics = agent.problem.dynamics
    _, step, observe = dynamics.nominal_functions
    for start in page.run("spaqlPage.data.starts")[:3]:
        path = page.run(f"spaqlPage.rollout({start})")
        state = tuple(start)
        total = 0.0
        for t, action in enumerate(path["actions"][:10]):
            seen = np.array(observe(state)).astype(np.float32)
            np.testing.assert_allclose(
                np.ravel(agent.policy.act(seen[None])[0]), action, rtol=1e-5, atol=1e-5
            )
            given = int(action[0]) if isinstance(agent.problem.actions.space, Discrete) else np.array(action)
            state, reward, _ = step(state, given)
            total += reward
            np.testing.assert_allclose(path["states"][t + 1], state, rtol=1e-9, atol=1e-9)
        assert len(path["states"]) == len(path["actions"]) + 1
        if len(path["actions"]) <= 10:
            assert path["total"] == pytest.approx(total)


def test_the_returns_are_those_of_the_simulator(page: Page, tmp_path: Path) -> None:
    """CartPole's equations hold no function but those of IEEE 754 and sines of small angles."""
    agent = RUNS["CartPole-v1"]().learn(100_000, progress_bar=False)
    agent.save(tmp_path / "policy.spaql")
    (tmp_path / "page.html").write_text(policy_card(tmp_path / "policy.spaql", agent, episodes=2))
    page.open(tmp_path / "page.html")
    starts = np.array(page.run("spaqlPage.data.starts"))
    wanted = [episode.total for episode in play(agent.policy, agent.problem, starts)]
    assert page.run("spaqlPage.view.fixed.map((one) => one.total)") == wanted


def test_a_learned_plant_runs_as_it_was_learned(page: Page, tmp_path: Path) -> None:
    agent = spaql.PlanTree("CartPole-v1", seed=0, effort=0.02, compiled=False)
    agent.learn(total_timesteps=600, progress_bar=False)
    agent.save(tmp_path / "policy.spaql")
    (tmp_path / "page.html").write_text(policy_card(tmp_path / "policy.spaql", agent, episodes=2))
    page.open(tmp_path / "page.html")
    assert page.errors == []
    assert "The plant was learned from 600 steps" in page.run("document.querySelector('#play').textContent")
    rng = np.random.default_rng(0)
    states = rng.uniform(-0.2, 0.2, (50, 4))
    actions = rng.integers(0, 2, 50)
    found = np.array(
        page.run(
            f"{json.dumps(states.tolist())}.map((s, i) => spaqlPage.plant.step(s, [{actions.tolist()}[i]]))"
        )
    )
    wanted = agent.model.predict(states, actions)
    alive = found[:, 5] == 0
    np.testing.assert_allclose(found[:, :4], wanted.observations, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(found[:, 5] == 1, wanted.ends > 0.5)
    np.testing.assert_allclose(found[alive, 4], 1.0)


def test_a_drag_on_the_map_moves_the_state(page: Page, swing_up: Path) -> None:
    page.open(swing_up / "page.html")
    left, top, width, height = page.box("#map")
    said = page.run("document.querySelector('#said').textContent")
    start = page.run("spaqlPage.view.start")
    page.drag(
        (left + 0.5 * width, top + 0.5 * height),
        (left + 0.3 * width, top + 0.4 * height),
        (left + 0.25 * width, top + 0.3 * height),
    )
    moved = page.run("spaqlPage.view.start")
    assert moved != start
    low = page.run("spaqlPage.data.low")
    high = page.run("spaqlPage.data.high")
    plot = (width - 58, height - 48)
    assert moved[0] == pytest.approx(low[0] + (0.25 * width - 48) / plot[0] * (high[0] - low[0]), abs=0.05)
    assert moved[1] == pytest.approx(high[1] - (0.3 * height - 8) / plot[1] * (high[1] - low[1]), abs=0.15)
    assert page.run("spaqlPage.view.path.states[0]") == moved
    after = page.run("document.querySelector('#said').textContent")
    assert after != said
    leaf = page.run("spaqlPage.find(spaqlPage.observe(spaqlPage.view.start))")
    assert after.startswith(f"leaf {leaf} of ")
    assert page.run("document.querySelector('#tree button.leaf.on i').textContent") == str(leaf)


def test_keys_move_the_state_and_play(page: Page, swing_up: Path) -> None:
    page.open(swing_up / "page.html")
    page.run("document.querySelector('#map').focus()")
    before = page.run("spaqlPage.view.start")
    page.press("ArrowRight")
    page.press("ArrowUp", shift=True)
    after = page.run("spaqlPage.view.start")
    span = np.subtract(page.run("spaqlPage.data.high"), page.run("spaqlPage.data.low"))
    np.testing.assert_allclose(np.subtract(after, before) / span, [0.02, 0.1], atol=1e-9)
    page.press(" ")
    page.run("new Promise(done => setTimeout(done, 400))")
    assert page.run("document.querySelector('#go').textContent") == "Pause"
    assert page.run("spaqlPage.view.t") > 1
    page.press(" ")
    assert page.run("document.querySelector('#go').textContent") == "Play"


def pixels(page: Page) -> str:
    return str(page.run("document.querySelector('#map').toDataURL()"))


def test_a_dragged_slider_changes_map_trajectories_and_return_and_is_taken_by_spaql(
    page: Page, swing_up: Path, tmp_path: Path
) -> None:
    page.open(swing_up / "page.html")
    # A leaf that the fixed starts use: the one that is active now.
    page.run("document.querySelector('#tree button.leaf.on').click()")
    page.settle()
    before = page.run("spaqlPage.view.fixed.map((one) => one.total)")
    map_before = pixels(page)
    tree_before = json.loads(page.run("spaqlPage.saved()"))
    left, top, width, height = page.box("#edit-0")
    middle = (left + width / 2, top + height / 2)
    page.drag(middle, (left + 0.8 * width, middle[1]), (left + 0.95 * width, middle[1]))
    assert page.run("spaqlPage.view.fixed.map((one) => one.total)") != before
    assert pixels(page) != map_before
    assert re.search(
        r"Mean return of 20 fixed starts: .*\(was ", page.run("document.querySelector('#return').textContent")
    )
    file = tmp_path / "edited-controller.json"
    file.write_text(page.run("spaqlPage.saved()"))
    read = controller_from_json(file)
    arrays, arrays_before = (one["arrays"] for one in (json.loads(file.read_text()), tree_before))
    assert [name for name in arrays if arrays[name] != arrays_before[name]] == ["laws.offset"]
    done = CliRunner().invoke(
        main,
        ["edit", str(swing_up), "--tree", str(file), "--out", str(tmp_path / "e.spaql"), "--episodes", "2"],
    )
    assert done.exit_code == 0, done.output
    seen = np.random.default_rng(0).uniform(-1, 1, (1000, 3))
    np.testing.assert_array_equal(spaql.load(tmp_path / "e.spaql").policy.act(seen), read.act(seen))
    page.run("document.querySelector('#reset').click()")
    page.settle()
    assert page.run("spaqlPage.view.fixed.map((one) => one.total)") == before
    assert json.loads(page.run("spaqlPage.saved()")) == tree_before
    assert page.errors == []


def test_a_dragged_threshold_moves_the_boundary_on_the_map(page: Page, tmp_path: Path) -> None:
    tree = trees()["laws"]
    page.open(controller_page(tree, tmp_path / "page.html"))
    page.run("document.querySelector('#tree button.rule').click()")
    page.settle()
    before = pixels(page)
    left, top, width, height = page.box("#edit-0")
    middle = (left + width / 2, top + height / 2)
    page.drag(middle, (left + 0.6 * width, middle[1]), (left + 0.9 * width, middle[1]))
    read = tmp_path / "tree.json"
    read.write_text(page.run("spaqlPage.saved()"))
    moved = controller_from_json(read).threshold
    assert moved[0] > tree.threshold[0]
    np.testing.assert_array_equal(moved[1:], tree.threshold[1:])
    between = [float(moved[0] + tree.threshold[0]) / 2, 0.0, 0.0]
    assert page.run(f"spaqlPage.find({between})") in (1, 2)  # the rule holds now, and did not before
    assert tree.leaf_number(np.array(between)) in (3, 4)
    assert pixels(page) != before
    assert page.errors == []


@pytest.mark.parametrize("name", ["pendulum-plantree", "cartpole-plantree"])
def test_a_mirrored_tree_is_edited_in_one_half(page: Page, name: str, tmp_path: Path) -> None:
    design = spaql.zoo.load(name)
    before = design.policy
    (tmp_path / "page.html").write_text(policy_card(None, design, episodes=2))
    page.open(tmp_path / "page.html", 1280, 800)
    fold = folded(before)
    assert page.run("document.querySelectorAll('#tree button.leaf').length") == fold.half.n_leaves
    assert fold.heading == page.run("document.querySelector('#tree p').textContent")
    bottoms = (
        "[...document.querySelectorAll('#tree button')].map((one) => one.getBoundingClientRect().bottom)"
    )
    assert max(page.run(bottoms)) <= 800
    page.run("document.querySelector('#tree button.rule').click()")
    page.settle()
    left, top, width, height = page.box("#edit-0")
    middle = (left + width / 2, top + height / 2)
    page.drag(middle, (left + 0.6 * width, middle[1]), (left + 0.7 * width, middle[1]))
    file = tmp_path / "edited.json"
    file.write_text(page.run("spaqlPage.saved()"))
    after = controller_from_json(file)
    assert folded(after).heading == fold.heading
    assert folded(after).half.threshold[0] > fold.half.threshold[0]
    seen = np.random.default_rng(0).uniform(-1, 1, (500, len(before.observations)))
    assert (after.act(seen) != before.act(seen)).any()
    assert (
        page.run(f"{seen[:100].tolist()}.map((x) => spaqlPage.act(x)[0])")
        == after.act(seen[:100]).ravel().tolist()
    )
    assert page.errors == []


@pytest.mark.parametrize("width", [400, 900, 1600])
@pytest.mark.parametrize("dark", [False, True])
def test_nothing_is_cut_off_in_windows_of_all_sizes(
    page: Page, swing_up: Path, width: int, dark: bool
) -> None:
    page.open(swing_up / "page.html", width, 900, dark=dark)
    assert page.run("document.documentElement.scrollWidth") == width
    for part in ("#map", "#plant", "#tree", "#returns"):
        left, _, wide, high = page.box(part)
        assert left >= 0
        assert left + wide <= width
        assert min(wide, high) > 20
    colour = page.run("getComputedStyle(document.body).backgroundColor")
    assert colour == ("rgb(18, 23, 28)" if dark else "rgb(255, 255, 255)")


def test_a_page_is_one_small_file_without_network(swing_up: Path) -> None:
    page = (swing_up / "page.html").read_text()
    assert len(page.encode()) < 200_000
    assert "default-src 'none'" in page
    assert not re.search(r'(src|href)="(?!#|data:)|url\((?!#)|@import|https?://', page)


def test_where_there_is_no_plant_the_page_says_why(tmp_path: Path) -> None:
    agent = spaql.TreeSearch("CartPole-v1", seed=0, compiled=False)
    agent.save(tmp_path / "policy.spaql")
    page = policy_card(tmp_path / "policy.spaql", agent, episodes=2)
    assert "no plant was learned (PlanTree learns one)" in page
    assert "spaqlPage" not in page


def test_states_are_named_after_what_is_observed_of_them() -> None:
    agent = spaql.PlanTree("spaql/CartPoleSwingUp-v0", seed=0)
    made = compute_play(agent, agent.policy)
    assert made.plant.names == ("position [m]", "speed [m/s]", "angle [rad]", "pole speed [rad/s]")
    assert made.plant.angles == (False, False, True, False)


def test_locked_leaves_stay_as_they_are(tmp_path: Path) -> None:
    tree = trees()["laws"]
    problem = spaql.make_problem("Pendulum-v1")
    tree = Controller(**{**vars_of(tree), "observation_space": problem.states.space})
    spaql.Design(locked(tree, 1), problem).save(tmp_path / "c.spaql")
    again = spaql.controller_of(tmp_path / "c.spaql")
    row = again.locks[0].row
    file = compute_play(spaql.load(tmp_path / "c.spaql"), again).as_data()["file"]
    assert file["arrays"]["locks.row"] == [row]
    for changed, allowed in ((row, False), ((row + 1) % 4, True)):
        made = json.loads(json.dumps(file))
        made["arrays"]["laws.offset"][changed][0] += 0.5
        (tmp_path / "t.json").write_text(json.dumps(made))
        words = ["edit", str(tmp_path / "c.spaql"), "--tree", str(tmp_path / "t.json"), "--episodes", "2"]
        done = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "out.spaql")])
        assert (done.exit_code == 0) is allowed, done.output
        assert allowed or "changes a rule or a leaf that is locked" in done.output


def vars_of(tree):
    names = (
        "feature",
        "threshold",
        "left",
        "right",
        "leaf",
        "laws",
        "action_space",
        "observations",
        "combinations",
    )
    return {name: getattr(tree, name) for name in names}
