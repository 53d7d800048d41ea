"""Compile the kernels of PlanTree and of rule trees ahead of time, in two processes.

Numba compiles a kernel when it is first called, one at a time, and caches it on disk for all processes.
`python -m spaql.kernels.warm_up NAME...` compiles some of them, and prints the name of each when it is done.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numba
import numpy as np

from spaql.kernels.jit import ENABLED, STAMP, cache_folder
from spaql.kernels.plantree import controllers, rollout
from spaql.kernels.plantree import local_search as search
from spaql.kernels.plantree import pwa_model as plants
from spaql.kernels.plantree import termination as ends
from spaql.kernels.plantree import value_cells as cells
from spaql.kernels.trees import optimal_tree as smallest

Calls = Mapping[str, Callable[[], object]]

_LISTED = {"best_vote"}
"""Kernels that are needed only for discrete actions."""
_BOXED = {"fit_and_cut"}
"""Kernels that are needed only for a Box of actions."""
_ENDS = {"logistic", "best_gini_cut"}
"""Kernels that are needed only if episodes terminate."""


def kernels() -> frozenset[str]:
    """Return the names of all kernels that can be compiled ahead of time."""
    return frozenset(name for part in _parts() for name in part)


def for_training(*, listed: bool) -> frozenset[str]:
    """Return the kernels that are certainly needed to train once and to read the result."""
    return kernels() - (_BOXED if listed else _LISTED) - _ENDS


def _parts() -> tuple[Calls, Calls]:
    """Return a call of every kernel by name, in two parts of about equal compilation time."""
    rng = np.random.default_rng(0)
    flag = np.zeros(1, np.bool_)
    floats = np.zeros(1)
    ints = np.zeros(1, np.int64)
    leaf = np.full(1, -1)
    cube = np.zeros((1, 1, 1))
    line = np.zeros((1, 1))
    pair = np.zeros((1, 2))
    column = np.zeros((2, 1))
    flags = np.zeros((1, 1), np.bool_)
    box = np.zeros((1, 1), np.int64)
    plant = plants.Plant(
        *(ints, leaf, floats, ints, np.zeros((1, 2, 3)), line, cube, line, line, np.zeros(3)),
        *(leaf, floats, ints, floats, np.zeros(0)),
    )
    simulation = rollout.Simulation(plant, line, line, ints, 1, 0.0)
    tree = controllers.ControllerTree(leaf, floats, ints, np.zeros((1, 1, 2)))
    record = rollout.Record(floats, flags, floats, flags, ints)
    value_cells = cells.ValueCells(ints, leaf, floats, ints, ints)
    options = cells.Options(line, line, np.zeros((1, 1, 1), np.int32))
    return (
        {
            "improvement": lambda: rollout.improvement(simulation, tree, record, 0, 0.0),
            "polish_node": lambda: search.polish_node(simulation, tree, record, 0, np.zeros((1, 4)), rng),
            "fit_and_cut": lambda: controllers.fit_and_cut(
                line, line, floats, ints, 0, 1, 1, 0.1, pair, pair, 0, 0
            ),
            "best_vote": lambda: controllers.best_vote(line, line, ints, 0, 1, 1),
            "logistic": lambda: ends.logistic(line, flag, 0.1),
            "best_gini_cut": lambda: ends.best_gini_cut(line, flag, ints, 0, 1, 0),
            "fewest_leaves": lambda: smallest.fewest_leaves(box, box + 1, ints, ints + 1),
            "smallest_tree": lambda: smallest.smallest_tree(ints - 2, ints + 1),
        },
        {
            "best_cut": lambda: plants.best_cut(pair, line, ints, 0, 1, 1, 1, 0.1, column),
            "fit_cell": lambda: plants.fit_cell(pair, line, ints, 0, 1, 0.1, column, column.copy()),
            "divide": lambda: plants.divide(line, ints, 0, 1, 0, 0.0),
            "cell_boxes": lambda: plants.cell_boxes(ints, line, ints.copy(), line, cube, line, line),
            "find_all": lambda: plants.find_all(leaf, floats, ints, 0, line),
            "grow_cells": lambda: cells.grow_cells(line, floats, floats, 1, 4, 6.0, rng),
            "try_options": lambda: cells.try_options(plant, value_cells, line, line, 0.9),
            "look_ahead": lambda: cells.look_ahead(plant, value_cells, floats, line, False, 0.9, line),
            "move": lambda: plants.move(plant, ints, line, line, floats),
            "controls": lambda: controllers.controls(tree, line, line),
            "sweep": lambda: cells.sweep(options, value_cells, box, floats, 0.0, False, 1, 0.0),
            "mean_values": lambda: cells.mean_values(value_cells, floats, False, line, 0.0),
            "nearest": lambda: cells.nearest(line, line),
        },
    )


def are_warm(names: Collection[str]) -> bool:
    """Return whether all these kernels are compiled, or no cache folder is writable."""
    return not _missing(names)


def warm_up(names: Collection[str], progress: Callable[[int, int], object]) -> None:
    """Compile those of these kernels that are not cached, some here and some in another process.

    `progress` is called with the numbers of kernels that are compiled and to be compiled. A failure costs
    only time: a kernel that is missing is compiled when it is first called.
    """
    missing = _missing(names)
    if not missing:
        return
    done = 0
    lock = threading.Lock()
    here, there = _parts()

    def count(name: str) -> None:
        nonlocal done
        with suppress(OSError):  # a full disk
            missing[name].touch()
        with lock:
            done += 1
            progress(done, len(missing))

    def follow(lines: IO[str]) -> None:
        for line in lines:
            count(line.strip())

    progress(0, len(missing))
    with suppress(OSError), _compiling([name for name in there if name in missing]) as lines:
        follower = threading.Thread(target=follow, args=(lines,), daemon=True)
        follower.start()
        for name, call in here.items():
            if name in missing:
                call()
                count(name)
        follower.join()


@contextmanager
def _compiling(names: list[str]) -> Iterator[IO[str]]:
    """Compile kernels in another process; yields the lines that it prints."""
    if not names:
        yield io.StringIO()
        return
    command = [sys.executable, "-m", "spaql.kernels.warm_up", *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()


def _missing(names: Collection[str]) -> dict[str, Path]:
    """Return the kernels that are not compiled, each with the marker file to write when it is.

    The markers depend on the version of Numba and on the processor. Empty if no cache folder is writable.
    """
    folder = cache_folder() if ENABLED and sys.executable else None
    if folder is None:
        return {}
    target: Any = numba.core.registry.cpu_target.target_context.codegen().magic_tuple()
    known = (STAMP, numba.__version__, sys.version_info[:2], target)
    stamp = hashlib.sha256(repr(known).encode()).hexdigest()[:16]
    record = {name: folder / f"warm-{stamp}-{name}" for name in names}
    return {name: mark for name, mark in record.items() if not mark.exists()}


if __name__ == "__main__":
    for _name, _call in _parts()[1].items():
        if _name in sys.argv[1:]:
            _call()
            print(_name, flush=True)
    os._exit(0)  # skips the slow shutdown of Numba
