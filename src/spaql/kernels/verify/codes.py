"""The operations of a tape, and its arrays."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

OPERATIONS = (
    *("const", "input", "unknown", "add", "sub", "mul", "div", "neg", "min", "max", "abs", "square", "sqrt"),
    *("sin", "cos", "tan", "exp", "log", "atan", "tanh", "atan2", "floor", "mod", "fmod", "interp", "single"),
)
"""`unknown` may be any number, and none; `square` is x * x; `single` rounds to single precision; `interp` is
linear between the points of a table, and constant beyond them."""
CODE = {name: number for number, name in enumerate(OPERATIONS)}

CONST, INPUT, UNKNOWN, ADD, SUB, MUL, DIV, NEG, MIN, MAX, ABS, SQUARE, SQRT = range(13)
SIN, COS, TAN, EXP, LOG, ATAN, TANH, ATAN2, FLOOR, MOD, FMOD, INTERP, SINGLE = range(13, 26)

LESS, LESS_EQUAL, EQUAL = range(3)
CONDITIONS = ("<", "<=", "==")


class TapeArrays(NamedTuple):
    """Operations in order, and a decision tree over comparisons whose leaves name the rows of the outputs."""

    code: Ints
    first: Ints
    """Row of the first operand; for an input its number."""
    second: Ints
    """Row of the second operand; for `interp` the number of the table."""
    value: Floats
    """Of constants."""
    branch: Ints
    """Decision nodes: condition (-1 for a leaf), two rows, nodes if it holds and if not, leaf, parent."""
    outputs: Ints
    """Leaves × outputs: rows."""
    flags: NDArray[np.bool_]
    """Of each leaf: whether the episode has terminated."""
    tables: Floats
    """Tables of `interp`: tables × 2 × points, padded with NaN."""


class TreeArrays(NamedTuple):
    """A controller without features and memory as arrays."""

    feature: Ints
    """What a node compares: an observation, or after these a weighted sum of them; -1 for a leaf."""
    threshold: Floats
    left: Ints
    right: Ints
    leaf: Ints
    sums: Floats
    """Weights of the sums: sums × observations."""
    gain: Floats
    """Laws × scores or numbers of an action × observations."""
    offset: Floats
    """Laws × scores or numbers of an action; -inf for an action that is never taken."""
    low: Floats
    """Of each number of an action; infinite for scores."""
    high: Floats
    discrete: bool
    """Whether laws have a score for each action of a list, of which the highest wins."""
    start: int
    """Number of the first action of a list."""
