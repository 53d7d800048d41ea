"""Certificates: what was proven, with all that is needed to check it, as a file of plain data."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql import archive
from spaql.archive import reading
from spaql.controllers.policy import Source
from spaql.errors import ArchiveError, SettingError
from spaql.kernels.verify.points import OPERATIONS
from spaql.plugins.certificates.check import (
    KIND,
    Check,
    check_certificate,
    confirmed,
    grown,
    load_certificate,
)
from spaql.plugins.certificates.check_claim import CLOSED, FIELDS, LASTS, NEVER, REACHES, STAYS, TERMINATES
from spaql.plugins.certificates.check_loop import Loop
from spaql.verify.closed_loop import ClosedLoop
from spaql.verify.run import closed_loop
from spaql.verify.statement import Statement
from spaql.verify.verdict import Verdict


def save_certificate(verdict: Verdict, path: str | os.PathLike[str]) -> str:
    """Write what a verdict proves to a file that `check_certificate` checks; returns what it is about.

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
            "This was proven by the states that it comes to in some steps: no certificate of such cells is "
            "written."
        )
    claim = CLOSED if "reached" in proof["arrays"] else _claim(verdict.statement)
    loop_data, loop_arrays = _loop(proof["loop"])
    data: dict[str, Any] = {
        "kind": KIND,
        "claim": claim,
        "plant": verdict.plant,
        "program": proof["loop"].program,
        "numbers": list(verdict.names),
        "proven": verdict.proven,
        "limit": verdict.statement.within,
        "image": int(proof["steps"]),
        "levels": int(proof.get("levels", 0)),
        **loop_data,
    }
    arrays = {**loop_arrays, **{name: np.asarray(array) for name, array in proof["arrays"].items()}}
    data = {name: value for name, value in data.items() if name in FIELDS[claim][0]}
    arrays = {name: array for name, array in arrays.items() if name in FIELDS[claim][1]}
    about = _check_before(data, arrays)
    archive.save(path, data, arrays)
    return about


def _claim(asked: Statement) -> str:
    """Return what is claimed of each cell."""
    if asked.termination == "goal":
        return TERMINATES
    if asked.target is not None:
        return STAYS if asked.stays else REACHES
    return LASTS if asked.lasts else NEVER


def _check_before(data: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> str:
    """Claim what the checker confirms: its sets differ a little from the prover's."""
    try:
        with reading(KIND):
            if data["claim"] == CLOSED:
                arrays["reached"] = grown(data, arrays)
            claim, data["proven"], times = confirmed(data, arrays)
    except ArchiveError as error:
        raise SettingError(f"The checker takes no such certificate: nothing is written. {error}") from error
    if data["proven"] == 0.0:
        raise SettingError(
            "The checker, whose sets are a little wider, confirms none of it: nothing is written."
        )
    if times is not None:
        arrays["times"] = times
    return claim.about


def check_of_run(path: str | os.PathLike[str], source: Source, **options: Any) -> Check:
    """Check a certificate, and whether it is about a run: its equations, its controller, its disturbances.

    Parameters
    ----------
    path
        The certificate.
    source
        As in `spaql.verify`.
    options
        The disturbances, the delay and the number type that it has to cover, as in `spaql.verify`.
    """
    found = check_certificate(path)
    document = load_certificate(path)
    with reading(KIND):
        own = Loop(document.data, document.arrays)
        names = [str(name) for name in document.data["numbers"]]
        program = str(document.data["program"])
    loop = closed_loop(source, **options)
    differs = _difference(own, loop, names)
    if not differs and loop.program != program:
        differs = f"its program is {loop.program[:16]}"
    about = f"It is NOT about this run: {differs}." if differs else "It is about this run."
    holds = found.holds and not differs
    return Check(f"{found.text}\n{about}", {**found.data, "about_run": not differs, "holds": holds}, holds)


def _difference(own: Loop, loop: ClosedLoop, names: list[str]) -> str:
    """Return in what a closed loop differs from that of a certificate, which has some of its numbers."""
    if not set(names) <= set(loop.names):
        return f"its state has {', '.join(loop.names)}"
    kept = [loop.names.index(name) for name in names]
    equations = []
    for flags in (True, False):  # a statement that ignores terminations is about the plant without them
        try:
            smaller = loop.restricted(kept, flags=flags)
        except ValueError:
            continue  # these numbers depend on others
        other = Loop(*_loop(smaller))
        if own.equations == other.equations:
            if own.controller != other.controller:
                return f"its controller is {other.controller[:16]}"
            if np.any(own.noise < other.noise) or np.any(own.push < other.push):
                return "its disturbances are larger"
            return ""
        equations.append(other.equations[:16])
    return f"the equations of its plant are {equations[0]}" if equations else "its equations are others"


def _loop(loop: ClosedLoop) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the data and the arrays of a closed loop, as they are in a file."""
    arrays = loop.arrays
    tree = arrays.tree._asdict()
    data = {
        "operations": list(OPERATIONS),
        "tree_discrete": bool(tree.pop("discrete")),
        "tree_start": int(tree.pop("start")),
    }
    found: dict[str, NDArray[Any]] = {f"tree.{name}": array for name, array in tree.items()}
    for name, tape in (("step", arrays.step), ("observe", arrays.observe)):
        found |= {f"{name}.{field}": array for field, array in tape._asdict().items()}
    return data, found | {name: getattr(arrays, name) for name in ("period", "noise", "push")}
