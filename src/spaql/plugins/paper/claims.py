"""The claims of the paper, each with its criterion, the measurement and the verdict.

Every claim of the abstract, the results and the conclusions is judged; plans for further work are left out.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spaql.errors import SettingError
from spaql.plugins.paper.abstract_claims import HEADLINES
from spaql.plugins.paper.criteria import verdict
from spaql.plugins.paper.evidence import Claimed, Scaling, Study
from spaql.plugins.paper.result_claims import BODY
from spaql.plugins.sweeps.store import RunStore
from spaql.plugins.sweeps.table import results

CLAIMS_FILE = Path("tables", "claims.csv")
"""The path of the claims in the folder of a study."""


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
    return [_judged(claimed, study) for claimed in (*HEADLINES, *BODY)]


def _judged(claimed: Claimed, study: Study) -> Claim:
    head = claimed.claim, claimed.where, claimed.published, claimed.criterion
    if claimed.needs_trpo and not study.has_trpo:
        return Claim(*head, "TRPO was not run", "cannot tell", "`spaql paper --trpo` runs it.")
    findings = [finding for part in claimed.parts for finding in part(study)]
    measured = "; ".join(f"{finding.text} [{_HELD[finding.holds]}]" for finding in findings)
    why = claimed.why if isinstance(claimed.why, str) else claimed.why(study, findings)
    return Claim(*head, measured, verdict(findings), why)


_HELD = {True: "holds", False: "does not hold", None: "cannot tell"}


def read_claims(folder: str | Path) -> list[Claim]:
    """Read the judged claims of a study, from the folder of its report."""
    file = Path(folder) / CLAIMS_FILE
    try:
        with file.open(encoding="utf-8", newline="") as lines:
            return [Claim(**row) for row in csv.DictReader(lines)]
    except FileNotFoundError as error:
        raise SettingError(f"There is no {file}: make the report first, by `spaql paper`.") from error
    except TypeError as error:
        names = ", ".join(field.name for field in dataclasses.fields(Claim))
        raise SettingError(f"{file} is no table of claims, which has the columns {names}.") from error


def side_by_side(studies: Mapping[str, Sequence[Claim]]) -> list[dict[str, str]]:
    """Return rows of a table with the verdicts of studies side by side, each under its name.

    The columns of a study are empty for a claim that it does not judge.
    """
    rows: dict[tuple[str, str, str], dict[str, str]] = {}
    for claims in studies.values():
        for claim in claims:
            row = {"claim": claim.claim, "where": claim.where, "criterion": claim.criterion}
            for column in ("verdict", "measured"):
                row |= {f"{column}, {name}": "" for name in studies}
            rows.setdefault((claim.claim, claim.where, claim.criterion), row)
    for name, claims in studies.items():
        for claim in claims:
            row = rows[claim.claim, claim.where, claim.criterion]
            row |= {f"verdict, {name}": claim.verdict, f"measured, {name}": claim.measured}
    return list(rows.values())
