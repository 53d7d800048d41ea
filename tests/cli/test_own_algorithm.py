"""An algorithm of the user's own on the command line; no file causes its import."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

MODULE = """
from dataclasses import dataclass
from pathlib import Path

import spaql
from spaql.algorithms import SPAQLLearner, SPAQLSettings, setting

Path("imported").touch()


@dataclass(frozen=True, kw_only=True)
class PatientSettings(SPAQLSettings):
    patience: int = setting(5, "iterations to wait", least=1)


class PatientLearner(SPAQLLearner):
    name = "patient"
    settings_type = PatientSettings


class Patient(spaql.Agent):
    learner_type = PatientLearner
"""
ALGO = ("--algo", "lab.patient:patient")
TRAIN = ("train", "cartpole200", "--algo")
SHOW = ("show", "run", "--import")


def spaql(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "spaql", *words], cwd=folder, capture_output=True, text=True, timeout=300
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    (folder / "lab").mkdir()
    (folder / "lab" / "patient.py").write_text(MODULE)
    budget = ("--iterations", "3", "--patience", "2", "--rollouts", "2", "--seed", "1")
    done = spaql(folder, "train", "cartpole200", *ALGO, *budget, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "Next: spaql show run --digits 3 --import lab.patient:patient"
    (folder / "imported").unlink()
    return folder


def test_it_is_trained_with_its_settings(trained: Path) -> None:
    settings = json.loads((trained / "run" / "settings.json").read_text())
    assert (settings["algorithm"], settings["module"]) == ("patient", "lab.patient")
    assert settings["settings"]["patience"] == 2


def test_commands_read_it_when_the_user_names_it(trained: Path) -> None:
    words = ("stress", "run/policy.spaql", "--episodes", "16")
    refused = spaql(trained, *words)
    assert refused.returncode == 1
    assert "On the command line: --import lab.patient:patient." in refused.stderr
    assert not (trained / "imported").exists(), "a file must not cause an import"
    done = spaql(trained, *words, "--import", ALGO[1])
    assert done.returncode == 0, done.stderr
    (trained / "imported").unlink()


def test_training_goes_on(trained: Path) -> None:
    more = ("--iterations", "4", "--patience", "2", "--rollouts", "2", "--resume", "--out", "run", "--json")
    done = spaql(trained, "train", "cartpole200", *ALGO, *more)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["iteration"] == 4
    (trained / "imported").unlink()


def test_it_is_named_by_its_class_as_well(trained: Path) -> None:
    """In `spaql train`, in commands that read a run of it, and in a sweep: all by one function."""
    few = ("--iterations", "1", "--patience", "2", "--rollouts", "1", "--seed", "1", "--json")
    done = spaql(trained, "train", "cartpole200", "--algo", "lab.patient:Patient", *few, "--out", "named")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["algorithm"] == "patient"
    assert spaql(trained, "show", "named", "--import", "lab.patient:Patient").returncode == 0
    study = 'iterations = 1\nproblems = ["cartpole200"]\nalgorithms = ["lab.patient:Patient"]\n'
    (trained / "study.toml").write_text(study + "seeds = 1\nrollouts = 1\n")
    swept = spaql(trained, "study", "run", "study.toml", "--out", "study", "--workers", "1", "--quiet")
    assert swept.returncode == 0, swept.stderr
    (trained / "imported").unlink()


@pytest.mark.parametrize(
    ("words", "algorithm", "said"),
    [
        (TRAIN, "no_such:mine", "Cannot import no_such, which is to define mine: No module named 'no_such'."),
        (SHOW, "lab.patient:patent", "There is no algorithm 'patent': did you mean patient?"),
        (
            SHOW,
            "lab.broken:mine",
            "Cannot import lab.broken, which is to define mine: ZeroDivisionError",
        ),
    ],
)
def test_what_cannot_be_imported_is_said(
    trained: Path, words: tuple[str, ...], algorithm: str, said: str
) -> None:
    (trained / "lab" / "broken.py").write_text("1 / 0")
    done = spaql(trained, *words, algorithm)
    assert done.returncode == 1
    assert said in done.stderr
    (trained / "imported").unlink(missing_ok=True)
