"""Files made by an enemy: a right hash over numbers that no model has."""

import contextlib
import hashlib
import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import spaql
from nightly import thorough
from spaql import archive
from spaql.agents import Design

FUZZ = Path(__file__).parents[2] / "benchmarks" / "fuzz.py"
HUGE = 10**18
DATA = [
    ("problem.horizon", HUGE),
    ("problem.horizon", 2**31),
    ("problem.horizon", 0),
    ("problem.horizon", -1),
    ("problem.horizon", 2.5),
    ("problem.horizon", "200"),
    ("problem.levels", HUGE),
    ("problem.interactions", -1),
    ("problem.reference", [0.0]),
    ("problem.reference", ["nan", "nan", "nan"]),
    ("problem.reward_range", [1.0, 0.0]),
    ("problem.env", 5),
    ("problem.options", []),
    ("problem.action_space.dtype", "O"),
    ("problem.action_space.shape", [HUGE]),
    ("problem.action_space", {"kind": "discrete", "n": HUGE, "start": 0}),
    ("problem.observation_space.low", ["nan", "nan", "nan"]),
    ("settings.rollouts", 2.5),
    ("settings.rollouts", True),
    ("settings.scaling", "20"),
    ("seed", -1),
    ("seed", 0.5),
    ("learner.best_return", "high"),
    ("history", ["iteration", "iteration.x"]),
]
ARRAYS = [
    ("learner.trainee.dims", np.array([3, HUGE])),
    ("learner.trainee.dims", np.array([-3, 12])),
    ("learner.trainee.dims", np.array([2, 12])),
    ("learner.trainee.q", np.full(396, np.nan)),
    ("learner.trainee.q", np.full(396, np.inf)),
    ("learner.trainee.q", np.zeros(396, np.float32)),
    ("learner.trainee.visits", np.full(396, -1)),
    ("learner.trainee.first_child", np.full(396, 395, np.int32)),
    ("learner.trainee.action_sizes", np.array([HUGE])),
    ("problem.scale", np.zeros(3)),
    ("problem.scale", np.full(3, np.inf)),
    ("problem.center", np.full(3, np.nan)),
    ("problem.center", np.zeros(10**5)),
    ("history.iteration", np.zeros(13, np.int64)),
    ("history.interactions", np.full(13, np.nan)),
]


LEARNED = [
    ("learner.best_return", "high"),
    ("learner.episodes", -1),
    ("learner.plan_seed", -1),
    ("learner.lot", 0.5),
    ("learner.turn", 7),
    ("learner.turn", 1),
    ("learner.hoped", -1),
    ("learner.playing", -1),
    ("learner.span", ["years", 0, 400]),
    ("learner.span", ["steps", -1, 400]),
    ("learner.span", ["steps", 0]),
    ("learner.returns", [[1.0]]),
]
STEPS = [
    ("learner.memory.begins", np.array([0, HUGE])),
    ("learner.memory.begins", np.array([-1, 3])),
    ("learner.memory.begins", np.array([2, 1])),
    ("learner.memory.begins", np.array([], np.int64)),
    ("learner.memory.begins", np.array([0.0])),
    ("learner.memory.actions", np.full((8, 1), 2.0)),
    ("learner.memory.actions", np.full((8, 1), -1.0)),
    ("learner.memory.actions", np.full((8, 1), 0.5)),
    ("learner.memory.actions", np.zeros((8, 3))),
    ("learner.memory.states", np.full((8, 4), np.nan)),
    ("learner.memory.states", np.zeros((8, 5))),
    ("learner.memory.states", np.zeros((8, 4), np.float32)),
    ("learner.memory.nexts", np.zeros((7, 4))),
    ("learner.memory.rewards", np.full(8, 1e200)),
    ("learner.memory.ended", np.zeros(8)),
    ("learner.warm", np.zeros((2, 9))),
    ("learner.warm", np.zeros((1, 8))),
    ("learner.warm", np.full((2, 8), np.nan)),
]


GOLDEN = Path(__file__).parents[1] / "golden" / "0.1"


@pytest.fixture(autouse=True, scope="module")
def compiled() -> None:
    """Load a sound file first: what compiling takes is not what a file takes."""
    spaql.load(GOLDEN / "aql-pendulum5.spaql")


def golden(name: str) -> archive.Document:
    return archive.load(GOLDEN / f"{name}.spaql")


def changed(data: dict, path: str, value: object) -> dict:
    data = json.loads(json.dumps(data))
    *way, last = path.split(".")
    inner = data
    for key in way:
        inner = inner[key]
    inner[last] = value
    return data


def peak_of(path: Path, load: Callable[[Path], object] = spaql.load) -> int:
    """Read a file, which may be refused, and give the most memory that it took."""
    tracemalloc.start()
    try:
        with contextlib.suppress(spaql.ArchiveError):
            load(path)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(path: Path, data: dict, arrays: dict, load: Callable[[Path], object] = spaql.load) -> None:
    """A file is refused, and costs no more memory than twice its size and a constant."""
    archive.save(path, data, arrays)
    with pytest.raises(spaql.ArchiveError):
        load(path)
    assert peak_of(path, load) < 2 * path.stat().st_size + 200_000


@pytest.mark.parametrize(("path", "value"), DATA, ids=lambda x: str(x)[:40])
def test_numbers_that_no_agent_has_are_refused(path: str, value: object, tmp_path: Path) -> None:
    document = golden("aql-pendulum5")
    refused(tmp_path / "a.spaql", changed(document.data, path, value), document.arrays)


@pytest.mark.parametrize(("name", "array"), ARRAYS, ids=lambda x: str(x)[:40])
def test_arrays_that_no_agent_has_are_refused(name: str, array: np.ndarray, tmp_path: Path) -> None:
    document = golden("aql-pendulum5")
    refused(tmp_path / "a.spaql", document.data, document.arrays | {name: array})


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> archive.Document:
    """PlanTree after an episode of 8 steps: a memory, from which it will plan."""
    agent = spaql.PlanTree("CartPole-v1", horizon=8, seed=2)
    agent.learn(total_timesteps=400, callback=lambda agent, row: False, progress_bar=False)
    assert agent.training_steps == 8
    path = tmp_path_factory.mktemp("begun") / "a.spaql"
    agent.save(path)
    return archive.load(path)


@pytest.mark.parametrize(("path", "value"), LEARNED, ids=lambda x: str(x)[:40])
def test_a_memory_that_counts_wrongly_is_refused(
    path: str, value: object, begun: archive.Document, tmp_path: Path
) -> None:
    archive.save(tmp_path / "sound.spaql", begun.data, begun.arrays)
    spaql.load(tmp_path / "sound.spaql")
    refused(tmp_path / "a.spaql", changed(begun.data, path, value), begun.arrays)


@pytest.mark.parametrize(("name", "array"), STEPS, ids=lambda x: str(x)[:40])
def test_steps_that_nobody_took_are_refused(
    name: str, array: np.ndarray, begun: archive.Document, tmp_path: Path
) -> None:
    refused(tmp_path / "a.spaql", begun.data, begun.arrays | {name: array})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("controller.action_space", {"kind": "discrete", "n": HUGE, "start": 0}),
        ("controller.actions", []),
        ("controller.features", 5),
        ("controller.memory", {}),
        ("controller.within", {"kind": "discrete", "n": 2, "start": 0}),
        ("controller.observations", ["x"]),
        ("origin", 5),
    ],
    ids=str,
)
def test_trees_that_no_controller_has_are_refused(path: str, value: object, tmp_path: Path) -> None:
    document = golden("controller-spaql-mountaincar")
    refused(tmp_path / "a.spaql", changed(document.data, path, value), document.arrays)


def test_laws_are_finite(tmp_path: Path) -> None:
    document = golden("controller-spaql-pendulum")
    offset = document.arrays["controller.laws.offset"]
    arrays = document.arrays | {"controller.laws.gain": np.ones((*offset.shape, 3))}
    archive.save(tmp_path / "sound.spaql", document.data, arrays)
    spaql.load(tmp_path / "sound.spaql")
    for name in ("controller.laws.offset", "controller.laws.gain"):
        bad = arrays | {name: np.full_like(arrays[name], np.nan)}
        refused(tmp_path / "a.spaql", document.data, bad)


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.spaql")), ids=lambda path: path.stem)
def test_no_array_takes_more_than_twice_its_file(path: Path, tmp_path: Path) -> None:
    """Neither many numbers, nor small ones that would be made large."""
    document = archive.load(path)
    large = tmp_path / "large.spaql"
    spaql.load(path)  # compiles
    as_it_is = peak_of(path)  # the agent, and its plant's functions, which Numba takes note of
    for name, array in document.arrays.items():
        if "candidate." in name and "candidate.0" not in name:  # they are alike
            continue
        for kind in {np.dtype(np.uint8), array.dtype}:
            bytes_each = kind.itemsize * max(int(np.prod(array.shape[1:])), 1)
            swollen = np.zeros((1_000_000 // bytes_each, *array.shape[1:]), kind)
            archive.save(large, document.data, document.arrays | {name: swollen})
            assert peak_of(large) < 2 * large.stat().st_size + as_it_is + 200_000, name


def test_a_candidate_whose_children_are_no_pairs_is_refused(tmp_path: Path) -> None:
    """The compiled search would read past its arrays."""
    document = golden("plantree-cartpole")
    left, right = (f"learner.candidate.0.{side}" for side in ("left", "right"))
    swapped = {left: document.arrays[right], right: document.arrays[left]}
    assert (document.arrays[left] >= 0).any()
    refused(tmp_path / "a.spaql", document.data, document.arrays | swapped)


def test_a_header_takes_little_memory(tmp_path: Path) -> None:
    text = json.dumps({"__metadata__": {"spaql": json.dumps({"kind": "agent", "x": [[]] * 10**6})}}).encode()
    body = len(text).to_bytes(8, "little") + text
    path = tmp_path / "a.spaql"
    path.write_bytes(b"spaql\0\0\1" + hashlib.sha256(body).digest() + body)
    for load in (spaql.load, Design.load):
        with pytest.raises(spaql.ArchiveError, match="a header of"):
            load(path)
        assert peak_of(path, load) < 3 * len(body)
    with pytest.raises(spaql.ArchiveError, match="at most 1048576 of them"):
        archive.save(path, {"x": "y" * 2**20}, {})


@pytest.mark.long
def test_a_large_file_takes_little_more_than_itself(tmp_path: Path) -> None:
    agent = spaql.AQL("cartpole200", seed=0, rollouts=1).learn(iterations=3000, progress_bar=False)
    agent.save(tmp_path / "large.spaql")
    size = (tmp_path / "large.spaql").stat().st_size
    assert size > 1_000_000
    assert size < peak_of(tmp_path / "large.spaql") < 2 * size + 400_000


@pytest.mark.parametrize(
    ("target", "mutants"),
    [("model", 1000), ("study", 500), ("store", 500), ("cli", 100), ("certificate", thorough(100))],
)
def test_mutated_files_do_nothing_but_raise(target: str, mutants: int) -> None:
    command = [sys.executable, str(FUZZ), "--target", target, "--mutants", str(mutants), "--seed", "5"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["mutants"] == report["refused"] + report["loaded"] == mutants
