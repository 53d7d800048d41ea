"""Features without memory, and discrete actions with it, in every target."""

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from feature_controllers import OBSERVATIONS, SEEN
from memory_targets import TARGETS
from spaql import Controller
from spaql.controllers import (
    Angle,
    AngleError,
    Error,
    FilteredDerivative,
    Integral,
    Lag,
    LastAction,
    Laws,
    Observed,
    Product,
    SinceChange,
    Square,
)
from spaql.export import ExportedPolicy, equivalence
from spaql.export.equivalence import Compared, EquivalenceError, check_equivalence, comparisons
from spaql.export.languages.python import Python
from spaql.export.machine import Machine, machine_of
from spaql.export.test_states import FOUND

STATIC = (
    Error("error", "set-point", "level"),
    Observed("level"),
    Product("drive", "error", "cosine"),
    Square("energy", "error"),
    Angle("angle", "sine", "cosine"),
    AngleError("turn", "set-point", "angle"),
)
REMEMBERED = (
    Error("error", "set-point", "level"),
    Integral("integral", "error", limit=3.0),
    FilteredDerivative("slope", "level", time_constant=0.7),
    Lag("level before", "level", 2),
    LastAction("last", "action"),
    LastAction("3 before", "action", 3),
    SinceChange("since change", "action", limit=1.1),
)
LISTED = Discrete(3, start=-4)
BOX = Box(np.array([-1.0, 0.0]), np.array([1.0, 0.5]), dtype=np.float64)
SINGLE = {"c", "st", "onnx", "plcopen", "rust"}
"""Targets that know single precision."""


def rules(features: tuple, rng: np.random.Generator) -> dict:
    """Return a cut of the first feature, and on its right side one of a sum."""
    weights = rng.normal(size=(1, len(features)))
    return {
        "feature": [0, -1, len(features), -1, -1],
        "threshold": [0.3, 0.0, -0.1, 0.0, 0.0],
        "left": [1, -1, 3, -1, -1],
        "right": [2, -1, 4, -1, -1],
        "leaf": [-1, 0, -1, 1, 2],
        "combinations": weights,
        "features": features,
        "observation_space": OBSERVATIONS,
        "observations": SEEN,
    }


def static(seed: int, actions: Box | Discrete) -> Controller:
    """Return a controller over features of the present observation."""
    rng = np.random.default_rng(seed)
    outputs = int(actions.n) if isinstance(actions, Discrete) else 2
    laws = Laws(rng.normal(size=(3, outputs, len(STATIC))), rng.normal(size=(3, outputs)))
    return Controller(laws=laws, action_space=actions, **rules(STATIC, rng))


def listed(seed: int, **changes) -> Controller:
    """Return a controller with memory and discrete actions: two laws of scores, and one action."""
    rng = np.random.default_rng(seed)
    gain = rng.normal(size=(3, 3, len(REMEMBERED)))
    offset = rng.normal(size=(3, 3))
    gain[1] = 0.0
    offset[1] = [-np.inf, 0.0, -np.inf]
    settings = {"sample_time": 0.2, "start": -3.0} | changes
    return Controller(laws=Laws(gain, offset), action_space=LISTED, **rules(REMEMBERED, rng), **settings)


def check(target, machine: Machine, folder: Path, points: int = 2000) -> dict[str, int]:
    files = target.write(machine, "controller")
    return check_equivalence(target, machine, files, "controller", folder, points).points


@functools.cache
def machine_of_static(is_listed: bool, number: str) -> Machine:
    if is_listed:
        return machine_of(static(1, LISTED), number)
    return machine_of(static(1, BOX), number, [0.25, 0.125])


@functools.cache
def comparisons_of_static(is_listed: bool, number: str) -> list[Compared]:
    """Return what each target is compared with: to find the boundaries takes a second."""
    return list(comparisons(machine_of_static(is_listed, number), 2000))


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("is_listed", [False, True], ids=["range", "list"])
def test_features_without_memory_are_the_same_in_every_target(
    kind: str, is_listed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = "float" if kind in SINGLE and is_listed else "double"
    compared = comparisons_of_static(is_listed, number)
    monkeypatch.setattr(equivalence, "comparisons", lambda *arguments, **options: compared)
    points = check(TARGETS[kind], machine_of_static(is_listed, number), tmp_path)
    assert points[FOUND] > 1000


@pytest.mark.parametrize("actions", [BOX, LISTED], ids=["range", "list"])
def test_a_threshold_of_a_feature_by_one_bit_is_found(actions, tmp_path: Path) -> None:
    machine = machine_of(static(3, actions))
    threshold = machine.controller.threshold.copy()
    threshold[0] = np.nextafter(threshold[0], 1.0)
    moved = dataclasses.replace(
        machine, controller=dataclasses.replace(machine.controller, threshold=threshold)
    )
    files = Python().write(moved, "controller")
    with pytest.raises(EquivalenceError, match="among the boundaries"):
        check_equivalence(Python(), machine, files, "controller", tmp_path, 0)


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.parametrize("seed", range(3))
def test_discrete_actions_with_memory_are_the_same_in_every_target(
    kind: str, seed: int, tmp_path: Path
) -> None:
    changes = {"hysteresis": (0.2, *[0.0] * (len(REMEMBERED) - 1), 0.3)} if seed == 1 else {}
    number = "float" if seed == 2 and kind in SINGLE else "double"
    machine = machine_of(listed(seed, **changes), number, -2 if seed else None)
    points = check(TARGETS[kind], machine, tmp_path)
    assert points["samples at boundaries"] > 0
    assert "samples in manual mode" not in points


def test_the_program_of_discrete_actions_with_memory_says_its_action(tmp_path: Path) -> None:
    text = Python().write(machine_of(listed(0)), "controller")["controller.py"].decode()
    namespace: dict = {}
    exec(text, namespace)
    made = namespace["Controller"]()
    controller = listed(0)
    assert (made.last_action, controller.new_memory(1)[0, 2]) == (1.0, 1.0)  # the number of the start
    assert made.act([np.nan] * 4) == -3
    assert isinstance(made.act([np.nan] * 4), int)
    state = None
    for row in np.random.default_rng(0).uniform(-2, 2, (200, 4)):
        action, state = controller.predict(row, state)
        assert made.act(row) == action


def test_an_exported_policy_has_features() -> None:
    controller = static(0, BOX)
    rows = np.random.default_rng(0).uniform(-2, 2, (100, 4))
    assert np.array_equal(ExportedPolicy(controller).act(rows), controller.act(rows))
    endless = np.full((1, 4), np.inf)  # the error is NaN
    assert np.array_equal(ExportedPolicy(controller).act(endless), controller.act(endless))
    assert ExportedPolicy(controller).is_safe_action(endless).all()
