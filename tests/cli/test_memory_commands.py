"""Commands with a controller with memory: show, evaluate, export and draw."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main
from spaql.controllers import Angle, Controller, FilteredDerivative
from spaql.figures import compute_map
from spaql.plugins.page import card
from spaql.plugins.page.card import policy_card


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    problem = spaql.make_problem("Pendulum-v1")
    controller = Controller.of_laws(
        (Angle("angle", "sin(angle)", "cos(angle)"), FilteredDerivative("swing", "angle", time_constant=0.1)),
        {"torque": {"angle": -8.0, "swing": -1.5}},
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
        sample_time=0.05,
    )
    path = tmp_path_factory.mktemp("memory") / "controller.spaql"
    spaql.Design(controller, problem, {"by": "hand"}).save(path)
    return path


def call(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.output


def test_show_prints_the_features_the_law_and_the_limits(run):
    text = call("show", run, "--digits", 3)
    size = "a controller with memory, 1 leaf, the fewest that are equivalent; 2 parameters"
    assert text.splitlines()[0] == f"# Pendulum-v1, controller: {size}"
    assert "angle [rad] = atan2(sin(angle), cos(angle))" in text
    assert "torque [Nm] = -8 * angle [rad] - 1.5 * swing [rad/s]" in text
    assert "A sample every 0.05 s." in text
    data = json.loads(call("show", run, "--json"))
    assert [one["kind"] for one in data["features"]] == ["angle", "filtered derivative"]
    assert data["memory"]["sample_time"] == 0.05
    assert data["rules"] == [{"when": {}, "do": "torque [Nm] = -8.0 * angle [rad] - 1.5 * swing [rad/s]"}]


def test_show_explains_the_first_sample_of_an_episode(run):
    text = call("show", run, "--at", "0.9950041652780258,0.09983341664682815,0")
    assert "angle [rad] = 0.1\n" in text
    assert "does     torque [Nm] = -0.8\n" in text
    assert "by       torque [Nm] = -8 * angle [rad] - 1.5 * swing [rad/s]" in text


def test_edit_changes_its_numbers(run, tmp_path):
    out = tmp_path / "edited.spaql"
    text = call("edit", run, "--leaf", 1, "--gain", "swing=-2", "--out", out, "--episodes", 2)
    assert "before  1 leaf, return" in text
    assert "torque [Nm] = -8 * angle [rad] - 2 * swing [rad/s]" in call("show", out, "--digits", 3)
    numbered = call("show", out, "--numbers")
    assert "swing [rad/s]  # leaf 1" in numbered
    assert "A sample every 0.05 s." in numbered


def test_evaluate_plays_it(run):
    data = json.loads(call("evaluate", run, "--episodes", 3, "--json"))
    assert data["mean"] == pytest.approx(spaql.evaluate(run, episodes=3).mean)


def test_export_writes_it_with_its_state(run, tmp_path):
    text = call("export", run, "--to", "c", "--out", tmp_path, "--points", 2000, "--safe-action", "0")
    assert "samples at boundaries" in text
    assert "controller_reset" in (tmp_path / "controller.h").read_text()
    assert "belongs to this run: the same program" in call(
        "export", run, "--check", tmp_path / "controller.c"
    )


@pytest.mark.long
def test_the_card_shows_the_controller(run):
    pytest.importorskip("matplotlib")
    page = policy_card(run, spaql.load(run), episodes=5)
    assert "a controller with memory of its own, by hand" in page
    assert "angle [rad] = atan2(sin(angle), cos(angle))" in page


def test_the_rules_on_the_card_are_those_of_the_controller(run):
    part = "".join(card._with_memory(spaql.load(run).policy))
    assert "torque [Nm] = -8 * angle [rad] - 1.5 * swing [rad/s]" in part


def test_draw_draws_the_tree_and_maps_over_observations_and_features(run, tmp_path):
    pytest.importorskip("matplotlib")
    call("draw", run, "tree", "--out", tmp_path / "tree.svg")
    assert "angle" in (tmp_path / "tree.svg").read_text()
    for x, y in (("speed", "cos(angle)"), ("angle", "swing")):
        call("draw", run, "map", "--x", x, "--y", y, "--out", tmp_path / "map.svg")
        assert "memory averaged over" in (tmp_path / "map.svg").read_text()


def test_a_map_over_features_is_the_law(run):
    over_features = compute_map(spaql.load(run), "angle", "swing", resolution=5)
    angles = np.linspace(over_features.x.low, over_features.x.high, 11)[1::2]
    swings = np.linspace(over_features.y.low, over_features.y.high, 11)[1::2]
    law = np.clip(-8.0 * angles[np.newaxis] - 1.5 * swings[:, np.newaxis], -2.0, 2.0)
    np.testing.assert_allclose(over_features.values, law)


def test_show_explains_features(run):
    text = call("show", run, "--at", "angle=0.1,swing=-0.2")
    assert "does     torque [Nm] = -0.5" in text
    assert "swing [rad/s] is missing" in call("show", run, "--at", "angle=0.1", code=1)
