"""The core works without any plugin, and says in a sentence which one a command needs."""

import os
import shutil
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

import spaql

pytestmark = pytest.mark.long

PACKAGE = Path(spaql.__file__).parent
PLUGINS = sorted(file.parent.name for file in PACKAGE.glob("plugins/*/__init__.py"))
REFUSED = {
    "certificates": ["verify", "run", "--certificate", "proof", "--quiet"],
    "compare": ["study", "compare"],
    "design": ["design", "CartPole-v1", "--out", "design"],
    "fmu": ["export", "run", "--to", "fmu", "--out", "code"],
    "page": ["page", "run"],
    "paper": ["paper"],
    "sweeps": ["study", "results", "store"],
}
"""A command that needs each plugin; hardware is used from Python alone."""
NAMES = {"hardware": "spaql.Hardware", "sweeps": "spaql.sweep"}
"""Public names that plugins provide."""


class Installed:
    """A copy of the installed package, in CI of the wheel, in an environment that sees all other packages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        self.site = next((folder / "venv").glob("lib/python*/site-packages"))
        shutil.copytree(PACKAGE, self.site / "spaql")  # with the compiled kernels
        dist = distribution("spaql")
        entries = dist.read_text("entry_points.txt")
        assert entries is not None
        info = self.site / f"spaql-{dist.version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: spaql\nVersion: {dist.version}\n")
        (info / "entry_points.txt").write_text(entries)
        others = [path for path in sys.path if path.endswith("-packages")]
        (self.site / "others.pth").write_text("\n".join(others))
        self.plugins = self.site / "spaql" / "plugins"

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the Python of the environment."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        python = self.folder / "venv" / "bin" / "python"
        return subprocess.run(
            [python, *words], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=600
        )

    def spaql(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return self.run("-m", "spaql", *words)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    installed = Installed(tmp_path_factory.mktemp("installed"))
    words = "train cartpole200 --algo spaql-ts --iterations 5 --rollouts 2 --seed 1 --quiet --out run"
    done = installed.spaql(*words.split())
    assert done.returncode == 0, done.stderr
    home = installed.run("-c", "import spaql; print(spaql.__file__)").stdout
    assert Path(home).is_relative_to(installed.site)
    return installed


def test_every_plugin_is_tried() -> None:
    modules = {entry.module for entry in distribution("spaql").entry_points}
    homes = {module.split(".")[2] for module in modules if module.startswith("spaql.plugins.")}
    assert homes == set(REFUSED)
    assert set(PLUGINS) == homes | {"hardware"}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_the_core_works_without_it(plugin: str, installed: Installed, tmp_path: Path) -> None:
    away = tmp_path / plugin
    shutil.move(installed.plugins / plugin, away)
    shutil.rmtree(installed.folder / "again", ignore_errors=True)
    try:
        works(installed)
        refuses(plugin, installed)
    finally:
        shutil.move(away, installed.plugins / plugin)


def works(installed: Installed) -> None:
    """Import, help, train, show and export."""
    assert installed.run("-c", "import spaql; spaql.PlanTree, spaql.verify").returncode == 0
    shown = installed.spaql("--help")
    assert shown.returncode == 0
    assert " train " in shown.stdout
    for words in (
        "train cartpole200 --algo spaql --iterations 2 --seed 1 --quiet --out again",
        "show run --digits 3",
        "export run --to c --out again/code --points 1000",
    ):
        done = installed.spaql(*words.split())
        assert done.returncode == 0, done.stderr


def refuses(plugin: str, installed: Installed) -> None:
    """Say what needs the plugin: in a command, and for a public name."""
    needs = f"needs the plugin spaql.plugins.{plugin}"
    if plugin in REFUSED:
        done = installed.spaql(*REFUSED[plugin])
        assert done.returncode == 1
        assert needs in done.stderr
        assert "Traceback" not in done.stderr
    if plugin in NAMES:
        assert needs in installed.run("-c", f"import spaql; {NAMES[plugin]}").stderr
