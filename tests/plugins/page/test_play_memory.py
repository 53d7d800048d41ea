"""Controllers with memory in the interactive page, in a real browser: what is remembered, and set-points."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from gymnasium.spaces import Box, Discrete

import spaql
from browser import Page
from feature_controllers import random_controller, two_leaf_pi
from spaql import zoo
from spaql.cli import main
from spaql.controllers import Controller, Error, Laws, Square
from spaql.evaluation import step_test
from spaql.export import controller_from_json
from spaql.plugins.page.card import policy_card
from spaql.plugins.page.play import STYLE, Play, compute_play, play_section
from spaql.plugins.page.play_plant import PagePlant
from spaql.simulate import record

LADDER = ("oven", "dc-motor", "quadruple-tank", "cartpole-swing-up")


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A function that writes the page of a controller of the zoo, once."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}

    def write(name: str) -> Path:
        if name not in made:
            file = folder / f"{name}.spaql"
            file.write_bytes(zoo.content(f"{name}-treesearch"))
            made[name] = folder / f"{name}.html"
            made[name].write_text(policy_card(file, spaql.load(file), episodes=2))
        return made[name]

    return write


def still_page(controller, path: Path) -> Path:
    """Write a page whose plant does not move: only its controller matters."""
    n = len(controller.observations)
    plant = PagePlant(
        "",
        "({step: (s) => [...s, 0, 1], observe: (s) => s})",
        tuple(f"x{j}" for j in range(n)),
        (False,) * n,
        np.zeros((1, n)),
    )
    ends = np.full(n, 1.5)
    made = Play(controller, plant, "test", 10, 0.2, "", -ends, ends, (0, 1))
    path.write_text(
        f"<!doctype html><meta charset=utf-8><style>{STYLE.read_text()}</style>{play_section(made)}"
    )
    return path


def played_in_page(page: Page, observations) -> np.ndarray:
    """Return the action, the features and the state after each sample of an episode in a page."""
    return np.array(
        page.run(
            f"""(() => {{ const memory = spaqlPage.fresh();
            return {json.dumps(np.asarray(observations).tolist())}.map((seen) => {{
              const {{action, given}} = spaqlPage.decide(seen, memory);
              const kept = Object.entries(memory).filter(([name]) => !name.startsWith("tree$"));
              return [...action, ...given, ...kept.map(([, x]) => Number(x))]; }}); }})()"""
        )
    )


def played_in_python(controller, observations) -> np.ndarray:
    memory = controller.new_memory(1)
    rows = []
    for seen in np.asarray(observations):
        sample = controller.sample(seen[np.newaxis], memory)
        action = sample.action.astype(controller.action_space.dtype).astype(np.float64)
        rows.append(np.concatenate([action[0], sample.inputs[0], memory[0]]))
    return np.array(rows)


@pytest.mark.parametrize("seed", range(6))
def test_every_feature_and_limit_is_that_of_the_policy_to_the_last_bit(
    page: Page, seed: int, tmp_path: Path
) -> None:
    """The controllers have all kinds of features, three leaves, rate limits, dead bands and hysteresis."""
    controller = random_controller(seed)
    page.open(still_page(controller, tmp_path / "page.html"))
    rng = np.random.default_rng(seed)
    for _ in range(5):
        wandering = np.clip(np.cumsum(rng.normal(size=(400, 4)) * 0.2, axis=0), -2.0, 2.0)
        jumping = rng.uniform(-2.0, 2.0, (200, 4))
        episode = np.concatenate([wandering, jumping, np.repeat(jumping[:1], 50, axis=0)])
        np.testing.assert_array_equal(played_in_page(page, episode), played_in_python(controller, episode))
    assert page.errors == []


@pytest.mark.parametrize("sample_time", [None, 0.5])
def test_actions_of_a_list_are_chosen_by_features(page: Page, sample_time, tmp_path: Path) -> None:
    """Two laws are scores, and one is a constant; the features need no memory."""
    rng = np.random.default_rng(0)
    gain = rng.normal(size=(3, 3, 2))
    offset = rng.normal(size=(3, 3))
    gain[2] = 0.0
    offset[2, :2] = -np.inf
    controller = Controller(
        feature=[0, -1, 1, -1, -1],
        threshold=[-0.4, 0.0, 0.5, 0.0, 0.0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 0, -1, 1, 2],
        laws=Laws(gain, offset),
        features=(Error("error", "set-point", "level"), Square("energy", "error")),
        observation_space=Box(-2.0, 2.0, (2,), np.float64),
        action_space=Discrete(3, start=4),
        observations=("level", "set-point"),
        sample_time=sample_time,
    )
    page.open(still_page(controller, tmp_path / "page.html"))
    observations = rng.uniform(-1.0, 1.0, (1000, 2))
    found = played_in_page(page, observations)[:, :3]
    np.testing.assert_array_equal(found[:, 0], controller.act(observations))
    inputs = [controller.inputs_of(seen) for seen in observations]
    np.testing.assert_array_equal(found[:, 1:], inputs)
    assert set(found[:, 0]) == {4, 5, 6}
    file = tmp_path / "controller.json"
    file.write_text(page.run("spaqlPage.saved()"))
    np.testing.assert_array_equal(controller_from_json(file).act(observations), found[:, 0])
    page.run("document.querySelectorAll('#tree button').forEach((button) => button.click())")
    page.settle()
    assert page.errors == []


@pytest.mark.parametrize("name", LADDER)
def test_the_controller_is_the_policy_along_recorded_episodes(page: Page, pages, name: str) -> None:
    """With noise, dead time and loads as the simulator has them."""
    page.open(pages(name))
    source = zoo.load(f"{name}-treesearch")
    for episode in record(source.policy, source.problem, range(3)):
        seen = episode.observations[:-1]
        found = played_in_page(page, seen)
        wanted = played_in_python(source.policy, seen)
        np.testing.assert_array_equal(found, wanted)
        np.testing.assert_array_equal(found[:, : episode.actions.shape[1]], episode.actions)
    assert page.errors == []


@pytest.mark.parametrize("name", LADDER[:3])
def test_the_page_begins_with_the_step_test(page: Page, pages, name: str) -> None:
    """The plant in the page has the dead time and the load of the one in Python."""
    page.open(pages(name))
    source = zoo.load(f"{name}-treesearch")
    part = page.run("spaqlPage.data.plan.steps")[0]
    test = step_test(source.problem, {"this": source.policy}, horizon=part)
    wanted = test.responses["this"]
    path = page.run("(({states, actions, total}) => ({states, actions, total}))(spaqlPage.view.path)")
    outputs = [list(source.problem.states.names).index(one) for one in source.problem.setpoints]
    seen = page.run("spaqlPage.view.path.states.map(spaqlPage.observe)")
    np.testing.assert_allclose(np.array(seen)[:-1, outputs], wanted.signals, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(path["actions"], wanted.actions, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", LADDER)
def test_returns_from_the_fixed_starts_are_those_of_the_plant_in_python(page: Page, pages, name: str) -> None:
    page.open(pages(name))
    source = zoo.load(f"{name}-treesearch")
    made = compute_play(source, source.policy)
    dynamics = source.problem.dynamics
    _, step, observe = dynamics.nominal_functions if made.plan is None else made.plan.plant.functions
    totals = []
    for start in made.plant.starts[:5].tolist():
        state = tuple(start)
        total = 0.0
        playing = source.policy.for_episodes(1)
        for t in range(source.problem.horizon):
            seen = np.array([observe(state)]).astype(np.float32)
            action = np.asarray(playing.act(seen, np.array([t]), None), np.float64)[0]
            state, reward, ended = step(state, action)
            total += reward
            if ended:
                break
        totals.append(total)
    found = page.run("spaqlPage.view.fixed.map((one) => one.total)")[:5]
    np.testing.assert_allclose(found, totals, rtol=1e-3)


def test_a_dragged_set_point_moves_the_response_and_nothing_else(page: Page, pages) -> None:
    page.open(pages("oven"))
    goals = page.run("spaqlPage.view.plan.goals")
    fixed = page.run("spaqlPage.view.fixed[0].total")
    before = page.run("spaqlPage.view.path.states")
    left, top, width, height = page.box("#map")
    right = left + 0.6 * width  # after the step, before the load
    page.drag((right, top + 0.25 * height), (right, top + 0.2 * height), (right, top + 0.15 * height))
    (first, then), after = page.run("spaqlPage.view.plan.goals")[0], page.run("spaqlPage.view.path.states")
    assert first == goals[0][0]
    assert then != goals[0][1]
    (step,) = page.run("spaqlPage.view.plan.steps")
    assert after[: step - 1] == before[: step - 1]
    np.testing.assert_allclose([state[1] for state in after[step:]], then)
    settled = after[page.run("spaqlPage.view.plan.begins") - 1][0]
    assert settled == pytest.approx(then, abs=0.5)
    assert float(page.run("document.querySelector('#plan-1').value")) == pytest.approx(then, abs=0.2)
    assert page.run("spaqlPage.view.fixed[0].total") == fixed
    assert page.run("spaqlPage.data.file") == json.loads(page.run("spaqlPage.saved()"))
    assert page.errors == []


def test_a_step_is_dragged_to_another_time_and_a_load_changed_by_its_slider(page: Page, pages) -> None:
    page.open(pages("oven"))
    (step,), begins = page.run("spaqlPage.view.plan.steps"), page.run("spaqlPage.view.plan.begins")
    left, top, width, height = page.box("#map")
    at = left + 48 + (width - 58) / 3
    page.drag((at, top + 0.2 * height), (at - 20, top + 0.2 * height), (at - 40, top + 0.2 * height))
    assert page.run("spaqlPage.view.plan.steps")[0] < step
    before = page.run("spaqlPage.view.path.states")
    left, top, width, height = page.box("#plan-3")
    middle = (left + 0.75 * width, top + height / 2)
    page.drag(middle, (left + 0.3 * width, middle[1]), (left + 0.1 * width, middle[1]))
    assert page.run("spaqlPage.view.plan.load") < 0
    after = page.run("spaqlPage.view.path.states")
    assert [s[0] for s in after[: begins + 1]] == [s[0] for s in before[: begins + 1]]
    assert after[begins + 3][0] < before[begins + 3][0]
    assert page.errors == []


def test_keys_change_the_set_point_and_the_time(page: Page, pages) -> None:
    page.open(pages("oven"))
    page.run("document.querySelector('#map').focus()")
    (first, then), t = page.run("spaqlPage.view.plan.goals")[0], page.run("spaqlPage.view.t")
    page.press("ArrowDown", shift=True)
    page.press("ArrowLeft", shift=True)
    changed = page.run("spaqlPage.view.plan.goals")[0]
    assert changed == pytest.approx([first, then - 6.0])
    assert page.run("spaqlPage.view.t") < t
    page.press("ArrowUp", shift=True)  # before the step now
    assert page.run("spaqlPage.view.plan.goals")[0] == pytest.approx([first + 6.0, then - 6.0])


def test_a_dragged_gain_changes_features_response_and_returns_and_is_taken_by_spaql(
    page: Page, pages, tmp_path: Path
) -> None:
    html = pages("oven")
    page.open(html)
    totals = page.run("spaqlPage.view.fixed.map((one) => one.total)")
    path = "spaqlPage.view.path.actions"
    shown = page.run("document.querySelector('#features').textContent")
    actions = page.run(path)
    original = json.loads(page.run("spaqlPage.saved()"))
    labels = page.run("[...document.querySelectorAll('#sliders label')].map((one) => one.textContent)")
    assert labels[:3] == ["offset", "gain of error", "gain of integral"]
    left, top, width, height = page.box("#edit-1")
    middle = (left + width / 2, top + height / 2)
    page.drag(middle, (left + 0.4 * width, middle[1]), (left + 0.3 * width, middle[1]))
    assert page.run("spaqlPage.view.fixed.map((one) => one.total)") != totals
    assert page.run(path) != actions
    assert page.run("document.querySelector('#features').textContent") != shown
    assert "(was " in page.run("document.querySelector('#return').textContent")
    file = tmp_path / "edited-controller.json"
    out = tmp_path / "edited.spaql"
    file.write_text(page.run("spaqlPage.saved()"))
    found = controller_from_json(file)
    source = html.with_suffix(".spaql")
    gain = found.laws.gain - spaql.load(source).policy.laws.gain
    assert np.flatnonzero(gain).tolist() == [0]
    assert gain[0, 0, 0] < 0
    words = ["edit", str(source), "--tree", str(file), "--out", str(out), "--episodes", "2"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    edited = spaql.load(out).policy
    episode = record(edited, spaql.load(out).problem, [0])[0].observations[:-1]
    np.testing.assert_array_equal(played_in_page(page, episode), played_in_python(edited, episode))
    page.run("document.querySelector('#reset').click()")
    page.settle()
    assert page.run("spaqlPage.view.fixed.map((one) => one.total)") == totals
    assert json.loads(page.run("spaqlPage.saved()")) == original
    assert page.errors == []


def test_the_features_and_what_they_add_are_those_of_the_policy(page: Page, pages) -> None:
    page.open(pages("oven"))
    controller = zoo.load("oven-treesearch").policy
    t = page.run("spaqlPage.view.t")
    seen = page.run(f"spaqlPage.view.path.states.slice(0, {t + 1}).map(spaqlPage.observe)")
    features = played_in_python(controller, seen)[t, 1 : 1 + len(controller.features)]
    rows = page.run("[...document.querySelectorAll('#features tbody tr')].map((one) => one.innerText)")
    terms = features * controller.laws.gain[0, 0]
    for row, value, term, feature in zip(rows, features, terms, controller.features, strict=False):
        name, shown, *added = row.replace("−", "-").split("\t")
        assert name.removesuffix("m").strip() == feature.name
        assert float(shown.split()[0]) == pytest.approx(value, rel=6e-3)
        if term:
            assert float(added[0]) == pytest.approx(term, rel=6e-3)


def test_a_dragged_threshold_of_a_controller_with_memory_moves_the_switch(page: Page, tmp_path: Path) -> None:
    controller = two_leaf_pi()
    page.open(still_page(controller, tmp_path / "page.html"))
    page.run("document.querySelector('#tree button.rule').click()")
    page.settle()
    left, top, width, height = page.box("#edit-0")
    middle = (left + width / 2, top + height / 2)
    page.drag(middle, (left + 0.7 * width, middle[1]), (left + 0.9 * width, middle[1]))
    file = tmp_path / "controller.json"
    file.write_text(page.run("spaqlPage.saved()"))
    moved = controller_from_json(file)
    assert moved.threshold[0] > controller.threshold[0]
    rng = np.random.default_rng(0)
    episode = rng.uniform(0.0, 1.0, (300, len(controller.observations)))
    found = played_in_page(page, episode)
    np.testing.assert_array_equal(found, played_in_python(moved, episode))
    assert np.any(found != played_in_python(controller, episode))


def test_a_file_of_another_controller_is_refused(tmp_path: Path) -> None:
    for name in ("oven", "dc-motor"):
        (tmp_path / f"{name}.spaql").write_bytes(zoo.content(f"{name}-treesearch"))
    other = tmp_path / "motor.json"
    spaql.export.json(spaql.load(tmp_path / "dc-motor.spaql"), other)
    words = ["edit", str(tmp_path / "oven.spaql"), "--tree", str(other), "--out", str(tmp_path / "e.spaql")]
    done = CliRunner().invoke(main, words)
    assert done.exit_code != 0
    assert "has other features, limits or spaces" in done.output


@pytest.mark.parametrize(
    ("name", "width"), [*((name, 400) for name in LADDER), ("oven", 1000), ("oven", 1600)]
)
def test_nothing_is_cut_off_in_windows_of_all_sizes(page: Page, pages, name: str, width: int) -> None:
    page.open(pages(name), width, 900, dark=width == 1000)
    assert page.run("document.documentElement.scrollWidth") == width
    for part in ("#map", "#plant", "#tree", "#returns", "#features"):
        left, _, wide, high = page.box(part)
        assert left >= 0
        assert left + wide <= width
        assert min(wide, high) > 20
    assert page.errors == []


def test_a_page_with_memory_is_one_small_file_that_says_what_it_cannot_show(pages) -> None:
    oven = pages("oven").read_text()
    motor = pages("dc-motor").read_text()
    assert len(oven.encode()) < 200_000
    assert "with its dead time and a load in each of the fixed starts" in oven
    assert "what it would do with what it remembers at the moment shown" in oven
    assert "cannot be changed here" in oven
    assert "The plant runs by its equations, without noise." in motor
    assert "This controller remembers" not in motor
