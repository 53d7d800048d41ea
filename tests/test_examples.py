"""Scripts in `examples/` that no other test runs, with small budgets."""

import re
import runpy
import sys
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
