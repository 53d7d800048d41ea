"""Numba's cache must see an edit in a kernel that another file's kernel calls."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import pytest

import spaql.kernels
from spaql.kernels.linking import IS_TESTED, TESTED

PACKAGE = Path(spaql.kernels.__file__).parent.parent


def bonus_in_a_fresh_process(root: Path) -> float:
    code = (
        "import numpy as np\n"
        "from spaql.partition import Partition\n"
        "from spaql.kernels.partition.equations import update\n"
        "p = Partition(1, [2], q=0.0)\n"
        "update(p.balls, 0, 0.0, 0.0, 1, 4.0)\n"  # `update` calls `bonus`
        "print(p.balls.q[0])\n"
    )
    env = dict(os.environ, PYTHONPATH=str(root), PYTHONDONTWRITEBYTECODE="")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    return float(result.stdout)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_an_edit_in_a_callee_of_another_module_is_seen(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "spaql", ignore=shutil.ignore_patterns("__pycache__"))
    rules = tmp_path / "spaql" / "kernels" / "partition" / "equations.py"
    source = rules.read_text()
    moved = tmp_path / "spaql" / "kernels" / "moved.py"
    moved.write_text(
        "import math\nfrom spaql.kernels.jit import njit\n\n"
        "@njit\ndef bonus(visits, scaling):\n    return scaling / math.sqrt(visits)\n"
    )
    rules.write_text(
        source.replace("def bonus(", "def _unused(").replace(
            "from spaql.kernels.jit import njit",
            "from spaql.kernels.jit import njit\nfrom spaql.kernels.moved import bonus",
        )
    )
    assert bonus_in_a_fresh_process(tmp_path) == 4.0
    assert bonus_in_a_fresh_process(tmp_path) == 4.0  # from the cache
    moved.write_text(moved.read_text().replace("scaling /", "10 * scaling /"))
    assert bonus_in_a_fresh_process(tmp_path) == 40.0


def test_the_private_parts_of_this_numba_were_tested() -> None:
    assert IS_TESTED, (
        f"Numba {numba.__version__}: run the tests, and add it to `TESTED` in linking.py: {TESTED}"
    )


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_numba_that_was_not_tested_compiles_kernels_in_its_own_way(tmp_path: Path) -> None:
    shutil.copytree(PACKAGE, tmp_path / "spaql", ignore=shutil.ignore_patterns("__pycache__"))
    linking = tmp_path / "spaql" / "kernels" / "linking.py"
    linking.write_text(linking.read_text().replace("TESTED = (", "TESTED = () and ("))
    assert bonus_in_a_fresh_process(tmp_path) == 4.0
    assert bonus_in_a_fresh_process(tmp_path) == 4.0  # from the cache


TRAIN = """
import sys
import spaql
for env in sys.argv[1:]:
    agent = spaql.SPAQL(env, seed=0, rollouts=2)
    agent.learn(iterations=4, progress_bar=False)
    print(env, agent.history["mean_return"].tolist())
"""


@pytest.mark.long
def test_loops_compiled_in_different_processes_do_not_mix(tmp_path: Path) -> None:
    def start(cache: str, *envs: str) -> "subprocess.Popen[str]":
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / cache)}
        command = [sys.executable, "-c", TRAIN, *envs]
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)

    # Each process counts its functions from zero, and the linker knows cached code by name alone.
    envs = ["CartPole-v1", "Pendulum-v1"]
    apart = [start(env, env) for env in envs]
    expected = "".join(process.communicate()[0] for process in apart)
    for env in envs:
        shutil.copytree(tmp_path / env, tmp_path / "merged", dirs_exist_ok=True)
    together = start("merged", *envs).communicate()[0]
    assert together == expected
    assert len(together.splitlines()) == 2
