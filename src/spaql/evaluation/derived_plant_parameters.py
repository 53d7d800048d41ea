"""Attributes that an environment's constructor computes from a parameter, found in its source.

Changing a parameter afterwards does not update what was computed from it, such as CartPole's total mass. Such
attributes are found by following assignments through the constructor and the methods it calls.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gymnasium

Uses = frozenset[str]
"""Names of attributes, and of local variables as `function:name`."""


@dataclass(frozen=True)
class Assigned:
    """An attribute that a constructor sets."""

    name: str
    uses: Uses
    """Names on which its value depends."""
    value: ast.expr | None
    """The expression of its value; None if it cannot be evaluated by itself."""
    scope: Mapping[str, Any]
    """The namespace of the module."""
    owner: str
    """The name of the environment there, such as `self`; empty in the body of its class."""

    def compute(self, plant: Any) -> Any:
        """Return the value, computed again; raises what the expression raises."""
        if self.value is None:
            raise SyntaxError("not a single expression")
        names = {self.owner: plant} if self.owner else _Attributes(plant)
        return eval(compile(ast.Expression(self.value), "<parameter>", "eval"), dict(self.scope), names)


class _Attributes(dict[str, Any]):
    """A namespace of attributes."""

    def __init__(self, plant: Any) -> None:
        super().__init__()
        self._plant = plant

    def __missing__(self, name: str) -> Any:
        try:
            return getattr(self._plant, name)
        except AttributeError:
            raise KeyError(name) from None


def derived_from(plant: Any, names: Sequence[str]) -> list[Assigned]:
    """Return the attributes that a constructor computes from some others, in the order of computation.

    Raises OSError or TypeError where the source of the class cannot be read.
    """
    assigned = list(_assigned(type(plant)))
    tainted = set(names)
    for one in assigned:
        if one.name in tainted:  # through a local variable
            tainted |= {use for use in one.uses if ":" in use}
    found: list[Assigned] = []
    grows = True
    while grows:
        new = [one for one in assigned if one.name not in names and one not in found and one.uses & tainted]
        found += new
        tainted |= {one.name for one in new}
        grows = bool(new)
    return sorted(found, key=assigned.index)


def _assigned(kind: type[Any]) -> Iterator[Assigned]:
    classes = [one for one in kind.__mro__[::-1] if one not in (object, *gymnasium.Env.__mro__)]
    for one in classes:
        scope = vars(inspect.getmodule(one) or object())
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(one))).body
        assert isinstance(body, ast.ClassDef)
        reader = _Reader(kind, "", scope, body.name)
        yield from reader.read(body.body, frozenset())
    for one in classes:
        if "__init__" in vars(one):
            yield from _read_function(kind, vars(one)["__init__"], frozenset(), set())


def _read_function(kind: type[Any], function: Any, given: Uses, read: set[str]) -> Iterator[Assigned]:
    """Yield the assignments of a method whose arguments may depend on attributes."""
    function = inspect.unwrap(function)
    if function.__qualname__ in read:
        return
    read.add(function.__qualname__)
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(tree, ast.FunctionDef)
    owner, *arguments = [one.arg for one in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
    reader = _Reader(kind, owner, function.__globals__, function.__qualname__, read)
    for name in arguments:
        reader.local[name] = given | {f"{function.__qualname__}:{name}"}
    yield from reader.read(tree.body, frozenset())


class _Reader:
    """Follows the assignments of a function, or of the body of a class."""

    def __init__(
        self, kind: type[Any], owner: str, scope: Mapping[str, Any], where: str, read: set[str] | None = None
    ) -> None:
        self._kind, self._owner, self._scope, self._where = kind, owner, scope, where
        self._read: set[str] = set() if read is None else read
        self.local: dict[str, Uses] = {}

    def read(self, statements: Sequence[ast.stmt], given: Uses) -> Iterator[Assigned]:
        """Yield the attributes that statements set; `given` are the names on which they are conditional."""
        for statement in statements:
            yield from self._calls(statement)
            if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
                yield from self._assignment(statement, given)
            elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                base = self._base(statement.value.func)
                if base and not callable(getattr(self._kind, base, None)):
                    yield self._made(base, self._uses(statement.value) | given, None)
            elif not isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                tests = [child for child in ast.iter_child_nodes(statement) if isinstance(child, ast.expr)]
                inner = given.union(*(self._uses(test) for test in tests))
                for target in _loop_targets(statement):
                    self.local[target] = inner | {f"{self._where}:{target}"}
                for part in ("body", "orelse", "finalbody"):
                    yield from self.read(getattr(statement, part, []), inner)
                for branch in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
                    yield from self.read(branch.body, inner)

    def _assignment(
        self, statement: ast.Assign | ast.AnnAssign | ast.AugAssign, given: Uses
    ) -> Iterator[Assigned]:
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if statement.value is None:
            return
        alone = not given and not isinstance(statement, ast.AugAssign)
        for target in targets:
            for part, value, whole in _pairs(target, statement.value):
                uses = self._uses(value) | given
                kept = value if alone and whole else None
                if isinstance(part, ast.Name) and self._owner:
                    before = frozenset() if alone else self.local.get(part.id, frozenset())
                    self.local[part.id] = uses | before | {f"{self._where}:{part.id}"}
                elif isinstance(part, ast.Name):
                    yield self._made(part.id, uses, kept)
                elif base := self._base(part):
                    direct = isinstance(part, ast.Attribute) and self._owns(part.value)
                    yield self._made(base, uses, kept if direct else None)

    def _made(self, name: str, uses: Uses, value: ast.expr | None) -> Assigned:
        return Assigned(name, uses, value, self._scope, self._owner)

    def _calls(self, statement: ast.stmt) -> Iterator[Assigned]:
        """Yield the assignments of the methods that a statement calls."""
        if not self._owner or isinstance(statement, ast.FunctionDef | ast.ClassDef):
            return
        for node in ast.walk(statement):
            called = node.func if isinstance(node, ast.Call) else None
            if not isinstance(called, ast.Attribute) or not self._owns(called.value):
                continue
            method = inspect.getattr_static(self._kind, called.attr, None)
            if inspect.isfunction(method):
                given = frozenset().union(*(self._uses(one) for one in ast.iter_child_nodes(node)))
                yield from _read_function(self._kind, method, given, self._read)

    def _uses(self, node: ast.AST) -> Uses:
        """Return the names on which an expression depends."""
        used: set[str] = set()
        for part in ast.walk(node):
            if isinstance(part, ast.Attribute) and self._owns(part.value):
                used.add(part.attr)
            elif isinstance(part, ast.Name):
                used |= self.local.get(part.id, frozenset()) if self._owner else {part.id}
        return frozenset(used)

    def _base(self, node: ast.AST) -> str:
        """Return the attribute at the start of `self.attribute[0].more`; empty for anything else."""
        while isinstance(node, ast.Attribute | ast.Subscript):
            if isinstance(node, ast.Attribute) and self._owns(node.value):
                return node.attr
            node = node.value
        return ""

    def _owns(self, node: ast.AST) -> bool:
        return bool(self._owner) and isinstance(node, ast.Name) and node.id == self._owner


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr, bool]]:
    """Return pairs of target and value, and whether the value is the whole of it, as in `a, b = x, y`."""
    if not isinstance(target, ast.Tuple | ast.List):
        return [(target, value, True)]
    parts = [part.value if isinstance(part, ast.Starred) else part for part in target.elts]
    values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    starred = any(isinstance(one, ast.Starred) for one in (*target.elts, *values))
    if len(values) == len(parts) and not starred:
        return [pair for part, x in zip(parts, values, strict=True) for pair in _pairs(part, x)]
    return [(inner, value, False) for part in parts for inner, _, _ in _pairs(part, value)]


def _loop_targets(statement: ast.stmt) -> list[str]:
    target = getattr(statement, "target", None)
    return [] if target is None else [node.id for node in ast.walk(target) if isinstance(node, ast.Name)]
