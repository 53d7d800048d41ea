"""A small version of `benchmarks/soak.py`: sweeps on a disk that fills up, while processes are killed."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.parametrize(("kept", "steps"), [(0.0, 0.0), (0.5, 40.0), (13.0, 0.0), (13.0, 40.0)])
def test_what_is_kept_of_every_run_is_told_from_what_is_not(
    kept: float, steps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(SOAK.parent)
    memory = importlib.import_module("memory")
    rng = np.random.default_rng(0)
    first = [(run, 1e5 + 500.0 * run) for run in range(100)]  # imports, and compiles
    later = [(run, 1.5e5 + kept * run + steps * rng.random()) for run in range(100, 800)]
    found, half = memory.kept_a_run(first + later)
    assert abs(found - kept) <= max(half, 0.01)
    assert (found + half > memory.KEPT_AT_MOST) == (kept > memory.KEPT_AT_MOST)
    assert memory.kept_a_run(first) is None


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small disk")
def test_sweeps_end_right_whatever_happens_to_them() -> None:
    command = [sys.executable, str(SOAK), "--minutes", "0.2", "--runs", "16", "--steady-runs", "320"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if "mount:" in done.stderr:
        pytest.skip("a container that may not mount")
    report = json.loads(done.stdout)
    assert report["studies"] >= 1
    wrong = ("orphans", "lost", "duplicated", "different", "left_over", "hangs")
    assert not any(report[name] for name in wrong), done.stdout + done.stderr
    # So few runs cannot show that nothing is kept of them, only that something is.
    found = [one for one in report["left_alone"].values() if isinstance(one, dict)]
    assert found
    assert all(one["kb_a_run"] - one["plus_minus"] < 4.0 for one in found), done.stdout
