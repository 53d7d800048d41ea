"""The state of a ladder, for files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.saved import finite, part, prefixed
from spaql.algorithms.treesearch.ladder.block import Usual
from spaql.algorithms.treesearch.ladder.rungs import Nominal, Rung
from spaql.algorithms.treesearch.ladder.stages import STAGES
from spaql.algorithms.treesearch.ladder.state import BEFORE_CHOICE, Ladder
from spaql.algorithms.treesearch.ladder.structures import ORDER, Structure
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.archive import number
from spaql.errors import ArchiveError

_MEASURES = ("price", "worst_weight")


def saved_ladder(ladder: Ladder) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return everything that is needed to go on."""
    evaluator = ladder.evaluator
    data: dict[str, Any] = {
        name: getattr(ladder, name)
        for name in ("budget", "spent", "stage", "round", "turn", "digits", "first_return", "best")
    }
    data |= {
        "sizes": dict(ladder.usual.sizes),
        "length": evaluator.length,
        "judged_length": evaluator.judged_length,
        "span": evaluator.span,
        "racers": [[one.form, list(one.kinds)] for one, _ in ladder.racers],
        "rungs": [
            {
                "form": rung.structure.form,
                "kinds": list(rung.structure.kinds),
                "nominal": None if rung.nominal is None else rung.nominal._asdict(),
                **{name: getattr(rung, name) for name in _MEASURES},
            }
            for rung in ladder.rungs
        ],
    }
    arrays = {
        "judging_starts": evaluator.judging_starts,
        "operating.observation": np.array(ladder.usual.observation),
        "operating.action": np.array(ladder.usual.action),
    }
    if len(evaluator.hard):
        arrays |= {"hard": evaluator.hard, "hardness": evaluator.hardness}
    for i, (_, racer) in enumerate(ladder.racers):
        arrays |= prefixed(f"racer.{i}", racer.arrays())
    for i, rung in enumerate(ladder.rungs):
        evaluated = {"returns": rung.returns, "changes": rung.changes}
        arrays |= prefixed(f"rung.{i}", rung.tree.arrays() | evaluated)
    return data, arrays


def restore_ladder(ladder: Ladder, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore the result of `saved_ladder`."""
    for name in ("budget", "spent", "round", "turn", "digits", "best"):
        setattr(ladder, name, number(data, name, 0, whole=True))
    ladder.first_return = number(data, "first_return")
    ladder.stage = str(data["stage"])
    if ladder.stage not in STAGES:
        raise ArchiveError(f"The file has a search in the stage {ladder.stage!r}, which there is not.")
    sizes = {str(name): float(number(data["sizes"], name, 0)) for name in data["sizes"]}
    ladder.usual = Usual(sizes, *_operating_point(ladder, arrays))
    _restore_evaluator(ladder, data, arrays)
    ladder.racers = []
    ladder.rungs = []
    for i, (form, kinds) in enumerate(data["racers"]):
        block = ladder.block(_structure(ladder, form, kinds))
        racer = Racer.from_arrays(part(arrays, f"racer.{i}"), block.one_law())
        ladder.racers.append((block.structure, racer))
    for i, one in enumerate(data["rungs"]):
        ladder.rungs.append(_rung(ladder, one, part(arrays, f"rung.{i}")))
    if (ladder.rungs and ladder.best >= len(ladder.rungs)) or (ladder.stage == "race" and not ladder.racers):
        raise ArchiveError("The search in the file has too few rungs or racers.")
    if ladder.stage not in BEFORE_CHOICE and any(rung.nominal is None for rung in ladder.rungs):
        raise ArchiveError("The search in the file has chosen among structures that were not measured.")


def _operating_point(
    ladder: Ladder, arrays: Mapping[str, NDArray[Any]]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    meaning = ladder.meaning
    observation, action = (finite(arrays, f"operating.{name}") for name in ("observation", "action"))
    if (len(observation), len(action)) not in ((0, 0), (len(meaning.observations), len(meaning.actions))):
        raise ArchiveError("The operating point in the file does not match its problem.")
    return tuple(observation.tolist()), tuple(action.tolist())


def _restore_evaluator(ladder: Ladder, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    evaluator = ladder.evaluator
    for name in ("length", "judged_length", "span"):
        setattr(evaluator, name, number(data, name, 0))
    for name in ("judging_starts", *(["hard", "hardness"] if "hard" in arrays else [])):
        setattr(evaluator, name, finite(arrays, name))
    if len(evaluator.hard) != len(evaluator.hardness):
        raise ArchiveError("The search in the file has hard starts that do not fit.")


def _rung(ladder: Ladder, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Rung:
    block = ladder.block(_structure(ladder, data["form"], data["kinds"]))
    tree = CandidateTree.from_arrays(arrays, block.one_law())
    returns, changes = (finite(arrays, name) for name in ("returns", "changes"))
    n = len(ladder.evaluator.judging_starts)
    if returns.shape != changes.shape or returns.shape != (n or len(returns),) or not len(returns):
        raise ArchiveError("A structure in the file was not evaluated from the starts in it.")
    measures = {name: number(data, name) for name in _MEASURES}
    kept = data["nominal"]
    nominal = None if kept is None else Nominal(*(number(kept, name) for name in Nominal._fields))
    size = block.parameters(tree)
    return Rung(block.structure, tree, size, returns, changes, **measures, nominal=nominal)


def _structure(ladder: Ladder, form: Any, kinds: Any) -> Structure:
    if form not in ladder.meaning.more or not set(kinds) <= set(ORDER):
        raise ArchiveError(f"The file has a controller of the form {form!r} with {kinds!r}.")
    return Structure(form, tuple(kinds))
