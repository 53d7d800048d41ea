"""The interpreter of programs, which is slow and obvious, against the kernels."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaql.zoo
from feature_controllers import random_controller
from random_trees import random_tree
from spaql.controllers import Controller
from spaql.export.machine import machine_of
from spaql.program.controller import controller_program
from spaql.program.evaluate import Interpreter
from spaql.program.ir import Assign, Binary, Number, Program

ZOO = ["cartpole-plantree", "mountain-car-treesearch", "pendulum-treesearch", "oven-treesearch"]
FINITE = st.one_of(st.floats(-1e3, 1e3), st.floats(-1e29, 1e29))
NUMBERS = st.one_of(FINITE, st.sampled_from([math.nan, math.inf, -math.inf]))


def assert_same_actions(tree: Controller, rows: np.ndarray) -> None:
    """The program of a tree and the tree itself give the same actions."""
    machine = machine_of(tree)
    program = Interpreter(*controller_program(machine.specification()))
    actions = [program(row) for row in rows.tolist()]
    np.testing.assert_array_equal(np.array(actions, np.float64), machine.wanted(rows))


def assert_same_episode(controller: Controller, rows: np.ndarray) -> None:
    """The program of a controller with memory and its kernel give the same actions and states."""
    program, _ = controller_program(machine_of(controller).specification())
    interpreter = Interpreter(program)
    memory = controller.new_memory(1)
    for row in rows:
        sample = controller.computed(row[np.newaxis], memory)
        np.testing.assert_array_equal(interpreter(row.tolist()), sample.action[0])
        kept = [float(interpreter.values[variable.name]) for variable in program.state]
        np.testing.assert_array_equal(kept[1:], memory[0][1:])  # the first counts samples


@pytest.mark.parametrize("name", ZOO)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_zoo_controllers(name: str, data: st.DataObject) -> None:
    policy = spaql.zoo.load(name).policy
    width = int(np.prod(policy.observation_space.shape))
    row = st.lists(FINITE if policy.remembers else NUMBERS, min_size=width, max_size=width)
    rows = np.array(data.draw(st.lists(row, min_size=1)))
    (assert_same_episode if policy.remembers else assert_same_actions)(policy, rows)


@pytest.mark.parametrize("kind", ["choices", "constants", "laws", "switching"])
def test_random_trees(kind: str) -> None:
    rng = np.random.default_rng(7)
    tree = random_tree(rng, 3, 120, kind, sums=2)
    assert_same_actions(tree, np.concatenate([rng.normal(size=(200, 3)), np.full((1, 3), np.nan)]))


@pytest.mark.parametrize("seed", range(4))
def test_random_controllers_with_memory(seed: int) -> None:
    controller = random_controller(seed)
    rows = np.random.default_rng(seed).normal(size=(60, len(controller.observations)))
    assert_same_episode(controller, rows)


def test_division_by_zero_is_infinite() -> None:
    program = Program(("x",), ("y",), (), (), (), (Assign("y", Binary("/", Number(1.0), Number(0.0))),))
    assert Interpreter(program)([0.0]) == [math.inf]
