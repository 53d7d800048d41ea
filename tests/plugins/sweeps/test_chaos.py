"""A small version of `benchmarks/chaos.py`: sweeps that are killed, with a full disk too, or left alone."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

CHAOS = Path(__file__).parents[3] / "benchmarks" / "chaos.py"
WRONG = ("orphans", "lost", "duplicated", "different", "left over", "hangs", "repeated")


def report(*options: str) -> dict:
    done = subprocess.run([sys.executable, str(CHAOS), *options], capture_output=True, text=True, timeout=600)
    if "mount:" in done.stderr:
        pytest.skip("a container that may not mount")
    return json.loads(done.stdout)


@pytest.mark.parametrize(("kept", "steps"), [(0.0, 0.0), (0.5, 40.0), (13.0, 0.0), (13.0, 40.0)])
def test_what_is_kept_of_every_run_is_told_from_what_is_not(
    kept: float, steps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(CHAOS.parent)
    chaos = importlib.import_module("chaos")
    rng = np.random.default_rng(0)
    first = [(run, 1e5 + 500.0 * run) for run in range(100)]  # imports, and compiles
    later = [(run, 1.5e5 + kept * run + steps * rng.random()) for run in range(100, 800)]
    found, half = chaos.kept_a_run(first + later)
    assert abs(found - kept) <= max(half, 0.01)
    assert (found + half > chaos.KEPT_AT_MOST) == (kept > chaos.KEPT_AT_MOST)
    assert chaos.kept_a_run(first) is None


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_nothing_is_lost_when_drivers_and_workers_are_killed() -> None:
    found = report("--kills", "10", "--runs", "16")
    assert found["kills"] >= 10
    assert not any(found[name] for name in WRONG)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounts a small disk")
def test_sweeps_end_right_on_a_disk_that_fills_up() -> None:
    found = report("--kills", "10", "--runs", "16", "--disk", "24")
    assert not any(found[name] for name in WRONG)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_sweep_keeps_nothing_of_a_run() -> None:
    """So few runs cannot show that nothing is kept of them, only that something is."""
    alone = report("--kills", "0", "--steady-runs", "320")["left alone"]
    assert len(alone) >= 3
    assert all(one["kb_a_run"] - one["plus_minus"] < 4.0 for one in alone.values())
