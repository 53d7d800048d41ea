"""A small version of `benchmarks/scale.py`, which measures what grows."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("resource", reason="Windows has no resource")

SCALE = Path(__file__).parents[3] / "benchmarks" / "scale.py"


def measured(*options: str) -> dict[str, list[dict[str, float]]]:
    command = [sys.executable, str(SCALE), "--small", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_part_is_measured_alone() -> None:
    found = measured("--only", "search")
    assert set(found) == {"search"}
    assert all(row["cpu"] > 0 for row in found["search"])


@pytest.mark.long
def test_all_parts_are_measured() -> None:
    assert [row["runs"] for row in measured()["store"]] == [10, 100, 1000]


def test_powers_are_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(SCALE.parent)
    scale = importlib.import_module("scale")
    rows = [{"env": "a", "n": n, "square": 5.0 + 3.0 * n * n, "line": 9 + n, "same": 7} for n in (0, 10, 100)]
    assert scale.exponents(rows) == pytest.approx({"square": 2.0, "line": 1.0})
