"""The claims of the paper, each with its criterion, the measurement and the verdict.

Every claim of the abstract, the results and the conclusions is judged; plans for further work are left out.
`claims.toml` has them, and the names of the criteria, which are in `parts.py`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spaql.plugins.paper.criteria import verdict
from spaql.plugins.paper.evidence import Scaling, Study
from spaql.plugins.paper.parts import NOTES, PARTS
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.table import results

_CLAIMS = Path(__file__).with_name("claims.toml")
_HELD = {True: "holds", False: "does not hold", None: "cannot tell"}


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, compared with the measurement."""

    claim: str
    where: str
    published: str
    criterion: str
    measured: str
    verdict: str
    why: str = ""


def short_runs(scaling: RunStore) -> Scaling:
    """Return the fresh returns of the runs that compare values of xi."""
    table = results(scaling.root)
    keys = zip(table["problem"].tolist(), table["algorithm"].tolist(), table["scaling"].tolist(), strict=True)
    found: dict[tuple[str, str, float], list[float]] = {}
    for key, value in zip(keys, table["fresh_return"].tolist(), strict=True):
        found.setdefault(key, []).append(value)
    return {key: np.array(values) for key, values in found.items()}


def judge(study: Study) -> list[Claim]:
    """Return every claim of the paper, judged by a study."""
    content = tomllib.loads(_CLAIMS.read_text(encoding="utf-8"))
    texts = content["texts"]
    texts["EARLIER"] = texts["EARLIER"].format_map(texts)
    return [_judged(claimed, texts, study) for claimed in content["claims"]]


def _judged(claimed: Mapping[str, Any], texts: Mapping[str, str], study: Study) -> Claim:
    """Return a claim of the file as judged by a study."""
    criterion = claimed["criterion"].format_map(texts)
    head = claimed["claim"], claimed["where"], claimed["published"], criterion
    if claimed.get("needs_trpo", False) and not study.has_trpo:
        return Claim(*head, "TRPO was not run", "cannot tell", "`spaql paper --trpo` runs it.")
    findings = [finding for name, *given in claimed["parts"] for finding in PARTS[name](study, *given)]
    measured = "; ".join(f"{finding.text} [{_HELD[finding.holds]}]" for finding in findings)
    why = [claimed.get("why", "").format_map(texts)]
    if "note" in claimed:
        name, *given = claimed["note"]
        why.insert(0, NOTES[name](study, findings, *given))
    return Claim(*head, measured, verdict(findings), " ".join(filter(None, why)))
