"""Names and units for any environment: kept in the file, and used wherever a person reads."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main

SEEN = ("cart [m]", "cart speed [m/s]", "pole [rad]", "pole speed [rad/s]")
DONE = ("left", "right")


def test_they_are_kept_in_the_file_and_in_the_rules(tmp_path: Path) -> None:
    agent = spaql.SPAQL(
        "CartPole-v1", horizon=50, rollouts=1, seed=0, observation_names=SEEN, action_names=DONE
    ).learn(iterations=5, progress_bar=False)
    agent.save(tmp_path / "a.spaql")
    loaded = spaql.load(tmp_path / "a.spaql")
    assert (loaded.problem.states.names, loaded.problem.actions.names) == (SEEN, DONE)
    tree = spaql.controller_of(loaded)
    assert (tree.observations, tree.actions) == (SEEN, DONE)
    assert list(loaded.policy.explain([0.0, 0.0, 0.0, 0.0]).observation) == list(SEEN)
    spaql.export.json(tree, tmp_path / "controller.json", points=10)
    assert SEEN[1] in (tmp_path / "controller.json").read_text()


def test_an_environment_without_names_has_none_in_its_file() -> None:
    assert spaql.make_problem("CliffWalking-v1", horizon=9).states.names == ()
    named = spaql.make_problem(
        "CliffWalking-v1", horizon=9, observation_names=["square"], action_names=["u", "r", "d", "l"]
    )
    assert (named.states.names, named.actions.names) == (("square",), ("u", "r", "d", "l"))


def test_plantree_and_its_learned_plant_have_them() -> None:
    agent = spaql.PlanTree(
        "Pendulum-v1",
        seed=0,
        effort=0.02,
        observation_names=["x", "y", "spin [rad/s]"],
        action_names=["u [Nm]"],
    ).learn(300, progress_bar=False)
    assert (agent.policy.observations, agent.policy.actions) == (("x", "y", "spin [rad/s]"), ("u [Nm]",))
    assert agent.model.observations == ("x", "y", "spin [rad/s]")


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["x"], "observation_names has 1 names, and there are 3 to give"),
        (["x", "y", ""], "observation_names has '': a name is a text on one line"),
        (["x", "y", "a\nb"], "a name is a text on one line"),
        (["x", "y", 3], "observation_names has 3: a name is a text"),
        (["x", "speed [m/s]", "speed [rad/s]"], "'speed' more than once"),
        ("xyz", "observation_names has 1 names"),
    ],
)
def test_names_that_do_not_fit_are_refused(names: list[str], message: str) -> None:
    with pytest.raises(spaql.SettingError, match=message):
        spaql.make_problem("Pendulum-v1", observation_names=names)
    problem = spaql.make_problem("Pendulum-v1")
    with pytest.raises(spaql.SettingError, match="already made"):
        spaql.make_problem(problem, observation_names=["x", "y", "z"])


def test_the_command_line_takes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def command(*words: str, code: int = 0) -> str:
        result = CliRunner().invoke(main, words)
        assert result.exit_code == code, result.output
        return result.output

    few = (
        "--algo",
        "spaql",
        "--iterations",
        "5",
        "--rollouts",
        "1",
        "--seed",
        "0",
        "--out",
        "run",
        "--quiet",
    )
    names = ("--names", 'cart [m], "speed, of the cart",pole [rad],spin', "--action-names", "left,right")
    command("train", "CartPole-v1", "--horizon", "50", *few, *names)
    kept = json.loads(Path("run/settings.json").read_text())["problem"]
    assert kept["observations"] == ["cart [m]", "speed, of the cart", "pole [rad]", "spin"]
    assert kept["actions"] == ["left", "right"]
    shown = command("show", "run")
    assert "right" in shown
    assert "push" not in shown
    command("edit", "run", "--leaf", "1", "--do", "right", "--episodes", "1", "--out", "edited.spaql")
    assert "action-names" not in command("export", "run", "--to", "c", "--points", "10", "--out", "code")
    assert "speed, of the cart" in Path("code/controller.h").read_text()
    assert "2 to give" in command("train", "CartPole-v1", "--action-names", "left", "--out", "other", code=1)
    assert "has observations" in command("train", "CartPole-v1", "--horizon", "50", *few, "--resume", code=1)
