"""The installed command, as a user runs it: a process of its own."""

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import sysconfig
import termios
from pathlib import Path

import pytest

import spaql

SPAQL = Path(sysconfig.get_path("scripts")) / "spaql"


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SPAQL, *words], cwd=cwd, capture_output=True, text=True, check=True)


def test_help_is_quick(tmp_path: Path) -> None:
    """It takes less than half a second of a processor, however busy the machine is."""
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert "readable controllers" in run("--help", cwd=tmp_path).stdout
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.5


def test_version_and_module(tmp_path: Path) -> None:
    assert spaql.__version__ in run("--version", cwd=tmp_path).stdout
    out = subprocess.run(
        [sys.executable, "-m", "spaql", "--version"], capture_output=True, text=True, check=True, cwd=tmp_path
    ).stdout
    assert spaql.__version__ in out


@pytest.mark.long
def test_fresh_processes_give_the_same_bytes(tmp_path: Path) -> None:
    """For each algorithm on CartPole and Pendulum: all files of the run folder are equal."""
    evaluated = ("--iterations", "3", "--rollouts", "3")
    sizes = dict.fromkeys(("aql", "spaql", "spaql-ts"), evaluated)
    sizes["plantree"] = ("--steps", "400", "--effort", "0.02")
    for algorithm, size in sizes.items():
        for env in ("cartpole200", "pendulum"):
            contents = set()
            for i in range(2):
                out = f"{algorithm}-{env}-{i}"
                words = ("train", env, "--algo", algorithm, *size)
                run(*words, "--seed", "7", "--out", out, "--quiet", cwd=tmp_path)
                contents.add(tuple(p.read_bytes() for p in sorted((tmp_path / out).iterdir())))
            assert len(contents) == 1, (algorithm, env)


def test_a_live_bar_on_a_terminal(tmp_path: Path) -> None:
    parent, child = pty.openpty()
    termios.tcsetwinsize(parent, (24, 80))
    words = [
        SPAQL,
        "train",
        "cartpole200",
        "--algo",
        "spaql",
        "--iterations",
        "30",
        "--rollouts",
        "3",
        "--out",
        "run",
    ]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=child)
    os.close(child)
    shown = b""
    while True:
        try:
            part = os.read(parent, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    os.close(parent)
    assert process.wait() == 0
    for word in (b"30/30 iterations", b"training", b"return", b"best", b"arms", b"temperature", b"steps/s"):
        assert word in shown


def test_an_interrupted_training_is_saved_and_can_go_on(tmp_path: Path) -> None:
    words = [
        SPAQL,
        "train",
        "cartpole200",
        "--algo",
        "spaql",
        "--iterations",
        "100000",
        "--seed",
        "3",
        "--out",
        "run",
        "--json",
    ]
    process = subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "iteration 0" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "continue with --resume" in err
    done = json.loads(out)["iteration"]
    resumed = spaql.load(tmp_path / "run").learn(iterations=5, progress_bar=False)
    whole = spaql.SPAQL("cartpole200", seed=3).learn(iterations=done + 5, progress_bar=False)
    assert resumed.history.to_csv() == whole.history.to_csv()


def _interrupted_plantree(tmp_path: Path) -> subprocess.Popen[str]:
    """Begin a training, press Ctrl-C after its first lines, and wait until it says that it has saved."""
    words = [SPAQL, "train", "cartpole200", "--steps", "100000", "--out", "run", "--json"]
    process = subprocess.Popen(
        [*words, "--effort", "0.02", "--seed", "0"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    assert "iteration 1" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    while "Evaluating it now: press Ctrl-C again to skip this." not in (line := process.stderr.readline()):
        assert line, "it ended without a word"
    return process


@pytest.mark.slow
def test_an_interrupted_plantree_counts_the_leaves_that_it_has(tmp_path: Path) -> None:
    process = _interrupted_plantree(tmp_path)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130, err
    agent = spaql.load(tmp_path / "run")
    assert json.loads(out)["leaves"] == agent.policy.n_leaves > 0
    assert "rules.feature" in agent._learner.state()[1], "what was judged is saved"


def test_a_second_interrupt_ends_at_once_and_loses_nothing(tmp_path: Path) -> None:
    process = _interrupted_plantree(tmp_path)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=300)
    assert process.returncode in (130, -signal.SIGINT)  # a shell calls both 130
    assert out == ""
    assert spaql.load(tmp_path / "run").iterations > 0
