"""Hashes at the head of exported code: another controller or plant is found, and only that."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
import spaql.export
from spaql.cli import main


def plant(gain: float) -> spaql.Problem:
    def start(rng):
        return (rng.uniform(-1.0, 1.0),)

    def step(state, action):
        x = state[0] + gain * action[0]
        return (x,), -x * x, False

    ends = {"observations": {"x": (-5.0, 5.0)}, "actions": {"u": (-1.0, 1.0)}}
    return spaql.make_problem(spaql.Dynamics(id="test/Hashed-v0", start=start, step=step, horizon=10, **ends))


def saved(path: Path, gain: float = 0.5, action: float = 0.25) -> spaql.Design:
    """Save a controller that always does the same."""
    problem = plant(gain)
    tree = spaql.Controller(
        laws=[[action]], observation_space=problem.states.space, action_space=problem.actions.space
    )
    controller = spaql.Design(tree, problem)
    controller.save(path)
    return controller


def check(run: Path, file: Path) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["export", str(run), "--check", str(file)])
    return done.exit_code, done.output.removeprefix(f"{file} ").strip()


def test_another_controller_or_plant_is_found(tmp_path: Path) -> None:
    one = tmp_path / "one.spaql"
    file = tmp_path / "controller.py"
    spaql.export.python(saved(one), file, points=10, provenance=["program sha256 " + 64 * "0"])
    assert check(one, file) == (0, "belongs to this run: the same program and plant.")
    written = spaql.export.targets.hashes_of(spaql.controller_of(one), plant(0.5))
    head = file.read_text()[:600]
    assert f"spaql {spaql.__version__}" in head
    assert all(f"{name} sha256 {digest}" in head for name, digest in written.items())
    texts = {name: f"the hash of its {name} is {digest[:16]}" for name, digest in written.items()}
    saved(tmp_path / "other.spaql", action=0.25000001)
    assert check(tmp_path / "other.spaql", file) == (1, f"does NOT belong to this run: {texts['program']}.")
    saved(tmp_path / "other.spaql", gain=0.50000001)
    assert check(tmp_path / "other.spaql", file) == (1, f"does NOT belong to this run: {texts['plant']}.")
    saved(tmp_path / "other.spaql", gain=0.6, action=0.6)
    both = ", and ".join(texts.values())
    assert check(tmp_path / "other.spaql", file) == (1, f"does NOT belong to this run: {both}.")


def test_a_file_without_a_hash_is_not_of_the_run(tmp_path: Path) -> None:
    controller = saved(tmp_path / "one.spaql")
    file = tmp_path / "controller.py"
    spaql.export.python(spaql.controller_of(controller), file, points=10)  # alone it knows no plant
    assert check(tmp_path / "one.spaql", file) == (
        1,
        "does NOT belong to this run: it has no hash of a plant.",
    )
    file.write_text("def act(observation): ...\n")
    assert check(tmp_path / "one.spaql", file) == (1, "does NOT belong to this run: it has no hashes.")
    code, said = check(tmp_path / "one.spaql", tmp_path / "missing.py")
    assert code == 1
    assert "missing.py cannot be read: No such file" in said


PLANT = """
import spaql

def start(rng):
    return (rng.uniform(-1.0, 1.0),)

def step(state, action):
    return (state[0] + 0.5 * action[0],), -state[0] * state[0], False

spaql.Dynamics(id="test/Own-v0", start=start, step=step, horizon=10, observations={"x": (-5.0, 5.0)},
               actions={"u": (-1.0, 1.0)})
"""
MAKE = """
import spaql
problem = spaql.make_problem("own_plant:test/Own-v0")
spaces = {"observation_space": problem.states.space, "action_space": problem.actions.space}
tree = spaql.Controller(laws=[[0.25]], **spaces)
spaql.Design(tree, problem).save("one.spaql")
"""


@pytest.mark.long
def test_changed_equations_of_a_module_are_found(tmp_path: Path) -> None:
    """In processes of their own, which import it."""
    (tmp_path / "own_plant.py").write_text(PLANT)

    def run(*words: str) -> str:
        return subprocess.run([sys.executable, *words], cwd=tmp_path, capture_output=True, text=True).stdout

    run("-c", MAKE)
    run("-m", "spaql", "export", "one.spaql", "--to", "python", "--out", "out", "--points", "10")
    check = ["-m", "spaql", "export", "one.spaql", "--check", "out/controller.py", "--json"]
    assert json.loads(run(*check))["of_run"]
    (tmp_path / "own_plant.py").write_text(PLANT.replace("0.5 *", "0.6 *"))
    assert not json.loads(run(*check))["of_run"]
