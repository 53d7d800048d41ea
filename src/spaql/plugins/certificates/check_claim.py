"""What a certificate claims: the sentence of docs/certificate.md that its fields stand for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from spaql.archive import number, typed
from spaql.formatting import range_text
from spaql.plugins.certificates.check_loop import Loop
from spaql.plugins.certificates.check_sets import Floats
from spaql.plugins.certificates.check_tape import Arrays, require

NEVER = "never leaves"
REACHES = "reaches"
STAYS = "reaches and stays"
TERMINATES = "terminates"
LASTS = "lasts"
CLOSED = "closed"
_TAPE = ("code", "first", "second", "value", "branch", "outputs", "flags", "tables")
_TREE = ("feature", "threshold", "left", "right", "leaf", "sums", "gain", "offset", "low", "high")
_LOOP = {
    *(f"{tape}.{name}" for tape in ("step", "observe") for name in _TAPE),
    *(f"tree.{name}" for name in _TREE),
    *("period", "noise", "push", "keep"),
}
_CELLS = {"box", "turns", "times"}
_BOXES = {"boxes.level", "boxes.index", "boxes.time"}
_CORE = {"core.level", "core.index"}
_COMMON = {
    *("kind", "claim", "plant", "program", "numbers", "proven"),
    *("operations", "tree_discrete", "tree_start", "image"),
}
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    NEVER: (_COMMON | {"levels"}, _LOOP | _CELLS | _CORE),
    REACHES: (_COMMON | {"levels", "limit"}, _LOOP | _CELLS | _BOXES | {"home"}),
    STAYS: (_COMMON | {"levels", "limit"}, _LOOP | _CELLS | _BOXES | _CORE | {"home"}),
    TERMINATES: (_COMMON | {"levels", "limit"}, _LOOP | _CELLS | _BOXES),
    LASTS: (_COMMON | {"levels", "limit"}, _LOOP | _CELLS | _BOXES),
    CLOSED: (_COMMON, _LOOP | {"starts", "reached", "origin", "size", "sides"}),
}
"""The data and the arrays of each claim: a file has these, and no others."""
_LONGEST = 200
"""Characters of a name."""


@dataclass(frozen=True)
class CheckedClaim:
    """A claim about a closed loop, with the numbers that are checked."""

    kind: str
    loop: Loop
    plant: str
    program: str
    """SHA-256 of the controller's program: a label here, which is compared with that of a run."""
    names: tuple[str, ...]
    share: float
    limit: int
    image: int
    starts: Floats
    keep: Floats
    home: Floats

    @classmethod
    def read(cls, data: Mapping[str, Any], arrays: Arrays) -> CheckedClaim:
        """Return the claim of a file; what is not listed in the specification is refused."""
        kind = data.get("claim")
        require(isinstance(kind, str) and kind in FIELDS, f"it claims {kind!r}")
        known, needed = FIELDS[str(kind)]
        require(set(data) == known, f"of a claim {kind!r} the data are others")
        require(set(arrays) == needed, f"of a claim {kind!r} the arrays are others")
        loop = Loop(data, arrays)
        names = data["numbers"]
        require(isinstance(names, list) and len(names) == loop.n == len(set(names)), "the names are others")
        keep = _box(arrays, "keep", loop.n)
        home = _box(arrays, "home", loop.n) if "home" in arrays else keep
        starts = _box(arrays, "starts" if kind == CLOSED else "box", loop.n)
        require(bool(np.isfinite(starts).all()), "the starts have no bounds")
        claim = cls(
            str(kind),
            loop,
            _name(data["plant"]),
            _hash(data["program"]),
            tuple(_name(name) for name in names),
            float(number(data, "proven", 0.0, 1.0)),
            number(data, "limit", 1, 10**9, whole=True) if "limit" in known else 0,
            number(data, "image", 1, 10**6, whole=True),
            starts,
            keep,
            home,
        )
        require(claim.share > 0.0, "nothing is claimed")
        says = loop.terminates or bool(np.isfinite(keep).any())
        require(kind not in (NEVER, LASTS, CLOSED) or says, "it says nothing")
        require("home" not in arrays or bool(np.isfinite(home).any()), "there is no target")
        return claim

    @property
    def allowed(self) -> tuple[Floats, Floats]:
        """The ends of what must not be left."""
        return self.keep[0], self.keep[1]

    @property
    def target(self) -> tuple[Floats, Floats]:
        """The states to stay in: those of the target that are allowed, or all that are."""
        return np.maximum(self.home[0], self.keep[0]), np.minimum(self.home[1], self.keep[1])

    @property
    def about(self) -> str:
        """What the claim is about: hashes, and a name that is only a label of the file."""
        loop = self.loop
        return (
            f"The plant with equations {loop.equations[:16]} (named {_quoted(self.plant)} in the file) and "
            f"the controller {loop.controller[:16]}"
        )

    @property
    def text(self) -> str:
        """The claim in words, each of which is checked."""
        starts = self._ranges(self.starts, wider=False)
        keep, home = (self._ranges(box, wider=True) for box in (self.keep, self.home))
        steps = f"{self.limit:,} steps"
        ends = ["terminate"] * self.loop.terminates
        leaves = [f"leave {keep}"] * bool(keep)
        match self.kind:
            case "terminates":
                said = f"it terminates within {steps}{_and_before(leaves)}"
            case "reaches":
                said = f"it comes to {home} within {steps}{_and_before([*ends, *leaves])}"
            case "reaches and stays":
                never = [f"it does not {' or '.join([*ends, *leaves])}"] * bool(ends or leaves)
                said = " and ".join([f"it comes to {home} within {steps} and stays there for ever", *never])
            case "lasts":
                said = f"it does not {' or '.join([*ends, *leaves])} in {steps}"
            case _:
                said = f"it does not {' or '.join([*ends, *leaves])}, for ever"
        return f"from {starts}{self._disturbed}: {said}"

    @property
    def _disturbed(self) -> str:
        loop = self.loop
        parts = []
        if loop.noise.any():
            parts.append(f"an error of each observation of up to {_bounds(loop.noise)}")
        if loop.push.any():
            parts.append(f"a disturbance of the state of up to {_bounds(loop.push)} a step")
        return f", with {' and '.join(parts)}" if parts else ""

    def _ranges(self, box: Floats, *, wider: bool) -> str:
        found = []
        for j, (low, high) in enumerate(box.T.tolist()):
            if low > -np.inf or high < np.inf:
                turns = " (up to whole turns)" if wider and self.loop.period[j] > 0 else ""
                found.append(f"{_quoted(self.names[j])} {range_text(low, high, wider=wider)}{turns}")
        return ", ".join(found)


def _and_before(nothing: list[str]) -> str:
    return f", and does not {' or '.join(nothing)} before" if nothing else ""


def _box(arrays: Arrays, name: str, n: int) -> Floats:
    box: Floats = typed(arrays[name], np.float64)
    require(box.shape == (2, n) and bool(np.all(box[0] < box[1])), f"{name} is not a box")
    return box


def _hash(given: Any) -> str:
    require(isinstance(given, str) and re.fullmatch("[0-9a-f]{64}", given) is not None, "it has no hash")
    return str(given)


def _name(text: Any) -> str:
    sound = isinstance(text, str) and text.isprintable() and 0 < len(text) <= _LONGEST
    require(sound, f"{text!r:.{_LONGEST}} is not a name")
    return str(text)


def _quoted(name: str) -> str:
    """Return a name in quotation marks, so that no name reads like a part of the sentence."""
    return json.dumps(name, ensure_ascii=False)


def _bounds(bounds: Floats) -> str:
    """Return bounds, rounded down: more is not covered."""
    return ", ".join(range_text(0.0, x, wider=False).split(" to ")[1] for x in bounds.tolist())
