"""The example study, as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "sweep.toml"


def spaql(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, "-m", "spaql", *arguments], capture_output=True, text=True)


@pytest.mark.long
def test_the_example_study(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    first = spaql("study", "run", str(EXAMPLE), "--workers", "2", "--out", store)
    assert first.returncode == 0, first.stderr
    assert "16 of 16 runs finished (16 now)" in first.stdout
    assert f"spaql draw {store} curves" in first.stdout
    assert "16 of 16 runs" in first.stderr  # lines, where there is no terminal
    assert (tmp_path / "store/cartpole200/spaql-ts/scaling=20/seed=3/policy.spaql").exists()

    again = spaql("study", "run", str(EXAMPLE), "--workers", "2", "--out", store, "--json", "--quiet")
    assert json.loads(again.stdout)["finished_before"] == 16
    assert again.stderr == ""

    shown = spaql("study", "results", store, "--csv", str(tmp_path / "runs.csv"), "--digest")
    assert "spaql-ts" in shown.stdout
    assert "16 runs finished, 0 under way" in shown.stdout
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 17
    groups = json.loads(spaql("study", "results", store, "--json").stdout)["groups"]
    assert [(group["algorithm"], group["scaling"], group["runs"]) for group in groups] == [
        ("spaql", 0.4, 4), ("spaql", 20.0, 4), ("spaql-ts", 0.4, 4), ("spaql-ts", 20.0, 4)
    ]  # fmt: skip


def test_a_misspelt_study_is_an_error_with_advice(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('problems = ["cartpole200"]\nalgorithms = ["spaq"]\n')
    done = spaql("study", "run", str(tmp_path / "study.toml"))
    assert done.returncode == 1
    assert "did you mean spaql?" in done.stderr
    assert "Traceback" not in done.stderr
