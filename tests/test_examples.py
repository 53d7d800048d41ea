"""Scripts and the package in `examples/` that no other test runs, with small budgets."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

pytest.importorskip("optuna")

SCRIPT = Path(__file__).parents[1] / "examples" / "tune_with_optuna.py"


def test_optuna_tunes_and_fresh_seeds_judge(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = ("--trials", "3", "--seeds", "1", "--fresh-seeds", "2", "--iterations", "3")
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *few])
    runpy.run_path(str(SCRIPT), run_name="__main__")
    shown = capsys.readouterr().out
    assert shown.startswith("3 trials, 0 of them stopped early")
    best = float(re.search(r"tuning seeds: ([\d.]+) \(biased", shown)[1])
    judged = re.findall(r"^  (tuned|default) +([\d.]+) ±", shown, re.MULTILINE)
    assert [name for name, _ in judged] == ["tuned", "default"]
    assert all(1 < float(mean) <= 200 and float(mean) != best for _, mean in judged)


def test_the_default_settings_are_the_first_trial() -> None:
    example = runpy.run_path(str(SCRIPT))
    study = example["tuned"](trials=2, seeds=1, iterations=2)
    assert study.trials[0].params == example["DEFAULT"]
    assert study.trials[1].params != example["DEFAULT"]
    assert study.trials[0].value == example["trained_return"](example["DEFAULT"], 0, 2)


PACKAGE = Path(__file__).parents[1] / "examples" / "plugin"
PIP = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target")
STUDY = """
problems = ["{folder}/heater.lag"]
algorithms = ["best-constant"]
total_interactions = 500
seeds = 1
"""


def test_a_package_adds_a_command_a_plant_and_a_trainer(tmp_path: Path) -> None:
    """Its target, Lua, has tests of its own."""
    copy = shutil.copytree(PACKAGE, tmp_path / "source")
    subprocess.run([sys.executable, *PIP, tmp_path / "installed", copy], check=True, timeout=300)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    program = Path(sysconfig.get_path("scripts")) / "spaql"

    def spaql(*words: object) -> str:
        command = [program, *map(str, words)]
        done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout

    (tmp_path / "heater.lag").write_text("gain = 40.0\ntime_constant = 12.0\nsample_time = 1.0\n")
    spaql(
        "train", "heater.lag", "--algo", "treesearch", "--steps", 5000, "--seed", 1, "--out", "run", "--quiet"
    )
    counted = json.loads(spaql("count", "run/policy.spaql", "--json"))["controllers"]
    assert counted == [{"file": "run/policy.spaql", "leaves": 1, "parameters": 3}]
    (tmp_path / "study.toml").write_text(STUDY.format(folder=tmp_path))
    spaql("study", "run", "study.toml", "--out", "study", "--workers", 1, "--quiet")
    assert "best-constant" in spaql("study", "results", "study")


@pytest.mark.parametrize("name", ["room", "shower"])
def test_the_first_examples_compare_with_a_pid(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (PACKAGE.parent / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 30
    exec(compile(text.replace("1_000_000", "20_000"), name, "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" -")[0].strip() for line in lines[-2:]] == ["learned", "PID, tuned"]
