"""Certificates: what was proven, with all that is needed to check it, as a file of plain data."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql import archive
from spaql.errors import SettingError
from spaql.kernels.verify.codes import OPERATIONS, TapeArrays
from spaql.verify.check import confirmed, grown
from spaql.verify.verdict import Verdict

KIND = "certificate"


def save_certificate(verdict: Verdict, path: str | os.PathLike[str]) -> None:
    """Write what a verdict proves to a file that `check_certificate` checks.

    It holds the tapes of the plant, the tree, the statement, the cells with their numbers of steps, and the
    boxes that were followed. Of a statement that was verified forwards it holds the cells that are reached.
    The checker is run before the file is written, and only what it confirms is claimed.
    """
    search = verdict.details.get("search")
    if search is None:
        raise SettingError("Nothing was proven: there is nothing to certify.")
    proof = search.proof
    if proof is None:
        raise SettingError(
            "This was proven in coordinates of the closed loop, or by the states that it comes to in some "
            "steps: no certificate of such cells is written."
        )
    asked, loop, closed = verdict.statement, proof["loop"], "reached" in proof["arrays"]
    arrays = loop.arrays
    tree = arrays.tree._asdict()
    data: dict[str, Any] = {
        "kind": KIND,
        "operations": list(OPERATIONS),
        "plant": verdict.plant,
        "numbers": list(verdict.names),
        "goal": asked.termination == "goal",
        "stays": asked.stays,
        "reaches": asked.reaches,
        "limit": asked.within if asked.within is not None and not closed else 0,
        "forward": closed,
        "proven": verdict.proven,
        "tree_kind": int(tree.pop("kind")),
        "tree_start": int(tree.pop("start")),
        "image": int(proof["steps"]),
        "levels": int(proof.get("levels", 0)),
    }
    found: dict[str, NDArray[Any]] = {f"tree.{name}": array for name, array in tree.items()}
    for name, tape in (("step", arrays.step), ("observe", arrays.observe)):
        found |= _tape(name, tape)
    found |= {name: getattr(arrays, name) for name in ("period", "noise", "push", "same")}
    found |= {name: np.asarray(array) for name, array in proof["arrays"].items()}
    # Claim what the checker confirms: its sets differ a little from the prover's.
    if closed:
        found["reached"] = grown(data, found)
    data["proven"], times = confirmed(data, found)
    if data["proven"] == 0.0:
        raise SettingError(
            "The checker, whose sets are a little wider, confirms none of it: nothing is written."
        )
    if times is not None:
        found["times"] = times
    archive.save(path, data, found)


def _tape(name: str, tape: TapeArrays) -> dict[str, NDArray[Any]]:
    return {f"{name}.{field}": array for field, array in tape._asdict().items()}
