"""Write a controller in any target, after an equivalence check."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

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
        Number type of the target: "double", "float", or "fixed" for integers of 32 bits, which C has.
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
