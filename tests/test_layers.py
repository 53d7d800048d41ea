"""Layers: no module imports itself by way of others, not even inside a function."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import spaql

ROOT = Path(spaql.__file__).parent.parent


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {name_of(path): path for path in ROOT.glob("spaql/**/*.py")}


def imports(node: ast.AST) -> Iterator[str]:
    """Go through what is imported when code runs; imports for type checkers are left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module:
            names = (f"{child.module}.{alias.name}" for alias in child.names)
            yield from (name if name in MODULES else child.module for name in names)
        yield from imports(child)


def test_there_are_no_import_circles() -> None:
    graph = {
        name: {found for found in imports(ast.parse(path.read_text(encoding="utf-8"))) if found in MODULES}
        for name, path in MODULES.items()
    }
    assert len(graph) > 200
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
