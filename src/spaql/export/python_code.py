"""A controller as one Python file without imports."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gymnasium.spaces import Discrete
from numpy.typing import NDArray

from spaql.export.comments import heading, name_of_action
from spaql.export.conditions import Keywords, chosen_form, nested, numbered, refuse_form, terms
from spaql.export.equivalence import Run, Target
from spaql.export.memory.python_code import PythonMemory
from spaql.export.played import driven_by_python, player_of_rows, run_file
from spaql.export.target_controller import MachineController
from spaql.languages import PYTHON, identifiers, in_comment
from spaql.policy import Laws, SwitchingLaws

_KEYWORDS = Keywords("if {}:", "elif {}:", "else:", "")
_CUT = """
def _cut(u, low, high, safe):
    if u != u:
        return safe
    return low if u < low else high if u > high else u

"""
_HIGHEST = """
def _highest(first, *scores):
    chosen, best = first, float("-inf")
    for action, score in scores:
        if score > best:  # never for NaN
            chosen, best = action, score
    return chosen

"""


@dataclass(frozen=True)
class PythonCode(Target):
    """One file of plain Python."""

    form: str | None = None
    """"rules", "table", or None to choose by size."""
    name = "Python"
    suffix = ".py"

    def write(self, controller: MachineController, name: str) -> dict[str, bytes]:
        """Return the files of a controller, by name."""
        tree = controller.tree
        head = "\n".join(map(in_comment, heading(controller, f"{name}.py")))
        lines = [f'"""{head}\n"""', ""]
        body = _rules if chosen_form(tree, self.form) == "rules" else _table
        if isinstance(tree.leaves, Laws):
            lines += _CUT.splitlines()
        if isinstance(tree.leaves, SwitchingLaws):
            lines += _HIGHEST.splitlines()
        sums = (f"sum_{i}" for i in range(len(tree.combinations)))
        compared = identifiers([*tree.observations, *sums], f"{PYTHON} act observation place x")
        names = compared[: tree.dims]
        unknown = " or ".join(f"{name} != {name}" for name in names)
        if len(unknown) > 90:
            unknown = "(\n        " + unknown.replace(" or ", "\n        or ") + "\n    )"
        function = [
            "",
            "def act(observation):",
            '    """Return the action for an observation.',
            "",
            *(f"    observation[{j}]  {in_comment(seen)}" for j, seen in enumerate(tree.observations)),
            "",
            *(f"    {in_comment(line)}" for line in name_of_action(controller, "The action is ")),
            '    """',
            f"    {', '.join(names)}{',' if len(names) == 1 else ''} = map(float, observation)",
            f"    if {unknown}:",
            f"        return {_action(controller, controller.safe)}  # the safe action",
            *(
                f"    {word} = {_sum(names, weights)}"
                for word, weights in zip(compared[tree.dims :], tree.combinations, strict=True)
            ),
        ]
        return {f"{name}.py": ("\n".join([*lines, *body(controller, compared, function)]) + "\n").encode()}

    def load(self, controller: MachineController, files: Mapping[str, bytes], name: str, folder: Path) -> Run:
        """Return the function from inputs to actions, which an interpreter of its own computes."""
        (folder / f"{name}.py").write_bytes(files[f"{name}.py"])
        sample = ["action = act(row[1:])"]
        discrete = isinstance(controller.tree.action_space, Discrete)
        sample += ["played.append(action)" if discrete else "played.extend(action)"]
        setup = [*run_file(name), "act = namespace['act']"]
        widths = (controller.tree.dims, controller.n_actions)
        return player_of_rows(driven_by_python(setup, sample, folder, *widths))

    def tool(self) -> str:
        """Return the name and version of the tool that runs the files."""
        return f"{platform.python_implementation()} {platform.python_version()}"

    def with_memory(self) -> PythonMemory:
        """Return the target for controllers with memory."""
        refuse_form(self.form)
        return PythonMemory()


def _rules(controller: MachineController, names: Sequence[str], function: list[str]) -> Iterator[str]:
    def condition(j: int, t: float, below: bool) -> str:
        if j >= controller.tree.dims and not below:  # a sum may be NaN
            return f"not {names[j]} < {_number(t)}"
        return f"{names[j]} {'<' if below else '>='} {_number(t)}"

    def leaf(row: int) -> list[str]:
        if isinstance(controller.tree.leaves, Laws):
            return [f"return {_law(controller, names, row)}"]
        if scores := controller.scores(row):
            pairs = (f"({number}, {_sum(names, gain, offset)})" for number, offset, gain in scores)
            return [f"return _highest({int(controller.tree.default_action[0])}, {', '.join(pairs)})"]
        note = controller.leaf_name(row)
        return [
            f"return {_action(controller, controller.leaf_value(row))}"
            + (f"  # {in_comment(note)}" if note else "")
        ]

    yield from function
    yield from nested(controller.tree, _KEYWORDS, condition, leaf, level=1)


def _table(controller: MachineController, names: Sequence[str], function: list[str]) -> Iterator[str]:
    table, laws = numbered(controller.tree), controller.tree.leaves
    yield f"_FEATURE = {tuple(table.feature)}"
    yield f"_THRESHOLD = ({', '.join(map(_number, table.threshold))},)"
    yield f"_NEXT = {tuple(table.after)}"
    if isinstance(laws, Laws):
        yield f"_LAW = {tuple(zip(laws.offset.tolist(), laws.gain.tolist(), strict=True))}"
        yield f"_LOW, _HIGH, _SAFE = {laws.low.tolist()}, {laws.high.tolist()}, {list(controller.safe)}"
    elif isinstance(laws, SwitchingLaws):
        rows = (_scores(controller, row) for row in range(len(laws)))
        yield f"_SCORE = ({', '.join(rows)},)"
    else:
        rows = (_action(controller, controller.leaf_value(row)) for row in range(len(laws)))
        yield f"_ACTION = ({', '.join(rows)},)"
    yield ""
    yield from function
    yield f"    x = ({', '.join(names)},)"
    yield "    place = 0"
    yield f"    while place < {len(table.feature)}:"
    yield "        place = _NEXT[place][0 if x[_FEATURE[place]] < _THRESHOLD[place] else 1]"
    if isinstance(laws, SwitchingLaws):
        yield "    scores = []"
        yield f"    for action, u, row in _SCORE[place - {len(table.feature)}]:"
        yield "        for gain, seen in zip(row, x):"
        yield "            if gain != 0.0:"
        yield "                u = u + gain * seen"
        yield "        scores.append((action, u))"
        yield f"    return _highest({laws.start}, *scores)"
        return
    if not isinstance(laws, Laws):
        yield f"    return _ACTION[place - {len(table.feature)}]"
        return
    yield f"    offsets, gains = _LAW[place - {len(table.feature)}]"
    yield "    action = []"
    yield "    for u, row, low, high, safe in zip(offsets, gains, _LOW, _HIGH, _SAFE):"
    yield "        for gain, seen in zip(row, x):"
    yield "            if gain != 0.0:"
    yield "                u = u + gain * seen"
    yield "        action.append(_cut(u, low, high, safe))"
    yield "    return tuple(action)"


def _number(x: float) -> str:
    return repr(x) if math.isfinite(x) else f'float("{x}")'


def _action(controller: MachineController, values: Sequence[float]) -> str:
    if isinstance(controller.tree.action_space, Discrete):
        return str(int(values[0]))
    return f"({', '.join(map(repr, values))},)"


def _law(controller: MachineController, names: Sequence[str], row: int) -> str:
    laws = controller.tree.leaves
    assert isinstance(laws, Laws)
    parts = []
    for i, offset in enumerate(laws.offset[row].tolist()):
        total = _sum(names, laws.gain[row, i], offset)
        ends = ", ".join(repr(float(x)) for x in (laws.low[i], laws.high[i], controller.safe[i]))
        parts.append(f"_cut({total}, {ends})")
    return f"({', '.join(parts)},)"


def _scores(controller: MachineController, row: int) -> str:
    """Return the actions that a switching law may take, with the offset and the gains of each."""
    laws = controller.tree.leaves
    assert isinstance(laws, SwitchingLaws)
    taken = np.flatnonzero(laws.offset[row] > -math.inf).tolist()
    return str(tuple((laws.start + i, float(laws.offset[row, i]), laws.gain[row, i].tolist()) for i in taken))


def _sum(names: Sequence[str], weights: NDArray[np.float64], offset: float | None = None) -> str:
    begin = [] if offset is None else [repr(offset)]
    return " + ".join([*begin, *(f"{weight!r} * {names[j]}" for j, weight in terms(weights))])
