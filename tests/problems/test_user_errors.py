"""A mistake in a user's own plant is told by its file, line and function, and by what to write instead."""

import importlib
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path

import gymnasium
import pytest
from click.testing import CliRunner

from spaql import SPAQL, MissingExtraError, SettingError, SpaqlError, make_problem
from spaql.cli import main
from spaql.kernels.jit import ENABLED

PLANT = """\
import math
import numba
import spaql

GAIN = 0.1
UNITS = {{'u': 1.0}}


def start(rng):
    return (rng.uniform(-1.0, 1.0),)


def step(state, action):
    x = state[0] + GAIN * action[0]
    return (x,), -math.sqrt(x * x), False


spaql.Dynamics(
    id="{id}",
    start=start,
    step=step,
    observations={{"x": (-5, 5)}},
    actions={{"u": (-1, 1)}},
    horizon=9,
)
"""
NUMBERS = itertools.count()
Write = Callable[..., str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write a plant with a mistake; gives the name of its module, which is also that of its id."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    def written(right: str = "", wrong: str = "") -> str:
        name = f"mistaken{next(NUMBERS)}"
        assert right in PLANT
        text = PLANT.format(id=f"{name}-v0").replace(right, wrong)
        (tmp_path / f"{name}.py").write_text(text)
        importlib.invalidate_caches()
        return name

    return written


def refusal(env: str) -> str:
    with pytest.raises(SpaqlError) as caught:
        make_problem(env)
    return str(caught.value)


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        (
            "math.sqrt",
            "math.sqroot",
            "line 15, in step: AttributeError: module 'math' has no attribute 'sqroot'",
        ),
        ("GAIN *", "GIAN *", "line 14, in step: NameError: name 'GIAN' is not defined"),
        ("GAIN *", "1 / 0 *", "line 14, in step: ZeroDivisionError: division by zero"),
        ("(x * x)", "(-9.0)", "line 15, in step: ValueError: math domain error"),
        ("import numba", "import nunba", "line 2: ModuleNotFoundError: No module named 'nunba'"),
        ("(state, action)", "(state, action", "line 13: SyntaxError: '(' was never closed"),
        (
            "horizon=9",
            "horizonn=9",
            "line 18: TypeError: Dynamics.__init__() got an unexpected keyword argument 'horizonn'",
        ),
    ],
)
def test_a_mistake_is_told_by_its_place(right: str, wrong: str, told: str, write: Write) -> None:
    name = write(right, wrong)
    assert refusal(f"{name}:{name}-v0") == f"{name}.py, {told}"


@pytest.mark.skipif(not ENABLED, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("UNITS['u']", "Untyped global name 'UNITS'"),
        ("float(repr(GAIN)[:3])", "No implementation of function|Failed"),
    ],
)
def test_what_numba_cannot_compile_is_one_line(wrong: str, told: str, write: Write) -> None:
    name = write("GAIN * action", f"{wrong} * action")
    plant = make_problem(f"{name}:{name}-v0").dynamics
    with pytest.raises(SettingError) as caught:
        _ = plant.plant
    assert re.fullmatch(rf"{name}.py, line 14: Numba cannot compile it. ({told}).*", str(caught.value))
    report = CliRunner().invoke(main, ["check", f"{name}:{name}-v0"])
    assert report.output.count("Numba cannot compile it") == 1
    assert "1 failed" in report.output


def test_the_place_of_an_error_while_it_learns_and_the_next_step(write: Write, tmp_path: Path) -> None:
    name = write()
    Path(f"{name}.py").write_text(ENVIRONMENT.format(id=f"{name}-v0"))
    done = CliRunner().invoke(main, ["train", f"{name}:{name}-v0", "--quiet", "--out", str(tmp_path / "run")])
    assert done.exit_code == 1
    told = (
        f"At step 3 of a training episode, {name}:{name}-v0 raised ZeroDivisionError: the valve is stuck "
        f"({name}.py, line 17, in step). Try `spaql check {name}:{name}-v0`."
    )
    assert done.stderr == f"Error: {told}\n"


ENVIRONMENT = """\
import gymnasium
import numpy as np


class Valve(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(1, np.float32), {{}}

    def step(self, action):
        self.steps += 1
        if self.steps == 3:
            raise ZeroDivisionError("the valve is stuck")
        return np.zeros(1, np.float32), 0.0, False, False, {{}}


gymnasium.register("{id}", entry_point=Valve, max_episode_steps=9)
"""


def test_what_was_probably_meant(write: Write) -> None:
    name = write()
    for file in (f"./{name}.py", f"{name}.py", f"plants/{name}"):
        assert f"Write {name}:X-v0, in the folder of {name}" in refusal(f"{file}:X-v0")
    assert f"did you mean {name}:{name}-v0?" in refusal(f"{name}-v0")
    assert refusal(f"{name}:Z-v0").endswith(
        f"{name} registers no Z-v0: make spaql.Dynamics of this id in it, or gymnasium.register it."
    )
    assert f"did you mean {name}:{name}-v0?" in refusal(f"{name}:{name}a-v0")
    assert "Run this in the folder of nowhere.py" in refusal("nowhere:X-v0")


def test_an_extra_of_gymnasium_is_one_of_spaql() -> None:
    def missing(*args: object, **kwargs: object) -> None:
        raise gymnasium.error.DependencyNotInstalled('run `pip install "gymnasium[box2d]"`')

    gymnasium.register("test/Lander-v0", entry_point=missing)
    with pytest.raises(MissingExtraError, match=r"pip install 'spaql\[box2d\]'"):
        make_problem("test/Lander-v0")


def test_a_tree_is_drawn_without_its_plant(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    name = write()
    Path(f"{name}.py").write_text(ENVIRONMENT.format(id=f"{name}-v0"))
    SPAQL(f"{name}:{name}-v0", seed=0).save(tmp_path / "agent.spaql")
    Path(f"{name}.py").unlink()
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(gymnasium.registry, f"{name}-v0")
    done = CliRunner().invoke(main, ["draw", "agent.spaql", "tree", "--out", "tree.svg"])
    assert done.exit_code == 0, done.output
    assert Path("tree.svg").exists()
