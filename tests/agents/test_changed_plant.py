"""A run says when its plant is not the one that it was trained on, and in what it differs."""

import subprocess
import sys
from pathlib import Path

import pytest

PARAMS = "GAIN = {gain}\n"
PLANT = '''
import spaql
import params

def start(rng):
    """{note}"""
    return (rng.uniform(-1.0, 1.0),)

def step(state, action):
    return (params.GAIN * state[0] + 0.1 * action[0],), -state[0] * state[0], False

spaql.Dynamics(id="test/Own-v0", start=start, step=step, horizon=10, noise={{"x": {noise}}},
               observations={{"x": (-5.0, 5.0)}}, actions={{"u": (-1.0, 1.0)}})
'''
MAKE = """
import sys, numpy as np, spaql
for env, file in zip(sys.argv[1::2], sys.argv[2::2]):
    problem = spaql.make_problem(env)
    spaces = problem.states.space, problem.actions.space
    tree = spaql.Controller(laws=[[0.25]], observation_space=spaces[0], action_space=spaces[1])
    spaql.Design(tree, problem).save(file)
"""
EQUATIONS = "own_plant:test/Own-v0"


def write(folder: Path, *, gain: float = 0.5, noise: float = 0.0, note: str = "Begin anywhere.") -> None:
    (folder / "params.py").write_text(PARAMS.format(gain=gain))
    (folder / "own_plant.py").write_text(PLANT.format(noise=noise, note=note))


def run(folder: Path, *words: str, code: int = 0) -> str:
    """Return what a new process prints on both streams."""
    done = subprocess.run([sys.executable, "-B", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_commands_say_in_what_a_plant_differs(tmp_path: Path) -> None:
    write(tmp_path)
    run(tmp_path, "-c", MAKE, EQUATIONS, "one.spaql")
    evaluate = ("-m", "spaql", "evaluate", "one.spaql", "--episodes", "2")
    export = ("-m", "spaql", "export", "one.spaql", "--to", "python", "--out", "out", "--points", "10")
    write(tmp_path, note="Begin somewhere.")  # a docstring is no part of a plant
    for command in (evaluate, export):
        assert "not the plant" not in run(tmp_path, *command)
    write(tmp_path, gain=0.9)
    said = "is not the plant that this was trained on: it differs in params.GAIN."
    assert run(tmp_path, *evaluate).count(f"Warning: {EQUATIONS} {said}") == 1
    assert run(tmp_path, *export).count(f"Warning: {EQUATIONS} {said}") == 1
    write(tmp_path, noise=0.1)
    assert "it differs in declared noise." in run(tmp_path, *evaluate)


@pytest.mark.slow
def test_a_run_is_not_resumed_on_another_plant(tmp_path: Path) -> None:
    write(tmp_path)
    words = ["-m", "spaql", "train", EQUATIONS, "--algo", "spaql", "--iterations", "2", "--seed", "1"]
    words += ["--rollouts", "2", "--out", "run", "--quiet"]
    run(tmp_path, *words)
    write(tmp_path, gain=0.9)
    shown = run(tmp_path, *words, "--resume", code=1)
    assert "run cannot be resumed" in shown
    assert "it differs in params.GAIN." in shown
