"""Structured Text by another route: parsed by blark, translated to C, compiled, and compared with the policy.

Nothing is taken from the reader by which the export is compared.
"""

import dataclasses
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from export_forms import SAFE
from feature_controllers import random_controller, two_leaf_pi
from random_trees import random_tree
from spaql import Controller
from spaql.export.episodes import episodes
from spaql.export.languages.structured_text import StructuredText
from spaql.export.machine import Machine, machine_of
from spaql.export.test_states import comparison_points
from spaql.languages import ST_LIBRARY

pytest.importorskip("blark")
from st_to_c import Block


def drawn(kind: str, sums: int, number: str) -> Machine:
    # The parser takes seconds for long texts.
    tree = random_tree(np.random.default_rng(5), 3, 4 if kind.endswith("laws") else 12, kind, sums=sums)
    return machine_of(tree, number, SAFE[kind])


def differences(text: str, controller: Machine, folder: Path) -> int:
    """Return how many actions of the compiled block differ, at all leaves, boundaries and random points."""
    block = Block(text, folder)
    assert block.name == "Controller"
    points = np.concatenate([batch for _, batch in comparison_points(controller, 20_000)])
    given = block.play(points)[:, : controller.width]
    return int((given != controller.wanted(points)).any(axis=1).sum())


@pytest.mark.parametrize("number", ["double", "float"])
@pytest.mark.parametrize(
    ("kind", "sums"),
    [("choices", 0), ("laws", 0), ("constants", 0), ("choices", 2), ("switching laws", 0), ("laws", 2)],
)
def test_compiled_by_another_route_the_actions_are_the_same(
    kind: str, sums: int, number: str, tmp_path: Path
) -> None:
    controller = drawn(kind, sums, number)
    text = StructuredText().write(controller, "controller")["controller.st"].decode()
    assert differences(text, controller, tmp_path) == 0


@pytest.mark.parametrize(("old", "new"), [(" < ", " <= "), (r"(LREAL#-?[0-9.]+)", r"\g<1>1"), ("<>", "=")])
def test_a_fault_is_found_by_that_route(old: str, new: str, tmp_path: Path) -> None:
    controller = drawn("choices", 2, "double")
    text = StructuredText().write(controller, "controller")["controller.st"].decode()
    assert differences(re.sub(old, new, text), controller, tmp_path) > 0


@pytest.mark.parametrize("number", ["double", "float"])
@pytest.mark.parametrize(
    "made",
    [
        two_leaf_pi(hysteresis=(0.1, 0.0)),
        pytest.param(random_controller(2), marks=pytest.mark.long),
        pytest.param(random_controller(3), marks=pytest.mark.long),
    ],
    ids=["pi", "all features", "all features, other limits"],
)
def test_compiled_by_another_route_the_state_is_the_same(made: Any, number: str, tmp_path: Path) -> None:
    """A controller with memory, whose variables begin with their initial values and are kept."""
    machine = machine_of(made, number)
    text = StructuredText().write(machine, "controller")["controller.st"].decode()
    block = Block(text, tmp_path)
    part = next(episodes(machine, 20_000, manual=True))
    kept = [name for name, _, _ in block.own][: made.new_memory(1).shape[1]]
    assert kept[:2] == ["started", "leaf"]
    rows, steps, _ = part.inputs.shape
    width = len(made.actions)
    samples = np.concatenate([part.resets[..., np.newaxis], part.inputs, part.commands], axis=2)
    played = block.play(samples.reshape(rows * steps, -1)).reshape(rows, steps, -1)
    assert np.array_equal(played[..., :width], part.actions)
    assert np.array_equal(played[..., width : width + made.new_memory(1).shape[1]], part.states)


def test_compilers_refuse_no_name_and_no_number(tmp_path: Path) -> None:
    """MATIEC refuses variables with names of the standard library, and the largest number of a type."""
    tree = random_tree(np.random.default_rng(5), 3, 12, "switching laws", sums=2)
    named = dataclasses.replace(tree, observations=("limit", "ramp", "left"))
    text = StructuredText().write(machine_of(named), "controller")["controller.st"].decode()
    assert "E308" not in text
    machine = machine_of(two_leaf_pi())
    text += StructuredText().write(machine, "controller")["controller.st"].decode()
    declared = set(re.findall(r"^ *(\w+) : ", text, re.MULTILINE))
    assert {"own_limit", "own_ramp", "own_left", "own_integral", "m_integral"} <= declared
    assert not declared & set(ST_LIBRARY.split())


@pytest.mark.parametrize("number", ["double", "float"])
def test_infinity_has_no_literal_and_is_told_apart(number: str, tmp_path: Path) -> None:
    """At a threshold of infinity: of an observation, and of a sum that may be NaN."""
    tree = Controller(
        feature=[0, 2, -1, -1, -1],
        threshold=[np.inf] * 2 + [0.0] * 3,
        left=[1, 3, -1, -1, -1],
        right=[2, 4, -1, -1, -1],
        leaf=[-1, -1, 0, 1, 2],
        laws=[0, 1, 2],
        observation_space=Box(-1.0, 1.0, (2,), np.float64),
        action_space=Discrete(3),
        combinations=[[1.0, 1.0]],
    )
    controller = machine_of(tree, number)
    text = StructuredText().write(controller, "controller")["controller.st"].decode()
    assert len(re.findall(r"\((.*)\) < \(\1\) \+ \(\1\)", text)) == 1
    largest = float(np.finfo(controller.number.dtype).max)
    ends = [-np.inf, -largest, -1e-40, 0.0, 1e-40, 1.0, largest, np.inf, np.nan]
    points = np.array([[a, b] for a in ends for b in ends], controller.number.dtype)
    given = Block(text, tmp_path).play(points)[:, :1]
    assert set(given.ravel()) == {0.0, 1.0, 2.0}
    assert np.array_equal(given, controller.wanted(points))
