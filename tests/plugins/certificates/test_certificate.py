"""Certificates, and the second implementation that checks them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql
from nightly import thorough
from spaql import archive
from spaql.plugins.certificates.certificate import save_certificate
from spaql.plugins.certificates.check import check_certificate
from spaql.plugins.certificates.check_loop import Loop, boxes
from spaql.problems.tapes import trace_step
from spaql.verify.closed_loop import ClosedLoop
from spaql.verify.replay import played
from verify_programs import controller_for, one_cut, plant, program

SOURCE = """
def step(state, action):
    x, y = state
    speed = 0.7 * y + 0.1 * action[0]
    return (0.8 * x + 0.1 * speed, speed), 0.0, False
"""
BOX = {"x": (-2.0, 2.0), "y": (-2.0, 2.0)}
TARGET = {"x": (-0.3, 0.3), "y": (-0.3, 0.3)}


def lag_and_tree():
    """Return a stable plant, and a tree of two leaves."""
    lag = plant(SOURCE)
    return lag, controller_for(lag, [[0.1], [-0.1]], **one_cut(0.1))


@pytest.fixture(scope="module")
def verdict():
    lag, tree = lag_and_tree()
    asked = spaql.verify.Statement(starts=BOX, target=TARGET, stays=True, within=50)
    return spaql.verify(tree, lag, asked, levels=4)


@pytest.fixture(scope="module")
def file(verdict, tmp_path_factory):
    path = tmp_path_factory.mktemp("proof") / "lag.proof"
    save_certificate(verdict, path)
    return path


def test_a_certificate_is_confirmed(verdict, file):
    check = check_certificate(file)
    assert check.holds
    assert check.data["claimed"] == check.data["confirmed"]
    assert 0.9 * verdict.proven < check.data["confirmed"] <= verdict.proven


def changed(file, tmp_path, change):
    document = archive.load(file)
    data = dict(document.data)
    arrays = {name: np.array(a) for name, a in document.arrays.items()}
    change(data, arrays)
    path = tmp_path / "changed.proof"
    archive.save(path, data, arrays)
    return path


def too_soon(data, arrays):
    arrays["times"] = np.where(arrays["times"] > 3, 2, arrays["times"])


def sooner(data, arrays):
    arrays["times"], arrays["boxes.time"] = arrays["times"] // 3, arrays["boxes.time"] // 3


def other_tree(data, arrays):
    arrays["tree.offset"] = arrays["tree.offset"] + 0.9


def other_plant(data, arrays):
    arrays["step.value"] = np.where(arrays["step.value"] == 0.8, 1.01, arrays["step.value"])


def no_boxes(data, arrays):
    for name in ("boxes.level", "boxes.index", "boxes.time"):
        arrays[name] = arrays[name][:0]


def outside(data, arrays):
    """The first states are not allowed; all that come after them are."""
    arrays["keep"] = 0.97 * arrays["box"]


@pytest.mark.parametrize("change", [too_soon, sooner, other_tree, other_plant, no_boxes, outside])
def test_a_false_claim_is_not_confirmed(file, tmp_path, change):
    check = check_certificate(changed(file, tmp_path, change))
    assert not check.holds
    assert check.data["confirmed"] < check.data["claimed"]
    assert "NOT confirmed" in check.text


def circle(data, arrays):
    arrays["step.branch"] = arrays["step.branch"] * 0


HOSTILE = {
    "circle": circle,
    "operand": lambda data, arrays: arrays.update({"step.first": arrays["step.first"] + 1_000}),
    "code": lambda data, arrays: arrays.update({"step.code": arrays["step.code"] + 100}),
    "levels": lambda data, arrays: data.update(levels=26),
    "text": lambda data, arrays: data.update(levels="5"),
    "share": lambda data, arrays: data.update(proven=2.0),
    "index": lambda data, arrays: arrays.update({"boxes.index": arrays["boxes.index"] + 10**9}),
    "missing": lambda data, arrays: arrays.pop("times"),
    "type": lambda data, arrays: arrays.update({"times": arrays["times"].astype(np.float64)}),
    "short": lambda data, arrays: arrays.update({"times": arrays["times"][:7]}),
    "tree": lambda data, arrays: arrays.update({"tree.left": arrays["tree.left"] * 0}),
    "feature": lambda data, arrays: arrays.update({"tree.feature": arrays["tree.feature"] + 9}),
    "nan": lambda data, arrays: arrays.update({"box": arrays["box"] * np.nan}),
    "period": lambda data, arrays: arrays.update({"turns": ~arrays["turns"]}),
    "kind": lambda data, arrays: data.update(kind="agent"),
    "names": lambda data, arrays: data.update(numbers=["x"]),
    "limit": lambda data, arrays: data.update(limit=-1),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_raise_archive_errors(file, tmp_path, name):
    with pytest.raises(spaql.ArchiveError):
        check_certificate(changed(file, tmp_path, HOSTILE[name]))


def test_damaged_files_raise_archive_errors(file, tmp_path):
    content = file.read_bytes()
    for damaged in (
        b"",
        content[:100],
        content[:-1],
        content[:200] + bytes([content[200] ^ 1]) + content[201:],
    ):
        (tmp_path / "damaged.proof").write_bytes(damaged)
        with pytest.raises(spaql.ArchiveError):
            check_certificate(tmp_path / "damaged.proof")


def test_what_is_never_left_is_confirmed(tmp_path):
    lag, tree = lag_and_tree()
    asked = spaql.verify.Statement(starts=TARGET, allowed=BOX, forward=True)
    closed = spaql.verify(tree, lag, asked, seconds=10)
    assert closed.proven == 1.0
    save_certificate(closed, tmp_path / "closed.proof")
    assert check_certificate(tmp_path / "closed.proof").holds

    def smaller(data, arrays):
        arrays["reached"] = arrays["reached"][:-1]

    assert not check_certificate(changed(tmp_path / "closed.proof", tmp_path, smaller)).holds


GROWTH = """
def step(state, action):
    x, y = state
    return (1.05 * x + 0.01 * y, 0.9 * y + 0.01 * action[0]), 0.0, abs(x) > 1.0
"""


def test_what_is_not_left_in_some_steps_is_confirmed(tmp_path):
    growth = plant(GROWTH)
    tree = controller_for(growth, [[0.0]])
    starts = {"x": (-0.8, 0.8), "y": (-0.5, 0.5)}
    path = tmp_path / "growth.proof"
    found = spaql.verify(tree, growth, spaql.verify.Statement(starts=starts, within=10), levels=5)
    assert 0.5 < found.proven < 0.9
    save_certificate(found, path)
    check = check_certificate(path)
    assert check.holds
    assert check.data["confirmed"] > 0.9 * found.proven
    assert (
        check.data["statement"] == 'from "x" -0.8 to 0.8, "y" -0.5 to 0.5: it does not terminate in 10 steps'
    )

    def for_longer(data, arrays):
        data["limit"] = 11
        data["image"] = 11

    def for_ever(data, arrays):
        data["limit"] = 0

    def at_once(data, arrays):
        arrays["times"] = arrays["times"] * 0

    for change in (for_longer, at_once):
        assert not check_certificate(changed(path, tmp_path, change)).holds
    with pytest.raises(spaql.ArchiveError):
        check_certificate(changed(path, tmp_path, for_ever))


def test_a_distance_from_the_origin_is_known_there(tmp_path):
    """sqrt(x * x + y * y), of a sum whose lower end is 0."""
    circle = plant("""
def step(state, action):
    x, y = state
    return (0.9 * x, 0.9 * y), 0.0, math.sqrt(x * x + y * y) > 1.5
""")
    tree = controller_for(circle, [[0.0]])
    asked = spaql.verify.Statement(starts={"x": (-1.0, 1.0), "y": (-1.0, 1.0)}, within=5)
    found = spaql.verify(tree, circle, asked, levels=3)
    assert found.proven == 1.0
    save_certificate(found, tmp_path / "circle.proof")
    assert check_certificate(tmp_path / "circle.proof").data["confirmed"] == 1.0


def test_the_sentence_is_what_is_checked(file, tmp_path):
    """Not what somebody wrote in the file."""
    said = 'from "x" -2 to 2, "y" -2 to 2: it comes to "x" -0.3 to 0.3, "y" -0.3 to 0.3 within 50 steps'
    said += " and stays there for ever"
    assert check_certificate(file).data["statement"] == said
    with pytest.raises(spaql.ArchiveError):
        check_certificate(changed(file, tmp_path, lambda data, arrays: data.update(text="it never falls")))


def test_no_state_is_at_a_goal_without_a_step(tmp_path):
    slope = plant("""
def step(state, action):
    x, y = state
    return (x + 0.5, y), 0.0, x > 2.0
""")
    tree = controller_for(slope, [[0.0]])
    asked = spaql.verify.Statement(starts=BOX, termination="goal", within=20, forward=True)
    save_certificate(spaql.verify(tree, slope, asked, levels=3), tmp_path / "goal.proof")
    assert check_certificate(tmp_path / "goal.proof").holds

    def at_once(data, arrays):
        arrays["times"] = arrays["times"] * 0

    assert check_certificate(changed(tmp_path / "goal.proof", tmp_path, at_once)).data["confirmed"] == 0.0


@settings(max_examples=thorough(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_played_states_are_in_the_sets_of_the_checker(seed):
    rng = np.random.default_rng(seed)
    dynamics = plant(program(rng, int(rng.integers(2, 8)), 3))
    cut = rng.uniform(-1, 1)
    tree = controller_for(dynamics, rng.uniform(-1, 1, (2, 1)), **one_cut(cut))
    arrays = ClosedLoop.of(dynamics, tree).arrays
    left_out = ("discrete", "start")
    found = {f"tree.{name}": a for name, a in arrays.tree._asdict().items() if name not in left_out}
    for name, tape in (("step", arrays.step), ("observe", arrays.observe)):
        found |= {f"{name}.{field}": a for field, a in tape._asdict().items()}
    found |= {"period": arrays.period, "noise": arrays.noise, "push": arrays.push}
    from spaql.kernels.verify.points import OPERATIONS

    loop = Loop({"operations": list(OPERATIONS), "tree_discrete": False, "tree_start": 0}, found)
    middle = rng.uniform(-1.5, 1.5, 2)
    half = rng.choice([1e-6, 1e-2, 0.2], 2)
    low = middle - half
    high = middle + half
    with np.errstate(all="ignore"):
        groups = list(loop.advance(boxes(low[:, None], high[:, None], np.zeros(1, np.int64))))
    for _ in range(12):
        start = rng.uniform(low, high)
        states = played(dynamics, tree, start)
        next(states)
        state, ended = next(states)
        inside = [
            flag == ended and all(np.all((x >= part.lo[j]) & (x <= part.hi[j])) for j, x in enumerate(state))
            for group, flag in groups
            for part in (group.taken(np.array([i])) for i in range(len(group.owner)))
        ]
        assert any(inside) or not np.isfinite(state).all()
    assert trace_step(dynamics).paths >= 1
