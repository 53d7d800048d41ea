"""An episode that contradicts a proof, and the file that it is kept in."""

from __future__ import annotations

import dataclasses
import inspect
import json
import platform
import tempfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.controllers.file import controller_to
from spaql.problems import Dynamics
from spaql.verify.closed_loop import ClosedLoop
from spaql.verify.verdict import Verdict

_SHOWN = 100
"""States that are kept, of the beginning and of the end."""


@dataclass(frozen=True, eq=False)
class Contradiction:
    """An episode from a proven state that does not do what is proven."""

    path: NDArray[np.float64]
    """States, from the start on."""
    step: int
    why: str
    number: int
    """Of the episode, in the order in which the guard plays them."""

    def text(self, file: Path) -> str:
        """Return what to say of it."""
        start = ", ".join(repr(x) for x in self.path[0].tolist())
        return (
            "This is a fault of spaql: the prover says proven, and the plant itself contradicts. From the "
            f"state {start}, {self.why} (step {self.step:,}). So nothing is proven. Please report it with "
            f"{file}, which holds what repeats it: the plant, the controller, the statement and the episode."
        )


def keep(contradiction: Contradiction, verdict: Verdict, loop: ClosedLoop) -> Path:
    """Write what repeats a contradiction, beside what is worked on or in a temporary folder."""
    name = f"contradicted-proof-{verdict.fingerprint[:12]}.json"
    text = json.dumps(_record(contradiction, verdict, loop), indent=1, default=repr)
    try:
        file = Path(name).absolute()
        file.write_text(text, encoding="utf-8")
    except OSError:
        file = Path(tempfile.mkdtemp(prefix="spaql-")) / name
        file.write_text(text, encoding="utf-8")
    return file


def _record(contradiction: Contradiction, verdict: Verdict, loop: ClosedLoop) -> dict[str, Any]:
    controller, arrays = controller_to(loop.tree)
    return {
        "plant": verdict.plant,
        "source": _sources(loop),
        "learned": verdict.learned,
        "fingerprint": verdict.fingerprint,
        "controller": controller | {name: array.tolist() for name, array in arrays.items()},
        "statement": {name: getattr(verdict.statement, name) for name in _names(verdict.statement)},
        "disturbed": verdict.disturbed,
        "noise": loop.noise.tolist(),
        "push": loop.push.tolist(),
        "delayed": verdict.delayed,
        "number": verdict.number,
        "names": list(loop.names),
        "episode": contradiction.number,
        "why": contradiction.why,
        "step": contradiction.step,
        "states": contradiction.path[:_SHOWN].tolist(),
        "last states": contradiction.path[_SHOWN:][-_SHOWN:].tolist(),
        "versions": {name: version(name) for name in ("spaql", "numpy", "numba", "llvmlite")}
        | {"python": platform.python_version(), "machine": platform.platform()},
    }


def _names(statement: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(statement)]


def _sources(loop: ClosedLoop) -> dict[str, str]:
    """Return the texts of a plant's functions."""
    if not isinstance(loop.dynamics, Dynamics):
        return {}
    texts = {}
    for name in ("start", "step", "observe"):
        function = getattr(loop.dynamics, name)
        try:
            texts[name] = inspect.getsource(getattr(function, "py_func", function))
        except (OSError, TypeError):
            texts[name] = "not at hand"
    return texts
