"""Write a controller in any target, after an equivalence check."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from spaql.archive import write_together
from spaql.controllers import Controller, Policy, controller_of
from spaql.controllers.resolve import PathLike, Source, opened, policy_of
from spaql.errors import SettingError
from spaql.export.equivalence import Equivalence, check_equivalence
from spaql.export.hashes import hash_lines
from spaql.export.language import Target
from spaql.export.machine import TOLERANCE, machine_of
from spaql.export.played import EquivalenceError
from spaql.export.test_states import random_points
from spaql.languages import is_keyword
from spaql.values import whole_number

_COMPARED = 10_000
"""Random observations at which rules are compared with the policy that they were made from."""
SafeAction = float | str | Sequence[float] | None


class ExportOptions(TypedDict, total=False):
    """What every exporter takes: see `spaql.export.c`."""

    safe_action: SafeAction
    tolerance: float
    provenance: Sequence[str]
    points: int | None


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
    """Write a controller in a language or format of your own, with an equivalence check.

    The files are written to a temporary folder, run by `Target.load` and compared with the policy, and only
    then written to the path.

    Parameters
    ----------
    target
        How a controller is written, and how what was written is run: see `Target`.
    tree, path, number, safe_action, tolerance, provenance, points
        See `spaql.export.c`.
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
    trace = target.trace(machine, name)
    with tempfile.TemporaryDirectory() as folder:
        equivalence = check_equivalence(target, machine, files, name, Path(folder), points, trace)
    further = {} if trace is None else trace.files()
    write_together({path.parent / file: content for file, content in {**files, **further}.items()})
    hashes = {file: hashlib.sha256(content).hexdigest() for file, content in further.items()}
    return replace(equivalence, files=equivalence.files | hashes)


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
