"""Random plants as Python source, of all that Numba accepts, to be proven and then played.

A plant is a few plain statements, one or two *features* (comparisons of comparisons, casts, arrays, loops,
tables, sources of NaN and so on), and a next state that shrinks and adds what was computed, bounded. So a
good share can be proven, whatever the features do. Everything is drawn from the plant's number alone.
"""

from __future__ import annotations

import dataclasses
import linecache
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

import spaql
from spaql.controllers import Controller
from spaql.errors import SettingError
from spaql.kernels.verify.points import play
from spaql.verify.run import closed_loop, searched
from verify_programs import controller_for, one_cut

FEATURES: Mapping[str, tuple[str, ...]] = {
    "comparison of comparisons": (
        "{v} = 1.0 if ({a} > 0.0) == ({b} > 0.0) else -1.0",
        "{v} = 1.0 if ({a} > {c}) != ({b} < {d}) else 0.0",
        "{v} = {a} if ({a} < {c}) < ({b} < {d}) else {b}",
        "{v} = {a} if ({a} > 0.0) >= ({b} > {c}) else -{a}",
        "{v} = 1.0 if ({a} > {c}) == 1 else 0.25",
        "{v} = 1.0 if (not {a} > {c}) == ({b} > {d}) else -0.5",
    ),
    "arithmetic of comparisons": (
        "{v} = float(({a} > 0.0) + ({b} > 0.0))",
        "{v} = {a} * ({b} > {c})",
        "{v} = ({a} > {c}) - ({b} > {d})",
        "{v} = 1.0 if ({a} > 0.0) ^ ({b} > 0.0) else 0.0",
        "{v} = 1.0 if ({a} > {c}) & ({b} < {d}) else -1.0",
        "{v} = 1.0 if ({a} > {c}) | ({b} < {d}) else -1.0",
        "{v} = -({a} > {c}) * {b}",
        "{v} = float(not {a}) + float(bool({b}))",
        "{v} = 0.5 * ({a} == {b}) + 0.25 * ({a} != {c})",
    ),
    "truth of numbers": (
        "{v} = 1.0 if {a} and {b} > {c} else 0.0",
        "{v} = 1.0 if not {a} else {b}",
        "{v} = 1.0 if {a} > {c} or not {b} < {d} else -1.0",
        "{v} = 1.0 if {e} < {a} <= {d} else 0.0",
        "{v} = 1.0 if {e} < {a} < {b} < {d} else 0.0",
        "{v} = 0.5 if {a} == {b} == 0.0 else 1.0",
        "{v} = {a} if {a} else {c}",
        "{v} = 1.0 if bool({a}) else 0.5",
        "{v} = 1.0 if {a} in (0.0, {c}) else 0.5",
    ),
    "NaN": (
        "{v} = {a} / {b}",
        "{v} = min(max({a} / math.sqrt({a} * {a} + {b} * {b}), -1.0), 1.0)",
        "{v} = math.sqrt({a})",
        "{v} = math.log({a})",
        "{v} = math.log({a}) % 1.0",
        "{v} = math.sin(1.0 / {a})",
        "{v} = 1.0 / {a} - 1.0 / {a}",
        "{v} = 0.0 * (1.0 / {a})",
        "{v} = max(0.0, math.sqrt({a} - {c}))",
        "{v} = min(1.0, np.sqrt({a} + {e}))",
        "{v} = ({a} / {a}) % 1.0",
        "{v} = 1.0 if math.sqrt({a}) < {c} else 0.5",
        "{v} = 1.0 if not math.log({a}) < {c} else 0.5",
        "{v} = np.sqrt({a}) - np.sqrt({b})",
        "{v} = ({a} - {c}) ** 0.5",
        "{v} = math.exp(800.0 * {a}) - math.exp(800.0 * {a})",
        "{v} = math.atan2({a} / {b}, {c})",
        "{v} = min(1.0, max({a} / {b}, -1.0))",
        "{v} = math.tanh(1.0 / ({a} - {c}))",
        "{v} = 1.0 if {a} / {b} == {a} / {b} else 3.0",
        "{v} = np.interp({a} / {b}, (-1.0, 0.0, 1.0), (0.2, 0.9, -0.4))",
        "{v} = TABLE[int(min(max({a} / {b}, 0.0), 3.0))]",
        "{v} = math.fmod({a} / {b}, 1.0)",
        "{v} = abs(math.sqrt({a})) if {b} > {c} else 0.0",
        "{v} = math.floor(math.sin(1.0 / {a}))",
        "{v} = 1.0 if math.isnan(math.sqrt({a})) else 0.0",
    ),
    "casts": (
        "{v} = float(int(2.0 * {a}))",
        "{v} = float(np.int64(2.0 * {a}))",
        "{v} = float(np.int32(-3.0 * {a}))",
        "{v} = float(np.int64(-min(max(3.0 * {a}, 0.0), 5.0)))",
        "{v} = -float(np.int32(-min(max({a}, {e}), 5.0)))",
        "{v} = float(int(-min(max(2.0 * {a}, 0.0), 4.0)))",
        "{v} = float(int(-abs(2.0 * {a})))",
        "{v} = float(round(2.0 * {a}))",
        "{v} = float(bool(int(1.5 * {a})))",
        "{v} = float(np.float32({a}))",
        "{v} = 1e7 * (np.float64(np.float32({a})) - {a})",
        "{v} = np.float64(np.float32({a}) * np.float32({c}))",
        "{v} = float(np.float32({a}) * {c} > np.float32({b}))",
        "{v} = float(math.trunc(3.0 * {a}))",
        "{v} = float(int(3.0 * {a}) % 2)",
        "{v} = float(int(3.0 * {a}) // 2)",
        "{v} = int(3.0 * {a}) / 2",
        "{v} = float(int(4.0 * {a}) & 1)",
        "{v} = float(-int(2.0 * {a}) * int(2.0 * {b}))",
        "{v} = float(min(int(3.0 * {a}), 1))",
        "{v} = float(abs(int(3.0 * {a})))",
        "{v} = float(np.bool_({a} > {c}))",
    ),
    "arrays": (
        "s = np.zeros(1, np.int64)\ns[0] = 2.0 * {a}\n{v} = float(s[0])",
        "s = np.array([1, 2])\ns[1] = 2.0 * {a}\n{v} = float(s[1] - s[0])",
        "s = np.empty(1, np.float32)\ns[0] = {a}\n{v} = 1e7 * (np.float64(s[0]) - {a})",
        "s = np.ones(2, np.int32)\ns[0] = 3.0 * {a}\n{v} = s[0] * 0.5",
        "s = np.full(2, 1)\ns[1] = 2.5 * {a}\n{v} = float(s[1])",
        "s = np.full(2, {c})\ns[1] = {a}\n{v} = s[0] - s[1]",
        "s = np.zeros(3)\ns[0] = {a}\ns[2] = {b}\n{v} = s[0] + s[1] - s[2]",
        "s = np.array([{a}, {b}])\ns[0] += {c}\ns[1] *= {d}\n{v} = s[0] * s[1]",
        "s = np.array([{a}, {b}])\nt = s\nt[0] = {c}\n{v} = s[0] + s[1]",
        "s = np.array([{a}, {b}])\nt = s.copy()\nt[0] = {c}\n{v} = s[0] + t[0]",
        "s = np.array([{a}, {b}])\ns = 2.0 * s + 1.0\n{v} = s[0] - s[-1]",
        "s = np.array([{a}, {b}])\n{v} = s.sum()",
        "s = np.array([{a}, {b}], np.float32)\n{v} = 1e7 * (np.float64(s[0]) - {a})",
        "s = np.zeros(2, dtype=np.bool_)\ns[0] = {a} > {c}\n{v} = float(s[0])",
        "s = np.zeros(2, np.int64)\ns[0] += 3\n{v} = {a} * s[0] // 2",
        "s = np.arange(3)\ns[1] = 2.0 * {a}\n{v} = float(s[1])",
        "s = np.array([1, 2, 3]) / 2\ns[0] = {a}\n{v} = s[0] * s[2]",
        "s = np.zeros_like(np.array([1, 2]))\ns[0] = 2.0 * {a}\n{v} = float(s[0])",
        "s = [{a}, {b}]\ns[0] = {c}\n{v} = s[0] * s[1]",
        "s = np.array([[1.0, {a}], [{b}, 2.0]])\n{v} = s[0, 1] - s[1, 0]",
        "s = np.array([{a}, {b}])\n{v} = s[int({a} > {c})]",
        "s = np.array([{a}, 1])\n{v} = s[1] + s[0]",
    ),
    "loops": (
        "{v} = 0.0\nfor i in range(3):\n    {v} += {a} * {c}",
        "{v} = 0.0\nfor i, w in enumerate(({c}, {e}, {d})):\n    {v} += w * {a} * i",
        "{v} = {b}\nfor p, q in zip(({c}, {d}), ({a}, {b})):\n    {v} = p * q - 0.5 * {v}",
        "{v} = {a}\nn = 0\nwhile n < 3:\n    {v} = 0.5 * {v} + {c}\n    n += 1",
        "{v} = {a}\nwhile {v} > {c}:\n    {v} -= 0.75",
        "{v} = 0.0\nfor i in range(4):\n    if {a} > 0.5 * i:\n        {v} += 0.5\n    else:\n        break",
        "{v} = 0.0\nfor i in range(4):\n    if i == 2:\n        continue\n    {v} += {a} / (1 + i)",
        "{v} = {c}\nfor i in range(2):\n    if {a} > {d}:\n        break\nelse:\n    {v} = -1.0",
        "{v} = 0.0\nfor i in range(int(min(max(2.0 * {a}, 0.0), 3.0))):\n    {v} += 0.5",
        "{v} = {a}\nfor i in range(3, 0, -1):\n    {v} = {v} / i",
        "{v} = {a}\nfor w in (1, 2, 3):\n    {v} = {v} * w // 2",
        "{v} = 0.0\nfor w in np.array([{a}, {b}, {c}]):\n    {v} = max({v}, w)",
    ),
    "tables": (
        "{v} = TABLE[int(min(max(2.0 * {a}, 0.0), 3.0))]",
        "{v} = TABLE[int(min(max({a}, 0.0), 2.9))] - TABLE[int({b} > 0.0)]",
        "{v} = float(WHOLE[int(min(max(2.0 * {a}, 0.0), 2.0))]) / 2",
        "{v} = float(SINGLE[int(min(max(2.0 * {a}, 0.0), 2.0))]) * {b}",
        "{v} = np.interp({a}, (-1.0, -0.2, 0.5, 2.0), (0.3, -1.0, {c}, 0.1))",
        "{v} = np.interp({a}, POINTS, VALUES)",
        "{v} = POINTS[-1 - int(min(max({a}, 0.0), 1.0))]",
        "{v} = TABLE[int(np.floor(min(max(2.0 * {a}, 0.0), 3.0)))]",
        "{v} = GAIN * {a} + 1e6 * (np.float64(GAIN) - 0.1)",
        "{v} = TABLE[round(min(max({a}, 0.0), 3.0))]",
        "{v} = TABLE[np.int64(-min(max(2.0 * {a}, 0.0), 3.0))]",
    ),
    "functions": (
        "def inner(p, q={c}):\n    return p * q - {b}\n{v} = inner({a}) + inner({b}, {d})",
        "{v} = helper({a}, {b})",
        "{v} = helper({a})",
        "{v} = scaled({a})",
        "{v} = (lambda p: p * {c} - 1.0)({a})",
        "{v} = branch({a}, {b})",
        "p, q = pair({a}, {b})\n{v} = p - {c} * q",
    ),
    "exceptions": (
        "try:\n    {v} = float(round({a}))\nexcept Exception:\n    {v} = 0.0",
        "try:\n    {v} = {a} / {b}\nexcept Exception:\n    {v} = 0.25",
        "try:\n    {v} = math.sqrt({a} - {c})\nexcept Exception:\n    {v} = 0.25",
        "try:\n    {v} = TABLE[int(2.0 * {a})]\nexcept Exception:\n    {v} = -1.0",
        "try:\n    {v} = float(hash({a}) % 3)\nexcept Exception:\n    {v} = 0.0",
    ),
    "randomness": (
        "{v} = 5.0 if np.random.random() < 0.05 else {a}",
        "{v} = {a} + random.random()",
        "{v} = np.random.uniform(-1.0, 1.0) * {a}",
        "{v} = {a} + 0.5 * np.random.normal()",
    ),
    "functions of numbers": (
        "{v} = np.clip({a}, {e}, {d})",
        "{v} = math.hypot({a}, {b})",
        "{v} = math.copysign({c}, {a})",
        "{v} = math.copysign({a}, -{c})",
        "{v} = np.sign({a}) * {b}",
        "{v} = math.floor(2.0 * {a}) + math.ceil({b})",
        "{v} = math.fmod({a}, {c})",
        "{v} = {a} % {c} + {b} // {d}",
        "{v} = {a} % -{c}",
        "{v} = -{a} // {c}",
        "{v} = {c} // ({a} + 3.0) + {d} % ({b} + 4.0)",
        "{v} = {a} ** 2 - {b} ** 3",
        "{v} = ({a} + 3.0) ** -2 + ({b} + 4.0) ** 0.5",
        "{v} = ({a} + 3.0) ** 1.5",
        "{v} = pow({a}, 2) * math.pow({b}, 3.0)",
        "{v} = 2.0 ** {a}",
        "{v} = float(np.where({a} > {c}, {a}, {b}))",
        "{v} = math.atan2({a}, {b})",
        "{v} = math.atan2(-0.0 * {a}, {b})",
        "{v} = max({a}, {b}, {c}) - min(({a}, {d}))",
        "{v} = np.minimum({a}, {b}) * np.maximum({c}, {a})",
        "{v} = math.log(abs({a}) + {c}) + math.exp(min({b}, 1.0))",
        "{v} = math.sqrt({a} * {a} + {c}) * math.cos({b})",
        "{v} = math.tan(min(max({a}, -1.2), 1.2)) + math.tanh({b})",
        "{v} = sum(({a}, {b}, {c}))",
        "{v} = divmod({a}, {c})[1]",
        "{v} = math.degrees({a}) % 90.0 / 90.0",
        "{v} = np.round({a}, 1)",
        "{v} = math.log1p(abs({a})) + math.expm1({b})",
        "{v} = math.asin(min(max({a}, -1.0), 1.0))",
        "{v} = np.cbrt({a})",
    ),
    "assignments": (
        "p = {a}\nq = {b}\np, q = q, p - q\n{v} = p * q",
        "{v} = p = {a} + {c}\np += 1.0\n{v} -= p * 0.5",
        "{v} = {a}\n{v} *= {c}\n{v} //= 1\n{v} -= {b}",
        "{v} = {a} if {a} > {b} else {c} if {b} > {d} else {b}",
        "if {a} > {c}:\n    {v} = {b}\nelif {b} > {d}:\n    {v} = -{a}\nelse:\n    {v} = 0.5",
        "{v} = (q := {a} * {c}) + q",
        "s = ({a}, {b}, {c})\n{v} = s[0] - s[-1] + len(s)",
        "{v} = {a}\n{v} %= {c}\n{v} **= 2",
    ),
}
"""{a} and {b} are numbers, {c} and {d} positive constants, {e} a negative one, and {v} is the result."""
_PLAIN = (
    *("{a} + {b}", "{a} - {b}", "{a} * {b}", "{c} * {a}", "min({a}, {c})", "max({a}, {e})", "abs({a})"),
    *("-{a}", "{a} if {a} > {c} else {b}", "math.sin({a})", "math.cos({b})", "{a} - {c}", "{a} / {c}"),
)
_BOUNDED = (
    *("min(max({v}, -1.0), 1.0)", "max(min({v}, 1.0), -1.0)", "math.sin({v})", "math.tanh({v})", "{v} % 1.0"),
    *("(1.0 if {v} > {c} else -1.0)", "(1.0 if {v} < {c} else 0.0)", "min(1.0, max(-1.0, {v}))", "{v}"),
    *("math.atan({v}) / 2.0", "(0.0 if {v} <= {c} else 1.0)", "min(max(0.0, {v}), 1.0)"),
)
_CONSTANTS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0)

GLOBALS = """
import math
import random

import numba
import numpy as np

TABLE = (0.5, -1.0, 2.0, 0.25)
WHOLE = np.array([1, -2, 3])
SINGLE = np.array([0.1, -0.7, 0.3], np.float32)
POINTS = np.array([-1.0, -0.25, 0.5, 1.5])
VALUES = np.array([0.5, -0.75, 1.0, 0.1])
GAIN = np.float32(0.1)


@numba.njit
def helper(p, q=0.5):
    return p * q + 0.25 if p > q else p - q


@numba.njit
def branch(p, q):
    if p > 0.0:
        return q
    return -1.0


@numba.njit
def pair(p, q):
    return q, p


def _scaled(factor):
    @numba.njit
    def inside(p):
        return factor * p
    return inside


scaled = _scaled(0.7)
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A random plant with a controller and a statement."""

    number: int
    features: tuple[str, ...]
    source: str
    dims: int
    listed: bool
    width: float
    """States are from minus this to this, in each number."""
    starts: tuple[tuple[float, float], ...]
    """For each number of the state. The ends and the width of cells are exact."""
    threshold: float
    """The controller's: of the first number, in single precision."""
    actions: tuple[float, float]
    """Below it, and from it on."""
    kind: str
    """`stays`, `lasts`, `reaches` or `goal`."""
    within: int

    @property
    def names(self) -> tuple[str, ...]:
        return ("x", "y")[: self.dims]

    @property
    def statement(self) -> spaql.verify.Statement:
        starts = dict(zip(self.names, self.starts, strict=True))
        box = dict.fromkeys(self.names, (-self.width, self.width))
        if self.kind == "goal":
            return spaql.verify.Statement(starts=starts, termination="goal", within=self.within)
        if self.kind == "reaches":
            near = dict.fromkeys(self.names, (-self.width / 2, self.width / 2))
            return spaql.verify.Statement(starts=starts, target=near, stays=True, within=self.within)
        if self.kind == "lasts":
            return spaql.verify.Statement(starts=starts, allowed=box, within=self.within)
        return spaql.verify.Statement(starts=starts, allowed=box)

    @property
    def plant(self) -> spaql.Dynamics:
        start = (0.3, 0.2)[: self.dims]
        return spaql.Dynamics(
            id="fuzzed/Plant-v0",
            start=lambda rng: start,
            step=self.step,
            observations=dict.fromkeys(self.names, (-2.0, 2.0)),
            actions=("first", "second", "third") if self.listed else {"u": (-1.0, 1.0)},
            horizon=50,
        )

    def tree(self, plant: spaql.Dynamics) -> Controller:
        """Return the controller for its plant."""
        first, second = self.actions
        laws = [int(first), int(second)] if self.listed else [[first], [second]]
        return controller_for(plant, laws, **one_cut(self.threshold))

    @property
    def step(self) -> Any:
        """The function of a step, not compiled."""
        file = f"fuzzed-{self.number}.py"
        text = GLOBALS + self.source
        linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
        space: dict[str, Any] = {"__name__": "fuzzed"}
        exec(compile(text, file, "exec"), space)
        return space["step"]


def case(number: int, feature: str | None = None) -> Case:
    """Return the plant of a number; with a feature, that is the only one of it."""
    rng = random.Random(number)
    dims = rng.choice((1, 1, 2))
    listed = rng.random() < 0.3
    names = ["x", "y"][:dims]
    body = [
        f"{', '.join(names)}{',' if dims == 1 else ''} = state",
        f"u = {'float(action)' if listed else 'action[0]'}",
    ]
    numbers = [*names] * 4 + ["u"]
    chosen = [feature or rng.choice(list(FEATURES))]
    if feature is None and rng.random() < 0.4:
        chosen.append(rng.choice(list(FEATURES)))
    lines = [(rng.choice(_PLAIN), "") for _ in range(rng.randrange(3))]
    lines += [(rng.choice(FEATURES[one]), one) for one in chosen]
    rng.shuffle(lines)

    def filled(text: str, name: str) -> str:
        a, b, c, d = (rng.choice(one) for one in (numbers, numbers, _CONSTANTS, _CONSTANTS))
        return text.format(a=a, b=b, c=c, d=d, e=-rng.choice(_CONSTANTS), v=name)

    results = []
    for i, (text, named) in enumerate(lines):
        name = f"v{i}"
        results += [name] * bool(named)
        body += filled(text if named else "{v} = " + text, name).split("\n")
        numbers += [name] * 2
    width = rng.choice((1.0, 1.0, 2.0))
    for j, name in enumerate(names):
        shrink = round(rng.uniform(-0.6, 0.6), 2)
        part = filled(rng.choice(_BOUNDED), results[-1 - j % len(results)])
        adds = round(rng.uniform(0.1, 1.05) * (1.0 - abs(shrink)) * width, 3)
        other = f" + {round(rng.uniform(-0.1, 0.1), 2)} * {rng.choice([*names, 'u'])}" * (rng.random() < 0.4)
        body.append(f"n{name} = {shrink} * {name} + {adds} * {part}{other}")
    ends = (
        f"n{rng.choice(names)} > {round(rng.uniform(0.8, 1.5) * width, 2)}" if rng.random() < 0.3 else "False"
    )
    body.append(f"return ({', '.join('n' + name for name in names)},), 0.0, {ends}")
    actions = (-0.5, rng.choice((0.0, 1.0)))
    if listed:
        actions = (float(rng.randrange(3)), float(rng.randrange(3)))
    starts = [(-width, width)] * dims
    kinds = ("stays", "lasts", "reaches")
    kind = rng.choice(kinds if "NaN" in chosen else (*kinds, *["goal"] * 6))
    if kind == "goal":  # of a small box the next states are near each other: other ones stand out
        parts = rng.choice((4, 16, 64))
        size = 2.0 * width / parts
        lows = [-width + size * rng.randrange(parts) for _ in names]
        starts = [(low, low + size) for low in lows]
    return Case(
        number=number,
        starts=tuple(starts),
        features=tuple(chosen),
        source="\n\ndef step(state, action):\n" + "".join(f"    {line}\n" for line in body),
        dims=dims,
        listed=listed,
        width=width,
        threshold=rng.choice((0.0, 0.25, -0.5)),
        actions=actions,
        kind=kind,
        within={"lasts": rng.choice((1, 2, 5)), "reaches": 30, "goal": 1, "stays": 0}[kind],
    )


def with_goal(given: Case, low: list[float], high: list[float]) -> Case:
    """Return the case with a termination where the next state is in a box."""
    tests = " and ".join(
        f"{a!r} <= n{name} <= {b!r}" for name, a, b in zip(given.names, low, high, strict=True)
    )
    head, _, _ = given.source.rpartition(", 0.0, ")
    return dataclasses.replace(given, source=f"{head}, 0.0, {tests}\n")


def starts_of(given: Case, verdict: Any, count: int = 200) -> list[tuple[tuple[float, ...], int]]:
    """Return states in proven cells, with the steps that are proven to suffice: corners, zeros and so on."""
    rng = random.Random(given.number)
    side = verdict.status.shape[0]
    proven = [tuple(cell) for cell in np.argwhere(verdict.status == 0).tolist()]
    special = (0.0, -0.0, 5e-324, -5e-324, 0.5, -0.5, 0.25, 1.0, -1.0, 0.75, 1.5, -1.5)
    found = []
    for i in range(count):
        cell = proven[i % len(proven)] if i < count // 2 else rng.choice(proven)
        state = []
        for place, (low, high) in zip(cell, given.starts, strict=True):
            size = (high - low) / side
            bottom = low + place * size
            x = bottom + rng.choice((0.0, 0.5, 1.0, rng.random(), rng.random())) * size
            inside = [s for s in special if bottom <= s <= bottom + size]
            if inside and rng.random() < 0.5:
                x = rng.choice(inside)
            near = math.nextafter(x, rng.choice((x, -9.0, 9.0)))
            state.append(near if bottom <= near <= bottom + size else x)
        found.append((tuple(state), int(verdict.times[cell])))
    return found


def contradiction(given: Case, step: Any, start: tuple[float, ...], time: int) -> str:
    """Play the compiled step from a proven state; returns what contradicts the statement, or nothing."""
    state = start
    last = {"stays": 40, "lasts": given.within, "reaches": time + 20, "goal": time}[given.kind]
    for k in range(last + 1):
        if (
            given.kind != "goal"
            and not all(-given.width <= x <= given.width for x in state)
            and (given.kind != "reaches")
        ):
            return f"{state} is not allowed (step {k})"
        if given.kind == "reaches" and k >= time and not all(abs(x) <= given.width / 2 for x in state):
            return f"{state} is not in the target (step {k}, proven for {time})"
        if k == last:
            break
        seen = float(np.float32(state[0]))
        given_action = given.actions[0] if seen < given.threshold else given.actions[1]
        action = int(given_action) if given.listed else np.array([given_action])
        try:
            state, _, ended = step(state, action)
        except IndexError as error:  # of a tuple; that of an array is not checked
            return f"its step raises {error!r} in {state} (step {k})"
        if not all(map(math.isfinite, state)) and not (ended and given.kind == "goal"):
            return f"{state} is not finite (step {k + 1})"
        if ended and given.kind == "goal":
            return ""
        if ended:
            return f"it terminates in {state} (step {k + 1})"
    return f"it has not terminated: {state} (step {last})" if given.kind == "goal" else ""


def compiled(given: Case) -> Any:
    """Return the compiled step: with the options of training, and not in the cache on disk."""
    return numba.njit(error_model="numpy")(given.step)


@dataclass(frozen=True)
class Outcome:
    """What was found of a case."""

    case: Case
    kind: str
    """`refused by the tracer`, `undecided`, `proven` and so on."""
    said: str = ""
    """Why it was refused, or what contradicts."""
    proven: float = 0.0


def examined(number: int, feature: str | None = None) -> Outcome:
    """Prove what can be proven of the plant of a number, and play it from proven cells."""
    given = case(number, feature)
    try:
        plant = given.plant
    except SettingError as error:
        return Outcome(given, "no plant", str(error))
    except Exception as error:  # the function fails in plain Python at its first start
        return Outcome(given, "no plant", f"{type(error).__name__}: {error}")
    try:
        if given.kind == "goal":
            given = with_goal(given, *_images(given, plant))
            plant = given.plant
        levels = 5 if given.dims == 1 else 3
        verdict, _ = searched(given.tree(plant), plant, given.statement, seconds=0.5, levels=levels)
    except SettingError as error:
        by_numba = "Numba cannot compile" in str(error)
        return Outcome(given, f"refused by {'Numba' if by_numba else 'the tracer'}", str(error))
    if verdict.proven == 0.0:
        return Outcome(given, "undecided")
    step = compiled(given)
    try:
        for start, time in starts_of(given, verdict):
            if wrong := contradiction(given, step, start, time):
                return Outcome(given, "contradicted", f"from {start}: {wrong}", verdict.proven)
    except numba.core.errors.NumbaError as error:
        return Outcome(given, "refused by Numba", _reason(error), verdict.proven)
    return Outcome(given, "proven" if verdict.proven == 1.0 else "proven in part", "", verdict.proven)


def _images(given: Case, plant: spaql.Dynamics) -> tuple[list[float], list[float]]:
    """Return a box around the next states as they were traced: a proof of it is wrong wherever that is."""
    loop = closed_loop(given.tree(plant), plant)
    low, high = np.array(given.starts).T
    starts = np.random.default_rng(given.number).uniform(low, high, (100, given.dims))
    with np.errstate(all="ignore"):
        after = play(loop.step.arrays, loop.observe.arrays, loop.arrays.tree, starts, 1)[0][:, 1]
    after = after[np.isfinite(after).all(axis=1)]
    if not len(after):
        return [-1.0] * given.dims, [1.0] * given.dims
    low = after.min(axis=0)
    high = after.max(axis=0)
    pad = 0.02 * (high - low) + 1e-9
    return (low - pad).tolist(), (high + pad).tolist()


def _reason(error: Exception) -> str:
    """Return the line of Numba's message that says what it does not know."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return next((line for line in lines[1:] if not line.startswith(("-", "File", ">>>"))), lines[0])
