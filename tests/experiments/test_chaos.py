"""A small version of `benchmarks/chaos.py`, which kills sweeps at random moments."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

CHAOS = Path(__file__).parents[2] / "benchmarks" / "chaos.py"


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_is_lost_when_drivers_and_workers_are_killed() -> None:
    command = [sys.executable, str(CHAOS), "--drivers", "2", "--workers", "2", "--storm", "4"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["driver"]["kills"] == report["worker"]["kills"] == 2
    assert report["storm"]["kills"] >= 4
