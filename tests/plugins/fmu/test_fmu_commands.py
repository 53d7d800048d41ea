"""Commands on FMUs: train, check and evaluate."""

import hashlib
import json
import tomllib
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner

import spaql
from spaql.cli import main

pytest.importorskip("fmpy", reason="needs fmpy")

from fmus import COST, tank_fmu

CONFIG = f"""
step_size = 1.0
horizon = 20
cost = "{COST}"
setpoints = {{ level = [0.5, 1.5] }}
start = {{ level = [0.2, 1.8] }}
outputs = ["level"]

[parameters]
leak = [0.0, 0.01]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    tank_fmu(tmp_path)
    (tmp_path / "tank.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(command: str, code: int = 0) -> str:
    done = CliRunner().invoke(main, command.split())
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.slow
def test_a_controller_is_trained_on_an_fmu_and_judged(folder: Path) -> None:
    words = "train tank.fmu --config tank.toml --steps 200 --effort 0.02 --seed 0 --out run --quiet"
    run(words)
    shown = run("show run --digits 3")
    assert "level" in shown
    assert "set-point" in shown
    data = json.loads(run("evaluate run --episodes 3 --json"))
    assert data["mean"] < 0
    assert "settling" in run("evaluate run --episodes 3")  # the closed loop is measured
    shown = run("export run --to fmu --out out --points 1000")
    assert "no difference from the policy" in shown
    assert (folder / "out" / "controller.fmu").exists()
    assert "must be 'double' for FMU" in run("export run --to fmu --out out --number float", 1)


@pytest.mark.slow
def test_an_fmu_is_checked(folder: Path) -> None:
    shown = run("check tank.fmu --config tank.toml")
    assert "failed" not in shown
    (folder / "wrong.toml").write_text(CONFIG.replace("horizon", "horzon"))
    assert "no option 'horzon': did you mean horizon?" in run("check tank.fmu --config wrong.toml", 1)


def test_a_config_that_cannot_be_read_is_refused(folder: Path) -> None:
    (folder / "bad.toml").write_text("cost = ")
    assert "bad.toml is not valid TOML" in run("train tank.fmu --config bad.toml", 2)
    assert "none.toml cannot be read" in run("train tank.fmu --config none.toml", 2)
    assert "tank.fmu needs a cost" in run("train tank.fmu", 1)


@pytest.mark.slow
def test_a_run_says_that_its_fmu_has_changed(folder: Path) -> None:
    words = "train tank.fmu --config tank.toml --steps 60 --effort 0.02 --seed 0 --out run --quiet"
    run(words)
    before = hashlib.sha256((folder / "tank.fmu").read_bytes()).hexdigest()
    assert json.loads((folder / "run" / "settings.json").read_text())["problem"]["plant"] == {"file": before}
    for command in ("show run", "evaluate run --episodes 1"):
        assert "Warning" not in run(command)
    run(f"{words} --resume")
    with zipfile.ZipFile(folder / "tank.fmu", "a") as archive:
        archive.writestr("documentation/index.html", "another version")
    after = hashlib.sha256((folder / "tank.fmu").read_bytes()).hexdigest()
    for command in ("show run", "evaluate run --episodes 1"):
        shown = run(command)
        assert shown.count("Warning: tank.fmu is not the plant that this was trained on") == 1
        assert before in shown
        assert after in shown
    shown = run(f"{words} --resume", 1)
    assert "run cannot be resumed. tank.fmu is not the plant that this was trained on" in shown
    with pytest.warns(spaql.errors.ChangedPlantWarning, match=after):
        spaql.load(folder / "run")
    other = spaql.make_problem("tank.fmu", options=tomllib.loads(CONFIG))
    with pytest.warns(spaql.errors.ChangedPlantWarning, match=before):
        assert spaql.load(folder / "run", env=other).problem.plant == {"file": after}
    (folder / "tank.fmu").unlink()
    assert "Warning" not in run("show run")
