"""A small version of `benchmarks/scale.py`, which measures what grows."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="Windows has no resource")

SCALE = Path(__file__).parents[2] / "benchmarks" / "scale.py"


def measured(*options: str) -> dict[str, list[dict[str, float]]]:
    command = [sys.executable, str(SCALE), "--small", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_some_parts_are_measured_alone() -> None:
    found = measured("--only", "search", "--only", "tree")
    assert set(found) == {"search", "tree"}
    assert [row["leaves"] for row in found["tree"]] == [10, 100, 1000]
    assert all(row["cpu_seconds"] > 0 and 0 < row["between"] < 1 for row in found["search"])


@pytest.mark.long
def test_all_parts_are_measured() -> None:
    found = measured()
    assert all(found.values())
    assert [row["rows"] for row in found["log"]] == [400, 1000, 10_000]
    assert [row["runs"] for row in found["store"]] == [10, 100, 1000]


def test_powers_and_speed_ups_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCALE.parent)
    scale, sizes = (importlib.import_module(name) for name in ("scale", "scale_sizes"))
    rows = [{"env": "a", "n": n, "square": 5.0 + 3.0 * n * n, "line": 9 + n, "same": 7} for n in (0, 10, 100)]
    assert scale.exponents(rows) == pytest.approx({"square": 2.0, "line": 1.0})
    # Four candidates from 16 starts keep 64 workers busy for one episode, and 4 workers for 16.
    assert sizes.speed_up([(4, 16)], 64) == 64
    assert sizes.speed_up([(4, 16)], 4) == 4
    assert sizes.speed_up([(4, 16)], 64, dispatched=0.5) == 2
    # One candidate from two starts occupies two workers.
    assert sizes.speed_up([(1, 2)], 64) == 2
