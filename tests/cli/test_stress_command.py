"""`spaql stress`, run in process."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import spaql
from spaql.cli import main
from spaql.training import stress


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("run")
    agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=5, seed=1)
    agent.learn(iterations=60, progress_bar=False)
    agent.save(folder / "policy.spaql")
    return str(folder)


def command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["stress", *words])
    assert result.exit_code == code, result.output
    return result


def test_the_report_has_all_parts(run: str) -> None:
    text = command(run, "--starts", "100", "--worst", "3", "--robustness").stdout
    assert " % of 100 starts (95 % interval" in text
    assert "pole speed" in text
    assert "[rad/s]" in text
    assert "settling time" in text
    assert "pole angle at 0 ± 0.05 rad" in text
    assert "one step late" in text
    assert "length × 1.2" in text
    short = command(run, "--starts", "4").stdout
    assert "robustness" not in short
    assert "cart position [m] -1.2 to 1.2" in " ".join(short.split())
    for word in ("effort", "switches", "chattering"):
        assert f"{word}: " in short


def test_json_says_what_the_function_does(run: str) -> None:
    words = (run, "--starts", "90", "--sampling", "grid", "--worst", "4", "--json")
    data = json.loads(command(*words).stdout)
    result = stress(spaql.load(run), starts=90, sampling="grid")
    assert data["starts"] == 81 == len(result.starts)
    assert data["success"]["share"] == result.share
    assert [row["return"] for row in data["worst"]] == sorted(result.returns)[:4]
    assert list(data["worst"][0]["start"].values()) == list(result.worst(1)[0].start)
    assert data["measures"]["switches"]["unit"] == "1/s"
    assert data["robustness"] == []
    assert json.loads(command(*words).stdout) == data


def test_a_row_for_every_start(run: str, tmp_path: Path) -> None:
    path = tmp_path / "starts.csv"
    command(run, "--starts", "20", "--seed", "3", "--csv", str(path))
    with path.open() as file:
        rows = list(csv.DictReader(file))
    result = stress(spaql.load(run), starts=20, seed=3)
    assert [float(row["return"]) for row in rows] == result.returns.tolist()
    assert [float(row["pole angle [rad]"]) for row in rows] == result.starts[:, 2].tolist()
    assert [row["success"] == "1" for row in rows] == result.success.tolist()


def test_a_region_and_a_threshold_of_ones_own(run: str) -> None:
    near = (run, "--starts", "50", "--low", "-0.1,-0.1,-0.01,-0.1", "--high", "0.1,0.1,0.01,0.1")
    data = json.loads(command(*near, "--threshold", "3", "--json").stdout)
    assert data["success"] == {
        "means": "the return is at least 3", "share": 1.0, "low": pytest.approx(0.9286, abs=1e-4), "high": 1.0
    }  # fmt: skip
    starts = np.array([list(row["start"].values()) for row in data["worst"]])
    assert (np.abs(starts) <= (0.1, 0.1, 0.01, 0.1)).all()


def test_a_map(run: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "maps" / "basin.svg"
    said = command(run, "--starts", "100", "--map", str(path), "--axes", "0", "2").stdout
    assert f"Wrote {path}." in "".join(said.split("\n"))
    drawn = path.read_text()
    assert "cart position [m]" in drawn
    assert "of 100 starts succeed" in drawn
    assert "pole speed 0 rad/s" in drawn


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--low", "0,0,0,0"), "two ends"),
        (("--low", "0,0", "--high", "1,1,1"), "--low has 2 numbers"),
        (("--low", "0,0", "--high", "1,1", "--starts", "2"), "has 4 numbers, and a start with 2"),
        (("--starts", "0"), "starts is 0"),
        (("--starts", "4", "--map", "basin.gif"), ".svg, .pdf or .png"),
        (("--starts", "4", "--map", "basin.svg", "--axes", "0", "4"), "0 to 3: cart position"),
    ],
)
def test_errors_are_sentences(run: str, words: tuple[str, ...], message: str) -> None:
    result = command(run, *words, code=1)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_help() -> None:
    assert "Examples:" in command("--help").stdout
