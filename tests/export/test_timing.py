"""The time of a decision: operations counted in the rules, and cycles measured on simulated machines."""

import json
from pathlib import Path

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import spaql
import spaql.export
from feature_controllers import two_leaf_pi
from random_trees import random_tree
from spaql import Controller
from spaql.controllers import Laws
from spaql.export.languages.c import C
from spaql.export.machine import machine_of
from spaql.export.machines.boards import BOARDS, missing
from spaql.export.machines.operations import Operations, most_operations
from spaql.export.machines.timing import timing_of
from spaql.program.controller import controller_program

TOOLS = sorted({tool for board in BOARDS for tool in missing(board)})
needs_tools = pytest.mark.skipif(bool(TOOLS), reason=f"needs {', '.join(TOOLS)}")


def operations(controller, number: str = "double") -> Operations:
    return most_operations(*controller_program(machine_of(controller, number).specification()))


def timing(made) -> dict:
    return json.loads(timing_of(made, C().write(made, "controller")))


def test_operations_are_those_of_the_longest_path() -> None:
    """Two cuts, one of a sum of two observations; on the longest path is a law of one term."""
    space = Box(-1.0, 1.0, (2,), np.float64)
    one = Box(-1.0, 1.0, (1,), np.float64)
    gain = np.array([[[0.5, 0.0]], [[0.0, 0.0]], [[1.0, 2.0]]])
    tree = Controller(
        feature=[0, -1, 2, -1, -1],
        threshold=[0.25, 0, 0.5, 0, 0],
        left=[1, -1, 3, -1, -1],
        right=[2, -1, 4, -1, -1],
        leaf=[-1, 1, -1, 0, 0],
        laws=Laws(gain, np.array([[0.1], [0.2], [0.3]])),
        observation_space=space,
        action_space=one,
        combinations=np.array([[1.0, 1.0]]),
    )
    # Two tests of NaN, two cuts and three to clip; the sum has no products, and the law has one.
    assert operations(tree) == Operations(7, 2, 1)
    plain = random_tree(np.random.default_rng(0), 3, 40)
    assert operations(plain) == Operations(3 + plain.depth)
    assert operations(plain, "fixed") == Operations(plain.depth)


def test_operations_of_a_sample_are_those_of_the_longest_path() -> None:
    """Counted by hand in the C of a PI controller.

    Comparisons: 4 of valid readings, 1 of the rule, 2 of NaN, 4 of limits, 2 of anti-windup, 2 of the
    integral. Sums: 1 of the error, 2 of the longer law, 4 of the rate limit, 1 of what was cut, 1 of the
    integral. Products: 2 of the law, 2 of anti-windup, 1 of the integral.
    """
    found = operations(two_leaf_pi())
    assert found == Operations(comparisons=15, additions=9, multiplications=5)


@needs_tools
def test_the_largest_count_of_each_machine_is_at_a_point() -> None:
    made = machine_of(random_tree(np.random.default_rng(0), 3, 30, "constants"), "float")
    found = timing(made)
    assert "no static bound" in found["meaning"]
    assert found["most_operations"]["comparisons"] == 3 + made.controller.depth
    for row, unit in zip(found["machines"], ("cycles", "instructions", "instructions"), strict=True):
        # More than one for each comparison, and as many again for leaving the function.
        assert found["most_operations"]["comparisons"] < row[f"most_{unit}"] < 5_000
        assert len(row["at"]) == 3
        assert row["ram_bytes"] == 0 < row["flash_bytes"]
        assert "gcc" in row["compiler"]
    deeper = timing(machine_of(random_tree(np.random.default_rng(0), 3, 300, "constants"), "float"))
    assert deeper["machines"][1]["most_instructions"] > found["machines"][1]["most_instructions"]


@needs_tools
def test_what_is_not_measured_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    made = machine_of(random_tree(np.random.default_rng(0), 2, 5))
    assert timing(made)["machines"][0] == {
        "machine": "ATmega328P",
        "not_measured": "double must have 64 bits: export float or fixed numbers instead",
    }
    large = machine_of(random_tree(np.random.default_rng(0), 2, 6000), "float")
    assert "does not fit" in timing(large)["machines"][0]["not_measured"]
    space = Box(-1.0, 1.0, (1,), np.float64)
    n = 1000  # a chain of rules, for one of which an AVR takes about 90 cycles
    feature = np.tile([0, -1], n)
    chain = Controller(
        feature=[*feature, -1],
        threshold=[*np.where(feature == 0, np.repeat(np.linspace(-1, 1, n), 2), 0.0), 0.0],
        left=[*np.where(feature == 0, np.arange(2 * n) + 1, -1), -1],
        right=[*np.where(feature == 0, np.arange(2 * n) + 2, -1), -1],
        leaf=[*np.where(feature == 0, -1, np.arange(2 * n) % 4 // 2), 0],
        laws=[0, 1],
        observation_space=space,
        action_space=Discrete(2),
    )
    found = timing(machine_of(chain, "float"))
    assert found["machines"][0]["not_measured"] == "a decision takes more cycles than its timer can count"
    assert found["most_operations"]["comparisons"] == n + 1
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [row["not_measured"] for row in timing(made)["machines"]] == [
        "avr-gcc and simavr is missing",
        *["arm-none-eabi-gcc and qemu-system-arm is missing"] * 2,
    ]


@needs_tools
def test_a_controller_with_memory_is_measured_along_an_episode() -> None:
    machine = machine_of(two_leaf_pi())
    found = json.loads(timing_of(machine, C().write(machine, "controller")))
    assert found["machines"][0]["not_measured"] == "double must have 64 bits: the state needs it"
    for row in found["machines"][1:]:
        assert 500 < row["most_instructions"] < 5_000


@needs_tools
def test_a_fault_on_a_machine_is_found() -> None:
    made = machine_of(random_tree(np.random.default_rng(0), 2, 5, "constants"), "float")
    files = C().write(made, "controller")
    files["controller.c"] = files["controller.c"].replace(b" < ", b" > ")
    with pytest.raises(spaql.export.EquivalenceError, match="on a simulated ATmega328P"):
        timing_of(made, files)
