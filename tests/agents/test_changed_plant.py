"""A run says when its plant is not the one that it was trained on, and in what it differs."""

import json
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


COMMANDS = """
import json, shlex, sys
from click.testing import CliRunner
from spaql.cli import main
results = [CliRunner().invoke(main, shlex.split(words)) for words in sys.argv[1:]]
print(json.dumps([[result.exit_code, result.output] for result in results]))
"""
"""Run commands in one process, and print their exit codes and what they print on both streams."""


def run(folder: Path, *words: str) -> str:
    """Return what a new process prints."""
    done = subprocess.run([sys.executable, "-B", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_commands(folder: Path, *commands: str, code: int = 0) -> list[str]:
    """Return what commands print in one new process, which imports the plant anew."""
    results = json.loads(run(folder, "-c", COMMANDS, *commands).splitlines()[-1])
    assert [exit_code for exit_code, _ in results] == [code] * len(commands), results
    return [output for _, output in results]


@pytest.mark.slow
def test_commands_say_in_what_a_plant_differs(tmp_path: Path) -> None:
    write(tmp_path)
    run(tmp_path, "-c", MAKE, EQUATIONS, "one.spaql")
    evaluate = "evaluate one.spaql --episodes 2"
    export = "export one.spaql --to python --out out --points 10"
    write(tmp_path, note="Begin somewhere.")  # a docstring is no part of a plant
    for output in run_commands(tmp_path, evaluate, export):
        assert "not the plant" not in output
    write(tmp_path, gain=0.9)
    said = "is not the plant that this was trained on: it differs in params.GAIN."
    evaluated, exported = run_commands(tmp_path, evaluate, export)
    assert evaluated.count(f"Warning: {EQUATIONS} {said}") == 1
    assert exported.count(f"Warning: {EQUATIONS} {said}") == 1
    write(tmp_path, noise=0.1)
    assert "it differs in declared noise." in run_commands(tmp_path, evaluate)[0]


@pytest.mark.slow
def test_a_run_is_not_resumed_on_another_plant(tmp_path: Path) -> None:
    write(tmp_path)
    train = f"train {EQUATIONS} --algo spaql --iterations 2 --seed 1 --rollouts 2 --out run --quiet"
    run_commands(tmp_path, train)
    write(tmp_path, gain=0.9)
    (shown,) = run_commands(tmp_path, f"{train} --resume", code=1)
    assert "run cannot be resumed" in shown
    assert "it differs in params.GAIN." in shown
