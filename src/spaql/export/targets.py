"""The exporters: each proves what it made before it writes it."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from spaql.archive import write_together
from spaql.errors import SettingError, imported, nearest
from spaql.export.c_code import CCode
from spaql.export.equivalence import POINTS, Proof, Target, prove
from spaql.export.json_tree import JsonTree
from spaql.export.onnx_graph import OnnxGraph
from spaql.export.python_code import PythonCode
from spaql.export.rewrite import TOLERANCE
from spaql.export.sql_case import SqlCase
from spaql.export.structured_text import StructuredText
from spaql.export.target_controller import controller_of
from spaql.interpret import rule_tree
from spaql.policy import RuleTree
from spaql.policy.sources import PathLike, Source
from spaql.values import whole_number

SafeAction = float | str | Sequence[float] | None


def c(
    tree: Source,
    path: PathLike,
    *,
    number: str = "double",
    form: str | None = None,
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int = POINTS,
) -> Proof:
    """Write a controller as C99, after it was compiled and compared with the tree.

    Parameters
    ----------
    tree
        A rule tree, which is written as it is; or an agent, a controller, a policy or the path of a file, of
        which the rules are those of `spaql.rule_tree`.
    path
        Of the source, such as `controller.c`: beside it comes `controller.h` with the function
        `controller_act(observation, action)`, which gives a finite action by its number in `action[0]`.
    number
        In which the machine computes: "double", "float", or "fixed" for whole numbers of 32 bits.
    form
        "rules" for nested conditions, "table" for constants and a loop; by default rules of up to 256 leaves
        are written as conditions.
    safe_action
        The action for NaN, and for observations beyond the bounds of their space by more than the tolerance;
        one of a list by its number or its name. By default the rules hold beyond the bounds, as they do in
        Python, and NaN is answered with the first action of a list, or the one nearest to 0.
    tolerance
        The share of an observation's range by which it may be out of bounds before it gets the safe action,
        so that sensor noise at a bound does not trigger it.
    provenance
        Lines for the comment at the head.
    points
        How many random points to compare, besides all leaves and boundaries.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.rule_tree(agent.learn(iterations=10, progress_bar=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     proof = c(tree, Path(folder) / "controller.c", points=1000)
    >>> sorted(proof.files)
    ['controller.c', 'controller.h']
    """
    return write(
        CCode(form),
        tree,
        path,
        number=number,
        safe_action=safe_action,
        tolerance=tolerance,
        provenance=provenance,
        points=points,
    )


def st(
    tree: Source,
    path: PathLike,
    *,
    number: str = "double",
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int = POINTS,
) -> Proof:
    """Write a controller as a function block in Structured Text (IEC 61131-3), such as `controller.st`.

    The numbers are LREAL for "double" and REAL for "float". The text is read back as the standard has it and
    compared with the tree; no PLC is asked. For the other parameters see `c`.
    """
    return write(
        StructuredText(),
        tree,
        path,
        number=number,
        safe_action=safe_action,
        tolerance=tolerance,
        provenance=provenance,
        points=points,
    )


def onnx(
    tree: Source,
    path: PathLike,
    *,
    number: str = "double",
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int = POINTS,
) -> Proof:
    """Write a controller as an ONNX model, such as `controller.onnx`, after onnxruntime ran it.

    It takes a batch `observation` of "double" or "float" numbers and gives a batch `action`. Needs the extra
    `onnx`. For the other parameters see `c`.
    """
    return write(
        OnnxGraph(),
        tree,
        path,
        number=number,
        safe_action=safe_action,
        tolerance=tolerance,
        provenance=provenance,
        points=points,
    )


def python(
    tree: Source,
    path: PathLike,
    *,
    form: str | None = None,
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int = POINTS,
) -> Proof:
    """Write a controller as one Python file with a function `act(observation)`; it imports nothing.

    For the parameters see `c`.
    """
    return write(
        PythonCode(form),
        tree,
        path,
        number="double",
        safe_action=safe_action,
        tolerance=tolerance,
        provenance=provenance,
        points=points,
    )


def sql(
    tree: Source,
    path: PathLike,
    *,
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int = POINTS,
) -> Proof:
    """Write a controller as a CASE expression of SQL, such as `controller.sql`, after SQLite ran it.

    For the parameters see `c`.
    """
    return write(
        SqlCase(),
        tree,
        path,
        number="double",
        safe_action=safe_action,
        tolerance=tolerance,
        provenance=provenance,
        points=points,
    )


def json(
    tree: Source,
    path: PathLike,
    *,
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int = POINTS,
) -> Proof:
    """Write a controller as JSON, such as `controller.json`, that `tree_from_json` reads.

    Its form is published in `spaql.export.json_tree.SCHEMA`. For the parameters see `c`.
    """
    return write(
        JsonTree(),
        tree,
        path,
        number="double",
        safe_action=safe_action,
        tolerance=tolerance,
        provenance=provenance,
        points=points,
    )


Exporter = Callable[..., Proof]
EXPORTERS: Mapping[str, tuple[Exporter, str]] = MappingProxyType(
    {
        "c": (c, ".c"),
        "st": (st, ".st"),
        "onnx": (onnx, ".onnx"),
        "python": (python, ".py"),
        "sql": (sql, ".sql"),
        "json": (json, ".json"),
    }
)
"""Every exporter with the suffix of its file."""


def write(
    target: Target,
    tree: Source,
    path: PathLike,
    *,
    number: str = "double",
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int = POINTS,
) -> Proof:
    """Write a controller in a language or format of one's own, after what was written was run and compared.

    Everything is written into an empty folder first, run by `Target.load`, and compared with the policy; only
    then are the files written where they are wanted.

    Parameters
    ----------
    target
        How a controller is written, and how what was written is run: see `Target`.
    tree, path, number, safe_action, tolerance, provenance, points
        See `c`.
    """
    path = Path(path)
    name = path.stem
    if not (name.isidentifier() and name.isascii()):
        raise SettingError(
            f"The file's name becomes that of functions, and {name!r} cannot: use letters and _."
        )
    rules = tree if isinstance(tree, RuleTree) else rule_tree(tree)
    controller = controller_of(rules, number, safe_action, provenance, tolerance)
    files = target.write(controller, name)
    if path.name not in files:
        raise SettingError(f"The file is called {' or '.join(files)}, not {path.name}.")
    with tempfile.TemporaryDirectory() as folder:
        proof = prove(target, controller, files, name, Path(folder), whole_number("points", points, least=0))
    write_together({path.parent / file: content for file, content in files.items()})
    return proof


def find_exporter(name: str) -> tuple[Exporter, str]:
    """Return an exporter and the suffix of its file.

    Parameters
    ----------
    name
        One of `EXPORTERS`; or `module:name`, which imports the module, and names a subclass of `Target` in
        it, or an instance of one.

    Examples
    --------
    >>> find_exporter("sql")[1], find_exporter("spaql.export.sql_case:SqlCase")[1]
    ('.sql', '.sql')
    """
    module, _, attribute = name.rpartition(":")
    if not module:
        if name not in EXPORTERS:
            raise SettingError(f"There is no export target {name!r}: {nearest(name, EXPORTERS)}")
        return EXPORTERS[name]
    found = getattr(imported(module, attribute), attribute, None)
    target = found() if isinstance(found, type) and issubclass(found, Target) else found
    if not isinstance(target, Target):
        raise SettingError(f"{name} is not a subclass of spaql.export.Target, nor an instance of one.")
    return functools.partial(write, target), target.suffix
