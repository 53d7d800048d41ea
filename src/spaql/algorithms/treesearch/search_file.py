"""The state of a search, for files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaql.algorithms.saved import finite, part, prefixed
from spaql.algorithms.treesearch.evaluator import Judgement
from spaql.algorithms.treesearch.judging import DOUBTS
from spaql.algorithms.treesearch.racer import Racer
from spaql.algorithms.treesearch.search import STAGES
from spaql.algorithms.treesearch.search_state import SearchState
from spaql.algorithms.treesearch.symmetry import mirror_from_data
from spaql.algorithms.treesearch.trees import CandidateTree
from spaql.archive import number
from spaql.errors import ArchiveError


def saved_search(search: SearchState) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return everything that is needed to go on."""
    evaluator = search.evaluator
    data = {
        "budget": search.budget,
        "spent": search.spent,
        "rung": search.rung,
        "turn": search.turn,
        "restarts": search.restarts,
        "raced_again": search.raced_again,
        "digits": search.digits,
        "begun_at": search.begun_at,
        "near_law": search.near_law,
        "stage": search.stage,
        "mirror": None if search.mirror is None else asdict(search.mirror),
        "score": None if search.incumbent is None else search.judgement.score,
        "mean_return": search.judgement.mean_return,
        "racers": len(search.racers),
        "length": evaluator.length,
        "judged_length": evaluator.judged_length,
        "span": evaluator.span,
        "best_end": evaluator.best_end,
    }
    arrays = {
        "states": search.states,
        "centre": evaluator.units.centre,
        "scale": evaluator.units.scale,
        "hard": evaluator.hard,
        "hardness": evaluator.hardness,
        "judging_starts": evaluator.judging_starts,
        "judged": search.judgement.values,
    }
    if search.incumbent is not None:
        arrays |= prefixed("incumbent", search.incumbent.arrays())
    for i, racer in enumerate(search.racers):
        arrays |= prefixed(f"racer.{i}", racer.arrays())
    return data, arrays


def restore_search(search: SearchState, data: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Restore the result of `saved_search`."""
    for name in ("budget", "spent", "rung", "turn", "restarts", "digits"):
        setattr(search, name, number(data, name, 0, whole=True))
    search.stage = str(data["stage"])
    search.begun_at = str(data["begun_at"])
    search.raced_again = bool(data["raced_again"])
    search.near_law = None if data["near_law"] is None else number(data, "near_law")
    if search.begun_at not in DOUBTS:
        raise ArchiveError(f"The file has a search that began at {search.begun_at!r}, which there is not.")
    mirror = data["mirror"]
    search.mirror = None if mirror is None else mirror_from_data(mirror, search.base)
    if search.stage not in STAGES:
        raise ArchiveError(f"The file has a search in the stage {search.stage!r}, which there is not.")
    evaluator = search.evaluator
    dims = search.base.numbers.shape[2] - 1
    for name in ("length", "judged_length", "span"):
        setattr(evaluator, name, number(data, name, 0))
    evaluator.best_end = number(data, "best_end")
    floats = {
        name: finite(arrays, name)
        for name in ("states", "centre", "scale", "hard", "hardness", "judging_starts", "judged")
    }
    widths = {floats["states"].shape[1:], floats["centre"].shape, floats["scale"].shape}
    if widths != {(dims,)}:
        raise ArchiveError("The search in the file does not match its problem.")
    if not (floats["scale"] > 0).all() or len(floats["hard"]) != len(floats["hardness"]):
        raise ArchiveError("The search in the file has units or hard starts that do not fit.")
    search.states = floats["states"]
    evaluator.units = evaluator.units._replace(centre=floats["centre"], scale=floats["scale"])
    evaluator.hard = floats["hard"]
    evaluator.hardness = floats["hardness"]
    evaluator.judging_starts = floats["judging_starts"]
    incumbent = part(arrays, "incumbent")
    search.incumbent = CandidateTree.from_arrays(incumbent, search.base) if incumbent else None
    score = -np.inf if search.incumbent is None else number(data, "score")
    search.judgement = Judgement(score, number(data, "mean_return"), floats["judged"])
    count = number(data, "racers", 0, 64, whole=True)
    search.racers = [Racer.from_arrays(part(arrays, f"racer.{i}"), search.base) for i in range(count)]
    if (search.stage == "race" and not 0 <= search.turn < count) or (
        search.stage in ("polish", "anew", "sharpen", "grow", "refine") and not count
    ):
        raise ArchiveError("The search in the file has too few racers.")
