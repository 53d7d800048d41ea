"""Certificates that claim what is not so, or that would not end: each is refused, or not confirmed."""

import itertools
import math
import time

import numpy as np
import pytest

import spaql
from spaql import archive
from spaql.plugins.certificates import check_loop
from spaql.plugins.certificates.certificate import check_of_run, save_certificate
from spaql.plugins.certificates.check import check_certificate
from spaql.plugins.certificates.check_claim import CLOSED, FIELDS, LASTS, NEVER, REACHES, STAYS, TERMINATES
from spaql.verify import Statement
from spaql.verify.closed_loop import ClosedLoop
from verify_programs import controller_for, plant

X = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}
HALVES = "def step(state, action):\n    x, y = state\n    return (0.5 * x, 0.5 * y), 0.0, False\n"
RISES = "def step(state, action):\n    x, y = state\n    return (x + 0.5, 0.5 * y), 0.0, x > 1.2\n"
DOUBLES = "def step(state, action):\n    x, y = state\n    return (2.0 * x, 0.5 * y), 0.0, False\n"
STANDS = HALVES.replace("0.5 *", "1.0 *")
JUMPS = """
def step(state, action):
    x, y = state
    if abs(x) <= 1.0:
        return (x + 5.0, 0.5 * y), 0.0, False
    return (0.5 * (x - 5.0), 0.5 * y), 0.0, False
"""
STATEMENTS = {
    NEVER: (HALVES, Statement(starts=X, allowed=X)),
    REACHES: (HALVES, Statement(starts=X, target={"x": (-0.3, 0.3)}, allowed=X, within=5)),
    STAYS: (HALVES, Statement(starts=X, target={"x": (-0.3, 0.3)}, stays=True, allowed=X, within=5)),
    TERMINATES: (RISES, Statement(starts=X, termination="goal", within=9)),
    LASTS: (HALVES, Statement(starts=X, allowed=X, within=3)),
    CLOSED: (HALVES, Statement(starts=X, allowed=X, forward=True)),
}


def one_leaf(dynamics, value=0.0):
    return controller_for(dynamics, [[value]])


def loop_of(source):
    """Return the arrays of the closed loop of a plant, as in a certificate."""
    dynamics = plant(source) if isinstance(source, str) else source
    arrays = ClosedLoop.of(dynamics, one_leaf(dynamics)).arrays
    tapes = {"step": arrays.step, "observe": arrays.observe}
    return {f"{name}.{field}": a for name, tape in tapes.items() for field, a in tape._asdict().items()}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A sound certificate of each claim."""
    folder = tmp_path_factory.mktemp("proofs")
    for claim, (source, asked) in STATEMENTS.items():
        dynamics = plant(source)
        verdict = spaql.verify(one_leaf(dynamics), dynamics, asked, levels=4, seconds=10)
        save_certificate(verdict, folder / claim)
    return folder


@pytest.fixture
def forged(files, tmp_path):
    """Return the path of a certificate with other data and arrays; None leaves one out."""

    def make(claim, data, arrays):
        document = archive.load(files / claim)
        new = document.data | data
        old = {**document.arrays, **arrays}
        archive.save(
            tmp_path / "forged",
            {name: value for name, value in new.items() if value is not None},
            {name: np.array(array) for name, array in old.items() if array is not None},
        )
        return tmp_path / "forged"

    return make


def refused_or_not_confirmed(path):
    try:
        return not check_certificate(path).holds
    except spaql.ArchiveError:
        return True


@pytest.mark.parametrize("claim", FIELDS)
def test_a_sound_certificate_of_each_claim_is_confirmed(files, claim):
    check = check_certificate(files / claim)
    assert check.holds
    assert archive.load(files / claim).data["claim"] == claim


def ends(low, high):
    return np.array([[low, -1.0], [high, 1.0]])


WIDE = ends(-100.0, 100.0)
ROUND = {"turns": np.array([True, False]), "box": ends(-math.pi, math.pi)}


def angle(step):
    return f"def step(state, action):\n    x, y = state\n    return {step}\n"


FORGED = {
    "home wider than keep": (STAYS, {"image": 2}, {"home": WIDE, "box": X, **loop_of(JUMPS)}),
    "leaves and comes back": (NEVER, {"image": 2}, loop_of(JUMPS)),
    "a home of what is never left": (NEVER, {}, {"home": WIDE}),
    "no such period": (NEVER, {}, {"period": np.array([2.0, 0.0]), **loop_of(DOUBLES)}),
    "a period that is not shown": (NEVER, {}, {"period": np.array([math.tau, 0.0]), **loop_of(DOUBLES)}),
    "a period of no cells": (NEVER, {}, {"turns": np.array([True, False])}),
    "a period but for a factor": (
        *(NEVER, {}),
        {
            **loop_of(angle("(x + 0.0, 0.5 * math.sin(1.0000000001 * x)), 0.0, False")),
            "period": [math.tau, 0.0],
        },
    ),
    "a period but for the end": (
        *(NEVER, {}),
        {**loop_of(angle("(x + 0.5, 0.5 * y), 0.0, x > 9.0")), "period": np.array([math.tau, 0.0]), **ROUND},
    ),
    "a period but for what is seen": (
        *(NEVER, {}),
        {**loop_of(angle("(x + 0.5, math.sin(x)), 0.0, False")), "period": np.array([math.tau, 0.0])},
    ),
    "a goal of what is closed": (CLOSED, {"goal": True, "reaches": True, "limit": 3}, {}),
    "a limit of what is closed": (CLOSED, {"limit": 3}, {}),
    "a home of what is closed": (CLOSED, {"limit": 1}, {"home": ends(0.9, 0.95)}),
    "what lasts terminates": (LASTS, {"claim": TERMINATES}, {}),
    "a goal of what lasts": (LASTS, {"goal": True}, {}),
    "what lasts is for ever": (LASTS, {"claim": NEVER, "limit": None}, {}),
    "what is reached terminates": (REACHES, {"claim": TERMINATES}, {"home": None}),
    "what is reached is stayed in": (
        *(REACHES, {"claim": STAYS}),
        {"core.level": np.array([0]), "core.index": np.array([0])},
    ),
    "another target": (REACHES, {}, {"home": ends(0.9, 0.95)}),
    "a target that is not allowed": (STAYS, {}, {"keep": ends(0.5, 0.9)}),
    "no target": (REACHES, {}, {"home": np.array([[-np.inf] * 2, [np.inf] * 2])}),
    "less is allowed": (NEVER, {}, {"keep": ends(-0.9, 0.9)}),
    "nothing is said": (NEVER, {}, {"keep": np.array([[-np.inf] * 2, [np.inf] * 2])}),
    "nothing is claimed": (NEVER, {"proven": 0.0}, {}),
    "NaN is allowed": (NEVER, {}, {"keep": np.full((2, 2), np.nan)}),
    "sooner": (TERMINATES, {"limit": 2}, {}),
    "at once": (TERMINATES, {"limit": 1}, {"times": np.ones(256, np.int32)}),
    "a box twice": (TERMINATES, {}, {"boxes.level": [0, 0], "boxes.index": [3, 3], "boxes.time": [4, 4]}),
    "another claim": (NEVER, {"claim": "it is safe"}, {}),
    "two names alike": (NEVER, {"numbers": ["x", "x"]}, {}),
    "a name of two lines": (NEVER, {"numbers": ["x", "y\n1"]}, {}),
    "a name that turns the text": (NEVER, {"plant": "\u202eabc"}, {}),
    "a name that is none": (NEVER, {"plant": 5}, {}),
    "rules with two parents": (
        NEVER,
        {},
        {
            "tree.feature": [0, 0, 0, -1],
            "tree.threshold": [0.0] * 4,
            "tree.left": [1, 3, 3, -1],
            "tree.right": [2, 2, 3, -1],
            "tree.leaf": [-1, -1, -1, 0],
        },
    ),
    "a law without a start": (NEVER, {"tree_discrete": True}, {"tree.offset": np.array([[-np.inf]])}),
    "cells below the rounding": (CLOSED, {}, {"origin": np.array([1e12, 1e12])}),
}
FORGED["home wider than keep"][2]["box"] = ends(-1.0, 1.0)


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_certificate_is_not_confirmed(forged, name):
    claim, data, arrays = FORGED[name]
    arrays = {k: a if a is None else np.asarray(a) for k, a in arrays.items()}
    assert refused_or_not_confirmed(forged(claim, data, arrays))


@pytest.mark.parametrize(("claim", "other"), list(itertools.permutations(FIELDS, 2)))
def test_no_claim_passes_for_another_with_the_fields_of_both(files, tmp_path, claim, other):
    """What is confirmed of the halving plant is then true: it comes near 0, and never terminates."""
    own = archive.load(files / claim)
    document = archive.load(files / other)
    data = {name: own.data.get(name, document.data.get(name)) for name in FIELDS[other][0]} | {"claim": other}
    arrays = {name: own.arrays.get(name, document.arrays.get(name)) for name in FIELDS[other][1]}
    archive.save(tmp_path / "mixed", data, arrays)
    terminates = bool(arrays["step.flags"].any())
    try:
        check = check_certificate(tmp_path / "mixed")
    except spaql.ArchiveError:
        return
    if check.holds:
        assert ("it terminates" in check.text) is terminates


def test_the_plant_is_known_by_its_equations_and_its_name_is_a_label(files, forged):
    before = check_certificate(files / NEVER)
    names = {"plant": 'Reactor "7"', "numbers": ["x -9 to 9, it terminates", "pressure"]}
    after = check_certificate(forged(NEVER, names, {}))
    assert after.data["equations"] == before.data["equations"]
    assert after.text.startswith(f"The plant with equations {before.data['equations'][:16]} ")
    assert 'named "Reactor \\"7\\"" in the file' in after.text
    assert 'from "x -9 to 9, it terminates" -1 to 1' in after.text
    other = check_certificate(forged(NEVER, {"image": 1}, loop_of(HALVES.replace("0.5 * y", "0.4 * y"))))
    assert other.data["equations"] != before.data["equations"]


def test_a_certificate_is_compared_with_a_plant_and_its_controller(files):
    same = plant(HALVES)
    other = plant(HALVES.replace("0.5 * y", "0.4 * y"))
    check = check_of_run(files / NEVER, one_leaf(same), env=same)
    assert check.holds
    assert check.text.endswith("It is about this run.")
    for dynamics, value, options, said in (
        (other, 0.0, {}, "the equations of its plant are"),
        (same, 0.5, {}, "its controller is"),
        (same, 0.0, {"push": 0.01}, "its disturbances are larger"),
    ):
        check = check_of_run(files / NEVER, one_leaf(dynamics, value), env=dynamics, **options)
        assert not check.holds
        assert said in check.text


def swings(state, action):
    return (state[0] + 0.1 * state[1], 0.9 * state[1] - 0.05 * math.sin(state[0])), 0.0, False


def test_promises_about_an_angle_hold_up_to_whole_turns_and_are_rounded_outwards(tmp_path):
    turns = spaql.Dynamics(
        id="test/Turns-v0",
        start=lambda rng: (0.0, 0.0),
        step=swings,
        observe=lambda state: (math.sin(state[0]), state[1]),
        observations={"sin(x)": (-1.0, 1.0), "y": (-1.0, 1.0)},
        actions={"u": (-1.0, 1.0)},
        horizon=9,
    )
    angle = "x [rad]"
    allowed = {"x [rad]": (-1.00045, 1.00045), "y": (-1.0, 1.0)}
    asked = Statement(starts={angle: (-0.100049, 0.100049), "y": (-0.1, 0.1)}, allowed=allowed, forward=True)
    verdict = spaql.verify(one_leaf(turns), turns, asked, seconds=20)
    assert verdict.proven == 1.0
    save_certificate(verdict, tmp_path / "turns")
    said = check_certificate(tmp_path / "turns").data["statement"]
    assert f'"{angle}" -0.1 to 0.1, ' in said
    assert "-1.001 to 1.001 (up to whole turns)" in said
    assert said.count("whole turns") == 1


BRANCHES = [[0, 0, 0, i + 1, i + 1, -1, i - 1] for i in range(60)] + [[-1, -1, -1, -1, -1, 0, 59]]
SHARED = np.arange(61)
BOMBS = {
    "paths": (NEVER, {}, {"step.branch": np.array(BRANCHES)}),
    "rules": (
        NEVER,
        {},
        {
            "tree.feature": np.where(SHARED < 60, 0, -1),
            "tree.threshold": SHARED * 1.0,
            "tree.left": np.where(SHARED < 60, SHARED + 1, -1),
            "tree.right": np.where(SHARED < 60, SHARED + 1, -1),
            "tree.leaf": np.where(SHARED < 60, -1, 0),
        },
    ),
    "image": (NEVER, {"image": 10**6}, loop_of(STANDS)),
    "limit": (
        *(LASTS, {"image": 10**6, "limit": 10**9, "proven": 1 / 256}),
        {
            "times": np.where(np.arange(256) == 40, 1, -1).astype(np.int32),
            **loop_of(HALVES.replace("0.5", "0.999999")),
        },
    ),
    "closed": (CLOSED, {"image": 10**6}, {}),
    "levels": (NEVER, {"levels": 26}, {}),
    "sides": (CLOSED, {}, {"sides": np.array([2**30, 2**30])}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_file_is_checked_in_a_time_that_its_size_explains(forged, name, monkeypatch):
    monkeypatch.setattr(check_loop, "_WORK", check_loop._WORK // 20)  # for the sake of time
    monkeypatch.setattr(check_loop, "_WORK_OF_A_BYTE", check_loop._WORK_OF_A_BYTE / 20)
    path = forged(*BOMBS[name])
    began = time.process_time()
    with pytest.raises(spaql.ArchiveError):
        check_certificate(path)
    assert time.process_time() - began < 10.0
