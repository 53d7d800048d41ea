"""Commands with a controller with memory: show, evaluate, export and draw."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main
from spaql.figures import card, policy_card
from spaql.policy import Angle, FeatureController, FilteredDerivative


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    problem = spaql.make_problem("Pendulum-v1")
    controller = FeatureController.of_laws(
        (Angle("angle", "sin(angle)", "cos(angle)"), FilteredDerivative("swing", "angle", time_constant=0.1)),
        {"torque": {"angle": -8.0, "swing": -1.5}},
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
        sample_time=0.05,
    )
    path = tmp_path_factory.mktemp("memory") / "controller.spaql"
    spaql.Controller(controller, problem, {"by": "hand"}).save(path)
    return path


def call(*words: object, code: int = 0) -> str:
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done.output


def test_show_prints_the_features_the_law_and_the_limits(run):
    text = call("show", run, "--digits", 3)
    assert text.splitlines()[0] == "# Pendulum-v1, controller: a controller with memory, 1 leaf; 2 numbers"
    assert "angle [rad] = atan2(sin(angle), cos(angle))" in text
    assert "torque [Nm] = -8 * angle [rad] - 1.5 * swing [rad/s]" in text
    assert "A sample every 0.05 s." in text
    data = json.loads(call("show", run, "--json"))
    assert [one["kind"] for one in data["memory"]["features"]] == ["angle", "filtered derivative"]
    assert "angle [rad]" in call("show", run, "--as", "csv")
    assert "has memory" in call("show", run, "--at", "1,0,0", code=1)


def test_evaluate_plays_it(run):
    data = json.loads(call("evaluate", run, "--episodes", 3, "--json"))
    assert data["mean"] == pytest.approx(spaql.evaluate(run, episodes=3).mean)


def test_export_writes_it_with_its_state(run, tmp_path):
    text = call("export", run, "--to", "c", "--out", tmp_path, "--points", 2000, "--safe-action", "0")
    assert "samples at boundaries" in text
    assert "controller_reset" in (tmp_path / "controller.h").read_text()
    assert "is of this run: the same program" in call("export", run, "--check", tmp_path / "controller.c")


@pytest.mark.long
def test_the_card_shows_the_controller(run):
    pytest.importorskip("matplotlib")
    page = policy_card(run, spaql.load(run), episodes=5, starts=16)
    assert "a controller with memory of its own, by hand" in page
    assert "angle [rad] = atan2(sin(angle), cos(angle))" in page


def test_the_rules_on_the_card_are_those_of_the_controller(run):
    part = "".join(card._with_memory(spaql.load(run).policy, False))
    assert "torque [Nm] = -8 * angle [rad] - 1.5 * swing [rad/s]" in part


def test_draw_refuses_maps_and_draws_the_tree(run, tmp_path):
    pytest.importorskip("matplotlib")
    call("draw", run, "tree", "--out", tmp_path / "tree.svg")
    assert "angle" in (tmp_path / "tree.svg").read_text()
    words = ("draw", run, "map", "--x", "speed", "--y", "cos(angle)", "--out", tmp_path / "map.svg")
    assert "has memory" in call(*words, code=1)
