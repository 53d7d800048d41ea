"""Random plants as Python source, and small controllers, for the tests of `spaql.verify`."""

from __future__ import annotations

import itertools
import linecache
import math
from typing import Any

import numpy as np

import spaql
from spaql import Controller

_UNARY = ("math.sin({x})", "math.cos({x})", "math.tanh({x})", "math.atan({x})", "abs({a})", "-{a}")
_GUARDED = (
    *("math.sqrt(abs({a}) + 0.1)", "math.exp(min(max({x}, -3.0), 3.0))", "math.log(abs({x}) + 0.5)"),
    *("{a} / (abs({b}) + 0.7)", "math.tan(min(max({x}, -1.2), 1.2))", "math.floor({a})"),
    *("math.sqrt({a} * {a} + {b} * {b})", "{x} % {c}", "np.fmod({x}, {c})", "math.atan2({x}, {y})"),
    "np.float32({a})",
    *("np.interp({a}, (-1.0, -0.2, 0.5, 2.0), (0.3, -1.0, {c}, 0.1))", "TABLE[int(min(max({a}, 0.0), 2.9))]"),
)
_PARTIAL = (
    *("math.sqrt({x})", "math.log({x})", "{a} / {b}", "{x} ** 0.5", "math.exp(500.0 * {x})", "math.tan({x})"),
    *("min(max({a}, -1.0), 1.0)", "max({c}, {a})", "math.sin({x})", "{x} % {c}", "math.tanh({x})"),
    *("np.fmod({x}, {c})", "math.atan2({x}, {y})", "np.sign({a})", "float(int({a}))", "{a} // {c}"),
    *("{a} * {a} * 1e200", "np.interp({a}, (-1.0, 1.0), (0.3, {c}))", "({a} < {b}) + 0.5 * ({a} > {c})"),
)
"""What may be infinite or NaN, and what makes a finite number of that."""
_BINARY = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "min({a}, {b})", "max({a}, {b})", "{a} * {a}", "{a} * {c}")
_CONDITIONS = ("{a} < {b}", "{a} >= {c}", "{a} <= {b} and {b} > {c}", "{a} == {b}", "not {a} > {c}")
"""{a} and {b} are numbers, {x} and {y} the same in double precision, {c} is a constant."""
_NUMBER = itertools.count()


def program(rng: np.random.Generator, lines: int, conditions: int, *, partial: bool = False) -> str:
    """Return the source of `step(state, action)` of two numbers and one; what is `partial` may return NaN."""
    names = ["x", "y", "u"]
    body = ["x, y = state", "u = action[0]"]

    def expression() -> str:
        form = str(rng.choice([*_BINARY * 2, *(_PARTIAL * 3 if partial else ()), *_UNARY, *_GUARDED]))
        a, b = rng.choice(names, 2)
        x = f"np.float64({a})"
        y = f"np.float64({b})"
        return form.format(a=a, b=b, x=x, y=y, c=round(float(rng.uniform(0.2, 3.0)), 2))

    for i in range(lines):
        name = f"v{i}"
        if conditions and rng.random() < 0.3:
            conditions -= 1
            a, b = rng.choice(names, 2)
            asked = str(rng.choice(_CONDITIONS)).format(a=a, b=b, c=round(float(rng.uniform(-1, 1)), 2))
            body += [f"if {asked}:", f"    {name} = {expression()}", "else:", f"    {name} = {expression()}"]
        else:
            body.append(f"{name} = {expression()}")
        names.append(name)
    results = rng.choice(names[2:], 2)
    body.append(f"return (float({results[0]}), float({results[1]})), 0.0, bool({names[-1]} > 1.5)")
    return "def step(state, action):\n" + "".join(f"    {line}\n" for line in body)


def plant(source: str) -> spaql.Dynamics:
    """Return the plant of a program, whose observation is its state."""
    file = f"program-{next(_NUMBER)}.py"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    space: dict[str, Any] = {"math": math, "np": np, "TABLE": (0.5, -1.0, 2.0), "GAIN": np.float32(0.1)}
    exec(compile(source, file, "exec"), space)
    return spaql.Dynamics(
        id=f"random/Plant{next(_NUMBER)}-v0",
        start=lambda rng: (0.0, 0.0),
        step=space["step"],
        observations={"x": (-2, 2), "y": (-2, 2)},
        actions={"u": (-1, 1)},
        horizon=50,
    )


def controller_for(dynamics: spaql.Dynamics, laws: Any, **rules: Any) -> Controller:
    """Return a controller of a plant: of one leaf, or of some rules."""
    spaces = {"observation_space": dynamics.observation_space, "action_space": dynamics.action_space}
    return Controller(laws=laws, **spaces, **rules)


def one_cut(threshold: float, feature: int = 0) -> dict[str, list[Any]]:
    """Return the rules of one cut: the first law below a threshold, and else the second one."""
    return {
        "feature": [feature, -1, -1],
        "threshold": [threshold, 0.0, 0.0],
        "left": [1, -1, -1],
        "right": [2, -1, -1],
        "leaf": [-1, 0, 1],
    }
