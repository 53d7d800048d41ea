"""What `spaql verify` proves of trained controllers, and how long it takes.

    spaql train Pendulum-v1 --total-timesteps 10000 --seed 0 --out runs/pendulum-0
    python benchmarks/verify.py runs/pendulum-*
    python benchmarks/verify.py runs/pendulum-0 --parts

A row for each run: leaves, proven, refuted and undecided shares of all states, the share that is proven of
those that samples do not refute, the most steps that are needed, a counterexample and whether Gymnasium's
environment plays it to the same bits, and processor seconds after compiling. With --parts, what each part of
the method is worth.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import spaql
from spaql.kernels.jit import njit_in_place
from spaql.kernels.verify.closed_loop import LoopArrays, Memory, advance
from spaql.kernels.verify.codes import Floats
from spaql.kernels.verify.forms import A, put_hull
from spaql.rollouts.play import set_classic_state
from spaql.verify.replay import Counterexample, played


def row(run: Path, seconds: float) -> dict[str, Any]:
    agent = spaql.load(run)
    verdict = spaql.verify(agent, seconds=seconds)
    succeed, found = 1.0 - verdict.refuted, verdict.counterexample
    return {
        "run": run.name,
        "leaves": agent.policy.n_leaves,
        "numbers": len(verdict.names),
        "proven": round(verdict.proven, 5),
        "refuted": round(verdict.refuted, 5),
        "undecided": round(verdict.undecided, 5),
        "proven of those that succeed": round(verdict.proven / succeed, 5) if succeed else None,
        "longest": verdict.longest,
        "counterexample": None if found is None else found.start,
        "same bits": None if found is None else has_same_bits(agent, found),
        "steps": verdict.details.get("steps"),
        "cells": verdict.details.get("cells"),
        "seconds": round(verdict.seconds, 1),
    }


def has_same_bits(agent: Any, found: Counterexample) -> bool:
    """Return whether the environment comes to the states of a counterexample, to the last bit.

    MountainCarContinuous has its state in single precision after the first step only: there, the start is
    given to it in single precision.
    """
    return any(_has_same_bits(agent, found, dtype) for dtype in (np.float64, np.float32))


def _has_same_bits(agent: Any, found: Counterexample, dtype: type) -> bool:
    plant, tree = agent.problem.dynamics, agent.policy
    original = plant.id.removeprefix("spaql/") in gymnasium.registry
    env = gymnasium.make(plant.id.removeprefix("spaql/")) if original else agent.problem.make()
    env.reset(seed=0)
    seen = set_classic_state(env, np.array(found.start, dtype))
    for state, _ in itertools.islice(played(plant, tree, found.start), 1, found.step + 1):
        action = tree.act(np.asarray(seen, np.float32)[np.newaxis])[0]
        seen, *_ = env.unwrapped.step(action)
        if not np.array_equal(np.asarray(env.unwrapped.state, np.float64), np.array(state)):
            return False
    return True


@njit_in_place
def advance_joined(loop: LoopArrays, mem: Memory, here: Floats, source: int) -> int:
    """Make a step as `advance` does, and join its parts: those that go on, and those that terminate."""
    m, n, count = mem.m, loop.period.shape[0], advance(loop, mem, here, source)
    kept = 0
    for ended in range(2):
        first = -1
        for c in range(kept, count):
            if mem.terminated[c] != (ended == 1):
                continue
            row = 0 if first < 0 else n
            for j in range(n):
                for k in range(m.shape[1]):
                    m[row + j, k] = mem.parts[c, j, k] if k < A + n else 0.0
                if first >= 0:
                    put_hull(m, j, n + j)
            if first < 0:
                first = c
        if first < 0:
            continue
        # What is in the place of the joined part takes the place of its first.
        mem.terminated[first], mem.terminated[kept] = mem.terminated[kept], ended == 1
        for j in range(n):
            for k in range(A + n):
                mem.parts[first, j, k], mem.parts[kept, j, k] = mem.parts[kept, j, k], m[j, k]
        kept += 1
    return kept if count > 0 else count


def joined(run: Path, seconds: float) -> dict[str, Any]:
    """Return a row with the parts of each step joined, from a process that compiles this anew."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, str(run), "--seconds", str(seconds), "--joined"]
        done = subprocess.run(
            command, env={**os.environ, "NUMBA_CACHE_DIR": folder}, check=True, capture_output=True, text=True
        )
    found = json.loads(done.stdout)
    name = "parts of a step joined to their hull"
    return {"part": name, "proven": found["proven"], "seconds": found["seconds"]}


def parts(run: Path, seconds: float) -> list[dict[str, Any]]:
    """Return rows without some parts of the method."""
    from spaql.verify import prover

    agent, rows = spaql.load(run), []
    changes = {
        "all": {},
        "images of one step": {(prover, "_STEPS"): 1},
        "images of 10 steps": {(prover, "_STEPS"): 10},
        "finest cells only": {(prover, "COARSEST"): 0},
    }
    for name, change in changes.items():
        kept = {place: getattr(*place) for place in change}
        for (module, attribute), value in change.items():
            setattr(module, attribute, value)
        verdict = spaql.verify(agent, seconds=seconds)
        rows.append({"part": name, "proven": round(verdict.proven, 5), "seconds": round(verdict.seconds, 1)})
        for (module, attribute), value in kept.items():
            setattr(module, attribute, value)
    return [*rows, joined(run, seconds)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--parts", action="store_true")
    parser.add_argument("--joined", action="store_true", help="join the parts of a step; for --parts")
    given = parser.parse_args()
    if given.joined:
        from spaql.kernels.verify import search

        search.advance = advance_joined
    for run in given.runs:
        began = time.process_time()
        rows = parts(run, given.seconds) if given.parts else [row(run, given.seconds)]
        for one in rows:
            print(json.dumps(one | {"with compiling": round(time.process_time() - began, 1)}), flush=True)


if __name__ == "__main__":
    main()
