"""Compiling the kernels of PlanTree and of rule trees beforehand, in several processes at once.

Numba compiles a kernel when it is first called, one after the other, and keeps it on disk for all processes.
`python -m spaql.kernels.warm_up PART` compiles a part of them, and prints a line for each.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numba
import numpy as np

from spaql.kernels import cells, controllers, ends, games, plants, search, smallest
from spaql.kernels.jit import ENABLED, STAMP, cache_folder

Calls = Mapping[str, Callable[[], object]]


def parts() -> tuple[Calls, ...]:
    """Return a call of every kernel by its name, in parts that take about as long as each other."""
    rng, flag = np.random.default_rng(0), np.zeros(1, np.bool_)
    one, number, leaf, cube = np.zeros(1), np.zeros(1, np.int64), np.full(1, -1), np.zeros((1, 1, 1))
    line, pair, column = np.zeros((1, 1)), np.zeros((1, 2)), np.zeros((2, 1))
    seen, box = np.zeros((1, 1), np.bool_), np.zeros((1, 1), np.int64)
    plant = plants.Plant(
        *(number, leaf, one, number, np.zeros((1, 2, 3)), line, cube, line, line, np.zeros(3)),
        *(leaf, one, number, one, np.zeros(0)),
    )
    game = games.Game(plant, line, line, number, 1, 0.0)
    tree = controllers.Controller(leaf, one, number, np.zeros((1, 1, 2)))
    marks = games.Marks(one, seen, one, seen, number)
    some = cells.Cells(number, leaf, one, number, number)
    options = cells.Options(line, line, np.zeros((1, 1, 1), np.int32))
    return (
        {
            "polish_node": lambda: search.polish_node(game, tree, marks, 0, np.zeros((1, 4)), rng),
            "gain": lambda: games.gain(game, tree, marks, 0, 0.0),
            "fit_and_cut": lambda: controllers.fit_and_cut(
                line, line, one, number, 0, 1, 1, 0.1, pair, pair, 0, 0
            ),
            "best_vote": lambda: controllers.best_vote(line, line, number, 0, 1, 1),
            "logistic": lambda: ends.logistic(line, flag, 0.1),
            "best_end": lambda: ends.best_end(line, flag, number, 0, 1, 0),
            "fewest_leaves": lambda: smallest.fewest_leaves(box, box + 1, number, number + 1),
            "smallest_tree": lambda: smallest.smallest_tree(number - 2, number + 1),
        },
        {
            "best_cut": lambda: plants.best_cut(pair, line, number, 0, 1, 1, 1, 0.1, column),
            "fit_cell": lambda: plants.fit_cell(pair, line, number, 0, 1, 0.1, column, column.copy()),
            "divide": lambda: plants.divide(line, number, 0, 1, 0, 0.0),
            "cell_boxes": lambda: plants.cell_boxes(number, line, number.copy(), line, cube, line, line),
            "find_all": lambda: plants.find_all(leaf, one, number, 0, line),
            "grow_cells": lambda: cells.grow_cells(line, one, one, 1, 4, 6.0, rng),
            "try_options": lambda: cells.try_options(plant, some, line, line, 0.9),
            "look_ahead": lambda: cells.look_ahead(plant, some, one, line, False, 0.9, line),
            "move": lambda: plants.move(plant, number, line, line, one),
            "controls": lambda: controllers.controls(tree, line, line),
            "sweep": lambda: cells.sweep(options, some, box, one, 0.0, False, 1, 0.0),
            "mean_values": lambda: cells.mean_values(some, one, False, line, 0.0),
            "nearest": lambda: cells.nearest(line, line),
        },
    )


def is_warm() -> bool:
    """Say whether there is nothing to compile, or no place to keep it."""
    mark = _mark()
    return mark is None or mark.exists()


def warm_up(progress: Callable[[int, int], object]) -> None:
    """Compile all kernels, each part in a process of its own, unless that was done before.

    `progress` is called with how many are compiled, and how many there are. What goes wrong here costs only
    time: a kernel that was not compiled is, when it is first called.
    """
    mark = _mark()
    if mark is None or mark.exists():
        return
    total, done = sum(len(part) for part in parts()), 0
    lock = threading.Lock()

    def follow(process: subprocess.Popen[str]) -> None:
        nonlocal done
        assert process.stdout is not None
        with process.stdout as lines:
            for _ in lines:
                with lock:
                    done += 1
                    progress(done, total)

    command = [sys.executable, "-m", "spaql.kernels.warm_up"]
    options: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    try:
        processes = [subprocess.Popen([*command, str(part)], **options) for part in range(len(parts()))]
    except OSError:
        return
    threads = [threading.Thread(target=follow, args=(process,), daemon=True) for process in processes]
    progress(0, total)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if all(process.wait() == 0 for process in processes):
            mark.touch()
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _mark() -> Path | None:
    """Return the file that says that all is compiled, for these kernels, this Numba, and this processor."""
    folder = cache_folder() if ENABLED and sys.executable else None
    if folder is None:
        return None
    target: Any = numba.core.registry.cpu_target.target_context.codegen().magic_tuple()
    known = (STAMP, numba.__version__, sys.version_info[:2], target)
    return folder / f"warm-{hashlib.sha256(repr(known).encode()).hexdigest()[:16]}"


if __name__ == "__main__":
    for _name, _call in parts()[int(sys.argv[1])].items():
        _call()
        print(_name, flush=True)
    sys.stdout.flush()
    os._exit(0)  # Numba takes a while to take itself apart
