"""The run store: a folder for every finished run, and a working folder for every other.

A run is prepared in `.work/<id>` and moved to `<id>` in one rename, so a reader sees finished runs only.
The working folder also holds the lease and the checkpoint of the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from spaql.archive import patiently, sync_folder, write_atomically
from spaql.errors import SettingError
from spaql.leases import is_held, release, take
from spaql.plugins.sweeps.run import BUDGETS, Run
from spaql.values import with_null

_WORK = ".work"
_LEASE = "lease"
_RESULT = "result.json"
TIMING = "timing.json"
"""The one file of a run folder that differs between equal runs."""


class RunStore:
    """The runs under a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root).absolute()
        self._leases: dict[Run, IO[bytes]] = {}
        """Of the runs that this process executes."""

    def folder(self, run: Run) -> Path:
        """Return the folder of a run, which exists once the run is finished."""
        return self.root / run.id

    def is_finished(self, run: Run) -> bool:
        """Return whether a run is finished."""
        return os.path.isdir(self.folder(run))

    def missing(self, runs: Iterable[Run]) -> list[Run]:
        """Return the runs that are not finished; refuse if a finished one has other settings.

        One finished run of each group is compared, since the runs of a group differ in their seed alone.
        """
        runs = list(runs)
        for run in {run.group: run for run in runs}.values():
            sibling = next(_finished_under(str(self.root / run.group), f"{run.group}/"), None)
            if sibling is not None:
                self._compare(run, sibling)
        return [run for run in runs if not self.is_finished(run)]

    def _compare(self, run: Run, sibling: str) -> None:
        there = self.result(sibling)["run"]
        asked = json.loads(json.dumps(run.as_data()))
        for key in asked | there:
            if key != "seed" and there.get(key) != asked.get(key):
                raise SettingError(
                    f"{self.root / sibling} holds a run with {key} = {there.get(key)}, not {asked.get(key)}: "
                    "name another folder, or remove that one."
                )

    def result(self, run_id: str) -> dict[str, Any]:
        """Read the result of a finished run."""
        try:
            result: dict[str, Any] = json.loads((self.root / run_id / _RESULT).read_text("utf-8"))
            _check_result(result)
        except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
            raise SettingError(
                f"{self.root / run_id} is not the folder of a finished run ({error})."
            ) from error
        return result

    def working_folder(self, run: Run) -> Path:
        """Return the folder in which a run is prepared."""
        return self.root / _WORK / "runs" / run.id

    def checkpoint(self, run: Run) -> Path:
        """Return the checkpoint file of a run; a run with other settings has another."""
        return self.working_folder(run) / f"checkpoint-{run.digest}.spaql"

    def finish(
        self, run: Run, save: Callable[[Path], None], result: Mapping[str, float], timing: Mapping[str, Any]
    ) -> None:
        """Write the folder of a run atomically; `save` writes the files of the trained policy.

        If two workers finish the same run (after a stalled machine or network), the first one's folder is
        kept: their bytes are equal.
        """
        ready = self.working_folder(run) / f"ready-{secrets.token_hex(4)}"
        save(ready)
        content = {
            "run": run.as_data(),
            "agent_seed": run.agent_seed,
            "result": with_null(dict(result)),
        }
        write_atomically(ready / _RESULT, (json.dumps(content, indent=2) + "\n").encode())
        write_atomically(ready / TIMING, (json.dumps(timing) + "\n").encode())
        final = self.folder(run)
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            patiently(lambda: os.rename(ready, final))
        except OSError:
            if not self.is_finished(run):
                raise
        sync_folder(final.parent)

    @contextlib.contextmanager
    def driven(self) -> Iterator[None]:
        """Execute runs of the store; working folders of finished runs are removed before, leases after it."""
        self.root.mkdir(parents=True, exist_ok=True)
        for run_id in list(self._under_way()):
            if (self.root / run_id).is_dir():
                self._tidy(self.root / _WORK / "runs" / run_id)
        try:
            yield
        finally:
            for run in list(self._leases):
                self.release(run)

    def claim(self, run: Run) -> bool:
        """Claim a run, and return whether it is neither finished nor claimed by another driver."""
        if self.is_finished(run) or (lease := take(self.working_folder(run) / _LEASE)) is None:
            return False
        self._leases[run] = lease
        if self.is_finished(run):  # by the previous holder
            self.release(run)
            return False
        return True

    def release(self, run: Run) -> None:
        """Release a run; its checkpoint stays until it is finished."""
        release(self._leases.pop(run), self.working_folder(run) / _LEASE)
        if self.is_finished(run):
            self._tidy(self.working_folder(run))

    def _tidy(self, working: Path) -> None:
        """Remove a working folder, and its parents that are then empty."""
        shutil.rmtree(working, ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty: other runs use it
            for folder in working.parents:
                if folder.parent.name == _WORK:
                    break
                folder.rmdir()

    def running(self) -> list[str]:
        """Return the ids of the runs that a driver is executing."""
        return [
            run_id
            for run_id in self._under_way()
            if is_held(self.root / _WORK / "runs" / run_id / _LEASE) and not (self.root / run_id).is_dir()
        ]

    def _under_way(self) -> Iterator[str]:
        top = self.root / _WORK / "runs"
        for folder, names, _ in os.walk(top):
            if os.path.basename(folder).startswith("seed="):
                names.clear()
                yield Path(folder).relative_to(top).as_posix()

    def finished(self) -> list[str]:
        """Return the ids of all finished runs, in a fixed order."""
        return sorted(_finished_under(str(self.root), ""), key=_natural)

    def digest(self) -> str:
        """Return a hash of all finished runs; equal studies have equal digests.

        Times are left out: everything else is the same on every machine of a kind.
        """
        total = hashlib.sha256()
        for run_id in self.finished():
            folder = self.root / run_id
            for path in sorted(folder.iterdir()):
                if path.name != TIMING:
                    name = f"{run_id}/{path.name}".encode()
                    total.update(hashlib.sha256(name).digest())
                    total.update(hashlib.sha256(path.read_bytes()).digest())
        return total.hexdigest()


def read_columns(path: Path) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a table of numbers in a run folder: its history, or its learning curve."""
    with path.open(encoding="utf-8") as file:
        names = file.readline().strip().split(",")
        table = np.loadtxt(file, delimiter=",", ndmin=2)
    return {name: table[:, column] for column, name in enumerate(names)}


def read_history(folder: Path) -> dict[str, NDArray[np.float64]]:
    """Return the columns of a run's history."""
    return read_columns(folder / "history.csv")


def _check_result(content: Mapping[str, Any]) -> None:
    """Refuse data that is not the result of a run, by a `ValueError`, `LookupError` or `TypeError`."""
    run = content["run"]
    result = content["result"]
    if not isinstance(run["settings"], dict) or not isinstance(result, dict):
        raise ValueError("its settings or results are no table")
    budget = next((name for name in BUDGETS if run.get(name) is not None), BUDGETS[0])
    for name, kind in (("problem", str), ("algorithm", str), ("seed", int), (budget, int)):
        if type(run[name]) is not kind:
            raise ValueError(f"{name} is {run[name]!r}")
    for name, value in result.items():
        if type(value) not in (int, float, type(None)) or (type(value) is int and abs(value) >= 2**63):
            raise ValueError(f"{name} is {value!r}")


def _finished_under(folder: str, prefix: str) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") or not entry.is_dir():
                continue
            if entry.name.startswith("seed="):
                yield prefix + entry.name
            else:
                yield from _finished_under(entry.path, f"{prefix}{entry.name}/")


def _natural(run_id: str) -> list[tuple[float, str]]:
    """Return a key that sorts numbers in ids by value: scaling=4 before scaling=20."""
    parts = []
    for part in run_id.split("/"):
        _, _, value = part.partition("=")
        try:
            parts.append((float(value), part))
        except ValueError:
            parts.append((0.0, part))
    return parts
