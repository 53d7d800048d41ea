"""A controller as a function block in Structured Text (IEC 61131-3)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.errors import SettingError
from spaql.export.comments import heading, name_of_action
from spaql.export.conditions import Keywords, nested, terms
from spaql.export.equivalence import Run, Target
from spaql.export.memory.structured_text import StructuredTextMemory
from spaql.export.played import player_of_rows
from spaql.export.st_common import LIBRARY, literal
from spaql.export.st_reader import FunctionBlock
from spaql.export.target_controller import MachineController
from spaql.languages import STRUCTURED_TEXT, identifiers, in_comment
from spaql.policy import Laws

_KEYWORDS = Keywords("IF {} THEN", "ELSIF {} THEN", "ELSE", "END_IF;")
_RESERVED = f"{STRUCTURED_TEXT} u "
_TYPES = {"double": "LREAL", "float": "REAL"}


class StructuredText(Target):
    """One function block."""

    name = "Structured Text"
    suffix = ".st"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        if controller.number.name == "fixed":
            raise SettingError(
                "number is 'fixed', and must be 'double' (LREAL) or 'float' (REAL) for Structured Text."
            )
        tree, kind = controller.tree, _TYPES[controller.number.name]
        block = name[0].upper() + name[1:]
        lines = [f"(* {in_comment(line)} *)" for line in heading(controller, f"{name}.st") if line]
        lines += [f"FUNCTION_BLOCK {block}", "VAR_INPUT"]
        inputs, outputs, sums = _names(controller)
        for word, seen in zip(inputs, tree.observations, strict=True):
            lines.append(f"    {word} : {kind}; (* {in_comment(seen)} *)")
        lines += ["END_VAR", "VAR_OUTPUT"]
        whole = isinstance(tree.action_space, Discrete)
        notes = name_of_action(controller, "number of the action: ") if whole else tree.actions
        for word, note in zip(outputs, notes, strict=True):
            lines.append(f"    {word} : {'DINT' if whole else kind}; (* {in_comment(note)} *)")
        lines += ["END_VAR"]
        own = ["u"] if isinstance(tree.leaves, Laws) or controller.switches else []
        own += ["best"] if controller.switches else []
        if own or sums:
            lines += ["VAR", *(f"    {word} : LREAL;" for word in [*own, *sums]), "END_VAR"]
        lines += [""]
        for word, weights in zip(sums, tree.combinations, strict=True):
            lines += _sum(controller, inputs, word, weights, None)
        lines += [*_body(controller, inputs, outputs, sums), "END_FUNCTION_BLOCK"]
        return {f"{name}.st": ("\n".join(lines) + "\n").encode()}

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Interpret the text as the standard defines it; returns the function from inputs to actions."""
        block = FunctionBlock.read(files[f"{name}.st"].decode())
        play = player_of_rows(block.player(folder, block.outputs, resets=False))

        def run(inputs: NDArray[Any]) -> NDArray[np.float64]:
            if bool(block.singles & set(block.inputs)) != (inputs.dtype == np.float32):
                raise SettingError(
                    f"The inputs are {inputs.dtype}, not of the type that the function block declares."
                )
            return play(inputs)

        return run

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return "spaql.export.st_reader, which follows the standard; not run on a PLC"

    def with_memory(self) -> StructuredTextMemory:
        """Return the target for controllers with memory."""
        return StructuredTextMemory()


def _names(controller: MachineController) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the names of the observations, of the numbers of an action, and of the sums."""
    tree = controller.tree
    reserved = _RESERVED + LIBRARY + ("best" if controller.switches else "")
    inputs = identifiers(tree.observations, reserved)
    outputs = identifiers(tree.actions, " ".join([reserved, *inputs]))
    if isinstance(tree.action_space, Discrete):
        outputs = ("chosen",)
    sums = [f"sum_{i}" for i in range(len(tree.combinations))]
    return inputs, outputs, identifiers(sums, " ".join([reserved, *inputs, *outputs]))


def _body(
    controller: MachineController, inputs: Sequence[str], outputs: Sequence[str], sums: Sequence[str]
) -> Iterator[str]:
    tree, kind, laws = controller.tree, _TYPES[controller.number.name], controller.tree.leaves
    whole = isinstance(tree.action_space, Discrete)

    def condition(j: int, t: float, below: bool) -> str:
        name, type_ = (inputs[j], kind) if j < tree.dims else (sums[j - tree.dims], "LREAL")
        test = f"{name} < {literal(type_, t)}" if t < math.inf else _below_infinity(name, type_)
        if below:
            return test
        # A sum may be NaN.
        return f"NOT ({test})" if j >= tree.dims or t == math.inf else f"{name} >= {literal(type_, t)}"

    def said(values: Sequence[float]) -> list[str]:
        pairs = zip(outputs, values, strict=True)
        return [f"{word} := {int(x) if whole else literal(kind, x)};" for word, x in pairs]

    def leaf(row: int) -> list[str]:
        if isinstance(laws, Laws):
            numbers = range(controller.n_actions)
            return [line for i in numbers for line in _law(controller, inputs, outputs[i], row, i)]
        if controller.scores(row):
            return list(_switching_law(controller, inputs, outputs[0], row))
        lines, note = said(controller.leaf_value(row)), controller.leaf_name(row)
        return [f"{lines[0]} (* {in_comment(note)} *)"] if note else lines

    unknown = "\n    OR ".join(f"({word} <> {word})" for word in inputs)
    safe = [f"{line} (* the safe action *)" for line in said(controller.safe)]
    yield from nested(tree, _KEYWORDS, condition, leaf, (unknown, safe))


def _law(
    controller: MachineController, inputs: Sequence[str], output: str, row: int, i: int
) -> Iterator[str]:
    """Yield the statements of a law."""
    laws, single = controller.tree.leaves, controller.number.name == "float"
    assert isinstance(laws, Laws)
    yield from _sum(controller, inputs, "u", laws.gain[row, i], float(laws.offset[row, i]))
    low, high, safe = (literal("LREAL", float(x)) for x in (laws.low[i], laws.high[i], controller.safe[i]))
    yield f"IF u <> u THEN u := {safe};"
    yield f"ELSIF u < {low} THEN u := {low};"
    yield f"ELSIF u > {high} THEN u := {high};"
    yield "END_IF;"
    yield f"{output} := {'LREAL_TO_REAL(u)' if single else 'u'};"


def _switching_law(
    controller: MachineController, inputs: Sequence[str], output: str, row: int
) -> Iterator[str]:
    """Yield the statements of a switching law, without -infinity, for which there is no literal.

    The best score so far is replaced by a higher one, and by any other if it is NaN. If it is NaN or
    -infinity at the end, no score was more.
    """
    first, *others = controller.scores(row)
    yield from _sum(controller, inputs, "best", first[2], first[1])
    yield f"{output} := {first[0]}; (* {in_comment(controller.action_name(first[0]))} *)"
    for number, offset, gain in others:
        yield from _sum(controller, inputs, "u", gain, offset)
        note = in_comment(controller.action_name(number))
        yield f"IF (u > best) OR (best <> best) THEN best := u; {output} := {number}; (* {note} *)"
        yield "END_IF;"
    default = int(controller.tree.default_action[0])
    # Of the negative numbers, only -infinity is not above its double.
    least = f"((best < {literal('LREAL', 0.0)}) AND (best <= best + best))"
    yield f"IF {least} OR (best <> best) THEN {output} := {default};"
    yield "END_IF;"


def _below_infinity(name: str, kind: str) -> str:
    """Return whether a number is below infinity, for which there is no literal, nor for numbers next to it.

    Compilers refuse the largest number as out of range. Of the positive numbers, only infinity is not below
    its double.
    """
    return f"({name} <= {literal(kind, 0.0)}) OR ({name} < {name} + {name})"


def _sum(
    controller: MachineController,
    inputs: Sequence[str],
    name: str,
    weights: NDArray[np.float64],
    offset: float | None,
) -> Iterator[str]:
    """Yield the statements of a sum, in a fixed order and in double precision whatever the number type."""
    if offset is not None:
        yield f"{name} := {literal('LREAL', offset)};"
    for j, weight in terms(weights):
        seen = f"REAL_TO_LREAL({inputs[j]})" if controller.number.name == "float" else inputs[j]
        before = "" if offset is None else f"{name} + "
        yield f"{name} := {before}({literal('LREAL', weight)} * {seen});"
        offset = 0.0
