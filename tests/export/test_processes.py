"""Processes of equivalence checks: what they get, and that they end."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from feature_controllers import two_leaf_pi
from hostile_names import law_tree
from spaql.errors import SpaqlError
from spaql.export.equivalence import EquivalenceError, check_equivalence
from spaql.export.languages.python import Python
from spaql.export.machine import machine_of
from spaql.export.running import completed


def test_a_process_gets_only_what_it_needs_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    code = "import os; print(dict(os.environ), os.getcwd(), os.path.expanduser('~'))"
    said = completed([sys.executable, "-c", code], tmp_path).stdout.decode()
    assert "secret" not in said
    assert str(tmp_path) in said
    environment, *_ = said.rpartition("} ")
    assert str(Path.home()) + "'" not in environment.replace(os.environ["PATH"], "")


def test_a_process_is_stopped_after_its_time_with_those_that_it_started(tmp_path: Path) -> None:
    file = tmp_path / "child.pid"
    code = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open({str(file)!r}, "w").write(str(child.pid))
time.sleep(600)
"""
    begin = time.monotonic()
    with pytest.raises(SpaqlError, match="did not end within 2 s, and was stopped"):
        completed([sys.executable, "-c", code], tmp_path, seconds=2.0)
    assert time.monotonic() - begin < 30
    pid = int(file.read_text())
    for _ in range(100):
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
        if not state.strip() or state.startswith("Z"):
            break
        time.sleep(0.1)
    else:
        os.kill(pid, signal.SIGKILL)
        pytest.fail("a process that the command started goes on")


@pytest.mark.parametrize("remembers", [False, True])
def test_exported_python_runs_in_an_interpreter_of_its_own(remembers: bool, tmp_path: Path) -> None:
    """What it does to its interpreter and environment is not seen here."""
    content = "import os\nos.environ['SEEN_BY_THE_CHECK'] = '1'\n"
    if remembers:
        target = Python()
        machine = machine_of(two_leaf_pi())
        files = target.write(machine, "controller")
        changed = {"controller.py": content.encode() + files["controller.py"]}
        check_equivalence(target, machine, changed, "controller", tmp_path, 50)
    else:
        target = Python()
        controller = machine_of(law_tree("a", "b", "c"))
        files = target.write(controller, "controller")
        changed = {"controller.py": content.encode() + files["controller.py"]}
        check_equivalence(target, controller, changed, "controller", tmp_path, 50)
    assert "SEEN_BY_THE_CHECK" not in os.environ


def test_an_error_of_exported_python_is_told(tmp_path: Path) -> None:
    target = Python()
    controller = machine_of(law_tree("a", "b", "c"))
    with pytest.raises(EquivalenceError, match="ZeroDivisionError"):
        check_equivalence(
            target, controller, {"controller.py": b"def act(x):\n    1 / 0\n"}, "controller", tmp_path, 5
        )
