"""Verdicts as files of plain data, beside the controller that they are about.

A verdict is about one rule tree and one plant. Their fingerprint is stored with it and compared when it is
read, so that the verdict of an earlier controller, or of equations that were edited since, is never shown.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql import archive
from spaql.archive import number, reading, typed
from spaql.controllers.policy import Source
from spaql.errors import ArchiveError, SettingError
from spaql.spaces import stored_names
from spaql.verify.closed_loop import ClosedLoop
from spaql.verify.replay import Counterexample
from spaql.verify.run import closed_loop
from spaql.verify.statement import Box, Statement
from spaql.verify.verdict import Verdict

KIND = "verdict"
_CELLS = 2**16
"""Most cells that are stored: of more, the worst of several stands for them."""
_BOXES = ("starts", "target", "allowed")
_TEXTS = ("plant", "disturbed", "fingerprint")
_SHARES = ("proven", "refuted", "undecided")
_FOREVER = 10**9


def save_verdict(verdict: Verdict, path: str | os.PathLike[str]) -> None:
    """Write a verdict to a file, with cells that are coarse enough for a map."""
    coarse = verdict.coarser(_CELLS)
    statement = verdict.statement
    counterexample = verdict.counterexample
    boxes = {name: getattr(statement, name) for name in _BOXES}
    data: dict[str, Any] = {
        "kind": KIND,
        **{name: getattr(verdict, name) for name in _TEXTS},
        "boxes": {name: None if box is None else list(box) for name, box in boxes.items()},
        "stays": statement.stays,
        "termination": statement.termination,
        "within": statement.within,
        "forward": statement.forward,
        **{name: list(getattr(verdict, name)) for name in ("names", "left_out", "turning", "remarks")},
        **{name: getattr(verdict, name) for name in (*_SHARES, "seconds")},
        "finished": verdict.finished,
        "delayed": verdict.delayed,
        "longest": verdict.longest,
        "counterexample": None
        if counterexample is None
        else {"step": counterexample.step, "why": counterexample.why},
    }
    arrays: dict[str, NDArray[Any]] = {
        f"box.{name}": np.array(list(box.values()), np.float64).reshape(-1, 2)
        for name, box in boxes.items()
        if box is not None
    }
    arrays |= {name: getattr(coarse, name) for name in ("low", "high", "status", "times")}
    if counterexample is not None:
        arrays |= {
            "start": np.array(counterexample.start, np.float64),
            "state": np.array(counterexample.state, np.float64),
        }
    archive.save(path, data, arrays)


def load_verdict(path: str | os.PathLike[str]) -> Verdict:
    """Read a verdict; raises `ArchiveError` if the file is damaged, or not a verdict."""
    document = archive.load(path)
    data = document.data
    arrays = document.arrays
    if data.get("kind") != KIND:
        raise ArchiveError(f"The file holds {data.get('kind')!r}, not a verdict of spaql verify.")
    with reading(KIND):
        names = stored_names("numbers", _strings(data["names"]))
        n = len(names)
        status = typed(arrays["status"], np.int8)
        times = typed(arrays["times"], np.int32)
        if status.ndim != n or times.shape != status.shape or np.any((status < 0) | (status > 2)):
            raise ArchiveError("The cells of the verdict are not those of its numbers.")
        texts: dict[str, Any] = {name: str(data[name]) for name in _TEXTS}
        shares: dict[str, Any] = {name: float(number(data, name, 0.0, 1.0)) for name in _SHARES}
        longest = None if data["longest"] is None else number(data, "longest", 0, _FOREVER, whole=True)
        return Verdict(
            **texts,
            statement=_statement(data, arrays),
            names=names,
            left_out=_strings(data["left_out"]),
            turning=_strings(data["turning"]),
            low=typed(arrays["low"], np.float64).reshape(n),
            high=typed(arrays["high"], np.float64).reshape(n),
            **shares,
            counterexample=_counterexample(data["counterexample"], arrays),
            longest=longest,
            seconds=float(number(data, "seconds", 0.0)),
            finished=bool(data["finished"]),
            delayed=bool(data["delayed"]),
            status=status,
            times=times,
            remarks=_strings(data["remarks"]),
        )


def _strings(names: Any) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ArchiveError(f"{names!r} in the file must be a list of names.")
    return tuple(names)


def _statement(data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Statement:
    boxes: dict[str, Box | None] = {}
    for name in _BOXES:
        named = data["boxes"][name]
        if named is None:
            boxes[name] = None
            continue
        ends = typed(arrays[f"box.{name}"], np.float64).reshape(len(named), 2).tolist()
        boxes[name] = {key: (low, high) for key, (low, high) in zip(_strings(named), ends, strict=True)}
    termination = data["termination"]
    if termination not in ("goal", "failure", "ignored"):
        raise ArchiveError(f"The termination of the statement is {termination!r}.")
    within = None if data["within"] is None else number(data, "within", 1, _FOREVER, whole=True)
    return Statement(
        starts=boxes["starts"] or {},
        target=boxes["target"],
        allowed=boxes["allowed"] or {},
        stays=bool(data["stays"]),
        termination=termination,
        within=within,
        forward=bool(data["forward"]),
    )


def _counterexample(
    data: Mapping[str, Any] | None, arrays: Mapping[str, NDArray[Any]]
) -> Counterexample | None:
    if data is None:
        return None
    start, state = (tuple(typed(arrays[name], np.float64).ravel().tolist()) for name in ("start", "state"))
    if len(start) != len(state):
        raise ArchiveError("The counterexample of the verdict has states of different sizes.")
    return Counterexample(start, number(data, "step", 0, _FOREVER, whole=True), state, str(data["why"]))


def verified_loop(verdict: Verdict, source: Source) -> ClosedLoop:
    """Return the closed loop that a verdict is about."""
    return closed_loop(source, delayed=verdict.delayed)


def verdict_about(path: Path, source: Source) -> Verdict | None:
    """Return the stored verdict about a controller, None if there is none.

    Raises
    ------
    SettingError
        If the controller or the equations of its plant are not those that were verified.
    ArchiveError
        If the file is damaged.
    """
    if not path.is_file():
        return None
    verdict = load_verdict(path)
    loop = verified_loop(verdict, source)
    if loop.fingerprint != verdict.fingerprint:
        raise SettingError(
            f"What is stored in {path.name} was verified of another controller, or of other equations of the "
            "plant: run `spaql verify` again."
        )
    return verdict
