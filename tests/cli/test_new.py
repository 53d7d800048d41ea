"""`spaql new`: what it writes works as it is."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner

from spaql.cli import main

SCRIPTS = sysconfig.get_path("scripts")


def project(folder: Path) -> Path:
    done = CliRunner().invoke(main, ["new", str(folder)])
    assert done.exit_code == 0, done.output
    assert f"Next: cd {folder}; python -m pytest; spaql train plant:TwoTanks-v0" in done.stdout
    return folder


def shell(folder: Path, command: str, **environment: str) -> str:
    variables = {**os.environ, "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}", **environment}
    done = subprocess.run(command, shell=True, cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_files_of_a_project(tmp_path: Path) -> None:
    folder = project(tmp_path / "two-tanks")
    names = {path.name for path in folder.iterdir()}
    assert names == {".gitignore", "README.md", "plant.py", "pyproject.toml", "sweep.toml", "test_plant.py"}
    for path in folder.iterdir():
        assert "{{" not in path.read_text(), path
    assert 'id="TwoTanks-v0"' in (folder / "plant.py").read_text()
    if shutil.which("ruff", path=SCRIPTS):
        shell(folder, "ruff format --check --line-length 110 . && ruff check --isolated .")


@pytest.mark.parametrize("name", ["2tanks", "a tank", "..", "käse"])
def test_a_name_that_cannot_be_one(name: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["new", str(tmp_path / name)])
    assert done.exit_code == 1
    assert "is not a valid project name" in done.stderr


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    done = CliRunner().invoke(main, ["new", str(tmp_path / "mine")])
    assert done.exit_code == 1
    assert "already exists" in done.stderr
    assert not list((tmp_path / "mine").iterdir())


def test_its_tests_and_a_small_version_of_its_study_run(tmp_path: Path) -> None:
    """Uncompiled, for compiling a plant takes longer than all this; the slow test compiles."""
    folder = project(tmp_path / "two-tanks")
    uncompiled = {"NUMBA_DISABLE_JIT": "1"}
    assert "3 passed" in shell(folder, f"{sys.executable} -m pytest -q -p no:cacheprovider", **uncompiled)
    study = (folder / "sweep.toml").read_text()
    small = study.replace("seeds = 4", "seeds = 1").replace("200000", "3000")
    (folder / "small.toml").write_text(small.replace("[grid]", "fresh_episodes = 2\n[grid]"))
    shell(folder, "spaql study run small.toml --workers 2 --out store --quiet", **uncompiled)
    assert "2 runs finished" in shell(folder, "spaql study results store")


@pytest.mark.long
def test_the_commands_of_its_readme_run(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = project(tmp_path / "two-tanks")
    commands = re.findall(
        r"^\$ (spaql .*|python -m pytest)$", (folder / "README.md").read_text(), re.MULTILINE
    )
    assert len(commands) == 10
    outputs = {command: shell(folder, command) for command in commands}
    trained = outputs["spaql train plant:TwoTanks-v0 --seed 0 --out runs/first"]
    fresh = float(re.search(r"fresh return +(\S+)", trained)[1])
    assert fresh > -3.0
    assert "PID" in trained
    assert "pump power" in outputs["spaql show runs/first --digits 3"]
    assert all((folder / name).exists() for name in ("response.svg", "page.html", "firmware/controller.c"))
    assert "8 runs finished" in outputs["spaql study results studies/first"]
