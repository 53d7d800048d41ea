"""Plants of `benchmarks/easy.py`: no seed is lost on what a plain law does."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import easy


@pytest.mark.filterwarnings("ignore:In training")
@pytest.mark.parametrize("name", ["cruise", "shower", "servo", "stock"])
def test_no_seed_is_lost(name: str) -> None:
    problem = easy.problem_of(name, 1.0)
    _, law = easy.references(name, 1.0)
    for seed in (0, 1):
        policy, taken = easy.trained("TreeSearch", problem.dynamics, 20_000, seed)
        assert taken <= 23_000
        assert easy.mean_return(policy, problem, easy.EPISODES, 5) >= law - 0.1 * abs(law)


@pytest.mark.filterwarnings("ignore:In training")
@pytest.mark.parametrize("name", ["room", "stock"])
def test_plantree_needs_few_steps(name: str) -> None:
    problem = easy.problem_of(name, 1.0)
    _, law = easy.references(name, 1.0)
    for seed in (0, 1):
        policy, taken = easy.trained("PlanTree", problem.dynamics, 5_000, seed)
        assert taken <= 5_200
        assert easy.mean_return(policy, problem, easy.EPISODES, 5) >= law - 0.1 * abs(law)
