"""A small version of `benchmarks/soak.py`: sweeps on a disk that fills up, while processes are killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[2] / "benchmarks" / "soak.py"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small disk")
def test_sweeps_end_right_whatever_happens_to_them() -> None:
    command = [sys.executable, str(SOAK), "--minutes", "0.5", "--runs", "16"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if "mount:" in done.stderr:
        pytest.skip("a container that may not mount")
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["studies"] >= 1
