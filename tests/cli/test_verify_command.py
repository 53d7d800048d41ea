"""`spaql verify`, run in process."""

import dataclasses
import html
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import spaql
from spaql.cli import main
from spaql.controllers import Controller


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("run") / "car.spaql"
    problem = spaql.make_problem("MountainCar-v0")
    tree = Controller(
        feature=[1, -1, -1],
        threshold=[0.0, 0, 0],
        left=[1, -1, -1],
        right=[2, -1, -1],
        leaf=[-1, 0, 1],
        laws=[0, 2],
        observation_space=problem.states.space,
        action_space=problem.actions.space,
    )
    spaql.Design(tree, problem).save(path)
    return str(path)


def command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["verify", *words])
    assert result.exit_code == code, result.output
    return result


def test_json_has_the_promised_names(run: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "map.svg"
    data = json.loads(command(run, "--seconds", "1", "--map", str(picture), "--json").stdout)
    assert data["proven"] > 0.9
    assert data["proven"] + data["refuted"] + data["undecided"] == pytest.approx(1.0)
    assert data["counterexample"] is None
    assert data["seconds"] < 10
    drawn = picture.read_text()
    assert "steps that suffice" in drawn
    assert "proven" in drawn


def test_a_statement_of_ones_own(run: str) -> None:
    words = ("--starts", "position=-1.2,0.6", "--termination", "goal", "--within", "20", "--seconds", "3")
    data = json.loads(command(run, *words, "--json").stdout)
    assert data["statement"] == "it terminates (the goal) within 20 steps"
    assert data["refuted"] > 0.5
    assert len(data["counterexample"]) == 2
    text = command(run, *words, "--quiet").stdout
    assert "Counterexample: from the state" in text


def test_a_certificate_is_written_and_checked(run: str, tmp_path: Path) -> None:
    file = tmp_path / "car.proof"
    words = ("--termination", "goal", "--within", "40", "--seconds", "0.5", "--certificate", str(file))
    assert f"Wrote {file}." in command(run, *words).stdout.replace("\n", "")
    checked = json.loads(command("--check", str(file), "--json").stdout)
    assert checked["holds"]
    assert checked["confirmed"] == checked["claimed"] > 0.05
    assert command(run, "--check", str(file)).stdout.strip().endswith("It is about this run.")


def test_a_verdict_without_anything_to_certify_is_printed(run: str, tmp_path: Path) -> None:
    file = tmp_path / "car.proof"
    words = ("--starts", "position=-1,-0.9", "--termination", "goal", "--within", "2", "--seconds", "0.5")
    said = command(run, *words, "--certificate", str(file), code=1).stdout
    assert "Counterexample: from the state" in said
    assert "No certificate is written." in said
    data = json.loads(command(run, *words, "--certificate", str(file), "--json", code=1).stdout)
    assert data["no_certificate"] in said
    assert data["files"] == []
    assert not file.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Give RUN, a run folder or model file, or --check FILE"),
        (("nowhere",), "nowhere does not exist"),
        (("RUN", "--target", "height=0,1"), "no state variable 'height'"),
        (("RUN", "--termination", "goal", "--target", "speed=0,0.1"), "not both"),
        (("RUN", "--noise", "1,2,3"), "--noise is"),
        (("RUN", "--seconds", "0"), "--seconds is 0"),
        (("--check", "RUN"), "not a certificate"),
    ],
)
def test_errors_are_sentences(run: str, words: tuple[str, ...], message: str) -> None:
    result = command(*(run if word == "RUN" else word for word in words), code=1)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_help() -> None:
    assert "Examples:" in command("--help").stdout


def test_train_refuses_to_verify_what_has_no_equations(tmp_path: Path) -> None:
    words = ["train", "MountainCar-v0", "--gymnasium", "--verify", "--out", str(tmp_path / "run")]
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 1
    assert "--verify needs the equations" in result.stderr
    assert not (tmp_path / "run").exists()


@pytest.mark.long  # it compiles what the training needs
def test_train_verifies_at_the_end(tmp_path: Path) -> None:
    words = [
        "train",
        "MountainCar-v0",
        "--algo",
        "spaql",
        "--iterations",
        "1",
        "--rollouts",
        "2",
        "--seed",
        "0",
    ]
    result = CliRunner().invoke(
        main, [*words, "--verify", "--quiet", "--json", "--out", str(tmp_path / "run")]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["verified"]
    assert found["proven"] + found["refuted"] + found["undecided"] == pytest.approx(1.0)


def drawn(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["draw", *words])
    assert result.exit_code == code, result.output
    return result


def test_the_counterexample_is_played_and_drawn(run: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    file = tmp_path / "copy.spaql"
    file.write_bytes(Path(run).read_bytes())
    picture = str(tmp_path / "fails.svg")
    missing = drawn(str(file), "counterexample", "--out", picture, code=1)
    assert "Nothing was verified" in missing.stderr
    found = json.loads(
        command(str(file), "--termination", "goal", "--within", "20", "--seconds", "1", "--json").stdout
    )
    drawn(str(file), "counterexample", "--out", picture)
    text = Path(picture).read_text()
    for word in ("a counterexample", "position", "speed", "action"):
        assert word in text
    from spaql.figures import compute_counterexample

    record = compute_counterexample(file, spaql.load(file))
    assert [panel.values[0] for panel in record.panels[:2]] == found["counterexample"]
    assert record.step == 20
    assert "it has not terminated in 20 steps" in record.note.replace("\n", " ")
    # The same episode in the environment, bit by bit.
    env = spaql.make_problem("MountainCar-v0").dynamics
    state = tuple(found["counterexample"])
    tree = spaql.load(file).policy
    for k in range(20):
        assert tuple(panel.values[k] for panel in record.panels[:2]) == state
        action = int(tree.act(np.array([state], np.float32))[0])
        assert record.panels[2].values[k] == action
        state, _, ended = env.step(state, action)
        assert not ended
    refused = drawn(str(file), "counterexample", "--episodes", "3", code=2)
    assert "counterexample takes --out: leave out --episodes" in refused.stderr
    command(str(file), "--seconds", "1")
    assert "No counterexample was found" in drawn(str(file), "counterexample", code=1).stderr


def test_the_card_shows_the_last_verdict_of_this_controller_only(run: str, tmp_path: Path) -> None:
    from spaql.plugins.page.card import policy_card
    from spaql.verify.stored import load_verdict

    file = tmp_path / "copy.spaql"
    file.write_bytes(Path(run).read_bytes())
    assert "What is proven" not in policy_card(file, spaql.load(file), episodes=2)
    command(str(file), "--seconds", "1")
    page = policy_card(file, spaql.load(file), episodes=2)
    assert "<h2>What is proven</h2>" in page
    assert "it terminates (the goal) within 1,000 steps." in page
    for line in load_verdict(tmp_path / "copy.verdict").text.split("\n"):
        assert html.escape(line) in page
    pytest.importorskip("matplotlib")
    assert "steps that suffice" in page
    source = spaql.load(file)
    moved = np.array(source.policy.threshold)
    moved[0] = 0.001
    spaql.Design(dataclasses.replace(source.policy, threshold=moved), source.problem).save(file)
    page = policy_card(file, spaql.load(file), episodes=2)
    assert "Proven from" not in page
    assert "was verified of another controller" in page
