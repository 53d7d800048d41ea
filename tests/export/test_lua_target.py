"""The package in `examples/plugin`, installed as a stranger's, whose target is found by its name."""

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import spaql
import spaql.export
from feature_controllers import random_controller
from random_trees import random_tree
from spaql.export.equivalence import check_equivalence
from spaql.export.machine import machine_of

pytestmark = pytest.mark.skipif(shutil.which("lua5.4") is None, reason="lua5.4 is not installed")

PACKAGE = Path(__file__).parents[2] / "examples" / "plugin"
SPAQL = Path(sysconfig.get_path("scripts")) / "spaql"
PIP = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target")
BROKEN = """[spaql.targets]
absent = no_such_module:Target
abstract = broken_targets:Unfinished
number = broken_targets:NUMBER
"""
UNFINISHED = """
import spaql.export

NUMBER = 3


class Unfinished(spaql.export.Target):
    name = "Unfinished"
    suffix = ".txt"
"""


def install(package: Path, folder: Path) -> None:
    """Install a package into a folder; building leaves files beside its source."""
    copy = folder.with_suffix(".source")
    shutil.copytree(package, copy)
    subprocess.run([sys.executable, *PIP, folder, copy], check=True, timeout=300)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lua") / "installed"
    install(PACKAGE, folder)
    return folder


def declare(folder: Path, package: str, entry_points: str) -> None:
    """Write what an installed package leaves of itself."""
    folder = folder / f"{package.replace('-', '_')}-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(entry_points)


@pytest.fixture
def imported(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this process find the package."""
    monkeypatch.syspath_prepend(installed)
    monkeypatch.delitem(sys.modules, "spaql_lua", raising=False)


def path_with(folder: Path) -> str:
    return os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))


class Still(gymnasium.Env):
    """A plant for a controller, in which nothing happens."""

    def __init__(self, controller) -> None:
        self.observation_space = controller.observation_space
        self.action_space = controller.action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(self.observation_space.shape), {}

    def step(self, action):
        return np.zeros(self.observation_space.shape), 0.0, False, False, {}


def saved(controller, file: Path) -> Path:
    problem = spaql.make_problem(Still(controller), horizon=5)
    spaql.Design(controller, problem).save(file)
    return file


def spaql_command(installed: Path, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a process that finds the packages in a folder."""
    environment = {**os.environ, "PYTHONPATH": path_with(installed), "COLUMNS": "100"}
    command = [SPAQL, *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def words_of(file: Path, target: str) -> tuple[object, ...]:
    return ("export", file, "--to", target, "--points", 3000, "--out", file.parent / "code", "--json")


CONTROLLERS = {
    "laws": lambda: random_tree(np.random.default_rng(2), 3, 40, "laws", sums=2),
    "discrete": lambda: random_tree(np.random.default_rng(5), 4, 60, "switching laws"),
    "large": lambda: random_tree(np.random.default_rng(3), 4, 900, "choices", fresh=1.0),
    "position": lambda: random_controller(3, form="position"),
    "velocity": lambda: random_controller(1, form="velocity"),
}


def test_the_command_exports_to_it_by_name(installed: Path, tmp_path: Path) -> None:
    done = spaql_command(installed, *words_of(saved(CONTROLLERS["laws"](), tmp_path / "it.spaql"), "lua"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["target"] == "Lua"
    assert found["tool"].startswith("Lua 5")
    assert found["files"].keys() == {"controller.lua"}


@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize("kind", CONTROLLERS)
def test_controllers_of_every_kind_are_written_and_compared(kind: str, tmp_path: Path) -> None:
    controller = CONTROLLERS[kind]()
    exporter, suffix = spaql.export.find_exporter("lua")
    exporter(controller, tmp_path / f"controller{suffix}", points=3000)
    text = (tmp_path / "controller.lua").read_text()
    assert ("function controller.reset()" in text) == controller.remembers
    assert ("local function part_1(" in text) == (kind == "large")


@pytest.mark.usefixtures("imported")
@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("laws", " + (", " - ("),
        ("discrete", " > ", " >= "),
        ("large", " < ", " <= "),
        ("position", "m_integral = 0.25", "m_integral = 0.5"),
        ("velocity", "started = true", "started = false"),
    ],
)
def test_a_planted_fault_is_found(kind: str, old: str, new: str, tmp_path: Path) -> None:
    target = spaql.export.find_exporter("lua")[0].args[0]
    machine = machine_of(CONTROLLERS[kind]())
    text = target.write(machine, "controller")["controller.lua"].decode()
    assert old in text
    files = {"controller.lua": text.replace(old, new).encode()}
    with pytest.raises(spaql.export.EquivalenceError, match="The exported Lua differs from the policy"):
        check_equivalence(target, machine, files, "controller", tmp_path, 3000)


@pytest.mark.usefixtures("imported")
def test_integers_are_observations_too(tmp_path: Path) -> None:
    """The squares of these are beyond Lua's integers."""
    spaql.export.find_exporter("lua")[0](random_controller(3), tmp_path / "controller.lua", points=100)
    code = "c = dofile('controller.lua'); print(string.format('%.17g %.17g', table.unpack(c.act(c.reset(), "
    shown = [
        subprocess.run(
            ["lua5.4", "-e", f"{code}{{{row}}}))))"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for row in ("4000000000, 2, 3000000000, 4000000000", "4e9, 2.0, 3e9, 4e9")
    ]
    assert shown[0] == shown[1] != ""


def test_the_help_lists_it_and_shells_complete_it(installed: Path) -> None:
    assert " lua, or MODULE:NAME" in " ".join(spaql_command(installed, "export", "--help").stdout.split())
    assert "lua, or" not in spaql_command(PACKAGE.parent, "export", "--help").stdout
    asked = {"_SPAQL_COMPLETE": "bash_complete", "COMP_WORDS": "spaql export --to l", "COMP_CWORD": "3"}
    environment = {**os.environ, **asked, "PYTHONPATH": path_with(installed)}
    done = subprocess.run([SPAQL], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "plain,lua\n"


def test_a_package_with_a_fault_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, "broken-targets", BROKEN)
    (tmp_path / "broken_targets.py").write_text(UNFINISHED)
    monkeypatch.syspath_prepend(tmp_path)
    package = "of the package broken-targets"
    for name, said in {
        "absent": f"absent needs the plugin no_such_module {package}, which is not installed.",
        "abstract": f"abstract (broken_targets:Unfinished) {package} cannot be made:",
        "number": f"number (broken_targets:NUMBER) {package} is not a subclass of",
        "abstr": "There is no export target 'abstr': did you mean abstract?",
    }.items():
        with pytest.raises(spaql.SpaqlError, match=re.escape(said)):
            spaql.export.find_exporter(name)
    done = spaql_command(tmp_path, *words_of(saved(CONTROLLERS["laws"](), tmp_path / "it.spaql"), "absent"))
    assert done.returncode == 1
    assert "absent needs the plugin no_such_module" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "code").exists()


@pytest.mark.usefixtures("imported")
def test_a_name_that_two_packages_declare_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(tmp_path, "other", "[spaql.targets]\nlua = other:Lua\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(spaql.SettingError, match="declared by other and spaql-example: uninstall all but"):
        spaql.export.find_exporter("lua")
