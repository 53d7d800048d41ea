"""Let every call that changes a file fail, or be the last, and see that nothing is lost.

    python benchmarks/faults.py

A shim (faults.c, by LD_PRELOAD) counts the open, write, fsync, close, rename, link, unlink, rmdir, mkdir,
truncate and utime calls of an action on a folder. Then the action is done once for every call and every
fault, in a process of its own: the call fails with ENOSPC, or with EIO; the process is killed -9 instead of
the call; or, at a write, after half of it. Afterwards the old or the new file must be there, whole, and the
next command must end in the bytes of an undisturbed one. Linux, with a C compiler.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import spaql
from spaql.agents import load
from spaql.agents.run_folder import CHECKPOINT_FILE, resumed, save_run
from spaql.errors import SpaqlError
from spaql.plugins.sweeps.execute import execute
from spaql.plugins.sweeps.store import RunStore
from studies import parser

TYPED = 2
"""Exit code of a process that ended by an error of the system, or of spaql."""
FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "kill": -1, "half a write, kill": -2}
RUNS = spaql.grid(
    ["cartpole200"], ["spaql"], seeds=2, iterations=4, fresh_episodes=2, settings={"rollouts": 2}
)


def fresh() -> spaql.Agent:
    return spaql.SPAQL("cartpole200", seed=3, rollouts=2)


def learned(iterations: int) -> spaql.Agent:
    return fresh().learn(iterations=iterations, progress_bar=False)


class Scenario(NamedTuple):
    """An action on a folder, and what must be true of the folder afterwards, whatever happened in between."""

    prepare: Callable[[Path], None]
    act: Callable[[Path], None]
    whole: Callable[[Path], None]
    """Raises if a file is neither the old nor the new one."""
    again: Callable[[Path], str]
    """Does the next command, and gives what it ends in."""


def save_model(folder: Path) -> None:
    OLD_AND_NEW[1].save(folder / "model.spaql")


def model_is_whole(folder: Path) -> None:
    content = (folder / "model.spaql").read_bytes()
    assert content in CONTENTS, "the model is neither the old nor the new one"


def model_again(folder: Path) -> str:
    save_model(folder)
    return (folder / "model.spaql").read_bytes().hex()


def train_with_checkpoints(folder: Path) -> None:
    path = folder / "run" / CHECKPOINT_FILE
    agent = load(path) if path.exists() else fresh()
    if agent.iterations < 4:
        agent.learn(iterations=4 - agent.iterations, checkpoint=path, checkpoint_every=1, progress_bar=False)
    save_run(agent, folder / "run")


def run_is_whole(folder: Path) -> None:
    for path in (folder / "run").glob("*.spaql"):
        load(path)


def train_again(folder: Path) -> str:
    """Go on as `spaql train` does: with --resume if there is a run, and without if there is none."""
    run = folder / "run"
    try:
        agent = resumed(fresh(), run, same_seed=True)
    except SpaqlError:
        assert not run.exists() or all(path.name.startswith(".") for path in run.iterdir()), "a dead end"
        agent = fresh()
    if agent.iterations < 4:
        agent.learn(iterations=4 - agent.iterations, progress_bar=False)
    save_run(agent, run)
    assert not list(run.glob(".*")), f"left behind: {list(run.glob('.*'))}"
    return "".join(
        (run / name).read_bytes().hex() for name in ("policy.spaql", "history.csv", "settings.json")
    )


def sweep_here(folder: Path) -> None:
    """Do what a sweep does, in this process."""
    store = RunStore(folder / "store")
    with store.driven():
        for run in store.missing(RUNS):
            if store.claim(run):
                try:
                    execute(run, root=str(store.root), checkpoint_every=2)
                finally:
                    store.release(run)


def store_is_whole(folder: Path) -> None:
    store = RunStore(folder / "store")
    for run_id in store.finished():
        store.result(run_id)
        load(store.root / run_id)


def sweep_again(folder: Path) -> str:
    sweep_here(folder)
    store = RunStore(folder / "store")
    left = [path for path in (store.root / ".work").rglob("*") if path.is_file()]
    assert not left, f"left behind: {left}"
    return store.digest()


def nothing(folder: Path) -> None:
    folder.mkdir(exist_ok=True)


OLD_AND_NEW: list[spaql.Agent] = []
CONTENTS: list[bytes] = []
SCENARIOS = {
    "save over a model": Scenario(
        lambda folder: OLD_AND_NEW[0].save(folder / "model.spaql"), save_model, model_is_whole, model_again
    ),
    "train with checkpoints": Scenario(nothing, train_with_checkpoints, run_is_whole, train_again),
    "execute runs in a store": Scenario(nothing, sweep_here, store_is_whole, sweep_again),
}


def in_a_child(action: Callable[[], object]) -> int:
    """Do something in a forked process; gives its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except (OSError, SpaqlError):
            code = TYPED
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def armed(scenario: Scenario, folder: Path, point: int, fault: int) -> int:
    """Do the action in a child, with a fault at one point if it is not 0; gives how that ended."""
    scenario.prepare(folder)

    def act() -> None:
        shim = ctypes.CDLL(None)
        shim.fault_arm(str(folder).encode(), ctypes.c_long(point), fault)
        scenario.act(folder)
        count = shim.fault_count()
        shim.fault_arm(b"/nowhere", ctypes.c_long(0), 0)
        (folder.parent / "count").write_text(str(count))

    return in_a_child(act)


def try_point(scenario: Scenario, folder: Path, point: int, fault: int, expected: str) -> str:
    """Do the action with a fault at one point, then the next command; gives what is wrong, if anything."""
    code = armed(scenario, folder, point, fault)
    if code not in (0, TYPED) and not (fault < 0 and code == -signal.SIGKILL):
        return f"the action ended with {code}"
    if in_a_child(lambda: scenario.whole(folder)) != 0:
        return "a file is not whole"
    ended_in = folder / ".ended_in"
    if in_a_child(lambda: ended_in.write_text(scenario.again(folder))) != 0:
        return "the next command does not work"
    return "" if ended_in.read_text() == expected else "the next command ends in other bytes"


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def study(every: int, where: Path) -> dict[str, dict[str, object]]:
    """Try every point, or one of so many, of every scenario."""
    OLD_AND_NEW.extend(learned(iterations) for iterations in (2, 4))
    folder = emptied(where / "folder")
    for agent in OLD_AND_NEW:
        agent.save(folder / "model.spaql")
        CONTENTS.append((folder / "model.spaql").read_bytes())
    report: dict[str, dict[str, object]] = {}
    for name, scenario in SCENARIOS.items():
        scenario.prepare(emptied(folder))
        expected = scenario.again(folder)
        assert armed(scenario, emptied(folder), 0, 0) == 0
        points = int((where / "count").read_text())
        tried = list(itertools.product(FAULTS.items(), range(1, points + 1, every)))
        wrong = 0
        for (fault, number), point in tried:
            if found := try_point(scenario, emptied(folder), point, number, expected):
                wrong += 1
                print(f"{name}, {fault} at call {point}: {found}", file=sys.stderr)
        report[name] = {"points": points, "trials": len(tried), "losses": wrong}
    return report


def main() -> None:
    """Let every call that changes a file fail, and see that nothing is lost."""
    options = parser(__doc__)
    options.add_argument("--every", type=int, default=1, help="try one call of so many")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if "FAULTS_SHIM" not in os.environ:  # start again with the shim in place
            shim = f"{folder}/faults.so"
            source = Path(__file__).with_suffix(".c")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", shim, source, "-ldl"], check=True)
            env = dict(os.environ, LD_PRELOAD=shim, FAULTS_SHIM="1")
            raise SystemExit(subprocess.run([sys.executable, *sys.argv], env=env).returncode)
        report = study(given.every, Path(folder))
    print(json.dumps(report, indent=2))
    if any(part["losses"] for part in report.values()):
        raise SystemExit("Something was lost.")


if __name__ == "__main__":
    main()
