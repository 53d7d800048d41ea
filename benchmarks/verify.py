"""What `spaql verify` proves of trained controllers, and how long it takes.

    spaql train Pendulum-v1 --total-timesteps 10000 --seed 0 --out runs/pendulum-0
    python benchmarks/verify.py runs/pendulum-*
    python benchmarks/verify.py runs/pendulum-0 --parts

A row for each run: leaves, proven, refuted and undecided shares of all states, the share that is proven of
those that samples do not refute, the most steps that are needed, and processor seconds after compiling. With
--parts, what each part of the method is worth.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import spaql


def row(run: Path, seconds: float) -> dict[str, object]:
    agent = spaql.load(run)
    verdict = spaql.verify(agent, seconds=seconds)
    succeed = 1.0 - verdict.refuted
    return {
        "run": run.name,
        "leaves": agent.policy.n_leaves,
        "numbers": len(verdict.names),
        "proven": round(verdict.proven, 5),
        "refuted": round(verdict.refuted, 5),
        "undecided": round(verdict.undecided, 5),
        "proven of those that succeed": round(verdict.proven / succeed, 5) if succeed else None,
        "longest": verdict.longest,
        "counterexample": None if verdict.counterexample is None else verdict.counterexample.start,
        "steps": verdict.details.get("steps"),
        "cells": verdict.details.get("cells"),
        "seconds": round(verdict.seconds, 1),
    }


def parts(run: Path, seconds: float) -> list[dict[str, object]]:
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
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--parts", action="store_true")
    given = parser.parse_args()
    for run in given.runs:
        began = time.process_time()
        rows = parts(run, given.seconds) if given.parts else [row(run, given.seconds)]
        for one in rows:
            print(json.dumps(one | {"with compiling": round(time.process_time() - began, 1)}), flush=True)


if __name__ == "__main__":
    main()
