"""Plants for which a proof would be easy to get wrong: what is proven is played by the compiled step."""

import itertools
import linecache
import math
from typing import Any

import numba
import numpy as np
import pytest

import spaql
from spaql.controllers import Controller
from spaql.kernels.verify.closed_loop import advance, new_memory, put_box
from spaql.kernels.verify.forms import A
from spaql.verify import Statement, trace_step
from spaql.verify.closed_loop import ClosedLoop
from spaql.verify.verdict import PROVEN
from verify_programs import controller_for

NUMBER = itertools.count()
X = {"x": (-2.0, 2.0)}
XY = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}


def plant(body: str, observations=X, **named) -> spaql.Dynamics:
    """Return the plant whose step has these lines, of as many numbers as it has observations."""
    source = "def step(state, action):\n" + "".join(f"    {line}\n" for line in body.strip().split("\n"))
    file = f"false-{next(NUMBER)}.py"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    space: dict[str, Any] = {"math": math, "np": np, "random": np.random, "TABLE": np.array([1.0, 2.0])}
    space |= {name: named.pop(name) for name in ("helper", "first") if name in named}
    exec(compile(source, file, "exec"), space)
    start = tuple(0.382 * low + 0.618 * high for low, high in observations.values())
    return spaql.Dynamics(
        id=f"false/Plant{next(NUMBER)}-v0",
        start=named.pop("start", lambda rng: start),
        step=space["step"],
        observations=observations,
        actions={"u": (-1.0, 1.0)},
        horizon=100,
        **named,
    )


def at_rest(dynamics: spaql.Dynamics) -> Controller:
    """Return the controller whose action is always 0."""
    return controller_for(dynamics, [[0.0]])


def proven_starts(verdict, special=(), count=20_000) -> np.ndarray:
    """Return states of proven cells: at random, on their edges and corners, and some that are given."""
    rng = np.random.default_rng(0)
    shape = np.array(verdict.status.shape)
    cells = np.argwhere(verdict.status == PROVEN)
    if not len(cells):
        return np.empty((0, len(shape)))
    size = (verdict.high - verdict.low) / shape
    within = rng.random((count, len(shape)))
    within = np.where(rng.random(within.shape) < 0.2, np.round(within), within)
    starts = verdict.low + (cells[rng.integers(len(cells), size=count)] + within) * size
    for state in special:
        at = np.clip(((np.array(state) - verdict.low) / size).astype(int), 0, shape - 1)
        if verdict.status[tuple(at)] == PROVEN:
            starts = np.vstack([starts, state])
    return np.clip(starts, verdict.low, verdict.high)


def contradicted(dynamics, statement, names, starts, steps=60) -> np.ndarray:
    """Return which starts contradict a statement, as the compiled step plays them without an action."""
    states = np.array(starts)
    bad = np.zeros(len(states), np.bool_)
    reached = np.zeros(len(states), np.bool_)

    def inside(box):
        columns = [list(names).index(name) for name in box]
        return np.all(
            [
                (states[:, j] >= low) & (states[:, j] <= high)
                for j, (low, high) in zip(columns, box.values(), strict=True)
            ],
            axis=0,
        )

    last = statement.within or steps
    for k in range(last + 1):
        if statement.allowed:
            bad |= ~inside(statement.allowed)
        if statement.target is not None:
            reached |= inside(statement.target)
            bad |= (k == last) & ~(inside(statement.target) if statement.stays else reached)
        if k < last:
            n = len(states)
            _, _, ended = dynamics.plant.step_rows(np.ones(n, np.bool_), np.zeros((n, 1)), states)
            bad |= ended
    return bad


UNIT = """
x, y = state
r = math.sqrt(x * x + y * y)
return (0.9 * x - 0.01 * min(max(x / r, -1.0), 1.0), 0.9 * y - 0.01 * min(max(y / r, -1.0), 1.0)), 0.0, False
"""
WIDER = {"x": (-1.0, 2.0)}
STAYS = Statement(starts=X, allowed=X)
MAY_BE_NAN = {
    "the unit vector of 0": (UNIT, Statement(starts=XY, allowed=XY, within=3), [(0.0, 0.0)], 0.9),
    "sin(1 / x)": (
        "x, = state\nreturn (0.5 * math.sin(1.0 / x),), 0.0, False",
        Statement(starts=X, allowed=X, within=1),
        [(0.0,)],
        0.9,
    ),
    "sqrt": (
        "x, = state\nreturn (0.5 * x + 0.1 * min(max(math.sqrt(x), 0.0), 1.0),), 0.0, False",
        Statement(starts=WIDER, allowed={"x": (-2, 3)}, within=2),
        [(-0.5,)],
        0.6,
    ),
    "log %": (
        "x, = state\nreturn (math.log(x) % 1.0,), 0.0, False",
        Statement(starts=WIDER, allowed={"x": (-2, 3)}, within=1),
        [(-0.5,)],
        0.6,
    ),
    "a settled comparison": (
        "x, = state\nr = min(max(math.sqrt(x), 0.0), 1.0)\nreturn (0.5 if r >= 0.0 else 9.0,), 0.0, False",
        Statement(starts=WIDER, allowed={"x": (-2, 3)}, within=1),
        [(-0.5,)],
        0.6,
    ),
    "sin of what overflows": (
        "x, = state\nreturn (math.sin(math.exp(x)),), 0.0, False",
        Statement(starts={"x": (700.0, 709.9)}, allowed={"x": (-1.0, 710.0)}, within=1),
        [(709.85,)],
        0.5,
    ),
    "% of what overflows": (
        "x, = state\nreturn (math.exp(x) % 1.0,), 0.0, False",
        Statement(starts={"x": (700.0, 709.9)}, allowed={"x": (-1.0, 710.0)}, within=1),
        [(709.85,)],
        0.5,
    ),
    "overflow": (
        "x, = state\nreturn (min(max(math.exp(800.0 * x) - math.exp(790.0 * x), 0.0), 1.0),), 0.0, False",
        Statement(starts=X, allowed=X, within=1),
        [(1.0,)],
        0.4,
    ),
    "tanh of an infinite number": (
        "x, = state\nz = math.exp(350.0 * x)\nz = z * z\nreturn (math.tanh(z - z),), 0.0, False",
        Statement(starts=X, allowed=X, within=1),
        [(1.5,)],
        0.4,
    ),
    "the second operand": (
        "x, = state\nreturn (min(1.0, max(0.5, math.log(x))),), 0.0, False",
        Statement(starts=WIDER, allowed={"x": (-2, 3)}, within=1),
        [(-0.5,)],
        0.6,
    ),
    "a whole number below -2**63": (
        "x, = state\nk = math.floor(-1e19 * x)\nreturn (-1e-19 * k,), 0.0, False",
        Statement(starts={"x": (0.0, 2.0)}, allowed={"x": (-0.1, 2.1)}, within=1),
        [(1.5,)],
        -1.0,
    ),
    "single precision": (
        "x, = state\nf = np.float32(3e38 * x)\nreturn (min(max(float(f - f), 0.0), 1.0),), 0.0, False",
        Statement(starts=X, allowed=X, within=1),
        [(1.5,)],
        0.4,
    ),
    "an index": (
        "x, = state\nk = int(min(max(math.log(x), 0.0), 0.9))\nreturn (TABLE[k],), 0.0, False",
        Statement(starts=WIDER, allowed={"x": (-2, 3)}, within=1),
        [(-0.5,)],
        0.6,
    ),
    "a whole number beyond 2**63": (
        "x, = state\nk = int(1e19 * x)\nreturn (1e-19 * k,), 0.0, False",
        Statement(starts={"x": (0.0, 2.0)}, allowed={"x": (-0.1, 2.1)}, within=1),
        [(1.5,)],
        -1.0,
    ),
    "memory that was not written": (
        "x, = state\na = np.empty(1)\nreturn (min(max(a[0], 0.0), 1.0),), 0.0, False",
        Statement(starts=X, allowed=X, within=1),
        [(0.5,)],
        -1.0,
    ),
}
"""The step, the statement, special starts, and a share that must be proven all the same."""


@pytest.mark.parametrize("name", MAY_BE_NAN)
def test_what_may_be_nan_is_not_proven(name):
    body, statement, special, least = MAY_BE_NAN[name]
    dynamics = plant(body, dict(statement.starts))
    verdict = spaql.verify(at_rest(dynamics), dynamics, statement, seconds=8)
    starts = proven_starts(verdict, special)
    assert not contradicted(dynamics, statement, verdict.names, starts).any()
    assert least < verdict.proven < 1.0


@pytest.mark.parametrize("name", MAY_BE_NAN)
def test_nothing_is_known_of_a_set_that_may_hold_nan(name):
    body, statement, (special,), _ = MAY_BE_NAN[name]
    dynamics = plant(body, dict(statement.starts))
    loop = ClosedLoop.of(dynamics, at_rest(dynamics))
    memory = new_memory(loop.arrays)
    middle = np.array(special)
    put_box(memory.m, 0, middle - 1e-3, middle + 1e-3)
    box = memory.m[np.newaxis, : len(middle), : A + len(middle)].copy()
    assert advance(loop.arrays, memory, box, 0) == -1


TRUTHS = {
    "==": "3.0 if (x > 0.0) == (y > 0.0) else 0.5",
    "!=": "0.5 if (x > 0.0) != (y > 0.0) else 3.0",
    "<": "3.0 if (x > 0.0) < (y > 0.0) else 0.5",
    "+": "1.0 + (x > 0.0) + (y > 0.0)",
    "-": "1.5 - (x > 0.0) * 0.5 + (y > 0.0) / 1",
    "^": "3.0 if (x > 0.0) ^ (y > 0.0) else 0.5",
    "and": "3.0 if x > 0.0 and not (y > 0.0) else 0.5",
    "a chain": "3.0 if 0.0 < x < y else 0.5",
    "-(...)": "0.5 - 2.0 * -(x > y)",
    "value of or": "0.5 + ((x > 1.0) or 0.0)",
}


@pytest.mark.parametrize("name", TRUTHS)
def test_truth_values_are_as_the_compiled_step_has_them(name):
    dynamics = plant(f"x, y = state\nf = {TRUTHS[name]}\nreturn (f * x, 0.5 * y), 0.0, False", XY)
    tape = trace_step(dynamics)
    rng = np.random.default_rng(0)
    compiled = dynamics.compiled_functions[1]
    for state in [*rng.uniform(-2, 2, (50, 2)).tolist(), [0.0, 0.0], [1.0, 1.0]]:
        outputs, _ = tape([*state, 0.0])
        assert outputs.tolist() == list(compiled(tuple(state), np.zeros(1))[0])


def test_a_comparison_of_truth_values_is_refuted_where_it_is_false():
    body = "x, y = state\nf = 3.0 if (x > 0.0) == (y > 0.0) else 0.5\nreturn (f * x, y), 0.0, False"
    dynamics = plant(body, XY)
    verdict = spaql.verify(at_rest(dynamics), dynamics, Statement(starts=XY, allowed=XY), seconds=4)
    starts = proven_starts(verdict)
    assert verdict.counterexample is not None  # how many are played depends on the time
    assert not contradicted(dynamics, verdict.statement, verdict.names, starts).any()


WHOLE = {
    "int": "k = int(-min(max(x, 0.0), 5.0))",
    "np.int64": "k = np.int64(-min(max(x, 0.0), 5.0))",
    "math.trunc": "k = math.trunc(-1.7 * x)",
    "math.floor": "k = math.floor(-1.7 * x)",
    "math.ceil": "k = math.ceil(1.7 * x)",
    "//": "k = (3.0 * x) // 0.7",
    "int // int": "k = int(5.0 * x) // 3",
    "int % int": "k = int(-5.0 * x) % 3",
    "% of a negative number": "k = x % 0.7",
    "np.floor": "k = np.floor(-1.3 * x)",
    "an index": "k = TABLE[int(min(max(x, 0.0), 1.9))]",
    "a negative index": "k = TABLE[int(min(max(x, -1.9), 0.5))]",
    "range": "k = 0.0\nfor i in range(int(min(max(x, 0.0), 3.5))):\n    k += i * x",
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers_are_as_the_compiled_step_has_them(name):
    dynamics = plant(f"x, = state\n{WHOLE[name]}\nreturn (float(k) * 1.0,), 0.0, False")
    tape = trace_step(dynamics)
    compiled = dynamics.compiled_functions[1]
    for x in [*np.random.default_rng(0).uniform(-2, 2, 60).tolist(), 0.0, 1.0, -1.0, 2.0]:
        assert tape([x, 0.0])[0][0] == compiled((x,), np.zeros(1))[0][0]


def test_a_whole_number_of_a_negated_clip_is_not_proven_to_be_a_float():
    body = "x, = state\nk = np.int64(-min(max(x, 0.0), 5.0))\nreturn (-float(k),), 0.0, False"
    statement = Statement(starts={"x": (-0.1, 4.5)}, target={"x": (-0.1, 0.1)}, stays=True, within=1)
    dynamics = plant(body)
    verdict = spaql.verify(at_rest(dynamics), dynamics, statement, seconds=4)
    assert not contradicted(dynamics, statement, verdict.names, proven_starts(verdict)).any()
    assert verdict.refuted > 0.7


REFUSED = {
    "np.random": ("k = np.random.random()", "np.random"),
    "random": ("k = random.normal()", "random"),
    "an array of whole numbers": ("a = np.zeros(1, np.int64)\na[0] = 0.5 * x\nk = a[0]", "np.float64"),
    "whole numbers in an array": ("a = np.array((1, 2))\na[0] = 0.5 * x\nk = a[0]", "such as 1.0"),
    "np.full of a whole number": ("a = np.full(2, 1)\na[0] = 0.5 * x\nk = a[0]", "such as 1.0"),
    "whole numbers computed": ("a = np.array((1, 2)) * 2\na[0] = 0.5 * x\nk = a[0]", "as 1.0"),
    "an array in single precision": ("a = np.empty(1, np.float32)\na[0] = x\nk = float(a[0])", "np.float64"),
    "a list of whole numbers": ("a = [1, 2]\na[0] = x\nk = a[0]", "write tuples"),
    "an array from outside": ("TABLE[0] = x\nk = 0.0", "outside of the function"),
    "sums of an array": ("a = np.array((x, 1.0))\nk = a.sum()", "write a loop"),
    "try": ("try:\n    k = float(round(x))\nexcept Exception:\n    k = 0.0", "write a condition"),
    "with": ("with np.errstate():\n    k = 0.0", "a with block"),
    "del": ("k = x\ndel k\nk = 0.0", "del"),
    "global": ("global TABLE\nTABLE = x\nk = 0.0", "global variable"),
    "is": ("k = 1.0 if (x > 0.0) is True else 0.0", "compare with `==`"),
    "in": ("k = 1.0 if x in (0.0, 1.0) else 0.0", "compare with `==`"),
    "~": ("k = 1.0 if ~(x > 0.0) else 0.0", "write `not`"),
    "<<": ("k = int(min(max(x, 0.0), 1.0)) << 1", "`<<`"),
    "isinstance": ("k = 1.0 if isinstance(x, float) else 0.0", "isinstance is not traced"),
    "hasattr": ("k = 1.0 if hasattr(x, 'row') else 0.0", "hasattr is not traced"),
    "id": ("k = float(id(x) % 2)", "id is not traced"),
    "text": ("k = float(len(f'{x}'))", "written as text"),
    "text by %": ("k = float(len('%s' % x))", "written as text"),
    "a generator": ("k = sum(v for v in (x, x))", "a generator"),
    "an import": ("import cmath\nk = 0.0", "an import"),
    "np.int32": ("k = np.int32(x)", "np.int32"),
    "np.uint8": ("k = np.uint8(x)", "np.uint8"),
    "a power of a whole number": ("k = int(x) ** 2", "write float(x)"),
    "an attribute": ("step.calls = x\nk = 0.0", "an attribute that is set"),
}


def test_functions_that_numba_compiles_to_something_else_are_refused():
    def helper(x):
        return 0.5 * x

    for odd, said in (
        (numba.njit("float32(float32)")(helper), "a signature"),
        (numba.njit(fastmath=True)(helper), "fastmath"),
        (numba.njit(locals={"x": numba.float32})(helper), "locals"),
    ):
        with pytest.raises(spaql.SettingError, match=said):
            trace_step(plant("return (helper(state[0]),), 0.0, False", helper=odd))


def test_a_list_is_not_given_to_a_function_that_may_set_its_elements():
    def first(values, x):
        values[0] = x
        return values[0]

    with pytest.raises(spaql.SettingError, match="takes or returns a list"):
        trace_step(plant("return (float(first([1, 2], state[0])),), 0.0, False", first=first))


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_modelled_is_refused_with_the_line(name):
    lines, said = REFUSED[name]
    with pytest.raises(spaql.SettingError) as caught:
        trace_step(plant(f"x, = state\n{lines}\nreturn (0.5 * x + k,), 0.0, False"))
    assert said in str(caught.value)
    assert "false-" in str(caught.value)
    assert ", line " in str(caught.value)


def test_angles_are_said_to_be_known_up_to_whole_turns():
    body = "th, w = state\nw = min(max(w + 0.05, -3.0), 3.0)\nreturn (th + 0.05 * w, w), 0.0, False"

    def observe(state):
        return (math.cos(state[0]), math.sin(state[0]), state[1])

    seen = {"cos(angle)": (-1, 1), "sin(angle)": (-1, 1), "speed": (-3.0, 3.0)}
    dynamics = plant(body, seen, observe=observe, start=lambda rng: (0.1, 0.1))
    box = {"angle [rad]": (-math.pi, math.pi), "speed": (-3.0, 3.0)}
    statement = Statement(starts=box, allowed={"angle [rad]": (-10.0, 10.0), "speed": (-3.0, 3.0)})
    verdict = spaql.verify(at_rest(dynamics), dynamics, statement, seconds=4)
    assert verdict.turning == ("angle [rad]",)
    assert "never leaves angle [rad] -10 to 10 (up to whole turns), speed -3 to 3." in verdict.text


def test_printed_bounds_are_implied_by_those_that_are_proven():
    dynamics = plant("x, = state\nreturn (1.00044,), 0.0, False", {"x": (-1.0, 1.0)})
    box = {"x": (-1.00045, 1.00045)}
    verdict = spaql.verify(at_rest(dynamics), dynamics, Statement(starts=box, allowed=box), seconds=4)
    assert verdict.proven == 1.0
    assert "from x -1 to 1: it never terminates and it never leaves x -1.001 to 1.001." in verdict.text


def _half(state, action):
    x, y = state
    return (0.5 * x, 2.0 * y), 0.0, False


def _of_a_condition(state):
    return (state[0] if state[0] > 0.0 else state[0] - 10.0, state[1])


@pytest.mark.parametrize(
    ("observe", "names"),
    [
        (lambda state: (2.0 * state[0], state[1]), ("double", "state 0")),
        (lambda state: (math.cos(state[0]), math.sin(state[0]), state[1]), ("cos(a)", "sin(a)", "a [rad]")),
        (_of_a_condition, ("x", "state 0")),
    ],
)
def test_a_name_of_two_variables_is_refused(observe, names):
    """Of a hidden variable, of an angle that is observed by its cosine, and of one that shows at times."""
    dynamics = spaql.Dynamics(
        id=f"false/Plant{next(NUMBER)}-v0",
        start=lambda rng: (0.5, 0.25),
        step=_half,
        observe=observe,
        observations=dict.fromkeys(names, (-20.0, 20.0)),
        actions={"u": (-1.0, 1.0)},
        horizon=10,
    )
    box = {names[-1]: (-1.0, 1.0)}
    with pytest.raises(spaql.SettingError, match="two different variables"):
        spaql.verify(at_rest(dynamics), dynamics, Statement(starts=box, allowed=box), seconds=5)
