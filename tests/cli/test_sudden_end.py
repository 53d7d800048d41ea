"""An environment that crashes, or ends the process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spaql.workers import Workers

ENVIRONMENT = """
import ctypes, os
import gymnasium, numpy as np

class Plant(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        match os.environ.get("ENDS_BY"):
            case "a crash":
                ctypes.string_at(0)
            case "an exit":
                os._exit(3)
        return np.zeros(1, np.float32), 0.0, False, False, {}

gymnasium.register("Plant-v0", Plant, max_episode_steps=5)
"""
TRAIN = ("train", "plant:Plant-v0", "--algo", "spaql", "--steps", "10", "--seed", "1")
STUDY = 'problems = ["plant:Plant-v0"]\nalgorithms = ["spaql"]\nseeds = 1\niterations = 1\nrollouts = 1\n'
HOW = {"a crash": "SIGSEGV, Segmentation fault", "an exit": "exit code 3"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plant.py").write_text(ENVIRONMENT, encoding="utf-8")
    return tmp_path


def run(folder: Path, *words: str, ends_by: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spaql", *words],
        cwd=folder,
        env={**os.environ, "ENDS_BY": ends_by},
        capture_output=True,
        text=True,
        timeout=300,
    )


needs_signals = pytest.mark.skipif(os.name != "posix", reason="processes end otherwise on this system")


@pytest.mark.slow
@needs_signals
def test_a_crash_in_the_process_of_the_command_shows_its_line(folder: Path) -> None:
    done = run(folder, "check", "plant:Plant-v0", ends_by="a crash")
    assert done.returncode == -signal.SIGSEGV
    assert 'plant.py", line 16 in step' in done.stderr


@pytest.mark.slow
@needs_signals
@pytest.mark.parametrize("ends_by", HOW)
def test_in_a_process_of_its_own(folder: Path, ends_by: str) -> None:
    done = run(folder, *TRAIN, "--parallel", "--out", "run", ends_by=ends_by)
    assert done.returncode == 1
    said = f"plant:Plant-v0 ended its process ({HOW[ends_by]}): the cause"
    assert said in done.stderr
    assert "Aborted" not in done.stderr
    assert "EOFError" not in done.stderr


@pytest.mark.long
@needs_signals
def test_in_a_worker(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    done = run(folder, "study", "run", "study.toml", "--workers", "1", "--out", "study", ends_by="a crash")
    assert done.returncode == 1
    assert "The worker process died (SIGSEGV, Segmentation fault): code that it ran" in done.stdout
    assert "Aborted" not in done.stderr


@pytest.mark.slow
@needs_signals
def test_workers_say_how_their_process_ended() -> None:
    workers = Workers(1)
    answers = list(workers.map(os._exit, iter([7])))
    workers.close()
    assert [answer.died for answer in answers] == [True]
    assert answers[0].error is not None
    assert "(exit code 7)" in answers[0].error
