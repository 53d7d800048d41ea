"""`spaql stress`, run in process."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import spaql
from spaql.cli import main
from spaql.evaluation import stress


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("run")
    agent = spaql.SPAQLTS("cartpole200", horizon=60, scaling=20, rollouts=5, seed=1)
    agent.learn(iterations=60, progress_bar=False)
    agent.save(folder / "policy.spaql")
    return str(folder)


def command(*words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["stress", *words])
    assert result.exit_code == code, result.output
    return result


def test_the_report_has_all_parts(run: str) -> None:
    text = command(run, "--episodes", "100", "--worst", "3", "--robustness").stdout
    assert " % of 100 starts (95 % interval" in text
    assert "pole speed" in text
    assert "[rad/s]" in text
    assert "one step late" in text
    assert "length × 1.2" in text
    short = command(run, "--episodes", "4").stdout
    assert "robustness" not in short
    assert "cart position [m] -1.2 to 1.2" in " ".join(short.split())


def test_json_says_what_the_function_does(run: str) -> None:
    words = (run, "--episodes", "90", "--worst", "4", "--json")
    data = json.loads(command(*words).stdout)
    result = stress(spaql.load(run), starts=90)
    assert data["starts"] == 90 == len(result.starts)
    assert data["success"]["share"] == result.share
    assert [row["return"] for row in data["worst"]] == sorted(result.returns)[:4]
    assert list(data["worst"][0]["start"].values()) == list(result.worst(1)[0].start)
    assert data["robustness"] == []
    assert json.loads(command(*words).stdout) == data


def test_a_region_and_a_threshold_of_ones_own(run: str) -> None:
    near = (run, "--episodes", "50", "--low", "-0.1,-0.1,-0.01,-0.1", "--high", "0.1,0.1,0.01,0.1")
    data = json.loads(command(*near, "--success", "3", "--json").stdout)
    assert data["success"] == {
        "means": "the return is at least 3", "share": 1.0, "low": pytest.approx(0.9286, abs=1e-4), "high": 1.0
    }  # fmt: skip
    starts = np.array([list(row["start"].values()) for row in data["worst"]])
    assert (np.abs(starts) <= (0.1, 0.1, 0.01, 0.1)).all()


def test_a_map(run: str, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / "maps" / "basin.svg"
    said = command(run, "--episodes", "100", "--map", str(path), "--axes", "0", "2").stdout
    assert f"Wrote {path}." in "".join(said.split("\n"))
    drawn = path.read_text()
    assert "cart position [m]" in drawn
    assert "of 100 starts succeed" in drawn
    assert "pole speed 0 rad/s" in drawn


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--low", "0,0,0,0"), "two bounds"),
        (("--low", "0,0", "--high", "1,1,1"), "--low has 2 components"),
        (("--low", "0,0", "--high", "1,1", "--episodes", "2"), "has 2 numbers, and must have 4"),
        (("--episodes", "0"), "--episodes is 0"),
        (("--episodes", "4", "--map", "basin.gif"), ".svg, .pdf or .png"),
        (("--episodes", "4", "--map", "basin.svg", "--axes", "0", "4"), "0 to 3: cart position"),
    ],
)
def test_errors_are_sentences(run: str, words: tuple[str, ...], message: str) -> None:
    result = command(run, *words, code=1)
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_help() -> None:
    assert "Examples:" in command("--help").stdout


ROLLER = '''
import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete


class Roller(gymnasium.Env):
    """Kept in no attribute that a stress test could set."""

    def __init__(self, friction=0.5):
        self.observation_space, self.action_space = Box(-9.0, 9.0, (2,)), Discrete(2)
        self.friction, self.mass = friction, 2.0
        self.gain = 1.0 / self.mass

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._z = self.np_random.uniform(-1.0, 1.0, 2)
        return self._z.astype(np.float32), {}

    def step(self, action):
        x, v = self._z
        v += 0.1 * ((2 * int(action) - 1) * self.gain - self.friction * v)
        self._z = np.clip([x + 0.1 * v, v], -9, 9)
        return self._z.astype(np.float32), -float(x * x), False, False, {}


gymnasium.register("Roller-v0", Roller, max_episode_steps=30)
'''


@pytest.fixture
def roller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run in an environment of which nothing is known but that it is Gymnasium's."""
    (tmp_path / "roller_env.py").write_text(ROLLER)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    words = [
        "train",
        "roller_env:Roller-v0",
        "--algo",
        "spaql",
        "--iterations",
        "3",
        "--rollouts",
        "2",
        "--quiet",
    ]
    result = CliRunner().invoke(main, [*words, "--out", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    return str(tmp_path / "run")


def test_robustness_needs_no_starts(roller: str) -> None:
    said = " ".join(command(roller, "--robustness").stdout.split())
    for row in ("nominal", "noise 5 %", "actions 5 % off", "one step late"):
        assert row in said
    assert "starts not tested. The region of starts of roller_env:Roller-v0 is not known: give --low" in said
    assert (
        "No parameter of roller_env:Roller-v0 was varied: --vary NAME=VALUE,... takes friction, gain, mass."
        in said
    )
    data = json.loads(
        command(roller, "--robustness", "--vary", "friction=0.1,2", "--vary", "gain=4", "--json").stdout
    )
    assert data["starts"] is None
    assert [row["change"] for row in data["robustness"]][:4] == [
        "nominal", "friction = 0.1", "friction = 2", "gain = 4"
    ]  # fmt: skip
    differences = [row["difference"] for row in data["robustness"][1:4]]
    assert 0.0 not in differences
    assert len(set(differences)) == 3
    assert "The region of starts of" in command(roller, code=1).stderr
    assert "The region of starts of" in command(roller, "--robustness", "--success", "1", code=1).stderr


def test_what_is_varied_takes_the_place_of_what_is_known(run: str) -> None:
    data = json.loads(
        command(run, "--episodes", "4", "--robustness", "--vary", "length=0.3,0.7", "--json").stdout
    )
    assert data["starts"] == 4
    assert [row["change"] for row in data["robustness"]] == [
        "nominal", "length = 0.3", "length = 0.7", "noise 1 %", "noise 5 %", "actions 5 % off",
        "one step late",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--vary", "length=0.3"), "for --robustness: give that as well"),
        (("--robustness", "--vary", "lengthx=0.3"), "did you mean length?"),
        (("--robustness", "--vary", "length"), "such as length=0.3,0.7"),
        (("--robustness", "--vary", "length=nan"), "finite number, such as 0.5"),
    ],
)
def test_what_cannot_be_varied_is_said(run: str, words: tuple[str, ...], message: str) -> None:
    result = CliRunner().invoke(main, ["stress", run, "--episodes", "2", *words])
    assert result.exit_code > 0
    assert message in " ".join(result.stderr.split())
