"""What is compiled beforehand is what a training needs, and nothing is compiled twice."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import spaql
from spaql.kernels import cells, controllers, ends, games, plants, search, smallest
from spaql.kernels.jit import ENABLED
from spaql.kernels.warm_up import parts, warm_up

MODULES = (cells, controllers, ends, games, plants, search, smallest)
needs_jit = pytest.mark.skipif(not ENABLED, reason="nothing is compiled")


def dispatchers() -> dict[str, list]:
    """Kernels that Python has called, and the types for which each is compiled."""
    found = {}
    for module in MODULES:
        for name, value in vars(module).items():
            if hasattr(value, "signatures") and not isinstance(value, ModuleType) and value.signatures:
                found[f"{value.py_func.__module__}.{name}"] = list(value.signatures)
    return found


@needs_jit
@pytest.mark.parametrize("env", ["Pendulum-v1", "CartPole-v1"])
def test_a_training_needs_no_kernel_that_was_not_compiled_beforehand(env: str) -> None:
    for part in parts():
        for call in part.values():
            call()
    before = dispatchers()
    spaql.PlanTree(env, seed=0, effort=0.01).learn(total_timesteps=600, progress_bar=False)
    assert dispatchers() == before


@needs_jit
@pytest.mark.slow
def test_the_first_training_compiles_in_processes_and_the_next_one_not_at_all(tmp_path: Path) -> None:
    program = (
        "import sys, spaql\n"
        "from spaql.kernels.warm_up import is_warm, parts, warm_up\n"
        "if __name__ == '__main__':\n"
        "    assert is_warm() is (sys.argv[1] == 'warm')\n"
        "    seen = []\n"
        "    warm_up(lambda done, total: seen.append((done, total)))\n"
        "    total = sum(len(part) for part in parts())\n"
        "    cold = [(done, total) for done in range(total + 1)]\n"
        "    assert seen == ([] if sys.argv[1] == 'warm' else cold), seen\n"
        "    assert is_warm()\n"
    )
    for state in ("cold", "warm"):
        subprocess.run(
            [sys.executable, "-c", program, state],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            check=True,
            cwd=tmp_path,
        )


def test_what_cannot_be_compiled_beforehand_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[int, int]] = []
    monkeypatch.setattr(sys, "executable", "")
    warm_up(lambda done, total: called.append((done, total)))
    assert called == []
