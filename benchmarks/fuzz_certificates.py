"""Forged certificates: what is confirmed of one is played, by the file's own equations in plain Python."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import spaql
from mutants import NUMBERS, mutate_array, mutate_inside, with_hash
from spaql import archive
from spaql.controllers import Controller, Laws
from spaql.plugins.certificates import check_loop
from spaql.plugins.certificates.certificate import save_certificate
from spaql.plugins.certificates.check import confirmed, load_certificate
from spaql.plugins.certificates.check_claim import FIELDS, CheckedClaim
from spaql.verify import Statement
from spaql.verify.run import searched

_WORK = 3_000
"""Operations that a check may take: far fewer than the checker allows, for the sake of time."""
_STARTS = 6
_STEPS = 60
_NEAR = 1e-9
"""By which a played state may miss a range: the rounding of the ends of cells."""
_VALUES = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-9, 1e9, 1e300, math.inf, -math.inf, math.nan, math.tau, 360.0)
_WHOLE = (-(2**63), -1, 0, 1, 2, 3, 5, 25, 100, 2**31, 2**62)
X = {"x": (-1.0, 1.0)}


def halves(state: Any, action: Any) -> Any:
    return (0.5 * state[0] + 0.1 * action[0],), 0.0, False


def rises(state: Any, action: Any) -> Any:
    return (state[0] + 0.5 + 0.1 * action[0],), 0.0, state[0] > 0.8


def jumps(state: Any, action: Any) -> Any:
    if state[0] < 0.0:
        return (-0.5 * state[0],), 0.0, False
    return (0.7 * math.sin(state[0]) - 0.1 * action[0],), 0.0, state[0] > 5.0


def turns(state: Any, action: Any) -> Any:
    return (state[0] - 0.5 * math.sin(state[0]), 0.5 * state[1]), 0.0, False


def circle(state: Any) -> Any:
    return math.cos(state[0]), math.sin(state[0]), state[1]


def grow_certificates(folder: Path) -> list[bytes]:
    """Make a small certificate of each claim, of some plants and controllers."""
    check_loop._WORK = _WORK
    check_loop._WORK_OF_A_BYTE = 0
    near = {"x": (-0.3, 0.3)}
    asked = (
        Statement(starts=X, allowed=X),
        Statement(starts=X, target=near, allowed=X, within=6),
        Statement(starts=X, target=near, stays=True, within=6),
        Statement(starts=X, termination="goal", within=9),
        Statement(starts=X, allowed={"x": (-2.0, 2.0)}, within=3),
        Statement(starts={"x": (-0.5, 0.5)}, allowed=X, forward=True),
    )
    box = {"a [rad]": (-math.pi, math.pi), "w": (-1.0, 1.0)}
    turning = (
        Statement(starts=box, target={"a [rad]": (-1.0, 1.0)}, stays=True, within=9),
        Statement(starts=box, allowed={"w": (-1.0, 1.0)}, within=3),
    )
    seen = dict.fromkeys(("cos(a)", "sin(a)", "w"), (-1.0, 1.0))
    plants = [(step, X, {}, asked) for step in (halves, rises, jumps)]
    found = []
    for step, observations, options, statements in [*plants, (turns, seen, {"observe": circle}, turning)]:
        starts = (0.1, 0.1) if options else (0.1,)
        plant = spaql.Dynamics(
            id=f"fuzz/{step.__name__.title()}-v0",
            start=lambda rng, starts=starts: starts,
            step=step,
            observations=observations,
            actions={"u": (-1, 1)},
            horizon=50,
            **options,
        )
        found += [_certificate(folder / "seed", plant, statement) for statement in statements]
    return [content for content in found if content]


def _certificate(path: Path, plant: spaql.Dynamics, statement: Statement) -> bytes:
    n = len(plant.observations)
    spaces = {"observation_space": plant.observation_space, "action_space": plant.action_space}
    laws = Laws(np.full((2, 1, n), -0.2), np.zeros((2, 1)))
    cut = {
        "feature": [0, -1, -1],
        "threshold": [0.1, 0, 0],
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "leaf": [-1, 0, 1],
    }
    for made in (cut | {"laws": laws}, {"laws": [[0.0]]}):
        tree = Controller(**made, **spaces)
        try:
            save_certificate(searched(tree, plant, statement, levels=4, seconds=3)[0], path)
            return path.read_bytes()
        except spaql.SettingError:
            continue
    return b""


def forge(files: list[bytes], rng: random.Random) -> tuple[bytes, bool]:
    """Change what a certificate says, with a right hash."""
    content = rng.choice(files)
    kind = rng.randrange(10)
    if kind == 0:
        return with_hash(mutate_inside(content, rng)), True
    if kind == 1:
        return mutate_array(content, rng), True
    document = archive.loads(content)
    other = archive.loads(rng.choice(files))
    data = dict(document.data)
    arrays = {name: np.array(a) for name, a in document.arrays.items()}
    if kind == 2:  # another claim, with the fields that it needs
        claim = rng.choice(list(FIELDS))
        data = {name: data.get(name, other.data.get(name, 1)) for name in FIELDS[claim][0]} | {"claim": claim}
        both = {**other.arrays, **arrays}
        arrays = {name: np.array(both[name]) for name in FIELDS[claim][1] if name in both}
    for _ in range(rng.choice((1, 1, 2, 4))):
        _change(data, arrays, other, rng)
    try:
        return archive.dumps(data, arrays), True
    except (ValueError, TypeError, spaql.SpaqlError):
        return content, True


def _change(
    data: dict[str, Any], arrays: dict[str, Any], other: archive.Document, rng: random.Random
) -> None:
    kind = rng.randrange(6)
    if kind == 0:
        name = rng.choice([k for k in data if k not in ("kind", "operations", "numbers")])
        value = data[name]
        near = [value + 1, value * 2, value // 2] if isinstance(value, int) else [value]
        data[name] = rng.choice([*near, other.data.get(name, value), rng.choice(NUMBERS)])
        return
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    if kind == 1 and name in other.arrays:
        arrays[name] = np.array(other.arrays[name])
    elif kind == 2 and name.split(".")[0] in ("step", "observe", "tree"):
        part = name.split(".")[0] + "."
        arrays |= {k: np.array(a) for k, a in other.arrays.items() if k.startswith(part)}
    elif array.size:
        at = rng.randrange(array.size)
        flat = array.reshape(-1)
        if array.dtype == np.float64:
            flat[at] = rng.choice((*_VALUES, flat[at] * 1.5, flat[at] * 0.5, -flat[at], flat[at] + 1e-7))
        elif array.dtype == np.bool_:
            flat[at] = not flat[at]
        else:
            ends = np.iinfo(array.dtype)
            flat[at] = min(
                max(rng.choice((*_WHOLE, int(flat[at]) + 1, int(flat[at]) - 1)), ends.min), ends.max
            )
        if rng.random() < 0.2 and array.dtype == np.float64:
            flat[:] = flat[at]


def use_certificate(folder: Path, content: bytes) -> str:
    """Check a certificate; plays what is confirmed, and returns what the checker said."""
    path = folder / "mutant.proof"
    path.write_bytes(content)
    document = load_certificate(path)
    with archive.reading("certificate"):
        claim, share, times = confirmed(document.data, document.arrays)
        text = claim.text
    if share < claim.share:
        return "not confirmed"
    play_confirmed(claim, times, document.data, document.arrays, random.Random(text))
    return "confirmed"


def play_confirmed(
    claim: CheckedClaim, times: Any, data: Mapping[str, Any], arrays: Mapping[str, Any], rng: random.Random
) -> None:
    """Play from confirmed states; raises if an episode contradicts the claim."""
    low, high = claim.starts
    n = len(low)
    side = 1 if times is None else round(len(times) ** (1 / n))
    cells = [0] if times is None else np.flatnonzero(times >= 0).tolist()
    for _ in range(_STARTS):
        place = np.unravel_index(rng.choice(cells), (side,) * n)
        share = [rng.choice((1e-6, 1 - 1e-6, 0.5, rng.random())) for _ in range(n)]
        size = (high - low) / side
        start = [float(low[j] + (place[j] + share[j]) * size[j]) for j in range(n)]
        why = _contradiction(claim, data, arrays, start, rng)
        if why:
            raise AssertionError(f"wrongly confirmed: {claim.text}; from {start}: {why}")


def _contradiction(
    claim: CheckedClaim, data: Any, arrays: Any, state: list[float], rng: random.Random
) -> str:
    for step in range(min(claim.limit or _STEPS, _STEPS) + 1):
        keeps, home = (_inside(state, box, arrays["period"]) for box in (claim.keep, claim.home))
        last = step == claim.limit
        if claim.kind == "reaches" and home:
            return ""
        if not keeps:
            return f"step {step} leaves with {state}"
        if last and (claim.kind == "reaches" or (claim.kind == "reaches and stays" and not home)):
            return f"not there after {step} steps"
        if last and claim.kind == "terminates":
            return "does not terminate"
        if last and step:
            break
        state, ended = _after(data, arrays, state, rng)
        if ended:
            return "" if claim.kind == "terminates" else f"terminates at step {step + 1}"
    return ""


def _inside(state: list[float], box: Any, periods: Any) -> bool:
    for x, low, high, period in zip(state, *box.tolist(), periods.tolist(), strict=True):
        if math.isnan(x) and low == -math.inf and high == math.inf:
            continue
        near = _NEAR * (1 + abs(x))
        around = range(-30, 31) if period else (0,)
        if not any(low - near <= x + k * period <= high + near for k in around):
            return False
    return True


def _after(data: Any, arrays: Any, state: list[float], rng: random.Random) -> tuple[list[float], bool]:
    """Return the next state, and whether the episode has terminated, by the equations of a file."""

    def blurred(values: list[float], bounds: Any) -> list[float]:
        shares = (rng.choice((-1.0, 0.0, 1.0, rng.uniform(-1, 1))) for _ in values)
        return [x + share * b for x, share, b in zip(values, shares, bounds.tolist(), strict=True)]

    def weighted(weights: Any) -> list[float]:
        return [sum(k * x for k, x in zip(row, seen, strict=False) if k) for row in weights.tolist()]

    tree = {name.removeprefix("tree."): array for name, array in arrays.items()}
    seen = blurred([float(np.float32(x)) for x in _run(data, arrays, "observe.", state)[0]], arrays["noise"])
    seen += weighted(tree["sums"])
    node = 0
    while (j := int(tree["feature"][node])) >= 0:
        node = int(tree["left" if seen[j] < tree["threshold"][node] else "right"][node])
    law = int(tree["leaf"][node])
    offset = tree["offset"][law].tolist()
    scores = [c + x for c, x in zip(offset, weighted(tree["gain"][law]), strict=True)]
    if data["tree_discrete"]:
        actions = [float(data["tree_start"] + scores.index(max(scores)))]
    else:
        actions = np.clip(scores, tree["low"], tree["high"]).astype(np.float32).astype(float).tolist()
    after, ended = _run(data, arrays, "step.", [*state, *actions])
    return blurred(after, arrays["push"]), ended


NAMES = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "min": "minimum",
    "max": "maximum",
    "neg": "negative",
    "atan": "arctan",
    "atan2": "arctan2",
    "single": "float32",
}
"""Operations that NumPy has under another name."""
OF_TWO = ("add", "sub", "mul", "div", "min", "max", "atan2", "mod", "fmod")


def _run(data: Any, arrays: Any, prefix: str, inputs: list[float]) -> tuple[list[float], bool]:
    """Run a tape on numbers, row by row, in double precision; NaN or infinity as the machine has it."""
    tape = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    rows: list[float] = []
    columns = (tape[name].tolist() for name in ("code", "first", "second", "value"))
    for code, a, b, value in zip(*columns, strict=True):
        name = data["operations"][code]
        if name in ("const", "input", "unknown"):
            rows.append({"const": value, "unknown": 0.0}[name] if name != "input" else inputs[a])
        elif name == "interp":
            points, values = tape["tables"][b]
            kept = ~np.isnan(points)
            rows.append(float(np.interp(rows[a], points[kept], values[kept])))
        else:
            given = [np.float64(rows[row]) for row in ((a, b) if name in OF_TWO else (a,))]
            with np.errstate(all="ignore"):
                rows.append(float(getattr(np, NAMES.get(name, name))(*given)))
    kind, a, b, yes, no, leaf = tape["branch"][0, :6].tolist()
    while kind >= 0:
        x = rows[a]
        y = rows[b]
        kind, a, b, yes, no, leaf = tape["branch"][yes if (x < y, x <= y, x == y)[kind] else no, :6].tolist()
    return [rows[row] for row in tape["outputs"][leaf].tolist()], bool(tape["flags"][leaf])
