"""Tapes of programs: the same numbers as the interpreter, at all points and along all paths."""

import numpy as np
import pytest

import spaql
from random_trees import random_tree
from spaql.export.machine import machine_of
from spaql.kernels.verify import points
from spaql.program.controller import controller_program
from spaql.program.evaluate import Interpreter
from spaql.program.ir import (
    All,
    Assign,
    Binary,
    Call,
    Compare,
    Flag,
    Function,
    If,
    Name,
    Not,
    Number,
    Program,
    Select,
    SetFlag,
    Some,
    State,
)
from spaql.program.operations import OPERATIONS
from spaql.program.parser import parse
from spaql.program.trace import tape_of

INPUTS = ("a", "b", "c")
NUMBERS = ("u", "v", "w")
EXACT = ("abs", "floor", "sqrt")


class Random:
    """Random programs."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def one(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def number(self, depth: int = 2):
        kind = self.rng.integers(8) if depth else self.rng.integers(2)
        if kind == 0:
            return Number(float(self.rng.integers(-3, 4)) / 2)
        if kind < 3:
            return Name(self.one(*INPUTS, *NUMBERS))
        if kind == 3:
            return Function(self.one(*EXACT), (self.number(depth - 1),))
        if kind == 4:
            return Select(self.condition(depth - 1), self.number(depth - 1), self.number(depth - 1))
        return Binary(self.one("+", "-", "*", "/"), self.number(depth - 1), self.number(depth - 1))

    def condition(self, depth: int = 2):
        kind = self.rng.integers(6) if depth else 0
        if kind == 1:
            return Flag("f")
        if kind == 2:
            return Not(self.condition(depth - 1))
        if kind == 3:
            return self.one(All, Some)((self.condition(depth - 1), self.condition(depth - 1)))
        operator = self.one("<", "<=", ">", ">=", "==", "!=")
        return Compare(operator, self.number(depth and depth - 1), self.number(depth and depth - 1))

    def statements(self, depth: int = 1):
        for _ in range(self.rng.integers(1, 4)):
            kind = self.rng.integers(4)
            if kind == 0 and depth:
                yield If(
                    self.condition(), tuple(self.statements(depth - 1)), tuple(self.statements(depth - 1))
                )
            elif kind == 1:
                yield SetFlag("f", self.condition())
            else:
                yield Assign(self.one(*NUMBERS), self.number())

    def program(self) -> Program:
        begin = [Assign(name, Number(1.0)) for name in NUMBERS]
        body = (*begin, SetFlag("f", False), *self.statements(2), *self.statements())
        return Program(INPUTS, NUMBERS[:2], (), NUMBERS[2:], ("f",), body)


def assert_same(program: Program, points: np.ndarray, parts=None) -> None:
    tape = tape_of(program, parts or {})
    for point in points:
        outputs, ended = tape(point)
        np.testing.assert_array_equal(outputs, Interpreter(program, parts or {})(point))
        assert not ended


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.concatenate([rng.normal(size=(30, 3)), rng.integers(-2, 3, (30, 3)) / 2.0])
    assert_same(Random(seed).program(), points)


@pytest.mark.parametrize("kind", ["choices", "constants", "laws", "switching"])
def test_rule_trees(kind: str) -> None:
    rng = np.random.default_rng(5)
    tree = random_tree(rng, 3, 30, kind, sums=1)
    program, parts = controller_program(machine_of(tree).specification())
    assert_same(program, rng.normal(size=(50, 3)), parts)


def test_parts_are_called() -> None:
    part = Program(("a",), ("u",), (), (), (), (Assign("u", Binary("*", Name("a"), Name("a"))),))
    main = Program(("a",), ("u",), (), (), (), (Call("part", ("a",), ("u",)),))
    assert tape_of(main, {"part": part})([3.0])[0].tolist() == [9.0]


def test_expressions() -> None:
    text = "min(a, 2) * clip(b, -1, 1) + (sin(c) if 0 < a < b else b**2 % 3)"
    program = Program(INPUTS, ("u",), (), (), (), (Assign("u", parse("cost", text, INPUTS)),))
    assert_same(program, np.random.default_rng(0).normal(size=(100, 3)))


def test_what_is_no_tape_is_refused() -> None:
    with pytest.raises(spaql.SettingError, match="state"):
        tape_of(Program(("a",), ("a",), (State("s", 0.0),), (), (), ()))
    power = Assign("u", Binary("**", Name("a"), Name("b")))
    with pytest.raises(spaql.SettingError, match="constant whole exponent"):
        tape_of(Program(INPUTS, ("u",), (), (), (), (power,)))


def test_the_table_of_operations_has_the_codes_of_kernels() -> None:
    assert tuple(OPERATIONS) == points.OPERATIONS
