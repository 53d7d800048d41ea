"""The commands that reproduce the paper's long runs, in small."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "reproduction.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("problem", "algorithm", "low", "high"),
    [
        ("cartpole200", "spaql-ts", 150, 200),
        ("cartpole200", "aql", 8, 60),
        ("pendulum", "spaql", -1150, -300),
        ("pendulum5", "spaql-ts", -1150, -200),
    ],
)
def test_a_small_study(problem: str, algorithm: str, low: float, high: float) -> None:
    words = [problem, algorithm, "--seeds", "3", "--iterations", "200", "--workers", "1", "--json"]
    run = subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=True)
    result = json.loads(run.stdout)
    assert low < result["fresh"][0] < high
    assert result["best"][0] >= result["last"][0]
    assert result["arms"][0] > 100
