"""A small version of `benchmarks/faults.py`, which lets calls that change files fail, one after the other."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[3] / "benchmarks" / "faults.py"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux" or shutil.which("cc") is None, reason="preloads a library")
def test_a_fault_at_any_call_loses_nothing() -> None:
    done = subprocess.run(
        [sys.executable, str(FAULTS), "--every", "11"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert set(report) == {"save over a model", "train with checkpoints", "execute runs in a store"}
    assert all(part["points"] >= 7 and part["trials"] >= 4 and not part["losses"] for part in report.values())
