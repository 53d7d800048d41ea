"""Commands that installed packages declare by entry points, as spaql's own plugins do."""

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

SPAQL = Path(sysconfig.get_path("scripts")) / "spaql"
COMMAND = '''
import click


@click.command()
@click.option("--name", default="you")
def hello(name):
    """Say hello.

    More of it.
    """
    print("hello", name)
'''
DECLARED = """
[spaql.commands]
hello = own_commands:hello
broken = no_such_module:broken
number = os:O_RDONLY
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    (tmp_path / "own_commands.py").write_text(COMMAND)
    info = tmp_path / "own-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(DECLARED)
    return tmp_path


def run(package: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(package), os.environ.get("PYTHONPATH")]))
    own = {**os.environ, "PYTHONPATH": path, **environment}
    return subprocess.run([SPAQL, *words], env=own, capture_output=True, text=True)


def test_it_is_listed_and_run(package: Path) -> None:
    assert "hello" not in run(package, "--help").stdout
    shown = run(package, "--help-all").stdout
    others = shown[shown.index("Commands of other packages:\n") :]
    assert re.search(r"\n  hello +Say hello\.\n", others)
    assert run(package, "hello", "--name", "them").stdout == "hello them\n"
    assert "did you mean hello?" in run(package, "hallo").stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("broken", "broken needs the plugin no_such_module of the package own, which is not installed."),
        ("number", "number (os:O_RDONLY) of the package own is not a click.Command."),
    ],
)
def test_one_that_cannot_be_loaded_says_why(name: str, said: str, package: Path) -> None:
    done = run(package, name, "--option", "3")
    assert done.returncode == 1
    assert done.stderr == f"Error: {said}\n"
    assert said in " ".join(run(package, "--help-all").stdout.split())


def test_one_that_two_packages_declare_is_refused(package: Path) -> None:
    other = package / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (other / "entry_points.txt").write_text("[spaql.commands]\nhello = own_commands:hello\n")
    said = "hello of spaql.commands is declared by other and own: uninstall all but one."
    assert run(package, "hello").stderr == f"Error: {said}\n"
    assert said in " ".join(run(package, "--help-all").stdout.split())
