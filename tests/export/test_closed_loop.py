"""The example of a closed loop in C, run as a user does; and a small version of `benchmarks/export.py`."""

import subprocess
import sys
from pathlib import Path

import pytest

from export_forms import FORMS

ROOT = Path(__file__).parents[2]


def output(*words: str) -> str:
    command = [sys.executable, *words]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.long
def test_ten_minutes_in_c_are_ten_minutes_in_python() -> None:
    assert output("examples/closed_loop_c/closed_loop.py").count("12,000 equal steps, upright since") == 4


def test_the_benchmark_of_equality() -> None:
    shown = output("benchmarks/export.py", "equality", "--trees", "2", "--points", "500")
    assert shown.count(" 0 trees with a difference") == len(FORMS)


def test_the_benchmark_of_mutation() -> None:
    shown = output("benchmarks/export.py", "mutation", "--mutants", "2", "--leaves", "12")
    assert shown.count("2 of 2 changes found") == len(FORMS)
