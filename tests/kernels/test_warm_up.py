"""What is compiled beforehand is what a training needs, and nothing is compiled twice."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import spaql
from spaql.kernels.jit import ENABLED
from spaql.kernels.plantree import controllers
from spaql.kernels.plantree import local_search as search
from spaql.kernels.plantree import pwa_model as plants
from spaql.kernels.plantree import rollout as games
from spaql.kernels.plantree import termination as ends
from spaql.kernels.plantree import value_cells as cells
from spaql.kernels.trees import optimal_tree as smallest
from spaql.kernels.warm_up import _parts, for_training, kernels, warm_up

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
@pytest.mark.parametrize(("env", "listed"), [("Pendulum-v1", False), ("CartPole-v1", True)])
def test_a_training_needs_no_kernel_that_was_not_compiled_beforehand(env: str, listed: bool) -> None:
    for part in _parts():
        for name, call in part.items():
            if listed or name in for_training(listed=False):
                call()
    before = dispatchers()
    spaql.PlanTree(env, seed=0, effort=0.01).learn(total_timesteps=600, progress_bar=False)
    assert dispatchers() == before


@pytest.mark.long
@needs_jit
def test_the_first_training_compiles_in_processes_and_the_next_one_not_at_all(tmp_path: Path) -> None:
    program = (
        "import sys, spaql\n"
        "from spaql.kernels.warm_up import are_warm, for_training, kernels, warm_up\n"
        "if __name__ == '__main__':\n"
        "    names = for_training(listed=False) if sys.argv[1] == 'cold' else kernels()\n"
        "    assert are_warm(names) is (sys.argv[1] == 'warm')\n"
        "    seen = []\n"
        "    warm_up(names, lambda done, total: seen.append((done, total)))\n"
        "    left = {'cold': len(names), 'half': len(names) - len(for_training(listed=False)), 'warm': 0}\n"
        "    total = left[sys.argv[1]]\n"
        "    assert seen == [(done, total) for done in range(total + 1)][:None if total else 0], seen\n"
        "    assert are_warm(names)\n"
    )
    for state in ("cold", "half", "warm"):
        subprocess.run(
            [sys.executable, "-c", program, state],
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            check=True,
            cwd=tmp_path,
        )


def test_what_cannot_be_compiled_beforehand_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[int, int]] = []
    monkeypatch.setattr(sys, "executable", "")
    warm_up(kernels(), lambda done, total: called.append((done, total)))
    assert called == []
