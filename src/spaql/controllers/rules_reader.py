"""The rules and laws of a text: lines, conditions, and sums of inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete

from spaql.controllers.laws import Laws
from spaql.controllers.limits import POSITION, VELOCITY
from spaql.errors import SettingError, nearest
from spaql.kernels.numerics import Floats
from spaql.languages import identifiers
from spaql.program.functions import CONSTANTS, FUNCTIONS
from spaql.program.ir import (
    All,
    Binary,
    Compare,
    Condition,
    Expression,
    Function,
    Name,
    Not,
    Number,
    Select,
    Some,
)
from spaql.program.parser import parse
from spaql.spaces import space_bounds, split_unit

_WORDS = ("if", "elif", "else", "and", "or", "not", "inf", *FUNCTIONS, *CONSTANTS)
_NUMBER = r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_WORD = r"[^\W\d]\w*"
_RUN = rf"{_WORD}(?:[ -](?!(?:if|else|and|or|not)\b){_WORD})*"
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}


def among(names: Iterable[str]) -> str:
    """Return a pattern of names as whole words, the longest first."""
    longest_first = sorted(set(names), key=lambda name: -len(name))
    return rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)"


def with_short(names: Iterable[str]) -> list[str]:
    """Return names as they are, and without their units."""
    return [form for name in names for form in (name, split_unit(name)[0])]


def is_rounded(written: float, value: float) -> bool:
    """Return whether a number may have been written for a value, with some number of digits."""
    return written == value or any(float(f"{value:.{digits}g}") == written for digits in range(1, 18))


class Lines:
    """The lines of a text without remarks, and the line that is read next."""

    def __init__(self, text: str, names: Iterable[str]) -> None:
        remark = re.compile(rf"({among(names)})|(?:^|\s)#.*")
        bare = [remark.sub(lambda match: match[1] or "", line).rstrip() for line in text.splitlines()]
        self._lines = [
            (i, len(line) - len(line.lstrip()), line.strip()) for i, line in enumerate(bare, 1) if line
        ]
        self._end = max(1, len(bare)), -1, ""
        self._next = 0

    @property
    def line(self) -> tuple[int, int, str]:
        """Its number from 1 on, the spaces before it and its text; -1 and nothing after the end."""
        return self._lines[self._next] if self._next < len(self._lines) else self._end

    @property
    def content(self) -> str:
        """Its text; empty after the end."""
        return self.line[2]

    def advance(self) -> None:
        """Go to the one after it."""
        self._next += 1

    def fail(self, message: str, number: int | None = None) -> SettingError:
        """Return the error of a line."""
        return SettingError(f"Line {self.line[0] if number is None else number}: {message}")

    def expected(self, what: str) -> SettingError:
        """Return the error of the line, which is something else than was expected."""
        return self.fail(f"expected {what}, not {self.content!r}." if self.content else f"expected {what}.")


@dataclass
class _Branches:
    """An `if`, its conditions, of which that of `else` is None, and the nodes behind those that were read."""

    line: int
    indent: int
    tests: list[Condition | None] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)


class RuleReader:
    """Reads rules into the nodes of a tree, the sums that they compare, and a table of laws."""

    def __init__(
        self, lines: Lines, inputs: Sequence[str], actions: Sequence[str], space: Box | Discrete
    ) -> None:
        self._lines = lines
        self._space = space
        self._dims = len(inputs)
        self._short = list(dict.fromkeys(split_unit(name)[0] for name in (*inputs, *actions)))
        places = dict(zip(self._short, identifiers(self._short, " ".join(_WORDS)), strict=True))
        self._places = {name: places[split_unit(name)[0]] for name in with_short([*inputs, *actions])}
        self._inputs = {self._places[name]: j for j, name in enumerate(inputs)}
        self._actions = {self._places[name]: j for j, name in enumerate(actions)}
        self._example = actions[0]
        words = "|".join(_WORDS)
        self._pattern = re.compile(
            rf"^highest of |({among(self._places)})|{_NUMBER}|\b(?:{words})\b|({_RUN})"
        )
        self._nodes: list[tuple[int, float, int, int, int]] = []
        self._sums: dict[bytes, Floats] = {}
        self._laws: dict[bytes, tuple[int, Floats, Floats, int]] = {}
        self.form = ""
        """Whether laws are the action or, written with +=, its change; empty for discrete actions."""

    def fields(self) -> dict[str, Any]:
        """Return the tree as fields of a controller."""
        last = len(self._nodes) - 1  # children were read before their parents, and come after them
        rows = [
            (j, cut, last - left if j >= 0 else -1, last - right if j >= 0 else -1, row)
            for j, cut, left, right, row in reversed(self._nodes)
        ]
        names = ("feature", "threshold", "left", "right", "leaf")
        _, gain, offset, _ = zip(*self._laws.values(), strict=True)
        return {
            **dict(zip(names, zip(*rows, strict=True), strict=True)),
            "combinations": np.array([*self._sums.values()]),
            "laws": Laws(np.array(gain), np.array(offset)),
            "form": self.form or POSITION,
        }

    def read(self) -> None:
        """Read the rules, or the only law."""
        lines = self._lines
        waiting: list[_Branches] = []
        complete = False
        while not complete:
            number, indent, _ = lines.line
            word, condition, rest = self._heading()
            top = waiting[-1] if waiting else None
            if top is not None and len(top.nodes) == len(top.tests):
                if indent != top.indent or word not in ("elif", "else"):
                    raise lines.expected(f"'elif' or 'else:', below the 'if' of line {top.line}")
                top.tests.append(self._test(condition) if condition else None)
            elif top is not None and indent <= top.indent:
                raise lines.expected("a rule or an action that begins with more spaces")
            elif word == "if":
                waiting.append(_Branches(number, indent, [self._test(condition)]))
            elif word:
                raise lines.expected("an 'if' before it")
            else:
                complete = self._deliver(waiting, self._leaf())
                continue
            if rest:
                complete = self._deliver(waiting, self._leaf(rest))
            else:
                lines.advance()

    @property
    def width(self) -> int:
        """How many numbers rules can compare."""
        return self._dims + len(self._sums)

    def place(self, text: str) -> int | None:
        """Return which of the numbers that rules compare a text is; None for no one."""
        gain, _ = self._sum(self._parsed("number", self._placed(text)))
        return self._number(gain, new=False)

    def constants(self) -> list[tuple[int, Floats]]:
        """Return the offsets of the laws that are constant, with the lines in which they are."""
        return [(line, offset) for _, gain, offset, line in self._laws.values() if not gain.any()]

    def _deliver(self, waiting: list[_Branches], node: int) -> bool:
        """Write a node where it belongs; returns whether this completes the tree."""
        while waiting:
            top = waiting[-1]
            top.nodes.append(node)
            if top.tests[-1] is not None:
                return False
            waiting.pop()
            pairs = list(zip(top.tests[:-1], top.nodes[:-1], strict=True))
            for test, then in reversed(pairs):
                assert test is not None
                node = self._branch(test, then, node)
        return True

    def _placed(self, text: str) -> str:
        """Return a text with identifiers for the names; refuse words that are none."""

        def place(match: re.Match[str]) -> str:
            if match[2] is not None:
                raise self._lines.fail(f"there is no {match[2]!r}: {nearest(match[2], self._short)}")
            return self._places[match[1]] if match[1] is not None else match[0]

        return self._pattern.sub(place, text)

    def _heading(self) -> tuple[str, str, str]:
        """Return the keyword of the line, its condition, and what follows the colon; empty for a leaf."""
        word = self._lines.content.split(" ")[0].partition(":")[0]
        if self._lines.content in self._places or word not in ("if", "elif", "else"):
            return "", "", ""
        match = re.fullmatch(r"(?:else|(?:el)?if (.+?)):\s*(.*)", self._placed(self._lines.content))
        if match is None:
            raise self._lines.expected("a condition and ':'" if word != "else" else "'else:'")
        return word, match[1] or "", match[2]

    def _test(self, text: str) -> Condition:
        match self._parsed("condition", text):
            case Select(condition=condition, then=Number(1.0), otherwise=Number(0.0)):
                return self._compared(condition)
        raise self._lines.expected("a comparison, such as 'x < 0.5'")

    def _compared(self, condition: Condition) -> Condition:
        """Return a condition with comparisons of the numbers of rules only, each `< cut` or `>= cut`."""
        match condition:
            case Not(of=part):
                return Not(self._compared(part))
            case All(of=parts) | Some(of=parts):
                return type(condition)(tuple(map(self._compared, parts)))
            case Compare(operator=operator, left=left, right=right) if operator in _TURNED:
                first = self._sum(left)
                second = self._sum(right)
                if not first[0].any():
                    first, second, operator = second, first, _TURNED[operator]
                number = self._number(first[0] - second[0])
                cut = second[1] - first[1]
                if number is not None and not np.isnan(cut):
                    cut = cut if operator in ("<", ">=") else float(np.nextafter(cut, np.inf))
                    return Compare("<" if operator[0] == "<" else ">=", Number(number), Number(cut))
        raise self._lines.expected("comparisons of inputs by <, <=, > or >=")

    def _parsed(self, what: str, text: str) -> Expression:
        return parse(f"{what} in line {self._lines.line[0]}", text, [*self._inputs, "inf"])

    def _branch(self, test: Condition, then: int, otherwise: int) -> int:
        """Return the node of a condition."""
        match test:
            case Not(of=part):
                return self._branch(part, otherwise, then)
            case All(of=parts):
                for part in reversed(parts):
                    then = self._branch(part, then, otherwise)
                return then
            case Some(of=parts):
                for part in reversed(parts):
                    otherwise = self._branch(part, then, otherwise)
                return otherwise
            case Compare(operator=operator, left=Number(value=number), right=Number(value=cut)):
                sides = (then, otherwise) if operator == "<" else (otherwise, then)
                return self._node(int(number), cut, *sides)
        raise AssertionError(test)

    def _node(self, number: int, cut: float, left: int, right: int, row: int = -1) -> int:
        self._nodes.append((number, cut, left, right, row))
        return len(self._nodes) - 1

    def _number(self, gain: Floats, *, new: bool = True) -> int | None:
        """Return the place of a sum among the numbers that rules compare; None for one without inputs."""
        used = np.flatnonzero(gain)
        if len(used) == 1 and gain[used[0]] == 1.0:
            return int(used[0])
        if new and len(used):
            self._sums.setdefault(gain.tobytes(), gain)
        sums = list(self._sums)
        return self._dims + sums.index(gain.tobytes()) if gain.tobytes() in sums else None

    def _sum(self, expression: Expression) -> tuple[Floats, float]:
        """Return the gains and the offset of a sum of inputs times numbers."""
        match expression:
            case Number(value=value):
                return np.zeros(self._dims), value
            case Name(name="inf"):
                return np.zeros(self._dims), np.inf
            case Name(name=name):
                return np.eye(self._dims)[self._inputs[name]], 0.0
            case Binary(operator="+" | "-" as operator, left=left, right=right):
                (gain, offset), (more, constant) = self._sum(left), self._sum(right)
                return (
                    (gain + more, offset + constant) if operator == "+" else (gain - more, offset - constant)
                )
            case Binary(operator="*" | "/" as operator, left=left, right=right):
                (gain, offset), (other, factor) = self._sum(left), self._sum(right)
                if operator == "*" and not gain.any():
                    return offset * other, offset * factor
                if operator == "*" and not other.any():
                    return gain * factor, offset * factor
                if not other.any() and factor != 0.0:
                    return gain / factor, offset / factor
        raise self._lines.expected("a sum of inputs times numbers (declare others as features)")

    def _leaf(self, rest: str = "") -> int:
        """Read an action: of several components one in each line, or all in one."""
        lines = self._lines
        number, indent, _ = lines.line
        if isinstance(self._space, Discrete):
            node = self._choice(rest or self._placed(lines.content))
            lines.advance()
            return node
        gain = np.zeros((len(self._actions), self._dims))
        offset = np.full(len(self._actions), np.nan)
        while np.isnan(offset).any() and (rest or lines.line[1] == indent):
            for part in re.split(r", (?=\w+ \+?= )", rest or self._placed(lines.content)):
                match = re.fullmatch(r"(\w+) (\+?=) (.+)", part)
                if match is None or match[1] not in self._actions:
                    raise lines.expected(f"'{self._example} = ...'")
                k = self._actions[match[1]]
                form = POSITION if match[2] == "=" else VELOCITY
                if self.form not in ("", form) or not np.isnan(offset[k]):
                    raise lines.expected("all laws with '=', or all with '+=', and each component once")
                self.form = form
                gain[k], offset[k] = self._law(k, match[3])
            lines.advance()
            if rest:
                break
        if np.isnan(offset).any():
            raise lines.fail("this action has no law for each of its components.", number)
        return self._row(gain, offset, number)

    def _law(self, k: int, text: str) -> tuple[Floats, float]:
        """Return the law of a component; its limits, if they are written, are those of the action."""
        law = self._parsed("law", text)
        if isinstance(law, Function) and law.name == "clip":
            law, *ends = law.arguments
            for end, bound in zip(ends, space_bounds(self._space), strict=True):
                if not is_rounded(self._sum(end)[1], float(bound[k])):
                    raise self._lines.expected(f"{bound[k]:g} as a limit of the action, as in the problem")
        return self._sum(law)

    def _row(self, gain: Floats, offset: Floats, line: int) -> int:
        """Return a leaf with a law."""
        key = gain.tobytes() + offset.tobytes()
        row, *_ = self._laws.setdefault(key, (len(self._laws), gain, offset, line))
        return self._node(-1, 0.0, -1, -1, row)

    def _choice(self, text: str) -> int:
        """Return the node of a discrete action, of a choice between two, or of the highest of scores."""
        number = self._lines.line[0]
        if text in self._actions:
            return self._scores({text: (np.zeros(self._dims), 0.0)}, number)
        if text.startswith("highest of "):
            items = re.split(r", (?=\w+: )", text.removeprefix("highest of "))
            pairs = [item.partition(": ")[::2] for item in items]
            if all(name in self._actions for name, _ in pairs):
                return self._scores(
                    {n: self._sum(self._parsed("score", score)) for n, score in pairs}, number
                )
        if match := re.fullmatch(r"(\w+) if (.+) else (\w+)", text):
            chosen, condition, other = match.groups()
            if chosen in self._actions and other in self._actions:
                return self._either(chosen, condition, other, number)
        raise self._lines.expected(f"an action, such as {self._example!r}")

    def _either(self, chosen: str, condition: str, other: str, line: int) -> int:
        """Return the node of a choice; by scores where they choose the same of two that are equal."""
        match self._parsed("condition", condition):
            case Select(condition=Compare(operator="<" | ">" as operator, left=left, right=right)):
                scores = [self._sum(side) for side in ((left, right) if operator == ">" else (right, left))]
                if self._actions[chosen] > self._actions[other]:
                    return self._scores(dict(zip((chosen, other), scores, strict=True)), line)
        constant = np.zeros(self._dims), 0.0
        nodes = [self._scores({name: constant}, line) for name in (chosen, other)]
        return self._branch(self._test(condition), *nodes)

    def _scores(self, scores: dict[str, tuple[Floats, float]], line: int) -> int:
        gain = np.zeros((len(self._actions), self._dims))
        offset = np.full(len(self._actions), -np.inf)
        for name, score in scores.items():
            gain[self._actions[name]], offset[self._actions[name]] = score
        return self._row(gain, offset, line)
