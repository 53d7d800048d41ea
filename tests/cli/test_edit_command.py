"""`spaql edit`, run in process."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import spaql
from spaql.cli import main
from spaql.controllers import Laws, text
from spaql.problems import make_problem

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1" / "controller-plantree-pendulum.spaql"


def command(tmp_path: Path, *words: str, code: int = 0) -> Result:
    out = ("--out", str(tmp_path / "edited.spaql"), "--episodes", "2")
    result = CliRunner().invoke(main, ["edit", str(GOLDEN), *words, *out])
    assert result.exit_code == code, result.output
    return result


def rules(path: Path) -> list[str]:
    """The lines that `spaql show --numbers` prints."""
    shown = CliRunner().invoke(main, ["show", str(path), "--numbers"])
    assert shown.exit_code == 0, shown.output
    return shown.output.splitlines()


def test_numbers_of_a_law(tmp_path: Path) -> None:
    tree = spaql.controller_of(spaql.Design.load(GOLDEN))
    words = ("--leaf", "1", "--gain", "speed=-2.5", "--gain", "cos(angle)=0", "--offset", "0.5", "--json")
    told = json.loads(command(tmp_path, *words).stdout)
    assert (told["leaf"], told["gain"], told["offset"]) == (1, ["speed=-2.5", "cos(angle)=0"], ["0.5"])
    assert told["before"]["leaves"] == told["after"]["leaves"] == tree.n_leaves
    lines = rules(tmp_path / "edited.spaql")
    assert any(
        "made from" in line and "leaf 1 set by hand: offset 0.5, gain speed=-2.5" in line for line in lines
    )
    changed = spaql.Design.load(tmp_path / "edited.spaql").controller
    _, _, row = tree.box(1)
    _, _, after = changed.box(1)
    assert changed.laws.offset[after].tolist() == [0.5]
    assert changed.laws.gain[after, 0].tolist() == [0.0, tree.laws.gain[row, 0, 1], -2.5]


def test_a_threshold(tmp_path: Path) -> None:
    tree = spaql.controller_of(spaql.Design.load(GOLDEN))
    first = text(tree, numbered=True).splitlines()[0]
    assert first.endswith(":  # rule 1")
    assert first in rules(GOLDEN)
    old = float(tree.threshold[0])
    command(tmp_path, "--rule", "1", "--threshold", repr(old + 0.001))
    changed = spaql.Design.load(tmp_path / "edited.spaql").controller
    assert float(changed.threshold[0]) == old + 0.001
    lines = rules(tmp_path / "edited.spaql")
    assert any(f"threshold of rule 1 set by hand to {old + 0.001}" in line for line in lines)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--rule", "1", "--threshold", "nan"), 1, "can lie between"),
        (("--rule", "99", "--threshold", "0"), 1, "there is no rule 99"),
        (("--leaf", "1", "--gain", "spede=1"), 1, "did you mean speed?"),
        (("--leaf", "1", "--gain", "speed=nan"), 1, "finite gains"),
        (("--leaf", "1", "--offset", "inf"), 1, "finite gains"),
        (("--leaf", "1", "--do", "5"), 1, "from -2 to 2"),
        (("--leaf", "1", "--do", "1", "--offset", "1"), 1, "give one of the two"),
        (("--leaf", "1", "--gain", "speed"), 2, "write a name and its value"),
        (("--leaf", "1", "--gain", "speed=fast"), 2, "'fast' is not a number"),
        (("--leaf", "1", "--rule", "1", "--threshold", "0"), 2, "of a leaf (--leaf) or of a rule (--rule)"),
        (("--rule", "1"), 2, "--threshold"),
        (("--rule", "1", "--threshold", "0", "--lock"), 2, "are for leaves"),
        (("--leaf", "1", "--threshold", "0"), 2, "--threshold"),
        (("--leaf", "1"), 2, "--do, --lock"),
        ((), 2, "of a leaf (--leaf) or of a rule (--rule)"),
    ],
)
def test_what_cannot_be_is_said_and_nothing_is_written(
    words: tuple[str, ...], code: int, said: str, tmp_path: Path
) -> None:
    assert said in " ".join(command(tmp_path, *words, code=code).stderr.split())
    assert not (tmp_path / "edited.spaql").exists()


@pytest.fixture
def switching(tmp_path: Path) -> Path:
    """A controller that pushes right where the pole falls to the right, by a sum and by a switching law."""
    problem = make_problem("cartpole200")
    gain = np.array([np.zeros((2, 4)), [[0.0] * 4, [0.1, 0.3, 3.0, 1.0]]])
    scores = Laws(gain, np.array([[0.0, -np.inf], [0.05, 0.0]]))
    tree = spaql.Controller(
        feature=[4, -1, -1],
        threshold=[-0.4, 0, 0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=scores,
        observation_space=problem.states.space,
        action_space=problem.actions.space,
        observations=problem.states.names,
        actions=problem.actions.names,
        combinations=[[0.0, 0.0, 1.0, 0.5]],
    )
    spaql.Design(tree, problem).save(tmp_path / "switching.spaql")
    return tmp_path / "switching.spaql"


def invoke(*words: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


def test_scores_and_sums(switching: Path, tmp_path: Path) -> None:
    out = tmp_path / "edited.spaql"
    words = ("--out", out, "--episodes", "2")
    invoke("edit", switching, "--leaf", "2", "--gain", "push right:pole angle=5", "--lock", *words)
    shown = rules(out)
    assert shown[0].endswith(": 2 leaves; 8 parameters")
    where = "-0.4 <= pole angle [rad] + 0.5 * pole speed [rad/s]"
    law = (
        "push right if 0.1 * cart position [m] + 0.3 * cart speed [m/s] + 5.0 * pole angle [rad] "
        "+ pole speed [rad/s] > 0.05 else push left"
    )
    assert shown[2] == f"# locked: {where}: {law}"
    assert shown[-1] == f"    {law}  # leaf 2"
    invoke("edit", switching, "--rule", "1", "--threshold", "-0.5", *words)
    assert rules(out)[2] == "if pole angle [rad] + 0.5 * pole speed [rad/s] < -0.5:  # rule 1"
    said = invoke("edit", switching, "--leaf", "2", "--gain", "pole angle=5", *words, code=1)
    assert "say which of push left, push right" in said


def test_a_tree_with_sums_is_shown_as_data(switching: Path) -> None:
    data = json.loads(invoke("show", switching, "--json"))
    assert data["numbers"] == 8
    name = "pole angle [rad] + 0.5 * pole speed [rad/s]"
    assert data["rules"][0] == {"when": {name: [None, -0.4]}, "do": "push left"}
    at = json.loads(invoke("show", switching, "--at", "0,0,0,0", "--json"))
    assert at["conditions"] == [f"-0.4 <= {name}"]
    assert at["changes"][0]["action"] == "push right"
