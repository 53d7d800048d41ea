"""What a plant depends on: an edit of any of it is simulated, and nothing else is compiled again."""

import ctypes
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numba
import numpy as np
import pytest

import spaql
from spaql.errors import UncachedPlantWarning
from spaql.problems.content import content_of

PARAMS = "K = {k}\nTEXT = 'k'\n"
HELPERS = """
import numba
import params
from inner import scaled

@numba.njit
def factor(x):
    return {k} * x

@numba.njit
def of_helper(x):
    return scaled(x)

@numba.njit(cache=True)
def cached_by_numba(x):
    return params.K * x
"""
INNER = "import numba\n\n@numba.njit\ndef scaled(x):\n    return {k} * x\n"
PLANTS = """
import enum
from typing import NamedTuple
import numba
import numpy as np
from numba.extending import overload, register_jitable
import spaql
import helpers
import params
import params as other_name
import package.values

class Pair(NamedTuple):
    a: float
    b: float

class Mode(enum.Enum):
    FAST = params.K

GLOBAL = params.K
TABLE = np.zeros(3000)
TABLE[1500] = params.K
PAIR = Pair(1.0, params.K)
NESTED = (1.0, (2.0, params.K))
LAST_BITS = np.array([1.0 + params.K * 2.0**-51])  # printed as 1.0 in either case

@register_jitable
def jitable(x):
    return params.K * x

def overloaded(x):
    return params.K * x

@overload(overloaded)
def compiled_instead(x):
    def one(x):
        return params.K * x
    return one

def closing(k):
    def step(state, action):
        return (k * state[0],), 0.0, False
    return step

def with_inner(state, action):
    def inner(x):
        return params.K * x
    return (inner(state[0]),), 0.0, False

def by_local_name(state, action):
    p = params
    return (p.K * state[0],), 0.0, False

@numba.njit
def compiled_already(state, action):
    return (params.K * state[0],), 0.0, False

STEPS = {
    "global": lambda state, action: ((GLOBAL * state[0],), 0.0, False),
    "module": lambda state, action: ((params.K * state[0],), 0.0, False),
    "other name": lambda state, action: ((other_name.K * state[0],), 0.0, False),
    "local name": by_local_name,
    "module of a package": lambda state, action: ((package.values.K * state[0],), 0.0, False),
    "closure": closing(params.K),
    "default": lambda state, action, k=params.K: ((k * state[0],), 0.0, False),
    "table": lambda state, action: ((TABLE[1500] * state[0],), 0.0, False),
    "last bits": lambda state, action: (((LAST_BITS[0] - 1.0) * 2.0**51 * state[0],), 0.0, False),
    "named tuple": lambda state, action: ((PAIR.b * state[0],), 0.0, False),
    "nested tuple": lambda state, action: ((NESTED[1][1] * state[0],), 0.0, False),
    "enum": lambda state, action: ((Mode.FAST.value * state[0],), 0.0, False),
    "helper": lambda state, action: ((helpers.factor(state[0]),), 0.0, False),
    "helper of a helper": lambda state, action: ((helpers.of_helper(state[0]),), 0.0, False),
    "helper that Numba caches": lambda state, action: ((helpers.cached_by_numba(state[0]),), 0.0, False),
    "jitable": lambda state, action: ((jitable(state[0]),), 0.0, False),
    "overload": lambda state, action: ((overloaded(state[0]),), 0.0, False),
    "function within": with_inner,
    "compiled already": compiled_already,
}

def start(rng):
    return (0.5,)

def plant(way):
    return spaql.Dynamics(
        id=f"test/{way.replace(' ', '_')}-v0", start=start, step=STEPS[way], horizon=5,
        observations={"x": (-9.0, 9.0)}, actions={"u": (-1.0, 1.0)},
    )
"""
STEP = """
import json, sys
import gymnasium
import numpy as np
from plants import STEPS, plant
found = {}
for way in sys.argv[1:] or STEPS:
    made = plant(way)
    env = gymnasium.make(made.id, disable_env_checker=True)
    env.reset(seed=0)
    x = float(env.step(np.zeros(1, np.float32))[0][0])
    found[way] = x, bool(made.plant.step.function.stats.cache_hits), made.digest
print(json.dumps(found))
"""


def write(folder: Path, k: float) -> None:
    (folder / "package").mkdir(exist_ok=True)
    for name, text in {
        "params.py": PARAMS,
        "helpers.py": HELPERS,
        "inner.py": INNER,
        "package/__init__.py": "",
        "package/values.py": PARAMS,
    }.items():
        (folder / name).write_text(text.format(k=k))
    (folder / "plants.py").write_text(PLANTS)


def stepped(folder: Path, *ways: str) -> dict[str, list]:
    """Return what each plant does in a new process, whether it came from the cache, and its digest."""
    path = os.pathsep.join([str(folder), *sys.path])
    env = os.environ | {
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": path,
        "PYTHONHASHSEED": "random",
    }
    done = subprocess.run(
        [sys.executable, "-B", "-c", STEP, *ways],
        env=env,
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    return json.loads(done.stdout)


def assert_edits_are_seen(folder: Path, *ways: str) -> int:
    write(folder, 0.5)
    first = stepped(folder, *ways)
    write(folder, 9.0)
    edited = stepped(folder, *ways)
    again = stepped(folder, *ways)
    for way, (x, cached, digest) in edited.items():
        assert (first[way][0], x, cached) == (0.25, 4.5, False), way
        assert again[way] == [x, True, digest], way
        assert first[way][2] != digest, way
    return len(edited)


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_an_edited_plant_is_simulated_as_it_is_now(tmp_path: Path) -> None:
    assert_edits_are_seen(tmp_path, "module", "helper")


@pytest.mark.long
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_an_edit_is_seen_however_a_number_is_referred_to(tmp_path: Path) -> None:
    assert assert_edits_are_seen(tmp_path) == 19


def function(source: str, **names: object) -> types.FunctionType:
    """Return the function of a text, with these global names."""
    scope = {"__name__": "here", **names}
    exec(source, scope)
    return scope["f"]


READS = "def f(state, action):\n    return (K * state[0],), 0.0, False"


def test_the_parts_are_the_same_in_any_order_and_differ_by_content() -> None:
    digests = {
        content_of({"f": function(READS, K=value)}).digest
        for value in (
            *(1, 1.0, True, -0.0, 0.0, "1", b"1", (1.0,), [1.0], (1.0, 2.0), ((1.0,), 2.0), None),
            *(
                np.ones(2),
                np.ones(2, np.float32),
                np.ones((2, 1)),
                np.float32(1.0),
                np.ones((2, 2), order="F"),
            ),
            *({1: 2.0}, frozenset({1, 2}), range(3), np.ones((2, 2))),
        )
    }
    assert len(digests) == 21
    one = {"a", "b", "c"}
    other = {"c", "b", "a"}
    assert content_of({"f": function(READS, K=one)}) == content_of({"f": function(READS, K=other)})


def test_defaults_of_keywords_and_options_of_numba_are_content() -> None:
    source = "def f(state, action, *, k=K):\n    return (k * state[0],), 0.0, False"
    found = [content_of({"f": function(source, K=k)}).parts for k in (1.0, 2.0)]
    assert {name for name in found[0] if found[0][name] != found[1][name]} == {"f.k"}
    plain = function(READS, K=1.0)
    ways = [
        plain,
        numba.njit(plain),
        numba.njit(fastmath=True)(plain),
        numba.njit(error_model="numpy")(plain),
    ]
    assert len({content_of({"f": one}).digest for one in ways}) == 4
    called = "def f(state, action):\n    return HELPER(state, action)"
    assert len({content_of({"f": function(called, HELPER=one)}).digest for one in ways[1:]}) == 3


def test_functions_of_the_same_name_are_told_apart() -> None:
    def spring(k: float) -> types.FunctionType:
        return function("def f(x):\n    return -K * x", K=k)

    both = "def f(state, action):\n    return (front(state[0]) + 2.0 * rear(state[0]),), 0.0, False"
    one = content_of({"f": function(both, front=spring(1.0), rear=spring(2.0))})
    other = content_of({"f": function(both, front=spring(2.0), rear=spring(1.0))})
    assert one.digest != other.digest
    assert one.parts.keys() == other.parts.keys()


def test_functions_that_call_each_other_are_followed_once() -> None:
    source = "def f(x):\n    return g(x)\ndef g(x):\n    return f(x - 1) if x > K else x"
    found = [content_of({"f": function(source, K=k)}) for k in (1, 1, 2)]
    assert found[0] == found[1]
    assert {name for name in found[0].parts if found[0].parts[name] != found[2].parts[name]} == {"K"}


def test_a_module_of_the_users_own_with_the_name_of_a_shipped_one_is_followed(tmp_path: Path) -> None:
    """In a process of its own, since the name is taken here."""
    text = (
        "from spaql.problems.content import content_of\nimport this\nprint(content_of({'f': this.f}).parts)"
    )
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    shown = []
    for k in (1.0, 2.0):
        (tmp_path / "this.py").write_text(f"K = {k}\ndef f(x):\n    return K * x\n")
        command = [sys.executable, "-B", "-c", text]
        shown.append(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
    assert shown[0] != shown[1]
    assert "'K'" in shown[0]


def small_plant(name: str, step: object) -> spaql.Dynamics:
    return spaql.Dynamics(
        id=f"test/{name}-v0",
        start=lambda rng: (0.5,),
        step=step,
        observations={"x": (-9.0, 9.0)},
        actions={"u": (-1.0, 1.0)},
        horizon=5,
    )


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_what_cannot_be_followed_is_compiled_in_every_process_and_said() -> None:
    cosine = ctypes.CDLL(None).cos
    cosine.argtypes = (ctypes.c_double,)
    cosine.restype = ctypes.c_double
    source = "def f(state, action):\n    return (COS(state[0]),), 0.0, False"
    plant = small_plant("Pointer", function(source, COS=cosine))
    assert list(plant.content.unknown) == ["COS"]
    with pytest.warns(UncachedPlantWarning, match=r"test/Pointer-v0 is compiled in every process.* COS"):
        compiled = plant.plant
    states = np.full((1, 1), 0.5)
    compiled.step_rows(np.ones(1, bool), np.zeros((1, 1)), states)
    assert states[0, 0] == np.cos(0.5)
    assert type(compiled.step.function._cache).__name__ == "NullCache"


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_a_plant_that_is_changed_after_it_was_compiled_is_refused() -> None:
    step = function(READS, K=0.5)
    plant = small_plant("Changed", step)
    assert spaql.make_problem(plant).dynamics is plant
    _ = plant.plant
    step.__globals__["K"] = 9.0
    with pytest.raises(spaql.SettingError, match="test/Changed-v0 was compiled before a change of K"):
        spaql.make_problem(plant)
    again = small_plant("Changed", step)
    assert spaql.make_problem(again).dynamics is again
    assert again.digest != plant._compiled_from.digest


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_functions_without_a_module_are_not_kept_on_disk_where_they_cannot_be_found_again() -> None:
    for _ in range(2):
        plant = small_plant("Nowhere", function(READS, K=0.25))
        assert type(plant.plant.step.function._cache).__name__ == "NullCache"
