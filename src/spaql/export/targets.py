"""The exporters: `write` for each target, which runs the equivalence check before it writes a file."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from spaql.archive import write_together
from spaql.controllers import Controller, Policy, controller_of
from spaql.controllers.policy import PathLike, Source, opened, policy_of
from spaql.entry_points import declared_names, find_declared, load_declared, origin_of
from spaql.errors import SettingError, imported, nearest
from spaql.export.equivalence import Equivalence, check_equivalence
from spaql.export.json_form import Json
from spaql.export.language import Target
from spaql.export.languages.c import C
from spaql.export.languages.javascript import JavaScript
from spaql.export.languages.micropython import MicroPython
from spaql.export.languages.octave import Octave
from spaql.export.languages.onnx import Onnx
from spaql.export.languages.plcopen import PlcOpen
from spaql.export.languages.python import Python
from spaql.export.languages.rust import Rust
from spaql.export.languages.structured_text import StructuredText
from spaql.export.machine import TOLERANCE, machine_of
from spaql.export.running import EquivalenceError
from spaql.export.test_states import random_points
from spaql.languages import is_keyword
from spaql.problems import Problem
from spaql.problems.content import sha256
from spaql.program.controller import controller_program
from spaql.program.ir import digest
from spaql.values import whole_number

_LINE = re.compile(rb"\b(program|plant) sha256 ([0-9a-f]{64})\b")


def hashes_of(controller: Controller, problem: Problem | None) -> dict[str, str]:
    """Return the SHA-256 of a controller's program and, if it has one, that of its plant, by these names.

    The program is the one in double precision, without a safe action: a certificate has its hash as well.
    """
    hashes = {"program": program_digest(controller)}
    plant = {} if problem is None else problem.plant_now or problem.plant
    return hashes | ({"plant": sha256(sorted(plant.items()))} if plant else {})


def program_digest(controller: Controller) -> str:
    """Return the SHA-256 of the program of a controller."""
    return digest(*controller_program(machine_of(controller).specification()))


def hash_lines(controller: Controller, problem: Problem | None) -> list[str]:
    """Return lines for the head of exported code, with its hashes."""
    return [f"{name} sha256 {digest}" for name, digest in hashes_of(controller, problem).items()]


def difference(path: PathLike, hashes: Mapping[str, str]) -> str:
    """Return in what the hashes at the head of exported code differ from others; empty if they do not."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}.") from error
    kept = {name.decode(): digest.decode() for name, digest in reversed(_LINE.findall(content))}  # the first
    if not kept:
        return "it has no hashes"
    texts = (
        f"the hash of its {name} is {kept[name][:16]}" if name in kept else f"it has no hash of a {name}"
        for name in {**kept, **hashes}
        if kept.get(name) != hashes.get(name)
    )
    return ", and ".join(texts)


_COMPARED = 10_000
"""Random observations at which rules are compared with the policy that they were made from."""
SafeAction = float | str | Sequence[float] | None


def write(
    target: Target,
    tree: Source,
    path: PathLike,
    *,
    number: str = "double",
    safe_action: SafeAction = None,
    tolerance: float = TOLERANCE,
    provenance: Sequence[str] = (),
    points: int | None = None,
) -> Equivalence:
    """Write a controller as code, after running it and comparing it with the controller.

    The files are written to a temporary folder, run by `Target.load` and compared with the policy, and only
    then written to the path. `spaql.export.c` and so on are this function for the targets that ship.

    Parameters
    ----------
    target
        How a controller is written, and how what was written is run: see `Target`.
    tree
        A controller, which is written as it is; or an agent, a design, a policy or the path of a file, of
        which the controller is that of `spaql.controller_of`. One with memory is written with its state, and
        compared along random episodes.
    path
        Path of the file, such as `controller.c`, by whose name functions are called; C has the header
        `controller.h` beside it.
    number
        Number type of the target: "double" or "float".
    safe_action
        The action for NaN, and for observations out of bounds by more than the tolerance; a Discrete action
        by its number or name. By default the rules apply beyond the bounds, as in Python, and the action for
        NaN is the first Discrete action, or the one nearest to 0.
    tolerance
        By how much an observation may be out of bounds before the safe action is taken, as a share of its
        range, so that sensor noise at a bound does not trigger it.
    provenance
        Lines about the origin of the tree, for the comment at the head, which has the hashes of controller
        and plant besides.
    points
        Random points to compare, besides all leaves and boundaries; samples of a controller with memory. A
        million by default, and 100,000 in Octave and MicroPython.

    Returns
    -------
    Equivalence
        What was compared. A difference raises `EquivalenceError`, and no file is written.

    Examples
    --------
    >>> import spaql
    >>> agent = spaql.SPAQLTS("cartpole200", scaling=20, rollouts=20, seed=1)
    >>> tree = spaql.controller_of(agent.learn(iterations=10, progress_bar=False))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     equivalence = spaql.export.c(tree, Path(folder) / "controller.c", points=1000)
    >>> sorted(equivalence.files)
    ['controller.c', 'controller.h']
    """
    path = Path(path)
    name = path.stem
    if not (name.isidentifier() and name.isascii()):
        raise SettingError(f"The file name {name!r} is used for functions: use letters, digits and _.")
    if is_keyword(name):
        raise SettingError(f"The file name {name!r} is a word of some language: give another.")
    points = whole_number("points", target.points if points is None else points, least=0)
    source = opened(tree)
    problem = getattr(source, "problem", None)
    policy = policy_of(source)
    minimise = policy.draws or not (policy is source or policy.remembers)
    controller = controller_of(policy, minimise=minimise)
    _compare_rules(controller, policy)
    machine = machine_of(controller, number, safe_action, provenance, tolerance)
    machine = replace(machine, provenance=(*hash_lines(controller, problem), *provenance))
    files = target.write(machine, name)
    if path.name not in files:
        raise SettingError(f"The file name is {path.name}, and must be {' or '.join(files)}.")
    with tempfile.TemporaryDirectory() as folder:
        equivalence = check_equivalence(target, machine, files, name, Path(folder), points)
    write_together({path.parent / file: content for file, content in files.items()})
    return equivalence


def _compare_rules(rules: Controller, policy: Policy) -> None:
    """Raise `EquivalenceError` unless the rules to be written act as the policy in memory does."""
    if rules is policy:
        return
    points = random_points(rules, _COMPARED, np.random.default_rng(0))
    observations = points.astype(policy.observation_space.dtype).reshape(
        -1, *(rules.observation_space.shape or ())
    )
    wanted = np.asarray(policy.act(observations, np.zeros(len(points), np.int64), None))
    if not np.array_equal(rules.act(observations), wanted):
        raise EquivalenceError("The rules of the policy do not act as the policy, so no file is written.")


c = partial(write, C())
st = partial(write, StructuredText())
plcopen = partial(write, PlcOpen())
onnx = partial(write, Onnx())
rust = partial(write, Rust())
octave = partial(write, Octave())
javascript = partial(write, JavaScript())
micropython = partial(write, MicroPython())
python = partial(write, Python())
json = partial(write, Json())


def fmu(tree: Source, path: PathLike, **options: Any) -> Equivalence:
    """Write a controller as an FMU, such as `controller.fmu`, by the plugin `fmu`: see `write`.

    It holds the C that `c` writes, the functions of FMI 2.0 for co-simulation, and a binary for this
    platform. It is compared by running it in FMPy, which needs the extra `fmi`.
    """
    return write(_declared("fmu"), tree, path, **options)


Exporter = Callable[..., Equivalence]
EXPORTERS: Mapping[str, tuple[Exporter, str]] = MappingProxyType(
    {
        "c": (c, ".c"),
        "st": (st, ".st"),
        "plcopen": (plcopen, ".xml"),
        "onnx": (onnx, ".onnx"),
        "fmu": (fmu, ".fmu"),
        "rust": (rust, ".rs"),
        "octave": (octave, ".m"),
        "javascript": (javascript, ".mjs"),
        "micropython": (micropython, ".py"),
        "python": (python, ".py"),
        "json": (json, ".json"),
    }
)
"""Every exporter with its file suffix."""
GROUP = "spaql.targets"
"""The entry points by which a package declares targets, each under its name for `spaql export --to`."""


def find_exporter(name: str) -> tuple[Exporter, str]:
    """Return an exporter and the suffix of its file.

    Parameters
    ----------
    name
        One of `EXPORTERS`; the name of a target that an installed package declares in the entry-point group
        `spaql.targets`; or `module:name`, which imports the module. What a package declares, or a module
        defines, is a subclass of `Target` or an instance of one.

    Examples
    --------
    >>> find_exporter("json")[1], find_exporter("spaql.export.json_form:Json")[1]
    ('.json', '.json')
    """
    if name in EXPORTERS:
        return EXPORTERS[name]
    module, _, attribute = name.rpartition(":")
    target = _made(getattr(imported(module, attribute), attribute, None), name) if module else _declared(name)
    return partial(write, target), target.suffix


def _declared(name: str) -> Target:
    """Return a target that an installed package declares."""
    entry = find_declared(GROUP, name)
    if entry is None:
        known = [*EXPORTERS, *declared_names(GROUP)]
        raise SettingError(f"There is no export target {name!r}: {nearest(name, known)}")
    return _made(load_declared(entry), origin_of(entry))


def _made(declared: object, what: str) -> Target:
    """Return a target, which may be given by its class; raises `SettingError` for anything else."""
    if isinstance(declared, type) and issubclass(declared, Target):
        try:
            return declared()
        except Exception as error:
            raise SettingError(f"{what} cannot be made: {type(error).__name__}: {error}.") from error
    if not isinstance(declared, Target):
        raise SettingError(f"{what} is not a subclass of spaql.export.Target, nor an instance of one.")
    return declared
